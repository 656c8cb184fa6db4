"""Answers in the types of libraries and services are explained as the numbers they contain."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import IsolationForest, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.multioutput import ClassifierChain
from sklearn.semi_supervised import SelfTrainingClassifier

import limes
import onnx_models as onnx
from limes.exceptions import InputError, ModelError

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(200, 2)), columns=["a", "b"])
ROW = X.iloc[[3]]


def chance(table):
    return 1.0 / (1.0 + np.exp(-(np.asarray(table["a"]) + 0.5 * np.asarray(table["b"]))))


def by_label(table):
    # rows may list their labels in any order
    pairs = [[("no", 1 - p), ("yes", p)] for p in chance(table)]
    return [dict(pair[:: 1 if i % 2 else -1]) for i, pair in enumerate(pairs)]


class Tensor:
    """A tensor that requires a gradient, as torch's: numpy cannot read it before it is detached."""

    def __init__(self, array, *, attached=True):
        self.array, self.attached = array, attached

    def detach(self):
        return Tensor(self.array, attached=False)

    def cpu(self):
        return self

    def __array__(self, dtype=None, copy=None):
        if self.attached:
            raise RuntimeError("can't call numpy() on a tensor that requires grad: use detach()")
        return self.array if dtype is None else self.array.astype(dtype)


class Half(Tensor):
    """A tensor of bfloat16, which numpy cannot read."""

    dtype = "torch.bfloat16"

    def detach(self):
        return self

    def float(self):
        return Tensor(self.array, attached=False)


ONE = {
    "a scalar for one row": lambda t: np.squeeze(chance(t)),
    "a list": lambda t: chance(t).tolist(),
    "a series": lambda t: pd.Series(chance(t), name="score"),
    "a tensor with a gradient": lambda t: Tensor(chance(t)),
    "a tensor of bfloat16": lambda t: Half(chance(t)),
}
# with the names of their columns
SEVERAL = {
    "mappings by label": (by_label, ("no", "yes")),
    "a tuple of mappings": (lambda t: tuple(by_label(t)), ("no", "yes")),
    "an array of mappings": (lambda t: np.array(by_label(t), dtype=object), ("no", "yes")),
    "one mapping for one row": (lambda t: by_label(t)[0] if len(t) == 1 else by_label(t), ("no", "yes")),
    "numbers as labels": (lambda t: [{10: 1 - p, 2: p} for p in chance(t)], ("2", "10")),
    "a mapping of arrays": (lambda t: {"no": 1 - chance(t), "yes": chance(t)[:, None]}, ("no", "yes")),
    "a mapping of tensors": (lambda t: {"yes": Tensor(chance(t)), "no": 1 - chance(t)}, ("yes", "no")),
    "a head of several": (
        lambda t: {"p": np.c_[1 - chance(t), chance(t)], "size": t["a"]},
        ("p: 0", "p: 1", "size"),
    ),
    "a frame": (lambda t: pd.DataFrame({"no": 1 - chance(t), "yes": chance(t)}), ("no", "yes")),
    "a frame of polars": (lambda t: pl.DataFrame({"no": 1 - chance(t), "yes": chance(t)}), ("no", "yes")),
    "a frame without names": (lambda t: pd.DataFrame(np.c_[1 - chance(t), chance(t)]), ("0", "1")),
    "trailing axes": (lambda t: np.c_[1 - chance(t), chance(t)][:, :, None, None], ("0", "1")),
    "squeezed": (lambda t: np.squeeze(np.c_[1 - chance(t), chance(t)]), ("0", "1")),
}


@pytest.fixture(scope="module")
def plain():
    return limes.TabularExplainer(chance, X, max_calls=1024, rng=0)(ROW)


@pytest.mark.parametrize("model", ONE.values(), ids=ONE)
def test_one_number_a_row(model, plain):
    explanation = limes.TabularExplainer(model, X, max_calls=1024, rng=0)(ROW)
    np.testing.assert_array_equal(explanation.coefficients.values, plain.coefficients.values)
    np.testing.assert_array_equal(explanation.predictions, chance(ROW))


@pytest.mark.parametrize(("model", "names"), SEVERAL.values(), ids=SEVERAL)
def test_several_numbers_a_row(model, names):
    explainer = limes.TabularExplainer(model, X, max_calls=1024, rng=0)
    one, more = explainer(ROW), explainer(X.iloc[:3])
    assert one.output_names == more.output_names == names
    expected = {"no": 1 - chance(ROW), "yes": chance(ROW), "2": chance(ROW), "10": 1 - chance(ROW)}
    expected |= {"0": 1 - chance(ROW), "1": chance(ROW), "p: 0": 1 - chance(ROW), "p: 1": chance(ROW)}
    expected["size"] = ROW["a"]
    for name, prediction in zip(names, one.predictions[0], strict=True):
        assert prediction == pytest.approx(float(np.ravel(expected[name])[0]), abs=1e-15)


def test_outputs_are_chosen_by_the_names_that_answers_give(plain):
    explanation = limes.TabularExplainer(by_label, X, output="yes", max_calls=1024, rng=0)(ROW)
    assert explanation.output_names == ("yes",)
    np.testing.assert_array_equal(explanation.coefficients.values, plain.coefficients.values)
    both = limes.TabularExplainer(by_label, X, output=["yes", "no"], max_calls=1024)(ROW)
    assert both.output_names == ("yes", "no")
    with pytest.raises(InputError, match="did you mean 'yes'"):
        limes.TabularExplainer(by_label, X, output="yess")
    with pytest.raises(InputError, match="has no classes"):
        limes.TabularExplainer(chance, X, output="yes")


def test_every_explainer_takes_them():
    def spam(texts):
        return [{"ham": 1 - p, "spam": p} for p in ("win" in text for text in texts)]

    text = limes.TextExplainer(spam, output="spam")("you win money")
    assert text.output_names == ("spam",)
    np.testing.assert_allclose(text.coefficients.values[0], [0, 1, 0], atol=1e-12)
    assert limes.TextExplainer(spam)("you win money").output_names == ("ham", "spam")

    def bright(images):
        return {"light": [image[:4].mean() / 255 for image in images], "dark": [0.5] * len(images)}

    grid = {"segments": "grid", "segment_options": {"rows": 2, "columns": 1}, "fill": 0}
    image = np.full((8, 8, 3), 100, dtype=np.uint8)
    one = limes.ImageExplainer(bright, output="light", **grid)(image)
    assert one.output_names == ("light",)
    np.testing.assert_allclose(one.coefficients.values[0], [100 / 255, 0], atol=1e-12)
    series = limes.SeriesExplainer(lambda s: {"mean": np.mean(s, axis=1), "one": np.ones(len(s))}, count=4)
    assert series(np.arange(40.0)).output_names == ("mean", "one")
    rule = limes.SparseExplainer(lambda t: {"score": chance(t)}, literals=limes.Literals.fit(X), k=1)(ROW)
    assert rule.predictions[0] == pytest.approx(chance(ROW)[0])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            lambda t: [{"no": 1.0}, *[{"yes": 1.0}] * (len(t) - 1)],
            r"labels \['no'\] for row 0 .* \['yes'\] for row 1",
        ),
        (lambda t: {}, "empty mapping"),
        (lambda t: {"yes": [0.5]}, r"\['yes'\] was given \d+ rows and returned shape \(1,\)"),
        (lambda t: {"yes": ["high"] * len(t)}, "did not return numbers, but 'high'"),
        (lambda t: [{"yes": "high"}] * len(t), "did not return numbers"),
        (lambda t: np.zeros((len(t), 2, 3)), "returned shape"),
        (lambda t: None, "is a return missing"),
    ],
)
def test_invalid_answers_are_refused(model, message):
    with pytest.raises(ModelError, match=message):
        limes.TabularExplainer(model, X)(ROW)


def test_columns_do_not_change_between_calls():
    calls = 0

    def model(table):
        nonlocal calls
        calls += 1
        return {"a" if calls == 1 else "b": chance(table), "c": chance(table)}

    with pytest.raises(ModelError, match=r"answered \['b', 'c'\] and, before, \['a', 'c'\]"):
        limes.TabularExplainer(model, X)(ROW)


def test_classifiers_need_no_predict(plain):
    def of(table):
        return np.c_[1 - chance(table), chance(table)]

    model = SimpleNamespace(predict_proba=of, classes_=np.array(["no", "yes"]))
    explanation = limes.TabularExplainer(model, X, max_calls=1024, rng=0)(ROW)
    assert explanation.output_names == ("no", "yes")
    assert "% chance of yes" in str(explanation)
    np.testing.assert_allclose(explanation.coefficients.values[..., 1], plain.coefficients.values, atol=1e-12)
    bare = limes.TabularExplainer(SimpleNamespace(predict_proba=of), X, max_calls=1024)(ROW)
    assert bare.predictions[0, 1] == chance(ROW)[0]


def test_chains_have_two_classes_a_target():
    targets = np.c_[X["a"] > 0, X["b"] > X["a"]].astype(int)
    chain = ClassifierChain(LogisticRegression()).fit(X, targets)
    explanation = limes.TabularExplainer(chain, X, max_calls=1024)(ROW)
    assert explanation.output_names == ("0: 0", "0: 1", "1: 0", "1: 1")
    p = chain.predict_proba(ROW)[0]
    np.testing.assert_allclose(explanation.predictions[0], [1 - p[0], p[0], 1 - p[1], p[1]])


@pytest.mark.parametrize(
    "wrap",
    [
        FixedThresholdClassifier,
        lambda model: TunedThresholdClassifierCV(model, cv=2),
        SelfTrainingClassifier,
    ],
)
def test_wrappers_that_change_labels_alone_are_read(wrap):
    labels = (X["a"] > 0).astype(int)
    if wrap is SelfTrainingClassifier:
        labels[::5] = -1
    model = wrap(LogisticRegression()).fit(X, labels)
    explanation = limes.TabularExplainer(model, X)(X.iloc[:5])
    assert explanation.method == "exact"
    np.testing.assert_allclose(explanation.predictions, model.predict_proba(X.iloc[:5]), atol=1e-12)
    # self-training fits the model inside to an array
    names = hasattr(model.estimator_, "feature_names_in_")
    table = X if names else X.to_numpy()
    inside = limes.TabularExplainer(model.estimator_, table)(table[:5])
    np.testing.assert_allclose(explanation.coefficients.values, inside.coefficients.values, atol=1e-12)


def test_curves_are_no_probabilities_of_classes():
    def survival(table):
        return np.exp(-np.outer(np.exp(table["a"]), np.arange(1.0, 7.0)))

    assert limes.TabularExplainer(survival, X, max_calls=256, tolerance="50%")(ROW).predictions.sum() < 0.9
    warnings = limes.TabularExplainer(survival, X, max_calls=256)(X.iloc[:8]).row_warnings
    assert not any("add up" in text for row in warnings for text in row)


def test_failures_advise_what_to_do():
    users = pd.DataFrame({"user": RNG.integers(0, 50, 300), "x": RNG.normal(size=300)})
    embedding = RNG.normal(size=50)

    def model(table):
        return embedding[np.asarray(table["user"])] + np.asarray(table["x"])

    with pytest.raises(ModelError, match=r"'user' holds whole numbers .* categorical="):
        limes.TabularExplainer(model, users)(users.iloc[:1])
    followed = limes.TabularExplainer(model, users, categorical=["user"])(users.iloc[:1])
    assert followed.predictions[0] == model(users.iloc[:1])[0]
    forest = RandomForestRegressor(3, random_state=0).fit(X, X["a"])
    with pytest.raises(ModelError, match=r"pass background\[model.feature_names_in_\]"):
        limes.TabularExplainer(forest, X.assign(z=1.0))
    more = X.assign(z=1.0)
    assert limes.TabularExplainer(forest, more[forest.feature_names_in_])(ROW).method == "exact"
    outliers = IsolationForest(n_estimators=5, random_state=0).fit(X)
    assert "path_length(model)" in limes.TabularExplainer(outliers.score_samples, X)(ROW).reason


def test_onnx_classifiers_answer_by_label():
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    weights = np.array([[1.0, -0.5, 0.0], [0.0, 0.5, -1.0]])
    session = onnx.session(onnx.labelled(weights, ["cat", "dog", "owl"]))
    table = X.to_numpy(dtype=np.float32)
    explanation = limes.TabularExplainer(session, table, max_calls=1024)(table[3:4])
    powers = np.exp(table[3:4] @ weights)
    assert explanation.output_names == ("cat", "dog", "owl")
    np.testing.assert_allclose(explanation.predictions, powers / powers.sum(), rtol=1e-5)
    # the advice of `output=` by name works for sessions too
    one = limes.TabularExplainer(session, table, output="owl", max_calls=1024)(table[3:4])
    assert one.output_names == ("owl",)


def test_torch_modules_may_return_tuples_and_mappings():
    torch = pytest.importorskip("torch", reason="pip install torch")

    class Heads(torch.nn.Module):
        def __init__(self, answer):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)
            self.answer = answer

        def forward(self, rows):
            return self.answer(torch.tanh(self.linear(rows)))

    torch.manual_seed(0)
    module = Heads(lambda y: y)
    table = X.to_numpy(dtype=np.float32)
    plain = limes.TabularExplainer(module, table, max_calls=1024, rng=0)(table[3:4])
    for answer in (lambda y: (y, y + 1), lambda y: [y], lambda y: {"logits": y, "hidden": y[:, :1]}):
        module.answer = answer
        explanation = limes.TabularExplainer(module, table, max_calls=1024, rng=0)(table[3:4])
        np.testing.assert_array_equal(explanation.coefficients.values, plain.coefficients.values)
    module.answer = lambda y: {"price": y[:, 0], "risk": y[:, 1:]}
    named = limes.TabularExplainer(module, table, max_calls=1024, rng=0)(table[3:4])
    assert named.output_names == ("price", "risk")
    np.testing.assert_array_equal(named.coefficients.values, plain.coefficients.values)
    attached = limes.TabularExplainer(
        lambda rows: torch.tanh(module.linear(torch.tensor(rows))), table, max_calls=1024, rng=0
    )(table[3:4])
    np.testing.assert_allclose(attached.predictions, plain.predictions, rtol=1e-6)
