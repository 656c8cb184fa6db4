"""From a design and a model to a surrogate: the only file that sees all stages.

The design knows Σ and the weighted law w, the expectation gives Γ, the surrogate is β = Σ⁻¹Γ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol

import numpy as np

from limes._arrays import Bools, Floats, Ints, distinct_rows
from limes.designs.exchangeable import ExchangeableDesign
from limes.designs.features import Features, FeatureTable, stacked_features, taken, weighted_sum
from limes.designs.product import ProductDesign, ProductFamily
from limes.exceptions import NotReadableError
from limes.expectations.choice import exact_expectation as exact_expectation  # explainers choose with it too
from limes.expectations.combined import CombinedExpectation
from limes.expectations.forest import ForestExpectation
from limes.expectations.memory import Memory, Recall, afresh
from limes.expectations.moments import Moments, Sampled, joined, stacked
from limes.expectations.rows import sampled_rows
from limes.expectations.sampled import SampledExpectation
from limes.expectations.sampling import Sampling
from limes.models.forms.base import BlackBox, Form
from limes.surrogates.least_squares import least_squares
from limes.surrogates.ridge import ridge
from limes.surrogates.surrogate import Surrogate, check_finite

METHODS = ("auto", "exact", "sampled")
Method = Literal["exact", "sampled"]
# total -> a context that is told how much of it is done
Progress = Callable[[int], AbstractContextManager[Callable[[int], object]]]
# Patterns of cells that a forest explains between two steps of the progress bar
_PATTERNS = 4096


class Expectation(Protocol):
    """Gives the moments of one model under any design."""

    @property
    def method(self) -> Method:
        """Exact or sampled."""
        ...

    def moments(self, design: Any, row: Floats) -> Moments:
        """Moments under the design at the row (d,)."""
        ...


def limit(design: ProductDesign | ExchangeableDesign, form: Form) -> Surrogate:
    """Compute what LIME converges to when its sample grows, exactly.

    β = Σ⁻¹Γ with Σ from the design and Γ from the form; intercept = E_w f - Σ α_j β_j.

    Parameters
    ----------
    design
        A :class:`limes.designs.ProductDesign` or :class:`limes.designs.ExchangeableDesign`.
    form
        A form of :mod:`limes.models.forms`: over columns for the one, over words for the other.

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
    found = least_squares(inner, expectation.moments(inner)).per(design.units)
    check_finite(found, axis=0)
    return found


def expectation_of(
    form: Form | BlackBox, predict: Callable[[Floats], Floats], *, method: str, sampling: Sampling
) -> Expectation:
    """Choose how expectations are had: exactly where the model was read, else by asking it.

    Raises
    ------
    NotReadableError
        If ``method="exact"`` and the model could not be read: says why.
    """
    if method != "sampled" and not isinstance(form, BlackBox):
        return exact_expectation(form)
    if method == "exact" and isinstance(form, BlackBox):
        raise NotReadableError(
            f"method='exact' needs a model that can be read: {form.reason}. "
            "Use method='auto' to sample it, with error bars"
        )
    return SampledExpectation(predict, sampling)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Surrogates of n rows, arrays (n, ...); ``at_instance`` is what they say at the rows themselves.

    ``features`` has the moments of their features: of all rows, or of one design alone.
    """

    features: Features
    surrogate: Surrogate
    at_instance: Floats
    calls: Ints
    converged: Bools
    sampled: Sampled | None


class Unfinished(Exception):  # noqa: N818 - caught by explainers, never seen by users
    """Why rows could not all be explained (as ``__cause__``), and what is known of some of them.

    ``rows`` (m,) are their places; ``fitted`` is None if m = 0.
    """

    def __init__(self, rows: Ints, fitted: Fitted | None) -> None:
        super().__init__()
        self.rows = rows
        self.fitted = fitted


class Pipeline:
    """Explains rows of one background: design, expectation and surrogate of each.

    Parameters
    ----------
    family
        The designs, one at each row.
    expectation
        Of the model that is explained.
    penalty
        None for least squares, else the ridge penalty in ``lime``'s finite sample, per ``scales`` (d,).
    names
        Of the columns, for messages.
    recall
        Where the moments of rows with the same cells come from, if not computed.
    """

    def __init__(
        self,
        family: ProductFamily,
        expectation: Expectation,
        *,
        penalty: float | Floats | None = None,
        scales: Floats | None = None,
        names: Sequence[str] = (),
        recall: Recall = afresh,
    ) -> None:
        self._family = family
        self._expectation = expectation
        self._penalty = penalty
        self._scales = np.ones(len(family.marginals)) if scales is None else scales
        self._names = names
        self._recall = recall

    @property
    def method(self) -> Method:
        """Exact or sampled."""
        return self._expectation.method

    def reproducible(self) -> Pipeline:
        """The same, with results that are the same to the last bit however many rows and cores there are.

        Hence it may remember moments from one call to the next, and does.
        """
        reproducible = _reproducible(self._expectation)
        return Pipeline(
            self._family,
            reproducible,
            penalty=self._penalty,
            scales=self._scales,
            names=self._names,
            recall=Memory(),
        )

    def explain(
        self, rows: Floats, cells: Ints, predictions: Floats, *, progress: Progress, workers: int = 1
    ) -> Fitted:
        """Surrogates at rows (n, d), given their cells (n, d) and the model's predictions (n, ...) there.

        Rows with the same cells have the same design under bin weights; exact moments are computed once for
        them. ``workers`` rows are sampled at the same time.

        Raises
        ------
        Unfinished
            If the model fails or the user interrupts while rows are sampled.
        """
        if isinstance(self._expectation, SampledExpectation):
            return self._sampled(self._expectation, rows, predictions, progress, workers)
        if self._family.by_cell:
            return self._by_cell(rows, cells, predictions, progress)
        with progress(len(rows)) as done:
            found = [self._at(row, done) for row in rows]
        return self._of_designs([d for d, _ in found], stacked([m for _, m in found]), predictions)

    def _by_cell(self, rows: Floats, cells: Ints, predictions: Floats, progress: Progress) -> Fitted:
        patterns, place = distinct_rows(cells)
        features = self._family.features(patterns)
        expectation = self._expectation

        def compute(new: Ints) -> Moments:
            with progress(len(new)) as done:
                if isinstance(expectation, ForestExpectation) and expectation.serves(self._family):
                    return _in_blocks(expectation, self._family, patterns[new], features.variance[new], done)
                first = _first_of_each(place, len(patterns))[new]
                return stacked([self._at(rows[i], done)[1] for i in first])

        moments = self._recall(patterns, compute).taken(place)
        features = taken(features, place)
        return self._fitted(features, features, self._ones, moments, predictions)

    def _at(self, row: Floats, done: Callable[[int], object]) -> tuple[ProductDesign, Moments]:
        design = self._family.at(row)
        moments = self._expectation.moments(design.in_units(), row)
        done(1)
        return design, moments

    def _sampled(
        self,
        expectation: SampledExpectation,
        rows: Floats,
        predictions: Floats,
        progress: Progress,
        workers: int,
    ) -> Fitted:
        designs = [self._family.at(row) for row in rows]
        with progress(len(rows) * expectation.max_calls) as heard:
            inner = [design.in_units() for design in designs]
            found, error = sampled_rows(expectation, inner, rows, predictions, heard=heard, workers=workers)
        known = np.array([i for i, moments in enumerate(found) if moments is not None], dtype=np.int64)
        fitted = None
        if known.size:
            moments = stacked([found[i] for i in known])
            fitted = self._of_designs([designs[i] for i in known], moments, predictions[known])
        if error is not None:
            raise Unfinished(known, fitted) from error
        assert fitted is not None  # noqa: S101 - without an error all rows are known, and there is one
        return fitted

    def _of_designs(self, designs: Sequence[ProductDesign], moments: Moments, predictions: Floats) -> Fitted:
        """Fit rows of a design each, given moments of the features in units."""
        inner = stacked_features([design.in_units() for design in designs])
        units = np.stack([design.units for design in designs])
        return self._fitted(stacked_features(designs), inner, units, moments, predictions)

    def _fitted(
        self,
        features: FeatureTable,
        inner: FeatureTable,
        units: Floats,
        moments: Moments,
        predictions: Floats,
    ) -> Fitted:
        """Fit the features in units, ``inner``, and give coefficients of the features themselves."""
        if self._penalty is None:
            surrogate = least_squares(inner, moments)
        else:
            penalty = self._penalty * (self._scales / units) ** 2
            surrogate = ridge(inner, moments, predictions, penalty=penalty)
        at_instance = surrogate.intercept + weighted_sum(inner.at_instance, surrogate.coef)
        own = surrogate.per(units)
        check_finite(own, axis=1, names=self._names)
        return Fitted(features, own, at_instance, moments.calls, moments.converged, moments.sampled)

    @property
    def _ones(self) -> Floats:
        return np.ones((1, len(self._family.marginals)))


def fitted_at(
    design: ExchangeableDesign,
    expectation: Expectation,
    predictions: Floats,
    *,
    penalty: float | None,
    progress: Progress,
    names: Sequence[str] = (),
) -> Fitted:
    """The surrogate of one text or image, given the model's prediction (1, ...): arrays (1, ...).

    ``penalty`` is None for least squares, else that of the ridge in ``lime``'s finite sample; ``names`` are
    those of the features, for messages.

    Raises
    ------
    ModelError
        If a coefficient is larger than a float64 can be.
    """
    if isinstance(expectation, SampledExpectation):
        with progress(expectation.max_calls) as heard:
            moments = expectation.moments(design, design.at_instance, heard=heard, prediction=predictions[0])
    else:
        moments = expectation.moments(design, design.at_instance)
    if penalty is None:
        found = least_squares(design, moments)
    else:
        found = ridge(design, moments, predictions[0], penalty=penalty)
    check_finite(found, axis=0, names=names)
    at_instance = found.intercept + weighted_sum(design.at_instance, found.coef)
    alone = {f.name: getattr(found, f.name)[None] for f in fields(found)}
    row = stacked([moments])
    here = np.asarray(at_instance)[None]
    return Fitted(design, Surrogate(**alone), here, row.calls, row.converged, row.sampled)


def _reproducible(expectation: Any) -> Any:
    """Forests add up in one order, alone or as parts of a combination; the others always do."""
    if isinstance(expectation, CombinedExpectation):
        return replace(expectation, parts=[_reproducible(part) for part in expectation.parts])
    return expectation.reproducible() if isinstance(expectation, ForestExpectation) else expectation


def _in_blocks(
    expectation: ForestExpectation,
    family: ProductFamily,
    patterns: Ints,
    variance: Floats,
    done: Callable[[int], object],
) -> Moments:
    def block(start: int) -> Moments:
        rows = slice(start, start + _PATTERNS)
        found = expectation.many(family, patterns[rows], variance[rows])
        done(len(patterns[rows]))
        return found

    return joined([block(start) for start in range(0, len(patterns), _PATTERNS)])


def _first_of_each(place: Ints, count: int) -> Ints:
    first = np.zeros(count, dtype=np.int64)
    first[place[::-1]] = np.arange(len(place))[::-1]
    return first
