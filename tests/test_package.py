"""The package as a whole: public names, laziness, documentation."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import limes
from limes._optional import MissingLibraryError

HEAVY = ("numba", "matplotlib", "pandas", "sklearn", "jinja2", "rich", "lime", "shap", "polars", "pyarrow")
MODULES = sorted(
    name for _, name, _ in pkgutil.walk_packages(limes.__path__, "limes.") if name != "limes.__main__"
)


def loaded(name):
    """A module, unless it needs a library that is large and not there."""
    try:
        return importlib.import_module(name)
    except MissingLibraryError as why:
        pytest.skip(str(why))


def test_import_is_lazy():
    code = f"import limes, sys; print([m for m in {HEAVY} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_explainer_class_needs_no_heavy_library():
    code = f"import limes, sys; limes.TabularExplainer; print([m for m in {HEAVY} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_public_names_exist_and_others_do_not():
    for name in limes.__all__:
        assert getattr(limes, name) is not None
    assert set(limes.__all__) <= set(dir(limes))
    with pytest.raises(AttributeError, match="tabular_explainer"):
        limes.tabular_explainer  # noqa: B018


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    result = doctest.testmod(loaded(name), raise_on_error=False)
    assert result.failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_all_lists_only_what_is_there(name):
    module = loaded(name)
    for public in getattr(module, "__all__", ()):
        assert hasattr(module, public)


def test_public_classes_and_functions_are_documented():
    for name in limes.__all__:
        thing = getattr(limes, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__doc__, name
            methods = [m for m in vars(thing) if not m.startswith("_") and callable(getattr(thing, m))]
            assert all(getattr(thing, m).__doc__ for m in methods), name
    for name in ("TabularExplainer", "limit"):
        text = inspect.getdoc(getattr(limes, name))
        for section in ("Parameters", "Raises", "References", "Examples"):
            assert f"{section}\n---" in text, (name, section)
