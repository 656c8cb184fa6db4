"""Forest: decision trees with their structure, every library's trees in one layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.exceptions import InputError
from limes.models.boxes import Boxes
from limes.models.reductions import SumOfProducts


@dataclass(frozen=True, eq=False)
class Forest:
    """f(x) = intercept + Σ_trees value of the leaf that x reaches.

    Nodes of all trees lie in common arrays of length N. An inner node sends x left where
    x[feature] <= threshold, right where it is larger, and a missing value where ``missing_left`` says.

    Attributes
    ----------
    feature
        (N,) column that a node tests, -1 at leaves.
    threshold
        (N,) in float64; a library that compares float32 or with "<" has its thresholds moved to match.
    left, right
        (N,) positions of the children, -1 at leaves. Children come after their parent.
    missing_left
        (N,) where a missing value goes.
    value
        (N,) or (N, k); read at leaves only.
    roots
        (T,) positions of the trees' roots.
    intercept
        () or (k,).
    size
        Number of columns d.
    """

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    missing_left: Bools
    value: Floats
    roots: Ints
    intercept: Floats
    size: int

    @classmethod
    def joined(cls, trees: Sequence[Forest], *, intercept: Floats) -> Forest:
        """One forest of many (single trees, usually) over the same columns."""
        starts = np.cumsum([0] + [t.feature.size for t in trees[:-1]])
        if len({t.size for t in trees}) != 1:
            raise InputError("trees of one forest must read the same columns")

        def shifted(children: Ints, start: int) -> Ints:
            return np.where(children >= 0, children + start, -1)

        return cls(
            feature=np.concatenate([t.feature for t in trees]),
            threshold=np.concatenate([t.threshold for t in trees]),
            left=np.concatenate([shifted(t.left, s) for t, s in zip(trees, starts, strict=True)]),
            right=np.concatenate([shifted(t.right, s) for t, s in zip(trees, starts, strict=True)]),
            missing_left=np.concatenate([t.missing_left for t in trees]),
            value=np.concatenate([t.value for t in trees]),
            roots=np.concatenate([t.roots + s for t, s in zip(trees, starts, strict=True)]),
            intercept=np.asarray(intercept, dtype=np.float64),
            size=trees[0].size,
        )

    def predict(self, x: Floats) -> Floats:
        """Values (n, ...) at rows (n, d)."""
        x = np.asarray(x, dtype=np.float64)
        total = np.broadcast_to(self.intercept, (len(x), *self.value.shape[1:])).copy()
        for root in self.roots:
            total += self.value[self._leaf(x, int(root))]
        return total

    def _leaf(self, x: Floats, root: int) -> Ints:
        node = np.full(len(x), root)
        rows = np.arange(len(x)) if self.feature[root] >= 0 else np.empty(0, dtype=np.int64)
        while rows.size:
            here = node[rows]
            tested = x[rows, self.feature[here]]
            goes_left = np.where(np.isnan(tested), self.missing_left[here], tested <= self.threshold[here])
            node[rows] = np.where(goes_left, self.left[here], self.right[here])
            rows = rows[self.feature[node[rows]] >= 0]
        return node

    def boxes(self) -> Boxes:
        """The leaves, each as a box."""
        count = self.feature.size
        lower, upper = np.full((count, self.size), -np.inf), np.full((count, self.size), np.inf)
        missing = np.ones((count, self.size), dtype=np.bool_)
        nodes = self.roots
        while (nodes := nodes[self.feature[nodes] >= 0]).size:
            j, cut = self.feature[nodes], self.threshold[nodes]
            for child, passes in (
                (self.left[nodes], self.missing_left[nodes]),
                (self.right[nodes], ~self.missing_left[nodes]),
            ):
                for bounds in (lower, upper, missing):
                    bounds[child] = bounds[nodes]
                missing[child, j] &= passes
            left, right = self.left[nodes], self.right[nodes]
            upper[left, j] = np.minimum(upper[left, j], cut)
            lower[right, j] = np.maximum(lower[right, j], cut)
            nodes = np.concatenate([left, right])
        leaf = self.feature < 0
        return Boxes(lower[leaf], upper[leaf], self.value[leaf], missing[leaf], self.intercept)

    def reduce(self) -> SumOfProducts:
        """One product of intervals a leaf."""
        return self.boxes().reduce()

    def select(self, outputs: int | list[int]) -> Forest:
        """One or several outputs."""
        return Forest(
            self.feature,
            self.threshold,
            self.left,
            self.right,
            self.missing_left,
            self.value[:, outputs],
            self.roots,
            self.intercept[outputs],
            self.size,
        )


def float32_threshold(threshold: Floats) -> Floats:
    """The float64 t with  x <= t  ⟺  float32(x) <= threshold,  for every float64 x.

    Libraries that store rows as float32 round x to the nearest float32 (ties to even) before they compare.
    All x up to the middle between the last float32 that passes and the next one pass, the middle itself if
    it is rounded down.
    """
    threshold = np.asarray(threshold, dtype=np.float64)
    last = threshold.astype(np.float32)
    last = np.where(last > threshold, np.nextafter(last, np.float32(-np.inf)), last)
    with np.errstate(over="ignore"):
        following = np.nextafter(last, np.float32(np.inf))
    middle = 0.5 * (last.astype(np.float64) + following.astype(np.float64))
    rounded_down = middle.astype(np.float32) == last
    found = np.where(rounded_down, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isfinite(threshold) & np.isfinite(middle), found, threshold)
