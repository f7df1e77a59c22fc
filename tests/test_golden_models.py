"""Model files of every kind load in every later version, and answer as they did."""

from __future__ import annotations

import pytest
from golden_models import FOLDER, answers, loaded, recorded

from gpustump import StumpEnsemble

RECORDED = recorded()

pytestmark = pytest.mark.filterwarnings("ignore:values are missing:UserWarning")


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_file_gives_the_recorded_answers(name):
    model, rows = loaded(name)
    assert {"digest": model.digest(), **answers(model, rows)} == RECORDED[name]


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_file_is_written_again_byte_for_byte(name, tmp_path):
    StumpEnsemble.load(FOLDER / f"{name}.json").save(tmp_path / "model.json")
    assert (tmp_path / "model.json").read_bytes() == (FOLDER / f"{name}.json").read_bytes()
