"""Moments: all that a surrogate needs to know of the model, and how sure of it one is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Moments:
    """Expectations of f under w; a last axis for k outputs, a first one for n designs.

    Attributes
    ----------
    mean
        E_w f, () or (k,).
    gamma
        Centred Γ_j = Cov_w(h_j, f), (d,) or (d, k).
    gamma_errors
        Standard errors of gamma, same shape; 0 where exact.
    variance
        Var_w f, () or (k,); NaN where it was not computed.
    calls
        Rows that the model was asked for.
    converged
        Whether the accuracy that was asked for has been reached.
    """

    mean: Floats
    gamma: Floats
    gamma_errors: Floats
    variance: Floats
    calls: Ints = field(default_factory=lambda: np.zeros((), dtype=np.int64))
    converged: Bools = field(default_factory=lambda: np.ones((), dtype=np.bool_))

    @classmethod
    def exact(cls, mean: Floats, gamma: Floats, *, designs: tuple[int, ...] = ()) -> Moments:
        """Moments without error, of one design or of ``designs`` = (n,) of them."""
        return cls(
            mean=mean,
            gamma=gamma,
            gamma_errors=np.zeros_like(gamma),
            variance=np.full(mean.shape, np.nan),
            calls=np.zeros(designs, dtype=np.int64),
            converged=np.ones(designs, dtype=np.bool_),
        )

    def taken(self, rows: Ints) -> Moments:
        """Pick designs, repeatedly or not."""
        return Moments(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


def stacked(single: Sequence[Moments]) -> Moments:
    """Moments of n designs from those of each."""
    return _merged(single, np.stack)


def joined(many: Sequence[Moments]) -> Moments:
    """Moments of all designs from those of several groups."""
    return _merged(many, np.concatenate)


def _merged(parts: Sequence[Moments], merge: Callable[[list[Any]], Any]) -> Moments:
    return Moments(**{f.name: merge([getattr(p, f.name) for p in parts]) for f in fields(Moments)})
