"""Times, durations, periods and decimals: the model gets cells of the column's own dtype.

The oracle is the same table with a column of numbers, made here by Python's own arithmetic: the explanation
of a function of the cells is that of the function of their numbers.
"""

from __future__ import annotations

import datetime as dt
import pickle
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import limes
from internals import Table
from limes.exceptions import CellError, InputError

rng = np.random.default_rng(0)
N = 300
X = rng.normal(size=N)
MINUTES = rng.integers(0, 700 * 1440, N)
DAYS = MINUTES // 1440
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
START = dt.datetime(2021, 3, 1)
TIMES = [START + dt.timedelta(minutes=int(m)) for m in MINUTES]
DATES = [(START + dt.timedelta(days=int(d))).date() for d in DAYS]
SPANS = [dt.timedelta(minutes=int(m)) - dt.timedelta(days=100) for m in MINUTES]
PRICES = [Decimal(int(m) % 70_000).scaleb(-2) for m in MINUTES]
QUARTERS = pd.PeriodIndex(DATES, freq="Q")
MADRID = pd.Series(TIMES).dt.tz_localize("UTC").dt.tz_convert("Europe/Madrid")


def number(cell):
    """Days since 1970, days, quarters since 1970, or an amount."""
    if isinstance(cell, pd.Period):
        return (cell.year - 1970) * 4 + cell.quarter - 1
    if isinstance(cell, dt.datetime):
        cell = cell if cell.tzinfo else cell.replace(tzinfo=dt.UTC)
        return (cell - EPOCH) / dt.timedelta(days=1)
    if isinstance(cell, dt.date):
        return (cell - EPOCH.date()).days
    return cell / dt.timedelta(days=1) if isinstance(cell, dt.timedelta) else float(cell)


def pandas(cells, dtype=None):
    return pd.DataFrame({"x": X, "t": pd.Series(cells, dtype=dtype)})


def polars(cells, dtype=None):
    return pl.DataFrame({"x": X, "t": pl.Series(cells, dtype=dtype)})


def arrow(cells, dtype):
    return pa.table({"x": X, "t": pa.array(cells, dtype)})


# a table, and the start of the condition of its fourth row
TABLES = {
    "pandas, microseconds": (pandas(TIMES), "20"),
    "pandas, nanoseconds": (pandas(TIMES, "datetime64[ns]"), "20"),
    "pandas, seconds": (pandas(TIMES, "datetime64[s]"), "20"),
    "pandas, a zone": (pandas(MADRID), "20"),
    "pandas, arrow's times": (pandas(TIMES, "timestamp[us][pyarrow]"), "20"),
    "pandas, arrow's zone": (pandas(MADRID.astype("timestamp[ms, tz=Europe/Madrid][pyarrow]")), "20"),
    "pandas, durations": (pandas(SPANS), ""),
    "pandas, periods": (pandas(QUARTERS), "Q"),
    "pandas, dates": (pandas(DATES), "20"),
    "pandas, arrow's dates": (pandas(DATES, "date32[pyarrow]"), "20"),
    "pandas, decimals": (pandas(PRICES), ""),
    "polars, times": (polars(TIMES), "20"),
    "polars, a zone": (polars(TIMES, pl.Datetime("ms", "Asia/Tokyo")), "20"),
    "polars, dates": (polars(DATES), "20"),
    "polars, durations": (polars(SPANS, pl.Duration("ms")), ""),
    "polars, decimals": (polars(PRICES, pl.Decimal(12, 2)), ""),
    "pyarrow, times": (arrow(TIMES, pa.timestamp("s")), "20"),
    "pyarrow, a zone": (arrow(TIMES, pa.timestamp("us", "UTC")), "20"),
    "pyarrow, a shift": (arrow(TIMES, pa.timestamp("us", "+05:30")), "20"),
    "pyarrow, dates": (arrow(DATES, pa.date32()), "20"),
    "pyarrow, durations": (arrow(SPANS, pa.duration("us")), ""),
    "pyarrow, decimals": (arrow(PRICES, pa.decimal128(12, 2)), ""),
}
TABLE = pytest.mark.parametrize(("table", "start"), TABLES.values(), ids=TABLES)


def cells_of(table):
    column = table["t"]
    return column.to_pylist() if isinstance(table, pa.Table) else column.to_list()


def dtype_of(table):
    return table["t"].type if isinstance(table, pa.Table) else table["t"].dtype


def row_of(table, i=3):
    return table.iloc[[i]] if isinstance(table, pd.DataFrame) else table[i : i + 1]


def answer(x, t):
    """A function of rows whose numbers t are around their middle, and not linear."""
    t = np.asarray(t, dtype=float)
    return np.sin(t / 90.0) + 0.3 * np.asarray(x) * (t > np.median(NUMBERS))


NUMBERS: list[float] = []
CALLS = {"max_calls": 1024, "contributions": False}


@TABLE
@pytest.mark.parametrize("options", [{}, {"bins": None}], ids=["bins", "slopes"])
def test_explained_as_the_numbers_of_the_cells(table, start, options):
    NUMBERS[:] = [number(cell) for cell in cells_of(table)]
    whole = isinstance(cells_of(table)[0], pd.Period | dt.date) and not isinstance(
        cells_of(table)[0], dt.datetime
    )
    digits = "12, 2" in str(dtype_of(table))  # a decimal of two digits
    seen = set()

    def of_cells(rows):
        seen.add(str(dtype_of(rows)))
        return answer(rows["x"], [number(cell) for cell in cells_of(rows)])

    def of_numbers(rows):
        t = rows["t"].to_numpy()
        return answer(rows["x"], np.round(t, 2 if digits else 0) if whole or digits else t)

    numbers = pd.DataFrame({"x": X, "t": np.array(NUMBERS, dtype=float)})
    explanation = limes.TabularExplainer(of_cells, table, **CALLS, **options)(row_of(table))
    expected = limes.TabularExplainer(of_numbers, numbers, **CALLS, **options)(row_of(numbers))
    assert seen == {str(dtype_of(table))}
    np.testing.assert_allclose(explanation.predictions, expected.predictions, rtol=1e-9)
    # periods and dates have edges between them: other bins, the same values in them
    if not whole or options:
        np.testing.assert_allclose(
            explanation.coefficients.values, expected.coefficients.values, rtol=2e-4, atol=1e-6
        )
    else:
        errors = np.hypot(explanation.coefficients.standard_errors, expected.coefficients.standard_errors)
        assert (
            np.abs(explanation.coefficients.values - expected.coefficients.values) < 5 * errors + 0.05
        ).all()
    assert np.abs(explanation.coefficients.values[0, 1]) > 5e-4
    if options != {"bins": None}:
        condition = explanation.conditions[0][1]
        assert "t" in condition.split()
        assert start in condition
    one = limes.TabularExplainer(of_cells, table, **CALLS, **options)({"x": X[3], "t": cells_of(table)[3]})
    np.testing.assert_array_equal(one.coefficients.values, explanation.coefficients.values)


@TABLE
def test_cells_come_back_as_they_were(table, start):
    """Each cell of the background, and missing cells, in the column's own dtype."""
    with_missing = [None if i % 7 == 0 else cell for i, cell in enumerate(cells_of(table))]
    if isinstance(table, pd.DataFrame):
        table = pandas(with_missing, table["t"].dtype)
    elif isinstance(table, pl.DataFrame):
        table = polars(with_missing, table["t"].dtype)
    else:
        table = arrow(with_missing, table["t"].type)
    learnt = Table.fit(table)
    back = learnt.decode(learnt.matrix)
    assert dtype_of(back) == dtype_of(table)
    missing = [bool(pd.isna(cell)) for cell in cells_of(table)]
    assert [bool(pd.isna(cell)) for cell in cells_of(back)] == missing
    pairs = zip(cells_of(table), cells_of(back), missing, strict=True)
    assert all(gone or before == after for before, after, gone in pairs)
    assert pickle.loads(pickle.dumps(learnt)).decode(learnt.matrix).equals(back)


def test_missing_times_are_a_cell():
    table = pandas([None if i % 3 == 0 else time for i, time in enumerate(TIMES)])
    explainer = limes.TabularExplainer(lambda q: q["t"].isna().to_numpy() * 2.0, table, max_calls=1024)
    explanation = explainer(table.iloc[[3]])
    assert explanation.conditions[0][1] == "t is missing"
    np.testing.assert_allclose(explanation.coefficients.values[0], [0.0, 2.0], atol=1e-7)
    assert explanation.data[0, 1] is None


def test_conditions_are_as_short_as_they_can_be():
    """A day where that tells the values apart, else minutes, seconds, microseconds; in the column's zone."""
    days = pd.date_range("2024-02-27", periods=8, freq="D")
    for times, expected in (
        (days, "t <= 2024-02-28"),
        (days + pd.Timedelta("90min"), "t <= 2024-02-28 19:30"),
        (pd.date_range("2024-02-27", periods=8, freq="min"), "t <= 2024-02-27 00:01"),
        (pd.date_range("2024-02-27", periods=8, freq="s"), "t <= 2024-02-27 00:00:01"),
        (days.tz_localize("America/New_York"), "t <= 2024-02-28"),
        (
            pd.date_range("2024-02-27", periods=8, freq="h", tz="America/New_York"),
            "t <= 2024-02-27 01:45-05:00",
        ),
        (pd.to_timedelta(range(8), unit="D"), "t <= 1 day"),
        (pd.to_timedelta(range(8), unit="min"), "t <= 0 days 00:01"),
        (pd.period_range("2024-02", periods=8, freq="M"), "t <= 2024-03"),
    ):
        table = pd.DataFrame({"t": times.repeat(5)})
        explainer = limes.TabularExplainer(lambda q: np.zeros(len(q)) + q["t"].notna(), table, max_calls=1024)
        assert explainer(table.iloc[[0]]).conditions[0][0] == expected
        assert (
            "t = "
            in limes.TabularExplainer(
                lambda q: np.zeros(len(q)), pd.DataFrame({"t": times[[0] * 5]}), max_calls=1024
            )(table.iloc[[0]]).conditions[0][0]
        )


def test_dates_are_never_rounded_into_another_bin():
    """A function of the bin alone has the same answer inside: the coefficient is exact."""
    table = pandas(DATES)
    cut = np.quantile(DAYS, 0.25)
    first = dt.date(2021, 3, 1) + dt.timedelta(days=int(np.floor(cut)))
    explainer = limes.TabularExplainer(
        lambda q: np.array([cell <= first for cell in q["t"]], dtype=float), table, max_calls=1024
    )
    row = int(np.argmin(DAYS))
    explanation = explainer(table.iloc[[row]])
    assert explanation.conditions[0][1] == f"t <= {first}"
    np.testing.assert_allclose(explanation.coefficients.values[0], [0.0, 1.0], atol=1e-9)


@pytest.mark.parametrize(
    ("table", "cell", "words", "advice"),
    [
        (
            pandas(TIMES),
            pd.Timestamp("2021-05-01", tz="UTC"),
            "has a time zone, unlike",
            dt.datetime(2021, 5, 1),
        ),
        (pandas(MADRID), dt.datetime(2021, 5, 1), "has no time zone", pd.Timestamp("2021-05-01", tz="UTC")),
        (
            pandas(TIMES),
            pd.Timestamp(1620000000000000001),
            r"dt\.round\('us'\)",
            pd.Timestamp(1620000000000000000),
        ),
        (pandas(TIMES), 18_000.5, "is no time of", "2021-05-01 12:00"),
        (pandas(TIMES), "May 1", "is no time of", "2021-05-01"),
        (pandas(SPANS), 3.0, "is no duration", dt.timedelta(days=3)),
        (pandas(DATES), dt.datetime(2021, 5, 1, 12), "is no date without a time", dt.date(2021, 5, 1)),
        (pandas(QUARTERS), pd.Period("2021-05", "M"), r"\.asfreq\('Q", pd.Period("2021-05", "M").asfreq("Q")),
        (
            pandas(PRICES),
            Decimal("0.12345678901234567890"),
            "is no decimal of fifteen digits",
            Decimal("0.12"),
        ),
        (pandas(PRICES), "0,5", "is no decimal", 0.5),
        (pandas(TIMES), None, "is missing, but the background has no missing", dt.datetime(2021, 5, 1)),
    ],
)
def test_other_cells_are_refused_and_the_advice_works(table, cell, words, advice):
    explainer = limes.TabularExplainer(lambda q: q["x"].to_numpy(), table, max_calls=1024)
    with pytest.raises(CellError, match=f"'t'.*{words}"):
        explainer({"x": 0.0, "t": cell})
    assert explainer({"x": 0.0, "t": advice}).predictions[0] == 0.0


def test_a_column_of_times_as_a_category_is_refused_with_advice():
    table = pandas(TIMES)
    with pytest.raises(InputError, match=r"'t' has dtype datetime64.*a number of days"):
        limes.TabularExplainer(lambda q: q["x"].to_numpy(), table, categorical=["t"])
    # the advice
    days = table.assign(t=(table["t"] - pd.Timestamp("1970-01-01")) / pd.Timedelta("1D"))
    assert limes.TabularExplainer(lambda q: q["x"].to_numpy(), days, categorical=["t"], max_calls=1024)


def test_rules_and_composites_write_dates():
    table = pandas(TIMES)
    literals = limes.Literals.fit(table)
    assert any(name.startswith("t <= 2021-") for name in literals.names)
    part = limes.TablePart(background=table)
    shown = part.parse(table.iloc[[3]])
    assert "t = 2021-" in shown.conditions[1] or "t = 2022-" in shown.conditions[1]
    assert shown.compose(np.array([[1, 0], [1, 1]]))["t"].dtype == table["t"].dtype


def test_infinite_cells_are_refused_and_the_advice_works():
    from sklearn.ensemble import HistGradientBoostingRegressor

    x = X.copy()
    x[:40] = np.inf
    table = pd.DataFrame({"x": x, "y": rng.normal(size=N)})
    with warnings.catch_warnings():  # differences of infinite values, in threads of scikit-learn
        warnings.filterwarnings("ignore", "invalid value encountered in subtract", RuntimeWarning)
        model = HistGradientBoostingRegressor(max_iter=20, learning_rate=0.5, random_state=0)
        model.fit(table, np.isinf(x) * 3.0 + table["y"])
    with pytest.raises(CellError, match=r"'x': inf is not finite.*number beyond all others.*missing="):
        limes.TabularExplainer(model, table)
    # a tree sends a number beyond all others the same way
    beyond = table.replace(np.inf, 1e9)
    np.testing.assert_array_equal(model.predict(beyond), model.predict(table))
    explanation = limes.TabularExplainer(model, beyond, missing=[1e9])(beyond.iloc[[3]])
    assert explanation.method == "exact"
    assert explanation.conditions[0][0] == "x is missing (1000000000)"
    np.testing.assert_allclose(explanation.coefficients.values[0, 0], 3.0, atol=0.2)  # trees are shrunk
    # by NaN, if it means missing
    gone = table.replace(np.inf, np.nan)
    assert (
        limes.TabularExplainer(lambda q: q["x"].isna() * 3.0, gone)(gone.iloc[[3]]).coefficients.values[0, 0]
        > 2.9
    )


@TABLE
def test_the_data_of_an_explanation_are_a_row(table, start):
    """Return what is shown of a row may be passed back: its cells, or their texts."""
    explainer = limes.TabularExplainer(lambda rows: np.asarray(rows["x"]) ** 2, table, **CALLS)
    expected = explainer(row_of(table))
    again = explainer(expected.data)
    assert again.conditions == expected.conditions
    np.testing.assert_array_equal(again.coefficients.values, expected.coefficients.values)
    np.testing.assert_array_equal(again.data, expected.data)


def test_texts_of_durations_and_periods_are_cells():
    seen = []
    spans = pandas(SPANS)
    explainer = limes.TabularExplainer(lambda rows: seen.append(rows["t"]) or rows["x"], spans, **CALLS)
    for text, span in {
        "-0 days 21:00": dt.timedelta(hours=-21),
        "1 day": dt.timedelta(days=1),
        "52 days 00:00:00": dt.timedelta(days=52),  # as pandas writes it
        "3 days 04:05:06.000007": dt.timedelta(days=3, hours=4, minutes=5, seconds=6, microseconds=7),
    }.items():
        seen.clear()
        explainer({"x": 1.0, "t": text})
        (cells,) = (cells for cells in seen if len(cells) == 1)  # others are rows that are asked again
        assert cells.iloc[0] == span
    for text in ("-1 days +03:00:00", "-1 day, 3:00:00", "52", "52 days 1:00"):
        with pytest.raises(CellError, match="is no duration"):
            explainer({"x": 1.0, "t": text})
    explainer = limes.TabularExplainer(lambda rows: rows["x"], pandas(QUARTERS), **CALLS)
    explainer({"x": 1.0, "t": "2021Q3"})
    for text in ("2021", "2021-07-01", "soon"):
        with pytest.raises(CellError, match="is no period"):
            explainer({"x": 1.0, "t": text})


@pytest.mark.parametrize(
    "values", [TIMES, DATES, SPANS, QUARTERS], ids=["times", "dates", "spans", "periods"]
)
def test_edges_are_cells_of_the_column(values):
    """As cells and as numbers: the same bins, whether of a list of all columns or of some by name."""
    table = pandas(values)
    middle = sorted(values)[N // 2]
    edges = {"cells": [-np.inf, middle, np.inf], "numbers": [-np.inf, float(number(middle)), np.inf]}
    explainers = [
        limes.TabularExplainer(lambda rows: rows["x"], table, bins=bins, **CALLS)
        for bins in ([None, edges["cells"]], {"t": edges["cells"]}, {"t": edges["numbers"]})
    ]
    first, *others = (explainer(row_of(table)) for explainer in explainers)
    sign = ">" if values[3] > middle else "<="
    assert first.conditions[0][1].startswith(f"t {sign} ")
    for other in others:
        assert other.conditions == first.conditions
        np.testing.assert_array_equal(other.coefficients.values, first.coefficients.values)


def test_edges_that_are_no_cells_are_refused():
    table = pandas(SPANS)
    for bins, words in {
        "an edge": ({"t": [-np.inf, "noon", np.inf]}, "the edge 'noon' of column 't' is no duration"),
        "a name": ({"T": [0, 1]}, r"'T' is not a column \(did you mean 't'"),
    }.values():
        with pytest.raises(InputError, match=words):
            limes.TabularExplainer(lambda rows: rows["x"], table, bins=bins)
