"""Tiny ONNX files, written byte by byte: a chain of operators on one or more inputs.

A message of the protocol is fields of (number << 3 | kind), kind 0 for whole numbers and 2 for bytes.
"""

from __future__ import annotations

import numpy as np

TYPES = {np.float32: 1, np.uint8: 2, np.int64: 7, str: 8, np.float64: 11}


def _number(value):
    result = bytearray()
    while True:
        value, low = value >> 7, value & 127
        result.append(low | (128 if value else 0))
        if not value:
            return bytes(result)


def _field(number, value):
    if isinstance(value, int):
        return _number(number << 3) + _number(value)
    data = value.encode() if isinstance(value, str) else value
    return _number(number << 3 | 2) + _number(len(data)) + data


def tensor(name, array):
    dims = b"".join(_field(1, side) for side in array.shape)
    kind = TYPES[array.dtype.type]
    return dims + _field(2, kind) + _field(8, name) + _field(9, np.ascontiguousarray(array).tobytes())


def value(name, kind, shape):
    """An input or output; sides are numbers, or texts where they are free."""
    sides = b"".join(_field(1, _field(1 if isinstance(side, int) else 2, side)) for side in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, TYPES[kind]) + _field(2, sides)))


def node(operator, inputs, output, **attributes):
    names = b"".join(_field(1, name) for name in inputs)
    options = b"".join(_field(5, _attribute(*each)) for each in attributes.items())
    return names + _field(2, output) + _field(4, operator) + options


def _attribute(name, value):
    """A float, a whole number or a text."""
    if isinstance(value, float):
        number = _number(2 << 3 | 5) + np.float32(value).tobytes()
        return _field(1, name) + number + _field(20, 1)
    if isinstance(value, int):
        return _field(1, name) + _field(3, value) + _field(20, 2)
    return _field(1, name) + _field(4, value) + _field(20, 3)


def model(nodes, inputs, outputs, tensors=()):
    graph = b"".join(_field(1, each) for each in nodes) + _field(2, "graph")
    graph += b"".join(_field(5, each) for each in tensors)
    graph += b"".join(_field(11, each) for each in inputs) + b"".join(_field(12, each) for each in outputs)
    return _field(1, 8) + _field(7, graph) + _field(8, _field(2, 20))


def linear(weights, shape, kind=np.float32):
    """Flatten(x) @ weights, for x (n, ...) of a shape."""
    weights = np.asarray(weights, dtype=kind)
    return model(
        [node("Flatten", ["x"], "rows"), node("MatMul", ["rows", "w"], "y")],
        [value("x", kind, shape)],
        [value("y", kind, (shape[0], weights.shape[1]))],
        [tensor("w", weights)],
    )


def labelled(weights, labels):
    """softmax(x @ weights), a mapping {label: probability} a row, as skl2onnx writes classifiers."""
    kind, columns = np.float32, len(weights)
    names = b"".join(_field(9, label) for label in labels)
    strings = _field(5, _field(1, "classlabels_strings") + names + _field(20, 8))
    to_labels = _field(1, "p") + _field(2, "y") + _field(4, "ZipMap") + strings + _field(7, "ai.onnx.ml")
    mapping = _field(5, _field(1, TYPES[str]) + _field(2, _field(1, _field(1, TYPES[kind]))))
    nodes = [node("MatMul", ["x", "w"], "s"), node("Softmax", ["s"], "p"), to_labels]
    outputs = [_field(1, "y") + _field(2, _field(4, _field(1, mapping)))]
    domain = _field(8, _field(1, "ai.onnx.ml") + _field(2, 1))
    tensors = [tensor("w", np.asarray(weights, dtype=kind))]
    return model(nodes, [value("x", kind, ("n", columns))], outputs, tensors) + domain


def network(steps, columns, outputs, tensors, kind=np.float32):
    """A chain of (operator, names of constants, attributes) on rows of numbers."""
    names = ["x", *(f"h{i}" for i in range(1, len(steps))), "y"]
    nodes = [
        node(operator, [source, *constants], target, **attributes)
        for (operator, constants, attributes), source, target in zip(
            steps, names[:-1], names[1:], strict=True
        )
    ]
    constants = [tensor(name, np.asarray(array, dtype=kind)) for name, array in tensors.items()]
    return model(nodes, [value("x", kind, ("n", columns))], [value("y", kind, ("n", outputs))], constants)


def session(data):
    import onnxruntime

    return onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
