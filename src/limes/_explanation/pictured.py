"""Masks and heat maps of an explanation of an image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limes._explanation.drawing import drawer

if TYPE_CHECKING:
    from limes._arrays import Bools, Floats


class Pictured:
    """Coefficients of superpixels as arrays of pixels."""

    def mask(
        self, output: str | int | None = None, *, top: int = 5, sign: str = "+", of: str = "explained"
    ) -> Bools:
        """Return which pixels belong to the superpixels that matter most, (H, W).

        Parameters
        ----------
        output : name or position
            The output with the largest prediction, unless given.
        top, sign : int, and "+", "-" or "both"
            Largest number of superpixels, and the sign of their coefficients.
        of : "explained" or "image"
            Pixels of the image as the network gets it, cropped and scaled; or of the image as it was passed.

        Raises
        ------
        InputError
            The explanation is not of an image, or an option is not valid.
        """
        mask: Bools = drawer("images").mask(self, output, top, sign, of)
        return mask

    def heatmap(self, output: str | int | None = None, *, of: str = "explained") -> Floats:
        """Return the coefficient of each pixel's superpixel, (H, W); NaN outside of what is explained.

        Parameters
        ----------
        output : name or position
            The output with the largest prediction, unless given.
        of : "explained" or "image"
            See :meth:`mask`.

        Raises
        ------
        InputError
            The explanation is not of an image, or an option is not valid.
        """
        heatmap: Floats = drawer("images").heatmap(self, output, of)
        return heatmap
