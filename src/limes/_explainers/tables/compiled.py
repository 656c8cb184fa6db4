"""Contributions of single rows as plain arrays, for services.

A service explains row after row under one model. `CompiledExplainer` has what these rows share, and computes
nothing else: ordinary cells are looked up in tables, the form that was read predicts in the place of the
model, and no explanation is made. All else goes the way of ``explainer.contributions``: inputs of other
kinds, categories that the background does not have, rows that a quadrature refuses, and models that are
asked.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from limes._arrays import EXACT, Floats, Ints, Objects
from limes._expectations.forest import ForestExpectation
from limes._expectations.moments import REFUSED
from limes._explainers.tables.columns import NUMBERS, TableColumn, is_missing
from limes._explainers.tables.fits import exact_account
from limes._explainers.tables.table import FrameConverter, Table
from limes._sampling.joint import JointExpectation
from limes._shapley.points import contributions_of_form
from limes._threads import in_this_thread, one_blas_thread

if TYPE_CHECKING:
    from limes._explainers.tables.model import TabularModel
    from limes._explainers.tabular import TabularExplainer
    from limes._explanation import Explanation
    from limes._shapley.exact import RowContributions

# Rows of the background whose largest and smallest answers have their tables made beforehand
_LOOKED_AT = 1000
# A cell as a number; None for all that the table's own encoding decides
CellReader: TypeAlias = Callable[[Any], float | None]


class PlainContributions(NamedTuple):
    """Contributions of n rows: ``base_values`` + Σ_j ``values`` = ``predictions``.

    Attributes
    ----------
    base_values : (n,) or (n, k)
        E_w f, the model's average around each row, for k outputs.
    values : (n, d) or (n, d, k)
        φ_j of each column, in the order of `CompiledExplainer.feature_names`.
    predictions : (n,) or (n, k)
        The model's, but for the rounding of its sums: about 1e-7 of a booster's, which adds in single
        precision.
    warnings : n tuples of codes
        Codes of the rows' warnings, as of ``explanation.contributions.row_warnings``: "outside" where a value
        lies outside the background's range, "unseen" where a category does not occur there.
    standard_errors : as ``values``
        0 where exact.

    Examples
    --------
    >>> import limes
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> explain = limes.TabularExplainer(Ridge(alpha=0).fit(X, [0, 2, 1, 3]), X).compiled()
    >>> plain = explain(X)
    >>> (plain.base_values + plain.values.sum(axis=1)).round(9).tolist()
    [0.0, 2.0, 1.0, 3.0]
    """

    base_values: Floats
    values: Floats
    predictions: Floats
    warnings: tuple[tuple[str, ...], ...]
    standard_errors: Floats

    def rows(self, first: int, end: int) -> PlainContributions:
        """Return those of some rows.

        Parameters
        ----------
        first, end
            Position of the first of them, and of the one after the last.
        """
        base, values, predictions, warnings, errors = self
        return PlainContributions(
            base[first:end], values[first:end], predictions[first:end], warnings[first:end], errors[first:end]
        )


class CompiledExplainer:
    """A function from one row, or a few, to their contributions as plain arrays; ``explainer.compiled()``.

    It answers what ``explainer.contributions(rows)`` answers, without an explanation, in the calling thread,
    and does not call a model that was read. It is of the model as that was read: after a new fit make
    another. Threads may share it, and it can be pickled, with the model and the background.

    Parameters
    ----------
    explainer
        The explainer, which answers what is not ordinary.
    model
        What it has read of its model.

    Examples
    --------
    >>> import limes
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> explain = limes.TabularExplainer(Ridge(alpha=0).fit(X, [0, 2, 1, 3]), X).compiled()
    >>> base, values, predictions, warnings, errors = explain({"x0": 1.0, "x1": 1.0})
    >>> predictions.round(9).tolist(), values.round(3).tolist(), warnings
    ([3.0], [[0.391, 0.781]], ((),))
    """

    def __init__(self, explainer: TabularExplainer, model: TabularModel) -> None:
        self._explainer, self._model = explainer, model
        self._table, self._outputs = model.table, model.bound.outputs
        expectation = model.bound.expectation
        self._read = RowReader(model.table.ungrouped)
        self._predict = model.bound.read_predict if model.has_exact_contributions else None
        family = model.family if model.law is not model.family else model.account
        self._cells = family.cells
        self._account = partial(exact_account, expectation, model.bound.form, family)
        self._blas = nullcontext if _is_compiled(expectation) else one_blas_thread
        if self._predict is not None:
            # tables that rows share are made now, and not by a request: those of unlike answers, too
            x = model.table.ungrouped.matrix[:_LOOKED_AT]
            with in_this_thread(), model.table.lend(x) as encoded:
                answers = self._predict(encoded).reshape(len(x), -1)[:, 0]
                self._exact(x[[0, int(np.argmin(answers)), int(np.argmax(answers))]])

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._table.names

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self._outputs

    def __repr__(self) -> str:
        method = "exact" if self._predict is not None else "sampled"
        return f"<CompiledExplainer: {len(self.feature_names)} columns, {method}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (_pickled((type(self), self._parts)),)

    @property
    def _parts(self) -> tuple[Any, ...]:
        """The arguments that make the same once more."""
        return self._explainer, self._model

    def __call__(self, rows: Any) -> PlainContributions:
        """Contributions of a row, or of a few.

        Parameters
        ----------
        rows
            One row as a mapping, list, array, or Series, or a table of a few rows: a list of mappings or of
            lists, an array (n, d), a frame.

        Returns
        -------
        PlainContributions
            Of n = 1 rows or more.

        Raises
        ------
        InputError, ModelError
            As ``explainer.contributions``.
        """
        with in_this_thread():
            x = None if self._predict is None else self._encoded(rows)
            plain = None if x is None else self._exact(x)
            return self._explained(rows) if plain is None else plain

    def between(self, a: Any, b: Any) -> PlainContributions:
        """Contributions from the model's answer at one row to those at others: see ``explainer.between``.

        Parameters
        ----------
        a
            One row or a few, as a call takes them.
        b
            The other row.

        Returns
        -------
        PlainContributions
            Of the rows ``a``; ``base_values`` are the answer at ``b``.

        Raises
        ------
        InputError, ModelError
            As ``explainer.between``.

        Examples
        --------
        >>> import limes
        >>> import numpy as np
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> explain = limes.TabularExplainer(lambda x: x[:, 0] * x[:, 1], X).compiled()
        >>> explain.between([1.0, 1.0], [0.0, 0.0]).values.tolist()
        [[0.5, 0.5]]
        """
        with in_this_thread():
            form = self._model.bound.form
            if self._predict is not None and form is not None:
                x, other = self._encoded(a), self._encoded(b)
                if x is not None and other is not None and len(other) == 1:
                    computed = contributions_of_form(form, x, other[0])
                    if computed is not None:
                        return self._plain(x, self._cells(x), self._predict(x), computed)
            return _of_explanation(self._explainer.between(a, b))

    def each(self, requests: Sequence[Any]) -> list[PlainContributions | Exception]:
        """Explain requests together; the error of a refused one is its result.

        Parameters
        ----------
        requests
            Of each the rows, as a call takes them.
        """
        results: list[PlainContributions | None] = [None] * len(requests)
        if self._predict is not None:
            with in_this_thread():
                encoded = [*map(self._encoded, requests)]
                matrices = [x for x in encoded if x is not None]
                plain = self._exact(np.concatenate(matrices)) if matrices else None
            if plain is not None:
                ends = np.cumsum([0 if x is None else len(x) for x in encoded]).tolist()
                for i, (x, end) in enumerate(zip(encoded, ends, strict=True)):
                    results[i] = None if x is None else plain.rows(end - len(x), end)
        # the explainer knows more about others, and about all where one is refused
        alone = (
            self._tried(request) if its is None else its
            for request, its in zip(requests, results, strict=True)
        )
        return [*alone]

    def _tried(self, request: Any) -> PlainContributions | Exception:
        try:
            return self(request)
        except Exception as error:  # noqa: BLE001 - the result of this request
            return error

    def _encoded(self, rows: Any) -> Floats | None:
        try:
            x = self._read(rows)
            return self._table.ungrouped.encode(rows) if x is None else x
        except Exception:  # noqa: BLE001 - of this request alone: the explainer raises it, or takes the row
            return None

    def _exact(self, plain: Floats) -> PlainContributions | None:
        """Contributions at encoded rows (n, d); None where one is refused, or has no finite answer."""
        # a service meets new combinations of a group without end
        with self._table.lend(plain) as x:
            return self._at(x)

    def _at(self, x: Floats) -> PlainContributions | None:
        assert self._predict is not None  # noqa: S101 - rows are encoded for it
        cells = self._cells(x)
        with self._blas():
            predictions = self._predict(x)
            if not np.isfinite(predictions).all():
                return None
            try:
                computed = self._account(x, cells)
            except REFUSED:
                return None
        return self._plain(x, cells, predictions, computed)

    def _plain(
        self, x: Floats, cells: Ints, predictions: Floats, computed: RowContributions
    ) -> PlainContributions:
        return plain_contributions(predictions, computed, self._codes(x, cells, predictions))

    def _codes(self, x: Floats, cells: Ints, predictions: Floats) -> tuple[tuple[str, ...], ...]:
        about = self._model.row_warnings.about_rows(x, cells, predictions)
        return tuple(tuple(w.code for w in row if w.reading != "coefficients") for row in about)

    def _explained(self, rows: Any) -> PlainContributions:
        return _of_explanation(self._explainer.contributions(rows, progress=False))


def _is_compiled(expectation: Any) -> bool:
    """Whether compiled loops alone compute contributions: these multiply no matrices."""
    if isinstance(expectation, JointExpectation):
        exact = expectation.interventional
        return exact is not None and exact.is_compiled
    return isinstance(expectation, ForestExpectation)


def plain_contributions(
    predictions: Floats, computed: RowContributions, codes: tuple[tuple[str, ...], ...]
) -> PlainContributions:
    """Contributions (n, d, k) in the shape of predictions (n,) or (n, k)."""
    shape = (*computed.values.shape[:2], *predictions.shape[1:])
    return PlainContributions(
        computed.base.reshape(predictions.shape),
        computed.values.reshape(shape),
        predictions,
        codes,
        computed.errors.reshape(shape),
    )


def _of_explanation(explanation: Explanation) -> PlainContributions:
    its = explanation.contributions
    codes = tuple(tuple(w.code for w in row) for row in its.row_warnings)
    return PlainContributions(
        its.base_values, its.values, explanation.predictions, codes, its.standard_errors
    )


def _pickled(state: Any) -> bytes:
    """Pickle what may hold functions without a name, as forms of transformed columns do."""
    try:
        return pickle.dumps(state)
    except (pickle.PicklingError, AttributeError, TypeError):
        if find_spec("cloudpickle") is None:
            raise
    import cloudpickle

    return bytes(cloudpickle.dumps(state))


def _restored(content: bytes) -> CompiledExplainer:
    kind, parts = pickle.loads(content)  # noqa: S301 - a pickle's own content
    restored: CompiledExplainer = kind(*parts)
    return restored


class RowReader:
    """Turn rows into the matrix of a table, if all their cells are ordinary ones of their columns.

    Ordinary are numbers, texts that the background has, and missing values where it has some. All else is
    for `Table.encode`, which says what is wrong.
    """

    def __init__(self, table: Table) -> None:
        self._table, self._names = table, table.names
        self._readers = [_reader(column) for column in table.columns]
        self._may_miss = np.array([column.missing for column in table.columns])

    def __call__(self, rows: Any) -> Floats | None:
        converter = self._table.converter
        if isinstance(converter, FrameConverter) and converter.is_like(rows):
            rows = rows.to_numpy()
        if type(rows) is np.ndarray:
            return self._of_array(rows)
        if isinstance(rows, Mapping):
            return self._of_mappings([rows])
        if not isinstance(rows, list | tuple) or not rows:
            return None
        if isinstance(rows[0], Mapping):
            return self._of_mappings(rows)
        return self._of_lists(rows if isinstance(rows[0], list | tuple) else [rows])

    def _of_array(self, rows: Objects) -> Floats | None:
        if rows.ndim not in (1, 2) or not rows.size or rows.shape[-1] != len(self._names):
            return None
        rows = np.atleast_2d(rows)
        if not self._table.is_plain or rows.dtype.kind not in "fiu":
            return self._of_lists(rows.tolist()) if rows.dtype.kind in "fiuO" else None
        x = rows.astype(np.float64, order="C")
        size = np.abs(x)
        if not (size < EXACT).all():
            missing = np.isnan(x)
            if not ((size < EXACT) | (missing & self._may_miss)).all():
                return None
        return x

    def _of_mappings(self, rows: Sequence[Any]) -> Floats | None:
        if not all(isinstance(row, Mapping) and len(row) == len(self._names) for row in rows):
            return None
        try:
            return self._of_lists([[row[name] for name in self._names] for row in rows])
        except KeyError:
            return None

    def _of_lists(self, rows: Sequence[Any]) -> Floats | None:
        x = np.empty((len(rows), len(self._names)))
        for i, row in enumerate(rows):
            if not isinstance(row, list | tuple) or len(row) != len(self._names):
                return None
            cells = [read(cell) for read, cell in zip(self._readers, row, strict=True)]
            if None in cells:
                return None
            x[i] = cells
        return x


def _reader(column: TableColumn) -> CellReader:
    if column.quantity is not None or column.wide:
        return lambda _: None
    missing = math.nan if column.missing else None
    if column.coded:
        return partial(_code, column.codes, missing)
    points = frozenset(column.points.tolist()) if column.categorical else None
    return partial(_number, points, missing)


def _code(codes: Mapping[Any, float], missing: float | None, cell: Any) -> float | None:
    try:
        code = codes.get(cell)
    except TypeError:  # a list, or another cell without a hash
        return None
    if code is not None:
        return code
    return missing if cell is None or (isinstance(cell, float) and is_missing(cell)) else None


def _number(points: frozenset[float] | None, missing: float | None, cell: Any) -> float | None:
    if not isinstance(cell, NUMBERS):
        return missing if cell is None else None
    try:
        value = float(cell)
    except OverflowError:
        return None
    if value != value:
        return missing
    return value if -EXACT < value < EXACT and (points is None or value in points) else None
