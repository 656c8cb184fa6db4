"""Means of a model in all cells at once equal those of designs in which each cell is the row's cell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVR

import limes
from internals import ExactSource, Profile

rng = np.random.default_rng(0)
X = np.column_stack([rng.normal(size=(300, 3)), rng.integers(0, 4, 300)])
Y = X[:, 0] * X[:, 1] + X[:, 2] + (X[:, 3] == 2)
MODELS = [Ridge(), RandomForestRegressor(5, max_depth=4, random_state=0), SVR(), LogisticRegression()]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("options", [{}, {"bandwidth": 0.3}, {"weights": "euclidean"}, {"hold": [1]}])
def test_all_cells_at_once_are_each_cell_as_the_rows_own(model, options):
    model.fit(X, Y > 0 if isinstance(model, LogisticRegression) else Y)
    explainer = limes.TabularExplainer(model, X, categorical=[3], **options)
    explanation = explainer(X[:3])
    context = explainer._diagnostic_context(explanation, output=np.zeros(3, dtype=np.int64), calls=None)
    alone = replace(context, source=ExactSource(explainer._model_at(X[:1])[0].bound.expectation))
    binned = np.flatnonzero(context.binned)
    places = [(j, b) for j in binned for b in range(context.family.marginals[j].cells.count)]
    assert len(places) > 8
    for i in range(3):
        ours, each = (c.source.profile(c, i, places) for c in (context, alone))
        assert not ours.error.any()
        np.testing.assert_allclose(ours.value, each.value, rtol=1e-9, atol=1e-12)


def test_findings_of_a_wide_table_take_a_time_that_is_linear_in_its_columns(monkeypatch):
    """A finding looks at its own profile, and at all together once."""

    wide = np.random.default_rng(1).normal(size=(60, 120))
    explanation = limes.TabularExplainer(Ridge().fit(wide, wide[:, 0]), wide)(wide[:1])
    looked, hidden = [], Profile.hidden
    monkeypatch.setattr(Profile, "hidden", property(lambda its: looked.append(1) or hidden.fget(its)))
    assert limes.diagnose(explanation).rows[0].findings is not None
    assert len(looked) < 10 * 120
