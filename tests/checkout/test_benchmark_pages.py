"""benchmarks/README.md quotes its pages exactly, and links between documents have a target."""

from __future__ import annotations

import inspect
import json
import re
from datetime import date
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks import readme
from benchmarks.__main__ import PARTS

import limes

ROOT = Path(__file__).parents[2]
FRONT = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "benchmarks").glob("*.md"),
    *(ROOT / "benchmarks" / "pages").glob("*.md"),
]
SITE = "benchmarks.md"  # docs/assemble.py makes it of benchmarks/README.md
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]*))?\)")


def headings(text):
    """Names of headings in links, as GitHub makes them, and those that the document gives: ``(name)=``."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    anchors = re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles} | {*anchors}


def broken(text, home):
    """Links of a text in the folder ``home`` whose file or heading does not exist."""
    for path, heading in LINK.findall(text):
        file = home / path
        if path == SITE or (heading and path and file.suffix != ".md"):
            continue
        if not file.exists():
            yield path
        elif heading and heading not in headings(file.read_text("utf-8") if path else text):
            yield f"{path}#{heading}"


@pytest.mark.parametrize("document", [str(path.relative_to(ROOT)) for path in DOCUMENTS])
def test_links_lead_somewhere(document):
    path = ROOT / document
    assert [*broken(path.read_text("utf-8"), path.parent)] == []


def test_broken_links_are_noticed():
    text = "# A title, `x`\n[a](#a-title-x) [b](#b) [c](nothing.md) [d](README.md#nothing) [e](https://e.org)"
    assert [*broken(text, ROOT)] == ["#b", "nothing.md", "README.md#nothing"]


def test_the_changelog_repeats_no_item_and_has_no_gaps_in_its_lists():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    items = re.findall(r"^- .*$", text, re.MULTILINE)
    assert len(items) == len({*items}) > 100
    assert re.findall(r"^- .*\n\n- .*$", text, re.MULTILINE) == []


def test_the_front_page_quotes_the_pages_as_they_are():
    assert readme.with_quotations(FRONT) == FRONT
    assert FRONT.count("\n") <= 400


def test_the_front_page_links_to_every_page():
    linked = set(re.findall(r"\(pages/(\w+)\.md\)", FRONT))
    assert linked == {page.stem for page in readme.PAGES.glob("*.md")}


@pytest.mark.parametrize("part", PARTS)
def test_every_part_has_a_page(part):
    text = "".join(page.read_text("utf-8") for page in readme.PAGES.glob("*.md"))
    assert text.count(f"<!-- {part}: written by python -m benchmarks -->") == 1
    assert text.count(f"<!-- end of {part} -->") == 1


def test_a_part_writes_its_page_and_the_quotation(tmp_path, monkeypatch):
    monkeypatch.setattr(readme, "HOME", tmp_path)
    monkeypatch.setattr(readme, "PAGES", tmp_path / "pages")
    (tmp_path / "pages").mkdir()
    begin, end = "<!-- speed: written by python -m benchmarks -->", "<!-- end of speed -->"
    quoted = "before\n\n<!-- speed, 1 and 3 -->\n\n{}<!-- end of quotation -->\n\nafter\n"
    (tmp_path / "pages" / "speed.md").write_text(f"# Speed\n\n{begin}\n\nold\n\n{end}\n\nlast\n")
    (tmp_path / "README.md").write_text(quoted.format(""))

    readme.replace("speed", "Machine: new\n\nnot quoted\n\n| a |\n|---|")

    page = (tmp_path / "pages" / "speed.md").read_text()
    start = f"# Speed\n\n{begin}\n\nMachine: new\n\nnot quoted\n\n| a |\n|---|\n\n"
    assert page == f"{start}{readme.stamp_of('speed')}\n\n{end}\n\nlast\n"
    assert readme.stamp_of("speed").startswith(f"Measured on {date.today()} by limes {limes.__version__}")
    assert (tmp_path / "README.md").read_text() == quoted.format("Machine: new\n\n| a |\n|---|\n\n")


def test_a_page_written_again_keeps_its_date_and_is_not_of_this_version(tmp_path, monkeypatch):
    monkeypatch.setattr(readme, "HOME", tmp_path)
    monkeypatch.setattr(readme, "PAGES", tmp_path)
    stamp = "Measured on 2026-01-31 by limes 0.1.0 at 0123abcd."
    (tmp_path / "README.md").write_text("")
    (tmp_path / "speed.md").write_text(
        f"<!-- speed: written by python -m benchmarks -->\n\nold\n\n{stamp}\n\n<!-- end of speed -->\n"
    )

    readme.replace("speed", "new words", stamp=readme.stamp_of("speed"))

    assert f"\n\nnew words\n\n{stamp}\n\n" in (tmp_path / "speed.md").read_text()
    assert not readme.is_of_this_version("speed")


def test_every_measurement_has_its_date_and_version():
    for page in readme.PAGES.glob("*.md"):
        for part in re.findall(r"<!-- ([\w ]+): written by python -m benchmarks", page.read_text("utf-8")):
            assert readme.stamp_of(part), part


@pytest.mark.parametrize("part", PARTS)
def test_every_part_measures_and_reports(part):
    run, report = (import_module(f"benchmarks.{part}.{name}") for name in ("run", "report"))
    assert callable(run.measure)
    assert callable(report.text)
    assert set(PARTS[part]) <= set(inspect.signature(run.measure).parameters)
    stored = json.loads((ROOT / "benchmarks" / "results" / f"{part}.json").read_text("utf-8"))
    assert report.text(stored)


def test_the_front_page_has_the_ratios_of_the_joint_law_s_table():
    """Its row about Shapley values of trees, and the sentence below the table, divide the table's times."""
    page = (ROOT / "benchmarks" / "pages" / "joint.md").read_text("utf-8")
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if "| 100 |" in line
    ]
    times = {line[0].split()[0]: [float(line[i]) for i in (4, 6, 7, 8)] for line in lines if len(line) == 11}
    (compiled, call, shap, batch), (forest_compiled, forest_call, forest_shap, forest_batch) = (
        times["XGBoost"],
        times["random"],
    )
    one = [f"{ratio:.2g}" for ratio in (shap / call, forest_shap / forest_call)]
    plain = [f"{ratio:.2g}" for ratio in (shap / compiled, forest_shap / forest_compiled)]
    many = [f"{ratio:.2g}" for ratio in (shap / batch, forest_shap / forest_batch)]
    assert " and ".join(one) + " for one row" in page
    assert " and ".join(plain) + " beside the compiled part; " + " and ".join(many) + " in batches" in page
    front = (ROOT / "README.md").read_text("utf-8")
    assert f"{one[1]} to {one[0]} times slower for one row ({plain[1]} to {plain[0]} beside" in front
    assert f"{many[1]} times or more in batches" in front
