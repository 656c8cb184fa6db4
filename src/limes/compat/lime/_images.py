"""What is called with images, for lime's explainer: a function, or the estimator behind a method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from limes._arrays import Floats
from limes.compat.lime._call import in_batches, model_behind
from limes.models._calling.caller import ModelCaller
from limes.models._calling.networks import columns, composer_of
from limes.models._calling.outputs import resolve
from limes.models._images import SwitchedImage


def estimator_of(classifier_fn: Any, size: int) -> Any:
    """The estimator whose bound ``predict_proba`` it is, if it was fitted on this number of columns."""
    behind = model_behind(classifier_fn, "classification")
    return behind[0] if behind is not None and columns(behind[0]) == size else None


@dataclass(frozen=True, eq=False)
class ImageClassifier:
    """Calls ``classifier_fn`` with batches of images, and checks its answers.

    Answers are columns as they come: one number an image is one label, 0.
    """

    classifier_fn: Any
    image: SwitchedImage
    batch_size: int

    @cached_property
    def model(self) -> Any:
        """What is called: an estimator takes rows of numbers, anything else images."""
        estimator = estimator_of(self.classifier_fn, self.image.shown.size)
        return self.classifier_fn if estimator is None else estimator

    @property
    def is_readable(self) -> bool:
        """Whether it is the method of an estimator."""
        return self.model is not self.classifier_fn

    def __call__(self, z: Floats, *, progress: bool = False) -> Floats:
        """Answers (n, k) where the superpixels of z (n, d) are shown, with a bar if it takes long.

        Raises
        ------
        ModelError
            If the classifier fails, or answers in another shape, or not in finite numbers.
        """
        return in_batches(self._columns, z, self.batch_size, progress=progress)

    def _columns(self, z: Floats) -> Floats:
        answers = self._caller(z)
        return answers.reshape(len(answers), -1)

    @cached_property
    def _caller(self) -> ModelCaller:
        return ModelCaller(self.model, resolve(self.model), composer_of(self.model, self.image, None))
