"""How well surrogates fit under the joint law, and its effects, from the answers to the background's rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import combinations

import numpy as np

from limes._arrays import Floats, Ints, Objects
from limes._expectations.joint import JointExpectation
from limes._expectations.joint_effects import JointEffects
from limes._explainers.tables.fits import MOST_EFFECTS
from limes._explanation.fit import RowEffects, RowPair
from limes._fitted import Fitted
from limes._threads import LRUCache


class JointFits:
    """Fits of the rows of one call, with cells (n, d); ``texts`` are the columns' cells in words."""

    def __init__(
        self, expectation: JointExpectation, texts: Sequence[Objects], cells: Ints, fitted: Fitted
    ) -> None:
        self._expectation, self._texts, self._cells, self._fitted = expectation, texts, cells, fitted
        self._effects: LRUCache[bytes, JointEffects] = LRUCache(MOST_EFFECTS)

    @cached_property
    def _background_cells(self) -> Ints:
        """Cells of the background's rows, (n, d), which the effects of all explained rows share."""
        return self._expectation.family.codes.astype(np.int64)

    def fidelities(self, rows: Sequence[int]) -> list[tuple[Floats, Floats]]:
        """R² of rows and their standard errors, (k,) each."""
        return [self._fidelity(row) for row in rows]

    def _fidelity(self, row: int) -> tuple[Floats, Floats]:
        sampled = self._fitted.sampled
        assert sampled is not None  # noqa: S101 - rows are a sample of their population
        value, error = self._fitted.surrogate.fidelity[row], sampled.fidelity_errors[row]
        return np.atleast_1d(value), np.atleast_1d(error)

    def additive(self, rows: Sequence[int]) -> list[tuple[Floats, Floats]]:
        """R² of all effects of rows together and their standard errors, (k,) each."""
        return [self._at(row).additive for row in rows]

    def effects(self, rows: Sequence[int]) -> Callable[[int], RowEffects]:
        """Return what computes the effects of the row at a place among these."""
        return lambda place: self._effects_of(rows[place])

    def _effects_of(self, row: int) -> RowEffects:
        effects = self._at(row)
        columns = [effects.column(j) for j in range(self._cells.shape[1])]
        additive, errors = effects.additive
        return RowEffects(
            values=[column.values for column in columns],
            errors=[column.errors for column in columns],
            masses=[column.masses for column in columns],
            current=self._cells[row].tolist(),
            shares=np.stack([column.share for column in columns]),
            additive=additive,
            additive_errors=errors,
        )

    def pairs(self, row: int, output: int, top: int, columns: Sequence[int]) -> list[RowPair]:
        """The pairs of these columns that explain most beyond the effects, at most ``top``, largest first."""
        effects = self._at(row)
        several = [j for j in columns if len(self._texts[j]) > 1]
        pairs = [(both, effects.pair(*both)) for both in combinations(several, 2)]
        pairs.sort(key=lambda pair: -pair[1].share[output])
        return [
            RowPair(
                both,
                pair.values[:, :, output],
                pair.errors[:, :, output],
                pair.masses,
                float(pair.share[output]),
                float(pair.share_error[output]),
            )
            for both, pair in pairs[:top]
        ]

    has_curves = True
    is_quick = False

    def cell_texts(self, row: int, column: int) -> tuple[str, ...]:  # noqa: ARG002 - the same for all rows
        """The cells of a column in words."""
        return tuple(self._texts[column].tolist())

    def _at(self, row: int) -> JointEffects:
        cells = self._cells[row]

        def compute() -> JointEffects:
            counts = [len(texts) for texts in self._texts]
            weights = self._expectation.family.around(cells).weights
            return JointEffects(self._background_cells, counts, weights, self._expectation.answers)

        return self._effects.get(cells.tobytes(), compute)
