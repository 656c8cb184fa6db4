"""A good support quickly: exchange one literal at a time while that helps."""

from __future__ import annotations

import numpy as np

from limes._arrays import Floats, Ints
from limes.surrogates.on_support import summing_to

# An exchange must gain this share of the objective's scale: roundings do not count as gains
_WORTH = 1e-12
# A literal that others determine up to this share of its variance cannot enter
_DEPENDENT = 1e-9


def improved(gram: Floats, moments: Floats, square: float, target: float, support: Ints) -> Ints:
    """Exchange literals of the support for better ones until no single exchange lowers the objective."""
    chosen, value = support.copy(), _value(gram, moments, target, support)
    better = True
    while better:
        better = False
        for place in range(chosen.size):
            others = np.delete(chosen, place)
            entrant, lower = _best_entrant(gram, moments, target, others)
            if lower < value - _WORTH * square:
                chosen, value, better = np.append(others, entrant), lower, True
    return np.sort(chosen)


def _value(gram: Floats, moments: Floats, target: float, support: Ints) -> float:
    """Objective on a support, less its constant."""
    part = gram[np.ix_(support, support)]
    u, _ = summing_to(target, part, moments[support])
    return float(u @ part @ u - 2.0 * (moments[support] @ u))


def _best_entrant(gram: Floats, moments: Floats, target: float, others: Ints) -> tuple[int, float]:
    """The literal that lowers the objective most when it joins the others, and the objective then."""
    if not others.size:
        values = np.diag(gram) * target**2 - 2.0 * target * moments
        return int(np.argmin(values)), float(values.min())
    n = others.size
    u, eta = summing_to(target, gram[np.ix_(others, others)], moments[others])
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = gram[np.ix_(others, others)]
    system[n, n] = 0.0
    border = np.vstack([gram[others], np.ones(len(gram))])
    lifted = np.linalg.lstsq(system, border, rcond=None)[0]
    own = np.diag(gram) - (border * lifted).sum(axis=0)
    wish = moments + eta - gram[:, others] @ u
    allowed = own > _DEPENDENT * np.diag(gram)
    allowed[others] = False
    gains = np.where(allowed, wish**2 / np.where(allowed, own, 1.0), 0.0)
    best = int(np.argmax(gains))
    if not allowed[best]:
        return int(others[0]), np.inf
    return best, _value(gram, moments, target, others) - float(gains[best])
