"""How many small faults do the tests notice? ``python tools/mutants.py --count 150 --seed 0``.

Takes random sites of ``src/limes``, changes one of each (a comparison, an operator, a condition, a number, a
returned value) in a copy of the package, and runs tests on the copy until one fails: those of the file's room
(test files of its name, its docstring's example, tests that import it, its folder), then those of ``WIDER``.

Times are of the processor. A test that takes longer than ``--hang`` seconds fails. Tests that do not fit
into ``--near`` or ``--wider`` seconds do not run, and the mutant survives. In the end the tests that noticed
a mutant run on the package as it is, and must pass. Prints the share of mutants that was noticed, and the
survivors. Some are no faults (``<`` for ``<=`` where the two never are equal), which only a reader can tell.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "limes"
TESTS = ROOT / "tests"
WIDER = (
    "test_limit.py",
    "test_pipeline.py",
    "explainers",
    "expectations",
    "diagnostics",
    "test_fuzz.py",
    "compat",
)
PAIRS = [
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div)),
]
ONE_WAY = {ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr}
SWAPS = dict(PAIRS) | {second: first for first, second in PAIRS} | ONE_WAY


@dataclass(frozen=True)
class Mutant:
    """One change of one file: ``source`` is the file's text with it."""

    path: Path
    line: int
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.before}  ->  {self.after}"


@dataclass(frozen=True)
class Outcome:
    """What the tests made of a mutant: the one that failed, or none."""

    mutant: Mutant
    test: str | None


# -- mutants ----------------------------------------------------------------------------------------------


def changes(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield expressions of a node and what may stand in their place."""
    match node:
        case ast.Compare(left, [operator], comparators):
            yield node, ast.Compare(left, [SWAPS[type(operator)]()], comparators)
        case ast.BinOp(left, operator, right) if type(operator) in SWAPS:
            yield node, ast.BinOp(left, SWAPS[type(operator)](), right)
        case ast.BoolOp(operator, values):
            yield node, ast.BoolOp(SWAPS[type(operator)](), values)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield node, operand
        case ast.Constant(bool(value)):
            yield node, ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield node, ast.Constant(value + 1)
            yield node, ast.Constant(value - 1)
        case ast.If(test) | ast.While(test) | ast.IfExp(test):
            yield test, ast.UnaryOp(ast.Not(), test)
        case ast.Return(ast.expr() as value):
            yield value, ast.Constant(None)


def computing(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that compute: no annotations, decorators, messages of errors or parts of f-strings."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            children = value if isinstance(value, list) else [value]
            for child in children:
                if isinstance(child, ast.AST):
                    yield from computing(child)


def replaced(source: str, target: ast.expr, replacement: ast.expr) -> str:
    """The source with a replacement in parentheses; columns of a syntax tree count bytes."""
    lines = source.encode().split(b"\n")
    first, last = target.lineno - 1, (target.end_lineno or target.lineno) - 1
    before, after = lines[first][: target.col_offset], lines[last][target.end_col_offset :]
    changed = before + f"({ast.unparse(replacement)})".encode() + after
    return b"\n".join([*lines[:first], changed, *lines[last + 1 :]]).decode()


def mutants(count: int, seed: int, files: list[Path]) -> list[Mutant]:
    """Draw sites at random, each with one of its changes."""
    sites = [
        (path, choices)
        for path in files
        for node in computing(ast.parse(path.read_text("utf-8")))
        if (choices := [(a, b) for a, b in changes(node) if ast.unparse(a) != ast.unparse(b)])
    ]
    rng = random.Random(seed)  # noqa: S311 - a sample, no secret
    drawn = []
    for path, choices in rng.sample(sites, min(count, len(sites))):
        target, replacement = rng.choice(choices)
        source = replaced(path.read_text("utf-8"), target, replacement)
        drawn.append(Mutant(path, target.lineno, ast.unparse(target), ast.unparse(replacement), source))
    return drawn


# -- tests --------------------------------------------------------------------------------------------------


def near(path: Path) -> list[str]:
    """Tests of a file: of its name, its docstring's example, those that import it, and its room's."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    names = [part.strip("_") for part in parts]
    module = ".".join(("limes", *parts)).removesuffix(".__init__")
    everything = sorted(TESTS.rglob("test_*.py"))
    tests = [test for test in everything if test.stem == f"test_{names[-1]}"]
    tests.sort(key=lambda test: -len({*names} & {*test.parts}))
    tests += [test for test in everything if re.search(rf"\b{re.escape(module)}\b", test.read_text("utf-8"))]
    for depth in range(len(names) - 1, 0, -1):
        folder = TESTS.joinpath(*names[:depth])
        tests += sorted(folder.glob("test_*.py"))
    example = f"{TESTS / 'test_package.py'}::test_examples_in_docstrings_run[{module}]"
    return list(dict.fromkeys([*map(str, tests[:1]), example, *map(str, tests)]))


def first_failure(package: Path, tests: list[str], seconds: float, hang: float) -> str | None:
    """Run tests on a copy of the package until one fails, or until the time is over."""
    options = ("-x", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", "-p", "mutants")
    paths = os.pathsep.join([str(package.parent), str(Path(__file__).parent)])
    limits = {"MUTANTS_SECONDS": str(seconds), "MUTANTS_HANG": str(hang)}
    run = subprocess.run(  # noqa: S603 - pytest
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, **limits},
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    if run.returncode in (0, -signal.SIGXCPU):
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", run.stdout, re.MULTILINE)
    return failed[1] if failed else run.stdout[-300:]


# This file is a plugin of the pytest that it starts


def pytest_configure() -> None:
    """End the process when its time is over."""
    seconds = int(float(os.environ["MUTANTS_SECONDS"]))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 10))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Fail a test that takes too long: a mutant may have made a loop that never ends."""

    def stop(*_: object) -> None:
        raise TimeoutError("the test takes too long")

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, float(os.environ["MUTANTS_HANG"]))
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


# -- all of it ----------------------------------------------------------------------------------------------


def outcome(mutant: Mutant, limits: argparse.Namespace) -> Outcome:
    """Write a copy of the package with the mutant, and run tests on it."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "limes"
        shutil.copytree(PACKAGE, package)  # with what was compiled
        (package / mutant.path.relative_to(PACKAGE)).write_text(mutant.source, "utf-8")
        test = first_failure(package, near(mutant.path), limits.near, limits.hang)
        if test is None and limits.wider:
            test = first_failure(package, [str(TESTS / name) for name in WIDER], limits.wider, limits.hang)
    return Outcome(mutant, test)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "paths", nargs="*", type=Path, default=[PACKAGE], help="files or folders of src/limes"
    )
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--near", type=float, default=120.0, help="seconds for the tests of the room")
    parser.add_argument("--wider", type=float, default=240.0, help="seconds for other tests; 0: none")
    parser.add_argument("--hang", type=float, default=60.0, help="seconds for one test")
    return parser.parse_args()


def main() -> int:
    """Run mutants, and print what came of them."""
    options, start, outcomes = arguments(), time.monotonic(), []
    paths = [path.resolve() for path in options.paths]
    files = [file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    files = [file for file in files if file.name != "__main__.py"]  # nothing imports it
    with ThreadPoolExecutor(options.workers) as pool:
        drawn = mutants(options.count, options.seed, files)
        for one in pool.map(partial(outcome, limits=options), drawn):
            outcomes.append(one)
            print("survived" if one.test is None else "noticed ", one.mutant, "", one.test or "", flush=True)
    survivors = [one.mutant for one in outcomes if one.test is None]
    minutes = (time.monotonic() - start) / 60
    print(
        f"\n{len(outcomes) - len(survivors)} of {len(outcomes)} noticed in {minutes:.0f} minutes; survivors:"
    )
    print(*survivors, sep="\n")
    noticed = sorted({one.test for one in outcomes if one.test is not None and "::" in one.test})
    doubtful = first_failure(PACKAGE, noticed, 3600.0, options.hang) if noticed else None
    if doubtful:
        print(f"fails on the package as it is, too: {doubtful}")
    return int(bool(doubtful))


if __name__ == "__main__":
    sys.exit(main())
