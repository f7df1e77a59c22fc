"""Model files of every kind load in every later version, and answer as they did."""

from __future__ import annotations

import json

import golden_models
import numpy as np
import pytest
from golden_models import COMMANDS, FOLDER, answers, recorded

from gpustump import StumpEnsemble

RECORDED = recorded()

pytestmark = pytest.mark.filterwarnings("ignore:values are missing:UserWarning")


def loaded(name: str) -> StumpEnsemble:
    return StumpEnsemble.load(FOLDER / f"{name}.json")


def table_of(name: str) -> np.ndarray:
    if name in COMMANDS:
        return golden_models.features_of_table(loaded(name))
    return golden_models.rows_for(json.loads((FOLDER / f"{name}.json").read_text()))


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_file_gives_the_recorded_answers(name):
    model, wanted = loaded(name), dict(RECORDED[name])
    assert model.digest() == wanted.pop("digest")
    assert answers(model, table_of(name)) == wanted


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_file_is_written_again_byte_for_byte(name, tmp_path):
    loaded(name).save(tmp_path / "model.json")
    assert (tmp_path / "model.json").read_bytes() == (FOLDER / f"{name}.json").read_bytes()
