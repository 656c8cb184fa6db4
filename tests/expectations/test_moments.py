"""A cache of moments returns what was computed, computes it once, and stays small."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internals import MomentCache, Moments, moments


class Counting:
    """Moments that depend on their pattern, and a list of the patterns that were computed."""

    def __init__(self):
        self.computed = []

    def of(self, patterns):
        def compute(new):
            chosen = patterns[new]
            self.computed += map(tuple, chosen.tolist())
            mean = chosen @ 10.0 ** np.arange(chosen.shape[1])
            return Moments.exact(mean, np.sin(chosen * mean[:, None]), designs=mean.shape)

        return compute


def check(cache, patterns, counting):
    cached = cache.get(patterns, counting.of(patterns))
    expected = Counting().of(patterns)(np.arange(len(patterns)))
    assert np.array_equal(cached.mean, expected.mean)
    assert np.array_equal(cached.gamma, expected.gamma)
    assert cached.calls.shape == (len(patterns),)


@given(st.lists(st.sets(st.integers(0, 4**3 - 1), min_size=1), min_size=1, max_size=6))
def test_each_pattern_is_computed_once_and_right(groups):
    cache, counting = MomentCache(), Counting()
    for group in groups:
        numbers = np.array(sorted(group))
        check(cache, np.stack([numbers % 4, numbers // 4 % 4, numbers // 16], axis=1), counting)
    assert len(counting.computed) == len(set().union(*groups))


def test_moments_beyond_the_cache_are_computed_again(monkeypatch):
    one, two = np.arange(10)[:, None], np.arange(10, 20)[:, None]
    cache, counting = MomentCache(), Counting()
    check(cache, one, counting)
    monkeypatch.setattr(moments, "_CACHE_BYTES", 0)
    for _ in range(2):
        check(cache, two, counting)
        check(cache, one, counting)
    assert len(counting.computed) == 10 + 2 * 10


def test_an_error_leaves_it_as_it_was():
    cache, patterns, counting = MomentCache(), np.arange(5)[:, None], Counting()

    def fails(new):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cache.get(patterns, fails)
    check(cache, patterns, counting)
    assert len(counting.computed) == 5
