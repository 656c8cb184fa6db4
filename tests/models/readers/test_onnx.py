"""Networks in ONNX files: read, verified against the session, and explained exactly."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr

import limes
import onnx_models
from effort import crossed
from internals import CannotRead, _row
from limes.models import forms

pytest.importorskip("onnxruntime")

X = np.random.default_rng(0).normal(size=(300, 6))
HIDDEN = {
    "Relu": lambda s: np.maximum(s, 0),
    "Tanh": np.tanh,
    "Sigmoid": lambda s: 1 / (1 + np.exp(-s)),
    "Softplus": lambda s: np.logaddexp(0, s),
    "Gelu": lambda s: s * ndtr(s),
}


def weights(seed, outputs=1, kind=np.float32):
    rng = np.random.default_rng(seed)
    return {
        "w": rng.normal(size=(6, 5)).astype(kind),
        "b": rng.normal(size=5).astype(kind),
        "v": rng.normal(size=(5, outputs)).astype(kind),
        "c": rng.normal(size=outputs).astype(kind),
    }


def added(activation):
    return [
        ("MatMul", ["w"], {}),
        ("Add", ["b"], {}),
        (activation, [], {}),
        ("MatMul", ["v"], {}),
        ("Add", ["c"], {}),
    ]


def general(activation):
    return [
        ("Gemm", ["t", "b"], {"transB": 1, "alpha": 0.5, "beta": 2.0}),
        (activation, [], {}),
        ("Gemm", ["v", "c"], {}),
    ]


@pytest.mark.parametrize(("activation", "outputs", "seed"), crossed(HIDDEN, [1, 3], range(3)))
def test_networks_are_exact(activation, outputs, seed):
    tensors = weights(seed, outputs)
    w, b, v, c = (tensors[name].astype(float) for name in "wbvc")
    session = onnx_models.session(onnx_models.network(added(activation), 6, outputs, tensors))
    form = limes.models.read(session)
    assert isinstance(form, forms.Ridges)
    expected = HIDDEN[activation](X @ w + b) @ v + c
    assert np.allclose(form.predict(X).reshape(expected.shape), expected, rtol=0, atol=1e-12)
    explanation = limes.TabularExplainer(session, X, method="exact")(X[:1])
    assert explanation.method == "exact"


def test_layers_with_options():
    tensors = weights(1)
    w, b, v, c = (tensors[name].astype(float) for name in "wbvc")
    session = onnx_models.session(onnx_models.network(general("Tanh"), 6, 1, tensors | {"t": tensors["w"].T}))
    expected = np.tanh(0.5 * X @ w + 2.0 * b) @ v[:, 0] + c[0]
    assert np.allclose(limes.models.read(session).predict(X), expected, rtol=0, atol=1e-12)
    assert limes.TabularExplainer(session, X, method="exact")(X[:1]).method == "exact"


def test_scaled_columns_before_a_network(tmp_path):
    """As converters of Pipelines write them, and from a file."""
    tensors = weights(2) | {"m": X.mean(axis=0), "s": X.std(axis=0), "h": np.array(0.5)}
    steps = [("Sub", ["m"], {}), ("Div", ["s"], {}), *added("Relu"), ("Mul", ["h"], {}), ("Identity", [], {})]
    path = tmp_path / "network.onnx"
    path.write_bytes(onnx_models.network(steps, 6, 1, tensors))
    session = onnx_models.session(str(path))
    w, b, v, c = (tensors[name].astype(float) for name in "wbvc")
    m, s = (tensors[name].astype(np.float32).astype(float) for name in "ms")
    expected = 0.5 * (np.maximum((X - m) / s @ w + b, 0) @ v[:, 0] + c[0])
    assert np.allclose(limes.models.read(session).predict(X), expected, rtol=0, atol=1e-12)
    assert limes.TabularExplainer(session, X, method="exact")(X[:1]).method == "exact"
    path.unlink()
    assert "no longer exists, or cannot be opened" in limes.models.read(session).reason


def test_one_layer_and_a_sigmoid_is_a_probability():
    tensors = {"w": weights(3)["w"][:, :1], "b": [0.3]}
    session = onnx_models.session(
        onnx_models.network([("MatMul", ["w"], {}), ("Add", ["b"], {}), ("Sigmoid", [], {})], 6, 1, tensors)
    )
    form = limes.models.read(session)
    assert isinstance(form, forms.Linked)
    assert limes.TabularExplainer(session, X, method="exact")(X[:2]).method == "exact"


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([*added("Relu"), ("Sigmoid", [], {})], "as a margin, it is read"),
        ([*added("Relu")[:3], ("MatMul", ["q"], {}), *added("Relu")[2:]], "2 hidden layers"),
        ([("MatMul", ["w"], {}), ("Gelu", [], {"approximate": "tanh"}), ("MatMul", ["v"], {})], "has Gelu"),
        ([("Softmax", [], {})], "has Softmax"),
        ([("Cast", [], {"to": 7}), ("Cast", [], {"to": 1})], "has Cast"),
        ([("Gemm", ["p"], {"transA": 1})], "transposes its rows"),
    ],
)
def test_other_graphs_say_why(steps, reason):
    tensors = weights(4) | {"q": np.eye(5), "p": np.ones((1, 6))}
    data = onnx_models.network(steps, 6, "k", tensors)
    form = limes.models.read(onnx_models.session(data) if "transA" not in str(steps) else one_row(data))
    assert isinstance(form, forms.BlackBox)
    assert reason in form.reason


def test_reasons_are_clauses_that_stand_behind_because():
    """Pages say "sampled with 400 model calls, because ..."."""
    raised = [
        node.args[0]
        for path in Path(limes.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "CannotRead" and node.args
    ]
    texts = [getattr(reason, "values", [reason])[0] for reason in raised]
    starts = [text.value for text in texts if isinstance(text, ast.Constant)]
    assert len(starts) > 50
    assert [start for start in starts if start.split()[0] in ("of", "in", "for", "at", "from")] == []


def one_row(data):
    """A stand-in for a session that takes its table by columns."""
    session = onnx_models.session(onnx_models.network(added("Relu"), 6, 1, weights(4)))
    session._model_bytes = data
    return session


def test_a_graph_with_branches_is_refused():
    nodes = [
        onnx_models.node("Relu", ["x"], "r"),
        onnx_models.node("Add", ["x", "r"], "y"),
    ]
    kinds = [onnx_models.value(name, np.float32, ("n", 6)) for name in "xy"]
    form = limes.models.read(onnx_models.session(onnx_models.model(nodes, kinds[:1], kinds[1:])))
    assert "is no chain: Add reads x and r" in form.reason


def test_a_damaged_file_is_refused():
    session = onnx_models.session(onnx_models.network(added("Relu"), 6, 1, weights(4)))
    for damaged in (b"\xff", session._model_bytes[:50], b""):
        session._model_bytes = damaged
        assert "cannot be parsed" in limes.models.read(session).reason


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (3,), (1, 3), (1, 1, 3)])
def test_constants_that_broadcast_over_columns(shape):
    values = np.arange(1.0, 1.0 + np.prod(shape, dtype=int)).reshape(shape)
    rows = np.ones((5, 3))
    np.testing.assert_array_equal(np.broadcast_to(_row(values, 3), (5, 3)), (rows * values).reshape(5, 3))


@pytest.mark.parametrize("shape", [(3, 1), (2,), (5, 3), (3, 3)])
def test_constants_with_a_number_for_each_row_are_refused(shape):
    with pytest.raises(CannotRead, match="by a table"):
        _row(np.ones(shape), 3)
