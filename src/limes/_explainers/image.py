"""Explain images, whose superpixels are shown or filled, with one fill or several.

An image is grey, RGB or RGBA, of whole numbers or fractions. A segmentation by name is a function of an RGB
image (H, W, 3) of numbers between 0 and 1.

The surrogate of several fills is that of images of which each shows one of m fills, drawn at random. f_i is
the model over z with fill i, and β_i, ρ_i its surrogate and R². As z and the fill are independent, Cov(z, f)
is the mean of the fills' own, and so are the coefficients:

    β = Σ_i β_i / m,      standard error² = Σ_i error_i² / m²,      spread_j = deviation of β_ij over i,

    1 - R² = Σ_i [(1 - ρ_i) v_i + E_w (g_i - g)²] / Σ_i [v_i + (E_w f_i - mean)²],     v_i = β_iᵀ Σ β_i / ρ_i.

The spread is no error: it says how much depends on what a superpixel is replaced by.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any, TypeAlias, Unpack

import numpy as np

from limes._arrays import ROUNDING, Bools, Floats, Ints, Objects, first_of_each, r_squared
from limes._checks import check_choice, check_count, require, unknown_option
from limes._explainers.masked import MaskableModel, MaskedExplainer, MaskedInput
from limes._explainers.options import MaskedKeywords, complete, takes
from limes._explainers.subset_fits import identified
from limes._explanation import Explanation
from limes._explanation.contributions import Contributions
from limes._explanation.fit import account_at
from limes._explanation.json import labels_to_data_url, to_data_url
from limes._explanation.row_warning import RowWarning, by_output
from limes.designs._exchangeable import BANDWIDTH, ExchangeableDesign
from limes.exceptions import InputError
from limes.models._algebra import over_switches
from limes.models._calling.hugging_face import adapted
from limes.models._images import (
    PLANES,
    Framing,
    MaskedImage,
    Preprocess,
    changed,
    composer_of,
    flat,
    pixels_of,
    preprocess_like,
    several_of,
)
from limes.models.forms._base import Form

MEANING = "change of the surrogate when the superpixel is shown against when it is filled"
_ONE_SUPERPIXEL = (
    "the whole image is one superpixel: its coefficient compares the image with its fill; choose other "
    "segments"
)
# What an average of explanations does not have
_NOT_AVERAGED: dict[str, Any] = dict.fromkeys(
    ("shares", "share_errors", "controls", "effective_rows", "explainer", "fit")
)
# Coefficients of two fills differ where zero is this many standard errors away from both, on other sides
_CERTAIN = 2.0
# Superpixels of an output that a warning names
_MOST_NAMED = 3
# Smallest R² that a variance is computed from
_LEAST = 1e-6
# The longest side of a photograph that an explanation stores beside the part that is explained
_LONGEST_SIDE = 512


@takes(MaskedKeywords, max_calls=1000, batch_size=64)
class ImageExplainer(MaskedExplainer["Photograph"]):
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
        "softmax" or "sigmoid", applied to the outputs of networks that return logits; None explains the
        outputs as they are. "auto" is the softmax where a network (torch, ONNX) that cannot be read answers
        numbers that are no probabilities, one for each of the ``labels``. Pairs and pipelines of
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
    method, tolerance, max_calls, rng, retry, contributions, threshold
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
    _feature = "superpixel"
    _hidden = "filled"
    _meaning = MEANING
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
        preprocess: Any = None,
        ridge: float = 0.0,
        **options: Unpack[MaskedKeywords],
    ) -> None:
        chosen = complete(ImageExplainer, options)
        segment, self._fills = segmenter(segments, segment_options), _fills(fill)
        calls = check_count("max_calls", chosen["max_calls"])
        if calls < len(self._fills):
            raise InputError(f"max_calls={calls} is less than a call for each of {len(self._fills)} fills")
        chosen["max_calls"] = calls // len(self._fills)
        first, preprocess = next(iter(self._fills.values())), _preprocess(preprocess)
        self._model = MaskableModel.of(adapted(model), chosen)
        super().__init__(
            model,
            partial(Photograph.parse, segment=segment, fill=first, preprocess=preprocess),
            chosen,
            bandwidth,
            ridge,
            segments=segments,
            fill=fill if len(self._fills) == 1 else ", ".join(self._fills),
        )

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
            Images that are explained at the same time, each in its own thread.

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
        return self._explain(images, several_of(images), progress=progress, workers=workers)

    def _explain_item(
        self, item: Photograph, *, progress: bool, changes: Bools | None = None, inputs: int = 1
    ) -> Explanation:
        explain = partial(super()._explain_item, progress=progress, inputs=inputs)
        if len(self._fills) == 1:
            return explain(item, changes=changes)
        shown, labels = item.image.shown, item.image.labels
        fills = {name: filled(fill, shown, labels) for name, fill in self._fills.items()}
        items = {name: replace(item, image=replace(item.image, fill=fill)) for name, fill in fills.items()}
        # an average needs the coefficients of all fills, under one design
        changes = np.all([self._changes(one) for one in items.values()], axis=0)
        by_fill = {name: explain(one, changes=changes) for name, one in items.items()}
        return _averaged(by_fill, self._design(int(identified(changes).sum()), self._bandwidth))

    def _remarks(self, item: Photograph) -> tuple[str, ...]:
        one = _ONE_SUPERPIXEL if item.image.size == 1 else ""
        return tuple(filter(None, (range_remark(item.photo, item.preprocess), one)))


def _preprocess(preprocess: Any) -> Preprocess | None:
    read = None if preprocess is None else preprocess_like(preprocess)
    if preprocess is not None and read is None:
        raise InputError(
            f"preprocess must be a limes.Preprocess, such as limes.Preprocess(mean=127, scale=128), "
            f"torchvision's weights.transforms(), or an image processor of transformers; got {preprocess!r}; "
            "a callable on batches of images is passed as the model itself"
        )
    return read


# -- several fills -------------------------------------------------------------------------------------------


def _fills(fill: Any) -> dict[str, Fill]:
    """The option ``fill`` as functions by name: one, or those of a list that is no colour."""
    several = isinstance(fill, list | tuple) and any(
        not isinstance(one, int | float | np.number) for one in fill
    )
    if not several:
        return {_name(fill, 0): filler(fill)}
    named = {_name(one, i): filler(one) for i, one in enumerate(fill)}
    if len(named) < len(fill):
        raise InputError(f"fill={fill!r} has the same fill twice: pass each once")
    return named


def _name(fill: Any, place: int) -> str:
    if isinstance(fill, str):
        return fill
    if callable(fill) or np.asarray(fill).size > 4:  # no colour
        return f"{type(fill).__name__} {place}"
    return str(np.asarray(fill).tolist())


def _averaged(parts: Mapping[str, Explanation], design: ExchangeableDesign) -> Explanation:
    """Average explanations of one image by fills; the design is that of its superpixels."""
    by_fill = list(parts.values())
    first = by_fill[0]
    values = np.stack([one.values for one in by_fill])
    errors = np.stack([one.standard_errors for one in by_fill])
    fidelity, spreads = _fidelity(by_fill, design), values.std(axis=0, ddof=1)
    zero, surrogate_errors = np.zeros_like(first.predictions), [one.surrogate_errors for one in by_fill]
    sampled = next((one for one in by_fill if one.method == "sampled"), first)
    return replace(
        first,
        values=values.mean(axis=0),
        standard_errors=_of_mean(errors),
        intercepts=np.mean([one.intercepts for one in by_fill], axis=0),
        surrogate_predictions=np.mean([one.surrogate_predictions for one in by_fill], axis=0),
        surrogate_errors=_of_mean([zero if e is None else e for e in surrogate_errors]),
        fidelity=fidelity[0],
        fidelity_errors=fidelity[1],
        method=sampled.method,
        reason=sampled.reason,
        calls=np.sum([one.calls for one in by_fill], axis=0),
        row_converged=np.all([one.row_converged for one in by_fill], axis=0),
        row_warnings=(_warnings(parts, values, errors),),
        account=_mean_account(by_fill),
        provenance={
            **first.provenance,
            "fill": ", ".join(parts),
            "by_fill": {name: one.values[0].tolist() for name, one in parts.items()},
            "fill_spread": spreads[0].tolist(),
        },
        **_NOT_AVERAGED,
    )


def _mean_account(by_fill: Sequence[Explanation]) -> Contributions | None:
    """Contributions to the mean prediction of all fills; None if those of one are not known."""
    accounts = [account for one in by_fill if (account := account_at(one, [0])) is not None]
    if len(accounts) < len(by_fill):
        return None
    means = {
        name: np.mean([getattr(one, name) for one in accounts], axis=0)
        for name in ("values", "base_values", "alone", "last")
    }
    errors = _of_mean([one.standard_errors for one in accounts])
    calls = np.sum([one.calls for one in accounts], axis=0)
    return Contributions(**means, standard_errors=errors, calls=calls)


def _of_mean(errors: Any) -> Floats:
    return np.asarray(np.sqrt((np.asarray(errors) ** 2).sum(axis=0)) / len(errors))


def _fidelity(by_fill: Sequence[Explanation], design: ExchangeableDesign) -> tuple[Floats, Floats]:
    """R² of the average, and its standard error, each of the shape of the parts' own."""
    shape, d = by_fill[0].fidelity.shape, len(by_fill[0].feature_names)
    coefs = np.stack([one.values[0].reshape(d, -1) for one in by_fill])
    finite = np.isfinite(coefs).all(axis=(0, 2))
    # of unknown ones alone the design has one, on which nothing depends
    coefs = coefs[:, finite] if finite.any() else np.zeros_like(coefs[:, :1])
    means = np.stack([one.intercepts.ravel() for one in by_fill]) + design.inclusion @ coefs
    size = np.abs(means).max(axis=0)
    rest, shift = coefs - coefs.mean(axis=0), means - means.mean(axis=0)
    variances_of_fits, apart = (
        np.stack([(c * design.gamma(c)).sum(axis=0) for c in part]) for part in (coefs, rest)
    )

    def combined(shares: Floats) -> Floats:
        variances = variances_of_fits / np.maximum(shares, _LEAST)
        rest_variance = ((1 - shares) * variances + apart + shift**2).sum(axis=0)
        total = (variances + shift**2).sum(axis=0)
        return r_squared(total - rest_variance, total, size)[0]

    shares = np.stack([np.ravel(one.fidelity) for one in by_fill])
    errors = np.stack([np.ravel(one.fidelity_errors) for one in by_fill])
    best = combined(shares)
    fills = np.arange(len(by_fill))
    moved = [combined(shares + np.where(fills[:, None] == i, errors, 0.0)) for i in fills]
    return best.reshape(shape), np.sqrt(((np.stack(moved) - best) ** 2).sum(axis=0)).reshape(shape)


def _warnings(parts: Mapping[str, Explanation], values: Floats, errors: Floats) -> tuple[RowWarning, ...]:
    """What the fills warn of, and superpixels about which they do not agree, largest first."""
    warnings = [w.extended(f" (fill {name})") for name, one in parts.items() for w in one.row_warnings[0]]
    first = next(iter(parts.values()))
    answers = np.max([np.abs([one.predictions, one.intercepts]) for one in parts.values()], axis=(0, 1))
    certain = np.abs(values) > np.maximum(_CERTAIN * errors, ROUNDING * answers[:, None])
    opposed = (certain & (values > 0)).any(axis=0) & (certain & (values < 0)).any(axis=0)
    sizes = np.where(opposed, np.abs(values).max(axis=0), 0.0)[0].reshape(len(first.feature_names), -1)
    sentences = [""] * len(first.output_names)
    for k in range(len(sentences)):
        worst = [j for j in np.argsort(-sizes[:, k], kind="stable")[:_MOST_NAMED] if sizes[j, k] > 0]
        if worst:
            named = ", ".join(first.feature_names[j] for j in worst)
            sentences[k] = f"the fills do not agree whether these raise or lower the answer: {named}"
    return (*warnings, *by_output(sentences, first.output_names, "fills"))


@dataclass(frozen=True, kw_only=True)
class ImagePart:
    """An image, whose superpixels are features; the model gets an array (n, H, W) or (n, H, W, C).

    Parameters
    ----------
    segments, segment_options, fill
        As for :class:`limes.ImageExplainer`.

    Raises
    ------
    InputError
        If an option is not usable.

    Examples
    --------
    >>> import numpy as np
    >>> import limes
    >>> part = limes.ImagePart(segments=[[0, 1]], fill=0)
    >>> part.parse(np.array([[7, 9]])).compose(np.array([[0.0, 1.0]]))
    array([[[0, 9]]])
    """

    segments: Any = "quickshift"
    segment_options: Mapping[str, Any] | None = None
    fill: Any = "mean"

    def __post_init__(self) -> None:
        segmenter(self.segments, self.segment_options)
        filler(self.fill)

    def parse(self, raw: Any) -> Photograph:
        """Segment an image, ``raw``."""
        return Photograph.parse(raw, segmenter(self.segments, self.segment_options), filler(self.fill))


@dataclass(frozen=True, eq=False)
class Photograph(MaskedInput):
    """A user's image, the part of it that is explained, and that part with its superpixels."""

    photo: Any
    framing: Framing
    image: MaskedImage
    preprocess: Preprocess | None

    @classmethod
    def parse(
        cls,
        raw: Any,
        segment: Segment,
        fill: Fill,
        preprocess: Preprocess | None = None,
        check: Callable[[Any], Any] | None = None,
    ) -> Photograph:
        """Take an image apart; without ``preprocess`` all of it is explained, at its size."""
        photo = (check or checked_image)(raw)
        range_remark(photo, preprocess)  # refuses before the model is asked
        framing = (preprocess or Preprocess()).framing(photo)
        pixels = framing.apply(photo)
        labels = superpixels(segment, pixels)
        return cls(photo, framing, MaskedImage(pixels, filled(fill, pixels, labels), labels), preprocess)

    @property
    def size(self) -> int:
        return self.image.size

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"superpixel {j}" for j in range(self.size))

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """The condition of each superpixel, with the pixel in its middle, (row, column)."""
        place = self.image.labels.ravel()
        axes = (np.bincount(place, axis.ravel()) for axis in np.indices(self.image.labels.shape))
        rows, columns = (total / np.bincount(place) for total in axes)
        return tuple(
            f"{name} at ({row:.0f}, {column:.0f}) shown"
            for name, row, column in zip(self.names, rows, columns, strict=True)
        )

    @property
    def data(self) -> Objects:
        return np.array([f"{count} px" for count in np.bincount(self.image.labels.ravel())], dtype=object)

    @cached_property
    def key(self) -> tuple[int, ...]:
        """Whole numbers that identify an image, its fill and superpixels: keys, and seeds of streams."""
        image = self.image
        content = image.shown.tobytes() + image.fill.tobytes() + image.labels.tobytes()
        return tuple(np.frombuffer(blake2b(content, digest_size=16).digest(), dtype=np.uint32).tolist())

    @property
    def picture(self) -> Mapping[str, Any]:
        """What ``show`` draws from: the image, its superpixels, and each condition's superpixel.

        Beside the part that is explained stands the photograph, and where the part is, if it is not all.
        """
        picture = {
            "image": to_data_url(_bytes(self.image.shown), lossless=False),
            "labels": labels_to_data_url(self.image.labels),
            "superpixels": {condition: j for j, condition in enumerate(self.conditions)},
        }
        framing = self.framing
        if framing.is_whole and framing.size == framing.photo:
            return picture
        share = min(1.0, _LONGEST_SIDE / max(framing.photo))
        height, width = (max(1, round(side * share)) for side in framing.photo)
        small = Framing.of(framing.photo, (height, width), "squash").apply(_bytes(self.photo))
        return {
            **picture,
            "photo": to_data_url(small, lossless=False, largest_png=0),
            "frame": {"photo": list(framing.photo), "box": list(framing.box), "size": list(framing.size)},
        }

    @property
    def changes(self) -> Bools:
        return self.image.changes

    def only(self, kept: Bools) -> Photograph:
        return replace(self, image=self.image.only(kept))

    def compose(self, z: Floats) -> Any:
        return self.image.images(z)

    def composer(self, model: Any) -> Callable[[Floats], Any]:
        return composer_of(model, self.image, self.preprocess)

    def over(self, form: Form) -> Form:
        return over_switches(form, flat(self.image, self.preprocess))  # an estimator takes rows of numbers


# -- pixels --------------------------------------------------------------------------------------------------

# Shares above 1 that interpolation leaves
_BRIGHTEST_SHARE = 2.0


def checked_image(image: Any) -> Any:
    """The image as an array (H, W) or (H, W, C) of the user's own numbers, C = 1, 3 or 4."""
    pixels = pixels_of(image)
    if pixels.dtype.kind not in "biuf" or pixels.dtype.itemsize > 8:
        got = f"{type(image).__name__} of {pixels.dtype}"
        raise InputError(f"an image is an array of numbers, got {got}: convert it by .astype(float)")
    if pixels.ndim not in (2, 3):
        expected = "(height, width) or (height, width, channels)"
        raise InputError(f"an image is {expected}, got {pixels.shape}: reshape it")
    if pixels.ndim == 3 and pixels.shape[2] not in PLANES:
        first = pixels.shape[0] in PLANES
        advice = (
            "move them there: np.moveaxis(image, 0, -1)"
            if first
            else "choose three, or pass several images as a list"
        )
        raise InputError(
            f"an image has 1, 3 or 4 channels, as its last axis; got shape {pixels.shape}: {advice}"
        )
    if pixels.size == 0:
        raise InputError(f"the image has no pixels: its shape is {pixels.shape}")
    if not np.isfinite(pixels).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(pixels))[0])
        raise InputError(
            f"the image has {pixels[where]} at row {where[0]}, column {where[1]}: every pixel must be finite"
        )
    return np.ascontiguousarray(pixels)


def range_remark(photo: Any, preprocess: Preprocess | None) -> str:
    """A warning about a photograph of another range than the preprocessing is for, or ""."""
    white = None if preprocess is None else preprocess.white
    if preprocess is None or white is None:
        return ""
    passed = f"Preprocess(mean={preprocess.mean}, scale={preprocess.scale}) is for 0 to {white}"
    low, high, factor = float(photo.min()), float(photo.max()), preprocess.bytes_per_unit(photo.dtype)
    if photo.dtype.kind == "f" and white == 255 and low >= 0 and 0 < high <= 1:
        raise InputError(
            f"the image has floats from {low:.3g} to {high:.3g}, and {passed}: pass 255 * image, or mean and "
            "scale over 255"
        )
    if factor < 1 and 0 < high <= 255:
        return (
            f"the image has 16 bits, of which 65535 is white, and its brightest pixel is {high:.0f}: it is "
            "nearly black; if its white is 255, pass image.astype('uint8')"
        )
    if factor != 1:
        return (
            f"the image has numbers of {photo.dtype}, and {passed}: they are multiplied by "
            f"{factor.numerator}{'' if factor.denominator == 1 else f'/{factor.denominator}'}"
        )
    if high > (white if white > 1 else _BRIGHTEST_SHARE):
        return f"the image has numbers up to {high:.6g}, and {passed}, as it seems: if so, pass " + (
            "image / 255, or mean and scale times 255" if white == 1 else f"numbers from 0 to {white}"
        )
    return ""


def unit(image: Any) -> Floats:
    """Pixels between 0 and 1: whole numbers over their largest, floats as they are or over 255."""
    pixels = np.nan_to_num(np.asarray(image, dtype=np.float64))
    kind = np.asarray(image).dtype
    if kind.kind in "iu" and kind.itemsize <= 2:  # bytes as 64 bits never reach the largest
        return np.clip(pixels / np.iinfo(kind).max, 0.0, 1.0)
    low, high = pixels.min(), pixels.max()
    if low < 0:
        return (pixels - low) / (high - low) if high > low else np.zeros_like(pixels)
    if high <= 1:
        return pixels
    return pixels / 255.0 if high <= 255 else pixels / high


def rgb(image: Any) -> Floats:
    """The image as people see it, (H, W, 3) between 0 and 1; transparent pixels are grey."""
    pixels = unit(image)
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.shape[2] < 3:
        return np.repeat(pixels[..., :1], 3, axis=2)
    if pixels.shape[2] != 4:  # five and more, which the drop-in for lime takes
        return pixels[..., :3]
    opaque = pixels[..., 3:]
    return pixels[..., :3] * opaque + 0.5 * (1.0 - opaque)


def _bytes(image: Any) -> Any:
    return np.rint(255 * rgb(image)).astype(np.uint8)


# -- superpixels ---------------------------------------------------------------------------------------------

# the user's image -> labels (H, W)
Segment: TypeAlias = Callable[[Any], Any]


def segmenter(segments: Any, options: Mapping[str, Any] | None) -> Segment:
    if isinstance(segments, str):
        check_choice("segments", segments, tuple(_SEGMENTATIONS))
        segment = _SEGMENTATIONS[segments]
        names = list(inspect.signature(segment).parameters)[1:]
        for option in options or {}:
            if option not in names:
                raise unknown_option(f"segments={segments!r}", option, names)
        return lambda image: segment(rgb(image), **(options or {}))
    if options:
        raise InputError("segment_options go with a segmentation that is named, such as segments='slic'")
    if callable(segments):
        return lambda image: segments(image)
    labels = checked_labels(segments)
    return lambda image: labels  # noqa: ARG005 - the same for every image


def superpixels(segment: Segment, image: Any) -> Ints:
    """Labels (H, W) from 0 to d - 1, each of which occurs."""
    labels = checked_labels(segment(image))
    if labels.shape != image.shape[:2]:
        raise InputError(
            f"the segments have shape {labels.shape}, the image is {image.shape[0]} x {image.shape[1]}: pass "
            "one label per pixel"
        )
    return np.unique(labels, return_inverse=True)[1].reshape(labels.shape).astype(np.int64)


def checked_labels(labels: Any) -> Ints:
    """Any whole numbers, one per pixel; they need not start at 0 or follow each other."""
    array = np.asarray(labels)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    whole = array.dtype.kind in "iub" or (array.dtype.kind == "f" and (array == np.rint(array)).all())
    if array.ndim != 2 or not whole:
        raise InputError(
            f"segments must be one of {list(_SEGMENTATIONS)}, a callable image -> labels, or whole numbers "
            f"(H, W); got {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64)


# -- by name -------------------------------------------------------------------------------------------------

_segmentation = partial(require, "skimage.segmentation", "segments by name (but 'grid')")


def quickshift(
    image: Floats,
    kernel_size: float = 4.0,
    max_dist: float = 200.0,
    ratio: float = 0.2,
    sigma: float = 0.0,
    seed: int = 0,
) -> Ints:
    """Modes of colour and place, with the parameters of ``lime``; the seed breaks ties."""
    options = {"ratio": ratio, "kernel_size": kernel_size, "max_dist": max_dist, "sigma": sigma, "rng": seed}
    return np.asarray(_segmentation().quickshift(image, **options))


def slic(image: Floats, n_segments: int = 64, compactness: float = 10.0, sigma: float = 1.0) -> Ints:
    options = {"n_segments": n_segments, "compactness": compactness, "sigma": sigma}
    return np.asarray(_segmentation().slic(image, start_label=0, **options))


def felzenszwalb(image: Floats, scale: float = 100.0, sigma: float = 0.5, min_size: int = 200) -> Ints:
    return np.asarray(_segmentation().felzenszwalb(image, scale=scale, sigma=sigma, min_size=min_size))


def watershed(image: Floats, markers: int = 64, compactness: float = 0.001) -> Ints:
    """Basins of the gradient of lightness."""
    gradient = require("skimage.filters", "segments='watershed'").sobel(image.mean(axis=2))
    return np.asarray(_segmentation().watershed(gradient, markers=markers, compactness=compactness))


def grid(image: Floats, rows: int = 8, columns: int = 8) -> Ints:
    cells = check_count("rows", rows), check_count("columns", columns)
    down, across = (np.arange(n) * k // n for n, k in zip(image.shape[:2], cells, strict=True))
    return np.asarray(down[:, None] * cells[1] + across)


_SEGMENTATIONS: Mapping[str, Callable[..., Ints]] = {
    function.__name__: function for function in (quickshift, slic, felzenszwalb, watershed, grid)
}


# (image (H, W) or (H, W, C), labels (H, W)) -> numbers of the image's shape
Fill: TypeAlias = Callable[[Any, Ints], Any]

# Of a blurred image: the standard deviation, as a share of the longer side
_BLUR = 0.05


def filler(fill: Any) -> Fill:
    if isinstance(fill, str):
        return _FILLS[check_choice("fill", fill, tuple(_FILLS))]
    if callable(fill):
        return lambda image, labels: fill(image, labels)
    constant = pixels_of(fill)
    if constant.dtype.kind not in "biuf" or not np.isfinite(constant).all():
        raise InputError(
            f"fill must be one of {list(_FILLS)}, a colour, an image, or a callable (image, labels) -> "
            f"image; got {fill!r}"
        )
    return lambda image, labels: constant  # noqa: ARG005 - the same for every image


def filled(fill: Fill, image: Any, labels: Ints) -> Any:
    """The image with every superpixel switched off, in the image's own shape and type."""
    pixels = np.asarray(fill(image, labels))
    channels = image.shape[2:] or (1,)
    colour = pixels.ndim == 0 or pixels.shape == channels
    if not colour and pixels.shape != image.shape:
        raise InputError(
            f"fill has shape {pixels.shape}: it must be one number, a colour of {channels[0]} numbers, or an "
            f"image of shape {image.shape}"
        )
    if pixels.dtype.kind not in "biuf" or not np.isfinite(pixels).all():
        raise InputError("fill has pixels that are not finite numbers")
    whole = np.broadcast_to(
        pixels if pixels.ndim == image.ndim or image.ndim == 3 else pixels.ravel()[0], image.shape
    )
    kind = image.dtype
    if kind.kind == "f":
        return whole.astype(kind)
    limits = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
    return np.clip(np.rint(whole), *limits).astype(kind)


def _mean(image: Any, labels: Ints) -> Floats:
    """Fill every superpixel with its mean colour; one that is plain with the mean colour of the image."""
    means, planes = mean_colours(image, labels), (labels.size, -1)
    numbers = np.asarray(image, dtype=np.float64).reshape(planes)
    # a plain superpixel is its own mean: it would not be hidden
    plain = ~changed(numbers, means.reshape(planes), labels.ravel())[labels.ravel()]
    return np.where(plain[:, None], numbers.mean(axis=0), means.reshape(planes)).reshape(image.shape)


def mean_colours(image: Any, labels: Ints) -> Floats:
    """Fill every superpixel with its mean colour."""
    place = labels.ravel()
    planes = np.asarray(image, dtype=np.float64).reshape(place.size, -1)
    count = np.bincount(place)
    means = np.stack([np.bincount(place, plane) / count for plane in planes.T], axis=1)
    # roundings of long sums would tell a large plain superpixel from its mean
    first = planes[first_of_each(place, count.size)]
    plain = np.bincount(place, (planes != first[place]).any(axis=1)) == 0
    means[plain] = first[plain]
    return means[place].reshape(image.shape)


def _blur(image: Any, labels: Ints) -> Floats:  # noqa: ARG001 - all alike
    from scipy.ndimage import gaussian_filter

    sigma = _BLUR * max(image.shape[:2])
    return np.asarray(
        gaussian_filter(np.asarray(image, dtype=np.float64), (sigma, sigma, 0)[: image.ndim], mode="nearest")
    )


def _inpaint(image: Any, labels: Ints) -> Floats:
    """Continue the surroundings into each superpixel by Laplace's equation, with these as boundary."""
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import splu

    if labels.max() == 0:  # without surroundings
        return mean_colours(image, labels)
    planes = np.asarray(image, dtype=np.float64).reshape(labels.size, -1)
    place = np.arange(labels.size).reshape(labels.shape)
    one = np.concatenate([place[1:].ravel(), place[:, 1:].ravel()])
    other = np.concatenate([place[:-1].ravel(), place[:, :-1].ravel()])
    # pairs of pixels that share an edge, both ways
    first, second = np.concatenate([one, other]), np.concatenate([other, one])
    # one sparse system: neighbours in the same superpixel are both unknown, others are boundary values
    inside = labels.ravel()[first] == labels.ravel()[second]
    degree = np.bincount(first, minlength=labels.size).astype(np.float64)
    boundary = np.zeros_like(planes)
    np.add.at(boundary, first[~inside], planes[second[~inside]])
    diagonal = np.arange(labels.size)
    values = np.concatenate([degree, np.full(int(inside.sum()), -1.0)])
    places = np.concatenate([diagonal, first[inside]]), np.concatenate([diagonal, second[inside]])
    matrix = coo_array((values, places))
    return np.asarray(splu(matrix.tocsc()).solve(boundary)).reshape(image.shape)


_FILLS: Mapping[str, Fill] = {"mean": _mean, "blur": _blur, "inpaint": _inpaint}
