"""Pictures of many rows, waterfalls and effects: their contents, and that users can replace every word."""

from __future__ import annotations

import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from scipy.stats import rankdata
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression

import limes
from effort import crossed
from internals import LOWERS, RAISES, Effect, changed, draw_effect, draw_effects, ranks
from limes.exceptions import InputError
from samples import explanation

mpl.use("agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def drawn(ax):
    ax.figure.canvas.draw()  # every warning is an error: nothing overlaps, no glyph is missing
    return ax


def names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


PICTURES = {
    "bar": lambda e, **o: e.plot.bar(**o),
    "bar of a row": lambda e, **o: e.plot.bar(1, **o),
    "waterfall": lambda e, **o: e.plot.waterfall(1, **o),
    "beeswarm": lambda e, **o: e.plot.beeswarm(**o),
    "heatmap": lambda e, **o: e.plot.heatmap(**o),
    "dependence": lambda e, **o: e.plot.dependence("bmi", color="sex", **o),
}


@pytest.mark.parametrize(
    ("picture", "style", "sampled"), crossed(PICTURES, ["default", "dark_background"], [True, False])
)
def test_all_take_axes_and_words_on_any_paper(picture, style, sampled):
    with plt.style.context(style):
        ax = plt.subplots(figsize=(4, 3), layout="constrained")[1]
        words = {"names": {"bmi": "body mass index"}, "title": "For the board", "unit": "mg/dl"}
        assert drawn(PICTURES[picture](explanation(12, sampled=sampled), ax=ax, **words)) is ax
    assert ax.get_title(loc="left").startswith("For the board")
    texts = " ".join(
        [ax.get_xlabel(), ax.get_ylabel(), *names(ax), *(a.get_ylabel() for a in ax.figure.axes)]
    )
    assert "mg/dl" in texts
    assert "body mass index" in texts
    assert "R² 0.8" in ax.get_title(loc="left").replace("\n", " ")


def test_a_name_of_no_feature_is_refused():
    with pytest.raises(InputError, match="did you mean 'bmi'"):
        explanation().plot.bar(names={"bmj": "body mass index"})


def test_bars_of_many_rows_are_means():
    values = np.array([[1.0, -4.0], [3.0, 4.0], [2.0, -4.0]])
    ax = drawn(explanation(3, d=2, values=values).plot.bar())
    assert [bar.get_width() for bar in ax.patches] == [4.0, 2.0]
    assert names(ax) == ["sex", "age"]
    assert "3 rows" in ax.get_title(loc="left")


def test_a_waterfall_adds_up():
    e = explanation(2, d=3, values=[[0.0] * 3, [2.0, -5.0, 0.5]], intercepts=[0, 10.0],
                    surrogate_predictions=[0, 7.5], predictions=[0, 9.0])  # fmt: skip
    ax = drawn(e.plot.waterfall(1, max_features=2))
    assert names(ax) == [
        *("intercept", "sex <= 1.5", "age <= 1.5", "1 smaller one"),
        *("surrogate", "not captured", "prediction"),
    ]
    steps = [(bar.get_x(), bar.get_width()) for bar in ax.patches]
    np.testing.assert_allclose(steps, [(10, -5), (5, 2), (7, 0.5), (7.5, 1.5)])
    colours = [mpl.colors.to_hex(bar.get_facecolor()) for bar in ax.patches]
    assert colours[:3] == [LOWERS, RAISES, RAISES]
    assert ax.get_title(loc="left").startswith("progression, row 1")


def test_slopes_are_drawn_per_standard_deviation_and_count_from_the_means():
    slopes = {"age": {"mean": 50.0, "deviation": 10.0}, "sex": {"mean": 0.5, "deviation": 0.5}}
    numbers = {"intercepts": [3.0], "surrogate_predictions": [18.0], "predictions": [18.0]}
    e = explanation(d=2, values=[[0.2, 1.0]], data=[[70.0, 1.0]], provenance={"slopes": slopes}, **numbers)
    assert [bar.get_width() for bar in drawn(e.plot.bar()).patches] == [2.0, 0.5]
    assert "per standard deviation" in e.plot.bar().get_xlabel().replace("\n", " ")
    ax = drawn(e.plot.waterfall())
    assert names(ax)[0] == "surrogate at the means"
    steps = [(bar.get_x(), bar.get_width()) for bar in ax.patches]
    np.testing.assert_allclose(steps, [(13.5, 4.0), (17.5, 0.5), (18.0, 0.0)])


def test_a_rule_has_no_waterfall():
    rule = limes.SparseExplainer(lambda z: z[:, 0], k=1, samples=100)([[1.0, 1.0]])
    with pytest.raises(InputError, match="rule"):
        rule.plot.waterfall()


def test_categories_have_their_names_in_a_beeswarm():
    ax = drawn(explanation(40, d=2).plot.beeswarm())
    assert {"female", "male"} <= {text.get_text() for text in ax.texts}


def test_a_heat_map_goes_by_prediction():
    e = explanation(
        3, d=2, values=[[1.0, 5], [2, 6], [3, 7]], predictions=[1.0, 3.0, 2.0], ids=["a", "b", "c"]
    )
    ax = drawn(e.plot.heatmap())
    (image,) = ax.images
    np.testing.assert_allclose(image.get_array(), [[6, 7, 5], [2, 3, 1]])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["b", "c", "a"]
    *_, scale = ax.figure.axes
    assert [label.get_text() for label in scale.get_yticklabels()] == ["-7", "0", "7"]


@pytest.mark.parametrize("color", [None, "age", "sex"])
def test_dependence_is_the_coefficient_against_the_value(color):
    e = explanation(8)
    ax = drawn(e.plot.dependence("bmi", color=color))
    dots = np.concatenate([c.get_offsets() for c in ax.collections])
    got = sorted(map(tuple, np.round(dots.astype(float), 9).tolist()))
    assert got == sorted(
        zip(np.round(e.data[:, 2].astype(float), 9), np.round(e.coefficients.values[:, 2], 9), strict=True)
    )


def test_rows_that_lack_a_number_lie_beside_the_others():
    e = explanation(5)
    cells = e.data.copy()
    cells[:, 2] = [30.0, None, 60.0, 40.0, np.nan]
    ax = drawn(changed(e, data=cells).plot.dependence("bmi"))
    x = np.concatenate([c.get_offsets() for c in ax.collections])[:, 0]
    assert sorted(x.round(9).tolist()) == [27.0, 27.0, 30.0, 40.0, 60.0]
    assert named_ticks(ax)[27.0] == "missing"
    assert all(
        place >= 30.0 and float(text) == place for place, text in named_ticks(ax).items() if text != "missing"
    )
    whole = named_ticks(drawn(e.plot.dependence("bmi")))
    assert "missing" not in whole.values()
    cells[:, 2] = None
    ax = drawn(changed(e, data=cells).plot.dependence("bmi"))
    assert len(np.concatenate([c.get_offsets() for c in ax.collections])) == 5
    assert "missing" in named_ticks(ax).values()


def named_ticks(ax):
    return dict(
        zip(ax.get_xticks().tolist(), [label.get_text() for label in ax.get_xticklabels()], strict=True)
    )


def test_the_sum_of_others_has_no_error_bar_and_missing_numbers_are_named_grey():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y)
    explainer = limes.TabularExplainer(lambda rows: model.predict(rows), X, max_calls=400)
    one = explainer(X.iloc[[3]], progress=False)
    ax = drawn(one.plot.bar(max_features=4))
    (bars,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    assert len(ax.patches) == 5
    assert len(bars.get_segments()) == 4
    gaps = X.assign(bmi=np.where(X["bmi"] > 30, np.nan, X["bmi"]))
    whole = limes.TabularExplainer(lambda rows: rows["bp"].to_numpy(), gaps, max_calls=200)
    assert drawn(whole(gaps.iloc[:5], progress=False).plot.beeswarm()).get_xlabel().endswith("grey: missing")
    assert "grey" not in drawn(one.plot.beeswarm()).get_xlabel()


def curve(feature, values, errors=0.0, current=1):
    cells = [f"{feature} <= 1", f"1 < {feature} <= 2", f"{feature} > 2"]
    return Effect(
        feature=feature,
        output="output",
        row=0,
        cells=tuple(cells),
        values=np.array(values),
        standard_errors=np.zeros(3) + errors,
        masses=np.array([0.5, 0.3, 0.2]),
        current=current,
        share=0.5,
    )


def test_an_effect_has_a_bar_a_cell_and_the_row_s_in_colour():
    ax = drawn(draw_effect(curve("bmi", [-1.0, 2.0, 0.5], 0.1)))
    assert [bar.get_height() for bar in ax.patches] == [-1.0, 2.0, 0.5]
    colours = [mpl.colors.to_hex(bar.get_facecolor()) for bar in ax.patches]
    assert colours[1] == RAISES
    assert colours[0] == colours[2]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["<= 1", "1 – 2", "> 2"]


def test_effects_share_a_scale_and_the_largest_comes_first():
    axes = draw_effects([curve("age", [0.0, 0.1, 0.0]), curve("bmi", [-3.0, 2.0, 0.0])])
    assert [ax.get_title(loc="left").split(":")[0] for ax in axes] == ["bmi", "age"]
    assert axes[0].get_ylim() == axes[1].get_ylim()


@pytest.mark.parametrize(
    "cells", [[3.0, 1.0, 2.0], [1.0, 1.0, 2.0, 5.0, 5.0], [np.nan, 4.0, -1.0, 4.0], [7.0]]
)
def test_colours_areranks_between_0_and_1(cells):
    numbers = np.array(cells)
    finite = ~np.isnan(numbers)
    expected = np.full(numbers.size, np.nan)
    expected[finite] = (rankdata(numbers[finite]) - 1) / max(finite.sum() - 1, 1)
    np.testing.assert_allclose(ranks(numbers), expected, rtol=1e-12)


# -- contributions -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def account():
    """Rows of a forest, whose columns interact."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y)
    return limes.TabularExplainer(model, X)(X.iloc[:6])


def test_a_waterfall_of_contributions_runs_from_the_base_to_the_prediction(account):
    ax = drawn(account.plot.waterfall(1, max_features=4))
    contributions = account.contributions
    largest = np.sort(np.abs(contributions.values[1]))[::-1]
    sizes = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(np.abs(sizes[:4]), largest[:4])
    assert contributions.base_values[1] + sum(sizes) == pytest.approx(account.predictions[1])
    first, *_, rest, last = names(ax)
    assert [first, rest, last] == ["usual", "6 others", "prediction"]
    assert names(ax)[1].split(" = ")[0] in account.feature_names


def test_pictures_of_contributions(account):
    values = account.contributions.values
    bars = drawn(account.plot.bar(1, of="contributions"))
    np.testing.assert_allclose(
        sorted(bar.get_width() for bar in bars.patches), np.sort(values[1]), atol=1e-12
    )
    means = drawn(account.plot.bar(of="contributions"))
    np.testing.assert_allclose(
        [bar.get_width() for bar in means.patches], np.sort(np.abs(values).mean(axis=0))[::-1]
    )
    dots = drawn(account.plot.dependence("bmi", of="contributions")).collections[-1].get_offsets()
    np.testing.assert_allclose(dots[:, 1], values[:, account.feature_names.index("bmi")])
    for picture in (account.plot.beeswarm, account.plot.heatmap):
        assert "contribution" in " ".join(
            text.get_text() for axes in drawn(picture(of="contributions")).figure.axes
            for text in (axes.xaxis.label, axes.yaxis.label)
        )  # fmt: skip
    with pytest.raises(InputError, match="of"):
        account.plot.bar(of="values")


def test_pages_of_rows_have_accounts_that_take_a_while():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = (X - X.mean()) / X.std()
    explanation = limes.TabularExplainer(LogisticRegression().fit(X, y), X)(X.iloc[:8])
    assert "<th>contribution, points</th>" in explanation[0].to_html()
    page = explanation.to_html()
    assert page.count("<th>contribution, points</th>") == 3 * page.count('class="lx-row"') > 3


def test_plot_itself_draws_what_suits_the_explanation():
    one, many = explanation(1), explanation(5)
    assert one.plot().get_title(loc="left") == one.plot.waterfall().get_title(loc="left")
    assert many.plot().get_xlabel() == many.plot.bar().get_xlabel()
    for name, advice in (("force", "plot.waterfall()"), ("path", "plot.bandwidth()"), ("bars", "'bar'")):
        with pytest.raises(AttributeError, match=re.escape(advice)):
            getattr(one.plot, name)


def test_a_few_far_values_do_not_stretch_the_colours():
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.normal(size=60), np.exp(3.0 * rng.normal(size=60)), np.arange(60) % 4])
    account = limes.TabularExplainer(lambda x: x[:, 0], table).contributions(table).plot
    usual = np.quantile(table[:, 1], [0.05, 0.95])
    assert drawn(account.dependence("x0", color="x1")).collections[-1].get_clim() == pytest.approx(usual)
    # few values all keep a colour, whatever their shares
    assert drawn(account.dependence("x0", color="x2")).collections[-1].get_clim() == (0.0, 3.0)
