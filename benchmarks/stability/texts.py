"""The same of a text: limes's probability, sampled, and ``lime``, each at its defaults."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.text import cases
from limes import TextExplainer

NAME = "TF-IDF + logistic probability, Yelp reviews"
# Distinct words of the reviews
_WORDS = (50, 100, 200)
_STRONGEST = 5

# Words of a run, and whether it says that their order is not certain
Run = tuple[frozenset[str], bool]


def runs(seeds: int) -> tuple[list[list[Run]], list[list[Run]], str]:
    """For limes and of lime, by review and seed; and how many words the reviews have.

    Raises
    ------
    AbsentError
        If the reviews are not there.
    """
    texts, stars = cases.reviews()
    model = cases.models(texts, stars)[cases.MARGIN]
    chosen = [cases.with_words(texts, count) for count in _WORDS]
    ours = [[_limes(model, text, seed) for seed in range(seeds)] for text in chosen]
    theirs = [[_lime(model, text, seed) for seed in range(seeds)] for text in chosen]
    return ours, theirs, "/".join(str(cases.distinct(text)) for text in chosen)


def _limes(model: cases.Model, text: str, seed: int) -> Run:
    explanation = TextExplainer(model.pipeline, split=r"\W+", output="True", rng=seed)(text, progress=False)
    order = np.argsort(-np.abs(explanation.coefficients.values[0]), kind="stable")[:_STRONGEST]
    words = frozenset(explanation.feature_names[j] for j in order)
    return words, any("order" in warning for warning in explanation.row_warnings[0])


def _lime(model: cases.Model, text: str, seed: int) -> Run:
    """5,000 calls, ten words, strongest first."""
    from lime.lime_text import LimeTextExplainer

    explanation = LimeTextExplainer(random_state=seed).explain_instance(text, model.pipeline.predict_proba)
    names: Sequence[tuple[str, float]] = explanation.as_list()
    return frozenset(word for word, _ in names[:_STRONGEST]), False
