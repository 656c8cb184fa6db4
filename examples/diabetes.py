"""The README's example: explain one patient, exactly, and draw the README's picture."""

from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(random_state=0).fit(X, y)

explainer = limes.TabularExplainer(model, X)
explanation = explainer(X.iloc[[3]])

print(explanation)
figure, (left, right) = plt.subplots(1, 2, figsize=(12.5, 4), width_ratios=[3, 2], layout="constrained")
explanation.plot.bar(ax=left, unit="points")
explanation.plot.effect("bmi", ax=right, unit="points")
figure.savefig(Path(__file__).parent.parent / "docs" / "diabetes.png", dpi=100)
