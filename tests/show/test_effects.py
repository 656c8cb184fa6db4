"""Pictures of whole effects: the heights of their bars are the effects' values."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes
from limes.exceptions import InputError

mpl.use("Agg")


@pytest.fixture(scope="module")
def explanation():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return limes.TabularExplainer(RandomForestRegressor(10, random_state=0).fit(X, y), X)(X.iloc[:2])


@pytest.mark.parametrize("feature", ["bmi", 2])
def test_bars_are_the_effect(explanation, feature):
    axes = explanation.plot.effect(feature, row=1, title="Body mass", unit="points")
    effect = explanation[1].effects["bmi"]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx(effect.values)
    assert axes.get_title(loc="left").startswith("Body mass: ")
    assert "points" in axes.get_ylabel()
    plt.close(axes.figure)


def test_the_largest_effects_share_a_scale(explanation):
    axes = explanation.plot.effects(row=0, top=3)
    assert len(axes) == 3
    assert len({panel.get_ylim() for panel in axes}) == 1
    largest = max(explanation[0].effects, key=lambda effect: np.ptp(effect.values))
    assert largest.feature in axes[0].get_title(loc="left")
    plt.close(axes[0].figure)


def test_unknown_features_are_refused(explanation):
    with pytest.raises(InputError, match="bmi"):
        explanation.plot.effect("bmj")


def test_effects_of_many_rows_are_averaged(explanation):
    """A picture of all rows showed those of the first one."""
    axes = explanation.plot.effect("bmi")
    values = np.array([explanation[row].effects["bmi"].values for row in range(2)])
    assert [bar.get_height() for bar in axes.patches] == pytest.approx(values.mean(axis=0))
    assert "mean of 2 rows" in axes.get_title(loc="left")
    panels = explanation.plot.effects(top=2)
    assert len(panels) == 2
    plt.close("all")


def test_slopes_have_no_mean_effect():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = RandomForestRegressor(5, random_state=0).fit(X, y)
    slopes = limes.TabularExplainer(model, X, bins=None)(X.iloc[:3])
    with pytest.raises(InputError, match="pass row="):
        slopes.plot.effect("bmi")
    assert slopes.plot.effect("bmi", row=0).patches
    plt.close("all")
