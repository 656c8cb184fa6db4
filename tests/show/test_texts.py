"""Pictures of texts: words at their positions, coloured by sign and size, escaped."""

from __future__ import annotations

from io import StringIO

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from rich.console import Console

from internals import LOWERS, RAISES, pieces
from limes import Explanation
from limes.exceptions import InputError
from samples import explanation
from show.test_html import Reader

mpl.use("agg")

TEXT = "Bad <b>food</b>,\nbad 👍🏽 service\x1b[31m!"


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def of_text(text=TEXT, k=None, **options):
    """Bad (twice) lowers, food raises, service does next to nothing."""
    words = ("bad", "food", "service")
    conditions = [f'"{word}" present' for word in words]
    spans = {
        condition: [[i, i + len(word)] for i in range(len(text)) if text[i : i + len(word)].lower() == word]
        for word, condition in zip(words, conditions, strict=True)
    }
    values = np.array([[-2.0, 1.0, 0.001]])
    if k is not None:
        values = np.stack([values, -values], axis=-1)
    return explanation(
        1,
        k,
        d=3,
        values=values,
        feature_names=words,
        conditions=[conditions],
        data=[[2, 1, 1]],
        provenance={"text": text, "spans": spans},
        **options,
    )


def test_pieces_are_the_text_with_coefficients():
    result = pieces(of_text(), 0, 0)
    assert "".join(p.text for p in result) == TEXT.replace("\x1b", " ")
    assert [(p.text, p.value, p.strength) for p in result if p.strength] == [
        ("Bad", -2.0, 1.0),
        ("food", 1.0, 0.5),
        ("bad", -2.0, 1.0),
    ]
    assert {p.feature for p in result if np.isnan(p.value)} == {-1}
    names = of_text().feature_names
    assert all(p.text.lower() == names[p.feature].lower() for p in result if p.feature >= 0)


def test_fewer_words_colour_fewer_places():
    assert [p.text for p in pieces(of_text().top(1), 0, 0) if p.strength] == ["Bad", "bad"]


def test_other_explanations_have_no_text():
    assert pieces(explanation(), 0, 0) == ()
    assert "lx-text" not in explanation().to_html().split("</style>")[-1]
    with pytest.raises(InputError, match="no text"):
        explanation().plot.text()


def test_html_escapes_and_colours_the_text():
    page = of_text().to_html()
    assert "<b>food" not in page
    assert "\x1b" not in page
    spans = Reader(page).having("span", **{"class": "m"})
    assert [span["style"] for span in spans] == ["--lx-at: 100%"] * 2
    assert [s["title"] for s in Reader(page).having("span", **{"class": "p"})] == ["+1"]
    assert "</span> &lt;b&gt;<span" in page
    assert "spans" not in Reader(page).text


def test_html_colours_each_output_by_itself():
    spans = Reader(of_text(k=2).to_html()).having("span", **{"class": "m"})
    assert [span["style"] for span in spans] == ["--lx-at: 100%"] * 2 + ["--lx-at: 50%"]


@pytest.mark.parametrize(("k", "colours"), [(None, False), (2, True)])
def test_the_terminal_colours_the_text(k, colours):
    e = of_text(k=k, predictions=[[2.0, 1.0]] if k else [2.0])
    styled, plain = StringIO(), StringIO()
    Console(file=styled, width=80, force_terminal=True, color_system="truecolor").print(e)
    Console(file=plain, width=80).print(e)
    assert "Bad <b>food</b>,\nbad 👍🏽 service [31m!" in plain.getvalue()
    assert ("coloured for setosa" in plain.getvalue()) is colours
    assert "\x1b[31m!" not in styled.getvalue()
    assert "\x1b[1;38;2;0;0;0;48;2;76;143;214mBad\x1b[0m" in styled.getvalue()  # blue: lowers


def test_plots_colour_words_where_they_stand():
    ax = of_text().plot.text()
    ax.figure.canvas.draw()  # every warning is an error
    boxes = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert [(b.get_xy()[0], int(b.get_xy()[1]), b.get_width()) for b in boxes] == [
        (0, 0, 3),
        (7, 0, 4),
        (0, 1, 3),
    ]
    assert [to_hex(b.get_facecolor()) for b in boxes] == [LOWERS, RAISES, LOWERS]
    runs = [patch.get_label() for patch in ax.patches if isinstance(patch, PathPatch)]
    assert runs == ["Bad", "<b>", "food", "</b>,", "bad", "👍🏽", "service", "[31m!"]


def test_plots_wrap_long_texts_and_take_axes():
    axes = plt.figure().add_subplot()
    ax = of_text("bad food " * 40 + "x" * 200).plot.text(ax=axes)
    assert ax is axes
    patches = [p for p in ax.patches if isinstance(p, PathPatch)]
    assert max(p.get_path().get_extents().x1 for p in patches) <= 84.5
    assert max(p.get_path().get_extents().y1 for p in patches) > 5


def test_texts_survive_json():
    again = Explanation.from_json(of_text().to_json())
    assert str(pieces(again, 0, 0)) == str(pieces(of_text(), 0, 0))


def test_a_long_text_is_cut():
    page = of_text("bad food " * 5000).to_html()
    assert "…" in page
    assert len(page) < 1_000_000


def test_a_plot_has_the_first_lines_of_a_long_text(monkeypatch):
    """Its axes have their limits: no curve of an outline is searched for its extremes."""
    searched = []
    curves = Path.iter_bezier
    monkeypatch.setattr(Path, "iter_bezier", lambda *args, **how: searched.append(1) or curves(*args, **how))
    ax = of_text("bad food " + "x" * 20_000).plot.text()
    outlines = [patch for patch in ax.patches if isinstance(patch, PathPatch)]
    assert not searched
    assert [len(patch.get_label()) for patch in outlines[2:]] == [84] * 59 + [1]
    assert outlines[-1].get_label() == "…"
    assert outlines[-1].get_path().get_extents().y1 < ax.get_ylim()[0]
