"""lime's tutorial on sequences: does the next month bring more CO2? Twelve months of one series.

The calls are lime's; only the imports have changed. The series is made up: a trend, a season, noise.
"""

import numpy as np
from sklearn.neural_network import MLPClassifier

from limes.compat.lime import lime_tabular

rng = np.random.default_rng(0)
months = np.arange(600)
season = 3 * np.sin(2 * np.pi * months / 12)
series = 0.1 * months + season + 0.3 * rng.normal(size=len(months))
changes = np.diff(series)
changes = changes / changes.std()

steps = 12
X = np.stack([changes[i : i + steps, None] for i in range(len(changes) - steps)])
y = (changes[steps:] > 0).astype(int)
print("Sequences, timesteps, features:", X.shape)


class Network:
    """A network that takes sequences, as a recurrent one does."""

    def __init__(self):
        self.network = MLPClassifier((32,), early_stopping=True, random_state=0)

    def fit(self, X, y):
        self.network.fit(X.reshape(len(X), -1), y)
        return self

    def predict_proba(self, X):
        return self.network.predict_proba(X.reshape(len(X), -1))


train, test = slice(0, 500), slice(500, None)
model = Network().fit(X[train], y[train])
right = (model.predict_proba(X[test]).argmax(axis=1) == y[test]).mean()
print(f"Accuracy: {right:.3f}")

explainer = lime_tabular.RecurrentTabularExplainer(
    X[train],
    training_labels=y[train],
    feature_names=["CO2 change"],
    discretize_continuous=True,
    class_names=["falling", "rising"],
    discretizer="decile",
    random_state=0,
)
exp = explainer.explain_instance(X[test][50], model.predict_proba, num_features=6, labels=(1,))
print(f"\nRising with probability {exp.predict_proba[1]:.3f}, because")
for (condition, weight), (_, error) in zip(exp.as_list(), exp.standard_errors[1], strict=True):
    print(f"  {condition:40s} {weight:+.3f} ± {error:.3f}")
print(f"engine {exp.engine!r}, {exp.limes.method} with {exp.limes.model_calls} calls")
