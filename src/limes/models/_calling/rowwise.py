r"""Predictions of many rows whose last bits do not depend on the rows beside them.

A matrix product adds up a row in an order that depends on the number of rows, and on the row's place among
them: f(X)_i and f(X_i) differ in the last bits. With the number of rows fixed, only the place and the
neighbours could matter. This is tested: the model predicts shuffled background rows, and each row must have
the same prediction, bit for bit, in all orders. A model that passes is called with blocks of that many rows,
the last one filled up with repeated rows; any other model with one row at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Floats

# Rows of a block: a multiple of the sizes that inner loops of matrix products use (4, 6, 8, 12, 16, 24)
_BLOCK = 48
# Orders of two blocks that are compared: a difference between two places is missed only if it rounds away in
# all of them
_ORDERS = 8


@dataclass(frozen=True, eq=False)
class RowwisePredictions:
    """A model (n, d) -> (n,) or (n, k) whose prediction of a row is the same in any call, to the last bit.

    ``background`` (m, d) are rows that the model can predict.
    """

    predict: Callable[[Floats], Floats]
    background: Floats

    @cached_property
    def in_blocks(self) -> bool:
        """Whether a row's prediction in a block depends on the row alone.

        Raises
        ------
        ModelError
            If the model fails.
        """
        rows = np.resize(
            self.background[:: max(1, len(self.background) // (2 * _BLOCK))],
            (2 * _BLOCK, self.background.shape[1]),
        )
        rng, first = np.random.default_rng(0), self._blocks(rows)
        for _ in range(1, _ORDERS):
            order = rng.permutation(len(rows))
            if self._blocks(rows[order]).tobytes() != first[order].tobytes():
                return False
        return True

    def __call__(self, rows: Floats) -> Floats:
        """Predict rows (n, d).

        Raises
        ------
        ModelError
            If the model fails.
        """
        if self.in_blocks:
            return self._blocks(rows)
        return np.concatenate([self.predict(rows[i : i + 1]) for i in range(len(rows))])

    def _blocks(self, rows: Floats) -> Floats:
        def block(start: int) -> Floats:
            some = rows[start : start + _BLOCK]
            return self.predict(np.resize(some, (_BLOCK, rows.shape[1])))[: len(some)]

        return np.concatenate([block(start) for start in range(0, len(rows), _BLOCK)])
