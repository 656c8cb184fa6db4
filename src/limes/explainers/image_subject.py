"""The model at one image: what it answers where superpixels are off, and what could be read off it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError, ModelError, ReadMismatchError
from limes.explainers.classes import Link, check_labels, chosen
from limes.explainers.switched import Switched
from limes.explainers.verification import check_agreement
from limes.models.calling.caller import ModelCaller
from limes.models.calling.networks import Preprocess, columns, composer_of, flat, is_network
from limes.models.calling.outputs import Output, resolve
from limes.models.documents import some_rows
from limes.models.forms.base import BlackBox, Form
from limes.models.forms.switches import Switches, over_switches
from limes.models.images import SwitchedImage
from limes.models.reading import read_output, tolerance_of

# A reading is compared with the model's own answers on so many perturbed images.
_CHECKED_ROWS = 16


@dataclass(frozen=True)
class ImageModel:
    """A model of images, and what is wanted of it.

    Attributes
    ----------
    model, preprocess, link
        What is asked, what it is given, and what is made of its answers.
    output, top, labels
        Which answers are explained, how many if nobody says which, and their names.
    """

    model: Any
    preprocess: Preprocess | None
    link: Link | None
    output: Any
    top: int
    labels: tuple[str, ...] | None

    @property
    def is_estimator(self) -> bool:
        """Whether it has methods and classes, as scikit-learn's models have, and takes rows of numbers."""
        return columns(self.model) is not None

    def at(self, image: SwitchedImage) -> ImageSubject:
        """Ask the model about an image, read it, and compare what was read with its answers.

        What does not answer the same is left to sampling.

        Raises
        ------
        InputError
            If the model does not take such an image, or has no such output.
        ModelError
            If the model fails.
        """
        wanted = resolve(self.model, self.output if self.is_estimator else None)
        compose = composer_of(self.model, image, self.preprocess)
        everything = Answers(ModelCaller(self.model, wanted, compose), self.link, None)
        whole = everything(np.ones((1, image.size)))
        wanted, names = self._chosen(wanted, whole)
        ask = Answers(
            replace(everything.asker, output=replace(wanted, columns=None)), self.link, wanted.columns
        )
        form = self._form(wanted, image, ask)
        everyone = wanted.columns is None or len(names) == np.size(whole)
        if isinstance(form, BlackBox):
            # beside a network's own time a Gaussian process takes little
            usual = "process" if is_network(self.model) else "kernel"
            return ImageSubject(
                Switched(ask, form, self._margin(wanted, image, ask), usual=usual), names, everyone
            )
        rows = some_rows(image.size, _CHECKED_ROWS)
        where = lambda row: f"the superpixels {np.flatnonzero(rows[row]).tolist()} alone"  # noqa: E731
        answers = ask(rows)
        allowed = tolerance_of(self.model) * float(np.abs(answers).max())
        try:
            check_agreement(answers, form.predict(rows), allowed, where)
        except ReadMismatchError as reason:
            return ImageSubject(Switched(ask, BlackBox(ask, str(reason))), names, everyone)
        return ImageSubject(Switched(ask, form), names, everyone)

    def _chosen(self, wanted: Output, whole: Floats) -> tuple[Output, tuple[str, ...]]:
        """Which columns of the answers (1, ...), and their names."""
        if whole.ndim == 1:
            if self.labels is not None:
                check_labels(self.labels, 1)
            return wanted, self.labels or wanted.names(())
        if wanted.columns is not None:
            return wanted, wanted.names(whole.shape[1:])
        if self.labels is not None:
            check_labels(self.labels, whole.shape[1])
        names = self.labels or wanted.names(whole.shape[1:])
        output = None if self.is_estimator else self.output
        if output is None and len(names) <= self.top:
            return replace(wanted, labels=names), names
        which = chosen(output, names, whole[0], self.top)
        own = tuple(names[k] for k in np.atleast_1d(which))
        return replace(wanted, columns=which, labels=own), own

    def _form(self, wanted: Output, image: SwitchedImage, ask: Answers) -> Form | BlackBox:
        form = read_output(self.model, wanted)
        if isinstance(form, BlackBox):
            return BlackBox(ask, form.reason)
        if self.link is not None:
            return BlackBox(ask, "a link is put on the model's answers, which is no sum of effects")
        row = flat(image, self.preprocess)
        switches = Switches(row.shown[0], row.fill[0], row.labels[0])
        try:
            return over_switches(form, switches)
        except InputError as reason:
            return BlackBox(ask, str(reason))

    def _margin(self, wanted: Output, image: SwitchedImage, ask: Answers) -> Form | None:
        """The sum behind the probabilities of an estimator, if it can be read."""
        if not self.is_estimator or wanted.method not in ("predict", "predict_proba"):
            return None
        try:
            form = self._form(resolve(self.model, "margin"), image, ask)
        except InputError:
            return None
        return None if isinstance(form, BlackBox) else form


@dataclass(frozen=True)
class ImageSubject:
    """A model at one image, the names of the answers that are explained, and whether these are all."""

    switched: Switched
    outputs: tuple[str, ...]
    all_of_them: bool


@dataclass(frozen=True)
class Answers:
    """Answers of a model at rows z (n, d), after the link: all of them, or some columns."""

    asker: ModelCaller
    link: Link | None
    columns: int | list[int] | None

    def __call__(self, z: Floats) -> Floats:
        try:
            found = self.asker(z)
        except ModelError as error:
            error.batch = None if error.batch is None else _copied(error.batch)
            raise
        found = found if self.link is None else self.link(found)
        return found if self.columns is None else np.ascontiguousarray(found[:, self.columns])


def _copied(batch: Any) -> Any:
    """A batch of its own: buffers are used again."""
    return batch.clone() if hasattr(batch, "clone") else np.array(batch)
