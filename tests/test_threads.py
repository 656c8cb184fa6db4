"""The pool of threads."""

from __future__ import annotations

import pytest

from limes import _threads
from limes._threads import in_threads


def test_nested_calls_do_not_wait_for_each_other(monkeypatch):
    monkeypatch.setattr(_threads, "WORKERS", 2)
    done = []
    in_threads(lambda i: in_threads(lambda j: done.append((i, j)), range(3)), range(8))
    assert sorted(done) == [(i, j) for i in range(8) for j in range(3)]


def test_the_first_error_is_raised():
    def work(i):
        if i == 3:
            raise ValueError("three")

    with pytest.raises(ValueError, match="three"):
        in_threads(work, range(5))
