"""How many small faults do the tests notice? ``python tools/mutants.py --count 150 --seed 0``.

``--tests FILE:LINE`` lists the tests that enter a line's function, the quickest first, with their seconds.

Takes random sites of ``src/limes``, changes one of each (a comparison, an operator, a condition, a number, a
returned value) in a copy of the package, and runs tests on the copy until one fails: of the tests that enter
the changed function those of its room first, then the quickest, ``--seconds`` of them. Which functions a test
enters, and how long it takes, is recorded by one run of all tests (``--record``, or where there is no record
yet). A function that no test enters, as it runs in other processes or on import, has the tests of its room.

Every outcome is a line of ``--journal``; what is in the journal does not run again. A test fails that takes
longer than ``--hang`` seconds of the processor, and a run that takes three times as long as it should. In the
end the tests that noticed a mutant run on the package as it is, and must pass. Prints the share of mutants
that was noticed, and the survivors. Some are no faults (``<`` for ``<=`` where the two are never equal): only
a reader can tell.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "limes"
TESTS = ROOT / "tests"
RECORDS = ROOT / "build" / "mutants"
# As in `make test-deep`
TESTED = "not browser and not coverage and not wrappers"
# Where another number changes no result: sizes of blocks and caches, details of pictures and of warnings
SETTINGS = re.compile(
    r"BLOCK|BATCH|CACHE|TOGETHER|READERS|^maxsize$|^stacklevel$|^(fig|font|line)\w+$|^alpha$|^zorder$"
)
PAIRS = [
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div)),
]
ONE_WAY = {ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr}
SWAPS = dict(PAIRS) | {second: first for first, second in PAIRS} | ONE_WAY


@dataclass(frozen=True)
class Mutant:
    """One change of a function, or of what a module does on import; ``source`` is the file's text with it."""

    path: Path
    line: int
    function: str
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.before}  ->  {self.after}"


@dataclass(frozen=True)
class Outcome:
    """The tests of a mutant: the one that failed, or none; how many ran at most, of how many."""

    mutant: str
    test: str | None
    ran: int
    of: int
    seconds: float


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
        case ast.Constant(int(value) | float(value)) if abs(value) >= 10:
            yield node, ast.Constant(value * 2)
            yield node, ast.Constant(value // 2)
        case ast.Constant(int(value) | float(value)):
            yield node, ast.Constant(value + 1)
            yield node, ast.Constant(value - 1)
        case ast.If(test) | ast.While(test) | ast.IfExp(test):
            yield test, ast.UnaryOp(ast.Not(), test)
        case ast.Return(ast.expr() as value):
            yield value, ast.Constant(None)


def computing(node: ast.AST, function: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Yield the nodes that compute, each with the qualified name of its function.

    No annotations, decorators, messages of errors and warnings, parts of f-strings, and no settings; nor
    ``strict=True`` of zip, without which equal lengths have the same result.
    """
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Assert() | ast.If(ast.Name("TYPE_CHECKING")):
            return
        case ast.Call(ast.Attribute(attr="warn")) | ast.keyword("strict", ast.Constant(True)):
            return
        case ast.Assign([ast.Name(name)]) | ast.keyword(name) if name and SETTINGS.search(name):
            return
    yield node, function
    body = function
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        body = f"{function}.{node.name}".removeprefix(".")
    if isinstance(node, ast.FunctionDef):
        body += ".<locals>"
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list"):
            children = value if isinstance(value, list) else [value]
            for child in children:
                if isinstance(child, ast.AST):
                    yield from computing(child, body if field == "body" else function)


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
        (path, function, choices)
        for path in files
        for node, function in computing(ast.parse(path.read_text("utf-8")))
        if (choices := [(a, b) for a, b in changes(node) if ast.unparse(a) != ast.unparse(b)])
    ]
    rng = random.Random(seed)  # noqa: S311 - a sample, no secret
    drawn = []
    for path, function, choices in rng.sample(sites, min(count, len(sites))):
        target, replacement = rng.choice(choices)
        source = replaced(path.read_text("utf-8"), target, replacement)
        texts = ast.unparse(target), ast.unparse(replacement)
        drawn.append(Mutant(path, target.lineno, function.removesuffix(".<locals>"), *texts, source))
    return drawn


# -- tests --------------------------------------------------------------------------------------------------


@cache
def near(path: Path) -> list[str]:
    """Files of tests: of the file's name, its docstring's example, those that import it, and its room's."""
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
    example = f"{TESTS / 'checkout' / 'test_package.py'}::test_examples_in_docstrings_run[{module}]"
    files = [str(test.relative_to(ROOT)) for test in tests]
    return list(dict.fromkeys([*files[:1], str(Path(example).relative_to(ROOT)), *files]))


def records() -> dict[str, tuple[float, frozenset[str]]]:
    """Return the seconds that each test takes, and the functions that it enters, as ``file::function``."""
    tests = {}
    for part in RECORDS.glob("record-*.json"):
        content = json.loads(part.read_text("utf-8"))
        names = content["functions"]
        for test, (seconds, entered) in content["tests"].items():
            tests[test] = seconds, frozenset(names[i] for i in entered)
    return tests


def selected(
    mutant: Mutant, recorded: dict[str, tuple[float, frozenset[str]]], seconds: float
) -> tuple[list[str], int, float]:
    """Return the tests to run, how many enter the function, and the seconds that those to run should take."""
    function = f"{mutant.path.relative_to(PACKAGE)}::{mutant.function}"
    room = near(mutant.path)
    ranks = {name: rank for rank, name in enumerate(room)}

    def rank(test: str) -> int:
        return ranks.get(test, ranks.get(test.split("::")[0], len(room)))

    entering = [test for test, (_, functions) in recorded.items() if function in functions]
    candidates = entering or [test for test in recorded if rank(test) < len(room)]
    candidates.sort(key=lambda test: (rank(test), recorded[test][0]))
    chosen: dict[str, list[str]] = {}  # by file: fixtures of a file are made once
    total = 0.0
    for test in candidates:
        if not chosen or total + recorded[test][0] <= seconds:
            chosen.setdefault(test.split("::")[0], []).append(test)
            total += recorded[test][0]
    return [test for tests in chosen.values() for test in tests], len(entering), total


def pytest_run(
    package: Path, arguments: Iterable[str], wall: float | None = None, **settings: object
) -> tuple[int, str]:
    """Run pytest on a copy of the package with mutants_plugin.py: exit status and output."""
    paths = os.pathsep.join([str(package.parent), str(Path(__file__).parent)])
    names = {f"MUTANTS_{name.upper()}": str(value) for name, value in settings.items()}
    options = ("-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", "-p", "mutants_plugin", "-m", TESTED)
    run = subprocess.Popen(  # noqa: S603 - pytest
        [sys.executable, "-m", "pytest", *options, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, **names},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = run.communicate(timeout=wall)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)  # and the processes that the tests started
        output, _ = run.communicate()
        return -signal.SIGXCPU, output
    return run.returncode, output


def first_failure(package: Path, tests: list[str], seconds: float, hang: float) -> str | None:
    """Run tests on a copy of the package until one fails, or until they take too long, which is a failure."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = Path(folder) / "tests"
        chosen.write_text("\n".join(tests), "utf-8")
        files = list(dict.fromkeys(test.split("::")[0] for test in tests))
        limits = {"seconds": 30.0 + 3.0 * seconds, "hang": hang, "tests": chosen}
        status, output = pytest_run(package, ["-x", *files], wall=10.0 * (30.0 + seconds), **limits)
    if status == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    return failed[1] if failed else "takes too long" if status == -signal.SIGXCPU else output[-300:]


def function_at(path: Path, line: int) -> str:
    """The qualified name of the innermost function around a line; "" of a module's own lines."""
    name = ""
    for node, outer in computing(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or node.lineno):
            name = f"{outer}.{node.name}".removeprefix(".")
    return name


def print_tests(place: str) -> int:
    """Print the tests that enter the function at FILE:LINE, the quickest first; return 1 without any."""
    file, _, line = place.rpartition(":")
    path = Path(file).resolve()
    if not (line.isdigit() and path.is_relative_to(PACKAGE) and path.is_file()):
        print(f"{place!r}: pass a file of src/limes and a line, as in src/limes/_fitting.py:120")
        return 2
    function = f"{path.relative_to(PACKAGE)}::{function_at(path, int(line))}"
    entering = {test: seconds for test, (seconds, entered) in records().items() if function in entered}
    for test, seconds in sorted(entering.items(), key=lambda item: item[1]):
        print(f"{seconds:8.2f}  {test}")
    if not entering:
        print(f"no recorded test enters {function}; --record runs all tests, to see what they enter")
    return int(not entering)


# -- all of it ----------------------------------------------------------------------------------------------


def record() -> None:
    """Run all tests once, and store what they enter."""
    shutil.rmtree(RECORDS, ignore_errors=True)
    RECORDS.mkdir(parents=True)
    # a folder that is named runs whole, with the cases that tests/thinned.json leaves out
    _, output = pytest_run(PACKAGE, ["-n", "2", "--dist", "worksteal", str(TESTS)], record=RECORDS)
    print(output[-200:], flush=True)


def outcome(
    mutant: Mutant, recorded: dict[str, tuple[float, frozenset[str]]], options: argparse.Namespace
) -> Outcome:
    """Write a copy of the package with the mutant, and run tests on it."""
    tests, of, seconds = selected(mutant, recorded, options.seconds)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "limes"
        shutil.copytree(PACKAGE, package)  # with what was compiled
        (package / mutant.path.relative_to(PACKAGE)).write_text(mutant.source, "utf-8")
        test = first_failure(package, tests, seconds, options.hang)
    return Outcome(str(mutant), test, len(tests), of, round(time.monotonic() - start, 1))


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "paths", nargs="*", type=Path, default=[PACKAGE], help="files or folders of src/limes"
    )
    parser.add_argument("--tests", metavar="FILE:LINE", help="list the tests that enter a line's function")
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of the processor, for the tests of a mutant"
    )
    parser.add_argument("--hang", type=float, default=60.0, help="seconds for one test")
    parser.add_argument("--record", action="store_true", help="run all tests again, to see what they enter")
    parser.add_argument(
        "--journal", type=Path, default=RECORDS / "journal.jsonl", help="outcomes, a line each"
    )
    return parser.parse_args()


def main() -> int:
    """Run mutants, and print what came of them."""
    options = arguments()
    if options.tests:
        return print_tests(options.tests)
    paths = [path.resolve() for path in options.paths]
    files = [file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    files = [file for file in files if file.name != "__main__.py"]  # nothing imports it
    if options.record or not any(RECORDS.glob("record-*.json")):
        record()
    recorded = records()
    lines = options.journal.read_text("utf-8").splitlines() if options.journal.exists() else []
    outcomes = {one.mutant: one for one in (Outcome(**json.loads(line)) for line in lines)}
    drawn = mutants(options.count, options.seed, files)
    for mutant in drawn:
        if str(mutant) not in outcomes:
            one = outcomes[str(mutant)] = outcome(mutant, recorded, options)
            with options.journal.open("a", encoding="utf-8") as journal:
                journal.write(json.dumps(asdict(one)) + "\n")
            print("survived" if one.test is None else "noticed ", one.mutant, "", one.test or "", flush=True)
    drawn_outcomes = [outcomes[str(mutant)] for mutant in drawn]
    survivors = [one for one in drawn_outcomes if one.test is None]
    print(f"\n{len(drawn) - len(survivors)} of {len(drawn)} noticed; survivors, and how many tests they had:")
    for one in survivors:
        print(f"{one.mutant}  ({one.ran} tests of {one.of} that enter the function)")
    noticed = sorted({one.test for one in drawn_outcomes if one.test is not None and "::" in one.test})
    doubtful = first_failure(PACKAGE, noticed, 3600.0, options.hang) if noticed else None
    if doubtful:
        print(f"fails on the package as it is, too: {doubtful}")
    return int(bool(doubtful))


if __name__ == "__main__":
    sys.exit(main())
