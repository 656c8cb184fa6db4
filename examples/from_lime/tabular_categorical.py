"""lime's tutorial on categories: mushrooms of codes with names, and a dataframe of numbers and texts.

The calls are lime's; only the imports have changed. The mushrooms are made up.
"""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from limes.compat.lime import lime_tabular

rng = np.random.default_rng(0)
names = {
    0: ["almond", "foul", "none", "spicy"],
    1: ["broad", "narrow"],
    2: ["brown", "green", "white", "yellow"],
    3: ["grasses", "leaves", "woods"],
}
feature_names = ["odor", "gill-size", "spore-print-color", "habitat"]
data = np.column_stack([rng.integers(0, len(values), 2000) for values in names.values()]).astype(float)
poisonous = (data[:, 0] == 1) | (data[:, 0] == 3) | ((data[:, 2] == 1) & (data[:, 1] == 1))

# The model sees one column a category, the explainer the codes.
model = make_pipeline(OneHotEncoder(), RandomForestClassifier(n_estimators=100, random_state=0))
model.fit(data, poisonous)
explainer = lime_tabular.LimeTabularExplainer(
    data,
    class_names=["edible", "poisonous"],
    feature_names=feature_names,
    categorical_features=[0, 1, 2, 3],
    categorical_names=names,
    random_state=0,
)
i = int(np.flatnonzero((data[:, 0] == 2) & (data[:, 2] == 1) & poisonous)[0])
exp = explainer.explain_instance(data[i], model.predict_proba, num_features=4)
print("This mushroom is poisonous with probability", round(exp.predict_proba[1], 2))
for condition, weight in exp.as_list():
    print(f"  {condition:28s} {weight:+.3f}")
print(f"engine {exp.engine!r}, {exp.limes.method}: the forest is read through the encoder")

# Numbers and texts in one dataframe: names, categories and bins are found by themselves.
people = pd.DataFrame(
    {
        "age": rng.integers(18, 80, 1000),
        "hours": rng.normal(40, 8, 1000).round(),
        "education": rng.choice(["school", "bachelor", "master"], 1000, p=[0.6, 0.3, 0.1]),
        "sector": rng.choice(["private", "public", "own"], 1000),
    }
)
rich = (people["age"] > 35) & (people["education"] != "school") | (people["hours"] > 52)
encoder = make_column_transformer(
    (OneHotEncoder(), ["education", "sector"]), remainder="passthrough", verbose_feature_names_out=False
)
model = make_pipeline(encoder, RandomForestClassifier(n_estimators=100, max_depth=8, random_state=0))
model.fit(people, rich)
explainer = lime_tabular.LimeTabularExplainer(people, class_names=["<=50K", ">50K"], random_state=0)
exp = explainer.explain_instance(people.iloc[1], model.predict_proba, num_features=3)
print("\nIncome above 50K with probability", round(exp.predict_proba[1], 2))
for condition, weight in exp.as_list():
    print(f"  {condition:28s} {weight:+.3f}")
print(f"engine {exp.engine!r}, {exp.limes.method}")
