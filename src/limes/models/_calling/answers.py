"""Answers of models as arrays: of numbers, tensors, frames, mappings by label or by output, or a scalar.

A model answers n rows with an array (n,) or (n, k), or with what stands for one: a mapping {label: number} a
row, as ONNX classifiers, river and services do; a mapping {output: array}, as networks with several heads do;
a data frame. Labels of rows are sorted, as classes are, since two rows may list them in different orders.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import ModelError


def answers_of(raw: Any, rows: int, name: str) -> tuple[Floats, tuple[str, ...]]:
    """Get what a model answered about some rows as an array, and the names of its columns, () without names.

    Raises
    ------
    ModelError
        If the answer holds something else than numbers, or rows have different labels; ``name`` is the
        model's.
    """
    if raw is None:
        raise ModelError(f"{name} returned None: is a return missing?")
    if isinstance(raw, Iterator):
        raise ModelError(f"{name} returned a {type(raw).__name__}: return a list of its numbers, list(...)")
    _refuse_scored(raw, name)
    raw = raw._asdict() if hasattr(raw, "_asdict") else raw  # a named tuple
    if isinstance(raw, Mapping):
        by_label = rows == 1 and all(map(_is_number, raw.values()))
        return _by_label([raw], name) if by_label else _by_output(raw, rows, name)
    is_list = isinstance(raw, list | tuple) or (isinstance(raw, np.ndarray) and raw.ndim == 1)
    if is_list and len(raw) and isinstance(raw[0], Mapping):
        return _by_label(raw, name)
    names = _columns_of(raw)
    answers = _shaped(_numbers(raw, name), rows)
    # of frames whose columns are only counted nothing is known
    return answers, names if answers.ndim == 2 and len(names) == answers.shape[1] else ()


# What pipelines of transformers put into the mapping of an input or of one of its labels
_SCORED = ({"label", "score"}, {"labels", "scores"})


def _refuse_scored(raw: Any, name: str) -> None:
    """Raise if answers are those of a pipeline of transformers, which says nothing of the other labels."""
    first = raw
    if isinstance(first, np.ndarray):
        first = first.tolist() if first.dtype == np.object_ else None
    while isinstance(first, list | tuple) and len(first):
        first = first[0]
    if isinstance(first, Mapping) and any(keys <= {*first} for keys in _SCORED):
        raise ModelError(
            f"{name} returned labels with scores, as pipelines of transformers do: pass the pipeline itself, "
            "or return a mapping {label: score} of all labels for each input (top_k=None)"
        )


def _is_number(answer: Any) -> bool:
    return isinstance(answer, Real) or getattr(answer, "shape", None) == ()


def _by_label(answers: Iterable[Mapping[Any, Any]], name: str) -> tuple[Floats, tuple[str, ...]]:
    first, *others = answers
    labels = _in_order(first)
    for row, other in enumerate(others, 1):
        if other.keys() != first.keys():
            raise ModelError(
                f"{name} answered the labels {labels} for row 0 of a batch and {_in_order(other)} for row "
                f"{row}: return all labels for every row, 0 where one is impossible"
            )
    numbers = _numbers([[answer[label] for label in labels] for answer in (first, *others)], name)
    return numbers, tuple(map(str, labels))


def _in_order(labels: Iterable[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:  # numbers and texts together
        return sorted(labels, key=str)


def _by_output(answers: Mapping[Any, Any], rows: int, name: str) -> tuple[Floats, tuple[str, ...]]:
    """The columns of all outputs side by side; those of an output with several are counted."""
    if not answers:
        raise ModelError(f"{name} returned an empty mapping")
    parts, names = [], []
    for key, raw in answers.items():
        part, inner = answers_of(raw, rows, f"{name}[{key!r}]")
        if len(part) != rows:
            raise ModelError(f"{name}[{key!r}] was given {rows} rows and returned shape {part.shape}")
        part = part.reshape(rows, -1)
        parts.append(part)
        width = part.shape[1]
        inner = inner or tuple(map(str, range(width)))
        # one output alone has no need of its name before each column
        names += (
            [str(key)] if width == 1 else [one if len(answers) == 1 else f"{key}: {one}" for one in inner]
        )
    return np.concatenate(parts, axis=1), tuple(names)


def _columns_of(raw: Any) -> tuple[str, ...]:
    """Names of a data frame's columns that somebody chose."""
    columns: Any = getattr(raw, "column_names", getattr(raw, "columns", None))  # pyarrow's columns are cells
    if columns is None or callable(columns) or len(getattr(raw, "shape", ())) != 2:
        return ()
    named = list(columns)
    return () if named == [*range(len(named))] else tuple(map(str, named))


def _numbers(raw: Any, name: str) -> Floats:
    for step in ("detach", "cpu", "toarray"):  # of torch's tensors and scipy's sparse matrices
        raw = getattr(raw, step)() if callable(getattr(raw, step, None)) else raw
    if str(getattr(raw, "dtype", "")) == "torch.bfloat16":  # a type that numpy lacks
        raw = raw.float()
    if isinstance(raw, np.ma.MaskedArray) and np.ma.is_masked(raw):
        raise ModelError(f"{name} returned masked numbers: return .filled(...) with what stands for them")
    try:
        array = np.asarray(raw)
        if array.dtype.kind in "mM":
            raise ModelError(f"{name} returned {array.dtype}: return numbers, such as of days or seconds")
        values = [] if array.dtype.kind in "biuf" else array.ravel().tolist()
        strange = [value for value in values if isinstance(value, str | complex)]
        if not strange:
            return array.astype(np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ModelError(f"{name} did not return numbers: {error}") from error
    if isinstance(strange[0], complex):
        advice = "return their sizes, numpy.abs(...), or parts"
    elif all(map(_is_written, strange)):
        advice = "convert the texts by float"
    else:
        advice = "pass the model itself, or its predict_proba, to explain probabilities"
    raise ModelError(f"{name} did not return numbers, but {strange[0]!r}: {advice}")


def _is_written(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return False


def _shaped(answers: Floats, rows: int) -> Floats:
    """Without trailing axes of length 1 behind the outputs; a row alone gets the axis of rows."""
    while answers.ndim > 2 and answers.shape[-1] == 1:
        answers = answers[..., 0]
    if rows == 1 and answers.ndim <= 1 and answers.shape != (1,):
        return answers.reshape((1,) if answers.ndim == 0 else (1, -1))
    return answers


def join_targets(answers: Any, classes: Sequence[Any], name: str) -> Any:
    """Join the arrays (n, classes) that a model returns, one for each target, into (n, all classes)."""
    widths = [len(labels) for labels in classes]
    if isinstance(answers, np.ndarray) and answers.shape[1:] == (len(widths),) and set(widths) == {2}:
        # chains of classifiers answer the probability of each target's second class
        return np.stack([1.0 - answers, answers], axis=2).reshape(len(answers), -1)
    shapes = [np.shape(target)[1:] for target in answers] if isinstance(answers, list) else None
    if shapes != [(width,) for width in widths]:
        raise ModelError(
            f"{name} did not return one array a target, with a column a class; pass a callable that returns "
            "the probabilities of one target"
        )
    return np.concatenate(answers, axis=1)
