"""Columns of names of every kind, at every door: each door must mean the column whose values the test knows.

The model is x_0 + 10 x_1 + 100 x_2 of the columns by position, and the values of a column lie around 0, 1000
and 2000, so that a column that was taken for another one is seen in the numbers.
"""

from __future__ import annotations

import datetime as dt
import enum
from fractions import Fraction

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest

import limes
from internals import AmbiguousNameError, Names, text_of
from limes.exceptions import InputError
from limes.scale import explain_frame

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


class Part(enum.Enum):
    HEAD, BODY, TAIL = range(3)


# The names of three columns, as a table has them
KINDS = {
    "texts": ["a", "b", "c"],
    "texts of digits": ["7", "8", "9"],
    "numbers from 0": [0, 1, 2],
    "numbers from 5": [5, 6, 7],
    "negative numbers": [-30, -20, -10],
    "numbers in another order": [2, 1, 0],
    "numbers from 1": [1, 2, 3],
    "fractions": [0.5, 1.5, 2.5],
    "truth values": [False, True, "c"],
    "dates": [dt.date(2024, 1, day) for day in (1, 2, 3)],
    "times": [*pd.date_range("2024-01-01", periods=3, tz="Europe/Zurich")],
    "tuples": pd.Index([("a", "x"), ("b", 2), ("c", None)], tupleize_cols=False),
    "levels": pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]),
    "intervals": pd.interval_range(0, 3),
    "periods": pd.period_range("2024-01", periods=3, freq="M"),
    "members": [*Part],
    "mixed": [4, "a", 2.5],
    "missing": [np.nan, "a", "b"],
    "durations": [*pd.to_timedelta([1, 2, 3], unit="D")],
    "ratios": [Fraction(1, 3), Fraction(2, 3), Fraction(4, 3)],
}
rng = np.random.default_rng(0)
VALUES = rng.integers(0, 4, size=(60, 3)) * 1.0 + [0, 1000, 2000]
EVERY = [(kind, j) for kind in KINDS for j in range(3)]


def model(rows):
    return np.asarray(rows, dtype=float) @ [1.0, 10.0, 100.0]


def frame(kind):
    return pd.DataFrame(VALUES, columns=KINDS[kind])


def names(kind):
    return [*frame(kind).columns]


def is_ambiguous(kind, j):
    name = names(kind)[j]
    is_whole = isinstance(name, int | np.integer) and not isinstance(name, bool)
    return is_whole and -3 <= name < 3 and name % 3 != j


def explainer(kind, **options):
    return limes.TabularExplainer(
        model, frame(kind), max_calls=128, control="none", contributions=False, **options
    )


@pytest.fixture(scope="module")
def explanations():
    return {kind: explainer(kind)(frame(kind).iloc[:5], progress=False) for kind in KINDS}


def column_of(values):
    """The position of the column whose values these are."""
    return int(np.nanmin(np.asarray(values, dtype=float)) // 1000)


# -- doors: each returns the position of the column that a name means ----------------------------------------


def held(kind, name, e):
    return (
        explainer(kind, hold=[name])(frame(kind).iloc[:1], progress=False)
        .coefficients.values[0]
        .tolist()
        .index(0.0)
    )


def held_alone(kind, name, e):
    return (
        explainer(kind, hold=name)(frame(kind).iloc[:1], progress=False)
        .coefficients.values[0]
        .tolist()
        .index(0.0)
    )


def categories(kind, name, e):
    conditions = explainer(kind, categorical=[name])(frame(kind).iloc[:1], progress=False).conditions[0]
    return [" = " in condition for condition in conditions].index(True)


def edges(kind, name, e):
    cuts = {name: [-9.0, *(c + 0.123 for c in (1, 1001, 2001)), 3000.0]}
    try:
        explainer(kind, bins=cuts)
    except AmbiguousNameError:
        raise
    except InputError as error:  # the empty bins are those of the other columns
        return next(j for j, label in enumerate(names(kind)) if repr(text_of(label)) in str(error))
    raise AssertionError("bins that no value lies in were accepted")


def excluded(kind, name, e):
    literals = limes.Literals.fit(frame(kind))
    rules = limes.SparseExplainer(model, literals=literals, k=2, samples=50, exclude=[name])
    return rules(frame(kind).iloc[:1], progress=False).coefficients.values[0].tolist().index(0.0)


def selected(kind, name, e):
    return column_of(e[kind][:, name].data)


def listed(kind, name, e):
    return column_of(e[kind][:, [name]].data)


def column_of_effect(values, one):
    """The position of the column whose effect in its cells these are; NaN where too few rows lie in one."""
    return [np.array_equal(values, its.values, equal_nan=True) for its in one.effects].index(True)


def effect(kind, name, e):
    return column_of_effect(e[kind][0].effects[name].values, e[kind][0])


def drawn_effect(kind, name, e):
    heights = [bar.get_height() for bar in e[kind][0].plot.effect(name).patches]
    return column_of_effect(heights, e[kind][0])


def dependence(kind, name, e):
    return column_of(e[kind].plot.dependence(name).collections[-1].get_offsets()[:, 0])


def coloured(kind, name, e):
    axes = e[kind].plot.dependence(text_of(names(kind)[0]), color=name)
    return column_of([c for c in axes.collections if c.get_array() is not None][-1].get_array())


def renamed(kind, name, e):
    labels = [t.get_text() for t in e[kind][0].plot.bar(names={name: "NEW"}).get_yticklabels()]
    order = np.argsort(-np.abs(e[kind].coefficients.values[0]), kind="stable")
    return int(order[["NEW" in label for label in labels].index(True)])


def reported(kind, name, e):
    row = int((e[kind].coefficients.values != 0).all(axis=1).argmax())  # a coefficient of 0 is no reason
    reasons = e[kind].reasons(3, {name: "SENTENCE"}, row=row)
    return e[kind].feature_names.index(next(r.feature for r in reasons if "SENTENCE" in r))


BY_POSITION_TOO = {
    "hold=[name]": held,
    "hold=name": held_alone,
    "categorical=": categories,
    "bins=": edges,
    "exclude=": excluded,
    "explanation[:, name]": selected,
    "explanation[:, [name]]": listed,
    "effects[name]": effect,
    "plot.effect": drawn_effect,
    "plot.dependence": dependence,
    "plot.dependence(color=)": coloured,
    "plot.bar(names=)": renamed,
    "reasons(catalogue)": reported,
}


@pytest.mark.parametrize("door", BY_POSITION_TOO)
def test_a_name_means_its_column_and_one_that_means_two_is_refused(door, explanations):
    wrong = []
    for kind, j in EVERY:
        name = names(kind)[j]
        try:
            position = BY_POSITION_TOO[door](kind, name, explanations)
        except AmbiguousNameError:
            position = "refused"
        finally:
            plt.close("all")
        if position != ("refused" if is_ambiguous(kind, j) else j):
            wrong.append((kind, name, position))
    assert not wrong


@pytest.mark.parametrize("door", BY_POSITION_TOO)
def test_the_text_of_a_name_always_means_its_column(door, explanations):
    for kind, j in EVERY:
        assert BY_POSITION_TOO[door](kind, text_of(names(kind)[j]), explanations) == j
        plt.close("all")


# -- doors of whole tables, which go by name alone -----------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_long_tables_are_matched_by_name(kind, explanations):
    table, its = frame(kind), explainer(kind)
    predictions = model(table)
    other = pd.concat([table[table.columns[::-1]], pd.DataFrame({"extra": [9e9] * 60})], axis=1)
    result = explain_frame(its, other)
    np.testing.assert_allclose(result["prediction"], predictions)
    for j, name in enumerate(names(kind)):
        np.testing.assert_allclose(
            result[f"value_{text_of(name)}"][:5], explanations[kind].coefficients.values[:, j], atol=1e-9
        )
        copied = explain_frame(its, other, keys=[name])
        assert column_of(copied.iloc[:, 0]) == j
        assert text_of(copied.columns[0]) == text_of(name)
    rows = other.iloc[:, :3]
    for row in (rows.iloc[[7]], rows.iloc[7], dict(zip(rows.columns, rows.iloc[7], strict=True))):
        np.testing.assert_allclose(its(row, progress=False).predictions, predictions[7])
    texts = rows.iloc[[7]].set_axis([*map(text_of, rows.columns)], axis=1)
    np.testing.assert_allclose(its(texts, progress=False).predictions, predictions[7])
    np.testing.assert_allclose(explain_frame(its, pl.from_pandas(texts))["prediction"], predictions[7])


@pytest.mark.parametrize("kind", KINDS)
def test_stored_explanations_know_columns_by_the_texts_of_their_names(kind, explanations):
    stored = limes.Explanation.from_json(explanations[kind].to_json())
    assert stored.feature_names == tuple(map(text_of, names(kind)))
    for j, name in enumerate(names(kind)):
        for chosen in (name, text_of(name)):
            if is_ambiguous(kind, j) and chosen is name:
                with pytest.raises(AmbiguousNameError, match="pass a text"):
                    stored[:, chosen]
            else:
                assert column_of(stored[:, chosen].data) == j


def test_numbers_are_positions_where_no_column_has_the_name(explanations):
    e = explanations["texts"]
    for j in range(-3, 3):
        assert column_of(e[:, j].data) == j % 3
        assert held("texts", j, explanations) == j % 3
        assert categories("texts", j, explanations) == j % 3
    with pytest.raises(IndexError, match="no feature 3"):
        e[:, 3]
    with pytest.raises(InputError, match="hold=3 is not a column"):
        explainer("texts", hold=[3])


def test_masks_are_no_names_and_names_no_masks(explanations):
    assert column_of(explanations["texts"][:, [False, False, True]].data) == 2
    e = explanations["truth values"]
    assert column_of(e[:, True].data) == 1
    assert column_of(e[:, [True]].data) == 1
    assert e[:, [True, False]].feature_names == ("True", "False")
    two = pd.DataFrame(VALUES[:, :2], columns=[True, False])
    of_two = limes.TabularExplainer(lambda X: X.iloc[:, 0].to_numpy(), two, max_calls=64)(two.iloc[:1])
    with pytest.raises(AmbiguousNameError, match="mask"):
        of_two[:, [False, True]]


def test_a_tuple_that_is_a_name_and_a_list_of_names_is_refused():
    columns = pd.Index(["a", "b", ("a", "b")], tupleize_cols=False)
    table = pd.DataFrame(VALUES, columns=columns)
    with pytest.raises(AmbiguousNameError, match="pass a list"):
        limes.TabularExplainer(model, table, hold=("a", "b"), max_calls=64)
    for hold, expected in (([("a", "b")], [2]), (["a", "b"], [0, 1])):
        its = limes.TabularExplainer(model, table, hold=hold, max_calls=256)(table.iloc[:1], progress=False)
        assert np.flatnonzero(its.coefficients.values[0] == 0).tolist() == expected


def test_words_that_are_numbers_leave_numbers_positions():
    lengths = limes.TextExplainer(lambda texts: [float(len(text)) for text in texts])
    e = lengths("2 rooms have 0 windows", progress=False)
    for j, word in enumerate(e.feature_names):
        assert e[:, j].feature_names == (word,)
    assert e[:, "0"].feature_names == ("0",)


def test_largest_features_are_positions_whatever_their_names(explanations):
    for kind in ("numbers in another order", "numbers from 1", "negative numbers"):
        e = explanations[kind]
        assert column_of(e.top(1).data) == int(np.abs(e.coefficients.values).sum(axis=0).argmax())


def test_no_option_is_no_name():
    """None is the default of options; a column of this name, or text, is named in a list."""
    for names in ([None, "a"], ["None", "a"]):
        table = pd.DataFrame(VALUES[:, :2], columns=pd.Index(names, dtype=object))
        options = {"max_calls": 64, "contributions": False}
        free = limes.TabularExplainer(lambda X: X.to_numpy(float) @ [1.0, 10.0], table, **options)
        held = limes.TabularExplainer(
            lambda X: X.to_numpy(float) @ [1.0, 10.0], table, hold=[None], **options
        )
        assert "hold" not in free(table.iloc[:1], progress=False).provenance
        assert held(table.iloc[:1], progress=False).provenance["hold"] == ["None"]


def test_a_mapping_of_bins_names_a_column_once():
    with pytest.raises(InputError, match="names the column '5' twice"):
        explainer("numbers from 5", bins={5: [-1.0, 1.5, 9.0], "5": [-1.0, 1.5, 9.0]})


def test_columns_of_one_name_are_refused_at_every_door():
    twice = pd.DataFrame(VALUES, columns=["a", "a", "c"])
    same_text = pd.DataFrame(VALUES, columns=[1, "1", "c"])
    good = explainer("texts")
    for table in (twice, same_text):
        for call in (
            lambda t=table: limes.TabularExplainer(model, t),
            lambda t=table: limes.Literals.fit(t),
            lambda t=table: limes.TablePart(background=t),
            lambda t=table: limes.MapleExplainer(model, t),
            lambda t=table: good(t),
        ):
            with pytest.raises(InputError, match=r"columns share a name: '[1a]'.*Rename them"):
                call()
    with pytest.raises(InputError, match="columns share a name: 'a'"):
        explain_frame(good, twice)


@pytest.mark.parametrize(
    ("cells", "advice"),
    [
        ([*pd.date_range("2024-01-01", periods=60, tz="Europe/Zurich")], "pandas.to_datetime(column)"),
        ([*pd.date_range("2024-01-01", periods=60)], "pandas.to_datetime(column)"),
        ([dt.datetime(2024, 1, 1) + dt.timedelta(i) for i in range(60)], "pandas.to_datetime(column)"),
        (
            [pd.Timestamp("2024-01-01", tz=("UTC", "Asia/Tokyo")[i % 2]) for i in range(60)],
            "pandas.to_datetime(column, utc=True)",
        ),
        ([*pd.to_timedelta(range(60), unit="h")], "pandas.to_timedelta(column)"),
    ],
)
def test_objects_that_are_times_have_advice_that_works(cells, advice):
    table = pd.DataFrame({"t": pd.Series(cells, dtype=object), "v": VALUES[:, 0]})
    with pytest.raises(InputError) as error:
        limes.TabularExplainer(lambda X: X["v"].to_numpy(), table, max_calls=64)
    assert advice in str(error.value)
    column = eval(advice, {"pandas": pd, "column": table["t"]})  # noqa: S307 - the advice itself
    mended = limes.TabularExplainer(lambda X: X["v"].to_numpy(), table.assign(t=column), max_calls=64)
    assert mended(table.assign(t=column).iloc[:1], progress=False).feature_names == ("t", "v")


@pytest.mark.parametrize(
    ("keys", "wanted", "positions"),
    [
        (["a", "b"], "b", [1]),
        ([1, True], True, [1]),
        ([1, True], 1, AmbiguousNameError),
        ([0.0, 1.0], 1, [1]),
        ([np.int64(4), 5], 4, [0]),
        (["4", "5"], 4, [0]),
        ([4, 5], "4", [0]),
        ([("a", 1)], ("a", np.int64(1)), [0]),
        ([("a", np.int64(1))], "('a', 1)", [0]),
        ([pd.Timestamp("2024-01-01")], np.datetime64("2024-01-01"), [0]),
        (["a", "a"], "a", [0, 1]),
        (["a"], 1.0, []),
        (["a"], -2, []),
        (["a"], ["a"], []),
        (["nan"], float("nan"), [0]),
    ],
)
def test_names_are_found_as_given_then_by_text_then_by_position(keys, wanted, positions):
    if positions is AmbiguousNameError:
        with pytest.raises(AmbiguousNameError):
            Names(keys).positions(wanted)
    else:
        assert Names(keys).positions(wanted) == positions
