"""The list of backends itself: each computes, or one skip says why it is not tested here."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from backends import BACKENDS, TESTED, has_nvidia_driver


def test_names_of_the_backends_differ():
    assert len({backend.name for backend in BACKENDS}) == len(BACKENDS)


@pytest.mark.parametrize("listed", BACKENDS, ids=str)
def test_a_backend_computes(listed):
    if listed.reason:
        (pytest.fail if listed.is_required else pytest.skip)(listed.reason)
    assert listed in TESTED
    x = listed.asarray(np.arange(3.0))
    assert listed.to_numpy(x + x).tolist() == [0.0, 2.0, 4.0]


def test_only_backends_on_a_gpu_are_ever_left_out():
    left_out = set(BACKENDS) - set(TESTED)
    assert all(backend.on_gpu for backend in left_out)
    assert not (left_out and has_nvidia_driver())


def test_required_backends_are_tested_with_or_without_a_driver():
    code = "from backends import TESTED; print('cupy' in map(str, TESTED))"
    support = os.path.dirname(sys.modules["backends"].__file__)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"GPUSTUMP_REQUIRED_BACKENDS": "torch-cuda cupy", "PYTHONPATH": support},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "True", done.stderr
