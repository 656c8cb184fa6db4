"""One case in a separate process: ``python worker.py CASE SIZE`` prints JSON."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from resource import RUSAGE_SELF, getrusage
from typing import Any

import numpy as np


def classes(size: int) -> list[tuple[str, Callable[[], Any]]]:
    """A multinomial regression of ``size`` classes on 20 columns."""
    from sklearn.linear_model import LogisticRegression

    import limes

    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(3000, 20)), rng.normal(size=(20, size))
    y = (0.7 * X @ weights + rng.gumbel(size=(3000, size))).argmax(axis=1)
    explainer = limes.TabularExplainer(LogisticRegression(max_iter=60).fit(X, y), X)
    return [("first row", lambda: explainer(X[:1])), ("second row", lambda: explainer(X[1:2]))]


def words(size: int) -> list[tuple[str, Callable[[], Any]]]:
    """A steep logistic regression on normalised TF-IDF, and a text of ``size`` distinct words."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    import limes

    rng = np.random.default_rng(0)
    vocabulary = [f"w{i:04d}" for i in range(3000)]
    texts = [" ".join(rng.choice(vocabulary, size=100, replace=False)) for _ in range(400)]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, rng.integers(2, size=400))
    model[-1].coef_ = 2.0 * rng.normal(size=model[-1].coef_.shape)
    text = " ".join(rng.choice(vocabulary, size=size, replace=False))
    explainer = limes.TextExplainer(model)
    return [("first text", lambda: explainer(text)), ("again", lambda: explainer(text))]


def frame(size: int) -> list[tuple[str, Callable[[], Any]]]:
    """The frame of ``size`` rows of 20 columns whose R² is computed."""
    import pandas as pd
    from sklearn.linear_model import LinearRegression

    import limes

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(size, 20)), columns=[f"c{j}" for j in range(20)])
    model = LinearRegression().fit(X, X.to_numpy() @ rng.normal(size=20))
    explanation = limes.TabularExplainer(model, X.iloc[:3000])(X, progress=False)
    _ = explanation.fidelity
    return [("to_frame", explanation.to_frame)]


def main() -> None:
    warnings.simplefilter("ignore")
    steps = {"classes": classes, "words": words, "frame": frame}[sys.argv[1]](int(sys.argv[2]))
    measured: dict[str, Any] = {}
    for name, step in steps:
        wall, cpu = time.perf_counter(), time.process_time()
        result = step()
        measured[name] = [time.perf_counter() - wall, time.process_time() - cpu]
    if hasattr(result, "standard_errors"):
        largest = np.abs(result.coefficients.values).max(axis=1)
        measured["error"] = float((result.coefficients.standard_errors.max(axis=1) / largest).max())
    measured["gigabytes"] = getrusage(RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
