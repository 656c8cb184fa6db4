"""Explain images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Never

import numpy as np

from limes import __version__
from limes._checks import refuse_unknown
from limes._explainers._masked import CONTROLS, Description, MaskedExplainer, MaskedModel
from limes._explainers.images.inputs import ImageInputs
from limes._explainers.images.pixels import (
    MEANING,
    Photograph,
    as_list,
    checked_image,
    image_areas,
    image_conditions,
    image_fingerprint,
    image_picture,
    photo_picture,
    superpixel_names,
)
from limes._explainers.images.superpixels import filled, filler, segmenter, superpixels
from limes._explainers.options import SamplingOptions
from limes._explainers.switched_model import SwitchedModel
from limes.designs._exchangeable import BANDWIDTH, ExchangeableDesign
from limes.exceptions import InputError
from limes.models._calling.caller import Retry
from limes.models._calling.hugging_face import adapted
from limes.models._calling.networks import Preprocess
from limes.models._images import SwitchedImage

_ONE_SUPERPIXEL = (
    "the whole image is one superpixel: its coefficient compares the image with its fill; choose other "
    "segments"
)


class ImageExplainer(MaskedExplainer[Photograph]):
    r"""Explain predictions on images: what LIME converges to, with few calls, or exactly.

    The surrogate is g = β₀ + Σ_j β_j z_j, where z_j says that superpixel j is shown, and not filled, and
    minimises E_w (f - g)², where each superpixel is switched off with probability ½, and s of d that are off
    weigh exp(-(1 - √(1 - s/d))² / (2ν²)).

    Parameters
    ----------
    model
        A ``torch.nn.Module``; an ONNX Runtime session; a fitted estimator, which gets images flattened to
        rows; of ``transformers`` an image-classification pipeline, or a pair (network, image processor); or a
        callable (or anything with ``predict``) that takes a batch of images and gives (n,) or (n, k). A
        batch is a buffer that the next call overwrites: copy what you keep.
    segments
        "quickshift", "slic", "felzenszwalb", "watershed" or "grid"; whole numbers (H, W), any; or a callable
        image -> labels. All by name but "grid" need scikit-image.
    segment_options
        Of a segmentation by name, such as ``{"n_segments": 50}``.
    fill
        What is shown where a superpixel is off: "mean" (its own mean colour), "blur", "inpaint" (its
        surroundings), a colour, an image, or a callable (image, labels) -> image.
    bandwidth
        ν > 0, infinity allowed; ``lime`` uses 0.25.
    output
        None: the ``top`` largest answers, of all that the model gives. A name or a position of an answer, or
        a list of them. Of estimators also "margin" and "probability".
    top
        How many answers are explained if ``output`` names none; all from the same calls.
    labels
        Names of the answers: a list, or a text file of one a line.
    link
        "softmax" or "sigmoid", put on the answers of networks that give logits.
    preprocess
        :class:`limes.Preprocess`: what a network is given for an image. The default is pixels as they are,
        with channels first for torch, and as an ONNX file says. Where it crops, the edges of a photograph are
        outside of what is explained; ``explanation.mask(of="image")`` has the photograph's pixels.
    ridge
        0, or the penalty of ``lime``'s own fit on 1000 rows (``lime`` uses 1).
    batch_size
        Images that the model is given at once; memory grows with it, not with ``max_calls``.
    method, tolerance, max_calls, rng, retry
        As for :class:`limes.TabularExplainer`. A model that cannot be read is asked about all 2^d images, and
        explained exactly, where they are no more than ``max_calls``.
    control
        What takes variance away from the sampler: "none"; "kernel", kernels of superpixels that matter;
        "process", a Gaussian process, which leaves a half of what kernels leave, and takes some tenths of a
        second; "margin" of models with a link, where the margin can be read. "auto" is the margin if there
        is one, the process for networks (ONNX, torch), and kernels for callables.

    Raises
    ------
    InputError
        If an option is not usable.

    References
    ----------
    Ribeiro et al. 2016; Garreau & von Luxburg, "Explaining the Explainer", 2020, figure 1.

    Examples
    --------
    >>> import numpy as np
    >>> import limes
    >>> def redness(images):
    ...     return images[..., 0].mean(axis=(1, 2)) / 255
    >>> image = np.zeros((4, 4, 3), dtype=np.uint8)
    >>> image[:2, :2, 0] = 200
    >>> explainer = limes.ImageExplainer(
    ...     redness, segments="grid", segment_options={"rows": 2, "columns": 2}, fill=0)
    >>> explanation = explainer(image)
    >>> explanation.method, (explanation.values[0].round(3) + 0.0).tolist()
    ('exact', [0.196, 0.0, 0.0, 0.0])
    """

    _kind = "image"
    _features = "superpixels"
    _design = staticmethod(ExchangeableDesign.superpixel_switches)

    def __init__(
        self,
        model: Any,
        *,
        segments: Any = "quickshift",
        segment_options: Mapping[str, Any] | None = None,
        fill: Any = "mean",
        bandwidth: float = BANDWIDTH,
        output: Any = None,
        top: int = 5,
        labels: Sequence[str] | str | Path | None = None,
        link: str | None = None,
        preprocess: Preprocess | None = None,
        ridge: float = 0.0,
        method: str = "auto",
        tolerance: float | str | None = None,
        max_calls: int = 1000,
        control: str = "auto",
        rng: int | np.random.Generator | np.random.SeedSequence | None = None,
        batch_size: int = 64,
        retry: Retry | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, ImageExplainer)
        options = SamplingOptions(
            method, tolerance, max_calls, control, rng, batch_size, retry, controls=CONTROLS
        )
        self._segment, self._fill = segmenter(segments, segment_options), filler(fill)
        self._preprocess = _checked(preprocess)
        name = type(model).__name__
        model = adapted(model)
        self._model = SwitchedModel.of(model, output=output, top=top, labels=labels, link=link)
        provenance = {
            "meaning": MEANING,
            "limes": __version__,
            "model": name,
            "segments": _plain(segments),
            "fill": _plain(fill),
            "link": link,
        }
        super().__init__(options, bandwidth, ridge, provenance)

    def __call__(self, images: Any, *, progress: bool = True, workers: int = 1) -> Any:
        """Explain one image, or each of several.

        Parameters
        ----------
        images
            (H, W) or (H, W, C) of any numbers, C = 1, 3 or 4, gives an explanation of one row; a list of
            them, or (n, H, W, C), a list of explanations.
        progress
            Show a progress bar when it takes more than a second or two.
        workers
            Images that are explained at the same time, each in its own thread: for models that wait for
            something, or release the interpreter.

        Raises
        ------
        InputError
            If it is no image, or none that the model takes: says which.
        ModelError
            If the model fails; its ``partial`` has the explanations of the images before.
        NotReadableError
            If ``method="exact"`` and the model cannot be read.
        ReadMismatchError
            If what was read off the model does not answer what the model answers.
        Interrupted
            If the user stops it (Ctrl-C), with the same ``partial``; a KeyboardInterrupt.
        """
        several = as_list(images)
        if several is None:
            return self._explain(images, progress=progress)
        return self._explain_each(several, progress=progress, workers=workers)

    def _parse(self, raw: Any) -> Photograph:
        photo = checked_image(raw)
        framing = (self._preprocess or Preprocess()).framing(photo)
        pixels = framing.apply(photo)
        labels = superpixels(self._segment, pixels)
        return Photograph(photo, framing, SwitchedImage(pixels, filled(self._fill, pixels, labels), labels))

    def _bind(self, item: Photograph) -> MaskedModel:
        return self._model.bind(ImageInputs.of_model(self._model.model, item.image, self._preprocess))

    def _names(self, item: Photograph) -> tuple[str, ...]:
        return superpixel_names(item.image.size)

    def _key(self, item: Photograph) -> tuple[int, ...]:
        return image_fingerprint(item.image)

    def _describe(self, item: Photograph) -> Description:
        image = item.image
        conditions = image_conditions(image.labels)
        warnings = () if image.size > 1 else (_ONE_SUPERPIXEL,)
        picture = image_picture(image, conditions) | photo_picture(item)
        return Description(conditions, image_areas(image.labels), warnings, picture)


def _plain(option: Any) -> Any:
    """Return an option as provenance holds it."""
    return option if isinstance(option, str | int | float) else type(option).__name__


def _checked(preprocess: Any) -> Preprocess | None:
    if preprocess is not None and not isinstance(preprocess, Preprocess):
        raise InputError(
            f"preprocess must be a limes.Preprocess, such as limes.Preprocess(mean=127, scale=128); got "
            f"{preprocess!r}; a callable on batches of images is passed as the model itself"
        )
    return preprocess
