"""Fits of rows: the right expectation for each form, shared designs, a surrogate for each row."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import limes
import oracle
import strategies
from effort import repeats
from internals import (
    CONTROLS,
    Rows,
    SampledExpectation,
    Sampling,
    binned,
    exact_expectation,
    fit_rows,
    named_weights,
    unbinned,
)
from limes.designs import ProductFamily
from limes.models import forms
from limes.surrogates import least_squares, ridge
from oracle import EXACT

RNG = np.random.default_rng(0)
BACKGROUND = RNG.normal(size=(80, 3))
ROWS = RNG.normal(size=(repeats(40, 16), 3))
SAMPLING = Sampling(512, None, 7, {"additive": CONTROLS["additive"]})
FORM = strategies.random_boxes(np.random.default_rng(1), [np.linspace(-1, 1, 5)] * 3, 6)
FOREST = strategies.as_forest(
    [strategies.random_tree(np.random.default_rng(s), [np.linspace(-1, 1, 5)] * 3, 5) for s in range(3)], 3
)


def family(kind="bins", bandwidth=1.2):
    if kind == "slopes":
        marginals = tuple(unbinned(x) for x in BACKGROUND.T)
        return ProductFamily(marginals, named_weights("euclidean", bandwidth), slopes=np.ones(3, dtype=bool))
    edges = [np.percentile(x, [0, 25, 50, 75, 100]) for x in BACKGROUND.T]
    marginals = tuple(binned(x, e) for x, e in zip(BACKGROUND.T, edges, strict=True))
    return ProductFamily(marginals, named_weights(kind, bandwidth))


def explained(rows, form=FORM, kind="bins", method="auto", penalty=None, designs=None):
    sampled = method == "sampled" or isinstance(form, forms.BlackBox)
    expectation = SampledExpectation(form.predict, SAMPLING) if sampled else exact_expectation(form)
    chosen = designs or family(kind)
    return fit_rows(
        expectation,
        Rows(chosen, rows, chosen.cells(rows)),
        form.predict(rows),
        penalty=penalty,
        progress=lambda total, unit="rows": nullcontext(lambda count: None),
    )


@pytest.mark.parametrize("kind", ["bins", "euclidean", "slopes"])
@pytest.mark.parametrize(
    "form", [FORM, FOREST, forms.Linear([1.0, -2.0, 0.5], 3.0)], ids=["boxes", "forest", "linear"]
)
def test_every_row_gets_the_limit_of_its_own_design(form, kind):
    designs = family(kind)
    result = explained(ROWS, form, kind, designs=designs)
    for i, row in enumerate(ROWS):
        design = designs.at(row)
        truth = limes.limit(design, form)
        size = float(np.abs(form.predict(BACKGROUND)).max())
        assert oracle.error(result.surrogate.coef[i], truth.coef, size) < EXACT
        assert oracle.error(result.surrogate.intercept[i], truth.intercept, size) < EXACT
        at = truth.intercept + design.at_instance @ truth.coef
        assert oracle.error(result.at_instance[i], at, size) < EXACT
    assert not result.surrogate.standard_errors.any()
    assert not np.any(result.moments.calls)
    assert np.all(result.converged)


@pytest.mark.parametrize("kind", ["bins", "euclidean", "slopes"])
@pytest.mark.parametrize("method", ["exact", "sampled"])
def test_order_and_batching_change_nothing(kind, method):
    rows, designs = np.concatenate([ROWS[:6], ROWS[:2]]), family(kind)
    whole = explained(rows, kind=kind, method=method, designs=designs)
    backwards = explained(rows[::-1].copy(), kind=kind, method=method, designs=designs)
    single = [explained(row[None], kind=kind, method=method, designs=designs) for row in rows]
    assert np.allclose(whole.surrogate.coef, backwards.surrogate.coef[::-1], rtol=oracle.ROUNDING)
    assert np.allclose(
        whole.surrogate.coef,
        np.concatenate([s.surrogate.coef for s in single]),
        rtol=oracle.ROUNDING,
        atol=1e-14,
    )
    assert np.allclose(whole.surrogate.coef[:2], whole.surrogate.coef[-2:], rtol=oracle.ROUNDING)
    if method == "sampled":
        assert np.array_equal(whole.surrogate.coef, backwards.surrogate.coef[::-1])
        assert np.array_equal(whole.surrogate.standard_errors, backwards.surrogate.standard_errors[::-1])


def test_rows_of_the_same_cells_share_an_exact_explanation_but_not_a_sampled_one():
    designs = family()
    row = ROWS[0]
    near = row + 1e-9
    assert np.array_equal(designs.cells(row[None]), designs.cells(near[None]))
    rows = np.stack([row, near])
    exact, sampled = (explained(rows, method=m) for m in ("exact", "sampled"))
    assert np.array_equal(exact.surrogate.coef[0], exact.surrogate.coef[1])
    assert not np.array_equal(sampled.surrogate.coef[0], sampled.surrogate.coef[1])


@pytest.mark.parametrize("outputs", [(), (1,), (2,)])
@pytest.mark.parametrize("method", ["exact", "sampled"])
@pytest.mark.parametrize("penalty", [None, np.ones(3)])
@pytest.mark.parametrize("kind", ["bins", "euclidean"])
def test_shapes(outputs, method, penalty, kind):
    form = forms.Boxes(FORM.lower, FORM.upper, np.resize(FORM.value, (6, *outputs)))
    result = explained(ROWS[:4], form, kind, method, penalty)
    assert result.surrogate.coef.shape == result.surrogate.standard_errors.shape == (4, 3, *outputs)
    for array in (result.surrogate.intercept, result.at_instance, result.surrogate.fidelity):
        assert array.shape == (4, *outputs)
    assert np.shape(result.moments.calls) == np.shape(result.converged) == (4,)


@pytest.mark.parametrize("kind", ["bins", "euclidean", "slopes"])
def test_a_penalty_gives_the_ridge_of_each_row_with_its_own_prediction(kind):
    """Rows that share their moments do not share f(ξ)."""
    designs = family(kind)
    result = explained(ROWS, kind=kind, penalty=np.full(3, 20.0), designs=designs)
    expectation = exact_expectation(FORM)
    for i, row in enumerate(ROWS):
        design = designs.at(row)
        one = ridge(design, expectation.moments(design, row), FORM.predict(row[None])[0], penalty=20.0)
        assert oracle.error(result.surrogate.coef[i], one.coef, 1.0) < EXACT
        assert oracle.error(result.surrogate.intercept[i], one.intercept, 1.0) < EXACT


def test_sampling_calls_the_model_and_not_its_form():
    expectation = SampledExpectation(lambda x: np.full(len(x), 3.0), SAMPLING)
    result = expectation.moments(family().at(ROWS[0]), ROWS[0])
    assert result.mean == pytest.approx(3.0)


def test_sampled_rows_have_the_samplers_moments():
    result = explained(ROWS[:2], method="sampled")
    for i in range(2):
        design = family().at(ROWS[i])
        one = least_squares(design, SampledExpectation(FORM.predict, SAMPLING).moments(design, ROWS[i]))
        assert np.allclose(result.surrogate.coef[i], one.coef, rtol=oracle.ROUNDING)
        assert np.allclose(result.surrogate.fidelity[i], one.fidelity, rtol=oracle.ROUNDING)
        assert result.moments.calls[i] == 512
