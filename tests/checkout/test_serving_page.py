"""The parts of the page "Decisions explained by a service" that need MLflow or an exporter to ONNX."""

from __future__ import annotations

import re
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import limes

PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)

# these libraries warn, on import, about each other's versions and their own plans
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Return what the page's reader has: the model, its table, and the file of the explainer."""
    monkeypatch.chdir(tmp_path)
    data = load_breast_cancer(as_frame=True)
    model = RandomForestClassifier(20, random_state=0).fit(data.data, data.target_names[data.target])
    explainer = limes.TabularExplainer(model, data.data, output="malignant")
    joblib.dump(explainer.compiled(), "explain.joblib")
    return {"X": data.data, "model": model, "explainer": explainer}


def test_mlflow(page):
    mlflow = pytest.importorskip("mlflow")
    exec(BLOCKS[0], page)  # noqa: S102 - the project's own page
    answers = mlflow.pyfunc.load_model("explained").predict(page["X"].iloc[:3])
    expected = page["explainer"].contributions(page["X"].iloc[:3])
    values = answers[[f"contribution of {name}" for name in page["X"]]].to_numpy()
    np.testing.assert_array_equal(values, expected.contributions.values)
    np.testing.assert_allclose(answers["base"] + values.sum(axis=1), answers["prediction"])


def test_onnx(page):
    pytest.importorskip("skl2onnx")
    exec(BLOCKS[1], page)  # noqa: S102 - the project's own page
    assert page["apart"].shape == (len(page["X"]),)
    # another model is noticed
    other = RandomForestClassifier(20, random_state=1).fit(page["X"], page["model"].predict(page["X"]))
    with pytest.raises(AssertionError, match="another one"):
        exec(BLOCKS[1], {**page, "model": other})  # noqa: S102 - the project's own page
