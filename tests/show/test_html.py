from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from internals import RowWarning
from samples import NAMES, explanation

EVIL = "</script><script>alert(1)</script>"


class Reader(HTMLParser):
    """Collects tags with their attributes, and the text that a reader sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def having(self, tag, **attributes):
        return [a for t, a in self.tags if t == tag and attributes.items() <= a.items()]


@pytest.mark.parametrize("page", [explanation().to_html(), explanation(1, 3, sampled=True).to_html()])
def test_the_page_needs_nothing_else(page):
    reader = Reader(page)
    assert page.startswith("<!doctype html>")
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in reader.tags}
    assert not re.search(r"https?:|//|@import|url\(", page)
    assert "default-src 'none'" in page


@pytest.mark.parametrize("n", [1, 200])
@pytest.mark.parametrize(("k", "sampled"), [(None, False), (None, True), (3, True), (6, True)])
def test_ten_features_stay_below_100_kilobytes(n, k, sampled):
    warnings = [["A neighbouring bin changes the prediction by 31 % of its range."]] * n
    e = explanation(n, k, sampled=sampled, row_warnings=warnings)
    assert len(e.to_html().encode()) < 100_000


def test_every_text_is_escaped_and_visible():
    e = explanation(
        2,
        2,
        sampled=True,
        feature_names=[EVIL] * 10,
        conditions=[[EVIL] * 10] * 2,
        data=[[EVIL] * 10] * 2,
        output_names=[EVIL, '" onload="alert(2)'],
        reason=EVIL,
        row_warnings=[[EVIL], []],
        provenance={EVIL: EVIL, "meaning": EVIL},
    )
    for page in (e.to_html(), e._repr_html_(), e[0].to_html(), e[..., 0].to_html()):
        reader = Reader(page)
        assert "<script" not in page
        assert EVIL in reader.text
        assert not any("onload" in name for _, attrs in reader.tags for name in attrs)


def test_the_page_has_numbers_conditions_and_method():
    e = explanation(d=3, values=[[2.5, -1.25, 0.0]], fidelity=[0.875], predictions=[7.5])
    text = Reader(e.to_html()).text
    for words in ("prediction 7.5", "R² 0.875", "+2.500", "-1.250", "age <= 0.5"):
        assert words in text
    assert "exact: read off the model" in text
    assert "how much the surrogate changes if the condition holds rather than not" in text
    assert "bandwidth2.37" in text  # two cells of a table
    assert "±" not in text
    assert "R²" not in Reader(explanation(fidelity=[np.nan]).to_html()).text


def test_bars_are_as_long_as_the_coefficients():
    reader = Reader(explanation(d=3, values=[[3.0, -1.0, 0.0]])._repr_html_())
    (raises,), (lowers,) = reader.having("rect", **{"class": "p"}), reader.having("rect", **{"class": "m"})
    assert float(raises["width"].rstrip("%")) == pytest.approx(3 * 24.75, abs=0.1)
    assert float(lowers["width"].rstrip("%")) == pytest.approx(24.75, abs=0.1)
    assert raises["x"] == "24.8%"  # zero, where the other one ends
    assert lowers["x"] == "0.0%"
    assert not reader.having("rect", **{"class": "e"})


def test_sampled_bars_have_error_bars_and_say_so():
    page = explanation(sampled=True, d=2, values=[[3.0, -1.0]], standard_errors=[[0.5, 0.0]]).to_html()
    reader = Reader(page)
    (whisker,) = reader.having("rect", **{"class": "e"})
    assert float(whisker["width"].rstrip("%")) == pytest.approx(99 * 2 * 0.98 / 4.98, abs=0.11)
    for words in ("+3.0 ± 0.5", "-1.0 ± 0", "sampled with 64 model calls, because the model is a function"):
        assert words in reader.text


def test_many_rows_fold_and_the_rest_is_counted():
    reader = Reader(explanation(200).to_html())
    rows = reader.having("details", **{"class": "lx-row"})
    assert len(rows) == 50
    assert ["open" in row for row in rows] == [True] + [False] * 49
    assert "150 further rows not shown" in reader.text
    assert not Reader(explanation().to_html()).having("details", **{"class": "lx-row"})


def test_many_outputs_fold_but_the_largest_prediction():
    predictions = [[0.1, 0.2, 0.4, 0.3]]
    reader = Reader(explanation(1, 4, predictions=predictions).to_html())
    outputs = reader.having("details", **{"class": "lx-output"})
    assert ["open" in output for output in outputs] == [False, False, True, False]


def test_the_predicted_class_comes_first_and_warnings_name_titles():
    e = explanation(
        1,
        3,
        predictions=[[0.1, 0.2, 0.7]],
        provenance={"answer": "predict_proba"},
        row_warnings=[[RowWarning.about(["one", "two"], "odd", "far")]],
        output_names=["one", "two", "three"],
    )
    text, _ = Reader(e.to_html()).text.split("P(one), P(two): odd")
    assert text.index("P(three)") < text.index("P(one)") < text.index("P(two)")
    assert "P(one), P(two): odd" in str(e)


def test_many_features_are_cut_and_counted():
    reader = Reader(explanation(d=35).to_html())
    assert len(reader.having("svg")) == 20
    assert "15 smaller coefficients not shown" in reader.text


def test_errors_that_are_too_large_are_gathered_once():
    e = explanation(3, sampled=True, row_warnings=[[], [], []], row_converged=[True, False, True])
    assert e.row_warnings[1]
    assert Reader(e.to_html()).text.count("1 of 3 rows: standard errors did not reach") == 1


def test_warnings_are_at_the_row_and_summarised_above_many_rows():
    warnings = [["odd"], ["odd"], []]
    e = explanation(3, sampled=True, row_warnings=warnings, row_converged=[True, False, True])
    text = Reader(e.to_html()).text
    assert "2 of 3 rows: odd" in text
    assert "1 of 3 rows: standard errors did not reach 1.5% of the largest coefficient" in text
    assert len(Reader(e.to_html()).having("b", **{"class": "lx-flag"})) == 2
    assert Reader(e[0].to_html()).having("ul", **{"class": "lx-warnings"})


def test_the_style_stays_inside():
    page = explanation()._repr_html_()
    style = page[page.index("<style>") + 7 : page.index("</style>")]
    inner = re.sub(r"@(media|container)[^{]*{", "", style)
    # under JupyterLab's dark theme, too, only what is inside
    inner = inner.replace('[data-jp-theme-light="false"] .', ".")
    for selectors in re.findall(r"([^{}]+){", inner):
        for selector in selectors.split(", ."):
            assert selector.strip().lstrip(".").startswith("limes-explanation")
    assert "<html" not in page


def test_infinite_numbers_and_empty_explanations_are_drawn():
    values = [[np.nan, np.inf, -np.inf, 1.7e308, -1.7e308]]
    reader = Reader(explanation(d=5, values=values, predictions=[np.nan]).to_html())
    assert all(word in reader.text for word in ("nan", "+inf", "-inf"))
    assert not any("nan" in a.get("x", "") + a.get("width", "") for a in reader.having("rect"))
    assert "0 rows" in Reader(explanation(0).to_html()).text
    assert "intercept" in Reader(explanation(d=0).to_html()).text


def test_file(tmp_path):
    path = tmp_path / "e.html"
    e = explanation(feature_names=["größe ☃", *NAMES[1:]])
    assert e.to_html(path) == path.read_text(encoding="utf-8")
