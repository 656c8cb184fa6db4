"""Which numbers are exact, of which models under which designs? ``python tools/exact_square.py``.

Fits small models, asks explainers how they will explain them, and prints the table of ARCHITECTURE.md: the
code answers, so that the table cannot grow old.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

import limes

CLOSED, QUADRATURE, READ, CALLED = "●", "◐", "○", "·"
TABLES = {
    "bins": {},
    "bins, smooth weights": {"weights": "euclidean"},
    "slopes": {"bins": None},
    "joint law": {"law": "joint"},
}
HEAD = ["model", *TABLES, "words"]
Model = Callable[[np.ndarray, np.ndarray], Any]


def fitted(estimator: Any) -> Model:
    """Return what fits an estimator."""
    return lambda X, y: estimator.fit(X, y)


# Models of numbers, by what they answer, and those of words' counts; None where none is shown
MODELS: dict[str, tuple[Model, Any]] = {
    "linear": (fitted(LinearRegression()), make_pipeline(CountVectorizer(), LinearRegression())),
    "linear, normalised TF-IDF": (lambda *_: None, make_pipeline(TfidfVectorizer(), LinearRegression())),
    "additive (splines)": (fitted(make_pipeline(SplineTransformer(), LinearRegression())), None),
    "tree, forest, boosting": (
        fitted(RandomForestRegressor(5, random_state=0)),
        make_pipeline(CountVectorizer(), DecisionTreeRegressor(random_state=0)),
    ),
    "RBF machine": (fitted(SVR()), None),
    "probability, logistic": (
        lambda X, y: LogisticRegression().fit(X, y > 0),
        make_pipeline(CountVectorizer(), LogisticRegression()),
    ),
    "probability, three classes": (
        lambda X, y: LogisticRegression().fit(X, np.digitize(y, [-0.5, 0.5])),
        None,
    ),
    "probability, boosted": (
        lambda X, y: GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X, y > 0),
        None,
    ),
    "network, one layer, tanh": (
        fitted(MLPRegressor(hidden_layer_sizes=4, activation="tanh", max_iter=200, random_state=0)),
        None,
    ),
    "network, one layer, ReLU": (
        fitted(MLPRegressor(hidden_layer_sizes=4, activation="relu", max_iter=200, random_state=0)),
        None,
    ),
    "function": (lambda *_: lambda X: X[:, 0], lambda texts: np.array([float(len(t)) for t in texts])),
}
TEXTS = ["a good film", "a bad film", "good and long", "bad and long", "long film"]


def sign(*, exact: bool, closed: bool, asks: bool) -> str:
    """Return the sign of one number."""
    if exact:
        return CLOSED if closed else QUADRATURE
    return CALLED if asks else READ


def of_table(model: Any, X: np.ndarray, options: dict[str, Any]) -> str:
    """How coefficients and contributions are computed, a sign each."""
    bound = limes.TabularExplainer(model, X, **options)._model  # noqa: SLF001
    expectation: Any = bound.bound.expectation
    closed = getattr(expectation, "error_bound", 0.0) == 0.0
    coefficients = sign(exact=expectation.method == "exact", closed=closed, asks=bound.bound.asks)
    is_joint = options.get("law") == "joint"
    exact = bound.has_exact_contributions
    return coefficients + sign(exact=exact, closed=closed or is_joint, asks=bound.bound.asks)


def of_text(model: Any) -> str:
    """The same of the words of a text."""
    if hasattr(model, "fit"):
        target = [1, 0, 1, 0, 1] if hasattr(model, "predict_proba") else [1.0, 0.0, 1.0, 0.0, 0.5]
        model.fit(TEXTS, target)
    explainer = limes.TextExplainer(model, max_calls=256)
    text = "a good and long film that was not so very bad"
    bound = explainer._bind(explainer._parse(text))  # noqa: SLF001
    design = explainer._design(len(explainer._parse(text).names), 0.25)  # noqa: SLF001
    exact = bound.verified(design).exact
    closed = getattr(exact, "error_bound", 0.0) == 0.0
    return 2 * sign(exact=exact is not None, closed=closed, asks=bound.form is None)


def rows() -> Iterator[list[str]]:
    """Yield the cells of each model's line."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = X[:, 0] + X[:, 1] * X[:, 2]
    for name, (make, text) in MODELS.items():
        model = make(X, y)
        cells = [of_table(model, X, options) if model is not None else "" for options in TABLES.values()]
        yield [name, *cells, "" if text is None else of_text(text)]


def table() -> str:
    """The table in Markdown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # networks that have not converged serve as well
        lines = [HEAD, ["---"] * len(HEAD), *rows()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
