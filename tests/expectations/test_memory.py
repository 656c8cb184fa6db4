"""A memory of moments gives what was computed, computes it once, and stays small."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limes.expectations import memory
from limes.expectations.memory import Memory, afresh
from limes.expectations.moments import Moments


class Counting:
    """Moments that tell their pattern, and a list of the patterns that were computed."""

    def __init__(self):
        self.computed = []

    def of(self, patterns):
        def compute(new):
            chosen = patterns[new]
            self.computed += map(tuple, chosen.tolist())
            mean = chosen @ 10.0 ** np.arange(chosen.shape[1])
            return Moments.exact(mean, np.sin(chosen * mean[:, None]), designs=mean.shape)

        return compute


def asked(recall, patterns, counting):
    found = recall(patterns, counting.of(patterns))
    expected = afresh(patterns, Counting().of(patterns))
    assert np.array_equal(found.mean, expected.mean)
    assert np.array_equal(found.gamma, expected.gamma)
    assert found.calls.shape == (len(patterns),)
    return found


@given(st.lists(st.sets(st.integers(0, 4**3 - 1), min_size=1), min_size=1, max_size=6))
def test_each_pattern_is_computed_once_and_told_right(groups):
    recall, counting = Memory(), Counting()
    for group in groups:
        numbers = np.array(sorted(group))
        asked(recall, np.stack([numbers % 4, numbers // 4 % 4, numbers // 16], axis=1), counting)
    assert len(counting.computed) == len(set().union(*groups))


def test_what_there_is_no_room_for_is_computed_again(monkeypatch):
    one, two = np.arange(10)[:, None], np.arange(10, 20)[:, None]
    recall, counting = Memory(), Counting()
    asked(recall, one, counting)
    monkeypatch.setattr(memory, "_MOST", 0)
    for _ in range(2):
        asked(recall, two, counting)
        asked(recall, one, counting)
    assert len(counting.computed) == 10 + 2 * 10


@pytest.mark.parametrize("recall", [afresh, Memory()])
def test_an_error_leaves_it_as_it_was(recall):
    patterns, counting = np.arange(5)[:, None], Counting()

    def fails(new):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        recall(patterns, fails)
    asked(recall, patterns, counting)
    assert len(counting.computed) == 5
