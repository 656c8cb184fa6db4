"""lime's tutorial on tables of numbers: irises, a random forest, quartiles, slopes, and one's own row.

The calls are lime's; only the imports have changed.
"""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from limes.compat.lime import lime_tabular

iris = load_iris()
train, test, labels_train, labels_test = train_test_split(
    iris.data, iris.target, train_size=0.8, random_state=1
)
rf = RandomForestClassifier(n_estimators=200, random_state=1).fit(train, labels_train)
print(f"Accuracy: {rf.score(test, labels_test):.3f}")

explainer = lime_tabular.LimeTabularExplainer(
    train,
    feature_names=iris.feature_names,
    class_names=iris.target_names,
    discretize_continuous=True,
    random_state=1,
)
i = 9
exp = explainer.explain_instance(test[i], rf.predict_proba, num_features=2, top_labels=1)
label = exp.available_labels()[0]
print(f"\nRow {i} is {iris.target_names[label]}, because")
for condition, weight in exp.as_list(label):
    print(f"  {condition:32s} {weight:+.3f}")

# The forest is read, not sampled: no noise, and the same answer every time.
print(f"engine {exp.engine!r}, {exp.limes.method}, {exp.limes.model_calls} calls of the model")
print(f"R² {exp.score[label]:.3f}; the forest says {exp.predict_proba[label]:.3f}")

# A condition can be checked against the model itself.
feature = exp.as_map()[label][0][0]
changed = np.tile(test[i], (len(train), 1))
changed[:, feature] = train[:, feature]
share = rf.predict_proba(changed)[:, label].mean()
print(f"\nWith {iris.feature_names[feature]} as in other flowers its probability is {share:.3f}")

# Without bins a coefficient is a slope, per standard deviation of the column.
slopes = lime_tabular.LimeTabularExplainer(
    train, feature_names=iris.feature_names, class_names=iris.target_names, discretize_continuous=False
)
exp = slopes.explain_instance(test[i], rf.predict_proba, num_features=2, labels=(label,))
print("\nSlopes:", [(name, round(weight, 3)) for name, weight in exp.as_list(label)])

# lime's own numbers, drawn anew: now they have standard errors.
sampled = lime_tabular.LimeTabularExplainer(
    train, feature_names=iris.feature_names, class_names=iris.target_names, random_state=1, engine="lime"
)
exp = sampled.explain_instance(test[i], rf.predict_proba, num_features=2, labels=(label,))
print("\nAs lime samples it:")
for (condition, weight), (_, error) in zip(exp.as_list(label), exp.standard_errors[label], strict=True):
    print(f"  {condition:32s} {weight:+.3f} ± {error:.3f}")
