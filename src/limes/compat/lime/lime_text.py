"""lime's explainer of texts: its calls and results, with the limit or lime's own sampling behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Never

from limes._arrays import Floats
from limes._checks import check_choice, check_count, check_size, refuse_unknown
from limes.compat.lime.answers import Answers, chosen_labels, classes_of
from limes.compat.lime.engines import Seeds, engine_for, engine_of
from limes.compat.lime.explanation import Explanation
from limes.compat.lime.lime_base import SELECTIONS, LimeBase, default_kernel
from limes.compat.lime.surrogates import Surrogates, filled, named
from limes.compat.lime.switched_limit import fewest
from limes.compat.lime.texts.law import SCALE, LimeEngine, TextRequest
from limes.compat.lime.texts.limit import LimitEngine, pipeline_behind
from limes.compat.lime.texts.strings import (
    IndexedCharacters,
    IndexedString,
    IndexedText,
    Split,
    TextDomainMapper,
    characters,
)

_WIDTH = 25.0

__all__ = ["IndexedCharacters", "IndexedString", "LimeTextExplainer", "TextDomainMapper"]


class LimeTextExplainer:
    r"""Explain classifiers of texts.

    The parameters are lime's; two are added: ``mode="regression"`` explains a score, as lime does for
    tables, and ``engine`` is "limit", "lime" or None (:mod:`limes.compat.lime.engines`). Requests that only
    lime's own sampling knows (another kernel, metric or regressor, or too few samples for error bars) go to
    engine "lime" in any case, and ``explanation.engine_reason`` says so. A seed fixes each text's result,
    whatever came before.

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
        **unknown: Never,
    ) -> None:
        from sklearn.utils import check_random_state

        refuse_unknown(unknown, LimeTextExplainer)
        engine_of(engine)
        self.mode = check_choice("mode", mode, ("classification", "regression"))
        self.feature_selection = check_choice("feature_selection", feature_selection, tuple(SELECTIONS))
        self.engine = engine
        self.random_state = check_random_state(random_state)
        self.class_names = class_names
        self.vocabulary = None
        self.bow = bow
        self.mask_string = mask_string
        self.split_expression = split_expression
        self.char_level = char_level
        self._kernel = kernel
        width = check_size("kernel_width", kernel_width)
        spans = characters if char_level else Split(split_expression)
        self.base = LimeBase(
            partial(kernel or default_kernel, kernel_width=width), verbose, self.random_state
        )
        seeds, bandwidth = Seeds.of(random_state, self.random_state), width / SCALE
        facts = {"engine": "lime", "bandwidth": bandwidth, "ridge": 1.0, "seed": seeds.lime}
        self._engines: dict[str, Callable[[TextRequest], Surrogates]] = {
            "limit": LimitEngine(spans, bandwidth, feature_selection, seeds.limit, mode, verbose),
            "lime": LimeEngine(self.base, feature_selection, seeds.lime, mode, facts),
        }

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
        request = TextRequest(
            self._indexed(text_instance),
            Answers(classifier_fn, self.mode),
            partial(self._labels, labels=labels, top=top_labels),
            check_count("num_features", num_features),
            check_count("num_samples", num_samples),
            distance_metric,
            model_regressor,
            progress_bar,
        )
        engine = engine_for(self.engine, self._only_lime(request))
        found = self._engines[engine[0]](request)
        classes = self._classes(len(found.answers))
        explanation = Explanation(TextDomainMapper(request.indexed), self.mode, classes, self.random_state)
        return filled(explanation, named(found, classes), engine, top=bool(top_labels))

    def _indexed(self, text: str) -> IndexedText:
        if self.char_level:
            return IndexedCharacters(text, self.bow, self.mask_string)
        return IndexedString(text, self.split_expression, self.bow, self.mask_string)

    def _only_lime(self, request: TextRequest) -> dict[str, bool]:
        found = {
            "kernel": self._kernel is not None,
            "model_regressor": request.regressor is not None,
            "distance_metric": request.metric != "cosine",
        }
        if pipeline_behind(request.answers) is None:
            least = fewest(request.indexed.num_words())
            found[f"fewer than {least} num_samples"] = request.samples < least
        return found

    def _labels(self, said: Floats, labels: int | Iterable[int], top: int | None) -> list[int]:
        """The labels to be explained, of a model that answers (k,)."""
        if self.mode == "regression":
            return [0]
        self._classes(len(said))
        return chosen_labels(said, labels, top)

    def _classes(self, k: int) -> list[Any] | None:
        return None if self.mode == "regression" else classes_of(self.class_names, k)
