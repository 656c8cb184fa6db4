"""What a model of images is called with where superpixels are hidden, and its form over superpixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from limes.models._calling.networks import Preprocess, composer_of, flat
from limes.models._images import Compose, SwitchedImage
from limes.models.forms._base import Form
from limes.models.forms._switches import Switches, over_switches


@dataclass(frozen=True, eq=False)
class ImageInputs:
    """An image as the input of a model: see :class:`SwitchedInputs`.

    Attributes
    ----------
    image, preprocess
        The image, and what makes the model's input of it.
    compose
        Rows z (n, d) -> a batch of n inputs.
    """

    image: SwitchedImage
    preprocess: Preprocess | None
    compose: Compose
    parts: ClassVar[str] = "superpixels"

    @classmethod
    def of_model(cls, model: Any, image: SwitchedImage, preprocess: Preprocess | None) -> ImageInputs:
        """Return the inputs that a class of models takes.

        Raises
        ------
        InputError
            If the model does not take such an image.
        """
        return cls(image, preprocess, composer_of(model, image, preprocess))

    @property
    def size(self) -> int:
        """Number of superpixels d."""
        return self.image.size

    def over(self, form: Form) -> Form:
        """Return the form of an estimator, which takes rows of numbers, over superpixels."""
        row = flat(self.image, self.preprocess)
        return over_switches(form, Switches(row.shown[0], row.fill[0], row.labels[0]))
