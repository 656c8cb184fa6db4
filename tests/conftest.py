"""Threads of parallel workers, and one profile of property-based tests: fixed examples, no time limit."""

import gc
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from effort import DEEP, examples, left_out

# A shell makes what it starts in the background ignore Ctrl-C, and that makes what the tests start ignore it
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Those that need the documentation, benchmarks, papers and fuzz, which source distributions do not have
IS_CHECKOUT = (Path(__file__).parents[1] / "docs").exists()
collect_ignore = [] if IS_CHECKOUT else ["checkout"]


def pytest_report_header():
    if IS_CHECKOUT:
        return []
    return ["tests/checkout is left out: docs, benchmarks, papers and fuzz are not in a source distribution"]


# Collecting tests imports hundreds of modules, all of which stay: a quarter of its time was the search for
# garbage among them, through which every later search went again
gc.disable()


def pytest_collection_modifyitems(config, items):
    """Leave costly cases of a whole run to ``make test-deep``; files and tests that are named run whole."""
    is_whole = config.args_source is not pytest.Config.ArgsSource.ARGS and not config.option.keyword
    if DEEP or not is_whole:
        return
    values = {item.nodeid: item.callspec.indices if hasattr(item, "callspec") else {} for item in items}
    excluded = left_out(values)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in excluded])
    items[:] = [item for item in items if item.nodeid not in excluded]


def pytest_collectstart(collector):
    """Seed what a module fits as it is imported, so that a test that passes once passes again.

    Estimators without ``random_state`` draw from the generator of the process.
    """
    np.random.seed(0)  # noqa: NPY002 - it is theirs


def pytest_runtest_setup(item):
    """Seed what a test fits, whatever ran before it in this worker."""
    np.random.seed(0)  # noqa: NPY002


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


settings.register_profile(
    "limes",
    max_examples=examples(100),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("limes")


@pytest.fixture(autouse=True)
def closed_figures():
    """Close the figures of each test, which matplotlib keeps."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture(autouse=True, scope="module")
def share_of_the_cores():
    """Give workers of one run their share of the cores: waiting OpenMP threads spin on those of the others.

    A run without workers has what a user has; so have the processes that tests start.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers == 1:
        yield
        return
    with threadpool_limits(max(1, len(os.sched_getaffinity(0)) // workers)):
        yield
