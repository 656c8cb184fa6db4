"""Explain texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Never, overload

import numpy as np

from limes import __version__
from limes._arrays import Ints
from limes._lru import LRUCache
from limes.designs.exchangeable import BANDWIDTH, ExchangeableDesign
from limes.designs.weights import check_bandwidth
from limes.diagnostics.context import SubsetContext
from limes.exceptions import InputError, ModelError
from limes.explainers.doubts import doubts
from limes.explainers.found import found
from limes.explainers.options import check_choice, check_size, refuse_unknown
from limes.explainers.progress import progress_of
from limes.explainers.sampling import sampling_of
from limes.explainers.scenes import subset_context
from limes.explainers.several import explained_each
from limes.explainers.switched import CONTROLS
from limes.explainers.text_subject import FittedText, TextSubject
from limes.explainers.text_warnings import text_warnings
from limes.explainers.tokens import conditions_of, document_of, spans_of, splitter
from limes.explainers.unfinished import UNFINISHED
from limes.explanation import Explanation
from limes.models.calling.caller import Retry
from limes.models.calling.outputs import resolve
from limes.models.documents import Document
from limes.models.readers.word_rows import word_normalizer
from limes.models.text_models import TextModel
from limes.pipeline import METHODS, Expectation, Fitted, fitted_at

_SPELLING = "spelling"
_MEANING = "change of the surrogate when the word is in the text against when it is removed"


class TextExplainer:
    r"""Explain predictions on texts: what LIME converges to, exactly where the model can be read.

    The surrogate is g = β₀ + Σ_j β_j z_j, where z_j says that word j is kept, and minimises E_w (f - g)²,
    where s of the d words are removed, s uniform on 1, ..., d and the words any s of them, weighted towards
    the text by exp(-(1 - √(1 - s/d))² / (2ν²)).

    Parameters
    ----------
    model
        A Pipeline of a vectorizer and an estimator; a fitted estimator with its ``vectorizer``; or anything
        with ``predict``, or a callable, that takes a list of texts and gives (n,) or (n, k).
    vectorizer
        What makes rows of numbers of texts, if the model does not do it itself.
    split
        Regular expression of what stands between words; or a callable text -> [(start, end), ...]; or a fast
        tokenizer of Hugging Face, whose offsets are taken.
    bag
        All occurrences of a word are kept or removed together; words are the same if a known vectorizer takes
        them for the same (Food, food). "spelling": if they are spelt alike, as for ``lime``. False: each
        occurrence by itself.
    mask
        None deletes words; a text is put in their places.
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
        What takes variance away from the sampler: "none", "kernel", "margin" (of models with a link, where
        the margin can be read), "process" (a Gaussian process, for models that take their time), or "auto":
        the margin, and kernels where there is none. ``explanation.controls`` says which.

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
    """

    def __init__(
        self,
        model: Any,
        *,
        vectorizer: Any = None,
        split: Any = r"\W+",
        bag: bool | str = True,
        mask: str | None = None,
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
        self._method = check_choice("method", method, METHODS)
        self._control = check_choice("control", control, CONTROLS)
        self._sampling = sampling_of(
            max_calls=max_calls, tolerance=tolerance, rng=rng, batch_size=batch_size, retry=retry
        )
        self._spans = splitter(split)
        self._bag, self._mask = _checked_bag(bag), _checked_mask(mask)
        self._bandwidth = check_bandwidth(bandwidth)
        self._ridge = check_size("ridge", ridge, zero=True)
        self._model = TextModel.from_model(model, vectorizer)
        self._wanted = resolve(self._model.head, output)
        # answers that texts have got before a model failed; the same call goes on from them
        self._unfinished: LRUCache[str, Expectation] = LRUCache(UNFINISHED)
        self._key = word_normalizer(self._model.steps) if bag is True else None
        self._provenance = {
            "meaning": _MEANING,
            "limes": __version__,
            "model": type(model).__name__,
            "answer": self._wanted.method or "call",
            "split": getattr(split, "pattern", split) if isinstance(split, str) else type(split).__name__,
            "bag": bag,
            "mask": mask,
            "bandwidth": float(bandwidth),
            "ridge": self._ridge,
        }

    @overload
    def __call__(self, texts: str, *, progress: bool = True) -> Explanation: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, texts: Sequence[str], *, progress: bool = True) -> list[Explanation]: ...
    def __call__(self, texts: Any, *, progress: bool = True) -> Explanation | list[Explanation]:
        """Explain one text, or each of several.

        Parameters
        ----------
        texts
            A text gives an explanation of one row; a list of texts (or a column of a table) a list of them,
            as each text has words of its own.
        progress
            Show a progress bar when it takes more than a second or two.

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
            return self.explain(self.document(texts), progress=progress)
        documents = [self._numbered(text, i) for i, text in enumerate(_listed(texts))]
        return explained_each(
            documents, lambda one: self.explain(one, progress=False), progress=progress, name="texts"
        )

    def document(self, text: Any) -> Document:
        """A text as the words that are removed from it.

        Raises
        ------
        InputError
            If it is empty, is no text, or has no words.
        """
        return document_of(text, self._spans, bag=bool(self._bag), mask=self._mask, key=self._key)

    def diagnostic_context(
        self, explanation: Explanation, *, output: Ints, calls: int | None
    ) -> SubsetContext:
        """What ``limes.diagnose`` asks of an explained text."""
        document = self.document(explanation.provenance.get("text", ""))
        design = ExchangeableDesign.word_deletions(document.size, self._bandwidth)
        subject = self._subject(document, design)
        return subset_context(
            explanation,
            self._expectation(subject, design),
            subject.predict,
            ExchangeableDesign.word_deletions,
            outputs=self._wanted.names(subject.prediction.shape[1:]),
            output=output,
            calls=calls,
        )

    def _numbered(self, text: Any, place: int) -> Document:
        try:
            return self.document(text)
        except InputError as error:
            raise InputError(f"text {place}: {error}") from None

    def explain(self, document: Document, *, progress: bool = True) -> Explanation:
        """Explain one text that :meth:`document` has taken apart; errors as when it is called."""
        return self.told(self.fitted(document, progress=progress))

    def fitted(self, document: Document, *, progress: bool = True) -> FittedText:
        """A text's numbers alone, of which `told` makes the explanation."""
        design = ExchangeableDesign.word_deletions(document.size, self._bandwidth)
        subject = self._subject(document, design)
        predictions = subject.prediction
        expectation = self._unfinished.take(document.text) or self._expectation(subject, design)
        try:
            fitted = fitted_at(
                design,
                expectation,
                predictions,
                penalty=self._ridge or None,
                progress=progress_of(shown=progress),
                names=document.names,
            )
        except (ModelError, KeyboardInterrupt):
            self._unfinished.put(document.text, expectation)
            raise
        return FittedText(document, subject, fitted)

    def told(self, done: FittedText) -> Explanation:
        """Make the explanation of a text that was fitted: with conditions, warnings and provenance."""
        document, subject, fitted = done
        exact, predictions = fitted.sampled is None, subject.prediction
        outputs = self._wanted.names(predictions.shape[1:])
        conditions = conditions_of(document)
        doubtful = doubts(fitted, predictions, document.names, outputs, max_calls=self._sampling.max_calls)
        return Explanation(
            **found(fitted),
            predictions=predictions,
            feature_names=document.names,
            output_names=outputs,
            conditions=(conditions,),
            data=document.counts[None].astype(object),
            method="exact" if exact else "sampled",
            reason=_how(fitted) if exact else subject.switched.reason,
            row_warnings=(doubtful.get(0, ()) + text_warnings(document),),
            provenance={
                **self._provenance,
                "seed": None if exact else self._sampling.seed,
                "text": document.text,
                "spans": dict(zip(conditions, spans_of(document), strict=True)),
            },
            explainer=self,
        )

    def _subject(self, document: Document, design: ExchangeableDesign) -> TextSubject:
        subject = TextSubject.of(self._model, self._wanted, document)
        if self._method == "sampled":
            return subject
        return replace(subject, switched=subject.switched.verified(design))

    def _expectation(self, subject: TextSubject, design: ExchangeableDesign) -> Expectation:
        return subject.switched.expectation(
            design, method=self._method, sampling=self._sampling, control=self._control, features="words"
        )


def _how(fitted: Fitted) -> str:
    """Why an explanation is exact, where the model was not read."""
    return "the model was asked about every subset of the words" if fitted.calls.any() else ""


def _listed(texts: Any) -> list[Any]:
    column = next((name for name in ("to_list", "to_pylist") if hasattr(texts, name)), None)
    texts = texts if column is None else getattr(texts, column)()
    if not isinstance(texts, list | tuple | np.ndarray):
        raise InputError(
            f"give a text or a list of texts, got {type(texts).__name__}; of a table give one column"
        )
    for i, text in enumerate(texts):
        if isinstance(text, list | tuple | np.ndarray):
            raise InputError(
                f"text {i} is a {type(text).__name__}: give texts, not lists; join its words first"
            )
    return list(texts)


def _checked_bag(bag: Any) -> bool | str:
    if not isinstance(bag, bool) and (not isinstance(bag, str) or bag != _SPELLING):
        raise InputError(f"bag must be True, False or {_SPELLING!r}, got {bag!r}")
    return bag


def _checked_mask(mask: Any) -> str:
    if mask is not None and not isinstance(mask, str):
        raise InputError(
            f"mask must be None, to delete words, or a text to put in their places; got {mask!r}"
        )
    return mask or ""
