"""lime's own rows of a text: s of d words are removed, s uniform on 1, ..., d, which ones by chance.

Rows are drawn word by word: with l of the last m words yet to be removed, the next one is with chance l / m.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.compat.lime.answers import Answers
from limes.compat.lime.lime_base import LimeBase
from limes.compat.lime.surrogates import Surrogates, explained
from limes.compat.lime.switched_law import distances
from limes.compat.lime.texts.strings import IndexedText
from limes.explainers.progress import progress_of
from limes.explainers.texts.tokens import word_conditions, word_spans

# lime's unit of distance
SCALE = 100.0
# Texts between two steps of the progress bar
_BATCH = 256

__all__ = ["SCALE", "LimeEngine", "TextRequest", "deletions"]


@dataclass(frozen=True, eq=False)
class TextRequest:
    """One checked call of ``explain_instance``: a text, labels of the model's answer (k,), lime's options."""

    indexed: IndexedText
    answers: Answers
    labels: Callable[[Floats], list[int]]
    features: int
    samples: int
    metric: Any
    regressor: Any
    progress: bool


def deletions(d: int, count: int, rng: np.random.Generator) -> Floats:
    """Rows z (count, d) of kept words, of which the first is the whole text."""
    left = rng.integers(1, d + 1, count - 1).astype(np.float64)
    kept = np.ones((d, count))
    for j, row in enumerate(kept[:, 1:]):
        np.greater_equal(rng.random(count - 1) * (d - j), left, out=row)
        left += row - 1.0
    return kept.T


@dataclass(frozen=True, eq=False)
class LimeEngine:
    """Answers requests as lime does: remove words, ask, fit."""

    base: LimeBase
    selection: str
    seed: int
    mode: str
    provenance: Mapping[str, Any]

    def __call__(self, request: TextRequest) -> Surrogates:
        """Surrogates of a text, from ``request.samples`` of what is left of it."""
        document = request.indexed.document
        z = deletions(document.size, request.samples, self._stream(document.text))
        said = self._said(request, document.texts(z))
        labels = request.labels(said[0])
        options = (request.features, self.selection, request.regressor)
        fits = self.base.fits(z, said, SCALE * distances(z, request.metric), labels, *options)
        conditions = word_conditions(document)
        found = explained(
            fits,
            self.mode,
            predictions=said[0, labels],
            feature_names=document.names,
            conditions=(conditions,),
            data=document.counts[None].astype(object),
            calls=np.array([request.samples]),
            provenance={
                **self.provenance,
                "text": document.text,
                "spans": dict(zip(conditions, word_spans(document), strict=True)),
            },
        )
        scores = partial(dict[int, float], {k: fit.score for k, fit in fits.items()})
        bounds = (float(said.min()), float(said.max()))
        return Surrogates(fits, scores, said[0], lambda: bounds, found)

    def _said(self, request: TextRequest, texts: list[str]) -> Floats:
        if not request.progress:
            return request.answers(texts)
        parts = []
        with progress_of(shown=True)(len(texts)) as done:
            for start in range(0, len(texts), _BATCH):
                parts.append(request.answers(texts[start : start + _BATCH]))
                done(len(parts[-1]))
        return np.concatenate(parts)

    def _stream(self, text: str) -> np.random.Generator:
        """Of the seed and the text alone."""
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        return np.random.default_rng([self.seed, int.from_bytes(key, "little")])
