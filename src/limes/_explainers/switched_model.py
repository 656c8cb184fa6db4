"""A model of inputs whose parts are shown or hidden: its answers, which are explained, and its form.

Images, series and composite inputs are such: :class:`SwitchedInputs` says what the model is called with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from limes._arrays import Floats, Ints
from limes._checks import check_choice, check_count
from limes._explainers._masked import MaskedModel
from limes._explainers.verification import check_agreement, subset_rows
from limes.exceptions import InputError, ModelError, ReadMismatchError
from limes.models._calling.caller import ModelCaller
from limes.models._calling.networks import columns, is_network
from limes.models._calling.outputs import Output, add_up_to_one, resolve
from limes.models._reading import read_output, tolerance_of
from limes.models.forms._base import BlackBox, Form
from limes.models.forms._linked import Linked

# (n, k) -> (n, k), put on a network's answers
Link: TypeAlias = Callable[[Floats], Floats]

# Perturbed inputs on which form and model are compared
_CHECKED_ROWS = 16


class SwitchedInputs(Protocol):
    """What a model is called with where some of d parts of one explained input are hidden."""

    @property
    def size(self) -> int:
        """Number of parts d."""

    @property
    def parts(self) -> str:
        """What the parts are called: "superpixels"."""

    def compose(self, z: Floats, /) -> Any:
        """Return the inputs (n, ...) at rows z (n, d): 1 shows a part, 0 hides it."""

    def over(self, form: Form) -> Form:
        """Return f(x(z)) as a form over z.

        Raises
        ------
        InputError
            If it has none.
        """


@dataclass(frozen=True)
class SwitchedModel:
    """A model, and which of its answers are explained.

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
    def of(cls, model: Any, *, output: Any, top: Any, labels: Any, link: Any) -> SwitchedModel:
        """Check the options that explainers take.

        Raises
        ------
        InputError
            If one is not usable.
        """
        return cls(model, link_of(link), output, check_count("top", top), labels_of(labels))

    @property
    def is_estimator(self) -> bool:
        """Whether it has methods and classes, as scikit-learn's models have, and takes rows of numbers."""
        return columns(self.model) is not None

    def bind(self, inputs: SwitchedInputs) -> MaskedModel:
        """Ask the model about an input, read it, and compare the form with its answers.

        A model whose form answers something else is left to sampling.

        Raises
        ------
        InputError
            If the model does not take such an input, or has no such output.
        ModelError
            If the model fails.
        """
        output = resolve(self.model, self.output if self.is_estimator else None)
        if self.link is not None and output.method == "predict_proba":
            raise InputError(
                "link= turns logits into probabilities, and this model answers probabilities already (by "
                "predict_proba): leave link out"
            )
        everything = _LinkedModel(ModelCaller(self.model, output, inputs.compose), self.link, None)
        whole = everything(np.ones((1, inputs.size)))
        output, names = self._chosen(output, whole)
        caller = replace(everything.caller, output=replace(output, columns=None))
        ask = _LinkedModel(caller, self.link, output.columns)
        form = self._read(output, inputs, ask)
        bound = partial(
            MaskedModel,
            outputs=names,
            adds_up=self._add_up_to_one(everything.caller.output) and len(names) == np.size(whole),
        )
        if isinstance(form, BlackBox):
            # beside a network's own time a Gaussian process takes little
            default_control = "process" if is_network(self.model) else "kernel"
            return bound(ask, form, margin=self._margin(output, inputs, ask), default_control=default_control)
        rows = subset_rows(inputs.size, _CHECKED_ROWS)
        where = lambda row: f"the {inputs.parts} {np.flatnonzero(rows[row]).tolist()} alone"  # noqa: E731
        answers = ask(rows)
        allowed = tolerance_of(self.model) * float(np.abs(answers).max())
        try:
            check_agreement(answers, form.predict(rows), allowed, where)
        except ReadMismatchError as reason:
            return bound(ask, BlackBox(ask, str(reason)))
        return bound(ask, form, margin=form.margin if isinstance(form, Linked) else None)

    def _add_up_to_one(self, output: Output) -> bool:
        return self.link is _softmax or (self.link is None and add_up_to_one(self.model, output))

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
        positions = chosen(wanted, names, whole[0], self.top)
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

    def _read(self, output: Output, inputs: SwitchedInputs, ask: _LinkedModel) -> Form | BlackBox:
        form = read_output(self.model, output)
        if isinstance(form, BlackBox):
            return BlackBox(ask, form.reason)
        if self.link is not None:
            return BlackBox(ask, "a link is put on the model's answers, which is no sum of effects")
        try:
            return inputs.over(form)
        except InputError as reason:
            return BlackBox(ask, str(reason))

    def _margin(self, output: Output, inputs: SwitchedInputs, ask: _LinkedModel) -> Form | None:
        """Return the sum behind the probabilities of an estimator, if it can be read."""
        if not self.is_estimator or output.method not in ("predict", "predict_proba"):
            return None
        try:
            form = self._read(resolve(self.model, "margin"), inputs, ask)
        except InputError:
            return None
        return None if isinstance(form, BlackBox) else form


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


def labels_of(labels: Any) -> tuple[str, ...] | None:
    """Return names of classes, from a list, or from a text file with one per line.

    Raises
    ------
    InputError
        If it is neither, or the file cannot be read.
    """
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


def chosen(output: Any, names: Sequence[str], answers: Floats, top: int) -> int | list[int]:
    """Return the positions of the explained answers: those that ``output`` names, else the ``top`` largest.

    Raises
    ------
    InputError
        If there is no such answer.
    """
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


def link_of(link: Any) -> Link | None:
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
