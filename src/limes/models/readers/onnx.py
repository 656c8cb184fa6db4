"""Networks in ONNX files: sessions of ONNX Runtime whose graph is a chain of layers and one activation.

A message of protocol buffers is a list of fields, a key (number << 3 | kind) before each: kind 0 is a whole
number in groups of seven bits, 1 and 5 are eight and four bytes, 2 has a length before its bytes.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from limes._arrays import Floats
from limes.models._reading import CannotRead, Schema
from limes.models.forms._base import Form
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


# -- files -----------------------------------------------------------------------------------------------


_Fields: TypeAlias = Mapping[int, list[Any]]

# Types of tensors: float, int64, double
_TYPES: Mapping[int, np.dtype[Any]] = {1: np.dtype("<f4"), 7: np.dtype("<i8"), 11: np.dtype("<f8")}
# The fields of a tensor that hold numbers of a type where its bytes are not raw
_NUMBERS: Mapping[int, tuple[int, str]] = {1: (4, "<f4"), 7: (7, ""), 11: (10, "<f8")}


@dataclass(frozen=True, eq=False)
class OnnxNode:
    """An operator, the names of its inputs and outputs, and its attributes."""

    operator: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in the order in which they are computed, constants by name, and inputs and outputs by name."""

    nodes: Sequence[OnnxNode]
    constants: Mapping[str, Any]
    inputs: Sequence[str]
    outputs: Sequence[str]


def graph_of(data: bytes) -> Graph:
    """Parse a file."""
    try:
        (graph,) = _fields(data)[7]
        return _graph(_fields(graph))
    except (IndexError, KeyError, ValueError, struct.error) as error:
        raise CannotRead(f"the session's ONNX file cannot be parsed: {error}") from error


def _graph(fields: _Fields) -> Graph:
    constants = dict(_tensor(_fields(each)) for each in fields[5])
    nodes = []
    for each in fields[1]:
        node = _node(_fields(each))
        if node.operator == "Constant" and "value" in node.attributes:
            constants[node.outputs[0]] = node.attributes["value"]
        else:
            nodes.append(node)
    inputs, outputs = ([_text(_fields(each)[1][0]) for each in fields[number]] for number in (11, 12))
    return Graph(nodes, constants, [name for name in inputs if name not in constants], outputs)


def _node(fields: _Fields) -> OnnxNode:
    attributes = dict(_attribute(_fields(each)) for each in fields[5])
    domain = _text(fields[7][0]) if fields[7] else ""
    operator = f"{domain}.{_text(fields[4][0])}".removeprefix(".")
    return OnnxNode(operator, list(map(_text, fields[1])), list(map(_text, fields[2])), attributes)


def _attribute(fields: _Fields) -> tuple[str, Any]:
    """Name and value of an attribute: a number (2, 3), a text (4) or a tensor (5); None for other kinds."""
    value: Any = None
    if fields[2]:
        (value,) = struct.unpack("<f", fields[2][0])
    elif fields[3]:
        value = fields[3][0]
    elif fields[4]:
        value = _text(fields[4][0])
    elif fields[5]:
        value = _tensor(_fields(fields[5][0]))[1]
    return _text(fields[1][0]), value


def _tensor(fields: _Fields) -> tuple[str, Any]:
    """Name and float64 values of a tensor; None for a type that is no number."""
    name = _text(fields[8][0]) if fields[8] else ""
    if fields[14] and fields[14][0] == 1:
        raise CannotRead("the session's ONNX file keeps its weights in another file")
    kind = fields[2][0]
    if kind not in _TYPES:
        return name, None
    values = np.frombuffer(fields[9][0], _TYPES[kind]) if fields[9] else _listed(fields, kind)
    sides = [side for entry in fields[1] for side in _whole_numbers(entry)]
    return name, values.astype(np.float64).reshape(sides)


def _listed(fields: _Fields, kind: int) -> Any:
    number, dtype = _NUMBERS[kind]
    if dtype:
        return np.frombuffer(b"".join(fields[number]), np.dtype(dtype))
    return np.array(
        [value for entry in fields[number] for value in _whole_numbers(entry)], dtype=np.uint64
    ).view(np.int64)


def _whole_numbers(entry: Any) -> list[int]:
    """A whole number, or several that are packed into bytes."""
    if isinstance(entry, int):
        return [entry]
    numbers, place = [], 0
    while place < len(entry):
        number, place = _whole_number(entry, place)
        numbers.append(number)
    return numbers


def _fields(data: bytes) -> _Fields:
    fields: dict[int, list[Any]] = defaultdict(list)
    place = 0
    while place < len(data):
        key, place = _whole_number(data, place)
        value: Any
        if key & 7 == 0:
            value, place = _whole_number(data, place)
        elif key & 7 in (1, 2, 5):
            length = {1: 8, 5: 4}.get(key & 7)
            if length is None:
                length, place = _whole_number(data, place)
            value, place = data[place : place + length], place + length
        else:
            raise ValueError(f"a field of the unknown kind {key & 7}")
        fields[key >> 3].append(value)
    return fields


def _whole_number(data: bytes, place: int) -> tuple[int, int]:
    """The number that starts at a place, and the place after it."""
    number, shift = 0, 0
    while True:
        byte = data[place]
        number |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return number, place


def _text(data: bytes) -> str:
    return data.decode()
