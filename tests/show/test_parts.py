"""Pictures of several inputs: every text, image and series is drawn with its name and its numbers."""

from __future__ import annotations

import io
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from rich.console import Console

import limes
from limes import CompositeExplainer, Explanation, ImagePart, SeriesPart
from limes.exceptions import InputError

HALVES = {"segments": "grid", "segment_options": {"rows": 1, "columns": 2}, "fill": 0}
ROWS, COLUMNS = np.mgrid[:8, :12]
BEFORE = np.stack([20 * COLUMNS, 30 * ROWS, 0 * ROWS], axis=-1).astype(np.uint8)
QUESTION, ANSWER = "is it safe", "it is bad"
PARTS = {
    "question": "text",
    "answer": "text",
    "before": ImagePart(**HALVES),
    "after": ImagePart(**HALVES),
    "first": SeriesPart(count=2, fill=0.0),
    "second": SeriesPart(count=2, fill=0.0),
}
INPUT = {
    "question": QUESTION,
    "answer": ANSWER,
    "before": BEFORE,
    "after": BEFORE[::-1, ::-1].copy(),
    "first": np.arange(8.0) + 1.0,
    "second": np.full(8, 3.0),
}


def model(batch):
    """A sum over the words, halves and segments, with numbers that tell them apart."""
    return np.array(
        [
            0.5 * ("safe" in question)
            + 0.25 * ("it" in question)
            - 2.0 * ("bad" in answer)
            + before[0, 0].sum()
            + after[0, 11].sum() / 1000
            + first[0] / 10
            - second[7] / 2
            for question, answer, before, after, first, second in zip(*batch.values(), strict=True)
        ]
    )


@pytest.fixture(scope="module")
def explained():
    return CompositeExplainer(model, PARTS, max_calls=(1 << 14) + 9)(INPUT)


def coefficient(explanation, name):
    return explanation[:, name].coefficients.values[0, 0]


def test_a_page_draws_every_part_with_its_name(explained):
    for one in (explained, Explanation.from_json(explained.to_json())):
        page = one.to_html()
        assert re.findall(r'lx-part">(\w+)<', page) == [*PARTS]
        texts = re.findall(r'<p class="lx-text".*?</p>', page)
        assert [re.sub("<.*?>", "", text) for text in texts] == [QUESTION, ANSWER]
        # words that both texts have are coloured by their own coefficients
        assert re.search(r'title="\+0.5">safe<', texts[0])
        assert re.search(r'title="\+0.25">it<', texts[0])
        assert re.search(r'title="-2">bad<', texts[1])
        assert not re.search(r'title="\+0.25">it<', texts[1])
        assert page.count('class="lx-image"') == 2
        assert page.count('class="lx-series"') == 2
        urls = dict(re.findall(r"--lx-photo-(\d): url\((data:[^)]*)\)", page))
        used = re.findall(r"--lx-photo: var\(--lx-photo-(\d)\)", page)
        assert len({urls[number] for number in used}) == 2


def test_a_page_of_one_input_has_no_names_of_parts():
    page = limes.TextExplainer(lambda texts: [float("bad" in text) for text in texts])(ANSWER).to_html()
    assert "lx-part" not in page.split("</style>")[-1]


def test_the_report_draws_every_part(explained):
    page = explained.to_report()
    assert re.findall(r'"part":"(\w+)"', page) == [*PARTS]


def test_a_terminal_draws_every_text_and_series(explained):
    console = Console(file=io.StringIO(), width=100, color_system="truecolor", force_terminal=True)
    console.print(explained)
    lines = re.sub(r"\x1b\[[\d;]*m", "", console.file.getvalue()).splitlines()
    assert [line for line in lines if line.rstrip(":") in PARTS and line.endswith(":")] == [
        "question:",
        "answer:",
        "first:",
        "second:",
    ]
    assert lines[lines.index("answer:") + 1] == ANSWER


def test_pictures_of_a_part(explained):
    shown = {part: explained.plot.text(part=part) for part in (None, "question", "answer")}
    words = {
        part: "".join(
            patch.get_label() for patch in ax.patches if patch.get_label() not in ("", "_nolegend_")
        )
        for part, ax in shown.items()
    }
    assert "safe" in words[None]
    assert "bad" not in words[None]
    assert words[None] == words["question"]
    assert "bad" in words["answer"]
    first, second = (explained.plot.series(part=part) for part in ("first", "second"))
    np.testing.assert_array_equal(first.lines[0].get_ydata(), INPUT["first"])
    np.testing.assert_array_equal(second.lines[0].get_ydata(), INPUT["second"])
    np.testing.assert_array_equal(
        explained.plot.image(part="after", kind="original").images[0].get_array(), INPUT["after"]
    )
    figure = explained.plot.images(part="after", kind="original")
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), INPUT["after"])
    plt.close("all")


def contribution(explained, name):
    return explained.contributions.values[0, explained.feature_names.index(name)]


def test_masks_and_heat_maps_of_a_part(explained):
    before, after = (explained.heatmap(part=part) for part in ("before", "after"))
    np.testing.assert_array_equal(before, explained.heatmap())
    for part, heat in (("before", before), ("after", after)):
        assert heat[0, 0] == pytest.approx(contribution(explained, f"{part}: superpixel 0"), abs=1e-12)
        assert heat[0, 11] == pytest.approx(contribution(explained, f"{part}: superpixel 1"), abs=1e-12)
    assert explained.mask(part="after", top=1)[:, 6:].all()
    with pytest.raises(InputError, match="did you mean 'after'"):
        explained.mask(part="aftr")
    with pytest.raises(InputError, match="no image here"):
        explained.mask(part="answer")


@pytest.mark.parametrize("damage", [["x"], {"question": "text"}, "x"])
def test_damaged_pictures_are_refused(explained, damage):
    stored = Explanation.from_json(explained.to_json())
    stored.provenance["pictures"] = damage
    with pytest.raises(InputError, match="pictures of this explanation are damaged"):
        stored.to_html()
