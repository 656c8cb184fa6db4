"""Explain images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Never

import numpy as np

from limes import __version__
from limes._arrays import Floats, Ints
from limes._lru import LRUCache
from limes.designs.exchangeable import BANDWIDTH, ExchangeableDesign
from limes.designs.weights import check_bandwidth
from limes.diagnostics.context import SubsetContext
from limes.exceptions import InputError, ModelError
from limes.explainers import image_facts
from limes.explainers.classes import labels_of, link_of
from limes.explainers.doubts import doubts
from limes.explainers.fills import filled, filler
from limes.explainers.found import found
from limes.explainers.image_subject import ImageModel, ImageSubject
from limes.explainers.options import check_choice, check_count, check_size, refuse_unknown
from limes.explainers.pixels import checked_image, listed
from limes.explainers.progress import progress_of
from limes.explainers.sampling import sampling_of
from limes.explainers.scenes import subset_context
from limes.explainers.several import explained_each
from limes.explainers.superpixels import segmenter, superpixels
from limes.explainers.switched import CONTROLS
from limes.explainers.unfinished import UNFINISHED
from limes.explanation import Explanation
from limes.models.calling.caller import Retry
from limes.models.calling.networks import Preprocess
from limes.models.images import SwitchedImage
from limes.pipeline import METHODS, Expectation, Fitted, fitted_at


class ImageExplainer:
    r"""Explain predictions on images: what LIME converges to, with few calls, or exactly.

    The surrogate is g = β₀ + Σ_j β_j z_j, where z_j says that superpixel j is shown, and not filled, and
    minimises E_w (f - g)², where each superpixel is switched off with probability ½, and s of d that are off
    weigh exp(-(1 - √(1 - s/d))² / (2ν²)).

    Parameters
    ----------
    model
        A ``torch.nn.Module``; an ONNX Runtime session; a fitted estimator, which gets images flattened to
        rows; or a callable (or anything with ``predict``) that takes a batch of images and gives (n,) or
        (n, k). A batch is a buffer that the next call overwrites: copy what you keep.
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
        with channels first for torch, and as an ONNX file says.
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
        self._method = check_choice("method", method, METHODS)
        self._control = check_choice("control", control, CONTROLS)
        self._sampling = sampling_of(
            max_calls=max_calls, tolerance=tolerance, rng=rng, batch_size=batch_size, retry=retry
        )
        self._segment, self._fill = segmenter(segments, segment_options), filler(fill)
        self._bandwidth = check_bandwidth(bandwidth)
        self._ridge = check_size("ridge", ridge, zero=True)
        self._preprocess = _checked_preprocess(preprocess)
        self._model = ImageModel(
            model, preprocess, link_of(link), output, check_count("top", top), labels_of(labels)
        )
        # answers that images have got before a model failed; the same call goes on from them
        self._unfinished: LRUCache[tuple[int, ...], Expectation] = LRUCache(UNFINISHED)
        self._provenance = {
            "meaning": image_facts.MEANING,
            "limes": __version__,
            "model": type(model).__name__,
            "segments": _said(segments),
            "fill": _said(fill),
            "link": link,
            "bandwidth": float(bandwidth),
            "ridge": self._ridge,
        }

    def __call__(self, images: Any, *, progress: bool = True) -> Any:
        """Explain one image, or each of several.

        Parameters
        ----------
        images
            (H, W) or (H, W, C) of any numbers, C = 1, 3 or 4, gives an explanation of one row; a list of
            them, or (n, H, W, C), a list of explanations.
        progress
            Show a progress bar when it takes more than a second or two.

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
        several = listed(images)
        if several is None:
            return self._explained(self._switched(images), progress=progress)
        switched = [self._switched(image, i) for i, image in enumerate(several)]
        return explained_each(
            switched, lambda one: self._explained(one, progress=False), progress=progress, name="images"
        )

    def _switched(self, image: Any, place: int | None = None) -> SwitchedImage:
        try:
            pixels = self._preprocess.fit(checked_image(image))
            labels = superpixels(self._segment, pixels)
            return SwitchedImage(pixels, filled(self._fill, pixels, labels), labels)
        except InputError as error:
            raise error if place is None else InputError(f"image {place}: {error}") from None

    def _explained(self, image: SwitchedImage, *, progress: bool) -> Explanation:
        design = ExchangeableDesign.superpixel_switches(image.size, self._bandwidth)
        subject = self._subject(image, design)
        predictions = subject.switched.ask(design.at_instance[None])
        key = image_facts.fingerprint(image)
        expectation = self._unfinished.take(key) or self._expectation(subject, design)
        try:
            fitted = fitted_at(
                design,
                expectation,
                predictions,
                penalty=self._ridge or None,
                progress=progress_of(shown=progress),
                names=image_facts.names(image.size),
            )
        except (ModelError, KeyboardInterrupt):
            self._unfinished.put(key, expectation)
            raise
        return self._explanation(image, subject, predictions, fitted)

    def diagnostic_context_of(
        self, image: SwitchedImage, explanation: Explanation, *, output: Ints, calls: int | None
    ) -> SubsetContext:
        """What ``limes.diagnose`` asks of an explained image."""
        make = ExchangeableDesign.superpixel_switches
        design = make(image.size, self._bandwidth)
        subject = self._subject(image, design)
        expectation = self._expectation(subject, design)
        return subset_context(
            explanation,
            expectation,
            subject.switched.ask,
            make,
            outputs=subject.outputs,
            output=output,
            calls=calls,
        )

    def _subject(self, image: SwitchedImage, design: ExchangeableDesign) -> ImageSubject:
        subject = self._model.at(image)
        if self._method == "sampled":
            return subject
        return replace(subject, switched=subject.switched.verified(design))

    def _expectation(self, subject: ImageSubject, design: ExchangeableDesign) -> Expectation:
        return subject.switched.expectation(
            design,
            method=self._method,
            sampling=self._sampling,
            control=self._control,
            features="superpixels",
        )

    def _explanation(
        self, image: SwitchedImage, subject: ImageSubject, predictions: Floats, fitted: Fitted
    ) -> Explanation:
        exact = fitted.sampled is None
        names = image_facts.names(image.size)
        conditions = image_facts.conditions(image.labels)
        # some answers of many need not add up to 1
        added = predictions if subject.all_of_them else predictions.reshape(1, -1)[:, :1]
        doubtful = doubts(fitted, added, names, subject.outputs, max_calls=self._sampling.max_calls)
        return Explanation(
            **found(fitted),
            predictions=predictions,
            feature_names=names,
            output_names=subject.outputs,
            conditions=(conditions,),
            data=image_facts.areas(image.labels),
            method="exact" if exact else "sampled",
            reason=_how(fitted) if exact else subject.switched.reason,
            row_warnings=(doubtful.get(0, ()) + _alone(image),),
            provenance={
                **self._provenance,
                "seed": None if exact else self._sampling.seed,
                **image_facts.picture(image, conditions),
            },
            explainer=_Made(self, image),
        )


@dataclass(frozen=True, eq=False)
class _Made:
    """An explainer, and the image that it explained: both are needed to ask again."""

    explainer: ImageExplainer
    image: SwitchedImage

    def diagnostic_context(
        self, explanation: Explanation, *, output: Ints, calls: int | None
    ) -> SubsetContext:
        return self.explainer.diagnostic_context_of(self.image, explanation, output=output, calls=calls)


def _alone(image: SwitchedImage) -> tuple[str, ...]:
    if image.size > 1:
        return ()
    return (
        "the whole image is one superpixel: its coefficient compares the image with its fill; choose other "
        "segments",
    )


def _how(fitted: Fitted) -> str:
    """Why an explanation is exact, where the model was not read."""
    return "the model was asked about every subset of the superpixels" if fitted.calls.any() else ""


def _said(option: Any) -> Any:
    """An option as a fact."""
    return option if isinstance(option, str | int | float) else type(option).__name__


def _checked_preprocess(preprocess: Any) -> Preprocess:
    if preprocess is not None and not isinstance(preprocess, Preprocess):
        raise InputError(
            f"preprocess must be a limes.Preprocess, such as limes.Preprocess(mean=127, scale=128); got "
            f"{preprocess!r}; a callable on batches of images is passed as the model itself"
        )
    return preprocess or Preprocess()
