"""Code that runs with ``lime`` runs with the drop-in: patterns of public code, with both, by alias.

A pattern that ``lime`` itself cannot run today is run with the drop-in alone, unless that refuses it too.
What the others return must be of the same form, and its numbers alike: coefficients within what two samples
of this size differ by. None runs in ``lime`` and not here.
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Mapping
from functools import cache
from types import ModuleType, SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest

from compat import client_images, client_pictures, client_rows, client_tables, client_texts, client_words
from compat.lime_alias import installed
from effort import crossed
from limes.compat.lime import engine
from limes.exceptions import LimesError
from pages import page

MODULES = ("discretize", "explanation", "lime_base", "lime_image", "lime_tabular", "lime_text")
FIRST = (client_tables, client_texts, client_images)
FURTHER = (client_rows, client_words, client_pictures)
PATTERNS = {
    f"{kind.__name__.rpartition('_')[2]}-{name}": pattern
    for kind in (*FIRST, *FURTHER)
    for name, pattern in vars(kind).items()
    if getattr(pattern, "__module__", "") == kind.__name__ and not name.startswith(("_", "as_tokens"))
}
# What lime 0.2.0.1 cannot do, with today's IPython, NumPy and scikit-image
FAILS_IN_LIME = {
    "tables-a_notebook": "cannot import name 'display'",
    "tables-a_notebook_of_a_regression": "cannot import name 'display'",
    "texts-a_notebook": "cannot import name 'display'",
    "texts-a_notebook_with_the_text": "cannot import name 'display'",
    "rows-a_notebook_of_picks": "cannot import name 'display'",
    "words-a_notebook_of_two_labels": "cannot import name 'display'",
    "rows-a_frame_with_texts": "(slice(None, None, None), 0)",
    "rows-classes_for_probabilities": "without probability scores",
    "words-an_empty_text": "low >= high",
    "pictures-channels_first": "Only RGB images",
}
# What the drop-in refuses, and says why
FAILS_HERE = {
    "rows-classes_for_probabilities": "pass predict_proba",
    "words-an_empty_text": "the text is empty",
    "pictures-channels_first": "np.moveaxis(image, 0, -1)",
}
# Warnings that say what differs; any other is an error
WARNED = {
    "tables-bins_around_the_row": "sample_around_instance changes nothing",
    "tables-fewer_class_names": "class_names has 1 names",
    "tables-a_target_among_the_names": "the first 4 are used",
    "pictures-a_segmentation_with_parameters_of_others": "'compactness' is not a parameter of quickshift",
    "pictures-a_misspelt_segmentation": "'kernal_size' is not a parameter of slic",
}


def modules():
    """The package, with its modules."""
    return SimpleNamespace(**{name: importlib.import_module(f"lime.{name}") for name in MODULES})


@pytest.fixture(autouse=True)
def without_a_screen():
    with mpl.rc_context({"backend": "agg"}):
        yield


@pytest.fixture(autouse=True)
def todays_notebook(monkeypatch):
    """A notebook of today: what lime imports display from has moved."""
    shown, outer = ModuleType("IPython.display"), ModuleType("IPython")
    shown.display, shown.HTML = print, str
    outer.version_info, outer.get_ipython = (9, 0), lambda: None
    monkeypatch.setitem(sys.modules, "IPython", outer)
    for name in ("IPython.core", "IPython.core.display"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "IPython.display", shown)


@cache
def theirs(name, tmp_path):
    """Return what lime itself returns, asked once for both engines; or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return PATTERNS[name](modules(), tmp_path)
        except Exception as error:  # noqa: BLE001 - whatever lime raises, the tests name it
            return error


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("clients")


@pytest.mark.parametrize(("name", "chosen"), crossed(PATTERNS, ["limit", "lime"]))
def test_client(name, chosen, folder):
    pattern = PATTERNS[name]
    with installed(), engine(chosen), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if name in FAILS_HERE:
            assert name in FAILS_IN_LIME
            with pytest.raises(LimesError, match=re.escape(FAILS_HERE[name])):
                pattern(modules(), folder)
            return
        ours = pattern(modules(), folder)
        assert sys.modules["lime"].__name__ == "limes.compat.lime"
    assert [
        str(warning.message) for warning in caught if WARNED.get(name, "?") not in str(warning.message)
    ] == []
    assert bool(caught) == (name in WARNED)
    expected = theirs(name, folder)
    if isinstance(expected, Exception):
        assert FAILS_IN_LIME[name] in str(expected)
    else:
        assert name not in FAILS_IN_LIME
        check_alike(ours, expected)


@pytest.mark.parametrize("kinds", [FIRST, FURTHER], ids=["first", "further"])
def test_the_counts_are_those_of_the_docs(kinds):
    prefixes = tuple(f"{kind.__name__.rpartition('_')[2]}-" for kind in kinds)
    names = {name for name in PATTERNS if name.startswith(prefixes)}
    theirs, ours = len(names - set(FAILS_IN_LIME)), len(names - set(FAILS_HERE))
    text = page("from-lime.md")
    assert f"| {len(names)} | {theirs} | {ours} | {ours} |" in text
    # nothing that runs in lime breaks here
    assert set(FAILS_HERE) <= set(FAILS_IN_LIME)


def check_alike(ours, expected):
    """Check that two results have one form, and numbers that differ no more than two samples do."""
    if isinstance(expected, Mapping) and all(is_name_and_number(pair) for pair in expected.items()):
        assert len(ours) == len(expected)
        check_shared(ours, expected)
    elif isinstance(expected, Mapping):
        assert list(map(str, sorted(ours, key=str))) == list(map(str, sorted(expected, key=str)))
        if all(map(is_number, expected.values())):
            check_numbers([ours[key] for key in expected], list(expected.values()))
        else:
            for key, value in expected.items():
                check_alike(ours[key], value)
    elif isinstance(expected, list) and expected and all(map(is_name_and_number, expected)):
        assert len(ours) == len(expected)
        assert all(map(is_name_and_number, ours))
        check_shared(dict(ours), dict(expected))
    elif isinstance(expected, list | tuple) and not all(isinstance(value, float) for value in expected):
        assert len(ours) == len(expected)
        for our, their in zip(ours, expected, strict=True):
            check_alike(our, their)
    elif isinstance(expected, np.ndarray | list | tuple | float | np.floating):
        check_numbers(ours, expected)
    else:
        assert ours == expected


def is_name_and_number(pair):
    return isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and is_number(pair[1])


def is_number(value):
    return isinstance(value, float | np.floating)


# Largest difference of coefficients from a few hundred rows each, lime's ridge included, as a share of the
# largest of them
NOISE = 0.25


def check_numbers(ours, expected):
    ours, expected = np.asarray(ours, dtype=float), np.asarray(expected, dtype=float)
    assert ours.shape == expected.shape
    assert np.abs(ours - expected).max() <= NOISE * np.abs(expected).max()


def check_shared(ours, expected):
    """Check the coefficients of names that are in both lists, and that the largest is."""
    largest = max(expected, key=lambda name: abs(expected[name]))
    assert largest in ours
    shared = [name for name in expected if name in ours]
    check_numbers([ours[name] for name in shared], [expected[name] for name in shared])
