from __future__ import annotations

import inspect
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

import limes
from internals import LOWERS, RAISES, UNKNOWN
from limes.exceptions import InputError
from samples import NAMES, explanation

mpl.use("agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def drawn(ax):
    ax.figure.canvas.draw()  # every warning is an error: nothing overlaps, no glyph is missing
    return ax


def bars(ax):
    return [(bar.get_width(), bar.get_facecolor()) for bar in ax.patches]


def labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


@pytest.mark.parametrize("name", ["bar", "waterfall", "beeswarm", "heatmap", "dependence"])
def test_shared_options_are_in_the_signature_and_others_an_error(name):
    method = getattr(explanation().plot, name)
    parameters = inspect.signature(method).parameters
    assert {option: parameters[option].default for option in ("ax", "names", "title", "unit")} == {
        **dict.fromkeys(("ax", "names", "title")),
        "unit": "",
    }
    with pytest.raises(TypeError, match="colour"):
        method(0, colour="red")


def test_bars_are_the_coefficients_in_falling_size():
    e = explanation(2, d=4, values=[[1.0, 1.0, 1.0, 1.0], [0.5, -3.0, 0.0, 2.0]])
    ax = drawn(e.plot.bar(row=1))
    assert [width for width, _ in bars(ax)] == [-3.0, 2.0, 0.5, 0.0]
    colours = [mpl.colors.to_rgba(colour) for colour in (LOWERS, RAISES, RAISES)]
    assert [colour for _, colour in bars(ax)][:3] == colours
    assert labels(ax) == ["sex <= 1.5", "bp <= 1.5", "age <= 1.5", "bmi <= 1.5"]
    assert ax.get_ylim() == (3.5, -0.5)  # the largest on top
    assert not ax.containers[1:]  # exact: no error bars
    assert [0.0, 0.0] in [list(line.get_xdata()) for line in ax.lines]  # from which they start


@pytest.mark.parametrize("picture", ["bar", "beeswarm"])
def test_the_given_axes_come_back_and_no_figure_is_made(picture):
    figure, ax = plt.subplots()
    assert getattr(explanation(3).plot, picture)(ax=ax) is ax
    assert plt.get_fignums() == [figure.number]


def test_error_bars_reach_1_96_standard_errors():
    e = explanation(sampled=True, d=2, values=[[3.0, -1.0]], standard_errors=[[0.5, 0.25]])
    ax = drawn(e.plot.bar())
    ((_, _, (lines,)),) = [c for c in ax.containers if isinstance(c, mpl.container.ErrorbarContainer)]
    ends = [segment[:, 0].tolist() for segment in lines.get_segments()]
    np.testing.assert_allclose(ends, [[3 - 0.98, 3 + 0.98], [-1 - 0.49, -1 + 0.49]])
    assert "95 % error bars" in ax.get_xlabel()


def test_no_more_bars_than_asked_and_the_rest_is_counted():
    ax = drawn(explanation().plot.bar(max_features=3))
    assert len(bars(ax)) == 3
    assert "7 smaller ones not shown" in ax.get_xlabel()


def test_the_largest_prediction_is_the_default_output_of_bars():
    e = explanation(2, 3, predictions=[[0.1, 0.7, 0.2], [0.9, 0.0, 0.1]])
    assert e.plot.bar(row=0).get_title(loc="left").startswith("versicolor, row 0\nprediction 0.7,")
    assert e.plot.bar(row=1).get_title(loc="left").startswith("setosa, row 1\nprediction 0.9,")
    by_name = bars(e.plot.bar(0, output="virginica"))
    assert by_name == bars(e.plot.bar(0, output=2)) == bars(e.plot.bar(0, output=-1))
    assert sorted(width for width, _ in by_name) == sorted(e.coefficients.values[0, :, 2].tolist())


@pytest.mark.parametrize("output", ["virginica", None])
def test_one_dot_a_row_at_its_coefficient(output):
    e = explanation(30, 3)
    ax = drawn(e.plot.beeswarm(output, max_features=4))
    picked = e[..., "virginica"].top(4)
    assert labels(ax) == list(picked.feature_names)
    dots = np.concatenate([c.get_offsets() for c in ax.collections])
    assert len(dots) == 30 * 4
    for at, column in enumerate(picked.coefficients.values.T):
        near = dots[np.abs(dots[:, 1] - at) < 0.5]
        np.testing.assert_array_equal(np.sort(near[:, 0]), np.sort(column))
    assert "6 smaller ones not shown" in ax.get_xlabel()


def test_dots_of_equal_coefficients_do_not_hide_each_other():
    ax = drawn(explanation(9, d=1, values=np.ones((9, 1)), data=np.ones((9, 1))).plot.beeswarm())
    heights = np.concatenate([c.get_offsets() for c in ax.collections])[:, 1]
    assert len(set(heights.tolist())) == 9
    assert np.abs(heights).max() <= 0.38
    again = explanation(9, d=1, values=np.ones((9, 1)), data=np.ones((9, 1))).plot.beeswarm()
    np.testing.assert_array_equal(again.collections[1].get_offsets()[:, 1], heights)


def test_colour_is_the_rank_of_numbers_and_grey_for_the_rest():
    data = [[10.0], [-5.0], ["red"], [None], [-5.0], [np.nan]]
    ax = drawn(explanation(6, d=1, data=data).plot.beeswarm())
    grey, coloured = ax.collections
    assert len(grey.get_offsets()) == 3
    assert grey.get_zorder() > coloured.get_zorder()  # else the many hide the few
    assert mpl.colors.to_rgba(UNKNOWN) == tuple(grey.get_facecolor()[0])
    np.testing.assert_allclose(coloured.get_array(), [1.0, 0.25, 0.25])  # ties share their mean
    assert len(ax.figure.axes) == 2  # with a colour bar


def test_no_colour_bar_without_numbers():
    ax = drawn(explanation(4, d=1, data=[["a"], ["b"], ["a"], [None]]).plot.beeswarm())
    assert len(ax.figure.axes) == 1


def test_names_are_no_formulas():
    names = ["cost in $ or $", "$x_{$", *NAMES[2:]]
    e = explanation(2, feature_names=names, conditions=[names] * 2, output_names=["$\\frac$ [$]"])
    assert "$x_{$" in labels(drawn(e.plot.bar()))
    assert "$x_{$" in labels(drawn(e.plot.beeswarm()))


def test_long_conditions_are_cut_in_their_middle():
    e = explanation(d=1, conditions=[["a very long name of a feature, with its unit (mg/dl) <= 0.0203"]])
    (label,) = labels(drawn(e.plot.bar()))
    assert len(label) <= 40
    assert label.endswith("0.0203")


def test_not_finite_coefficients_draw_no_bar():
    e = explanation(3, d=3, values=[[np.nan, np.inf, 1.0]] * 3)
    assert [w for w, _ in bars(drawn(e[0].plot.bar())) if np.isfinite(w)] == [1.0]
    drawn(e.plot.bar())
    drawn(e.plot.beeswarm())


@pytest.mark.parametrize("empty", [explanation(0), explanation(d=0)])
def test_nothing_to_draw(empty):
    with pytest.raises(InputError, match="nothing to draw"):
        empty.plot.beeswarm()
    with pytest.raises((InputError, IndexError), match=r"nothing to draw|no row 0"):
        empty.plot.bar()


@pytest.mark.parametrize("max_features", [0, -1, True, 2.5])
def test_max_features_is_a_count(max_features):
    with pytest.raises(InputError, match="max_features"):
        explanation().plot.bar(max_features=max_features)
    with pytest.raises(InputError, match="max_features"):
        explanation().plot.beeswarm(max_features=max_features)


def test_wrong_rows_and_outputs_are_refused():
    with pytest.raises(IndexError, match="no row 5"):
        explanation().plot.bar(row=5)
    with pytest.raises(KeyError, match="no output 'x'"):
        explanation().plot.bar(output="x")


def test_given_axes_need_no_pyplot():
    code = """
import sys
sys.path.insert(0, "tests")
from matplotlib.figure import Figure
from samples import explanation
explanation(5).plot.bar(ax=Figure().subplots())
explanation(5).plot.beeswarm(ax=Figure().subplots())
print("matplotlib.pyplot" in sys.modules)
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "False"


def test_a_picture_of_a_rule_has_room_for_its_facts_alone():
    model = lambda z: 0.5 * z[:, 0] - 0.25 * z[:, 3]  # noqa: E731
    wide = limes.SparseExplainer(model, k=2)(np.ones((1, 40))).plot.bar(max_features=10)
    assert [text.get_text() for text in wide.get_yticklabels()] == ["x0", "x3"]
    assert wide.figure.get_figheight() == pytest.approx(1.6 + 2 * 0.34)
