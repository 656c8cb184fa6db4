"""Models that are fitted again, replaced or stopped between two calls: answers of two models never mix."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVR

import limes
from internals import CHECK_CALLS
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.exceptions import CellError, InputError, Interrupted, ModelError

TEXT = " ".join(["good", *(f"w{i}" for i in range(30))])
FEW = {"max_calls": 512, "batch_size": 64, "control": "none"}


class Scaled:
    """A model of texts that fails after some calls, and whose answers can be scaled."""

    def __init__(self):
        self.scale, self.calls, self.last = 1.0, 0, 6

    def predict(self, texts):
        self.calls += 1
        if self.calls > self.last:
            raise RuntimeError("down")
        good = np.array([text.count("good") for text in texts], dtype=float)
        return self.scale * (good + 0.01 * np.array([len(text.split()) ** 2 for text in texts]))


def test_a_text_is_not_resumed_with_answers_of_another_model():
    model = Scaled()
    explainer = limes.TextExplainer(model, **FEW)
    with pytest.raises(ModelError, match="down"):
        explainer(TEXT)
    model.last, model.scale = np.inf, 100.0
    resumed, fresh = explainer(TEXT), limes.TextExplainer(model, **FEW)(TEXT)
    assert np.array_equal(resumed.coefficients.values, fresh.coefficients.values)
    assert resumed.model_calls + CHECK_CALLS == fresh.model_calls


def test_a_text_is_resumed_with_answers_of_the_same_model():
    model = Scaled()
    explainer = limes.TextExplainer(model, **FEW)
    with pytest.raises(ModelError, match="down"):
        explainer(TEXT)
    model.last, before = np.inf, model.calls
    resumed, after = explainer(TEXT), model.calls
    fresh = limes.TextExplainer(model, **FEW)(TEXT)
    assert np.array_equal(resumed.coefficients.values, fresh.coefficients.values)
    assert after - before < model.calls - after  # calls of the fresh one


def test_a_text_that_is_stopped_is_interrupted():
    def model(texts):
        model.calls += 1
        if model.calls > 2:
            raise KeyboardInterrupt
        return np.array([len(text) for text in texts], dtype=float)

    model.calls = 0
    with pytest.raises(Interrupted, match="repeat the call to continue") as stop:
        limes.TextExplainer(model, **FEW)(TEXT)
    assert stop.value.partial is None


def test_partial_images_are_averages_over_all_fills():
    images = [np.random.default_rng(i).integers(0, 255, (8, 8, 3)).astype(np.uint8) for i in range(3)]

    def model(batch):
        model.calls += 1
        if model.calls > model.last:
            raise RuntimeError("down")
        return batch[..., 0].mean(axis=(1, 2)) / 255.0

    model.calls, model.last = 0, np.inf
    grid = {"segments": "grid", "segment_options": {"rows": 2, "columns": 2}}
    explainer = limes.ImageExplainer(model, fill=["mean", 0], **grid)
    explainer(images, progress=False)  # asks whether the model is a function
    model.calls = 0
    complete, needed = explainer(images, progress=False), model.calls
    model.calls, model.last = 0, needed - 1
    with pytest.raises(ModelError, match="down") as failure:
        explainer(images, progress=False)
    assert len(failure.value.partial) == 2
    for part, whole in zip(failure.value.partial, complete[:2], strict=True):
        assert part.provenance["by_fill"].keys() == {"mean", "0"}
        assert np.array_equal(part.coefficients.values, whole.coefficients.values)


def test_diagnose_refuses_explanations_of_an_earlier_fit():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = SVR(C=10.0).fit(X, y)
    explanation = limes.TabularExplainer(model, X)(X.iloc[:1])
    assert limes.diagnose(explanation, progress=False).rows
    model.fit(X, 100.0 * y)
    with pytest.raises(InputError, match="the model was fitted again since this explanation"):
        limes.diagnose(explanation, progress=False)


def test_diagnose_refuses_them_also_after_the_explainer_has_read_the_new_fit():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = SVR(C=10.0).fit(X, y)
    explainer = limes.TabularExplainer(model, X)
    explanation = explainer(X.iloc[:1])
    model.fit(X, 100.0 * y)
    assert limes.diagnose(explainer(X.iloc[:1]), progress=False).rows
    with pytest.raises(InputError, match="the model was fitted again since this explanation"):
        limes.diagnose(explanation, progress=False)


def test_a_bad_cell_beside_a_new_category_does_not_refuse_the_category_for_ever():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": rng.choice(["a", "b"], 80), "x": rng.normal(size=80)})
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["c"]), remainder="passthrough"
    )
    model = make_pipeline(encoder, LinearRegression()).fit(X, X.x + (X.c == "a"))
    explainer = limes.TabularExplainer(model, X)
    with pytest.raises(CellError, match="row 0, column 'x': inf is not finite"):
        explainer(pd.DataFrame({"c": ["z"], "x": [np.inf]}))
    assert explainer(pd.DataFrame({"c": ["z"], "x": [0.1]})).conditions[0][0] == "c = z"


def test_another_design_of_a_reproducible_explainer_is_reproducible():
    X, y = load_diabetes(return_X_y=True)
    explainer = limes.TabularExplainer(SVR().fit(X, y), X).reproducible._with_design(bins=2)
    whole = explainer(X[:50]).coefficients.values
    assert np.array_equal(whole, np.concatenate([explainer(row).coefficients.values for row in X[:50]]))
    assert explainer.reproducible._design_options["bins"] == 2


def test_limes_call_explains_the_function_that_is_passed():
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=500).fit(X, y)
    passed = model.predict_proba
    model.predict_proba = lambda table: passed(table)[:, ::-1]
    explanation = LimeTabularExplainer(X).explain_instance(X[0], passed, labels=(0,))
    assert np.allclose(explanation.predict_proba, passed(X[:1])[0])
