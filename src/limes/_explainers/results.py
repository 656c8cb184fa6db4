"""From computed rows to results: several inputs, partial results, and the warnings that explanations carry.

Warnings cost next to nothing: arrays decide which rows have one, and sentences are written for those alone.
``limes.diagnose`` looks closer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from threading import Event
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from limes._arrays import ROUNDING, Bools, Floats, Ints, are_probabilities, sum_tolerance
from limes._checks import check_threshold
from limes._diagnostics.finding import row_outputs
from limes._expectations.moments import SampleStatistics
from limes._explainers.options import Request
from limes._explainers.tables.laws import Writer, number_texts, writer_of
from limes._explanation import Explanation
from limes._explanation.attribution import Contributions, changed
from limes._explanation.fit import Fit
from limes._explanation.wording import CONFIDENCE, number
from limes._fitting import Fitted, RefusedRowsError
from limes._sampling.least_squares import ENOUGH_ANSWERS, ENOUGH_CARRIERS, least_effective
from limes._sampling.sampled import CALLS, Sampling
from limes._threads import Progress, in_workers
from limes._warnings import RowWarning, by_output, sentence
from limes.designs._marginals import BinCells, EdgeDistances, Marginal, TupleCells
from limes.exceptions import InputError, Interrupted, ModelError
from limes.models._calling.caller import repetition_warnings
from limes.models._calling.counts import AnswerCount
from limes.models._calling.outputs import SCORE, THRESHOLDS, FirstAnswers, first_answers, no_probabilities
from limes.models._identity import SPREADS, rounding_of

if TYPE_CHECKING:
    from limes._explainers.tables.table import Table
    from limes._explainers.verified_form import VerifiedForm
    from limes.designs._product import ProductFamily

# Inputs whose explanation was cut short, of which the model's answers are kept
UNFINISHED = 16

Item = TypeVar("Item")
Result = TypeVar("Result")


def compute_each(
    items: Sequence[Item], compute: Callable[[Item], Result], *, progress: Progress, workers: int = 1
) -> tuple[list[Result | None], BaseException | None]:
    """A result per item, None for those that were not finished, and the error that ended it, if any.

    ``workers`` items are computed at the same time, each in its own thread; the first one before all others,
    so that what is learnt at it is the same however many there are.
    """
    results: list[Result | None] = [None] * len(items)
    stop = Event()
    try:
        with progress(len(items)) as advance:

            def step(i: int) -> None:
                if not stop.is_set():
                    results[i] = compute(items[i])
                    advance(1)

            for positions in (range(len(items))[:1], range(len(items))[1:]):
                in_workers(step, positions, workers, stop)
    except (ModelError, KeyboardInterrupt) as error:
        return results, error
    return results, None


def answers_alike(before: Floats, predictions: Floats, spread: float) -> bool:
    """Whether the model answers as when the explanation was cut short."""
    if before.shape != predictions.shape:
        return False
    allowed = np.maximum(rounding_of(before), SPREADS * spread)
    return bool((np.abs(before - predictions) <= allowed).all())


def interrupted(cause: BaseException | None, partial: Explanation | None, rows: int) -> BaseException:
    count = 0 if partial is None else len(partial)
    state = (
        f"explained so far, in part or in full: {count} of {rows} rows (in this error's partial); a repeated "
        "call continues from the calls made"
    )
    if isinstance(cause, ModelError):
        error = ModelError(f"{cause}; {state}", batch=cause.batch)
        error.partial = partial
        return error
    return Interrupted(f"stopped: {state}", partial)


def with_contributions(
    explanation: Explanation, request: Request, *, progress: Progress, workers: int = 1
) -> Explanation:
    """Compute contributions of an explanation in the call, if they are asked for.

    What was computed before outlives whatever happens: a failure is a warning, and a stop has it in its
    ``partial``.
    """
    fit = explanation.fit
    if fit is None or not request.may_ask or (request.contributions == "shown" and fit.is_read):
        return explanation
    try:
        computed, error = _computed_contributions(explanation, fit, progress, workers)
        if computed is not None:
            return changed(explanation, contributions=computed)
    except KeyboardInterrupt as stop:
        error = stop
    except InputError as refusal:
        error = refusal
    assert error is not None  # noqa: S101 - nothing was computed
    if vars(explanation)["coefficients"] is None and not isinstance(error, KeyboardInterrupt):
        raise error  # there is nothing else to keep
    if isinstance(error, KeyboardInterrupt):
        raise Interrupted(
            "stopped: all rows are explained (in this error's partial), but for their contributions; reading "
            "partial.contributions computes those that are missing",
            explanation,
        ) from error
    warning = RowWarning.of("contributions", error=error)
    return changed(explanation, row_warnings=tuple((*row, warning) for row in explanation.row_warnings))


def _computed_contributions(
    explanation: Explanation, fit: Fit, progress: Progress, workers: int
) -> tuple[Contributions | None, BaseException | None]:
    """Contributions of all rows, or the error that ended them."""
    if fit.is_read:
        return explanation.contributions, None
    fits, rows = fit.make(), [[row] for row in range(len(explanation))]
    exact = fit.exact_contributions() if len(rows) * fits.account_seconds < 1.0 else None
    if exact is not None:
        return exact, None
    # one by one: those that are finished are kept
    compute = partial(fits.contributions, is_current=True)
    parts, error = compute_each(rows, compute, progress=_bar_of_calls(progress, fits), workers=workers)
    if error is not None or not rows:
        return None if error else explanation.contributions, error
    return fit.joined([part for part in parts if part is not None]), None


def _bar_of_calls(progress: Progress, fits: Any) -> Progress:
    """A bar of calls of the model in place of one of rows."""
    a_row = getattr(fits, "calls_a_row", 0)
    if not a_row:
        return progress

    @contextmanager
    def bar(total: int, unit: str = CALLS, calls: int = a_row, /) -> Iterator[Callable[[int], object]]:
        del unit
        with progress(total * calls, CALLS, calls) as advance:
            tally, rows, unneeded = _Advancing(advance), 0, 0

            def finished(count: int) -> None:
                nonlocal rows, unneeded
                rows += count
                rest = max(0, rows * calls - tally.rows - unneeded)
                unneeded += rest
                advance(rest)

            with tally.counting():
                yield finished

    return bar


class _Advancing(AnswerCount):
    """Counts answers with a bar."""

    def __init__(self, advance: Callable[[int], object]) -> None:
        super().__init__()
        self._advance = advance

    def add(self, rows: int) -> None:
        super().add(rows)
        self._advance(rows)


def without_coefficients(explanation: Explanation) -> Explanation:
    """The explanation of which contributions alone were asked for: nothing in it is about coefficients.

    These, and warnings about them, are there when they are read. An account at two levels has no other
    reading.
    """
    stored = vars(explanation)
    if explanation.fit is None or stored["contributions"] is None or stored["coefficients"] is None:
        return explanation
    record = stored["row_warnings"]
    fit = replace(explanation.fit, make_warnings=lambda: record)
    about_it = tuple(tuple(w for w in row if w.reading != "coefficients") for row in record)
    return changed(explanation, coefficients=None, fit=fit, row_warnings=about_it)


def refused(refusal: RefusedRowsError, ids: Sequence[Any], partial: Explanation | None) -> ModelError:
    row, why = next(iter(refusal.reasons.items()))
    others = len(refusal.reasons) - 1
    more = f", and {others} more rows are refused" if others else ""
    error = ModelError(
        f"row {ids[row]!r} has no exact expectation: {why}{more}; pass method='auto', which samples such "
        "rows, or errors='row', which skips them"
    )
    error.partial = partial
    return error


def reason_of(refusals: Mapping[int, str], rows: int) -> str:
    """Why some rows of a read model are sampled; "" if none is."""
    if not refusals:
        return ""
    first = next(iter(refusals.values()))
    return (
        f"{len(refusals):,} of {rows:,} rows have no exact expectation and are sampled from the read "
        f"model: {first}"
    )


def examined(explanation: Explanation, output: Ints, outputs: Sequence[str]) -> dict[str, Any]:
    """Get what a context of diagnoses has of an explanation, by an explainer that has these ``outputs``."""
    unknown = [name for name in explanation.output_names if name not in outputs]
    if unknown:
        raise InputError(f"this explainer has no output {unknown[0]!r}, only {list(outputs)}")
    return {
        "row_outputs": row_outputs(explanation, output),
        "positions": np.array([outputs.index(explanation.output_names[k]) for k in output]),
        "bandwidth": float(explanation.provenance["bandwidth"]),
        "ridge": float(explanation.provenance["ridge"]),
        "seed": int(explanation.provenance.get("seed") or 0),
    }


def fixed_warnings(remark: str, spread: float) -> tuple[RowWarning, ...]:
    """Warnings that a model was fitted on other columns, "" if not, and that its answers vary."""
    columns = (RowWarning(remark, "columns"),) if remark else ()
    return columns + repetitions(spread)


def repetitions(spread: float) -> tuple[RowWarning, ...]:
    """Warn of a model whose answers to one input differ by this ``spread``."""
    return tuple(RowWarning(text, "inconsistent") for text in repetition_warnings(spread))


# -- rows of a table -----------------------------------------------------------------------------------------

Warnings: TypeAlias = tuple[RowWarning, ...]
# Standard deviations: a row so near to an edge is on it
_ON_THE_EDGE = 1e-4
# Share of the row's largest coefficient above which a coefficient is large
_LARGE = 0.2
# Columns outside of their range that have a sentence each
_LISTED = 3
# Rows looked at together: their distances fit the processor's memory
_BLOCK = 10_000


def _is_one_cell(law: Marginal) -> bool:
    """Whether a column is in one cell in all rows of the background."""
    new = isinstance(law.cells, TupleCells)  # has a cell for what does not occur
    return law.cells.count == 1 + new


@dataclass(frozen=True, eq=False)
class RowWarnings:
    """Warnings about rows of a table, by what is ordinary in its background."""

    names: tuple[str, ...]
    numeric: Bools  # (d,) which columns hold numbers
    low: Floats  # (d,) smallest background value
    high: Floats
    crossings: EdgeDistances  # distances of values from the edges of their bins
    of_codes: Bools  # (d, cells) which cells hold codes of missing values
    fixed: tuple[RowWarning, ...]  # about every row
    adds_up: bool  # whether the answers may be probabilities of classes, which add up to 1
    method: str  # of the model, that answers
    # warnings that predictions are no probabilities, as their method claims
    scores: Callable[[Floats], tuple[RowWarning, ...]]
    outputs: Sequence[str]
    threshold: float | None  # of a decision, in the place of the usual one
    writers: Sequence[Writer]  # (d,) what writes numbers of a column
    table: Table
    absent: Mapping[int, Floats]  # codes of categories that no row has, by column without groups

    @classmethod
    def from_background(
        cls,
        table: Table,
        family: ProductFamily,
        units: Floats,
        verified: VerifiedForm,
        *,
        adds_up: bool,
        threshold: float | None,
    ) -> RowWarnings:
        laws, method = family.marginals, verified.output.method
        of_codes = np.zeros((len(laws), family.widest + 1), dtype=np.bool_)
        for j, law in enumerate(laws):
            if isinstance(law.cells, BinCells):
                of_codes[j, law.cells.of_codes] = True
        values = np.ma.masked_invalid(table.matrix)  # a column may be all missing
        for j in np.flatnonzero(of_codes.any(axis=1)).tolist():
            values[of_codes[j, laws[j].cells.locate(table.matrix[:, j])], j] = np.ma.masked
        slopes, held = (
            np.zeros(len(laws), dtype=np.bool_) if chosen is None else chosen
            for chosen in (family.slopes, family.held)
        )
        binned = ~slopes & np.array([law.cells.count > 1 for law in laws])
        return cls(
            names=table.names,
            numeric=table.numeric,
            low=values.min(axis=0).filled(np.nan),
            high=values.max(axis=0).filled(np.nan),
            crossings=EdgeDistances.learn(laws, table.matrix, binned, units),
            of_codes=of_codes,
            fixed=tuple(
                RowWarning.of("does not vary", name=name)
                for name, law, slope, keeps in zip(table.names, laws, slopes, held, strict=True)
                if law.is_point or (_is_one_cell(law) and not slope and not keeps)
            ),
            adds_up=adds_up,
            method=method or "call",
            scores=partial(score_warnings, verified.model, method, first_answers(verified.ask))
            if method == "predict_proba"
            else no_scores,
            outputs=verified.outputs,
            threshold=threshold,
            writers=[*map(writer_of, table.columns)],
            table=table,
            absent=table.ungrouped.absent_categories,
        )

    def of_rows(
        self,
        rows: Floats,
        cells: Ints,
        fitted: Fitted,
        predictions: Floats,
        sampling: Mapping[int, tuple[RowWarning, ...]],
    ) -> tuple[tuple[RowWarning, ...], ...]:
        """Warnings of rows (n, d) with their cells, those of ``sampling`` among them."""
        outside, scores, fixed, odd = self._of_data(rows, cells, predictions)
        near = np.concatenate(
            [self._near(rows[i : i + _BLOCK], cells[i : i + _BLOCK]) for i in range(0, len(rows), _BLOCK)]
        )
        if near.any():
            # where the coefficient is large its bin matters
            coef = np.abs(fitted.surrogate.coef)
            size = coef.reshape(*coef.shape[:2], -1).max(axis=2)
            near &= size >= _LARGE * size.max(axis=1, keepdims=True)
        far = _far(fitted, predictions)
        remarkable = np.flatnonzero(outside.any(axis=1) | near.any(axis=1) | far.any(axis=1))
        warnings = [fixed] * len(rows)
        surrogates = np.reshape(fitted.at_instance, predictions.shape)
        misleading = self._misleading(predictions, surrogates, SCORE if scores else self.method)
        for i in sorted({*remarkable.tolist(), *misleading, *odd, *sampling}):
            warnings[i] = (
                *misleading.get(i, ()),
                *self._outside(np.flatnonzero(outside[i]).tolist(), rows[i]),
                *(
                    RowWarning.of("on an edge", name=self.names[j], value=self._value(j, rows[i, j]))
                    for j in np.flatnonzero(near[i]).tolist()
                ),
                *by_output(
                    [sentence("far") if miss else "" for miss in far[i].tolist()], self.outputs, "far"
                ),
                *odd.get(i, ()),
                *sampling.get(i, ()),
                *fixed,
            )
        return tuple(warnings)

    def about_rows(
        self, rows: Floats, cells: Ints, predictions: Floats
    ) -> tuple[tuple[RowWarning, ...], ...]:
        """Warnings that are about no surrogate: of rows outside of the background, and of the model."""
        outside, _, fixed, odd = self._of_data(rows, cells, predictions)
        warnings = [fixed] * len(rows)
        for i in sorted({*np.flatnonzero(outside.any(axis=1)).tolist(), *odd}):
            columns = np.flatnonzero(outside[i]).tolist()
            warnings[i] = (*self._outside(columns, rows[i]), *odd.get(i, ()), *fixed)
        return tuple(warnings)

    def _of_data(
        self, rows: Floats, cells: Ints, predictions: Floats
    ) -> tuple[Bools, Warnings, Warnings, dict[int, Warnings]]:
        """Warnings about data: values outside (n, d), scores, those of all rows, odd answers by row."""
        scores = self.scores(predictions)
        odd = odd_probabilities(predictions) if self.adds_up and not scores else {}
        odd = self._with_unseen(rows, odd) if self.absent else odd
        return self._are_outside(rows, cells), scores, (*scores, *self.fixed), odd

    def _with_unseen(self, rows: Floats, warnings: Mapping[int, Warnings]) -> dict[int, Warnings]:
        """The warnings, and those about categories that the background does not have."""
        plain, columns, added = self.table.plain(rows), self.table.ungrouped.columns, dict(warnings)
        for j, codes in self.absent.items():
            for i in np.flatnonzero(np.isin(plain[:, j], codes)).tolist():
                (value,) = columns[j].originals(plain[[i], j])
                text = RowWarning.of("unseen", name=columns[j].name, value=value)
                added[i] = (text, *added.get(i, ()))
        return added

    def _are_outside(self, rows: Floats, cells: Ints) -> Bools:
        """Which values (n, d) lie outside the background's range, and are no codes."""
        outside = self.numeric & ((rows < self.low) | (rows > self.high))
        return np.asarray(outside & ~self.of_codes[np.arange(rows.shape[1]), cells])

    def misleading(self, predictions: Floats, surrogates: Floats) -> dict[int, tuple[RowWarning, ...]]:
        """Warnings about surrogates that decide otherwise than the model, or are no probabilities."""
        return self._misleading(predictions, surrogates, SCORE if self.scores(predictions) else self.method)

    def _misleading(
        self, predictions: Floats, surrogates: Floats, method: str
    ) -> dict[int, tuple[RowWarning, ...]]:
        return misleading_surrogates(predictions, surrogates, method, self.outputs, threshold=self.threshold)

    def _near(self, rows: Floats, cells: Ints) -> Bools:
        down, up = self.crossings.distances(rows, cells)
        return np.asarray(np.fmin(down, up) <= _ON_THE_EDGE)

    def _value(self, column: int, value: float) -> str:
        write = self.writers[column]
        return f"{value:.6g}" if write is number_texts else write(np.array([value]), np.array([value]))[0]

    def _outside(self, columns: Sequence[int], row: Floats) -> Iterator[RowWarning]:
        for j in columns[:_LISTED]:
            value, low, high = self.writers[j](np.array([row[j], self.low[j], self.high[j]]), None)
            yield RowWarning.of("outside", name=self.names[j], value=value, low=low, high=high)
        if len(columns) > _LISTED:
            others = ", ".join(self.names[j] for j in columns[_LISTED:])
            more = len(columns) - _LISTED
            yield RowWarning.of("outside", "more", count=more, names=others)


def _far(fitted: Fitted, predictions: Floats) -> Bools:
    """Where the surrogate misses the prediction by more than its coefficients together, (n, k)."""
    n = len(predictions)
    missed = np.abs(predictions - fitted.at_instance).reshape(n, -1)
    reach = np.abs(fitted.surrogate.coef).reshape(n, fitted.surrogate.coef.shape[1], -1).sum(axis=1)
    size = np.maximum(np.abs(predictions), np.abs(fitted.at_instance)).reshape(n, -1)
    # a model that does not vary is met but for rounding
    return np.asarray((missed > reach) & (missed > ROUNDING * size) & (reach > 0))


# -- predictions --------------------------------------------------------------------------------------------


def score_warnings(
    model: Any, method: str, first: FirstAnswers, predictions: Floats
) -> tuple[RowWarning, ...]:
    """Warn of a model whose ``method`` should answer probabilities and does not; see `no_probabilities`."""
    text = no_probabilities(model, method, first, predictions)
    return (RowWarning(text, "scores"),) if text else ()


def no_scores(predictions: Floats) -> tuple[RowWarning, ...]:  # noqa: ARG001 - as `score_warnings`
    """For methods that claim no probabilities."""
    return ()


# Points that a curve has at least
_CURVE = 4


def odd_probabilities(predictions: Floats) -> dict[int, tuple[RowWarning, ...]]:
    """Warn of rows (n, k) of several numbers between 0 and 1 that do not add up to 1, and are no curve."""
    if predictions.ndim == 1 or predictions.shape[1] < 2 or are_probabilities(predictions):
        return {}
    total, count = predictions.sum(axis=1), predictions.shape[1]
    odd = ((predictions >= 0) & (predictions <= 1)).all(axis=1)
    odd &= np.abs(total - 1) > sum_tolerance(predictions)
    if count >= _CURVE:
        # survival at several times, or a distribution function, goes one way
        steps = np.diff(predictions, axis=1)
        one_way = (steps <= 0).all(axis=1) | (steps >= 0).all(axis=1)
        odd &= ~(one_way & (steps != 0).any(axis=1))
    return {
        int(i): (RowWarning.of("probabilities", count=count, total=total[i]),) for i in np.flatnonzero(odd)
    }


def misleading_surrogates(
    predictions: Floats,
    surrogates: Floats,
    method: str,
    outputs: Sequence[str],
    *,
    threshold: float | None = None,
) -> dict[int, tuple[RowWarning, ...]]:
    """Warn of rows where the surrogate is on the other side of a decision, or is no probability.

    Predictions and surrogates are (n,) or (n, k), ``method`` is the model's that answered, or "score" where
    they are no probabilities. Its answers have a usual threshold, if none is given.
    """
    n = len(predictions)
    f, g = predictions.reshape(n, -1), surrogates.reshape(n, -1)
    # of a function, whose answers may be probabilities, all rows of the call decide
    is_open = method not in (*THRESHOLDS, SCORE) and f.shape[1] > 1
    probable = method == "predict_proba" or (is_open and are_probabilities(f))
    usual = THRESHOLDS["predict_proba"] if probable else THRESHOLDS.get(method, np.nan)
    limit = usual if threshold is None else check_threshold("threshold", threshold, lambda: probable)
    across = (f - limit) * (g - limit) < 0
    beyond = probable & ((g < -ROUNDING) | (g > 1 + ROUNDING))
    if f.shape[1] == 2 and probable and are_probabilities(f):
        # one of two classes says it all; two of several classes do not add up to 1
        across[:, 0] = beyond[:, 0] = False

    def warnings(i: int) -> Iterator[RowWarning]:
        says = [
            {"surrogate": number(surrogate, 3), "prediction": number(prediction, 3), "limit": limit}
            for surrogate, prediction in zip(g[i].tolist(), f[i].tolist(), strict=True)
        ]
        for code, wrong in (("other side", across[i]), ("no probability", beyond[i] & ~across[i])):
            each = zip(says, wrong, strict=True)
            yield from by_output(
                [sentence(code, **its) if is_so else "" for its, is_so in each], outputs, code
            )

    warned = np.flatnonzero((across | beyond).any(axis=1)).tolist()
    return {i: tuple(warnings(i)) for i in warned}


# -- samples -------------------------------------------------------------------------------------------------

# Features that people look at
_LOOKED_AT = 5
# Most answers that a warning advises to ask for
_MOST_NEEDED = 10_000_000


@dataclass(frozen=True)
class SampleKind:
    """Words for a sample, for a larger one, and for an undetermined coefficient."""

    rows: str
    more: str
    undetermined: str


PERTURBED = SampleKind("perturbed rows", "raise max_calls", "the control variate's guess")
OCCURRING = SampleKind("background rows", "use a larger background", "0, the smallest that fits")


def sampling_warnings(
    fitted: Fitted,
    names: Sequence[str],
    outputs: Sequence[str],
    *,
    sampling: Sampling,
    kind: SampleKind = PERTURBED,
) -> dict[int, tuple[RowWarning, ...]]:
    rows = (_SampledRow(fitted, i, names, outputs, sampling, kind) for i in range(len(fitted.moments.calls)))
    warnings = {i: tuple(row.warnings()) for i, row in enumerate(rows)}
    return {i: texts for i, texts in warnings.items() if texts}


def unchanged_answers(
    fitted: Fitted,
    unlike: Ints,
    predictions: Floats,
    outputs: Sequence[str],
    kind: SampleKind,
    *,
    are_all: bool,
) -> tuple[RowWarning, ...]:
    """Warnings about outputs of one input (1, ...) that are alike in all rows that were enumerated.

    ``unlike`` rows have another answer than most; ``are_all`` says whether the fit has all features.
    """
    coefficients = "all coefficients are 0" if are_all else "all coefficients that are known are 0"
    calls = int(fitted.moments.calls[0])
    sizes = np.abs(fitted.surrogate.coef[0].reshape(-1, len(outputs))).max(axis=0)
    # the input itself is one of the rows, without weight where the design always removes some feature
    weightless = sizes <= ROUNDING * np.abs(predictions.ravel())
    everywhere, elsewhere = (
        sentence("unchanged", name, calls=count, rows=kind.rows, coefficients=coefficients)
        for name, count in (("everywhere", calls), ("elsewhere", calls - 1))
    )
    return by_output(
        [
            everywhere if rows == 0 else elsewhere if rows == 1 and alone else ""
            for rows, alone in zip(unlike.ravel().tolist(), weightless.tolist(), strict=True)
        ],
        outputs,
        "unchanged",
    )


@dataclass(frozen=True, eq=False)
class _SampledRow:
    fitted: Fitted
    row: int
    names: Sequence[str]
    outputs: Sequence[str]
    sampling: Sampling
    kind: SampleKind

    def warnings(self) -> Iterator[RowWarning]:
        refusal = self.fitted.refusals.get(self.row, "")
        if refusal:
            yield RowWarning.of("sampled", refusal=refusal)
        yield from self._shortfall()
        yield from self._few_rows()
        yield from self._rare()
        yield from self._unseen()
        yield from self._ties()

    @cached_property
    def _sample(self) -> SampleStatistics:
        assert self.fitted.sampled is not None  # noqa: S101 - exact rows have no such warnings
        return self.fitted.sampled

    @cached_property
    def _answers(self) -> int:
        """Answers of the model that the row rests on, shared with other rows or its own."""
        return int(self.fitted.moments.calls[self.row] + self.fitted.moments.shared[self.row])

    def _shortfall(self) -> Iterator[RowWarning]:
        calls, sampling, excess = self._answers, self.sampling, float(self._sample.excess[self.row])
        if sampling.tolerance is not None and excess > 1:
            needed, its = "", calls * excess**2
            if np.isfinite(excess):
                facts = {"needed": its, "more": self.kind.more, "most": _MOST_NEEDED}
                needed = sentence("tolerance", "needed" if its <= _MOST_NEEDED else "too many", **facts)
            facts = {"calls": calls, "rows": self.kind.rows, "excess": excess, "needed": needed}
            yield RowWarning.of("tolerance", "given", **facts)
        elif self.fitted.moments.cut_short[self.row]:
            most = sampling.max_shared if self.fitted.moments.shared[self.row] else sampling.max_calls
            yield RowWarning.of("cut short", calls=calls, most=most)

    def _few_rows(self) -> Iterator[RowWarning]:
        """Hardly any row of the sample counts, or features change together in all that do."""
        effective = float(self._sample.effective[self.row])
        if effective < least_effective(len(self.names), self.fitted.moments.shared[self.row], effective):
            words = {"rows": self.kind.rows, "more": self.kind.more}
            yield RowWarning.of("few rows", effective=effective, count=len(self.names), **words)
        together = np.flatnonzero(self._sample.collinear[self.row]).tolist()
        if together:
            yield RowWarning.of("collinear", names=", ".join(self.names[j] for j in together))

    def _rare(self) -> Iterator[RowWarning]:
        sample, i = self._sample, self.row
        each = (
            np.ravel(numbers[i])
            for numbers in (sample.unlike, sample.effective_clusters, sample.fidelity_errors)
        )
        numbers = zip(*each, strict=True)
        few = [_few(float(a), float(b), float(c), self._answers, self.kind) for a, b, c in numbers]
        yield from by_output(few, self.outputs, "errors")

    def _unseen(self) -> Iterator[RowWarning]:
        """Features hardly changed in the sample of outputs whose answers differ."""
        errors = self.fitted.surrogate.standard_errors[self.row].reshape(len(self.names), -1)
        blind = np.isinf(errors)[:, self._differ].any(axis=1)
        if blind.any():
            unchanged = ", ".join(self.names[j] for j in np.flatnonzero(blind).tolist())
            words = {"undetermined": self.kind.undetermined, "more": self.kind.more}
            yield RowWarning.of("hardly changed", names=unchanged, **words)

    @property
    def _differ(self) -> Bools:
        """Which outputs had answers that differ, (k,)."""
        return np.asarray(self._sample.unlike[self.row].reshape(-1) > 0)

    def _ties(self) -> Iterator[RowWarning]:
        values, errors = (
            numbers[self.row].reshape(len(self.names), -1)
            for numbers in (self.fitted.surrogate.coef, self.fitted.surrogate.standard_errors)
        )
        sentences = [""] * len(self.outputs)
        for k in np.flatnonzero(self._differ).tolist():
            if tied := _tied(values[:, k], errors[:, k]):
                pairs = "; ".join(f"{self.names[a]} and {self.names[b]}" for a, b in tied)
                sentences[k] = sentence("order", pairs=pairs)
        yield from by_output(sentences, self.outputs, "order")


def _few(
    unlike: float, effective_clusters: float, fidelity_error: float, calls: int, kind: SampleKind
) -> str:
    facts = {
        "calls": calls,
        "rows": kind.rows,
        "more": kind.more,
        "unlike": unlike,
        "effective_clusters": effective_clusters,
    }
    if unlike == 0:
        return sentence("errors", "alike", **facts)
    if unlike < ENOUGH_ANSWERS:
        return sentence("errors", "nearly alike", **facts)
    if effective_clusters < ENOUGH_CARRIERS:
        return sentence("errors", "few decide", **facts)
    return sentence("errors", "fidelity", **facts) if np.isinf(fidelity_error) else ""


def _tied(values: Floats, errors: Floats) -> list[tuple[int, int]]:
    """Neighbours among the largest coefficients whose sizes differ by less than their errors."""
    order = np.argsort(-np.abs(values), kind="stable")[: _LOOKED_AT + 1]
    size = np.abs(values)
    return [
        (int(a), int(b))
        for a, b in pairwise(order)
        if size[a] - size[b] < CONFIDENCE * np.hypot(errors[a], errors[b])
    ]
