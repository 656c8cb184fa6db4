"""Sampling: unbiased, with error bars that cover, deterministic, and within the budget."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor

import limes
import oracle
import strategies
from effort import examples, repeats
from internals import (
    CONTROLS,
    AnswerStatistics,
    Clusters,
    ControlMoments,
    FeatureSupport,
    FeatureTable,
    SampledExpectation,
    Sampling,
    Tolerance,
    WeightedSample,
    binned,
    categorical,
    is_surprising,
    least_squares_of_rows,
    marginals_from_bins,
    named_weights,
    no_control,
    switch_kernels,
)
from limes.designs import ExchangeableDesign, ProductDesign, ProductFamily
from limes.exceptions import InputError, ModelError
from limes.models import forms
from limes.surrogates import least_squares
from oracle import EXACT

BUDGET = 1024
# of ±1.96 standard errors, as promised: 95 % and a little slack
COVERED = 0.93


def quartiles(d, bandwidth, weights="bins"):
    """Quartile bins of a standard normal column, the instance in a different bin of each."""
    edges = np.array([-3.0, -0.674, 0.0, 0.674, 3.0])
    means, stds = [-1.2, -0.33, 0.33, 1.2], [0.5, 0.2, 0.2, 0.5]
    row = np.array([-1.0, -0.3, 0.2, 1.1, 0.5, -0.6][:d] if d <= 6 else np.resize([-1.0, 0.2, 1.1], d))
    design = ProductDesign.from_bins([edges] * d, [means] * d, [stds] * d, row, bandwidth, weights=weights)
    return design, row


def tree_form(d, seed=0):
    rng = np.random.default_rng(seed)
    places = [np.array([-1.0, -0.4, 0.1, 0.8])] * d
    return strategies.as_forest([strategies.random_tree(rng, places, 5) for _ in range(3)], d)


def smooth_form(d):
    return forms.GaussianKernels(np.stack([np.full(d, 0.4), np.full(d, -0.8)]), [2.0, -1.0], 1.5, 0.3)


FORMS = {"smooth": smooth_form, "tree": tree_form}


def expectation_of(predict, max_calls=BUDGET, tolerance=None, seed=0, control="additive"):
    controls = CONTROLS if control == "auto" else {control: CONTROLS[control]}
    wanted = None if tolerance is None else Tolerance(tolerance)
    return SampledExpectation(predict, Sampling(max_calls, wanted, seed, controls))


def sampled(form, design, row, **options):
    return least_squares(design, expectation_of(form.predict, **options).moments(design, row))


class Both:
    """All forms, an output each."""

    def __init__(self, d):
        self.parts = [make(d) for make in FORMS.values()]

    def predict(self, x):
        return np.stack([part.predict(x) for part in self.parts], axis=1)

    def limit(self, design):
        """Intercepts and coefficients (1 + d, k)."""
        limits = [limes.limit(design, part) for part in self.parts]
        return np.stack([np.append(one.intercept, one.coef) for one in limits], axis=1)


@pytest.mark.parametrize("weights", ["bins", "euclidean"])
@pytest.mark.parametrize("bandwidth", [0.6, 1.5, np.inf])
def test_right_on_average(bandwidth, weights):
    """The mean over seeds, in its own standard errors."""
    design, row = quartiles(3, bandwidth, weights)
    form = Both(3)
    fits = [sampled(form, design, row, seed=s, max_calls=512) for s in range(repeats(60, 20))]
    values = np.array([np.vstack([f.intercept, f.coef]) for f in fits])
    errors = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    z = (values.mean(axis=0) - form.limit(design)) / errors
    assert np.abs(z).max() < oracle.Z_LIMIT, z


@pytest.mark.parametrize(
    ("kind", "bandwidth"), [("smooth", 0.75 * np.sqrt(5)), ("tree", 0.75 * np.sqrt(5)), ("tree", 1.0)]
)
def test_error_bars_are_true(kind, bandwidth):
    """d = 5, the default budget, five coefficients a seed; and they are not too wide either."""
    design, row = quartiles(5, bandwidth)
    form = FORMS[kind](5)
    truth = limes.limit(design, form).coef
    result = [sampled(form, design, row, seed=s) for s in range(repeats(150, 30))]
    coef = np.array([f.coef for f in result])
    errors = np.array([f.standard_errors for f in result])
    inside = np.abs(coef - truth) <= 1.96 * errors
    assert inside.mean() >= COVERED, inside.mean(axis=0)
    assert inside.mean(axis=0).min() >= COVERED - 0.05, inside.mean(axis=0)
    assert (np.sqrt((errors**2).mean(axis=0)) <= 2 * coef.std(axis=0, ddof=1)).all()


@pytest.mark.parametrize("kind", FORMS)
def test_error_bars_are_true_where_leaving_the_bin_is_rare(kind):
    """ν = 0.5: one row in five leaves a bin."""
    design, row = quartiles(4, 0.5)
    assert (1 - design.inclusion).max() < 0.35
    form = FORMS[kind](4)
    truth = limes.limit(design, form).coef
    result = [sampled(form, design, row, seed=s, max_calls=1024) for s in range(repeats(150, 30))]
    inside = [np.abs(f.coef - truth) <= 1.96 * f.standard_errors for f in result]
    assert np.mean(inside) >= COVERED, np.mean(inside)


@pytest.mark.parametrize("bandwidth", [0.25, 0.1])
def test_error_bars_cover_where_hardly_any_row_leaves_a_bin(bandwidth):
    """ν so narrow that hardly any row leaves a bin: unknown is not 0 ± 0, and not converged."""
    design, row = quartiles(3, bandwidth)
    form = tree_form(3)
    truth = limes.limit(design, form)
    assert np.abs(truth.coef).max() > 0.1
    explanation = sampled(form, design, row, tolerance=0.01)
    wrong = ~(np.abs(explanation.coef - truth.coef) <= 5 * explanation.standard_errors + 1e-9)
    assert not wrong.any()


def test_slopes_categories_and_missing_values_are_sampled_too():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    level = rng.choice([0.0, 1.0, 2.0, np.nan], 200)
    holed = np.where(rng.random(200) < 0.2, np.nan, rng.normal(size=200))
    edges = np.array([np.nanmin(holed), 0.0, np.nanmax(holed)])
    marginals = (
        *marginals_from_bins([[-np.inf, np.inf]], [[0.2]], [[1.1]]),
        categorical(level),
        binned(holed, edges),
    )
    slopes = np.array([True, False, False])
    family = ProductFamily(marginals, named_weights("euclidean", 1.3), slopes=slopes)
    form = forms.Boxes(
        [[0.1, -np.inf, -np.inf], [-np.inf, 0.5, -0.2]],
        [[np.inf, 1.5, np.inf], [0.9, np.inf, np.inf]],
        [1.0, 2.0],
        missing=[[False, False, True], [False, True, False]],
    )
    for row in (np.array([x[0], 1.0, 0.3]), np.array([x[1], np.nan, np.nan])):
        design = family.at(row)
        truth = limes.limit(design, form).coef
        result = [sampled(form, design, row, seed=s, max_calls=1024) for s in range(40)]
        coef = np.array([f.coef for f in result])
        z = (coef.mean(axis=0) - truth) / (coef.std(axis=0, ddof=1) / np.sqrt(len(coef)))
        assert np.abs(z).max() < oracle.Z_LIMIT


# -- determinism -------------------------------------------------------------------------------------------


def test_the_same_seed_and_row_give_the_same_numbers():
    design, row = quartiles(3, 1.0)
    form = tree_form(3)
    first, again = (sampled(form, design, row) for _ in range(2))
    assert np.array_equal(first.coef, again.coef)
    assert np.array_equal(first.standard_errors, again.standard_errors)
    assert not np.array_equal(first.coef, sampled(form, design, row, seed=1).coef)
    assert not np.array_equal(first.coef, sampled(form, design, row + 1e-9).coef)


def test_rows_that_differ_by_the_sign_of_zero_are_the_same_row():
    design, _ = quartiles(2, 1.0)
    form = tree_form(2)
    a, b = np.array([0.0, np.nan]), np.array([-0.0, -np.nan])
    assert np.array_equal(sampled(form, design, a).coef, sampled(form, design, b).coef)


def test_batches_do_not_change_the_explanation():
    sizes = []

    class Watched:
        def predict(self, x):
            sizes.append(len(x))
            return tree_form(2).predict(x)

    design, row = quartiles(2, 1.0)
    sampled(Watched(), design, row, max_calls=2**14)
    assert sum(sizes) == 2**14
    assert max(sizes) <= 4096


# -- budget, tolerance, sizes ------------------------------------------------------------------------------


@settings(max_examples=examples(40))
@given(st.integers(64, 3000), st.booleans(), st.integers(1, 4))
def test_the_budget_is_kept(max_calls, tolerant, d):
    seen = []

    class Counting:
        def predict(self, x):
            seen.append(len(x))
            return x.sum(axis=1)

    design, row = quartiles(d, 1.0)
    expectation = expectation_of(Counting().predict, max_calls, 1e-12 if tolerant else None)
    explanation = expectation.moments(design, row)
    assert explanation.calls == sum(seen) <= max_calls
    assert explanation.calls > max_calls / 2
    if tolerant:
        assert not explanation.converged


def test_a_tolerance_that_is_met_early_saves_calls():
    design, row = quartiles(3, 1.5)
    form, truth = smooth_form(3), limes.limit(quartiles(3, 1.5)[0], smooth_form(3)).coef
    expectation = expectation_of(form.predict, BUDGET, 0.5)
    explanation = expectation.moments(design, row)
    assert explanation.converged
    assert explanation.calls in (256, 512, 1024, 2048)
    assert (least_squares(design, explanation).standard_errors <= 0.5).all()
    strict = expectation_of(form.predict, BUDGET, 1e-9).moments(design, row)
    assert not strict.converged
    assert strict.calls == BUDGET
    spent = expectation_of(form.predict, BUDGET, None).moments(design, row)
    assert np.array_equal(strict.gamma, spent.gamma)
    fit = least_squares(design, spent)
    # without a tolerance: 1.5 % of the largest coefficient
    assert bool(spent.converged) == (fit.standard_errors.max() <= 0.015 * np.abs(fit.coef).max())
    assert np.abs(least_squares(design, explanation).coef - truth).max() < 0.5


def test_no_tolerance_is_met_by_fewer_calls_than_errors_of_all_coefficients_need():
    design, row = quartiles(150, 10.0)
    explanation = expectation_of(lambda x: x[:, 0], 4 * BUDGET, 1e9, control="none").moments(design, row)
    assert explanation.converged
    assert 4 * 151 <= explanation.calls <= 1024


@settings(max_examples=examples(30))
@given(st.integers(1, 40), st.integers(1, 200), st.booleans())
def test_a_budget_too_small_is_refused_and_the_one_advised_is_enough(d, max_calls, tolerant):
    design, row = quartiles(d, 1.0)
    tolerance = 0.1 if tolerant else None
    try:
        explanation = expectation_of(lambda x: x[:, 0], max_calls, tolerance).moments(design, row)
    except InputError as error:
        words = str(error)
        assert f"max_calls={max_calls}" in words
        assert str(d) in words
        advised = int(words.rsplit(" ", 1)[1])
        assert advised > max_calls
        explanation = expectation_of(lambda x: x[:, 0], advised, tolerance).moments(design, row)
    assert np.isfinite(explanation.gamma).all()
    # of fewer rows nothing is claimed
    assert explanation.calls >= 2 * (d + 1) or not np.isfinite(explanation.coef_errors).any()


def test_one_column():
    design, row = quartiles(1, 1.0)
    form = smooth_form(1)
    explanation, truth = sampled(form, design, row), limes.limit(design, form).coef
    assert np.abs(explanation.coef - truth) < 5 * explanation.standard_errors
    assert explanation.standard_errors < 0.01


@pytest.mark.parametrize("seed", range(repeats(4, 2)))
def test_sixty_columns(seed):
    """Two columns that depend on each other in all sequences would make errors of many standard errors."""
    design, row = quartiles(60, 0.75 * np.sqrt(60))
    form = forms.Linear(np.linspace(-1, 1, 60), 3.0)
    explanation, truth = sampled(form, design, row, seed=seed), limes.limit(design, form).coef
    z = (explanation.coef - truth) / explanation.standard_errors
    # 60 numbers of a t-like law with 15 degrees of freedom
    assert np.abs(z).max() < 5.5
    assert (np.abs(z) < 1.96).mean() > 0.85
    # the model is of the control's kind: what is left is an event that so few rows do not exclude
    alone = sampled(form, design, row, seed=seed, control="none")
    assert explanation.standard_errors.max() < alone.standard_errors.min() / 5


def test_a_column_that_hardly_changes_has_the_controls_coefficient_without_an_error():
    rare = categorical(np.repeat([0.0, 1.0], [198, 2]))
    common = binned(np.linspace(-1, 1, 100), np.array([-1.0, 0.0, 1.0]))
    row = np.array([0.0, 0.5])
    design = ProductFamily((rare, common), named_weights("bins", np.inf)).at(row)
    form = forms.Linear([5.0, 1.0], 0.0)
    explanation = sampled(form, design, row, max_calls=256, control="auto")
    truth = limes.limit(design, form).coef
    assert np.isinf(explanation.standard_errors[0])
    assert np.isfinite(explanation.standard_errors[1])
    assert abs(explanation.coef[0] - truth[0]) < 0.5 * abs(truth[0])


def test_constant_columns_have_exactly_nothing():
    design = ProductDesign.from_bins(
        [[5.0, 5.0], [0, 1, 2], [0.0, 1.0]],
        [[5.0], [0.5, 1.5], [0.5]],
        [[0.0], [1, 1], [1]],
        [5.0, 0.2, 0.3],
        1.0,
    )
    form = forms.Linear([1.0, 2.0, 3.0])
    explanation = sampled(form, design, np.array([5.0, 0.2, 0.3]))
    assert explanation.coef[[0, 2]].tolist() == explanation.standard_errors[[0, 2]].tolist() == [0.0, 0.0]
    assert explanation.standard_errors[1] > 0
    assert explanation.intercept == pytest.approx(limes.limit(design, form).intercept, abs=0.1)


def test_a_constant_sample_has_no_slopes_and_its_errors_are_a_rule_of_threes():
    """All answers are 0.25, a probability: on each side 3 of n rows may differ, by 1 or less."""
    design, row = quartiles(3, np.inf)
    moments = expectation_of(forms.Linear([0.0] * 3, 0.25).predict).moments(design, row)
    explanation = least_squares(design, moments)
    assert np.abs(explanation.coef).max() < oracle.ROUNDING
    assert explanation.intercept == pytest.approx(0.25)
    kept = BUDGET * design.inclusion
    expected = 3 / 1.96 * np.hypot(1 / kept, 1 / (BUDGET - kept))
    assert explanation.standard_errors == pytest.approx(expected, rel=0.05)
    assert not moments.converged
    assert moments.sampled.unlike == 0


def test_a_constant_sample_of_no_known_range_has_unknown_errors():
    design, row = quartiles(3, 1.0)
    expectation = expectation_of(forms.Linear([0.0] * 3, 2.5).predict)
    explanation = least_squares(design, expectation.moments(design, row))
    assert np.abs(explanation.coef).max() < oracle.ROUNDING
    assert np.isinf(explanation.standard_errors).all()
    # what the model answers at the row itself tells how far answers go
    nearer, farther = (
        expectation.moments(design, row, prediction=np.array(2.5 + step)).coef_errors for step in (0.5, 5.0)
    )
    assert np.isfinite(nearer).all()
    assert farther == pytest.approx(10 * nearer)


@pytest.mark.parametrize("outputs", [(), (1,), (3,)])
def test_shapes(outputs):
    design, row = quartiles(2, 1.0)
    form = forms.Linear(np.ones((2, *outputs)))
    expectation = expectation_of(form.predict, 256, 0.5)
    moments = expectation.moments(design, row)
    assert moments.mean.shape == moments.variance.shape == outputs
    assert moments.gamma.shape == moments.coef_errors.shape == (2, *outputs)
    surrogate = least_squares(design, moments)
    assert surrogate.fidelity.shape == outputs
    assert ((surrogate.fidelity > 0) & (surrogate.fidelity <= 1)).all()
    assert expectation.method == "sampled"


def test_each_output_has_separate_error_bars():
    """Outputs share calls and the gain of the sequences, not their sizes."""
    design, row = quartiles(3, 1.0)
    coef = np.array([[1.0, 1000.0], [2.0, 0.0], [0.0, 1.0]])
    several = sampled(forms.Linear(coef), design, row, control="none")
    for k in range(2):
        one = sampled(forms.Linear(coef[:, k]), design, row, control="none")
        assert several.coef[:, k] == pytest.approx(one.coef, rel=1e-9, abs=1e-9)
        ratio = several.standard_errors[:, k] / one.standard_errors
        # the two errors come from different numbers of rows
        assert ratio == pytest.approx(ratio.mean(), rel=0.05)
        assert 0.5 < ratio.mean() < 2


@pytest.mark.parametrize(
    ("control", "tolerance", "missed"), [(no_control, 1e-9, 1e-9), (switch_kernels, 1e-5, 1e-3)]
)
def test_a_model_equal_to_its_surrogate_has_fidelity_one(control, tolerance, missed):
    """Kernels follow a line to a few digits only, and what they miss is small noise.

    Three of 256 rows may miss it, for all that none of these does, by a standard deviation of the answers.
    """
    design, coef = ExchangeableDesign.superpixel_switches(20), np.linspace(-1, 2, 20)
    sampling = Sampling(256, controls={"only": control})
    moments = SampledExpectation(lambda z: z @ coef + 3.0, sampling).moments(design, np.ones(20))
    assert least_squares(design, moments).fidelity == pytest.approx(1.0, abs=tolerance)
    assert moments.sampled.fidelity_errors == pytest.approx(3.0 / 1.96 / 256, rel=0.05)
    assert moments.variance == pytest.approx(coef @ design.gamma(coef), rel=missed)


def test_the_variance_is_right_on_average():
    """Against all 2^d rows, in the standard error of the mean over seeds."""
    design = ExchangeableDesign.superpixel_switches(10)

    def model(z):
        return np.tanh(z @ np.linspace(-1, 2, 10)) * z[:, 0]

    z, probability, _ = design.states(2**10)
    mean = probability @ model(z)
    exact = probability @ (model(z) - mean) ** 2
    result = []
    for seed in range(60):
        sampling = Sampling(256, seed=seed, controls={"none": no_control})
        result.append(SampledExpectation(model, sampling).moments(design, np.ones(10)).variance)
    assert abs(np.mean(result) - exact) <= oracle.Z_LIMIT * np.std(result, ddof=1) / np.sqrt(len(result))


@pytest.mark.parametrize("make", [ExchangeableDesign.word_deletions, ExchangeableDesign.superpixel_switches])
@pytest.mark.parametrize("bandwidth", [0.25, 0.05, 0.01, 1e-3])
def test_every_subset_at_narrow_bandwidths(make, bandwidth):
    """Three words at 0.05 gave 0.77, 0.27, -1.03 for 2.03, 1.53, 0.23, and called it exact."""
    form = forms.PresenceProducts([([0, 1], [2], 1.3), ([0], [], 0.5), ([], [1, 2], -2.0)], 1.0, size=3)
    design = make(3, bandwidth)
    surrogate = least_squares(
        design, SampledExpectation(form.predict, Sampling(64)).moments(design, np.ones(3))
    )
    # as ν → 0 of a text one word is deleted, of an image none or one: a plane through those rows
    z = (
        1.0 - np.eye(3)
        if make == ExchangeableDesign.word_deletions
        else np.vstack([np.ones(3), 1.0 - np.eye(3)])
    )
    if bandwidth < 0.05:
        least = np.linalg.lstsq(np.column_stack([np.ones(len(z)), z]), form.predict(z), rcond=None)[0]
        if len(z) == 4:
            assert oracle.error(surrogate.coef, least[1:]) < EXACT
        else:
            assert oracle.error(np.diff(surrogate.coef), np.diff(least[1:])) < EXACT
    assert oracle.error(surrogate.coef, limes.limit(design, form).coef) < EXACT
    assert oracle.error(surrogate.intercept, limes.limit(design, form).intercept) < EXACT


@pytest.mark.parametrize("size", [1e160, 1e300, 1.7e308])
def test_answers_whose_squares_overflow_are_refused(size):
    """They gave infinite errors, and the advice to raise max_calls."""
    design, row = quartiles(3, 1.0)
    sampled = SampledExpectation(lambda x: np.tanh(x[:, 0]) * size, Sampling(BUDGET))
    with pytest.raises(ModelError, match="squares are beyond"):
        sampled.moments(design, row)
    words = ExchangeableDesign.word_deletions(3)
    every = SampledExpectation(lambda z: z[:, 0] * size, Sampling(BUDGET)).moments(words, np.ones(3))
    fit = least_squares(words, every)
    assert oracle.error(fit.coef / size, [1.0, 0.0, 0.0]) < EXACT
    assert np.isnan(fit.fidelity)


def test_the_order_of_features_does_not_change_how_many_rows_carry_a_coefficient():
    rng = np.random.default_rng(0)
    h = (rng.random((256, 5)) < [0.5, 0.1, 0.3, 0.05, 0.2]).astype(float)
    f = rng.standard_t(2, size=(256, 2)) + h[:, :2] * 20.0

    def effective_clusters(order):
        features = h[:, order]
        design = FeatureTable(features.mean(axis=0), features.var(axis=0), np.ones(5), np.zeros(()))
        clusters = Clusters(np.arange(256), np.arange(256) % 4)
        sample = WeightedSample(features - features.mean(axis=0), f, clusters, AnswerStatistics.from_rows(f))
        return least_squares_of_rows(
            design, sample, FeatureSupport.from_rows(features, np.ones(5, dtype=bool))
        ).effective_clusters

    expected = effective_clusters([0, 1, 2, 3, 4])
    for order in ([4, 3, 2, 1, 0], [1, 0, 3, 4, 2], [2, 3, 4, 0, 1]):
        assert effective_clusters(order) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_errors_of_r_squared_and_of_shares_do_not_depend_on_the_unit_of_the_answers(weighted):
    rng = np.random.default_rng(3)
    h = (rng.random((200, 3)) < 0.4).astype(float)
    f = (h @ [2.0, -1.0, 0.5] + h[:, 0] * h[:, 1] + 0.1 * rng.normal(size=200))[:, None]
    weights = rng.random(200) if weighted else np.ones(200)
    weights /= weights.sum()
    mean = weights @ h
    design = FeatureTable(mean, weights @ (h - mean) ** 2, np.ones(3), np.zeros(()))

    def errors(unit):
        answers = unit * f
        sample = WeightedSample(
            h - mean,
            answers,
            Clusters(np.arange(200)),
            AnswerStatistics.from_rows(answers),
            weights if weighted else None,
        )
        fit = least_squares_of_rows(design, sample, FeatureSupport.from_rows(h, np.ones(3, dtype=bool)))
        return np.concatenate([fit.fidelity_errors, fit.share_errors[:, 0]])

    assert (errors(1.0) > 0).all()
    np.testing.assert_allclose(errors(2.0**7), errors(1.0), rtol=1e-9)


def test_only_variances_beyond_chance_are_surprising():
    assert is_surprising(np.array([0.1, 1.0, 50.0]), 3).tolist() == [False, False, True]


def test_errors_of_a_controls_moments_move_fidelity_by_its_slope():
    """No residual is left, so that R² = βᵀΣβ / Var f moves with β alone; its slope by differences.

    The second order of an error s of β_j adds 2 (Σ_jj s² / Var f)² to the variance; a rest as large as the
    range, which none of eight rows shows and three may have, adds its square.
    """
    h = np.array(list(product([0.0, 1.0], repeat=3)))
    design, coef = ExchangeableDesign.word_deletions(3), np.array([2.0, -1.0, 0.5])
    f, simulated = (h @ coef)[:, None], np.array([[0.3], [0.02], [0.05], [0.01]])
    fit = least_squares_of_rows(
        design,
        WeightedSample(
            h - design.inclusion, f, Clusters(np.arange(8), np.arange(8) % 4), AnswerStatistics.from_rows(f)
        ),
        FeatureSupport(np.full(3, 4), np.ones(3, dtype=bool), np.zeros(3, dtype=bool)),
        controls=[ControlMoments(np.zeros(1), np.zeros((3, 1)), simulated)],
    )

    def explained(coef):
        return float(coef @ design.gamma(coef)) / fit.variance[0]

    slopes = np.array([explained(coef + 0.5 * e) - explained(coef - 0.5 * e) for e in np.eye(3)])
    second = design.variance * simulated[1:, 0] ** 2 / fit.variance[0]
    expected = np.sqrt(((slopes * simulated[1:, 0]) ** 2).sum() + 2 * (second**2).sum())
    unseen = 3.0 / 1.96 / 8.0 * np.ptp(f) ** 2 / fit.variance[0]
    assert fit.fidelity_errors[0] == pytest.approx(np.hypot(expected, unseen), rel=1e-9)


def test_an_interrupt_after_the_last_answer_loses_no_answer():
    """Two rows are answered in full when the user interrupts; the next call asks nothing."""
    sizes = []

    def predict(z):
        sizes.append(len(z))
        return np.exp(z[:, 0])

    @contextmanager
    def interrupted(total, unit="rows"):
        steps = []

        def on_progress(count):
            steps.append(count)
            if sum(steps) == total:
                raise KeyboardInterrupt

        yield on_progress

    design = ExchangeableDesign.word_deletions(12)
    expectation = SampledExpectation(predict, Sampling(512, controls={"none": no_control}))
    rows, predictions = np.array([[0.0], [1.0]]), np.ones(2)
    first, error = expectation.many([design, design], rows, predictions, progress=interrupted)
    assert isinstance(error, KeyboardInterrupt)
    before = sum(sizes)
    again, error = expectation.many([design, design], rows, predictions, progress=silent)
    assert error is None
    assert sum(sizes) == before
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.gamma, other.gamma)
    expectation.many([design], rows[:1], predictions[:1], progress=silent)
    assert sum(sizes) > before  # what was returned is not kept


@contextmanager
def silent(total, unit="rows"):
    yield lambda count: None


@pytest.mark.parametrize("calls", [48, 64])
def test_errors_from_few_calls_are_finite_and_cover(calls):
    """Coefficients of six columns were all 0 ± inf below 100 calls."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    forest = RandomForestRegressor(10, max_depth=5, random_state=0).fit(
        X, X[:, 0] * X[:, 1] + np.sin(X[:, 2])
    )
    expected = limes.TabularExplainer(forest, X)(X[:1]).coefficients.values
    inside, finite = [], []
    for seed in range(repeats(60, 25)):
        explainer = limes.TabularExplainer(
            lambda x: forest.predict(x), X, max_calls=calls, rng=seed, contributions=False
        )
        its = explainer(X[:1], progress=False).coefficients
        finite.append(np.isfinite(its.standard_errors))
        inside.append(np.abs(its.values - expected) <= 1.96 * its.standard_errors)
    assert np.mean(finite) >= 0.95
    assert np.mean(inside) >= 0.93
