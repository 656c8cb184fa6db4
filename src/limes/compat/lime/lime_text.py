"""lime's explainer of texts: its calls and results, answered by the limit or by lime's sampling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from limes._arrays import Floats, Ints, Objects
from limes._checks import check_count, refuse_unknown
from limes._explainers.splits import Spans, by_pattern, splitter
from limes._explainers.text import TextExplainer, parse_text
from limes._explanation.attribution import changed
from limes.compat.lime import explanation, lime_base
from limes.compat.lime._engines import (
    BaseExplainer,
    Call,
    MaskedAdapter,
    PredictFunction,
    in_batches,
    least_subset_calls,
    listed_labels,
    perturbed_rows,
)
from limes.compat.lime._leniency import kernel_width_of
from limes.compat.lime.explanation import DomainMapper, Explanation, Pairs, refuse_list_options
from limes.compat.lime.lime_base import PerturbedRows
from limes.exceptions import InputError
from limes.models._documents import Document, TextModel

if TYPE_CHECKING:
    from limes._explanation import Explanation as LimesExplanation

# what lime's module imports is imported from there by public code
__all__ = [
    "IndexedCharacters",
    "IndexedString",
    "LimeTextExplainer",
    "TextDomainMapper",
    "explanation",
    "lime_base",
]


# What lime puts in the places of words and of characters, where they are not to be deleted
_MASKED_WORD, _MASKED_CHARACTER = "UNKWORDZ", "\0"
# lime's unit of distance
_SCALE = 100.0
# Texts between two steps of the progress bar
_BATCH = 256
_WIDTH = 25.0


@dataclass(frozen=True)
class Split:
    """Places of words: between matches of a regular expression, or of a callable's tokens."""

    expression: Any

    def __post_init__(self) -> None:
        if not self._by_tokens:
            self._spans()

    def __call__(self, text: str) -> Iterable[tuple[int, int]]:
        if self._by_tokens:
            return _places(self.expression(text), text)
        return self._spans()(text)

    def _spans(self) -> Spans:
        # names of limes' own splits are expressions to lime
        is_text = isinstance(self.expression, str)
        return by_pattern(self.expression) if is_text else splitter(self.expression)

    @property
    def _by_tokens(self) -> bool:
        # a tokenizer of Hugging Face can be called too, but its offsets are better than its tokens
        return callable(self.expression) and not hasattr(self.expression, "encode")


def _places(tokens: Iterable[str], text: str) -> list[tuple[int, int]]:
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

    def __init__(self, text: Any, spans: Spans, bow: bool, mask_string: str) -> None:
        places: Any = list(spans(text)) if isinstance(text, str) else None
        if places == []:
            # lime indexes a text without words; to explain it is an error
            self.document = Document(text, np.empty((0, 2), np.int64), np.empty(0, np.int64), (), "")
        else:
            self.document = parse_text(text, lambda _: places, bag=bow, mask="" if bow else mask_string)
        self.spans = spans
        self.raw: str = text
        self.bow = bow
        self.mask_string = mask_string
        self.inverse_vocab = list(self.document.names)

    @cached_property
    def _pieces(self) -> tuple[list[str], list[int]]:
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
class TextAdapter(MaskedAdapter):
    """Texts, of whose words some are removed: ``spans`` finds words.

    Of d words s are removed, s uniform on 1, ..., d, which ones by chance. The bandwidth is a hundredth of
    lime's kernel width.
    """

    few = "fewer than {} num_samples"
    most_enumerated = 12
    distance_unit = _SCALE

    spans: Spans
    batch_size: int

    def item(self, instance: IndexedText) -> Document:
        return instance.document

    def is_read(self, call: Call) -> bool:
        return _pipeline(call.predict) is not None

    def explainer(self, call: Call, seed: int) -> TextExplainer:
        indexed = call.instance
        model, output = _pipeline(call.predict) or (call.predict.function, None)
        return TextExplainer(
            model,
            output=output,
            split=self.spans,
            bag="spelling" if indexed.bow else False,
            mask=None if indexed.bow else indexed.mask_string,
            bandwidth=self.bandwidth,
            # a pipeline that can be taken apart may be asked for fewer texts than its words need
            max_calls=max(call.num_samples, least_subset_calls(indexed.num_words())) - 1,
            hierarchy=False,
            contributions="auto" if self.is_read(call) else False,
            rng=seed,
            batch_size=self.batch_size,
        )

    def fingerprint(self, instance: IndexedText) -> Sequence[int]:
        text = instance.raw.encode("utf-8", "surrogatepass")
        return (int.from_bytes(blake2b(text, digest_size=16).digest(), "little"),)

    def draw(self, call: Call, rng: np.random.Generator) -> tuple[Floats, list[str]]:
        z = deletions(call.instance.num_words(), call.num_samples, rng)
        return z, call.instance.document.texts(z)

    def ask(self, call: Call, rows: Any) -> Floats:
        size = min(self.batch_size, _BATCH) if call.progress else self.batch_size
        return in_batches(call.predict, rows, size, progress=call.progress)


def deletions(d: int, count: int, rng: np.random.Generator) -> Floats:
    """Draw rows z (count, d) of kept words (1), of which the first is the whole text.

    Word by word: with l of the last m words yet to be removed, the next one is with chance l / m.
    """
    to_remove = rng.integers(1, d + 1, count - 1).astype(np.float64)
    kept = np.ones((d, count))
    for j, row in enumerate(kept[:, 1:]):
        np.greater_equal(rng.random(count - 1) * (d - j), to_remove, out=row)
        to_remove += row - 1.0
    return kept.T


def _pipeline(predict: PredictFunction) -> tuple[Any, str | None] | None:
    """The Pipeline and output of a bound method such as ``pipeline.predict_proba``; None of a function.

    Raises InputError if it is the method of a model that takes numbers.
    """
    return predict.model if predict.model and TextModel.from_model(predict.model[0]).steps else None


class TextDomainMapper(DomainMapper):
    """Words of a text, by their numbers."""

    page_options = frozenset({"text", "opacity"})

    def __init__(self, indexed_string: IndexedText) -> None:
        self.indexed_string = indexed_string

    def map_exp_ids(self, exp: Pairs, positions: bool = False, **kwargs: Any) -> list[tuple[Any, float]]:
        """Replace numbers by words, or with ``positions`` by words and where they stand: bad_3-6-12."""
        refuse_list_options(kwargs, "positions")
        return [(self._name(j, positions), value) for j, value in exp]

    def on_page(self, explanation: LimesExplanation, *, text: Any = True, **kwargs: Any) -> LimesExplanation:  # noqa: ARG002 - colours always fade
        """Leave out the text, if it is not wanted."""
        facts = {name: fact for name, fact in explanation.provenance.items() if name not in ("text", "spans")}
        return explanation if text else changed(explanation, provenance=facts)

    def picture(self, conditions: Mapping[int, str]) -> dict[str, Any]:
        """The text, and the places of its words."""
        document = self.indexed_string.document
        spans = {name: document.spans[document.word == j].tolist() for j, name in conditions.items()}
        return {"text": document.text, "spans": spans}

    def _name(self, j: int, positions: bool) -> str:
        word = self.indexed_string.word(j)
        return f"{word}_{'-'.join(map(str, self.indexed_string.string_position(j)))}" if positions else word


class LimeTextExplainer(BaseExplainer):
    r"""Explain classifiers of texts.

    The parameters are lime's; two are added: ``mode="regression"`` explains a score, as lime does for
    tables, and ``engine`` is "limit", "lime" or None (:func:`limes.compat.lime.engine`). Calls that only
    lime's sampling supports (another kernel, metric or regressor, or too few samples for error bars) go to
    engine "lime" in any case, with the reason in ``explanation.engine_reason``. A seed fixes each text's
    result, whatever came before.

    Parameters
    ----------
    kernel_width
        Of the cosine distance times 100; a hundredth of it is the bandwidth of :class:`limes.TextExplainer`.
    split_expression
        Regular expression of what stands between words; a function from a text to its tokens; or a fast
        tokenizer of Hugging Face.
    bow
        All occurrences of a word are deleted together; False: each by itself, with ``mask_string`` in its
        place.
    char_level
        Characters instead of words.
    batch_size
        How many texts the model is called with at once.

    Raises
    ------
    InputError
        If an option is not usable, or does not exist.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.naive_bayes import MultinomialNB
    >>> from sklearn.pipeline import make_pipeline
    >>> reviews = ["good food", "good service", "bad food", "bad and slow service"]
    >>> model = make_pipeline(TfidfVectorizer(), MultinomialNB()).fit(reviews, [1, 1, 0, 0])
    >>> explanation = LimeTextExplainer(class_names=["bad", "good"]).explain_instance(
    ...     "Good food, and slow service!", model.predict_proba, num_features=1)
    >>> explanation.as_list()[0][0]
    'Good'
    """

    # as Python spells a private method of lime's class from outside
    _draws = "_LimeTextExplainer__data_labels_distances"

    def __init__(
        self,
        kernel_width: float = _WIDTH,
        kernel: Callable[..., Floats] | None = None,
        verbose: bool = False,
        class_names: Sequence[Any] | None = None,
        feature_selection: str = "auto",
        split_expression: str | Callable[[str], Iterable[str]] = r"\W+",
        bow: bool = True,
        mask_string: str | None = None,
        random_state: Any = None,
        char_level: bool = False,
        *,
        mode: str = "classification",
        engine: str | None = None,
        batch_size: int = 4096,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, LimeTextExplainer)
        super().__init__(mode, kernel, verbose, class_names, feature_selection, random_state, engine)
        self.vocabulary = None
        self.bow = bow
        self.mask_string = mask_string
        self.split_expression = split_expression
        self.char_level = char_level
        # a kernel of the user's gets what was passed
        width = kernel_width_of(kernel_width, _WIDTH, kernel)
        spans = characters if char_level else Split(split_expression)
        adapter = TextAdapter(width / _SCALE, spans, check_count("batch_size", batch_size))
        self._adapt(adapter, width if kernel is None else kernel_width)

    def explain_instance(
        self,
        text_instance: str,
        classifier_fn: Callable[[list[str]], Any],
        labels: int | Iterable[int] = (1,),
        top_labels: int | None = None,
        num_features: int = 10,
        num_samples: int = 5000,
        distance_metric: str = "cosine",
        model_regressor: Any = None,
        progress_bar: bool = False,
    ) -> Explanation:
        """Explain one text; lime's parameters, and ``progress_bar``, which shows one where it takes long.

        Raises
        ------
        InputError
            A text or an option that is not usable, or a label that the model does not have.
        ModelError
            If ``classifier_fn`` fails, or answers with a wrong shape or values that are not finite.
        """
        if self.char_level:
            indexed: IndexedText = IndexedCharacters(text_instance, self.bow, self.mask_string)
        else:
            indexed = IndexedString(text_instance, self.split_expression, self.bow, self.mask_string)
        if not indexed.num_words():
            parse_text(text_instance, indexed.spans, bag=True, mask="")  # raises
        wanted = listed_labels(labels)
        predict = PredictFunction(classifier_fn, self.mode, self._one_label(wanted, top_labels))
        choose = partial(self._choose_labels, labels=wanted, top=top_labels)
        options = num_features, num_samples, distance_metric, model_regressor
        call = Call(indexed, predict, choose, *options, progress=progress_bar)
        return self._explanation(call, TextDomainMapper(indexed), top_labels)

    def _overridden_rows(self, call: Call) -> PerturbedRows:
        draw = getattr(self, self._draws)
        return PerturbedRows(*draw(call.instance, call.predict, call.num_samples, call.metric))

    def __data_labels_distances(
        self,
        indexed_string: IndexedText,
        classifier_fn: Callable[[list[str]], Any],
        num_samples: int,
        distance_metric: str = "cosine",
    ) -> tuple[Floats, Floats, Floats]:
        """Draw texts around one: lime's private method, which is called and overridden by its name.

        They are kept words (num_samples, d), the whole text first, answers (num_samples, k), and distances.
        """
        predict = PredictFunction(classifier_fn, self.mode)
        call = Call(indexed_string, predict, lambda _: [], 1, num_samples, distance_metric, None)
        near = perturbed_rows(self._adapter, call, self._seeds.lime)
        return near.features, near.answers, np.asarray(near.distances)
