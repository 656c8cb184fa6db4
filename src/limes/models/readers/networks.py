"""Networks with one hidden layer: c + Σ_h v_h a(w_h·x + b_h), by predictions or margins.

Networks of scikit-learn, Sequential networks of torch, and sessions of ONNX Runtime whose graph is a chain of
layers and one activation. A softmax or a sigmoid behind the last sum has no exact expectation; the margin
before it has one.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Floats
from limes.models._identity import qualified_name
from limes.models._reading import CannotRead, Schema
from limes.models.forms._base import Form, Linear, outputs_of
from limes.models.forms._linked import Linked, Ridges
from limes.models.readers.links import with_probabilities

# Weights (inputs, outputs) and offsets (outputs,)
Layer: TypeAlias = tuple[Floats, Floats]
# A layer, or the name of an activation
NetworkStep: TypeAlias = Layer | str


def regressor(model: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """MLPRegressor."""
    if model.out_activation_ != "identity":
        raise CannotRead(f"its output passes through {model.out_activation_!r}, which is not read")
    return _of_perceptron(model)


@with_probabilities("ridge functions")
def classifier(model: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """Margins of MLPClassifier: the sums before the logistic function or the softmax."""
    return _of_perceptron(model)


def _of_perceptron(model: Any) -> Form:
    steps: list[NetworkStep] = []
    for weights, offsets in zip(model.coefs_, model.intercepts_, strict=True):
        layer = np.asarray(weights, dtype=np.float64), np.asarray(offsets, dtype=np.float64)
        steps += [model.activation, layer]
    return _form_of_steps(steps[1:])


def _form_of_steps(steps: Sequence[NetworkStep]) -> Form:
    joined: list[NetworkStep] = []  # without identities, and with consecutive layers joined
    for step in steps:
        if isinstance(step, tuple) and joined and isinstance(joined[-1], tuple):
            weights, offsets = joined[-1]
            joined[-1] = weights @ step[0], offsets @ step[0] + step[1]
        elif step != "identity":
            joined.append(step)
    match joined:
        case [(weights, offsets)]:
            return Linear(*_outputs(weights, offsets))
        case [(weights, offsets), str(activation)]:
            return Linked(Linear(*_outputs(weights, offsets)), activation)
        case [(weights, offsets), str(activation), (scales, shift)]:
            coef, intercept = _outputs(scales, shift)
            return Ridges(weights.T, offsets, coef, activation, intercept)
        case [_, _, _, str(activation)]:
            raise CannotRead(f"the network ends in {activation!r}: without it, as a margin, it is read")
    hidden = sum(isinstance(step, str) for step in joined)
    raise CannotRead(
        f"a network with {hidden} hidden layers is no sum of functions of weighted sums of the "
        "columns; with one hidden layer it is"
    )


def _outputs(weights: Floats, offsets: Floats) -> tuple[Floats, Any]:
    """Weights and offsets of the last layer, without the axis of one output."""
    return (weights[:, 0], offsets[0]) if weights.shape[1] == 1 else (weights, offsets)


# -- torch ------------------------------------------------------------------------------------------------

_TORCH_ACTIVATIONS: Mapping[str, str] = {
    "torch.GELU": "gelu",
    "torch.Identity": "identity",
    "torch.ReLU": "relu",
    "torch.SiLU": "silu",
    "torch.Sigmoid": "logistic",
    "torch.Softplus": "softplus",
    "torch.Tanh": "tanh",
}
# The options with which an activation is the one of its name; a Softplus above its threshold is s to 2e-9
_TORCH_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "torch.GELU": {"approximate": "none"},
    "torch.Softplus": {"beta": 1, "threshold": 20},
}


def _behind_logits(logits: Form, method: str) -> Form:
    if method != "predict_proba":
        return logits
    if outputs_of(logits):
        raise CannotRead("the softmax of its logits is no sum; the logits themselves may be read")
    return Linked(logits, "logistic")


def sequential(module: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """Sequential(Linear, activation, Linear) of torch, with dropout anywhere."""
    if any(step._forward_hooks or step._forward_pre_hooks for step in (module, *module)):  # noqa: SLF001 - no other way
        raise CannotRead("the network has forward hooks, which may return anything")
    steps = [step for each in module if (step := _torch_step(each)) is not None]
    return _behind_logits(_form_of_steps(steps), method)


def _torch_step(step: Any) -> NetworkStep | None:
    """The layer or the activation of a module; None for a module without effect in evaluation."""
    kind = qualified_name(type(step))
    options = _TORCH_OPTIONS.get(kind, {})
    if kind == "torch.Dropout":
        return None
    if kind == "torch.Linear":
        weights = step.weight.detach().cpu().double().numpy().T
        offsets = 0.0 if step.bias is None else step.bias.detach().cpu().double().numpy()
        return weights, np.zeros(weights.shape[1]) + offsets
    if kind in _TORCH_ACTIVATIONS and all(getattr(step, name) == value for name, value in options.items()):
        return _TORCH_ACTIVATIONS[kind]
    raise CannotRead(
        "a torch network is read where it is Sequential(Linear, activation, Linear), with the activations "
        f"{', '.join(kind.removeprefix('torch.') for kind in _TORCH_ACTIVATIONS)}; this one has {step!r}"
    )


# -- ONNX -------------------------------------------------------------------------------------------------

_ONNX_ACTIVATIONS: Mapping[str, str] = {
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


def session(model: Any, method: str, schema: Schema | None) -> Form:
    """A session whose graph is rows → layer → activation → layer, or ends before."""
    if schema is not None and any(schema.levels):
        raise CannotRead("an ONNX network on columns of texts is not read")
    inputs = model.get_inputs()
    if len(inputs) != 1 or len(inputs[0].shape) != 2 or not isinstance(inputs[0].shape[1], int):
        raise CannotRead("an ONNX network is read where it has one input of rows of numbers")
    data = getattr(model, "_model_bytes", None)
    if not isinstance(data, bytes):
        try:
            data = Path(str(getattr(model, "_model_path", None))).read_bytes()
        except OSError as error:
            raise CannotRead(
                f"the session's ONNX file no longer exists, or cannot be opened: {error}"
            ) from error
    return _behind_logits(_form_of_steps(_chain(_graph_of(data), inputs[0].shape[1])), method)


def _chain(graph: _Graph, width: int) -> list[NetworkStep]:
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise CannotRead("an ONNX network is read where it has one input and one output")
    steps: list[NetworkStep] = []
    rows = graph.inputs[0]
    for node in graph.nodes:
        others = [name for name in node.inputs if name and name not in graph.constants]
        if others != [rows]:
            raise CannotRead(f"the ONNX graph is no chain: {node.operator} reads {' and '.join(others)}")
        step = _onnx_step(node, graph.constants, rows, width)
        if step is not None:
            steps.append(step)
        width = step[0].shape[1] if isinstance(step, tuple) else width
        rows = node.outputs[0]
    if rows != graph.outputs[0]:
        raise CannotRead("the ONNX graph is no chain from its input to its output")
    return steps


def _onnx_step(node: _Node, constants: Mapping[str, Any], rows: str, width: int) -> NetworkStep | None:
    """The layer or the activation of a node; None for a node without effect."""
    name, options = node.operator, node.attributes
    inert = name in _INERT and options.get("to", 1) in _FLOATS and options.get("axis", 1) == 1
    if inert or (name in _RESHAPING and width == 1):
        return None
    if name in _ONNX_ACTIVATIONS and options.get("approximate", "none") == "none":
        return _ONNX_ACTIVATIONS[name]
    if name not in ("Add", "Div", "Gemm", "MatMul", "Mul", "Sub"):
        raise CannotRead(
            "an ONNX network is read where it has layers (Gemm, MatMul, Add, Sub, Mul, Div) and the "
            f"activations {', '.join(sorted(_ONNX_ACTIVATIONS))} alone; this one has {name}"
        )
    values = [constants[each] for each in node.inputs if each and each != rows]
    if any(value is None for value in values):
        raise CannotRead(f"{name} of the ONNX graph has weights that are no numbers")
    rows_first = node.inputs[0] == rows
    if name in ("Gemm", "MatMul"):
        return _onnx_product(node, values, rows_first)
    if name == "Div" and not rows_first:
        raise CannotRead("Div of the ONNX graph divides by a column")
    row = _row(values[0], width)
    if name in ("Mul", "Div"):
        return np.diag(row if name == "Mul" else 1.0 / row), np.zeros(width)
    sign = -1.0 if name == "Sub" else 1.0
    return (np.eye(width), sign * row) if rows_first else (sign * np.eye(width), row)


def _onnx_product(node: _Node, values: Sequence[Floats], rows_first: bool) -> Layer:
    weights, *offsets = values
    options = node.attributes
    if node.operator == "MatMul":
        if not rows_first or weights.ndim != 2:
            raise CannotRead("MatMul of the ONNX graph is no layer: its weights come first, or are no matrix")
        return weights, np.zeros(weights.shape[1])
    if not rows_first or options.get("transA", 0):
        raise CannotRead("Gemm of the ONNX graph is no layer: it transposes its rows")
    weights = options.get("alpha", 1.0) * (weights.T if options.get("transB", 0) else weights)
    shift = options.get("beta", 1.0) * _row(offsets[0], weights.shape[1]) if offsets else 0.0
    return weights, np.zeros(weights.shape[1]) + shift


def _row(values: Floats, width: int) -> Floats:
    """One number for each column, from as many or from one for all."""
    if values.size != 1 and (values.size, values.shape[-1]) != (width, width):
        raise CannotRead("the ONNX graph adds or multiplies by a table")
    return np.broadcast_to(values.reshape(-1), width)


# -- files of ONNX ----------------------------------------------------------------------------------------
#
# A message of protocol buffers is a list of fields, a key (number << 3 | kind) before each: kind 0 is a whole
# number in groups of seven bits, 1 and 5 are eight and four bytes, 2 has a length before its bytes.

_Fields: TypeAlias = Mapping[int, list[Any]]

# Types of tensors: float, int64, double
_TYPES: Mapping[int, np.dtype[Any]] = {1: np.dtype("<f4"), 7: np.dtype("<i8"), 11: np.dtype("<f8")}
# The fields of a tensor that hold numbers of a type where its bytes are not raw
_NUMBERS: Mapping[int, int] = {1: 4, 7: 7, 11: 10}


@dataclass(frozen=True, eq=False)
class _Node:
    operator: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class _Graph:
    nodes: Sequence[_Node]  # in the order in which they are computed
    constants: Mapping[str, Any]
    inputs: Sequence[str]
    outputs: Sequence[str]


def _graph_of(data: bytes) -> _Graph:
    try:
        fields = _fields(_fields(data)[7][0])
        constants = dict(_tensor(_fields(each)) for each in fields[5])
        nodes = []
        for each in fields[1]:
            node = _node(_fields(each))
            if node.operator == "Constant" and "value" in node.attributes:
                constants[node.outputs[0]] = node.attributes["value"]
            else:
                nodes.append(node)
        inputs, outputs = ([_fields(each)[1][0].decode() for each in fields[number]] for number in (11, 12))
    except (IndexError, KeyError, ValueError, struct.error) as error:
        raise CannotRead(f"the session's ONNX file cannot be parsed: {error}") from error
    return _Graph(nodes, constants, [name for name in inputs if name not in constants], outputs)


def _node(fields: _Fields) -> _Node:
    attributes = dict(_attribute(_fields(each)) for each in fields[5])
    domain = fields[7][0].decode() if fields[7] else ""
    operator = f"{domain}.{fields[4][0].decode()}".removeprefix(".")
    inputs, outputs = ([name.decode() for name in fields[number]] for number in (1, 2))
    return _Node(operator, inputs, outputs, attributes)


def _attribute(fields: _Fields) -> tuple[str, Any]:
    """Name and value of an attribute: a number (2, 3), a text (4) or a tensor (5); None for other kinds."""
    value: Any = None
    if fields[2]:
        (value,) = struct.unpack("<f", fields[2][0])
    elif fields[3]:
        value = fields[3][0]
    elif fields[4]:
        value = fields[4][0].decode()
    elif fields[5]:
        value = _tensor(_fields(fields[5][0]))[1]
    return fields[1][0].decode(), value


def _tensor(fields: _Fields) -> tuple[str, Any]:
    """Name and float64 values of a tensor; None for a type that is no number."""
    name = fields[8][0].decode() if fields[8] else ""
    if fields[14] and fields[14][0] == 1:
        raise CannotRead("the session's ONNX file keeps its weights in another file")
    kind = fields[2][0]
    if kind not in _TYPES:
        return name, None
    if fields[9]:
        values = np.frombuffer(fields[9][0], _TYPES[kind])
    elif kind == 7:
        values = np.array(_whole_numbers(fields[_NUMBERS[kind]]), dtype=np.uint64).view(np.int64)
    else:
        values = np.frombuffer(b"".join(fields[_NUMBERS[kind]]), _TYPES[kind])
    return name, values.astype(np.float64).reshape(_whole_numbers(fields[1]))


def _whole_numbers(entries: Sequence[Any]) -> list[int]:
    numbers = []
    for entry in entries:
        if isinstance(entry, int):
            numbers.append(entry)
            continue
        place = 0
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
