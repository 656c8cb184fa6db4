"""Laws of many rows at once are those of each row alone, for every kind of column, law and function."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import limes
from effort import repeats
from internals import (
    Bump,
    Decay,
    Filled,
    Identity,
    Interval,
    Polynomial,
    Power,
    Rows,
    Shape,
    SlopeColumn,
    SmoothFunctions,
    Stacked,
    Step,
    functionals,
)
from oracle import EXACT

FUNCTIONS = {
    "identity": Identity(),
    "powers": Power(np.array([0, 1, 2])),
    "polynomial": Polynomial(np.array([[1.0, 2.0, 0.5]]), 0.3, np.zeros(1)),
    "intervals": Interval(np.array([-np.inf, 0.1, 5.0]), np.array([0.2, 0.7, 6.0]), np.zeros(3, dtype=bool)),
    "steps": Step(np.array([-0.5, 0.0, 1.0]), np.arange(8.0).reshape(2, 4), np.zeros(2)),
    "bumps": Bump(np.array([-1.0, 0.5]), 3.0),
    "filled": Filled(Identity(), np.array([2.0]), np.zeros(1)),
    "decays": Decay(np.array([-1.0, 0.5]), 0.7),
    "curve": SmoothFunctions(lambda x: np.stack([np.tanh(x), np.abs(np.arctan(x - 0.3))]), (0.3,)),
    "filled curve": Filled(Shape(np.arctan), np.array([2.0]), np.zeros(1)),
    "stacked": Stacked((Identity(), Shape(np.arctan))),
}
OPTIONS = [
    {"weights": "euclidean"},
    {"weights": "euclidean", "bandwidth": 0.05},
    {"weights": "euclidean", "bandwidth": float("inf")},
    {"weights": "euclidean", "law": "uniform"},
    {"weights": "euclidean", "law": "empirical"},
    {"bins": None},
    {"bins": None, "bandwidth": 0.1},
]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "normal": rng.normal(size=80),
            "skewed": rng.exponential(size=80) * 1e6,
            "tied": np.repeat([0.0, 1.0, 2.0, 3.0], 20),
            "constant": np.ones(80),
            "level": rng.choice(["a", "b", "c"], size=80),
            "holes": np.where(rng.random(80) < 0.3, np.nan, rng.normal(size=80)),
            "holes of one": np.where(rng.random(80) < 0.3, np.nan, 2.0),
        }
    )


def family_and_rows(table, options):
    explainer = limes.TabularExplainer(lambda X: np.zeros(len(X)), table, **options)
    rows = table.sample(9, random_state=1).reset_index(drop=True)
    rows.loc[0, "normal"], rows.loc[1, "skewed"] = 8.0, -1e7  # far out
    for name in ("holes", "holes of one"):
        if name in rows:
            rows.loc[3:4, name], rows.loc[5, name] = np.nan, 2.0
    model, matrix = explainer.model_at(rows)
    return model.family, matrix


@pytest.mark.parametrize("options", OPTIONS)
def test_columns_at_many_rows_are_those_of_each(table, options):
    family, rows = family_and_rows(table, options)
    together = Rows(family, rows, family.cells(rows))
    columns = together.columns
    designs = [family.at(row) for row in rows]
    inner = [design.in_units() for design in designs]
    numbers = together.features
    for name in ("inclusion", "variance", "at_instance", "log_weight"):
        for stacked, each in ((numbers.features, designs), (numbers.inner, inner)):
            expected = np.stack([getattr(design, name) for design in each])
            assert np.allclose(getattr(stacked, name), expected, rtol=EXACT, atol=1e-300), name
    assert np.array_equal(numbers.units, [design.units for design in designs])
    assert np.array_equal(numbers.slopes, [design.slopes for design in designs])
    assert numbers.slopes.any() == (options.get("bins", 0) is None)
    assert family.is_tilted
    for function in FUNCTIONS.values():
        for j, column in enumerate(columns):
            basis = column.basis(function)
            mean, contrast = np.einsum("nab,mnb->anm", column.mixing, basis)
            for i, design in enumerate(inner):
                coordinate = design.coordinates[j]
                m, c = functionals(coordinate, coordinate.tabulate(function))
                size = max(1.0, np.abs(m).max())
                assert np.allclose(mean[i], m, rtol=EXACT, atol=EXACT * size, equal_nan=True)
                largest = max(size, np.abs(c).max())
                assert np.allclose(contrast[i], c, rtol=EXACT, atol=EXACT * largest, equal_nan=True)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_row_has_the_same_bits_in_any_company(table, options):
    family, rows = family_and_rows(table, options)
    cells = family.cells(rows)
    whole = Rows(family, rows, cells).columns

    def alone_at(i):
        return Rows(family, rows[i : i + 1], cells[i : i + 1])

    for i in repeats(range(len(rows)), (0, 3, 8)):  # far out, with missing values, and an ordinary one
        for one, column in zip(alone_at(i).columns, whole, strict=True):
            for function in FUNCTIONS.values():
                together, alone = column.basis(function)[:, i], one.basis(function)[:, 0]
                assert np.array_equal(alone, together, equal_nan=True)


def test_bin_weights_and_slopes_of_many_values_go_row_by_row(table):
    assert family_and_rows(table, {"weights": "euclidean"})[0].is_tilted
    assert not family_and_rows(table, {})[0].is_tilted
    assert family_and_rows(table, {"bins": None})[0].is_tilted
    assert not family_and_rows(table, {"bins": None, "law": "empirical"})[0].is_tilted


def test_slopes_are_told_from_indicators(table):
    family, rows = family_and_rows(table[["normal", "skewed", "level"]], {"bins": None})
    kinds = [isinstance(column, SlopeColumn) for column in Rows(family, rows, family.cells(rows)).columns]
    assert kinds == [True, True, False]
