from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import limes
from internals import Explanation, UnknownNameError, from_fields
from limes.exceptions import InputError
from samples import CLASSES, NAMES, explanation, fields

ARRAYS = ("values", "standard_errors", "intercepts", "predictions", "surrogate_predictions")
ARRAYS += ("fidelity", "data", "calls", "row_converged")


def array_of(explanation, name):
    return getattr(explanation if name in ("predictions", "data") else explanation.coefficients, name)


def same(one: Explanation, other: Explanation) -> bool:
    texts = ("feature_names", "output_names", "conditions", "row_warnings", "method", "reason")
    return all(
        array_of(one, name).tobytes() == array_of(other, name).tobytes()
        and array_of(one, name).shape == array_of(other, name).shape
        for name in ARRAYS
        if name != "data"
    ) and all(getattr(one, name) == getattr(other, name) for name in (*texts, "provenance"))


@pytest.mark.parametrize("k", [None, 1, 3])
def test_shapes_follow_the_values(k):
    e = explanation(4, k)
    outputs = () if k is None else (k,)
    assert len(e) == 4
    assert e.coefficients.values.shape == e.coefficients.standard_errors.shape == (4, 10, *outputs)
    assert e.coefficients.intercepts.shape == e.predictions.shape == e.fidelity.shape == (4, *outputs)
    assert e.data.shape == (4, 10)
    assert e.output_names == (("progression",) if k is None else CLASSES[:k])


def test_lists_become_tuples_and_float64_arrays():
    e = explanation(2, values=np.ones((2, 10), dtype=np.float32).tolist())
    assert e.coefficients.values.dtype == np.float64
    assert isinstance(e.feature_names, tuple)
    assert isinstance(e.conditions[0], tuple)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_read_only_copies(name):
    arguments = fields(2)
    e = from_fields(**arguments)
    with pytest.raises(ValueError, match="read-only"):
        array_of(e, name)[0] = 0
    arguments["values"][:] = -7.0
    assert not (e.coefficients.values == -7.0).any()


def test_fields_and_provenance_do_not_change_with_the_arguments():
    arguments = fields(1)
    e = from_fields(**arguments)
    arguments["provenance"]["bandwidth"] = 0.0
    assert e.provenance["bandwidth"] == 2.37
    with pytest.raises(AttributeError):
        e.method = "sampled"


def test_cells_become_plain_python_values():
    cells = [np.float32(0.5), np.int64(3), np.bool_(True), np.str_("a"), None, float("nan")]
    cells += [np.datetime64("2024-02-29"), np.datetime64("NaT", "D"), np.longdouble(1.5), b"x"]
    e = explanation(data=[cells])
    plain = e.data[0].tolist()
    assert plain[:5] == [0.5, 3, True, "a", None]
    assert np.isnan(plain[5])
    assert plain[6:] == ["2024-02-29", None, 1.5, "b'x'"]
    assert {type(v) for v in plain} == {float, int, bool, str, type(None)}


def test_pandas_missing_values_become_none():
    pd = pytest.importorskip("pandas")
    e = explanation(d=3, data=pd.DataFrame([[pd.NA, pd.NaT, pd.Timestamp("2024-02-29")]]))
    assert e.data[0].tolist() == [None, None, "2024-02-29 00:00:00"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": [1.0, 2.0]}, r"values has shape \(2,\); pass \(rows, features\)"),
        ({"values": [[1.0], [2.0, 3.0]]}, "values is ragged"),
        ({"values": [["a"] * 10]}, "values is of type <U1; pass numbers"),
        ({"intercepts": [[1.0]]}, r"pass intercepts with the shape \(1,\)"),
        ({"standard_errors": np.full((1, 10), -1.0)}, "negative"),
        ({"data": [[1.0]]}, r"pass data with the shape \(1, 10\)"),
        ({"calls": [1.5]}, "calls is of type float64; pass whole numbers"),
        ({"row_converged": [1]}, "pass truth values"),
        ({"feature_names": NAMES[:9]}, "feature_names has 9 entries; pass 10"),
        ({"feature_names": "abcdefghij"}, "pass a list"),
        ({"feature_names": range(10)}, r"feature_names\[0\] is 0; pass a text"),
        ({"output_names": ["a", "b"]}, "output_names has 2 entries; pass 1"),
        ({"conditions": [["a"]]}, r"conditions\[0\] has 1 entries; pass 10"),
        ({"row_warnings": []}, "row_warnings has 0 entries; pass 1"),
        ({"row_warnings": ["careful"]}, r"row_warnings\[0\] is 'careful'; pass a list"),
        ({"method": "guessed"}, "method='guessed' is not known"),
        ({"reason": None}, "reason is None; pass a text"),
        ({"provenance": {"law": {1, 2}}}, r"provenance\['law'\] is of type set"),
        ({"provenance": {1: 2}}, "provenance has the key 1"),
        ({"provenance": {"a": [{"$float": 1}]}}, r"provenance\['a'\]\[0\] has the key '\$float'"),
        ({"provenance": [1]}, "pass a dictionary"),
    ],
)
def test_fields_of_another_shape_are_refused_with_advice(change, message):
    with pytest.raises(InputError, match=message):
        explanation(**change)


def test_output_names_must_differ():
    with pytest.raises(InputError, match="a different name"):
        explanation(1, 2, output_names=["a", "a"])


def test_totals_over_rows():
    warnings = [["a", "b"], [], ["b", "c"]]
    e = explanation(3, calls=[1, 2, 3], row_converged=[True, False, True], row_warnings=warnings)
    assert e.model_calls == 6
    assert not e.converged
    (short,) = e.row_warnings[1]
    assert e.warnings == ("a", "b", short, "c")
    assert short.code == "tolerance"
    assert "with 2 model calls" in short
    assert e[[0, 2]].converged


# -- selection --------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize(
    ("key", "rows"),
    [
        (0, [0]),
        (-1, [3]),
        (np.int64(2), [2]),
        (slice(1, 3), [1, 2]),
        ([2, 0], [2, 0]),
        (np.array([1, -1]), [1, 3]),
        ([True, False, False, True], [0, 3]),
        (np.array([False] * 4), []),
        (..., [0, 1, 2, 3]),
    ],
)
def test_rows_keep_their_axis(k, key, rows):
    e = explanation(4, k)
    picked = e[key]
    assert picked.coefficients.values.shape == (len(rows), *e.coefficients.values.shape[1:])
    for name in ARRAYS:
        np.testing.assert_array_equal(array_of(picked, name), array_of(e, name)[rows])
    assert picked.conditions == tuple(e.conditions[i] for i in rows)
    assert picked.row_warnings == tuple(e.row_warnings[i] for i in rows)


@pytest.mark.parametrize(
    ("key", "columns"),
    [
        ("bmi", [2]),
        (["bmi", "age"], [2, 0]),
        (2, [2]),
        (-1, [9]),
        (["bmi", -1], [2, 9]),
        (slice(0, 2), [0, 1]),
        (np.array(["bp", "sex"]), [3, 1]),
        ([True] + [False] * 9, [0]),
    ],
)
def test_features_keep_their_axis(key, columns):
    e = explanation(3, 2)
    picked = e[:, key]
    assert picked.feature_names == tuple(NAMES[j] for j in columns)
    np.testing.assert_array_equal(picked.coefficients.values, e.coefficients.values[:, columns])
    np.testing.assert_array_equal(picked.data, e.data[:, columns])
    assert picked.conditions[1] == tuple(e.conditions[1][j] for j in columns)
    np.testing.assert_array_equal(picked.predictions, e.predictions)


def test_one_output_drops_its_axis_and_a_list_keeps_it():
    e = explanation(3, 3)
    for key in (-1, 2, "virginica", np.int64(2)):
        picked = e[..., key]
        np.testing.assert_array_equal(picked.coefficients.values, e.coefficients.values[..., 2])
        np.testing.assert_array_equal(picked.predictions, e.predictions[:, 2])
        assert picked.output_names == ("virginica",)
    both = e[..., ["virginica", "setosa"]]
    np.testing.assert_array_equal(both.coefficients.values, e.coefficients.values[..., [2, 0]])
    np.testing.assert_array_equal(both.fidelity, e.fidelity[:, [2, 0]])
    assert e[..., ["setosa"]].coefficients.values.shape == (3, 10, 1)


def test_all_three_at_once():
    e = explanation(3, 3)
    picked = e[1, "bmi", "setosa"]
    assert picked.coefficients.values.tolist() == [[e.coefficients.values[1, 2, 0]]]
    assert e[1, ..., "setosa"].coefficients.values.tolist() == [e.coefficients.values[1, :, 0].tolist()]


@pytest.mark.parametrize("key", ["progression", 0, -1, ["progression"]])
def test_a_single_output_answers_to_its_name(key):
    e = explanation(2)
    assert same(e[..., key], e)


def test_a_repeated_feature_name_picks_all_that_bear_it():
    e = explanation(1, d=3, feature_names=["bank", "river", "bank"])
    np.testing.assert_array_equal(e[:, "bank"].coefficients.values, e.coefficients.values[:, [0, 2]])


@pytest.mark.parametrize("kind", [KeyError, InputError, UnknownNameError])
def test_unknown_names_are_refused_with_the_nearest(kind):
    with pytest.raises(kind) as caught:
        explanation()[:, "cholestrol"]
    message = str(caught.value)
    assert message.startswith("There is no feature 'cholestrol'. Did you mean 'cholesterol'?")
    assert all(repr(name) in message for name in NAMES)
    with pytest.raises(kind, match=r"no output 'rosa'\. Did you mean 'setosa'\?"):
        explanation(1, 3)[..., "rosa"]


def test_rows_have_names():
    e = explanation(3, ids=["a", "b", 7])
    assert e["b"].ids == ("b",)
    assert e[["b", "a"], "bmi"].ids == ("b", "a")
    assert e[2].ids == (7,)
    with pytest.raises(UnknownNameError, match=r"no row 'c'.*The rows are 'a', 'b'"):
        e["c"]
    assert e.plot.bar("b") is not None
    with pytest.raises(UnknownNameError, match="no row ''"):
        e[""]
    twice = explanation(3, ids=["a", "a", "b"])
    with pytest.raises(InputError, match="2 rows are called 'a'"):
        twice.reasons(row="a")
    with pytest.raises(InputError, match="2 rows are called 'a'"):
        twice.plot.waterfall("a")


def test_rows_are_named_by_whatever_names_them_in_the_table():
    """Whole numbers alone are positions."""
    e = explanation(4, ids=[2.5, 0.0, 2.0, 1.5])
    assert [e[key].ids for key in (2.5, np.float64(1.5), "2.5", 2.0)] == [(2.5,), (1.5,), (2.5,), (2.0,)]
    assert e[[1.5, 2.5], "bmi"].ids == (1.5, 2.5)
    assert e[2].ids == (2.0,)
    assert e.reasons(row=0.0) == e.reasons(row=1) != e.reasons(row=0)
    assert e.plot.waterfall(0.0).get_title() == e.plot.waterfall(1).get_title()
    with pytest.raises(InputError, match=r"7\.5 selects no row"):
        e[7.5]
    days = pd.date_range("2026-01-01", periods=4)
    for ids in (days, [str(day) for day in days]):
        assert explanation(4, ids=ids)[days[2]].predictions == explanation(4)[2].predictions
    pairs = explanation(4, ids=[("a", 1.5), ("a", 2.5), ("b", 1.5), ("b", 2.5)])
    assert pairs[[("b", 1.5)]].predictions == explanation(4)[2].predictions


@pytest.mark.parametrize(
    ("key", "kind", "message"),
    [
        (4, IndexError, "no row 4: there are 4"),
        (-5, IndexError, "no row -5"),
        ((0, 10), IndexError, "no feature 10"),
        ((..., 1), IndexError, "no output 1"),
        ([True, False], IndexError, "mask has 2 entries; pass one for each row: 4"),
        ((0, 0, 0, 0), IndexError, "at most one entry"),
        ((..., ...), IndexError, "at most one"),
        ("bmi", InputError, r"explanation\[:, 'bmi'\]"),
        (["bmi"], UnknownNameError, "rows have positions"),
        (1.5, InputError, "1.5 selects no row"),
        (True, InputError, "True selects no row"),
        ([1.0], InputError, "no position of a row"),
        ((..., []), InputError, "output_names"),
    ],
)
def test_keys_that_fit_nothing(key, kind, message):
    with pytest.raises(kind, match=message):
        explanation(4)[key]


def test_iteration_gives_one_row_explanations():
    e = explanation(3, 2)
    rows = list(e)
    assert [len(row) for row in rows] == [1, 1, 1]
    assert all(same(row, e[i]) for i, row in enumerate(rows))


def test_top_sorts_by_mean_size_over_rows_and_outputs():
    values = np.zeros((2, 3, 2))
    values[:, 0], values[:, 1] = 0.1, [[-3.0, 1.0], [0.0, 0.0]]
    values[:, 2] = [[1.0, 1.0], [1.0, 0.5]]
    e = explanation(2, 2, d=3, values=values)
    assert e.top().feature_names == ("sex", "bmi", "age")
    assert e.top(1).feature_names == ("sex",)
    assert e[[]].top(2).coefficients.values.shape == (0, 2, 2)


def test_top_puts_nan_last():
    e = explanation(d=3, values=[[np.nan, 1.0, -2.0]])
    assert e.top(3).feature_names == ("bmi", "sex", "age")


@pytest.mark.parametrize("k", [0, -1, True, 1.5, "2"])
def test_top_needs_a_positive_count(k):
    with pytest.raises(InputError, match="pass 1 or more"):
        explanation().top(k)


# -- copies and lazy imports ------------------------------------------------------------------


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_are_the_same_and_read_only(copied):
    e = explanation(2, 3, sampled=True)
    other = copied(e)
    assert same(e, other)
    assert other.data.tolist() == e.data.tolist()
    assert not other.coefficients.values.flags.writeable


def test_making_and_slicing_load_no_library_for_showing():
    code = """
import sys
sys.path.insert(0, "tests")
from samples import explanation
e = explanation(3, 2)
e[0, "bmi", "setosa"], e.top(2), e.warnings, repr(e), e.to_json()
heavy = {"matplotlib", "pandas", "polars", "pyarrow", "jinja2", "rich", "narwhals", "shap"}
print(sorted(heavy & set(sys.modules)))
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("as_list", r"explanation\.top\(\)"),
        ("shap_values", "explanation.contributions.values"),
        ("local_pred", "surrogate_predictions"),
    ],
)
def test_names_of_other_libraries_lead_to_ours(name, advice):
    with pytest.raises(AttributeError, match=advice):
        getattr(explanation(), name)
    assert not hasattr(explanation(), "no_such_name")


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(InputError, match=r"folder .*nowhere.* does not exist"):
        explanation().to_json(tmp_path / "nowhere" / "explanation.json")


def test_facts_of_the_provenance_keep_every_entry_of_mixed_lists():
    facts = [1, None, "a", 2.5, True, [3, {"b": [4, (5,)]}]]
    assert explanation(provenance={"facts": facts}).provenance["facts"] == [*facts[:5], [3, {"b": [4, [5]]}]]


def test_a_selection_without_rows_has_everything_but_rows():
    X = np.random.default_rng(0).normal(size=(50, 2))
    none = limes.TabularExplainer(LinearRegression().fit(X, X[:, 0]), X)(X[:3], progress=False)[:0]
    assert none.fidelity.shape == none.additive_fidelity.shape == (0,)
    assert len(none.to_frame()) == 0
    assert limes.Explanation.from_json(none.to_json()).coefficients.values.shape == (0, 2)
