"""A model of inputs whose parts are shown or hidden: its answers, which are explained, and its form.

The model is a function of rows z (n, d), 1 where a part is shown. It is read if it can be, else asked: about
all 2^d rows if they are few, about a sample if not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from limes._arrays import Floats, Ints
from limes._checks import check_choice, check_count
from limes._expectations.controls.control import Control, if_better_than_linear, no_control
from limes._expectations.controls.switches import gaussian_process, logistic_control, switch_kernels
from limes._expectations.controls.tables import MarginControl
from limes._expectations.moments import ExactMoments, Moments
from limes._expectations.of_forms import exact_expectation
from limes._expectations.sampled import RepeatedExpectation, SampledExpectation, repeats_states
from limes._explainers.options import REQUESTED, SamplingOptions
from limes._explainers.verification import (
    SUBSET_DRAWS,
    check_agreement,
    check_draws,
    kept_features,
    subset_rows,
)
from limes._pipeline import Expectation
from limes.designs._exchangeable import ExchangeableDesign
from limes.exceptions import InputError, ModelError, NotReadableError, ReadMismatchError
from limes.models._calling.caller import ModelCaller, repetition_warnings
from limes.models._calling.networks import columns, is_network
from limes.models._calling.outputs import Output, add_up_to_one, resolve
from limes.models._reading import read_output, tolerance_of
from limes.models.forms._base import BlackBox, Form
from limes.models.forms._linked import Linked

CONTROLS = ("none", "logistic", "kernel", "process", "margin")

# rows z (n, d) -> (n,) or (n, k)
Predict: TypeAlias = Callable[[Floats], Floats]
# (n, k) -> (n, k), put on a network's answers
Link: TypeAlias = Callable[[Floats], Floats]

# Perturbed inputs on which form and model are compared
CHECKED_ROWS = 16


@dataclass(frozen=True)
class _Verified:
    """An exact expectation whose moments under one design were computed already."""

    expectation: ExactMoments
    design: ExchangeableDesign
    computed: Moments

    @property
    def method(self) -> Literal["exact"]:
        return "exact"

    def moments(self, design: ExchangeableDesign, row: Floats | None = None) -> Moments:
        return self.computed if design is self.design else self.expectation.moments(design, row)


@dataclass(frozen=True, eq=False)
class MaskedModel:
    """A model bound to one input, as a function of rows z.

    Attributes
    ----------
    ask
        The model's own answers.
    form
        What could be read, or a black box with the reason.
    outputs
        Names of the explained answers.
    whole
        The model's answer (1, ...) to the whole input, if it was asked already.
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
    exact
        The form's expectation, once it was verified.
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
    exact: _Verified | None = None
    spread: float = 0.0
    check_calls: int = 0

    def verified(self, design: ExchangeableDesign) -> MaskedModel:
        """Return the model as a black box if the form's exact moments disagree with the form itself."""
        if isinstance(self.form, BlackBox):
            return self
        try:
            expectation = exact_expectation(self.form, ExchangeableDesign)
            exact = _Verified(expectation, design, expectation.moments(design))
            check_draws(exact.computed, self.form.predict, design, kept_features(design), SUBSET_DRAWS)
        except ReadMismatchError as mismatch:
            return replace(self, form=BlackBox(self.ask, str(mismatch)))
        except (InputError, ModelError) as error:
            reason = f"the model was read, but its expectation is not exact: {error}"
            return replace(self, form=BlackBox(self.ask, reason))
        return replace(self, exact=exact)

    def expectation(
        self, design: ExchangeableDesign, options: SamplingOptions, features: str = "features"
    ) -> Expectation:
        """Return the exact expectation of a verified form, or one that asks the model.

        ``features`` is the word for features in messages of ``method="exact"``.
        """
        if self.exact is not None:
            return self.exact
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


def read_model(
    model: Any,
    output: Output,
    ask: Predict,
    read: Callable[[Output], Form | BlackBox],
    check: Callable[[Predict], None],
    *,
    otherwise: Predict | None = None,
    unread: Mapping[str, Any] | None = None,
    **facts: Any,
) -> MaskedModel:
    """Read a model, and compare the form with its answers; one that answers something else is sampled.

    ``check`` raises a ReadMismatchError where the form's predictions are not the model's; the model is then
    asked by ``otherwise``. ``facts`` are fields of the `MaskedModel`, ``unread`` those of a black box.
    """
    form = read(output)
    if isinstance(form, BlackBox):
        return MaskedModel(ask, form, margin=_margin(model, output, read), **facts, **(unread or {}))
    try:
        check(form.predict)
    except ReadMismatchError as reason:
        ask = otherwise or ask
        return MaskedModel(ask, BlackBox(ask, str(reason)), **facts)
    return MaskedModel(ask, form, margin=form.margin if isinstance(form, Linked) else None, **facts)


def _margin(model: Any, output: Output, read: Callable[[Output], Form | BlackBox]) -> Form | None:
    """Return the form behind the link of a model that could not be read, if that can be."""
    if output.method not in ("predict", "predict_proba"):
        return None
    try:
        form = read(resolve(model, "margin"))
    except InputError:
        return None
    return None if isinstance(form, BlackBox) else form


def check_form(
    predict: Predict, rows: Floats, answers: Floats, tolerance: float, where: Callable[[int], str]
) -> None:
    """Raise unless predictions are the model's own answers to some rows, up to rounding."""
    check_agreement(answers, predict(rows), tolerance * float(np.abs(answers).max()), where)


@dataclass(frozen=True)
class MaskableModel:
    """A model, and which of its answers are explained; ``bind`` makes a `MaskedModel` of one input.

    Attributes
    ----------
    model, link
        What is called, and what is put on its answers.
    output, top, labels
        Which answers are explained, how many if none is named, and their names.
    """

    model: Any
    link: Link | None
    output: Any
    top: int
    labels: tuple[str, ...] | None

    @classmethod
    def of(cls, model: Any, *, output: Any, top: Any, labels: Any, link: Any) -> MaskableModel:
        """Check the options that explainers take."""
        return cls(model, _link_of(link), output, check_count("top", top), _labels_of(labels))

    @property
    def is_estimator(self) -> bool:
        """Whether it has methods and classes, as scikit-learn's models have, and takes rows of numbers."""
        return columns(self.model) is not None

    def bind(
        self, size: int, compose: Callable[[Floats], Any], over: Callable[[Form], Form], parts: str
    ) -> MaskedModel:
        """Ask the model about an input of ``size`` parts, read it, and compare the form with its answers.

        ``compose`` makes a batch for the model of rows z (n, d); ``over`` makes a form over z of the model's
        own, or raises an InputError; ``parts`` is what they are called, "superpixels".
        """
        output = resolve(self.model, self.output if self.is_estimator else None)
        if self.link is not None and output.method == "predict_proba":
            raise InputError(
                "link= turns logits into probabilities, and this model answers probabilities already (by "
                "predict_proba): leave link out"
            )
        everything = _LinkedModel(ModelCaller(self.model, output, compose), self.link, None)
        whole = everything(np.ones((1, size)))
        adds_up = self.link is _softmax or (self.link is None and add_up_to_one(self.model, output))
        output, names = self._chosen(output, whole)
        caller = replace(everything.caller, output=replace(output, columns=None))
        ask = _LinkedModel(caller, self.link, output.columns)

        def read(wanted: Output) -> Form | BlackBox:
            form = read_output(self.model, wanted)
            if isinstance(form, BlackBox):
                return BlackBox(ask, form.reason)
            if self.link is not None:
                return BlackBox(ask, "a link is put on the model's answers, which is no sum of effects")
            try:
                return over(form)
            except InputError as reason:
                return BlackBox(ask, str(reason))

        def check(predict: Predict) -> None:
            rows = subset_rows(size, CHECKED_ROWS)
            check_form(
                predict,
                rows,
                ask(rows),
                tolerance_of(self.model),
                lambda row: f"the {parts} {np.flatnonzero(rows[row]).tolist()} alone",
            )

        # a Gaussian process is cheap next to a forward pass
        unread = {"default_control": "process"} if is_network(self.model) else {}
        adds_up = adds_up and len(names) == np.size(whole)
        return read_model(self.model, output, ask, read, check, unread=unread, outputs=names, adds_up=adds_up)

    def _chosen(self, output: Output, whole: Floats) -> tuple[Output, tuple[str, ...]]:
        """Return the output with the explained columns of the answers (1, ...), and their names."""
        if output.columns is not None:
            return output, self._names_of_columns(output, np.atleast_1d(output.columns), whole)
        if whole.ndim == 1:
            if self.labels is not None:
                _check_labels(self.labels, 1)
            return output, self.labels or output.names(())
        if self.labels is not None:
            _check_labels(self.labels, whole.shape[1])
        names = self.labels or output.names(whole.shape[1:])
        wanted = None if self.is_estimator else self.output
        if wanted is None and len(names) <= self.top:
            return replace(output, labels=names), names
        positions = _positions(wanted, names, whole[0], self.top)
        chosen_names = tuple(names[k] for k in np.atleast_1d(positions))
        return replace(output, columns=positions, labels=chosen_names), chosen_names

    def _names_of_columns(self, output: Output, columns: Ints, whole: Floats) -> tuple[str, ...]:
        """Return the names of chosen columns: labels name these alone, or all classes of the estimator."""
        if self.labels is None:
            return output.names(whole.shape[1:])
        if len(self.labels) == len(getattr(self.model, "classes_", ())):
            return tuple(self.labels[k] for k in columns.tolist())
        _check_labels(self.labels, columns.size)
        return self.labels


@dataclass(frozen=True)
class _LinkedModel:
    """Answers of a model at rows z (n, d), after the link: all of them, or some columns."""

    caller: ModelCaller
    link: Link | None
    columns: int | list[int] | None

    def __call__(self, z: Floats) -> Floats:
        try:
            answers = self.caller(z)
        except ModelError as error:
            # buffers are used again: the error keeps a copy
            error.batch = error.batch.clone() if hasattr(error.batch, "clone") else deepcopy(error.batch)
            raise
        answers = answers if self.link is None else self.link(answers)
        return answers if self.columns is None else np.ascontiguousarray(answers[:, self.columns])


def _labels_of(labels: Any) -> tuple[str, ...] | None:
    """Return names of classes, from a list, or from a text file with one per line."""
    if labels is None:
        return None
    if isinstance(labels, str | Path):
        path = Path(labels)
        try:
            labels = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"labels: {path} could not be read: {error}") from None
    if not isinstance(labels, Sequence | np.ndarray) or not len(labels):
        raise InputError(f"labels must be a list of names, or a text file of one a line; got {labels!r}")
    return _distinct([str(label).strip() for label in labels])


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Add the position to names that occur twice."""
    counts = Counter(names)
    return tuple(f"{name} ({k})" if counts[name] > 1 else name for k, name in enumerate(names))


def _check_labels(labels: tuple[str, ...], answers: int) -> None:
    """Raise unless there is one name per answer."""
    if len(labels) != answers:
        first = f", the first of them {labels[0]!r}" if labels else ""
        raise InputError(
            f"there are {len(labels)} labels{first}, and the model gives {answers} answers: pass one name "
            "per answer, in their order; a first name of no class, such as background, may have to go "
            "(labels[1:], or --skip-labels 1 on the command line)"
        )


def _positions(output: Any, names: Sequence[str], answers: Floats, top: int) -> int | list[int]:
    """Return positions of the explained answers: those that ``output`` names, else the ``top`` largest."""
    if output is None:
        return [int(k) for k in np.argsort(-answers, kind="stable")[:top]]
    if isinstance(output, list | tuple | np.ndarray):
        if not len(output):
            raise InputError("output=[] asks for no class at all")
        return [_position(one, names) for one in output]
    return _position(output, names)


def _position(output: Any, names: Sequence[str]) -> int:
    whole = isinstance(output, int | np.integer) and not isinstance(output, bool)
    if whole and 0 <= output < len(names):
        return int(output)
    if str(output) in names:
        return list(names).index(str(output))
    close = get_close_matches(str(output), names, n=1)
    advice = f" (did you mean {close[0]!r}?)" if close else ""
    raise InputError(
        f"output={output!r} is not among the model's {len(names)} answers{advice}; pass a name of labels=, "
        "or a position counted from 0"
    )


def _link_of(link: Any) -> Link | None:
    """Return the option ``link`` as a function."""
    return None if link is None else _LINKS[check_choice("link", link, tuple(_LINKS))]


def _softmax(answers: Floats) -> Floats:
    if answers.ndim == 1 or answers.shape[1] == 1:
        raise InputError(
            "link='softmax' needs several answers for each input; the model gives one, of which the softmax "
            "is always 1: pass link='sigmoid'"
        )
    powers = np.exp(answers - answers.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _sigmoid(answers: Floats) -> Floats:
    from scipy.special import expit

    return np.asarray(expit(answers))


_LINKS: Mapping[str, Link] = {"softmax": _softmax, "sigmoid": _sigmoid}
