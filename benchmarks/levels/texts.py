"""Long reviews: how fast the answer falls as words are deleted, and rises as they are inserted."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import limes
from benchmarks.data import DATA
from benchmarks.progress import say
from limes.exceptions import NotReadableError

CALLS, FEWEST_WORDS = 300, 300
# The calls among these by which limes checks that answers repeat and finds what is in no word
CHECKS = 10
# The first texts are those on which settings were chosen
SKIPPED, TEXTS = 30, 30
STEPS = 33
# Texts and seeds on which intervals are counted
COVERED, SEEDS = 10, 3


@dataclass(frozen=True)
class Text:
    """A text with what it is explained by: the probability of its likeliest class."""

    text: str
    ask: Callable[[list[str]], Any]
    spans: list[tuple[int, int]]

    @classmethod
    def of(cls, text: str, model: Any) -> Text:
        from limes._explainers.splits import words

        k = int(np.argmax(model.predict_proba([text])[0]))
        return cls(text, lambda texts: model.predict_proba(list(texts))[:, k], words(text))

    def without(self, kept: Any) -> list[str]:
        """The text with some of its words (n, m)."""
        edges = [0, *(edge for span in self.spans for edge in span), len(self.text)]
        gaps = [self.text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]
        words = [self.text[a:b] for a, b in self.spans]
        return [
            gaps[0]
            + "".join(
                (word if keep else "") + gap for word, keep, gap in zip(words, row, gaps[1:], strict=True)
            )
            for row in kept
        ]

    def areas(self, values: Any) -> tuple[float, float]:
        """Areas under the curves of deletion and insertion; places of equal values in random order."""
        m = len(self.spans)
        order = np.lexsort((np.random.default_rng(0).random(m), -np.asarray(values)))
        rank = np.empty(m, dtype=np.int64)
        rank[order] = np.arange(m)
        shares = np.linspace(0.0, 1.0, STEPS)
        first = rank < shares[:, None] * m
        return tuple(float(np.trapezoid(self.ask(self.without(kept)), shares)) for kept in (~first, first))


def reviews() -> tuple[list[str], list[str], Any]:
    """Reviews to fit models to, others, and whether the former have four stars or more."""
    import pandas

    with gzip.open(DATA / "text" / "yelp_reviews.csv.gz", "rt") as file:
        table = pandas.read_csv(file, keep_default_na=False)
    half = len(table) // 2
    texts = table["text"].tolist()
    return texts[:half], texts[half:], (table["target"] >= 4).to_numpy()[:half].astype(int)


def models(texts: list[str], stars: Any) -> dict[str, Any]:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2)
    estimators = (
        make_pipeline(words, LogisticRegression(C=10, max_iter=500)),
        make_pipeline(CountVectorizer(min_df=3), RandomForestClassifier(100, random_state=0, n_jobs=1)),
    )
    return {name: model.fit(texts, stars) for name, model in zip(MODELS, estimators, strict=True)}


def by_limes(text: Text) -> Any:
    """Return what each place of a word has of its contribution."""
    explainer = limes.TextExplainer(text.ask, hierarchy=True, max_calls=CALLS - CHECKS, rng=0)
    explanation = explainer(text.text, progress=False)
    spans, values = explanation.provenance["spans"], explanation.coefficients.values[0]
    of_place = {}
    for condition, value in zip(explanation.conditions[0], values.tolist(), strict=True):
        places = spans[condition]
        of_place |= {start: value / len(places) for start, _ in places}
    return np.array([of_place[start] for start, _ in text.spans])


def by_lime(text: Text) -> Any:
    from lime.lime_text import LimeTextExplainer

    def both(texts: list[str]) -> Any:
        p = text.ask(texts)
        return np.column_stack([1.0 - p, p])

    result = LimeTextExplainer(random_state=0).explain_instance(
        text.text, both, labels=(1,), num_samples=CALLS, num_features=10**6
    )
    coef = dict(result.as_list(1))
    # lime splits at what is no letter: a word of ours has the sum of its parts
    parts = (_lime_words(text.text[a:b]) for a, b in text.spans)
    return np.array([sum(coef.get(part, 0.0) for part in parts_of_word) for parts_of_word in parts])


def _lime_words(text: str) -> list[str]:
    import re

    return [part for part in re.split(r"\W+", text) if part]


def by_shap(text: Text) -> Any:
    """shap's Partition on words; a place has the values of the tokens that it overlaps."""
    import shap

    explainer = shap.Explainer(lambda texts: text.ask([str(one) for one in texts]), shap.maskers.Text(r"\W+"))
    result = explainer([text.text], max_evals=CALLS, batch_size=50, silent=True)
    values, position = np.zeros(len(text.spans)), 0
    for token, value in zip(result.data[0], np.ravel(result.values[0]), strict=True):
        start = text.text.find(token, position) if token else -1
        if start < 0:
            continue
        position = end = start + len(token)
        overlapping = [j for j, (a, b) in enumerate(text.spans) if a < end and b > start]
        for j in overlapping:
            values[j] += value / len(overlapping)
    return values


MODELS = ("TF-IDF of bigrams, logistic regression", "counts, random forest")
METHODS = {"limes": by_limes, "lime": by_lime, "shap Partition": by_shap}


def _long(texts: list[str]) -> list[str]:
    return [text for text in texts if len(text.split()) >= FEWEST_WORDS][SKIPPED : SKIPPED + TEXTS]


def measure(name: str) -> dict:
    training, others, stars = reviews()
    long, model = _long(others), models(training, stars)[name]
    areas: dict[str, list] = {method: [] for method in METHODS}
    for i, text in enumerate(long):
        say(f"{name}: text {i + 1} of {len(long)}")
        explained = Text.of(text, model)
        for method, explain in METHODS.items():
            areas[method].append(explained.areas(explain(explained)))
    return {"model": name, "words": [len(text.split()) for text in long], "areas": areas}


def covered() -> dict[str, float]:
    """Shares of 95 % intervals that contain exact contributions to the forest's answers."""
    training, others, stars = reviews()
    model = models(training, stars)[MODELS[1]]
    inside: dict[str, list] = {"words": [], "16 largest": [], "sentences": []}
    for text in _long(others):
        if len(inside["words"]) == COVERED * SEEDS:
            break
        # a function of texts knows no vectorizer, which takes Food and food for the same
        small = text.lower()
        explained = Text.of(small, model)
        k = int(np.argmax(model.predict_proba([small])[0]))
        reader = limes.TextExplainer(model, output=model.classes_[k].item(), method="exact")
        try:
            truth = reader(small, progress=False)
        except NotReadableError:  # where words share columns
            continue
        true = truth.contributions.values[0]
        for seed in range(SEEDS):
            explanation = limes.TextExplainer(
                explained.ask, hierarchy=True, max_calls=CALLS - CHECKS, rng=seed
            )(small, progress=False)
            if explanation.feature_names != truth.feature_names:
                raise ValueError("the words are not the same")
            gaps = (
                np.abs(explanation.coefficients.values[0] - true)
                <= 1.96 * explanation.coefficients.standard_errors[0]
            )
            largest = np.argsort(-np.abs(explanation.coefficients.values[0]))[:16]
            coarse, shares = explanation.levels[0], explanation.provenance["coarse"]["shares"]
            sums = np.array([sum(share * true[j] for j, share in parts) for parts in shares])
            inside["words"].append(gaps.mean())
            inside["16 largest"].append(gaps[largest].mean())
            far = (
                np.abs(coarse.coefficients.values[0] - sums) <= 1.96 * coarse.coefficients.standard_errors[0]
            )
            inside["sentences"].append(far.mean())
    return {name: float(np.mean(shares)) for name, shares in inside.items()}
