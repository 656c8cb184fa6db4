"""Explain texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Never, overload

import numpy as np

from limes import __version__
from limes._arrays import Floats, Ints
from limes._checks import refuse_unknown
from limes._diagnostics.context import SubsetContext
from limes._explainers.masked import MaskedExplainer
from limes._explainers.masked_model import (
    CHECKED_ROWS,
    CONTROLS,
    MaskedModel,
    Predict,
    check_form,
    read_model,
)
from limes._explainers.options import SamplingOptions
from limes._explainers.parts.text import Grouping, check_bag, check_mask, parse_text, splitter
from limes._explainers.verification import subset_rows
from limes._explainers.warnings import text_warnings
from limes._explanation import Explanation
from limes.designs._exchangeable import BANDWIDTH, ExchangeableDesign
from limes.exceptions import InputError, ReadMismatchError
from limes.models._calling.caller import ModelCaller, Retry
from limes.models._calling.networks import Estimator, adapted
from limes.models._calling.outputs import Output, add_up_to_one, behind_method, replaced_labels, resolve
from limes.models._documents import Document, TextModel, transform
from limes.models._reading import CannotRead, tolerance_of
from limes.models.forms._base import BlackBox, Form
from limes.models.readers import EXACT_TOLERANCE, SINGLE_TOLERANCE
from limes.models.readers.sklearn_text import text_form, word_normalizer, word_rows

_MEANING = "change of the surrogate when the word is in the text against when it is removed"


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
        ``transformers``: a text-classification pipeline, or a pair (network, tokenizer), whose logits go
        through the function that the pipeline applies: none for a regression, the logistic function for one
        label and for labels that do not exclude each other, else the softmax.
    vectorizer
        Turns texts into rows of numbers, if the model does not do it itself.
    split
        Regular expression of what separates words; "sentence", for sentences as features, of which a long
        text has few; a callable text -> [(start, end), ...]; or a fast tokenizer of Hugging Face, whose
        offsets are used.
    group
        Words that are kept or removed together as one feature: a callable word -> name of its group, or None
        for a word by itself (a lemmatizer, say); a mapping of names to words, {"stop words": ["the", "of"]},
        whatever their case; or a list of phrases, ["not good"], whose words are taken together.
    ignore
        Words that always stay in the text and are no features, as stop words often are: a list, whatever
        their case, or a callable word -> bool. Their effect is part of the intercept. A model is read where
        its vectorizer counts none of them (``stop_words``), and sampled where it does.
    bag
        All occurrences of a word are kept or removed together; words are the same if a known vectorizer takes
        them for the same (Food, food). "spelling": if they are spelt alike, as for ``lime``. False: each
        occurrence by itself.
    mask
        None deletes words; a text is put in their places; True puts the tokenizer's mask token there. A word
        that is the mask itself has a NaN coefficient, with a warning.
    bandwidth
        ν > 0 in the paper's unit, infinity allowed; ``lime`` calls 0.25 a kernel width of 25.
    output
        None: ``predict`` of regressors, ``predict_proba`` of classifiers. "margin", "probability", a class
        label, or a list of labels.
    ridge
        0, or the penalty of ``lime``'s own fit on 5000 rows (``lime`` uses 1).
    method, tolerance, max_calls, rng, batch_size, retry
        As for :class:`limes.TabularExplainer`. A model that cannot be read is asked about all 2^d deletions,
        and explained exactly, where they are no more than ``max_calls``.
    control
        The control variate that reduces the sampler's variance: "none"; "logistic", a linear model of the log
        odds of probabilities; "kernel", kernels of words that matter; "process", a Gaussian process, for
        models that take their time; "margin" of models with a link, where the margin can be read. "auto" is
        the margin if there is one, else the logistic model or kernels, whichever leaves less of answers that
        it has not seen. ``explanation.controls`` says which.

    Raises
    ------
    InputError
        If an option is not usable, or the model takes numbers and there is no vectorizer.

    References
    ----------
    Mardaoui & Garreau, "An Analysis of LIME for Text Data", 2021; Ribeiro et al. 2016.

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
    _several = "texts"
    _features = "words"
    _advice = "use another mask"
    _design = staticmethod(ExchangeableDesign.word_deletions)

    def __init__(
        self,
        model: Any,
        *,
        vectorizer: Any = None,
        split: Any = r"\W+",
        group: Any = None,
        ignore: Any = None,
        bag: bool | str = True,
        mask: str | bool | None = None,
        bandwidth: float = BANDWIDTH,
        output: Any = None,
        ridge: float = 0.0,
        method: str = "auto",
        tolerance: float | str | None = None,
        max_calls: int = 4096,
        control: str = "auto",
        rng: int | np.random.Generator | np.random.SeedSequence | None = None,
        batch_size: int = 4096,
        retry: Retry | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, TextExplainer)
        options = SamplingOptions(
            method, tolerance, max_calls, control, rng, batch_size, retry, controls=CONTROLS
        )
        spans, grouping = splitter(split), Grouping.of(group, ignore)
        name = type(model).__name__
        model = adapted(model)
        bag, replacement = check_bag(bag), check_mask(mask, model)
        passed, (model, output) = model, behind_method(model, output)
        self._model = TextModel.from_model(model, vectorizer)
        self._output = resolve(self._model.head, output)
        by_predict = passed is not model and passed.__name__ == "predict"
        self._remark = replaced_labels(model, self._output.method, by_predict=by_predict)
        # a known vectorizer takes some words for the same
        key = word_normalizer(self._model.steps) if bag is True else None
        self._parse_text = partial(
            parse_text, spans=spans, bag=bool(bag), mask=replacement, key=key, grouping=grouping
        )
        provenance = {
            "meaning": _MEANING,
            "limes": __version__,
            "model": name,
            "answer": self._output.method or "call",
            "split": getattr(split, "pattern", split) if isinstance(split, str) else type(split).__name__,
            **({} if group is None else {"group": _group_text(group)}),
            **({} if ignore is None else {"ignore": _group_text(ignore)}),
            "bag": bag,
            "mask": replacement or None,
        }
        super().__init__(options, bandwidth, ridge, provenance)

    @overload
    def __call__(self, texts: str, *, progress: bool = True, workers: int = 1) -> Explanation: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(
        self, texts: Sequence[str], *, progress: bool = True, workers: int = 1
    ) -> list[Explanation]: ...
    def __call__(
        self, texts: Any, *, progress: bool = True, workers: int = 1
    ) -> Explanation | list[Explanation]:
        """Explain one text, or each of several.

        Parameters
        ----------
        texts
            A text gives an explanation of one row; a list of texts (or a column of a table) a list of them,
            as each text has its own words.
        progress
            Show a progress bar when it takes more than a second or two.
        workers
            Texts that are explained at the same time, each in its own thread: for models that wait for
            something, or release the interpreter.

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
        if isinstance(texts, str | bytes | bytearray):
            return self._explain(texts, progress=progress)
        return self._explain_each(_as_list(texts), progress=progress, workers=workers)

    def diagnostic_context(
        self, explanation: Explanation, *, output: Ints, calls: int | None
    ) -> SubsetContext:
        """Return what ``limes.diagnose`` examines of an explained text.

        Of an ``explanation``, the position of each row's ``output``, and the budget of ``calls``.
        """
        text = self._parse(explanation.provenance.get("text", ""))
        return self._diagnostic_context(text, explanation, output, calls)

    def _diagnosable(self, item: Document) -> Any:  # noqa: ARG002 - its text is in the provenance
        return self

    def _parse(self, raw: Any) -> Document:
        return self._parse_text(raw)

    def _bind(self, item: Document) -> MaskedModel:
        return read_text_model(self._model, self._output, item)

    def _remarks(self, item: Document) -> tuple[str, ...]:
        cut = self._model.head.truncation(item.text) if isinstance(self._model.head, Estimator) else ""
        return tuple(filter(None, (self._remark, *text_warnings(item), cut)))


def read_text_model(model: TextModel, output: Output, document: Document) -> MaskedModel:
    """Read a model at a text, and compare the form with its answers to deletions of the text.

    A model whose form answers something else is left to sampling.
    """
    with_strings = ModelCaller(model.head, output, lambda z: model.encode(document.texts(z)))
    rows = subset_rows(document.size, CHECKED_ROWS)
    # a model that is not fitted, or takes no texts, raises its own error here
    answers = with_strings(rows if model.steps else rows[:1])
    facts: dict[str, Any] = {
        "outputs": output.names(answers.shape[1:]),
        "whole": answers[:1],
        # texts have many words, and often a linear fit explains all that the calls can show
        "often_linear": True,
        "adds_up": add_up_to_one(model.head, output),
    }
    try:
        words = word_rows(model.steps, document)
    except CannotRead as reason:
        return MaskedModel(with_strings, BlackBox(with_strings, str(reason)), **facts)
    tolerance = max(tolerance_of(model.head), SINGLE_TOLERANCE if words.single_precision else EXACT_TOLERANCE)
    rest = model.steps[words.steps :]

    def where(row: int) -> str:
        (text,) = document.texts(rows[row : row + 1])
        return f"the text {text[:200]!r}"

    def check(predict: Predict) -> None:
        check_form(predict, rows, answers, tolerance, where)

    @cache
    def chosen() -> Predict:
        """Return what answers to sparse rows, where it answers as to strings; compared at the first use."""
        sparse = ModelCaller(model.head, output, lambda z: transform(rest, words.rows(z)))
        try:
            check(sparse)
        except ReadMismatchError:
            return with_strings
        return sparse

    def ask_sparse(z: Floats) -> Floats:
        return chosen()(z)

    ask = ask_sparse if words.grams is None else with_strings

    def read(wanted: Output) -> Form | BlackBox:
        try:
            form = text_form(words, rest, model.head, wanted.method)
        except CannotRead as reason:
            return BlackBox(ask, str(reason))
        return form if wanted.columns is None else form.select(wanted.columns)

    bound = read_model(model.head, output, ask, read, check, otherwise=with_strings, **facts)
    exact = tolerance <= EXACT_TOLERANCE and not isinstance(bound.form, BlackBox)
    return replace(bound, predict=bound.form.predict) if exact else bound


def _as_list(texts: Any) -> list[Any]:
    column = next((name for name in ("to_list", "to_pylist") if hasattr(texts, name)), None)
    texts = texts if column is None else getattr(texts, column)()
    if not isinstance(texts, list | tuple | np.ndarray):
        raise InputError(
            f"expected a text or a list of texts, got {type(texts).__name__}; of a table pass one column"
        )
    for i, text in enumerate(texts):
        if isinstance(text, list | tuple | np.ndarray):
            raise InputError(
                f"text {i} is a {type(text).__name__}: pass texts, not lists; join its words first"
            )
    return list(texts)


def _group_text(group: Any) -> str:
    """Describe the option in few words."""
    if not isinstance(group, Mapping | list | tuple | set | frozenset):
        return type(group).__name__
    return ", ".join(sorted(group) if isinstance(group, set | frozenset) else group)
