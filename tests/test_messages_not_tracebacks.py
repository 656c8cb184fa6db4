"""Messages in place of tracebacks: inputs of the wrong form, and files that cannot be written."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LinearRegression
from typer.testing import CliRunner

import limes
from internals import app, unpickled
from internals import files as files_module
from limes.exceptions import InputError, LimesError
from limes.scale import explain_frame

FRAME = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0) % 7})


@pytest.fixture(scope="module")
def explainer():
    return limes.TabularExplainer(LinearRegression().fit(FRAME, FRAME["a"]), FRAME)


def test_keys_are_columns_once(explainer):
    for keys, message in (("ab", "pass a list of columns"), (["a", "a"], "name each column once")):
        with pytest.raises(InputError, match=message):
            explain_frame(explainer, FRAME, keys=keys)


def test_columns_named_by_tuples_are_a_message(explainer):
    wide = FRAME.set_axis(pd.MultiIndex.from_tuples([("x", "a"), ("x", "b")]), axis=1)
    with pytest.raises(LimesError, match="column"):
        explain_frame(explainer, wide)


def of_json(explainer, **changes):
    document = json.loads(explainer(FRAME[:1], progress=False).to_json())
    return json.dumps({**document, **changes})


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"x": value}
    return value


WRONG = [
    {"certificates": [5]},
    {"certificates": 5},
    {"certificates": [{}]},
    {"provenance": nested(900)},
    {"spans": [[1]]},
    {"values": "x"},
    {"feature_names": 3},
]


@pytest.mark.parametrize("changes", WRONG, ids=lambda changes: str(changes)[:30])
def test_a_document_of_another_form_is_a_message(explainer, changes):
    with pytest.raises(LimesError):
        limes.Explanation.from_json(of_json(explainer, **changes)).to_html()


def test_facts_that_are_not_used_do_no_harm(explainer):
    changed = of_json(explainer, provenance={"image": 5})
    assert limes.Explanation.from_json(changed).to_html()


def run(*arguments):
    return CliRunner().invoke(app, [*arguments])


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    skops.io.dump(LinearRegression().fit(FRAME, FRAME["a"]), "model.skops")
    FRAME.to_csv("in.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("where", ["missing/out.html", ".", "model.skops", "in.csv"])
def test_pages_go_to_files_that_can_be_written_and_overwrite_no_input(files, where):
    before = (files / "model.skops").read_bytes(), (files / "in.csv").read_bytes()
    for option in ("--html", "--json"):
        result = run("explain", "model.skops", "in.csv", "--row", "0", option, where)
        assert isinstance(result.exception, LimesError), result.output
    assert ((files / "model.skops").read_bytes(), (files / "in.csv").read_bytes()) == before


def test_a_pickled_array_inside_a_model_is_refused(files):
    with zipfile.ZipFile("model.skops") as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    import pickle

    with zipfile.ZipFile("model.skops", "w") as archive:
        for name, text in content.items():
            archive.writestr(name, pickle.dumps({"x": 1}) if name.endswith(".npy") else text)
    result = run("explain", "model.skops", "in.csv", "--row", "0")
    assert isinstance(result.exception, InputError), result.output


def test_a_model_file_that_would_fill_memory_is_refused(files):
    archive = zipfile.ZipFile("model.skops", "a", zipfile.ZIP_DEFLATED)
    with archive, archive.open("bomb.npy", "w") as file:
        for _ in range(400):
            file.write(b"\0" * (1 << 20))
    assert (files / "model.skops").stat().st_size < 1 << 20
    result = run("explain", "model.skops", "in.csv", "--row", "0")
    assert isinstance(result.exception, InputError)
    assert "would take 0.4 GB of memory" in str(result.exception)


def test_a_large_model_file_is_no_bomb_where_its_size_on_disk_is_plausible(files, monkeypatch):
    monkeypatch.setattr(files_module, "_PLAUSIBLE", 1 << 16)
    with zipfile.ZipFile("model.skops", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("trees.npy", np.random.default_rng(0).bytes(1 << 16) + bytes(1 << 19))
    assert run("explain", "model.skops", "in.csv", "--row", "0").exit_code == 0


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (f"limes {limes.__version__}", "install limes, the model's library"),
        ("limes 0.0.9", "program that sent the model has limes 0.0.9: install one version"),
    ],
)
def test_an_error_of_loading_work_names_what_to_install(header, message):
    with pytest.raises(InputError, match=message):
        unpickled(header.encode() + b"\ncno_such_package\nThing\n.")
