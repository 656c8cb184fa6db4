"""Many runs of the ``lime`` package against what limes computes without sampling.

The mean of R independent runs must agree with ``limes.surrogates.ridge``, the ridge fit of ``lime``'s
finite sample in expectation, within the noise of that mean (``repeated.py``). Seeds are fixed: a test that
passes keeps passing.

Everything else about ``lime`` is as it comes, its zero-width-bin error included: it sends 0 to the model
instead of the value at which a bin without width lies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge

import limes
import oracle
from effort import crossed, repeats
from internals import Atoms, ExactExpectation, Marginal, categorical, marginals_from_bins, named_weights
from limes.designs import ProductFamily
from limes.surrogates import Surrogate, least_squares, ridge
from repeated import SHARP, TOO_FAR, assert_agree, scores

lime_tabular = pytest.importorskip("lime.lime_tabular")

SAMPLES = repeats(50_000, 25_000)
DEFAULT_SAMPLES = 5000
# lime adds 1e-11 to the standard deviation of every bin.
LIME_STD_SLACK = 2e-11


# -- tables and models -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A table, a model of it, and the one number that is explained."""

    X: np.ndarray
    model: Any
    predict: Callable[[np.ndarray], np.ndarray]
    output: str | None = None
    categories: tuple[int, ...] = ()

    def limes(self, **options):
        return limes.TabularExplainer(
            self.model,
            self.X,
            output=self.output,
            categorical=self.categories or None,
            method="exact",
            **options,
        )

    def lime(self, **options):
        """All outputs are regressions to ``lime``, which keeps all features: one ridge fit on all of them."""
        return lime_tabular.LimeTabularExplainer(
            self.X,
            mode="regression",
            categorical_features=list(self.categories),
            feature_selection="none",
            random_state=0,
            **options,
        )


@cache
def diabetes(columns=tuple(range(10)), *, standardised=False):
    X, y = load_diabetes(return_X_y=True)
    X = np.ascontiguousarray(X[:, list(columns)])
    if standardised:
        X = X / X.std(axis=0)
    model = RandomForestRegressor(20, max_depth=6, random_state=0).fit(X, y)
    return Case(X, model, model.predict)


@cache
def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=30, random_state=0).fit(X, y)
    return Case(X, model, model.decision_function, output="margin")


@cache
def mixed(tied, *, linear=False):
    """Six rows in ten have ``tied``, the least value of column 0, in it; column 2 holds four unequal levels.

    Row 0 is not tied, row 1 is. Numbers are multiples of 1/64, thresholds therefore float32 numbers.
    """
    rng = np.random.default_rng(5)
    n = 400
    x = rng.normal(size=(n, 2))
    excess = np.where(rng.random(n) < 0.6, 0.0, rng.exponential(2.0, n) + 0.5)
    level = rng.choice(4, size=n, p=[0.5, 0.25, 0.15, 0.1])
    X = np.round(np.column_stack([tied + excess, x[:, 0], level, 3.0 * x[:, 1]]) * 64) / 64
    y = 2.0 * (excess > 0) * (x[:, 0] > 0) + excess + x[:, 0] * (level == 1) + (level == 3) - x[:, 1]
    model = LinearRegression() if linear else GradientBoostingRegressor(n_estimators=12, random_state=0)
    model.fit(X, y)
    return Case(X, model, model.predict, categories=(2,))


TABLES = {
    "diabetes": diabetes,
    "breast cancer": breast_cancer,
    "ties and categories": lambda: mixed(7.0),
}
tables = pytest.mark.parametrize("case", TABLES.values(), ids=TABLES.keys())

# -- lime, again and again -------------------------------------------------------------------------


def lime_runs(lime, case, row, *, runs, samples=SAMPLES, regressor=None):
    """Coefficients and, last, the intercept of independent runs, (runs, d + 1), under one seed."""
    result = np.empty((runs, row.size + 1))
    for run in result:
        explanation = lime.explain_instance(
            row, case.predict, num_features=row.size, num_samples=samples, model_regressor=regressor
        )
        # What lime lists under label 0 of a regression is the negation of label 1.
        for j, value in explanation.local_exp[1]:
            run[j] = value
        run[-1] = explanation.intercept[1]
    return result


# -- limes, from the statistics that lime has learnt -----------------------------------------------


@dataclass(frozen=True)
class Binned:
    """A numeric column as ``lime`` knows it; arrays (bins,), ``edges`` (bins + 1,)."""

    edges: np.ndarray
    frequencies: np.ndarray
    means: np.ndarray
    stds: np.ndarray

    @classmethod
    def of(cls, lime, j):
        learnt = lime.discretizer
        means, stds = np.array(learnt.means[j]), np.array(learnt.stds[j])
        # lime lists only the bins that hold training rows.
        frequencies = np.zeros(means.size)
        frequencies[np.array(lime.feature_values[j], dtype=int)] = lime.feature_frequencies[j]
        return cls(np.array([*learnt.mins[j], learnt.maxs[j][-1]]), frequencies, means, stds)

    def marginal(self) -> Marginal:
        (law,) = marginals_from_bins([self.edges], [self.means], [self.stds], frequencies=[self.frequencies])
        return law

    @property
    def starts_without_width(self) -> bool:
        return self.edges[0] == self.edges[1]


def lime_family(lime, case, *, bandwidth=None, zero_width_error=True):
    """The designs that ``lime`` samples from, or those that it means to sample from."""
    marginals = []
    for j in range(case.X.shape[1]):
        if j in case.categories:
            marginals.append(categorical(case.X[:, j]))
            continue
        column = Binned.of(lime, j)
        law = column.marginal()
        marginals.append(first_atom_at_zero(law) if zero_width_error and column.starts_without_width else law)
    bandwidth = 0.75 * np.sqrt(len(marginals)) if bandwidth is None else bandwidth
    return ProductFamily(tuple(marginals), named_weights("bins", bandwidth))


def first_atom_at_zero(law):
    """The law with the value of its first bin moved to 0; the bin's edges stay where they are."""

    def moved(atoms):
        return replace(atoms, value=np.concatenate([[0.0], atoms.value[1:]]))

    return replace(law, measures=tuple(moved(m) if isinstance(m, Atoms) else m for m in law.measures))


def moments_of(design, case):
    return ExactExpectation(limes.models.read(case.model, case.output)).moments(design)


def surrogate(family, case, row, *, samples=SAMPLES, penalty=1.0) -> Surrogate:
    """The fit that ``lime`` makes in expectation."""
    design = family.at(row)
    return ridge(
        design, moments_of(design, case), case.predict(row[None])[0], penalty=penalty, samples=samples
    )


def flat(fit: Surrogate):
    return np.append(fit.coef, fit.intercept)


def explained(explanation):
    return np.append(explanation.coefficients.values[0], explanation.coefficients.intercepts[0])


# -- the same statistics ---------------------------------------------------------------------------


@tables
def test_a_table_is_learnt_as_lime_learns_it(case):
    case = case()
    lime = case.lime()
    for j, law in enumerate(case.limes()._model.family.marginals):
        probability = np.exp(law.log_mass)
        if j in case.categories:
            assert np.array_equal(law.cells.values, lime.feature_values[j])
            assert np.allclose(probability, lime.feature_frequencies[j], rtol=oracle.EXACT)
            continue
        theirs = Binned.of(lime, j)
        used = theirs.frequencies > 0
        assert np.array_equal(law.cells.edges, [theirs.edges[0], *theirs.edges[1:][used]])
        assert np.allclose(probability, theirs.frequencies[used], rtol=oracle.EXACT)
        means, stds = mean_and_std(law)
        scale = case.X[:, j].std()
        assert np.allclose(means, theirs.means[used], rtol=0, atol=oracle.EXACT * scale)
        assert np.allclose(stds, theirs.stds[used], rtol=0, atol=oracle.EXACT * scale + LIME_STD_SLACK)


def mean_and_std(law):
    """For the normal laws that are cut to the cells, (cells,) each; of an atom its value and 0."""
    mean, std = [], []
    for measure in law.measures:
        if isinstance(measure, Atoms):
            mean.append(measure.value)
            std.append(np.zeros(measure.value.size))
        else:
            # the density is exp(-slope t - precision t² / 2), t = (x - anchor) / scale
            mean.append(measure.anchor - measure.scale * measure.slope / measure.precision)
            std.append(measure.scale * measure.precision**-0.5)
    order = np.argsort(law.owners)
    return np.concatenate(mean)[order], np.concatenate(std)[order]


@tables
def test_the_limit_is_that_of_the_statistics_that_lime_has_learnt(case):
    case = case()
    family = lime_family(case.lime(), case, zero_width_error=False)
    rows = case.X[:8]
    values = case.limes()(rows).coefficients.values
    designs = [family.at(row) for row in rows]
    limits = [least_squares(design, moments_of(design, case)).coef for design in designs]
    # lime's 1e-11 is up to 4e-8 of a bin's standard deviation in these tables
    assert np.allclose(values, limits, rtol=0, atol=1e-6 * np.abs(values).max())


# -- lime's mean is the exact value ----------------------------------------------------------------


@pytest.mark.parametrize("row", repeats([0, 100], [0]))
def test_diabetes_and_a_random_forest(row):
    case = diabetes()
    lime = case.lime()
    runs = lime_runs(lime, case, case.X[row], runs=repeats(12, 8))
    assert_agree(runs, flat(surrogate(lime_family(lime, case), case, case.X[row])))


@pytest.mark.parametrize("row", repeats([0, 100], [0]))
def test_breast_cancer_and_the_margin_of_gradient_boosting(row):
    case = breast_cancer()
    lime = case.lime()
    runs = lime_runs(lime, case, case.X[row], runs=6)
    assert_agree(runs, flat(surrogate(lime_family(lime, case), case, case.X[row])))


@pytest.mark.parametrize("row", [0, 1], ids=["untied row", "tied row"])
def test_ties_at_zero_and_categories(row):
    case = mixed(0.0)
    lime = case.lime()
    assert Binned.of(lime, 0).starts_without_width
    runs = lime_runs(lime, case, case.X[row], runs=repeats(24, 12))
    # the ties of this table are at 0, so that lime's error has no effect
    assert_agree(runs, flat(surrogate(lime_family(lime, case, zero_width_error=False), case, case.X[row])))


def test_the_option_ridge_is_lime_as_it_comes():
    case = diabetes()
    runs = lime_runs(case.lime(), case, case.X[0], runs=repeats(50, 30), samples=DEFAULT_SAMPLES)
    # The table's binary column has a zero-width bin, but 0 lies on the same side of the forest's threshold.
    assert_agree(runs, explained(case.limes(ridge=1.0)(case.X[0])))


def test_a_heavy_penalty_shrinks_both_alike():
    case = diabetes()
    row, lime = case.X[0], case.lime()
    family = lime_family(lime, case)
    runs = lime_runs(lime, case, row, runs=12, regressor=Ridge(alpha=5000.0))
    assert_agree(runs, flat(surrogate(family, case, row, penalty=5000.0)))
    # and the penalty is seen
    assert (np.abs(scores(runs, flat(surrogate(family, case, row))))[:-1] > TOO_FAR).all()


# -- where lime is not the limit -------------------------------------------------------------------


@pytest.mark.parametrize("bandwidth", repeats([0.2, 0.3, 0.4], [0.3]))
def test_a_narrow_bandwidth_gives_the_ridge_and_not_the_limit(bandwidth):
    """``lime`` then sees little but the instance, and its penalty shrinks what is left.

    The formula divides expected sums, ``lime`` the sums of one sample. With four columns some 20 of 5000 rows
    share the instance's bins, and the two differ by less than 1 %; they differ most where that number is
    about 1.
    """
    case = diabetes((2, 3, 6, 8))
    row, lime = case.X[0], case.lime(kernel_width=bandwidth)
    runs = lime_runs(lime, case, row, runs=repeats(100, 60), samples=DEFAULT_SAMPLES)
    family = lime_family(lime, case, bandwidth=bandwidth)
    expected = flat(surrogate(family, case, row, samples=DEFAULT_SAMPLES))
    # Rows that count are rare here, and the noise larger.
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert error[:-1].max() < 5 * SHARP * np.abs(expected[:-1]).max()
    assert np.abs(scores(runs, expected)).max() < TOO_FAR
    limit = case.limes(bandwidth=bandwidth)(row).coefficients.values[0]
    assert np.abs(scores(runs, np.append(limit, expected[-1]))).max() > TOO_FAR
    if bandwidth == 0.2:
        assert (np.abs(limit) > 1000 * np.abs(runs.mean(axis=0)[:-1])).all()


@pytest.mark.parametrize("row", [0, 1], ids=["untied row", "tied row"])
def test_a_bin_without_width_misleads_lime_and_not_limes(row):
    """Ties at -7: ``lime`` sends 0 instead, which lies beyond the model's thresholds."""
    case = mixed(-7.0)
    x, lime = case.X[row], case.lime()
    runs = lime_runs(lime, case, x, runs=repeats(24, 12))
    assert_agree(runs, flat(surrogate(lime_family(lime, case), case, x)))
    truth = lime_family(lime, case, zero_width_error=False)
    wrong = np.abs(scores(runs, flat(surrogate(truth, case, x))))
    # the tied column and the one that interacts with it
    assert wrong[[0, 1]].min() > 2 * TOO_FAR

    result = explained(case.limes()(x))
    intercept, coef = enumerated(lime, case, x)
    assert np.allclose(result, np.append(coef, intercept), rtol=0, atol=oracle.EXACT * np.abs(coef).max())


def enumerated(lime, case, row):
    """The limit by enumeration: between two thresholds and within a bin the trees are constant."""
    trees = [member.tree_ for member in case.model.estimators_.ravel()]
    columns, cells = [], []
    for j in range(row.size):
        if j in case.categories:
            values = np.array(lime.feature_values[j])
            columns.append(oracle.Column(values, lime.feature_frequencies[j], np.arange(values.size)))
            cells.append(int(np.searchsorted(values, row[j])))
            continue
        tested = np.unique(np.concatenate([t.threshold[t.feature == j] for t in trees])).astype(np.float32)
        # x is rounded to float32 before it is compared, so the step lies half-way to the next float32
        steps = 0.5 * (tested.astype(float) + np.nextafter(tested, np.float32(np.inf)).astype(float))
        theirs = Binned.of(lime, j)
        columns.append(step_column(theirs, steps))
        cells.append(int(np.searchsorted(theirs.edges[1:-1], row[j])))
    weights = oracle.bin_log_weights(columns, cells, 0.75 * np.sqrt(row.size))
    return oracle.explain(columns, case.predict, cells, log_weight=weights)


def step_column(binned, steps):
    """One point between each two steps, with the mass of the truncated normal there."""
    x, probability, cell = [], [], []
    bins = zip(binned.edges, binned.edges[1:], binned.means, binned.stds, binned.frequencies, strict=False)
    for b, (lower, upper, mean, std, frequency) in enumerate(bins):
        if lower == upper:
            points, mass = np.array([mean]), np.ones(1)
        else:
            cuts = np.array([lower, *steps[(lower < steps) & (steps < upper)], upper])
            points = 0.5 * (cuts[:-1] + cuts[1:])
            bounds = (lower - mean) / std, (upper - mean) / std
            mass = np.diff(stats.truncnorm.cdf(cuts, *bounds, loc=mean, scale=std))
        x.append(points)
        probability.append(frequency * mass)
        cell.append(np.full(points.size, b))
    return oracle.Column(np.concatenate(x), np.concatenate(probability), np.concatenate(cell))


def test_a_linear_model_shows_the_size_of_the_error():
    """λ (7 - E[x | other bins]) is right; ``lime`` reports λ (0 - E[x | other bins])."""
    case = mixed(7.0, linear=True)
    row, lime = case.X[1], case.lime()
    assert row[0] == 7.0
    theirs, slope = Binned.of(lime, 0), case.model.coef_[0]
    others = [
        stats.truncnorm.mean((a - m) / s, (b - m) / s, loc=m, scale=s)
        for a, b, m, s in zip(
            theirs.edges[1:], theirs.edges[2:], theirs.means[1:], theirs.stds[1:], strict=False
        )
    ]
    right = slope * (7.0 - np.average(others, weights=theirs.frequencies[1:]))
    result = case.limes()(row).coefficients.values[0, 0]
    assert result == pytest.approx(right, rel=oracle.EXACT)

    runs = lime_runs(lime, case, row, runs=repeats(24, 12))
    expected = flat(surrogate(lime_family(lime, case), case, row))
    # The penalty shrinks by 1 / (n C v), 2e-4.
    assert expected[0] == pytest.approx(right - 7.0 * slope, rel=1e-3)
    assert_agree(runs, expected)


# -- without bins ----------------------------------------------------------------------------------


def per_standard_deviation(case, explanation):
    """Slopes in ``lime``'s units: it moves each numeric column to mean 0 and standard deviation 1."""
    numeric = np.array([j not in case.categories for j in range(case.X.shape[1])])
    mean, std = np.where(numeric, case.X.mean(axis=0), 0.0), np.where(numeric, case.X.std(axis=0), 1.0)
    slopes = explanation.coefficients.values[0]
    return np.append(slopes * std, explanation.coefficients.intercepts[0] + slopes @ mean)


@pytest.mark.parametrize("case", [diabetes, lambda: mixed(7.0)], ids=["diabetes", "ties and categories"])
def test_slopes_without_bins(case):
    case = case()
    lime = case.lime(discretize_continuous=False)
    runs = lime_runs(lime, case, case.X[0], runs=repeats(12, 8))
    # The penalty shrinks by 1e-4 here, a tenth of the noise.
    assert_agree(runs, per_standard_deviation(case, case.limes(bins=None)(case.X[0])))


@pytest.mark.parametrize(("standardised", "bandwidth"), crossed([True, False], [None, 1.5]))
def test_the_option_ridge_without_bins(standardised, bandwidth):
    case = diabetes(standardised=standardised)
    lime = case.lime(discretize_continuous=False, kernel_width=bandwidth)
    runs = lime_runs(lime, case, case.X[0], runs=60, samples=DEFAULT_SAMPLES)
    explanation = case.limes(bins=None, bandwidth=bandwidth, ridge=1.0)(case.X[0])
    assert_agree(runs, per_standard_deviation(case, explanation))
