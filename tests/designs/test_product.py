"""Product designs: inclusion, variance and weight of every column, draws, and refused arguments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import limes
import oracle
import strategies
from effort import examples
from internals import (
    Atoms,
    BinWeights,
    EuclideanWeights,
    _arrays,
    _product,
    bin_edges,
    binned,
    binned_together,
    categorical,
    ends_of,
    learn_means,
    learn_sides,
    marginals_from_bins,
    named_weights,
    unbinned,
)
from limes.designs import ProductDesign, ProductFamily
from limes.exceptions import InputError
from limes.models import forms
from oracle import EXACT

EDGES, MEANS, STDS = [[0.0, 1.0, 2.0]], [[0.5, 1.5]], [[0.3, 0.3]]


def simple(**options):
    arguments = {"edges": EDGES, "means": MEANS, "stds": STDS, "instance": [0.2], "bandwidth": 1.0} | options
    return ProductDesign.from_bins(**arguments)


@settings(max_examples=examples(100))
@given(strategies.designs())
def test_inclusion_variance_and_weight(stated):
    design, columns = stated.design(), stated.columns()
    parts = [
        oracle.truth([c], lambda x: np.zeros(len(x)), [z]) for c, z in zip(columns, stated.cells, strict=True)
    ]
    inclusion = np.array([p.inclusion[0] for p in parts])
    variance = np.array([p.variance[0] for p in parts])
    assert oracle.relative_errors(design.inclusion, np.maximum(inclusion, 1e-100)).max() < EXACT
    # floats end at 1e-308, the design's masses at 1e-100
    varies = [len(np.unique(c.cell)) > 1 for c in columns]
    variance = np.where(varies, np.maximum(variance, 1e-100), 0.0)
    assert oracle.relative_errors(design.variance, variance).max() < EXACT
    log_weight = sum(float(c.log_total) for c in columns)
    assert abs(design.log_weight - log_weight) < EXACT * max(1.0, abs(log_weight))
    assert design.size == stated.size
    assert design.at_instance.tolist() == [1.0] * stated.size


@settings(max_examples=examples(40))
@given(strategies.designs(sizes=(1, 2), bandwidths=(0.5, 1.0, 5.0, np.inf)), strategies.rngs)
def test_drawn_rows_have_the_law(stated, rng):
    """Levels on a fine lattice: frequencies of cells and the distribution of x inside, column by column."""
    design, n = stated.design(), 2000
    level = (np.arange(n) + 0.5) / n
    x, h = design.draw(np.column_stack([rng.permutation(level) for _ in range(stated.size)]))
    assert x.shape == h.shape == (n, stated.size)
    for j, column in enumerate(stated.columns()):
        assert abs(h[:, j].mean() - design.inclusion[j]) < 2 / n
        assert np.array_equal(
            h[:, j] == 1, design.coordinates[j].marginal.cells.locate(x[:, j]) == stated.cells[j]
        )
        law, order = column.law().astype(float), np.argsort(column.x)
        theirs = np.interp(np.sort(x[:, j]), column.x[order], np.cumsum(law[order]))
        atoms = law.max()
        assert np.abs(theirs - level).max() < 0.02 + atoms


def test_drawing_follows_the_distribution_of_scipy():
    design = ProductDesign.from_bins([[-np.inf, np.inf]], [[0.3]], [[2.0]], [1.0], 0.7, weights="euclidean")
    x, _ = design.draw(((np.arange(1000) + 0.5) / 1000)[:, None])
    variance = 1 / (1 / 4 + 1 / 0.49)
    law = stats.norm(variance * (0.3 / 4 + 1.0 / 0.49), np.sqrt(variance))
    assert np.abs(law.cdf(x[:, 0]) - (np.arange(1000) + 0.5) / 1000).max() < 1e-9


def test_an_instance_outside_the_edges_lies_in_the_outer_bins():
    form = forms.Linear([1.0])
    for outside, inside in ((-50.0, 0.5), (0.0, 0.5), (2.0, 1.5), (99.0, 1.5)):
        a, b = (limes.limit(simple(instance=[x]), form).coef for x in (outside, inside))
        assert a == b


def test_infinite_outer_edges_do_not_matter_where_the_law_is_narrow():
    narrow = {"means": [[0.5, 1.5]], "stds": [[0.01, 0.01]]}
    closed = simple(**narrow)
    opened = simple(edges=[[-np.inf, 1.0, np.inf]], **narrow)
    form = forms.GaussianKernels([[0.4]], [1.0], 1.0)
    assert oracle.error(limes.limit(opened, form).coef, limes.limit(closed, form).coef) < EXACT


def test_frequencies_need_not_add_up_to_one():
    form = forms.Linear([1.0])
    edges, means, stds = [[0, 1, 2, 3]], [[0.5, 1.5, 2.5]], [[1, 1, 1]]
    a, b = (
        limes.limit(simple(edges=edges, means=means, stds=stds, frequencies=f), form).coef
        for f in ([[0.1, 0.2, 0.7]], [[10, 20, 70]])
    )
    assert oracle.error(a, b) < oracle.ROUNDING


def test_a_bin_of_frequency_zero_is_never_visited():
    form = forms.Boxes([[1.0]], [[2.0]], [1.0])
    edges, means, stds = [[0, 1, 2, 3]], [[0.5, 1.5, 2.5]], [[1, 1, 1]]
    options = {"edges": edges, "means": means, "stds": stds, "frequencies": [[1, 0, 1]]}
    assert limes.limit(simple(**options), form).coef == 0.0
    # explained from inside that bin: what it holds still differs from what the others hold
    assert limes.limit(simple(**options, instance=[1.5]), form).coef == 1.0


def test_a_single_bin_has_no_coefficient():
    design = simple(edges=[[0, 1]], means=[[0.5]], stds=[[1]])
    surrogate = limes.limit(design, forms.Linear([3.0], 1.0))
    assert surrogate.coef == 0.0
    assert surrogate.intercept == pytest.approx(2.5)
    assert design.variance == 0.0


def test_smooth_distances_count_in_units_of_the_scales():
    marginals = marginals_from_bins(EDGES, MEANS, STDS)
    scaled = ProductFamily(marginals, EuclideanWeights(0.5), scales=np.array([3.0]))
    raw = ProductFamily(marginals, EuclideanWeights(1.5))
    row, form = np.array([0.4]), forms.Linear([1.0])
    assert limes.limit(scaled.at(row), form).coef == limes.limit(raw.at(row), form).coef


def test_another_category_is_one_unit_away():
    marginals = (categorical(np.array([0.0, 1.0, 1.0, 5.0])),)
    for bandwidth in (0.5, 2.0):
        designs = [
            ProductFamily(marginals, w(bandwidth)).at(np.ones(1)) for w in (BinWeights, EuclideanWeights)
        ]
        assert designs[0].inclusion == designs[1].inclusion


def test_slopes_refuse_weights_by_bin():
    marginals = marginals_from_bins(EDGES, MEANS, STDS)
    with pytest.raises(InputError, match="smooth weights"):
        ProductFamily(marginals, BinWeights(0.1), slopes=np.array([True]))


@pytest.mark.parametrize("weights", strategies.WEIGHTS)
@pytest.mark.parametrize("bandwidth", [1e-20, 1e-10, 1e10, 1e200])
def test_extreme_bandwidths_give_finite_answers(weights, bandwidth):
    design = simple(weights=weights, bandwidth=bandwidth)
    surrogate = limes.limit(design, forms.Linear([1.0], 0.5))
    plain = simple(weights=weights, bandwidth=np.inf)
    assert np.isfinite(surrogate.coef).all()
    if bandwidth > 1:
        assert oracle.error(surrogate.coef, limes.limit(plain, forms.Linear([1.0])).coef) < EXACT
    elif weights == "euclidean":
        assert surrogate.coef == pytest.approx(
            0.2 - 1.0
        )  # the instance itself, and the nearest point of another bin


@pytest.mark.parametrize("weights", strategies.WEIGHTS)
def test_the_smallest_bandwidth_gives_an_answer_or_advice(weights):
    try:
        surrogate = limes.limit(simple(weights=weights, bandwidth=1e-170), forms.Linear([1.0]))
    except InputError:
        return
    assert np.isfinite(surrogate.coef).all()


def test_frequencies_may_be_one_matrix():
    design = simple(
        edges=np.array(EDGES * 2),
        means=np.array(MEANS * 2),
        stds=np.array(STDS * 2),
        instance=np.array([0.2, 0.2]),
        frequencies=np.array([[1, 3], [1, 3]]),
    )
    assert design.inclusion == pytest.approx(simple(frequencies=[[1, 3]]).inclusion.repeat(2))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bandwidth": 0.0}, ["bandwidth", "> 0", "inf"]),
        ({"bandwidth": -1}, ["bandwidth", "-1"]),
        ({"bandwidth": float("nan")}, ["bandwidth", "nan"]),
        ({"bandwidth": "1"}, ["bandwidth", "'1'"]),
        ({"bandwidth": True}, ["bandwidth", "True"]),
        ({"bandwidth": None}, ["bandwidth", "None"]),
        ({"weights": "smooth"}, ["'bins'", "'euclidean'", "'smooth'"]),
        ({"instance": [0.2, 0.3]}, ["instance", "1 finite"]),
        ({"instance": 0.2}, ["instance", "1 finite"]),
        ({"instance": [np.nan]}, ["instance", "finite"]),
        ({"instance": [np.inf]}, ["instance", "finite"]),
        ({"frequencies": [[1, 1], [1, 1]]}, ["frequencies has 2"]),
    ],
)
def test_errors_say_what_is_wrong(options, words):
    with pytest.raises(InputError) as caught:
        simple(**options)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("edges", [[0.0, np.inf, np.inf], [-np.inf, -np.inf, 0.0], [np.inf, np.inf, np.inf]])
def test_only_the_outer_two_edges_may_be_infinite(edges):
    with pytest.raises(InputError, match="column 0"):
        simple(edges=[edges])


def test_a_design_without_columns_is_refused():
    with pytest.raises(InputError):
        simple(edges=[], means=[], stds=[], instance=[])


@given(st.sampled_from([0.5, np.float32(0.5), np.int64(2), 3, np.inf]))
def test_any_number_is_a_bandwidth(bandwidth):
    assert named_weights("bins", bandwidth).bandwidth == bandwidth


@pytest.mark.parametrize("slopes", [[True, False], [True, True]])
def test_a_slope_has_no_bins_to_weigh_by(slopes):
    """A single one among columns with bins is refused too."""
    line = np.array([-np.inf, np.inf])
    laws = (*marginals_from_bins([line], [[0.0]], [[1.0]]), *marginals_from_bins(EDGES, MEANS, STDS))
    with pytest.raises(InputError, match="a slope has no bins"):
        ProductFamily(laws, BinWeights(1.0), slopes=np.array(slopes))
    ProductFamily(laws, BinWeights(1.0), slopes=np.zeros(2, dtype=bool))


def test_rows_are_finite_at_the_very_ends_of_the_unit_cube(monkeypatch):
    """Sobol' points may be 0, where an inverse distribution function on the whole line is infinite."""

    class Ends:
        def __init__(self, d, rng):
            self._d = d

        def random(self, n):
            return np.resize([0.0, 1.0], (n, self._d))

    monkeypatch.setattr(_arrays, "SobolPoints", Ends)
    line = np.array([-np.inf, np.inf])
    laws = marginals_from_bins([line, line], [[0.0], [3.0]], [[1.0], [2.0]])
    family = ProductFamily(laws, EuclideanWeights(1.0), slopes=np.ones(2, dtype=bool))
    x = _product.SobolRows(family.at(np.zeros(2)), [np.random.SeedSequence(0)]).draw(4)[0]
    assert np.isfinite(x).all()
    # 2**-54 and 2**-53 are as far out as a normal's distribution function goes
    assert np.abs(stats.norm.ppf(2.0**-54)) < 9
    assert (np.abs(x) < 12).all()


@pytest.mark.parametrize("d", [1, 7, 300])
def test_points_are_spread_evenly_in_every_dimension(d):
    """The first 2^m points of a Sobol' sequence have one value in each of 2^m equal intervals."""
    sequences = _arrays.sobol_points(d, np.random.SeedSequence(0).spawn(2))
    draws = [sequences.random(n).reshape(2, n, d) for n in (16, 48)]
    points = np.concatenate(draws, axis=1)
    assert (points[0] != points[1]).all()
    counts = [np.bincount((column * 64).astype(int), minlength=64) for one in points for column in one.T]
    assert (np.array(counts) == 1).all()


def mixed_laws(count, rng):
    """Laws of every kind: of numbers, tied or missing or without bins, and of categories."""
    laws = []
    for j in range(count):
        x = rng.normal(size=200)
        x = (np.round(x, 1) if j % 4 == 0 else x) * 10.0 ** rng.integers(-3, 4)
        edges = np.unique(np.quantile(x, [0.0, 0.5, 1.0] if j % 2 else [0.0, 0.25, 0.5, 0.75, 1.0]))
        x[: 20 * (j % 3 == 0)] = np.nan
        laws.append(binned(x, edges, law=("truncnorm", "uniform", "empirical")[j % 5 % 3]))
    return (*laws, unbinned(rng.normal(size=200)), categorical(rng.integers(4, size=200) * 1.0))


@pytest.mark.parametrize("alike", [False, True])
def test_rows_of_many_columns_are_those_of_each_column(alike):
    """Bit for bit, though columns with as many cells are drawn at once."""
    rng = np.random.default_rng(0)
    laws = mixed_laws(30, rng)
    laws = tuple(law for law in laws if law.cells.count == 4 and len(law.measures) == 1) if alike else laws
    levels = rng.random((5000, len(laws)))
    x, cells = ProductFamily(laws, BinWeights(1.0)).draw(levels)
    for j, law in enumerate(laws):
        values, cell = law.draw(levels[:, j])
        np.testing.assert_array_equal(x[:, j], values)
        np.testing.assert_array_equal(cells[:, j], cell)


def test_means_of_many_columns_are_those_of_each_column():
    """Bit for bit."""
    together, apart = (mixed_laws(30, np.random.default_rng(1)) for _ in range(2))
    learn_means(together)
    for one, other in zip(together, apart, strict=True):
        np.testing.assert_array_equal(one.means, other.means)


def test_sides_of_many_columns_are_those_of_each_column():
    """Bit for bit."""
    together, apart = (mixed_laws(30, np.random.default_rng(1)) for _ in range(2))
    learn_sides(together)
    for one, other in zip(together, apart, strict=True):
        for its, others in zip(one.sides, other.sides, strict=True):
            np.testing.assert_array_equal(its, others)


def test_ends_of_many_columns_hold_all_that_is_drawn():
    laws = mixed_laws(30, np.random.default_rng(2))
    least, largest = ends_of(laws)
    levels = np.random.default_rng(0).random(20_000)
    for low, high, law in zip(least, largest, laws, strict=True):
        x, _ = law.draw(levels)
        assert low <= np.nanmin(x) <= np.nanmax(x) <= high
        measured = all(isinstance(measure, Atoms) for measure in law.measures)
        if measured:  # and no more than that
            assert (low, high) == (np.nanmin(x), np.nanmax(x))


@pytest.mark.parametrize("n", [8, 400, 30_000])
def test_laws_that_are_learnt_together_are_those_of_each_column(n):
    rng = np.random.default_rng(n)
    usual = [rng.normal(size=n), rng.exponential(size=n) + 50.0, rng.normal(-1e6, 1e-2, n)]
    odd = [np.full(n, 3.0), rng.integers(3, size=n) * 1.0, 1e-150 * rng.normal(size=n), 1e250 * rng.random(n)]
    matrix = np.column_stack(usual + odd)
    edges = bin_edges(matrix, [True] * matrix.shape[1], bins="quartile")
    learnt = [*binned_together(matrix, edges)]
    assert [law is None for law in learnt] == [False] * len(usual) + [True] * len(odd)
    for law, x, its in zip(learnt, matrix.T, edges, strict=False):
        if law is None:
            continue
        other = binned(x, its)
        np.testing.assert_array_equal(law.log_mass, other.log_mass)
        np.testing.assert_array_equal(law.owners, other.owners)
        numbers = [[*vars(m).values()] for m in (*law.measures, *other.measures)]
        np.testing.assert_allclose(*numbers, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 40, 500, 21_201])
def test_points_are_those_of_scipy(d, monkeypatch):
    """Digit for digit, however many are drawn at once, and where scipy has its table elsewhere."""
    counts, rng = (8, 8, 1, 15, 32), np.random.default_rng
    expected = stats.qmc.Sobol(d, scramble=True, bits=30, rng=rng(d)).random(sum(counts))
    ours = _arrays.sobol_digits(d, rng(d))
    assert (np.concatenate([ours(n) for n in counts]) == expected * 2**30).all()
    monkeypatch.setattr(_arrays, "_TABLE", "elsewhere.npz")
    others = _arrays.sobol_digits(d, rng(d))
    assert not isinstance(others, type(ours))
    assert (others(8) == expected[:8] * 2**30).all()


def test_points_beyond_the_last_dimension_of_sobol_are_independent():
    d = _arrays.SOBOL_DIMENSIONS + 1
    points = _arrays.sobol_points(d, [np.random.SeedSequence(0)]).random(64)
    assert points.shape == (64, d)
    assert ((points >= 0) & (points < 1)).all()
