"""Sums over many atoms are taken over few points: against the plain sums, for every kind of function."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from effort import examples
from internals import binned, columnwise, of_values

RNG = np.random.default_rng(0)


def law_of(x, bins):
    return of_values(binned(x, np.unique(np.nanquantile(x, np.linspace(0, 1, bins + 1)))), x)


def sample(kind, n, rng):
    return {
        "normal": rng.normal(size=n),
        "long tail": rng.lognormal(0, 2, n),
        "half is one value": np.where(rng.random(n) < 0.5, 1.5, rng.normal(size=n)),
        "few values": rng.integers(0, 9, n).astype(float),
        "missing": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        "far": 1e9 + rng.normal(size=n),
        "small": 1e-9 * rng.normal(size=n),
    }[kind]


KINDS = ["normal", "long tail", "half is one value", "few values", "missing", "far", "small"]


def families(x, rng, m):
    values = x[~np.isnan(x)]
    points = np.sort(rng.choice(values, m))
    unit, center = np.ptp(values) or 1.0, values.mean()
    missing = rng.random(m)
    yield "thresholds", columnwise.Interval(np.full(m, -np.inf), points, missing > 0.5)
    yield "intervals", columnwise.Interval(points - unit / 9, points, missing > 0.5)
    yield "empty intervals", columnwise.Interval(points, points - unit, missing > 0.5)
    yield "steps", columnwise.Step(points, rng.normal(size=(3, m + 1)), missing[:3])
    yield "bumps", columnwise.Filled(columnwise.Bump(points, 9.0 / unit**2), np.ones(m), missing)
    yield "narrow bumps", columnwise.Filled(columnwise.Bump(points, 1e6 / unit**2), np.ones(m), missing)
    yield "decays", columnwise.Filled(columnwise.Decay(points, 5.0 / unit), np.ones(m), missing)
    yield "lines", columnwise.Polynomial(rng.normal(size=(3, 3)), center, missing[:3])
    yield (
        "waves",
        columnwise.Filled(
            columnwise.SmoothFunctions(lambda x: np.sin(np.outer(np.arange(m), (x - center) / unit))),
            np.ones(m),
            missing,
        ),
    )
    bend = float(points[m // 2])
    yield (
        "bends",
        columnwise.Filled(
            columnwise.SmoothFunctions(lambda x: np.outer(np.arange(m), np.abs(x - bend) / unit), (bend,)),
            np.ones(m),
            missing,
        ),
    )


@settings(max_examples=examples(30))
@given(
    kind=st.sampled_from(KINDS),
    size=st.sampled_from([3, 70, 900, 6000]),
    bins=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_sums_are_those_over_all_values(kind, size, bins, seed):
    rng = np.random.default_rng(seed)
    x = sample(kind, size, rng)
    law = law_of(x, bins)
    cells = law.cells.locate(x)
    for name, function in families(x, rng, 60):
        values = function(x)
        some = np.unique(cells)
        plain = np.stack([values[:, cells == b].mean(axis=1) for b in some], axis=1)
        ours = law.expect(function)[:, some]
        assert np.abs(ours - plain).max() <= 1e-11 * max(np.abs(values).max(), 1e-300), name


@pytest.mark.parametrize("name", ["bumps", "waves", "bends", "thresholds", "steps"])
def test_points_are_few(name):
    rng = np.random.default_rng(1)
    x = rng.normal(size=50_000)
    atoms = law_of(x, 4).laws.many_atoms
    function = dict(families(x, rng, 60))[name]
    assert atoms.points(function).x.size < 5_000


def test_functions_without_values_between_atoms_take_the_atoms():
    x = np.arange(20_000.0)

    def at_whole_numbers(x):
        return np.outer(np.arange(1.0, 31.0), np.where(x == np.floor(x), x % 7, np.nan))

    law = law_of(x, 4)
    ours = law.expect(columnwise.SmoothFunctions(at_whole_numbers))
    cells = law.cells.locate(x)
    plain = np.stack([at_whole_numbers(x)[:, cells == b].mean(axis=1) for b in range(4)], axis=1)
    assert oracle.error(ours, plain) < oracle.ROUNDING


def test_cells_without_values_keep_their_law():
    x = np.concatenate([np.linspace(0, 1, 50), np.linspace(5, 6, 50)])
    edges = np.array([0.0, 2.0, 4.0, 6.0])
    law = of_values(binned(x, edges), x)
    assert np.exp(law.log_mass).tolist() == [0.5, 0.0, 0.5]
    line = columnwise.Identity()
    assert oracle.error(law.expect(line)[0], [0.5, 3.0, 5.5]) < oracle.ROUNDING
