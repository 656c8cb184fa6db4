r"""Pairs of columns that act together: Shapley interaction indices of the game v(S) = E_w[f | x_S = ξ_S].

With F(t_1, ..., t_d) = E[f] where column j keeps the row's value with probability t_j (``exact.py``), φ_i is
the integral of its first difference, and the index of a pair (Grabisch & Roubens 1999) that of the second,

    φ_ij = ∫₀¹ ∂_i∂_j F(t, ..., t) dt,      ∂_i∂_j F(t, ..., t) = β_j(t | i kept) - β_j(t | i drawn).

The matrix with φ_ij / 2 beside the diagonal and φ_i - ½ Σ_j φ_ij on it has rows that add up to φ_i, and adds
up to f(ξ) - E_w f. As F is linear in every t_j, the derivative of β_i(t) is Σ_j ∂_i∂_j F(t, ..., t):

    Σ_j φ_ij = β_i(1) - β_i(0).

∂_i∂_j F is a polynomial of a degree below the contributions' by one. Every expectation gives it in two passes
a column (`of_two_ends`). Of a product it is the product of both contrasts and the means of all others
(``_expectations/exact.py``), and one pass over a forest adds up that of all leaves
(``kernels/forest_pairs.h``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.exact import ExactExpectation
from limes._expectations.forest import ForestExpectation
from limes._shapley.exact import interacting
from limes._threads import in_threads
from limes.designs._column import SMALLEST_MASS
from limes.designs._product import KeptRows, ProductFamily
from limes.models.forms._base import Combination, Form

# t and 1 - t of a column that is kept for sure, and of one that is drawn for sure
_KEPT, _DRAWN = np.array([1.0, SMALLEST_MASS]), np.array([SMALLEST_MASS, 1.0])
# Measured: times that pairs of a forest take what contributions take, and the seconds of one pass at least
_OF_FOREST, _LEAST = 3.0, 1e-4
# Most nodes, as for contributions
_MOST_NODES = 32


def exact_pairs(form: Form, expectation: Any, family: ProductFamily, x: Floats, cells: Ints) -> Floats:
    """φ_ij at rows x in these cells (n, d): (n, d, d, k), symmetric, 0 on the diagonal.

    InputError or ModelError where a row is refused.
    """
    if isinstance(expectation, ForestExpectation):
        return expectation.pairs(family, x, cells)
    if isinstance(form, Combination):
        each = zip(form.parts, expectation.parts, strict=True)
        parts = [exact_pairs(*part, family, x, cells) for part in each]
        # one part after the other, as contributions
        return reduce(np.add, [w * part for w, part in zip(form.weights, parts, strict=True)])
    n, d = x.shape
    size = interacting(form)
    if size < 2:
        return np.zeros((n, d, d, form.predict(np.zeros((1, d))).size))
    if isinstance(expectation, ExactExpectation):
        return _in_blocks(expectation.pairs, expectation.laws_at_once, family, x, cells, size)
    return of_two_ends(expectation, family, x, cells, size)


def pair_seconds(form: Form, expectation: Any, family: ProductFamily) -> float:
    """About the seconds that pairs of a row take."""
    if isinstance(form, Combination):
        return sum(pair_seconds(*part, family) for part in zip(form.parts, expectation.parts, strict=True))
    of_contributions = max(float(expectation.account_seconds(family)), _LEAST)
    if isinstance(expectation, ForestExpectation):
        return _OF_FOREST * of_contributions
    columns = len(family.marginals)
    return (columns if isinstance(expectation, ExactExpectation) else 2 * columns) * of_contributions


def of_two_ends(expectation: Any, family: ProductFamily, x: Floats, cells: Ints, size: int) -> Floats:
    """φ_ij by what column j contributes where column i is kept for sure, less where it is drawn for sure."""
    d = x.shape[1]

    def at(rows: KeptRows, weights: Floats) -> Floats:
        return np.stack([_of_column(expectation, rows, i, weights) for i in range(d)], axis=1)

    pairs = _in_blocks(at, expectation.laws_at_once, family, x, cells, size)
    pairs[:, np.arange(d), np.arange(d)] = 0.0
    # each pair was computed twice
    return np.asarray(0.5 * (pairs + pairs.swapaxes(1, 2)))


def _in_blocks(
    at: Callable[[KeptRows, Floats], Floats],
    laws: int,
    family: ProductFamily,
    x: Floats,
    cells: Ints,
    size: int,
) -> Floats:
    """Return what ``at`` gives for rows at nodes t and their weights, some rows at once."""
    t, weights = nodes_of_pairs(size)
    step = max(1, laws // (len(t) * x.shape[1])) if family.by_cell else 1
    blocks = [slice(start, start + step) for start in range(0, len(x), step)]
    parts = dict[int, Floats]()

    def compute(b: int) -> None:
        parts[b] = at(KeptRows.of(family, x[blocks[b]], cells[blocks[b]], t), weights)

    in_threads(compute, range(len(blocks)))
    return np.concatenate([parts[b] for b in range(len(blocks))])


def _of_column(expectation: Any, rows: KeptRows, i: int, weights: Floats) -> Floats:
    """φ_ij of one column i, (n, d, k)."""
    kept, drawn = (expectation.at(rows.holding(i, end)).gamma for end in (_KEPT, _DRAWN))
    differences = (kept - drawn).reshape(-1, weights.size, len(rows.alone), kept[0, 0].size)
    return np.asarray(np.einsum("t,ntdk->ndk", weights, differences))


def nodes_of_pairs(columns: int) -> tuple[Floats, Floats]:
    """Nodes t and 1 - t (T, 2), and weights (T,), for polynomials of a degree below ``columns`` by two."""
    nodes, weights = np.polynomial.legendre.leggauss(min(max(1, columns // 2), _MOST_NODES))
    return 0.5 * np.stack([1.0 + nodes, 1.0 - nodes], axis=1), 0.5 * weights


def indices_of_game(game: Floats) -> Floats:
    """φ_ij (m, m, k) from the values of all coalitions, (2, ..., 2, k)."""
    m = game.ndim - 1
    pairs = np.zeros((m, m, game.shape[-1]))
    sizes = np.indices((2,) * (m - 2)).sum(axis=0).reshape(-1)
    shares = np.array([1.0 / ((m - 1) * comb(m - 2, size)) for size in range(m - 1)])[sizes]
    for i, j in combinations(range(m), 2):
        changes = np.diff(np.diff(game, axis=j), axis=i).reshape(sizes.size, -1)
        pairs[i, j] = pairs[j, i] = shares @ changes
    return pairs


def beside_diagonal(pairs: Floats) -> Floats:
    """φ_ij / 2 beside the diagonal, and -½ Σ_j φ_ij on it, to which contributions are added; (n, d, d, k)."""
    half = 0.5 * pairs
    d = half.shape[1]
    half[:, np.arange(d), np.arange(d)] = -half.sum(axis=2)
    return half
