"""Every export answers as the model does, row by row, on the data sets and models of the suite."""

from __future__ import annotations

import functools

import exported
import pytest
from exported_models import CASES, case, edges


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> exported.Compiled:
    models = [case(name).model for name in CASES]
    return exported.Compiled(models, tmp_path_factory.mktemp("c"))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", ["compiled c", *exported.TARGETS])
def test_an_export_answers_as_the_model_does(
    name: str, target: str, compiled: exported.Compiled
) -> None:
    by_c = functools.partial(compiled.answers, [*CASES].index(name))
    answers = {"compiled c": by_c, **exported.TARGETS}[target]
    for model, X in (case(name), edges(name)):
        exported.assert_same(answers(model, X), exported.expected(model, X))
