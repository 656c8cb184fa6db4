"""Warnings that explanations carry, about rows of a table, predictions and texts.

They cost next to nothing: arrays decide which rows have one, and sentences are written for those alone.
``limes.diagnose`` looks closer.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._diagnostics.edges import Crossings
from limes._explainers.tables.laws import number_texts
from limes._pipeline import Fitted
from limes._variance import ROUNDING

if TYPE_CHECKING:
    from limes._explainers.tables.table import Table
    from limes.designs._product import ProductFamily
    from limes.models._documents import Document

# Start of the warning about a row of a read model that was sampled
SAMPLED_ALONE = "sampled, as its expectation is not exact"

# -- rows of a table -----------------------------------------------------------------------------------------

# Standard deviations: a row so near to an edge is on it
_ON_THE_EDGE = 1e-4
# Share of the row's largest coefficient above which a coefficient is large
_LARGE = 0.2
# Columns outside of their range that have a sentence each
_LISTED = 3
# Rows looked at together: their distances fit the processor's memory
_BLOCK = 10_000
# An R² below the first, by the second number of standard errors, is poor
POOR, _SURE = 0.1, 2.0


@dataclass(frozen=True, eq=False)
class RowWarnings:
    """Warnings about rows of a table, by what is ordinary in its background.

    Attributes
    ----------
    names, numeric
        Of the columns; which of them hold numbers.
    low, high
        (d,) smallest and largest background value.
    crossings
        Distances of values from the edges of their bins.
    fixed
        Warnings about every row.
    adds_up
        Whether the answers may be probabilities of classes, which add up to 1.
    """

    names: tuple[str, ...]
    numeric: Bools
    low: Floats
    high: Floats
    crossings: Crossings
    fixed: tuple[str, ...]
    adds_up: bool

    @classmethod
    def from_background(
        cls, table: Table, family: ProductFamily, units: Floats, *, adds_up: bool
    ) -> RowWarnings:
        """Learn what is ordinary."""
        values = np.ma.masked_invalid(table.matrix)  # a column may be all missing
        laws = family.marginals
        slopes, held = (
            np.zeros(len(laws), dtype=np.bool_) if chosen is None else chosen
            for chosen in (family.slopes, family.held)
        )
        binned = ~slopes & np.array([law.cells.count > 1 for law in laws])
        return cls(
            names=table.names,
            numeric=table.numeric,
            low=values.min(axis=0).filled(np.nan),
            high=values.max(axis=0).filled(np.nan),
            crossings=Crossings.learn(laws, table.matrix, binned, units),
            fixed=tuple(
                f"{name} does not vary in the background (it has one cell): its coefficient is 0"
                for name, law, slope, keeps in zip(table.names, laws, slopes, held, strict=True)
                if law.is_point or (law.cells.count == 1 and not slope and not keeps)
            ),
            adds_up=adds_up,
        )

    def of_rows(
        self,
        rows: Floats,
        cells: Ints,
        fitted: Fitted,
        predictions: Floats,
        sampling: Mapping[int, tuple[str, ...]],
    ) -> tuple[tuple[str, ...], ...]:
        """Return warnings of rows (n, d) with their cells, those of ``sampling`` among them.

        Rows without warnings share one tuple.
        """
        outside = self.numeric & ((rows < self.low) | (rows > self.high))
        near = np.concatenate(
            [self._near(rows[i : i + _BLOCK], cells[i : i + _BLOCK]) for i in range(0, len(rows), _BLOCK)]
        )
        near &= _large(fitted) if near.any() else False
        far, poor = _far(fitted, predictions), _poor(fitted)
        warnings = [self.fixed] * len(rows)
        remarkable = np.flatnonzero(outside.any(axis=1) | near.any(axis=1) | far | poor)
        odd = odd_probabilities(predictions) if self.adds_up else {}
        for i in sorted({*remarkable.tolist(), *odd, *sampling}):
            warnings[i] = (
                *self._outside(np.flatnonzero(outside[i]).tolist(), rows[i]),
                *(self._on_the_edge(int(j), rows[i, j]) for j in np.flatnonzero(near[i])),
                *_fit_warnings(far=bool(far[i]), poor=bool(poor[i])),
                *odd.get(i, ()),
                *sampling.get(i, ()),
                *self.fixed,
            )
        return tuple(warnings)

    def _near(self, rows: Floats, cells: Ints) -> Bools:
        """Return which values (n, d) lie on an edge."""
        down, up = self.crossings.distances(rows, cells)
        return np.asarray(np.fmin(down, up) <= _ON_THE_EDGE)

    def _outside(self, columns: Sequence[int], row: Floats) -> Iterator[str]:
        for j in columns[:_LISTED]:
            value, low, high = number_texts([row[j], self.low[j], self.high[j]])
            yield (
                f"{self.names[j]} = {value} lies outside the background's range [{low}, {high}]; "
                "it is explained as if it lay in the outermost bin"
            )
        if len(columns) > _LISTED:
            others = ", ".join(self.names[j] for j in columns[_LISTED:])
            yield f"{len(columns) - _LISTED} more columns lie outside the background's range: {others}"

    def _on_the_edge(self, j: int, x: float) -> str:
        return (
            f"{self.names[j]} = {x:.6g} lies on an edge of its bin: an arbitrarily small change of the value "
            "gives another explanation; limes.diagnose shows it"
        )


def _large(fitted: Fitted) -> Bools:
    """Return which features (n, d) have a large coefficient: their bin matters."""
    coef = fitted.surrogate.coef
    size = np.abs(coef).reshape(*coef.shape[:2], -1).max(axis=2)
    return np.asarray(size >= _LARGE * size.max(axis=1, keepdims=True))


def _far(fitted: Fitted, predictions: Floats) -> Bools:
    """Return rows (n,) where the surrogate misses the prediction by more than its coefficients together."""
    n = len(predictions)
    missed = np.abs(predictions - fitted.at_instance).reshape(n, -1)
    reach = np.abs(fitted.surrogate.coef).reshape(n, fitted.surrogate.coef.shape[1], -1).sum(axis=1)
    size = np.maximum(np.abs(predictions), np.abs(fitted.at_instance)).reshape(n, -1)
    far = (missed > reach) & (missed > ROUNDING * size)  # a model that does not vary is met but for rounding
    return np.asarray(far.any(axis=1) & (reach > 0).any(axis=1))


def _poor(fitted: Fitted) -> Bools:
    """Return rows (n,) whose R² was estimated, and is poor in every output."""
    n = len(fitted.moments.calls)
    if fitted.sampled is None:
        return np.zeros(n, dtype=np.bool_)
    upper = fitted.surrogate.fidelity + _SURE * fitted.sampled.fidelity_errors
    return np.asarray((upper.reshape(n, -1) < POOR).all(axis=1))


def _fit_warnings(*, far: bool, poor: bool) -> Iterator[str]:
    if far:
        yield (
            "the surrogate misses the prediction by more than all its coefficients together: do not derive "
            "the prediction from them; limes.diagnose says more"
        )
    if poor:
        yield (
            "the surrogate explains less than a tenth of the model's variance around the row (R² below 0.1): "
            "its coefficients are averages and do not describe the model there; limes.diagnose says more"
        )


# -- predictions --------------------------------------------------------------------------------------------

# Rounding that a sum of probabilities is allowed
_PROBABILITY = 1e-3


def odd_probabilities(predictions: Floats) -> dict[int, tuple[str, ...]]:
    """Warn of rows (n, k) of several numbers between 0 and 1 that do not add up to 1."""
    if predictions.ndim == 1 or predictions.shape[1] < 2:
        return {}
    total = predictions.sum(axis=1)
    odd = ((predictions >= 0) & (predictions <= 1)).all(axis=1) & (np.abs(total - 1) > _PROBABILITY)
    return {
        int(i): (
            f"the model's {predictions.shape[1]} answers lie between 0 and 1 and add up to {total[i]:.3g}: "
            "probabilities of classes would add up to 1. They are explained as they are; check the model",
        )
        for i in np.flatnonzero(odd)
    }


# -- texts ---------------------------------------------------------------------------------------------------

# First words of the Unicode names of letters of scripts that put no spaces between words
_WITHOUT_SPACES = frozenset({"CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"})
# Letters: hardly any word of these scripts is longer
_LONG = 8


def text_warnings(document: Document) -> tuple[str, ...]:
    """Return warnings about a text that has one word, or whose script puts no spaces between words."""
    warnings = []
    if document.size == 1:
        warnings.append(
            "the text has one word: its coefficient is the prediction less that of the text without it"
        )
    long = [word for word in document.names if _unsplit(word)]
    if long:
        warnings.append(
            f"{long[0][:20]!r} is taken as one word, as its script puts no spaces between words: pass split= "
            "a tokenizer, or a callable text -> [(start, end), ...]"
        )
    return tuple(warnings)


def _unsplit(word: str) -> bool:
    """Return whether a word is so long, in a script without spaces, that it is probably several."""
    if len(word) <= _LONG or word.isascii():
        return False
    scripts = (unicodedata.name(letter, "").split(" ")[0] for letter in word)
    return sum(script in _WITHOUT_SPACES for script in scripts) > _LONG
