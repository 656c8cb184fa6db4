"""Every python block of README.md and of the pages in docs/ runs, in the order of its page.

A page's blocks share their names. What a reader has already, such as a model, is a comment before the first
block that needs it: ``<!-- reader has`` ... ``-->``. Pages that are scripts run when the site is built.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from internals import MissingLibraryError

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"<!-- reader has\n(.*?)-->|```python\n(.*?)```", re.DOTALL)
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    if "```python" in path.read_text(encoding="utf-8")
)


@pytest.fixture
def without_lime(monkeypatch):
    """No module of lime is loaded, and none is afterwards that a page has loaded."""
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    loaded = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "lime"}
    for name in loaded:
        del sys.modules[name]
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "lime"]:
        del sys.modules[name]
    sys.modules.update(loaded)


def run(page):
    """Run the blocks of a page in one namespace, and return it."""
    names = {}
    for match in BLOCK.finditer(page):
        line = page[: match.start()].count("\n") + 2
        code = compile("\n" * (line - 1) + (match[1] or match[2]), "page", "exec")
        try:
            exec(code, names)  # noqa: S102 - the project's own pages
        except MissingLibraryError as why:
            pytest.skip(f"the blocks before line {line} ran; {why}")
    return names


@pytest.mark.examples
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # dask calls pandas so
@pytest.mark.usefixtures("without_lime")
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("agg")
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names = run((ROOT / page).read_text(encoding="utf-8"))
    if page == "README.md":
        assert names["explanation"].method == "exact"
        assert (tmp_path / "patient.html").exists()


PRINTED = re.compile(r"^# (.+)$", re.MULTILINE)


@pytest.mark.examples
@pytest.mark.parametrize(
    "page",
    [*sorted((ROOT / "docs" / "papers").glob("calls-*.md")), ROOT / "docs" / "papers" / "since.md"],
    ids=lambda path: path.stem,
)
def test_calls_of_a_paper_print_what_stands_below_them(page, capsys):
    """One page a paper: statement, call, number."""
    if page.stem == "calls-2025":
        pytest.importorskip("cvxpy", reason="pip install 'limes[sparse]'")
    text = page.read_text(encoding="utf-8")
    run(text)
    expected = PRINTED.findall("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)))
    assert len(expected) > 10
    assert len(expected) == text.count("\nprint(")
    assert capsys.readouterr().out.splitlines() == expected


def test_every_statement_of_a_paper_has_an_existing_call():
    """Links of the pages' tables lead to sections of the page, and the table of contents has all pages."""
    pages = sorted((ROOT / "docs" / "papers").glob("calls-*.md"))
    assert len(pages) == 4
    index = (ROOT / "docs" / "papers" / "index.md").read_text(encoding="utf-8")
    for page in pages:
        text = page.read_text(encoding="utf-8")
        titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
        anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
        table = [line for line in text.splitlines() if line.startswith("| ")]
        assert len(table) >= 12
        for anchor in re.findall(r"\(#([^)]+)\)", text):
            assert anchor in anchors, (page.name, anchor)
        assert f"({page.name})" in index


def test_a_block_that_fails_is_noticed_with_its_line():
    with pytest.raises(ZeroDivisionError) as failure:
        run("text\n\n<!-- reader has\nzero = 0\n-->\n\n```python\none = 1\none / zero\n```\n")
    assert failure.traceback[-1].lineno + 1 == 9
