"""A letter about one decision, from files."""

from __future__ import annotations

import json
import os
import re
import shutil
from contextlib import chdir
from datetime import date
from hashlib import sha256

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

import limes
from internals import app, letters
from limes.exceptions import InputError

ROWS, RNG = 1200, np.random.default_rng(0)
X = pd.DataFrame(
    {
        "income": RNG.normal(50, 12, ROWS).round(1),
        "debt": RNG.gamma(2, 5, ROWS).round(1),
        "age": RNG.integers(20, 70, ROWS),
        "purpose": RNG.choice(["car", "house", "other"], ROWS),
    }
)
SCORE = 0.1 * (X["income"] - 50) - 0.2 * (X["debt"] - 10) + 0.02 * X["age"] + (X["purpose"] == "house")
GOOD = np.where(SCORE + RNG.logistic(size=ROWS) > 0.5, "good", "bad")
IDS = [f"{i:05d}" for i in range(ROWS)]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("decide")
    encoded = make_column_transformer((OneHotEncoder(), ["purpose"]), remainder="passthrough")
    model = make_pipeline(encoded, LogisticRegression(max_iter=5000)).fit(X, GOOD)
    skops.io.dump(model, place / "credit.skops")
    skops.io.dump(make_pipeline(encoded, LinearRegression()).fit(X, SCORE), place / "loss.skops")
    joblib.dump(
        RandomForestClassifier(5, max_depth=4, random_state=0).fit(
            X[["income", "debt"]], pd.cut(SCORE, 3, labels=["a", "b", "c"]).astype(str)
        ),
        place / "three.joblib",
    )
    table = X.assign(loan=IDS, answer=GOOD)
    table.to_csv(place / "train.csv", index=False)
    share = model.predict_proba(X)[:, 1]
    table[share < 0.3].to_csv(place / "declined.csv", index=False)
    table.iloc[:50].to_parquet(place / "new.parquet")
    return place


@pytest.fixture(scope="module")
def model(folder):
    return skops.io.load(folder / "credit.skops", trusted=[])


@pytest.fixture(scope="module")
def refused(model):
    return int(np.flatnonzero(model.predict_proba(X)[:, 1] < 0.3)[4])


def run(folder, *arguments):
    with chdir(folder):
        return CliRunner().invoke(app, ["decide", *map(str, arguments)], env={"COLUMNS": "90"})


def test_a_refusal_has_adverse_reasons_and_what_would_have_changed_it(folder, model, refused):
    command = ("credit.skops", "train.csv", "--id", "loan", "--row", IDS[refused], "--above", "0.5")
    result = run(folder, *command, "--decision", "Declined.", "--json", "record.json", "--html", "page.html")
    assert result.exit_code == 0, result.output
    assert result.output == "written: page.html\nwritten: record.json\n"
    page = (folder / "page.html").read_text()
    chance = model.predict_proba(X.iloc[[refused]])[0, 1]
    assert f"<h1>Decision on {IDS[refused]}</h1>" in page
    assert f"{100 * chance:.0f}\u00a0% chance of good, below the threshold of 50\u00a0%; " in page
    assert "±" not in page
    reasons = re.findall(r"<li>(.*?) lowers the chance of good by ([\d.]+) percentage points?\.</li>", page)
    record = limes.Explanation.read_json(folder / "record.json")
    expected = limes.TabularExplainer(model, X)(X.iloc[[refused]])[..., "good"]
    assert record.contributions.values == pytest.approx(expected.contributions.values)
    order = [
        j for j in np.argsort(expected.contributions.values[0]) if expected.contributions.values[0, j] < 0
    ]
    assert [text.split(" = ")[0] for text, _ in reasons] == [X.columns[j] for j in order[:4]]
    contrast = limes.SparseExplainer(model, literals=limes.Literals.fit(X)).contrast(
        X.iloc[[refused]], above=0.5
    )
    assert contrast.changes[0].feature in page.partition("What would have changed the outcome")[2]


def test_how_it_was_made_is_in_the_page_and_in_the_record(folder, refused):
    run(
        folder, "credit.skops", "new.parquet", "--above", 0.5, "--background", "train.csv", "--json", "r.json"
    )
    digest = sha256((folder / "credit.skops").read_bytes()).hexdigest()
    facts = json.loads((folder / "r.json").read_text())["provenance"]
    assert facts["model file"] == f"credit.skops, SHA-256 {digest[:16]}…"
    assert facts["background"] == "train.csv, 1,200 rows"
    assert facts["row"] == "0 of new.parquet"
    assert date.fromisoformat(facts["date"])
    text = run(folder, "credit.skops", "new.parquet", "--above", 0.5, "--background", "train.csv").output
    for fact in (facts["model file"], facts["background"], f"limes: {limes.__version__}"):
        assert fact in " ".join(text.split())


def test_an_approval_has_supporting_reasons(folder, model):
    row = int(model.predict_proba(X)[:, 1].argmax())
    text = run(folder, "credit.skops", "train.csv", "--row", row, "--above", "0.5").output
    assert "above the threshold of 50 %" in text
    assert re.search(r"\n1\. \w+ = .* raises the chance of good by", text)
    assert " lowers " not in text.partition("What would have changed")[0]
    assert "would fall" in text


def test_reasons_of_a_refusal_raise_the_output_where_lower_is_better(folder):
    text = run(folder, "loss.skops", "train.csv", "--row", int(SCORE.argmax()), "--below", "0.5").output
    assert text.splitlines()[1].startswith("Prediction: ")
    assert ", above the threshold of 0.5; " in text
    assert re.search(r"\n1\. \w+ = .* raises the prediction by [\d.]+\.\n", text)
    assert "fall below 0.5" in text


def test_a_margin_is_explained_and_changed_as_a_margin(folder, refused):
    options = ("--row", refused, "--output", "margin", "--above", "0")
    text = run(folder, "credit.skops", "train.csv", *options).output
    assert "below the threshold of 0; " in text
    assert "lowers the log-odds of good by" in text
    assert "Proved to be the fewest columns" in text


def test_excluded_columns_stay_as_they_are(folder, refused):
    options = ("--row", refused, "--above", "0.5", "--exclude", "debt,age", "--exclude", "purpose")
    text = " ".join(run(folder, "credit.skops", "train.csv", *options).output.split())
    changes = text.partition("What would have changed the outcome")[2].partition("All other")[0]
    assert "income were" in changes
    assert not re.search("(debt|age|purpose) were", changes)
    # a column that may not change has its part in the prediction: reasons and account are the same
    free = " ".join(run(folder, "credit.skops", "train.csv", *options[:4]).output.split())
    for begin, end in (("Main reasons", "What would"), ("How the prediction", "What these")):
        part = text.partition(begin)[2].partition(end)[0]
        assert part == free.partition(begin)[2].partition(end)[0] != ""
    account = text.partition("How the prediction came about")[2]
    assert all(f" {name} = " in account for name in ("debt", "age", "purpose"))
    assert "unchanged in the contrast: debt, age, purpose" in text
    wrong = run(folder, "credit.skops", "train.csv", "--above", "0.5", "--exclude", "hight")
    assert isinstance(wrong.exception, InputError)


def test_a_table_of_rows_to_be_decided_is_no_measure_of_what_is_usual(folder):
    result = run(folder, "credit.skops", "declined.csv", "--above", "0.5")
    warning = "what is usual is learnt from the table of the row itself, of "
    assert warning in result.stderr
    assert "with predictions all not above 0.5" in result.stderr
    assert f"- W{warning[1:]}" in " ".join(result.stdout.split())
    quiet = run(folder, "credit.skops", "declined.csv", "--above", "0.5", "--background", "train.csv")
    assert not quiet.stderr
    assert warning not in quiet.stdout
    assert not run(folder, "credit.skops", "train.csv", "--above", "0.5").stderr


def test_sentences_of_a_catalogue(folder, refused):
    (folder / "words.json").write_text(json.dumps({name: f"{name}: {{value}}, {{effect}}" for name in X}))
    options = ("--row", refused, "--above", 0.5, "--catalogue", "words.json", "--reasons", "1")
    text = run(folder, "credit.skops", "train.csv", *options).output
    assert re.search(r"\n1\. \w+: \S+, [\d.]+ percentage points\n\n", text)
    for content in ("{", "[]"):
        (folder / "wrong.json").write_text(content)
        wrong = run(folder, "credit.skops", "train.csv", "--above", "0.5", "--catalogue", "wrong.json")
        assert isinstance(wrong.exception, InputError)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["credit.skops", "train.csv"], "pass the threshold that decides"),
        (
            ["credit.skops", "train.csv", "--above", "0.5", "--below", "0.2"],
            "pass the threshold that decides",
        ),
        (["credit.skops", "train.csv", "--above", "0.5", "--row", "A7"], "--id COLUMN"),
        (["credit.skops", "train.csv", "--above", "0.5", "--row", "A7", "--id", "loan"], "--row A7: no row"),
        (["credit.skops", "train.csv", "--above", "0.5", "--row", "7", "--id", "loan"], "--row 7: no row"),
        (["credit.skops", "train.csv", "--above", "0.5", "--row", "car", "--id", "purpose"], "--row car: "),
        (["credit.skops", "train.csv", "--above", "0.5", "--id", "lone"], "--id lone: no such column"),
        (["credit.skops", "train.csv", "--above", "0.5", "--row", "1200"], "the table has 1200 rows"),
        (["credit.skops", "train.csv", "--above", "0.5", "--html", "train.csv"], "is read by this command"),
        (["three.joblib", "train.csv", "--above", "0.5", "--trust-pickle"], "pass the one, --output"),
    ],
)
def test_bad_arguments_are_refused(folder, arguments, message):
    result = run(folder, *arguments)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_a_browser_that_is_missing_or_fails_is_an_error_with_advice(folder, monkeypatch, tmp_path):
    command = ("credit.skops", "train.csv", "--above", "0.5", "--pdf", "letter.pdf")
    monkeypatch.setattr(letters, "which", lambda name: None)
    result = run(folder, *command)
    assert "open it in any browser and print it there" in str(result.exception)
    script = tmp_path / "chromium"
    script.write_text("#!/bin/sh\necho no screen >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setattr(letters, "which", lambda name: os.fspath(script))
    result = run(folder, *command)
    assert isinstance(result.exception, InputError)
    assert "no screen" in str(result.exception)
    assert not (folder / "letter.pdf").exists()


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: make test-browser installs it")
def test_the_letter_is_printed_on_one_sheet(folder, refused):
    result = run(folder, "credit.skops", "train.csv", "--above", "0.5", "--row", refused, "--pdf", "l.pdf")
    assert result.exit_code == 0, result.exception
    content = (folder / "l.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) == 1
