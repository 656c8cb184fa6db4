"""Laws of many rows at once equal those of each row alone, for every kind of column, law and function."""

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
    {"bins": None, "law": "empirical"},
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
    model, matrix = explainer._model_at(rows)
    return model.family, matrix


@pytest.mark.parametrize("options", OPTIONS)
def test_columns_at_many_rows_are_those_of_each(table, options):
    family, rows = family_and_rows(table, options)
    together = Rows(family, rows, family.cells(rows))
    columns, index = together.columns, together.index
    designs = [family.at(row) for row in rows]
    inner = [design.in_units() for design in designs]
    numbers = together.features
    for name in ("inclusion", "variance", "at_instance", "log_weight"):
        for stacked, each in ((numbers.unscaled, designs), (numbers, inner)):
            expected = np.stack([getattr(design, name) for design in each])
            assert np.allclose(getattr(stacked, name), expected, rtol=EXACT, atol=1e-300), name
    assert np.array_equal(numbers.units, [design.units for design in designs])
    assert np.array_equal(numbers.slopes, [design.slopes for design in designs])
    assert numbers.slopes.any() == (options.get("bins", 0) is None)
    for function in FUNCTIONS.values():
        for j, column in enumerate(columns):
            mean, contrast = (numbers[index[:, j]] for numbers in column.functionals(function))
            for i, design in enumerate(inner):
                (m,), (c,) = design.coordinates[j].functionals(function)
                size = max(1.0, np.abs(m).max())
                assert np.allclose(mean[i], m, rtol=EXACT, atol=EXACT * size, equal_nan=True)
                largest = max(size, np.abs(c).max())
                assert np.allclose(contrast[i], c, rtol=EXACT, atol=EXACT * largest, equal_nan=True)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_row_has_the_same_bits_in_every_batch(table, options):
    family, rows = family_and_rows(table, options)
    cells = family.cells(rows)
    whole = Rows(family, rows, cells)
    for i in repeats(range(len(rows)), (0, 3, 8)):  # far out, with missing values, and an ordinary one
        one = Rows(family, rows[i : i + 1], cells[i : i + 1])
        for j, (column, law) in enumerate(zip(whole.columns, whole.index[i], strict=True)):
            for function in FUNCTIONS.values():
                together = column.basis(function)[:, law]
                alone = one.columns[j].basis(function)[:, one.index[0, j]]
                assert np.array_equal(alone, together, equal_nan=True)


def test_rows_share_laws_under_bin_weights_alone(table):
    assert family_and_rows(table, {})[0].by_cell
    assert not family_and_rows(table, {"weights": "euclidean"})[0].by_cell
    assert not family_and_rows(table, {"bins": None, "law": "empirical"})[0].by_cell


def test_slopes_differ_from_indicators(table):
    family, rows = family_and_rows(table[["normal", "skewed", "level"]], {"bins": None})
    kinds = [isinstance(column, SlopeColumn) for column in Rows(family, rows, family.cells(rows)).columns]
    assert kinds == [True, True, False]
