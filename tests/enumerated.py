"""Coefficients of a model at a row of a table with few values, from the model's answers to all of them.

Nothing here imports the library.
"""

from __future__ import annotations

from itertools import product

import numpy as np


def table_of(values, rows, rng):
    """A table (rows, d) in which every value of every column occurs."""
    table = np.stack([v[rng.integers(v.size, size=rows)] for v in values], axis=1)
    for j, v in enumerate(values):
        table[: v.size, j] = v
    return table


def explained(predict, values, table, row, bandwidth):
    """Coefficients (d, ...), intercept (...) and the largest answer of LIME's limit, columns independent."""
    masses = []
    for v, column, x in zip(values, table.T, row, strict=True):
        share = (column[:, None] == v).mean(axis=0).astype(np.longdouble)
        masses.append(share * np.where(v == x, 1.0, np.exp(-0.5 / np.longdouble(bandwidth) ** 2)))
    states = np.array(list(product(*values)))
    law = np.array([np.prod(each) for each in product(*masses)])
    law /= law.sum()
    f = np.asarray(predict(states), dtype=np.longdouble)
    start, coef = law @ f, []
    for j, x in enumerate(row):
        inside = states[:, j] == x
        kept = law[inside].sum()
        coef.append(law[inside] @ f[inside] / kept - law[~inside] @ f[~inside] / (1 - kept))
        start = start - kept * coef[-1]
    return np.stack(coef), start, np.abs(f).max()
