r"""Contributions from one row to another: the law is a point, mean(g) = g(b).

v(S) = f(ξ_S, b_-S), so that contributions add up to f(ξ) - f(b), and columns in which the two rows agree have
none. Trees, sums and products of a few columns have them against the background that is b alone
(``interventional.py``). Of anything else that answers, all 2^m coalitions of the m columns that differ are
asked about, if these are few. Else columns of one value each are a law like any other (`PointFamily`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from limes._arrays import Floats, Ints
from limes._shapley.exact import RowContributions
from limes._shapley.interventional import Coalitions, against
from limes._shapley.starts import same
from limes.designs._marginals import Atoms, Levels, Marginal
from limes.designs._product import ProductFamily
from limes.designs._weights import BinWeights
from limes.exceptions import ModelError, NotReadableError
from limes.models.forms._base import Combination, Form, Reducible
from limes.models.forms._trees import Forest

# Columns that differ, at most, whose coalitions a form is asked about
MOST_COLUMNS = 12


class PointFamily(ProductFamily):
    """The designs whose columns have the values of one row, in one cell each that all others are in too."""

    @classmethod
    def of(cls, reference: Floats) -> PointFamily:
        """Those of a row (d,)."""
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
    if _has_a_game(form):
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
    return Coalitions(predict, reference[None], 0.0, beside=most)(x, np.ones((1, 1)))


def _has_a_game(form: Form) -> bool:
    """Whether a form has contributions against a row without asking about coalitions."""
    if isinstance(form, Combination):
        return all(map(_has_a_game, form.parts))
    return isinstance(form, Forest | Reducible)
