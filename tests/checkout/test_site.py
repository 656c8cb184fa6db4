"""The site: no link leads nowhere, and the gallery has the names that people search for."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import limes

DOCS = Path(__file__).parents[2] / "docs"
broken_links = runpy.run_path(str(DOCS / "links.py"))["broken_links"]
GOOD = '<h1 id="there">There</h1><img src="../picture.png"><a href="#there">up</a>'


@pytest.fixture
def site(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "picture.png").write_bytes(b"")
    (tmp_path / "deep" / "page.html").write_text(GOOD, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "body",
    [
        '<a href="deep/page.html#there">',
        '<a href="deep/page.html?x=1#there">',
        '<a href="https://example.org/gone.html#nowhere">',
        '<a href="mailto:a@example.org">',
        '<img src="data:image/png;base64,AA==">',
        '<img src="picture.png" srcset="picture.png, picture.png 2.00x">',
        '<p id="caf&eacute;"></p><a href="#caf%C3%A9">',
    ],
)
def test_links_that_lead_somewhere_are_not_reported(site, body):
    (site / "index.html").write_text(body, encoding="utf-8")
    assert broken_links(site) == []


@pytest.mark.parametrize(
    ("body", "address"),
    [
        ('<a href="deep/gone.html">', "deep/gone.html"),
        ('<a href="deep/page.html#nowhere">', "deep/page.html#nowhere"),
        ('<a href="#nowhere">', "#nowhere"),
        ('<a href="deep/">', "deep/"),
        ('<img src="gone.png">', "gone.png"),
        ('<img src="picture.png" srcset="picture.png, gone.png 2.00x">', "gone.png"),
        ('<link href="gone.css">', "gone.css"),
    ],
)
def test_a_broken_link_is_reported_with_its_page(site, body, address):
    (site / "index.html").write_text(body, encoding="utf-8")
    assert broken_links(site) == [f"index.html: {address}"]


@pytest.mark.parametrize(
    "name",
    [
        *("waterfall", "force plot", "beeswarm", "global importance", "partial dependence", "scatter plot"),
        *("heat map", "counterfactual", "adverse action", "anchors", "drift", "interaction", "calibration"),
    ],
)
def test_the_gallery_has_the_names_that_people_search_for(name):
    pages = [path.read_text("utf-8").split('"""')[1] for path in (DOCS / "gallery").rglob("plot_*.py")]
    named = [page for page in pages if name in page.lower()]
    assert named
    assert any(re.search(rf"index::.*\b{name}", page, re.IGNORECASE) for page in named)


@pytest.mark.parametrize("name", ["Explanation", "TabularExplainer", "SparseExplainer", "Literals"])
def test_a_class_page_lists_methods_with_parentheses_and_properties_without(name):
    pytest.importorskip("numpydoc")
    page = runpy.run_path(str(DOCS / "assemble.py"))["_object_page"]("limes", name)
    properties, methods = page.split(".. list-table:: Methods")[:2]
    kind = getattr(limes, name)
    public = {key for key in vars(kind) if not key.startswith("_")}
    callables = {key for key in public if callable(getattr(kind, key))}
    assert callables <= set(re.findall(r"\* - \S*?`(\w+)\(\)", methods))
    cells = " ".join(re.findall(r"^ +\* - (.*)$", properties, re.MULTILINE))
    listed = set(re.findall(r"`(\w+)(?:``| <)", cells))
    assert listed.isdisjoint(callables)
    assert {key for key in public - callables if isinstance(vars(kind)[key], property)} <= listed
