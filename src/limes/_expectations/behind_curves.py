"""Curves of a margin that is read, as probabilities of boosted trees: answers along walks, without the model.

The trees' values at all steps of a walk are one compiled pass (``kernels/tree_walks.h``). The margin's own
contributions are exact, and its changes along the same walks are control variates with known means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from limes import _kernels
from limes._arrays import Floats, Ints
from limes._expectations.contributions import exact_contributions
from limes._expectations.moments import REFUSED, are_complements
from limes._expectations.of_forms import exact_expectation
from limes._threads import in_threads
from limes.designs._product import ProductFamily
from limes.models.forms._base import Form
from limes.models.forms._trees import Forest

# Walks that one thread takes down the trees
_WALKS = 256
# Largest number of columns, and of thresholds of a column, that the compiled pass takes
_MOST_COLUMNS, _MOST_THRESHOLDS = 254, 65_534
# Most pairs of walks to a row, and most steps of these, times trees; a column of another margin costs as much
# as some trees
_MOST_PAIRS, _FEWEST_PAIRS, _MOST_STEPS, _A_COLUMN = 1 << 13, 1 << 9, 1 << 27, 8


@dataclass(frozen=True, eq=False)
class BehindCurve:
    """f(x) = curve(margin(x)): ``curve`` maps margins (n,) or (n, m) to answers (n,) or (n, k)."""

    margin: Form
    curve: Callable[[Floats], Floats]

    def __call__(self, x: Floats) -> Floats:
        return self.curve(self.margin.predict(x))

    def most_pairs(self, columns: int) -> int:
        """How many pairs of walks a row may take."""
        margin = self.margin
        work = margin.roots.size if isinstance(margin, Forest) else _A_COLUMN * columns
        pairs = _MOST_STEPS // (2 * (columns + 1) * max(work, 1))
        return min(max(pairs, _FEWEST_PAIRS), _MOST_PAIRS)

    def is_complement(self, row: Floats) -> bool:
        """Whether answers are the probabilities of two classes, by one margin; ``row`` is any (d,)."""
        margins = self.margin.predict(row[None])
        return margins.ndim == 1 and are_complements(self.curve(margins).reshape(1, -1))

    def contributions(self, family: ProductFamily, x: Floats, cells: Ints) -> Floats | None:
        """Contributions to the margins at rows (n, d), (n, d, m); None where they have no closed form."""
        expectation = self._expectation
        try:
            return exact_contributions(self.margin, expectation, family, x, cells).values
        except REFUSED:
            return None

    @cached_property
    def _expectation(self) -> Any:
        return exact_expectation(self.margin)

    def along(self, row: Floats, starts: Floats, orders: Ints) -> tuple[Floats, Floats]:
        """Answers (W, d + 1, k) and margins (W, d + 1, m) at the steps of W walks from rows (W, d)."""
        steps = (len(orders), row.size + 1)
        margins = self._down_trees(row, starts, orders) if self._is_compiled else None
        if margins is None:
            rows = np.where(
                np.argsort(orders, axis=1)[:, None] < np.arange(steps[1])[:, None], row, starts[:, None]
            )
            margins = self.margin.predict(rows.reshape(-1, row.size))
        return self.curve(margins).reshape(*steps, -1), margins.reshape(*steps, -1)

    @cached_property
    def _is_compiled(self) -> bool:
        margin = self.margin
        if not isinstance(margin, Forest) or margin.size > _MOST_COLUMNS:
            return False
        return bool(np.bincount(margin.feature[margin.feature >= 0], minlength=1).max() <= _MOST_THRESHOLDS)

    def _down_trees(self, row: Floats, starts: Floats, orders: Ints) -> Floats:
        """Margins (W · (d + 1), ...), step by step."""
        margin = self.margin
        assert isinstance(margin, Forest)  # noqa: S101 - the compiled pass is of trees
        value = margin.value.reshape(len(margin.value), -1)
        values = np.empty((len(orders), row.size + 1, value.shape[1]))
        end, rows = (np.require(each, requirements="C") for each in (row, starts))
        columns = np.require(orders, requirements="C")

        def block(first: int) -> None:
            some = slice(first, first + _WALKS)
            _kernels.add_walks(margin.trees, value, end, rows[some], columns[some], values[some])

        in_threads(block, range(0, len(orders), _WALKS))
        return np.asarray(values.reshape(-1, *margin.value.shape[1:]) + margin.intercept)
