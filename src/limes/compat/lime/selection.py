r"""Which features a surrogate keeps: lime's ways, read off the normal equations G β = c alone.

A sample's equations have G = Σ π x̃x̃ᵀ and c = Σ π x̃ỹ; the limit's are Σ and Γ. Either goes through the same
selection: forward selection is pivoted elimination of G by the largest c_j² / G_jj.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats, Ints

# lime selects forward up to so many features, and ranks above
_FORWARD_UP_TO = 6
# share of a column's own variance, below which the columns before it explain it
_COLLINEAR = 1e-12

__all__ = ["SELECTIONS", "NormalEquations", "selected"]


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """G (d, d) and c (d,) of centred features, and the features at the instance (d,).

    ``ranking`` gives the coefficients (d,) of all features, by which they are ranked.
    """

    gram: Floats
    gamma: Floats
    at_instance: Floats
    ranking: Callable[[], Floats]


def _forward(equations: NormalEquations, count: int) -> Ints:
    """Add the feature that raises R² most, again and again."""
    gram, gamma = equations.gram, equations.gamma
    left, own = np.ones(len(gamma), dtype=bool), np.diag(gram).copy()
    chosen: list[int] = []
    for _ in range(count):
        pivots = np.diag(gram)
        able = left & (pivots > _COLLINEAR * own)
        gain = np.where(able, gamma**2 / np.where(able, pivots, 1.0), np.where(left, 0.0, -1.0))
        best = int(np.argmax(gain))
        chosen.append(best)
        left[best] = False
        if able[best]:
            column = gram[:, best] / pivots[best]
            gamma, gram = gamma - column * gamma[best], gram - np.outer(column, gram[best])
    return np.array(chosen, dtype=int)


def _highest(equations: NormalEquations, count: int) -> Ints:
    """Features whose coefficient times the instance's value is largest."""
    size = np.abs(equations.ranking() * equations.at_instance)
    return np.argsort(-size, kind="stable")[:count]


def _lasso(equations: NormalEquations, count: int) -> Ints:
    """The last features of the lasso's path that are not too many."""
    from sklearn.linear_model import lars_path_gram

    _, _, coefs = lars_path_gram(equations.gamma, equations.gram, n_samples=1, method="lasso")
    few = [np.flatnonzero(c) for c in coefs.T if np.count_nonzero(c) <= count]
    return np.asarray(few[-1], dtype=int)


def _all(equations: NormalEquations, count: int) -> Ints:  # noqa: ARG001 - all of them
    return np.arange(len(equations.gamma))


def _auto(equations: NormalEquations, count: int) -> Ints:
    return (_forward if count <= _FORWARD_UP_TO else _highest)(equations, count)


SELECTIONS: dict[str, Callable[[NormalEquations, int], Ints]] = {
    "auto": _auto,
    "forward_selection": _forward,
    "highest_weights": _highest,
    "lasso_path": _lasso,
    "none": _all,
}


def selected(equations: NormalEquations, count: int, method: str) -> Ints:
    """Positions of ``count`` features, or as many as there are, that a method of `SELECTIONS` selects."""
    return SELECTIONS[method](equations, min(count, len(equations.gamma)))
