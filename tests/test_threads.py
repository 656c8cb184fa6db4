"""The pool of threads."""

from __future__ import annotations

import os
import runpy
from time import sleep

import pytest

from internals import _threads, in_threads


def test_nested_calls_do_not_wait_for_each_other(monkeypatch):
    monkeypatch.setattr(_threads, "WORKERS", 2)
    finished = []
    in_threads(lambda i: in_threads(lambda j: finished.append((i, j)), range(3)), range(8))
    assert sorted(finished) == [(i, j) for i in range(8) for j in range(3)]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_item_is_worked_on_once(monkeypatch, workers):
    monkeypatch.setattr(_threads, "WORKERS", workers)
    finished = []
    in_threads(finished.append, range(1000))
    assert sorted(finished) == list(range(1000))


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_is_raised_and_ends_the_work(monkeypatch, workers):
    monkeypatch.setattr(_threads, "WORKERS", workers)
    finished = []

    def work(i):
        if i == 3:
            raise ValueError("three")
        sleep(0.001)
        finished.append(i)

    with pytest.raises(ValueError, match="three"):
        in_threads(work, range(1000))
    assert len(finished) < 100


@pytest.mark.parametrize(("cores", "workers"), [(6, 6), (None, 1)])
def test_where_no_affinity_is_known_all_cores_work(monkeypatch, cores, workers):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert runpy.run_path(_threads.__file__)["WORKERS"] == workers
