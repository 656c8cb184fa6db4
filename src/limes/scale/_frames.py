"""A frame of rows in, a frame of explanations out: the only code that engines run.

Every row is in the result, with its explanation or with its error. A row's explanation depends on the row
alone, so a frame may be cut anywhere: the results of its pieces, concatenated, equal the frame's to the last
bit.

Columns are built whole, without a loop over lines. A column of texts is stored as its few distinct texts and
a code a line, since all texts of an explanation are names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import narwhals as nw
import numpy as np

from limes._arrays import Floats, Ints
from limes._checks import SHOWN, check_choice, did_you_mean, listed
from limes._explanation.view import with_outputs
from limes._explanation.wording import shorten
from limes._threads import one_blas_thread_in_models
from limes.exceptions import CellError, InputError, LimesError

if TYPE_CHECKING:
    from limes._explanation import Explanation

# Where some row cannot be explained, rows are tried in blocks of this many before they are halved
_BLOCK = 512
# Characters of a reported error, and characters of the original text that are read
_LONGEST, _CUT = 200, 1000

_FLOAT, _TEXT = nw.Float64(), nw.String()
_FIRST = {"output": _TEXT, "prediction": _FLOAT, "intercept": _FLOAT}
_METHODS = ("exact", "sampled")
_LAST = {"method": _TEXT, "error": _TEXT}


# limes.TabularExplainer, or limes.SparseExplainer of a table's columns
Explainer: TypeAlias = Any


def explain_frame(
    frame: Any, explainer: Explainer, layout: str = "wide", *, keys: Sequence[str] | None = None
) -> Any:
    """Explain every row of a frame; rows that fail carry an error message, the rest are explained.

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow table with the explainer's columns, in any order; others are ignored.
    explainer
        A :class:`limes.TabularExplainer`, or a :class:`limes.SparseExplainer` of a table's columns.
    layout
        "wide": a line a row and output. "long": a line a row, output and feature. A row with an error has one
        line in either.
    keys
        Columns of the frame that identify rows, copied to the result. None: a column ``row``, counted from 0.

    Returns
    -------
    frame
        A frame of the same library, rows in order; in pandas each line has the index of its row. Columns:

        ================== ======== ==========================================================
        keys, or ``row``            as in the frame, or int64
        ``output``         text     name of the output; null where there is an error
        ``prediction``     float64  of the model at the row, in the output's units
        ``intercept``      float64  of the surrogate, in the output's units
        ``rule``           text     of sparse explanations only
        ``value_<name>``   float64  coefficient of a column: wide only
        ``se_<name>``      float64  its standard error, 0 where exact: wide only
        ``feature``        text     long only; so are ``condition`` (text), ``value`` and
                                    ``standard_error`` (float64)
        ``method``         text     "exact" or "sampled"
        ``error``          text     why the row has no explanation, else null
        ================== ======== ==========================================================

        Numbers of a row with an error are null (NaN in pandas).

    Raises
    ------
    InputError
        The frame, not a row, is wrong: it lacks a column, or a key has the name of a column of the result.

    Examples
    --------
    >>> import limes, pandas as pd
    >>> table = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 0.0, 1.0, 0.0]})
    >>> explainer = limes.TabularExplainer(lambda X: X["a"] - X["b"], table, bins=None)
    >>> result = limes.scale.explain_frame(table.assign(b=[1.0, 0.0, float("inf"), 0.0]), explainer)
    >>> result["value_a"].round(6).tolist()
    [1.0, 1.0, nan, 1.0]
    >>> result["error"].notna().tolist()
    [False, False, True, False]
    """
    if not hasattr(explainer, "feature_names"):
        raise InputError(
            f"explain_frame(frame, explainer) needs an explainer of tables, got {type(explainer).__name__}"
        )
    schema = schema_of(explainer, layout)
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise InputError(
            f"explain_frame takes a pandas, polars or pyarrow table, got {type(frame).__module__}."
            f"{type(frame).__name__}: collect a lazy frame first; for Dask use limes.scale.dask.explain, for "
            "Spark limes.scale.spark.explain"
        ) from error
    check_keys(keys or (), schema)
    check_columns("the table", table.columns, [*(keys or ()), *explainer.feature_names])
    with one_blas_thread_in_models():
        pieces = [*_explained(table.select(explainer.feature_names), explainer.reproducible)]
    good = [(positions, outcome) for positions, outcome in pieces if not isinstance(outcome, str)]
    errors = {int(positions[0]): outcome for positions, outcome in pieces if isinstance(outcome, str)}
    groups = [_explained_lines(good, layout)] if good else []
    if errors or not good:
        texts = _Texts([*errors.values()], np.arange(len(errors)))
        groups.append(_Lines(np.array([*errors], dtype=np.int64), {"error": texts}))
    positions, lines = _in_order(groups, schema, table.implementation)
    if keys is None:
        keyed = nw.from_dict({"row": positions}, {"row": nw.Int64()}, backend=table.implementation)
    else:
        keyed = nw.maybe_reset_index(table.select(keys)[positions])
    result = nw.concat([keyed, lines], how="horizontal").to_native()
    index = nw.maybe_get_index(table)
    if index is not None:  # else joining the result to its table would pair other rows
        result.index = index.take(positions)
    return result


def error_text(text: str) -> str:
    """Shorten an error to a line of 200 characters: a cell may hold a megabyte."""
    ends = text if len(text) <= _CUT else f"{text[: _CUT // 2]}…{text[-_CUT // 2 :]}"
    return shorten(ends, _LONGEST)


def schema_of(explainer: Explainer, layout: str) -> dict[str, Any]:
    """Columns of the result and their types, without the keys."""
    if check_choice("layout", layout, ("wide", "long")) == "wide":
        cells: dict[str, Any] = {
            f"{kind}_{name}": _FLOAT for kind in ("value", "se") for name in explainer.feature_names
        }
    else:
        cells = {"feature": _TEXT, "condition": _TEXT, "value": _FLOAT, "standard_error": _FLOAT}
    rule = {"rule": _TEXT} if explainer.has_rules else {}
    return {**_FIRST, **rule, **cells, **_LAST}


def check_columns(where: Any, columns: Sequence[str], needed: Sequence[str]) -> None:
    missing = [name for name in needed if name not in columns]
    if missing:
        names = ", ".join(repr(name) + did_you_mean(name, columns) for name in missing[:SHOWN])
        raise InputError(f"{where} has no column {names}; it has {listed(columns)}")


def check_keys(keys: Sequence[str], result: Mapping[str, Any]) -> None:
    if isinstance(keys, str):
        raise InputError(f"keys={keys!r}: pass a list of columns, [{keys!r}]")
    if len(set(keys)) < len(keys):
        raise InputError(f"keys={[*keys]}: name each column once")
    for key in keys:
        if key in result:
            raise InputError(f"the key {key!r} has the name of a column of the result: rename it")


def _explained(rows: Any, explainer: Explainer) -> Iterator[tuple[Ints, Explanation | str]]:
    """Yield positions of rows that were explained together, or of one row and its error."""
    # all rows are tried at once; a CellError names all rows at fault, so the rest is one more try; after any
    # other error blocks are tried, and halved down to the row
    stack = [np.arange(len(rows))] if len(rows) else []
    while stack:
        positions = stack.pop()
        first, end = int(positions[0]), int(positions[-1]) + 1
        some = rows[first:end] if end - first == len(positions) else rows[positions]
        try:
            yield positions, explainer(nw.maybe_reset_index(some).to_native(), progress=False)
        except CellError as error:
            for position, reason in error.rows.items():
                yield positions[[position]], error_text(f"InputError: {reason}")
            rest = np.delete(positions, [*error.rows])
            stack += [rest] if rest.size else []
        except LimesError as error:
            if len(positions) == 1:
                yield positions, error_text(f"{type(error).__name__}: {error}")
            else:
                step = _BLOCK if len(positions) > _BLOCK else (len(positions) + 1) // 2
                stack += [positions[i : i + step] for i in range(0, len(positions), step)][::-1]


class _Texts(NamedTuple):
    """A column of texts: line i holds ``distinct[codes[i]]``."""

    distinct: Sequence[str]
    codes: Ints


class _Lines(NamedTuple):
    """The row of each line, and columns; columns that are missing are null."""

    rows: Ints
    columns: Mapping[str, Floats | _Texts]

    def frame(self, schema: Mapping[str, Any], backend: Any) -> Any:
        cells: dict[str, Any] = {**self.columns}
        for name, column in cells.items():
            if isinstance(column, _Texts):
                distinct = nw.new_series(name, column.distinct, _TEXT, backend=backend)
                cells[name] = nw.maybe_reset_index(distinct[column.codes])
        frame = nw.from_dict(cells, {name: schema[name] for name in cells}, backend=backend)
        nothing = np.zeros(len(self.rows), dtype=np.int64)
        # added as series, not cast by a schema: pandas 2 casts null texts to "None"
        nulls = [
            nw.maybe_reset_index(nw.new_series(name, [None], kind, backend=backend)[nothing])
            for name, kind in schema.items()
            if name not in cells
        ]
        return frame.with_columns(nulls).select([*schema])


def _explained_lines(pieces: Sequence[tuple[Ints, Explanation]], layout: str) -> _Lines:
    """The lines of rows, by their positions (n,) in the frame."""
    first = pieces[0][1]

    def joined(name: str) -> Floats:
        return np.concatenate([with_outputs(getattr(piece, name), piece) for _, piece in pieces])

    values, errors = joined("values"), joined("standard_errors")
    n, d, k = values.shape
    times = 1 if layout == "wide" else d  # lines of a row and output
    methods = [_METHODS.index(method) for _, piece in pieces for method in piece.row_methods]
    columns: dict[str, Floats | _Texts] = {
        "output": _Texts(first.output_names, np.tile(np.repeat(np.arange(k), times), n)),
        "prediction": np.repeat(joined("predictions").ravel(), times),
        "intercept": np.repeat(joined("intercepts").ravel(), times),
        "method": _Texts(_METHODS, np.repeat(methods, k * times)),
    }
    rules = [text for _, piece in pieces if piece.certificates for text in piece.rules()]
    if rules:
        columns["rule"] = _Texts(rules, np.repeat(np.arange(n), k * times))
    if layout == "wide":
        for kind, numbers in (("value", values), ("se", errors)):
            columns |= {f"{kind}_{name}": numbers[:, j].ravel() for j, name in enumerate(first.feature_names)}
    else:
        texts, codes = _conditions([texts for _, piece in pieces for texts in piece.conditions])
        columns |= {
            "feature": _Texts(first.feature_names, np.tile(np.arange(d), n * k)),
            "condition": _Texts(texts, np.repeat(codes[:, None], k, axis=1).ravel()),
            "value": values.transpose(0, 2, 1).ravel(),
            "standard_error": errors.transpose(0, 2, 1).ravel(),
        }
    positions = np.concatenate([positions for positions, _ in pieces])
    return _Lines(np.repeat(positions, k * times), columns)


def _conditions(rows: Sequence[tuple[str, ...]]) -> tuple[list[str], Ints]:
    """Distinct texts, and codes (n, d); most rows share their conditions with another row."""
    patterns: dict[tuple[str, ...], int] = {}
    pattern_of_row = [patterns.setdefault(row, len(patterns)) for row in rows]
    texts: dict[str, int] = {}
    codes = [[texts.setdefault(text, len(texts)) for text in row] for row in patterns]
    return [*texts], np.array(codes, dtype=np.int64)[pattern_of_row]


def _in_order(groups: Sequence[_Lines], schema: Mapping[str, Any], backend: Any) -> tuple[Ints, Any]:
    positions = np.concatenate([group.rows for group in groups])
    lines = nw.concat([group.frame(schema, backend) for group in groups])
    if (np.diff(positions) >= 0).all():
        return positions, lines
    order = np.argsort(positions, kind="stable")
    return positions[order], nw.maybe_reset_index(lines[order])
