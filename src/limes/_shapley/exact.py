r"""Contributions of columns to a prediction: Shapley values of the game v(S) = E_w[f | x_S = ξ_S].

If every column keeps the row's value with probability t (`KeptColumn` of ``designs/_column.py``), then with
β_j(t) = E_t[f | column j kept] - E_t[f | column j drawn]

    φ_j = ∫₀¹ β_j(t) dt,    E_w f + Σ_j φ_j = f(ξ)

(Owen 1972, the multilinear extension). β_j(0) is what the value does alone, β_j(1) what it does last. β_j is
a polynomial of a degree below the number of columns that interact, so that half as many Gauss-Legendre nodes
are exact. Of more than 64 columns β_j turns fastest near t = 1, where hardly any column is drawn: nodes are
Gauss-Legendre's of u, t = 1 - (1 - u)(c (1 - u)² + 1 - c). They are few, and checked: by the total, and by
what they tell of β_j(0) and β_j(1), which they do not have. The polynomial through m values of an analytic
function misses others by about ρ^-m, and the integral by its square, ρ^-2m (Trefethen 2008). A row whose
errors are too large is computed with more nodes.

All forms have contributions exactly that have exact expectations under product designs, but for
kinks, whose Fourier series needs a density.

References
----------
Owen 1972, Multilinear extensions of games.
Trefethen 2008, Is Gauss quadrature better than Clenshaw-Curtis?
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache, reduce
from typing import Any, NamedTuple

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._expectations.forest import ForestExpectation
from limes._threads import in_threads
from limes.designs._column import SMALLEST_MASS
from limes.designs._product import KeptRows, ProductFamily
from limes.exceptions import ModelError
from limes.models.forms._base import Combination, Form, Reducible, Sum
from limes.models.forms._trees import Forest

# Nodes t and columns of the laws of a sum that are tabulated together: it has few numbers of each
_LAWS_OF_SUMS = 1 << 16
# Most nodes: 64 columns that all interact need no more
_MOST_NODES = 32
# Of more columns: numbers of nodes, which fill registers with both ends, the error that is allowed of each,
# as a share of a row's largest contribution, and c of their map
_NODES, _ALLOWED, _CURVED = (18, 30), (1e-11, 1e-9), 0.7
# A total must be as near to the prediction as this, as a share of the answers, whatever the nodes
_TOTAL = 1e-9
# The error of an integral is below this times the square of what is missed at the ends, over the largest β
_SLACK = 4.0


@dataclass(frozen=True, eq=False)
class RowContributions:
    """Contributions (n, d, k) at n rows, with base + Σ_j values = f(ξ)."""

    base: Floats  # E_w f, (n, k)
    values: Floats
    errors: Floats  # standard errors of the values, 0 where exact
    alone: Floats  # β(0)
    last: Floats  # β(1)
    calls: Ints  # of the model, (n,)
    base_errors: Floats  # standard errors of the base, (n, k)

    @classmethod
    def exact(cls, base: Floats, values: Floats, alone: Floats, last: Floats) -> RowContributions:
        calls = np.zeros(len(base), dtype=np.int64)
        return cls(base, values, np.zeros_like(values), alone, last, calls, np.zeros_like(base))

    @classmethod
    def joined(cls, parts: list[RowContributions]) -> RowContributions:
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))

    def with_complement(self) -> RowContributions:
        """Contributions to 1 - f and f, from those to f alone."""
        sums = ([-its, its] for its in (self.values, self.alone, self.last))
        values, alone, last = (np.concatenate(both, axis=2) for both in sums)
        base = np.concatenate([1.0 - self.base, self.base], axis=1)
        errors, of_base = np.repeat(self.errors, 2, axis=2), np.repeat(self.base_errors, 2, axis=1)
        return RowContributions(base, values, errors, alone, last, self.calls, of_base)

    def replaced(self, rows: Ints, others: RowContributions) -> RowContributions:
        """The same with others at some rows."""
        each = {its.name: getattr(self, its.name).copy() for its in fields(self)}
        for name, numbers in each.items():
            numbers[rows] = getattr(others, name)
        return RowContributions(**each)

    def take(self, rows: Ints) -> RowContributions:
        return RowContributions(*(getattr(self, each.name)[rows] for each in fields(self)))


def exact_contributions(
    form: Form, expectation: Any, family: ProductFamily, x: Floats, cells: Ints
) -> RowContributions:
    """Contributions at rows x in these cells (n, d); InputError or ModelError where a row is refused."""
    if isinstance(expectation, ForestExpectation):
        return _of_forest(expectation, family, x, cells)
    if isinstance(form, Combination):
        each = zip(form.parts, expectation.parts, strict=True)
        return combined(form, [exact_contributions(*part, family, x, cells) for part in each])
    size = interacting(form)
    rules = _rules(size)
    laws = expectation.laws_at_once if size > 1 else _LAWS_OF_SUMS
    step = max(1, laws // (rules[0].weights.size * x.shape[1])) if family.by_cell else 1
    blocks = [slice(start, start + step) for start in range(0, len(x), step)]
    parts = dict[int, RowContributions]()

    def compute(i: int) -> None:
        parts[i] = _block(expectation, family, x[blocks[i]], cells[blocks[i]], rules)

    in_threads(compute, range(len(blocks)))
    return RowContributions.joined([parts[i] for i in range(len(blocks))])


def _of_forest(
    expectation: ForestExpectation, family: ProductFamily, x: Floats, cells: Ints
) -> RowContributions:
    base, sums = expectation.contributions(family, x, cells)
    values, alone, last = (sums[:, which] for which in range(3))
    return RowContributions.exact(base, values, alone, last)


def combined(form: Combination, parts: list[RowContributions]) -> RowContributions:
    """Contributions to intercept + Σ_i weights[i] · part_i."""

    def total(name: str) -> Floats:
        # one part after the other, whatever the shape: `np.sum` adds a single column in another order
        return reduce(np.add, [w * getattr(part, name) for w, part in zip(form.weights, parts, strict=True)])

    return RowContributions.exact(
        total("base") + form.intercept, total("values"), total("alone"), total("last")
    )


class _Rule(NamedTuple):
    """A quadrature of β_j(t); the first and the last t are the ends, which have no weight."""

    t: Floats  # (T, 2), t and 1 - t
    weights: Floats  # (T,)
    # (2, T), what the nodes between the ends tell of β at the ends, less β there; none where they are exact
    ends: Floats
    allowed: float = _TOTAL  # error, as a share of the largest contribution

    def agrees(self, base: Floats, values: Floats, prediction: Floats, beta: Floats) -> Bools:
        """Whether the contributions of each row (n,) are exact, as far as their total and the ends tell."""
        missed, size = (
            np.abs(base + values.sum(axis=1) - prediction),
            np.abs(base) + np.abs(values).sum(axis=1),
        )
        agrees = missed <= min(self.allowed, _TOTAL) * size
        if self.ends.size:
            apart = np.abs(np.einsum("et,ntdk->nedk", self.ends, beta)).max(axis=(1, 2))
            largest, steepest = (np.abs(each).max(axis=axes) for each, axes in ((values, 1), (beta, (1, 2))))
            agrees &= _SLACK * apart**2 <= self.allowed * largest * steepest
        return np.asarray(agrees.all(axis=1))


def _block(
    expectation: Any, family: ProductFamily, x: Floats, cells: Ints, rules: tuple[_Rule, ...]
) -> RowContributions:
    """Contributions at rows by the first rule that is exact at each."""
    rule, *others = rules
    rows = KeptRows.of(family, x, cells, rule.t)
    moments, count = expectation.at(rows), rule.weights.size
    n, d = len(rows) // count, rows.cells.shape[1]
    beta = moments.gamma.reshape(n, count, d, -1)
    mean = moments.mean.reshape(n, count, -1)
    base, prediction = mean[:, 0], mean[:, -1]
    values = np.einsum("t,ntdk->ndk", rule.weights, beta)
    result = RowContributions.exact(base, values, beta[:, 0], beta[:, -1])
    agrees = rule.agrees(base, values, prediction, beta)
    if agrees.all():
        return result
    if not others:
        missed = np.abs(base + values.sum(axis=1) - prediction).max()
        raise ModelError(
            f"contributions miss the prediction by {missed:.1g}: more columns interact than "
            f"{count - 2} nodes of the quadrature are exact for"
        )
    again = np.flatnonzero(~agrees)
    return result.replaced(again, _block(expectation, family, x[again], cells[again], tuple(others)))


def quadrature(columns: int) -> tuple[Floats, Floats]:
    """Nodes t and 1 - t (T, 2), and weights, for polynomials of a degree below ``columns``."""
    return _with_ends(min(max(1, -(-columns // 2)), _MOST_NODES))


def _rules(columns: int) -> tuple[_Rule, ...]:
    """One that is exact, or of many columns one with few nodes and one with more."""
    if columns <= 2 * _MOST_NODES:
        return (_Rule(*quadrature(columns), np.zeros((2, 0))),)
    return tuple(_Rule(*_curved(count), allowed) for count, allowed in zip(_NODES, _ALLOWED, strict=True))


@cache  # the eigenvalues would be a tenth of the time of a row
def _with_ends(count: int) -> tuple[Floats, Floats]:
    """These nodes, and the ends."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return _and_ends(0.5 * np.stack([1.0 + nodes, 1.0 - nodes], axis=1), 0.5 * weights)


@cache
def _curved(count: int) -> tuple[Floats, Floats, Floats]:
    """Nodes that are closer near t = 1, and the ends, with weights; how the ends follow from the nodes."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    u, rest = 0.5 * (1.0 + nodes), 0.5 * (1.0 - nodes)
    drawn = rest * (_CURVED * rest**2 + 1.0 - _CURVED)
    # 1 - drawn, without its rounding near t = 0
    kept = u * (1.0 + _CURVED * rest * (1.0 + rest))
    speed = 3.0 * _CURVED * rest**2 + 1.0 - _CURVED
    t, weights_of_t = _and_ends(np.stack([kept, drawn], axis=1), 0.5 * weights * speed)
    # barycentric weights: Wang & Xiang 2012, On the convergence rates of Legendre approximation
    barycentric = (-1.0) ** np.arange(count) * np.sqrt((1.0 - nodes**2) * weights)
    ends = barycentric / (np.array([[-1.0], [1.0]]) - nodes)
    ends = np.pad(ends / ends.sum(axis=1, keepdims=True), ((0, 0), (1, 1)))
    ends[0, 0] = ends[1, -1] = -1.0
    ends.flags.writeable = False
    return t, weights_of_t, ends


def _and_ends(inside: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The nodes inside, and the ends: these have no weight, and only a division tells them from 0 and 1."""
    ends = np.array([[SMALLEST_MASS, 1.0], [1.0, SMALLEST_MASS]])
    t, weights = np.concatenate([ends[:1], inside, ends[1:]]), np.pad(weights, 1)
    t.flags.writeable = weights.flags.writeable = False
    return t, weights


def interacting(form: Any) -> int:
    """Return the largest number of columns that a part of the form multiplies with each other."""
    if isinstance(form, Reducible) and not isinstance(form, Forest):
        reduced = form.reduce()
        if isinstance(reduced, Sum):
            return 1
        return max(1, sum(function is not None for function in reduced.functions))
    return int(form.size)
