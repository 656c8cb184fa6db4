"""Documents: a text, the positions of its words, its perturbed texts, and the models that take them.

A text is gaps and occurrences in turn, g_0 o_1 g_1 ... o_m g_m. Removing a word deletes all of its
occurrences, or replaces them by a mask; gaps always stay. A model of texts is the steps that turn texts into
numbers, and the estimator behind them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Bools, Ints, Objects
from limes.exceptions import InputError, ModelError
from limes.models._calling.border import FAILURES, Border, failure_text
from limes.models._calling.networks import is_module
from limes.models._identity import qualified_name

# Occurrences whose deletions are enumerated, if there are more rows than deletions
_TOGETHER = 8
# Behind the condition of a word that the model does not use
UNUSED = ", unused"


@dataclass(frozen=True, eq=False)
class Document:
    """A text with m occurrences of d words, an `Input` of explainers."""

    text: str
    spans: Ints  # (m, 2) start and end of each occurrence, in order, not overlapping
    word: Ints  # (m,) the word, 0, ..., d - 1, of each occurrence
    names: tuple[str, ...]  # (d,) the words
    mask: str = ""  # in place of a removed word
    unused: Bools | None = None  # (d,) words that the model does not use, where that is known

    @property
    def size(self) -> int:
        return len(self.names)

    @cached_property
    def occurrences(self) -> tuple[str, ...]:
        return tuple(self.text[start:end] for start, end in self.spans.tolist())

    @cached_property
    def gaps(self) -> tuple[str, ...]:
        """(m + 1,) the text before, between and behind the occurrences."""
        starts, ends = [*self.spans[:, 0].tolist(), len(self.text)], [0, *self.spans[:, 1].tolist()]
        return tuple(self.text[end:start] for end, start in zip(ends, starts, strict=True))

    @cached_property
    def counts(self) -> Ints:
        return np.bincount(self.word, minlength=self.size)

    @cached_property
    def changes(self) -> Bools:
        """Whether removing a word changes the text, (d,): not where the mask is the word itself."""
        differs = np.array([occurrence != self.mask for occurrence in self.occurrences])
        return np.bincount(self.word[differs], minlength=self.size) > 0

    def only(self, kept: Bools) -> Document:
        places = kept[self.word]
        names = tuple(name for name, keep in zip(self.names, kept.tolist(), strict=True) if keep)
        word = (np.cumsum(kept) - 1)[self.word[places]]
        unused = None if self.unused is None else self.unused[kept]
        return replace(self, spans=self.spans[places], word=word, names=names, unused=unused)

    def merged(self, groups: Ints) -> Document:
        """The text with a feature for each group of its occurrences, (m,), which follow each other."""
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        spans = np.stack([self.spans[starts, 0], self.spans[[*starts[1:] - 1, -1], 1]], axis=1)
        names = tuple(self.text[start:end] for start, end in spans.tolist())
        return replace(self, spans=spans, word=np.arange(len(spans)), names=names)

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        # words that are spelt alike are distinguished by their positions
        repeated = len(set(self.names)) < self.size
        _, first = np.unique(self.word, return_index=True)
        starts = self.spans[first, 0].tolist()
        return tuple(
            (f'"{name}" at {starts[j]} present' if repeated else f'"{name}" present')
            + (UNUSED if self.unused is not None and self.unused[j] else "")
            for j, name in enumerate(self.names)
        )

    @property
    def data(self) -> Objects:
        return self.counts.astype(object)

    @property
    def key(self) -> str:
        return self.text

    @property
    def picture(self) -> Mapping[str, Any]:
        """The text, and the positions, (start, end) each, of each condition's word."""
        spans: dict[str, list[list[int]]] = {condition: [] for condition in self.conditions}
        for j, span in zip(self.word.tolist(), self.spans.tolist(), strict=True):
            spans[self.conditions[j]].append(span)
        return {
            "text": self.text,
            "spans": spans,
            **({"base": "with every word masked"} if self.mask else {}),
        }

    def texts(self, z: ArrayLike) -> list[str]:
        kept = (np.asarray(z) > 0)[:, self.word]
        if len(kept) > 1 << _TOGETHER:
            return self._in_blocks(kept)
        start, pieces = self.gaps[0], self._pieces
        return [
            start + "".join([piece[k] for piece, k in zip(pieces, row, strict=True)]) for row in kept.tolist()
        ]

    compose = texts

    def _in_blocks(self, kept: Bools) -> list[str]:
        # many rows share the texts of a few occurrences: each is joined once
        texts = []
        for i in range(0, len(self.word), _TOGETHER):
            block = kept[:, i : i + _TOGETHER]
            codes = block @ (1 << np.arange(block.shape[1]))
            texts.append(self._deletions(i, i + _TOGETHER)[codes].tolist())
        return ["".join(row) for row in zip([self.gaps[0]] * len(kept), *texts, strict=True)]

    def _deletions(self, start: int, end: int) -> Objects:
        """The texts of all deletions of some occurrences, by the codes Σ 2^i of those that are kept."""
        texts = [""]
        for removed, kept in self._pieces[start:end]:
            texts = [text + removed for text in texts] + [text + kept for text in texts]
        array = np.empty(len(texts), dtype=object)
        array[:] = texts
        return array

    @cached_property
    def _pieces(self) -> list[tuple[str, str]]:
        """(m,) the text of an occurrence and the gap behind it, if it is removed and if it is kept."""
        pairs = zip(self.occurrences, self.gaps[1:], strict=True)
        return [(self.mask + gap, occurrence + gap) for occurrence, gap in pairs]

    def word_texts(self) -> list[str]:
        """(d,) the occurrences of each word, joined by spaces."""
        texts: list[list[str]] = [[] for _ in self.names]
        for word, occurrence in zip(self.word.tolist(), self.occurrences, strict=True):
            texts[word].append(occurrence)
        return [" ".join(occurrences) for occurrences in texts]


_SEARCHES = tuple(
    f"sklearn.{name}"
    for name in ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")
)
VECTORIZERS = ("sklearn.CountVectorizer", "sklearn.TfidfVectorizer", "sklearn.HashingVectorizer")


@dataclass(frozen=True, eq=False)
class TextModel:
    """A model of texts: steps applied to texts, none if it takes texts, and the estimator behind them."""

    steps: tuple[Any, ...]
    head: Any

    @classmethod
    def from_model(cls, model: Any, vectorizer: Any = None) -> TextModel:
        if vectorizer is not None and (isinstance(vectorizer, type) or not hasattr(vectorizer, "transform")):
            raise InputError(
                "vectorizer must be fitted and have a transform method, as a TfidfVectorizer has; got "
                f"{vectorizer.__name__ if isinstance(vectorizer, type) else type(vectorizer).__name__}"
            )
        steps, head = _taken_apart(model)
        if vectorizer is not None and steps and qualified_name(type(steps[0])) in VECTORIZERS:
            raise InputError(
                f"the Pipeline has a {type(steps[0]).__name__}: leave vectorizer= out, or pass "
                "the Pipeline's last step with it"
            )
        steps = steps if vectorizer is None else (vectorizer, *steps)
        if not steps and hasattr(head, "n_features_in_"):
            raise InputError(
                f"{type(head).__name__} takes {head.n_features_in_} numbers, not texts: pass the "
                "vectorizer, TextExplainer(model, vectorizer=vectorizer), or a Pipeline of both"
            )
        if not steps and is_module(head):
            raise InputError(
                f"{type(head).__name__} takes tokens, not texts: pass it with its tokenizer, "
                "TextExplainer((network, tokenizer)), or pass a function of a list of texts"
            )
        return cls(steps, head)

    def encode(self, texts: Sequence[str]) -> Any:
        return transform(self.steps, list(texts))


def transform(steps: Sequence[Any], batch: Any) -> Any:
    for step in steps:
        try:
            with Border():
                batch = step.transform(batch)
        except FAILURES as error:
            text = f"{type(step).__name__}.transform {failure_text(error)}{_advice(step, batch)}"
            raise ModelError(text, batch=batch) from error
    return batch


def _advice(step: Any, batch: Any) -> str:
    if not isinstance(batch, list) or qualified_name(type(step)) in VECTORIZERS:
        return ""
    return (
        "; it was called on a list of texts: pass a vectorizer, TextExplainer(model, "
        "vectorizer=vectorizer), or a callable on a list of texts"
    )


def steps_of(model: Any) -> tuple[Any, ...]:
    """The steps of a Pipeline, and the estimator behind them."""
    steps, head = _taken_apart(model)
    return *steps, head


def _taken_apart(model: Any) -> tuple[tuple[Any, ...], Any]:
    """Steps and last estimator of Pipelines, also if nested, searched over or frozen."""
    if qualified_name(type(model)) in _SEARCHES and hasattr(model, "best_estimator_"):
        return _taken_apart(model.best_estimator_)
    if qualified_name(type(model)) == "sklearn.FrozenEstimator":
        return _taken_apart(model.estimator)
    if qualified_name(type(model)) != "sklearn.Pipeline":
        return (), model
    before = tuple(step for _, step in model.steps[:-1] if step is not None and step != "passthrough")
    steps, head = _taken_apart(model.steps[-1][1])
    return (*before, *steps), head
