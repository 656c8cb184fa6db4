"""Draw the picture of docs/two-questions.md: ``python docs/two_questions.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

mpl.use("agg")


def draw() -> None:
    """Draw the contributions and the coefficients of one row side by side."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = RandomForestRegressor(random_state=0).fit(X, y)
    explanation = limes.TabularExplainer(model, X)(X.iloc[[3]])
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.9), layout="constrained")
    explanation.plot.waterfall(ax=axes[0], title="Contributions", max_features=5)
    explanation.plot.bar(ax=axes[1], title="Coefficients", max_features=5)
    figure.savefig(Path(__file__).parent / "images" / "two-questions.png", dpi=130)


if __name__ == "__main__":
    draw()
