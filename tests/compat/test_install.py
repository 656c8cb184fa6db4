"""``import lime`` means the drop-in after ``install()``, and only then."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys

import lime
import pytest

import limes.compat.lime

INSTALLED = """
import limes.compat.lime
limes.compat.lime.install()
limes.compat.lime.install()
import lime
import lime.lime_tabular
import lime.wrappers.scikit_image
from lime import discretize
from lime.exceptions import LimeError
assert lime is limes.compat.lime
assert lime.lime_tabular.LimeTabularExplainer.__module__ == "limes.compat.lime.lime_tabular"
from lime.utils.generic_utils import has_arg
assert has_arg is limes.compat.lime.wrappers.scikit_image.has_arg
assert lime.wrappers.scikit_image is limes.compat.lime.wrappers.scikit_image
assert discretize is limes.compat.lime.discretize
assert LimeError is limes.compat.lime.exceptions.LimeError
assert discretize.__spec__.name == "limes.compat.lime.discretize"
try:
    import lime.nothing
except ImportError as error:
    print(error)
"""


def test_lime_means_the_drop_in():
    result = subprocess.run([sys.executable, "-c", INSTALLED], capture_output=True, text=True, check=True)
    assert "lime.nothing" in result.stdout


def test_installing_after_lime_is_refused():
    assert sys.modules["lime"] is lime
    with pytest.raises(ImportError, match="first of all"):
        limes.compat.lime.install()


def test_the_drop_in_has_lime_s_modules():
    names = [name for _, name, _ in pkgutil.walk_packages(lime.__path__, "lime.") if ".tests" not in name]
    assert {"lime.lime_tabular", "lime.lime_text", "lime.lime_image"} <= set(names)
    for name in names:
        theirs, ours = (importlib.import_module(full) for full in (name, f"limes.compat.{name}"))
        public = {
            key: (getattr(ours, key), thing)
            for key, thing in vars(theirs).items()
            if inspect.isclass(thing) and thing.__module__ == name and not issubclass(thing, Exception)
        }
        for key, kinds in public.items():
            parameters, lime_parameters = ([*inspect.signature(kind).parameters] for kind in kinds)
            assert [p for p in parameters if p in lime_parameters] == lime_parameters, key
            methods = {m for m in vars(kinds[1]) if not m.startswith("_")}
            assert methods - set(dir(kinds[0])) == set(), key
