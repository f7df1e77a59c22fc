"""Pictures of models whose regions have votes of their own, also of those that classes share."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import bars, drawn, title
from made_up_models import region_model, rows
from matplotlib.collections import QuadMesh

from gpustump import StumpEnsemble, plots

KINDS = {
    "two classes": {"n_classes": 2},
    "against the rest": {"n_classes": 3},
    "shared": {"n_classes": 3, "shared": True, "link": "softmax"},
}


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest) -> StumpEnsemble:
    return region_model(np.random.default_rng(4), 20, 2, **KINDS[request.param])


def test_areas_are_the_models_predictions(model):
    ax = plots.decision_regions(model)
    (mesh,) = [found for found in ax.collections if isinstance(found, QuadMesh)]
    corners = mesh.get_coordinates()
    ends0, ends1 = corners[0, 1:, 0], corners[1:, 0, 1]
    response = np.asarray(mesh.get_array()).reshape(len(ends1), len(ends0))
    X = np.asarray([[x0, x1] for x1 in ends1 for x0 in ends0])
    assert model.predict(X).tolist() == response.ravel().tolist()


def test_a_shape_is_that_of_its_class(model):
    label = model.classes[-1]
    steps = drawn(plots.shape_function(model, 1, label=label), "steps")
    edges = np.unique(steps[:, 0])
    middles = (edges[1:] + edges[:-1]) / 2
    heights = [steps[np.searchsorted(steps[:, 0], x), 1] for x in middles]
    assert heights == model.shape_function(1, label=label).look_up(middles).tolist()


def test_the_bars_of_a_waterfall_are_the_contributions_to_the_predicted_class(model):
    row = rows(np.random.default_rng(5), 1, 2, "float64")
    ax = plots.waterfall(model, row)
    number = 0 if model.is_binary else model.classes.index(model.predict(row)[0])
    parts = model.explain(row).reshape(model.n_outputs, 3)[number]
    widths = [bar.get_width() for bar in bars(ax, "contribution")]
    assert sum(widths) == pytest.approx(float(parts.sum()), abs=1e-12)
    assert set(np.abs(parts[parts != 0])) <= set(np.abs(widths))
    share = model.predict_proba(row).max()
    text = f"{share:.3f}" if share < 0.9995 else "> 0.999"
    assert f"probability {text}" in title(ax).replace("\n", " ")


def test_panels_and_importances_are_drawn_for_every_kind_of_model(model):
    X = rows(np.random.default_rng(6), 50, 2, "float64")
    assert len(np.ravel(plots.shape_functions(model, X=X))) == 2
    ax = plots.importances(model, X=X)
    assert len(ax.get_yticklabels()) == 2
