"""From a design and a model to a surrogate: the only file that sees all stages.

The design knows Σ and the weighted law w, the expectation gives Γ, the surrogate is β = Σ⁻¹Γ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np

from limes._arrays import Floats, Ints, distinct_rows
from limes._bars import Progress, progress_of
from limes._expectations.joint import JointExpectation
from limes._expectations.moments import REFUSED, Moments, RowMoments, refusals
from limes._expectations.of_forms import exact_expectation, reproducible
from limes._expectations.sampled import CUT_SHORT, SampledExpectation
from limes._expectations.sampling import CALLS
from limes._fitted import CutShort, Fitted, RefusedRowsError, fit_design
from limes._threads import one_blas_thread
from limes.designs._exchangeable import ExchangeableDesign
from limes.designs._product import InUnits, ProductDesign, ProductFamily, Rows, weighted_sum
from limes.exceptions import NotReadableError
from limes.models.forms._base import BlackBox, Form
from limes.surrogates._linear import Surrogate, check_finite, least_squares, ridge

Method = Literal["exact", "sampled"]


class Expectation(Protocol):
    """Moments of one model under any design; those over tables have ``explain(rows, ...) -> RowMoments``."""

    @property
    def method(self) -> Method:
        """Exact or sampled."""
        ...

    def moments(self, design: Any, row: Floats) -> Moments:
        """Moments under the design at the row (d,)."""
        ...


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


class Pipeline:
    """Explains rows of one background: design, expectation and surrogate of each; threads may share it.

    Parameters
    ----------
    family
        The designs, one at each row.
    expectation
        Expectations of the explained model.
    penalty
        None for least squares, or the ridge penalty of ``lime``'s fit.
    scales
        (d,) multiplies the penalty of a slope by its square.
    names
        Names of the columns, for messages.
    fallback
        What samples rows that an exact expectation refuses; None where they are refused.
    """

    def __init__(
        self,
        family: ProductFamily,
        expectation: Expectation,
        *,
        penalty: float | Floats | None = None,
        scales: Floats | None = None,
        names: Sequence[str] = (),
        fallback: Expectation | None = None,
    ) -> None:
        self._family = family
        self._expectation: Any = expectation
        self._penalty = penalty
        self._scales = np.ones(len(family.marginals)) if scales is None else scales
        self._names = names
        self._fallback = fallback

    @property
    def method(self) -> Method:
        """Exact or sampled."""
        method: Method = self._expectation.method
        return method

    def reproducible(self) -> Pipeline:
        """Return a pipeline whose explanation of a row is the same to the last bit in any call.

        A sum of floats depends on the order of its terms. The fast way through a forest shares trees among
        cores, and takes another order for few rows than for many, so that a row's last bits depend on the
        number of cores and on the rows beside it. The reproducible one always adds in one order, a little
        slower for few rows. Results can then be compared bit for bit however a table is cut into parts, and
        moments can be cached from one call to the next, which the pipeline does.
        """
        return self._with(reproducible(self._expectation), self._fallback)

    def _with(self, expectation: Expectation, fallback: Expectation | None = None) -> Pipeline:
        """Return a pipeline of the same surrogates with another expectation."""
        return Pipeline(
            self._family,
            expectation,
            penalty=self._penalty,
            scales=self._scales,
            names=self._names,
            fallback=fallback,
        )

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
        its = Rows(self._family, rows, cells)
        if isinstance(self._expectation, JointExpectation):
            return self._joint(self._expectation, cells, predictions, progress, workers)
        try:
            computed = self._expectation.explain(its, predictions, progress=progress, workers=workers)
        except REFUSED:
            if self.method != "exact":
                raise
            return self._without_refused(its, predictions, progress, workers)
        return self._finished(computed, predictions)

    def _without_refused(self, rows: Rows, predictions: Floats, progress: Progress, workers: int) -> Fitted:
        """Fit rows of which the exact expectation refuses some: these are sampled, if they may be."""
        distinct, place = rows.distinct
        quiet = partial(self._expectation.explain, predictions=predictions, progress=progress_of(shown=False))
        refused = refusals(np.arange(len(distinct)), lambda at: quiet(distinct.take(at)))
        reasons = {i: refused[its] for i, its in enumerate(place.tolist()) if its in refused}
        others, at = np.setdiff1d(np.arange(len(rows)), [*reasons]), np.array([*reasons])
        parts: list[tuple[Ints, Fitted]] = []
        if others.size:
            exact = self._expectation.explain(rows.take(others), predictions[others], progress=progress)
            parts.append((others, self._finished(exact, predictions[others])))
        if self._fallback is None:
            raise RefusedRowsError(reasons, others, parts[0][1] if parts else None)
        try:
            sampled = self._with(self._fallback).explain(
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

    def _joint(
        self,
        expectation: JointExpectation,
        cells: Ints,
        predictions: Floats,
        progress: Progress,
        workers: int,
    ) -> Fitted:
        """Fit rows one by one, each with its Σ, which is not stored; rows with the same cells share it."""
        try:
            expectation.fill(progress, workers=workers)
        except CUT_SHORT as cause:
            raise CutShort(np.empty(0, dtype=np.int64), None) from cause
        patterns, place = distinct_rows(cells)
        ends = np.cumsum(np.bincount(place))[:-1]
        order = np.argsort(place, kind="stable")
        fitted: dict[int, Fitted] = {}
        with progress(len(patterns)) as on_progress:
            for pattern, rows in zip(patterns, np.split(order, ends), strict=True):
                design, moments = expectation.at(pattern)
                for i in rows.tolist():
                    fit = fit_design(design, moments, predictions[i], self._penalty, self._names)
                    fitted[i] = replace(fit, features=design.numbers())
                on_progress(1)
        return Fitted.stacked([fitted[i] for i in range(len(cells))])

    def _fitted(self, numbers: InUnits, moments: Moments, predictions: Floats) -> Fitted:
        """Fit the features in units, and return coefficients of the features themselves.

        The penalty of a slope is per standard deviation of its column.
        """
        features, inner, units, slopes = numbers
        if self._penalty is None:
            surrogate = least_squares(inner, moments)
        else:
            scales: float | Floats = 1.0
            if units is not None and slopes is not None:
                scales = np.where(slopes, self._scales, 1.0) / units
            surrogate = ridge(inner, moments, predictions, penalty=self._penalty * scales**2)
        at_instance = surrogate.intercept + weighted_sum(inner.at_instance, surrogate.coef)
        if units is not None:
            surrogate = surrogate.per(units)
        check_finite(surrogate, axis=1, names=self._names)
        return Fitted(features, surrogate, at_instance, moments)


def fitted_at(
    design: ExchangeableDesign,
    expectation: Expectation,
    predictions: Floats,
    *,
    penalty: float | None,
    progress: Progress,
    names: Sequence[str] = (),
) -> Fitted:
    """Fit the surrogate of one text or image, given the model's prediction (1, ...): arrays (1, ...).

    ``penalty`` is None for least squares, else that of the ridge in ``lime``'s finite sample; ``names`` are
    those of the features, for messages.

    Raises
    ------
    ModelError
        If a coefficient is larger than a float64 can be.
    """
    instance = design.at_instance
    if isinstance(expectation, SampledExpectation):
        with progress(expectation.max_calls, CALLS) as on_progress:
            moments = expectation.moments(
                design, instance, on_progress=on_progress, prediction=predictions[0]
            )
    else:
        moments = expectation.moments(design, instance)
    fitted = fit_design(design, moments, predictions[0], penalty, names)
    return replace(Fitted.stacked([fitted]), features=design)
