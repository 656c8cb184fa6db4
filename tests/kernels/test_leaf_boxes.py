"""Boxes of cells that may hold an answer below a limit, beside the answers of all cells."""

import itertools

import numpy as np
import pytest

from compiled import kernels

NO_MORE, CANDIDATE, SPENT = 0, 1, 2


def divide(rng, box, leaves):
    """Cut a box of sets of cells at random, and append the boxes that are left."""
    wide = [j for j, cells in enumerate(box) if len(cells) > 1]
    if not wide or (rng.random() < 0.25 and len(leaves) > 1):
        leaves.append(box)
        return
    j = rng.choice(wide)
    cells = sorted(box[j])
    if j >= rng.cuts:
        rng.shuffle(cells)
    at = rng.integers(1, len(cells))
    for part in (cells[:at], cells[at:]):
        divide(rng, [*box[:j], frozenset(part), *box[j + 1 :]], leaves)


class Random:
    """Trees over some cut columns and some set columns, as boxes of cells with values."""

    def __init__(self, seed, trees=5):
        self.rng = np.random.default_rng(seed)
        self.cuts, self.sets = self.rng.integers(0, 4), self.rng.integers(0, 3)
        if self.cuts + self.sets == 0:
            self.cuts = 2
        self.sizes = self.rng.integers(1, 6, self.cuts + self.sets)
        self.leaves = []
        for tree in range(trees):
            boxes = []
            divide(self, [frozenset(range(size)) for size in self.sizes.tolist()], boxes)
            values = np.sort(self.rng.integers(-4, 5, len(boxes)) + self.rng.random() * 0.5)
            self.leaves += [(tree, value, box) for value, box in zip(values.tolist(), boxes, strict=True)]

    def __getattr__(self, name):
        return getattr(self.rng, name)

    def arguments(self):
        boxes = [box for _, _, box in self.leaves]
        runs, several = [box[: self.cuts] for box in boxes], [box[self.cuts :] for box in boxes]
        shape = (len(boxes), int(self.cuts))
        return (
            np.array([tree for tree, _, _ in self.leaves]),
            np.array([value for _, value, _ in self.leaves]),
            np.array([[min(its) for its in box] for box in runs], dtype=np.int32).reshape(shape),
            np.array([[max(its) + 1 for its in box] for box in runs], dtype=np.int32).reshape(shape),
            np.array([[sum(1 << c for c in its) for its in box] for box in several], dtype=np.uint64).reshape(
                len(boxes), int(self.sets)
            ),
            self.sizes[: self.cuts].copy(),
        )

    def everywhere(self):
        sizes = self.sizes[: self.cuts]
        bits = (np.uint64(1) << self.sizes[self.cuts :].astype(np.uint64)) - np.uint64(1)
        return np.zeros_like(sizes), sizes.copy(), bits

    def answer(self, cell):
        holds = [
            value for _, value, box in self.leaves if all(c in its for c, its in zip(cell, box, strict=True))
        ]
        return sum(holds)

    def cells_of(self, first, last, bits):
        runs = [range(a, b) for a, b in zip(first.tolist(), last.tolist(), strict=True)]
        return itertools.product(*runs, *[[c for c in range(64) if its >> c & 1] for its in bits.tolist()])


def started(trees, limit, base=0.0):
    table = kernels.Leaves(*trees.arguments())
    return kernels.LeafBoxes(table, *trees.everywhere(), np.arange(len(trees.leaves)), base, limit)


@pytest.mark.parametrize("seed", range(60))
def test_refused_candidates_are_all_cells_below_the_limit(seed):
    trees = Random(seed)
    answers = {cell: trees.answer(cell) for cell in trees.cells_of(*trees.everywhere())}
    limit, base = float(np.quantile(list(answers.values()), trees.random())) + 1e-9, 3.0
    search, region, below = started(trees, limit + base, base), trees.everywhere(), []
    while (end := search.advance(10_000, *region)) == CANDIDATE:
        cells = [*trees.cells_of(*region)]
        assert [answers[cell] + base for cell in cells] == pytest.approx([search.low] * len(cells))
        below += cells
    assert end == NO_MORE
    assert search.low >= limit + base
    assert sorted(below) == sorted(cell for cell, answer in answers.items() if answer < limit)


@pytest.mark.parametrize("seed", range(60))
def test_bounds_rise_with_the_boxes_that_are_cut(seed):
    trees, lows = Random(seed, trees=8), []
    least = min(trees.answer(cell) for cell in trees.cells_of(*trees.everywhere()))
    search, region = started(trees, np.inf), trees.everywhere()
    for most in range(1000):
        if search.advance(most, *region) == CANDIDATE:
            break
        lows.append(search.low)
        assert search.cut == most
    assert lows == sorted(lows)
    assert search.low == pytest.approx(least)
    assert trees.answer(next(iter(trees.cells_of(*region)))) == pytest.approx(least)
    assert not search.is_full


@pytest.mark.parametrize(
    ("place", "value"), [(0, [0]), (2, [[7]]), (3, [[0]]), (5, np.zeros(9, dtype=np.int64))], ids=str
)
def test_tables_that_disagree_are_refused(place, value):
    trees = next(its for its in map(Random, range(20)) if its.cuts == 1)
    arguments = [*trees.arguments()]
    its = np.zeros_like(arguments[place]) + np.array(value, dtype=arguments[place].dtype)
    arguments[place] = its[:-1] if place == 0 else its
    if place == 5:
        arguments[place] = np.asarray(value)
    with pytest.raises(ValueError, match=r"agree|outside|sizes"):
        kernels.Leaves(*arguments)


def test_boxes_that_are_outside_are_refused():
    trees = next(its for its in map(Random, range(20)) if its.cuts and its.sets)
    table, (first, last, bits) = kernels.Leaves(*trees.arguments()), trees.everywhere()
    leaves = np.arange(len(trees.leaves))
    with pytest.raises(ValueError, match="outside a column"):
        kernels.LeafBoxes(table, first - 1, last, bits, leaves, 0.0, 1.0)
    with pytest.raises(ValueError, match="outside a column"):
        kernels.LeafBoxes(table, first, last + 1, bits, leaves, 0.0, 1.0)
    with pytest.raises(ValueError, match="no such leaf"):
        kernels.LeafBoxes(table, first, last, bits, leaves + 1, 0.0, 1.0)
    with pytest.raises(ValueError, match="a box must be"):
        kernels.LeafBoxes(table, first[:-1], last, bits, leaves, 0.0, 1.0)
    with pytest.raises(ValueError, match="a box must be"):
        kernels.LeafBoxes(table, first, last, bits, leaves, 0.0, 1.0).advance(1, first, last, bits[:-1])
