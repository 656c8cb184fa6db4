"""Functions that answer probabilities, their rows and texts, and the coefficients they ought to have."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats.qmc import Sobol

TRUTH_ROWS = 2**17
ROWS = 3000


class Clock:
    """Seconds of the calling thread, and number of inputs, of a function."""

    def __init__(self, answer: Callable[[Any], np.ndarray]) -> None:
        self.answer, self.seconds, self.rows = answer, 0.0, 0

    def __call__(self, inputs: Any) -> np.ndarray:
        start = time.thread_time()
        answers = self.answer(inputs)
        self.seconds += time.thread_time() - start
        self.rows += len(inputs)
        return answers


@dataclass(frozen=True)
class Table:
    """A model of d columns."""

    X: np.ndarray
    ask: Clock

    def truth(self, row: np.ndarray) -> np.ndarray:
        """Weighted least squares of many rows of the law that both libraries have."""
        import limes

        design = limes.TabularExplainer(lambda x: x[:, 0], self.X).design(row)
        size = row.size
        x, cells = design.family.draw(Sobol(size, rng=1).random(TRUTH_ROWS))
        z = (cells == design.cells).astype(float)
        w = design.family.weights.ratio ** (size - z.sum(axis=1))
        a = np.column_stack([np.ones(len(z)), z])
        return np.linalg.solve(a.T @ (w[:, None] * a), a.T @ (w * self.ask.answer(x)[:, 1]))[1:]


def table(model: str, columns: int) -> Table:
    """Columns that depend on each other; probabilities of a fitted network or of boosted trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, columns))
    X += 0.5 * np.roll(X, 1, axis=1)
    margin = 2 * np.sin(X[:, 0]) + X[:, 1] * X[:, 2] - X[:, 3:].mean(axis=1) * np.sqrt(columns)
    y = margin + rng.logistic(size=ROWS) > 0
    models = {
        "network": lambda: MLPClassifier((32,), max_iter=60, random_state=0),
        "boosted trees": lambda: HistGradientBoostingClassifier(max_iter=60, random_state=0),
    }
    return Table(X, Clock(models[model]().fit(X, y).predict_proba))


@dataclass(frozen=True)
class Text:
    """A model of texts, as a function, and as the pipeline that it is."""

    text: str
    pipeline: Any
    ask: Clock

    def truth(self) -> tuple[tuple[str, ...], np.ndarray]:
        """Words and coefficients: exact, by the pipeline as it is read."""
        import limes

        explanation = limes.TextExplainer(self.pipeline, split=r"\W+", bag="spelling")(self.text)
        assert explanation.method == "exact"
        return explanation.feature_names, explanation.coefficients.values[0, :, 1]


def text(words: int) -> Text:
    """A text of ``words`` different words; the classifier counts them."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(words)
    names = np.array([f"word{i}" for i in range(2 * words)])
    texts = [" ".join(rng.choice(names, words)) for _ in range(300)]
    good = set(names[::3])
    y = [sum(word in good for word in one.split()) > words / 3 for one in texts]
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, y)
    return Text(" ".join(rng.permutation(names)[:words]), pipeline, Clock(pipeline.predict_proba))
