"""What the fits of all explained rows of one background share, where the model was read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from limes._arrays import Floats, Ints, power_of_two
from limes._expectations.cells import CellEffects, exact_cells
from limes._expectations.link_variance import LinkVariance
from limes._expectations.spread import ExactVariance, exact_variance
from limes._expectations.weighted_rows import FormPool, WeightedRows, rows_of_law
from limes._explainers.tables.fitted_row import FittedRows
from limes.designs._product import ProductDesign, ProductFamily
from limes.models.forms._base import Form

if TYPE_CHECKING:
    from limes._pipeline import Expectation

# Background rows whose answers tell the size of the model's
_SIZED = 256


@dataclass(frozen=True, eq=False)
class FormSpread:
    """What fits of all rows of one background share: closed forms of the read model, or a pool of rows.

    Attributes
    ----------
    form, expectation
        The read model.
    family, seed
        The designs, and the seed of rows of their laws.
    background
        (N, d), encoded.
    """

    form: Form
    expectation: Expectation
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
    def _exact(self) -> ExactVariance | None:
        return exact_variance(self.form, self.unit)

    def variances(self, rows: FittedRows) -> Floats:
        """Var_w (f / unit) of rows, (n, k); nan where it has no closed form, or that has no digits."""
        match self._exact:
            case None:
                return np.full(rows.mean.shape, np.nan)
            case LinkVariance() as of_link:
                return of_link.at_rows(rows.family, rows.rows, rows.cells)
            case exact:
                return np.stack([exact.variance(row.design) for row in rows])

    @cached_property
    def cells(self) -> CellEffects | None:
        """The exact effects of cells, where they are feasible."""
        return exact_cells(self.form, self.expectation, self.family)

    @cached_property
    def pool(self) -> FormPool:
        return FormPool(self.family, self.predict, self.seed)

    def predict(self, x: Floats) -> Floats:
        """Return the form's answers in units, (m, k)."""
        return np.asarray(self.form.predict(x).reshape(len(x), -1) / self.unit)

    def rows(self, design: ProductDesign, row: Floats, cells: Callable[[Floats], Ints]) -> WeightedRows:
        """Return rows of w: of the pool where enough of it counts, else drawn for this row.

        ``cells`` tells the cells of rows x (m, d), (d, m).
        """
        pooled = self.pool.at(self.family.cells(row[None])[0]) if self.family.by_cell else None
        return pooled or rows_of_law(design, row, self.predict, self.seed, cells)
