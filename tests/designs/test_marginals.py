"""Laws of columns: learnt from values or stated, and drawn from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import strategies
from effort import examples
from internals import (
    LAWS,
    Atoms,
    BinCells,
    GaussianPieces,
    Interval,
    Levels,
    Polynomial,
    SlopeColumn,
    binned,
    categorical,
    marginal,
    marginals_from_bins,
    sliced,
    unbinned,
)
from limes.exceptions import InputError

NAN = float("nan")


def mass_below(law, x):
    """P(X <= x) by cell, from the marginal's own interval masses: (n, p)."""
    x = np.asarray(x, dtype=float)
    intervals = Interval(np.full(x.size, -np.inf), x, np.zeros(x.size, dtype=bool))
    return law.expect(intervals)


def test_cells_are_closed_on_the_right_and_open_ended():
    bins = BinCells(np.array([0.0, 1.0, 2.0, 3.0]), missing=True)
    assert bins.count == 4
    x = np.array([-9.0, 0.0, 1.0, np.nextafter(1.0, 2), 2.0, 3.0, 99.0, NAN])
    assert bins.locate(x).tolist() == [0, 0, 0, 1, 1, 2, 2, 3]
    assert BinCells(bins.edges).locate(np.array([NAN, 2.5])).tolist() == [-1, 2]


def test_levels_are_found_exactly_or_not_at_all():
    levels = Levels(np.array([0.0, 2.0, 5.0, NAN]))
    assert levels.locate(np.array([0.0, -0.0, 2.0, 5.0, NAN, 1.0, 6.0, -1.0])).tolist() == [
        *(0, 0, 1, 2, 3),
        *(-1, -1, -1),
    ]
    assert Levels(np.array([1.0])).locate(np.array([NAN])).tolist() == [-1]


@pytest.mark.parametrize("law", sorted(LAWS))
def test_a_learnt_column_has_the_frequencies_and_values_of_its_bins(law):
    x = np.array([0.0, 0.0, 0.0, 0.2, 0.9, 1.0, 1.5, 2.0, 2.0, NAN])
    result = binned(x, np.array([0.0, 0.0, 1.0, 2.0]), law=law)
    assert np.exp(result.log_mass).round(12).tolist() == [0.3, 0.3, 0.3, 0.1]
    below = mass_below(result, [-1e-9, 0.0, 0.5, 1.0, 2.0])
    assert below[:, 0].tolist() == [0, 1, 1, 1, 1]
    assert below[:, 3].tolist() == [0, 0, 0, 0, 0]  # NaN is below nothing
    assert below[3, 1] == pytest.approx(1.0)
    expected = {
        "uniform": [0.5, 1.5],
        "empirical": [np.mean([0.2, 0.9, 1.0]), np.mean([1.5, 2.0, 2.0])],
        "truncnorm": [
            truncated_mean([0.2, 0.9, 1.0], 0.0, 1.0),
            truncated_mean([1.5, 2.0, 2.0], 1.0, 2.0),
        ],
    }[law]
    # the last cell is NaN itself
    assert result.means[1:3] == pytest.approx(expected, rel=1e-9)
    assert np.isnan(result.means[3])


def truncated_mean(values, lower, upper):
    mean, std = np.mean(values), np.std(values)
    return stats.truncnorm.mean((lower - mean) / std, (upper - mean) / std, loc=mean, scale=std)


def test_a_bin_of_equal_values_is_an_atom_whatever_its_width():
    result = binned(np.array([0.5, 0.5, 3.0, 4.0]), np.array([0.0, 2.0, 5.0]))
    assert result.means[0] == 0.5
    assert mass_below(result, [0.49, 0.5])[:, 0].tolist() == [0.0, 1.0]
    assert not result.is_point
    assert binned(np.array([7.0, 7.0]), np.array([7.0, 7.0])).is_point


@pytest.mark.parametrize("law", sorted(LAWS))
def test_an_empty_bin_has_no_probability_and_a_uniform_law_for_rows_that_fall_into_it(law):
    result = binned(np.array([0.0, 1.0, 6.0, 7.0]), np.array([0.0, 2.0, 5.0, 7.0]), law=law)
    assert np.exp(result.log_mass).tolist() == [0.5, 0.0, 0.5]
    assert result.means[1] == pytest.approx(3.5)
    assert mass_below(result, [2.0, 2.75, 5.0])[:, 1] == pytest.approx([0.0, 0.25, 1.0])


@pytest.mark.parametrize("edges", [[-np.inf, 0.0, 3.0], [0.0, 3.0, np.inf]])
def test_an_empty_bin_without_an_end_is_refused(edges):
    """No background value tells where a uniform law there should end."""
    with pytest.raises(InputError, match="bin"):
        binned(np.array([1.0, 2.0]), np.array(edges))


def test_a_uniform_law_in_an_open_bin_reaches_as_far_as_the_values():
    result = binned(np.array([1.0, 2.0, 5.0, 9.0]), np.array([-np.inf, 3.0, np.inf]), law="uniform")
    assert result.means.tolist() == [2.0, 7.0] or result.means == pytest.approx([2.0, 6.0])
    assert mass_below(result, [1.0, 9.0])[:, 0].tolist() == [0.0, 1.0]


def test_a_category_is_an_atom_and_so_is_nan():
    result = categorical(np.array([2.0, 0.0, 2.0, NAN]))
    assert result.cells.values[:2].tolist() == [0.0, 2.0]
    assert np.exp(result.log_mass).round(12).tolist() == [0.25, 0.5, 0.25]
    assert categorical(np.array([NAN, NAN])).is_point


def test_a_column_in_one_piece():
    x = np.array([1.0, 2.0, 4.0])
    assert unbinned(x).means == pytest.approx([x.mean()])
    assert unbinned(x, law="uniform").means == pytest.approx([2.5])
    assert unbinned(x, law="empirical").means == pytest.approx([x.mean()])
    assert unbinned(np.full(3, 5.0)).is_point
    for law in LAWS:
        partial = unbinned(np.array([1.0, NAN, 2.0, 4.0]), law=law)
        assert np.exp(partial.log_mass) == pytest.approx([0.75, 0.25])
        assert partial.means[0] == pytest.approx(2.5 if law == "uniform" else x.mean())
        assert np.isnan(partial.means[1])


@settings(max_examples=examples(60))
@given(strategies.backgrounds(sizes=(1,)), st.sampled_from(sorted(LAWS)), strategies.rngs)
def test_drawing_inverts_the_distribution_function(background, law, rng):
    """Cell by cell, P(X <= x(u)) = u: at continuous laws equal, at atoms the next step up."""
    (x,), (kind,) = background[0].T, background[1]
    present = x[~np.isnan(x)]
    if kind == "category":
        result = categorical(x)
    else:
        edges = np.array([present.min(), np.median(present), present.max()])
        edges = edges[[0, 2]] if edges[1] == edges[2] else edges
        result = binned(x, edges, law=law)
    level = rng.uniform(size=200)
    for cell in range(result.cells.count):
        drawn = result.quantile(np.full(level.size, cell), level)
        assert (result.cells.locate(drawn) == cell).all() or np.isnan(drawn).all() or law == "uniform"
        if np.isnan(drawn).any():
            assert np.isnan(drawn).all()
            continue
        below = mass_below(result, drawn)[:, cell]
        before = mass_below(result, np.nextafter(drawn, -np.inf))[:, cell]
        assert (below >= level - 1e-7).all()
        assert (before <= level + 1e-7).all()


def test_many_pieces_in_a_cell_are_drawn_in_proportion():
    values = np.array([1.0, 1.0, 1.0, 2.0, 7.0, 8.0, 8.0])
    result = binned(values, np.array([1.0, 5.0, 8.0]), law="empirical")
    level = (np.arange(300) + 0.5) / 300
    low, high = (
        result.quantile(np.zeros(300, dtype=int), level),
        result.quantile(np.ones(300, dtype=int), level),
    )
    assert [np.sum(low == v) for v in (1.0, 2.0)] == [225, 75]
    assert [np.sum(high == v) for v in (7.0, 8.0)] == [100, 200]
    mixed = np.array([0, 1] * 150)
    assert np.array_equal(result.quantile(mixed, level), np.where(mixed == 0, low, high))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: binned(np.arange(3.0), np.array([0.0, 2.0]), law="normal"), ["'truncnorm'", "'normal'"]),
        (lambda: marginals_from_bins([[0, 1]], [[0.5], [1.0]], [[1]]), ["means has 2", "edges has 1"]),
        (lambda: marginals_from_bins([[0, 1]], [[0.5]], [[1, 1]]), ["column 0", "stds", "(2,)"]),
        (lambda: marginals_from_bins([[0]], [[]], [[]]), ["column 0", "1 edges make 0 bins"]),
        (lambda: marginals_from_bins([[1, 0]], [[0.5]], [[1]]), ["column 0", "ascend"]),
        (lambda: marginals_from_bins([[0, NAN]], [[0.5]], [[1]]), ["column 0", "ascend"]),
        (lambda: marginals_from_bins([[0, 1]], [[NAN]], [[1]]), ["column 0", "finite"]),
        (lambda: marginals_from_bins([[0, 1]], [[0.5]], [[-1]]), ["column 0", "stds", ">= 0"]),
        (lambda: marginals_from_bins([[0, 1]], [[0.5]], [[np.inf]]), ["column 0", "stds finite"]),
        (lambda: marginals_from_bins([[0, 1]], [[0.5]], [[1]], frequencies=[[-1]]), [">= 0", "-1"]),
        (lambda: marginals_from_bins([[0, 1]], [[0.5]], [[1]], frequencies=[[0]]), ["all zero"]),
        (
            lambda: marginals_from_bins([[0, 1]], [[0.5]], [[1]], frequencies=[[1, 1]]),
            ["frequencies", "(2,)"],
        ),
        (lambda: marginals_from_bins([[0, 1]], [[0.5]], [[1]], frequencies=[[NAN]]), ["finite"]),
        (lambda: marginal(Levels(np.arange(2.0)), [1, 1], [(None, np.array([0, 0]))]), ["every cell"]),
    ],
)
def test_errors_say_what_is_wrong(build, words):
    with pytest.raises(InputError) as caught:
        build()
    for word in words:
        assert word in str(caught.value)


def test_a_line_without_a_square_does_not_overflow():
    line = Polynomial(np.array([[1.0, 2.0, 0.0]]), 0.0, np.zeros(1))
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(line(np.array([1e300, -1e300])), [[2e300, -2e300]])


def test_slices_of_a_law_of_several_pieces_have_its_probabilities():
    """A normal law, a cut one and two atoms in one cell, against their distribution functions."""
    means, stds = np.array([0.0, 3.0]), np.array([1.0, 0.5])
    lower, upper = np.array([-np.inf, 2.0]), np.array([np.inf, 5.0])
    pieces = GaussianPieces.truncated_normal(means, stds, lower, upper, weight=np.array([0.5, 0.3]))
    atoms = Atoms(np.array([1.0, 1.5]), np.array([0.1, 0.1]))
    owners = np.zeros(2, dtype=np.int64)
    law = marginal(BinCells(np.array([-np.inf, np.inf])), [1.0], [(pieces, owners), (atoms, owners)])
    column = sliced(SlopeColumn(law.laws, np.array([1.2])))
    edges = column.marginal.cells.edges

    second = stats.truncnorm(-2.0, 4.0, loc=3.0, scale=0.5)
    below = 0.5 * stats.norm.cdf(edges) + 0.3 * second.cdf(edges) + 0.1 * (edges >= 1) + 0.1 * (edges >= 1.5)
    assert len(edges) > 8
    np.testing.assert_allclose(column.probability, np.diff(below), rtol=1e-12)
    assert edges[column.cell[0]] < 1.2 <= edges[column.cell[0] + 1]
