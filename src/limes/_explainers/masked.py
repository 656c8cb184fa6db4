"""What explainers of texts, images, series and several inputs share: features that are kept or removed.

The design is a uniform draw of which features are removed (:class:`ExchangeableDesign`); the model is a
function of rows z (n, d), 1 where a feature is kept (`MaskedModel`). A subclass defines how an input is taken
apart, and how a model is bound to one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._bars import progress_of
from limes._checks import check_count, check_size
from limes._diagnostics.context import SubsetContext
from limes._diagnostics.finding import row_outputs
from limes._diagnostics.source import source_of
from limes._expectations.sampled import SampledExpectation
from limes._explainers.masked_model import MaskedModel
from limes._explainers.options import SamplingOptions
from limes._explainers.parts import Input
from limes._explainers.results import UNFINISHED, explain_each, output_positions
from limes._explainers.sampling_warnings import PERTURBED, sampling_warnings, unchanged_answers
from limes._explainers.subset_fits import SubsetFits, fields_of_all, identification_warning, identified
from limes._explainers.warnings import odd_probabilities
from limes._explanation import Explanation
from limes._explanation.drawing import Described
from limes._explanation.fit import Fit
from limes._pipeline import Expectation, Fitted, fitted_at
from limes._threads import LRUCache, one_blas_thread
from limes.designs._exchangeable import ExchangeableDesign
from limes.designs._weights import check_bandwidth
from limes.exceptions import InputError, Interrupted, ModelError
from limes.models._calling.caller import CHECK_CALLS, few_subsets, repetition_warnings, spread_of_answers
from limes.models._identity import REFIT_ROUNDING

# Spreads of a random model's answers by which two of them may differ
_SPREADS = 3.0

Item = TypeVar("Item", bound=Input)


class FittedItem(NamedTuple, Generic[Item]):
    """An input, the model bound to it, its predictions (1, ...) and its surrogate.

    ``changes`` (d,) are the features of the surrogate, None if it has them all.
    """

    item: Item
    model: MaskedModel
    predictions: Floats
    fitted: Fitted
    changes: Bools | None = None


class MaskedExplainer(Described, ABC, Generic[Item]):
    """Explains an input: binds the model to it, fits, and makes the explanation."""

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
        # whether the model is a function, known from the first input that it was asked about
        self._repetition: LRUCache[None, float] = LRUCache(1)
        # answers and predictions of inputs whose explanation was cut short; the same call continues from them
        self._unfinished: LRUCache[Hashable, tuple[Expectation, Floats]] = LRUCache(UNFINISHED)

    def _facts(self) -> Mapping[str, Any]:
        return self._provenance

    @staticmethod
    @abstractmethod
    def _design(d: int, bandwidth: float) -> ExchangeableDesign:
        """Return the law of removed features."""

    @abstractmethod
    def _parse(self, raw: Any) -> Item:
        """Take a user's input apart into its features, or raise an InputError."""

    @abstractmethod
    def _bind(self, item: Item) -> MaskedModel:
        """Read the model at one input, and compare the form with its answers."""

    def _remarks(self, item: Item) -> tuple[str, ...]:  # noqa: ARG002 - for subclasses
        """Return warnings that need no model."""
        return ()

    def _diagnosable(self, item: Item) -> Any:
        """Return the object whose ``diagnostic_context`` diagnoses call."""
        return ExplainedItem(self, item)

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
        """Explain several inputs, all of which are parsed before the first is explained."""
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
        """Fit the surrogate of one input; `_to_explanation` makes the explanation."""
        names, design, model = self._bound(item, changes)
        predictions = model.ask(design.at_instance[None]) if model.whole is None else model.whole
        unfinished = self._unfinished.take(item.key)
        if unfinished is not None and _answers_alike(unfinished[1], predictions, model.spread):
            expectation = unfinished[0]
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
            self._unfinished.put(item.key, (expectation, predictions))
            raise
        return FittedItem(item, model, predictions, fitted, changes)

    def _bound(
        self, item: Item, changes: Bools | None
    ) -> tuple[tuple[str, ...], ExchangeableDesign, MaskedModel]:
        """Return the names and the law of the features that change the input, and the model of them."""
        names = item.names
        if changes is not None:
            kept = identified(changes)
            item, names = item.only(kept), tuple(compress(names, kept.tolist()))
        design = self._design(len(names), self._bandwidth)
        model = self._bind(item)
        if self._options.method != "sampled":
            model = model.verified(design)
        return names, design, self._repeated(model, design) if model.exact is None else model

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
        item, model, predictions, fitted, changes = fit
        sampling, names = self._options.sampling, item.names
        exact = fitted.sampled is None
        warnings = odd_probabilities(predictions).get(0, ()) if model.adds_up else ()
        kind = replace(PERTURBED, rows=f"perturbed {self._several}")
        if exact:
            warnings += unchanged_answers(fitted, predictions, model.outputs, kind)
        else:
            present = names if changes is None else tuple(compress(names, identified(changes).tolist()))
            sampled = sampling_warnings(fitted, present, model.outputs, sampling=sampling, kind=kind)
            warnings += sampled.get(0, ())
        fields = fitted.explanation_fields()
        if changes is not None:
            fields = fields_of_all(fields, changes)
            warnings += identification_warning(names, self._changes(item), self._advice)
        enumerated = f"the model was asked about every subset of the {self._features}"
        fields |= {
            "calls": fields["calls"] + model.check_calls,
            "fit": Fit.of(partial(self._fits, model, fitted, changes), fields["values"].shape),
        }
        return Explanation(
            **fields,
            predictions=predictions,
            feature_names=names,
            output_names=model.outputs,
            conditions=(item.conditions,),
            data=item.data[None],
            method="exact" if exact else "sampled",
            reason=(enumerated if fitted.moments.calls.any() else "") if exact else model.reason,
            row_warnings=(repetition_warnings(model.spread) + warnings + self._remarks(item),),
            provenance={
                **self._provenance,
                "seed": None if exact else sampling.seed,
                **({} if exact else {"tolerance": str(sampling.accuracy)}),
                **item.picture,
            },
            explainer=self._diagnosable(item),
        )

    def _fits(self, model: MaskedModel, fitted: Fitted, changes: Bools | None = None) -> SubsetFits:
        """Return what computes R² of a fit: through the form, if there is one."""
        design = self._design(fitted.surrogate.coef.shape[1], self._bandwidth)
        expectation = model.expectation(design, self._options, self._features)
        sampled = expectation if isinstance(expectation, SampledExpectation) else None
        seed = self._options.sampling.seed
        return SubsetFits(model.form, model.ask, sampled, fitted, design, seed, changes)

    @one_blas_thread()
    def _diagnostic_context(
        self, item: Item, explanation: Explanation, output: Ints, calls: int | None
    ) -> SubsetContext:
        finite = np.isfinite(explanation.values[0]).reshape(len(explanation.feature_names), -1).any(axis=1)
        if not finite.any():
            raise InputError("there is nothing to diagnose: hiding a feature never changes the input")
        _, design, model = self._bound(item, None if finite.all() else finite)
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


def _answers_alike(before: Floats, predictions: Floats, spread: float) -> bool:
    """Return whether a model answers the same to an input as before, up to the spread of its answers."""
    if before.shape != predictions.shape:
        return False
    return np.allclose(before, predictions, rtol=REFIT_ROUNDING, atol=_SPREADS * spread)


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
