r"""From designs and a model to surrogates: `fit_rows` of a table, `fitted_at` one text or image.

The design knows Σ and the weighted law w, the expectation gives Γ, the surrogate is β = Σ⁻¹Γ. Explanations
are made of `Fitted`, the surrogates of n rows with what they were made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, Protocol

import numpy as np

from limes._arrays import Bools, Floats, Ints, stacked_rows, weighted_sum
from limes._expectations.moments import (
    REFUSED,
    CutShort,
    Moments,
    SampleStatistics,
    admitted,
    boxed,
    concatenate_moments,
    explain_rows,
    stack_moments,
)
from limes._expectations.of_forms import exact_expectation
from limes._explanation.attribution import Coefficients
from limes._sampling.least_squares import can_be_trusted, least_effective
from limes._sampling.sampled import CALLS
from limes._threads import Progress, one_blas_thread
from limes.designs._exchangeable import ExchangeableDesign
from limes.designs._product import FeatureNumbers, Features, FeatureTable, ProductDesign, Rows
from limes.exceptions import ModelError, NotReadableError
from limes.models.forms._base import BlackBox, Form
from limes.surrogates import Surrogate, check_finite, least_squares, ridge

Method = Literal["exact", "sampled"]


class Expectation(Protocol):
    """Moments of one model under any design; those over tables have ``explain(rows, ...) -> RowBlocks``."""

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


def fit_rows(
    expectation: Any,
    rows: Rows,
    predictions: Floats,
    *,
    penalty: float | None = None,
    scales: Floats | float = 1.0,
    names: Sequence[str] = (),
    fallback: Any = None,
    progress: Progress,
    workers: int = 1,
) -> Fitted:
    """Fit the surrogates at n rows, given the model's predictions (n, ...) there.

    ``penalty`` is None for least squares, or that of lime's ridge; a slope's is per ``scales`` (d,). Rows
    that an exact expectation refuses are sampled by the ``fallback``, if there is one. ``workers`` rows are
    sampled at the same time. ``names`` are those of the columns, for messages.

    Raises
    ------
    CutShort
        If the model fails or the user interrupts while rows are sampled.
    RefusedRowsError
        If an exact expectation refuses rows, and there is no fallback that samples them.
    """
    fit = partial(_fitted, penalty=penalty, scales=scales, names=names)
    parts: list[tuple[Ints, Fitted]] = []
    try:
        for at, features, moments in expectation.explain(
            rows, predictions, progress=progress, workers=workers
        ):
            some = rows if len(at) == len(rows) else rows.take(at)
            parts.append((at, fit(some, features, moments, predictions[at])))
    except CutShort as stop:
        raise CutShort(*Fitted.joined(parts)) from stop.__cause__
    except REFUSED:
        reasons = _refused(expectation, rows) if expectation.method == "exact" else {}
        if not reasons:  # the model failed, or a coefficient is no finite number
            raise
    else:
        _, fitted = Fitted.joined(parts)
        assert fitted is not None  # noqa: S101 - there are rows
        return fitted
    options: Any = {"penalty": penalty, "scales": scales, "names": names, "progress": progress}
    return _without_refused(expectation, rows, predictions, reasons, fallback, options, workers)


def _refused(expectation: Any, rows: Rows) -> dict[int, str]:
    """Positions of rows that an exact expectation refuses, with the reasons."""
    distinct, place = rows.distinct
    _, refused = admitted(np.arange(len(distinct)), lambda at: explain_rows(expectation, distinct.take(at)))
    return {i: refused[its] for i, its in enumerate(place.tolist()) if its in refused}


def _without_refused(
    expectation: Any,
    rows: Rows,
    predictions: Floats,
    reasons: Mapping[int, str],
    fallback: Any,
    options: Mapping[str, Any],
    workers: int,
) -> Fitted:
    """Fit rows of which the exact expectation refuses some: these are sampled, if they may be."""
    others, at = np.setdiff1d(np.arange(len(rows)), [*reasons]), np.array([*reasons])
    parts: list[tuple[Ints, Fitted]] = []
    if others.size:
        exact = fit_rows(expectation, rows.take(others), predictions[others], **options)
        parts.append((others, exact))
    if fallback is None:
        raise RefusedRowsError(reasons, others, parts[0][1] if parts else None)
    try:
        sampled = fit_rows(fallback, rows.take(at), predictions[at], **options, workers=workers)
    except CutShort as stop:
        if stop.fitted is not None:
            parts.append((at[stop.rows], stop.fitted))
        raise CutShort(*Fitted.joined(parts, reasons)) from stop.__cause__
    _, joined = Fitted.joined([*parts, (at, sampled)], reasons)
    assert joined is not None  # noqa: S101 - there are rows
    return joined


def _fitted(
    rows: Rows | None,
    features: Any,
    moments: Moments,
    predictions: Floats,
    *,
    penalty: Any,
    scales: Floats | float,
    names: Sequence[str],
) -> Fitted:
    """Fit rows with features in units, or of one design; the coefficients are of the features themselves."""
    if not isinstance(features, FeatureTable):
        n = len(predictions)
        # without a penalty no surrogate depends on its row's prediction
        distinct = predictions if penalty is not None else predictions[:1]
        each = [_fit(features, moments, prediction, penalty) for prediction in distinct]
        for surrogate, _ in each:
            check_finite(surrogate, axis=0, names=names)
        surrogates, at_rows = zip(*(each if len(each) == n else each * n), strict=True)
        moments = stack_moments([moments] * n)
        numbers = features if rows is None else FeatureNumbers.stacked([features] * n)
        return Fitted(rows, predictions, numbers, _stacked(surrogates), np.stack(at_rows), moments)
    units, slopes = features.units, features.slopes
    if penalty is not None and units is not None and slopes is not None:
        penalty = penalty * (np.where(slopes, scales, 1.0) / units) ** 2
    surrogate, at_instance = _fit(features, moments, predictions, penalty)
    if units is not None:
        surrogate = surrogate.per(units)
    check_finite(surrogate, axis=1, names=names)
    return Fitted(rows, predictions, features, surrogate, at_instance, moments)


def moments_at(
    design: ExchangeableDesign, expectation: Any, prediction: Floats, progress: Progress
) -> Moments:
    """Moments of one text or image, given the model's prediction there, () or (k,)."""
    instance = design.at_instance
    if expectation.method == "exact":
        exact: Moments = expectation.moments(design, instance)
        return exact
    with progress(expectation.max_calls, CALLS) as on_progress:
        moments: Moments = expectation.moments(
            design, instance, on_progress=on_progress, prediction=prediction
        )
    return moments


def fitted_at(
    design: ExchangeableDesign,
    moments: Moments,
    predictions: Floats,
    *,
    penalty: float | None,
    names: Sequence[str] = (),
) -> Fitted:
    """Fit the surrogate of one text or image, given the model's prediction (1, ...): arrays (1, ...).

    ``penalty`` is None for least squares, else that of the ridge in ``lime``'s finite sample; ``names`` are
    those of the features, for messages.
    """
    return _fitted(None, design, moments, predictions, penalty=penalty, scales=1.0, names=names)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Surrogates of n rows, arrays (n, ...), with what they were made of."""

    rows: Rows | None  # of a table; None of one text or image
    predictions: Floats  # the model's, (n, ...)
    features: Features | FeatureNumbers  # of all rows, or of one text's or image's design
    surrogate: Surrogate
    at_instance: Floats  # the surrogates at the rows themselves
    moments: Moments  # of the model and of the features in units (``in_units``)
    # rows that an exact expectation refused, so that they were sampled, with the reasons
    refusals: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def joined(
        cls, parts: Sequence[tuple[Ints, Fitted]], refusals: Mapping[int, str] = MappingProxyType({})
    ) -> tuple[Ints, Fitted | None]:
        """Join parts of the rows, each with the positions of its rows, by which ``refusals`` are keyed.

        Returns the positions in order, and the surrogates, None without any.
        """
        if len(parts) == 1 and not refusals:
            return parts[0]
        positions = np.concatenate([np.empty(0, np.int64), *(rows for rows, _ in parts)])
        if not parts:
            return positions, None
        order, fits = np.argsort(positions), [fit for _, fit in parts]
        moments = [fit.moments for fit in fits]
        if any(each.sampled is not None for each in moments):
            # beside sampled rows exact ones have the statistics of a sample without errors
            exact = SampleStatistics.of_exact
            moments = [each if each.sampled else replace(each, sampled=exact(each)) for each in moments]
        kind: Any = type(fits[0].features)
        features = kind.merged([fit.features for fit in fits], np.concatenate)
        surrogates = {
            each.name: np.concatenate([getattr(fit.surrogate, each.name) for fit in fits])[order]
            for each in fields(Surrogate)
        }
        rows: Any = fits[0].rows
        x, cells = (np.concatenate([getattr(fit.rows, its) for fit in fits])[order] for its in ("x", "cells"))
        place = dict(zip(positions[order].tolist(), range(order.size), strict=True))
        return positions[order], cls(
            replace(rows, x=x, cells=cells),
            np.concatenate([fit.predictions for fit in fits])[order],
            features.select(order),
            Surrogate(**surrogates),
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
        return replace(
            self, moments=replace(self.moments, sampled=replace(sampled, answers=none, beside=none))
        )

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
