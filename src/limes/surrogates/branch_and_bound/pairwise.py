r"""The pairwise bound, compiled: the most that n further literals can gain.

At a node some literals S have been swept in (A is the Schur complement of the Gram matrix, r = b + η1 the
remaining moments, with η the multiplier of the hyperplane) and n more may join. A set T of them gains

    max_v  2 r·v - v'Av,

with v scaled so that A has a unit diagonal and correlations e. Each v_i² and 2 r_i v_i is shared out evenly
among the n - 1 partners of i, and every pair maximised separately:

    gain(T) ≤ 1/(n-1) Σ_pairs g_ij,   g_ij = (r_i² + r_j² - 2 c r_i r_j)/(1 - c²),   c = (n-1) e_ij,

so that, with q_i = (sum of the n - 1 largest g_i·)/(2(n-1)), gain(T) ≤ Σ_{i∈T} q_i. Correlations beyond
τ = 0.9/(n-1) are clipped to ±τ, and the excess is charged to the diagonal, as
-2 e v_i v_j ≤ -2 sgn(e) τ v_i v_j + (|e| - τ)(v_i² + v_j²). The bound is exact for n ≤ 2, and good where
literals are nearly uncorrelated, as they are in a sample of many rows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from limes._arrays import Floats, Ints

# Correlations times (n - 1) are kept below this: at 1 a pair's gain is unbounded
_CLIP = 0.9
# A diagonal or determinant below this share counts as 0: its gain is not bounded
_NOTHING = 1e-3


@njit(cache=True, nogil=True, error_model="numpy")
def _largest(row: Floats, top: Floats) -> float:
    """Sum of the ``top.size`` largest numbers ≥ 0 of a row."""
    top[:] = 0.0
    for value in row:
        if value > top[0]:
            place = 0
            while place + 1 < top.size and top[place + 1] < value:
                top[place] = top[place + 1]
                place += 1
            top[place] = value
    return float(top.sum())


@njit(cache=True, nogil=True, error_model="numpy")
def couplings(gram: Floats, slots: int) -> tuple[Floats, Floats, Floats]:
    """Scale (p,) of r, and of every pair c and 1/(1 - c²), both (p, p); the latter inf where unbounded."""
    p, partners = len(gram), slots - 1
    scale = np.empty(p)
    for i in range(p):
        scale[i] = 1.0 / np.sqrt(gram[i, i])
    clip = _CLIP / partners
    room, row, top = np.empty(p), np.empty(p), np.empty(partners)
    cross, share = np.empty((p, p)), np.empty((p, p))
    for i in range(p):
        for j in range(p):
            e = gram[i, j] * scale[i] * scale[j]
            cross[i, j] = min(max(e, -clip), clip)
            row[j] = abs(e) - clip
        row[i] = 0.0
        room[i] = 1.0 - _largest(row, top)
    for i in range(p):
        for j in range(p):
            if room[i] <= _NOTHING or room[j] <= _NOTHING:
                share[i, j] = np.inf
                continue
            cross[i, j] *= partners / np.sqrt(room[i] * room[j])
            rest = 1.0 - cross[i, j] ** 2
            share[i, j] = 1.0 / rest if rest > _NOTHING else np.inf
        cross[i, i], share[i, i] = 0.0, 0.0
    for i in range(p):
        scale[i] /= np.sqrt(max(room[i], _NOTHING))
    return scale, cross, share


@njit(cache=True, nogil=True, error_model="numpy")
def _shares(wish: Floats, cross: Floats, share: Floats, slots: int, shares: Floats) -> None:
    """Write q_i, (p,), of scaled r into ``shares``; inf where the gain is not bounded."""
    p, partners = wish.size, slots - 1
    top = np.empty(partners)
    for i in range(p):
        residual, square = wish[i], wish[i] ** 2
        top[:] = 0.0
        for j in range(p):
            gain = np.inf
            if share[i, j] < np.inf:
                gain = (square + wish[j] * (wish[j] - 2.0 * cross[i, j] * residual)) * share[i, j]
            if gain > top[0]:
                place = 0
                while place + 1 < partners and top[place + 1] < gain:
                    top[place] = top[place + 1]
                    place += 1
                top[place] = gain
        shares[i] = top.sum() / (2.0 * partners)


@njit(cache=True, nogil=True, error_model="numpy")
def _floor(eta: float, square: float, target: float, swept: Floats) -> float:
    """The objective's bound without further literals: c + 2ηy - (gain of those swept in)."""
    return float(square + 2.0 * eta * target - (swept[0] + 2.0 * eta * swept[1] + eta * eta * swept[2]))


@njit(cache=True, nogil=True, error_model="numpy")
def tighten(
    gram: Floats,
    moments: Floats,
    ones: Floats,
    swept: Floats,
    slots: int,
    square: float,
    target: float,
    eta: float,
    enough: float,
    tries: int,
) -> tuple[float, float, Floats]:
    """Search a few steps for the best bound over η; return η, the floor, and every literal's share q (p,).

    The bound is floor - (sum of the ``slots`` largest q), concave in η; steps end where it reaches
    ``enough``. ``moments`` and ``ones`` are b and 1 after the sweep.
    """
    scale, cross, share = couplings(gram, slots)
    p = scale.size
    wish, q, best_q, top = np.empty(p), np.empty(p), np.empty(p), np.empty(slots)
    best, best_eta, size = -np.inf, eta, 0.0
    for i in range(p):
        size = max(size, abs(moments[i] + eta * ones[i]))
    step, upward, trial = 0.2 * size, True, eta
    for attempt in range(tries + 1):
        for i in range(p):
            wish[i] = (moments[i] + trial * ones[i]) * scale[i]
        _shares(wish, cross, share, slots, q)
        bound = _floor(trial, square, target, swept) - _largest(q, top)
        if bound > best or attempt == 0:
            if attempt > 0:
                step *= 1.5
            best, best_eta = bound, trial
            best_q[:] = q
        elif upward:
            upward = False
        else:
            upward = True
            step *= 0.35
        if best >= enough or not step > 1e-4 * size:
            break
        trial = best_eta + (step if upward else -step)
    return best_eta, _floor(best_eta, square, target, swept), best_q


@njit(cache=True, nogil=True, error_model="numpy")
def best_pair(
    gram: Floats, moments: Floats, ones: Floats, swept: Floats, square: float, target: float, below: float
) -> tuple[float, int, int]:
    """Try all pairs of literals; return the lowest objective and its pair, -1 if none is below ``below``.

    With S of gains (α, β, δ) = (b'H⁻¹b, b'H⁻¹1, 1'H⁻¹1) the objective is c - α + (β - y)²/δ.
    """
    p = len(gram)
    first, second = -1, -1
    for i in range(p):
        for j in range(i + 1, p):
            a, b, c = gram[i, i], gram[j, j], gram[i, j]
            m, n, s, t = moments[i], moments[j], ones[i], ones[j]
            det = a * b - c * c
            if det <= 1e-9 * a * b:
                # the second is determined by the first
                b, c, n, t, det = 1.0, 0.0, 0.0, 0.0, a
            alpha = swept[0] + (b * m * m - 2.0 * c * m * n + a * n * n) / det
            if square - alpha >= below:
                continue
            beta = swept[1] + (b * m * s - c * (m * t + n * s) + a * n * t) / det
            delta = swept[2] + (b * s * s - 2.0 * c * s * t + a * t * t) / det
            objective = square - alpha + (beta - target) ** 2 / delta
            if objective < below:
                below, first, second = objective, i, j
    return below, first, second


@njit(cache=True, nogil=True, error_model="numpy")
def swept_in(
    gram: Floats, moments: Floats, ones: Floats, swept: Floats, place: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """Sweep one literal in and exclude those before it: Gram matrix, moments, ones and gains."""
    after = len(gram) - place - 1
    pivot = gram[place, place]
    schur = np.empty((after, after))
    rest, unit = np.empty(after), np.empty(after)
    for i in range(after):
        factor = gram[place + 1 + i, place] / pivot
        for j in range(after):
            schur[i, j] = gram[place + 1 + i, place + 1 + j] - factor * gram[place, place + 1 + j]
        rest[i] = moments[place + 1 + i] - factor * moments[place]
        unit[i] = ones[place + 1 + i] - factor * ones[place]
    gains = np.array([moments[place] ** 2, moments[place] * ones[place], ones[place] ** 2]) / pivot
    return schur, rest, unit, swept + gains


@njit(cache=True, nogil=True)
def submatrix(gram: Floats, places: Ints) -> Floats:
    """Return rows and columns of a matrix."""
    part = np.empty((places.size, places.size))
    for i in range(places.size):
        for j in range(places.size):
            part[i, j] = gram[places[i], places[j]]
    return part
