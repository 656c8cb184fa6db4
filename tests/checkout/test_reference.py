"""Promises of the reference: every public name has an example, and every parameter is documented.

Functions and classes have a section of parameters. A method may document them in its prose, as ``name``, or
leave them to the protocol that it fulfils.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import limes
from internals import Features, MissingLibraryError
from limes.evaluate import Neighbourhood
from limes.models.forms import Form

pytest.importorskip("numpydoc")
from numpydoc.docscrape import NumpyDocString

API = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8").split("## Command line")[0]
PROTOCOLS = (Form, Features, Neighbourhood)
REFUSED = "unknown"  # **unknown: refused, with the nearest name
CONSTANTS = {"limes.__version__", "limes.compat.lime.ENGINES", "limes.evaluate.Explain"}


def public_names():
    """Each public class and function by its name, and `limes.Explanation` once."""
    sections = re.split(r"^## `([\w.]+)`$", API, flags=re.MULTILINE)[1:]
    for room, text in zip(sections[::2], sections[1::2], strict=True):
        if room == "limes.Explanation":
            continue
        try:
            module = import_module(room)
        except MissingLibraryError:
            continue
        for name in re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE):
            thing = getattr(module, name)
            if not inspect.ismodule(thing) and f"{room}.{name}" not in CONSTANTS:
                yield f"{room}.{name}", thing


NAMES = dict(public_names())
METHODS = {
    f"{name}.{key}": (thing, member)
    for name, thing in NAMES.items()
    if inspect.isclass(thing) and not issubclass(thing, BaseException)
    for key, member in inspect.getmembers(thing, lambda m: inspect.isfunction(m) or inspect.ismethod(m))
    if (not key.startswith("_") or key == "__call__") and member.__module__.startswith("limes")
}


def parsed(thing):
    """The sections of a docstring."""
    return NumpyDocString(inspect.getdoc(thing) or "")


def parameters(thing):
    """Names of the parameters that a caller passes."""
    try:
        names = list(inspect.signature(thing).parameters)
    except ValueError:  # an exception without a constructor
        return []
    return [name for name in names if not name.startswith("_") and name not in ("self", REFUSED)]


def documented(thing):
    """Names in the sections of parameters and attributes."""
    sections = parsed(thing)
    entries = [*sections["Parameters"], *sections["Other Parameters"], *sections["Attributes"]]
    return {name.strip().lstrip("*") for entry in entries for name in entry.name.split(",")}


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_documents_its_parameters_and_has_an_example(name):
    thing = NAMES[name]
    assert parsed(thing)["Examples"], f"{name} needs an example"
    if not getattr(thing, "_is_protocol", False):
        assert [p for p in parameters(thing) if p not in documented(thing)] == []


@pytest.mark.parametrize("name", METHODS)
def test_a_method_documents_its_parameters(name):
    owner, method = METHODS[name]
    key = name.rpartition(".")[2]
    elsewhere = [getattr(protocol, key) for protocol in PROTOCOLS if hasattr(protocol, key)]
    names = documented(method).union(*(documented(same) for same in elsewhere))
    if key == "__call__":
        names |= documented(owner)
    prose = " ".join(inspect.getdoc(same) or "" for same in (method, *elsewhere))
    missing = [p for p in parameters(method) if p not in names and f"`{p}`" not in prose]
    assert missing == [], f"{name}: document {missing}"


@pytest.mark.parametrize("name", [n for n in vars(limes.Explanation) if not n.startswith("_")])
def test_attributes_of_explanations_are_documented(name):
    member = vars(limes.Explanation)[name]
    doc = inspect.getdoc(limes.Explanation) or ""
    sections = parsed(limes.Explanation)["Parameters"]
    is_field = name in {n.strip() for entry in sections for n in entry.name.split(",")}
    assert is_field or inspect.getdoc(member), name
    if inspect.isfunction(member):  # by itself, or in the example of the class
        assert ">>>" in inspect.getdoc(member) or f".{name}(" in doc.split("Examples\n---")[1], name


def test_an_option_of_several_explainers_has_one_default():
    """But where the kinds of data differ: bins or words, slow models of images, segments by their names.

    And the law, of values in bins or of literals that flip; what fills a place, pixels or a text; and levels,
    which long texts have, and images if they are wanted.
    """
    differing = {"bandwidth", "ridge", "max_calls", "batch_size", "segments", "law", "fill", "hierarchy"}
    explainers = [getattr(limes, name) for name in limes.__all__ if name.endswith("Explainer")]
    defaults = {}
    for explainer in explainers:
        for option in inspect.signature(explainer).parameters.values():
            if option.default is not option.empty:
                defaults.setdefault(option.name, set()).add(repr(option.default))
    assert {name for name, values in defaults.items() if len(values) > 1} == differing
