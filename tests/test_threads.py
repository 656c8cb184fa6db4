"""The pool of threads."""

from __future__ import annotations

import os
from threading import current_thread
from time import sleep

import pytest

import limes
from internals import _threads, in_this_thread, in_threads


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


def threads_of(work, **options):
    """Names of the threads that work on items."""
    names = set()

    def item(_):
        names.add(current_thread().name)
        sleep(0.002)

    work(item, range(20), **options)
    return names


def test_work_that_others_would_wait_for_stays_in_the_calling_thread(monkeypatch):
    monkeypatch.setattr(_threads, "WORKERS", 3)
    this_thread = {current_thread().name}
    assert len(threads_of(in_threads)) > 1
    assert threads_of(in_threads, seconds=1e-3) == this_thread
    with in_this_thread():
        assert threads_of(in_threads) == this_thread
    assert len(threads_of(in_threads)) > 1


@pytest.fixture
def default_threads():
    yield
    limes.set_threads()


@pytest.mark.usefixtures("default_threads")
def test_the_number_of_threads_is_the_users_the_variables_or_that_of_cores(monkeypatch):
    limes.set_threads(3)
    assert _threads.workers() == 3
    monkeypatch.setenv("LIMES_NUM_THREADS", "2")
    assert _threads.workers() == 3
    limes.set_threads()
    assert _threads.workers() == 2
    monkeypatch.delenv("LIMES_NUM_THREADS")
    limes.set_threads()
    # the cores of this process, or fewer where a container has a quota
    assert 1 <= _threads.workers() <= len(os.sched_getaffinity(0))


@pytest.mark.usefixtures("default_threads")
@pytest.mark.parametrize("count", [0, -1, 1.5, True, "two"])
def test_other_numbers_of_threads_are_refused(monkeypatch, count):
    with pytest.raises(limes.exceptions.InputError, match="whole number from 1"):
        limes.set_threads(count)
    monkeypatch.setenv("LIMES_NUM_THREADS", str(count))
    with pytest.raises(limes.exceptions.InputError, match="LIMES_NUM_THREADS"):
        in_threads(lambda _: None, range(2))


def test_a_containers_quota_is_respected(monkeypatch):
    # joblib's own reading of the quota, which a container sets
    from joblib.externals.loky.backend import context

    monkeypatch.setattr(_threads, "WORKERS", None)
    monkeypatch.setattr(context, "_cpu_count_cgroup", lambda count: 1)
    assert _threads.workers() == 1
