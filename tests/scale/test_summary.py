"""Means over long tables against pandas' means."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from typer.testing import CliRunner

import limes
from internals import Source, app, explain_files
from limes.exceptions import InputError
from limes.scale import explain_frame, summarize

WINES, GRAPE = load_wine(return_X_y=True, as_frame=True)
WINES = WINES.iloc[:, :4]
EXPLAINER = limes.TabularExplainer(RandomForestClassifier(5, random_state=0).fit(WINES, GRAPE), WINES)


@pytest.fixture(scope="module")
def rows():
    broken = WINES.astype(object)
    broken.iloc[5, 1] = "sweet"
    return broken


def expected(rows, **options):
    long = explain_frame(EXPLAINER, rows, "long", **options)
    long = long[long["error"].isna()].assign(size=lambda t: t["contribution"].abs())
    return long.groupby(["output", "feature"])[["size", "contribution", "value"]].mean()


@pytest.mark.parametrize("layout", ["wide", "long"])
@pytest.mark.parametrize("wanted", ["auto", True])
def test_means_of_rows_and_outputs(rows, layout, wanted):
    result = summarize(explain_frame(EXPLAINER, rows, layout, contributions=wanted))
    assert [*result] == [
        "output", "feature", "rows", "mean_abs_contribution", "mean_contribution", "error_contribution",
        "mean_abs_value", "mean_value", "error_value",
    ]  # fmt: skip
    assert result["output"].tolist() == np.repeat(EXPLAINER(WINES[:1]).output_names, 4).tolist()
    assert set(result["rows"]) == {177}
    means = expected(rows).loc[[*zip(result["output"], result["feature"], strict=True)]]
    np.testing.assert_allclose(result["mean_abs_contribution"], means["size"], rtol=1e-12)
    np.testing.assert_allclose(result["mean_contribution"], means["contribution"], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(result["mean_value"], means["value"], rtol=1e-9, atol=1e-15)
    assert (result["error_contribution"] == 0).all()
    for _, its in result.groupby("output", sort=False):
        assert its["mean_abs_contribution"].is_monotonic_decreasing


def test_coefficients_sort_where_there_are_no_contributions():
    result = summarize(explain_frame(EXPLAINER, WINES, contributions=False))
    assert "mean_contribution" not in result
    for _, its in result.groupby("output", sort=False):
        assert its["mean_abs_value"].is_monotonic_decreasing


def test_errors_of_sampled_means():
    X = WINES.iloc[:12]
    explainer = limes.TabularExplainer(
        lambda rows: np.sin(rows["alcohol"] * rows["ash"]), WINES, max_calls=256
    )
    table = explain_frame(explainer, X, contributions=True)
    result = summarize(table).set_index("feature")
    for name in WINES:
        error = table[f"error_contribution_{name}"].mean()
        assert result.loc[name, "error_contribution"] == pytest.approx(error, rel=1e-12)
        assert result.loc[name, "error_value"] == pytest.approx(table[f"se_{name}"].mean(), rel=1e-12)


def test_errors_of_means_cover_where_rows_share_a_pool_and_repeat():
    forest = RandomForestClassifier(5, random_state=0).fit(WINES, GRAPE)
    X = pd.concat([WINES[::3]] * 20, ignore_index=True)
    exact = summarize(explain_frame(limes.TabularExplainer(forest, WINES, output=0), X, contributions=False))
    truth = exact.set_index("feature")["mean_value"]
    within = []
    for seed in range(25):
        explainer = limes.TabularExplainer(lambda rows: forest.predict_proba(rows)[:, 0], WINES, rng=seed)
        means = summarize(explain_frame(explainer, X, contributions=False)).set_index("feature")
        miss = (means["mean_value"] - truth.loc[means.index]).abs()
        within += (miss <= 1.96 * means["error_value"]).tolist()
    assert np.mean(within) >= 0.93


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
def test_every_library_gets_its_own_frame(make):
    table = explain_frame(EXPLAINER, WINES)
    result = summarize(make(table))
    assert type(result) is type(make(table))
    assert result["feature"].to_pylist() if isinstance(result, pa.Table) else result["feature"].to_list()


@pytest.fixture
def folder(tmp_path, rows):
    WINES.to_parquet(tmp_path / "in.parquet", index=False)
    source = Source.of(tmp_path / "in.parquet")
    explain_files(source, EXPLAINER, tmp_path / "out", run={}, rows_per_part=50, progress=False)
    return tmp_path / "out"


def test_a_folder_is_one_table(folder):
    result = summarize(str(folder)).to_pandas()
    whole = summarize(explain_frame(EXPLAINER, WINES))
    pd.testing.assert_frame_equal(result, whole, rtol=1e-12, check_dtype=False)


def test_the_command_shows_the_largest_first(folder):
    result = CliRunner().invoke(app, ["summary", str(folder), "--output", "0", "--top", "2"])
    assert result.exit_code == 0, result.output
    names = summarize(str(folder)).to_pandas().query("output == '0'")["feature"].tolist()
    assert result.output.index(names[0]) < result.output.index(names[1])
    assert names[2] not in result.output
    assert "means of 178 rows" in result.output
    assert "2 smaller columns: --top 4" in result.output
    every = CliRunner().invoke(app, ["summary", str(folder)])
    assert [every.output.count(f"output {k}: means") for k in range(3)] == [1, 1, 1]
    other = CliRunner().invoke(app, ["summary", str(folder), "--output", "9"])
    assert "no such output" in str(other.exception)


def test_other_tables_are_refused(tmp_path):
    with pytest.raises(InputError, match="no column 'output'"):
        summarize(WINES)
    with pytest.raises(InputError, match="no folder with parts"):
        summarize(str(tmp_path))


def test_a_table_that_went_through_a_csv_has_no_empty_texts():
    table = explain_frame(EXPLAINER, WINES.iloc[:20])
    again = pd.read_csv(io.StringIO(table.to_csv(index=False)), dtype={"output": str})
    pd.testing.assert_frame_equal(summarize(again), summarize(table))
