r"""The perspective bound: every literal's own ridge, shared out by how much of the literal is chosen.

With λ ≤ the smallest eigenvalue of H, u'Hu = u'(H - λI)u + λ‖u‖², and for weights t ∈ [0, 1]^d, Σt = k, the
term λ Σ u_j²/t_j is what a k-sparse u pays at least. At any u, η the dual value is a lower bound:

    c - u'(H - λI)u + 2ηy - (sum of the k largest (b - (H - λI)u + η)_j²)/λ.

Good for few literals and many rows (d < m/10), useless when λ is small (d ≥ m/2).
"""

from __future__ import annotations

import numpy as np

from limes._arrays import Floats
from limes.surrogates.sparse import Sample

_STEPS = 60
# Beyond this many literals a row the smallest eigenvalue leaves nothing to share out
_CROWDED = 0.5
# Multiple of the squared constraint that is added: it holds, so nothing changes, and λ grows
_LIFT = 10.0
# A smallest eigenvalue below this share of the variances is a rounding
_SMALLEST = 1e-9


def perspective_bound(problem: Sample, k: int) -> float:
    """A lower bound of F over Σu = y and at most k nonzero entries; 0 where it has nothing to say."""
    d = problem.size
    if d < 2 or d >= _CROWDED * problem.values.size:
        return 0.0
    lift, y = _LIFT / d, problem.target
    gram = problem.gram + lift
    moments, square = problem.moments + lift * y, problem.square + lift * y**2
    ridge = 0.999 * float(np.linalg.eigvalsh(gram)[0])
    if ridge <= _SMALLEST * float(np.diag(gram).mean()):
        return 0.0
    rest = gram - ridge * np.eye(d)
    chosen, best = np.full(d, k / d), 0.0
    for _ in range(_STEPS):
        u, eta = _stationary(rest + np.diag(ridge / chosen), moments, y)
        scores = np.sort((moments - rest @ u + eta) ** 2)[::-1]
        bound = square - u @ rest @ u + 2.0 * eta * y - scores[:k].sum() / ridge
        best, chosen = max(best, float(bound)), _shared_out(np.abs(u), k)
    return best


def _stationary(matrix: Floats, moments: Floats, target: float) -> tuple[Floats, float]:
    """Solve matrix u = moments + η1 with Σu = target."""
    free, unit = np.linalg.solve(matrix, np.stack([moments, np.ones(moments.size)], axis=1)).T
    eta = float((target - free.sum()) / unit.sum())
    return free + eta * unit, eta


def _shared_out(sizes: Floats, k: int) -> Floats:
    """The t in (0, 1]^d with Σt = k that makes Σ u²/t least: t = min(1, |u|/τ)."""
    falling = np.sort(sizes)[::-1]
    tails = np.cumsum(falling[::-1])[::-1]
    levels = tails[:k] / (k - np.arange(k))
    full = np.flatnonzero(falling[:k] < levels * (1 + 1e-12))
    level = levels[full[0]] if full.size else levels[-1]
    return np.asarray(np.clip(sizes / max(level, 1e-300), 1e-7, 1.0))
