"""Check the house rules of CONTRIBUTING.md: ``python tools/house_rules.py [--count] PATH ...``.

Print file:line, the word, and what to write instead; with ``--count`` only their number in each folder. Exit
with 1 if there is any. Paths are files, and folders of Python, C++, Markdown and reStructuredText. Text in
backticks or fenced blocks is code, which is not checked as prose.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

# Names that a file imports from the package: what a reader has to know beside it. It only ever falls
MOST_IMPORTED = 81
SUFFIXES = (".py", ".md", ".rst", ".h", ".cpp")
# Names that do not say what a thing is -> what to write
NAMES = {
    "found": "what it is: coef, result, positions",
    "known": "what it is: cache, levels, names",
    "told": "explanation, reported",
    "said": "predictions, answer, message",
    "own": "what it is",
    "mine": "what it is",
    "left": "remaining, rest (a file that also names `right` may use it for a side)",
    "here": "this_process, position",
    "there": "exists, other",
    "given": "argument, options, inputs",
    "made": "what it is",
    "asked": "calls, rows",
    "taken": "selected, rows",
    "done": "finished, records",
    "had": "what it is",
}
# Names of numbers that decide what is rounding, or constant; one file has them, beside their one rule
JUDGEMENTS = re.compile(r"_*(\w+_)?(ROUNDING|CONSTANT)$")
JUDGES = "src/limes/_arrays.py"
# Phrases of docstrings, comments and strings (regular expressions) -> what to write
PHRASES = {
    r"(is|are) none": "does not exist, is not a ...",
    r"of (its|their) own": "its, separate",
    r"so (many|much)(?! (as|that))": "n, the number",
    r"nobody": "unused; or name who",
    r"let(s|ting)? go( of)?": "clear, release",
    r"what is known": "moments, rows finished so far",
    r"(go|goes|going|gone|went) on (with|from|where)": "resume, continue",
    r"(is|are|was|were|be|been) (told|said|had)": "report, raise, obtain",
    r"of no account": "ignored",
    r"(stay|stays|stayed) done": "kept",
    r"(has|have) not\b(?= *[.,;:]|$)": "is missing from, does not have",
    r"(say|give) (--|`)": "pass",
    r"in (any|other|its) company": "in every batch, with other rows",
    r"once a (background|pool|row|worker)": "once for each",
    r"unasked": "by default, on request only",
    r"told (apart )?from": "differs from, is indistinguishable from",
    r"warned of": "has a warning",
}
# Files that quote what the rules replace
QUOTING = ("tools/house_rules.py", "docs/STYLE.md")
# Beginnings of headings that are no noun phrase; a question, which ends in "?", may begin with "What"
_HEADINGS = re.compile(r"(Of|What) ")
# Beginnings of docstrings that have no subject and verb
_BEGINNINGS = re.compile(r"(Of|What|Those)\b(?!-)")
# Beginnings of names of tests that are no clause, or one without a subject
_TESTS = re.compile(r"test_(of|that|those|what|where|which|whose)_")
_UNDERLINE = re.compile(r"([=\-~^\"'*+#])\1{2,}")
_PHRASES = re.compile("|".join(rf"(?P<p{i}>\b(?:{phrase}))" for i, phrase in enumerate(PHRASES)))


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the names that code defines: variables, arguments, attributes, functions, classes, imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def texts(tree: ast.AST, source: str) -> Iterator[tuple[int, str]]:
    """Yield every line of docstrings, other strings and comments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for i, line in enumerate(node.value.split("\n")):
                yield node.lineno + i, line
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of Markdown or reStructuredText, empty ones in place of fenced blocks."""
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        mark = re.match(r"\s*(```+|~~~+|:::+\s*{(?:code|math|doctest))", line)
        if mark and not fence:
            fence = mark[1][:3]
            yield number, ""
        elif fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            yield number, ""
        else:
            yield number, line


def headings(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield headings: those that begin with #, and lines above an underline."""
    for i, (number, line) in enumerate(lines):
        if match := re.match(r"#{1,6} (.*)", line):
            yield number, match[1].strip()
        elif i + 1 < len(lines) and line.strip() and _UNDERLINE.fullmatch(lines[i + 1][1].strip()):
            yield number, line.strip()


def phrases(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Yield line, phrase and what to write instead."""
    for line, text in lines:
        for match in _PHRASES.finditer(re.sub(r"(`+).*?\1", "``", text)):
            yield line, match[0], PHRASES[[*PHRASES][int(str(match.lastgroup)[1:])]]


def problems(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, word and what to write instead."""
    source = path.read_text(encoding="utf-8")
    lines, titles = list(prose(source)), iter(())
    if path.suffix in {".h", ".cpp"}:
        lines = [(n, line.partition("//")[2]) for n, line in lines]
    elif path.suffix == ".py":
        tree = ast.parse(source)
        yield from problems_of_names(path, tree)
        for line, first in beginnings(tree):
            yield line, first, "a noun phrase, or a sentence that begins with a verb"
        lines = list(texts(tree, source))
        comments = [(n, line[2:]) for n, line in enumerate(source.split("\n"), 1) if line.startswith("# ")]
        titles = headings([(1, line) for line in (ast.get_docstring(tree) or "").split("\n")[:2]] + comments)
    else:
        titles = headings(lines)
    if not path.as_posix().endswith(QUOTING):
        yield from phrases(lines)
    for line, title in titles:
        if _HEADINGS.match(title) and not title.endswith("?"):
            yield line, title, "a noun phrase, or a question that ends in '?'"


def beginnings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and first line of docstrings, and names of tests, that begin without a subject."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _TESTS.match(node.name):
            yield node.lineno, node.name
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = (ast.get_docstring(node) or "").split("\n")[0]
            if _BEGINNINGS.match(first):
                yield node.body[0].lineno, first


def problems_of_names(path: Path, tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield line, name and what to write instead, and what is wrong with the file as a whole."""
    defined = {name.strip("_").lower() for _, name in names(tree)}
    if (count := imported_names(tree)) > MOST_IMPORTED:
        yield 1, f"{count} names imported from limes", f"at most {MOST_IMPORTED}: divide what the file does"
    if "src/limes/" in path.as_posix() and not path.as_posix().endswith(JUDGES):
        for line, name in judgements(tree):
            yield line, name, f"one of {JUDGES}, or say what else the number is"
    if path.stem.strip("_").lower() in NAMES:
        yield 1, path.name, NAMES[path.stem.strip("_").lower()]
    imports = any(isinstance(node, ast.ImportFrom) and node.module != "__future__" for node in tree.body)
    if path.name == "__init__.py" and imports and "all" not in defined:
        yield 1, "no __all__", "list the public names"
    for line, name in names(tree):
        word = name.strip("_").lower()
        if word in NAMES and not (word == "left" and "right" in defined):
            yield line, name, NAMES[word]


def judgements(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of a module's numbers that decide what is rounding, or constant."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name) and JUDGEMENTS.match(target.id):
                    yield node.lineno, target.id


def imported_names(tree: ast.Module) -> int:
    """Return how many names a module imports from limes."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return sum(len(node.names) for node in imports if (node.module or "").split(".")[0] == "limes")


def doubled_classes(files: list[Path]) -> Iterator[str]:
    """Yield the places of public classes that have a name in common; lime's modules keep lime's names."""
    places: dict[str, list[str]] = {}
    for file in files:
        if "compat" not in file.parts:
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(f"{file}:{node.lineno}")
    for name, several in places.items():
        if len(several) > 1:
            yield f"{' and '.join(several)}: {name!r}: write two names for two things"


def files_in(folder: Path) -> list[Path]:
    """Return the files of code and prose under a folder, without those of builds."""
    return sorted(
        path
        for suffix in SUFFIXES
        for path in folder.rglob(f"*{suffix}")
        if not {"_build", "__pycache__", "node_modules"} & {*path.parts}
    )


def main(arguments: list[str]) -> int:
    """Check the files under paths."""
    paths = [Path(name) for name in arguments if name != "--count"]
    files = [file for path in paths for file in (files_in(path) if path.is_dir() else [path])]
    counts: Counter[str] = Counter()
    for file in files:
        for line, word, advice in sorted(set(problems(file.resolve()))):
            counts[str(file.parent)] += 1
            if "--count" not in arguments:
                print(f"{file}:{line}: {word!r}: write {advice}")
    doubled = list(doubled_classes([file for file in files if "src" in file.parts and file.suffix == ".py"]))
    if "--count" in arguments:
        print("\n".join(f"{count:5d} {folder}" for folder, count in sorted(counts.items())))
    else:
        print("".join(f"{line}\n" for line in doubled), end="")
    return int(bool(counts or doubled))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
