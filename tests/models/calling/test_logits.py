"""Networks of torch and ONNX that answer logits: their probabilities on request."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import limes
import onnx_models as onnx
from limes.exceptions import InputError, ModelError

X = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)


def explained(model, output="probability", **options):
    return limes.TabularExplainer(model, X, output=output, **options)(X[3:4])


def regression(weights, shift):
    """The logistic regression of these weights, read by its own reader."""
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    model.coef_, model.intercept_ = weights.astype(np.float64), np.array([shift], dtype=np.float64)
    return model


def torch_layer(weights, shift):
    torch = pytest.importorskip("torch", reason="pip install torch")
    layer = torch.nn.Linear(3, len(weights))
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weights))
        layer.bias.copy_(torch.tensor(shift))
    return torch.nn.Sequential(layer)


def onnx_layer(weights, shift):
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    shape = ["n", len(weights)]
    return onnx.session(
        onnx.model(
            [onnx.node("Gemm", ["rows", "w", "b"], "logits", transB=1)],
            [onnx.value("rows", np.float32, ["n", 3])],
            [onnx.value("logits", np.float32, shape)],
            [onnx.tensor("w", weights.astype(np.float32)), onnx.tensor("b", shift.astype(np.float32))],
        )
    )


LAYERS = pytest.mark.parametrize("layer", [torch_layer, onnx_layer])


@LAYERS
def test_one_logit_is_log_odds(layer):
    weights, shift = np.array([[1.5, -2.0, 0.5]], dtype=np.float32), np.array([0.25], dtype=np.float32)
    explanation, logits = explained(layer(weights, shift)), explained(layer(weights, shift), None)
    expected = explained(regression(weights, 0.25), 1)
    assert explanation.method == "exact"
    # weights of single precision are the same numbers in double precision
    np.testing.assert_allclose(explanation.coefficients.values, expected.coefficients.values, rtol=1e-9)
    np.testing.assert_allclose(explanation.predictions, 1 / (1 + np.exp(-logits.predictions)), rtol=1e-6)


@LAYERS
def test_several_logits_have_a_softmax(layer):
    weights = np.array([[1.0, 0.0, 0.5], [0.0, 2.0, 0.0], [-1.0, 0.0, 0.0]], dtype=np.float32)
    model = layer(weights, np.zeros(3, dtype=np.float32))
    explanation = explained(model, max_calls=1024)
    powers = np.exp(X[3:4] @ weights.T)
    np.testing.assert_allclose(explanation.predictions, powers / powers.sum(), rtol=1e-5)
    assert "softmax" in explanation.reason
    # what is explained of a function of the same numbers, from the same draws
    same = explained(
        lambda rows: np.exp(rows @ weights.T) / np.exp(rows @ weights.T).sum(axis=1, keepdims=True), None
    )
    np.testing.assert_allclose(explanation.predictions, same.predictions, rtol=1e-5)
    np.testing.assert_allclose(
        explanation.coefficients.values,
        same.coefficients.values,
        atol=4 * same.coefficients.standard_errors.max(),
    )
    assert np.abs(same.coefficients.values).max() > 20 * same.coefficients.standard_errors.max()


def test_networks_that_answer_probabilities_already():
    torch = pytest.importorskip("torch", reason="pip install torch")
    layer = torch_layer(np.eye(3, dtype=np.float32)[:2], np.zeros(2, dtype=np.float32))
    one = torch_layer(np.ones((1, 3), dtype=np.float32), np.zeros(1, dtype=np.float32))
    for model, error in (
        (torch.nn.Sequential(one, torch.nn.Sigmoid()), InputError),
        (torch.nn.Sequential(layer, torch.nn.Softmax(dim=1)), ModelError),
    ):
        with pytest.raises(error, match="answers probabilities already: leave output='probability' out"):
            explained(model)
        # the advice
        assert ((explained(model, None).predictions > 0) & (explained(model, None).predictions < 1)).all()


def test_networks_with_several_heads():
    torch = pytest.importorskip("torch", reason="pip install torch")

    class Heads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 2)

        def forward(self, rows):
            return {"price": self.linear(rows)[:, 0], "risk": self.linear(rows)[:, 1]}

    torch.manual_seed(0)
    model = Heads()
    with pytest.raises(ModelError, match=r"has the heads \['price', 'risk'\]: pass a function of one"):
        explained(model)
    # the advice
    explanation = explained(
        lambda rows: torch.sigmoid(model(torch.as_tensor(rows, dtype=torch.float32))["risk"]), None
    )
    assert 0 < explanation.predictions[0] < 1
