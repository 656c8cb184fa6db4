"""Pictures and sentences of pairs of contributions."""

from __future__ import annotations

import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge

import limes
from limes.exceptions import InputError

mpl.use("agg")

X, Y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
FOREST = RandomForestRegressor(10, max_depth=5, random_state=0).fit(X, Y)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def explained(model=FOREST, rows=4):
    return limes.TabularExplainer(model, X)(X.iloc[:rows], progress=False)


def cells_of(ax):
    return np.asarray(ax.images[0].get_array().filled(np.nan))


@pytest.mark.parametrize("most", [1, 3, 9, 10, 20])
def test_the_cells_add_up_and_so_do_their_texts(most):
    e = explained()
    ax = e.plot.pairs(2, max_features=most)
    cells = cells_of(ax)
    size = min(most, 10) + (most < 10)
    assert cells.shape == (size, size)
    gain = e.predictions[2] - e.contributions.base_values[2]
    assert np.nansum(cells) == pytest.approx(gain)
    assert np.isnan(cells[np.triu_indices(size, 1)]).all()
    *written, legend = [text.get_text().replace("\N{MINUS SIGN}", "-") for text in ax.texts]
    total = re.search(r"add up to (.*)\.", legend)[1]
    assert sum(map(float, written)) == pytest.approx(float(total))
    # whole numbers, of which the base and the prediction are rounded each
    assert float(total) == pytest.approx(gain, abs=1.0)


def test_a_cell_is_the_whole_of_a_pair():
    e = explained()[0, ["bmi", "bp", "s5"]]
    cells, pairs = cells_of(e.plot.pairs()), e.contributions.pairs[0]
    order = np.argsort(-np.abs(pairs).sum(axis=1), kind="stable")
    np.testing.assert_allclose(cells[1, 0], 2.0 * pairs[order[1], order[0]])
    np.testing.assert_allclose(cells[2, 2], pairs[order[2], order[2]])


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_it_takes_axes_and_words(style):
    with plt.style.context(style):
        ax = plt.subplots(figsize=(5, 4), layout="constrained")[1]
        words = {"names": {"bmi": "body mass index"}, "title": "For the board", "unit": "mg/dl"}
        assert explained().plot.pairs(0, ax=ax, **words) is ax
    assert ax.get_title(loc="left").startswith("For the board")
    assert "body mass" in " ".join(label.get_text() for label in ax.get_xticklabels())
    assert any(axes.get_ylabel() == "mg/dl" for axes in ax.figure.axes)


def test_probabilities_are_in_percentage_points():
    e = explained(LogisticRegression(max_iter=5000).fit(X, Y > 140))
    one = e[1, :, "True"]
    cells = cells_of(e.plot.pairs(1))
    assert np.nansum(cells) == pytest.approx(100 * (one.predictions[0] - one.contributions.base_values[0]))


def test_contributions_without_pairs_have_no_picture():
    e = limes.TabularExplainer(lambda x: x.sum(axis=1), X.to_numpy(), rng=0)(X.to_numpy()[:1], progress=False)
    with pytest.raises(InputError, match="pairs are exact where"):
        e.plot.pairs()
    with pytest.raises(InputError, match="max_features=0"):
        explained().plot.pairs(max_features=0)


def test_dots_have_the_colour_of_the_strongest_partner():
    e = explained(rows=60)
    ax = e.plot.dependence("bmi")
    sizes = np.abs(e.contributions.pairs[:, 2]).sum(axis=0)
    sizes[2] = 0.0
    assert ax.figure.axes[-1].get_ylabel() == e.feature_names[int(sizes.argmax())]
    alone = explained(Ridge().fit(X, Y), rows=20).plot.dependence("bmi")
    assert len(alone.figure.axes) == 1
    assert len(e.plot.dependence("bmi", color=None).figure.axes) == 1


def test_a_page_and_a_report_say_what_acts_together():
    e = explained()
    sentences = re.findall(r"Act together: ([^<]*); half of each", e.to_html())
    assert len(sentences) == 4
    pairs = e.contributions.pairs[0].copy()
    np.fill_diagonal(pairs, 0.0)
    i, j = sorted(divmod(int(np.abs(pairs).argmax()), 10))
    first = re.match(rf"{e.feature_names[i]} and {e.feature_names[j]} ([-+.\d]*)", sentences[0])
    assert float(first[1]) == pytest.approx(2.0 * pairs[i, j], rel=0.01)
    assert "Act together" not in explained(Ridge().fit(X, Y)).to_html()
    assert "Act together" in e.to_report(progress=False)
