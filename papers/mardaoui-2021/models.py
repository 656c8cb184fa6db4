"""The paper's models: rules on the presence of words, and linear models on normalised TF-IDF.

Each is there three times: as a fitted Pipeline, which ``limes.TextExplainer`` reads; as its form over the
words of the review, for LIME's finite sample in expectation; and as a plain function of z, for repeated runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.tree import DecisionTreeRegressor

from limes.models import forms

from . import reviews, theory

# (words that are there, words that are not): each term of a rule counts 1
Term = tuple[tuple[str, ...], tuple[str, ...]]
SIMPLE: tuple[Term, ...] = ((("food",), ()), (("about", "Everything"), ("food",)))
COMPLEX: tuple[Term, ...] = (*SIMPLE, (("bad",), ()), (("bad", "character"), ()))


@dataclass(frozen=True, eq=False)
class Rule:
    """A decision tree as a sum of products of indicators, Eq. (10)."""

    terms: tuple[Term, ...]
    review: str

    @cached_property
    def words(self) -> list[str]:
        return reviews.words_of(self.review)

    @cached_property
    def places(self) -> list[tuple[list[int], list[int]]]:
        return [
            ([self.words.index(w) for w in on], [self.words.index(w) for w in off]) for on, off in self.terms
        ]

    def pipeline(self) -> Pipeline:
        """A tree that was grown on all texts that the rule can tell apart."""
        vocabulary = sorted({word for on, off in self.terms for word in (*on, *off)})
        kept = np.array(list(product([0, 1], repeat=len(vocabulary))))
        texts = [" ".join(w for w, present in zip(vocabulary, row, strict=True) if present) for row in kept]
        answers = [sum(self._holds(term, set(text.split())) for term in self.terms) for text in texts]
        counts = CountVectorizer(lowercase=False, vocabulary=vocabulary)
        return make_pipeline(counts, DecisionTreeRegressor(random_state=0)).fit(texts, answers)

    @staticmethod
    def _holds(term: Term, present: set[str]) -> bool:
        on, off = term
        return present.issuperset(on) and present.isdisjoint(off)

    def form(self) -> forms.PresenceProducts:
        return forms.PresenceProducts([(on, off, 1.0) for on, off in self.places], size=len(self.words))

    def answer(self, z: np.ndarray) -> np.ndarray:
        return sum(z[:, on].prod(axis=1) * (1 - z[:, off]).prod(axis=1) for on, off in self.places)

    def theory(self, bandwidth: float) -> np.ndarray:
        """Proposition 3."""
        d = len(self.words)
        return sum(theory.presence(on, off, d, bandwidth) for on, off in self.places)


@dataclass(frozen=True, eq=False)
class Linear:
    """λ drawn from the standard normal, on TF-IDF of norm 1."""

    review: str
    seed: int = 30

    @cached_property
    def words(self) -> list[str]:
        return reviews.words_of(self.review)

    @cached_property
    def vectorizer(self) -> TfidfVectorizer:
        return TfidfVectorizer(lowercase=False).fit(reviews.reviews())

    @cached_property
    def coef(self) -> np.ndarray:
        return np.random.default_rng(self.seed).normal(size=len(self.vectorizer.vocabulary_))

    def pipeline(self) -> Pipeline:
        result = LinearRegression()
        result.coef_, result.intercept_, result.n_features_in_ = self.coef, 0.0, self.coef.size
        return Pipeline([("vectorizer", self.vectorizer), ("linear", result)])

    @cached_property
    def loads(self) -> tuple[np.ndarray, np.ndarray]:
        """λ_j and m_j v_j of the review's words."""
        columns, load = word_loads(self.vectorizer, self.review)
        return np.where(load > 0, self.coef[columns], 0.0), load

    def form(self) -> forms.NormalizedLinear:
        coef, load = self.loads
        return forms.NormalizedLinear(coef * load, load**2)

    def answer(self, z: np.ndarray) -> np.ndarray:
        coef, load = self.loads
        norm = np.sqrt(z @ load**2)
        return np.divide(z @ (coef * load), norm, out=np.zeros(len(z)), where=norm > 0)

    def theory(self, bandwidth: float) -> np.ndarray:  # noqa: ARG002 - the rule is for ν = ∞
        """1.36 λ_j φ_j, Eq. (12)."""
        coef, load = self.loads
        return theory.RULE * coef * load / np.sqrt((load**2).sum())


def word_loads(vectorizer: TfidfVectorizer, review: str) -> tuple[np.ndarray, np.ndarray]:
    """Column and m_j v_j of each word; 0 of words that the corpus's dictionary does not have."""
    result = [vectorizer.vocabulary_.get(word, -1) for word in reviews.words_of(review)]
    columns = np.array(result)
    counts = CountVectorizer.transform(vectorizer, [review]).toarray()[0]
    return np.maximum(columns, 0), np.where(columns >= 0, counts[columns] * vectorizer.idf_[columns], 0.0)
