"""The examples that show explanations in other libraries; each runs where its library is installed."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from limes import Explanation

EXAMPLES = Path(__file__).parents[1] / "examples" / "bridges"

# these libraries warn, on import, about each other's versions and their own plans
pytestmark = pytest.mark.filterwarnings("ignore")


def run(name):
    return runpy.run_path(str(EXAMPLES / name), run_name="example")


def test_mlflow(tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    example = run("with_mlflow.py")
    (page,) = tmp_path.rglob("page.html")
    (numbers,) = tmp_path.rglob("numbers.json")
    assert page.read_text(encoding="utf-8") == example["explanation"].to_html()
    read = Explanation.from_json(numbers.read_text(encoding="utf-8"))
    np.testing.assert_array_equal(read.values, example["explanation"].values)


def test_streamlit():
    testing = pytest.importorskip("streamlit.testing.v1")
    app = testing.AppTest.from_file(str(EXAMPLES / "with_streamlit.py"), default_timeout=120).run()
    assert not app.exception
    (frame,) = app.get("iframe")
    assert "limes-explanation" in frame.proto.srcdoc
    before = frame.proto.srcdoc
    app.number_input[0].set_value(7).run()
    (frame,) = app.get("iframe")
    assert frame.proto.srcdoc != before


def test_gradio():
    pytest.importorskip("gradio")
    example = run("with_gradio.py")
    assert example["explain"](7) != example["explain"](3)
    assert 'class="limes-explanation"' in example["explain"](3)
    assert "<script" not in example["explain"](3)


def test_shapash():
    pytest.importorskip("shapash")
    example = run("with_shapash.py")
    values = example["explanation"].values
    largest = np.abs(values).max(axis=1)
    np.testing.assert_allclose(np.abs(example["reasons"]["contribution_1"].astype(float)), largest, rtol=1e-9)
