"""Shapley values by definition: all coalitions of columns, on all values of a law without a density."""

from __future__ import annotations

import itertools
from math import factorial

import numpy as np


def answers(model, rows):
    values = model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows)
    return values.reshape(len(rows), -1)


def laws_of(explainer, row):
    """Values and probabilities of each column's law around the row: it has no density."""
    for column in explainer.design(row).coordinates:
        law, mass = column.marginal, column.probability
        values = np.concatenate([measure.value for measure in law.measures])
        weights = np.concatenate([measure.weight for measure in law.measures])
        yield values, weights * mass[law.owners]


def game(model, explainer, row):
    """v(S) = E_w[f | x_S = ξ_S] of all sets S, (2,) * d + (k,)."""
    laws, d = list(laws_of(explainer, row)), row.size
    values = np.empty((2,) * d, dtype=object)
    for kept in itertools.product((0, 1), repeat=d):
        axes = [(np.array([x]), np.ones(1)) if k else law for k, x, law in zip(kept, row, laws, strict=True)]
        rows = np.array(list(itertools.product(*(a for a, _ in axes))))
        weights = np.array([np.prod(q) for q in itertools.product(*(q for _, q in axes))])
        values[kept] = weights @ answers(model, rows)
    return values


def shapley(v):
    """Contributions (d, k), those of each value alone, and last."""
    d, result, alone, last = v.ndim, [], [], []
    for j in range(d):
        total = 0.0
        for others in itertools.product((0, 1), repeat=d - 1):
            size = sum(others)
            share = factorial(size) * factorial(d - 1 - size) / factorial(d)
            change = v[(*others[:j], 1, *others[j:])] - v[(*others[:j], 0, *others[j:])]
            total = total + share * change
            if size == 0:
                alone.append(change)
            if size == d - 1:
                last.append(change)
        result.append(total)
    return np.array(result), np.array(alone), np.array(last)


def interactions(v):
    """Shapley interaction indices of all pairs, (d, d, k), 0 on the diagonal."""
    d = v.ndim
    pairs = np.zeros((d, d, *np.shape(v[(0,) * d])))
    for i, j in itertools.combinations(range(d), 2):
        for others in itertools.product((0, 1), repeat=d - 2):
            size = sum(others)
            share = factorial(size) * factorial(d - 2 - size) / factorial(d - 1)
            before, between, after = others[:i], others[i : j - 1], others[j - 1 :]
            four = {
                (a, b): v[(*before, a, *between, b, *after)] for a, b in itertools.product((0, 1), repeat=2)
            }
            pairs[i, j] += share * (four[1, 1] - four[1, 0] - four[0, 1] + four[0, 0])
        pairs[j, i] = pairs[i, j]
    return pairs
