"""Rows of large files: which rows become the background, and that the others are never in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LinearRegression
from typer.testing import CliRunner

import limes
from internals import app, open_table, step_of, tables
from limes.exceptions import InputError
from memory import rows_and_peak

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = 50_000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=ROWS), "id": np.arange(ROWS), "b": rng.integers(0, 9, ROWS)})
    table["c"] = pd.Categorical.from_codes(rng.integers(0, 3, ROWS), ["x", "y", "z"])
    table.loc[::7, "a"] = np.nan
    return table


@pytest.mark.parametrize(
    ("rows", "step"), [(1, 1), (20_000, 1), (20_001, 2), (40_000, 2), (40_001, 4), (30_000_000, 2048)]
)
def test_ten_to_twenty_thousand_rows_are_left(rows, step):
    assert step_of(rows) == step
    assert step == 1 or 10_000 <= -(-rows // step) <= 20_000


@pytest.mark.parametrize("group", [ROWS, 7_000])
@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz", "long csv"])
def test_every_mth_row_is_the_background_however_the_file_is_read(frame, tmp_path, monkeypatch, kind, group):
    path = tmp_path / f"t.{kind.removeprefix('long ')}"
    if kind == "parquet":
        frame.to_parquet(path, row_group_size=group)
        monkeypatch.setattr(tables, "_BATCH", 3_000)
    else:
        frame.to_csv(path, index=False)
    if kind == "long csv":
        monkeypatch.setattr(tables, "_WHOLE", 1)
    table = open_table(path)
    assert list(table.columns) == list(frame.columns)
    rows = [31_337, 0, 49_999]
    chosen, background = table.read(["c", "a", "b"], rows, sample=True)
    expected = frame[["c", "a", "b"]]
    for ours, its in ((chosen, expected.iloc[rows]), (background, expected.iloc[::4])):
        assert list(ours.columns) == ["c", "a", "b"]
        assert ours["c"].tolist() == its["c"].tolist()
        np.testing.assert_array_equal(ours[["a", "b"]].to_numpy(), its[["a", "b"]].to_numpy())
    assert table.read(["a"], [5], sample=False)[1] is None
    with pytest.raises(InputError, match="--row 50000: the table has 50000 rows"):
        table.read(["a"], [ROWS], sample=True)


def test_types_of_pandas_and_its_index_are_those_of_the_file(frame, tmp_path):
    path = tmp_path / "t.parquet"
    frame.assign(b=frame["b"].astype("Int64")).set_index("id").to_parquet(path)
    table = open_table(path)
    assert list(table.columns) == ["a", "b", "c"]
    chosen, background = table.read(["b", "c"], [3], sample=True)
    assert str(chosen["b"].dtype) == "Int64"
    assert background["c"].cat.categories.tolist() == ["x", "y", "z"]


READING = """
from internals import open_table
rows = len(open_table(path).read(["a", "b"], [999_999], sample=True)[1])
"""


def test_a_large_row_group_is_never_in_memory(tmp_path):
    """A row, and a background of evenly spaced rows."""
    rows, peak = rows_and_peak(READING, tmp_path)
    assert rows == 15_625
    assert peak < 12 << 20


def test_a_row_of_a_long_csv_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    lines = ["a,b", *(f"{i},{i % 5}" for i in range(3000))]
    lines[2001] = "two thousand,3"
    path.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(tables, "_WHOLE", 1)
    with pytest.raises(InputError, match=r"--row 2000 of .* 'two thousand' is no"):
        open_table(path).read(["a", "b"], [2000], sample=True)


@pytest.mark.parametrize("command", ["explain", "diagnose"])
def test_commands_explain_by_the_background_of_every_mth_row(frame, tmp_path, command):
    features = frame[["a", "b"]].fillna(0.0)
    model = LinearRegression().fit(features, features["a"] - features["b"])
    skops.io.dump(model, tmp_path / "m.skops")
    features.to_parquet(tmp_path / "t.parquet")
    out = tmp_path / "out.json"
    arguments = [command, str(tmp_path / "m.skops"), str(tmp_path / "t.parquet"), "--row", "777"]
    result = CliRunner().invoke(app, [*arguments, "--json", str(out)])
    assert result.exit_code == 0, result.output
    explainer = limes.TabularExplainer(model, features.iloc[::4].reset_index(drop=True))
    explanation = explainer(features.iloc[[777]], ids=[777])
    if command == "explain":
        np.testing.assert_array_equal(
            limes.Explanation.read_json(out).coefficients.values, explanation.coefficients.values
        )
        assert limes.Explanation.read_json(out).ids == (777,)
    else:
        assert f'"lime":[{limes.diagnose(explanation).rows[0].lime[0]}' in out.read_text()
