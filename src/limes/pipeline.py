"""From a design and a model to a surrogate: the only file that sees all stages.

The design knows Σ and the weighted law w, the expectation gives Γ, the surrogate is β = Σ⁻¹Γ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from limes._arrays import Floats
from limes.designs.product import ProductDesign, ProductFamily
from limes.exceptions import InputError, NotReadableError
from limes.expectations.combined import CombinedExpectation
from limes.expectations.exact import ExactExpectation
from limes.expectations.moments import Moments
from limes.expectations.sampled import SampledExpectation
from limes.models.combination import Combination
from limes.models.reductions import BlackBox, Form, Reducible
from limes.surrogates.least_squares import least_squares
from limes.surrogates.ridge import ridge
from limes.surrogates.surrogate import Surrogate

METHODS = ("auto", "exact", "sampled")
Method = Literal["exact", "sampled"]


class Expectation(Protocol):
    """Gives the moments of one model under any design."""

    @property
    def method(self) -> Method:
        """Exact or sampled."""
        ...

    def moments(self, design: ProductDesign, row: Floats) -> Moments:
        """Moments under the design at the row (d,)."""
        ...


def limit(design: ProductDesign, form: Form) -> Surrogate:
    """Compute what LIME converges to when its sample grows, exactly.

    β = Σ⁻¹Γ with Σ from the design and Γ from the form; intercept = E_w f - Σ α_j β_j.

    Parameters
    ----------
    design
        A :class:`limes.designs.ProductDesign`.
    form
        A form of :mod:`limes.models.forms`.

    Returns
    -------
    Surrogate
        ``.intercept`` () or (k,), ``.coef`` (d,) or (d, k), exact to 1e-9 relative.

    Raises
    ------
    NotReadableError
        If the form is a black box.
    InputError
        If design and form have different numbers of columns.

    References
    ----------
    Garreau & von Luxburg 2022, Theorem 1.

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
    return least_squares(design, exact_expectation(form).moments(design))


@dataclass(frozen=True)
class Sampling:
    """How a black box may be asked; see :class:`SampledExpectation`."""

    max_calls: int
    tolerance: float | None
    seed: int


def exact_expectation(form: Form) -> ExactExpectation | CombinedExpectation:
    """The exact expectation of a form, by its type."""
    if isinstance(form, Combination):
        parts = [exact_expectation(part) for part in form.parts]
        return CombinedExpectation(parts, form.weights, form.intercept)
    if not isinstance(form, Reducible):
        raise InputError(f"expected a form of limes.models.forms, got {type(form).__name__}")
    return ExactExpectation(form)


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
    return SampledExpectation(predict, sampling.max_calls, sampling.tolerance, sampling.seed)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Surrogates of n rows; arrays (n, ...) with the shapes of ``Explanation``."""

    values: Floats
    standard_errors: Floats
    intercepts: Floats
    surrogate_predictions: Floats
    fidelity: Floats
    calls: tuple[int, ...]
    converged: tuple[bool, ...]


class Pipeline:
    """Explains rows of one background: design, expectation and surrogate of each.

    Parameters
    ----------
    family
        The designs, one at each row.
    expectation
        Of the model that is explained.
    penalty
        0 for least squares, else the ridge penalty of ``lime``'s finite sample.
    """

    def __init__(self, family: ProductFamily, expectation: Expectation, *, penalty: float) -> None:
        self._family = family
        self._expectation = expectation
        self._penalty = penalty

    @property
    def method(self) -> Method:
        """Exact or sampled."""
        return self._expectation.method

    def explain(self, rows: Iterable[Floats], predictions: Floats) -> Fitted:
        """Surrogates at rows (d,), given the model's predictions (n, ...) there.

        Exact moments depend on the row through its design alone, so rows with the same cells share them.
        """
        known: dict[bytes, tuple[ProductDesign, Moments]] = {}
        found = []
        for row, prediction in zip(rows, predictions, strict=True):
            key = self._family.key(row) if self.method == "exact" else row.tobytes()
            if key not in known:
                design = self._family.at(row)
                known[key] = design, self._expectation.moments(design, row)
            design, moments = known[key]
            found.append((self._surrogate(design, moments, prediction), moments, design.at_instance))
        surrogates = [s for s, _, _ in found]
        return Fitted(
            values=np.stack([s.coef for s in surrogates]),
            standard_errors=np.stack([s.standard_errors for s in surrogates]),
            intercepts=np.stack([s.intercept for s in surrogates]),
            surrogate_predictions=np.stack([s.intercept + h @ s.coef for s, _, h in found]),
            fidelity=np.stack([s.fidelity for s in surrogates]),
            calls=tuple(m.calls for _, m, _ in found),
            converged=tuple(m.converged for _, m, _ in found),
        )

    def _surrogate(self, design: ProductDesign, moments: Moments, prediction: Floats) -> Surrogate:
        if self._penalty == 0:
            return least_squares(design, moments)
        return ridge(design, moments, prediction, penalty=self._penalty)
