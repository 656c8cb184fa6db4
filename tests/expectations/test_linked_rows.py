"""Links at many rows under smooth weights equal those of each row alone, which `test_linked.py` tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import limes
from effort import crossed, repeats
from internals import (
    Filled,
    Identity,
    LinkedExpectation,
    Lookup,
    Rows,
    Shape,
    SmoothFunctions,
    Step,
    explain_rows,
    link_variance,
    linked,
)
from limes.exceptions import InputError, ModelError
from limes.models import forms
from oracle import EXACT

OPTIONS = [
    {"weights": "euclidean"},
    {"weights": "euclidean", "bandwidth": 0.05},
    {"weights": "euclidean", "law": "uniform"},
    {"weights": "euclidean", "law": "empirical"},
    {"bins": None},
    {"bins": None, "bandwidth": 0.1},
    {"bins": None, "law": "empirical"},
]
# A variance may be this share of the mean square that it is the rest of
CANCELS = 2e-4
LEVELS = Lookup(np.array([0.0, 1.0, 2.0]), np.array([[0.5, -1.0, 2.0]]), np.zeros(1), np.zeros(1))
STEPS = Step(np.array([-0.5, 0.3]), np.array([[1.0, -2.0, 0.7]]), np.array([0.6]))
FILLED = Filled(Shape(np.tanh), np.array([2.0]), np.array([-1.0]))


def family_and_rows(options):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "line": rng.normal(size=80),
            "curve": rng.exponential(size=80),
            "steps": rng.normal(size=80),
            "tied": np.repeat([0.0, 1.0, 2.0, 3.0], 20),
            "constant": np.ones(80),
            "unused": rng.normal(size=80),
            "level": rng.choice(["a", "b", "c"], size=80),
            "holes": np.where(rng.random(80) < 0.3, np.nan, rng.normal(size=80)),
            "steps with holes": np.where(rng.random(80) < 0.3, np.nan, rng.normal(size=80)),
        }
    )
    explainer = limes.TabularExplainer(lambda X: np.zeros(len(X)), table, **options)
    rows = table.sample(7, random_state=1).reset_index(drop=True)
    rows.loc[0, "line"], rows.loc[1, "curve"] = 9.0, -6.0  # far out, so that their ranges differ
    rows.loc[2:3, ["holes", "steps with holes"]] = [[np.nan, 0.1], [0.4, np.nan]]
    model, matrix = explainer._model_at(rows)
    return model.family, matrix


def additive(link, shift=0.0):
    """Lines, curves, steps, levels and a column without effect."""
    functions = (Identity(), Shape(np.arctan), STEPS, Identity(), Identity(), None, LEVELS, FILLED, STEPS)
    return LinkedExpectation(forms.Linked(forms.Additive(functions, intercept=shift), link))


def lines(size=1.0):
    """Two margins."""
    coef = size * np.array([[1, 2, 0, 1, 1, 0, 1, 0, 0], [2, 0, 1, -1, 0.5, 0, 0.3, 0, 0]]).T
    return LinkedExpectation(forms.Linked(forms.Linear(coef, [0.0, -2.0]), "logistic"))


def at(exact, family, rows):
    assert exact.functions is not None
    _, moments = explain_rows(exact, Rows(family, rows, family.cells(rows)))
    return moments


@pytest.mark.parametrize(
    ("exact", "options"),
    crossed([*map(additive, ("logistic", "probit", "cloglog", "exp")), lines()], OPTIONS),
    ids=lambda part: part._form.link if isinstance(part, LinkedExpectation) else None,
)
def test_rows_have_the_moments_of_each(exact, options):
    family, rows = family_and_rows(options)
    moments = at(exact, family, rows)
    for i, row in enumerate(rows):
        design = family.at(row).in_units()
        alone = exact.moments(design, row)
        size = np.maximum(np.abs(alone.mean), np.abs(alone.gamma / design.variance.max()).max(axis=0))
        assert np.allclose(moments.mean[i], alone.mean, rtol=EXACT, atol=0)
        assert np.allclose(moments.gamma[i], alone.gamma, rtol=EXACT, atol=EXACT * size)


@pytest.mark.parametrize("options", OPTIONS[::2])
def test_a_row_has_the_same_bits_in_every_batch(options):
    family, rows = family_and_rows(options)
    exact = additive("logistic")
    whole = at(exact, family, rows)
    for i in range(len(rows)):
        alone = at(exact, family, rows[i : i + 1])
        assert np.array_equal(alone.mean[0], whole.mean[i])
        assert np.array_equal(alone.gamma[0], whole.gamma[i])


@pytest.mark.parametrize("shift", [-40.0, 40.0])
def test_tiny_probabilities_keep_their_digits(shift):
    family, rows = family_and_rows({"weights": "euclidean"})
    exact = additive("logistic", shift)
    moments = at(exact, family, rows)
    for i, row in enumerate(rows):
        alone = exact.moments(family.at(row).in_units(), row)
        assert np.allclose(moments.mean[i], alone.mean, rtol=EXACT, atol=0)
        assert np.allclose(moments.gamma[i], alone.gamma, rtol=EXACT, atol=EXACT * np.abs(alone.gamma).max())


@pytest.mark.parametrize("options", OPTIONS[::2])
def test_variances_of_rows_are_those_of_each(options):
    family, rows = family_and_rows(options)
    variance = link_variance(additive("logistic")._form, np.ones(1))
    whole = variance.at_rows(family, rows, family.cells(rows))
    for i, row in enumerate(rows[: repeats(len(rows), 3)]):
        own_cells = family.cells(rows[i : i + 1])
        assert np.array_equal(variance.at_rows(family, rows[i : i + 1], own_cells)[0], whole[i])
        assert np.allclose(variance.variance(family.at(row)), whole[i], rtol=EXACT / CANCELS, atol=0)


def test_a_row_without_digits_leaves_the_others_theirs():
    family, rows = family_and_rows({"bins": None, "bandwidth": 0.1})
    variance = link_variance(forms.Linked(forms.Linear([40.0, *[0.0] * 8]), "logistic"), np.ones(1))
    far = rows[1:2].copy()
    far[0, 0] = 4e3
    several = np.concatenate([rows[1:], far, rows[1:]])
    whole = variance.at_rows(family, several, family.cells(several))
    assert np.isnan(whole[len(rows) - 1]).all()
    alone = variance.at_rows(family, rows[1:], family.cells(rows[1:]))
    assert np.isfinite(alone).any()
    assert np.array_equal(whole[: len(rows) - 1], alone, equal_nan=True)
    assert np.array_equal(whole[len(rows) :], alone, equal_nan=True)


def test_a_curve_that_is_not_finite_is_refused():
    family, rows = family_and_rows({"weights": "euclidean", "law": "empirical"})
    form = forms.Linked(
        forms.Additive([SmoothFunctions(lambda x: 1.0 / (x[None] - x)), *[None] * 8]), "logistic"
    )
    with pytest.raises(ModelError, match="no finite value"):
        at(LinkedExpectation(form), family, rows)


def test_a_margin_that_ranges_too_far_is_refused():
    family, rows = family_and_rows({"bins": None})
    with pytest.raises(InputError, match="too far"):
        at(lines(100.0), family, rows)


def test_smooth_weights_over_training_values_by_enumeration():
    """The law is all pairs of training values, a missing value being one unit away from a number."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 2)) * [1.0, 1e3]
    x[:6, 1] = np.nan
    options = {"weights": "euclidean", "law": "empirical", "bandwidth": 0.8}
    family = limes.TabularExplainer(lambda rows: rows[:, 0], x, **options)._model_at(x)[0].family
    curve = Filled(Identity(), np.array([1e-3]), np.array([0.7]))
    form = forms.Linked(forms.Additive([Identity(), curve], intercept=-0.4), "logistic")
    rows = np.array([x[0], x[10], x[20], [5.0, x[11, 1]]])
    moments = at(LinkedExpectation(form), family, rows)
    pairs = np.array([(a, b) for a in x[:, 0] for b in x[:, 1]])
    missing = np.isnan(pairs)
    f = 1.0 / (1.0 + np.exp(0.4 - pairs[:, 0] - np.where(missing[:, 1], 0.7, 1e-3 * pairs[:, 1])))
    for i, row in enumerate(rows):
        away = np.where(missing, 0.0, (pairs - row) / np.nanstd(x, axis=0))
        squares = np.where(missing == np.isnan(row), np.nan_to_num(away) ** 2, 1.0).sum(axis=1)
        weight = np.exp(-0.5 * squares / options["bandwidth"] ** 2)
        inside = family.cells(pairs) == family.cells(row[None])
        root = np.sqrt(weight)[:, None]
        features = np.column_stack([np.ones(len(pairs)), inside])
        _, *coef = np.linalg.lstsq(features * root, f * root[:, 0], rcond=None)[0]
        assert np.isclose(moments.mean[i], np.average(f, weights=weight), rtol=EXACT)
        assert np.allclose(moments.gamma[i] / family.at(row).variance, coef, rtol=EXACT, atol=EXACT)


def test_slopes_by_hermite_quadrature():
    """One column under a normal law times a normal weight, which is a normal law."""
    x, bandwidth = np.random.default_rng(4).normal(3.0, 2.0, size=(50, 1)), 0.7
    explainer = limes.TabularExplainer(lambda rows: rows[:, 0], x, bins=None, bandwidth=bandwidth)
    exact = LinkedExpectation(forms.Linked(forms.Linear([1.7], -4.0), "logistic"))
    rows = np.array([[2.0], [9.0]])
    family = explainer._model_at(rows)[0].family
    moments = at(exact, family, rows)
    node, weight = np.polynomial.hermite_e.hermegauss(180)
    weight /= weight.sum()
    for i, row in enumerate(rows):
        variance = 1.0 / (x.std() ** -2.0 + (bandwidth * x.std()) ** -2.0)
        mean = variance * (x.mean() / x.std() ** 2 + row[0] / (bandwidth * x.std()) ** 2)
        f = expit(1.7 * (mean + np.sqrt(variance) * node) - 4.0)
        inner = family.at(row).in_units()
        slope = weight @ (node * f) / np.sqrt(variance)
        assert np.isclose(moments.mean[i], weight @ f, rtol=EXACT)
        assert np.isclose(moments.gamma[i, 0] / inner.variance[0] / inner.units[0], slope, rtol=EXACT)


def test_a_row_that_a_shared_contour_is_too_rough_for_has_the_best_one(monkeypatch):
    """Probabilities from 1e-11 to 1: the first contour serves some rows, and the others are not refused."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 5))
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    model.coef_, model.intercept_ = np.array([[6.0, -4.0, 2.0, 1.0, 0.5]]), np.array([-6.0])
    explainer = limes.TabularExplainer(model, X, output=1, method="exact")
    one_by_one = explainer.contributions(X).contributions.values
    monkeypatch.setattr(linked, "_AS_GOOD", 60.0)
    others = limes.TabularExplainer(model, X, output=1, method="exact")
    np.testing.assert_allclose(
        others.contributions(X).contributions.values, one_by_one, rtol=1e-9, atol=1e-18
    )
