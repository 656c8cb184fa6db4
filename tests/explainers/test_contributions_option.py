"""The option ``contributions=``: when contributions are computed, and what remains after a failure."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes
from internals import requested
from limes.exceptions import InputError, Interrupted

X, Y = load_diabetes(return_X_y=True)
X = X[:, [2, 8, 3]] / X[:, [2, 8, 3]].std(axis=0)
FOREST = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, Y)
OPTIONS = {"max_calls": 1024, "tolerance": "10%"}


class Model:
    """A function of three columns that counts its rows, and may fail or be stopped later."""

    def __init__(self):
        self.calls, self.end = 0, None

    def __call__(self, x):
        if self.end is not None and self.calls > self.end[0]:
            raise self.end[1]
        self.calls += len(x)
        return np.prod(1.0 + 0.5 * np.tanh(x), axis=1)


def explained(model, rows=3, **options):
    return limes.TabularExplainer(model, X, **{**OPTIONS, **options})(X[:rows], progress=False)


def test_sampled_ones_of_few_rows_are_computed_in_the_call():
    model = Model()
    explanation = explained(model)
    before = model.calls
    account = explanation.contributions
    assert model.calls == before
    assert (account.calls > 0).all()
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, rtol=1e-12)


def test_others_are_computed_when_they_are_read():
    model = Model()
    explanation = explained(model, 21, contributions=False, max_calls=None)
    assert requested(explanation, "contributions") is None
    before = model.calls
    account = explanation[:2].contributions
    # a few rows are asked again: the model may have been fitted again meanwhile
    assert model.calls - before == account.calls.sum() > 0
    # the same as in the call
    np.testing.assert_array_equal(account.values, explained(Model(), 2, max_calls=None).contributions.values)


def test_contributions_true_computes_all_rows_in_the_call():
    model = Model()
    explanation = explained(model, 21, contributions=True)
    before = model.calls
    assert explanation.contributions.values.shape == (21, 3)
    assert model.calls == before
    assert requested(explained(FOREST, contributions=True), "contributions") is not None


def test_exact_contributions_are_computed_when_they_are_read():
    assert requested(explained(FOREST), "contributions") is None


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_give_the_same_contributions(workers):
    explainer = limes.TabularExplainer(Model(), X, **OPTIONS)
    account = explainer(X[:3], workers=workers, progress=False).contributions
    np.testing.assert_array_equal(account.values, explained(Model()).contributions.values)


def test_a_failure_leaves_the_coefficients_with_a_warning():
    model = Model()
    expected = explained(model)
    model.end = model.calls - expected.contributions.calls.sum(), RuntimeError("down")
    model.calls = 0
    explanation = explained(model)
    np.testing.assert_array_equal(explanation.coefficients.values, expected.coefficients.values)
    assert all("no contributions" in row[-1] and "down" in row[-1] for row in explanation.row_warnings)
    assert "surrogate" in str(explanation)
    with pytest.raises(limes.exceptions.ModelError, match="down"):
        _ = explanation.contributions
    model.end = None
    np.testing.assert_array_equal(explanation.contributions.values, explained(Model()).contributions.values)


def test_a_stop_has_the_coefficients_in_its_partial():
    model = Model()
    expected = explained(model)
    before = model.calls - expected.contributions.calls.sum()
    model.end, model.calls = (before + 200, KeyboardInterrupt()), 0
    with pytest.raises(Interrupted, match="contributions") as stop:
        explained(model)
    partial = stop.value.partial
    np.testing.assert_array_equal(partial.coefficients.values, expected.coefficients.values)
    model.end = None
    np.testing.assert_array_equal(partial.contributions.values, explained(Model()).contributions.values)


@pytest.mark.parametrize("law", ["truncnorm", "joint"])
def test_few_calls_have_contributions_unless_they_are_off(law):
    """There were none, and pictures showed LIME's coefficients in their place."""
    wide = np.random.default_rng(0).normal(size=(60, 40))
    for option in ("auto", True, False):
        options = {"max_calls": 200, "contributions": option, "law": law}
        (one,) = limes.TabularExplainer(Model(), wide, **options)(wide[:1], progress=False)
        assert not any("there are no contributions" in text for text in one.warnings)
        warned = [
            text
            for text in one.warnings
            if ("contributions" in text and "is known" in text) or "are known" in text
        ]
        assert len(warned) == (option is not False)
        assert all("pass a larger max_calls" in text for text in warned)


@pytest.mark.parametrize("option", ["no", None, 1, 0.0])
def test_another_option_is_refused(option):
    with pytest.raises(InputError, match="contributions"):
        limes.TabularExplainer(FOREST, X, contributions=option)


@pytest.mark.parametrize("kind", ["Text", "Image", "Series", "Composite"])
def test_all_explainers_take_it(kind):
    from inspect import signature

    assert signature(getattr(limes, f"{kind}Explainer")).parameters["contributions"].default == "auto"


# -- stored ------------------------------------------------------------------------------------------------

NAMES = ("values", "base_values", "standard_errors", "alone", "last", "calls")


@pytest.mark.parametrize("model", [FOREST, Model(), lambda x: np.c_[Model()(x), x[:, 0] ** 2]])
@pytest.mark.parametrize("way", ["json", "pickle"])
def test_they_come_back(model, way):
    explanation = explained(model)
    if way == "json":
        again = limes.Explanation.from_json(explanation.to_json())
    else:
        again = pickle.loads(pickle.dumps(explanation))
    for part in (slice(None), (1, [2, 0]), (slice(0), slice(None))):
        one, other = explanation[part].contributions, again[part].contributions
        for name in NAMES:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert str(again).splitlines()[0] == str(explanation).splitlines()[0]


def test_contributions_that_would_cost_calls_are_not_stored():
    again = limes.Explanation.from_json(explained(Model(), contributions=False).to_json())
    with pytest.raises(InputError, match="explain the rows again"):
        _ = again.contributions


def test_an_empty_explanation_comes_back():
    again = limes.Explanation.from_json(explained(FOREST)[:0].to_json())
    assert len(again) == 0


def test_arrays_of_other_shapes_are_refused():
    explanation = explained(FOREST, contributions=True)
    text = explanation.to_json().replace(
        '"calls":[0,0,0],"row_converged":[true', '"calls":[0,0],"row_converged":[true'
    )
    with pytest.raises(InputError, match="calls has shape"):
        limes.Explanation.from_json(text)
    text = explanation.to_json().replace('"alone":[[', '"alone":[["a",')
    with pytest.raises(InputError, match="account"):
        limes.Explanation.from_json(text)


# -- shown -------------------------------------------------------------------------------------------------


def test_nothing_is_shown_unasked_if_declined():
    for model in (FOREST, Model()):
        explanation = explained(model, contributions=False, max_calls=None)
        assert "is usual" not in str(explanation)
        assert "is usual" not in explanation.to_html()
        assert np.isfinite(explanation.contributions.values).all()
        # what is read changes nothing that is shown
        assert "is usual" not in str(explanation)


def test_estimates_are_shown_with_their_errors_and_their_cost():
    explanation = explained(Model(), 1)
    text, page = str(explanation), explanation.to_html()
    calls = f"{explanation.model_calls:,} model calls"
    assert "±" in text
    assert calls in " ".join(text.split())
    assert calls in page
    assert 'class="e"' in page
    assert explanation.plot.waterfall().containers


@pytest.mark.parametrize("model", [FOREST, Model()])
def test_written_numbers_add_up(model):
    for row in explained(model):
        lines = str(row).splitlines()
        prediction, base = (
            float(lines[0].split(at)[1].split()[0].rstrip(";")) for at in ("prediction ", "; ")
        )
        parts = [float(line.split()[3]) for line in lines if " = " in line and line.strip()[0] == "x"]
        assert len(parts) == 3
        assert base + sum(parts) == pytest.approx(prediction, abs=1e-9)
