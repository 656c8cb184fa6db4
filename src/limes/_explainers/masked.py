"""Explainers of inputs whose features are kept or removed: texts, images, series, several inputs.

The design is a uniform draw of which features are removed (:class:`ExchangeableDesign`); the model is a
function of rows z (n, d), 1 where a feature is kept. It is read if it can be, else asked: about all 2^d rows
if they are few, about a sample if not. An explainer has a part, which takes an input apart into features (a
splitter) and says what stands where one is hidden (a filler).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from limes import __version__
from limes._arrays import Bools, Floats, Ints, Objects, are_probabilities, fingerprint, streams
from limes._checks import check_choice, check_count, check_size
from limes._diagnostics.context import SubsetContext, source_of
from limes._explainers.answers import LINKS, LinkedModel, check_labels, labels_of, positions_of
from limes._explainers.backgrounds import BackgroundAnswers
from limes._explainers.bound_input import BoundInput, calls_of, known_sets
from limes._explainers.hierarchy import Partition, explanation_fields, levels_of
from limes._explainers.options import Request, SamplingOptions
from limes._explainers.results import (
    PERTURBED,
    UNFINISHED,
    answers_alike,
    compute_each,
    examined,
    misleading_surrogates,
    repetitions,
    sampling_warnings,
    unchanged_answers,
    with_contributions,
    without_coefficients,
)
from limes._explainers.set_estimates import FewSets
from limes._explainers.subset_fits import SubsetFits, coefficients_of_all, identification_warning, identified
from limes._explainers.verified_form import (
    subset_rows,
)
from limes._explanation import Explanation
from limes._explanation.drawing import Described
from limes._explanation.explanation import from_fields, frozen_explanation
from limes._explanation.fields import plain_fact
from limes._explanation.fit import Fit
from limes._fitting import Fitted, fitted_at, moments_at
from limes._sampling.sampled import (
    CALLS,
    SampledExpectation,
    Sampling,
)
from limes._shapley.coalitions import SampledAccount
from limes._threads import LRUCache, one_blas_thread, progress_of
from limes._warnings import RowWarning
from limes.designs._exchangeable import ExchangeableDesign
from limes.designs._weights import check_bandwidth
from limes.exceptions import InputError, Interrupted, ModelError
from limes.models._calling.caller import (
    CHECK_CALLS,
    ModelCaller,
)
from limes.models._calling.counts import AnswerCount
from limes.models._calling.outputs import Output, add_up_to_one, resolve
from limes.models._identity import Predict
from limes.models._images import columns, is_network
from limes.models._reading import CannotRead, read_output, tolerance_of
from limes.models.forms._base import Form

CONTROLS = ("none", "logistic", "kernel", "process", "margin")
# Perturbed inputs on which form and model are compared
CHECKED_ROWS = 16
# Tolerance of contributions where none is given, as of rows that share a pool
_ACCURACY = "1.5%"

_ENUMERATED = "the model was asked about every subset of the {}"


class InputPiece(Protocol):
    """A text, an image, a series, a row or several inputs, taken apart into d features."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, (d,)."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """Return what holds of the explained input, (d,)."""
        return tuple(f"{name} shown" for name in self.names)

    @property
    def data(self) -> Objects:
        """Return what is shown beside each feature, (d,)."""

    @property
    def key(self) -> Hashable:
        """Return what tells inputs apart."""

    @property
    def picture(self) -> Mapping[str, Any]:
        """Return what pictures are drawn from; empty where nothing is drawn."""
        return {}

    @property
    def changes(self) -> Bools:
        """Whether hiding a feature changes the input, (d,)."""

    def compose(self, z: Floats) -> Any:
        """Return a batch of n inputs at rows z (n, d): 1 shows a feature, 0 hides it."""


class Input(InputPiece, Protocol):
    """An input that an explainer takes."""

    @property
    def size(self) -> int:
        return len(self.names)

    def only(self, kept: Bools) -> Self:
        """Return it with some of its features; the others are always shown."""


class MaskedInput(Input, Protocol):
    """An input of a model that is called with it, and may be an estimator, which takes rows of numbers.

    Of one that draws what it hides from a background, rows are (n, d + 1): the last column is the item.
    """

    @property
    def draws(self) -> int:
        """Items of a background that what is hidden is drawn from; 1 where it is always the same."""
        return 1

    def composer(self, model: Any) -> Callable[[Floats], Any]:
        """Return what makes a batch for a model of rows z (n, d)."""

    def over(self, read: Callable[[], Form]) -> Form:
        """Return a form over z of the estimator's own, which ``read`` returns; CannotRead without one."""


class InputPart(Protocol):
    def parse(self, raw: Any) -> InputPiece:
        """Take an input apart, or raise an InputError if it is no such input."""


Item = TypeVar("Item", bound=Input)


# -- the model -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InputModel:
    """A model, and which of its answers are explained; ``bind`` makes a `BoundInput` of one input."""

    model: Any
    link: str | None  # put on its answers; "auto" is decided when they are seen
    output: Any
    top: int  # how many answers are explained if no output is named
    labels: tuple[str, ...] | None  # names of the answers

    @classmethod
    def of(cls, model: Any, options: Mapping[str, Any]) -> InputModel:
        top, labels, link = check_count("top", options["top"]), labels_of(options["labels"]), options["link"]
        link = None if link is None else check_choice("link", link, ("auto", *LINKS))
        return cls(model, link, options["output"], top, labels)

    @property
    def is_estimator(self) -> bool:
        """Whether it has methods and classes, as scikit-learn's models have, and takes rows of numbers."""
        return columns(self.model) is not None

    def bind(self, item: MaskedInput, features: str, sampling: Sampling) -> BoundInput:
        """Ask the model about an input, read it, and compare the form with its answers."""
        output = resolve(self.model, self.output if self.is_estimator else None)
        if self.link in LINKS and output.method == "predict_proba":
            raise InputError(
                "link= turns logits into probabilities, and this model answers probabilities already (by "
                "predict_proba): leave link out"
            )
        rows = subset_rows(item.size, CHECKED_ROWS)
        items = ((0, 0), (0, int(item.draws > 1)))  # of a background: any, where all is shown
        typical = np.pad(rows, items)
        caller = ModelCaller(self.model, output, item.composer(self.model), typical=typical, kind="input")
        whole = LinkedModel(caller, None, None)(np.pad(np.ones((1, item.size)), items))
        link = self._link_of(whole, item)
        whole = whole if link is None else LINKS[link](whole)
        adds_up = link == "softmax" or (link is None and add_up_to_one(self.model, output))
        outputs = np.size(whole)
        is_picked = output.columns is not None  # as the caller picks columns itself
        output, names = self._chosen(output, whole, caller.names)
        picked, kept = (None, output.columns) if caller.is_score else (output.columns, None)
        caller = replace(caller, output=replace(output, columns=kept))
        ask: Predict = LinkedModel(caller, LINKS.get(link or ""), picked)
        if not is_picked and output.columns is not None:
            whole = np.ascontiguousarray(whole[:, output.columns])
        mean, hidden = ask, {}
        if item.draws > 1:
            answers = BackgroundAnswers(ask, item.draws, sampling.batch_size, sampling.seed)
            every = item.draws * ((1 << item.size) - 1)
            drawn, mean = every > sampling.max_calls - 1 - CHECK_CALLS, answers.mean
            ask = answers.drawn if drawn else mean
            hidden = {"first": answers.first, "items": 1 if drawn else item.draws, "drawn": drawn}

        def read(wanted: Output) -> Form:
            if link is not None:
                raise CannotRead(
                    f"the {link} of its answers is no sum; link=None explains the answers themselves"
                )
            return item.over(lambda: read_output(self.model, wanted))

        bound = BoundInput.read(
            read,
            # a Gaussian process is cheap next to a forward pass
            {"default_control": "process"} if is_network(self.model) else {},
            model=self.model,
            output=output,
            ask=ask,
            tolerance=tolerance_of(self.model),
            outputs=names,
            whole=whole,
            adds_up=adds_up and len(names) == outputs,
            link=link,
            shown=caller.first,
            **hidden,
        )
        if bound.form is None:
            return bound
        checks = mean(rows)
        bound = bound.checked(
            rows, checks, lambda row: f"the {features} {np.flatnonzero(rows[row]).tolist()} alone"
        )
        return bound if bound.drawn else bound.knowing(rows, checks)

    def _link_of(self, whole: Floats, item: MaskedInput) -> str | None:
        """Return what is put on the answers, here to the whole input (1, ...).

        "auto" is the softmax where a network that cannot be read gives a number to each of several named
        classes, and these numbers are no probabilities.
        """
        if self.link != "auto":
            return self.link
        if self.labels is None or not is_network(self.model) or whole.size < 2:
            return None
        check_labels(self.labels, whole.size)
        if are_probabilities(whole):
            return None
        try:
            item.over(lambda: read_output(self.model, Output("", None, None)))
        except CannotRead:
            return "softmax"
        return None

    def _chosen(
        self, output: Output, whole: Floats, answered: tuple[str, ...]
    ) -> tuple[Output, tuple[str, ...]]:
        """The output with the explained columns of the answers (1, ...), and their names.

        ``answered`` are the names that the answers gave to their columns.
        """
        labels = self.labels
        # they name the chosen columns alone, or all classes of an estimator
        if labels and output.columns is not None and len(labels) == len(getattr(self.model, "classes_", ())):
            labels = tuple(labels[k] for k in np.atleast_1d(output.columns).tolist())
        if labels is not None:
            check_labels(labels, whole.size)
        names = labels or output.names(whole.shape[1:], answered)
        wanted = None if self.is_estimator else self.output
        if whole.ndim == 1 and wanted is not None:
            positions_of(wanted, names, whole, self.top)  # refuses what is not the one answer
        if output.columns is not None or whole.ndim == 1:
            return output, names
        if wanted is None and len(names) <= self.top:
            return replace(output, labels=names), names
        positions = positions_of(wanted, names, whole[0], self.top)
        chosen_names = tuple(names[k] for k in np.atleast_1d(positions))
        return replace(output, columns=positions, labels=chosen_names), chosen_names


# -- the explainers ------------------------------------------------------------------------------------------


class MaskedExplainer(Described, ABC, Generic[Item]):
    """Explain an input: take it apart, bind the model to it, fit, and make the explanation."""

    # words for an input, for several, and for features
    _kind: ClassVar[str]
    _several: ClassVar[str]
    _features: ClassVar[str]
    _meaning: ClassVar[str]  # of a coefficient
    _feature: ClassVar[str]  # one of the features
    _group: str = ""  # of features, in an account at two levels
    _hidden: str  # what it is where it is not shown
    _advice: ClassVar[str]  # where hiding a feature changes nothing

    _model: InputModel

    def __init__(
        self,
        model: Any,
        parse: Callable[[Any], Item],
        options: Mapping[str, Any],
        bandwidth: float,
        ridge: float,
        **provenance: Any,
    ) -> None:
        self._parse = parse
        self._options = SamplingOptions.of(options, CONTROLS)
        self._bandwidth = check_bandwidth(bandwidth)
        self._ridge = check_size("ridge", ridge, zero=True)
        self._provenance = {
            "meaning": self._meaning,
            "base": f"with every {self._feature} {self._hidden}",
            "limes": __version__,
            "model": type(model).__name__,
            **{name: _plain(option) for name, option in provenance.items()},
            "bandwidth": float(bandwidth),
            "ridge": self._ridge,
        }
        # whether the model is a function, known from the first input that it was asked about
        self._repetition: LRUCache[None, float] = LRUCache(1)
        # answers and predictions of inputs whose explanation was cut short; the same call continues from them
        self._unfinished: LRUCache[Hashable, tuple[Any, Floats]] = LRUCache(UNFINISHED)

    def _facts(self) -> Mapping[str, Any]:
        return self._provenance

    @staticmethod
    @abstractmethod
    def _design(d: int, bandwidth: float) -> ExchangeableDesign: ...

    def _bind(self, item: Any) -> BoundInput:
        return self._model.bind(item, self._features, self._options.sampling)

    def _remarks(self, item: Item) -> tuple[str, ...]:  # noqa: ARG002 - for subclasses
        return ()

    def _marked(self, item: Item, model: BoundInput, kept: Bools) -> Item:  # noqa: ARG002 - for subclasses
        """Return the item with what its conditions say of the model, which was bound to ``kept`` features."""
        return item

    def _diagnosable(self, item: Item) -> Any:
        """The object whose ``_diagnostic_context`` diagnoses call."""
        return ExplainedItem(self, item)

    @property
    def _request(self) -> Request:
        """Return what a call asks for."""
        return Request.of_option(self._options.contributions)

    def contributions(self, raw: Any, *, progress: bool = True, workers: int = 1) -> Any:
        """Explain by contributions alone, in this call; coefficients are computed when they are read.

        base + Σ_j φ_j = f: see `limes.Explanation.contributions`. Answers to sets of features serve both.

        Parameters
        ----------
        raw, progress, workers
            As of a call of the explainer.

        Returns
        -------
        Explanation, or a list of them
            As of a call of the explainer.
        """
        explainer: Any = copy(self)
        vars(explainer)["_options"] = replace(self._options, contributions=True)
        explained = explainer(raw, progress=progress, workers=workers)
        if isinstance(explained, list):
            return [without_coefficients(one) for one in explained]
        return without_coefficients(explained)

    def _explain(self, raw: Any, several: Sequence[Any] | None, *, progress: bool, workers: int) -> Any:
        """Explain an input, or each of several, if there are."""
        if several is not None:
            return self._explain_each(several, progress=progress, workers=workers)
        try:
            with one_blas_thread():
                return self._explain_item(self._parse(raw), progress=progress)
        except Interrupted:  # with what was explained
            raise
        except KeyboardInterrupt as stop:
            text = "stopped; the model's answers so far are kept: repeat the call to continue"
            raise Interrupted(text, None) from stop

    def _changes(self, item: Item) -> Bools:
        """Which features have a coefficient: those whose hiding changes the input."""
        return item.changes

    def _units(self, item: Item) -> Partition | None:  # noqa: ARG002 - for subclasses
        """The units of an account at two levels, where one is asked for."""
        return None

    def _asked_units(self, item: Item, units: Any, model: BoundInput) -> tuple[Predict, Partition]:  # noqa: ARG002
        """Return what answers to sets of pieces, and the units that consist of these."""
        return model.ask, units

    def _at_levels(self, item: Item, units: Any) -> tuple[InputPiece, InputPiece]:
        """The input with its units as features, and with their groups."""
        raise NotImplementedError

    def _why_levels(self, item: Item) -> str:  # noqa: ARG002 - for subclasses
        """Why an input has an account at two levels that was not asked for; "" if it has none, or was."""
        return ""

    def _explain_item(self, item: Item, *, progress: bool, changes: Bools | None = None) -> Explanation:
        if (units := self._units(item)) is not None:
            return self._explain_levels(item, units, progress=progress)
        changes = self._changes(item) if changes is None else changes
        explanation = self._to_explanation(item, changes, *self._fit(item, changes, progress=progress))
        bar = progress_of(shown=progress)
        return with_contributions(explanation, self._request, progress=bar)

    def _explain_each(self, several: Sequence[Any], *, progress: bool, workers: int) -> list[Explanation]:
        """Explain several inputs, all of which are parsed before the first is explained."""
        items = []
        for i, raw in enumerate(several):
            try:
                items.append(self._parse(raw))
            except InputError as problem:
                raise InputError(f"{self._kind} {i}: {problem}") from None
        results, error = compute_each(
            items,
            partial(self._explain_item, progress=False),
            progress=progress_of(shown=progress),
            workers=check_count("workers", workers),
        )
        explanations = [result for result in results if result is not None]
        if error is None:
            return explanations
        if isinstance(error, ModelError):
            error.partial = explanations
            raise error
        raise Interrupted(
            f"stopped: {len(explanations)} of {len(items)} {self._several} are explained (in this error's "
            "partial)",
            explanations,
        ) from None

    @one_blas_thread()
    def _fit(
        self, item: Item, changes: Bools | None = None, *, progress: bool = True
    ) -> tuple[BoundInput, Fitted, int]:
        """The model bound to the input, the surrogate of the features that count, and its calls."""
        with AnswerCount().counting() as tally:
            changes = np.ones(len(item.names), dtype=np.bool_) if changes is None else changes
            return self._fitted(item, changes, tally, progress=progress)

    def _fitted(
        self, item: Item, changes: Bools, tally: AnswerCount, *, progress: bool
    ) -> tuple[BoundInput, Fitted, int]:
        names, design, model = self._bound(item, changes)
        predictions = model.ask(design.at_instance[None]) if model.whole is None else model.whole
        unfinished = self._unfinished.take(item.key)
        if unfinished is not None and answers_alike(unfinished[1], predictions, model.spread):
            expectation, calls = unfinished[0]
            tally.add(calls)
        else:
            sets = model
            if model.exact is None:
                sets = known_sets(model, design, predictions, self._options.sampling)
            expectation = sets.expectation(design, self._options, self._features)
        try:
            moments = model.moments
            if moments is None:
                moments = moments_at(design, expectation, predictions[0], progress_of(shown=progress))
            fitted = fitted_at(design, moments, predictions, penalty=self._ridge or None, names=names)
        except (ModelError, KeyboardInterrupt):
            self._unfinished.put(item.key, ((expectation, tally.rows), predictions))
            raise
        return model, fitted, tally.rows

    def _bound(self, item: Item, changes: Bools) -> tuple[tuple[str, ...], ExchangeableDesign, BoundInput]:
        """The names and the law of the features that change the input, and the model of them."""
        names = item.names
        if not changes.all():
            kept = identified(changes)
            item, names = item.only(kept), tuple(compress(names, kept.tolist()))
        design = self._design(len(names), self._bandwidth)
        with AnswerCount().counting() as binding:
            model = self._bind(item)
        if self._options.method != "sampled":
            model = model.verified(design)
        if model.exact is not None or model.words is not None:
            return names, design, model
        model = replace(model, checks=model.checks + binding.rows)
        repetition = partial(self._repetition.get, None)
        return names, design, model.repeated(design, self._options, repetition)

    @one_blas_thread()
    def _explain_levels(self, item: Item, units: Partition, *, progress: bool) -> Explanation:
        with AnswerCount().counting() as tally:
            return self._leveled(item, units, tally, progress=progress)

    def _leveled(self, item: Item, units: Partition, tally: AnswerCount, *, progress: bool) -> Explanation:
        options, sampling = self._options, self._options.sampling
        _, design, model = self._bound(item, np.ones(item.size, dtype=np.bool_))
        predictions = model.ask(design.at_instance[None]) if model.whole is None else model.whole
        read_predict = None if options.method == "sampled" else model.read_predict
        ask_pieces, units = self._asked_units(item, units, replace(model, ask=read_predict or model.ask))
        rng = np.random.default_rng(streams(sampling.seed, fingerprint(design.at_instance), 1)[0])
        unfinished = self._unfinished.take(item.key)
        if unfinished is not None and answers_alike(unfinished[1], predictions, model.spread):
            calls, before = unfinished[0]
            tally.add(before)
        else:
            calls = calls_of(ask_pieces, sampling, model)
            sets, answers = model.answers_of_checks
            if len(sets):  # of words, which may have several places
                alike = sets.shape[1] == units.of_pieces.size
                calls.keep(sets if alike else sets[:, units.of_pieces], answers)
            calls.keep(np.ones((1, units.of_pieces.size)), predictions)
        budget = model.budget(options)
        most = sampling.max_calls if read_predict else budget.states
        ask, whole = calls.one_pass(calls), predictions.reshape(-1)
        try:
            with progress_of(shown=progress)(most, CALLS) as calls.on_progress:
                account = levels_of(
                    model,
                    lambda z: ask(z).reshape(len(z), whole.size),
                    units,
                    whole,
                    most,
                    rng,
                    sampling.accuracy,
                    0 if read_predict else budget.answered,
                )
        except (ModelError, KeyboardInterrupt):
            self._unfinished.put(item.key, ((calls, tally.rows), predictions))
            raise
        texts = (*self._remarks(item), *filter(None, [model.remark]))
        warnings, quantity = model.seen_as(predictions)
        exact = account.is_exact and model.is_function
        enumerated = "" if read_predict else _ENUMERATED.format(self._features)
        fields = explanation_fields(
            account,
            self._at_levels(item, account.partition),
            predictions,
            model.outputs,
            self._feature,
            accuracy=sampling.accuracy,
            exact=exact,
            calls=0 if read_predict else tally.rows,
            spread=model.spread,
            kind=self._group,
            reason=self._why_levels(item),
        )
        return from_fields(
            **{name: its for name, its in fields.items() if name != "provenance"},
            reason=enumerated if exact else model.why_sampled,
            row_warnings=(
                (*repetitions(model.spread), *warnings, *(RowWarning(text, "input") for text in texts)),
            ),
            provenance={
                **self._provenance,
                **fields["provenance"],
                "seed": None if exact else sampling.seed,
                **quantity,
            },
        )

    def _to_explanation(
        self, item: Item, changes: Bools, model: BoundInput, fitted: Fitted, calls: int
    ) -> Explanation:
        predictions = fitted.predictions
        item = self._marked(item, model, identified(changes))
        sampling, limit, exact = self._options.sampling, self._options.threshold, fitted.sampled is None
        surrogates = np.reshape(fitted.at_instance, predictions.shape)
        odd, quantity = model.seen_as(predictions)
        method = "predict_proba" if model.link else quantity.get("quantity", model.output.method or "call")
        texts = filter(None, (*self._remarks(item), model.remark))
        remarks = [RowWarning(text, "input") for text in texts]
        misleading = misleading_surrogates(predictions, surrogates, method, model.outputs, threshold=limit)
        warnings = misleading.get(0, ()) + odd
        kind = replace(PERTURBED, rows=f"perturbed {self._several}")
        if not exact:
            names = tuple(compress(item.names, identified(changes).tolist()))
            sampled = sampling_warnings(fitted, names, model.outputs, sampling=sampling, kind=kind)
            warnings += sampled.get(0, ())
        elif (unlike := fitted.moments.unlike) is not None and changes.any():
            warnings += unchanged_answers(
                fitted, unlike, predictions, model.outputs, kind, are_all=bool(changes.all())
            )
        own_calls = np.where(fitted.moments.calls > 0, calls, 0)
        coefficients = fitted.coefficients(own_calls)
        if not changes.all():
            coefficients = coefficients_of_all(coefficients, changes)
            warnings += identification_warning(item.names, self._changes(item), self._advice)
        enumerated = _ENUMERATED.format(self._features)
        facts = {
            **self._provenance,
            "seed": None if exact else sampling.seed,
            **({} if exact else {"tolerance": str(sampling.accuracy)}),
            **quantity,
            **item.picture,
        }
        return frozen_explanation(
            coefficients=coefficients,
            calls=own_calls,
            shared_calls=None if exact else fitted.moments.shared,
            fit=Fit.of(
                partial(self._fits, model, fitted, changes),
                coefficients.values.shape,
                lambda: coefficients,
                is_read=exact and not fitted.moments.calls.any(),
                shows=self._options.contributions is not False,
                accuracy=sampling.accuracy,
            ),
            predictions=predictions,
            feature_names=item.names,
            output_names=model.outputs,
            conditions=(item.conditions,),
            data=item.data[None],
            method="exact" if exact else "sampled",
            reason=(enumerated if fitted.moments.calls.any() else "") if exact else model.why_sampled,
            row_warnings=((*repetitions(model.spread), *warnings, *remarks),),
            provenance=plain_fact(facts, "provenance"),
            ids=(0,),
            explainer=self._diagnosable(item),
        )

    def _fits(self, model: BoundInput, fitted: Fitted, changes: Bools | None = None) -> SubsetFits:
        options, predictions = self._options, fitted.predictions
        design = self._design(fitted.surrogate.coef.shape[1], self._bandwidth)
        expectation = model.expectation(design, options, self._features)
        sampled = expectation if isinstance(expectation, SampledExpectation) else None
        account = partial(self._account, model, predictions, fitted, design, sampled)
        witnesses = model.budget(options).witnesses
        return SubsetFits(
            model.form,
            model.ask,
            sampled,
            fitted,
            design,
            options.sampling.seed,
            changes,
            prediction=predictions.reshape(-1),
            exact=model.exact,
            account=None if options.method == "exact" else account,
            spread=model.spread if self._is_asked(model) and not model.drawn and witnesses else None,
            witnesses=witnesses,
        )

    def _is_asked(self, model: BoundInput) -> bool:
        """Whether the model itself answers what is sampled."""
        return self._options.method == "sampled" or model.read_predict is None

    def _account(
        self,
        model: BoundInput,
        predictions: Floats,
        fitted: Fitted,
        design: ExchangeableDesign,
        sampled: SampledExpectation | None,
    ) -> SampledAccount | FewSets:
        """Get what samples the contributions to a prediction (1, ...), by a form where the model was read."""
        its, d = self._options, design.size
        read_predict = None if self._is_asked(model) else model.read_predict
        # a sample ends when it is accurate enough, also where coefficients use the whole budget
        options = replace(its, method="auto", tolerance=its.tolerance or _ACCURACY)
        budget, sample = model.budget(its), None
        if read_predict is not None:
            model = replace(model, ask=read_predict, checks=0)
            spent, shared = model.budget(its).rest(d, 0), None
        elif (shared := budget.split(d)) is None or sampled is None:
            spent = budget.rest(d, int(fitted.moments.calls[0]))
        else:
            assert fitted.sampled is not None  # noqa: S101 - the model was sampled
            spent, answers = shared, fitted.sampled.answers[0]
            options = replace(options, tolerance=its.tolerance)  # what was answered costs nothing
            sample = sampled.redraw(design, design.at_instance, len(answers))[0], answers
            if sampled.beside is not None:
                more = fitted.sampled.beside[0].reshape(-1, *answers.shape[1:])
                model = model.knowing(sampled.beside, more)
            # a margin that is read knows more than models of sets; and a control that is chosen is used
            chosen = its.control != "auto" or model.margin is not None
            if not (spent.alone or chosen):
                ask = known_sets(model, design, predictions, its.sampling).ask
                calls = calls_of(ask if model.is_function else model.ask, its.sampling, model)
                law = budget.drawn(design, spent).counts.law
                few = FewSets(calls, predictions.reshape(-1), *sample, law, (spent.none, spent.whole))
                if few.is_best(has_process=model.default_control == "process"):
                    return few
        sets = known_sets(model, design, predictions, its.sampling, sample)

        def sampler(of_sets: ExchangeableDesign, calls: int) -> SampledExpectation:
            drawn = None if shared is None else budget.drawn(design, spent)
            return sets.sampled(of_sets, options, calls, drawn)

        return SampledAccount.of(
            sampler,
            calls_of(sets.ask if model.is_function else model.ask, its.sampling, model),
            predictions.reshape(-1),
            spent,
            is_function=model.is_function,
            asks=read_predict is None,
        )

    @one_blas_thread()
    def _context_of(
        self, item: Item, explanation: Explanation, output: Ints, calls: int | None
    ) -> SubsetContext:
        finite = (
            np.isfinite(explanation.coefficients.values[0])
            .reshape(len(explanation.feature_names), -1)
            .any(axis=1)
        )
        if not finite.any():
            raise InputError("hiding a feature never changes this input: there is nothing to diagnose")
        _, design, model = self._bound(item, finite)
        explanation, d = explanation[:, finite], int(finite.sum())
        return SubsetContext(
            **examined(explanation, output, model.outputs),
            rows=np.ones((1, d)),
            predict=model.predict,
            source=source_of(model.expectation(design, self._options, self._features)),
            budget=calls,
            make_design=lambda bandwidth: self._design(d, bandwidth),
        )


def _plain(option: Any) -> Any:
    """An option as provenance has it: an object by its class."""
    return option if isinstance(option, str | int | float | dict | None) else type(option).__name__


@dataclass(frozen=True, eq=False)
class ExplainedItem(Generic[Item]):
    """An explainer and what it explained, for diagnoses of explanations that do not hold the item."""

    explainer: MaskedExplainer[Item]
    item: Item

    def _diagnostic_context(
        self, explanation: Explanation, *, output: Ints, calls: int | None
    ) -> SubsetContext:
        explainer = self.explainer
        return explainer._context_of(self.item, explanation, output, calls)  # noqa: SLF001 - part of it
