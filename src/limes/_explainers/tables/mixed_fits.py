"""Fits of the rows of one call, of which the exact expectation refused some, so that they were sampled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from limes._arrays import Floats
from limes._explainers.tables.fits import ReadFits
from limes._explainers.tables.sampled_fits import SampledFits
from limes._explanation.fit import RowEffects, RowPair
from limes._fitted import Fitted

T = TypeVar("T")


class MixedFits:
    """Fits of exact rows, and of those that were sampled, each by what computed them."""

    has_curves = True
    is_quick = False

    def __init__(self, exact: ReadFits, sampled: SampledFits, fitted: Fitted) -> None:
        self._exact, self._sampled, self._fitted = exact, sampled, fitted

    def fidelities(self, rows: Sequence[int]) -> list[tuple[Floats, Floats]]:
        """R² of rows and their standard errors, 0 where exact, (k,) each."""

        def computed(fits: ReadFits | SampledFits, some: Sequence[int]) -> list[tuple[Floats, Floats]]:
            if fits is self._exact:
                return fits.fidelities(some)
            statistics = self._fitted.sampled
            assert statistics is not None  # noqa: S101 - some rows were sampled
            numbers = self._fitted.surrogate.fidelity, statistics.fidelity_errors
            return [(numbers[0][row].reshape(-1), numbers[1][row].reshape(-1)) for row in some]

        return self._each(rows, computed)

    def additive(self, rows: Sequence[int]) -> list[tuple[Floats, Floats]]:
        """R² of all effects of rows together and their standard errors, (k,) each."""
        return self._each(rows, lambda fits, some: fits.additive(some))

    def effects(self, rows: Sequence[int]) -> Callable[[int], RowEffects]:
        """Compute effects of rows' columns; the effects at a place among them are made there."""

        def computed(fits: ReadFits | SampledFits, some: Sequence[int]) -> list[Callable[[], RowEffects]]:
            at = fits.effects(some)
            return [lambda place=place: at(place) for place in range(len(some))]  # type: ignore[misc]

        effects = self._each(rows, computed)
        return lambda place: effects[place]()

    def pairs(self, row: int, output: int, top: int, columns: Sequence[int]) -> list[RowPair]:
        """The pairs of these columns that explain most beyond the effects, at most ``top``, largest first."""
        return self._fits(row).pairs(row, output, top, columns)

    def cell_texts(self, row: int, column: int) -> tuple[str, ...]:
        """The cells of a column in words."""
        return self._fits(row).cell_texts(row, column)

    def _fits(self, row: int) -> ReadFits | SampledFits:
        return self._sampled if row in self._fitted.refusals else self._exact

    def _each(
        self, rows: Sequence[int], compute: Callable[[ReadFits | SampledFits, Sequence[int]], list[T]]
    ) -> list[T]:
        """Compute rows by their fits, those of one kind together, and return them in their order."""
        results: dict[int, T] = {}
        for fits in (self._exact, self._sampled):
            some = [row for row in dict.fromkeys(rows) if self._fits(row) is fits]
            if some:
                results.update(zip(some, compute(fits, some), strict=True))
        return [results[row] for row in rows]
