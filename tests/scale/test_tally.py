"""Counts of parts add up to the counts of the table."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pyarrow as pa
import pytest

from internals import NOTHING, PartRecord, Tally


def table(values, errors=None):
    n = len(values)
    columns = {f"value_{name}": values[:, j] for j, name in enumerate("ab")}
    return pa.table({**columns, "error": pa.array(errors or [None] * n, pa.string())})


def tally(values):
    return Tally.count(table(values), "ab", len(values))


def test_mean_sizes_and_errors_are_those_of_all_rows():
    values = np.random.default_rng(0).normal(size=(50, 2))
    whole = reduce(add, map(tally, np.split(values, [10, 11, 30])), NOTHING)
    assert whole.mean_sizes == pytest.approx(dict(zip("ab", np.abs(values).mean(axis=0), strict=True)))
    assert (whole.rows, whole.errors, whole.outputs) == (50, 0, 1)
    wrong = Tally.count(table(values[:2], ["x", None]), "ab", 2)
    assert (wrong.errors, (whole + wrong).reason) == (1, "x")
    assert (whole + wrong).errors == 1


@pytest.mark.parametrize("n", [0, 1, 17, 1023])
def test_few_distinct_explanations_are_counted_one_by_one(n):
    values = np.repeat(np.random.default_rng(0).normal(size=(n, 2)), 3, axis=0)
    parts = map(tally, np.array_split(np.random.default_rng(1).permutation(values), 4))
    assert reduce(add, parts, NOTHING).distinct == (n, True)


@pytest.mark.parametrize("n", [1024, 5_000, 300_000])
def test_many_distinct_explanations_are_counted_to_a_few_per_cent(n):
    values = np.random.default_rng(n).normal(size=(n, 2))
    parts = map(tally, np.array_split(np.concatenate([values, values]), 5))
    result, counted = reduce(add, parts, NOTHING).distinct
    assert not counted
    assert result == pytest.approx(n, rel=4 / np.sqrt(1022))  # four standard errors


def test_minus_zero_is_zero():
    assert tally(np.array([[0.0, 1.0], [-0.0, 1.0]])).distinct == (1, True)


def test_rows_of_several_outputs_are_one_explanation():
    values = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [5.0, 6.0]])  # two rows, two outputs
    assert Tally.count(table(values), "ab", 2).distinct == (2, True)
    again = np.concatenate([values[:2], values[:2]])
    assert Tally.count(table(again), "ab", 2).distinct == (1, True)


def test_a_tally_survives_the_journal():
    record = PartRecord(3, "abc", tally(np.ones((2, 2))))
    assert PartRecord.from_json(record.to_json()) == record
