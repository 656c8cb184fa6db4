r"""How well the surrogate of one text or image fits, computed when somebody looks.

R² = (2 b·Γ - b·Σb) / Var_w f. Var_w f is b·Σb itself for a sum over words or superpixels, exact by
enumeration where the 2^d sets are few, and else estimated on sets that are drawn from w and evaluated through
the read form: the model is not called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from limes._arrays import Floats, power_of_two
from limes._streams import streams
from limes.designs.exchangeable import ExchangeableDesign
from limes.expectations.weighted_rows import WeightedRows, explained_variance, r_squared
from limes.models.forms.base import BlackBox, Form, Reducible, Sum

if TYPE_CHECKING:
    from limes.pipeline import Fitted

# Sets that are enumerated, at most; sets that are drawn, in independent sequences; and numbers that these are
_STATES, _ROWS, _SEQUENCES, _NUMBERS = 4096, 4096, 4, 4_000_000


class SubsetFits:
    """The fit of one text or image, by the answers ``predict`` (m, d) -> (m, ...) of its form."""

    def __init__(
        self,
        form: Form | BlackBox,
        predict: Callable[[Floats], Floats],
        fitted: Fitted,
        design: ExchangeableDesign,
        seed: int,
    ) -> None:
        self._form, self._predict, self._fitted = form, predict, fitted
        self._design, self._seed = design, seed
        self._cached: tuple[Floats, Floats] | None = None

    def fidelity(self, row: int) -> tuple[Floats, Floats]:  # noqa: ARG002 - there is one row
        """R² and its standard errors, 0 where exact, (k,) each."""
        if self._cached is None:
            self._cached = self._fidelity()
        return self._cached

    def _fidelity(self) -> tuple[Floats, Floats]:
        design, moments, d = self._design, self._fitted.moments, self._design.size
        mean = moments.mean[0].reshape(-1)
        unit = power_of_two(np.maximum(np.abs(mean), np.abs(self._fitted.at_instance[0].reshape(-1))))
        coef = self._fitted.surrogate.coef[0].reshape(d, -1) / unit
        gamma = moments.gamma[0].reshape(d, -1) / unit
        explained = explained_variance(design, coef, gamma)
        if isinstance(self._form, Reducible) and isinstance(self._form.reduce(), Sum):
            # f is its own least squares surrogate
            variance = (design.solve(gamma) * gamma).sum(axis=0)
            rest, error = np.maximum(variance - explained, 0.0), np.zeros(unit.size)
        else:
            rows, exact = self._rows(unit)
            rest, error = rows.mean(rows.residuals(mean / unit, design.inclusion, coef) ** 2)
            error = 0.0 * error if exact else error
        return r_squared(explained, rest, error, np.ones(unit.size))

    def _rows(self, unit: Floats) -> tuple[WeightedRows, bool]:
        """Return sets with their weights, and whether they are all there are."""
        states = self._design.states(_STATES)
        groups = None
        if states is not None:
            z, weights, _ = states
        else:
            sampler = self._design.sampler(streams(self._seed, self._design.size, _SEQUENCES))
            z, _, groups = sampler.draw(
                min(_ROWS, max(_NUMBERS // self._design.size, _STATES // 8)) // _SEQUENCES
            )
            weights = np.full(len(z), 1.0 / len(z))
        answers = self._predict(z).reshape(len(z), -1) / unit
        return WeightedRows(np.ascontiguousarray(z.T), answers, weights, groups), states is not None
