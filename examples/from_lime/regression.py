"""lime's tutorial on regressions: a forest, categories by the number of their values, pages and pictures.

The calls are lime's; only the imports have changed.
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import train_test_split

from limes.compat.lime.lime_tabular import LimeTabularExplainer

diabetes = load_diabetes(scaled=False)
train, test, labels_train, labels_test = train_test_split(
    diabetes.data, diabetes.target, train_size=0.8, random_state=0
)
rf = RandomForestRegressor(n_estimators=200, random_state=0).fit(train, labels_train)
print("Random forest MSE", round(mean_squared_error(labels_test, rf.predict(test)), 1))
print("MSE when the mean is predicted", round(np.mean((labels_test - labels_train.mean()) ** 2), 1))

categorical_features = [j for j, column in enumerate(diabetes.data.T) if len(set(column)) <= 10]
explainer = LimeTabularExplainer(
    train,
    feature_names=diabetes.feature_names,
    class_names=["progression"],
    categorical_features=categorical_features,
    mode="regression",
    random_state=0,
)

i = 25
exp = explainer.explain_instance(test[i], rf.predict, num_features=5)
print(f"\nRow {i}: the forest says {exp.predicted_value:.1f}")
print(f"Near the row it says {exp.min_value:.0f} to {exp.max_value:.0f}")
for condition, weight in exp.as_list():
    print(f"  {condition:26s} {weight:+.2f}")
print(f"intercept {exp.intercept[1]:.1f}, surrogate {exp.local_pred[0]:.1f}, R² {exp.score[1]:.3f}")

with tempfile.TemporaryDirectory() as home:
    page, picture = Path(home) / "row.html", Path(home) / "row.png"
    exp.save_to_file(page)
    exp.as_pyplot_figure(figsize=(6, 3)).savefig(picture)
    print(f"\na page of {page.stat().st_size:,} bytes, a picture of {picture.stat().st_size:,}")

# All of limes knows the explanation too.
print("\nThe two coefficients that matter most, as limes has them:")
print(exp.limes.top(2).to_frame()[["condition", "value", "standard_error"]].to_string(index=False))
