"""Sentences of long reviews: the game of sentences that are deleted, and that of words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.few_calls.games import by_orders
from benchmarks.levels.texts import MODELS, models, reviews
from benchmarks.progress import say
from limes._explainers.hierarchy import GroupedUnits, account_of
from limes._explainers.splits import sentences, words

FEWEST_WORDS, SKIPPED, TEXTS = 250, 30, 30
BUDGETS, SEEDS = (100, 300), 2
_ORDERS_OF_SENTENCES, _ORDERS_OF_WORDS = 120, 24


@dataclass(frozen=True)
class Review:
    """A text as places of words, each with its word and its sentence."""

    text: str
    predict: Any
    spans: list[tuple[int, int]]
    word: Any
    sentence: Any

    @classmethod
    def of(cls, text: str, model: Any) -> Review:
        k, spans = int(np.argmax(model.predict_proba([text])[0])), words(text)
        starts = [start for start, _ in sentences(text)]
        place = np.searchsorted(starts, [start for start, _ in spans], side="right")
        spelt = [text[a:b].casefold() for a, b in spans]
        number = {word: i for i, word in enumerate(dict.fromkeys(spelt))}
        return cls(
            text,
            lambda texts: model.predict_proba(texts)[:, k],
            spans,
            np.array([number[word] for word in spelt]),
            np.unique(place, return_inverse=True)[1],
        )

    def ask(self, shown: Any) -> Any:
        """Answers (n,) to texts with some of their places (n, m)."""
        edges = [0, *(edge for span in self.spans for edge in span), len(self.text)]
        pieces = [self.text[a:b] for a, b in pairwise(edges)]
        texts = []
        for row in shown:
            kept = [piece for i, piece in enumerate(pieces) if i % 2 == 0 or row[i // 2] > 0]
            texts.append("".join(kept))
        return self.predict(texts)

    def account(self, calls: int, seed: int) -> Any:
        """With answers to places, where sets of places are asked about, else to words."""
        units = GroupedUnits.of(self.word, self.sentence)
        of_places = units.of_pieces.size == self.word.size
        whole = self.ask(np.ones((1, self.word.size)))

        def ask(z: Any) -> Any:
            return self.ask(z if of_places else z[:, self.word])[:, None]

        return account_of(ask, units, whole, calls - 1, np.random.default_rng(seed), is_function=True)


def measure() -> list[dict]:
    training, others, stars = reviews()
    fitted = models(training, stars)
    long = [text for text in others if len(text.split()) >= FEWEST_WORDS][SKIPPED : SKIPPED + TEXTS]
    lines = []
    for i, text in enumerate(long):
        say(f"review {i + 1} of {len(long)}")
        model = MODELS[i % len(MODELS)]
        review = Review.of(text, fitted[model])
        d, groups = int(review.word.max()) + 1, int(review.sentence.max()) + 1
        coarse = by_orders(lambda z, its=review: its.ask(z[:, its.sentence]), groups, _ORDERS_OF_SENTENCES)
        fine = by_orders(lambda z, its=review: its.ask(z[:, its.word]), d, _ORDERS_OF_WORDS)
        for calls in BUDGETS:
            runs = []
            for seed in range(SEEDS):
                its = review.account(calls, seed)
                runs.append(
                    [*_of(its.of_groups, its.group_errors, coarse), *_of(its.values, its.errors, fine)]
                )
            lines.append(
                {"model": model, "calls": calls, "words": d, "sentences": groups}
                | dict(zip(NUMBERS, np.mean(runs, axis=0).tolist(), strict=True))
            )
    return lines


NUMBERS = ("error of sentences", "covered sentences", "error of words", "covered words")


def _of(values: Any, errors: Any, truth: tuple[Any, Any]) -> tuple[float, float]:
    """Squared error, less that of the truth, over the squared truth; share of intervals that cover."""
    exact, its_error = truth
    far = values[:, 0] - exact
    covers = np.abs(far) <= 1.96 * np.hypot(errors[:, 0], its_error)
    return float(((far**2).sum() - (its_error**2).sum()) / (exact**2).sum()), float(covers.mean())
