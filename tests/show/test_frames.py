from __future__ import annotations

import sys

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

import limes
from limes.exceptions import InputError, LimesError
from samples import CLASSES, NAMES, explanation

BACKENDS = ("pandas", "polars", "pyarrow")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("k", [None, 3])
def test_one_line_a_row_feature_and_output(backend, k):
    e = explanation(4, k, sampled=True)
    frame = nw.from_native(e.to_frame(backend), eager_only=True)
    assert frame.implementation.name.lower() == backend
    assert frame.columns == [
        "row", "id", "feature", "condition", "data", "output", "value", "standard_error",
        "prediction", "fidelity",
    ]  # fmt: skip
    assert len(frame) == 4 * 10 * (k or 1)
    assert frame["value"].to_list() == e.coefficients.values.ravel().tolist()
    assert frame["standard_error"].to_list() == e.coefficients.standard_errors.ravel().tolist()
    line = frame.row(len(frame) - 1)
    assert line[:4] == (3, 3, NAMES[-1], f"{NAMES[-1]} <= 3.5")
    assert line[4:6] == (str(e.data[3, 9]), "progression" if k is None else CLASSES[2])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("several", [False, True])
def test_pairs_have_a_line_each_and_add_up(backend, several):
    X, y = load_wine(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X.iloc[:, :4], y)
    e = limes.TabularExplainer(model, X.iloc[:, :4])(X.iloc[[3, 90], :4], progress=False)
    e = e if several else e[..., 1]
    frame = nw.from_native(e.to_frame(of="pairs", backend=backend), eager_only=True)
    assert frame.columns == ["row", "id", "feature", "other", "output", "value", "standard_error"]
    assert frame["value"].to_list() == e.contributions.pairs.ravel().tolist()
    first = frame.filter((nw.col("row") == 1) & (nw.col("feature").cast(nw.String) == "ash"))
    if not several:
        assert first["value"].sum() == pytest.approx(e[1, "ash"].contributions.values[0, 0])
        assert first["other"].cast(nw.String).to_list() == list(e.feature_names)
    assert e.to_frame("pairs").equals(e.to_frame(of="pairs"))
    assert e.contributions.to_frame("pairs").equals(e.to_frame("pairs"))


@pytest.mark.parametrize("backend", BACKENDS)
def test_missing_cells_are_null_and_columns_keep_their_types(backend):
    e = explanation(2, d=2, data=[[None, None], [None, None]])
    frame = nw.from_native(e.to_frame(backend), eager_only=True)
    assert frame["data"].null_count() == 4
    assert frame.schema["value"] == nw.Float64
    empty = nw.from_native(e[[]].to_frame(backend), eager_only=True)
    assert empty.shape == (0, 10)
    assert empty.schema == frame.schema


def test_nan_values_stay_floats():
    frame = explanation(d=1, values=[[np.nan]]).to_frame()
    assert np.isnan(frame["value"]).tolist() == [True]


def test_unknown_backend():
    with pytest.raises(InputError, match="'duckdb' is not known; use one of"):
        explanation().to_frame("duckdb")


@pytest.mark.parametrize("kind", [ImportError, LimesError])
def test_a_backend_that_is_not_installed(monkeypatch, kind):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(kind, match=r"needs polars.*pip install polars"):
        explanation().to_frame("polars")


def of_a_model(model, **options):
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.iloc[:, :4]
    model = model.fit(X, y) if hasattr(model, "fit") else model
    return limes.TabularExplainer(model, X, **options)(X.iloc[:3])


def test_values_of_a_frame_are_contributions():
    e = of_a_model(RandomForestClassifier(5, random_state=0))
    frame, account = e.to_frame(), e.contributions
    assert [*frame][6:] == ["value", "standard_error", "alone", "last", "base", "prediction"]
    names = {"value": "values", "standard_error": "standard_errors", "alone": "alone", "last": "last"}
    for name, field in names.items():
        assert frame[name].tolist() == getattr(account, field).ravel().tolist()
    sums = frame.groupby(["row", "output"]).agg({"value": "sum", "base": "first", "prediction": "first"})
    np.testing.assert_allclose(sums["base"] + sums["value"], sums["prediction"], rtol=1e-9, atol=1e-12)
    of_lime = e.to_frame(of="coefficients")
    assert of_lime["value"].tolist() == e.coefficients.values.ravel().tolist()
    assert [*of_lime][6:] == ["value", "standard_error", "prediction", "fidelity"]


def test_contributions_that_were_declined_are_in_the_frame_on_request():
    e = of_a_model(lambda rows: rows["alcohol"] * rows["ash"], contributions=False)
    assert "base" not in e.to_frame()
    frame = e.to_frame(of="contributions")
    assert (frame["standard_error"] > 0).any()
    # what is read changes nothing that another call says
    assert "base" not in e.to_frame()
    assert e.contributions.to_frame()["value"].tolist() == frame["value"].tolist()


def test_explanations_without_contributions():
    e = explanation(2)
    assert "base" not in e.to_frame()
    with pytest.raises(InputError, match="contributions needs the explainer"):
        e.to_frame(of="contributions")
    with pytest.raises(InputError, match="of='all'"):
        e.to_frame(of="all")


@pytest.mark.parametrize("first", [2**63 - 3, 2**63, -(2**63) - 1])
@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_names_of_rows_beyond_64_bits_are_texts(first, backend):
    """Hashes of 64 bits without a sign, as keys often are, were an OverflowError."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["a", "b"])
    model = LinearRegression().fit(table, table["a"])
    rows = table[:3].set_axis([first, first + 1, first + 2])
    explanation = limes.TabularExplainer(model, table)(rows, progress=False)
    is_number = first == 2**63 - 3
    for kind in (backend, "pairs"):
        ids = list(dict.fromkeys(nw.from_native(explanation.to_frame(kind), eager_only=True)["id"].to_list()))
        assert ids == [name if is_number else str(name) for name in rows.index]
