"""The words of a text, and a model bound to it: answers where words are removed, and the form that was read.

A text is split by a separator, into sentences, or by a tokenizer's offsets; words of a group are one feature.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes._explainers._masked import MaskedModel, Predict
from limes._explainers.texts.features import Grouping, Key, Spans, sentences
from limes._explainers.verification import check_agreement, subset_rows
from limes.exceptions import InputError, ReadMismatchError
from limes.models._calling.caller import ModelCaller
from limes.models._calling.outputs import Output, add_up_to_one, resolve
from limes.models._documents import Document, TextModel, transform
from limes.models._reading import CannotRead, tolerance_of
from limes.models.forms._base import BlackBox, Form
from limes.models.forms._linked import Linked
from limes.models.readers import EXACT_TOLERANCE, SINGLE_TOLERANCE
from limes.models.readers.sklearn_text import WordRows, text_form, word_rows

# Name of a split that is no regular expression, and of one way to tell words apart
_SENTENCE, _SPELLING = "sentence", "spelling"


def splitter(split: Any) -> Spans:
    """Return the option ``split`` as a function from a text to spans.

    Raises
    ------
    InputError
        If it is neither a pattern, nor a callable, nor a tokenizer with offsets.
    """
    if isinstance(split, str) and split == _SENTENCE:
        return sentences
    if isinstance(split, str | re.Pattern):
        return _by_pattern(split)
    if hasattr(split, "encode") and not isinstance(split, type):
        return lambda text: _offsets(split, text)
    if callable(split):
        return lambda text: split(text)
    raise InputError(
        f"split={split!r} must be a regular expression of what separates words, 'sentence', a callable "
        "text -> [(start, end), ...], or a tokenizer with offsets"
    )


def _by_pattern(split: str | re.Pattern[str]) -> Spans:
    try:
        pattern = re.compile(split)
        matches: Callable[[str], Iterable[re.Match[str]]] = pattern.finditer
        list(matches(""))
    except (re.error, TypeError) as error:
        raise InputError(f"split={split!r} is no regular expression for texts: {error}") from None

    def spans(text: str) -> list[tuple[int, int]]:
        edges = [0, *(edge for match in matches(text) for edge in match.span()), len(text)]
        return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]

    return spans


def _offsets(tokenizer: Any, text: str) -> list[tuple[int, int]]:
    """Return offsets of a fast tokenizer: of ``transformers`` (called) or of ``tokenizers`` (encode)."""
    if hasattr(tokenizer, "is_fast"):
        if not tokenizer.is_fast:
            raise InputError(f"{type(tokenizer).__name__} has no offsets: use its fast variant (use_fast)")
        offsets = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)["offset_mapping"]
    else:
        offsets = getattr(tokenizer.encode(text), "offsets", None)
        if offsets is None:
            raise InputError(
                f"split: {type(tokenizer).__name__}.encode has no offsets; pass a callable text -> "
                "[(start, end), ...]"
            )
    return _merged((start, end) for start, end in offsets if start < end)  # special tokens are empty


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge tokens that share a character, as the bytes of an emoji do."""
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            start, end = merged[-1][0], max(end, merged.pop()[1])
        merged.append((start, end))
    return merged


def parse_text(
    text: Any,
    spans: Spans,
    *,
    bag: bool,
    mask: str,
    key: Key | None = None,
    grouping: Grouping = Grouping(),  # noqa: B008 - frozen
) -> Document:
    """Split a text into features: groups, words, or, without ``bag``, single occurrences of words.

    Raises
    ------
    InputError
        If it is no text, is empty, or has no words; if spans are not in order or out of the text.
    """
    _check_text(text)
    places = _check_spans(spans(text), text)
    places = np.array(grouping.pieces(text, [(a, b) for a, b in places.tolist()]), dtype=np.int64)
    pieces = [text[start:end] for start, end in places.tolist()]
    groups = [grouping.name(piece) for piece in pieces]
    keys: list[Any] = list(range(len(pieces)))
    if bag:
        keys = pieces if key is None else [key(piece) for piece in pieces]
        # a word that the vectorizer normalises to nothing is still a word of the text
        keys = [clean or piece for clean, piece in zip(keys, pieces, strict=True)]
    # a group and a word may have the same name: pairs keep them apart
    keys = [
        (clean, None) if group is None else (None, group) for clean, group in zip(keys, groups, strict=True)
    ]
    features = {pair: j for j, pair in enumerate(dict.fromkeys(keys))}
    word = np.array([features[pair] for pair in keys], dtype=np.int64)
    spellings: list[dict[str, None]] = [{} for _ in features]
    for j, piece in zip(word.tolist(), pieces, strict=True):
        spellings[j][piece] = None
    names = tuple(
        group or (next(iter(spelt)) if len(spelt) == 1 else clean)
        for spelt, (clean, group) in zip(spellings, features, strict=True)
    )
    return Document(text, places, word, names, mask)


def _check_text(text: Any) -> None:
    if isinstance(text, bytes | bytearray):
        raise InputError("the text is bytes: decode it first, text.decode('utf-8')")
    if not isinstance(text, str):
        raise InputError(f"expected a text, got {type(text).__name__}: {str(text)[:60]!r}")
    if not text.strip():
        raise InputError("the text is empty: there is nothing to explain")


def _check_spans(pairs: Any, text: str) -> Ints:
    try:
        spans = np.array([tuple(pair) for pair in pairs], dtype=np.int64)
    except (TypeError, ValueError) as error:
        raise InputError(f"split must return pairs (start, end) for every word: {error}") from None
    if not spans.size:
        raise InputError(f"the split finds no words in {_start(text)!r}: pass another split")
    if spans.ndim != 2 or spans.shape[1] != 2:
        raise InputError(f"split must return pairs (start, end), got an array of shape {spans.shape}")
    edges = spans.ravel()
    if (spans[:, 0] >= spans[:, 1]).any() or (np.diff(edges) < 0).any() or edges[0] < 0:
        raise InputError("split must return spans in order, without overlap, each with a character at least")
    if edges[-1] > len(text):
        raise InputError(f"split returns a span up to {edges[-1]}, but the text has {len(text)} characters")
    return spans


def _start(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"


def word_conditions(document: Document) -> tuple[str, ...]:
    """Return the condition of each word; words that are spelt alike are distinguished by their positions."""
    repeated = len(set(document.names)) < document.size
    _, first = np.unique(document.word, return_index=True)
    starts = document.spans[first, 0].tolist()
    return tuple(
        f'"{name}" at {starts[j]} present' if repeated else f'"{name}" present'
        for j, name in enumerate(document.names)
    )


def word_spans(document: Document) -> list[list[list[int]]]:
    """Return the positions of each word in the text, (start, end) each."""
    spans: list[list[list[int]]] = [[] for _ in document.names]
    for j, span in zip(document.word.tolist(), document.spans.tolist(), strict=True):
        spans[j].append(span)
    return spans


# Deletions of the text on which form and model are compared
_CHECKED_ROWS = 16


def bind(model: TextModel, output: Output, document: Document) -> MaskedModel:
    """Read a model at a text, and compare the form with its answers to deletions of the text.

    A model whose form answers something else is left to sampling.

    Raises
    ------
    ModelError
        If the model fails on the text.
    """
    with_strings = ModelCaller(model.head, output, lambda z: model.encode(document.texts(z)))
    rows = subset_rows(document.size, _CHECKED_ROWS)
    # a model that is not fitted, or takes no texts, raises its own error here
    answers = with_strings(rows if model.steps else rows[:1])
    # texts have many words, and often a linear fit explains all that the calls can show
    bound = partial(
        MaskedModel,
        outputs=output.names(answers.shape[1:]),
        whole=answers[:1],
        often_linear=True,
        adds_up=add_up_to_one(model.head, output),
    )
    try:
        words = word_rows(model.steps, document)
    except CannotRead as reason:
        return bound(with_strings, BlackBox(with_strings, str(reason)))
    tolerance = max(tolerance_of(model.head), SINGLE_TOLERANCE if words.single_precision else EXACT_TOLERANCE)
    check = partial(_check, document, rows, answers, tolerance)
    rest = model.steps[words.steps :]
    ask: Predict = with_strings
    if words.grams is None:
        sparse = ModelCaller(model.head, output, lambda z: transform(rest, words.rows(z)))
        ask = _without_strings(sparse, with_strings, check)
    form = _read(words, rest, model.head, output, ask)
    if isinstance(form, BlackBox):
        return bound(ask, form, predict=ask, margin=_margin(words, rest, model.head, output, ask))
    try:
        check(form.predict)
    except ReadMismatchError as reason:
        return bound(with_strings, BlackBox(with_strings, str(reason)))
    margin = form.margin if isinstance(form, Linked) else None
    return bound(ask, form, predict=form.predict if tolerance <= EXACT_TOLERANCE else ask, margin=margin)


def _read(words: WordRows, rest: tuple[Any, ...], head: Any, output: Output, ask: Predict) -> Form | BlackBox:
    try:
        form = text_form(words, rest, head, output.method)
    except CannotRead as reason:
        return BlackBox(ask, str(reason))
    return form if output.columns is None else form.select(output.columns)


def _margin(words: WordRows, rest: tuple[Any, ...], head: Any, output: Output, ask: Predict) -> Form | None:
    """Return the form behind the link of a model that could not be read, if that can be."""
    if output.method not in ("predict", "predict_proba"):
        return None
    try:
        form = _read(words, rest, head, resolve(head, "margin"), ask)
    except InputError:
        return None
    return None if isinstance(form, BlackBox) else form


def _without_strings(sparse: Predict, with_strings: Predict, check: Callable[[Predict], None]) -> Predict:
    """Ask with sparse rows, where the answers are those to strings; the two are compared at the first use."""

    @cache
    def chosen() -> Predict:
        try:
            check(sparse)
        except ReadMismatchError:
            return with_strings
        return sparse

    return lambda z: chosen()(z)


def _check(document: Document, rows: Floats, answers: Floats, tolerance: float, predict: Predict) -> None:
    """Raise if predictions differ from the model's own answers at some rows."""

    def where(row: int) -> str:
        (text,) = document.texts(rows[row : row + 1])
        return f"the text {text[:200]!r}"

    check_agreement(answers, predict(rows), tolerance * float(np.abs(answers).max()), where)


def check_bag(bag: Any) -> bool | str:
    """Return the option ``bag``, checked."""
    if not isinstance(bag, bool) and (not isinstance(bag, str) or bag != _SPELLING):
        raise InputError(f"bag must be True, False or {_SPELLING!r}, got {bag!r}")
    return bag


def check_mask(mask: Any, model: Any) -> str:
    """Return the text in the place of a deleted word, the model's own if ``mask`` is True."""
    if mask is True:
        mask = getattr(model, "mask_token", None)
        if mask is None:
            raise InputError("mask=True needs a model of transformers whose tokenizer has a mask token")
    if mask is not None and not isinstance(mask, str):
        raise InputError(
            f"mask must be None, to delete words, a text to put in their places, or True for the tokenizer's "
            f"own; got {mask!r}"
        )
    return mask or ""
