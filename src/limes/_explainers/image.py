"""Explain images, whose superpixels are shown or filled, with one fill or several.

An image is grey, RGB or RGBA, of whole numbers or fractions.

The surrogate of several fills is that of images of which each shows one of m fills, drawn at random. f_i is
the model over z with fill i, and β_i, ρ_i its surrogate and R². As z and the fill are independent, Cov(z, f)
is the mean of the fills' own, and so are the coefficients:

    β = Σ_i β_i / m,      standard error² = Σ_i error_i² / m²,      spread_j = deviation of β_ij over i,

    1 - R² = Σ_i [(1 - ρ_i) v_i + E_w (g_i - g)²] / Σ_i [v_i + (E_w f_i - mean)²],     v_i = β_iᵀ Σ β_i / ρ_i.

The spread is no error: it says how much depends on what a superpixel is replaced by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any, Never, Unpack

import numpy as np

from limes._arrays import ROUNDING, Bools, Floats, Ints, Objects, r_squared
from limes._checks import check_count, refuse_in_call
from limes._explainers.backgrounds import check_hide, mean_over, several
from limes._explainers.hierarchy import check_hierarchy
from limes._explainers.masked import InputModel, MaskedExplainer, MaskedInput
from limes._explainers.options import MaskedKeywords, complete, takes
from limes._explainers.photographs import as_bytes, checked_image, range_remark, with_channels
from limes._explainers.rectangles import Rectangles, coarse_rectangles, rectangles
from limes._explainers.subset_fits import identified
from limes._explainers.superpixels import Fill, Segmentation, Superpixels, always, filled, filler, segmenter
from limes._explanation import Explanation
from limes._explanation.attribution import Contributions, changed
from limes._explanation.fit import account_at
from limes._explanation.json import labels_to_data_url, to_data_url
from limes._warnings import RowWarning, by_output, sentence
from limes.designs._exchangeable import BANDWIDTH, ExchangeableDesign
from limes.exceptions import InputError
from limes.models._calling.hugging_face import adapted
from limes.models._images import (
    Framing,
    MaskedImage,
    Preprocess,
    channels_of,
    composer_of,
    flat,
    preprocess_like,
    several_of,
)
from limes.models.forms._base import Form

MEANING = "change of the surrogate when the superpixel is shown against when it is filled"
# What an average of explanations does not have
_NOT_AVERAGED: dict[str, Any] = dict.fromkeys(("shares", "share_errors", "controls", "effective_rows"))
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
        "quickshift", "slic", "felzenszwalb", "watershed" or "grid"; whole numbers (H, W) that name the
        superpixels; a mask (H, W) of booleans; a list of masks, as Segment Anything returns them (or its
        dicts), with smaller masks on top of larger ones: mask j is superpixel j, and pixels in no mask are
        the last; or a callable photograph -> one of these. (H, W) is the size of the photograph, or of
        what the network sees; a segment without a pixel in the network's input is no feature, with a
        warning. All names but "grid" need scikit-image.
    segment_options
        Options of a segmentation by name, such as ``{"n_segments": 50}``; the patches of a vision transformer
        are ``segments="grid"`` with ``{"rows": 14, "columns": 14}``, for 224 pixels and patches of 16.
    hierarchy
        True: contributions at two levels, coarse rectangles and finer ones where the model varies most,
        from a few hundred calls. Half of these choose which rectangles are halved, of probabilities also by
        their logarithms, up to 49 rectangles from 300 calls and 91 from 1,000. Coefficients are
        contributions (Shapley values, with KernelSHAP's weights of images in place of LIME's): those of
        fine rectangles add up to their coarse one's, all of them to f(image) - f(all filled).
        ``explanation.levels`` has both. Errors are as of ``hierarchy`` of :class:`limes.TextExplainer`.
        ``segments``, ``bandwidth``, ``ridge``, ``tolerance`` and ``control`` are not used; there is one
        ``fill``, which stays that of the coarse rectangles ("blur" is seldom worse than "mean" here).
    fill
        What is shown where a superpixel is off: "mean" (its own mean colour, or the whole image's where the
        superpixel is plain), "blur", "inpaint" (its surroundings), a colour, an image, or a callable (image,
        labels) -> image. A superpixel that looks the same when it is off has a NaN coefficient, with a
        warning. A list of numbers is one colour. A list of these, ``["mean", "blur"]`` or the greys
        ``[[0], [255]]``, explains the image with each, by an equal part of ``max_calls``, and averages the
        coefficients: the surrogate of images whose fill is drawn at random. ``provenance["by_fill"]``
        has the coefficients of each, ``provenance["fill_spread"]`` their standard deviation over the fills.
    hide
        "fill": a superpixel that is off shows its fill. "background": each perturbed image shows, wherever
        superpixels are off, the same pixels of one photograph of the ``background``, drawn at random. The
        mean over the background is then explained: exactly where the 2^d subsets with all photographs are
        at most ``max_calls``; elsewhere errors include the draw.
    background
        Several photographs, as ``images`` of a call, with the pixels of the explained one after
        ``preprocess``.
    bandwidth
        ν > 0, infinity allowed; ``lime`` uses 0.25.
    output
        None: the ``top`` largest outputs of the model. A name or a position of an output, or a list of them.
        For estimators also "margin" and "probability".
    top
        The number of outputs that are explained if ``output`` is None; all use the same calls.
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
        whose settings are read. By default pixels are passed unchanged, with channels first for torch, and
        in the layout of an ONNX file. Where it crops, the explanation does not cover the edges of a
        photograph; ``explanation.mask(of="image")`` has the photograph's pixels.
    ridge
        0, or the penalty of ``lime``'s own fit on 1000 rows (``lime`` uses 1).
    batch_size
        Images in one call of the model; memory grows with it, not with ``max_calls``.
    method, tolerance, max_calls, rng, retry, contributions, threshold
        As for :class:`limes.TabularExplainer`. A model that cannot be read is explained exactly, by calls
        for all 2^d images, where these are at most ``max_calls``, less 8 for checks.
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
    >>> explanation.method, (explanation.coefficients.values[0].round(3) + 0.0).tolist()
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
        hierarchy: bool = False,
        fill: Any = "mean",
        hide: str = "fill",
        background: Any = None,
        bandwidth: float = BANDWIDTH,
        preprocess: Any = None,
        ridge: float = 0.0,
        **options: Unpack[MaskedKeywords],
    ) -> None:
        chosen = complete(ImageExplainer, options)
        segment, self._fills = segmenter(segments, segment_options), _fills(fill)
        self._hierarchy = check_hierarchy(
            hierarchy,
            chosen,
            segments=(segments, "quickshift"),
            segment_options=(segment_options, None),
            hide=(hide, "fill"),
            bandwidth=(bandwidth, BANDWIDTH),
            ridge=(ridge, 0.0),
        )
        if hierarchy:
            if len(self._fills) > 1:
                raise InputError("hierarchy=True takes one fill")
            segment = Segmentation(_rectangles, of_photo=False)
            self._fills = {name: _of_coarse(one) for name, one in self._fills.items()}
            segments = "hierarchy"
        photos = background_photos(hide, background, fill)
        calls = check_count("max_calls", chosen["max_calls"])
        if calls < len(self._fills):
            raise InputError(f"max_calls={calls} is less than a call for each of {len(self._fills)} fills")
        chosen["max_calls"] = calls // len(self._fills)
        first, preprocess = next(iter(self._fills.values())), _preprocess(preprocess)
        self._model = InputModel.of(adapted(model), chosen)
        super().__init__(
            model,
            partial(
                Photograph.parse,
                segment=segment,
                fill=first,
                preprocess=preprocess,
                model=self._model.model,
                background=photos,
            ),
            chosen,
            bandwidth,
            ridge,
            segments=segments,
            fill=f"drawn from {len(photos)} photographs" if photos else _named(fill, self._fills),
        )

    def __call__(self, images: Any, *, progress: bool = True, workers: int = 1, **unknown: Never) -> Any:
        """Explain one image, or each of several.

        Parameters
        ----------
        images
            (H, W) or (H, W, C) of any numbers, C = 1, 3 or 4, a picture of PIL, read by its mode and EXIF
            mark, or the path of an image file gives an explanation of one row; a list of them, or (n, H, W,
            C), a list of explanations. A network of three channels gets grey repeated, and transparency on
            white.
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
        if unknown:
            refuse_in_call(unknown, ImageExplainer)
        return self._explain(images, several_of(images), progress=progress, workers=workers)

    def _explain_item(self, item: Photograph, *, progress: bool, changes: Bools | None = None) -> Explanation:
        if len(self._fills) == 1:
            return super()._explain_item(item, progress=progress, changes=changes)
        items = {name: item.filled_by(fill) for name, fill in self._fills.items()}
        # an average needs the coefficients of all fills, under one design
        changes = np.all([self._changes(one) for one in items.values()], axis=0)
        by_fill = {
            name: super(ImageExplainer, self._drawing(place))._explain_item(
                one, progress=progress, changes=changes
            )
            for place, (name, one) in enumerate(items.items())
        }
        return _averaged(by_fill, self._design(int(identified(changes).sum()), self._bandwidth))

    def _drawing(self, place: int) -> ImageExplainer:
        """One that draws other sets for each fill: errors of the same sets would have a common part."""
        if not place:
            return self
        other = copy(self)
        seed = np.random.SeedSequence(self._options.sampling.seed, spawn_key=(place,)).generate_state(1)
        vars(other)["_options"] = replace(self._options, rng=int(seed[0]))
        return other

    def _units(self, item: Photograph) -> Rectangles | None:
        if not self._hierarchy:
            return None
        pixels = np.bincount(item.superpixels.labels.ravel())[: item.size]
        return Rectangles.of(item.superpixels.numbers, pixels)

    def _at_levels(self, item: Photograph, units: Any) -> tuple[Photograph, Photograph]:
        return item.merged(units.of_pieces), item.merged(units.groups)

    def _remarks(self, item: Photograph) -> tuple[str, ...]:
        one = sentence("input", "one superpixel") if item.image.size == 1 else ""
        of_range = range_remark(item.photo, item.preprocess, self._model.model)
        remarks = of_range, item.remark, item.superpixels.remark, one
        return tuple(filter(None, remarks))


def _of_coarse(fill: Fill) -> Fill:
    """A fill of the coarse rectangles, whatever the superpixels."""
    return partial(_on_coarse, fill)


def _on_coarse(fill: Fill, image: Any, labels: Ints) -> Any:
    return fill(image, coarse_rectangles(labels.shape))


def _rectangles(image: Any) -> Ints:
    return rectangles(image.shape[:2])


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


def _named(fill: Any, fills: Mapping[str, Fill]) -> Any:
    return fill if len(fills) == 1 else ", ".join(fills)


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
    values = np.stack([one.coefficients.values for one in by_fill])
    errors = np.stack([one.coefficients.standard_errors for one in by_fill])
    fidelity, spreads = _fidelity(by_fill, design), values.std(axis=0, ddof=1)
    zero, its = np.zeros_like(first.predictions), first.coefficients
    surrogate_errors = [one.coefficients.surrogate_errors for one in by_fill]
    sampled = next((one for one in by_fill if one.method == "sampled"), first)
    calls = np.sum([one.calls for one in by_fill], axis=0)
    its = its.changed(
        values=values.mean(axis=0),
        standard_errors=_of_mean(errors),
        intercepts=np.mean([one.coefficients.intercepts for one in by_fill], axis=0),
        surrogate_predictions=np.mean([one.coefficients.surrogate_predictions for one in by_fill], axis=0),
        surrogate_errors=_of_mean([zero if e is None else e for e in surrogate_errors]),
        fidelity=fidelity[0],
        fidelity_errors=fidelity[1],
        calls=calls,
        row_converged=np.all([one.coefficients.row_converged for one in by_fill], axis=0),
        **_NOT_AVERAGED,
    )
    return changed(
        first,
        coefficients=its,
        contributions=_mean_account(by_fill),
        method=sampled.method,
        reason=sampled.reason,
        calls=calls,
        row_warnings=(_warnings(parts, values, errors),),
        provenance={
            **first.provenance,
            "fill": ", ".join(parts),
            "by_fill": {name: one.coefficients.values[0].tolist() for name, one in parts.items()},
            "fill_spread": spreads[0].tolist(),
        },
        explainer=None,
        fit=None,
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
    errors, of_base = (
        _of_mean([getattr(one, name) for one in accounts]) for name in ("standard_errors", "base_errors")
    )
    calls = np.sum([one.calls for one in accounts], axis=0)
    converged = np.all([one.row_converged for one in accounts], axis=0)
    return Contributions(
        **means, standard_errors=errors, base_errors=of_base, calls=calls, row_converged=converged
    )


def _of_mean(errors: Any) -> Floats:
    return np.asarray(np.sqrt((np.asarray(errors) ** 2).sum(axis=0)) / len(errors))


def _fidelity(by_fill: Sequence[Explanation], design: ExchangeableDesign) -> tuple[Floats, Floats]:
    """R² of the average, and its standard error, each of the shape of the parts' own."""
    shape, d = by_fill[0].fidelity.shape, len(by_fill[0].feature_names)
    coefs = np.stack([one.coefficients.values[0].reshape(d, -1) for one in by_fill])
    finite = np.isfinite(coefs).all(axis=(0, 2))
    # of unknown ones alone the design has one, on which nothing depends
    coefs = coefs[:, finite] if finite.any() else np.zeros_like(coefs[:, :1])
    means = np.stack([one.coefficients.intercepts.ravel() for one in by_fill]) + design.inclusion @ coefs
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
    """Return what the fills warn of, and superpixels about which they do not agree, largest first."""
    warnings = [w.extended(f" (fill {name})") for name, one in parts.items() for w in one.row_warnings[0]]
    first = next(iter(parts.values()))
    answers = np.max(
        [np.abs([one.predictions, one.coefficients.intercepts]) for one in parts.values()], axis=(0, 1)
    )
    certain = np.abs(values) > np.maximum(_CERTAIN * errors, ROUNDING * answers[:, None])
    opposed = (certain & (values > 0)).any(axis=0) & (certain & (values < 0)).any(axis=0)
    sizes = np.where(opposed, np.abs(values).max(axis=0), 0.0)[0].reshape(len(first.feature_names), -1)
    sentences = [""] * len(first.output_names)
    for k in range(len(sentences)):
        worst = [j for j in np.argsort(-sizes[:, k], kind="stable")[:_MOST_NAMED] if sizes[j, k] > 0]
        if worst:
            named = ", ".join(first.feature_names[j] for j in worst)
            sentences[k] = sentence("fills", names=named)
    return (*warnings, *by_output(sentences, first.output_names, "fills"))


@dataclass(frozen=True, kw_only=True)
class ImagePart:
    """An image, whose superpixels are features; the model gets an array (n, H, W) or (n, H, W, C).

    Parameters
    ----------
    segments, segment_options, fill, hide, background
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
    hide: str = "fill"
    background: Any = None

    def __post_init__(self) -> None:
        segmenter(self.segments, self.segment_options)
        filler(self.fill)
        self._photos  # noqa: B018 - refuses what is no background

    @cached_property
    def _photos(self) -> list[Any]:
        return background_photos(self.hide, self.background, self.fill)

    def parse(self, raw: Any) -> Photograph:
        """Segment an image, ``raw``."""
        segment = segmenter(self.segments, self.segment_options)
        return Photograph.parse(raw, segment, filler(self.fill), background=self._photos)


@dataclass(frozen=True, eq=False)
class Photograph(MaskedInput):
    """A user's image, the part of it that is explained, and that part with its superpixels."""

    photo: Any
    framing: Framing
    superpixels: Superpixels
    image: MaskedImage
    preprocess: Preprocess | None
    remark: str = ""  # on what the network does not take

    @classmethod
    def parse(
        cls,
        raw: Any,
        segment: Segmentation,
        fill: Fill,
        preprocess: Preprocess | None = None,
        model: Any = None,
        background: Sequence[Any] = (),
        check: Callable[[Any], Any] | None = None,
    ) -> Photograph:
        """Take an image apart; without ``preprocess`` all of it is explained, at its size.

        What is off shows a photograph of the ``background``, if there are any.
        """
        channels = channels_of(model, preprocess)
        photo, remark = with_channels((check or checked_image)(raw), channels)
        range_remark(photo, preprocess)  # refuses before the model is asked
        framing = (preprocess or Preprocess()).framing(photo)
        pixels = framing.apply(photo)
        superpixels = Superpixels.of(segment, photo, pixels, framing)
        fills: list[Fill] = [
            partial(always, _like(pixels, with_channels(one, channels)[0], preprocess, i))
            for i, one in enumerate(background)
        ]
        image = _masked(pixels, superpixels, *(fills or [fill]))
        return cls(photo, framing, superpixels, image, preprocess, remark)

    def merged(self, groups: Ints) -> Photograph:
        """The photograph with groups of its superpixels, (d,), in their place; fills stay as they are."""
        count = int(groups.max()) + 1
        labels = np.append(groups, count)[self.superpixels.labels]
        merged = Superpixels(labels, np.arange(count), np.empty(0, dtype=np.int64))
        return replace(self, superpixels=merged, image=replace(self.image, labels=groups[self.image.labels]))

    def filled_by(self, fill: Fill) -> Photograph:
        return replace(self, image=_masked(self.image.shown, self.superpixels, fill))

    @property
    def size(self) -> int:
        return self.image.size

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"superpixel {j}" for j in self.superpixels.numbers.tolist())

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """The condition of each superpixel, with the pixel in its middle, (row, column)."""
        places = self.superpixels.labels
        sums = (np.bincount(places.ravel(), axis.ravel()) for axis in np.indices(places.shape))
        rows, columns = (total / np.bincount(places.ravel()) for total in sums)
        return tuple(
            f"{name} at ({row:.0f}, {column:.0f}) shown"
            for name, row, column in zip(self.names, rows, columns, strict=False)
        )

    @property
    def data(self) -> Objects:
        counts = np.bincount(self.superpixels.labels.ravel())[: self.superpixels.size]
        return np.array([f"{count} px" for count in counts], dtype=object)

    @cached_property
    def key(self) -> tuple[int, ...]:
        """Whole numbers that identify an image, its fill and superpixels: keys, and seeds of streams."""
        image = self.image
        content = image.shown.tobytes() + image.fill.tobytes() + image.labels.tobytes()
        return tuple(np.frombuffer(blake2b(content, digest_size=16).digest(), dtype=np.uint32).tolist())

    @property
    def picture(self) -> Mapping[str, Any]:
        """Return what ``show`` draws from: the image, its superpixels, and each condition's superpixel.

        Beside the part that is explained stands the photograph, and where the part is, if it is not all.
        """
        picture = {
            "image": to_data_url(as_bytes(self.image.shown), lossless=False),
            "labels": labels_to_data_url(self.superpixels.drawn),
            "superpixels": dict(zip(self.conditions, self.superpixels.numbers.tolist(), strict=True)),
        }
        framing = self.framing
        if framing.is_whole and framing.size == framing.photo:
            return picture
        share, segments = min(1.0, _LONGEST_SIDE / max(framing.photo)), self.superpixels.of_photo
        height, width = (max(1, round(side * share)) for side in framing.photo)
        small = Framing.of(framing.photo, (height, width), "squash").apply(as_bytes(self.photo))
        return {
            **picture,
            "photo": to_data_url(small, lossless=False, largest_png=0),
            "frame": {"photo": list(framing.photo), "box": list(framing.box), "size": list(framing.size)},
            **({} if segments is None else {"photo_labels": labels_to_data_url(segments)}),
        }

    @property
    def changes(self) -> Bools:
        return self.image.changes

    @property
    def draws(self) -> int:
        return self.image.draws

    def only(self, kept: Bools) -> Photograph:
        return replace(self, image=self.image.only(kept))  # pictures and names are those of all

    def compose(self, z: Floats) -> Any:
        return self.image.images(z)

    def composer(self, model: Any) -> Callable[[Floats], Any]:
        return composer_of(model, self.image, self.preprocess)

    def over(self, read: Callable[[], Form]) -> Form:
        # an estimator takes rows of numbers
        return mean_over(read(), [flat(self.image, self.preprocess, fill) for fill in self.image.fills])


def _masked(pixels: Any, superpixels: Superpixels, *fills: Fill) -> MaskedImage:
    hidden = [filled(fill, pixels, superpixels.labels) for fill in fills]
    image = MaskedImage(pixels, hidden[0] if len(fills) == 1 else np.stack(hidden), superpixels.labels)
    inside = np.arange(image.size) < superpixels.size
    return image if inside.all() else image.only(inside)  # a border is always shown


def _like(pixels: Any, photo: Any, preprocess: Preprocess | None, place: int) -> Any:
    """A photograph of the background at the size of what is explained; refused if it is not alike."""
    seen = (preprocess or Preprocess()).framing(photo).apply(photo)
    if seen.shape != pixels.shape or seen.dtype != pixels.dtype:
        raise InputError(
            f"photograph {place} of the background is {seen.dtype} of shape {seen.shape}, and the image "
            f"{pixels.dtype} of shape {pixels.shape}: pass photographs alike, or Preprocess(size=...)"
        )
    return seen


def background_photos(hide: str, background: Any, fill: Any) -> list[Any]:
    """The photographs that what is off is drawn from, [] if it is not."""
    check_hide(hide, background, fill, usual="mean")
    if background is None:
        return []
    is_one = isinstance(background, np.ndarray) and background.ndim == 3 and background.shape[2] in (1, 3, 4)
    photos = []
    for i, one in enumerate(several(background, () if is_one else (3, 4), "photographs")):
        try:
            photos.append(checked_image(one))
        except InputError as error:
            raise InputError(f"background, photograph {i}: {error}") from None
    return photos
