"""A frame of rows in, a frame of explanations out: the only code that engines run.

Every row is in the result, with its explanation or with its error. A row's explanation depends on the row
alone, so a frame may be cut anywhere: the results of its pieces, concatenated, equal the frame's to the last
bit.

Columns are built whole, without a loop over lines. A column of texts is stored as its few distinct texts and
a code a line, since all texts of an explanation are names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

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


class Explainer(Protocol):
    """Explains rows of a table: :class:`limes.TabularExplainer`, :class:`limes.SparseExplainer`."""

    @property
    def has_rules(self) -> bool:
        """Whether explanations are rules, with a text each."""
        ...

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Columns that the explainer needs."""
        ...

    @property
    def reproducible(self) -> Explainer:
        """The explainer with results that do not depend on the number of rows, to the last bit."""
        ...

    def fill_pool(self, *, progress: bool) -> None:
        """Compute all answers of the model that rows share."""
        ...

    def typical(self) -> Any:
        """Return a row of the background, as a frame."""
        ...

    def __call__(self, X: Any, *, progress: bool) -> Explanation:
        """Explain rows."""
        ...


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
    table = _eager(frame)
    check_keys(keys or (), schema)
    check_columns("the table", table.columns, [*(keys or ()), *explainer.feature_names])
    with one_blas_thread_in_models():
        pieces = [*_explained(table.select(explainer.feature_names), explainer.reproducible)]
    good = [(positions, outcome) for positions, outcome in pieces if not isinstance(outcome, str)]
    errors = {int(positions[0]): outcome for positions, outcome in pieces if isinstance(outcome, str)}
    groups = [_LAYOUTS[layout](_Explained.concatenate(good))] if good else []
    groups += [_error_lines(errors)] if errors or not good else []
    positions, lines = _in_order(groups, schema, table.implementation)
    result = nw.concat([_key_columns(table, keys, positions), lines], how="horizontal").to_native()
    index = nw.maybe_get_index(table)
    if index is not None:  # else joining the result to its table would pair other rows
        result.index = index.take(positions)
    return result


def error_text(text: str) -> str:
    """Shorten an error to a line of 200 characters: a cell may hold a megabyte."""
    ends = text if len(text) <= _CUT else f"{text[: _CUT // 2]}…{text[-_CUT // 2 :]}"
    return shorten(ends, _LONGEST)


def _eager(frame: Any) -> Any:
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise InputError(
            f"explain_frame takes a pandas, polars or pyarrow table, got {type(frame).__module__}."
            f"{type(frame).__name__}: collect a lazy frame first; for Dask use limes.scale.dask.explain, for "
            "Spark limes.scale.spark.explain"
        ) from error


def schema_of(explainer: Explainer, layout: str) -> dict[str, Any]:
    """Columns of the result and their types, without the keys."""
    if check_choice("layout", layout, tuple(_LAYOUTS)) == "wide":
        cells: dict[str, Any] = {
            f"{kind}_{name}": _FLOAT for kind in ("value", "se") for name in explainer.feature_names
        }
    else:
        cells = {"feature": _TEXT, "condition": _TEXT, "value": _FLOAT, "standard_error": _FLOAT}
    rule = {"rule": _TEXT} if explainer.has_rules else {}
    return {**_FIRST, **rule, **cells, **_LAST}


def check_columns(where: Any, columns: Sequence[str], needed: Sequence[str]) -> None:
    """Raise InputError if a table lacks a column that is needed; the message names similar columns."""
    missing = [name for name in needed if name not in columns]
    if missing:
        names = ", ".join(repr(name) + did_you_mean(name, columns) for name in missing[:SHOWN])
        raise InputError(f"{where} has no column {names}; it has {listed(columns)}")


def check_keys(keys: Sequence[str], result: Mapping[str, Any]) -> None:
    """Raise InputError if keys are no list of distinct names, or one names a column of the result."""
    if isinstance(keys, str):
        raise InputError(f"keys={keys!r}: pass a list of columns, [{keys!r}]")
    if len(set(keys)) < len(keys):
        raise InputError(f"keys={[*keys]}: name each column once")
    for key in keys:
        if key in result:
            raise InputError(f"the key {key!r} has the name of a column of the result: rename it")


def _explained(rows: Any, explainer: Explainer) -> Iterator[tuple[Ints, Explanation | str]]:
    """Yield positions of rows that were explained together, or of one row and its error.

    All rows are tried at once. A CellError names all rows at fault, so the rest is one more try; after any
    other error blocks are tried, and halved down to the row.
    """
    stack = [np.arange(len(rows))] if len(rows) else []
    while stack:
        positions = stack.pop()
        try:
            yield positions, explainer(_at(rows, positions), progress=False)
        except CellError as error:
            for position, reason in error.rows.items():
                yield positions[[position]], error_text(f"InputError: {reason}")
            rest = np.delete(positions, [*error.rows])
            stack += [rest] if rest.size else []
        except LimesError as error:
            if len(positions) == 1:
                yield positions, error_text(f"{type(error).__name__}: {error}")
            else:
                stack += reversed(_cut(positions))


def _at(rows: Any, positions: Ints) -> Any:
    first, last = int(positions[0]), int(positions[-1])
    contiguous = last - first + 1 == len(positions)
    return nw.maybe_reset_index(rows[first : last + 1] if contiguous else rows[positions]).to_native()


def _cut(positions: Ints) -> list[Ints]:
    step = _BLOCK if len(positions) > _BLOCK else (len(positions) + 1) // 2
    return [positions[i : i + step] for i in range(0, len(positions), step)]


class _Texts(NamedTuple):
    """A column of texts: line i holds ``distinct[codes[i]]``."""

    distinct: Sequence[str]
    codes: Ints


class _Lines(NamedTuple):
    """The row of each line, and columns; columns that are missing are null."""

    rows: Ints
    columns: Mapping[str, Floats | _Texts]

    def frame(self, schema: Mapping[str, Any], backend: Any) -> Any:
        cells = {
            name: _text_series(name, column, backend) if isinstance(column, _Texts) else column
            for name, column in self.columns.items()
        }
        frame = nw.from_dict(cells, {name: schema[name] for name in cells}, backend=backend)
        nothing = np.zeros(len(self.rows), dtype=np.int64)
        # added as series, not cast by a schema: pandas 2 casts null texts to "None"
        nulls = [
            nw.maybe_reset_index(nw.new_series(name, [None], kind, backend=backend)[nothing])
            for name, kind in schema.items()
            if name not in cells
        ]
        return frame.with_columns(nulls).select([*schema])


def _text_series(name: str, column: _Texts, backend: Any) -> Any:
    return nw.maybe_reset_index(nw.new_series(name, column.distinct, _TEXT, backend=backend)[column.codes])


class _Explained(NamedTuple):
    """Explained rows.

    Attributes
    ----------
    positions
        (n,) positions of the rows in the frame.
    values, errors
        Coefficients and their standard errors, (n, d, k).
    predictions, intercepts
        (n, k).
    conditions
        n tuples of d texts.
    rules
        n texts for sparse explanations; empty for others.
    """

    positions: Ints
    values: Floats
    errors: Floats
    predictions: Floats
    intercepts: Floats
    conditions: Sequence[tuple[str, ...]]
    rules: Sequence[str]
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    methods: Sequence[str]

    @classmethod
    def concatenate(cls, pieces: Sequence[tuple[Ints, Explanation]]) -> _Explained:
        first = pieces[0][1]

        def joined(name: str) -> Floats:
            return np.concatenate([with_outputs(getattr(piece, name), piece) for _, piece in pieces])

        return cls(
            positions=np.concatenate([positions for positions, _ in pieces]),
            values=joined("values"),
            errors=joined("standard_errors"),
            predictions=joined("predictions"),
            intercepts=joined("intercepts"),
            conditions=[texts for _, piece in pieces for texts in piece.conditions],
            rules=[text for _, piece in pieces if piece.certificates for text in piece.rules()],
            feature_names=first.feature_names,
            output_names=first.output_names,
            methods=[method for _, piece in pieces for method in piece.row_methods],
        )

    def common(self, times: int) -> dict[str, Floats | _Texts]:
        """Columns that the ``times`` lines of a row and output have in common."""
        n, k = self.predictions.shape
        rules = {"rule": _Texts(self.rules, np.repeat(np.arange(n), k * times))} if self.rules else {}
        return {
            **rules,
            "output": _Texts(self.output_names, np.tile(np.repeat(np.arange(k), times), n)),
            "prediction": np.repeat(self.predictions.ravel(), times),
            "intercept": np.repeat(self.intercepts.ravel(), times),
            "method": _Texts(_METHODS, np.repeat([_METHODS.index(its) for its in self.methods], k * times)),
        }


def _wide(rows: _Explained) -> _Lines:
    columns = rows.common(1)
    for kind, numbers in (("value", rows.values), ("se", rows.errors)):
        for j, name in enumerate(rows.feature_names):
            columns[f"{kind}_{name}"] = numbers[:, j].ravel()
    return _Lines(np.repeat(rows.positions, len(rows.output_names)), columns)


def _long(rows: _Explained) -> _Lines:
    n, d, k = rows.values.shape
    texts, codes = _conditions(rows.conditions)
    columns = {
        **rows.common(d),
        "feature": _Texts(rows.feature_names, np.tile(np.arange(d), n * k)),
        "condition": _Texts(texts, np.repeat(codes[:, None], k, axis=1).ravel()),
        "value": rows.values.transpose(0, 2, 1).ravel(),
        "standard_error": rows.errors.transpose(0, 2, 1).ravel(),
    }
    return _Lines(np.repeat(rows.positions, k * d), columns)


_LAYOUTS: Mapping[str, Callable[[_Explained], _Lines]] = {"wide": _wide, "long": _long}


def _conditions(rows: Sequence[tuple[str, ...]]) -> tuple[list[str], Ints]:
    """Distinct texts, and codes (n, d); most rows share their conditions with another row."""
    patterns: dict[tuple[str, ...], int] = {}
    pattern_of_row = [patterns.setdefault(row, len(patterns)) for row in rows]
    texts: dict[str, int] = {}
    codes = [[texts.setdefault(text, len(texts)) for text in row] for row in patterns]
    return [*texts], np.array(codes, dtype=np.int64)[pattern_of_row]


def _error_lines(errors: Mapping[int, str]) -> _Lines:
    positions = np.array([*errors], dtype=np.int64)
    return _Lines(positions, {"error": _Texts([*errors.values()], np.arange(len(positions)))})


def _in_order(groups: Sequence[_Lines], schema: Mapping[str, Any], backend: Any) -> tuple[Ints, Any]:
    """Sort all lines by row; return the row of each line, and the lines."""
    positions = np.concatenate([group.rows for group in groups])
    lines = nw.concat([group.frame(schema, backend) for group in groups])
    if (np.diff(positions) >= 0).all():
        return positions, lines
    order = np.argsort(positions, kind="stable")
    return positions[order], nw.maybe_reset_index(lines[order])


def _key_columns(table: Any, keys: Sequence[str] | None, positions: Ints) -> Any:
    if keys is None:
        return nw.from_dict({"row": positions}, {"row": nw.Int64()}, backend=table.implementation)
    return nw.maybe_reset_index(table.select(keys)[positions])
