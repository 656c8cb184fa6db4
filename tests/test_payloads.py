"""Hostile names, classes, texts and cells in every output: they remain text.

A hit is a tag, attribute, comment or style in a page, or a character in a terminal, that the same output of
harmless names does not have.
"""

from __future__ import annotations

import io
import json
import unicodedata
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import limes
from effort import repeats
from internals import Heartbeat
from limes.scale import explain_frame

CORES = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</style><style>*{background:url(//evil)}",
    "</title><svg onload=alert(1)>",
    "--><!-- x -->",
    "<![CDATA[x]]>",
    "&lt;b&gt;&#60;i&#62;",
    "javascript:alert(1)",
    "x;background:url(https://evil/b.png)",
    "{{7*7}}{% import os %}",
    "${7*7}#{7*7}",
    "=cmd|' /C calc'!A0",
    "[red]x[/red]",
    "[/b]",
    "[link=https://evil]x[/link]",
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[31m",
    "\x9b31m\x9d0;t\x9c",
    "\u202egnp.exe\u2066x",
    "a\r\nb\tc\x00\x0b",
    "$$\\frac{",
    "__proto__",
]
# As they are, closing a quoted attribute, a single one, an element, a script, and in the middle of words
FRAMES = ["{}", 'a" {} "', "a' {} '", "></td></div>{}<td>", "</script>{}", "x {} y"]
PAYLOADS = [frame.replace("{}", core) for core in CORES for frame in FRAMES]
HARMLESS = [f"name {i}" for i in range(len(PAYLOADS))]
# What these outputs may break a line with
BREAKS = {"\n"}


def explained(names):
    """Explanations whose columns, classes and cells have these names."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((60, len(names))), columns=names)
    y = np.array([names[i % 3] for i in range(60)], dtype=object)
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    explainer = limes.TabularExplainer(model, X, output=names[1])
    return explainer, explainer(X.iloc[:2], progress=False), X


class Page(HTMLParser):
    """Tags, attributes and comments of a page, and the addresses in its styles."""

    def __init__(self, text):
        super().__init__()
        self.seen = set()
        self.style = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.seen.add(f"<{tag}>")
        self.style = tag == "style"
        for name, value in attributes:
            self.seen.add(f"{tag} {name}")
            for word in ("url(", "javascript:", "@import", "expression("):
                if word in (value or "") and name in ("style", "href", "src", "xlink:href", "action"):
                    self.seen.add(f"{tag} {name} {word}")

    def handle_data(self, data):
        if self.style:
            self.seen.add(f"style {hash(data)}")

    def handle_comment(self, data):
        self.seen.add("comment")

    def handle_decl(self, decl):
        self.seen.add(decl)

    unknown_decl = handle_decl
    handle_pi = handle_decl


def controls(text):
    """Characters that a terminal, or an order of writing, obeys."""
    bidi = {*map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F])}
    return {c for c in text if (unicodedata.category(c) == "Cc" or c in bidi) and c not in BREAKS}


def page(text):
    return Page(text).seen | {repr(c) for c in controls(text)}


def terminal(text):
    return {repr(c) for c in controls(text)}


def svg(figure):
    import matplotlib.pyplot as plt

    out = io.StringIO()
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "same"}):
        figure.savefig(out, format="svg")
    plt.close(figure)
    tree = ElementTree.fromstring(out.getvalue())  # noqa: S314 - written a moment ago
    return {element.tag for element in tree.iter()} | {repr(c) for c in controls(out.getvalue())}


def printed(thing):
    out = io.StringIO()
    Console(file=out, width=200, color_system=None).print(thing)
    return out.getvalue()


def plot(explanation, kind):
    axes = getattr(explanation.plot, kind)()
    return (axes if hasattr(axes, "figure") else np.ravel(axes)[0]).figure


def json_again(explanation):
    text = explanation.to_json()
    again = limes.Explanation.from_json(text)
    assert again.feature_names == explanation.feature_names
    json.loads(text)
    return terminal(text) | page(again.to_html())


def parquet(explainer, X):
    lines = explain_frame(explainer, pa.Table.from_pandas(X.iloc[:2]), "long")
    out = pa.BufferOutputStream()
    pq.write_table(lines, out)
    again = pq.read_table(pa.BufferReader(out.getvalue()))
    assert again["feature"].to_pylist() == [*X.columns] * 2
    assert {text is None for text in again["error"].to_pylist()} == {True}
    return set()


def error_lines(names):
    """Get what long tables, Dask and Spark say of rows that cannot be explained, and pandas' page of it."""
    calm = pd.DataFrame({"a": np.arange(20.0)})
    explainer = limes.TabularExplainer(DecisionTreeRegressor(max_depth=2).fit(calm, calm["a"]), calm)
    lines = explain_frame(explainer, pd.DataFrame({"a": names}, dtype=object))
    assert lines["error"].notna().all()
    return terminal("\n".join(lines["error"])) | page(lines[["row", "error"]].to_html())


def messages(explainer, X):
    """Messages of errors about names, as the command line shows them."""
    from internals import one_line

    seen = set()
    for name in X.columns[:: repeats(1, 7)]:
        try:
            explain_frame(explainer, X.drop(columns=name))
        except limes.exceptions.InputError as error:
            seen |= terminal(one_line(str(error)))
    return seen


def bar(names):
    """The progress bar's words, which are of parts and counts alone."""
    with Heartbeat(10, 0, show=False) as heartbeat:
        return terminal(heartbeat.at_work())


@cache
def diagnosis(x):
    """For the first row."""
    return limes.diagnose(x[0])


OUTPUTS = {
    "str": lambda e, x, X: terminal(str(x)),
    "repr": lambda e, x, X: terminal(repr(x)),
    "row": lambda e, x, X: terminal(str(x[0])),
    "rich": lambda e, x, X: terminal(printed(x)),
    "summary": lambda e, x, X: terminal(printed(limes.summary(x)) + str(limes.summary(x))),
    "diagnosis": lambda e, x, X: terminal(printed(diagnosis(x)) + str(diagnosis(x))),
    "html": lambda e, x, X: page(x.to_html()),
    "notebook": lambda e, x, X: page(x[0]._repr_html_()),
    "diagnosis html": lambda e, x, X: page(diagnosis(x)._repr_html_()),
    "json": lambda e, x, X: json_again(x),
    "bar": lambda e, x, X: svg(plot(x[0], "bar")),
    "waterfall": lambda e, x, X: svg(plot(x[0], "waterfall")),
    "beeswarm": lambda e, x, X: svg(plot(x, "beeswarm")),
    "parquet": lambda e, x, X: parquet(e, X),
    "error lines": lambda e, x, X: error_lines([*X.columns]),
    "messages": lambda e, x, X: messages(e, X),
    "progress": lambda e, x, X: bar(X.columns),
}


@pytest.fixture(scope="module")
def hostile():
    return explained(PAYLOADS)


@pytest.fixture(scope="module")
def harmless():
    return explained(HARMLESS)


def test_there_are_more_than_a_hundred_payloads():
    assert len({*PAYLOADS}) >= 132
    assert len(OUTPUTS) >= 12


@pytest.mark.filterwarnings("ignore:Glyph:UserWarning")
@pytest.mark.parametrize("name", OUTPUTS)
def test_payloads_stay_text(name, hostile, harmless):
    show = OUTPUTS[name]
    hits = show(*hostile) - show(*harmless)
    assert not hits
