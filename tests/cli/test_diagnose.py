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


def test_rows_are_identified_by_their_position_in_the_file(files):
    result = run(
        files,
        *("forest.skops", "wine.csv", "--row", "5", "--row", "90", "--bandwidth", "0.6", *TRUST),
        *("--html", "out.html", "--json", "out.json"),
    )
    assert result.exit_code == 0, result.output
    assert "2 rows" in result.output
    assert "→" in result.output
    assert [row["row"] for row in json.loads((files / "out.json").read_text())["rows"]] == [5, 90]
    assert "row 90" in (files / "out.html").read_text()


def test_one_row_gets_the_full_diagnosis(files):
    result = run(files, "forest.skops", "wine.csv", "--row", "5", "--bandwidth", "0.4", *TRUST)
    assert result.exit_code == 0, result.output
    assert "row 5" in result.output
    assert "fidelity" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("forest.skops", "wine.csv", "--row", "500"), "500"),
        (("forest.skops",), "pass one thing to diagnose"),
    ],
)
def test_errors_say_what_is_wrong(files, arguments, message):
    result = run(files, *arguments, *TRUST)
    assert result.exit_code == 1
    assert message in str(result.exception)
