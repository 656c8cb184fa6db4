"""One-dimensional integrals against panels in extended precision, at every extreme that a table can offer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import truncnorm

import oracle
import strategies
from effort import crossed, examples
from internals import GaussianPieces, gaussian_area, gaussian_moment
from oracle import EXACT

# mean, std, lower, upper: a bin far out in both tails, a sliver, half a line, a flat law, an ordinary one
PIECES = {
    "ordinary": (0.3, 1.2, -1.0, 2.0),
    "whole line": (0.3, 1.2, -np.inf, np.inf),
    "half line": (0.3, 1.2, 1.0, np.inf),
    "other half": (0.3, 1.2, -np.inf, -1.0),
    "40 sigma out": (0.0, 1.0, 40.0, 41.0),
    "10,000 sigma out": (0.0, 1.0, 1e4, 1e4 + 1.0),
    "10,000 sigma below": (0.0, 1e-3, -11.0, -10.0),
    "half line 10,000 sigma out": (0.0, 1e-4, 1.0, np.inf),
    "sliver": (0.5, 1.0, 0.5, 0.5 + 1e-9),
    "sliver in the tail": (0.0, 1.0, 5.0, 5.0 + 1e-9),
    "nearly flat": (0.3, 1e6, -1.0, 2.0),
    "flat": (0.3, np.inf, -1.0, 2.0),
    "needle": (0.3, 1e-6, -1.0, 2.0),
    "needle at an end": (-1.0, 1e-6, -1.0, 2.0),
    "mean outside, near": (3.0, 0.5, -1.0, 2.0),
}


def piece(mean, std, lower, upper):
    arguments = (np.array([float(v)]) for v in (mean, std, lower, upper))
    return GaussianPieces.truncated_normal(*arguments, weight=np.ones(1))


def grid(case, *, tilt=None, breaks=()):
    """Points, and the masses that multiplication by a bump leaves on them; without one they add up to 1."""
    x, log_mass = oracle.cell_points(*case, log_weight=tilt, breaks=breaks)
    mass = np.exp(log_mass)
    return x, mass / mass.sum() if tilt is None else mass


def average(x, mass):
    """Mean of x from offsets: far from 0, products of x itself lose the digits of its spread."""
    return x[0] + (mass * (x - x[0])).sum() / mass.sum()


def places(case, rng):
    """Where an interval or a bump may sit: around the mass of the piece, at its ends, outside."""
    x, mass = grid(case)
    mean = float(average(x, mass))
    std = float(np.sqrt((mass * (x - mean) ** 2).sum()))
    ends = [v for v in case[2:] if np.isfinite(v)]
    near = mean + std * rng.normal(size=6)
    return np.array([*near, *ends, mean, mean + 10 * std]), std


@pytest.mark.parametrize("case", PIECES.values(), ids=PIECES.keys())
def test_mean_and_variance(case):
    x, mass = grid(case)
    result = piece(*case)
    mean = average(x, mass)
    variance = (mass * (x - mean) ** 2).sum()
    assert abs(result.mean[0] - mean) <= EXACT * np.sqrt(variance) + np.spacing(abs(float(mean)))
    assert oracle.error(result.variance[0], variance) < EXACT


@pytest.mark.parametrize("case", PIECES.values(), ids=PIECES.keys())
def test_interval_mass(case):
    result = piece(*case)
    where, _ = places(case, np.random.default_rng(0))
    bounds = np.array([-np.inf, *where, np.inf])
    lower, upper = (m.ravel() for m in np.meshgrid(bounds, bounds, indexing="ij"))
    x, mass = grid(case, breaks=where)
    expected = [mass[(a < x) & (x <= b)].sum() for a, b in zip(lower, upper, strict=True)]
    got = result.interval(lower, upper)[:, 0]
    assert np.abs(got - np.array(expected, dtype=float)).max() < EXACT * 1e-2
    assert (got >= 0).all()
    assert (got[lower >= upper] == 0).all()


def test_interval_mass_far_out_keeps_its_digits():
    """The share of the last tenth of a bin 40 sigma out is exp(-36), and known to nine digits."""
    result = piece(0.0, 1.0, 40.0, 41.0).interval(np.array([40.9]), np.array([np.inf]))[0, 0]
    _, tail = oracle.panels(oracle.normal(0.0, 1.0), 40.9, 41.0)
    _, whole = oracle.panels(oracle.normal(0.0, 1.0), 40.0, 41.0)
    assert oracle.error(result, np.exp(oracle.log_sum(tail) - oracle.log_sum(whole))) < EXACT


@pytest.mark.parametrize(("case", "scale"), crossed(PIECES.values(), [1e-3, 1.0, 1e3]))
def test_bump(case, scale):
    """A bump is a weight: the mass that it leaves, and the first moment of what is left."""
    result = piece(*case)
    where, std = places(case, np.random.default_rng(1))
    width = scale * std
    got = result.bump(where, 1 / width**2)[:, 0]
    origin = result.mean
    moment = result.centred(origin).bump(where, 1 / width**2)[:, 0]
    for center, value, first in zip(where, got, moment, strict=True):
        x, mass = grid(case, tilt=oracle.Smooth(center, width))
        expected = mass.sum()
        if expected < 1e-250:
            assert value < 1e-240
            continue
        # the exponent -distance²/2 and the place of the centre, both rounded
        distance = float(np.abs(x - center).min() / width)
        slack = 16 * np.finfo(float).eps * (1 + distance) * (1 + distance + abs(center) / width)
        assert oracle.error(value, expected) < max(EXACT, slack)
        offset = float((mass * (x - origin[0])).sum())
        size = float(np.sqrt(expected * (mass * (x - origin[0]) ** 2).sum()))
        slack += 4 * np.spacing(abs(origin[0])) / std
        assert abs(first - offset) <= (EXACT + slack) * size


@settings(max_examples=examples(60))
@given(strategies.rngs, st.sampled_from(sorted(PIECES)))
def test_a_product_of_products_is_a_product(rng, name):
    """Times one bump and then another is times both, in any order."""
    base = piece(*PIECES[name])
    where, std = places(PIECES[name], rng)
    (a, b), (p, q) = rng.choice(where, 2), (rng.uniform(0.2, 3, 2) * std) ** -2.0
    first, log_first = base.times(a, p)
    both, log_second = first.times(b, q)
    other, log_other = base.times(b, q)
    swapped, log_swapped = other.times(a, p)
    total, again = log_first + log_second, log_other + log_swapped
    ends = np.abs([base.anchor[0], a, b]).max()
    slack = 1e-13 * (1 + np.abs(total).max()) * (1 + ends / std)
    assert np.abs(total - again).max() < slack
    assert np.abs(both.mean - swapped.mean).max() < slack * std


@pytest.mark.parametrize("case", PIECES.values(), ids=PIECES.keys())
def test_identity_and_centred_identity(case):
    result = piece(*case)
    x, mass = grid(case)
    assert oracle.error(result.identity()[0, 0], (x * mass).sum(), float(np.abs(x).max())) < EXACT
    origin = np.array([0.7])
    expected = ((x - origin) * x * mass).sum()
    size = float(np.abs((x - origin) * x).max())
    assert oracle.error(result.centred(origin).identity()[0, 0], expected, size) < EXACT


@pytest.mark.parametrize("case", PIECES.values(), ids=PIECES.keys())
def test_first_moments_of_intervals(case):
    result = piece(*case)
    where, std = places(case, np.random.default_rng(2))
    x, mass = grid(case, breaks=where)
    lower, upper = (
        np.concatenate([[-np.inf] * where.size, where]),
        np.concatenate([where, [np.inf] * where.size]),
    )
    got = result.centred(result.mean).interval(lower, upper)[:, 0]
    offset = mass * (x - result.mean[0])
    expected = [offset[(a < x) & (x <= b)].sum() for a, b in zip(lower, upper, strict=True)]
    # a bound is rounded to the spacing of numbers there, and so is the mean
    slack = 4 * np.spacing(float(np.abs(x).max())) / std
    assert np.abs(got - np.array(expected, dtype=float)).max() < (EXACT + slack) * std


@pytest.mark.parametrize("name", ["ordinary", "half line", "40 sigma out", "flat", "sliver"])
def test_quadrature_of_a_callable(name):
    case = PIECES[name]
    result = piece(*case)
    x, mass = grid(case)
    for shape in (np.cos, np.ones_like, lambda v: v**3 - v, lambda v: 0 * v + 2.0):
        expected = (shape(x) * mass).sum()
        size = float(np.abs(shape(x)).max())
        assert oracle.error(result.quadrature(shape, ())[0, 0], expected, size) < EXACT
        assert (
            oracle.error(result.quadrature(shape, (0.1, 1e9, np.inf, -np.inf))[0, 0], expected, size) < EXACT
        )


@pytest.mark.parametrize("case", PIECES.values(), ids=PIECES.keys())
def test_quantiles_undo_the_distribution_function(case):
    result = piece(*case)
    level = np.array([1e-12, 1e-3, 0.2, 0.5, 0.9, 1 - 1e-9])
    x = result.quantile(np.zeros(level.size, dtype=np.int64), level)
    assert np.isfinite(x).all()
    assert (np.diff(x) >= 0).all()
    assert ((x >= case[2]) & (x <= case[3])).all()
    back = result.interval(np.full(level.size, -np.inf), x)[:, 0]
    # x itself is rounded: that moves the level by its spacing over the width of the law
    width = np.sqrt(result.variance[0])
    # and scipy's own quantiles have six digits at 10,000 sigma: enough to draw from
    slack = 1e-5 + 4 * np.spacing(np.abs(x).max()) / width
    assert np.abs(back - level).max() < slack


@pytest.mark.parametrize("name", ["10,000 sigma out", "half line 10,000 sigma out", "needle", "sliver"])
def test_quantiles_are_spread_as_the_law_is(name):
    result = piece(*PIECES[name])
    level = (np.arange(4000) + 0.5) / 4000
    x = result.quantile(np.zeros(level.size, dtype=np.int64), level)
    assert x.mean() == pytest.approx(result.mean[0], abs=0.01 * np.sqrt(result.variance[0]))
    assert x.std() == pytest.approx(np.sqrt(result.variance[0]), rel=0.02)


@settings(max_examples=examples(200))
@given(strategies.rngs)
def test_area_and_moment_of_one_sided_pieces(rng):
    """∫ exp(-s t - p t²/2) for slopes and precisions over twelve orders of magnitude."""
    precision = 10 ** rng.uniform(-6, 6)
    slope = np.sqrt(precision) * 10 ** rng.uniform(-6, 6)
    slope = 0.0 if rng.random() < 0.2 else slope
    unit = 1 / (slope + np.sqrt(precision))
    start, width = (0.0 if rng.random() < 0.5 else unit * rng.uniform(0, 5)), unit * 10 ** rng.uniform(-8, 2)
    start, end = np.float64(start), np.float64(start + width)
    if end <= start:
        return

    def log_density(t):
        t = np.asarray(t, dtype=np.longdouble)
        return -t * (slope + 0.5 * precision * t)

    t, log_mass = oracle.panels(log_density, start, end)
    mass = np.exp(log_mass)
    arrays = [np.array([v]) for v in (start, end, slope, precision)]
    assert oracle.relative_errors(gaussian_area(*arrays)[0], mass.sum()) < EXACT
    mirrored = [np.array([v]) for v in (-end, -start, -slope, precision)]
    assert oracle.relative_errors(gaussian_area(*mirrored)[0], mass.sum()) < EXACT
    area, moment = gaussian_moment(*arrays)
    assert oracle.relative_errors(area[0], mass.sum()) < EXACT
    assert gaussian_moment(*mirrored)[1][0] == -moment[0]
    # 1 - slope · area cancels where the slope is steep
    slack = 512 * np.finfo(float).eps * (1 + slope**2 / precision)
    assert oracle.relative_errors(moment[0], (mass * t).sum()) < max(EXACT, slack)


@pytest.mark.parametrize("lower", [-np.inf, -40.0, -3.0, -1e-9, 0.5, 30.0])
@pytest.mark.parametrize("width", [1e-9, 0.1, 3.0, np.inf])
def test_quantiles_of_a_truncated_normal(lower, width):
    """As scipy's truncnorm has them."""
    upper = 4.0 if lower == -np.inf else lower + width
    level = np.array([1e-9, 0.1, 0.5, 0.9, 1.0 - 1e-6])
    numbers = [np.array([v]) for v in (0.0, 1.0, lower, upper)]
    piece = GaussianPieces.truncated_normal(*numbers, weight=np.ones(1))
    result = piece.quantile(np.zeros(5, dtype=np.int64), level)
    # narrow pieces: a place has as many digits as the numbers around it
    np.testing.assert_allclose(result, truncnorm.ppf(level, lower, upper), rtol=1e-9, atol=1e-15)
    assert (np.diff(result) >= 0).all()
