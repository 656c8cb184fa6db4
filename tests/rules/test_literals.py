"""Literals: from tables and back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from limes import Literals
from limes.exceptions import InputError


@pytest.fixture
def table():
    return pd.DataFrame(
        {
            "income": [20.0, 35.0, 50.0, 70.0, 90.0, 120.0, 60.0, 30.0],
            "proof": ["yes", "no", "yes", "yes", "no", "yes", "no", "yes"],
            "debt": [1, 2, 3, 4, 5, 6, 7, 8],
        }
    )


def test_bins_are_one_hot(table):
    literals = Literals.fit(table, bins=2)
    assert literals.names == (
        "income <= 55", "income > 55", "proof = no", "proof = yes", "debt <= 4.5", "debt > 4.5",
    )  # fmt: skip
    signs = literals.transform(table)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    for column in range(3):
        assert ((signs[:, literals.owners == column] > 0).sum(axis=1) == 1).all()
    assert np.array_equal(signs[:, 1] > 0, table.income > 55)


def test_thresholds_add_up(table):
    literals = Literals.fit(table, bins=4, encoding="thresholds")
    income = [name for name in literals.names if name.startswith("income")]
    assert len(income) == 3
    assert all(" > " in name for name in income)
    signs = literals.transform(table)
    assert (np.diff(signs[:, :3], axis=1) <= 0).all()


@pytest.mark.parametrize("encoding", ["bins", "thresholds"])
@pytest.mark.parametrize(
    "kind", [lambda t: t, pl.from_pandas, pa.Table.from_pandas, lambda t: t[["income", "debt"]].to_numpy()]
)
def test_literals_survive_transform_and_inverse(table, encoding, kind):
    background = kind(table)
    literals = Literals.fit(background, encoding=encoding)
    signs = literals.transform(background)
    back = literals.inverse_transform(signs)
    assert type(back) is type(background)
    assert np.array_equal(literals.transform(back), signs)


def test_missing_values_have_a_literal():
    x = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0, np.nan, np.nan], "b": ["u", "v", None, "u", "v", "u"]})
    for encoding in ("bins", "thresholds"):
        literals = Literals.fit(x, bins=2, encoding=encoding)
        assert "a is missing" in literals.names
        assert "b is missing" in literals.names
        signs = literals.transform(x)
        assert np.array_equal(signs[:, literals.names.index("a is missing")] > 0, x.a.isna())
        assert np.array_equal(literals.transform(literals.inverse_transform(signs)), signs)


def test_impossible_rows_are_refused(table):
    literals = Literals.fit(table, bins=2)
    both = np.ones((1, len(literals.names)))
    with pytest.raises(InputError, match="row 0: no value of column 'income'"):
        literals.inverse_transform(both)


def test_bad_literals_are_refused(table):
    literals = Literals.fit(table, bins=2)
    with pytest.raises(InputError, match=r"'income > 55' is 0\.5"):
        literals.inverse_transform([[-1, 0.5, 1, -1, 1, -1]])
    with pytest.raises(InputError, match="expected"):
        literals.inverse_transform([[1, -1]])
    with pytest.raises(InputError, match="encoding"):
        Literals.fit(table, encoding="bin")


def test_a_changed_column_takes_a_value_of_another_bin(table):
    literals = Literals.fit(table, bins=4)
    row = literals.table.encode(table)[0]
    near = literals.changes(row, 1.0)
    flips = near.law.flips(np.random.default_rng(0), 500)
    rows = near.rows(flips, np.random.default_rng(1))
    same = literals.cells(rows) == literals.cells(row[None])
    assert np.array_equal(same, ~flips)
    literals.inverse_transform(literals.transform(literals.table.decode(rows)))  # none is impossible
