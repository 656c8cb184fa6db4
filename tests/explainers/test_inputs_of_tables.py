"""Input of table explainers, and answers of functions: explained right, or refused with advice.

A function that tells whether a row is in the explained row's cell of column c has the coefficient 1 there and
0 elsewhere, whatever the law inside of the cells; cells are those of numpy's quartiles, or levels.
"""

from __future__ import annotations

from collections import namedtuple
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import limes
from limes.exceptions import InputError, ModelError

rng = np.random.default_rng(0)
N, ROW = 200, 3
A = rng.normal(size=N)
G = rng.choice(list("xyz"), N)
K = rng.integers(-3, 4, N)
OPTIONS = {"max_calls": 1024, "contributions": False}


def cell(numbers):
    """The quartile of the explained number: above the first end, up to the second."""
    numbers = np.asarray(numbers, dtype=float)
    edges = np.array([-np.inf, *np.nanquantile(numbers, [0.25, 0.5, 0.75]), np.inf])
    at = np.searchsorted(edges[1:-1], numbers[ROW])
    return edges[at], edges[at + 1]


def pandas(cells):
    return pd.DataFrame({"a": A, "c": cells})


def column(table):
    """Cells of the last column of any table, as objects or numbers."""
    if isinstance(table, pa.Table):
        return table["c"].to_pylist()
    if isinstance(table, pd.DataFrame | pl.DataFrame):
        return table[table.columns[-1]].to_list()
    table = table.toarray() if sp.issparse(table) else np.asarray(table)
    return table[:, -1].tolist()


def row_of(table):
    if isinstance(table, pd.DataFrame):
        return table.iloc[[ROW]]
    if isinstance(table, pl.DataFrame | pa.Table):
        return table[ROW : ROW + 1]
    return table.toarray()[ROW] if sp.issparse(table) else table[ROW]


NUMBERS = np.column_stack([A, K]).astype(float)
CATEGORIES = pd.Categorical(G, ["z", "y", "x"], ordered=True)
# tables whose last column is numbers
OF_NUMBERS = {
    "Int8": pandas(pd.array(K, "Int8")),
    "UInt64": pandas(pd.array(K + 3, "UInt64")),
    "Float32 with missing": pandas(pd.array([None if i % 5 == 0 else a for i, a in enumerate(A)], "Float32")),
    "int16[pyarrow]": pandas(pd.array(K, "int16[pyarrow]")),
    "objects of numbers": pandas([*map(int, K)]).astype({"c": object}),
    "sparse column": pandas(pd.arrays.SparseArray(K)),
    "float16": NUMBERS.astype(np.float16),
    "big-endian": NUMBERS.astype(">f8"),
    "fortran": np.asfortranarray(NUMBERS),
    "strided": np.repeat(NUMBERS, 2, axis=0)[::2],
    "longdouble": NUMBERS.astype(np.longdouble),
    "csc": sp.csc_array(NUMBERS),
    "lil": sp.lil_matrix(NUMBERS),
    "lists": NUMBERS.tolist(),
    "tuples": tuple(map(tuple, NUMBERS.tolist())),
    "numbers for names": pd.DataFrame(NUMBERS),
    "names of two levels": pd.DataFrame(NUMBERS, columns=pd.MultiIndex.from_tuples([("u", 1), ("u", 2)])),
    "polars, unsigned": pl.DataFrame({"a": A, "c": pl.Series(K + 3, dtype=pl.UInt8)}),
    "pyarrow, half": pa.table({"a": A, "c": pa.array(K.astype(np.float16))}),
}
# ... levels
OF_LEVELS = {
    "booleans with None": pandas([None if i % 5 == 1 else bool(k > 0) for i, k in enumerate(K)]),
    "string[pyarrow]": pandas(pd.array(G, "string[pyarrow]")),
    "ordered": pandas(CATEGORIES),
    "intervals": pandas(pd.cut(A, 3)),
    "numpy's texts": pandas(np.array([np.str_(g) for g in G], dtype=object)),
    "texts and numbers": pandas([g if i % 2 else int(k) for i, (g, k) in enumerate(zip(G, K, strict=True))]),
    "an array of texts": np.column_stack([np.where(A > 0, "p", "n"), G]),
    "polars, categories": pl.DataFrame({"a": A, "c": pl.Series(G).cast(pl.Categorical)}),
    "polars, enum": pl.DataFrame({"a": A, "c": pl.Series(G, dtype=pl.Enum(list("xyzw")))}),
    "pyarrow, dictionary": pa.table({"a": A, "c": pa.array(G).dictionary_encode()}),
}


def check(explanation):
    np.testing.assert_allclose(explanation.coefficients.values.reshape(2), [0.0, 1.0], atol=1e-7)
    np.testing.assert_allclose(explanation.predictions.ravel(), 1.0)


@pytest.mark.parametrize("table", OF_NUMBERS.values(), ids=OF_NUMBERS)
def test_tables_of_numbers(table):
    numbers = [np.nan if pd.isna(x) else float(x) for x in column(table)]
    low, high = cell(numbers)

    def inside(rows):
        values = np.array([np.nan if pd.isna(x) else float(x) for x in column(rows)])
        return ((low < values) & (values <= high)) * 1.0

    check(limes.TabularExplainer(inside, table, **OPTIONS)(row_of(table)))


@pytest.mark.parametrize("table", OF_LEVELS.values(), ids=OF_LEVELS)
def test_tables_of_levels(table):
    level = column(table)[ROW]

    def same(rows):
        return [0.0 if pd.isna(x) else float(x == level) for x in column(rows)]

    check(limes.TabularExplainer(same, table, **OPTIONS)(row_of(table)))


# Refused tables, the message, and the table after its advice
REFUSED = {
    "tuples in cells": (
        pandas([(1, g) for g in G]),
        r"'c' has dtype object, with \(1,",
        lambda t: t.c.map(str),
    ),
    "bytes": (
        pandas([g.encode() for g in G]),
        "'c' has dtype object, with b'",
        lambda t: t.c.str.decode("utf8"),
    ),
    "complex": (pandas(A * 1j), "'c' has dtype complex128|'c'.*complex", lambda t: np.abs(t.c)),
    "infinite": (
        pandas(np.where(A > 1, np.inf, A)),
        "inf is not finite.*by NaN",
        lambda t: t.c.where(t.c < 9),
    ),
    "beyond 2**53": (pandas(2**60 + K), "is beyond 2\\*\\*53.*rescale it", lambda t: t.c - 2**60),
}


@pytest.mark.parametrize(("table", "words", "advice"), REFUSED.values(), ids=REFUSED)
def test_tables_that_are_refused_and_their_advice(table, words, advice):
    with pytest.raises(InputError, match=words):
        limes.TabularExplainer(lambda rows: np.zeros(len(rows)), table)
    test = test_tables_of_numbers if advice(table).dtype.kind in "iuf" else test_tables_of_levels
    test(pandas(advice(table)))


def test_arrays_with_named_fields():
    record = np.rec.fromarrays([A, K], names="a,c")
    with pytest.raises(InputError, match=r"has named fields \['a', 'c'\]: pass pandas.DataFrame"):
        limes.TabularExplainer(lambda rows: np.zeros(len(rows)), record)
    test_tables_of_numbers(pd.DataFrame(record))


# -- answers -------------------------------------------------------------------------------------------------

LOW, HIGH = cell(K)
TABLE = pandas(K.astype(float))
Pair = namedtuple("Pair", "inside outside")


def inside(rows):
    return ((rows["c"] > LOW) & (rows["c"] <= HIGH)).to_numpy() * 1.0


# answers of one number, or of two, the second 1 less the first, with their names
ANSWERS = {
    "a shuffled series": (lambda y: pd.Series(y, index=range(len(y))[::-1]), None),
    "a list": (list, None),
    "polars": (pl.Series, None),
    "pyarrow": (pa.array, None),
    "chunks": (lambda y: pa.chunked_array([y]), None),
    "booleans": (lambda y: y > 0, None),
    "float16": (lambda y: y.astype(np.float16), None),
    "Int64": (lambda y: pd.array(y.astype(int), "Int64"), None),
    "decimals": (lambda y: [Decimal(str(v)) for v in y], None),
    "a scalar of one row": (lambda y: float(y[0]) if len(y) == 1 else y, None),
    "scalars of arrays": (lambda y: [np.array(v) for v in y], None),
    "two columns": (lambda y: np.column_stack([y, 1 - y]), ("0", "1")),
    "sparse": (lambda y: sp.csr_array(np.column_stack([y, 1 - y])), ("0", "1")),
    "a frame": (lambda y: pd.DataFrame({"in": y, "out": 1 - y}), ("in", "out")),
    "a frame of polars": (lambda y: pl.DataFrame({"in": y, "out": 1 - y}), ("in", "out")),
    "a table of pyarrow": (lambda y: pa.table({"in": y, "out": 1 - y}), ("in", "out")),
    "a mapping": (lambda y: {"in": y, "out": 1 - y}, ("in", "out")),
    "mappings": (lambda y: [{"out": 1 - v, "in": v} for v in y], ("in", "out")),
    "a named tuple": (lambda y: Pair(y, 1 - y), ("inside", "outside")),
    "a mapping of mappings": (lambda y: {"p": {"in": y, "out": 1 - y}}, ("in", "out")),
}


@pytest.mark.parametrize(("form", "names"), ANSWERS.values(), ids=ANSWERS)
def test_answers(form, names):
    explanation = limes.TabularExplainer(lambda rows: form(inside(rows)), TABLE, **OPTIONS)(row_of(TABLE))
    if names is None:
        check(explanation)
        return
    assert explanation.output_names == names
    check(explanation[..., names[0]])
    np.testing.assert_allclose(explanation[..., names[1]].coefficients.values.ravel(), [0.0, -1.0], atol=1e-7)


REFUSED_ANSWERS = {
    "a generator": (lambda y: (v for v in y), "returned a generator: return a list", list),
    "a map": (lambda y: map(float, y), r"returned a map: return a list of its numbers, list\(", list),
    "None": (lambda y: None, "returned None: is a return missing", lambda y: y),
    "complex": (lambda y: y * 1j, r"numpy\.abs", lambda y: np.abs(y * 1j)),
    "numbers as texts": (
        lambda y: [str(v) for v in y],
        "convert the texts by float",
        lambda y: [*map(float, y)],
    ),
    "masked": (lambda y: np.ma.masked_less(y, 0.5), r"masked numbers: return \.filled", lambda y: y),
    "durations": (
        lambda y: pd.to_timedelta(y, unit="D"),
        "return numbers, such as of days",
        lambda y: pd.to_timedelta(y, unit="D") / pd.Timedelta("1D"),
    ),
    "outputs first": (
        lambda y: np.stack([y, y, y]),
        r"expected \(\d+,\) or \(\d+, outputs\)",
        lambda y: np.stack([y, y, y]).T[:, 0],
    ),
    "infinite": (lambda y: np.log(y), "must be finite", lambda y: np.log(y + 1) / np.log(2)),
    "too few": (lambda y: y[:-1], r"and returned shape \(\d+,\); expected", lambda y: y),
    "no column": (lambda y: np.zeros((len(y), 0)), r"returned shape \(\d+, 0\); expected", lambda y: y),
    "other labels": (
        lambda y: [{"in": v} if v else {"out": v} for v in y],
        "return all labels for every row|return the same columns in each call",
        lambda y: y,
    ),
}


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(("form", "words", "advice"), REFUSED_ANSWERS.values(), ids=REFUSED_ANSWERS)
def test_answers_that_are_refused_and_their_advice(form, words, advice):
    with pytest.raises(ModelError, match=words):
        limes.TabularExplainer(lambda rows: form(inside(rows)), TABLE, **OPTIONS)(row_of(TABLE))
    check(limes.TabularExplainer(lambda rows: advice(inside(rows)), TABLE, **OPTIONS)(row_of(TABLE)))
