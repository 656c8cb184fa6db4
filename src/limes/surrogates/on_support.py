"""Least squares on a chosen support, where the coefficients must add up to a target."""

from __future__ import annotations

import numpy as np

from limes._arrays import Bools, Floats
from limes.exceptions import InputError


def summing_to(target: float, gram: Floats, moments: Floats) -> tuple[Floats, float]:
    """Minimise u'Hu - 2b·u over Σu = target: u (n,), and η with Hu = b + η1.

    Literals that depend on each other share what they have: the solution of least norm.
    """
    n = moments.size
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = gram
    system[n, n] = 0.0
    found, *_ = np.linalg.lstsq(system, np.append(moments, target), rcond=None)
    return found[:n], -float(found[n])


def boxed(gram: Floats, moments: Floats, target: float) -> Floats:
    """Minimise u'Hu - 2b·u over Σu = target and |u| ≤ 1, (n,).

    An active-set method: it starts from equal coefficients, which lie in the box, walks to the optimum of the
    free ones, stops at the first bound on the way, and frees the bound that pulls inwards most.

    Raises
    ------
    InputError
        If no such u exists: |target| > n.
    """
    n = moments.size
    if abs(target) > n:
        raise InputError(f"{n} coefficients in [-1, 1] cannot add up to {target}: use a larger k, or a scale")
    u, free = np.full(n, target / n), np.ones(n, dtype=np.bool_)
    for _ in range(4 * 2 ** min(n, 20)):
        goal, eta = _optimum_of(free, u, gram, moments, target)
        step, blocked = _room(u, goal - u)
        u = u + step * (goal - u)
        if blocked >= 0:
            u[blocked], free[blocked] = np.sign(u[blocked]), False
            continue
        inward = np.where(free, 0.0, np.sign(u) * (gram @ u - moments - eta))
        if inward.max() <= 1e-12 * (1.0 + np.abs(moments).max()):
            break
        free[np.argmax(inward)] = True
    return np.asarray(np.clip(u, -1.0, 1.0))


def _optimum_of(free: Bools, u: Floats, gram: Floats, moments: Floats, target: float) -> tuple[Floats, float]:
    """Optimum over the free coefficients, the others as they are, and η."""
    if not free.any():
        return u, _level_between(gram @ u - moments, u > 0)
    goal, held = u.copy(), np.where(free, 0.0, u)
    own = moments - gram @ held
    goal[free], eta = summing_to(target - held.sum(), gram[np.ix_(free, free)], own[free])
    return goal, eta


def _level_between(pulls: Floats, high: Bools) -> float:
    """η halfway between what holds the coefficients at 1 and what holds those at -1."""
    holds_up = float(pulls.max(where=high, initial=-np.inf))
    holds_down = float(pulls.min(where=~high, initial=np.inf))
    if high.all():
        return holds_up
    return 0.5 * (holds_up + holds_down) if high.any() else holds_down


def _room(u: Floats, move: Floats) -> tuple[float, int]:
    """How far along a move the box reaches, at most 1, and which coefficient ends it (-1: none)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(move == 0.0, np.inf, (np.sign(move) - u) / move)
    first = int(np.argmin(reach))
    return (1.0, -1) if reach[first] >= 1.0 else (max(0.0, float(reach[first])), first)
