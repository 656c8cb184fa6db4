"""Designs without bins, and their oracles."""

from __future__ import annotations

import numpy as np

import limes
import oracle
from internals import ProductFamily, marginals_from_bins, named_weights
from oracle import EXACT


def normal_columns(rng, d, bandwidth=0.8):
    """Normal columns on the whole line, smooth weights: a design, and columns(resolution) of the oracle."""
    mean, std = rng.normal(size=d), rng.uniform(0.3, 2.0, d)
    row = mean + std * rng.normal(size=d)
    line = np.array([-np.inf, np.inf])
    marginals = marginals_from_bins([line] * d, mean[:, None], std[:, None])
    slopes = np.ones(d, dtype=bool)
    family = ProductFamily(marginals, named_weights("euclidean", bandwidth), slopes=slopes, scales=np.ones(d))

    def columns(breaks=None, resolution=np.inf):
        return [
            oracle.binned_column(
                line, [m], [s], log_weight=oracle.Smooth(x, bandwidth), breaks=b, resolution=resolution
            )
            for m, s, x, b in zip(mean, std, row, breaks or [()] * d, strict=True)
        ]

    return family.at(row), columns


def assert_slopes(design, form, f, columns):
    """The limit of the form is the surrogate of f on the grid of the columns."""
    truth = oracle.truth(columns, f, [0] * design.size, slopes=[True] * design.size)
    surrogate = limes.limit(design, form)
    assert oracle.error(surrogate.coef, truth.coef, truth.size) < EXACT
    assert oracle.error(surrogate.intercept, truth.intercept, truth.size) < EXACT
