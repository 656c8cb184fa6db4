"""The package as a whole: public names, laziness, documentation."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import runpy
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import limes
from internals import (
    _FILLS,
    _HOME,
    _SEGMENTATIONS,
    KINDS,
    METHODS,
    SIGNS,
    TABLE_LAWS,
    WEIGHTS,
    MissingLibraryError,
    Plots,
    series_fills,
    series_segmentations,
)

ROOT = Path(__file__).parents[2]
HEAVY = (
    *("matplotlib", "pandas", "sklearn", "jinja2", "rich", "typer", "skops", "joblib"),
    *("lime", "shap", "polars", "pyarrow"),
)
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
    all_others = (*HEAVY, "numpy", "scipy", "narwhals", "threadpoolctl", "tqdm", "limes._kernels")
    code = f"import limes, sys; print([m for m in {all_others} if m in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_the_explainer_class_needs_no_heavy_library():
    code = f"import limes, sys; limes.TabularExplainer; print([m for m in {HEAVY} if m in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_public_names_exist_and_others_do_not():
    for name in limes.__all__:
        assert getattr(limes, name) is not None
    assert dir(limes) == sorted(limes.__all__)  # whatever was imported before
    with pytest.raises(AttributeError, match="tabular_explainer"):
        limes.tabular_explainer  # noqa: B018


def test_type_checkers_find_the_module_of_each_public_name():
    tree = ast.parse(Path(limes.__file__).read_text(encoding="utf-8"))
    (imports,) = (node.body for node in tree.body if isinstance(node, ast.If))
    homes = {
        alias.name: f"limes.{alias.name}" if statement.module == "limes" else statement.module
        for statement in imports
        for alias in statement.names
    }
    assert homes == _HOME


@pytest.mark.examples
@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    result = doctest.testmod(loaded(name), raise_on_error=False)
    assert result.failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_all_lists_only_existing_names(name):
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


def listed(page):
    """Names of each section of the page of public names."""
    sections = re.split(r"^## `([\w.]+)`$", page, flags=re.MULTILINE)[1:]
    return {
        room: re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)
        for room, text in zip(sections[::2], sections[1::2], strict=True)
    }


PAGE = listed((ROOT / "docs" / "api.md").read_text(encoding="utf-8").split("## Command line")[0])


@pytest.mark.parametrize("room", [room for room in PAGE if room != "limes.Explanation"])
def test_the_page_of_public_names_lists_all_of_a_room(room):
    assert sorted(PAGE[room]) == sorted(loaded(room).__all__)


def test_the_page_of_public_names_lists_all_modules_and_attributes():
    rooms = {name for name in limes.__all__ if inspect.ismodule(getattr(limes, name))}
    assert {f"limes.{name}" for name in rooms} <= PAGE.keys()
    names = {field.name for field in fields(limes.Explanation)}
    names |= {name for name in dir(limes.Explanation) if not name.startswith("_")}
    assert set(PAGE["limes.Explanation"]) == names


def test_the_page_of_public_names_lists_all_pictures():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    (pictures,) = re.findall(r"^\| `plot` \| pictures: (.*) \(\[gallery\]", page, flags=re.MULTILINE)
    methods = [name for name in vars(Plots) if callable(getattr(Plots, name)) and not name.startswith("_")]
    assert re.findall(r"`(\w+)`", pictures) == methods


@pytest.mark.parametrize(
    ("documented", "choices"),
    [
        (Plots.image, [*KINDS, *SIGNS]),
        (limes.gallery, KINDS),
        (limes.TabularExplainer, [*TABLE_LAWS, *WEIGHTS, *METHODS]),
        (limes.ImageExplainer, [*_SEGMENTATIONS, *_FILLS]),
        (limes.SeriesExplainer, [*series_segmentations, *series_fills]),
    ],
)
def test_docstrings_name_all_choices(documented, choices):
    assert set(choices) <= set(re.findall(r'"([\w+-]+)"', documented.__doc__))


PLACES = ["src", "kernels", "docs", "ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"]
EXAMPLES = {"study.py", "app.py"}  # a user's own, in examples
NAMED_FILE = re.compile(r"(?<![\w./*<>-])(?:[\w-]+/)*[\w-]+\.(?:py|pyi|cpp)\b|(?<=`)(?:[\w-]+/)+(?=`)")


def paths_of(*rooms):
    """Paths of all files and `folders/` of rooms, from the root."""
    paths = [path for room in rooms for path in (ROOT / room).rglob("*") if "__pycache__" not in path.parts]
    return [f"/{path.relative_to(ROOT)}" + "/" * path.is_dir() for path in paths]


def unknown_files(text, paths):
    """Files and `folders/` that a text names: no path from the root, and the end of none of paths."""
    names = {*NAMED_FILE.findall(text)} - EXAMPLES
    return {
        name
        for name in names
        if not (ROOT / name).exists() and not any(p.endswith(f"/{name}") for p in paths)
    }


@pytest.mark.parametrize("where", PLACES)
def test_every_file_that_is_named_exists(where):
    """src and ARCHITECTURE.md, prose and comments, name files of the package or paths from the root."""
    paths = paths_of("src", "kernels")
    if where not in ("src", "ARCHITECTURE.md"):
        paths += paths_of("tests", "tools", "benchmarks", "fuzz", "papers", "examples", "docs")
    suffixes = (".py", ".pyi", ".md", ".cpp", ".h")
    files = [path for path in (ROOT / where).rglob("*") if path.suffix in suffixes]
    texts = [path for path in files if "_build" not in path.parts] or [ROOT / where]
    unknown = {str(path.relative_to(ROOT)): unknown_files(path.read_text("utf-8"), paths) for path in texts}
    assert {path: names for path, names in unknown.items() if names} == {}


def test_a_file_that_was_renamed_is_noticed():
    paths = paths_of("src")
    stale = "`models/folding/` and ``designs/product.py`` of docstrings   # bins.py, of comments"
    assert unknown_files(stale, paths) == {"models/folding/", "designs/product.py", "bins.py"}
    assert unknown_files("`models/readers/`, designs/_product.py, _bins.py, tests/oracle.py", paths) == set()


def test_without_pyarrow_an_error_says_what_to_install():
    code = """
import importlib, sys
sys.modules["pyarrow"] = sys.modules["distributed"] = sys.modules["pyspark"] = None
from typer.testing import CliRunner
app = importlib.import_module("limes._cli.program").app
for name in ("dask", "spark"):
    try:
        importlib.import_module(f"limes.scale.{name}")
    except ImportError as error:
        print(name, error)
for command in (["verify", "x"], ["explain-table", "x", "x", "x"]):
    print(command[0], CliRunner().invoke(app, command).exception)
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    errors = dict(line.split(" ", 1) for line in process.stdout.splitlines())
    extras = {"dask": "dask", "spark": "spark", "verify": "scale", "explain-table": "scale"}
    assert errors.keys() == extras.keys()
    for name, extra in extras.items():
        assert f"pip install 'limes[{extra}]'" in errors[name]


def test_a_name_that_moved_warns_and_answers():
    with pytest.warns(FutureWarning, match="limes.suggest_design, which compares bandwidths"):
        moved = limes.suggest_bandwidth
    assert moved is limes.suggest_design
    assert "suggest_bandwidth" not in limes.__all__


def test_house_rules_are_checked(tmp_path):
    phrase = " ".join(["is", "told"])  # one string would break the rule in this file
    (tmp_path / "told.py").write_text(
        f'def f():\n    """The user {phrase}."""\n    found = 1\n    return found\n'
    )
    problems = runpy.run_path(str(ROOT / "tools" / "house_rules.py"))["problems"]
    assert [(line, word) for line, word, _ in sorted(problems(tmp_path / "told.py"))] == [
        (1, "told.py"),
        (2, phrase),
        (3, "found"),
    ]


def test_house_rules_of_prose(tmp_path):
    phrase, heading = " ".join(["is", "told"]), " ".join(["What", "it shows"])
    problems = runpy.run_path(str(ROOT / "tools" / "house_rules.py"))["problems"]
    for name, text in {
        "page.md": f"# {heading}\n\n`{phrase}`\n\n```\n# {heading} {phrase}\n```\n\nThe user {phrase}.\n",
        "page.rst": f"{heading}\n{'=' * 13}\n\n\n\n\n\n\nThe user {phrase}.\n",
    }.items():
        (tmp_path / name).write_text(text)
        assert [(line, word) for line, word, _ in sorted(problems(tmp_path / name))] == [
            (1, heading),
            (9, phrase),
        ]
    (tmp_path / "page.md").write_text(f"# {heading}?\n")
    assert [*problems(tmp_path / "page.md")] == []
    (tmp_path / "page.py").write_text(f'"""\n{heading}\n{"=" * 13}\n"""\n# {heading}\n# -----\n')
    assert [word for _, word, _ in problems(tmp_path / "page.py")] == [heading] * 3
    (tmp_path / "page.py").write_text(
        f'class A:\n    """{heading}."""\n\n    def f(self):\n        """Of it."""\n'
    )
    assert [word for _, word, _ in problems(tmp_path / "page.py")] == [f"{heading}.", "Of it."]
    (tmp_path / "kernel.h").write_text(f"// The user {phrase}.\nint {phrase.replace(' ', '_')};\n")
    assert [(line, word) for line, word, _ in problems(tmp_path / "kernel.h")] == [(1, phrase)]


def test_one_file_decides_what_is_rounding(tmp_path):
    page = tmp_path / "src" / "limes" / "page.py"
    page.parent.mkdir(parents=True)
    page.write_text("_ROUNDING = 1e-8\nCOLUMN_ROUNDING = 2.0\nOTHER = 1.0\n")
    problems = runpy.run_path(str(ROOT / "tools" / "house_rules.py"))["problems"]
    assert [word for _, word, _ in problems(page)] == ["_ROUNDING", "COLUMN_ROUNDING"]


def test_two_classes_of_one_name_are_found(tmp_path):
    for place in ("one", "two", "compat"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "file.py").write_text("class Fit:\n    pass\n\n\nclass _Fit:\n    pass\n")
    doubled = runpy.run_path(str(ROOT / "tools" / "house_rules.py"))["doubled_classes"]
    (line,) = doubled(sorted(tmp_path.rglob("*.py")))
    assert "one/file.py:1 and " in line
    assert "two/file.py:1: 'Fit'" in line


def test_a_release_has_its_notes_and_its_citation():
    assert f"\nversion: {limes.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    command = [sys.executable, ROOT / "tools" / "release_notes.py", limes.__version__]
    notes = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert notes.startswith("### New")
    command[-1] = "0.0.1"
    assert (
        "has no section 0.0.1" in subprocess.run(command, capture_output=True, text=True, check=False).stderr
    )
