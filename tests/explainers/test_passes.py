"""A request's readings are computed once: passes of compiled loops and calls of the model, for any rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes
from internals import Interventional, _kernels

X, Y = load_diabetes(return_X_y=True)
X = X[:, [2, 8, 3, 0]]
MODEL = RandomForestRegressor(6, max_depth=4, random_state=0).fit(X, Y)
# Compiled loops over trees, and what each computes
COEFFICIENTS = ("explain_row", "explain_block", "explain_law")
PASSES = {
    **dict.fromkeys(COEFFICIENTS, "coefficients"),
    "effects_block": "effects",
    **dict.fromkeys(("add_contributions", "add_single_rows"), "contributions"),
}
LAWS = {
    "default": {},
    "smooth": {"weights": "euclidean"},
    "joint": {"law": "joint", "bandwidth": np.inf},
    "joint, near": {"law": "joint"},
}
SIZES = (1, 2, 20, 21, 150)


@pytest.fixture
def passes(monkeypatch):
    """Rows that each kind of pass was given, counted at the compiled loops."""
    rows = Counter()

    def counted(name, kind):
        original = getattr(_kernels, name)

        def count(*arguments):
            rows[kind] += sizes[name](arguments)
            return original(*arguments)

        return count

    # explained rows of one call
    sizes = {
        "explain_row": lambda arguments: 1,
        "explain_law": lambda arguments: 1,
        "explain_block": lambda arguments: len(arguments[2]),
        "effects_block": lambda arguments: len(arguments[3]),
        "add_contributions": lambda arguments: len(arguments[3]),
        "add_single_rows": lambda arguments: len(arguments[3]),
    }
    for name, kind in PASSES.items():
        monkeypatch.setattr(_kernels, name, counted(name, kind))
    at = Interventional.at

    def counting(self, x, cells):
        rows["contributions"] += len(x)
        return at(self, x, cells)

    monkeypatch.setattr(Interventional, "at", counting)
    return rows


def patterns(explainer, n):
    """Distinct patterns of cells: rows that share one have the same coefficients."""
    return {tuple(row) for row in explainer._model.family.cells(X[10 : 10 + n])}


def explainer_of(law):
    explainer = limes.TabularExplainer(MODEL, X, **LAWS[law])
    explainer(X[:2]).contributions  # noqa: B018 - tables that rows share are made
    return explainer


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("law", [*LAWS])
def test_contributions_alone_take_one_pass_and_nothing_else(law, n, passes):
    explainer = explainer_of(law)
    runs = len(explainer._model.bound.expectation.passes) if law in ("default", "smooth") else 1
    passes.clear()
    explanation = explainer.contributions(X[10 : 10 + n])
    assert passes == {"contributions": n * runs}
    # reading them again, and what is made of them, takes none
    assert len(explanation.contributions) == n
    explanation.reasons(row=0)
    explanation.to_frame()
    explanation.to_json()
    assert passes == {"contributions": n * runs}


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("law", [*LAWS])
def test_both_readings_take_one_pass_each(law, n, passes):
    explainer = explainer_of(law)
    runs = len(explainer._model.bound.expectation.passes) if law in ("default", "smooth") else 1
    passes.clear()
    explanation = explainer(X[10 : 10 + n])
    explanation.contributions  # noqa: B018 - computed now, at the latest
    explanation.contributions  # noqa: B018
    expected = {"contributions": n * runs}
    if law in ("default", "smooth"):
        expected["coefficients"] = len(patterns(explainer, n)) if law == "default" else n
    assert passes == expected


@pytest.mark.parametrize("n", SIZES)
def test_coefficients_alone_take_no_pass_of_contributions(n, passes):
    explainer = limes.TabularExplainer(MODEL, X, contributions=False)
    explainer(X[:2])
    passes.clear()
    explanation = explainer(X[10 : 10 + n])
    explanation.coefficients.values  # noqa: B018
    expected = {"coefficients": len(patterns(explainer, n))}
    assert passes == expected
    explanation.fidelity  # noqa: B018
    assert passes == expected


@pytest.mark.parametrize("n", SIZES)
def test_a_function_is_asked_once_about_each_row_and_no_more_than_it_may_be(n):
    calls = Counter()

    def model(rows):
        calls.update(map(bytes, np.ascontiguousarray(rows)))
        return rows[:, 0] * rows[:, 1]

    explainer = limes.TabularExplainer(model, X[:, :2], max_calls=64, rng=0)
    rows = X[10 : 10 + min(n, 21), :2]
    explainer.contributions(rows[:1], progress=False)
    calls.clear()
    explanation = explainer.contributions(rows, progress=False)
    counted = int(explanation.contributions.calls.sum())
    assert calls.total() <= 64 * len(rows)
    # the predictions, what is counted, and the few inputs that show a new fit
    assert counted <= calls.total() <= counted + len(rows) + 16
