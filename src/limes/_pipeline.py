r"""From a design and a model to a surrogate: the only file that sees all stages.

The design knows Σ and the weighted law w, the expectation gives Γ, the surrogate is β = Σ⁻¹Γ. Explanations
are made of `Fitted`, the surrogates of n rows with what they were made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from operator import itemgetter
from typing import Any, Literal, Protocol

import numpy as np

from limes._arrays import Bools, Floats, Ints, distinct_rows, stacked_rows, weighted_sum
from limes._expectations.least_squares import can_be_trusted, least_effective
from limes._expectations.moments import (
    REFUSED,
    Moments,
    RowMoments,
    SampleStatistics,
    boxed,
    concatenate_moments,
    refusals,
    stack_moments,
)
from limes._expectations.of_forms import exact_expectation, reproducible
from limes._expectations.sampled import CALLS, CUT_SHORT
from limes._explanation.attribution import Coefficients
from limes._threads import Progress, one_blas_thread, progress_of
from limes.designs._exchangeable import ExchangeableDesign
from limes.designs._product import (
    FeatureNumbers,
    Features,
    InUnits,
    ProductDesign,
    ProductFamily,
    Rows,
)
from limes.exceptions import ModelError, NotReadableError
from limes.models.forms._base import BlackBox, Form
from limes.surrogates import Surrogate, check_finite, least_squares, ridge

Method = Literal["exact", "sampled"]


class Expectation(Protocol):
    """Moments of one model under any design; those over tables have ``explain(rows, ...) -> RowMoments``."""

    @property
    def method(self) -> Method: ...

    def moments(self, design: Any, row: Floats) -> Moments: ...


@one_blas_thread()
def limit(design: ProductDesign | ExchangeableDesign, form: Form) -> Surrogate:
    """Compute what LIME converges to when its sample grows, exactly.

    β = Σ⁻¹Γ with Σ from the design and Γ from the form; intercept = E_w f - Σ α_j β_j.

    Parameters
    ----------
    design
        A :class:`limes.designs.ProductDesign` or :class:`limes.designs.ExchangeableDesign`.
    form
        A form of ``limes.models.forms``: over columns for the one, over words for the other.

    Returns
    -------
    Surrogate
        ``.intercept`` () or (k,), ``.coef`` (d,) or (d, k), exact to 1e-9 relative.

    Raises
    ------
    NotReadableError
        If the form is a black box.
    InputError
        If design and form have different numbers of columns, or do not go together.
    ModelError
        If the intercept or a coefficient is larger than a float64 can be.

    References
    ----------
    Garreau & von Luxburg 2022, Theorem 1; Mardaoui & Garreau 2021, Proposition 2.

    Examples
    --------
    >>> import limes
    >>> from limes.designs import ProductDesign
    >>> from limes.models import forms
    >>> design = ProductDesign.from_bins([[0, 1, 2]], [[0.5, 1.5]], [[0.3, 0.3]], [0.2], 1.0)
    >>> limes.limit(design, forms.Boxes([[0.0]], [[1.0]], [2.0])).coef
    array([2.])
    """
    if isinstance(form, BlackBox):
        raise NotReadableError(f"a black box has no exact limit: {form.reason}")
    expectation = exact_expectation(form, type(design))
    inner = design.in_units()
    surrogate = least_squares(inner, expectation.moments(inner)).per(design.units)
    check_finite(surrogate, axis=0)
    return surrogate


@dataclass(frozen=True, eq=False)
class Pipeline:
    """Explains rows of one background: design, expectation and surrogate of each; threads may share it."""

    family: ProductFamily
    expectation: Any
    # None for least squares, or the ridge penalty of lime's fit; that of a slope times its scale squared
    penalty: float | Floats | None = None
    scales: Floats | float = 1.0  # (d,)
    names: Sequence[str] = ()  # of the columns, for messages
    # what samples rows that an exact expectation refuses; None where they are refused
    fallback: Expectation | None = None

    @property
    def method(self) -> Method:
        method: Method = self.expectation.method
        return method

    def reproducible(self) -> Pipeline:
        """The same, but explanations of a row are the same to the last bit in any call, and cached."""
        # A sum of floats depends on the order of its terms. The fast way through a forest shares trees among
        # cores, and takes another order for few rows than for many, so that a row's last bits depend on the
        # number of cores and on the rows beside it. The reproducible one always adds in one order, a little
        # slower for few rows: results are the same however a table is cut into parts.
        return replace(self, expectation=reproducible(self.expectation))

    def explain(
        self, rows: Floats, cells: Ints, predictions: Floats, *, progress: Progress, workers: int = 1
    ) -> Fitted:
        """Surrogates at rows (n, d), given their cells (n, d) and the model's predictions (n, ...) there.

        Rows with the same cells have the same design under bin weights; exact moments are computed once for
        them. ``workers`` rows are sampled at the same time.

        Raises
        ------
        CutShort
            If the model fails or the user interrupts while rows are sampled.
        RefusedRowsError
            If an exact expectation refuses rows, and there is no fallback that samples them.
        """
        its = Rows(self.family, rows, cells)
        try:
            computed = self.expectation.explain(its, predictions, progress=progress, workers=workers)
        except REFUSED:
            if self.method != "exact":
                raise
            return self._without_refused(its, predictions, progress, workers)
        return self._finished(computed, predictions)

    def _without_refused(self, rows: Rows, predictions: Floats, progress: Progress, workers: int) -> Fitted:
        """Fit rows of which the exact expectation refuses some: these are sampled, if they may be."""
        distinct, place = rows.distinct
        quiet = partial(self.expectation.explain, predictions=predictions, progress=progress_of(shown=False))
        refused = refusals(np.arange(len(distinct)), lambda at: quiet(distinct.take(at)))
        reasons = {i: refused[its] for i, its in enumerate(place.tolist()) if its in refused}
        others, at = np.setdiff1d(np.arange(len(rows)), [*reasons]), np.array([*reasons])
        parts: list[tuple[Ints, Fitted]] = []
        if others.size:
            exact = self.expectation.explain(rows.take(others), predictions[others], progress=progress)
            parts.append((others, self._finished(exact, predictions[others])))
        if self.fallback is None:
            raise RefusedRowsError(reasons, others, parts[0][1] if parts else None)
        try:
            sampled = replace(self, expectation=self.fallback, fallback=None).explain(
                rows.x[at], rows.cells[at], predictions[at], progress=progress, workers=workers
            )
        except CutShort as stop:
            if stop.fitted is not None:
                parts.append((at[stop.rows], stop.fitted))
            finished = np.sort(
                np.concatenate([np.empty(0, np.int64), *(positions for positions, _ in parts)])
            )
            raise CutShort(finished, Fitted.joined(parts, reasons) if parts else None) from stop.__cause__
        return Fitted.joined([*parts, (at, sampled)], reasons)

    def _finished(self, computed: RowMoments, predictions: Floats) -> Fitted:
        """Fit the finished rows; raise `CutShort`, with these, if others are not finished."""
        features, finished, moments, error = computed
        fitted = None
        if moments is not None:
            some = features if len(finished) == len(predictions) else features.select(finished)
            fitted = self._fitted(some, moments, predictions[finished])
        if error is not None:
            raise CutShort(finished, fitted) from error
        assert fitted is not None  # noqa: S101 - without an error all rows are finished, and there is one
        return fitted

    def _fitted(self, numbers: InUnits, moments: Moments, predictions: Floats) -> Fitted:
        """Fit the features in units; the coefficients are of the features themselves."""
        features, inner, units, slopes = numbers
        penalty = self.penalty
        if penalty is not None and units is not None and slopes is not None:
            penalty = penalty * (np.where(slopes, self.scales, 1.0) / units) ** 2
        surrogate, at_instance = _fit(inner, moments, predictions, penalty)
        if units is not None:
            surrogate = surrogate.per(units)
        check_finite(surrogate, axis=1, names=self.names)
        return Fitted(features, surrogate, at_instance, moments)


class JointPipeline(Pipeline):
    """Explains rows one by one, each with its Σ, which is not stored; rows with the same cells share it."""

    def explain(
        self,
        rows: Floats,  # noqa: ARG002 - cells decide the designs
        cells: Ints,
        predictions: Floats,
        *,
        progress: Progress,
        workers: int = 1,
    ) -> Fitted:
        try:
            self.expectation.fill(progress, workers=workers)
        except CUT_SHORT as cause:
            raise CutShort(np.empty(0, dtype=np.int64), None) from cause
        patterns, place = distinct_rows(cells)
        alike = np.split(np.argsort(place, kind="stable"), np.cumsum(np.bincount(place))[:-1])
        fits: dict[int, tuple[FeatureNumbers, Surrogate, Floats, Moments]] = {}
        with progress(len(patterns)) as on_progress:
            for pattern, positions in zip(patterns, alike, strict=True):
                design, moments = self.expectation.at(pattern)
                numbers = FeatureNumbers.merged([design], itemgetter(0))
                for i in positions.tolist():
                    fit = _fit(design, moments, predictions[i], self.penalty)
                    check_finite(fit[0], axis=0, names=self.names)
                    fits[i] = numbers, *fit, moments
                on_progress(1)
        features, surrogates, at_instance, computed = zip(*(fits[i] for i in range(len(cells))), strict=True)
        return Fitted(
            FeatureNumbers.stacked(features),
            _stacked(surrogates),
            np.stack(at_instance),
            stack_moments(computed),
        )


def fitted_at(
    design: ExchangeableDesign,
    expectation: Any,
    predictions: Floats,
    *,
    penalty: float | None,
    progress: Progress,
    names: Sequence[str] = (),
) -> Fitted:
    """Fit the surrogate of one text or image, given the model's prediction (1, ...): arrays (1, ...).

    ``penalty`` is None for least squares, else that of the ridge in ``lime``'s finite sample; ``names`` are
    those of the features, for messages.
    """
    moments, instance = partial(expectation.moments, design), design.at_instance
    if expectation.method == "sampled":
        with progress(expectation.max_calls, CALLS) as on_progress:
            computed = moments(instance, on_progress=on_progress, prediction=predictions[0])
    else:
        computed = moments(instance)
    surrogate, at_instance = _fit(design, computed, predictions[0], penalty)
    check_finite(surrogate, axis=0, names=names)
    return Fitted(design, _stacked([surrogate]), at_instance[None], stack_moments([computed]))


@dataclass(frozen=True, eq=False)
class Fitted:
    """Surrogates of n rows, arrays (n, ...), with what they were made of."""

    features: Features | FeatureNumbers  # of all rows, or of one text's or image's design
    surrogate: Surrogate
    at_instance: Floats  # the surrogates at the rows themselves
    moments: Moments  # of the model and of the features in units (``in_units``)
    # rows that an exact expectation refused, so that they were sampled, with the reasons
    refusals: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def joined(cls, parts: Sequence[tuple[Ints, Fitted]], refusals: Mapping[int, str]) -> Fitted:
        """Join parts of the rows, each with the positions of its rows, by which ``refusals`` are keyed."""
        positions = np.concatenate([rows for rows, _ in parts])
        order, fits = np.argsort(positions), [fit for _, fit in parts]
        moments = [fit.moments for fit in fits]
        if any(each.sampled is not None for each in moments):
            # beside sampled rows exact ones have the statistics of a sample without errors
            exact = SampleStatistics.of_exact
            moments = [each if each.sampled else replace(each, sampled=exact(each)) for each in moments]

        def rows_of(kind: type, name: str) -> Any:
            values = [getattr(fit, name) for fit in fits]
            numbers = {f.name: [getattr(value, f.name) for value in values] for f in fields(kind)}
            return kind(**{key: np.concatenate(arrays)[order] for key, arrays in numbers.items()})

        place = dict(zip(positions[order].tolist(), range(order.size), strict=True))
        return cls(
            rows_of(type(fits[0].features), "features"),
            rows_of(Surrogate, "surrogate"),
            np.concatenate([fit.at_instance for fit in fits])[order],
            concatenate_moments(moments).take(order),
            {place[row]: reason for row, reason in refusals.items() if row in place},
        )

    def without_answers(self) -> Fitted:
        """The same without the answers to the rows' own draws, which effects need."""
        sampled = self.sampled
        if sampled is None:
            return self
        none = np.array([boxed(np.empty(0))] * len(self.at_instance), dtype=object)
        return replace(self, moments=replace(self.moments, sampled=replace(sampled, answers=none)))

    @property
    def converged(self) -> Bools:
        """Whether errors are within the tolerance, and to be trusted, (n,); always where exact."""
        if self.sampled is None:
            return self.moments.converged
        least = least_effective(self.surrogate.coef.shape[1], self.moments.shared, self.sampled.effective)
        varies = (self.features.variance > 0).any(axis=-1) & np.ones(len(self.moments.calls), dtype=np.bool_)
        trusted = can_be_trusted(self.sampled, least, varies=varies)
        return np.asarray(self.moments.converged & trusted)

    @property
    def sampled(self) -> SampleStatistics | None:
        return self.moments.sampled

    @property
    def fidelity(self) -> Floats:
        """R², NaN where it was not computed, or where few rows of a sample decide it: its error is infinite.

        Of answers that are all alike it is 1.
        """
        fidelity = self.surrogate.fidelity
        if self.sampled is None:
            return fidelity
        unknown = np.isinf(self.sampled.fidelity_errors) & (self.sampled.unlike > 0)
        return np.where(unknown, np.nan, fidelity)

    def coefficients(self, calls: Ints) -> Coefficients:
        """LIME's limit, with errors if sampled, of rows that took n ``calls`` each."""
        surrogate, sampled = self.surrogate, self.sampled
        fields: dict[str, Any] = {
            "values": surrogate.coef,
            "standard_errors": surrogate.standard_errors,
            "intercepts": surrogate.intercept,
            "surrogate_predictions": self.at_instance,
            # one that needs Var_w f is left to the explanation's fit
            "fidelity": None if np.isnan(surrogate.fidelity).any() else self.fidelity,
            "calls": calls,
            "row_converged": self.converged,
        }
        if sampled is None:
            if fields["fidelity"] is not None:
                fields["fidelity_errors"] = np.zeros_like(fields["fidelity"])
            return Coefficients(**fields)
        if fields["fidelity"] is not None:
            fields["fidelity_errors"] = sampled.fidelity_errors
        unknown = np.expand_dims(np.isnan(self.fidelity), 1)
        return Coefficients(
            **fields,
            shares=np.where(unknown, np.nan, surrogate.shares),
            surrogate_errors=sampled.surrogate_errors,
            share_errors=np.where(unknown, np.nan, sampled.share_errors),
            controls=tuple(sampled.control.tolist()),
            effective_rows=sampled.effective,
        )


class RefusedRowsError(ModelError):
    """An exact expectation refused rows, by their positions, that were not to be sampled."""

    # positions (m,) of the other rows, and their surrogates, None if m = 0
    def __init__(self, reasons: Mapping[int, str], rows: Ints, fitted: Fitted | None) -> None:
        first, *others = reasons.values()
        super().__init__(f"{first} ({len(others)} more rows)" if others else first)
        self.reasons, self.rows, self.fitted = reasons, rows, fitted


class CutShort(Exception):  # noqa: N818 - caught by explainers, never seen by users
    """Explaining stopped early, for the reason in ``__cause__``; carries the rows that can be explained."""

    # positions (m,), and the surrogates, None if m = 0
    def __init__(self, rows: Ints, fitted: Fitted | None) -> None:
        super().__init__()
        self.rows, self.fitted = rows, fitted


def _stacked(surrogates: Sequence[Surrogate]) -> Surrogate:
    return Surrogate(
        **{f.name: stacked_rows([getattr(each, f.name) for each in surrogates]) for f in fields(Surrogate)}
    )


def _fit(
    design: Features, moments: Moments, predictions: Floats, penalty: float | Floats | None
) -> tuple[Surrogate, Floats]:
    """Fit surrogates of one design or n, given the model's predictions there; and their values there."""
    if penalty is None:
        surrogate = least_squares(design, moments)
    else:
        surrogate = ridge(design, moments, predictions, penalty=penalty)
    return surrogate, np.asarray(surrogate.intercept + weighted_sum(design.at_instance, surrogate.coef))
