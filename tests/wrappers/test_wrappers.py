"""Packages that wrap ``lime``, each with one call through ``install()``: the form of lime's own result.

``make test-wrappers`` installs them in a separate environment; a package that is absent is skipped.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from wrappers.calls import CALLS

SCRIPT = Path(__file__).with_name("calls.py")


def result(name, package):
    command = [sys.executable, str(SCRIPT), name, package]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert process.returncode == 0, process.stderr[-2000:]
    return json.loads(process.stdout.splitlines()[-1])


def form(value):
    """Names, lengths and kinds of numbers."""
    if isinstance(value, dict):
        return {key: form(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [form(entry) for entry in value]
    return "number" if isinstance(value, float) else value


@pytest.mark.wrappers
@pytest.mark.parametrize("name", CALLS)
def test_wrapper(name):
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    assert form(result(name, "limes")) == form(result(name, "lime"))
