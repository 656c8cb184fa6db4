"""Oracles for texts and images: every subset, in 150 digits, by the normal equations.

Nothing here imports the library, and no theory is used: where almost always the same number of words is
deleted the equations are singular but for 1e-80, and 150 digits do not mind.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np

DIGITS = 150
BANDWIDTHS = (0.05, 0.1, 0.25, 1.0, np.inf)
KINDS = ("words", "superpixels")


def weights(kind, d, bandwidth):
    """ρ_s ψ(s/d) for s = 0..d, as decimals; a text of one word is left as it is once in 10^30 rows."""
    with localcontext() as context:
        context.prec = DIGITS
        if kind == "words":
            prior = [Decimal(0)] + [Decimal(1) / d] * d if d > 1 else [Decimal("1e-30"), Decimal(1)]
        else:
            prior = [Decimal(c) / 2**d for c in _binomials(d)]
        nu = Decimal(bandwidth)
        distances = [1 - (1 - Decimal(s) / d).sqrt() for s in range(d + 1)]
        return [p * (-((x / nu) ** 2) / 2).exp() for p, x in zip(prior, distances, strict=True)]


def _binomials(d):
    result = [1]
    for s in range(1, d + 1):
        result.append(result[-1] * (d - s + 1) // s)
    return result


def law(kind, d, bandwidth):
    """p_s for s = 0..d."""
    with localcontext() as context:
        context.prec = DIGITS
        result = weights(kind, d, bandwidth)
        total = sum(result)
        return [p / total for p in result]


def presence(p, k, r):
    """P(k given features kept, r given ones removed), k + r <= d, from the law p of the number removed."""
    with localcontext() as context:
        context.prec = DIGITS
        d = len(p) - 1
        terms = (q * math.perm(d - s, k) * math.perm(s, r) for s, q in enumerate(p))
        return sum(terms, Decimal(0)) / math.perm(d, k + r)


def subsets(d):
    """Every z, (2^d, d)."""
    return np.array([[i >> j & 1 for j in range(d)] for i in range(2**d)], dtype=float)


def surrogate(p, values):
    """Weighted least squares of values (2^d, ...) at ``subsets(d)`` on (1, z): intercept, coef, mean."""
    values = np.asarray(values, dtype=float)
    d = len(p) - 1
    z = np.column_stack([np.ones(2**d), subsets(d)]).astype(int)
    removed = d - z[:, 1:].sum(axis=1)
    with localcontext() as context:
        context.prec = DIGITS
        each = [p[s] / math.comb(d, s) for s in range(d + 1)]
        gram = sum(each[s] * (z[removed == s].T @ z[removed == s]).astype(object) for s in range(d + 1))
        flat = values.reshape(len(values), -1)
        exact = np.array([[Decimal(v) for v in row] for row in flat.tolist()], dtype=object)
        right = sum(each[s] * (z[removed == s].T.astype(object) @ exact[removed == s]) for s in range(d + 1))
        solution = _eliminated(gram, right)
    result = solution.astype(float).reshape(d + 1, *values.shape[1:])
    return result[0], result[1:], right[0].astype(float).reshape(values.shape[1:])


def _eliminated(matrix, right):
    """Gauss, on symmetric positive definite matrices of decimals."""
    matrix, right = matrix.copy(), right.copy()
    size = len(matrix)
    for i in range(size):
        for j in range(i + 1, size):
            factor = matrix[j, i] / matrix[i, i]
            matrix[j, i:] = matrix[j, i:] - factor * matrix[i, i:]
            right[j] = right[j] - factor * right[i]
    for i in reversed(range(size)):
        right[i] = (right[i] - sum(matrix[i, j] * right[j] for j in range(i + 1, size))) / matrix[i, i]
    return right


def assert_exact(explanation, answers, bandwidth=0.25, *, kind):
    """An explanation says exactly what all subsets' answers (2^d,) do."""
    d = explanation.coefficients.values.shape[1]
    intercept, coef, _ = surrogate(law(kind, d, bandwidth), answers)
    scale = np.abs(coef).max()
    assert scale > 1e-3
    assert explanation.method == "exact"
    np.testing.assert_allclose(explanation.coefficients.values[0], coef, rtol=1e-9, atol=1e-9 * scale)
    np.testing.assert_allclose(
        explanation.coefficients.intercepts[0], intercept, rtol=1e-9, atol=1e-9 * scale
    )
