"""A frame of rows becomes a frame of explanations or errors, wherever it is cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from threadpoolctl import threadpool_limits

import limes
from effort import repeats
from internals import ForestExpectation, TableFits
from limes.exceptions import InputError
from limes.scale import explain_frame


@pytest.fixture(scope="module")
def table():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X.iloc[:, :5], y


@pytest.fixture(scope="module")
def explainer(table):
    return limes.TabularExplainer(RandomForestRegressor(8, random_state=0).fit(*table), table[0])


def joined(X, explainer, parts, **options):
    cuts = np.linspace(0, len(X), parts + 1).astype(int)
    frames = [explain_frame(explainer, X.iloc[a:b], **options) for a, b in pairwise(cuts)]
    return pd.concat(frames, ignore_index=True)


def refuses_old(X):
    """A model that raises on about 1 % of rows."""
    if (X["age"] > 0.07).any():
        raise RuntimeError("too old")
    return X["bmi"] + X["age"]


def test_wide_has_the_explainers_numbers(table, explainer):
    result, explanation = explain_frame(explainer, table[0]), explainer(table[0])
    assert np.array_equal(result[[f"value_{c}" for c in table[0]]], explanation.coefficients.values)
    assert np.array_equal(result[[f"se_{c}" for c in table[0]]], explanation.coefficients.standard_errors)
    assert np.array_equal(result["prediction"], explanation.predictions)
    assert np.array_equal(result["intercept"], explanation.coefficients.intercepts)
    assert result["row"].tolist() == list(range(len(table[0])))
    assert set(result["method"]) == {"exact"}
    assert result["error"].isna().all()


def test_long_has_the_explainers_numbers_of_several_outputs():
    X, y = load_iris(return_X_y=True, as_frame=True)
    explainer = limes.TabularExplainer(RandomForestClassifier(5, random_state=0).fit(X, y), X)
    explanation = explainer(X)
    wide, long = (explain_frame(explainer, X, layout) for layout in ("wide", "long"))
    assert len(wide) == 150 * 3
    assert len(long) == 150 * 3 * 4
    for i, k, j in [(0, 0, 0), (77, 1, 3), (149, 2, 2)]:
        line = long.iloc[(i * 3 + k) * 4 + j]
        assert line["row"] == i
        assert line["output"] == explanation.output_names[k]
        assert line["feature"] == explanation.feature_names[j]
        assert line["condition"] == explanation.conditions[i][j]
        assert (
            line["value"]
            == explanation.coefficients.values[i, j, k]
            == wide.iloc[i * 3 + k][f"value_{X.columns[j]}"]
        )
        assert line["prediction"] == explanation.predictions[i, k]


@pytest.mark.parametrize(("layout", "parts"), [("wide", 7), ("wide", repeats(150, 30)), ("long", 7)])
def test_numbers_are_the_same_to_the_bit_wherever_a_table_is_cut(table, explainer, layout, parts):
    X = table[0].assign(id=[f"row {i}" for i in range(len(table[0]))])
    whole = explain_frame(explainer, X, layout, keys=["id"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(
        whole, joined(X, explainer, parts, layout=layout, keys=["id"]), check_exact=True
    )


def test_rows_in_the_same_cells_are_computed_once_however_cut(table, monkeypatch):
    explainer = limes.TabularExplainer(RandomForestRegressor(8, random_state=0).fit(*table), table[0])
    computed, at = [], ForestExpectation.at

    def counting(self, rows):
        computed.extend(map(tuple, rows.cells.tolist()))
        return at(self, rows)

    monkeypatch.setattr(ForestExpectation, "at", counting)
    for _ in range(2):
        joined(table[0], explainer, 7)
    assert len(computed) == len(set(computed)) < len(table[0])


def test_without_a_fit_the_other_columns_are_the_same_and_no_effect_is_computed(table, monkeypatch):
    explainer = limes.TabularExplainer(RandomForestRegressor(8, random_state=0).fit(*table), table[0])
    whole = explain_frame(explainer, table[0])
    for name in ("fidelities", "additive", "additive_numbers"):
        monkeypatch.setattr(TableFits, name, None)
    result = explain_frame(explainer, table[0], fit=False)
    fits = ["fidelity", "additive_fidelity"]
    assert [*result] == [name for name in whole if name not in fits]
    pd.testing.assert_frame_equal(
        result.drop(columns="warnings"), whole.drop(columns=["warnings", *fits]), check_exact=True
    )
    # those that follow from effects are left out
    codes = [{*text.split(", ")} for text in whole["warnings"]]
    assert [{*text.split(", ")} - {""} for text in result["warnings"]] == [
        its - {"", "combinations", "hidden effect"} for its in codes
    ]
    assert {"hidden effect", "combinations"} & set.union(*codes)


def test_fits_of_rows_in_the_same_cells_are_computed_once_however_cut(table, monkeypatch):
    explainer = limes.TabularExplainer(RandomForestRegressor(8, random_state=0).fit(*table), table[0])
    expected, patterns = explain_frame(explainer, table[0]), []
    rows_at = TableFits._rows_at

    def counting(self, positions):
        patterns.extend(self.cells[row].tobytes() for row in positions)
        return rows_at(self, positions)

    fresh = limes.TabularExplainer(explainer._explained, table[0])
    monkeypatch.setattr(TableFits, "_rows_at", counting)
    for _ in range(2):
        result = joined(table[0], fresh, 5)
    # once for the surrogate's R², once for effects
    assert len(patterns) == 2 * len({*patterns}) < 2 * len(table[0])
    for name in ("fidelity", "additive_fidelity"):
        np.testing.assert_array_equal(result[name], expected[name])


def test_sampled_rows_are_the_same_however_cut(table):
    X = table[0].iloc[:12].reset_index(drop=True).assign(id=range(12))
    explainer = limes.TabularExplainer(
        lambda X: np.sin(20 * X["age"]) * X["bmi"], table[0], max_calls=256, control="none"
    )
    whole = explain_frame(explainer, X, keys=["id"])
    assert (whole["se_age"] > 0).all()
    pd.testing.assert_frame_equal(whole, joined(X, explainer, 5, keys=["id"]), check_exact=True)


def test_a_row_that_cannot_be_explained_gets_its_error(table, explainer):
    broken = table[0].astype(object)
    broken.iloc[3, 0] = "forty"
    broken.iloc[200, 2] = np.inf
    result = explain_frame(explainer, broken)
    assert np.flatnonzero(result["error"].notna()).tolist() == [3, 200]
    assert "age" in result["error"][3]
    assert result.loc[[3, 200], ["prediction", "value_bmi", "output", "method"]].isna().all(axis=None)
    whole = explain_frame(explainer, table[0])
    good = result["error"].isna()
    pd.testing.assert_frame_equal(result[good], whole[good], check_exact=True)


def test_bad_cells_are_found_in_one_pass_however_a_table_is_cut(table, explainer, monkeypatch):
    broken = table[0].astype(object)
    for i in range(0, 400, 7):
        broken.iloc[i, 0] = f"forty-{i}"
    broken.iloc[5, 2] = broken.iloc[7, 2] = np.inf
    calls, call = [], limes.TabularExplainer.__call__

    def counting(self, X, **options):
        calls.append(len(X))
        return call(self, X, **options)

    monkeypatch.setattr(limes.TabularExplainer, "__call__", counting)
    result = explain_frame(explainer, broken)
    assert len(calls) == 3
    assert np.flatnonzero(result["error"].notna()).tolist() == sorted({*range(0, 400, 7), 5})
    assert result["error"][14].startswith("InputError: column 'age': 'forty-14' is not a number")
    pd.testing.assert_frame_equal(
        result, joined(broken, explainer, 7).assign(row=range(442)), check_exact=True
    )


def test_a_model_that_raises_on_some_rows_loses_only_these(table):
    good = table[0][table[0]["age"] < 0.05]
    explainer = limes.TabularExplainer(refuses_old, good, method="sampled", max_calls=64, control="none")
    X = table[0].iloc[:80]
    result = explain_frame(explainer, X)
    assert result["row"].tolist() == list(range(80))
    bad = (X["age"] > 0.07).to_numpy()
    assert bad.any()
    assert np.array_equal(result["error"].notna(), bad)
    assert result.loc[bad, "error"].str.contains("too old").all()


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
def test_every_library_gets_its_own_frame(table, explainer, make):
    result = explain_frame(explainer, make(table[0]))
    assert type(result) is type(make(table[0]))
    names = result.schema.names if isinstance(result, pa.Table) else result.columns
    whole = explain_frame(explainer, table[0])
    assert [*names] == [*whole]
    assert np.array_equal(result["value_bmi"].to_numpy(), whole["value_bmi"])


def test_a_table_without_rows_gives_no_lines(table, explainer):
    result = explain_frame(explainer, table[0].iloc[:0])
    assert len(result) == 0
    assert result["value_bmi"].dtype == np.float64


def test_a_bad_frame_is_refused(table, explainer):
    with pytest.raises(InputError, match=r"no column 'bmi' \(did you mean 'BMI'"):
        explain_frame(explainer, table[0].rename(columns={"bmi": "BMI"}))
    with pytest.raises(InputError, match="'id'"):
        explain_frame(explainer, table[0], keys=["id"])
    with pytest.raises(InputError, match="rename"):
        explain_frame(explainer, table[0].assign(error=1), keys=["error"])
    with pytest.raises(InputError, match="layout"):
        explain_frame(explainer, table[0], "tall")


def test_sums_do_not_depend_on_the_threads_of_blas(table):
    X = table[0].iloc[:3]
    a, b = np.random.default_rng(0).normal(size=(2, 300_000))

    def model(X):
        return (X["age"] + X["bmi"]) * (a @ b)

    with threadpool_limits(1, user_api="blas"):
        alone = a @ b
        expected = explain_frame(limes.TabularExplainer(model, X, max_calls=64, control="none"), X)
    with threadpool_limits(2, user_api="blas"):
        if a @ b == alone:
            pytest.skip("this BLAS has one thread, or adds up in one order")
        result = explain_frame(limes.TabularExplainer(model, X, max_calls=64, control="none"), X)
    pd.testing.assert_frame_equal(result, expected, check_exact=True)


@pytest.mark.parametrize("layout", ["wide", "long"])
def test_lines_have_the_index_of_their_rows(table, explainer, layout):
    X = table[0].iloc[100:140].set_axis([f"case {i}" for i in range(40)])
    X.iloc[7, 0] = np.inf
    result = explain_frame(explainer, X.sample(frac=1, random_state=0), layout)
    X = X.sample(frac=1, random_state=0)
    assert result.index.equals(X.index.take(result["row"]))
    assert result.index[result["error"].notna()].tolist() == ["case 7"]
    joined = X.join(explain_frame(explainer, X)[["prediction"]])
    assert np.array_equal(joined["prediction"].drop("case 7"), explainer(X.drop("case 7")).predictions[()])


def test_an_error_is_short_however_long_the_cell(table, explainer):
    broken = table[0].iloc[:3].astype(object)
    broken.iloc[1, 0] = "x" * 1_000_000
    text = explain_frame(explainer, broken)["error"][1]
    assert len(text) <= 200
    assert text.startswith("InputError: column 'age': 'xxx")


@pytest.mark.parametrize("keys", ["id", ["id", "id"]])
def test_keys_are_a_list_of_names(table, explainer, keys):
    with pytest.raises(InputError, match=r"pass a list of columns, \['id'\]|name each column once"):
        explain_frame(explainer, table[0].assign(id=1), keys=keys)


def test_frames_of_other_kinds_are_refused_with_advice(table, explainer):
    with pytest.raises(InputError, match=r"collect a lazy frame first; for Dask use limes\.scale\.dask"):
        explain_frame(explainer, pl.from_pandas(table[0]).lazy())
    with pytest.raises(InputError, match=r"has no column 'age'"):
        explain_frame(explainer, table[0].set_axis([("a", i) for i in range(5)], axis=1))


def test_the_old_order_of_arguments_still_works():
    frame = pd.DataFrame({"a": [1.0, 2.0], "feature_names": [0.0, 1.0]})
    explainer = limes.TabularExplainer(lambda X: X["a"], frame)
    with pytest.warns(DeprecationWarning, match="pass the explainer first"):
        old = explain_frame(frame, explainer)
    pd.testing.assert_frame_equal(old, explain_frame(explainer, frame))
    with pytest.raises(InputError, match=r"explain_frame\(explainer, frame\) needs an explainer"):
        explain_frame(frame[["a"]], frame)


def test_two_classes_have_a_line_of_the_second_and_fits_and_warnings():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, y)
    explainer, rows = limes.TabularExplainer(model, X), X.iloc[:60] * 1.0
    rows.iloc[3, 0] = 1e3
    one, both = explain_frame(explainer, rows), explain_frame(explainer, rows, outputs="all")
    assert one["output"].unique().tolist() == ["1"]
    assert len(both) == 2 * len(one)
    pd.testing.assert_frame_equal(
        one.reset_index(drop=True), both[both["output"] == "1"].reset_index(drop=True), check_exact=True
    )
    explanation = explainer(rows)
    np.testing.assert_array_equal(one["surrogate"], explanation.coefficients.surrogate_predictions[:, 1])
    np.testing.assert_allclose(one["fidelity"], explanation.fidelity[:, 1], rtol=1e-12)
    np.testing.assert_allclose(one["additive_fidelity"], explanation.additive_fidelity[:, 1], rtol=1e-12)
    assert "outside" in one["warnings"][3].split(", ")
    assert one["warnings"].tolist() == [
        ", ".join(dict.fromkeys(w.code for w in row)) for row in explanation[..., [1]].row_warnings
    ]
    long = explain_frame(explainer, rows, "long")
    np.testing.assert_array_equal(long["surrogate"], np.repeat(one["surrogate"], X.shape[1]))
    assert (long["warnings"].to_numpy().reshape(60, -1) == one["warnings"].to_numpy()[:, None]).all()
