"""Assemble the sources of the documentation site: ``python docs/assemble.py docs/_build/source``.

The site is made of the pages in ``docs/``, of documents that live elsewhere in the repository (``DOCUMENTS``), and of one
page for each public name that ``docs/api.md`` lists. All of them are copied into one folder, so that the
repository stays free of generated files. Links between documents become links between pages.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path, PurePosixPath
from textwrap import indent
from typing import get_origin

from numpydoc.docscrape import NumpyDocString

import limes

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# Documents of the repository, and the pages that they become
DOCUMENTS = {
    "ARCHITECTURE.md": "how-it-works.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
    "papers/garreau-2020/RESULTS.md": "papers/garreau-2020.md",
    "papers/garreau-2022/RESULTS.md": "papers/garreau-2022.md",
    "papers/mardaoui-2021/RESULTS.md": "papers/mardaoui-2021.md",
    "papers/koriche-2025/RESULTS.md": "papers/koriche-2025.md",
    **{
        path.relative_to(ROOT).as_posix(): f"benchmarks/{path.name}"
        for path in sorted((ROOT / "benchmarks" / "pages").glob("*.md"))
    },
}
# Results of public names that are no public names themselves, shown on the same page
RESULTS = {
    "limes.Explanation": (
        *("limes._show.plots.Plots", "limes._explanation.fit.Effects"),
        *(
            "limes._explanation.attribution.Coefficients",
            "limes._explanation.attribution.Contributions",
            "limes._explanation.fit.Interaction",
        ),
        "limes._explanation.rules.Certificate",
    ),
    "limes.diagnose": (
        *("limes._diagnostics.diagnosis.Diagnosis", "limes._diagnostics.diagnosis.RowDiagnosis"),
        *("limes._show.diagnostics.DiagnosisPlots", "limes._diagnostics.finding.Finding"),
    ),
    "limes.suggest_design": ("limes._explainers.tables.suggestion.DesignSuggestion",),
    "limes.summary": (
        *("limes._diagnostics.summary.Summary", "limes._diagnostics.summary.Cohort"),
        *("limes._diagnostics.summary.Pick", "limes._show.diagnostics.SummaryPlots"),
    ),
    "limes.TabularExplainer": ("limes._explainers.options.SamplingOptions",),
    "limes.PromptExplainer": ("limes._explainers.prompt.Cost",),
    "limes.SparseExplainer": (
        *("limes._explanation.rules.Contrast", "limes._explanation.rules.Change"),
        "limes._rules.problem.SparseSolution",
    ),
}
# Rooms of functions that need a library which the site may be built without; Sphinx imports them with a stand-in
OPTIONAL = ("limes.scale.dask", "limes.scale.spark")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
_ROOM = re.compile(r"^## `([\w.]+)`$", re.MULTILINE)
_NAME = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


def rooms(page: str) -> dict[str, list[str]]:
    """Return the public names of each room that the page of public names lists."""
    parts = _ROOM.split(page.split("## Command line")[0])[1:]
    return {room: _NAME.findall(text) for room, text in zip(parts[::2], parts[1::2], strict=True)}


def assemble(target: Path) -> None:
    """Write all pages into a folder, and remove pages that are no longer made."""
    pages = {path.relative_to(DOCS).as_posix(): path for path in DOCS.rglob("*") if _is_source(path)}
    written = {name: _page(path, name) for name, path in pages.items()}
    for source, name in DOCUMENTS.items():
        written[name] = _page(ROOT / source, name)
    if (ROOT / "papers" / "README.md").exists():
        written["papers/reproduced.md"] = _page(ROOT / "papers" / "README.md", "papers/reproduced.md")
    written |= _reference_pages()
    for name, content in written.items():
        _write(target / name, content)
    images = [path for kind in ("*.png", "*.jpg", "*.svg", "_static/*") for path in DOCS.rglob(kind)]
    outside = [*(ROOT / "benchmarks" / "results").glob("*.png"), *(ROOT / "papers").glob("*/*.png")]
    names = {path: path.relative_to(DOCS).as_posix() for path in images if "_build" not in path.parts}
    names |= {path: f"_repository/{path.relative_to(ROOT).as_posix()}" for path in outside}
    for path, name in names.items():
        _write(target / name, path.read_bytes())
    kept = {target / name for name in (*written, *names.values())}
    for path in target.rglob("*"):
        is_ours = path.suffix in {".md", ".rst"} and not _is_gallery(path.relative_to(target))
        if path.is_file() and is_ours and path not in kept:
            path.unlink()


def _is_source(path: Path) -> bool:
    return (
        path.suffix in {".md", ".rst"}
        and "_build" not in path.parts
        and not _is_gallery(path.relative_to(DOCS))
    )


def _is_gallery(path: Path) -> bool:
    """Whether sphinx-gallery writes the page: it takes these folders from ``docs/`` itself."""
    return (
        path.parts[0] in {"start", "questions", "guides", "explained", "gallery"} and path.name != "index.rst"
    )


def _page(path: Path, name: str) -> bytes:
    """Return a document as a page of the site: what it links to are pages, images, or names of files."""

    def linked(match: re.Match[str]) -> str:
        mark, text, target, anchor = match.groups()
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        file = (path.parent / target).resolve()
        if not file.exists():
            return match[0]  # a page that the site generates; Sphinx checks it
        place = _place(file.relative_to(ROOT).as_posix())
        if place is None:
            return f"{text} (`{file.relative_to(ROOT).as_posix()}`)" if text not in target else f"`{text}`"
        return f"{mark}[{text}]({_relative(place, name)}{anchor or ''})"

    if path.suffix != ".md":
        return path.read_bytes()
    text = _LINK.sub(linked, path.read_text("utf-8"))
    if name == "api.md":
        text = _with_links(text)
    if name == "benchmarks.md":
        text += _hidden(place for place in DOCUMENTS.values() if place.startswith("benchmarks/"))
    return text.encode()


def _place(source: str) -> str | None:
    """Return where a file of the repository is on the site; None if it is not there."""
    if source in DOCUMENTS:
        return DOCUMENTS[source]
    if source == "papers/README.md":
        return "papers/reproduced.md"
    if source.startswith("docs/"):
        page = source.removeprefix("docs/")
        if (ROOT / source).is_dir():
            return f"{page}/index.rst"
        return page.removesuffix(".py") + ".rst" if page.endswith(".py") else page
    return f"_repository/{source}" if source.endswith(".png") else None


def _relative(place: str, page: str) -> str:
    up = len(PurePosixPath(page).parts) - 1
    return "../" * up + place


def _with_links(page: str) -> str:
    """Return the page of public names with a link from each name to its page."""
    listed = rooms(page)
    head, *others = _ROOM.split(page)
    text = [head]
    for room, section in zip(others[::2], others[1::2], strict=True):
        rows, *rest = re.split(r"(?=^## Command line)", section, maxsplit=1, flags=re.MULTILINE)
        linked = _NAME.sub(lambda row, room=room: f"| {_reference_to(room, row[1], listed)} |", rows)
        text += [f"## `{room}`{linked}", *rest]
    return "".join(text) + _hidden(_reference_pages())


def _hidden(names: Iterable[str]) -> str:
    """Return a table of contents, which is not shown, of the pages below a page."""
    pages = "\n".join(name.rpartition(".")[0] for name in names)
    return f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"


def _reference_to(room: str, name: str, listed: Mapping[str, list[str]]) -> str:
    """Return a link to the page of a public name; a room, a constant and a field have no page."""
    if f"{room}.{name}" in listed and room == "limes" and name != "Explanation":
        return f"[`{name}`](#limes-{name})"
    if room == "limes.Explanation":
        member = inspect.getattr_static(limes.Explanation, name, None)
        is_method = inspect.isroutine(member)
        has_entry = is_method or isinstance(member, property)
    else:
        is_method = _role(room, name) == "autofunction"
        has_entry = bool(_role(room, name))
    shown = f"{name}()" if is_method else name
    place = room if room == "limes.Explanation" else _home(room, name)
    return f"{{py:obj}}`{shown} <{place}.{name}>`" if has_entry else f"`{shown}`"


def _home(room: str, name: str) -> str:
    """Return the room on whose page a public name is documented: one place for a name of two rooms."""
    if room in OPTIONAL:
        return room
    is_both = name in limes.__all__ and getattr(limes, name) is getattr(import_module(room), name)
    return "limes" if is_both else room


def _role(room: str, name: str) -> str:
    """Return the directive that documents a public name; "" for rooms and constants."""
    if room in OPTIONAL:
        return "autofunction"
    thing = getattr(import_module(room), name)
    if inspect.isclass(thing):
        return "autoexception" if issubclass(thing, BaseException) else "autoclass"
    if inspect.isfunction(thing):
        return "autofunction"
    return "autodata" if get_origin(thing) else ""


def _reference_pages() -> dict[str, bytes]:
    """Return one page for each public class, function and type."""
    listed = rooms((DOCS / "api.md").read_text("utf-8"))
    names = [
        (room, name)
        for room, names in listed.items()
        for name in names
        if room != "limes.Explanation" and _role(room, name) and _home(room, name) == room
    ]
    return {f"api/{room}.{name}.rst": _object_page(room, name).encode() for room, name in names}


def _object_page(room: str, name: str) -> str:
    parts = [f"{name}\n{'=' * len(name)}"]
    thing = None if room in OPTIONAL else getattr(import_module(room), name)
    if (
        inspect.isclass(thing) and thing.__name__ != name
    ):  # autodoc would say no more than that it is an alias
        parts.append(f".. py:data:: {room}.{name}\n\n   The public name of this class:")
        room, name = thing.__module__, thing.__name__
    parts += _documented(room, name)
    for result in RESULTS.get(f"{room}.{name}", ()):
        home, _, heading = result.rpartition(".")
        parts += [f"{heading}\n{'-' * len(heading)}", *_documented(home, heading)]
    return "\n\n".join(parts) + "\n"


def _documented(room: str, name: str) -> list[str]:
    """Return the entry of a name: tables of members come before the fields of a result, and after the options of a call."""
    tables, directive = _members(room, name), _directive(room, name)
    if room not in OPTIONAL and is_dataclass(getattr(import_module(room), name)):
        return [*tables, directive]
    return [directive, *(indent(table, "   ") for table in tables)]


def _members(room: str, name: str) -> list[str]:
    """Return a table of the properties of a class, and one of its methods: a line each."""
    if _role(room, name) != "autoclass":
        return []
    thing = getattr(import_module(room), name)
    properties, methods = _fields(thing), {}
    for key in dir(thing):
        member = inspect.getattr_static(thing, key)
        owner = next(base for base in thing.__mro__ if key in vars(base))
        if (key.startswith("_") and key != "__call__") or not owner.__module__.startswith("limes"):
            continue
        line = _first_sentence(inspect.getdoc(getattr(thing, key)) or "")
        if isinstance(member, property | cached_property) and line:
            properties[f":py:obj:`{key} <{room}.{name}.{key}>`"] = line
        elif inspect.isroutine(member) or isinstance(member, classmethod | staticmethod):
            shown = "explainer(...)" if key == "__call__" else f"{key}()"
            methods[f":py:obj:`{shown} <{room}.{name}.{key}>`" if line else f"``{shown}``"] = line
    tables = {"Properties": properties, "Methods": methods}
    return [_table(title, rows) for title, rows in tables.items() if rows]


def _fields(thing: type) -> dict[str, str]:
    """Return the fields of a dataclass and the documented attributes of a class, each with its first sentence."""
    if thing is limes.Explanation:
        return {
            f"``{key}``": line for key, line in _lines_of("limes.Explanation").items() if key in _names(thing)
        }
    sections = NumpyDocString(inspect.getdoc(thing) or "")
    entries = [*(sections["Parameters"] if is_dataclass(thing) else ()), *sections["Attributes"]]
    named = {tuple(key.strip() for key in entry.name.split(",")): entry for entry in entries}
    return {
        ", ".join(f"``{key}``" for key in keys): _first_sentence(" ".join(entry.desc)) or entry.type
        for keys, entry in named.items()
        if not isinstance(inspect.getattr_static(thing, keys[0], None), property | cached_property)
    }


def _names(thing: type) -> set[str]:
    return {field.name for field in fields(thing)}


def _lines_of(room: str) -> dict[str, str]:
    """Return what the page of public names says about each name of a room, as text without links."""
    page = (DOCS / "api.md").read_text("utf-8").split("## Command line")[0]
    section = dict(zip(*[iter(_ROOM.split(page)[1:])] * 2, strict=True))[room]
    lines = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE))
    return {
        key: _LINK.sub(r"\2", re.sub(r" \((\[[^\]]*\]\([^)]*\)(, )?)+\)", "", text))
        .replace("`", "``")
        .replace(r"\|", "|")
        for key, text in lines.items()
    }


def _first_sentence(text: str) -> str:
    """Return the first sentence of the first paragraph of a docstring, as text that Sphinx reads."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    sentence = re.split(r"(?<=\.) (?=[A-Z])", paragraph)[0]
    sentence = re.sub(r":\w+:`~?([^`<]+)`", r"``\1``", sentence)
    return re.sub(r"(?<![`\w])\|([^|`]+)\|(?!`)", r"\|\1\|", sentence)


def _table(title: str, rows: Mapping[str, str]) -> str:
    lines = [f".. list-table:: {title}", "   :class: limes-members", ""]
    return "\n".join([*lines, *(f"   * - {name}\n     - {_capital(line)}" for name, line in rows.items())])


def _capital(line: str) -> str:
    return line[:1].upper() + line[1:].removesuffix(".")


def _directive(room: str, name: str) -> str:
    role = _role(room, name)
    members = "\n   :members:\n   :inherited-members: Sequence\n   :special-members: __call__"
    return f".. {role}:: {room}.{name}{members if role == 'autoclass' else ''}"


def _write(path: Path, content: bytes) -> None:
    """Write a file whose content has changed, so that Sphinx reads only these again."""
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    assemble(Path(sys.argv[1]).resolve())
