r"""The perspective bound: a ridge on every literal, divided by the share of the literal that is chosen.

With λ ≤ the smallest eigenvalue of H, u'Hu = u'(H - λI)u + λ‖u‖², and for weights t ∈ [0, 1]^d, Σt = k, the
term λ Σ u_j²/t_j is a lower bound of the ridge of a k-sparse u. At any u, η the dual value is a lower bound:

    c - u'(H - λI)u + 2ηy - (sum of the k largest (b - (H - λI)u + η)_j²)/λ.

Good for few literals and many rows (d < m/10), useless when λ is small (d ≥ m/2).
"""

from __future__ import annotations

import numpy as np

from limes._arrays import Floats
from limes.surrogates.sparse import SampleProblem

_STEPS = 60
# With more literals a row than this the smallest eigenvalue is too small for a bound
_CROWDED = 0.5
# Multiple of the squared constraint that is added: it is 0 on the hyperplane, and raises λ
_PERSPECTIVE_LIFT = 10.0
# A smallest eigenvalue below this share of the variances is a rounding error
_SMALLEST = 1e-9


def perspective_bound(problem: SampleProblem, k: int) -> float:
    """Return a lower bound of F over Σu = y and at most k nonzero entries; 0 where the bound is void."""
    d = problem.size
    if d < 2 or d >= _CROWDED * problem.values.size:
        return 0.0
    lift, y = _PERSPECTIVE_LIFT / d, problem.target
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
        best, chosen = max(best, float(bound)), _best_shares(np.abs(u), k)
    return best


def _stationary(matrix: Floats, moments: Floats, target: float) -> tuple[Floats, float]:
    """Solve matrix u = moments + η1 with Σu = target."""
    free, unit = np.linalg.solve(matrix, np.stack([moments, np.ones(moments.size)], axis=1)).T
    eta = float((target - free.sum()) / unit.sum())
    return free + eta * unit, eta


def _best_shares(sizes: Floats, k: int) -> Floats:
    """Return the t in (0, 1]^d with Σt = k that makes Σ u²/t least: t = min(1, |u|/τ)."""
    falling = np.sort(sizes)[::-1]
    tails = np.cumsum(falling[::-1])[::-1]
    levels = tails[:k] / (k - np.arange(k))
    full = np.flatnonzero(falling[:k] < levels * (1 + 1e-12))
    level = levels[full[0]] if full.size else levels[-1]
    return np.asarray(np.clip(sizes / max(level, 1e-300), 1e-7, 1.0))
