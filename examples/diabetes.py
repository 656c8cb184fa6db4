"""The README's example: explain one patient, exactly, and save the picture."""

from pathlib import Path

from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(random_state=0).fit(X, y)

explainer = limes.TabularExplainer(model, X)
explanation = explainer(X.iloc[[3]])

print(explanation)
axes = explanation.plot.bar()
axes.figure.savefig(Path(__file__).parent.parent / "docs" / "diabetes.png", dpi=110, bbox_inches="tight")
