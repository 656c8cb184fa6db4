"""Accounts of a difference: from one row to another, from one model to another, and both together.

The law of one other row b is a point, so that contributions lead from f(b) to f(a) (``_shapley/points.py``).
Accounts are linear in the model: under one law, contributions to f_new - f_old are differences of
contributions (``_explanation/differences.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from limes._arrays import Floats
from limes._expectations.moments import REFUSED, ProductExpectation
from limes._expectations.of_forms import exact_expectation
from limes._explainers.results import fixed_warnings
from limes._explainers.tables.few_rows import contributions_at
from limes._explainers.tables.table import EncodedRows, row_names
from limes._explainers.verified_form import check_agreement
from limes._explanation.attribution import NO_SURROGATE, Contributions
from limes._explanation.differences import NO_CELLS, REFERENCE, changed_value, is_or_are
from limes._explanation.explanation import Explanation, frozen_explanation
from limes._explanation.fit import Fit, WithoutSurrogates
from limes._shapley.curved_margins import CurvedMargin, behind_links
from limes._shapley.exact import RowContributions, exact_contributions
from limes._shapley.game_controls import OccurringDraws
from limes._shapley.pairs import beside_diagonal
from limes._shapley.permutations import ControlVariates, PermutationSampler
from limes._shapley.points import (
    MOST_COLUMNS,
    PointFamily,
    contributions_by_coalitions,
    contributions_of_form,
    differing,
    indices_by_coalitions,
    indices_of_form,
)
from limes._shapley.starts import OccurringStarts
from limes.designs._joint import OccurringRows
from limes.exceptions import InputError
from limes.models._calling.counts import AnswerCount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limes._explainers.tables.model import TabularModel

# Mixtures of two rows at which a form that was read without a background is compared with the model
_MIXTURES = 16
# Facts of a provenance that are about a law of many rows
_OF_LAWS = ("slopes", "meaning", "background", "bins", "law", "weights", "bandwidth", "ridge", "own values")


@contextmanager
def naming(argument: str) -> Iterator[None]:
    """Say which argument an error about rows is about, where a call has rows twice."""
    try:
        yield
    except InputError as error:
        if argument:
            error.args = (f"{argument}: {error.args[0]}", *error.args[1:])
        raise


@dataclass(frozen=True, eq=False)
class OtherRows:
    """The law of one other row, the same for all explained rows or one for each."""

    values: Floats  # (1, d) or (n, d), encoded
    name: str  # "row 17"
    rows: Any  # as the user passed them
    is_alone: bool = False  # whether no background is known beside it

    @classmethod
    def of(
        cls, model: TabularModel, rows: Any, *, is_alone: bool = False, argument: str = "reference"
    ) -> OtherRows:
        """Rows as a user passes them as an ``argument``, named if one has a name."""
        with naming(argument):
            _, encoded = model.encoded(rows, "raise")
        (name, *others), _ = row_names(rows, None, encoded)
        named = hasattr(rows, "index") and not isinstance(rows, Mapping | Sequence)
        text = f"row {name}" if isinstance(name, int) else str(name)
        return cls(encoded.matrix, "the other row" if others or not named else text, rows, is_alone)

    def admitted(
        self, model: TabularModel, encoded: EncodedRows, X: Any, errors: str
    ) -> tuple[TabularModel, EncodedRows, OtherRows]:
        """The model, explained rows X and these, with categories that only these have."""
        wider, values = model.encoded(self.rows, "raise")
        other = self
        if wider is not model:
            model, encoded = wider.encoded(X, errors)
            other = replace(self, values=values.matrix)
        if len(other.values) not in (1, len(encoded.matrix)):
            raise InputError(
                f"b has {len(other.values)} rows, and a has {len(encoded.matrix)}: pass one row, or one for "
                "each of a"
            )
        return model, encoded, other

    def explain(
        self, model: TabularModel, x: Floats, predictions: Floats, again: int, **fields: Any
    ) -> Explanation:
        """Contributions from the model's answers at these rows to its ``predictions`` at rows x (n, d).

        The model was asked about ``again`` rows beside these.
        """
        calls = np.full(len(x), int(model.bound.asks))  # the prediction
        shared = model.bound.shared_calls(0 * calls) + again if model.bound.asks else None
        other = np.broadcast_to(self.values, x.shape)
        computed = self._contributions(model, x, other, predictions)
        outputs: Any = np.arange(predictions.shape[1]) if predictions.ndim == 2 else 0
        bound, is_exact = model.bound, not (computed.errors.any() or computed.base_errors.any())
        data, before = model.table.originals(x), model.table.originals(other)
        reason = bound.reason
        if is_exact:  # also where a background's rows would have to be sampled
            reason = "all combinations of the columns that differ were asked about" if bound.asks else ""
        return frozen_explanation(
            contributions=Contributions.of_rows(
                computed,
                outputs=outputs,
                accuracy=None if is_exact else model.options.sampling.sampling.accuracy,
            ),
            predictions=predictions,
            feature_names=model.table.names,
            output_names=bound.outputs,
            conditions=tuple(
                tuple(map(changed_value, model.table.names, *both)) for both in zip(before, data, strict=True)
            ),
            data=data,
            method="exact" if is_exact else "sampled",
            reason=reason,
            row_warnings=(
                (fixed_warnings(model.table.remark, bound.spread),) * len(x)
                if self.is_alone
                else model.row_warnings.about_rows(x, model.family.cells(x), predictions)
            ),
            provenance=self._facts(model, predictions),
            calls=calls,
            shared_calls=shared,
            fit=Fit.of(
                partial(_PointFits, model, x, other),
                (*x.shape, *predictions.shape[1:]),
                partial(_refuse, "coefficients"),
            ),
            **fields,
        )

    def _facts(self, model: TabularModel, predictions: Floats) -> dict[str, Any]:
        facts = model.provenance_of(None, predictions)
        kept = {name: fact for name, fact in facts.items() if name not in _OF_LAWS}
        return kept | {
            "law of contributions": "one other row",
            REFERENCE: self.name,
            NO_SURROGATE: NO_CELLS,
        }

    def _contributions(
        self, model: TabularModel, x: Floats, other: Floats, predictions: Floats
    ) -> RowContributions:
        """Contributions at rows x (n, d) against others (n, d); rows with the same other one together."""
        if self.is_alone and model.bound.form is not None:
            _compare(model, x, other)
        if len(self.values) == 1:
            return _against(model, x, self.values[0], predictions)
        each = zip(x[:, None], other, predictions[:, None], strict=True)
        return RowContributions.joined([_against(model, *row) for row in each])


@dataclass(frozen=True, eq=False)
class _PointFits(WithoutSurrogates):
    """Pairs, which explanations compute when they are read."""

    model: TabularModel
    x: Floats  # (n, d)
    other: Floats  # (n, d)
    pair_seconds = np.inf  # pages show none

    def halved_pairs(self, rows: Sequence[int]) -> tuple[Floats, Floats]:
        if self.model.bound.asks:
            self.model.bound.check_current()
        halves = beside_diagonal(np.stack([self._indices(self.x[row], self.other[row]) for row in rows]))
        return halves, np.zeros_like(halves)

    def _indices(self, row: Floats, other: Floats) -> Floats:
        """Shapley interaction indices of the way from one row to another, (d, d, k)."""
        bound, columns = self.model.bound, int(differing(row[None], other)[0])
        if bound.form is not None and (exact := indices_of_form(bound.form, row, other)) is not None:
            return exact
        if not bound.asks and columns <= MOST_COLUMNS:
            return indices_by_coalitions(bound.read_predict or bound.ask, row, other)
        if bound.asks and not bound.spread and 2**columns <= bound.budget.walked:
            return indices_by_coalitions(bound.ask, row, other)
        raise InputError(
            f"pairs of two rows that differ in {columns} columns rest on all their combinations, which "
            "are too many: choose rows that differ in fewer columns, or a larger max_calls= of a function "
            "whose answers repeat"
        )

    def within(self, row: int, column: int) -> Never:  # noqa: ARG002 - of no row
        raise InputError(
            "within() shares contributions that lead from a background: explain the rows without reference="
        )

    def refuse(self, name: str) -> Never:
        _refuse(name)


def _refuse(name: str) -> Never:
    raise InputError(f"there {is_or_are(name)} no {name}: {NO_CELLS}")


def _against(model: TabularModel, x: Floats, other: Floats, predictions: Floats) -> RowContributions:
    """Contributions at rows x (n, d) against one other row (d,)."""
    bound, most = model.bound, int(differing(x, other).max(initial=0))
    if bound.form is not None:
        exact = contributions_of_form(bound.form, x, other)
        if exact is not None:
            return exact
    elif bound.read_predict is not None:
        if most <= MOST_COLUMNS:
            return contributions_by_coalitions(bound.read_predict, x, other)
    elif not bound.spread and 2**most <= bound.budget.walked:
        return _by_asking(bound.ask, x, other)
    return _by_law(model, x, other, predictions)


def _by_asking(ask: Callable[[Floats], Floats], x: Floats, other: Floats) -> RowContributions:
    """Contributions from the model's own answers to all coalitions, row by row."""
    parts = []
    for row in x:
        with AnswerCount().counting() as count:
            part = contributions_by_coalitions(ask, row[None], other)
        parts.append(replace(part, calls=np.array([count.rows])))
    return RowContributions.joined(parts)


def _compare(model: TabularModel, x: Floats, other: Floats) -> None:
    """Compare model and form at mixtures of both rows: a form that was read alone has seen one row only.

    A ReadMismatchError names the first where they differ.
    """
    bound, rng = model.bound, np.random.default_rng(0)
    assert bound.form is not None  # noqa: S101 - it was read
    which = rng.integers(len(x), size=_MIXTURES)
    mixed = np.where(rng.random((_MIXTURES, x.shape[1])) < 0.5, x[which], other[which])
    answers = bound.ask(mixed)
    check_agreement(
        answers,
        bound.form.predict(mixed),
        bound.allowance(answers),
        lambda i: f"a mixture of explained row {which[i]} and the reference",
    )


def _by_law(model: TabularModel, x: Floats, other: Floats, predictions: Floats) -> RowContributions:
    """Contributions whose columns have one value each: by quadrature, or by calls where a row is refused."""
    form = model.bound.form
    expectation: Any = model.bound.expectation
    if form is not None and not isinstance(expectation, ProductExpectation):
        expectation = exact_expectation(form)
    family, cells, parts = PointFamily.of(other), np.zeros((1, other.size), dtype=np.int64), []
    for row, prediction in zip(x[:, None], predictions, strict=True):
        part = None
        if form is not None and not expectation.needs_densities:
            try:
                part = exact_contributions(form, expectation, family, row, cells)
            except REFUSED:
                if model.options.sampling.method == "exact":
                    raise
        parts.append(_sampled(model, row[0], other, prediction.reshape(-1)) if part is None else part)
    return RowContributions.joined(parts)


def _sampled(model: TabularModel, row: Floats, other: Floats, prediction: Floats) -> RowContributions:
    """Contributions at one row from answers to mixtures of both, those of a form where it was read."""
    bound, family = model.bound, PointFamily.of(other)
    sampling = replace(model.options.sampling.sampling, spread=bound.spread)
    if bound.read_predict is None:
        sampling = replace(sampling, max_calls=bound.budget.walked)
        walks = PermutationSampler(bound.ask, sampling, advice=bound.budget.advice)
    else:
        behind = None if bound.form is None else behind_links(bound.form)
        walks = PermutationSampler(behind or bound.read_predict, sampling, asks=False, reads=bound.reads)
    with AnswerCount().counting() as count:
        answer = np.asarray(walks.predict(other[None])).reshape(1, -1)
    around = OccurringRows(np.zeros((1, row.size)), np.ones(1), 0.0)
    starts = OccurringStarts(other[None], answer, around)
    if not walks.asks:
        others = None
        if isinstance(walks.predict, CurvedMargin):
            cells = np.zeros((1, row.size), dtype=np.int64)
            margins = walks.predict.contributions(family, row[None], cells)
            others = None if margins is None else ControlVariates(margins[0])
        return _from(answer, walks.at(row, prediction, starts, others), 0.0)
    law = OccurringDraws(row, starts, model.family)
    account = contributions_at(walks, law, prediction, None, count.rows, is_current=True)
    return _from(answer, replace(account, calls=account.calls + count.rows), bound.spread)


def _from(answer: Floats, account: RowContributions, spread: float) -> RowContributions:
    """The same with the answer (1, k) at the other row as the base, which all mixtures begin at."""
    return replace(account, base=answer, base_errors=np.full_like(answer, spread))
