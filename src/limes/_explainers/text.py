"""Explain texts, whose words are kept or removed.

A *split* finds pieces of a text, by a separator, as sentences, or by a tokenizer's offsets; a *group* takes
pieces together as one feature.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Never, TypeAlias, Unpack, overload

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._checks import refuse_in_call
from limes._diagnostics.context import SubsetContext
from limes._explainers.bound_input import BoundInput
from limes._explainers.hierarchy import GroupedUnits, check_hierarchy, may_have_levels
from limes._explainers.masked import CHECKED_ROWS, MaskedExplainer
from limes._explainers.options import SamplingKeywords, complete, takes
from limes._explainers.splits import WORD, Spans, of_tokens, sentences, splitter
from limes._explainers.splits import words as words_of
from limes._explainers.verified_form import check_agreement, subset_rows
from limes._explanation import Explanation
from limes._explanation.wording import number
from limes._warnings import sentence
from limes.designs._exchangeable import BANDWIDTH, ExchangeableDesign
from limes.exceptions import InputError, ReadMismatchError
from limes.models._calling.border import FAILURES
from limes.models._calling.caller import ModelCaller, names_of_answers
from limes.models._calling.hugging_face import Estimator, adapted
from limes.models._calling.outputs import (
    Output,
    add_up_to_one,
    behind_method,
    named_by_answers,
    positions_of_names,
    replaced_labels,
    resolve,
)
from limes.models._documents import Document, TextModel, transform
from limes.models._identity import Predict
from limes.models._reading import CannotRead, tolerance_of
from limes.models.forms._base import Form
from limes.models.readers import EXACT_TOLERANCE, SINGLE_TOLERANCE
from limes.models.readers.sklearn_text import (
    text_form,
    token_pattern,
    used_words,
    word_normalizer,
    word_rows,
)


@takes(SamplingKeywords, max_calls=4200)
class TextExplainer(MaskedExplainer[Document]):
    r"""Explain predictions on texts by LIME's limit: exactly where the model can be read.

    The surrogate g = β₀ + Σ_j β_j z_j minimises E_w (f - g)², with z_j = 1 if word j is kept. Perturbed texts
    lack s of the d words: s is uniform on 1, ..., d, then the words are uniform. They are weighted towards
    the text by exp(-(1 - √(1 - s/d))² / (2ν²)).

    Parameters
    ----------
    model
        A Pipeline of a vectorizer and an estimator; a fitted estimator with its ``vectorizer``; or anything
        with ``predict``, or a callable, that takes a list of texts and returns (n,) or (n, k). From
        ``transformers``: a text-classification pipeline, a zero-shot one made with its ``candidate_labels``,
        or a pair (network, tokenizer), whose logits go through the function that the pipeline applies: none
        for a regression, the logistic function for one label and for labels that do not exclude each other,
        else the softmax. Pairs of texts are explained by :class:`limes.CompositeExplainer`.
    vectorizer
        Turns texts into rows of numbers, if the model does not do it itself.
    split
        "word": words by Unicode's rules, with their marks and apostrophes, numbers, emoji and runs of
        other symbols; for a vectorizer with another ``token_pattern`` than the default, the matches of
        that pattern. "sentence": sentences, of which a long text has few. A regular expression of the text
        between words (``lime`` uses ``\\W+``); a callable text -> [(start, end), ...]; or a fast tokenizer
        of Hugging Face, whose offsets are used.
    group
        Words that are kept or removed together as one feature: a callable word -> name of its group, or None
        for a word by itself (a lemmatizer, say); a mapping of names to words and phrases,
        {"stop words": ["the", "of", "as well as"]}, whatever their case; or a list of phrases, ["not good"],
        whose words are taken together.
    ignore
        Words that always stay in the text and are no features, as stop words often are: a list, whatever
        their case, or a callable word -> bool. Their effect is part of the intercept. A model is read where
        its vectorizer counts none of them (``stop_words``), and sampled where it does.
    bag
        All occurrences of a word are kept or removed together; words are the same if a known vectorizer takes
        them for the same (Food, food). "spelling": if they are spelt alike, as for ``lime``. False: each
        occurrence by itself.
    hierarchy
        True: contributions at two levels, sentences and words, from a few hundred calls even for long
        texts. "auto" does so for texts of more than 150 words in several sentences, if the model cannot be
        read and no option asks for what two levels do not have; what is printed says so. False: words
        alone. Coefficients are then contributions (Shapley values: KernelSHAP's weights of texts in place
        of LIME's). Words add up to f(text) - f(no words), and so do sentences; a word in several sentences
        is divided among them, with an equal part for each occurrence. Of a function, sentences have the
        contributions of the game in which whole sentences are deleted, and words add up to these; of a
        model that was read, the sums of their words. ``explanation.levels`` has both. Errors are root mean
        square errors among words that look alike by the answers. ``bandwidth``, ``ridge``, ``group``,
        ``tolerance`` and ``control`` are not used.
    mask
        None deletes words, or replaces them by the tokenizer's mask token where the text is longer than
        the network reads. A text replaces them; "" deletes them. True replaces them by the tokenizer's
        mask token. A word that is the mask itself has a NaN coefficient, with a warning.
    bandwidth
        ν > 0 in the paper's unit, infinity allowed; ``lime`` calls 0.25 a kernel width of 25.
    output
        None: ``predict`` of regressors, ``predict_proba`` of classifiers. "margin", "probability", a class
        label, or a list of labels.
    ridge
        0, or the penalty of ``lime``'s own fit on 5000 rows (``lime`` uses 1).
    method, tolerance, max_calls, rng, batch_size, retry, contributions, threshold
        As for :class:`limes.TabularExplainer`. A model that cannot be read is explained exactly, by calls
        for all 2^d deletions, where these are at most ``max_calls``, less 8 for checks.
    control
        The control variate that reduces the sampler's variance: "none"; "logistic", a linear model of the
        log odds of probabilities; "kernel", kernels of words that matter; "process", a Gaussian process,
        for slow models; "margin" of models with a link, where the margin can be read. "auto" is the margin
        if there is one, else the logistic model or kernels, whichever leaves less variance on held-out
        answers. ``explanation.controls`` says which.

    Raises
    ------
    InputError
        If an option is not usable, or the model takes numbers and there is no vectorizer.

    Notes
    -----
    Words that a read model does not use are marked as "unused" in their conditions. Their coefficients are
    not 0 where the model is no sum of words, because z_j of a word tells how many words are removed.

    References
    ----------
    Mardaoui & Garreau, "An Analysis of LIME for Text Data", 2021 (Remark 4); Ribeiro et al. 2016.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> import limes
    >>> reviews = ["good food", "good service", "bad food", "bad and slow service"]
    >>> model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(reviews, [1, 1, 0, 0])
    >>> explanation = limes.TextExplainer(model, output="margin")("Good food, and slow service!")
    >>> explanation.method, explanation.feature_names
    ('exact', ('Good', 'food', 'and', 'slow', 'service'))
    >>> explainer = limes.TextExplainer(model, output="margin", group={"fillers": ["and", "very"]})
    >>> explainer("Good food, and very slow service!").feature_names
    ('Good', 'food', 'fillers', 'slow', 'service')
    """

    _kind = "text"
    _group = "sentence"
    _several = "texts"
    _features = "words"
    _feature = "word"
    _hidden = "removed"
    _meaning = "change of the surrogate when the word is in the text against when it is removed"
    _advice = "use another mask"
    _design = staticmethod(ExchangeableDesign.word_deletions)

    def __init__(
        self,
        model: Any,
        *,
        vectorizer: Any = None,
        split: Any = WORD,
        group: Any = None,
        ignore: Any = None,
        bag: bool | str = True,
        hierarchy: bool | str = "auto",
        mask: str | bool | None = None,
        bandwidth: float = BANDWIDTH,
        output: Any = None,
        ridge: float = 0.0,
        **options: Unpack[SamplingKeywords],
    ) -> None:
        chosen = complete(TextExplainer, options)
        grouping = Grouping.of(group, ignore)
        unused = {"bandwidth": (bandwidth, BANDWIDTH), "ridge": (ridge, 0.0), "group": (group, None)}
        self._may_have_levels = False
        if isinstance(hierarchy, str):
            if hierarchy != "auto":
                raise InputError(f'hierarchy must be True, False or "auto", got {hierarchy!r}')
            self._may_have_levels = bag is not False and may_have_levels(
                chosen, **unused, split=(split, WORD), ignore=(ignore, None)
            )
            hierarchy = False
        self._hierarchy = check_hierarchy(hierarchy, chosen, **unused)
        user_model, model = model, adapted(model)
        bag, replacement = check_bag(bag), check_mask(mask, model)
        passed, (model, output) = model, behind_method(model, output)
        self._text_model = TextModel.from_model(model, vectorizer)
        pattern = token_pattern(self._text_model.steps)
        spans = splitter(split, None if pattern is None else of_tokens(*pattern))
        self._wanted = output
        # names that a function's answers give are known when it is asked about a text
        self._is_named = named_by_answers(self._text_model.head, output)
        self._output = resolve(self._text_model.head, None if self._is_named else output)
        by_predict = passed is not model and passed.__name__ == "predict"
        self._remark = replaced_labels(model, self._output.method, by_predict=by_predict)
        self._hidden = "masked" if replacement else "removed"
        # a known vectorizer takes some words for the same
        key = word_normalizer(self._text_model.steps) if bag is True else None
        if hierarchy and bag is True and key is None:
            key = str.casefold
        super().__init__(
            user_model,
            partial(
                _parse,
                mask=replacement,
                reader=model if mask is None and isinstance(model, Estimator) else None,
                spans=spans,
                bag=bool(bag),
                key=key,
                grouping=grouping,
            ),
            chosen,
            bandwidth,
            ridge,
            answer=self._output.method or "call",
            split=split,
            **({} if group is None else {"group": _group_text(group)}),
            **({} if ignore is None else {"ignore": _group_text(ignore)}),
            bag=bag,
            mask=replacement or None,
        )

    @overload
    def __call__(self, texts: str, *, progress: bool = True, workers: int = 1) -> Explanation: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(
        self, texts: Sequence[str], *, progress: bool = True, workers: int = 1
    ) -> list[Explanation]: ...
    def __call__(self, texts: Any, *, progress: bool = True, workers: int = 1, **unknown: Never) -> Any:
        """Explain one text, or each of several.

        Parameters
        ----------
        texts
            A text gives an explanation of one row; a list of texts, or a column of a table, a list of them.
        progress
            Show a progress bar when it takes more than a second or two.
        workers
            Texts that are explained at the same time, each in its own thread.

        Raises
        ------
        InputError
            If a text is empty, is no text, or has no words: says which.
        ModelError
            If the model fails; its ``partial`` has the explanations of the texts before.
        NotReadableError
            If ``method="exact"`` and the model cannot be read.
        ReadMismatchError
            If what was read off the model does not answer what the model answers.
        Interrupted
            If the user stops it (Ctrl-C), with the same ``partial``; a KeyboardInterrupt.
        """
        if unknown:
            refuse_in_call(unknown, TextExplainer)
        several = None if isinstance(texts, str | bytes | bytearray) else _as_list(texts)
        return self._explain(texts, several, progress=progress, workers=workers)

    def _diagnostic_context(
        self, explanation: Explanation, *, output: Ints, calls: int | None
    ) -> SubsetContext:
        """Return what ``limes.diagnose`` examines of an explained text.

        Of an ``explanation``, the position of each row's ``output``, and the budget of ``calls``.
        """
        text = self._parse(explanation.provenance.get("text", ""))
        return self._context_of(text, explanation, output, calls)

    def _units(self, item: Document) -> GroupedUnits | None:
        is_long = self._may_have_levels and len(item.word) > _LONG_TEXT
        if not self._hierarchy and not (is_long and self._why_levels(item)):
            return None
        return GroupedUnits.of(item.word, _sentences_of(item))

    def _why_levels(self, item: Document) -> str:
        # one sentence has no levels, and the words of a model that is read are exact
        if self._hierarchy or not _sentences_of(item).any() or self._is_read(item):
            return ""
        return f"since the text has {len(item.word):,} words (hierarchy=False explains words alone)"

    def _is_read(self, item: Document) -> bool:
        """Whether words are read off the vectorizer and the model, before the model is asked."""
        try:
            words = word_rows(self._text_model.steps, item)
            output = self._output
            text_form(words, self._text_model.steps[words.steps :], self._text_model.head, output.method)
        except CannotRead:
            return False
        except FAILURES:  # of a model that is not fitted, which is reported when the model is bound
            return True
        return True

    def _asked_units(self, item: Document, units: Any, model: BoundInput) -> tuple[Predict, GroupedUnits]:
        # what was read knows words, and no places
        if not isinstance(model.ask, ModelCaller):
            return model.ask, GroupedUnits(units.places)
        places = replace(item, word=np.arange(len(item.word)), names=item.occurrences, unused=None)
        decode = lambda z: self._text_model.encode(places.texts(z))  # noqa: E731 - as ModelCaller takes it
        return replace(model.ask, decode=decode, typical=None), units

    def _at_levels(self, item: Document, units: Any) -> tuple[Document, Document]:  # noqa: ARG002 - all words
        return item, item.merged(_sentences_of(item))

    def _diagnosable(self, item: Document) -> Any:  # noqa: ARG002 - its text is in the provenance
        return self

    def _bind(self, item: Document) -> BoundInput:
        return read_text_model(self._text_model, self._output_of(item), item)

    def _marked(self, item: Document, model: BoundInput, kept: Bools) -> Document:
        form = model.words if model.form is None else model.form
        if form is None:
            return item
        unused = np.zeros(item.size, dtype=np.bool_)
        unused[kept] = ~used_words(form)
        return replace(item, unused=unused)

    def _output_of(self, item: Document) -> Output:
        if not self._is_named:
            return self._output
        head = self._text_model.head
        position = positions_of_names(
            head,
            self._wanted,
            lambda: names_of_answers(head, lambda z: item.texts(z), np.ones((1, item.size))),
        )
        return resolve(head, position)

    def _remarks(self, item: Document) -> tuple[str, ...]:
        head = self._text_model.head
        cut = head.truncation(item.text) if isinstance(head, Estimator) else ""
        return tuple(filter(None, (self._remark, *_text_warnings(item), cut)))


def read_text_model(model: TextModel, output: Output, document: Document) -> BoundInput:
    """Read a model at a text, and compare the form with its answers to deletions of the text."""
    rows = subset_rows(document.size, CHECKED_ROWS)
    encode = lambda z: model.encode(document.texts(z))  # noqa: E731 - as ModelCaller takes it
    typical = rows if model.steps else None
    with_strings = ModelCaller(model.head, output, encode, typical=typical, kind="text")
    # a model that is not fitted, or takes no texts, raises its own error here
    answers = with_strings(rows if model.steps else rows[:1])
    facts: dict[str, Any] = {
        "model": model.head,
        "output": output,
        "outputs": output.names(answers.shape[1:], with_strings.names),
        "whole": answers[:1],
        # texts have many words, and often a linear fit explains all that the calls can show
        "often_linear": True,
        "adds_up": add_up_to_one(model.head, output),
        "shown": with_strings.first,
        "answered": (rows[: len(answers)], answers),
    }
    try:
        words = word_rows(model.steps, document)
    except CannotRead as reason:
        facts |= _beside_features(model, with_strings, document, answers[0])
        return BoundInput(ask=with_strings, reason=str(reason), **facts)
    tolerance = max(tolerance_of(model.head), SINGLE_TOLERANCE if words.single_precision else EXACT_TOLERANCE)
    rest = model.steps[words.steps :]

    def read(wanted: Output) -> Form:
        form = text_form(words, rest, model.head, wanted.method)
        return form if wanted.columns is None else form.select(wanted.columns)

    def where(row: int) -> str:
        (text,) = document.texts(rows[row : row + 1])
        return f"the text {text[:200]!r}"

    # texts of few sets are few, and take less time than a comparison has calls
    by_strings = words.grams is not None or 1 << document.size <= _FEW_SETS

    @cache
    def chosen() -> Predict:
        """Return what answers to sparse rows, where it answers as to strings; compared at the first use."""
        sparse = replace(with_strings, decode=lambda z: transform(rest, words.rows(z)))
        try:
            check_agreement(answers, sparse(rows), bound.allowance(answers), where)
        except ReadMismatchError:
            return with_strings
        return sparse

    ask = with_strings if by_strings else lambda z: chosen()(z)
    bound = BoundInput.read(
        read, ask=ask, tolerance=tolerance, checks=0 if by_strings else len(rows), **facts
    )
    return bound.checked(rows, answers, where, ask=with_strings)


def _sentences_of(document: Document) -> Ints:
    """The sentence of each occurrence, among those that have one."""
    starts = [start for start, _ in sentences(document.text)]
    places = np.searchsorted(starts, document.spans[:, 0], side="right")
    return np.unique(places, return_inverse=True)[1]


# Sets of words whose texts are made anew, where rows of numbers would do
_FEW_SETS = 256
# Words from which sentences are explained first
_LONG_TEXT = 150
# Share of an answer that what is in no feature may move unsaid, and pieces of it that are named
_UNSAID, _LISTED = 0.01, 3


def _beside_features(
    model: TextModel, caller: ModelCaller, document: Document, whole: Floats
) -> dict[str, Any]:
    """A remark on what the text has beside its features, if the answer to the words alone is another."""
    # words that always stay, as those of ignore=, are part of every text
    letters = [[gap[start:end] for start, end in words_of(gap)] for gap in document.gaps]
    beside = {
        rest: None
        for gap, kept in zip(document.gaps, letters, strict=True)
        if not kept and (rest := gap.strip())
    }
    # behind a mask every text has as many words as the text: one without marks would be of another kind
    if not beside or document.mask:
        return {}
    pieces = [
        letters[0],
        *([one, *kept] for one, kept in zip(document.occurrences, letters[1:], strict=True)),
    ]
    features = " ".join(piece for several in pieces for piece in several)
    alone = replace(caller, decode=lambda _: model.encode([features]))
    (answer,) = alone(np.ones((1, document.size)))
    moved = np.abs(np.subtract(whole, answer)).reshape(-1)
    k = int(moved.argmax())
    with_it, without_it = (float(np.reshape(numbers, -1)[k]) for numbers in (whole, answer))
    if not moved[k] > _UNSAID * max(abs(with_it), abs(without_it)):
        return {}
    shown = ", ".join(repr(gap[:20]) for gap in [*beside][:_LISTED])
    more = ", ..." if len(beside) > _LISTED else ""
    answers = {"without": number(without_it, 3), "answer": number(with_it, 3)}
    return {"remark": sentence("input", "beside features", shown=f"{shown}{more}", **answers)}


_OF_PAIRS = (
    "a pair of texts is explained by CompositeExplainer(model, {'text': 'text', 'text_pair': 'text'}), and "
    "passed as {'text': ..., 'text_pair': ...}"
)


def _as_list(texts: Any) -> list[Any]:
    column = next((name for name in ("to_list", "to_pylist") if hasattr(texts, name)), None)
    texts = texts if column is None else getattr(texts, column)()
    if not isinstance(texts, list | tuple | np.ndarray):
        advice = _OF_PAIRS if isinstance(texts, Mapping) else "of a table pass one column"
        raise InputError(f"expected a text or a list of texts, got {type(texts).__name__}; {advice}")
    for i, text in enumerate(texts):
        if isinstance(text, list | tuple | np.ndarray):
            raise InputError(
                f"text {i} is a {type(text).__name__}: pass texts, not lists; join its words first"
            )
    return list(texts)


def _group_text(group: Any) -> str:
    if not isinstance(group, Mapping | list | tuple | set | frozenset):
        return type(group).__name__
    return ", ".join(sorted(group) if isinstance(group, set | frozenset) else group)


# spelling -> key that is equal for equal words
Key: TypeAlias = Callable[[str], str]

# Name of one way to tell words apart
_SPELLING = "spelling"


@dataclass(frozen=True, kw_only=True)
class TextPart:
    r"""A text, whose words are features; the model gets a list of texts.

    Parameters
    ----------
    split
        As for :class:`limes.TextExplainer`.
    bag
        True: a word is one feature, wherever it stands, and words are the same if they are spelt alike.
        False: every place is a feature.
    mask
        A text that replaces a deleted word; None deletes it without a replacement.

    Raises
    ------
    InputError
        If one of them is not usable.

    Examples
    --------
    >>> import limes
    >>> limes.TextPart().parse("good food").compose([[1, 0]])
    ['good ']
    """

    split: Any = WORD
    bag: bool = True
    mask: str | None = None

    def __post_init__(self) -> None:
        splitter(self.split)
        check_bag(self.bag)
        check_mask(self.mask, None)

    def parse(self, raw: Any) -> Document:
        """Split a text, ``raw``, into words."""
        return parse_text(raw, splitter(self.split), bag=bool(self.bag), mask=self.mask or "")


def check_bag(bag: Any) -> bool | str:
    if not isinstance(bag, bool) and (not isinstance(bag, str) or bag != _SPELLING):
        raise InputError(f"bag must be True, False or {_SPELLING!r}, got {bag!r}")
    return bag


def check_mask(mask: Any, model: Any) -> str:
    if mask is True:
        mask = getattr(model, "mask_token", None)
        if mask is None:
            raise InputError("mask=True needs a model of transformers whose tokenizer has a mask token")
    if mask is not None and not isinstance(mask, str):
        raise InputError(
            f"mask must be None (deletes words), a text to replace words by, or True (the tokenizer's mask "
            f"token); got {mask!r}"
        )
    return mask or ""


def parse_text(
    text: Any,
    spans: Spans,
    *,
    bag: bool,
    mask: str,
    key: Key | None = None,
    grouping: Grouping | None = None,
) -> Document:
    """Split a text into features: groups, words, or, without ``bag``, single occurrences of words."""
    _check_text(text)
    grouping = grouping or Grouping()
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


def _parse(text: Any, *, mask: str, reader: Estimator | None, spans: Spans, **options: Any) -> Document:
    """Parse a text for a ``reader``, whose mask token stands in the place of words where it cuts the text."""
    _check_text(text)
    # deleted words would pull others into what it reads
    if reader is not None and reader.truncation(text):
        mask = reader.mask_token or ""
    return parse_text(text, spans, mask=mask, **options)


def _check_text(text: Any) -> None:
    if isinstance(text, bytes | bytearray):
        raise InputError("the text is bytes: decode it first, text.decode('utf-8')")
    if not isinstance(text, str):
        advice = f"; {_OF_PAIRS}" if isinstance(text, Mapping) else ""
        raise InputError(f"expected a text, got {type(text).__name__}: {str(text)[:60]!r}{advice}")
    if not text.strip():
        raise InputError("the text is empty: there is nothing to explain")


def _check_spans(pairs: Any, text: str) -> Ints:
    try:
        spans = np.array([tuple(pair) for pair in pairs], dtype=np.int64)
    except (TypeError, ValueError) as error:
        raise InputError(f"split must return pairs (start, end) for every word: {error}") from None
    if not spans.size:
        start = text if len(text) <= 60 else f"{text[:60]}…"
        raise InputError(f"the split finds no words in {start!r}: pass another split")
    if spans.ndim != 2 or spans.shape[1] != 2:
        raise InputError(f"split must return pairs (start, end), got an array of shape {spans.shape}")
    edges = spans.ravel()
    if (spans[:, 0] >= spans[:, 1]).any() or (np.diff(edges) < 0).any() or edges[0] < 0:
        raise InputError("split must return spans in order, without overlap, each with a character at least")
    if edges[-1] > len(text):
        raise InputError(f"split returns a span up to {edges[-1]}, but the text has {len(text)} characters")
    return spans


# -- groups --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grouping:
    """Pieces of a text that are one feature."""

    name_of: Callable[[str], Any] | None = None  # piece -> name of its group, None for a piece by itself
    phrases: tuple[tuple[str, ...], ...] = ()  # sequences of words that are one piece, each word by its key
    ignored: Callable[[str], Any] | None = None  # whether a piece is no feature, and always stays in the text

    @classmethod
    def of(cls, group: Any, ignore: Any = None) -> Grouping:
        ignored = _ignored(ignore)
        if group is None:
            return cls(ignored=ignored)
        if isinstance(group, Mapping):
            names = _names_of_words(group)
            several = {_keys(each): name for each, name in names.items() if len(_keys(each)) > 1}
            longest_first = tuple(sorted(several, key=len, reverse=True))
            return cls(partial(_name_of, {**several, **names}), longest_first, ignored)
        if callable(group):
            return cls(group, ignored=ignored)
        if isinstance(group, list | tuple) and group and all(isinstance(phrase, str) for phrase in group):
            phrases = tuple(sorted(filter(None, map(_keys, group)), key=len, reverse=True))
            words_of = {phrase: " ".join(phrase) for phrase in phrases}
            return cls(partial(_name_of, words_of), phrases, ignored)
        raise InputError(
            f"group={group!r} must be a callable word -> name of its group or None, a mapping of names to "
            'lists of words, or a list of phrases such as ["not good"]'
        )

    def pieces(self, text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Merge the spans of words that spell a phrase, and leave out those that are ignored."""
        merged = self._merged(text, spans)
        if self.ignored is None:
            return merged
        kept = [(start, end) for start, end in merged if not self.ignored(text[start:end])]
        if not kept:
            raise InputError("ignore leaves no word of the text to explain: pass fewer words")
        return kept

    def _merged(self, text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Merge the spans of words that spell a phrase, the longest phrase first."""
        if not self.phrases:
            return spans
        words = [text[start:end].casefold() for start, end in spans]
        merged, i = [], 0
        while i < len(spans):
            count = next((len(p) for p in self.phrases if tuple(words[i : i + len(p)]) == p), 1)
            merged.append((spans[i][0], spans[i + count - 1][1]))
            i += count
        return merged

    def name(self, piece: str) -> str | None:
        name = None if self.name_of is None else self.name_of(piece)
        if name is None or (isinstance(name, str) and name):
            return name
        raise InputError(f"group must return the name of a group or None; it returned {name!r} for {piece!r}")


def _ignored(ignore: Any) -> Callable[[str], Any] | None:
    if ignore is None:
        return None
    if callable(ignore):
        chosen: Callable[[str], Any] = ignore
        return chosen
    words = None if isinstance(ignore, str) or not isinstance(ignore, Iterable) else list(ignore)
    if not words or not all(isinstance(word, str) for word in words):
        raise InputError(f"ignore={ignore!r} must be a list of words, or a callable word -> True or False")
    spellings = {word.casefold() for word in words}
    return partial(_is_spelt, spellings)


def _is_spelt(spellings: Container[str], piece: str) -> bool:
    return piece.casefold() in spellings


def _name_of(names: Mapping[Any, str], piece: str) -> str | None:
    """The name of a piece's group: by its spelling, else by the keys of its words."""
    return names.get(piece.casefold(), names.get(_keys(piece)))


def _keys(phrase: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", phrase.casefold()))


def _names_of_words(groups: Mapping[Any, Any]) -> dict[str, str]:
    """The group of each word, by its spelling without case."""
    names: dict[str, str] = {}
    for name, words in groups.items():
        for word in _words(name, words):
            first = names.setdefault(word.casefold(), name)
            if first != name:
                raise InputError(
                    f"group: {word!r} is in {first!r} and {name!r}: a word is in one group at most"
                )
    return names


def _words(name: Any, words: Any) -> list[str]:
    spellings = None if isinstance(words, str) or not isinstance(words, Iterable) else list(words)
    named = isinstance(name, str) and name
    if spellings is None or not named or not all(isinstance(word, str) for word in spellings):
        raise InputError(f"group: {name!r} must be a name of a list of words, got {words!r}")
    return spellings


# -- warnings ------------------------------------------------------------------------------------------------

# First words of the Unicode names of letters of scripts that put no spaces between words
_WITHOUT_SPACES = frozenset({"CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"})
# Letters of these scripts: hardly any word has more than the first; of several words few have the second.
# A word with as many letters of another script as the third is one that is glued to its neighbours
_LONG, _MANY, _FOREIGN = 8, 5, 3


def _text_warnings(document: Document) -> tuple[str, ...]:
    warnings = []
    if document.size == 1:
        warnings.append(sentence("input", "one word"))
    unsplit = _unsplit(document.names)
    if unsplit:
        warnings.append(sentence("input", "unsplit", word=unsplit[:20]))
    return tuple(warnings)


def _unsplit(words: Sequence[str]) -> str:
    """The first of a text's words that is rather several without spaces between them, or ""."""
    counted = [(word, *_letters(word)) for word in words if not word.isascii()]
    for word, without_spaces, others in counted:
        if without_spaces > _LONG or (without_spaces and others >= _FOREIGN):
            return word
    # clauses, which commas and spaces have cut
    lengths = [without_spaces for _, without_spaces, _ in counted if without_spaces]
    clauses = [word for word, without_spaces, _ in counted if without_spaces >= _MANY]
    return clauses[0] if sum(lengths) > _MANY and 2 * len(clauses) >= len(lengths) else ""


def _letters(word: str) -> tuple[int, int]:
    """Numbers of letters of scripts without spaces, and of others; katakana alone spells one word."""
    scripts = [unicodedata.name(letter, "").split(" ")[0] for letter in word if letter.isalpha()]
    count = sum(script in _WITHOUT_SPACES for script in scripts)
    katakana = sum(script.startswith("KATAKANA") for script in scripts)
    return (count if count > _LONG or katakana < len(scripts) else 0), len(scripts) - max(count, katakana)
