"""A plugin of pytest for ``mutants.py``: chooses and limits tests, or records what they enter."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "limes"


def pytest_configure(config: pytest.Config) -> None:
    """End the process when its time is over, or record what it enters."""
    if "MUTANTS_RECORD" in os.environ:
        config.pluginmanager.register(Recorder())
    else:
        config.pluginmanager.register(Limits())


class Limits:
    """Runs the chosen tests in their order, each with a limit of time, and all of them with one."""

    def __init__(self) -> None:
        seconds = int(float(os.environ["MUTANTS_SECONDS"]))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 10))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the chosen tests."""
        chosen = Path(os.environ["MUTANTS_TESTS"]).read_text("utf-8").split("\n")
        ranks = {name: rank for rank, name in enumerate(chosen)}

        items[:] = sorted(
            (item for item in items if item.nodeid in ranks), key=lambda item: ranks[item.nodeid]
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """Fail a test that takes too long: a mutant may have made a loop that never ends."""

        def stop(*_: object) -> None:
            raise TimeoutError("the test takes too long")

        signal.signal(signal.SIGVTALRM, stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, float(os.environ["MUTANTS_HANG"]))
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)


class Recorder:
    """Records which functions of the package each test enters, and how long it takes."""

    def __init__(self) -> None:
        self._functions: dict[str, int] = {}
        self._tests: dict[str, tuple[float, list[int]]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Trace the calls of a test and of its fixtures, also in threads that it starts."""
        entered: set[CodeType] = set()

        def trace(frame: FrameType, *_: object) -> None:
            entered.add(frame.f_code)

        start = sum(os.times()[:4])  # with processes that have ended
        threading.settrace(trace)
        sys.settrace(trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]  # its default
            names = {name for code in entered if (name := self._name(code))}
            indices = sorted(self._functions.setdefault(name, len(self._functions)) for name in names)
            self._tests[item.nodeid] = sum(os.times()[:4]) - start, indices

    @staticmethod
    def _name(code: CodeType) -> str | None:
        if not code.co_filename.startswith(str(PACKAGE)):
            return None
        inner = re.sub(r"(\.<locals>)?\.<(lambda|\w+comp|genexpr)>", "", code.co_qualname)
        return f"{Path(code.co_filename).relative_to(PACKAGE)}::{inner}"

    def pytest_sessionfinish(self) -> None:
        """Write what this process recorded."""
        content = {"functions": [*self._functions], "tests": self._tests}
        path = Path(os.environ["MUTANTS_RECORD"]) / f"record-{os.getpid()}.json"
        path.write_text(json.dumps(content), "utf-8")
