"""lime's own tests with ``import lime`` meaning ``limes.compat.lime``."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from limes.compat.lime import install


def suite(name):
    """A test module of the installed lime, executed under the alias."""
    home = Path(importlib.util.find_spec("lime").origin).parent / "tests" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"aliased_{name}", home)
    module = importlib.util.module_from_spec(spec)
    with installed():
        spec.loader.exec_module(module)
    return module


@contextmanager
def installed(*, strict=False):
    """Let ``import lime`` mean the drop-in inside the block, and lime itself after it."""
    original = _taken_out()
    with mock.patch.object(sys, "meta_path", [*sys.meta_path]):
        install(strict)
        try:
            yield
        finally:
            install()
            _taken_out()
            sys.modules.update(original)


def _taken_out():
    names = [name for name in sys.modules if name.split(".")[0] == "lime"]
    return {name: sys.modules.pop(name) for name in names}
