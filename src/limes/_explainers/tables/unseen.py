"""Values that the model is asked about and that do not occur in the background, counted column by column.

A number between two codes of a thing is no row that the model can get, and its answer there says nothing. A
new value is news where a column has few distinct values, or whole numbers that repeat; measurements have new
values in every row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats, Ints
from limes._explainers.tables.columns import FEW
from limes._explainers.tables.table import Table
from limes._explainers.verified_form import product_rows
from limes._sampling.pool import Pool
from limes._warnings import RowWarning
from limes.designs._gaussian import GaussianPieces
from limes.designs._product import ProductFamily

# Rows of the law of a row's own draws that are counted
_COUNTED = 1024
# Whole numbers are on a grid if more than this share of them occurs at least twice
_TIED = 0.5
# Least share of rows that is reported
_LEAST = 0.01
# Columns that are named
_NAMED = 3


@dataclass(frozen=True, eq=False)
class UnseenValues:
    """The columns in which new values are news."""

    family: ProductFamily
    names: Sequence[str]
    occurring: Mapping[int, Floats]  # the background's values of such a column, increasing
    code: str  # of the warnings: whether contributions rest on this law, too

    @classmethod
    def of(cls, table: Table, family: ProductFamily, *, is_of_both: bool) -> UnseenValues:
        """Choose columns of numbers whose laws have other values than the background."""
        occurring = {}
        for j, (column, law) in enumerate(zip(table.columns, family.marginals, strict=True)):
            if column.is_plain and any(isinstance(measure, GaussianPieces) for measure in law.measures):
                values, counts = np.unique(table.matrix[:, j], return_counts=True)
                present = ~np.isnan(values)
                if _is_grid(values[present], counts[present]):
                    occurring[j] = values[present]
        return cls(family, table.names, occurring, "impossible rows" if is_of_both else "new values")

    def of_rows(
        self, rows: Floats, sizes: Sequence[int], pool: Pool | None
    ) -> dict[int, tuple[RowWarning, ...]]:
        """Warnings about rows (n, d), each by its ``pool`` of a size, or by own draws where that is 0."""
        if not self.occurring:
            return {}
        of_pools = {n: self.warnings(self.shares(pool.rows(n).x)) for n in {*sizes} if n and pool}
        warnings = {}
        for i, (size, row) in enumerate(zip(sizes, rows, strict=True)):
            if size:
                warnings[i] = of_pools[size]
            else:
                x, _ = product_rows(self.family.at(row))(_COUNTED)
                warnings[i] = self.warnings(self.shares(x, row))
        return {i: texts for i, texts in warnings.items() if texts}

    def shares(self, x: Floats, row: Floats | None = None) -> dict[int, float]:
        """Shares of rows x (n, d) with a new value, by column; values of the explained row are not new."""
        shares = {}
        for j, values in self.occurring.items():
            column = x[:, j]
            at = np.minimum(np.searchsorted(values, column), values.size - 1)
            new = (values[at] != column) & ~np.isnan(column)
            shares[j] = float((new if row is None else new & (column != row[j])).mean())
        return shares

    def warnings(self, shares: Mapping[int, float]) -> tuple[RowWarning, ...]:
        """Tell the largest shares."""
        largest = sorted((j for j in shares if shares[j] >= _LEAST), key=lambda j: (-shares[j], j))
        if not largest:
            return ()
        first, *others = [(self.names[j], f"{int(100 * shares[j])} %") for j in largest]
        named = [f"{name} ({share})" for name, share in others[: _NAMED - 1]]
        rest = len(others) - len(named)
        also = [*named, *([f"{rest} more {'column' if rest == 1 else 'columns'}"] if rest else [])]
        more = f", likewise {', '.join(also)}" if also else ""
        return (RowWarning.of(self.code, share=first[1], name=first[0], others=more),)


def _is_grid(values: Floats, counts: Ints) -> bool:
    if values.size <= FEW:
        return True
    return bool((values == np.rint(values)).all() and counts[counts > 1].sum() > _TIED * counts.sum())
