"""``limes diagnose``, as a user types it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from internals import app
from wines import write_wines

TRUST = ("--trust", "sklearn.tree._tree.Tree")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("diagnose")
    write_wines(folder)
    return folder


def run(files, *arguments):
    arguments = [str(files / a) if a.endswith((".skops", ".csv", ".html", ".json")) else a for a in arguments]
    return CliRunner().invoke(app, ["diagnose", *arguments])


def test_rows_are_told_by_their_place_in_the_file(files):
    done = run(
        files,
        *("forest.skops", "wine.csv", "--row", "5", "--row", "90", "--bandwidth", "0.6", *TRUST),
        *("--html", "out.html", "--json", "out.json"),
    )
    assert done.exit_code == 0, done.output
    assert "2 rows" in done.output
    assert "→" in done.output
    assert [row["row"] for row in json.loads((files / "out.json").read_text())["rows"]] == [5, 90]
    assert "row 90" in (files / "out.html").read_text()


def test_one_row_is_told_in_full(files):
    done = run(files, "forest.skops", "wine.csv", "--row", "5", "--bandwidth", "0.4", *TRUST)
    assert done.exit_code == 0, done.output
    assert "row 5" in done.output
    assert "fidelity" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("forest.skops", "wine.csv", "--row", "500"), "500"),
        (("forest.skops",), "pass one thing to diagnose"),
    ],
)
def test_what_is_wrong_is_said(files, arguments, message):
    done = run(files, *arguments, *TRUST)
    assert done.exit_code == 1
    assert message in str(done.exception)
