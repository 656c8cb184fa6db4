"""Explain images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Never

import numpy as np

from limes import __version__
from limes._arrays import Bools
from limes._checks import check_count, refuse_unknown
from limes._explainers._masked import CONTROLS, Description, MaskedExplainer, MaskedModel
from limes._explainers.images.fills import averaged, fills_of
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
    range_remark,
    superpixel_names,
)
from limes._explainers.images.superpixels import filled, segmenter, superpixels
from limes._explainers.options import SamplingOptions
from limes._explainers.switched_model import SwitchedModel
from limes._explainers.unidentified import explained
from limes._explanation import Explanation
from limes.designs._exchangeable import BANDWIDTH, ExchangeableDesign
from limes.exceptions import InputError
from limes.models._algebra import over_switches
from limes.models._calling.caller import Retry
from limes.models._calling.hugging_face import adapted
from limes.models._calling.networks import Preprocess, composer_of, flat, preprocess_like
from limes.models._images import Compose, SwitchedImage
from limes.models.forms._base import Form
from limes.models.forms._presence import Switches

_ONE_SUPERPIXEL = (
    "the whole image is one superpixel: its coefficient compares the image with its fill; choose other "
    "segments"
)


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


class ImageExplainer(MaskedExplainer[Photograph]):
    r"""Explain predictions on images by LIME's limit: with few calls, or exactly.

    The surrogate g = β₀ + Σ_j β_j z_j minimises E_w (f - g)², with z_j = 1 if superpixel j is shown, 0 if it
    is filled. Each superpixel is switched off with probability ½; an image with s of d switched off has
    weight exp(-(1 - √(1 - s/d))² / (2ν²)).

    Parameters
    ----------
    model
        A ``torch.nn.Module``; an ONNX Runtime session; a fitted estimator, which gets images flattened to
        rows; of ``transformers`` an image-classification pipeline, or a pair (network, image processor); or a
        callable (or anything with ``predict``) that takes a batch of images and returns (n,) or (n, k). The
        next call overwrites the batch: copy what you keep.
    segments
        "quickshift", "slic", "felzenszwalb", "watershed" or "grid"; an array of integers (H, W); or a
        callable image -> labels. All names but "grid" need scikit-image.
    segment_options
        Options of a segmentation by name, such as ``{"n_segments": 50}``; the patches of a vision transformer
        are ``segments="grid"`` with ``{"rows": 14, "columns": 14}``, for 224 pixels and patches of 16.
    fill
        What is shown where a superpixel is off: "mean" (its own mean colour, or the whole image's where the
        superpixel is plain), "blur", "inpaint" (its surroundings), a colour, an image, or a callable (image,
        labels) -> image. A superpixel that looks the same when it is off has a NaN coefficient, with a
        warning. A list of these,
        ``["mean", "blur"]``, explains the image with each, by an equal part of ``max_calls``, and averages
        the coefficients: the surrogate of images whose fill is drawn at random. ``provenance["by_fill"]``
        has the coefficients of each, ``provenance["fill_spread"]`` their standard deviation over the fills.
    bandwidth
        ν > 0, infinity allowed; ``lime`` uses 0.25.
    output
        None: the ``top`` largest outputs of the model. A name or a position of an output, or a list of them.
        For estimators also "margin" and "probability".
    top
        How many outputs are explained if ``output`` is None; all from the same calls.
    labels
        Names of the outputs: a list, or a text file with one name a line.
    link
        "softmax" or "sigmoid", applied to the outputs of networks that return logits. Pairs and pipelines of
        ``transformers`` apply their function themselves, as for :class:`limes.TextExplainer`.
    preprocess
        :class:`limes.Preprocess`: how an image becomes a network's input; or torchvision's
        ``weights.transforms()`` or composition of transforms, or an image processor of ``transformers``,
        whose settings are read. The default is pixels as they are, with channels first for torch, and as an
        ONNX file says. Where it crops, the edges of a photograph are outside of what is explained;
        ``explanation.mask(of="image")`` has the photograph's pixels.
    ridge
        0, or the penalty of ``lime``'s own fit on 1000 rows (``lime`` uses 1).
    batch_size
        Images in one call of the model; memory grows with it, not with ``max_calls``.
    method, tolerance, max_calls, rng, retry
        As for :class:`limes.TabularExplainer`. A model that cannot be read is asked about all 2^d images, and
        explained exactly, where they are no more than ``max_calls``.
    control
        The control variate that reduces the sampler's variance: "none"; "logistic", a linear model of the log
        odds of probabilities; "kernel", kernels of superpixels that matter; "process", a Gaussian process,
        which leaves half the variance that kernels leave, and takes some tenths of a second; "margin" of
        models with a link, where the margin can be read. "auto" is the margin if there is one, else the
        logistic model or, if it leaves less, the process for networks (ONNX, torch), kernels for callables.

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
    >>> image = np.full((4, 4, 3), 50, dtype=np.uint8)
    >>> image[:2, :2, 0] = 200
    >>> explainer = limes.ImageExplainer(
    ...     redness, segments="grid", segment_options={"rows": 2, "columns": 2}, fill=0)
    >>> explanation = explainer(image)
    >>> explanation.method, (explanation.values[0].round(3) + 0.0).tolist()
    ('exact', [0.196, 0.049, 0.049, 0.049])
    """

    _kind = "image"
    _several = "images"
    _features = "superpixels"
    _advice = "use another fill"
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
        preprocess: Any = None,
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
        self._segment, self._fills = segmenter(segments, segment_options), fills_of(fill)
        if check_count("max_calls", max_calls) < len(self._fills):
            raise InputError(
                f"max_calls={max_calls} is less than a call for each of {len(self._fills)} fills"
            )
        calls = max_calls // len(self._fills)
        options = SamplingOptions(
            method, tolerance, calls, control, rng, batch_size, retry, controls=CONTROLS
        )
        self._preprocess = _checked(preprocess)
        name = type(model).__name__
        model = adapted(model)
        self._model = SwitchedModel.of(model, output=output, top=top, labels=labels, link=link)
        provenance = {
            "meaning": MEANING,
            "limes": __version__,
            "model": name,
            "segments": _plain(segments),
            "fill": _plain(fill) if len(self._fills) == 1 else ", ".join(self._fills),
            "link": link,
        }
        super().__init__(options, bandwidth, ridge, provenance)

    def __call__(self, images: Any, *, progress: bool = True, workers: int = 1) -> Any:
        """Explain one image, or each of several.

        Parameters
        ----------
        images
            (H, W) or (H, W, C) of any numbers, C = 1, 3 or 4, or a picture of PIL, read by its mode, gives
            an explanation of one row; a list of them, or (n, H, W, C), a list of explanations.
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

    def _explain_item(self, item: Photograph, *, progress: bool, changes: Bools | None = None) -> Explanation:
        """Explain an image; with several fills, the average over them."""
        explain = partial(super()._explain_item, progress=progress)
        if len(self._fills) == 1:
            return explain(item, changes=changes)
        items = {name: _filled(item, fill) for name, fill in self._fills.items()}
        # an average needs the coefficients of all fills, under one design
        changes = np.all([self._changes(one) for one in items.values()], axis=0)
        by_fill = {name: explain(one, changes=changes) for name, one in items.items()}
        return averaged(by_fill, self._design(int(explained(changes).sum()), self._bandwidth))

    def _parse(self, raw: Any) -> Photograph:
        photo = checked_image(raw)
        range_remark(photo, self._preprocess)  # refuses before the model is asked
        framing = (self._preprocess or Preprocess()).framing(photo)
        pixels = framing.apply(photo)
        labels = superpixels(self._segment, pixels)
        first = filled(next(iter(self._fills.values())), pixels, labels)
        return Photograph(photo, framing, SwitchedImage(pixels, first, labels))

    def _bind(self, item: Photograph) -> MaskedModel:
        return self._model.bind(ImageInputs.of_model(self._model.model, item.image, self._preprocess))

    def _names(self, item: Photograph) -> tuple[str, ...]:
        return superpixel_names(item.image.size)

    def _key(self, item: Photograph) -> tuple[int, ...]:
        return image_fingerprint(item.image)

    def _describe(self, item: Photograph) -> Description:
        image = item.image
        conditions = image_conditions(image.labels)
        remark = range_remark(item.photo, self._preprocess)
        warnings = (*([remark] if remark else []), *([] if image.size > 1 else [_ONE_SUPERPIXEL]))
        picture = image_picture(image, conditions) | photo_picture(item)
        return Description(conditions, image_areas(image.labels), warnings, picture)


def _filled(item: Photograph, fill: Any) -> Photograph:
    """Return the same photograph and superpixels with another fill."""
    image = item.image
    return replace(item, image=replace(image, fill=filled(fill, image.shown, image.labels)))


def _plain(option: Any) -> Any:
    """Return an option as provenance holds it."""
    return option if isinstance(option, str | int | float) else type(option).__name__


def _checked(preprocess: Any) -> Preprocess | None:
    read = None if preprocess is None else preprocess_like(preprocess)
    if preprocess is not None and read is None:
        raise InputError(
            f"preprocess must be a limes.Preprocess, such as limes.Preprocess(mean=127, scale=128), "
            f"torchvision's weights.transforms(), or an image processor of transformers; got {preprocess!r}; "
            "a callable on batches of images is passed as the model itself"
        )
    return read
