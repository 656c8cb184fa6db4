"""Changes between two runs, against pandas and scipy over all parts, and on laws without a change."""

from __future__ import annotations

import json
from hashlib import sha256

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor
from typer.testing import CliRunner

import limes
from effort import repeats
from internals import Source, app, explain_files, part_bytes, run_name, write_whole
from limes.exceptions import InputError
from limes.scale import compare_runs, row_changes

NAMES = ["age", "debt", "income"]
LEVEL = 0.05


def draw(rng, rows, shift=0.0):
    table = pd.DataFrame(rng.normal(size=(rows, 3)), columns=NAMES)
    return table.assign(age=table["age"] + shift, debt=np.exp(table["debt"]))  # skew, as amounts are


BACKGROUND = draw(np.random.default_rng(1), 300)
MODEL = DecisionTreeRegressor(max_depth=4, random_state=0).fit(
    BACKGROUND, BACKGROUND["age"] * (BACKGROUND["income"] > 0) + 0.3 * BACKGROUND["debt"]
)
EXPLAINER = limes.TabularExplainer(MODEL, BACKGROUND)


def run(folder, rows, explainer=EXPLAINER, **options):
    rows.to_parquet(f"{folder}.parquet")
    options = {"run": {}, "rows_per_part": 170, "progress": False, "max_errors": 1.0, **options}
    explain_files(Source.of(f"{folder}.parquet"), explainer, folder, **options)
    return folder


@pytest.fixture
def broken(tmp_path):
    """Two nights, the second with larger ages, an error in 20 rows, and lines in either layout."""
    rng = np.random.default_rng(2)
    first, second = draw(rng, 500), draw(rng, 400, shift=0.5)
    first.loc[3, "debt"] = second.loc[:19, "debt"] = np.inf
    return run(tmp_path / "one", first), run(tmp_path / "two", second, layout="long")


def wide(folder):
    lines = pd.read_parquet(folder)
    if "feature" in lines:
        cells = lines.pivot(index="row", columns="feature", values="contribution").add_prefix("contribution_")
        lines = lines.drop_duplicates("row").set_index("row").join(cells)
    return lines


def holm(p):
    """Holm's correction, p-value by p-value, as it is defined."""
    order = np.argsort(p)
    result = np.empty(len(p))
    for i, at in enumerate(order):
        result[at] = max(min(1.0, (len(p) - j) * p[order[j]]) for j in range(i + 1))
    return result


def expected(one, two):
    a, b = wide(one), wide(two)
    good, other = a[a["error"].isna()], b[b["error"].isna()]
    columns = [("mean prediction", "", "prediction", lambda x: x)]
    for quantity, of in (("mean contribution", lambda x: x), ("mean |contribution|", np.abs)):
        columns += [(quantity, name, f"contribution_{name}", of) for name in NAMES]
    lines = {}
    for quantity, name, column, of in columns:
        x, y = of(good[column]), of(other[column])
        test = stats.ttest_ind(y, x, equal_var=False)
        error = np.sqrt(x.var() / len(x) + y.var() / len(y))
        size = abs(y.mean() - x.mean()) / good["prediction"].std()
        lines[quantity, name] = (x.mean(), y.mean(), error, test.pvalue, size)
    shares = [
        ("rows with a warning", code, *(frame["warnings"].str.split(", ") for frame in (good, other)))
        for code in {
            c for frame in (good, other) for text in frame["warnings"] for c in text.split(", ") if c
        }
    ]
    cases = [(q, code, *([code in codes for codes in its] for its in (x, y))) for q, code, x, y in shares]
    cases.append(("rows with errors", "", a["error"].notna(), b["error"].notna()))
    for quantity, name, x, y in cases:
        both = np.concatenate([x, y])
        table = [[np.sum(x), len(x) - np.sum(x)], [np.sum(y), len(y) - np.sum(y)]]
        if min(both.sum(), (~both.astype(bool)).sum()) < 100:
            p = stats.fisher_exact(table)[1]
        else:
            p = stats.chi2_contingency(table, correction=False).pvalue  # the square of the normal's
        error = both.std() * np.sqrt(1 / len(x) + 1 / len(y))
        lines[quantity, name] = (np.mean(x), np.mean(y), error, p, abs(np.mean(y) - np.mean(x)) / both.std())
    return lines


def test_changes_are_those_of_pandas_and_scipy(broken):
    result = compare_runs(*broken, level=LEVEL)
    lines = expected(*broken)
    assert (result.rows, result.errors) == ((500, 400), (1, 20))
    assert len(result.changes) == len(lines)
    p = dict(zip(lines, holm(np.array([line[3] for line in lines.values()])), strict=True))
    for change in result.changes:
        earlier, later, error, _, size = lines[change.quantity, change.name]
        actual = (change.earlier, change.later, change.change, change.error, change.size)
        np.testing.assert_allclose(
            actual, (earlier, later, later - earlier, error, size), rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(change.p_value, p[change.quantity, change.name], rtol=1e-6, atol=1e-12)
        assert change.changed == (change.p_value <= LEVEL)
    assert {("mean contribution", "age"), ("rows with errors", "")} <= {
        (change.quantity, change.name) for change in result.changed
    }
    flags = [change.changed for change in result.changes]
    assert flags == sorted(flags, reverse=True)
    sizes = [change.size for change in result.changed]
    assert sizes == sorted(sizes, reverse=True)
    frame = result.to_frame()
    assert frame["changed"].tolist() == flags
    assert result.to_frame("pyarrow").column_names == [*frame]
    stated = json.loads(result.to_json())
    assert stated["changes"][0]["name"] == result.changes[0].name
    assert stated["level"] == LEVEL
    assert stated["notes"] == list(result.notes)


def test_sums_in_parts_are_stable(tmp_path):
    """A mean a million times the spread, which sums of squares would lose."""
    rng = np.random.default_rng(3)
    rows = draw(rng, 600)
    model = LinearRegression().fit(BACKGROUND, BACKGROUND["age"])
    model.intercept_ += 1e7
    explainer = limes.TabularExplainer(model, BACKGROUND)
    one, two = (run(tmp_path / str(i), rows.iloc[300 * i : 300 * i + 300], explainer) for i in range(2))
    [change] = [c for c in compare_runs(one, two).changes if c.quantity == "mean prediction"]
    x, y = (pd.read_parquet(folder)["prediction"] for folder in (one, two))
    np.testing.assert_allclose(change.error, np.sqrt(x.var() / 300 + y.var() / 300), rtol=1e-6)


def write_run(folder, numbers):
    """A finished run with these contributions (n, d), as one of a model would write it."""
    n, d = numbers.shape
    lines = pd.DataFrame({"row": range(n), "output": "output", "prediction": numbers.sum(axis=1)})
    lines = lines.join(pd.DataFrame(numbers, columns=[f"contribution_{j}" for j in range(d)]))
    lines = lines.join(pd.DataFrame(0.0 * numbers, columns=[f"value_{j}" for j in range(d)]))
    codes = np.where(numbers[:, 0] > 1.5, "outside", "")
    folder.mkdir()
    lines = lines.assign(method="exact", warnings=codes, error=pd.array([None] * n, "str"))
    run = {"input": {}}
    write_whole(folder / "part-00000.parquet", part_bytes(pa.Table.from_pandas(lines), run_name(run)))
    tally = {"rows": n, "errors": 0, "outputs": 1, "sizes": {}, "shares": {}, "smallest": "", "reason": ""}
    digest = sha256((folder / "part-00000.parquet").read_bytes()).hexdigest()
    (folder / "_parts.jsonl").write_text(json.dumps({"part": 0, "sha256": digest, "tally": tally}))
    (folder / "_run.json").write_text(json.dumps(run))
    (folder / "_finished.json").write_text(json.dumps({"parts": 1, "rows": n}))
    return folder


def test_two_nights_of_one_law_differ_as_rarely_as_stated(tmp_path):
    """A false alarm in 1 of 20 comparisons at most, of contributions that are skewed and dependent."""
    trials, alarms = repeats(300, 100), 0
    rng = np.random.default_rng(4)
    for trial in range(trials):
        numbers = rng.exponential(size=(2, 400, 6)) - 1
        numbers[:, :, 3:] = numbers[:, :, :3] * [1, 2, -0.5] + 0.1 * numbers[:, :, 3:]
        folders = [write_run(tmp_path / f"{trial}-{i}", numbers[i]) for i in range(2)]
        alarms += bool(compare_runs(*folders, level=LEVEL).changed)
    assert alarms <= stats.binom.ppf(0.999, trials, LEVEL)


def test_a_shift_is_found_and_its_column_named(tmp_path):
    rng = np.random.default_rng(5)
    for trial in range(repeats(20, 5)):
        numbers = rng.exponential(size=(2, 2000, 6)) - 1
        numbers[1, :, 2] += 0.2  # five standard errors and more
        folders = [write_run(tmp_path / f"{trial}-{i}", numbers[i]) for i in range(2)]
        changed = compare_runs(*folders, level=LEVEL).changed
        assert ("mean contribution", "2") in {(change.quantity, change.name) for change in changed}


def test_columns_that_do_not_vary_change_or_do_not(tmp_path):
    numbers, change = np.tile([0.1, 0.2, 0.7], (50, 1)), np.array([0.0, 0.0, 0.3])
    folders = [write_run(tmp_path / str(i), numbers + i * change) for i in range(2)]
    names = {change.name for change in compare_runs(*folders).changed}
    assert names == {"2", ""}  # and the prediction
    assert not compare_runs(folders[0], folders[0]).changed
    json.loads(compare_runs(*folders).to_json())  # sizes in standard deviations of 0 are null


def test_a_single_row_is_too_few(tmp_path):
    rng = np.random.default_rng(0)
    folders = [write_run(tmp_path / str(n), 9.0 * n + rng.normal(size=(n, 2))) for n in (40, 1)]
    result = compare_runs(*folders)
    assert {change.quantity for change in result.changes if np.isfinite(change.p_value)} == {
        "rows with a warning",
        "rows with errors",
    }


def test_models_and_backgrounds_that_differ_are_noted_and_widen_errors(tmp_path):
    rng = np.random.default_rng(6)
    sampled = {"method": "sampled", "law": "joint", "max_calls": 256, "contributions": True}
    folders = []
    for i in range(2):
        explainer = limes.TabularExplainer(MODEL.predict, BACKGROUND, rng=i, **sampled)
        run(tmp_path / str(i), draw(rng, 30), explainer, run={"options": {"rng": i}})
        folders.append(tmp_path / str(i))
    result = compare_runs(*folders)
    assert result.notes == ("the runs differ: options rng was 0, is 1",)
    x, y = map(pd.read_parquet, folders)
    [change] = [c for c in result.changes if (c.quantity, c.name) == ("mean contribution", "age")]
    spread = x["contribution_age"].var() / 30 + y["contribution_age"].var() / 30
    common = x["error_contribution_age"].mean() ** 2 + y["error_contribution_age"].mean() ** 2
    assert common > 0
    np.testing.assert_allclose(change.error, np.sqrt(spread + common), rtol=1e-9)
    separate = [
        run(tmp_path / f"own-{i}", draw(rng, 30), run={"background": "rows of the table"}) for i in range(2)
    ]
    assert "pass one --background to both" in compare_runs(*separate).notes[0]


def test_coefficients_are_compared_where_a_run_has_no_contributions(tmp_path):
    rng = np.random.default_rng(7)
    one = run(tmp_path / "one", draw(rng, 50))
    two = run(tmp_path / "two", draw(rng, 50), contributions=False)
    result = compare_runs(one, two)
    assert {c.quantity for c in result.changes} >= {"mean coefficient", "mean |coefficient|"}
    assert "output contributions was 'exact', is 'none'" in result.notes[0]


def test_runs_that_cannot_be_compared_are_refused_or_noted(tmp_path):
    rng = np.random.default_rng(8)
    one = run(tmp_path / "one", draw(rng, 50))
    two = run(tmp_path / "two", draw(rng, 50))
    assert "both runs explained 1 file" in compare_runs(one, one).notes[0]
    with pytest.raises(InputError, match="no such folder"):
        compare_runs(one, tmp_path / "three")
    with pytest.raises(InputError, match="level must be a number between 0 and 1"):
        compare_runs(one, two, level=1.5)
    options = {"run": {}, "progress": False, "since": two}
    explain_files(Source.of(f"{two}.parquet"), EXPLAINER, tmp_path / "three", **options)
    nothing = compare_runs(two, tmp_path / "three")
    assert nothing.changes == ()
    assert "the later run has no row" in nothing.notes[0]
    (two / "_finished.json").unlink()
    with pytest.raises(InputError, match="is not finished"):
        compare_runs(one, two)


# -- the command ---------------------------------------------------------------------------------------------


def compare(*options):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, ["compare", *map(str, options)])


def test_the_command_shows_at_most_80_columns_and_states_drift(broken, tmp_path):
    shown = compare(*broken, "--json", tmp_path / "drift.json")
    assert shown.exit_code == 0, shown.output
    *lines, written = shown.output.splitlines()
    assert max(map(len, lines)) <= 80
    assert written == f"written: {tmp_path / 'drift.json'}"
    assert "Holm's correction" in shown.output
    stated = json.loads((tmp_path / "drift.json").read_text())
    assert f"{sum(c['changed'] for c in stated['changes'])} of {len(stated['changes'])} means" in shown.output
    assert compare(*broken, "--fail-on-drift").exit_code == 4
    assert compare(*broken, "--fail-on-drift", "--least", 100).exit_code == 0
    assert compare(broken[0], broken[0], "--fail-on-drift").exit_code == 0
    assert isinstance(compare(broken[0], tmp_path / "nowhere").exception, InputError)


def test_changes_of_sampled_contributions_have_errors_that_cover(tmp_path):
    """Read and sample the same tree, in both layouts: whatever changes is an error of sampling."""
    rows = draw(np.random.default_rng(8), 40)
    options = {"method": "sampled", "max_calls": 300}
    within = []
    for i, layout in enumerate(("wide", "long")):
        other = limes.TabularExplainer(MODEL.predict, BACKGROUND, rng=i, **options)
        one = run(tmp_path / f"read-{i}", rows)
        two = run(tmp_path / f"sampled-{i}", rows, other, layout=layout, contributions=True)
        for row in map(str, range(40)):
            (change,) = row_changes(one, two, row)
            within += [abs(moved) <= 1.96 * change.errors[name] + 1e-9 for name, moved in change.largest]
        (same,) = row_changes(one, one, "3")
        assert set(same.errors.values()) == {0.0}
    assert np.mean(within) >= 0.93
    shown = compare(one, two, "--account", 3)
    assert "±: one standard error of the change, at most" in shown.output
    assert shown.output.count(" ± ") == sum(
        error > 0 for error in row_changes(one, two, "3")[0].errors.values()
    )
    assert "±" not in compare(one, one, "--account", 3).output


def test_the_account_of_a_rows_change(broken):
    one, two = broken
    (change,) = row_changes(one, two, "37")
    a, b = (wide(folder).reset_index() for folder in broken)
    before, after = (table[table["row"] == 37].iloc[0] for table in (a, b))
    assert change.prediction == (before["prediction"], after["prediction"])
    for name in NAMES:
        pair = (before[f"contribution_{name}"], after[f"contribution_{name}"])
        assert change.contributions[name] == pair
    moved = change.base[1] - change.base[0] + sum(size for _, size in change.largest)
    assert moved == pytest.approx(change.prediction[1] - change.prediction[0], abs=1e-9)
    with pytest.raises(InputError, match="no explanation"):
        row_changes(one, two, "3")
    with pytest.raises(InputError, match="has no row '999'"):
        row_changes(one, two, "999")
    result = CliRunner().invoke(
        app, ["compare", str(one), str(two), "--account", "37", "--json", str(one.parent / "c.json")]
    )
    assert result.exit_code == 0, result.output
    assert "row 37, " in result.output
    assert all(name in result.output for name in NAMES)


KEYED = {  # columns of keys, and the texts by which the 38th row is called
    "text": ({"customer": [f"A{i:04d}, Ü" for i in range(60)]}, "A0037, Ü"),
    "number": ({"customer": [*range(1000, 1060)]}, "1037"),
    "several": ({"branch": ["north", "south"] * 30, "customer": [i // 2 for i in range(60)]}, "south,18"),
    "position": ({}, "37"),
}


@pytest.mark.parametrize("places", [(7, 8), (7, 50)])
def test_several_rows_of_one_key_have_no_account(tmp_path, places):
    rows, folder, model = draw(np.random.default_rng(3), 60), tmp_path / "out", tmp_path / "model.joblib"
    names = np.array([f"A{i}" for i in range(60)], dtype=object)
    names[[*places]] = "B"
    rows.assign(customer=names).to_csv(tmp_path / "rows.csv", index=False)
    joblib.dump(MODEL, model)
    words = ["explain-table", model, tmp_path / "rows.csv", folder, "--trust-pickle", "--key", "customer"]
    assert CliRunner().invoke(app, [*map(str, [*words, "--rows-per-part", "20"])]).exit_code == 0
    with pytest.raises(InputError, match=rf"several rows 'B', at \[?{places[0]}, {places[1]}"):
        row_changes(folder, folder, "B")
    assert row_changes(folder, folder, "A9")


@pytest.mark.parametrize("kind", KEYED)
@pytest.mark.parametrize(("suffix", "layout"), [("csv", "wide"), ("csv", "long"), ("parquet", "wide")])
def test_the_account_of_a_row_that_is_called_by_its_key(tmp_path, kind, suffix, layout):
    cells, row = KEYED[kind]
    rows, folder, path = draw(np.random.default_rng(3), 60), tmp_path / "out", tmp_path / f"rows.{suffix}"
    table = rows.assign(**cells)
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    model = tmp_path / "model.joblib"
    joblib.dump(MODEL, model)
    words = ["explain-table", model, path, folder, "--trust-pickle", "--layout", layout]
    words += ["--rows-per-part", "20", *(word for name in cells for word in ("--key", name))]
    result = CliRunner().invoke(app, [*map(str, words)])
    assert result.exit_code == 0, result.output
    shown = compare(folder, folder, "--account", row)
    assert shown.exit_code == 0, (shown.output, shown.exception)
    assert shown.output.startswith(f"row {row}, ")
    (change,) = row_changes(folder, folder, row)
    (prediction,) = MODEL.predict(rows[37:38])
    assert change.prediction == pytest.approx((prediction, prediction), rel=1e-9)
    assert "has no row" in str(compare(folder, folder, "--account", f"{row}?").exception)
