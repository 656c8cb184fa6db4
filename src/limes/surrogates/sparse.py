r"""Sparse surrogates that agree with the model at the instance: the problem, and what a solver returns.

A sparse explanation of f at x ∈ {±1}^d is w with at most k nonzero entries and w·x = y = f(x), of least
fidelity error F(w) = E (w·z - f(z))². With s = z∘x and u = w∘x the constraint is Σ_j u_j = y, whatever x is,
and F is a quadratic function of u. It comes in two kinds, and every solver says which it takes:

- ``Population``: the law itself. E[s sᵀ] is ρ² 11ᵀ + a I, so that only g = E[s f] is needed;
- ``Sample``: m rows, the mean instead of the expectation (the 2025 paper's problem P3), so that the rows'
  Gram matrix is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

import numpy as np

from limes._arrays import Floats, Ints
from limes._checks import is_count
from limes.designs.literals import FlipLaw
from limes.exceptions import InputError

# Roundings: a coefficient may pass ±1 by so much before the box counts as left, and a gap its tolerance
_ROUNDINGS = 1e-9


@dataclass(frozen=True, eq=False)
class SparseSolution:
    """A sparse explanation, and how good it is known to be.

    Attributes
    ----------
    w
        (d,) coefficients of the literals; w·x = f(x).
    support
        Positions of the nonzero ones, ascending.
    objective
        F(w) of the problem that was solved.
    lower_bound
        No explanation of this size has a smaller objective.
    gap
        (objective - lower_bound) / objective, 0 where both are 0.
    proved
        Whether w is optimal, up to the tolerance that was asked for.
    nodes
        Of a search, or iterations.
    seconds
        Time taken.
    """

    w: Floats
    support: Ints
    objective: float
    lower_bound: float
    gap: float
    proved: bool
    nodes: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Population:
    r"""F(u) = a‖u‖² - 2 g·u + ρ²y² + E f² on Σu = y, from the law itself.

    Attributes
    ----------
    instance
        x, (d,).
    target
        y = f(x).
    law
        Of the flips: ρ and a.
    gamma
        Γ_j = Cov(s_j, f), (d,); g = Γ + ρ E f.
    mean, variance
        E f and Var f. The variance moves the objective alone, and may be NaN.
    """

    instance: Floats
    target: float
    law: FlipLaw
    gamma: Floats
    mean: float
    variance: float

    @property
    def size(self) -> int:
        """Number of literals d."""
        return self.instance.size

    @property
    def optimum(self) -> Floats:
        """The dense optimum up to a common shift, (d,): F(u) = a‖u - optimum‖² + constant on Σu = y."""
        return self.gamma / self.law.variance

    def objective(self, u: Floats) -> float:
        """F(u), where Σu = y: a‖u‖² - 2 Γ·u + Var f + (E f - ρy)²."""
        spread = self.law.variance * (u @ u) - 2.0 * (self.gamma @ u)
        return float(spread + self.variance + (self.mean - self.law.correlation * self.target) ** 2)

    def on_support(self, support: Ints) -> tuple[Floats, Floats]:
        """Gram matrix and moments of the chosen literals, on the hyperplane."""
        return self.law.variance * np.eye(support.size), self.gamma[support]


@dataclass(frozen=True, eq=False)
class Sample:
    r"""F(u) = mean (s_i·u - f_i)² over m rows, on Σu = y.

    Attributes
    ----------
    instance
        x, (d,).
    target
        y = f(x).
    signs
        s_i = z_i∘x, (m, d), of ±1.
    values
        f(z_i), (m,).
    """

    instance: Floats
    target: float
    signs: Floats
    values: Floats

    @property
    def size(self) -> int:
        """Number of literals d."""
        return self.instance.size

    def objective(self, u: Floats) -> float:
        """F(u), by the residuals."""
        support = np.flatnonzero(u)
        residual = self.signs[:, support] @ u[support] - self.values
        return float(residual @ residual / residual.size)

    @cached_property
    def center(self) -> float:
        """ρ̂, the mean of all signs."""
        return float(self.signs.mean())

    @cached_property
    def gram(self) -> Floats:
        """Of the centred signs s - ρ̂, (d, d): on the hyperplane they give the same errors."""
        rows = self.signs.astype(np.float32)
        # whole numbers up to m: single precision holds them exactly, and is twice as fast
        counts = (rows.T @ rows).astype(np.float64) if len(rows) < 2**24 else self.signs.T @ self.signs
        means = self.signs.mean(axis=0)
        shift = self.center * (means[:, None] + means[None, :]) - self.center**2
        return np.asarray(counts / len(rows) - shift)

    @cached_property
    def centred(self) -> Floats:
        """What the centred signs have to meet: f - ρ̂y, (m,)."""
        return self.values - self.center * self.target

    @cached_property
    def moments(self) -> Floats:
        """Mean of (s - ρ̂) (f - ρ̂y), (d,)."""
        return np.asarray(self.centred @ self.signs / self.values.size - self.center * self.centred.mean())

    @property
    def square(self) -> float:
        """Mean of (f - ρ̂y)²."""
        return float(self.centred @ self.centred / self.centred.size)

    def on_support(self, support: Ints) -> tuple[Floats, Floats]:
        """Gram matrix and moments of the chosen literals."""
        part = self.signs[:, support] - self.center
        return part.T @ part / len(part), part.T @ self.centred / len(part)


def check_sparsity(k: object, size: int) -> None:
    """Refuse a number of literals that cannot be had."""
    if not is_count(k):
        raise InputError(f"k is the number of literals of an explanation, a whole number >= 1; got {k!r}")
    if k > size:
        raise InputError(f"k={k} literals are asked for, but there are {size}; use k <= {size}")


def solution(
    problem: Population | Sample,
    u: Floats,
    *,
    began: float,
    lower_bound: float | None = 0.0,
    tolerance: float = 0.0,
    nodes: int = 0,
) -> SparseSolution:
    """Report u, fitted again inside the box |u| ≤ 1 on its support should it leave it.

    ``lower_bound=None``: u is the optimum, its own objective is the bound. ``began`` is a ``perf_counter``.
    """
    objective = problem.objective(u)
    bound = objective if lower_bound is None else min(lower_bound, objective)
    if np.abs(u).max() > 1.0 + _ROUNDINGS:
        u = _inside(problem, np.flatnonzero(u))
        objective = problem.objective(u)
    gap = 0.0 if objective == bound else (objective - bound) / objective
    return SparseSolution(
        w=u * problem.instance,
        support=np.flatnonzero(u),
        objective=objective,
        lower_bound=bound,
        gap=gap,
        proved=gap <= tolerance + _ROUNDINGS,
        nodes=nodes,
        seconds=perf_counter() - began,
    )


def _inside(problem: Population | Sample, support: Ints) -> Floats:
    from limes.surrogates.on_support import boxed

    u = np.zeros(problem.size)
    u[support] = boxed(*problem.on_support(support), problem.target)
    return u
