"""Draw the pictures of ``docs/gallery.md``: ``python docs/gallery.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import limes

mpl.use("agg")
FOLDER = Path(__file__).parent / "images" / "gallery"


def draw() -> None:
    """Draw every picture of an explanation of a table."""
    patients, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    forest = RandomForestRegressor(50, random_state=0).fit(patients, progression)
    many = limes.TabularExplainer(forest, patients)(patients.iloc[:200])
    wines, kind = load_wine(return_X_y=True, as_frame=True)
    wine = RandomForestClassifier(50, random_state=0).fit(wines, np.where(kind == 2, "Barbera", "other"))
    one = limes.TabularExplainer(wine, wines)(wines.iloc[[140]])
    pictures = {
        "bar": one.plot.bar,
        "waterfall": lambda: many.plot.waterfall(3, names={"s5": "triglycerides (log)"}),
        "mean": many.plot.bar,
        "beeswarm": many.plot.beeswarm,
        "heatmap": many.plot.heatmap,
        "dependence": lambda: many.plot.dependence("bmi", color="s5"),
        "bandwidth": lambda: many.plot.bandwidth(3),
    }
    for name, picture in pictures.items():
        figure = picture().figure
        figure.savefig(FOLDER / f"{name}.png", dpi=72)
        plt.close(figure)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    draw()
