"""Every number around one row of a table with few values, from the model's answers to all of them.

Columns are independent under the weighted law w, whose atoms are the background's values. Another bin than
the row's has the weight e^{-1/(2ν²)}; smooth weights are e^{-(x - ξ)²/(2ν²)}, in standard deviations.

Nothing here imports the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np


@dataclass(frozen=True)
class Column:
    """Values (m,) of a column, their probabilities under w, the cell of each, and the feature's values."""

    values: np.ndarray
    mass: np.ndarray
    cell: np.ndarray
    feature: np.ndarray
    row_cell: int  # the row's cell

    @property
    def cells(self):
        """P(value | cell), (p, m), and P(cell), (p,)."""
        inside = (self.cell == np.arange(self.cell.max() + 1)[:, None]) * self.mass
        total = inside.sum(axis=1)
        return inside / total[:, None], total


def column(background, x, nu, weights="bins", edges=None):
    """The law of a column around the value x; ``edges`` are inner ones, None for categories."""
    values, counts = np.unique(background, return_counts=True)
    values, counts = values.astype(np.longdouble), counts.astype(np.longdouble)
    if edges is None:
        cell, row_cell = np.arange(values.size), int(np.searchsorted(values, x))
    else:
        cell, row_cell = (
            np.searchsorted(edges, values, side="left"),
            int(np.searchsorted(edges, x, side="left")),
        )
    with np.errstate(divide="ignore"):
        if weights == "bins":
            log = -0.5 * (cell != row_cell) / np.longdouble(nu) ** 2
        else:
            log = -0.5 * ((values - x) / (background.std() * np.longdouble(nu))) ** 2
    mass = counts * np.exp(log - log.max())
    return Column(values, mass / mass.sum(), cell, (cell == row_cell).astype(np.longdouble), row_cell)


def answers(predict, backgrounds):
    """The model's answers at all combinations of the columns' values, (m_1, ..., m_d, k)."""
    values = [np.unique(background) for background in backgrounds]
    grid = np.array(list(product(*values)))
    f = np.asarray(predict(grid), dtype=np.longdouble)
    return f.reshape(*(v.size for v in values), -1)


def mean(f, laws, replaced=None):
    """E[f], (k,), with the law of some columns replaced by rows of laws (p, m): an axis each, in order."""
    replaced = replaced or {}
    for j in range(f.ndim - 2, -1, -1):
        f = np.tensordot(replaced.get(j, laws[j].mass[None]), f, (1, j))
        f = np.moveaxis(f, 0, j)
    return f.reshape(*(replaced[j].shape[0] for j in sorted(replaced)), f.shape[-1])


@dataclass(frozen=True)
class Truth:
    """All numbers beside a row; shapes are those of an explanation's."""

    coef: np.ndarray  # (d, k)
    intercept: np.ndarray
    variance: np.ndarray
    r_squared: np.ndarray
    additive: np.ndarray
    effects: list  # (p, k) a column
    shares: np.ndarray  # (d, k)
    pairs: dict  # (i, j): effects (p, q, k) and shares (k,)
    masses: list


def truth(f, laws):
    """Everything, by the definitions."""
    d = len(laws)
    center = mean(f, laws)
    f = f - center
    variance = mean(f**2, laws)
    safe = np.where(variance > 0, variance, 1)
    coef, effects, pairs, masses, alphas = [], [], {}, [], []
    conditional = {j: law.cells for j, law in enumerate(laws)}
    for j, law in enumerate(laws):
        alpha = law.mass @ law.feature
        spread = law.mass @ (law.feature - alpha) ** 2
        weights = (law.mass * (law.feature - alpha))[None]
        gamma = mean(f, laws, {j: weights})[0]
        coef.append(gamma / spread if spread > 0 else 0 * gamma)
        alphas.append((alpha, spread))
        effects.append(mean(f, laws, {j: conditional[j][0]}))
        masses.append(conditional[j][1])
    coef = np.stack(coef)
    alpha, spread = np.array(alphas).T
    for i, j in combinations(range(d), 2):
        both = mean(f, laws, {i: conditional[i][0], j: conditional[j][0]})
        both = both - effects[i][:, None] - effects[j][None]
        share = np.einsum("p,q,pqk->k", masses[i], masses[j], both**2) / safe
        pairs[i, j] = both, share
    shares = np.stack([q @ e**2 for q, e in zip(masses, effects, strict=True)]) / safe
    constant = variance <= 0
    return Truth(
        coef,
        center - alpha @ coef,
        variance,
        np.where(constant, 1, (coef**2 * spread[:, None]).sum(axis=0) / safe),
        np.where(constant, 1, shares.sum(axis=0)),
        effects,
        shares,
        pairs,
        masses,
    )
