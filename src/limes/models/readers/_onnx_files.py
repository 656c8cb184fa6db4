"""ONNX files, as far as readers need them: nodes, their constants, and the names of inputs and outputs.

A message of protocol buffers is a list of fields, a key (number << 3 | kind) before each: kind 0 is a whole
number in groups of seven bits, 1 and 5 are eight and four bytes, 2 has a length before its bytes.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from limes.models._reading import CannotRead

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
    """Parse a file.

    Raises
    ------
    CannotRead
        If it is no ONNX file, or stores its weights elsewhere.
    """
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
    """The values of every field by its number."""
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
