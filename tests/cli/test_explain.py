"""The command line, as a user types it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import chdir
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from typer.main import get_command
from typer.testing import CliRunner

import limes
from internals import (
    _FILLS,
    _MODULES,
    _SEGMENTATIONS,
    METHODS,
    STRATEGIES,
    TABLE_LAWS,
    WEIGHTS,
    app,
    features_of,
    network_links,
    on_command_line,
    output_of,
)
from limes import Explanation
from limes.exceptions import InputError, LimesError
from wines import write_wines

TREE = "sklearn.tree._tree.Tree"
KERNEL = "sklearn.gaussian_process.kernels.RBF"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    X, y = write_wines(folder, 4)
    skops.io.dump(LogisticRegression(max_iter=5000).fit(X / 10, y), folder / "linear.skops")
    four = np.digitize(X["alcohol"], X["alcohol"].quantile([0.25, 0.5, 0.75]))
    skops.io.dump(LogisticRegression(max_iter=5000).fit(X / 10, four), folder / "four.skops")
    process = GaussianProcessRegressor(RBF(5.0), optimizer=None).fit(X.iloc[:20], y[:20])
    skops.io.dump(process, folder / "process.skops")
    reviews = make_pipeline(TfidfVectorizer(), LogisticRegression())
    skops.io.dump(reviews.fit(["good food", "bad food", "bad service"], [1, 0, 0]), folder / "reviews.skops")
    (folder / "broken.skops").write_text("not a model")
    (folder / "broken.csv").write_text("")
    return folder


def process(folder, *arguments):
    """Run the command line in a separate process, as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "limes", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "COLUMNS": "100", "PYTHONWARNINGS": os.environ.get("PYTHONWARNINGS", "error")},
    )


def run(folder, *arguments):
    """Run it in this process, which is ten times as fast."""
    with chdir(folder):
        return CliRunner().invoke(app, arguments, env={"COLUMNS": "100"})


def test_explain_prints_a_table_and_writes_html_and_json(files):
    result = process(
        files,
        # a pickle: skops imports every model of scikit-learn, and takes as long as all the rest
        *("explain", "forest.joblib", "wine.csv", "--row", "5", "--trust-pickle"),
        *("--output", "1", "--html", "out.html", "--json", "out.json"),
    )
    assert result.returncode == 0, result.stderr
    assert "exact" in result.stdout
    assert "is usual" in result.stdout
    assert "alcohol = " in result.stdout
    assert "<svg" in (files / "out.html").read_text() or "<div" in (files / "out.html").read_text()
    explanation = Explanation.read_json(files / "out.json")
    assert explanation.feature_names == ("alcohol", "malic_acid", "ash", "alcalinity_of_ash")
    assert explanation.coefficients.values.shape == (1, 4)
    assert json.loads((files / "out.json").read_text())


def test_explain_writes_a_report(files):
    options = ("explain", "forest.skops", "wine.csv", "--row", "5", "--trust", TREE)
    result = run(files, *options, "--report", "report.html")
    assert result.exit_code == 0, result.output
    assert "written: report.html" in result.output
    text = (files / "report.html").read_text()
    assert '"features":["alcohol","malic_acid","ash","alcalinity_of_ash"]' in text
    assert '"rank":' in text
    refused = run(files, *options, "--report", "wine.csv")
    assert "wine.csv is read by this command" in str(refused.exception)


def test_a_pickle_needs_trust(files):
    refused = process(files, "explain", "forest.joblib", "wine.parquet")
    assert refused.returncode == 1
    assert "--trust-pickle" in refused.stderr
    assert "Traceback" not in refused.stderr
    result = run(files, "explain", "forest.joblib", "wine.parquet", "--trust-pickle", "--bins", "3")
    assert result.exit_code == 0, result.output


def test_a_model_that_cannot_be_read_is_sampled_and_says_why(files):
    result = run(files, "explain", "four.skops", "wine.csv", "--max-calls", "256")
    assert result.exit_code == 0, result.output
    assert "estimated to" in result.output
    exact = run(files, "explain", "four.skops", "wine.csv", "--method", "exact")
    assert exact.exit_code == 1
    assert "margin" in str(exact.exception)
    margin = run(files, "explain", "four.skops", "wine.csv", "--output", "margin")
    assert "exact" in margin.output


def test_a_text_and_a_file_of_it_are_explained(files):
    arguments = ("explain", "reviews.skops", "--output", "margin")
    result = run(files, *arguments, "--text", "Good food, bad <b>service", "--html", "text.html")
    assert result.exit_code == 0, result.output
    assert "exact" in result.output
    assert '"food"' in result.output
    page = (files / "text.html").read_text()
    assert "&lt;" in page
    assert "<b>" not in page.split('class="lx-text"')[1].split("</p>")[0]
    (files / "review.txt").write_text("Good food, bad <b>service", encoding="utf-8")
    again = run(files, *arguments, "--text-file", "review.txt", "--html", "text.html")
    assert again.output == result.output


def test_a_text_is_explained_at_two_levels(files):
    text = "Good food. Bad service, good wine."
    result = run(files, "explain", "reviews.skops", "--hierarchy", "--text", text, "--json", "levels.json")
    assert result.exit_code == 0, result.output
    assert '"Good food"' in result.output  # the sentences, then the words
    assert '"food"' in result.output
    coarse, fine = limes.Explanation.read_json(files / "levels.json").levels
    assert len(coarse.feature_names) == 2 < len(fine.feature_names)
    refused = run(files, "explain", "four.skops", "wine.csv", "--hierarchy")
    assert "--hierarchy" in str(refused.exception)


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["reviews.skops"], "--text-file"),
        (["reviews.skops", "wine.csv", "--text", "good"], "one thing"),
        (["reviews.skops", "--text", ""], "empty"),
        (["reviews.skops", "--text", "good food", "--bins", "3"], "for tables"),
        (["reviews.skops", "--text-file", "nowhere.txt"], "no such file"),
        (["reviews.skops", "--text-file", "wine.parquet"], "UTF-8"),
        (["linear.skops", "--text", "good food"], "vectorizer"),
        (["nowhere.skops", "wine.csv"], "no such file"),
        (["forest.skops", "nowhere.csv"], "no such file"),
        (["process.skops", "wine.csv"], f"--trust {KERNEL}"),
        (["broken.skops", "wine.csv"], "not a skops file"),
        (["forest.skops", "broken.csv", "--trust", TREE], "could not be read"),
        (["wine.csv", "wine.csv"], "a model file ends in"),
        (["forest.skops", "forest.skops", "--trust", TREE], "a table ends in"),
        (["forest.skops", "wine.csv", "--trust", TREE, "--row", "1000"], "has 178 rows"),
        (["forest.skops", "wine.csv", "--trust", TREE, "--bins", "quartil"], "quartile"),
        (["forest.skops", "wine.csv", "--trust", TREE, "--output", "3"], "not a class"),
        (["forest.skops", "wine.csv", "--trust", TREE, "--drop", "nothing"], "no such column"),
        (["linear.skops", "wine.csv", "--bandwidth", "-1"], "bandwidth"),
    ],
)
def test_errors_are_advice(files, arguments, advice):
    result = run(files, "explain", *arguments)
    assert result.exit_code == 1
    assert isinstance(result.exception, LimesError)  # `main` prints these without a traceback
    assert advice in str(result.exception)


def test_trees_of_scikit_learn_need_no_trust(files):
    assert run(files, "explain", "forest.skops", "wine.csv").exit_code == 0


def test_a_separate_background(files):
    pd.read_csv(files / "wine.csv").iloc[:60].to_csv(files / "first.csv", index=False)
    result = run(
        files, "explain", "forest.skops", "wine.csv", "--background", "first.csv", "--json", "b.json"
    )
    assert result.exit_code == 0, result.output
    assert Explanation.read_json(files / "b.json").provenance["background"] == "60 rows"


@pytest.fixture
def boosted(files):
    """A table with two classes, and models of it in the libraries' files, by suffix."""
    table = pd.read_csv(files / "wine.csv")
    X, y = table.drop(columns="target"), (table["target"] > 0).astype(int)

    def saved(suffix):
        if suffix in (".json", ".ubj"):
            xgboost = pytest.importorskip("xgboost")
            xgboost.XGBClassifier(n_estimators=5).fit(X, y).save_model(files / f"b{suffix}")
        elif suffix == ".txt":
            lightgbm = pytest.importorskip("lightgbm")
            lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(X, y).booster_.save_model(files / "b.txt")
        else:
            catboost = pytest.importorskip("catboost")
            model = catboost.CatBoostClassifier(iterations=5, verbose=0, allow_writing_files=False)
            model.fit(X, y).save_model(str(files / "b.cbm"))
        return f"b{suffix}"

    return saved


@pytest.mark.parametrize("suffix", [".json", ".ubj", ".txt", ".cbm"])
def test_native_files_of_boosters(files, boosted, suffix):
    name = boosted(suffix)
    result = run(files, "explain", name, "wine.csv", "--row", "7", "--output", "margin", "--json", "m.json")
    assert result.exit_code == 0, (result.output, result.exception)
    explanation = Explanation.read_json(files / "m.json")
    assert explanation.method == "exact"
    assert explanation.feature_names == (
        "alcohol",
        "malic_acid",
        "ash",
        "alcalinity_of_ash",
    )  # not the target
    assert explanation.ids == (7,)
    if suffix != ".txt":
        assert "log-odds of target = 1" in result.output


@pytest.mark.parametrize(
    ("suffix", "library"), [(".ubj", "XGBoost"), (".txt", "LightGBM"), (".cbm", "CatBoost")]
)
def test_a_file_that_is_not_a_booster_is_refused(files, suffix, library):
    pytest.importorskip(library.lower())
    (files / f"no{suffix}").write_text("nothing")
    result = run(files, "explain", f"no{suffix}", "wine.csv")
    assert f"is not a model of {library}" in str(result.exception)


def test_an_unknown_option_is_refused(files):
    result = run(files, "explain", "forest.skops", "wine.csv", "--rov", "3")
    assert result.exit_code == 2
    assert "--row" in result.output


def test_demo_explains_a_tumour_exactly(tmp_path):
    result = run(tmp_path, "demo")
    assert result.exit_code == 0, result.output
    assert "exact" in result.output
    assert "worst perimeter" in result.output
    assert "Proved to be the fewest columns" in result.output
    page = (tmp_path / "limes-demo.html").read_text()
    assert len(page) < 100_000
    assert "worst perimeter" in page
    assert "143 tumours" in (tmp_path / "limes-demo-report.html").read_text()
    assert (tmp_path / "limes-demo.png").read_bytes().startswith(b"\x89PNG")


def test_a_table_without_the_model_columns_is_refused(files):
    pd.DataFrame({"alcohol": [1.0], "ash": [2.0]}).to_csv(files / "less.csv", index=False)
    result = run(files, "explain", "forest.skops", "less.csv", "--trust", TREE)
    assert result.exit_code == 1
    assert "malic_acid" in str(result.exception)


def test_the_version_is_printed(tmp_path):
    assert run(tmp_path, "--version").output == f"limes {limes.__version__}\n"


def test_the_version_is_printed_without_scipy():
    command = [sys.executable, "-X", "importtime", "-m", "limes", "--version"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "limes._cli.program" in loaded
    assert "scipy" not in loaded


def test_foreign_types_get_no_option_to_copy(tmp_path):
    import os

    from sklearn.preprocessing import FunctionTransformer

    skops.io.dump(FunctionTransformer(os.system), tmp_path / "evil.skops")
    (tmp_path / "t.csv").write_text("a\n1\n")
    result = CliRunner().invoke(app, ["explain", str(tmp_path / "evil.skops"), str(tmp_path / "t.csv")])
    assert isinstance(result.exception, InputError)
    assert "posix.system" in str(result.exception) or "nt.system" in str(result.exception)
    assert "--trust posix" not in str(result.exception)


def test_all_types_that_need_trust_are_named_at_once(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    X = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) % 7})
    model = lightgbm.LGBMClassifier(n_estimators=2, n_jobs=1, verbose=-1).fit(X, X["b"] > 3)
    skops.io.dump(model, tmp_path / "m.skops")
    X.to_csv(tmp_path / "rows.csv", index=False)
    words = ["explain", str(tmp_path / "m.skops"), str(tmp_path / "rows.csv")]
    text = str(CliRunner().invoke(app, words).exception)
    types = skops.io.get_untrusted_types(file=tmp_path / "m.skops")
    assert len(types) > 2
    assert all(name in text for name in types)
    assert "--trust " + types[0] not in text
    trusted = CliRunner().invoke(app, [*words, *(word for name in types for word in ("--trust", name))])
    assert trusted.exit_code == 0, trusted.exception


@pytest.mark.parametrize("name", ["none/out.html", "folder", "model.skops"])
def test_outputs_that_cannot_be_written_are_refused_before_the_work(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "model.skops").write_bytes(b"x")
    (tmp_path / "t.csv").write_text("a\n1\n")
    arguments = [str(tmp_path / "model.skops"), str(tmp_path / "t.csv"), "--html", str(tmp_path / name)]
    result = CliRunner().invoke(app, ["explain", *arguments])
    assert isinstance(result.exception, InputError)
    assert "cannot be written" in str(result.exception) or "is read by this command" in str(result.exception)
    assert (tmp_path / "model.skops").read_bytes() == b"x"


def test_the_law_of_covers_explains_a_row(files, tmp_path):
    out = tmp_path / "covers.json"
    command = ("explain", "forest.joblib", "wine.csv", "--trust-pickle", "--row", "5", "--output", "1")
    result = run(files, *command, "--law", "covers", "--json", str(out))
    assert result.exit_code == 0
    assert "the average of the trees over their training rows" in " ".join(result.output.split())
    wines = pd.read_csv(files / "wine.csv")
    model = joblib.load(files / "forest.joblib")
    account = Explanation.from_json(out.read_text()).contributions
    rows = wines[[*model.feature_names_in_]].iloc[[5]]
    expected = limes.TabularExplainer(model, law="covers", output=1)(rows).contributions
    np.testing.assert_array_equal(account.values, expected.values)
    for more, message in (
        (("--bins", "decile"), "bins='decile' is about perturbed rows"),
        (("--max-calls", "99"), "max_calls=99 is about perturbed rows"),
    ):
        refused = run(files, *command, "--law", "covers", *more)
        assert message in str(refused.exception)


@pytest.mark.parametrize(
    "command",
    [
        ("decide", "forest.joblib", "wine.csv", "--above", "0.5"),
        ("explain-table", "forest.joblib", "wine.csv", "explained"),
        ("app", "forest.joblib", "wine.csv"),
    ],
)
def test_commands_that_need_other_rows_refuse_the_law_of_covers(files, command):
    refused = run(files, *command, "--trust-pickle", "--law", "covers")
    assert isinstance(refused.exception, InputError)
    assert f"limes {command[0]} needs another" in str(refused.exception)


def test_the_joint_law_is_an_option(files, tmp_path):
    out = tmp_path / "joint.json"
    options = ("--drop", "target", "--law", "joint", "--json", str(out))
    result = run(files, "explain", "forest.skops", "wine.csv", *options)
    assert result.exit_code == 0, result.output
    explanation = Explanation.read_json(out)
    table = pd.read_csv(files / "wine.csv").drop(columns="target")
    reference = limes.TabularExplainer(joblib.load(files / "forest.joblib"), table, law="joint")(
        table.iloc[:1]
    )
    assert explanation.coefficients.values.tolist() == reference.coefficients.values.tolist()
    assert explanation.coefficients.effective_rows.tolist() == reference.coefficients.effective_rows.tolist()
    assert explanation.provenance["law"] == "joint"
    page = tmp_path / "joint.html"
    result = run(files, "diagnose", "forest.skops", "wine.csv", *options[:4], "--html", str(page))
    assert result.exit_code == 0, result.output
    assert "laws apart" in page.read_text()


def test_a_row_is_explained_by_few_facts(files):
    arguments = ("explain", "forest.joblib", "wine.csv", "--trust-pickle", "--output", "1", "--row", "7")
    result = run(
        files,
        *arguments,
        "--sparse",
        "2",
        "--exclude",
        "alcohol",
        "--html",
        "rule.html",
        "--json",
        "rule.json",
    )
    assert result.exit_code == 0, result.output
    rule = Explanation.read_json(files / "rule.json")
    assert rule.ids == (7,)
    assert (rule.coefficients.values != 0).sum() == 2
    assert rule[0, "alcohol"].coefficients.values[0, 0] == 0.0
    output = " ".join(result.output.split())
    assert rule.rule().split("  ->")[0].replace("  ", " ") in output
    assert "with 95% confidence" in output
    assert "with 95% confidence" in (files / "rule.html").read_text()
    for objective, promise in (("precision", "stays within"), ("class", "below 0.6")):
        holding = run(files, *arguments, "--sparse", "2", "--objective", objective, "--threshold", "0.6")
        assert f"the probability {'is ' * (objective == 'class')}{promise}" in " ".join(
            holding.output.split()
        )
    for law, clause in (("literal", "keep 73%"), ("background", "are rows of the table")):
        options = () if law == "literal" else ("--law", law)
        holding = run(files, *arguments, "--sparse", "2", "--objective", "precision", *options)
        assert f"Neighbours {clause}" in " ".join(holding.output.split())
    for options, message in [
        (("--sparse", "2", "--weights", "euclidean"), "leave out"),
        (("--sparse", "2", "--law", "joint"), "leave out"),
        (("--sparse", "2", "--exclude", "alcohl"), "did you mean 'alcohol'"),
        (("--exclude", "alcohol"), "go with --sparse"),
        (("--objective", "precision"), "go with --sparse"),
        (("--sparse", "2", "--objective", "preciseness"), "did you mean 'precision'"),
    ]:
        refused = run(files, *arguments, *options)
        assert isinstance(refused.exception, InputError)
        assert message in str(refused.exception)
    no_table = run(files, "explain", "reviews.skops", "--text", "good", "--sparse", "2")
    assert "tables" in str(no_table.exception)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are closed otherwise there")
def test_a_reader_that_has_enough_is_no_error_of_the_model():
    """``limes explain --help | head -1``: the pipe is closed before all is printed."""
    command = [sys.executable, "-m", "limes", "explain", "--help"]
    end, start = os.pipe()
    os.close(end)
    with os.fdopen(start, "w") as closed:
        ended = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, timeout=120)
    assert "sys.exit" not in ended.stderr


def test_facts_of_a_row_hold_for_certain(files):
    arguments = ("explain", "forest.joblib", "wine.csv", "--trust-pickle", "--output", "1", "--row", "7")
    result = run(files, *arguments, "--objective", "certain", "--exclude", "ash", "--json", "facts.json")
    assert result.exit_code == 0, result.output
    facts = Explanation.read_json(files / "facts.json")
    table = pd.read_csv(files / "wine.csv").drop(columns="target")
    domain = limes.Domain.fit(table)
    model = joblib.load(files / "forest.joblib")
    explainer = limes.SparseExplainer(model, domain=domain, objective="certain", output=1, exclude=["ash"])
    assert facts.certificate.facts == explainer(table.iloc[[7]]).certificate.facts
    assert facts.certificate.proved
    assert "whatever its other columns are, has a probability" in " ".join(result.output.split())
    for options, message in [
        (("--sparse", "2"), "fewest facts: leave out --sparse"),
        (("--bins", "decile"), "leave out --bins, --law"),
        (("--law", "background"), "leave out --bins, --law"),
        (("--weights", "euclidean"), "--objective certain explains tables by facts"),
    ]:
        refused = run(files, *arguments, "--objective", "certain", *options)
        assert message in str(refused.exception)


def test_columns_with_numbers_for_names_are_matched_by_name():
    """Numbers in another order than 0, 1, 2, ... are names that a model was fitted with."""
    named = SimpleNamespace(feature_name=lambda: ["2020", "2019", "2021"])
    assert [*features_of(named)] == ["2020", "2019", "2021"]
    for prefix in ("", "f", "Column_"):
        assert not features_of(SimpleNamespace(feature_name=lambda p=prefix: [f"{p}{i}" for i in range(3)]))


@pytest.mark.parametrize(("classes", "output"), [(None, 1), ([0, 1], "1")])
def test_a_number_is_the_position_of_an_output_of_a_model_without_classes(classes, output):
    model = SimpleNamespace(classes_=classes)
    assert output_of("1", model) == output
    assert output_of("margin", model) == "margin"
    assert output_of(None, model) is None


def words_of_help(option):
    """Return what each command's help says of an option, in words; without a reference to another command."""
    options = [
        p for command in get_command(app).commands.values() for p in command.params if p.name == option
    ]
    return [re.findall(r"[\w-]+", p.help) for p in options if not p.help.startswith("As for")]


@pytest.mark.parametrize(
    ("option", "choices"),
    [
        ("law", TABLE_LAWS),
        ("bins", STRATEGIES.keys() - {"entropy"}),
        ("weights", WEIGHTS),
        ("method", METHODS),
        ("segments", _SEGMENTATIONS),
        ("fill", _FILLS),
        ("link", network_links),
        ("engine", _MODULES),
    ],
)
def test_the_help_names_all_choices(option, choices):
    """Help is text: made of the tables, it would load what they are made of, which takes a second."""
    helps = words_of_help(option)
    assert helps
    assert all(set(choices) <= set(words) for words in helps)


@pytest.mark.parametrize(
    ("in_python", "on_the_line"),
    [
        ("its margin is read with output='margin'", "its margin is read with --output margin"),
        ("pass max_calls=4096, bins=None.", "pass --max-calls 4096, --bins none."),
        ("with method='sampled' it works", "with --method sampled it works"),
        ("fill=0 is no option here", "fill=0 is no option here"),
        ("it needs error=, or threshold=: nothing", "it needs error=, or --threshold: nothing"),
        ("leave out output=['a'] and law=other", "leave out output=['a'] and law=other"),
        ("LIME's view in print(explanation.coefficients)", "LIME's view on the page, --html"),
    ],
)
def test_advice_names_options_of_the_command_line(in_python, on_the_line):
    assert on_command_line(in_python) == on_the_line
