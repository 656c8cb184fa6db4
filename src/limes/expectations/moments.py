"""Moments: all that a surrogate needs to know of the model, and how sure of it one is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects


class _Rows:
    """Arrays whose first axis, where there are several designs, is the design."""

    def taken(self, rows: Ints) -> Self:
        """Pick designs, repeatedly or not."""
        return self._each(lambda value: value[rows] if isinstance(value, np.ndarray) else value.taken(rows))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        values = (getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]
        return sum(value.nbytes for value in values if value is not None)

    def _each(self, change: Callable[[Any], Any]) -> Self:
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return type(self)(
            **{name: None if value is None else change(value) for name, value in values.items()}
        )


@dataclass(frozen=True, eq=False)
class Sampled(_Rows):
    """What is known of a sample beyond its moments.

    Attributes
    ----------
    surrogate_errors
        Standard errors of the surrogate at the instance, () or (k,).
    fidelity_errors, share_errors
        Standard errors of R², () or (k,), and of the features' shares of it, (d,) or (d, k).
    excess
        The largest error of a coefficient in units of what was allowed; 0 where nothing was asked for.
    control
        Name of the control variate.
    unlike
        Rows whose answer differs from the most frequent one, () or (k,).
    carriers
        Effective number of independent rows that a coefficient's error rests on, the median over features,
        () or (k,); infinite where nothing is left to be sampled.
    """

    surrogate_errors: Floats
    fidelity_errors: Floats
    share_errors: Floats
    excess: Floats
    control: Objects
    unlike: Ints
    carriers: Floats


@dataclass(frozen=True, eq=False)
class Moments(_Rows):
    """Expectations of f under w; a last axis for k outputs, a first one for n designs.

    Attributes
    ----------
    mean
        E_w f, () or (k,).
    gamma
        Centred Γ_j = Cov_w(h_j, f), (d,) or (d, k).
    coef_errors
        Standard errors of β = Σ⁻¹Γ, same shape; 0 where exact. Those of Γ would not do: its entries are
        correlated where features are.
    variance
        Var_w f, () or (k,); NaN where it was not computed.
    calls
        Rows that the model was asked for.
    converged
        Whether the accuracy that was asked for has been reached.
    sampled
        None where exact.
    """

    mean: Floats
    gamma: Floats
    coef_errors: Floats
    variance: Floats
    calls: Ints = field(default_factory=lambda: np.zeros((), dtype=np.int64))
    converged: Bools = field(default_factory=lambda: np.ones((), dtype=np.bool_))
    sampled: Sampled | None = None

    @classmethod
    def exact(cls, mean: Floats, gamma: Floats, *, designs: tuple[int, ...] = ()) -> Moments:
        """Moments without error, of one design or of ``designs`` = (n,) of them."""
        return cls(
            mean=mean,
            gamma=gamma,
            coef_errors=np.zeros_like(gamma),
            variance=np.full(mean.shape, np.nan),
            calls=np.zeros(designs, dtype=np.int64),
            converged=np.ones(designs, dtype=np.bool_),
        )


def stacked(single: Sequence[Moments]) -> Moments:
    """Moments of n designs from those of each."""
    merged: Moments = _merged(single, np.stack)
    return merged


def joined(many: Sequence[Moments]) -> Moments:
    """Moments of all designs from those of several groups."""
    merged: Moments = _merged(many, np.concatenate)
    return merged


def _merged(parts: Sequence[Any], merge: Callable[[list[Any]], Any]) -> Any:
    def together(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        if isinstance(values[0], np.ndarray | np.generic):
            return merge(values)
        return None if values[0] is None else _merged(values, merge)

    return type(parts[0])(**{f.name: together(f.name) for f in fields(parts[0])})
