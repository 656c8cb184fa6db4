"""Smallest hitting sets, against all sets of elements by size."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from effort import repeats
from internals import smallest_hitting_set


def fewest(sets, size):
    for number in range(size + 1):
        for chosen in combinations(range(size), number):
            if all(its & {*chosen} for its in sets):
                return number
    raise AssertionError("all elements hit every set")


@pytest.mark.parametrize("seed", range(repeats(200, 30)))
def test_no_smaller_set_hits_all(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    sets = [
        frozenset(rng.choice(size, int(rng.integers(1, size + 1)), replace=False).tolist())
        for _ in range(int(rng.integers(0, 12)))
    ]
    order = rng.permutation(size).tolist()
    best = smallest_hitting_set(sets, order)
    assert all(its & best for its in sets)
    assert len(best) == fewest(sets, size)
    assert len(smallest_hitting_set(sets, order, len(best))) == len(best)


def test_the_later_element_of_two_sets_of_one_size_is_taken():
    assert smallest_hitting_set([frozenset({0, 1})], [0, 1]) == {1}
    assert smallest_hitting_set([frozenset({0, 1})], [1, 0]) == {0}
    assert smallest_hitting_set([], [0, 1]) == frozenset()
