"""What lime converges to on an image, in lime's words: :class:`limes.ImageExplainer` behind lime's call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from limes.compat.lime.images.answers import ImageRequest
from limes.compat.lime.lime_base import report
from limes.compat.lime.surrogates import Surrogates
from limes.compat.lime.switched_limit import Neighbourhood, limits_of
from limes.designs.exchangeable import ExchangeableDesign
from limes.explainers.image import ImageExplainer

__all__ = ["LimitImages"]


@dataclass(frozen=True, eq=False)
class LimitImages:
    """Answers requests by the limit."""

    bandwidth: float
    selection: str
    seed: int
    verbose: bool

    def __call__(self, request: ImageRequest) -> Surrogates:
        """Surrogates of an image, from ``request.samples`` images at most."""
        answers, image = request.answers, request.image
        explainer = ImageExplainer(
            answers.model,
            segments=image.labels,
            fill=image.fill,
            bandwidth=self.bandwidth,
            output=_outputs(request),
            max_calls=request.samples,
            batch_size=answers.batch_size,
            rng=self.seed,
        )
        told = explainer(image.shown, progress=request.progress)
        design = ExchangeableDesign.superpixel_switches(image.size, self.bandwidth)
        numbers = told.values, told.standard_errors, told.intercepts, told.fidelity
        limits = dict(zip(request.labels, limits_of(*numbers, design), strict=True))
        fits = {k: limit.fit(request.features, self.selection) for k, limit in limits.items()}
        if self.verbose:
            for k, fit in fits.items():
                report(fit, float(request.said[k]))
        near = Neighbourhood(limits, fits, answers)
        return Surrogates(fits, near.scores, request.said, near.bounds, told)


def _outputs(request: ImageRequest) -> Any:
    """The labels as limes has them: classes of an estimator, else positions."""
    classes = getattr(request.answers.model, "classes_", None)
    return request.labels if classes is None else [classes[k] for k in request.labels]
