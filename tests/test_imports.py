"""The import graph of the library, with imports inside functions: it has no circle."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import limes

SOURCE = Path(limes.__file__).parent
FILES = {
    ".".join(("limes", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}
ROOMS = ("_explanation", "_show", "_diagnostics")


def executed(tree):
    """Nodes of a module without those for type checkers alone, such as the type of ``explanation.plot``."""
    ahead = [tree]
    while ahead:
        node = ahead.pop()
        yield node
        types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        ahead += node.orelse if types else ast.iter_child_nodes(node)


def imported(tree):
    """Modules of the library that a module imports anywhere, whether when loaded or not."""
    for node in executed(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in FILES)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not followed"
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield from [name for name in (submodule, node.module) if name in FILES][:1]


def circles(graph):
    """Sets of two or more nodes that reach each other."""
    reached = {}
    for start in graph:
        seen, ahead = set(), [start]
        while ahead:
            for other in graph[ahead.pop()] - seen:
                seen.add(other)
                ahead.append(other)
        reached[start] = seen
    return {frozenset(b for b in reached[a] if a in reached[b]) for a in graph if a in reached[a]}


def room(name):
    return name.split(".")[1] if "." in name else name


@cache
def trees():
    return {name: ast.parse(path.read_text("utf-8")) for name, path in FILES.items()}


@cache
def import_graph():
    """Modules that each module imports; not of `limes`, which names all public classes for type checkers."""
    return {name: {*imported(tree)} - {name, "limes"} for name, tree in trees().items() if name != "limes"}


def test_circles_are_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == {frozenset("bc")}


def test_no_circle_of_modules():
    assert circles(import_graph()) == set()


def test_explanations_diagnostics_and_drawings_go_one_way():
    graph = {name: set() for name in ROOMS}
    for name, others in import_graph().items():
        if room(name) in ROOMS:
            graph[room(name)] |= {room(other) for other in others} & set(ROOMS) - {room(name)}
    assert graph == {
        "_explanation": set(),
        "_diagnostics": {"_explanation"},
        "_show": {"_explanation", "_diagnostics"},
    }


def test_drawings_are_looked_up_by_name_in_one_place_only():
    naming = {
        name
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("import_module")
        and "limes._show" in ast.unparse(node)
    }
    assert naming == {"limes._explanation.drawing"}


def test_tests_import_private_names_by_one_door():
    """Else a name that moves changes the tests that use it."""
    private = re.compile(
        r"^\s*(from|import) limes(\.\w+)*\._|^\s*from limes(\.\w+)* import .*\b_[a-z]", re.MULTILINE
    )
    tests = Path(__file__).parent
    others = [path.name for path in tests.rglob("*.py") if private.search(path.read_text("utf-8"))]
    assert others == []


def test_sizes_and_the_meaning_of_a_word_stay():
    texts = [path.read_text(encoding="utf-8") for path in FILES.values()]
    assert len(texts) <= 286
    assert max(text.count("\n") for text in texts) <= 900
    # what an expectation returns: nothing else is called moments
    assert sum(text.count("    def moments(") for text in texts) <= 16
    fitting = FILES["limes._fitting"].read_text(encoding="utf-8")
    assert not re.search(r"isinstance\([^)]*Expectation", fitting)
