"""What text and image explainers share: features that are kept or removed, as words and superpixels are.

The design is a uniform draw of which features are removed (:class:`ExchangeableDesign`); the model is a
function of rows z (n, d), 1 where a feature is kept. It is read if it can be, else asked: about all 2^d rows
if they are few, about a sample if not. A subclass defines its features, and how a model is bound to one text
or image.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects
from limes._bars import progress_of
from limes._checks import check_count, check_size
from limes._diagnostics.context import SubsetContext
from limes._diagnostics.finding import row_outputs
from limes._diagnostics.source import source_of
from limes._expectations.controls.control import Control, if_better_than_linear, no_control
from limes._expectations.controls.kernel import switch_kernels
from limes._expectations.controls.logistic import logistic_control
from limes._expectations.controls.process import gaussian_process
from limes._expectations.controls.tables import MarginControl
from limes._expectations.moments import ExactMoments, Moments
from limes._expectations.of_forms import exact_expectation
from limes._expectations.repeated import RepeatedExpectation, repeats_states
from limes._expectations.sampled import SampledExpectation
from limes._explainers.options import REQUESTED, SamplingOptions
from limes._explainers.results import (
    UNFINISHED,
    explain_each,
    output_positions,
)
from limes._explainers.sampling_warnings import PERTURBED, sampling_warnings, unchanged_answers
from limes._explainers.subset_fits import SubsetFits
from limes._explainers.unidentified import among_all, explained, identification_warning
from limes._explainers.verification import SUBSET_DRAWS, check_draws, kept_features
from limes._explainers.warnings import odd_probabilities
from limes._explanation import Explanation
from limes._explanation.drawing import Described
from limes._explanation.fit import Fit
from limes._fitted import Fitted
from limes._pipeline import Expectation, fitted_at
from limes._threads import LRUCache, one_blas_thread
from limes.designs._exchangeable import ExchangeableDesign
from limes.designs._weights import check_bandwidth
from limes.exceptions import InputError, Interrupted, ModelError, NotReadableError, ReadMismatchError
from limes.models._calling.caller import CHECK_CALLS, few_subsets, repetition_warnings, spread_of_answers
from limes.models._identity import REFIT_ROUNDING
from limes.models.forms._base import BlackBox, Form

CONTROLS = ("none", "logistic", "kernel", "process", "margin")

# Spreads of a random model's answers by which two of them may differ
_SPREADS = 3.0

# rows z (n, d) -> (n,) or (n, k)
Predict: TypeAlias = Callable[[Floats], Floats]


class Hideable(Protocol):
    """A text, an image, a series or several inputs, of d features that can be hidden."""

    @property
    def changes(self) -> Bools:
        """Whether hiding a feature changes what the model sees, (d,)."""

    def only(self, kept: Bools) -> Self:
        """Return it with some of its features; the others are always shown."""


Item = TypeVar("Item", bound=Hideable)


@dataclass(frozen=True, eq=False)
class MaskedModel:
    """A model bound to one text or image.

    Attributes
    ----------
    ask
        The model's own answers to rows z.
    form
        What could be read, or a black box with the reason.
    outputs
        Names of the explained answers.
    whole
        The model's answer (1, ...) to the whole text or image, if it was asked already.
    predict
        Answers of the form where they are the model's own; None where only ``ask`` is.
    margin
        The form behind the model's link, if there is one that could be read.
    often_linear
        Whether a linear fit is often enough, so that kernels must predict better than one to be used.
    default_control
        Name of the control that "auto" takes for models without a margin.
    adds_up
        Whether the explained answers together may be probabilities of classes, which add up to 1.
    computed
        A design, and the form's moments under it, where they were computed already.
    spread, check_calls
        Largest difference of two answers of the model to one input, and what it cost to know it.
    """

    ask: Predict
    form: Form | BlackBox
    outputs: tuple[str, ...] = ()
    whole: Floats | None = None
    predict: Predict | None = None
    margin: Form | None = None
    often_linear: bool = False
    default_control: str = "kernel"
    adds_up: bool = True
    computed: tuple[ExchangeableDesign, Moments] | None = None
    spread: float = 0.0
    check_calls: int = 0

    def asks(self, options: SamplingOptions) -> bool:
        """Return whether the model itself answers what its surrogate is fitted to."""
        return options.method == "sampled" or isinstance(self.form, BlackBox)

    def verified(self, design: ExchangeableDesign) -> MaskedModel:
        """Return the model as a black box if the form's exact moments disagree with the form itself."""
        if isinstance(self.form, BlackBox):
            return self
        try:
            moments = exact_expectation(self.form, ExchangeableDesign).moments(design)
        except (InputError, ModelError) as error:
            reason = f"the model was read, but its expectation is not exact: {error}"
            return replace(self, form=BlackBox(self.ask, reason))
        try:
            check_draws(moments, self.form.predict, design, kept_features(design), SUBSET_DRAWS)
        except ReadMismatchError as mismatch:
            return replace(self, form=BlackBox(self.ask, str(mismatch)))
        return replace(self, computed=(design, moments))

    def expectation(
        self, design: ExchangeableDesign, options: SamplingOptions, features: str = "features"
    ) -> Expectation:
        """Return the exact expectation of the form, or one that asks the model.

        Raises
        ------
        NotReadableError
            If ``method="exact"``, the model could not be read, and the subsets of ``features`` are many.
        InputError
            If ``control="margin"`` and the model has no margin that can be read.
        """
        if not self.asks(options) and not isinstance(self.form, BlackBox):
            exact = exact_expectation(self.form, ExchangeableDesign)
            return exact if self.computed is None else _Computed(exact, *self.computed)
        if options.method == "exact" and self.spread > 0.0:
            raise NotReadableError(
                f"method='exact' needs a model that answers alike: {repetition_warnings(self.spread)[0]}; or "
                "use method='auto', with error bars"
            )
        if options.method == "exact" and design.states(options.sampling.max_calls) is None:
            raise NotReadableError(
                f"method='exact' needs a model that can be read: {self.reason}; or a budget for all 2^d "
                f"subsets of d = {design.size} {features} (max_calls). Use method='auto' to sample it, with "
                "error bars"
            )
        controls: dict[str, Control] = {
            "none": no_control,
            "logistic": logistic_control,
            "kernel": if_better_than_linear(switch_kernels) if self.often_linear else switch_kernels,
            "process": gaussian_process,
        }
        if self.margin is not None:
            exact = exact_expectation(self.margin, ExchangeableDesign)
            controls["margin"] = MarginControl(self.margin.predict, exact, rest=no_control)
        # others take some tenths of a second, and are hardly better than a margin
        auto = ("none", "logistic", self.default_control) if self.margin is None else ("none", "margin")
        sampling = replace(options.with_controls(controls, auto), spread=self.spread)
        if self.spread > 0.0 and repeats_states(design, sampling.max_calls):
            return RepeatedExpectation(self.ask, sampling)
        return SampledExpectation(self.ask, sampling)

    @property
    def reason(self) -> str:
        """Why it is sampled."""
        return self.form.reason if isinstance(self.form, BlackBox) else REQUESTED


@dataclass(frozen=True)
class _Computed:
    """An exact expectation whose moments under one design were computed already."""

    expectation: ExactMoments
    design: ExchangeableDesign
    computed: Moments

    @property
    def method(self) -> Literal["exact"]:
        return "exact"

    def moments(self, design: ExchangeableDesign, row: Floats | None = None) -> Moments:
        return self.computed if design is self.design else self.expectation.moments(design, row)


class _Unfinished(NamedTuple):
    """An expectation with the answers so far, and the model's predictions (1, ...) at the time."""

    expectation: Expectation
    predictions: Floats

    def is_of(self, predictions: Floats, spread: float) -> bool:
        """Return whether the model still answers the same to the whole text or image: else it is another.

        ``spread`` is that of its answers to one input.
        """
        same, atol = self.predictions.shape == predictions.shape, _SPREADS * spread
        return same and np.allclose(self.predictions, predictions, rtol=REFIT_ROUNDING, atol=atol)


class FittedItem(NamedTuple, Generic[Item]):
    """A text or image, the model bound to it, its predictions (1, ...) and its surrogate.

    ``changes`` (d,) are the features of the surrogate, None if it has them all.
    """

    item: Item
    model: MaskedModel
    predictions: Floats
    fitted: Fitted
    changes: Bools | None = None


class Description(NamedTuple):
    """Fields of an explanation that depend on the text or image alone: of its features, and of itself."""

    conditions: tuple[str, ...]
    data: Objects
    warnings: tuple[str, ...]
    provenance: Mapping[str, Any]


class MaskedExplainer(Described, ABC, Generic[Item]):
    """Explains a text or an image: binds the model to it, fits, and makes the explanation."""

    _kind: ClassVar[str]
    _several: ClassVar[str]
    _features: ClassVar[str]
    # where hiding a feature changes nothing
    _advice: ClassVar[str]

    def __init__(
        self, options: SamplingOptions, bandwidth: float, ridge: float, provenance: Mapping[str, Any]
    ) -> None:
        self._options = options
        self._bandwidth = check_bandwidth(bandwidth)
        self._ridge = check_size("ridge", ridge, zero=True)
        self._provenance = {**provenance, "bandwidth": float(bandwidth), "ridge": self._ridge}
        # whether the model is a function, known from the first text or image that it was asked about
        self._repetition: LRUCache[None, float] = LRUCache(1)
        # of items whose explanation was cut short; the same call continues from them
        self._unfinished: LRUCache[Hashable, _Unfinished] = LRUCache(UNFINISHED)

    def _facts(self) -> Mapping[str, Any]:
        return self._provenance

    @staticmethod
    @abstractmethod
    def _design(d: int, bandwidth: float) -> ExchangeableDesign:
        """Return the law of removed features."""

    @abstractmethod
    def _bind(self, item: Item) -> MaskedModel:
        """Read the model at one text or image, and compare the form with its answers."""

    @abstractmethod
    def _names(self, item: Item) -> tuple[str, ...]:
        """Return the names of the features."""

    @abstractmethod
    def _key(self, item: Item) -> Hashable:
        """Return what tells texts or images apart."""

    @abstractmethod
    def _describe(self, item: Item) -> Description:
        """Return the fields of an explanation that need no model."""

    def _diagnosable(self, item: Item) -> Any:
        """Return the object whose ``diagnostic_context`` diagnoses call."""
        return ExplainedItem(self, item)

    @abstractmethod
    def _parse(self, raw: Any) -> Item:
        """Take a user's text or image apart into its features, or raise an InputError."""

    @one_blas_thread()
    def _explain(self, raw: Any, *, progress: bool) -> Explanation:
        try:
            return self._explain_item(self._parse(raw), progress=progress)
        except KeyboardInterrupt as stop:
            text = "stopped; the model's answers so far are kept: repeat the call to continue"
            raise Interrupted(text, None) from stop

    def _changes(self, item: Item) -> Bools:
        """Return which features have a coefficient: those whose hiding changes the input."""
        return item.changes

    def _explain_item(self, item: Item, *, progress: bool, changes: Bools | None = None) -> Explanation:
        changes = self._changes(item) if changes is None else changes
        return self._to_explanation(self._fit(item, None if changes.all() else changes, progress=progress))

    def _explain_each(self, several: Sequence[Any], *, progress: bool, workers: int) -> list[Explanation]:
        """Explain several texts or images, all of which are parsed before the first is explained."""
        return explain_each(
            [self._numbered(raw, i) for i, raw in enumerate(several)],
            partial(self._explain_item, progress=False),
            progress=progress,
            workers=check_count("workers", workers),
            name=self._several,
        )

    def _numbered(self, raw: Any, place: int) -> Item:
        try:
            return self._parse(raw)
        except InputError as error:
            raise InputError(f"{self._kind} {place}: {error}") from None

    @one_blas_thread()
    def _fit(self, item: Item, changes: Bools | None = None, *, progress: bool = True) -> FittedItem[Item]:
        """Fit the surrogate of one text or image; `_to_explanation` makes the explanation."""
        part, names = self._part_of(item, changes)
        design = self._design(len(names), self._bandwidth)
        model = self._verified(part, design)
        predictions = model.ask(design.at_instance[None]) if model.whole is None else model.whole
        key = self._key(item)
        unfinished = self._unfinished.take(key)
        if unfinished is not None and unfinished.is_of(predictions, model.spread):
            expectation = unfinished.expectation
        else:
            expectation = model.expectation(design, self._options, self._features)
        try:
            fitted = fitted_at(
                design,
                expectation,
                predictions,
                penalty=self._ridge or None,
                progress=progress_of(shown=progress),
                names=names,
            )
        except (ModelError, KeyboardInterrupt):
            self._unfinished.put(key, _Unfinished(expectation, predictions))
            raise
        return FittedItem(item, model, predictions, fitted, changes)

    def _part_of(self, item: Item, changes: Bools | None) -> tuple[Item, tuple[str, ...]]:
        """Return the item with the features that the design has, and their names."""
        if changes is None:
            return item, self._names(item)
        kept = explained(changes)
        return item.only(kept), tuple(compress(self._names(item), kept.tolist()))

    def _verified(self, item: Item, design: ExchangeableDesign) -> MaskedModel:
        model = self._bind(item)
        if self._options.method != "sampled":
            model = model.verified(design)
        return self._repeated(model, design) if model.asks(self._options) else model

    def _repeated(self, model: MaskedModel, design: ExchangeableDesign) -> MaskedModel:
        """Return the model with the spread of its answers; the first one is asked for it."""
        calls = 0

        def check() -> float:
            nonlocal calls
            calls = CHECK_CALLS
            return spread_of_answers(model.ask, few_subsets(design.size), self._options.retry)

        spread = self._repetition.get(None, check)
        return replace(model, spread=spread, check_calls=calls)

    def _to_explanation(self, fit: FittedItem[Item]) -> Explanation:
        """Build the explanation of a fit: with conditions, warnings and provenance."""
        item, model, predictions, fitted, changes = fit
        names, description, sampling = self._names(item), self._describe(item), self._options.sampling
        exact = fitted.sampled is None
        warnings = odd_probabilities(predictions).get(0, ()) if model.adds_up else ()
        kind = replace(PERTURBED, rows=f"perturbed {self._several}")
        if exact:
            warnings += unchanged_answers(fitted, predictions, model.outputs, kind)
        else:
            present = self._part_of(item, changes)[1]
            sampled = sampling_warnings(fitted, present, model.outputs, sampling=sampling, kind=kind)
            warnings += sampled.get(0, ())
        fit_of = Fit.of(partial(self._fits, model, fitted), fitted.surrogate.coef.shape)
        fields = {**fitted.explanation_fields(), "fit": fit_of}
        if changes is not None:
            fields = among_all(fields, changes)
            warnings += identification_warning(names, self._changes(item), self._advice)
        enumerated = f"the model was asked about every subset of the {self._features}"
        return Explanation(
            **{**fields, "calls": fields["calls"] + model.check_calls},
            predictions=predictions,
            feature_names=names,
            output_names=model.outputs,
            conditions=(description.conditions,),
            data=description.data,
            method="exact" if exact else "sampled",
            reason=(enumerated if fitted.calls.any() else "") if exact else model.reason,
            row_warnings=(repetition_warnings(model.spread) + warnings + description.warnings,),
            provenance={
                **self._provenance,
                "seed": None if exact else sampling.seed,
                **({} if exact else {"tolerance": str(sampling.accuracy)}),
                **description.provenance,
            },
            explainer=self._diagnosable(item),
        )

    def _fits(self, model: MaskedModel, fitted: Fitted) -> SubsetFits:
        """Return what computes R² of a fit: through the form, if there is one."""
        design = self._design(fitted.surrogate.coef.shape[1], self._bandwidth)
        expectation = model.expectation(design, self._options, self._features)
        sampled = expectation if isinstance(expectation, SampledExpectation) else None
        return SubsetFits(model.form, model.ask, sampled, fitted, design, self._options.sampling.seed)

    @one_blas_thread()
    def _diagnostic_context(
        self, item: Item, explanation: Explanation, output: Ints, calls: int | None
    ) -> SubsetContext:
        """Return what ``limes.diagnose`` examines of an explained text or image."""
        finite = np.isfinite(explanation.values[0]).reshape(len(explanation.feature_names), -1).any(axis=1)
        if not finite.any():
            raise InputError("there is nothing to diagnose: hiding a feature never changes the input")
        item, names = self._part_of(item, None if finite.all() else finite)
        design = self._design(len(names), self._bandwidth)
        model = self._verified(item, design)
        explanation, d = explanation[:, finite], int(finite.sum())
        return SubsetContext(
            row_outputs=row_outputs(explanation, output),
            rows=np.ones((1, d)),
            positions=output_positions(explanation, output, model.outputs),
            predict=model.predict or model.ask,
            source=source_of(model.expectation(design, self._options, self._features)),
            bandwidth=float(explanation.provenance["bandwidth"]),
            ridge=float(explanation.provenance["ridge"]),
            budget=calls,
            seed=int(explanation.provenance.get("seed") or 0),
            make_design=lambda bandwidth: self._design(d, bandwidth),
        )


@dataclass(frozen=True, eq=False)
class ExplainedItem(Generic[Item]):
    """An explainer and what it explained, for diagnoses of explanations that do not hold the item."""

    explainer: MaskedExplainer[Item]
    item: Item

    def diagnostic_context(
        self, explanation: Explanation, *, output: Ints, calls: int | None
    ) -> SubsetContext:
        """Return what ``limes.diagnose`` examines."""
        explainer = self.explainer
        return explainer._diagnostic_context(self.item, explanation, output, calls)  # noqa: SLF001 - part of it
