"""Draw the picture of README.md: ``python docs/diabetes.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

mpl.use("agg")


def draw() -> None:
    """Draw the account of one patient's prediction, and the whole effect of the leading column."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = RandomForestRegressor(random_state=0).fit(X, y)
    explanation = limes.TabularExplainer(model, X)(X.iloc[[3]])
    figure, axes = plt.subplots(
        1, 2, figsize=(12.0, 4.4), layout="constrained", gridspec_kw={"width_ratios": [3, 2]}
    )
    explanation.plot.waterfall(ax=axes[0], unit="points")
    explanation.plot.effect("s5", ax=axes[1], unit="points")
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    draw()
