"""Networks in ONNX files: sessions of ONNX Runtime whose graph is a chain of layers and one activation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from limes._arrays import Floats
from limes.models._reading import CannotRead, Schema
from limes.models.forms._base import Form
from limes.models.readers._onnx_files import Graph, OnnxNode, graph_of
from limes.models.readers.networks import Layer, NetworkStep, form_of_steps

_ACTIVATIONS: Mapping[str, str] = {
    "Gelu": "gelu",
    "Relu": "relu",
    "Sigmoid": "logistic",
    "Softplus": "softplus",
    "Tanh": "tanh",
}
# Operators without effect on rows of numbers; the last two on rows of one
_INERT = ("Cast", "Dropout", "Flatten", "Identity")
_RESHAPING = ("Reshape", "Squeeze")
# Types float and double, of Cast
_FLOATS = (1, 11)


class _Operands(NamedTuple):
    """Inputs of a node: options and constants, whether rows come first, and their number of columns."""

    attributes: Mapping[str, Any]
    constants: Sequence[Floats]
    rows_first: bool
    width: int


def session(model: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """A session whose graph is rows → layer → activation → layer, or ends before."""
    if schema is not None and any(schema.levels):
        raise CannotRead("an ONNX network on columns of texts is not read")
    inputs = model.get_inputs()
    if len(inputs) != 1 or len(inputs[0].shape) != 2 or not isinstance(inputs[0].shape[1], int):
        raise CannotRead("of ONNX, networks with one input of rows of numbers are read")
    return form_of_steps(_chain(graph_of(_bytes_of(model)), inputs[0].shape[1]))


def _bytes_of(model: Any) -> bytes:
    """The file from which the session was made."""
    data, path = getattr(model, "_model_bytes", None), getattr(model, "_model_path", None)
    if isinstance(data, bytes):
        return data
    try:
        return Path(str(path)).read_bytes()
    except OSError as error:
        raise CannotRead(f"the session's ONNX file is not there to be read: {error}") from error


def _chain(graph: Graph, width: int) -> list[NetworkStep]:
    """The steps from the input to the output, each of which reads the one before."""
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise CannotRead("of ONNX, networks with one input and one output are read")
    steps: list[NetworkStep] = []
    rows = graph.inputs[0]
    for node in graph.nodes:
        others = [name for name in node.inputs if name and name not in graph.constants]
        if others != [rows]:
            raise CannotRead(f"the ONNX graph is no chain: {node.operator} reads {' and '.join(others)}")
        step = _step(node, graph.constants, rows, width)
        if step is not None:
            steps.append(step)
        width = step[0].shape[1] if isinstance(step, tuple) else width
        rows = node.outputs[0]
    if rows != graph.outputs[0]:
        raise CannotRead("the ONNX graph is no chain from its input to its output")
    return steps


def _step(node: OnnxNode, constants: Mapping[str, Any], rows: str, width: int) -> NetworkStep | None:
    """The layer or the activation of a node; None for a node without effect."""
    name, attributes = node.operator, node.attributes
    if name in _INERT and attributes.get("to", 1) in _FLOATS and attributes.get("axis", 1) == 1:
        return None
    if name in _RESHAPING and width == 1:
        return None
    if name in _ACTIVATIONS and attributes.get("approximate", "none") == "none":
        return _ACTIVATIONS[name]
    if name not in _LAYERS:
        raise CannotRead(
            "of ONNX, layers (Gemm, MatMul, Add, Sub, Mul, Div) and the activations "
            f"{', '.join(sorted(_ACTIVATIONS))} are read; this graph has {name}"
        )
    values = [constants[each] for each in node.inputs if each and each != rows]
    if any(value is None for value in values):
        raise CannotRead(f"{name} of the ONNX graph has weights that are no numbers")
    return _LAYERS[name](_Operands(attributes, values, node.inputs[0] == rows, width))


def _product(operands: _Operands) -> Layer:
    (weights,) = operands.constants
    if not operands.rows_first or weights.ndim != 2:
        raise CannotRead("MatMul of the ONNX graph is no layer: its weights come first, or are no matrix")
    return weights, np.zeros(weights.shape[1])


def _general(operands: _Operands) -> Layer:
    weights, *offsets = operands.constants
    options = operands.attributes
    if not operands.rows_first or options.get("transA", 0):
        raise CannotRead("Gemm of the ONNX graph is no layer: it transposes its rows")
    weights = options.get("alpha", 1.0) * (weights.T if options.get("transB", 0) else weights)
    shift = options.get("beta", 1.0) * _row(offsets[0], weights.shape[1]) if offsets else 0.0
    return weights, np.zeros(weights.shape[1]) + shift


def _sum(operands: _Operands) -> Layer:
    return np.eye(operands.width), _row(operands.constants[0], operands.width)


def _difference(operands: _Operands) -> Layer:
    sign = 1.0 if operands.rows_first else -1.0
    return sign * np.eye(operands.width), -sign * _row(operands.constants[0], operands.width)


def _multiple(operands: _Operands) -> Layer:
    return np.diag(_row(operands.constants[0], operands.width)), np.zeros(operands.width)


def _quotient(operands: _Operands) -> Layer:
    if not operands.rows_first:
        raise CannotRead("Div of the ONNX graph divides by a column")
    return np.diag(1.0 / _row(operands.constants[0], operands.width)), np.zeros(operands.width)


def _row(values: Floats, width: int) -> Floats:
    """One number for each column, from as many or from one for all."""
    if values.size != 1 and (values.size, values.shape[-1]) != (width, width):
        raise CannotRead("the ONNX graph adds or multiplies by a table")
    return np.broadcast_to(values.reshape(-1), width)


_LAYERS: Mapping[str, Callable[[_Operands], Layer]] = {
    "Add": _sum,
    "Div": _quotient,
    "Gemm": _general,
    "MatMul": _product,
    "Mul": _multiple,
    "Sub": _difference,
}
