"""Texts: lime's indexed strings (words or characters by number), and what engines need to know of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from hashlib import blake2b
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints, Objects
from limes._explainers.parts.text import Spans, parse_text, splitter
from limes.compat.lime._call import Call, Kind, PredictFunction, in_batches
from limes.compat.lime._limit import SCORED_ROWS, Limits, exchangeable_limits, least_subset_calls
from limes.compat.lime._sampling import deletions
from limes.exceptions import InputError
from limes.models._documents import TextModel

# What lime puts in the places of words and of characters, where they are not to be deleted
_MASKED_WORD, _MASKED_CHARACTER = "UNKWORDZ", "\0"
# lime's unit of distance
SCALE = 100.0
# Texts between two steps of the progress bar
# Words whose subsets are enumerated for the exact R² of a model that was read
_ENUMERATED = 12
_BATCH = 256


@dataclass(frozen=True)
class Split:
    """Places of words: between matches of a regular expression, or of a callable's tokens."""

    expression: Any

    def __post_init__(self) -> None:
        if not self._by_tokens:
            splitter(self.expression)

    def __call__(self, text: str) -> Iterable[tuple[int, int]]:
        """Places (start, end) of the words."""
        if self._by_tokens:
            return _places(self.expression(text), text)
        return splitter(self.expression)(text)

    @property
    def _by_tokens(self) -> bool:
        # a tokenizer of Hugging Face can be called too, but its offsets are better than its tokens
        return callable(self.expression) and not hasattr(self.expression, "encode")


def _places(tokens: Iterable[str], text: str) -> list[tuple[int, int]]:
    """Places of tokens, one behind the other; empty ones are ignored."""
    spans: list[tuple[int, int]] = []
    end = 0
    for token in filter(None, tokens):
        start = text.find(token, end)
        if start < 0:
            raise InputError(
                f"split_expression returns the token {token!r}, which is not in the text behind character "
                f"{end}: tokens must be pieces of the text, in their order; of a tokenizer of Hugging Face "
                "pass the tokenizer itself"
            )
        end = start + len(token)
        spans.append((start, end))
    return spans


class IndexedText:
    """Words of a document by number; the base of lime's indexed strings.

    Attributes
    ----------
    raw : str
    bow : bool
        Whether a word has one number wherever it stands.
    mask_string : str
        What stands in the places of removed words, if not ``bow``.
    inverse_vocab : list of str
        Words by number.
    """

    def __init__(self, text: str, spans: Spans, bow: bool, mask_string: str) -> None:
        self.document = parse_text(text, spans, bag=bow, mask="" if bow else mask_string)
        self.raw = text
        self.bow = bow
        self.mask_string = mask_string
        self.inverse_vocab = list(self.document.names)

    @cached_property
    def _pieces(self) -> tuple[list[str], list[int]]:
        """Words and what stands between them, and the places of the words."""
        pieces, places = [], []
        for gap, word in zip(self.document.gaps, (*self.document.occurrences, ""), strict=True):
            pieces += [gap] if gap else []
            places.append(len(pieces))
            pieces.append(word)
        return pieces[:-1], places[:-1]

    @property
    def as_list(self) -> list[str]:
        """Words and what stands between them, in order."""
        return self._pieces[0]

    @property
    def as_np(self) -> Objects:
        """The same, as an array."""
        return np.array(self.as_list, dtype=object)

    @property
    def string_start(self) -> Ints:
        """First character of each piece."""
        return np.asarray(np.cumsum([0, *map(len, self.as_list[:-1])]))

    @cached_property
    def positions(self) -> Any:
        """Places of each word in `as_list`: lists, or (d,) if not ``bow``."""
        places = np.array(self._pieces[1])
        if not self.bow:
            return places
        return [places[self.document.word == j].tolist() for j in range(self.num_words())]

    def raw_string(self) -> str:
        """The whole text."""
        return self.raw

    def num_words(self) -> int:
        """Number of words d."""
        return self.document.size

    def word(self, id_: int) -> str:
        """The word of a number."""
        return self.inverse_vocab[id_]

    def string_position(self, id_: int) -> Ints:
        """First character of each occurrence of a word."""
        return np.asarray(self.document.spans[self.document.word == id_, 0])

    def inverse_removing(self, words_to_remove: Sequence[int]) -> str:
        """The text without some words; if not ``bow``, ``mask_string`` stands in their places."""
        kept = np.ones((1, self.num_words()))
        kept[0, np.asarray(words_to_remove, dtype=int)] = 0.0
        return self.document.texts(kept)[0]


class IndexedString(IndexedText):
    """A text's words by number.

    Parameters
    ----------
    raw_string : str
    split_expression : str or callable
        Regular expression of what stands between words; or a function from a text to its tokens.
    bow : bool
        Whether a word has one number wherever it stands, and is deleted; else every occurrence has one,
        and ``mask_string`` is put in its place.
    mask_string : str, optional
        None for UNKWORDZ.

    Raises
    ------
    InputError
        If it is no text or has no words, or the split is not usable.

    Examples
    --------
    >>> indexed = IndexedString("Good food, good service")
    >>> indexed.inverse_vocab, indexed.inverse_removing([1])
    (['Good', 'food', 'good', 'service'], 'Good , good service')
    """

    def __init__(
        self,
        raw_string: str,
        split_expression: str | Callable[[str], Iterable[str]] = r"\W+",
        bow: bool = True,
        mask_string: str | None = None,
    ) -> None:
        mask = _MASKED_WORD if mask_string is None else mask_string
        super().__init__(raw_string, Split(split_expression), bow, mask)


class IndexedCharacters(IndexedText):
    """A text's characters by number; ``bow`` and ``mask_string`` (None for chr(0)) as for words.

    Examples
    --------
    >>> IndexedCharacters("noon").inverse_removing([1])
    'nn'
    """

    def __init__(self, raw_string: str, bow: bool = True, mask_string: str | None = None) -> None:
        mask = _MASKED_CHARACTER if mask_string is None else mask_string
        super().__init__(raw_string, characters, bow, mask)


def characters(text: str) -> list[tuple[int, int]]:
    """Every character by itself."""
    return [(i, i + 1) for i in range(len(text))]


@dataclass(frozen=True, eq=False)
class TextKind(Kind):
    """Texts, of whose words some are removed.

    ``spans`` finds words, ``bandwidth`` ν is a hundredth of lime's kernel width, and ``seed`` the limit's.
    """

    distance_unit = SCALE

    spans: Spans
    mode: str
    bandwidth: float
    seed: int
    batch_size: int

    def with_seed(self, seed: int) -> TextKind:
        return replace(self, seed=seed)

    def only_sampled(self, call: Call) -> dict[str, bool]:
        least = least_subset_calls(call.instance.num_words())
        black_box = _pipeline(call.predict) is None
        return {f"fewer than {least} num_samples": black_box and call.num_samples < least}

    def explainer(self, call: Call) -> tuple[Any, Any]:
        from limes._explainers.text import TextExplainer

        indexed = call.instance
        model, output = _pipeline(call.predict) or (call.predict.function, None)
        explainer = TextExplainer(
            model,
            output=output,
            split=self.spans,
            bag="spelling" if indexed.bow else False,
            mask=None if indexed.bow else indexed.mask_string,
            bandwidth=self.bandwidth,
            # a pipeline that can be taken apart may be asked for fewer texts than its words need
            max_calls=max(call.num_samples, least_subset_calls(indexed.num_words())),
            rng=self.seed,
            batch_size=self.batch_size,
        )
        return explainer, model

    def limits(self, explainer: Any, call: Call) -> Limits:
        result = explainer._fit(call.instance.document, progress=call.progress)  # noqa: SLF001
        prediction = call.predict.checked(result.predictions.reshape(1, -1)).ravel()
        labels = call.choose_labels(prediction)
        surrogate = result.fitted.surrogate
        fidelity = surrogate.fidelity
        if np.isnan(fidelity).any() and call.instance.num_words() <= _ENUMERATED:
            fidelity = explainer._fits(result.model, result.fitted).fidelities([0])[0][0]  # noqa: SLF001
        numbers = surrogate.coef, surrogate.standard_errors, surrogate.intercept, fidelity
        limits = exchangeable_limits(*numbers, result.fitted.features)
        explanation = cache(partial(explainer._to_explanation, result))  # noqa: SLF001
        return Limits(
            prediction,
            {k: limits[k] for k in labels},
            lambda: _ask_near(explanation(), result.fitted.features),
            lambda: explanation() if self.mode == "regression" else explanation()[..., labels],
        )

    def fingerprint(self, call: Call) -> Sequence[int]:
        text = call.instance.raw.encode("utf-8", "surrogatepass")
        return (int.from_bytes(blake2b(text, digest_size=16).digest(), "little"),)

    def draw(self, call: Call, rng: np.random.Generator) -> tuple[Floats, Any]:
        document = call.instance.document
        z = deletions(document.size, call.num_samples, rng)
        return z, document.texts(z)

    def ask(self, call: Call, rows: Any) -> Floats:
        size = min(self.batch_size, _BATCH) if call.progress else self.batch_size
        return in_batches(call.predict, rows, size, progress=call.progress)

    def describe(self, call: Call, provenance: Mapping[str, Any]) -> dict[str, Any]:
        document = call.instance.document
        return {
            "feature_names": document.names,
            "conditions": (document.conditions,),
            "data": document.data[None],
            "provenance": {**provenance, **document.picture},
        }


def _ask_near(explanation: Any, design: Any) -> Floats:
    """Answers (n, k) to rows of w."""
    outputs = np.arange(len(explanation.output_names))
    context = explanation.explainer.diagnostic_context(explanation, output=outputs, calls=None)
    rows, _ = design.sample(SCORED_ROWS, np.random.SeedSequence(0))
    return np.asarray(context.predict(rows).reshape(SCORED_ROWS, -1))


def _pipeline(predict: PredictFunction) -> tuple[Any, str | None] | None:
    """The Pipeline and output of a bound method such as ``pipeline.predict_proba``; None of a function.

    Raises InputError if it is the method of a model that takes numbers.
    """
    return predict.model if predict.model and TextModel.from_model(predict.model[0]).steps else None
