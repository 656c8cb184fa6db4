"""A frame of rows in, a frame of explanations out: the only code that engines run.

Every row is there, with its explanation or with its error. As a row's explanation depends on nothing but the
row, a frame may be cut anywhere: the pieces' results, one under the other, are the frame's, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import narwhals as nw
import numpy as np

from limes._arrays import Ints
from limes._checks import check_choice, did_you_mean, listed
from limes.exceptions import CellError, InputError, LimesError
from limes.scale.lines import LAYOUTS, Explained, Lines, failed

if TYPE_CHECKING:
    from limes.explanation import Explanation

# Where some row cannot be explained, rows are tried in blocks of this many before they are halved
_BLOCK = 512


class Explainer(Protocol):
    """Explains rows of a table, such as :class:`limes.TabularExplainer`."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Columns that it needs."""
        ...

    @property
    def reproducible(self) -> Explainer:
        """The same, with results that do not depend on the number of rows, to the last bit."""
        ...

    def __call__(self, X: Any, *, progress: bool) -> Explanation:
        """Explain rows."""
        ...


class _Piece(NamedTuple):
    """Places of rows that were explained together, or of one row and its error."""

    places: Ints
    found: Explanation | str


def explain_frame(
    frame: Any, explainer: Explainer, layout: str = "wide", *, keys: Sequence[str] | None = None
) -> Any:
    """Explain every row of a frame; a row that cannot be explained gets its error, and the others go on.

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow table with the explainer's columns, in any order, and maybe others.
    explainer
        A :class:`limes.TabularExplainer`.
    layout
        "wide": a line a row and output. "long": a line a row, output and feature. A row with an error has one
        line in either.
    keys
        Columns of the frame that tell rows apart, carried along as they are. None: a column ``row``, counted
        from 0.

    Returns
    -------
    frame
        Of the same library, rows in order. Columns:

        ================== ======== ==========================================================
        keys, or ``row``            as in the frame, or int64
        ``output``         text     name of the output; null where there is an error
        ``prediction``     float64  of the model at the row, in the output's units
        ``intercept``      float64  of the surrogate, in the output's units
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
        The frame, not a row, is wrong: it lacks a column, or a key bears the name of a column of the result.

    Examples
    --------
    >>> import limes, pandas as pd
    >>> table = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 0.0, 1.0, 0.0]})
    >>> explainer = limes.TabularExplainer(lambda X: X["a"] - X["b"], table, bins=None)
    >>> found = limes.scale.explain_frame(table.assign(b=[1.0, 0.0, float("inf"), 0.0]), explainer)
    >>> found["value_a"].round(6).tolist()
    [1.0, 1.0, nan, 1.0]
    >>> found["error"].notna().tolist()
    [False, False, True, False]
    """
    from threadpoolctl import threadpool_limits

    schema, lines = schema_of(explainer, layout), LAYOUTS[layout].lines
    table = nw.from_native(frame, eager_only=True)
    check_columns(table.columns, explainer, keys or ())
    check_keys(keys or (), explainer, layout)
    with threadpool_limits(1, user_api="blas"):  # sums in one order, however many cores there are
        pieces = [*_explained(table.select(explainer.feature_names), explainer.reproducible)]
    good = [(places, found) for places, found in pieces if not isinstance(found, str)]
    bad = {int(places[0]): found for places, found in pieces if isinstance(found, str)}
    groups = [lines(Explained.of(good))] if good else []
    groups += [failed(bad)] if bad or not good else []
    places, found = _in_order(groups, schema, table.implementation)
    return nw.concat([_carried(table, keys, places), found], how="horizontal").to_native()


def schema_of(explainer: Explainer, layout: str) -> dict[str, Any]:
    """Columns of the result and their types, keys apart.

    Raises
    ------
    InputError
        There is no such layout.
    """
    check_choice("layout", layout, tuple(LAYOUTS))
    return LAYOUTS[layout].schema(explainer.feature_names)


def check_columns(found: Sequence[str], explainer: Explainer, keys: Sequence[str]) -> None:
    """Refuse a table that lacks a column that is needed."""
    lost = [name for name in (*keys, *explainer.feature_names) if name not in found]
    if lost:
        names = ", ".join(repr(name) + did_you_mean(name, found) for name in lost)
        raise InputError(f"the table has no column {names}; it has {listed(found)}")


def check_keys(keys: Sequence[str], explainer: Explainer, layout: str) -> None:
    """Refuse a key with the name of a column of the result."""
    schema = schema_of(explainer, layout)
    for key in keys:
        if key in schema:
            raise InputError(f"the key {key!r} has the name of a column of the result: rename it")


def _explained(rows: Any, explainer: Explainer) -> Iterator[_Piece]:
    """Explain all rows at once; where that fails, those whose cells are good, and blocks, down to the row."""
    stack = [np.arange(len(rows))] if len(rows) else []
    while stack:
        places = stack.pop()
        try:
            yield _Piece(places, explainer(_taken(rows, places), progress=False))
        except CellError as error:
            for place, why in error.rows.items():
                yield _Piece(places[[place]], f"InputError: {why}")
            rest = np.delete(places, [*error.rows])
            stack += [rest] if rest.size else []
        except LimesError as error:
            if len(places) == 1:
                yield _Piece(places, f"{type(error).__name__}: {error}")
            else:
                stack += reversed(_cut(places))


def _taken(rows: Any, places: Ints) -> Any:
    first, last = int(places[0]), int(places[-1])
    whole = last - first + 1 == len(places)
    return nw.maybe_reset_index(rows[first : last + 1] if whole else rows[places]).to_native()


def _cut(places: Ints) -> list[Ints]:
    step = _BLOCK if len(places) > _BLOCK else (len(places) + 1) // 2
    return [places[i : i + step] for i in range(0, len(places), step)]


def _in_order(groups: Sequence[Lines], schema: Mapping[str, Any], backend: Any) -> tuple[Ints, Any]:
    """All lines in the rows' order, and the row of each."""
    places = np.concatenate([group.rows for group in groups])
    found = nw.concat([group.frame(schema, backend) for group in groups])
    if (np.diff(places) >= 0).all():
        return places, found
    order = np.argsort(places, kind="stable")
    return places[order], nw.maybe_reset_index(found[order])


def _carried(table: Any, keys: Sequence[str] | None, places: Ints) -> Any:
    if keys is None:
        return nw.from_dict({"row": places}, {"row": nw.Int64()}, backend=table.implementation)
    return nw.maybe_reset_index(table.select(keys)[places])
