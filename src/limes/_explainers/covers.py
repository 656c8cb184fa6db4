r"""Explain rows of a table by the law of covers: no background, contributions alone.

`limes.TabularExplainer(model, law="covers")` makes a `CoversExplainer`. The law is the trees' own
(``_shapley/covers.py``): it has no perturbed rows, so that nothing can be fitted to them. What other laws
have beside contributions is refused, with the reason.

A table tells what columns are called, which text a code stands for, and of which type the model's rows are.
Without a background each call learns it from the explained rows, which are a table, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple, Never

import numpy as np

from limes import __version__
from limes._arrays import Floats
from limes._checks import check_choice
from limes._explainers.options import ACCOUNT, Request, complete
from limes._explainers.tables.compiled import (
    CompiledExplainer,
    PlainContributions,
    RowReader,
    plain_contributions,
)
from limes._explainers.tables.laws import value_texts
from limes._explainers.tables.table import EncodedRows, Table, as_table, row_names
from limes._explainers.tables.verification import advice_on, read_on, read_with_categories
from limes._explainers.tabular import TabularExplainer
from limes._explainers.verified_form import VerifiedForm, check_agreement, margin_of
from limes._explanation import Explanation
from limes._explanation.attribution import Contributions
from limes._explanation.explanation import frozen_explanation
from limes._explanation.fit import Fit, WithoutSurrogates
from limes._explanation.wording import NOT_OF_COVERS
from limes._shapley.covers import PROBABILITIES, Covers
from limes._shapley.exact import RowContributions
from limes._threads import LRUCache, one_blas_thread
from limes.exceptions import InputError, LimesError, NotReadableError
from limes.models._calling.caller import ModelCaller
from limes.models._calling.outputs import answered_names, behind_method, is_log_odds, resolve
from limes.models._columns import fitted_names
from limes.models._identity import RefitDetector
from limes.models._reading import CannotRead, fitted_columns, read_output
from limes.models.forms._base import Form

# Options that the law of covers takes; others are about perturbed rows, their bins and their sample
_OPTIONS = ("output", "categorical", "errors")
_WITH_BACKGROUND = "pass rows as a background, TabularExplainer(model, background, law='covers')"
# Rows about the thresholds of trees that are compared with the model
_COMPARED = 64
# Tables of other columns or texts whose forms are cached
_SCHEMAS = 8


def _not_read(reason: str, margin: Form | None) -> LimesError:
    """Return the error of a model that is not read, by the form behind its link.

    Probabilities are refused in the same words whether their tables were small enough to be read or not.
    """
    if margin is not None:
        return InputError(PROBABILITIES)
    return NotReadableError(f"law='covers' explains sums of trees that can be read: {reason}")


class _Reading:
    """A model as it was read for tables of some columns."""

    def __init__(self, model: Any, output: Any, table: Table) -> None:
        self.table, verified = read_with_categories(model, table, partial(read_on, model, output), "quartile")
        if verified.form is None:
            read = partial(read_output, model, schema=self.table.schema)
            raise _not_read(verified.reason, margin_of(model, verified.output, read))
        self.form: Form = verified.form
        self.verified: VerifiedForm = verified
        self.covers = Covers(self.form)
        self.detector: RefitDetector = verified.watch()
        # columns of numbers that the model takes for categories
        self._by_model = np.flatnonzero(table.numeric & ~self.table.numeric).tolist()
        pairs = zip(table.columns, self.table.columns, strict=True)
        # whether these have codes, which depend on the table's values
        self.is_coded = any(before.coded != after.coded for before, after in pairs)

    def on(self, table: Table) -> Table:
        """Another table of the columns, as the model takes it."""
        return table.with_categories(self._by_model)

    def agrees(self, x: Floats, answers: Floats) -> bool:
        """Whether answers at rows (n, d) are those of what was read, up to the model's rounding."""
        computed = self.form.predict(x)
        size = max(float(np.abs(answers).max()), float(np.abs(computed).max()))
        return computed.shape == answers.shape and bool(
            (np.abs(answers - computed) <= self.verified.tolerance * size).all()
        )


@dataclass(frozen=True, eq=False)
class _CoversFits(WithoutSurrogates):
    """Pairs, which explanations compute when they are read."""

    covers: Covers
    x: Floats

    @property
    def pair_seconds(self) -> float:
        """About the seconds that pairs at a row take."""
        return self.covers.pair_seconds

    def contributions(self, rows: Sequence[int], *, is_current: bool = False) -> RowContributions:  # noqa: ARG002
        return self.covers.contributions(self.x[rows])

    def exact_contributions(self, rows: Sequence[int]) -> RowContributions:
        return self.contributions(rows)

    def halved_pairs(self, rows: Sequence[int]) -> tuple[Floats, Floats]:
        halves = 0.5 * self.covers.pairs(self.x[rows])
        diagonal = np.arange(halves.shape[1])
        halves[:, diagonal, diagonal] -= halves.sum(axis=2)
        return halves, np.zeros_like(halves)

    def refuse(self, name: str) -> Never:
        _refuse(name)


class _Opened(NamedTuple):
    """Rows of one call, and the model as it is read for them."""

    reading: _Reading
    table: Table  # with the columns of the rows
    rows: EncodedRows
    ask: ModelCaller
    answers: Floats


class _CompiledCovers(CompiledExplainer):
    """Contributions of single rows by covers, as plain arrays."""

    _explainer: CoversExplainer

    def __init__(self, explainer: CoversExplainer, reading: _Reading, outputs: tuple[str, ...]) -> None:
        self._explainer, self._reading, self._outputs = explainer, reading, outputs
        self._table = reading.table
        self._read = RowReader(reading.table)
        self._predict = reading.form.predict

    @property
    def _parts(self) -> tuple[Any, ...]:
        return self._explainer, self._reading, self._outputs

    def between(self, a: Any, b: Any) -> Never:
        self._explainer.between(a, b)

    def _encoded(self, rows: Any) -> Floats | None:
        # new texts are for the explainer, whose table has them as further levels
        return self._read(rows)

    def _exact(self, plain: Floats) -> PlainContributions | None:
        predictions = self._reading.form.predict(plain)
        if not np.isfinite(predictions).all():
            return None
        return plain_contributions(predictions, self._reading.covers.contributions(plain), ((),) * len(plain))


class CoversExplainer(TabularExplainer):
    """The explainer that ``limes.TabularExplainer(model, law="covers")`` makes; see there.

    It is called as any other, and has contributions alone.

    Raises
    ------
    InputError
        If an option is of another law, the model is no sum of trees, or its trees do not store how many
        training rows came to a node.
    NotReadableError
        If the model cannot be read.

    References
    ----------
    Lundberg, Erion & Lee 2018, "Consistent individualized feature attribution for tree ensembles".

    Examples
    --------
    >>> import limes
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = RandomForestRegressor(10, random_state=0).fit(X, y)
    >>> account = limes.TabularExplainer(model, law="covers")(X.iloc[:2]).contributions
    >>> bool(abs(account.base_values + account.values.sum(axis=1) - model.predict(X.iloc[:2])).max() < 1e-9)
    True
    """

    @one_blas_thread()
    def __init__(
        self,
        model: Any,
        background: Any = None,
        *,
        output: Any = None,
        law: str | None = None,
        categorical: Any = None,
        errors: str = "raise",
        **options: Any,
    ) -> None:
        _refuse_options(options)
        check_choice("law", law, ("covers",))
        self._explained, self._output = behind_method(model, output)
        resolve(self._explained, self._output)  # an output that the model lacks is refused now
        self._categorical, self._errors = categorical, check_choice("errors", errors, ("raise", "row"))
        self._table: Table | None = None
        self._readings: LRUCache[Any, _Reading] = LRUCache(_SCHEMAS)
        if background is not None:
            self._table = Table.fit(background, categorical=categorical).for_model(self._explained)
            self._read(self._table)
            return
        if errors == "row":
            raise InputError("errors='row' needs a background, which says what a usable cell is: pass rows")
        self._refuse_other_models()

    def _refuse_other_models(self) -> None:
        """Refuse a model without covers before any row is seen, where it can be read without a table."""
        output = resolve(self._explained, self._output)
        try:
            form = read_output(self._explained, output)
        except CannotRead as reason:
            margin = margin_of(self._explained, output, partial(read_output, self._explained))
            if margin is None and (fitted_columns(self._explained) or fitted_names(self._explained)):
                return  # texts and categories may be what it lacks, which rows have
            raise _not_read(str(reason), margin) from None
        Covers(form)

    def _read(self, table: Table) -> _Reading:
        read = partial(_Reading, self._explained, self._output, table)
        schema = table.schema
        reading = self._readings.get((schema, tuple(column.dtype for column in table.columns)), read)
        return read() if reading.is_coded else reading

    def _opened(self, X: Any) -> _Opened:
        if self._table is None:
            table = Table.fit(as_table(X), categorical=self._categorical).for_model(self._explained)
            reading = self._read(table)
            table = reading.table if reading.is_coded else reading.on(table)
            rows = EncodedRows(table.matrix, np.arange(len(table.matrix)), {})
        else:
            reading = self._read(self._table.with_levels_of(X))
            table = reading.table
            rows = table.encode_rows(X, self._errors)
        advice = partial(advice_on, self._explained, table)
        ask = ModelCaller(self._explained, reading.verified.output, table.decode, advice)
        return _Opened(reading, table, rows, ask, ask(rows.matrix))

    @property
    def _request(self) -> Request:
        return ACCOUNT

    def _answered(self, X: Any, request: Request, *, ids: Any, progress: bool, workers: int) -> Explanation:  # noqa: ARG002
        return self._by_covers(X, ids)

    @one_blas_thread()
    def _by_covers(self, X: Any, ids: Any) -> Explanation:
        opened = self._opened(X)
        reading = opened.reading
        if not (reading.detector.same_state() and reading.agrees(opened.rows.matrix, opened.answers)):
            # fitted again since: what is read now must agree
            self._readings = LRUCache(_SCHEMAS)
            opened = self._opened(X)
        reading, table, rows, ask, answers = opened
        names, errors = row_names(X, ids, rows)
        computed, shape = reading.covers.contributions(rows.matrix), answers.shape[1:]
        total = (computed.base + computed.values.sum(axis=1)).reshape(answers.shape)
        terms = np.abs(computed.base) + np.abs(computed.values).sum(axis=1)
        allowed = reading.verified.tolerance * max(float(terms.max()), float(np.abs(answers).max()))
        check_agreement(answers, total, allowed, lambda i: f"row {names[i]!r}")
        output = reading.verified.output
        log_odds = is_log_odds(self._explained, output, table.decode(rows.matrix[:2]))
        return frozen_explanation(
            contributions=Contributions.of_rows(computed, outputs=np.arange(shape[0]) if shape else 0),
            predictions=answers,
            feature_names=table.names,
            output_names=output.names(shape, answered_names(ask)),
            conditions=_conditions(table, rows.matrix),
            data=table.originals(rows.matrix),
            method="exact",
            reason="read off the trees, which count training rows in place of a background",
            calls=np.zeros(len(names), dtype=np.int64),
            row_warnings=((),) * len(names),
            provenance={
                "limes": __version__,
                "model": type(self._explained).__name__,
                "answer": output.method or "call",
                **({"quantity": "log-odds"} if log_odds else {}),
                "law": "covers",
            },
            ids=names,
            errors=errors,
            explainer=self,
            fit=Fit.of(
                partial(_CoversFits, reading.covers, rows.matrix),
                (*rows.matrix.shape, *shape),
                partial(_refuse, "coefficients"),
                is_read=True,
            ),
        )

    def compiled(self) -> CompiledExplainer:
        """A function from one row, or a few, to contributions as plain arrays, for services.

        Without a background columns are numbers, and those that the model was fitted on.

        Raises
        ------
        InputError
            If there is no background, and the model does not say what its columns are, or is not read over
            numbers.

        Examples
        --------
        >>> import limes
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y)
        >>> explain = limes.TabularExplainer(model, law="covers").compiled()
        >>> plain = explain(X[0])
        >>> bool(abs(plain.base_values + plain.values.sum() - plain.predictions) < 1e-9)
        True
        """
        table = self._table_of_numbers() if self._table is None else self._table
        explainer = copy(self)
        # a row that is refused is an error, and not left out
        vars(explainer).update(_errors="raise", _table=table)
        reading = self._read(table)
        rows = (
            reading.covers.rows_about_splits(_COMPARED) if self._table is None else table.matrix[:_COMPARED]
        )
        # what differs from the model's answers is an error now, as later calls do not compare
        explanation = explainer(reading.table.decode(rows))
        return _CompiledCovers(explainer, reading, explanation.output_names)

    def _table_of_numbers(self) -> Table:
        """A table of the model's columns as numbers, any of which may be missing."""
        names = fitted_names(self._explained)
        one: Any = np.zeros((1, fitted_columns(self._explained) or self._columns_read()))
        if names and find_spec("pandas"):
            import pandas

            one = pandas.DataFrame(one, columns=[*names])
        table = Table.fit(one, categorical=self._categorical).for_model(self._explained)
        table = replace(table, columns=tuple(replace(column, missing=True) for column in table.columns))
        try:
            self._read(table)
        except NotReadableError as error:
            raise InputError(
                "compiled() without a background takes all columns for numbers, and over numbers this model "
                f"is not read: {_WITH_BACKGROUND}"
            ) from error
        return table

    def _columns_read(self) -> int:
        """Number of columns of trees that do not name them."""
        try:
            return read_output(self._explained, resolve(self._explained, self._output)).size
        except CannotRead as reason:
            raise InputError(f"compiled() does not know the columns, {reason}: {_WITH_BACKGROUND}") from None

    # -- what an explainer says of itself --------------------------------------------------------------------

    def _facts(self) -> Mapping[str, Any]:
        facts: dict[str, Any] = {"limes": __version__, "model": type(self._explained).__name__}
        if self._table is not None:
            facts["background"] = f"{len(self._table.matrix)} rows"
        return {**facts, "law": "covers"}

    @property
    def method(self) -> Any:
        """The text "exact": covers are read off the trees."""
        return "exact"

    @property
    def suggestion(self) -> None:
        """None: there are no bins."""
        return None

    @property
    def pool_calls(self) -> int:
        """0: nothing is sampled."""
        return 0

    @property
    def model_warnings(self) -> tuple[str, ...]:
        """A remark about columns that the model was not fitted on, if there is a background."""
        return tuple(filter(None, [self._table.remark])) if self._table is not None else ()

    def fill_pool(self, *, progress: bool = True, workers: int = 1) -> None:
        """Do nothing: there is no pool."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns: of the background, or those that the model was fitted on; () if unknown."""
        if self._table is not None:
            return self._table.names
        names = fitted_names(self._explained)
        return names or tuple(f"x{j}" for j in range(fitted_columns(self._explained) or 0))

    @property
    def _column_keys(self) -> Mapping[str, Any]:
        if self._table is None:
            return {}
        return dict(zip(self._table.names, self._table.keys.names, strict=True))

    @property
    def reproducible(self) -> TabularExplainer:
        """The same explainer: a row's numbers are the same to the last bit in any call."""
        return self

    def _typical_row(self) -> Any:
        if self._table is None:
            raise InputError("law='covers' without a background knows no row of the table: pass one")
        return self._table.decode(self._table.matrix[:1])

    @property
    def _wanted_contributions(self) -> bool:
        return True

    @property
    def _has_quick_contributions(self) -> bool:
        return True

    # -- what there is not -----------------------------------------------------------------------------------

    def between(self, a: Any, b: Any, *, ids: Any = None) -> Never:  # noqa: ARG002
        raise InputError(
            "law='covers' has no law of one other row: limes.TabularExplainer(model, reference=b)(a) has"
        )

    def design(self, row: Any) -> Never:  # noqa: ARG002
        _refuse("design, a law of perturbed rows")

    def features(self, X: Any) -> Never:  # noqa: ARG002
        _refuse("moments of features")

    def _with_design(self, **options: Any) -> Never:  # noqa: ARG002
        _refuse("bins, and no bandwidth")

    @property
    def _design_options(self) -> Never:
        _refuse("bins, and no bandwidth")

    def _looked_at(self, X: Any) -> Never:  # noqa: ARG002
        _refuse("perturbed rows")

    def _diagnostic_context(self, *arguments: Any, **options: Any) -> Never:  # noqa: ARG002
        _refuse("diagnosis")


def _refuse(name: str) -> Never:
    raise InputError(NOT_OF_COVERS.format(name=name))


def _refuse_options(options: Mapping[str, Any]) -> None:
    """Refuse options that exist and mean nothing here; their defaults may be written out."""
    all_options = TabularExplainer.__signature__.parameters  # type: ignore[attr-defined]
    complete(TabularExplainer, {name: value for name, value in options.items() if name not in all_options})
    for name, value in options.items():
        default = all_options[name].default
        if value is not default and not (type(value) is type(default) and value == default):
            raise InputError(
                f"{name}={value!r} is about perturbed rows, and law='covers' has none; its options are "
                f"{', '.join(_OPTIONS)}"
            )


def _conditions(table: Table, x: Floats) -> tuple[tuple[str, ...], ...]:
    """Texts of the rows' values."""
    columns = []
    for column, values in zip(table.columns, x.T, strict=True):
        distinct, place = np.unique(values, return_inverse=True)
        texts = value_texts(column, distinct)
        columns.append([texts[i] for i in place.tolist()])
    return tuple(zip(*columns, strict=True))
