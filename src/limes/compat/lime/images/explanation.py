"""What lime's explainer of images returns: coefficients of segments, and pictures of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from limes.compat.lime.domain_mapper import DomainMapper, Pairs
from limes.compat.lime.explanation import Explanation
from limes.exceptions import InputError

__all__ = ["ImageExplanation", "SegmentMapper", "coloured"]


class SegmentMapper(DomainMapper):
    """Names of segments."""

    def map_exp_ids(self, exp: Pairs, **kwargs: Any) -> list[tuple[Any, float]]:  # noqa: ARG002 - lime's signature
        """Replace numbers of segments by names."""
        return [(f"superpixel {segment}", value) for segment, value in exp]


class ImageExplanation(Explanation):
    """One image's surrogates, one a label; all that explanations of tables have, and pictures.

    Parameters
    ----------
    image : (H, W, C) or (H, W)
    segments : (H, W)
        Superpixels, any whole numbers; features are called by them.

    Attributes
    ----------
    local_exp, standard_errors : {label: [(segment, coefficient or its standard error)]}
        Largest coefficient first.
    top_labels, intercept, local_pred, score, predict_proba, engine, engine_reason, limes
        As :class:`limes.compat.lime.explanation.Explanation` has them.
    """

    def __init__(self, image: Any, segments: Any) -> None:
        super().__init__(SegmentMapper())
        self.image = image
        self.segments = segments

    def get_image_and_mask(
        self,
        label: int,
        positive_only: bool = True,
        negative_only: bool = False,
        hide_rest: bool = False,
        num_features: int = 5,
        min_weight: float = 0.0,
    ) -> tuple[Any, Any]:
        """The image with the largest superpixels of a label, and where they are.

        Parameters
        ----------
        label
            One that was explained.
        positive_only, negative_only
            Only superpixels that speak for the label, or only those against it; with neither both are shown,
            in green and red.
        hide_rest
            Black out the rest of the image.
        num_features
            How many superpixels at most.
        min_weight
            Least size of their coefficients.

        Returns
        -------
        image, mask
            An array of the image's type; (H, W), 1 where superpixels are shown, -1 where both kinds are and
            they speak against it, and 0 elsewhere.

        Raises
        ------
        UnknownLabelError
            A label that was not explained; it is a KeyError and a LimeError.
        InputError
            Both positive_only and negative_only.
        """
        pairs = self.local_exp[self._known(label)]
        if positive_only and negative_only:
            raise InputError("positive_only and negative_only exclude each other: give one, or neither")
        sign = 1 if positive_only else -1 if negative_only else 0
        mask = self._signs(_largest(pairs, sign, num_features, min_weight))
        image = coloured(self.image)
        shown = np.where((mask != 0)[..., None], image, 0).astype(image.dtype) if hide_rest else image.copy()
        if sign:
            return shown, np.abs(mask)
        for place, speaking in enumerate((-1, 1)):
            shown[mask == speaking, place] = image.max()
        return shown, mask

    def _signs(self, pairs: Pairs) -> Any:
        """(H, W), the sign of each segment's coefficient, 0 of segments that are not among the pairs."""
        names, places = np.unique(self.segments, return_inverse=True)
        signs = np.zeros(len(names), dtype=np.int64)
        for segment, value in pairs:
            signs[np.searchsorted(names, segment)] = -1 if value < 0 else 1
        return signs[places].reshape(np.shape(self.segments))

    def _place(self, feature: int) -> int:
        """Superpixels are counted from 0 there, whatever they are called."""
        return int(np.searchsorted(np.unique(self.segments), feature))


def _largest(pairs: Pairs, sign: int, count: int, least: float) -> Pairs:
    """As lime has them: the first ``count`` of one sign that are large enough, or those of the first."""
    if sign:
        return [(j, value) for j, value in pairs if sign * value > max(least, 0.0)][:count]
    return [(j, value) for j, value in pairs[:count] if abs(value) >= least]


def coloured(image: Any) -> Any:
    """(H, W, C) with three colours or more."""
    planes = image[..., None] if np.ndim(image) == 2 else image
    return np.repeat(planes, 3, axis=2) if planes.shape[2] == 1 else planes
