"""The calls of lime's tutorial on submodular pick: a few rows that show what two models look at.

Only the imports are others, and the tables are those that scikit-learn ships.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from limes.compat.lime import lime_tabular, submodular_pick

pictures = Path(tempfile.mkdtemp())

# -- classification ------------------------------------------------------------------------------------------

wine = load_wine()
rf = RandomForestClassifier(n_estimators=100, max_depth=5, random_state=0).fit(wine.data, wine.target)
explainer = lime_tabular.LimeTabularExplainer(
    wine.data,
    feature_names=wine.feature_names,
    class_names=wine.target_names,
    discretize_continuous=True,
    random_state=0,
)
sp_obj = submodular_pick.SubmodularPick(
    explainer, wine.data, rf.predict_proba, sample_size=40, num_features=4, num_exps_desired=3
)
for exp in sp_obj.sp_explanations:
    label = exp.available_labels()[0]
    print(wine.target_names[label], exp.as_list(label=label))
    exp.as_pyplot_figure(label=label).savefig(pictures / f"{wine.target_names[label]}.png")

# all candidates as a table: one line a row, one column a condition
W = pd.DataFrame([dict(this.as_list(this.available_labels()[0])) for this in sp_obj.explanations]).fillna(0)
print("Largest mean coefficients:")
print(W.abs().mean().sort_values(ascending=False).head(4).round(3).to_string())

# -- regression ----------------------------------------------------------------------------------------------

diabetes = load_diabetes()
model = RandomForestRegressor(100, max_depth=5, random_state=0).fit(diabetes.data, diabetes.target)
explainer = lime_tabular.LimeTabularExplainer(
    diabetes.data, mode="regression", feature_names=diabetes.feature_names, random_state=0
)
sp_obj = submodular_pick.SubmodularPick(
    explainer, diabetes.data, model.predict, sample_size=20, num_features=5, num_exps_desired=2
)
print("Predictions:", np.round([exp.predicted_value for exp in sp_obj.sp_explanations], 1))
print([exp.as_list()[0] for exp in sp_obj.sp_explanations])
print("Rows:", sp_obj.indices[sp_obj.V], "pictures:", pictures)
