r"""SP-LIME's pick: a few rows whose explanations show most of what the model uses.

Row i *shows* the k features with its largest |β_ij|. With importances I_j = √Σ_i |β_ij|, a set V of rows has
the coverage c(V) = Σ_j I_j 1[some row of V shows j]. Picking the row with the largest gain, again and again,
reaches at least 1 - 1/e of the best set of that size; how much it has reached at least for these very rows is
known afterwards, as no row can add more to V than it adds now:

    c(best) <= c(V) + Σ of the k largest gains.

References
----------
Ribeiro, Singh & Guestrin 2016, section 4, algorithm 2; Nemhauser, Wolsey & Fisher 1978.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limes._arrays import Bools, Floats

GUARANTEE = 1.0 - np.exp(-1.0)


@dataclass(frozen=True)
class Pick:
    """Rows in the order in which they were picked, their coverage of all importance, and its bound.

    ``coverage`` and ``bound`` are shares of Σ I_j: no set of as many rows covers more than ``bound``.
    """

    rows: tuple[int, ...]
    coverage: float
    bound: float

    @property
    def ratio(self) -> float:
        """What is surely reached of the best pick; at least 1 - 1/e."""
        return self.coverage / self.bound if self.bound > 0 else 1.0


def shown(values: Floats, features: int) -> Bools:
    """Which features each row shows, (n, d): those with its largest coefficients, and none that are 0."""
    size = np.abs(values)
    order = np.argsort(-size, axis=1, kind="stable")[:, :features]
    found = np.zeros(size.shape, dtype=np.bool_)
    np.put_along_axis(found, order, np.take_along_axis(size, order, axis=1) > 0, axis=1)
    return found


def greedy(shows: Bools, importance: Floats, rows: int) -> Pick:
    """Pick rows greedily; shows (n, d), importance (d,) >= 0. Stops where nothing is left to gain."""
    left, picked = importance.copy(), []
    for _ in range(min(rows, len(shows))):
        gains = shows @ left
        best = int(np.argmax(gains))
        if not gains[best] > 0:
            break
        picked.append(best)
        left[shows[best]] = 0.0
    total = float(importance.sum())
    covered = total - float(left.sum())
    gains = np.sort(shows @ left)[::-1][:rows]
    bound = min(total, covered + float(gains.sum()), covered / GUARANTEE)
    if total == 0:
        return Pick((), 1.0, 1.0)
    return Pick(tuple(picked), covered / total, bound / total)
