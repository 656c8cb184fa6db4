"""Runs of ``lime`` on a text, as it comes but for keeping all words in the fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.text.cases import distinct

# its default
SAMPLES = 5000
Ask = Callable[[Sequence[str]], np.ndarray]


def run(asks: Sequence[Ask], text: str, seed: int) -> tuple[np.ndarray, list[str]]:
    """Coefficients and, last, the intercept of each model, (models, d + 1), from the same rows; the words."""
    from lime.lime_text import LimeTextExplainer

    # as many "classes" as there are models: lime fits each by itself
    explained = LimeTextExplainer(feature_selection="none", random_state=seed).explain_instance(
        text,
        lambda texts: np.column_stack([ask(texts) for ask in asks]),
        labels=range(len(asks)),
        num_features=distinct(text),
        num_samples=SAMPLES,
    )
    words = explained.domain_mapper.indexed_string
    coefs = np.empty((len(asks), words.num_words() + 1))
    for label, row in enumerate(coefs):
        for word, value in explained.local_exp[label]:
            row[word] = value
        row[-1] = explained.intercept[label]
    return coefs, [words.word(i) for i in range(words.num_words())]
