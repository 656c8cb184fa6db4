"""Held-out reviews of 60 to 120 distinct words, and a function of texts: TF-IDF and a logistic regression."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import limes
from benchmarks.shown.ways import of_both_classes, ways
from benchmarks.text import cases

CALLS, COUNT = 500, 6


@dataclass(frozen=True, eq=False)
class Review:
    """A review, its words, and the chance of the opinion that the model takes it for."""

    text: str
    pipeline: Any

    @classmethod
    def all(cls) -> Iterator[Review]:
        texts, stars = cases.reviews()
        pipeline = cases.models(texts, stars)[cases.MARGIN].pipeline
        fitting = (text for text in texts[cases.TRAINING :] if 60 <= len(set(_words(text))) <= 120)
        for _, text in zip(range(COUNT), fitting, strict=False):
            yield cls(text, pipeline)

    @cached_property
    def words(self) -> list[str]:
        return list(dict.fromkeys(_words(self.text)))

    @property
    def size(self) -> int:
        return len(self.words)

    @cached_property
    def top(self) -> int:
        return int(self.pipeline.predict_proba([self.text])[0].argmax())

    def ask(self, texts: Any) -> Any:
        """Chance of the opinion (n,)."""
        return self.pipeline.predict_proba(list(texts))[:, self.top]

    def masked(self, z: Any) -> Any:
        """The chance where words of z (n, d) are kept."""
        words = _words(self.text)
        place = np.array([self.words.index(word) for word in words])
        kept = np.asarray(z, dtype=bool)[:, place]
        return self.ask(" ".join(np.array(words, dtype=object)[row]) for row in kept)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _by_word(review: Review, pairs: dict[str, float]) -> Any:
    return np.array([pairs.get(word, 0.0) for word in review.words])


def _limes(review: Review, seed: int) -> Any:
    explanation = limes.TextExplainer(review.ask, split=r"\W+", max_calls=CALLS, rng=seed)(
        review.text, progress=False
    )
    return _by_word(
        review, dict(zip(explanation.feature_names, explanation.coefficients.values[0].tolist(), strict=True))
    )


def _lime(review: Review, seed: int) -> Any:
    from lime.lime_text import LimeTextExplainer

    options = {"num_samples": CALLS, "num_features": review.size}
    explanation = LimeTextExplainer(random_state=seed).explain_instance(
        review.text, of_both_classes(review), **options
    )
    return _by_word(review, dict(explanation.as_list()))


def _partition(review: Review, seed: int) -> Any:
    import shap

    np.random.seed(seed)  # noqa: NPY002 - what shap draws from
    explainer = shap.explainers.Partition(review.ask, shap.maskers.Text(r"\W+"))
    result = explainer([review.text], max_evals=CALLS, silent=True)
    sums: dict[str, float] = {}
    for token, value in zip(result.data[0], np.ravel(result.values[0]), strict=True):
        for word in _words(str(token)):
            sums[word] = sums.get(word, 0.0) + float(value)
    return _by_word(review, sums)


items = Review.all
WAYS = ways(_limes, _lime, _partition, CALLS)
