"""One pool of answers for every row: right, with honest errors, and without repeated calls."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from tests import oracle

import limes
from effort import repeats
from internals import (
    CHECK_CALLS,
    CONTROLS,
    SEQUENCES,
    SMALLEST,
    WITNESSES,
    ExplainedRows,
    Pool,
    PooledExpectation,
    ProductFamily,
    Sampling,
    Tolerance,
    binned,
    categorical,
    least_squares,
    named_weights,
    pool_sizes,
    pooled_module,
    requested,
)
from limes.exceptions import ModelError
from limes.models import forms

# Intervals of 95 %, less what 200 seeds leave open
COVERED = 0.93
D = 5


def background(d=D, n=400):
    return np.random.default_rng(0).normal(size=(n, d)) ** 3


def family(bandwidth, d=D):
    columns = background(d).T
    edges = [np.quantile(x, [0, 0.25, 0.5, 0.75, 1]) for x in columns]
    laws = tuple(binned(x, e) for x, e in zip(columns, edges, strict=True))
    return ProductFamily(laws, named_weights("bins", bandwidth))


def boxes(d=D):
    """Jumps and interactions, whose limits are exact."""
    rng = np.random.default_rng(1)
    lower = np.where(rng.random((40, d)) < 0.5, -np.inf, rng.normal(size=(40, d)) ** 3)
    return forms.Boxes(lower, np.inf * np.ones((40, d)), rng.normal(size=40))


def pooled(predict, laws, size, *, seed=0, control="additive", tolerance=1e-12):
    sampling = Sampling(
        max_calls=size,
        max_shared=size,
        seed=seed,
        tolerance=None if tolerance is None else Tolerance(tolerance),
        controls={control: CONTROLS[control]},
    )
    return PooledExpectation(laws, predict, sampling)


def explain(expectation, laws, rows):
    designs = [laws.at(row) for row in rows]
    moments = [expectation.moments(design, row) for design, row in zip(designs, rows, strict=True)]
    return [least_squares(design, its) for design, its in zip(designs, moments, strict=True)], moments


# -- right ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bandwidth", "control"),
    repeats(
        [*product([0.25, 0.75, np.inf], ["none", "additive", "tree", "kernel"])],
        [(0.25, "additive"), (0.75, "none"), (0.75, "tree"), (0.75, "kernel"), (np.inf, "additive")],
    ),
)
def test_coefficients_converge_to_the_limit(bandwidth, control):
    laws, form = family(bandwidth * np.sqrt(D)), boxes()
    rows = background()[:3]
    fits, moments = explain(pooled(form.predict, laws, 1 << 14, control=control), laws, rows)
    for row, fit, its in zip(rows, fits, moments, strict=True):
        truth = limes.limit(laws.at(row), form)
        assert (np.abs(fit.coef - truth.coef) <= 5 * fit.standard_errors).all()
        assert abs(fit.intercept - truth.intercept) <= 5 * fit.standard_errors.max() * np.sqrt(D)
        assert fit.standard_errors.max() < 0.1 * np.abs(truth.coef).max()
        assert its.calls == 0
        assert its.shared == 1 << 14


def test_the_part_that_a_control_explains_has_no_error():
    laws, row = family(1.5), background()[7]
    form = forms.Linear(np.linspace(-1, 2, D), 3.0)
    (fit,), _ = explain(pooled(form.predict, laws, 4096), laws, [row])
    truth = limes.limit(laws.at(row), form)
    assert fit.coef == pytest.approx(truth.coef, abs=1e-3 * np.abs(truth.coef).max())
    # rarer events than one in some thousand are not excluded
    assert (fit.standard_errors < 2e-3 * np.abs(truth.coef).max()).all()


@pytest.mark.coverage
@pytest.mark.parametrize("bandwidth", [0.25, 0.75])
@pytest.mark.parametrize("control", ["none", "additive", "tree"])
@pytest.mark.parametrize("size", [1024, 4096])
def test_intervals_cover(bandwidth, control, size):
    cover(bandwidth, control, size, seeds=200)


@pytest.mark.parametrize("control", repeats(["none", "additive", "network"], ["additive"]))
@pytest.mark.parametrize("size", [96, 504])
def test_intervals_of_small_budgets_cover(control, size):
    cover(0.75, control, size, seeds=repeats(60, 30))


@pytest.mark.parametrize(("bandwidth", "control"), [(0.25, "additive"), (0.75, "none")])
def test_intervals_cover_in_short(bandwidth, control):
    cover(bandwidth, control, 1024, seeds=repeats(60, 30))


def cover(bandwidth, control, size, seeds):
    laws, form = family(bandwidth * np.sqrt(D)), boxes()
    rows = background()[:4]
    truth = np.array([limes.limit(laws.at(row), form).coef for row in rows])
    inside, squares, spread = [], [], []
    for seed in range(seeds):
        fits, _ = explain(pooled(form.predict, laws, size, seed=seed, control=control), laws, rows)
        coef, errors = np.array([f.coef for f in fits]), np.array([f.standard_errors for f in fits])
        inside.append(np.abs(coef - truth) <= 1.96 * errors)
        squares.append((coef - truth) ** 2)
        spread.append(errors**2)
    assert np.mean(inside) >= COVERED, np.mean(inside)
    # honest, and not by being vague: an error is infinite where too few rows of a small pool count
    finite = np.isfinite(spread)
    assert finite.mean() > 0.98
    assert np.array(spread)[finite].mean() <= 2.5 * np.array(squares)[finite].mean()


def test_fidelity_and_the_surrogate_at_the_row_have_errors_that_cover():
    laws, form, row = family(0.75 * np.sqrt(D)), boxes(), background()[2]
    design = laws.at(row)
    truth = limes.limit(design, form)
    x, _ = laws.draw(np.random.default_rng(0).random((1 << 18, D)))
    cells = laws.cells(x)
    w = laws.weights.ratio ** (cells != design.cells).sum(axis=1)
    f = form.predict(x)
    variance = np.average((f - np.average(f, weights=w)) ** 2, weights=w)
    fidelity = truth.coef @ design.gamma(truth.coef) / variance
    at_row = truth.intercept + truth.coef.sum()
    result = []
    for seed in range(repeats(60, 40)):
        (fit,), (its,) = explain(pooled(form.predict, laws, 2048, seed=seed), laws, [row])
        result.append(
            [
                abs(fit.fidelity - fidelity) <= 1.96 * its.sampled.fidelity_errors,
                abs(fit.intercept + fit.coef.sum() - at_row) <= 1.96 * its.sampled.surrogate_errors,
            ]
        )
    assert (np.mean(result, axis=0) >= 0.85).all()


def test_the_share_is_the_effective_size_of_the_pool():
    """n · share rows of w itself have the error of n rows of the pool: by the variance of pure noise."""
    laws = family(0.25 * np.sqrt(D))
    noise = np.random.default_rng(0)
    rows = background()[:2]

    def model(x):
        return noise.normal(size=len(x))

    errors = []
    for seed in range(40):
        fits, _ = explain(pooled(model, laws, 2048, seed=seed, control="none"), laws, rows)
        errors.append([f.coef for f in fits])
    designs = [laws.at(row) for row in rows]
    cells = np.stack([design.cells for design in designs])
    shares = pooled(model, laws, 2048).shares(ExplainedRows(laws, cells))
    for i, design in enumerate(designs):
        worst = (np.var(errors, axis=0)[i] * design.variance).max()
        assert 1 / (2048 * shares[i]) == pytest.approx(worst, rel=0.5)


# -- asked once ----------------------------------------------------------------------------------------------


class Counted:
    """A model that keeps the rows it was asked about, and fails at one call."""

    def __init__(self, answer, fails_at=None):
        self.answer, self.fails_at, self.batches = answer, fails_at, []

    def __call__(self, x):
        if len(self.batches) == self.fails_at:
            self.fails_at = None
            raise ModelError("the service did not answer")
        self.batches.append(x)
        return self.answer(x)

    @property
    def rows(self):
        return np.concatenate(self.batches)


def batches(batch_size=100, **options):
    return Sampling(4096, seed=3, batch_size=batch_size, **options)


def grown(size, *, laws=None, model=None, **options):
    pool = Pool(laws or family(1.0), model or boxes().predict, batches(**options))
    pool.grow(size, on_progress=lambda count: None)
    return pool


def test_a_small_pool_is_part_of_a_large_one():
    small, large = grown(2048).rows(2048), grown(8192).rows(8192)
    assert len(large.x) == 8192
    for a, b in ((small.x, large.x), (small.cells, large.cells), (small.answers, large.answers)):
        first = b.reshape(SEQUENCES, -1, *b.shape[1:])[:, : 2048 // SEQUENCES]
        assert np.array_equal(a, first.reshape(a.shape))
    again = grown(8192)
    assert np.array_equal(again.rows(2048).x, small.x)


def test_drawn_rows_follow_the_law_and_have_their_cells():
    laws = family(1.0)
    rows = grown(1 << 14, laws=laws).rows(1 << 14)
    assert rows.cells.dtype == np.uint8
    assert np.array_equal(rows.cells, laws.cells(rows.x))
    for j, law in enumerate(laws.marginals):
        counts = np.bincount(rows.cells[:, j]) / len(rows.x)
        assert counts == pytest.approx(np.exp(law.log_mass), abs=1e-3)
        means = [rows.x[rows.cells[:, j] == b, j].mean() for b in range(law.cells.count)]
        assert means == pytest.approx(law.means, rel=0.02, abs=0.02)


def test_many_cells_use_wider_codes():
    laws = ProductFamily(
        (categorical(np.arange(300.0)), binned(np.arange(10.0), np.array([0.0, 4.0, 9.0]))),
        named_weights("bins", 1.0),
    )
    rows = grown(1024, laws=laws, model=lambda x: x[:, 0]).rows(1024)
    assert rows.cells.dtype == np.uint32
    assert np.array_equal(rows.cells, laws.cells(rows.x))


def test_no_row_is_predicted_twice_after_a_failure():
    model = Counted(boxes().predict, fails_at=15)
    pool = Pool(family(1.0), model, batches())
    with pytest.raises(ModelError):
        pool.grow(4096, on_progress=lambda count: None)
    assert pool.missing(SMALLEST) == 0 < pool.missing(2 * SMALLEST)
    assert pool.calls == 1024 + 400
    seen = []
    pool.grow(4096, on_progress=seen.append)
    assert sum(seen) == 4096 - 1424
    assert len(model.rows) == len(np.unique(model.rows, axis=0)) == 4096
    assert np.array_equal(pool.rows(4096).answers, grown(4096).rows(4096).answers)


def test_equal_rows_are_one_question():
    laws = ProductFamily(
        tuple(categorical(np.random.default_rng(j).choice([0.0, 1.0, np.nan], 50)) for j in range(3)),
        named_weights("bins", 2.0),
    )
    model = Counted(lambda x: np.nan_to_num(x, nan=5.0) @ np.array([1.0, 3.0, 7.0]))
    pool = grown(4096, laws=laws, model=model)
    assert len(model.rows) == pool.calls == 27
    rows = pool.rows(4096)
    assert np.array_equal(rows.answers, model.answer(rows.x))


def test_a_pickled_pool_has_its_answers_and_grows_identically():
    model = boxes().predict
    pool = grown(2048, model=model)
    other = pickle.loads(pickle.dumps(pool))
    assert other.calls == 2048
    other.grow(4096, on_progress=lambda count: None)
    assert np.array_equal(other.rows(4096).answers, grown(4096, model=model).rows(4096).answers)


def test_threads_share_calls_and_workers_call_concurrently():
    model, barrier = Counted(boxes().predict), threading.Barrier(2, timeout=10)
    pool = Pool(family(1.0), model, batches())
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: pool.grow(2048, on_progress=lambda count: None), range(4)))
    assert len(model.rows) == 2048

    def waits(x):
        barrier.wait()
        return x[:, 0]

    Pool(family(1.0), waits, batches(512)).grow(1024, on_progress=lambda count: None, workers=2)


# -- one row -------------------------------------------------------------------------------------------------


def test_a_row_uses_the_smallest_accurate_pool_whatever_came_before():
    laws, form = family(0.75 * np.sqrt(D)), boxes()
    rows = background()[:6]
    whole = pooled(form.predict, laws, 1 << 14, tolerance=0.0183)
    explain(whole, laws, rows)
    backwards = pooled(form.predict, laws, 1 << 14, tolerance=0.0183)
    _, last = explain(backwards, laws, rows[::-1])
    _, first = explain(whole, laws, rows)
    for a, b in zip(first, last[::-1], strict=True):
        assert a.converged
        assert a.shared == b.shared
        assert np.array_equal(a.gamma, b.gamma)
        assert np.array_equal(a.coef_errors, b.coef_errors)
    assert len({int(its.shared) for its in first}) > 1
    for row, its in zip(rows, first, strict=True):
        if its.shared > SMALLEST:
            half = pooled(form.predict, laws, int(its.shared) // 2, tolerance=0.0183).moments(
                laws.at(row), row
            )
            assert not half.converged
        assert its.coef_errors.max() <= 0.0183


def test_sizes_are_powers_of_two_that_fit_all_coefficients_or_a_small_budget():
    assert pool_sizes(10, 5000) == [1024, 2048, 4096]
    assert pool_sizes(10, 1023) == [1016]
    assert pool_sizes(10, 63) == pool_sizes(500, 1000) == []
    assert pool_sizes(500, 2047) == [2040]
    assert pool_sizes(500, 4096) == [2048, 4096]


def test_rows_in_rare_cells_and_narrow_bandwidths_are_sampled_separately():
    x = background(4)
    rare = np.where(np.arange(400) < 1, 1.0, 0.0)
    model = Counted(lambda x: np.tanh(x[:, 0]) * x[:, 1])
    explainer = limes.TabularExplainer(
        model, np.column_stack([x, rare]), max_calls=1104, bandwidth=0.1, contributions=False
    )
    explanation = explainer(np.column_stack([x, rare])[:2])
    assert explanation.shared_calls.tolist() == [18, 18]  # checks alone
    assert explainer.pool_calls == 2 + CHECK_CALLS + WITNESSES
    assert explanation.model_calls == 2 * (1024 + 1)
    wide = limes.TabularExplainer(model, np.column_stack([x, rare]), max_calls=1104, contributions=False)
    explanation = wide(np.column_stack([x, rare])[:2])
    assert explanation.calls.tolist() == [1, 1]
    assert explanation.shared_calls.tolist() == [1042, 1042]
    assert wide.pool_calls == 1042


def test_a_column_that_hardly_changes_has_an_unknown_error():
    laws = ProductFamily(
        (categorical(np.repeat([0.0, 1.0], [999, 1])), *family(1.0).marginals), named_weights("bins", np.inf)
    )
    row = np.concatenate([[0.0], background()[0]])
    (fit,), _ = explain(pooled(lambda x: 5.0 * x[:, 0] + x[:, 1], laws, 1024), laws, [row])
    assert np.isinf(fit.standard_errors[0])
    assert np.isfinite(fit.standard_errors[1:]).all()


def test_a_model_of_one_answer_is_no_certainty():
    laws, row = family(1.0), background()[0]
    (fit,), (its,) = explain(pooled(lambda x: np.full(len(x), 0.25), laws, 2048), laws, [row])
    assert np.abs(fit.coef).max() < oracle.ROUNDING
    assert (fit.standard_errors > 1 / 2048).all()
    assert not its.converged
    assert its.shared == 2048


@pytest.mark.parametrize("outputs", [(), (1,), (3,)])
def test_shapes(outputs):
    laws, row = family(1.0), background()[0]
    form = forms.Linear(np.ones((D, *outputs)))
    its = pooled(form.predict, laws, 1024).moments(laws.at(row), row)
    assert its.mean.shape == its.variance.shape == outputs
    assert its.gamma.shape == its.coef_errors.shape == (D, *outputs)


# -- explainers ----------------------------------------------------------------------------------------------


def bent(x):
    return np.tanh(x[:, 0] + x[:, 1] * x[:, 2])


@pytest.mark.parametrize("columns", [10, 90])
def test_a_first_row_needs_fewer_calls_than_lime(columns):
    x, sizes = background(columns), []

    def rough(x):
        sizes.append(len(x))
        return np.sign(x[:, 0] * x[:, 1]) + np.sign(x.sum(axis=1))

    explanation = limes.TabularExplainer(rough, x)(x[:1], progress=False)
    assert requested(explanation, "contributions") is not None
    assert 4096 < sum(sizes) < 5000
    explanation.reasons()
    assert sum(sizes) < 5000


def test_a_stated_tolerance_grows_the_pool_beyond_the_default():
    x = background(10)
    explainer = limes.TabularExplainer(
        lambda x: np.sign(x[:, 0] * x[:, 1] * x[:, 2]),
        x,
        tolerance="0.1%",
        control="none",
        contributions=False,
    )
    assert explainer(x[:1], progress=False).shared_calls.tolist() == [16_384 + 2 + CHECK_CALLS + WITNESSES]


def test_contributions_of_more_columns_are_computed_where_they_are_read():
    x = background(120)
    explainer = limes.TabularExplainer(lambda x: x[:, 0] * x[:, 1], x, control="additive")
    explanation = explainer(x[:1], progress=False)
    assert requested(explanation, "contributions") is None
    assert explainer.pool_calls <= 4096 + 2 + CHECK_CALLS + WITNESSES
    assert np.isfinite(explanation.contributions.values).all()


def test_cuts_order_threads_and_pickles_change_no_bit():
    x = background()
    options = {"max_calls": repeats(16_384, 4096)}
    whole = limes.TabularExplainer(bent, x, **options)(x[:12], progress=False)
    other = limes.TabularExplainer(bent, x, batch_size=700, **options)
    backwards = np.concatenate(
        [other(x[i : i + 5], progress=False).coefficients.values for i in (10, 5, 0)][::-1]
    )
    assert np.array_equal(whole.coefficients.values, backwards[:12])
    shared = limes.TabularExplainer(bent, x, **options)
    with ThreadPoolExecutor(4) as threads:
        parts = list(threads.map(lambda i: shared(x[i : i + 3], progress=False), range(0, 12, 3)))
    assert np.array_equal(
        whole.coefficients.values, np.concatenate([part.coefficients.values for part in parts])
    )
    errors = np.concatenate([part.coefficients.standard_errors for part in parts])
    assert np.array_equal(whole.coefficients.standard_errors, errors)
    copy = pickle.loads(pickle.dumps(shared))
    assert copy.pool_calls == shared.pool_calls
    assert np.array_equal(whole.coefficients.values, copy(x[:12], progress=False).coefficients.values)
    assert np.array_equal(
        whole.coefficients.values, shared.reproducible(x[:12], progress=False).coefficients.values
    )
    assert limes.Explanation.from_json(whole.to_json()).shared_calls.tolist() == whole.shared_calls.tolist()


def test_rows_in_the_same_cells_are_fitted_once_unless_their_answers_are_out_of_range(monkeypatch):
    fitted, fit = [], pooled_module.least_squares_of_pool

    def counted(sample, rows, controls, outputs):
        fitted.append(len(rows))
        return fit(sample, rows, controls, outputs)

    monkeypatch.setattr(pooled_module, "least_squares_of_pool", counted)
    x = background()
    top = x[:, 0].argmax()
    rows = np.array([x[top], x[top] + [1.0, 0, 0, 0, 0], x[top] + [1e4, 0, 0, 0, 0], x[top]])

    def rare(x):
        """One of some hundred rows has another answer, and no row of the pool is as far out."""
        return 2.0 * ((x[:, 0] > 4) & (x[:, 1] > 4)) + 50.0 * (x[:, 0] > 1e3)

    explainer = limes.TabularExplainer(rare, x, max_calls=1024, control="additive", output=None)
    together = explainer(rows, progress=False)
    assert sum(fitted) == 2
    alone = [explainer(row, progress=False) for row in rows]
    assert np.array_equal(
        together.coefficients.values, np.concatenate([one.coefficients.values for one in alone])
    )
    assert np.array_equal(
        together.coefficients.standard_errors,
        np.concatenate([one.coefficients.standard_errors for one in alone]),
    )
    assert (together.coefficients.standard_errors[2] > 2.0 * together.coefficients.standard_errors[0]).any()


def test_a_failure_keeps_finished_rows_and_the_next_call_resumes():
    x = background()
    calls = []

    def model(rows):
        calls.append(len(rows))
        if len(calls) == 6 + 12:
            raise ConnectionError("the service did not answer")
        return bent(rows)

    explainer = limes.TabularExplainer(
        model, x, batch_size=100, tolerance=1e-9, max_calls=2196, contributions=False
    )
    with pytest.raises(ModelError, match="ConnectionError") as failure:
        explainer(x[:3], progress=False)
    partial = failure.value.partial
    assert partial.row_converged.tolist() == [False] * 3
    assert partial.shared_calls.tolist() == [1042] * 3
    result = explainer(x[:3], progress=False)
    clean = limes.TabularExplainer(bent, x, tolerance=1e-9, max_calls=2196, contributions=False)(
        x[:3], progress=False
    )
    assert np.array_equal(result.coefficients.values, clean.coefficients.values)
    checks = 2 + CHECK_CALLS + 2 * WITNESSES
    assert sum(calls) - 100 == checks + 3 + 3 + 2048  # the failed batch was asked again
    assert explainer.pool_calls == checks + 2048


def test_a_full_pool_makes_no_further_calls():
    x, model = background(), Counted(bent)
    explainer = limes.TabularExplainer(model, x, max_calls=4363, contributions=False)
    explainer.fill_pool(progress=False)
    before = len(model.rows)
    assert explainer.pool_calls == 2 + CHECK_CALLS + 4096
    explainer(x[:5], progress=False)
    assert len(model.rows) == before + WITNESSES + 5
