"""A model bound to one input, read or asked about sets of the input's features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats
from limes._expectations.moments import ExactMoments, Moments
from limes._expectations.of_forms import exact_expectation
from limes._explainers.budget import InputBudget
from limes._explainers.few_units import MOST_COMPLETED, CompletedExpectation
from limes._explainers.options import REQUESTED, SamplingOptions
from limes._explainers.results import odd_probabilities, score_warnings
from limes._explainers.verified_form import (
    SUBSET_DRAWS,
    Read,
    VerifiedForm,
    check_draws,
    exact_moments,
    kept_features,
    margin_of,
)
from limes._fitting import Expectation
from limes._sampling.controls.control import Control, if_better_than_linear, no_control
from limes._sampling.controls.switches import gaussian_process, logistic_control, switch_kernels
from limes._sampling.controls.tables import MarginControl
from limes._sampling.sampled import (
    RepeatedExpectation,
    ReweightedDesign,
    SampledExpectation,
    Sampling,
    least_calls,
    repeats_states,
)
from limes._sampling.word_effects import WordEffects, has_word_effects
from limes._warnings import RowWarning
from limes.designs._exchangeable import ExchangeableDesign
from limes.exceptions import NotReadableError, ReadMismatchError
from limes.models._calling.caller import (
    CHECK_CALLS,
    Calls,
    few_subsets,
    repeated_answers,
    repetition_warnings,
    spread_of,
    with_retries,
)
from limes.models._calling.outputs import SCORE, FirstAnswers
from limes.models._identity import Predict
from limes.models.forms._linked import Linked

# Most features of which sets of single ones are taken from what is sampled
_MOST_BESIDE = 32
_NO_ANSWERS = np.empty((0, 0)), np.empty(0)


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundInput(VerifiedForm):
    """A model bound to one input and read, as a function of rows z."""

    whole: Floats | None = None  # its answer (1, ...) to the whole input, if it was asked already
    often_linear: bool = False  # so often is a linear fit enough that kernels must predict better to be used
    default_control: str = "kernel"  # what "auto" takes for models without a margin
    adds_up: bool = True  # whether the answers together may be probabilities of classes, which add up to 1
    link: str | None = None  # what makes probabilities of the network's logits
    shown: FirstAnswers = field(default_factory=FirstAnswers)  # whether they are probabilities
    exact: ExactMoments | None = None  # the form's expectation, once it was verified
    moments: Moments | None = None  # under the design of the input, where it was verified
    words: Linked | None = None  # a form without an exact expectation that effects of words are sampled from
    # answers to know all this, with those that the spread takes; of a reader those that it asks for later
    checks: int = 0
    answered: tuple[Floats, Floats] | None = None  # sets of features, and the model's answers to them
    first: Predict | None = None  # answers with everything from the first item of a background
    items: int = 1  # of a background, all of which an answer of ``ask`` is the mean of
    drawn: bool = False  # whether each answer has an item of a background, drawn for it
    remark: str = ""  # on what is in no feature

    @property
    def is_function(self) -> bool:
        return self.spread == 0.0 and not self.drawn

    def seen_as(self, predictions: Floats) -> tuple[tuple[RowWarning, ...], Mapping[str, str]]:
        """Warnings about answers (1, ...) that are no probabilities, and what the provenance has of them."""
        scores = score_warnings(self.model, "" if self.link else self.output.method, self.shown, predictions)
        if scores:
            return scores, {"quantity": SCORE}
        odd = odd_probabilities(predictions).get(0, ()) if self.adds_up else ()
        answer = {"answer": self.output.method} if self.output.method == "predict_proba" else {}
        return odd, answer if self.link is None else {"link": self.link, "quantity": "probability"}

    def budget(self, options: SamplingOptions) -> InputBudget:
        has_account = options.contributions is not False
        others = len({z.tobytes() for z in self.answers_of_checks[0] if not z.all()})
        facts = self.items, self.is_function, self.drawn, has_account, others
        return InputBudget(options.sampling.max_calls, self.checks, *facts)

    def repeated(
        self,
        design: ExchangeableDesign,
        options: SamplingOptions,
        spread: Callable[[Callable[[], float]], float],
    ) -> BoundInput:
        """The model with the spread of its answers, by a check that ``spread`` calls if it needs to."""
        sets, retry, first = few_subsets(design.size), options.retry, self.first
        before = None if first is not None else self.answers_to(sets)
        answers: list[Floats] = []

        def check() -> float:
            together, moved = repeated_answers(first or self.ask, sets, retry, before)
            answers.append(together)
            return spread_of(together, moved)

        calls = CHECK_CALLS - (0 if before is None else len(sets))
        model = replace(self, checks=self.checks + calls, spread=spread(check))
        new = model.unanswered(sets)
        if first is not None or not (model.is_function and new.any()):
            return model
        budget = model.budget(options)
        every = replace(budget, answered=budget.answered + int(new.sum())).states
        if design.states(every) is None and not self.is_completed(design.size, options):
            return model
        # they are among the sets that are asked about; of later inputs too, to the same bits
        its = answers[0][new] if answers else with_retries(model.ask, sets[new], retry)
        return model.knowing(sets[new], its)

    def answers_to(self, sets: Floats) -> Floats | None:
        """The answers to sets if checks asked about all of them."""
        answers = {z.tobytes(): its for z, its in zip(*self.answers_of_checks, strict=True)}
        if not all(z.tobytes() in answers for z in sets):
            return None
        return np.stack([answers[z.tobytes()] for z in sets])

    def unanswered(self, sets: Floats) -> Bools:
        """Which sets the model was not asked about yet, nor are among those before them."""
        answered = {z.tobytes() for z in self.answers_of_checks[0]}
        new = [not z.all() and z.tobytes() not in answered for z in sets]
        first = np.unique(sets, axis=0, return_index=True)[1]
        return np.array(new) & np.isin(np.arange(len(sets)), first)

    @property
    def answers_of_checks(self) -> tuple[Floats, Floats]:
        """Sets, and the answers to them; none of a model that answers otherwise the next time."""
        return self.answered if self.answered is not None and self.is_function else _NO_ANSWERS

    def is_completed(self, d: int, options: SamplingOptions) -> bool:
        """Whether answers to some of the sets of d features tell of all others."""
        # a margin that is read knows more; and a control that is chosen is used
        is_free = options.control == "auto" and self.margin is None
        return d <= MOST_COMPLETED and is_free and self.is_function

    def first_sets(self, design: ExchangeableDesign) -> Floats:
        """All features, none, and the sets that checks asked about, (m, d): whatever is drawn."""
        return np.vstack([np.zeros(design.size), design.at_instance, *self.answers_of_checks[0]])

    def knowing(self, sets: Floats, answers: Floats) -> BoundInput:
        """The model, with its answers to more sets."""
        if self.answered is not None:
            before, its = self.answered
            sets, answers = np.concatenate([before, sets]), np.concatenate([its, answers])
        return replace(self, answered=(sets, answers))

    def verified(self, design: ExchangeableDesign) -> BoundInput:
        """Leave out a form whose exact moments disagree with the form itself."""
        if self.form is None:
            return self
        try:
            expectation, moments = exact_moments(self.form, design)
            check_draws(moments, self.form.predict, design, kept_features(design), SUBSET_DRAWS)
        except NotReadableError as reason:
            if self.read_predict is None or not has_word_effects(self.form):
                return replace(self, form=None, reason=str(reason))
            sampled = f"{reason} (sampled from the read model)"
            return replace(self, form=None, words=self.form, reason=sampled)
        except ReadMismatchError as reason:
            return replace(self, form=None, read_predict=None, reason=str(reason))
        return replace(self, exact=expectation, moments=moments)

    def expectation(
        self, design: ExchangeableDesign, options: SamplingOptions, features: str = "features"
    ) -> Expectation:
        """The exact expectation of a verified form, or one that asks the model.

        ``features`` is the word for features in messages of ``method="exact"``.
        """
        if self.exact is not None:
            return self.exact
        if self.words is not None and (options.method, options.control) == ("auto", "auto"):
            return WordEffects(self.words, options.with_controls({"none": no_control}))
        if options.method == "exact" and self.spread > 0.0:
            raise NotReadableError(
                f"method='exact' needs a model that repeats its answers: "
                f"{repetition_warnings(self.spread)[0]}; or use method='auto', with error bars"
            )
        budget = self.budget(options)
        enumerated = self.is_function and design.states(budget.states) is not None
        if options.method == "exact" and not enumerated:
            each = " with each item of the background" if self.drawn else ""
            raise NotReadableError(
                f"method='exact' needs a model that can be read: {self.why_sampled}; or a budget for all 2^d "
                f"subsets of d = {design.size} {features}{each} (max_calls, with {budget.checks} for the "
                "input itself and for checks). Use method='auto' to sample it, with error bars"
            )
        if enumerated:
            return self.sampled(design, options, budget.states)
        if not self.is_function and budget.sets and repeats_states(design, budget.sets):
            return self.sampled(design, options, budget.sets, repeats=True)
        is_completed = self.is_completed(design.size, options)
        budget.check(design.size, is_completed=is_completed)
        if is_completed:
            first = self.first_sets(design)
            return self.sampled(design, options, budget.fresh(first), budget.even(design), before=first)
        spent = budget.split(design.size)
        if spent is None:
            return self.sampled(design, options, budget.sets)
        beside = self._beside(design.size, alone=spent.alone) if self.is_function else None
        return self.sampled(design, options, spent.sets, budget.drawn(design, spent), beside=beside)

    def sampled(
        self,
        design: ExchangeableDesign,
        options: SamplingOptions,
        calls: int,
        drawn: ReweightedDesign | None = None,
        *,
        repeats: bool = False,
        beside: Floats | None = None,
        before: Floats | None = None,
    ) -> SampledExpectation:
        """Ask about n = ``calls`` sets, ``drawn`` from another law, or about all, and ``repeats`` them.

        Sets ``beside`` these are asked about whatever is drawn. Sets ``before`` these are asked about first,
        and a process estimates the answers to all others.
        """
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
        if self.margin is None and calls < least_calls(design.size):
            # of few answers it leaves half of what others do
            auto = ("none", "logistic", "process")
        sampling = replace(
            options.with_controls(controls, auto),
            spread=np.inf if self.drawn else self.spread,
            max_calls=calls,
        )
        if self.drawn:  # more items of the background make it more accurate
            sampling = replace(sampling, repetitions=sampling.max_calls)
        if repeats:
            return RepeatedExpectation(self.ask, sampling)
        if before is not None:
            assert isinstance(drawn, ExchangeableDesign)  # noqa: S101 - it is passed with such sets
            return CompletedExpectation(self.ask, sampling, drawn, before)
        return SampledExpectation(self.ask, sampling, drawn, beside)

    @staticmethod
    def _beside(d: int, *, alone: bool) -> Floats:
        """None, single features and all others, (m, d): sets that contributions need."""
        ends = np.zeros((1, d))
        # of many features these hardly count among all sets
        return np.vstack([ends, np.eye(d), 1.0 - np.eye(d)]) if alone and d <= _MOST_BESIDE else ends

    @property
    def why_sampled(self) -> str:
        return self.reason if self.form is None else REQUESTED

    @classmethod
    def read(cls, read: Read, unread: Mapping[str, Any] | None = None, **facts: Any) -> BoundInput:
        """Read a model; ``facts`` are fields, ``unread`` those of a model without a form."""
        model = cls.of(read, **facts)
        if model.form is None:
            margin = margin_of(model.model, model.output, read)
            return replace(model, margin=margin, **(unread or {}))
        return replace(model, margin=model.form.margin) if isinstance(model.form, Linked) else model

    def checked(
        self, rows: Floats, answers: Floats, where: Callable[[int], str], ask: Predict | None = None
    ) -> BoundInput:
        """Leave out a form that does not answer as the model does at rows; ``ask`` is then the model's."""
        try:
            return self.compared(rows, answers, where)
        except ReadMismatchError as mismatch:
            return replace(self.unread(str(mismatch)), ask=ask or self.ask)


def calls_of(ask: Predict, sampling: Sampling, model: BoundInput, retry: bool = True) -> Calls:
    tries = sampling.retry if retry else None
    return Calls(ask, batch_size=sampling.batch_size, retry=tries, is_function=model.is_function)


def known_sets(
    model: BoundInput,
    design: ExchangeableDesign,
    predictions: Floats,
    sampling: Sampling,
    sample: tuple[Floats, Floats] | None = None,
) -> BoundInput:
    """The model, asked about no set twice: it has the answers to the whole input, to checks, to a sample."""
    calls = calls_of(model.ask, sampling, model, retry=False)  # whoever asks tries again
    for kept in (model.answers_of_checks, (design.at_instance[None], predictions), sample):
        if kept is not None and len(kept[0]):
            calls.keep(*kept)
    return replace(model, ask=calls.one_pass(calls))
