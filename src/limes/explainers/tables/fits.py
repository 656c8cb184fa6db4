r"""How well the surrogates of a table's rows fit, computed row by row when somebody looks.

R² = (2 b·Γ - b·Σb) / Var_w f. Coefficients b and Γ are the explanation's; Var_w f is exact where the read
form has a closed form (``expectations/spread.py``), else estimated on rows of w through the form
(``expectations/weighted_rows.py``). The model is not called.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from limes._arrays import Floats, Ints, power_of_two
from limes._lru import LRUCache
from limes.designs.product import ProductDesign, ProductFamily
from limes.expectations.spread import ExactVariance, exact_variance
from limes.expectations.weighted_rows import (
    Pool,
    WeightedRows,
    explained_variance,
    r_squared,
    rows_of_law,
)
from limes.models.forms.base import Form

if TYPE_CHECKING:
    from limes.pipeline import Fitted

# Background rows whose answers tell the size of the model's
_SIZED = 256
# Rows of a call whose numbers are cached
_CACHED = 100_000


@dataclass(frozen=True, eq=False)
class FormSpread:
    """What R² of all rows of one background share: the form's closed form of the variance, or a pool of rows.

    Attributes
    ----------
    form, family, seed
        The read model, the designs, and the seed of the rows.
    background
        (N, d), encoded.
    """

    form: Form
    family: ProductFamily
    background: Floats
    seed: int

    @cached_property
    def unit(self) -> Floats:
        """Size of the model's answers, (k,): powers of two, by which everything is divided."""
        rows = self.background[:: -(-len(self.background) // _SIZED)]
        answers = self.form.predict(rows)
        return power_of_two(np.abs(answers.reshape(len(rows), -1)).max(axis=0))

    @cached_property
    def exact(self) -> ExactVariance | None:
        """The closed form of Var_w (f / unit), if there is one."""
        return exact_variance(self.form, self.unit)

    @cached_property
    def _pool(self) -> Pool:
        return Pool(self.family, self.predict, self.seed)

    def predict(self, x: Floats) -> Floats:
        """Return the form's answers in units, (m, k)."""
        return np.asarray(self.form.predict(x).reshape(len(x), -1) / self.unit)

    def rows(self, design: ProductDesign, row: Floats, cells: Ints) -> WeightedRows:
        """Return rows of w: of the pool where enough of it counts, else drawn for this row."""
        pooled = self._pool.at(cells) if self.family.by_cell else None
        return pooled or rows_of_law(design, row, self.predict, self.seed, self.family)


class TableFits:
    """Fits of the rows (n, d) of one call, with cells (n, d), whose model was read."""

    def __init__(self, spread: FormSpread, rows: Floats, cells: Ints, fitted: Fitted) -> None:
        self._spread, self._rows, self._cells, self._fitted = spread, rows, cells, fitted
        self._fidelity: LRUCache[int, tuple[Floats, Floats]] = LRUCache(_CACHED)

    def fidelity(self, row: int) -> tuple[Floats, Floats]:
        """R² of one row and its standard errors, 0 where exact, (k,) each."""
        return self._fidelity.get(row, lambda: self._fidelity_of(row))

    def _fidelity_of(self, row: int) -> tuple[Floats, Floats]:
        spread, d = self._spread, self._rows.shape[1]
        unit = spread.unit
        design = spread.family.at(self._rows[row]).in_units()
        surrogate, moments = self._fitted.surrogate, self._fitted.moments
        coef = surrogate.coef[row].reshape(d, -1) * design.units[:, None] / unit
        gamma, mean = moments.gamma[row].reshape(d, -1) / unit, moments.mean[row].reshape(-1) / unit
        explained = explained_variance(design, coef, gamma)
        if spread.exact is not None:
            variance = spread.exact.variance(design)
            rest, error = np.maximum(variance - explained, 0.0), np.zeros(unit.size)
        else:
            rows = spread.rows(design, self._rows[row], self._cells[row])
            rest, error = rows.mean(rows.residuals(mean, design.inclusion, coef) ** 2)
        return r_squared(explained, rest, error, np.maximum(np.abs(mean), 1.0))
