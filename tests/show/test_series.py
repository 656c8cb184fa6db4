"""Pictures of series on pages, with matplotlib, in terminals: axes of time and value, one colour scale."""

from __future__ import annotations

import io
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import limes
from internals import drawn_lanes, even_ticks
from limes.exceptions import InputError

DAYS = pd.date_range("2024-03-01", periods=90, name="day")
LOAD = 40.0 + 8.0 * np.sin(np.arange(90) / 5.0)


def three_classes(batch):
    """The second has coefficients a tenth of the first's, of the other sign, and the third none."""
    score = np.asarray(batch)[:, -20:].mean(axis=1)
    return np.stack([score, -0.1 * score, np.ones(len(batch))], axis=1)


def explained(series=LOAD, **options):
    options = {
        "count": 6,
        "fill": 0.0,
        "labels": ["first", "second", "third"],
        "top": 3,
        "link": None,
    } | options
    return limes.SeriesExplainer(three_classes, **options)(series)


def dated(series=LOAD):
    return explained(pd.Series(series, index=DAYS))


# -- ticks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [2, 3, 4, 7])
@pytest.mark.parametrize("seed", range(40))
def test_ticks_are_round_numbers_between_the_ends(seed, most):
    rng = np.random.default_rng(seed)
    low = rng.normal() * 10.0 ** rng.integers(-6, 7)
    high = low + 10.0 ** rng.uniform(-4, 6)
    ticks = even_ticks(low, high, most)
    assert 1 <= len(ticks) <= most
    slack = 1e-9 * (high - low)
    assert all(low - slack <= tick <= high + slack for tick in ticks)
    if len(ticks) > 1:
        steps = np.diff(ticks)
        np.testing.assert_allclose(steps, steps[0], rtol=1e-6)
        leading = steps[0] / 10.0 ** np.floor(np.log10(steps[0]) + 1e-6)
        assert min(abs(leading - digit) for digit in (1, 2, 5)) < 1e-6 * leading
        # a step more is not possible: the next finer ticks are too many
        assert len(ticks) > most / 2.5 - 1


@pytest.mark.parametrize("ends", [(3.0, 3.0), (0.0, np.inf)])
def test_ticks_of_no_range(ends):
    assert even_ticks(*ends, 4) == [ends[0]]


# -- pages ---------------------------------------------------------------------------------------------------


def test_a_page_names_steps_and_values_where_they_are():
    (lane,) = drawn_lanes(dated(), 0, 0)
    assert lane["axis"] == "day"
    for tick in lane["across"]:
        step = DAYS.get_loc(tick["text"])
        assert tick["at"] == pytest.approx(100 * (step + 0.5) / 90, abs=0.06)
    assert len(lane["across"]) >= 3
    # heights are those of the line, which is drawn in 1000 x 100
    y = np.array([point.split()[1] for point in lane["path"][1:].split("L")], dtype=float)
    for tick in lane["up"]:
        height = y.max() - (float(tick["text"]) - LOAD.min()) / np.ptp(LOAD) * np.ptp(y)
        assert tick["at"] == pytest.approx(height, abs=0.2)
    assert len(lane["up"]) >= 2
    page = dated().to_html()
    assert all(f">{tick['text']}</span>" in page for tick in (*lane["across"], *lane["up"]))
    assert '<p class="lx-axis">day</p>' in page


def test_positions_are_steps():
    (lane,) = drawn_lanes(explained(), 0, 0)
    assert lane["axis"] == "step"
    assert [tick["text"] for tick in lane["across"]] == ["0", "20", "40", "60", "80"]


def test_all_classes_have_one_scale_of_colours():
    explanation = explained()
    opacities = [
        [stretch["opacity"] for stretch in lane["stretches"]]
        for k in range(3)
        for lane in drawn_lanes(explanation, 0, k)
    ]
    largest = max(map(max, filter(None, opacities)))
    assert max(opacities[1]) == pytest.approx(0.1 * largest, abs=0.006)
    assert opacities[2] == []
    page = explanation.to_html()
    scales = set(re.findall(r'lx-pale"><span>−([\d.]+)</span><i></i><span>\+([\d.]+)<', page))
    assert len(scales) == 1
    axes = [explanation.plot.series(name) for name in ("first", "second", "third")]
    limits = {ax.figure.axes[1].get_ylim() for ax in axes}
    largest = np.abs(explanation.contributions.values).max()
    assert len(limits) == 1
    np.testing.assert_allclose(limits.pop(), (-largest, largest), rtol=1e-12)
    alphas = [max(patch.get_alpha() for patch in ax.patches) for ax in axes]
    assert alphas[1] == pytest.approx(0.1 * alphas[0])
    plt.close("all")


def test_a_level_series_has_one_tick():
    (lane,) = drawn_lanes(explained(np.full(40, 7.5), fill=0.0), 0, 0)
    assert [tick["text"] for tick in lane["up"]] == ["7.5"]
    assert set(re.findall(r" ([\d.]+)", lane["path"])) == {f"{lane['up'][0]['at']:.1f}"}


def test_the_report_has_axes():
    page = dated().to_report()
    assert '"axis":"day"' in page


# -- names of steps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "first", "axis"),
    [
        (DAYS[:12], "2024-03-01 to 2024-03-06", "day"),
        (pd.date_range("2024-03-01 06:30", periods=12, freq="h"), "2024-03-01 06:30 to 2024-03-01 11:30", ""),
        (
            pd.date_range("2024-03-01 06:30:05", periods=12, freq="h"),
            "2024-03-01 06:30:05 to 2024-03-01 11:30:05",
            "",
        ),
        (pd.Index(range(100, 112), name="minute"), "100 to 105", "minute"),
        (pd.Index([f"{k} 00:00:00" for k in "abcdefghijkl"]), "a 00:00:00 to f 00:00:00", ""),
    ],
    ids=["days", "minutes", "seconds", "numbers", "texts"],
)
def test_steps_are_named_as_people_write_times(index, first, axis):
    explanation = limes.SeriesExplainer(lambda x: x.sum(axis=1), count=2)(pd.Series(range(12), index=index))
    assert explanation.feature_names[0] == first
    (lane,) = drawn_lanes(explanation, 0, 0)
    assert lane["axis"] == axis


# -- matplotlib ----------------------------------------------------------------------------------------------


def test_a_figure_has_axes_and_a_bar_of_colours():
    frame = pd.DataFrame({"load": LOAD, "heat": 20.0 - LOAD}, index=DAYS)
    explainer = limes.SeriesExplainer(lambda x: x[:, :9, 1].mean(axis=1), count=4, channels="apart")
    ax = explainer(frame).plot.series(channel="heat")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("day", "heat")
    labels = {
        int(at): text.get_text() for at, text in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
    }
    assert all(str(DAYS[at].date()) == text for at, text in labels.items())
    (bar,) = ax.figure.axes[1:]
    assert bar.get_ylabel() == "contribution to the prediction"
    drawn = explainer(frame).plot.series(of="coefficients", ax=plt.subplots()[1])
    assert drawn.figure.axes[1].get_ylabel() == "LIME coefficient"
    plt.close("all")


# -- terminals -----------------------------------------------------------------------------------------------


def printed(explanation, width=80):
    console = Console(file=io.StringIO(), width=width, color_system="truecolor", force_terminal=True)
    console.print(explanation)
    return console.file.getvalue()


def plain(text):
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_a_terminal_draws_columns_of_the_values():
    ramp = np.arange(32.0)
    lines = plain(printed(explained(ramp))).splitlines()
    assert lines[0] == "coloured for first:"
    rows = lines[1:6]
    assert rows[0].startswith("31 ")
    assert rows[4].startswith(" 0 ")
    levels = {block: eighths for eighths, block in enumerate(" ▁▂▃▄▅▆▇█")}
    heights = [sum(levels[row.ljust(67)[3 + column]] for row in rows) for column in range(64)]
    np.testing.assert_allclose(heights, 1 + 39 * np.repeat(ramp, 2) / 31, atol=0.51)
    assert lines[6].split() == ["0", "5", "10", "15", "20", "25", "30"]
    assert [lines[6].index(name) for name in ("10", "20")] == [3 + 20, 3 + 40]


@pytest.mark.parametrize("width", [30, 50, 80, 200])
@pytest.mark.parametrize("steps", [1, 7, 90, 2000])
def test_columns_fit_into_any_terminal(width, steps):
    series = np.sin(np.arange(float(steps)))
    explanation = limes.SeriesExplainer(lambda x: x.sum(axis=1), count=3)(series)
    lines = plain(printed(explanation, width)).splitlines()[:6]
    assert max(map(len, lines)) <= min(width, 76)
    assert len({len(line) for line in lines[:5]}) == 1


def test_peaks_are_seen_in_a_long_series():
    series = np.zeros(5000)
    series[3210] = 1.0
    explanation = limes.SeriesExplainer(lambda x: x.max(axis=1), count=4)(series)
    lines = plain(printed(explanation)).splitlines()
    assert lines[0].count("█") == 1
    assert lines[0].index("█") == 2 + 3210 * 64 // 5000


def test_columns_have_the_colours_of_their_segments():
    text = printed(explained())
    assert "\x1b[38;2;217;86;76m█" in text  # raises
    assert "\x1b[90m█" in text  # does nothing


def test_a_file_without_the_name_of_the_axis_is_drawn():
    explanation = limes.Explanation.from_json(dated().to_json().replace('"axis":"day"', '"other":"x"'))
    (lane,) = drawn_lanes(explanation, 0, 0)
    assert lane["axis"] == ""
    explanation.provenance["series"]["ticks"] = ["0"]
    with pytest.raises(InputError, match="damaged: it has 1 names"):
        explanation.plot.series()
