r"""Contributions from one row to another: the law is a point, mean(g) = g(b).

v(S) = f(ξ_S, b_-S), so that contributions add up to f(ξ) - f(b), and columns in which the two rows agree have
none. Trees have them by a walk to the leaves of mixtures (``kernels/between_rows.cpp``), sums and products of
a few columns against the background that is b alone (``interventional.py``). Whatever else answers is asked
about all 2^m coalitions of the m columns that differ, if these are few. Else columns of one value each are a
law like any other (`PointFamily`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from limes import _kernels
from limes._arrays import Floats, Ints
from limes._shapley.exact import RowContributions, combined
from limes._shapley.interventional import CoalitionGame, against
from limes._shapley.starts import same
from limes._threads import in_threads
from limes.designs._marginals import Atoms, Levels, Marginal
from limes.designs._product import ProductFamily
from limes.designs._weights import BinWeights
from limes.exceptions import ModelError, NotReadableError
from limes.models.forms._base import Combination, Form, Reducible
from limes.models.forms._trees import Forest

# Columns that differ, at most, whose coalitions a form is asked about
MOST_COLUMNS = 12
# Rows that a thread takes together
_ROWS = 64


class PointFamily(ProductFamily):
    """The designs whose columns have the values of one row, in one cell each that all others are in too."""

    @classmethod
    def of(cls, reference: Floats) -> PointFamily:
        """Return those of a row (d,)."""
        owner = np.zeros(1, dtype=np.int64)
        laws = tuple(
            Marginal(Levels(value), np.zeros(1), (Atoms(value, np.ones(1)),), owner)
            for value in reference.reshape(-1, 1)
        )
        return cls(laws, BinWeights(np.inf))

    def cells(self, rows: Floats) -> Ints:
        return np.zeros(rows.shape, dtype=np.int64)


def differing(x: Floats, reference: Floats) -> Ints:
    """How many columns of rows (n, d) differ from those of the reference (d,), (n,)."""
    return np.asarray((~same(x, reference)).sum(axis=1))


def contributions_of_form(form: Form, x: Floats, reference: Floats) -> RowContributions | None:
    """Contributions from f(reference) to f at rows x (n, d); None without an exact way that is quick."""
    if isinstance(form, Forest):
        return _of_forest(form, x, reference)
    if isinstance(form, Combination):
        parts = [contributions_of_form(part, x, reference) for part in form.parts]
        return combined(form, [part for part in parts if part is not None]) if None not in parts else None
    if isinstance(form, Reducible):
        try:
            return against(form, reference[None])(x, np.ones((1, 1)))
        except (ModelError, NotReadableError):  # paths or products of too many columns
            return None
    if differing(x, reference).max(initial=0) > MOST_COLUMNS:
        return None
    return contributions_by_coalitions(form.predict, x, reference)


def contributions_by_coalitions(
    predict: Callable[[Floats], Floats], x: Floats, reference: Floats
) -> RowContributions:
    """The same of whatever answers rows, from the answers to all coalitions of the columns that differ."""
    most = int(differing(x, reference).max(initial=0))
    return CoalitionGame(predict, reference[None], 0.0, beside=most)(x, np.ones((1, 1)))


def indices_of_form(form: Form, row: Floats, reference: Floats) -> Floats | None:
    """Shapley interaction indices on the way between two rows (d,), (d, d, k); None without an exact way."""
    try:
        game = against(form, reference[None])
        if isinstance(game, CoalitionGame):  # which has another bound
            return None
        return np.asarray(game.pairs(row[None], np.ones((1, 1)))[0])
    except (ModelError, NotReadableError):  # paths or products of too many columns
        return None


def indices_by_coalitions(predict: Callable[[Floats], Floats], row: Floats, reference: Floats) -> Floats:
    """The same of whatever answers rows, from the answers to all coalitions of the columns that differ."""
    most = int(differing(row[None], reference)[0])
    game = CoalitionGame(predict, reference[None], 0.0, beside=most)
    return np.asarray(game.pairs(row[None], np.ones((1, 1)))[0])


def _of_forest(form: Forest, x: Floats, reference: Floats) -> RowContributions:
    outputs = form.value.size // len(form.value)
    base, sums = np.zeros((len(x), outputs)), np.zeros((len(x), 3, form.size, outputs))
    value = form.value.reshape(len(form.value), -1)
    rows, other = np.ascontiguousarray(x), np.ascontiguousarray(reference)

    def add(first: int) -> None:
        some = slice(first, first + _ROWS)
        _kernels.add_between(form.trees, value, rows[some], other, base[some], sums[some])

    in_threads(add, range(0, len(x), _ROWS))
    base += form.intercept.reshape(-1)
    return RowContributions.exact(base, *(sums[:, which] for which in range(3)))
