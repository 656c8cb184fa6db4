"""lime's own tests with ``import lime`` meaning ``limes.compat.lime``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from unittest import mock

import limes.compat.lime
from limes.compat.lime import discretize, exceptions, explanation, lime_base, lime_tabular

MODULES = (discretize, exceptions, explanation, lime_base, lime_tabular)
ALIASES = {"lime": limes.compat.lime} | {f"lime.{m.__name__.rsplit('.', 1)[1]}": m for m in MODULES}


def suite(name):
    """A test module of the installed lime, executed under the alias."""
    home = Path(importlib.util.find_spec("lime").origin).parent / "tests" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"aliased_{name}", home)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, ALIASES):
        spec.loader.exec_module(module)
    return module
