"""Random designs, boxes, trees, forms and tables for property-based tests.

Numbers are drawn from short lists of awkward values mixed with seeded random ones: shrinking then finds a
readable example, and one draw of a seed gives arrays of any size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import oracle
from limes.designs import ProductDesign
from limes.models import forms

BANDWIDTHS = (0.01, 0.1, 0.5, 1.0, 5.0, np.inf)
WEIGHTS = ("bins", "euclidean")

seeds = st.integers(0, 2**32 - 1)
rngs = seeds.map(np.random.default_rng)


# -- designs ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stated:
    """The arguments of ``ProductDesign.from_bins``, and the same design for the oracle."""

    edges: list
    means: list
    stds: list
    frequencies: list
    instance: np.ndarray
    bandwidth: float
    weights: str

    @property
    def size(self):
        return len(self.edges)

    @property
    def cells(self):
        return [oracle.bin_of(e, x) for e, x in zip(self.edges, self.instance, strict=True)]

    def design(self):
        return ProductDesign.from_bins(
            self.edges,
            self.means,
            self.stds,
            self.instance,
            self.bandwidth,
            frequencies=self.frequencies,
            weights=self.weights,
        )

    def columns(self, breaks=None, resolution=np.inf):
        """Weighted columns for the oracle, split at the breaks of each column."""
        result = []
        for j, cell in enumerate(self.cells):
            smooth = oracle.Smooth(self.instance[j], self.bandwidth) if self.weights == "euclidean" else None
            column = oracle.binned_column(
                self.edges[j],
                self.means[j],
                self.stds[j],
                self.frequencies[j],
                log_weight=smooth,
                breaks=() if breaks is None else breaks[j],
                resolution=resolution,
            )
            result.append(column if smooth else oracle.bin_weighted(column, cell, self.bandwidth))
        return result

    def steps(self, breaks):
        """The same, one point between two breaks: for piecewise constant functions."""
        return [c.collapsed(b) for c, b in zip(self.columns(breaks), breaks, strict=True)]

    def permuted(self, order):
        """The same design with its columns in another order."""
        lists = (self.edges, self.means, self.stds, self.frequencies)
        edges, means, stds, frequencies = ([each[j] for j in order] for each in lists)
        return Stated(
            edges, means, stds, frequencies, self.instance[list(order)], self.bandwidth, self.weights
        )


def stated_bins(rng, bins, *, open_ends=False, points=True):
    """Edges, means, stds and unequal frequencies of one column with ``bins`` bins."""
    widths = rng.choice([0.1, 0.5, 1.0, 2.0], bins) * rng.uniform(0.5, 1.5, bins)
    if points and bins > 1 and rng.random() < 0.3:
        widths[0] = 0.0  # ties at the smallest value make a first bin without width
    edges = rng.normal() + np.concatenate([[0.0], np.cumsum(widths)])
    means = edges[:-1] + widths * rng.uniform(-0.5, 1.5, bins)
    stds = widths * rng.choice([0.05, 0.3, 1.0, 20.0], bins) + (widths == 0)
    if points:
        point = rng.random(bins) < 0.15
        stds[point] = 0.0
        # a bin is open on the left: a point mass on its lower edge would lie in the bin before
        means[point] = (edges[:-1] + 0.6 * widths)[point]
    if open_ends:
        edges[0] = -np.inf if widths[0] > 0 else edges[0]
        edges[-1] = np.inf
    return edges, means, stds, rng.uniform(0.05, 1.0, bins)


@st.composite
def designs(
    draw,
    *,
    sizes=(1, 2, 3),
    most_bins=4,
    bandwidths=BANDWIDTHS,
    weights=WEIGHTS,
    points=True,
    open_ends=True,
):
    """A product design: bins of unequal width and frequency, atoms, open ends, an instance anywhere."""
    d = draw(st.sampled_from(sizes))
    bandwidth, named = draw(st.sampled_from(bandwidths)), draw(st.sampled_from(weights))
    rng = draw(rngs)
    columns = []
    instance = np.empty(d)
    for j in range(d):
        bins = draw(st.integers(1, most_bins))
        column = stated_bins(rng, bins, open_ends=open_ends and rng.random() < 0.25, points=points)
        inner = column[0][np.isfinite(column[0])]
        low, high = (inner.min(), inner.max()) if inner.size else (-1.0, 1.0)
        places = [
            rng.uniform(low, high) if high > low else low,
            low - 0.7,
            high + 0.3,
            rng.choice(inner) if inner.size else 0.0,
        ]
        instance[j] = places[rng.choice(4, p=[0.7, 0.1, 0.1, 0.1])]
        columns.append(column)
    edges, means, stds, frequencies = (list(part) for part in zip(*columns, strict=True))
    return Stated(edges, means, stds, frequencies, instance, bandwidth, named)


# -- forms ------------------------------------------------------------------------------------------------


def cuts(rng, stated, count):
    """``count`` thresholds for each column, at which a model may split it: inside bins, on edges, outside."""
    result = []
    for edges in stated.edges:
        inner = edges[np.isfinite(edges)]
        low, high = (inner.min(), inner.max()) if inner.size else (-1.0, 1.0)
        places = np.concatenate([rng.uniform(low - 0.2, high + 0.2, 3 * count), inner])
        result.append(np.unique(rng.choice(places, count)))
    return result


def random_boxes(rng, places, count, outputs=()):
    """Boxes between the given places, some of them open."""
    d = len(places)
    lower, upper = np.full((count, d), -np.inf), np.full((count, d), np.inf)
    for i in range(count):
        for j in range(d):
            a, b = np.sort(rng.choice(places[j], 2))
            kind = rng.integers(4)
            lower[i, j] = a if kind in (0, 1) else -np.inf
            upper[i, j] = b if kind in (0, 2) else np.inf
    return forms.Boxes(lower, upper, rng.normal(size=(count, *outputs)), intercept=rng.normal(size=outputs))


def random_tree(rng, places, depth, outputs=()):
    """A tree that splits at the given places; a list of nodes (feature, threshold, left, right, value)."""
    nodes = []

    def grow(level):
        position = len(nodes)
        nodes.append(None)
        if level == 0 or rng.random() < 0.15:
            nodes[position] = (-1, 0.0, -1, -1, False, rng.normal(size=outputs))
            return position
        j = int(rng.integers(len(places)))
        cut = float(rng.choice(places[j]))
        left, right = grow(level - 1), grow(level - 1)
        nodes[position] = (j, cut, left, right, bool(rng.integers(2)), np.zeros(outputs))
        return position

    grow(depth)
    return nodes


def as_forest(trees, size, outputs=()):
    """The form of lists of nodes."""
    singles = []
    for nodes in trees:
        feature, threshold, left, right, missing, value = zip(*nodes, strict=True)
        singles.append(
            forms.Forest(
                feature=np.array(feature, dtype=np.int64),
                threshold=np.array(threshold, dtype=np.float64),
                left=np.array(left, dtype=np.int64),
                right=np.array(right, dtype=np.int64),
                missing_left=np.array(missing, dtype=np.bool_),
                value=np.array(value),
                roots=np.zeros(1, dtype=np.int64),
                intercept=np.zeros(outputs),
                size=size,
            )
        )
    return forms.Forest.joined(singles, intercept=np.zeros(outputs))


def leaf_boxes(forest):
    """The leaves of a forest that splits by thresholds only, each as a box."""
    leaves = forest.reduce()
    shape = (len(leaves.coef), forest.size)
    lower, upper, missing = np.full(shape, -np.inf), np.full(shape, np.inf), np.ones(shape, dtype=bool)
    for j, interval in enumerate(leaves.functions):
        if interval is not None:
            lower[:, j], upper[:, j], missing[:, j] = interval.lower, interval.upper, interval.missing
    return forms.Boxes(lower, upper, leaves.coef, missing, leaves.intercept)


def walk(trees, row):
    """Return what the trees say of one row, node by node."""
    total = 0.0
    for nodes in trees:
        at = 0
        while nodes[at][0] >= 0:
            feature, cut, left, right, missing_left, _ = nodes[at]
            x = row[feature]
            at = (left if missing_left else right) if np.isnan(x) else (left if x <= cut else right)
        total = total + nodes[at][5]
    return total


def walked(trees):
    """The same for rows (n, d) -> (n, ...)."""
    return lambda x: np.array([walk(trees, row) for row in x])


def walked_fast(trees):
    """The same again, for grids of many rows without missing values: all rows of a node at once."""

    def send(nodes, at, x, rows, total):
        feature, cut, left, right, _, value = nodes[at]
        if feature < 0:
            total[rows] += value
        elif rows.size:
            goes_left = x[rows, feature] <= cut
            send(nodes, left, x, rows[goes_left], total)
            send(nodes, right, x, rows[~goes_left], total)

    def f(x):
        total = np.zeros((len(x), *np.shape(trees[0][0][5])))
        for nodes in trees:
            send(nodes, 0, x, np.arange(len(x)), total)
        return total

    return f


def in_boxes(form):
    """Return what boxes say of rows, box by box: (n, d) -> (n, ...)."""

    def f(x):
        total = np.zeros((len(x), *form.value.shape[1:])) + form.intercept
        for low, high, missing, value in zip(form.lower, form.upper, form.missing, form.value, strict=True):
            inside = np.ones(len(x), dtype=bool)
            for j in range(x.shape[1]):
                inside &= np.where(np.isnan(x[:, j]), missing[j], (low[j] < x[:, j]) & (x[:, j] <= high[j]))
            total[inside] += value
        return total

    return f


def kernels(form):
    """Return what Gaussian kernels say of rows, centre by centre."""

    def f(x):
        total = np.zeros((len(x), *form.coef.shape[1:])) + form.intercept
        for center, coef in zip(form.centers, form.coef, strict=True):
            value = np.exp(-((x - center) ** 2).sum(axis=1) / (2 * form.scale**2))
            total = total + np.multiply.outer(value, coef)
        return total

    return f


# -- tables -----------------------------------------------------------------------------------------------


@st.composite
def backgrounds(draw, *, sizes=(1, 2, 3)):
    """A background: (matrix, kinds) with numbers, ties, categories, constants and missing values."""
    d, rng = draw(st.sampled_from(sizes)), draw(rngs)
    n = draw(st.integers(8, 60))
    kinds = [draw(st.sampled_from(["number", "ties", "category", "constant", "missing"])) for _ in range(d)]
    make = {
        "number": lambda: rng.normal(size=n),
        "ties": lambda: np.maximum(rng.normal(size=n), 0.0),
        "category": lambda: rng.choice([0.0, 1.0, 2.0, np.nan], n, p=[0.4, 0.3, 0.2, 0.1]),
        "constant": lambda: np.full(n, 2.5),
        "missing": lambda: np.where(np.arange(n) % 5 == 3, np.nan, rng.normal(size=n)),
    }
    return np.column_stack([make[kind]() for kind in kinds]), kinds
