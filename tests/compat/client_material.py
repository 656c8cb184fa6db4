"""Data for the patterns of client code: small tables, texts and images, and quick models of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

_RNG = np.random.default_rng(0)
NAMES = ["age", "income", "debt", "savings"]
X = np.round(_RNG.normal([40, 3, 1, 2], [10, 1, 0.5, 1], size=(150, 4)), 2)
SCORE = X[:, 0] / 10 + 2 * X[:, 1] - 3 * X[:, 2]
CLASS = (np.median(SCORE) < SCORE).astype(int)
THIRD = np.digitize(SCORE, np.quantile(SCORE, [1 / 3, 2 / 3]))
FRAME = pd.DataFrame(X, columns=NAMES)
ROW = X[3]

FOREST = RandomForestClassifier(8, max_depth=4, random_state=0).fit(X, CLASS)
LOGISTIC = LogisticRegression(max_iter=1000).fit((X - X.mean(0)) / X.std(0), CLASS)
THREE = RandomForestClassifier(8, max_depth=4, random_state=0).fit(X, THIRD)
NUMBER = RandomForestRegressor(8, max_depth=4, random_state=0).fit(X, SCORE)

# two categories, counted from 0, before two numbers
JOBS, TOWNS = ["clerk", "nurse", "smith"], ["Bern", "Graz"]
CODED = np.column_stack([_RNG.integers(0, 3, 150), _RNG.integers(0, 2, 150), X[:, 1:3]]).astype(float)
CODED_CLASS = (2 * (CODED[:, 0] == 1) + CODED[:, 2] - 2 * CODED[:, 3] + CODED[:, 1] > 1.5).astype(int)
CODED_MODEL = RandomForestClassifier(8, max_depth=4, random_state=0).fit(CODED, CODED_CLASS)

SEQUENCES = _RNG.normal(size=(60, 3, 2))


def chances(rows):
    """A function, of which nothing is read."""
    return LOGISTIC.predict_proba((np.asarray(rows) - X.mean(0)) / X.std(0))


def of_last(sequences):
    """Chances of sequences (n, 3, 2), as a recurrent network answers."""
    p = 1 / (1 + np.exp(-2 * sequences[:, 2, 1] + sequences[:, 1, 0]))
    return np.column_stack([1 - p, p])


_GOOD = ["good food and friendly service", "great meal, great price", "friendly staff and tasty soup"]
_BAD = ["bad food and slow service", "awful meal, high price", "rude staff and cold soup"]
TEXTS = [f"{text}, {place}" for place in ("in town", "at night", "on the lake") for text in _GOOD + _BAD]
OPINIONS = [1, 1, 1, 0, 0, 0] * 3
VECTORIZER = TfidfVectorizer(lowercase=False).fit(TEXTS)
OPINION = LogisticRegression(C=10).fit(VECTORIZER.transform(TEXTS), OPINIONS)
PIPELINE = make_pipeline(VECTORIZER, OPINION)
TEXT = "The soup was cold but the friendly staff and great price made a good night, good food."

PICTURE = _RNG.integers(0, 60, (24, 24, 3)).astype(np.uint8)
PICTURE[:12, :12] += np.array([180, 20, 20], dtype=np.uint8)
PICTURE[16:, 16:] += np.array([20, 20, 190], dtype=np.uint8)
PICTURE[16:, :8] += np.array([10, 20, 120], dtype=np.uint8)
_THIRDS = np.repeat(np.arange(3), 8)
NINE = 3 * _THIRDS[:, None] + _THIRDS


def colours(images):
    """How red, green and blue images are, in shares."""
    light = np.asarray(images, dtype=float)[..., :3].mean(axis=(1, 2)) + 1.0
    return light / light.sum(axis=1, keepdims=True)


def nine(image):
    """Nine squares of any picture of this size."""
    return NINE[: np.shape(image)[0], : np.shape(image)[1]]
