"""A classifier's answers to an image whose superpixels are switched off, and one checked call about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.compat.lime.answers import model_behind
from limes.models.calling.caller import ModelCaller
from limes.models.calling.networks import columns, composer_of
from limes.models.calling.outputs import resolve
from limes.models.images import SwitchedImage

__all__ = ["ImageAnswers", "ImageRequest", "estimator_of"]


def estimator_of(classifier_fn: Any, size: int) -> Any:
    """The estimator whose bound ``predict_proba`` it is, if it was fitted on as many numbers; else None."""
    behind = model_behind(classifier_fn, "classification")
    return behind[0] if behind is not None and columns(behind[0]) == size else None


@dataclass(frozen=True, eq=False)
class ImageAnswers:
    """Calls ``classifier_fn`` with batches of images, and checks what it says.

    Answers are columns as they come: one number an image is one label, 0.
    """

    classifier_fn: Any
    image: SwitchedImage
    batch_size: int

    @cached_property
    def model(self) -> Any:
        """What is asked: an estimator takes rows of numbers, anything else images."""
        estimator = estimator_of(self.classifier_fn, self.image.shown.size)
        return self.classifier_fn if estimator is None else estimator

    @property
    def reads(self) -> bool:
        """Whether there is an estimator that may be read."""
        return self.model is not self.classifier_fn

    def __call__(self, z: Floats, heard: Callable[[int], object] | None = None) -> Floats:
        """Answers (n, k) where the superpixels of z (n, d) are shown; ``heard`` is told of each batch.

        Raises
        ------
        ModelError
            If the classifier fails, or answers in another shape, or not in finite numbers.
        """
        parts = []
        for start in range(0, len(z), self.batch_size):
            said = self._asker(z[start : start + self.batch_size])
            parts.append(said.reshape(len(said), -1))
            if heard is not None:
                heard(len(said))
        return np.concatenate(parts)

    @cached_property
    def _asker(self) -> ModelCaller:
        return ModelCaller(self.model, resolve(self.model), composer_of(self.model, self.image, None))


@dataclass(frozen=True, eq=False)
class ImageRequest:
    """One checked call of ``explain_instance``: the classifier's answer (k,), labels, lime's options."""

    answers: ImageAnswers
    said: Floats
    labels: list[int]
    features: int
    samples: int
    metric: Any
    regressor: Any
    progress: bool

    @property
    def image(self) -> SwitchedImage:
        """What is shown and what is filled."""
        return self.answers.image
