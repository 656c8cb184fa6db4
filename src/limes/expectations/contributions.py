r"""Variances of weighted sums of residuals, from rows that were drawn together.

A coefficient's error is Σ_i W_i e_i. Rows of one group (of one order of the features, ``designs/subsets.py``)
depend on each other, groups do not, so that with C_g = Σ_{i in g} W_i e_i

    variance = Σ_g C_g²,      effective groups = (Σ_g C_g²)² / Σ_g C_g⁴.

A sum that rests on a few groups is about as sure as a count: of λ expected groups with an error of one size,
Poisson many occur, and ±1.96 √(count + 2.34) holds λ in 94 % of samples whatever λ is, none seen included
(1.96² · 2.34 = 3², the rule of three). The variance is therefore multiplied by 1 + 2.34 / effective groups.

Scrambled sequences are independent of each other. Between them sums vary by another factor than groups say:

- less, as points fill space evenly. That factor is pooled over all sums, taken with caution, and given up as
  the groups that carry a sum become few: even points do not make rare events any more regular.
- more, as a sequence may repeat one piece of information. Where the sums of one coefficient differ by more
  than chance allows, their own variance counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Floats, Ints

# Groups that a count of few must be raised by, see above
UNSEEN = (3.0 / 1.96) ** 2
# Pooled gains of sequences are not believed in full: single coefficients may gain less than the average one
_CAUTION = 1.5
# Chance that the few sums of a small design make the gain look larger than it is
_DOUBT = 0.1
# Chance that sequences of one coefficient differ by so much though nothing is wrong
_CHANCE = 0.01
# What least squares leave of a row that decides its own fit
_LEAST_LEFT = 0.01
# Effective groups below which no gain is believed
_FEW = 16.0


@dataclass(frozen=True, eq=False)
class Together:
    """Which of n rows were drawn together.

    Attributes
    ----------
    group
        (n,) number of the group of each row; rows of different groups are independent within a sequence.
    sequence
        (n,) number of the sequence of each row.
    """

    group: Ints
    sequence: Ints

    @cached_property
    def _sorted(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.group, kind="stable")
        return order, np.flatnonzero(np.diff(self.group[order], prepend=-1))

    def sums(self, contributions: Floats) -> Floats:
        """Sums over groups, (m, n) -> (m, groups)."""
        order, starts = self._sorted
        if starts.size == order.size:
            return contributions
        return np.asarray(np.add.reduceat(contributions[:, order], starts, axis=1))

    def unbiased(self, residuals: Floats, regressors: Floats, weights: Floats) -> Floats:
        """Residuals (n, k) of least squares, made as large as errors: (I - H_g)^(-½) r_g in each group g.

        H_g are the rows and columns of the group in regressors (n, p) · weights (p, n); for a row of its own
        that is r / √(1 - leverage). With it the variance of a coefficient is unbiased if all errors have the
        same variance (Bell & McCaffrey 2002).
        """
        order, starts = self._sorted
        sizes = np.diff(starts, append=order.size)
        found = np.empty_like(residuals)
        for size in np.unique(sizes):
            rows = order[starts[sizes == size][:, None] + np.arange(size)]
            hat = regressors[rows] @ weights.T[rows].transpose(0, 2, 1)
            values, vectors = np.linalg.eigh(np.eye(size) - hat)
            root = vectors / np.sqrt(np.maximum(values, _LEAST_LEFT))[:, None, :] @ vectors.transpose(0, 2, 1)
            found[rows] = root @ residuals[rows]
        return found


@dataclass(frozen=True, eq=False)
class Contributions:
    """Contributions of groups to m sums of k outputs.

    Attributes
    ----------
    plain
        Σ_g C_g², (m, k).
    effective
        Effective number of groups that carry each sum, (m, k); infinite where there is no error.
    between
        Variance of the sums by how sequences differ, (m, k).
    sequences
        How many there are.
    """

    plain: Floats
    effective: Floats
    between: Floats
    sequences: int

    @classmethod
    def of(cls, influence: Floats, errors: Floats, rows: Together) -> Contributions:
        """Of influence W (m, n) and errors e (n, k) of rows."""
        sums = [rows.sums(influence * errors[:, k]) for k in range(errors.shape[1])]
        squares = [c**2 for c in sums]
        plain = np.stack([s.sum(axis=1) for s in squares], axis=1)
        effective = np.stack([_effective(s, s.sum(axis=1, keepdims=True)) for s in squares], axis=1)
        sequence = rows.sequence
        folds = np.unique(sequence)
        of_sequences = np.stack([influence[:, sequence == s] @ errors[sequence == s] for s in folds])
        between = of_sequences.var(axis=0) * folds.size**2 / (folds.size - 1)
        return cls(plain, effective, between, folds.size)

    @cached_property
    def ratio(self) -> Floats:
        """What sequences say of the variance, in units of what groups say, (m, k)."""
        return np.divide(self.between, self.plain, out=np.ones_like(self.plain), where=self.plain > 0)

    @cached_property
    def gain(self) -> float:
        """By what factor sequences change variances, pooled over all sums."""
        live = self.plain > 0
        if not live.any():
            return 1.0
        pooled = float(self.ratio[live].mean())
        freedom = (self.sequences - 1) * live.any(axis=1).sum()
        caution = max(_CAUTION, 1.0 / _mean_square(_DOUBT, int(freedom)))
        return max(min(1.0, caution * pooled), pooled)

    def variances(self, gain: float, least: Floats) -> Floats:
        """Variances of the sums, (m, k), where sequences change them by a factor ``gain``.

        What was not seen adds ``least`` (m, k) to them, or more.
        """
        few = np.minimum(1.0, (_FEW / self.effective) ** 2)
        factor = np.maximum(gain, gain + (1.0 - gain) * few)
        surprising = self.ratio > _mean_square(1.0 - _CHANCE, self.sequences - 1)
        factor = np.where(surprising, np.maximum(factor, self.ratio), factor)
        seen = factor * self.plain
        return seen + np.maximum(seen * UNSEEN / self.effective, least)


def _effective(squares: Floats, total: Floats) -> Floats:
    """Effective number of squares (m, groups), given their sums (m, 1): 1 over the sum of squared shares."""
    share = np.divide(squares, total, out=np.zeros_like(squares), where=total > 0)
    concentration = (share**2).sum(axis=1)
    unknown = np.full_like(concentration, np.inf)
    return np.asarray(np.divide(1.0, concentration, out=unknown, where=concentration > 0))


def _mean_square(level: float, freedom: int) -> float:
    """Quantile of the mean square of so many standard normal numbers."""
    from scipy.special import chdtri

    return float(chdtri(freedom, 1.0 - level) / freedom)
