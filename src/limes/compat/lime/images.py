"""Images whose superpixels are switched off: how the classifier is called, and what engines need of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.compat.lime.call import Call, Kind, in_batches, model_behind
from limes.compat.lime.lime_sampling import switches
from limes.compat.lime.limit import SCORED_ROWS, Limits, exchangeable_limits, least_subset_calls
from limes.designs.exchangeable import ExchangeableDesign
from limes.explainers.image import ImageExplainer
from limes.models.calling.caller import ModelCaller
from limes.models.calling.networks import columns, composer_of
from limes.models.calling.outputs import resolve
from limes.models.images import SwitchedImage


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


@dataclass(frozen=True, eq=False)
class ImageKind(Kind):
    """Images, whose superpixels are shown or filled; ``seed`` is that of the limit."""

    mode = "classification"

    bandwidth: float
    seed: int

    def only_sampled(self, call: Call) -> dict[str, bool]:
        # a model that may be read need not be called
        least = 1 if call.predict.is_readable else least_subset_calls(call.instance.size)
        return {f"num_samples < {least}": call.num_samples < least}

    def explainer(self, call: Call) -> tuple[Any, Any]:
        predict, image = call.predict, call.instance
        classes = getattr(predict.model, "classes_", None)
        labels = self._labels(call)
        explainer = ImageExplainer(
            predict.model,
            segments=image.labels,
            fill=image.fill,
            bandwidth=self.bandwidth,
            output=labels if classes is None else [classes[k] for k in labels],
            max_calls=call.num_samples,
            batch_size=predict.batch_size,
            rng=self.seed,
        )
        return explainer, predict.model

    def limits(self, explainer: Any, call: Call) -> Limits:
        explanation = explainer(call.instance.shown, progress=call.progress)
        design = ExchangeableDesign.superpixel_switches(call.instance.size, self.bandwidth)
        numbers = explanation.values, explanation.standard_errors, explanation.intercepts
        limits = exchangeable_limits(*numbers, explanation.fidelity, design)
        by_label = dict(zip(self._labels(call), limits, strict=True))
        ask = partial(_ask_near, call.predict, design)
        return Limits(np.asarray(call.prediction), by_label, ask, lambda: explanation)

    def fingerprint(self, call: Call) -> Sequence[int]:
        return image_fingerprint(call.instance)

    def draw(self, call: Call, rng: np.random.Generator) -> tuple[Floats, Any]:
        z = switches(call.instance.size, call.num_samples, rng)
        return z, z

    def ask(self, call: Call, rows: Any) -> Floats:
        return np.asarray(call.predict(rows, progress=call.progress))

    def describe(self, call: Call, provenance: Mapping[str, Any]) -> dict[str, Any]:
        image = call.instance
        conditions = image_conditions(image.labels)
        facts = {"meaning": MEANING, **image_picture(image, conditions)}
        return {
            "feature_names": superpixel_names(image.size),
            "conditions": (conditions,),
            "data": image_areas(image.labels),
            "provenance": {**provenance, **facts},
        }

    def _labels(self, call: Call) -> list[int]:
        return call.choose_labels(np.asarray(call.prediction))


def _ask_near(predict: ImageClassifier, design: ExchangeableDesign) -> Floats:
    """Answers (n, k) to rows of w."""
    rows, _ = design.sample(SCORED_ROWS, np.random.SeedSequence(0))
    return predict(rows)
