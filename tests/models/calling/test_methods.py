"""ONNX sessions and torch modules as models of tables: shapes, types, batches of a fixed size."""

from __future__ import annotations

import numpy as np
import pytest

import limes
import onnx_models as onnx
from internals import prediction_method
from limes.exceptions import ModelError

WEIGHTS = np.array([[1.0], [2.0], [-3.0]])
TABLE = np.random.default_rng(0).normal(size=(10, 3))


@pytest.fixture(autouse=True)
def _runtime():
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("batch", ["n", 1, 4, 10, 64])
def test_a_session_answers_tables_of_any_length(kind, batch):
    ask = prediction_method(onnx.session(onnx.linear(WEIGHTS, (batch, 3), kind)), "")
    np.testing.assert_allclose(ask(TABLE), (TABLE @ WEIGHTS)[:, 0], rtol=1e-5, atol=1e-5)


def test_several_outputs_keep_their_axis():
    ask = prediction_method(onnx.session(onnx.linear(np.eye(3), ("n", 3))), "")
    np.testing.assert_allclose(ask(TABLE), TABLE, rtol=1e-6)


def test_a_session_with_an_input_a_column():
    file = onnx.model(
        [onnx.node("Sub", ["a", "b"], "y")],
        [onnx.value("a", np.float32, ("n", 1)), onnx.value("b", np.float32, ("n", 1))],
        [onnx.value("y", np.float32, ("n", 1))],
    )
    ask = prediction_method(onnx.session(file), "")
    np.testing.assert_allclose(ask(TABLE[:, :2]), TABLE[:, 0] - TABLE[:, 1], rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="2 inputs, the table 3 columns"):
        ask(TABLE)


def test_a_session_without_numbers_is_refused():
    file = onnx.model(
        [onnx.node("Identity", ["x"], "y")],
        [onnx.value("x", str, ("n", 1))],
        [onnx.value("y", str, ("n", 1))],
    )
    with pytest.raises(ModelError, match="no output of numbers"):
        prediction_method(onnx.session(file), "")


def test_a_session_is_explained_as_the_linear_model_it_is():
    session = onnx.session(onnx.linear(WEIGHTS, ("n", 3), np.float64))
    explanation = limes.TabularExplainer(session, TABLE, bins=None, max_calls=256, control="additive")(
        TABLE[:1]
    )
    np.testing.assert_allclose(explanation.coefficients.values[0], WEIGHTS[:, 0], atol=1e-6)


def test_a_module_answers_tensors_where_they_are():
    torch = pytest.importorskip("torch", reason="pip install torch")
    module = torch.nn.Linear(3, 2).double()
    rows = torch.as_tensor(TABLE)
    ask = prediction_method(module, "")
    np.testing.assert_array_equal(ask(rows), ask(TABLE))
    assert not rows.requires_grad
    assert module.training
