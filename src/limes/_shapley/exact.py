r"""Contributions of columns to a prediction: Shapley values of the game v(S) = E_w[f | x_S = ξ_S].

If every column keeps the row's value with probability t (`KeptColumn` of ``designs/_column.py``), then with
β_j(t) = E_t[f | column j kept] - E_t[f | column j drawn]

    φ_j = ∫₀¹ β_j(t) dt,    E_w f + Σ_j φ_j = f(ξ)

(Owen 1972, the multilinear extension). β_j(0) is what the value does alone, β_j(1) what it does last. β_j is
a polynomial of a degree below the number of columns that interact, so that half as many Gauss-Legendre nodes
are exact. All forms have contributions exactly that have exact expectations under product designs, but for
kinks, whose Fourier series needs a density.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache, reduce
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.forest import ForestExpectation
from limes._threads import in_threads
from limes.designs._column import SMALLEST_MASS
from limes.designs._product import KeptRows, ProductFamily
from limes.exceptions import ModelError
from limes.models.forms._base import Combination, Form, Reducible, Sum
from limes.models.forms._trees import Forest

# Nodes t and columns of the laws of a sum that are tabulated together: it has few numbers of each
_LAWS_OF_SUMS = 1 << 16
# Most nodes: 64 columns that all interact need no more. Of more columns the total shows the error, and must
# be as near to the prediction as the last number, as a share of the answers
_MOST_NODES, _TOTAL = 32, 1e-9


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
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))

    def with_complement(self) -> RowContributions:
        """Contributions to 1 - f and f, from those to f alone."""
        sums = ([-its, its] for its in (self.values, self.alone, self.last))
        values, alone, last = (np.concatenate(both, axis=2) for both in sums)
        base = np.concatenate([1.0 - self.base, self.base], axis=1)
        errors, of_base = np.repeat(self.errors, 2, axis=2), np.repeat(self.base_errors, 2, axis=1)
        return RowContributions(base, values, errors, alone, last, self.calls, of_base)

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
    t, weights = quadrature(size)
    laws = expectation.laws_at_once if size > 1 else _LAWS_OF_SUMS
    step = max(1, laws // (t.size * x.shape[1])) if family.by_cell else 1
    blocks = [slice(start, start + step) for start in range(0, len(x), step)]
    parts = dict[int, RowContributions]()

    def compute(i: int) -> None:
        rows = KeptRows.of(family, x[blocks[i]], cells[blocks[i]], t)
        parts[i] = _block(expectation, rows, weights)

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


def _block(expectation: Any, rows: KeptRows, weights: Floats) -> RowContributions:
    moments, count = expectation.at(rows), weights.size
    n, d = len(rows) // count, rows.cells.shape[1]
    beta = moments.gamma.reshape(n, count, d, -1)
    mean = moments.mean.reshape(n, count, -1)
    base, prediction = mean[:, 0], mean[:, -1]
    values = np.einsum("t,ntdk->ndk", weights, beta)
    missed, size = np.abs(base + values.sum(axis=1) - prediction), np.abs(base) + np.abs(values).sum(axis=1)
    if not (missed <= _TOTAL * size).all():
        raise ModelError(
            f"contributions miss the prediction by {missed.max():.1g}: more columns interact than "
            f"{_MOST_NODES} nodes of the quadrature are exact for"
        )
    return RowContributions.exact(base, values, beta[:, 0], beta[:, -1])


def quadrature(columns: int) -> tuple[Floats, Floats]:
    """Nodes t and 1 - t (T, 2), and weights, for polynomials of a degree below ``columns``."""
    return _with_ends(min(max(1, -(-columns // 2)), _MOST_NODES))


@cache  # the eigenvalues would be a tenth of the time of a row
def _with_ends(count: int) -> tuple[Floats, Floats]:
    """These nodes, and the ends: the ends have no weight, and only a division tells them from 0 and 1."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    inside = 0.5 * np.stack([1.0 + nodes, 1.0 - nodes], axis=1)
    ends = np.array([[SMALLEST_MASS, 1.0], [1.0, SMALLEST_MASS]])
    t, weights = np.concatenate([ends[:1], inside, ends[1:]]), np.pad(0.5 * weights, 1)
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
