"""Every export answers as the model does, row by row, on the data sets and models of the suite."""

from __future__ import annotations

import exported
import pytest
from exported_models import CASES, case, edges


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> exported.Compiled:
    models = [case(name).model for name in CASES]
    return exported.Compiled(models, tmp_path_factory.mktemp("c"))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", exported.TARGETS)
def test_an_export_answers_as_the_model_does(name: str, target: str) -> None:
    for model, X in (case(name), edges(name)):
        found = exported.TARGETS[target](model, X)
        exported.assert_same(found, exported.expected(model, X))


@pytest.mark.parametrize("name", CASES)
def test_compiled_c_answers_as_the_model_does(name: str, compiled: exported.Compiled) -> None:
    number = [*CASES].index(name)
    for model, X in (case(name), edges(name)):
        found = compiled.answers(number, model, X)
        exported.assert_same(found, exported.expected(model, X))
