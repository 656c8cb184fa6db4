"""Forest: decision trees with their structure, every library's trees in one layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from limes import _kernels
from limes._arrays import Bools, Floats, Ints, check_rows, distinct_flags
from limes._checks import check_count
from limes._functions import LARGEST, Function, Interval, Members
from limes._threads import in_threads
from limes.exceptions import InputError
from limes.models.forms._base import Reducible, SumOfProducts, output_intercept

# Rows that one thread takes down all trees
_BLOCK = 2048
# Category codes up to which every code is one group
_FEW_CODES = 256
# Why a forest has no covers, unless its reader says another reason
_NOT_STORED = "the forest was made without the weights of training rows at its nodes"
# The kernels take arrays in C order, and of one type each
_TYPES: dict[type, tuple[str, ...]] = {
    np.int64: ("feature", "left", "right", "roots", "set_of"),
    np.float64: ("threshold", "value", "covers"),
    np.bool_: ("missing_left", "sets"),
}


@dataclass(frozen=True, eq=False)
class Forest(Reducible):
    """f(x) = intercept + Σ_trees value of the leaf that x reaches.

    Nodes of all trees lie in common arrays of length N. An inner node sends x left where x[feature] <=
    threshold, or, if it splits by category, where the code x[feature] is in its set; a missing value goes
    where ``missing_left`` sends it, everything else right.

    Attributes
    ----------
    feature
        (N,) column that a node tests, -1 at leaves.
    threshold
        (N,) in float64; a library that compares float32 or with "<" has its thresholds moved to match.
    left, right
        (N,) positions of the children, -1 at leaves. Children come after their parent.
    missing_left
        (N,) whether a missing value goes left.
    value
        (N,) or (N, k); read at leaves only.
    roots
        (T,) positions of the trees' roots.
    intercept
        () or (k,).
    size
        Number of columns d.
    set_of
        (N,) row of ``sets`` by which a node splits, -1 where it splits by threshold. All splits of a column
        are of one kind.
    sets
        (S, L) which of the category codes 0 .. L - 1 go left.
    covers
        (N,) weight of the training rows at each node, as the model's library counts it: rows, their weights,
        or second derivatives of the loss. () where it is not known.
    no_covers
        Why it is not known.

    Examples
    --------
    >>> import limes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> forest = limes.models.read(DecisionTreeRegressor(max_depth=1).fit([[0.0], [1.0]], [3.0, 4.0]))
    >>> type(forest).__name__, forest.roots, forest.predict([[0.0], [1.0]])
    ('Forest', array([0]), array([3., 4.]))
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
    set_of: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    sets: Bools = field(default_factory=lambda: np.zeros((0, 0), dtype=np.bool_))
    covers: Floats = field(default_factory=lambda: np.zeros(0))
    no_covers: str = _NOT_STORED
    output_arrays: ClassVar[tuple[str, ...]] = ("value",)

    def __post_init__(self) -> None:
        nodes = np.shape(self.feature)
        if np.size(self.set_of) == 0:
            self._freeze(set_of=np.full(nodes, -1))
        for name in ("threshold", "left", "right", "missing_left", "set_of", "value"):
            shape = np.shape(getattr(self, name))
            if len(nodes) != 1 or shape[:1] != nodes or len(shape) > 1 + (name == "value"):
                raise InputError(f"{name} must have an entry for each of the nodes {nodes}, got {shape}")
        if np.size(self.covers) and np.shape(self.covers) != nodes:
            raise InputError(f"covers must have an entry for each of the nodes {nodes}, or none")
        if np.ndim(self.roots) != 1 or np.asarray(self.roots).dtype.kind not in "iu":
            raise InputError(f"roots must be a list of nodes, one for each tree, got {self.roots!r}")
        check_count("size", self.size)
        self._freeze(intercept=output_intercept(self.intercept, np.shape(self.value)[1:]))
        for of_type, names in _TYPES.items():
            self._freeze(**{n: np.ascontiguousarray(getattr(self, n), dtype=of_type) for n in names})
        by_set = set(self.feature[self.set_of >= 0].tolist())
        by_threshold = set(self.feature[(self.set_of < 0) & (self.feature >= 0)].tolist())
        if by_set & by_threshold:
            raise InputError(f"columns {sorted(by_set & by_threshold)} are split by set and by threshold")
        # x <= -inf holds for -inf alone; an interval open below must then begin above it
        self._freeze(threshold=np.maximum(self.threshold, -LARGEST))

    @classmethod
    def joined(cls, trees: Sequence[Forest], *, intercept: Floats) -> Forest:
        """Join ``trees``, forests over the same columns, into one, with a new ``intercept``."""
        if len({t.size for t in trees}) != 1:
            raise InputError("trees of one forest must read the same columns")
        nodes = np.cumsum([0] + [t.feature.size for t in trees[:-1]])
        sets = np.cumsum([0] + [len(t.sets) for t in trees[:-1]])
        width = max(t.sets.shape[1] for t in trees)
        return cls(
            **concatenated(trees, {"set_of": sets, "left": nodes, "right": nodes, "roots": nodes}),
            **joined_covers(trees),
            sets=np.concatenate([np.pad(t.sets, ((0, 0), (0, width - t.sets.shape[1]))) for t in trees]),
            intercept=np.asarray(intercept, dtype=np.float64),
            size=trees[0].size,
        )

    @cached_property
    def trees(self) -> _kernels.Trees:
        """The nodes in the layout of the compiled walks, checked once."""
        tests = self.feature, self.threshold, self.left, self.right, self.missing_left
        return _kernels.Trees(self.size, *tests, self.set_of, self.sets, self.roots)

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def predict(self, x: Floats) -> Floats:
        x = np.ascontiguousarray(check_rows(x, self.size))
        value = self.value.reshape(self.value.shape[0], -1)
        total, trees = np.zeros((len(x), value.shape[1])), self.trees

        def block(start: int) -> None:
            rows = slice(start, start + _BLOCK)
            _kernels.add_leaves(trees, x[rows], value, total[rows])

        in_threads(block, range(0, len(x), _BLOCK))
        return np.asarray(total.reshape((len(x), *self.value.shape[1:])) + self.intercept)

    @cached_property
    def extremes(self) -> Floats:
        """Bounds of the values of one output, (2,): sums of all trees' least and largest leaves."""
        least, largest = self.value.copy(), self.value.copy()
        for nodes, left, right in reversed(self._levels()):
            least[nodes] = np.minimum(least[left], least[right])
            largest[nodes] = np.maximum(largest[left], largest[right])
        return np.array([least[self.roots].sum(), largest[self.roots].sum()]) + float(self.intercept)

    def _bounds(self) -> tuple[Floats, Floats, Bools]:
        """The interval of x that reaches each node, and whether a missing value does; (N, d) each."""
        count = self.feature.size
        lower, upper = np.full((count, self.size), -np.inf), np.full((count, self.size), np.inf)
        missing = np.ones((count, self.size), dtype=np.bool_)
        for nodes, left, right in self._levels():
            j, by_threshold = self.feature[nodes], self.set_of[nodes] < 0
            for child, passes in ((left, self.missing_left[nodes]), (right, ~self.missing_left[nodes])):
                for bounds in (lower, upper, missing):
                    bounds[child] = bounds[nodes]
                missing[child, j] &= passes
            left, right, j = left[by_threshold], right[by_threshold], j[by_threshold]
            cut = self.threshold[nodes[by_threshold]]
            upper[left, j] = np.minimum(upper[left, j], cut)
            lower[right, j] = np.maximum(lower[right, j], cut)
        return lower, upper, missing

    @property
    def tree_of_nodes(self) -> Ints:
        """The position of the tree that each node is in, (N,)."""
        tree = np.zeros(self.feature.size, dtype=np.int64)
        tree[self.roots] = np.arange(self.roots.size)
        for nodes, left, right in self._levels():
            tree[left] = tree[right] = tree[nodes]
        return tree

    def interval(self, column: int) -> tuple[Floats, Floats, Bools]:
        """The interval of a ``column``, split by thresholds, that reaches each node, (N,) each.

        Its two ends, and whether a missing value does.
        """
        count = self.feature.size
        lower, upper = np.full(count, -np.inf), np.full(count, np.inf)
        missing = np.ones(count, dtype=np.bool_)
        for nodes, left, right in self._levels():
            tests, cut = self.feature[nodes] == column, self.threshold[nodes]
            for child, passes in ((left, self.missing_left[nodes]), (right, ~self.missing_left[nodes])):
                lower[child], upper[child] = lower[nodes], upper[nodes]
                missing[child] = missing[nodes] & (passes | ~tests)
            upper[left] = np.where(tests, np.minimum(upper[nodes], cut), upper[nodes])
            lower[right] = np.where(tests, np.maximum(lower[nodes], cut), lower[nodes])
        return lower, upper, missing

    def reaching(self, column: int) -> tuple[Bools, Bools, Ints]:
        """Values of a ``column`` that reach each node.

        The groups of category codes that its splits do not tell apart, and last any other value, (N, G + 1);
        whether a missing value does, (N,); and the group of each code, (L,).
        """
        sets, group = self._grouped(column)
        # other values are in no set
        sets = np.pad(sets, ((0, 0), (0, 1)))
        allowed = np.ones((self.feature.size, sets.shape[1]), dtype=np.bool_)
        missing = np.ones(self.feature.size, dtype=np.bool_)
        for nodes, left, right in self._levels():
            tests = (self.feature[nodes] == column)[:, None]
            goes_left = sets[self.set_of[nodes]]
            allowed[left] = allowed[nodes] & (goes_left | ~tests)
            allowed[right] = allowed[nodes] & ~(goes_left & tests)
            missing[left] = missing[nodes] & (self.missing_left[nodes] | ~tests[:, 0])
            missing[right] = missing[nodes] & ~(self.missing_left[nodes] & tests[:, 0])
        return allowed, missing, group

    def _grouped(self, column: int) -> tuple[Bools, Ints]:
        """All sets (n, G) as sets of groups of codes, and the group of each code (L,)."""
        codes = self.sets.shape[1]
        if codes <= _FEW_CODES:
            return self.sets, np.arange(codes)
        used = np.unique(self.set_of[(self.feature == column) & (self.set_of >= 0)])
        first, group = distinct_flags(self.sets[used].T)
        return self.sets[:, first], group

    def _levels(self) -> Sequence[tuple[Ints, Ints, Ints]]:
        """Inner nodes and their children, parents before children."""
        levels, nodes = [], self.roots
        while (nodes := nodes[self.feature[nodes] >= 0]).size:
            left, right = self.left[nodes], self.right[nodes]
            levels.append((nodes, left, right))
            nodes = np.concatenate([left, right])
        return levels

    def reduce(self) -> SumOfProducts:
        lower, upper, missing = self._bounds()
        leaf = self.feature < 0
        by_set = set(self.feature[self.set_of >= 0].tolist())

        def function(j: int) -> Function | None:
            if j in by_set:
                allowed, _, group = self.reaching(j)
                return Members(allowed[leaf, :-1], missing[leaf, j], allowed[leaf, -1], group)
            if not (self.feature == j).any():
                return None
            return Interval(lower[leaf, j], upper[leaf, j], missing[leaf, j])

        functions = tuple(function(j) for j in range(self.size))
        return SumOfProducts(functions, self.value[leaf], self.intercept)


def concatenated(trees: Sequence[Any], starts_of: Mapping[str, Ints]) -> dict[str, Any]:
    """Arrays of trees, one after the other; positions move by the start of their tree, and -1 stays."""
    plain = ("feature", "threshold", "missing_left", "value")
    arrays = {name: np.concatenate([getattr(tree, name) for tree in trees]) for name in plain}
    for name, starts in starts_of.items():
        pairs = zip([getattr(tree, name) for tree in trees], starts, strict=True)
        arrays[name] = np.concatenate([np.where(part >= 0, part + start, -1) for part, start in pairs])
    return arrays


def joined_covers(trees: Sequence[Any]) -> dict[str, Any]:
    """Covers of trees, one after the other; those of no tree where one has none, and why."""
    without = next((tree for tree in trees if tree.covers.size < tree.feature.size), None)
    if without is not None:
        return {"no_covers": without.no_covers}
    return {"covers": np.concatenate([tree.covers for tree in trees])}


def float32_threshold(threshold: ArrayLike) -> Floats:
    """The float64 t with  x <= t  ⟺  float32(x) <= threshold,  for every float64 x."""
    # x is rounded to the nearest float32 (ties to even) before it is compared: all x up to the middle between
    # the last float32 that passes and the next one pass, the middle itself if it is rounded down
    threshold = np.asarray(threshold, dtype=np.float64)
    with np.errstate(over="ignore"):
        last = threshold.astype(np.float32)
        last = np.where(last > threshold, np.nextafter(last, np.float32(-np.inf)), last)
        following = np.nextafter(last, np.float32(np.inf))
        # beyond the largest float32, rounding behaves as if the next one were 2¹²⁸
        ends = np.clip([last, following], -(2.0**128), 2.0**128, dtype=np.float64)
        middle = 0.5 * (ends[0] + ends[1])
        rounded_down = middle.astype(np.float32) == last
    largest = np.where(rounded_down, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isfinite(threshold), largest, threshold)
