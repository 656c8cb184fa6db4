"""Reviews, and models of them."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from pathlib import Path

from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.tree import DecisionTreeRegressor

TRAINING = 5000


def reviews() -> tuple[list[str], list[float]]:
    """Yelp's reviews in lower case, as ``lime`` takes Food and food for two words, and their stars."""
    path = Path(os.environ.get("LIMES_DATA", "../shared/data"), "text", "yelp_reviews.csv.gz")
    if not path.exists():
        raise SystemExit(f"{path} is not there: set LIMES_DATA to the folder of the data")
    with io.TextIOWrapper(gzip.open(path), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["text"].lower() for row in rows], [float(row["target"]) for row in rows]


def models(texts: list[str], stars: list[float]) -> dict[str, tuple[Pipeline, str]]:
    """Fitted models, and the method that is explained."""
    texts, stars = texts[:TRAINING], stars[:TRAINING]
    liked = [star > 3 for star in stars]
    return {
        "TF-IDF + logistic margin": (
            make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000)).fit(texts, liked),
            "decision_function",
        ),
        "TF-IDF + ridge": (make_pipeline(TfidfVectorizer(), Ridge()).fit(texts, stars), "predict"),
        "counts + tree": (
            make_pipeline(CountVectorizer(), DecisionTreeRegressor(max_depth=12, random_state=0)).fit(
                texts, stars
            ),
            "predict",
        ),
        "counts + forest": (
            make_pipeline(
                CountVectorizer(),
                RandomForestRegressor(20, max_depth=12, max_features=0.1, random_state=0),
            ).fit(texts, stars),
            "predict",
        ),
    }


def distinct(text: str) -> int:
    """How many words ``lime`` sees."""
    return len(set(re.findall(r"\w+", text)))


def with_words(texts: list[str], count: int) -> str:
    """The first review after the training ones with so many distinct words, or the next larger number."""
    return min(
        (text for text in texts[TRAINING:] if distinct(text) >= count),
        key=distinct,
    )
