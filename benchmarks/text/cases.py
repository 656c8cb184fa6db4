"""Reviews, and models of them."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.tree import DecisionTreeRegressor

from benchmarks.data import DATA
from benchmarks.speed.cases import AbsentError

TRAINING = 5000
MARGIN = "TF-IDF + logistic margin"


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted Pipeline, and the method that is explained."""

    pipeline: Pipeline
    method: str = "predict"

    @property
    def output(self) -> str | None:
        return "margin" if self.method == "decision_function" else None

    @cached_property
    def ask(self) -> Callable[[Sequence[str]], np.ndarray]:
        return getattr(self.pipeline, self.method)


def reviews() -> tuple[list[str], np.ndarray]:
    """Yelp's reviews in lower case, as ``lime`` takes Food and food for two words, and their stars."""
    path = DATA / "text" / "yelp_reviews.csv.gz"
    if not path.exists():
        raise AbsentError(f"{path} is not there; LIMES_DATA says where the data are")
    with io.TextIOWrapper(gzip.open(path), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["text"].lower() for row in rows], np.array([float(row["target"]) for row in rows])


def models(texts: Sequence[str], stars: np.ndarray) -> dict[str, Model]:
    """Trained on the first reviews: an opinion (more than three stars), or the stars."""
    texts, stars = texts[:TRAINING], stars[:TRAINING]

    def fitted(vectorizer: Any, estimator: Any, target: np.ndarray = stars) -> Pipeline:
        return make_pipeline(vectorizer, estimator).fit(texts, target)

    logistic = fitted(TfidfVectorizer(), LogisticRegression(max_iter=1000), stars > 3)
    tree = DecisionTreeRegressor(max_depth=12, random_state=0)
    forest = RandomForestRegressor(20, max_depth=12, max_features=0.1, random_state=0)
    return {
        MARGIN: Model(logistic, "decision_function"),
        "TF-IDF + ridge": Model(fitted(TfidfVectorizer(), Ridge())),
        "counts + tree": Model(fitted(CountVectorizer(), tree)),
        "counts + forest": Model(fitted(CountVectorizer(), forest)),
    }


def distinct(text: str) -> int:
    """How many words ``lime`` sees."""
    return len(set(re.findall(r"\w+", text)))


def with_words(texts: Sequence[str], count: int) -> str:
    """The shortest review after the training ones with at least ``count`` distinct words."""
    return min((text for text in texts[TRAINING:] if distinct(text) >= count), key=distinct)
