"""One call of each package that wraps ``lime``: ``python calls.py NAME lime|limes`` prints the result's form.

A process a call: with "limes" the drop-in is installed before the package is imported.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

NAMES = ["age", "income", "debt"]
X = np.random.default_rng(0).normal(size=(120, 3))
Y = (X[:, 0] - 2 * X[:, 1] > 0).astype(int)
MODEL = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, Y)
TEXT = "good soup and a friendly night"


def interpret():
    from interpret.blackbox import LimeTabular

    result = LimeTabular(MODEL, X, feature_names=NAMES, random_state=0).explain_local(X[:2], Y[:2])
    data = result.data(0)
    return sorted(data), len(data["names"]), dict(zip(data["names"], data["scores"], strict=True))


def dalex():
    import dalex

    frame = pd.DataFrame(X, columns=NAMES)
    model = RandomForestClassifier(10, max_depth=4, random_state=0).fit(frame, Y)
    explainer = dalex.Explainer(model, frame, Y, verbose=False)
    result = explainer.predict_surrogate(frame.iloc[[0]])
    return type(result).__name__, sorted(result.result.columns), len(result.result)


def dianna():
    from dianna.methods.lime_tabular import LIMETabular

    explainer = LIMETabular(X, feature_names=NAMES, class_names=["no", "yes"], random_state=0)
    result = explainer.explain(MODEL.predict_proba, X[0], labels=[1])
    return np.shape(result), result


def aix360():
    from aix360.algorithms.lime import LimeTabularExplainer, LimeTextExplainer

    table = LimeTabularExplainer(X, feature_names=NAMES, random_state=0)
    first = table.explain_instance(X[0], MODEL.predict_proba).as_list()
    texts = ["good food", "friendly night", "cold soup", "bad night"]
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [1, 1, 0, 0])
    second = LimeTextExplainer(random_state=0).explain_instance(TEXT, pipeline.predict_proba).as_list()
    return dict(first), dict(second)


def shap():
    from shap.explainers.other import LimeTabular

    result = LimeTabular(MODEL.predict_proba, X, mode="classification").attributions(X[:2])
    return [np.shape(one) for one in result], result[0]


def lime_stability():
    from lime_stability.stability import LimeTabularExplainerOvr

    explainer = LimeTabularExplainerOvr(X, feature_names=NAMES, random_state=0, discretize_continuous=False)
    result = explainer.check_stability(
        X[0], MODEL.predict_proba, n_calls=3, num_features=3, num_samples=1000, labels=(1,), verbose=False
    )
    return [float(index) for index in result]


CALLS = {call.__name__: call for call in (interpret, dalex, dianna, aix360, shap, lime_stability)}


def form(result):
    """Return what is compared: lists and mappings by their entries, numbers rounded."""
    if isinstance(result, dict):
        return {str(key): form(value) for key, value in sorted(result.items())}
    if isinstance(result, list | tuple | np.ndarray):
        return [form(value) for value in result]
    return round(float(result), 6) if isinstance(result, float | np.floating) else result


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    name, package = sys.argv[1:]
    if package == "limes":
        import limes.compat.lime

        limes.compat.lime.install()
    result = form(CALLS[name]())
    assert sys.modules["lime"].__name__ == ("limes.compat.lime" if package == "limes" else "lime")
    sys.stdout.write(json.dumps(result, default=str) + "\n")
