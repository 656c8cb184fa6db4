"""Explained rows as lines of a frame, in one of two layouts. Columns are made whole: no loop over lines.

A column of texts is few distinct texts and a code a line, as all texts of an explanation are names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from limes._arrays import Floats, Ints
from limes.explanation.view import with_outputs

if TYPE_CHECKING:
    from limes.explanation import Explanation

_FLOAT, _TEXT = nw.Float64(), nw.String()
_HEAD = {"output": _TEXT, "prediction": _FLOAT, "intercept": _FLOAT}
_TAIL = {"method": _TEXT, "error": _TEXT}


class Texts(NamedTuple):
    """A column of texts: line i says ``distinct[codes[i]]``."""

    distinct: Sequence[str | None]
    codes: Ints


class Lines(NamedTuple):
    """Which row each line is of, and columns; those that are not there are null."""

    rows: Ints
    columns: Mapping[str, Floats | Texts]

    def frame(self, schema: Mapping[str, Any], backend: Any) -> Any:
        """A frame of the schema's columns."""
        null = Texts([None], np.zeros(len(self.rows), dtype=np.int64))
        cells = {
            name: _series(name, self.columns.get(name, null), kind, backend) for name, kind in schema.items()
        }
        return nw.from_dict(cells, schema, backend=backend)


def _series(name: str, column: Floats | Texts, kind: Any, backend: Any) -> Any:
    if isinstance(column, Texts):
        series = nw.new_series(name, column.distinct, kind, backend=backend)
        return nw.maybe_reset_index(series[column.codes])
    return column


class Explained(NamedTuple):
    """Explained rows.

    Attributes
    ----------
    places
        (n,) where they are in the frame.
    values, errors
        Coefficients and their standard errors, (n, d, k).
    predictions, intercepts
        (n, k).
    conditions
        n tuples of d texts.
    """

    places: Ints
    values: Floats
    errors: Floats
    predictions: Floats
    intercepts: Floats
    conditions: Sequence[tuple[str, ...]]
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    method: str

    @classmethod
    def of(cls, pieces: Sequence[tuple[Ints, Explanation]]) -> Explained:
        """Join explanations by the same explainer, of the rows at these places."""
        first = pieces[0][1]

        def joined(name: str) -> Floats:
            return np.concatenate([with_outputs(getattr(found, name), found) for _, found in pieces])

        return cls(
            places=np.concatenate([places for places, _ in pieces]),
            values=joined("values"),
            errors=joined("standard_errors"),
            predictions=joined("predictions"),
            intercepts=joined("intercepts"),
            conditions=[texts for _, found in pieces for texts in found.conditions],
            feature_names=first.feature_names,
            output_names=first.output_names,
            method=first.method,
        )


def wide_schema(features: Sequence[str]) -> dict[str, Any]:
    """Columns of a line a row and output."""
    return {
        **_HEAD,
        **{f"{kind}_{name}": _FLOAT for kind in ("value", "se") for name in features},
        **_TAIL,
    }


def wide(found: Explained) -> Lines:
    """A line a row and output."""
    columns = _heads(found, 1)
    for kind, numbers in (("value", found.values), ("se", found.errors)):
        for j, name in enumerate(found.feature_names):
            columns[f"{kind}_{name}"] = numbers[:, j].ravel()
    return Lines(np.repeat(found.places, len(found.output_names)), columns)


def long_schema(features: Sequence[str]) -> dict[str, Any]:  # noqa: ARG001 - they are in lines, not columns
    """Columns of a line a row, output and feature."""
    mine = {"feature": _TEXT, "condition": _TEXT, "value": _FLOAT, "standard_error": _FLOAT}
    return {**_HEAD, **mine, **_TAIL}


def long(found: Explained) -> Lines:
    """A line a row, output and feature."""
    n, d, k = found.values.shape
    texts, codes = _conditions(found.conditions)
    columns = {
        **_heads(found, d),
        "feature": Texts(found.feature_names, np.tile(np.arange(d), n * k)),
        "condition": Texts(texts, np.repeat(codes[:, None], k, axis=1).ravel()),
        "value": found.values.transpose(0, 2, 1).ravel(),
        "standard_error": found.errors.transpose(0, 2, 1).ravel(),
    }
    return Lines(np.repeat(found.places, k * d), columns)


def failed(errors: Mapping[int, str]) -> Lines:
    """A line a row that has no explanation."""
    places = np.array([*errors], dtype=np.int64)
    return Lines(places, {"error": Texts([*errors.values()], np.arange(len(places)))})


def _heads(found: Explained, times: int) -> dict[str, Floats | Texts]:
    """What a row's ``times`` lines of an output have in common."""
    n, k = found.predictions.shape
    return {
        "output": Texts(found.output_names, np.tile(np.repeat(np.arange(k), times), n)),
        "prediction": np.repeat(found.predictions.ravel(), times),
        "intercept": np.repeat(found.intercepts.ravel(), times),
        "method": Texts([found.method], np.zeros(n * k * times, dtype=np.int64)),
    }


def _conditions(rows: Sequence[tuple[str, ...]]) -> tuple[list[str], Ints]:
    """Distinct texts, and codes (n, d); most rows say what another one says."""
    patterns: dict[tuple[str, ...], int] = {}
    place = [patterns.setdefault(row, len(patterns)) for row in rows]
    texts: dict[str, int] = {}
    codes = [[texts.setdefault(text, len(texts)) for text in row] for row in patterns]
    return [*texts], np.array(codes, dtype=np.int64)[place]


class Layout(NamedTuple):
    """Columns of the result, keys apart, from the features' names; and what fills them."""

    schema: Callable[[Sequence[str]], dict[str, Any]]
    lines: Callable[[Explained], Lines]


LAYOUTS: Mapping[str, Layout] = {"wide": Layout(wide_schema, wide), "long": Layout(long_schema, long)}
