"""lime's own images: each superpixel is shown with probability ½, and all of them in the first image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.compat.lime.images.answers import ImageAnswers, ImageRequest
from limes.compat.lime.lime_base import LimeBase
from limes.compat.lime.surrogates import Surrogates, explained
from limes.compat.lime.switched_law import distances
from limes.explainers.images import metadata
from limes.explainers.progress import progress_of

__all__ = ["LimeImages", "asked", "switches"]


def switches(rows: int, d: int, rng: Any) -> Floats:
    """Draw rows z (n, d) of superpixels that are shown (1) or filled (0), by a numpy Generator."""
    z = rng.integers(0, 2, size=(rows, d)).astype(np.float64)
    z[0] = 1.0
    return np.asarray(z)


def asked(answers: ImageAnswers, z: Floats, *, progress: bool) -> Floats:
    """Answers (n, k) at rows z (n, d), with a progress bar if it takes long."""
    with progress_of(shown=progress)(len(z)) as heard:
        return answers(z, heard)


@dataclass(frozen=True, eq=False)
class LimeImages:
    """Answers requests as lime does: draw images, ask, fit."""

    base: LimeBase
    selection: str
    seed: int
    provenance: Mapping[str, Any]

    def __call__(self, request: ImageRequest) -> Surrogates:
        """Surrogates of an image, from ``request.samples`` images."""
        z = switches(request.samples, request.image.size, self._stream(request))
        # what may be refused comes before what may be long
        far = distances(z, request.metric)
        said = asked(request.answers, z, progress=request.progress)
        chosen = (request.labels, request.features, self.selection, request.regressor)
        fits = self.base.fits(z, said, far, *chosen)
        labels = request.image.labels
        conditions = metadata.conditions(labels)
        told = explained(
            fits,
            "classification",
            predictions=request.said[request.labels],
            feature_names=metadata.names(request.image.size),
            conditions=(conditions,),
            data=metadata.areas(labels),
            calls=np.array([request.samples]),
            provenance={
                **self.provenance,
                "meaning": metadata.MEANING,
                **metadata.picture(request.image, conditions),
            },
        )
        scores = partial(dict[int, float], {k: fit.score for k, fit in fits.items()})
        return Surrogates(fits, scores, request.said, lambda: (float(said.min()), float(said.max())), told)

    def _stream(self, request: ImageRequest) -> np.random.Generator:
        """Of the seed, the image and its superpixels alone."""
        return np.random.default_rng([self.seed, *metadata.fingerprint(request.image)])
