"""lime's explainer of texts: its calls and results, answered by the limit or by lime's sampling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from limes._arrays import Floats
from limes._checks import check_count, check_size, refuse_unknown
from limes.compat.lime import explanation, lime_base
from limes.compat.lime._call import BaseExplainer, Call, PredictFunction
from limes.compat.lime._sampling import SamplingEngine
from limes.compat.lime._texts import (
    SCALE,
    IndexedCharacters,
    IndexedString,
    IndexedText,
    Split,
    TextKind,
    characters,
)
from limes.compat.lime.explanation import DomainMapper, Explanation, Pairs
from limes.compat.lime.lime_base import PerturbedRows

if TYPE_CHECKING:
    from limes._explanation import Explanation as LimesExplanation

_WIDTH = 25.0
# as Python spells a private method of lime's class from outside
_DATA_LABELS = "_LimeTextExplainer__data_labels_distances"

# what lime's module imports is imported from there by public code
__all__ = [
    "IndexedCharacters",
    "IndexedString",
    "LimeTextExplainer",
    "TextDomainMapper",
    "explanation",
    "lime_base",
]


class TextDomainMapper(DomainMapper):
    """Words of a text, by their numbers."""

    page_options = frozenset({"text", "opacity"})

    def __init__(self, indexed_string: IndexedText) -> None:
        self.indexed_string = indexed_string

    def map_exp_ids(self, exp: Pairs, positions: bool = False, **kwargs: Any) -> list[tuple[Any, float]]:  # noqa: ARG002 - lime's signature
        """Replace numbers by words, or with ``positions`` by words and where they stand: bad_3-6-12."""
        return [(self._name(j, positions), value) for j, value in exp]

    def on_page(self, explanation: LimesExplanation, *, text: Any = True, **kwargs: Any) -> LimesExplanation:  # noqa: ARG002 - colours always fade
        """Leave out the text, if it is not wanted."""
        facts = {name: fact for name, fact in explanation.provenance.items() if name not in ("text", "spans")}
        return explanation if text else replace(explanation, provenance=facts)

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
        width = check_size("kernel_width", kernel_width)
        spans = characters if char_level else Split(split_expression)
        kind = TextKind(
            spans, self.mode, width / SCALE, self._seeds.limit, check_count("batch_size", batch_size)
        )
        self._set_kind(kind, width)

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
        predict = PredictFunction(classifier_fn, self.mode)
        draw = partial(getattr(self, _DATA_LABELS), indexed, predict, num_samples, distance_metric)
        call = Call(
            indexed,
            predict,
            partial(self._choose_labels, labels=labels, top=top_labels),
            num_features,
            num_samples,
            distance_metric,
            model_regressor,
            progress=progress_bar,
            override=self._override(LimeTextExplainer, _DATA_LABELS, lambda: PerturbedRows(*draw())),
        )
        return self._explanation(call, TextDomainMapper(indexed), top_labels)

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
        near = SamplingEngine(self._kind, self.base, self.feature_selection, self._seeds.lime).drawn(call)
        return near.features, near.answers, np.asarray(near.distances)
