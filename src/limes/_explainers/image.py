r"""Explain images, with one fill or several.

The surrogate of several is that of images of which each shows one of m fills, drawn at random.

f_i is the model over z with fill i, and β_i, ρ_i its surrogate and R². As z and the fill are independent,
Cov(z, f) is the mean of the fills' own, and so are the coefficients:

    β = Σ_i β_i / m,      standard error² = Σ_i error_i² / m²,      spread_j = deviation of β_ij over i,

    1 - R² = Σ_i [(1 - ρ_i) v_i + E_w (g_i - g)²] / Σ_i [v_i + (E_w f_i - mean)²],     v_i = β_iᵀ Σ β_i / ρ_i.

The spread is no error: it says how much depends on what a superpixel is replaced by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Never

import numpy as np

from limes import __version__
from limes._arrays import ROUNDING, Bools, Floats, r_squared
from limes._checks import check_count, refuse_unknown
from limes._explainers.masked import MaskedExplainer
from limes._explainers.masked_model import CONTROLS, MaskableModel, MaskedModel
from limes._explainers.options import SamplingOptions
from limes._explainers.parts.image import MEANING, Fill, Photograph, filler, range_remark, segmenter
from limes._explainers.subset_fits import identified
from limes._explanation import Explanation
from limes.designs._exchangeable import BANDWIDTH, ExchangeableDesign
from limes.exceptions import InputError
from limes.models._algebra import over_switches
from limes.models._calling.caller import Retry
from limes.models._calling.networks import adapted
from limes.models._images import Preprocess, composer_of, flat, preprocess_like
from limes.models.forms._base import Form

_ONE_SUPERPIXEL = (
    "the whole image is one superpixel: its coefficient compares the image with its fill; choose other "
    "segments"
)
# Coefficients of two fills differ where zero is this many standard errors away from both, on other sides
_CERTAIN = 2.0
# Superpixels of an output that a warning names
_MOST_NAMED = 3
# Smallest R² that a variance is computed from
_LEAST = 1e-6


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
        self._segment, self._fills = segmenter(segments, segment_options), _fills(fill)
        if check_count("max_calls", max_calls) < len(self._fills):
            raise InputError(
                f"max_calls={max_calls} is less than a call for each of {len(self._fills)} fills"
            )
        calls = max_calls // len(self._fills)
        options = SamplingOptions(
            method, tolerance, calls, control, rng, batch_size, retry, controls=CONTROLS
        )
        self._preprocess = _preprocess(preprocess)
        name = type(model).__name__
        model = adapted(model)
        self._model = MaskableModel.of(model, output=output, top=top, labels=labels, link=link)
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
        several = _as_list(images)
        if several is None:
            return self._explain(images, progress=progress)
        return self._explain_each(several, progress=progress, workers=workers)

    def _explain_item(self, item: Photograph, *, progress: bool, changes: Bools | None = None) -> Explanation:
        """Explain an image; with several fills, the average over them."""
        explain = partial(super()._explain_item, progress=progress)
        if len(self._fills) == 1:
            return explain(item, changes=changes)
        items = {name: item.with_fill(fill) for name, fill in self._fills.items()}
        # an average needs the coefficients of all fills, under one design
        changes = np.all([self._changes(one) for one in items.values()], axis=0)
        by_fill = {name: explain(one, changes=changes) for name, one in items.items()}
        return _averaged(by_fill, self._design(int(identified(changes).sum()), self._bandwidth))

    def _parse(self, raw: Any) -> Photograph:
        return Photograph.parse(raw, self._segment, next(iter(self._fills.values())), self._preprocess)

    def _bind(self, item: Photograph) -> MaskedModel:
        image, preprocess = item.image, self._preprocess

        def over(form: Form) -> Form:
            return over_switches(form, flat(image, preprocess))  # an estimator takes rows of numbers

        compose = composer_of(self._model.model, image, preprocess)
        return self._model.bind(image.size, compose, over, self._features)

    def _remarks(self, item: Photograph) -> tuple[str, ...]:
        one = _ONE_SUPERPIXEL if item.image.size == 1 else ""
        return tuple(filter(None, (range_remark(item.photo, self._preprocess), one)))


def _plain(option: Any) -> Any:
    """Return an option as provenance holds it."""
    return option if isinstance(option, str | int | float) else type(option).__name__


def _preprocess(preprocess: Any) -> Preprocess | None:
    read = None if preprocess is None else preprocess_like(preprocess)
    if preprocess is not None and read is None:
        raise InputError(
            f"preprocess must be a limes.Preprocess, such as limes.Preprocess(mean=127, scale=128), "
            f"torchvision's weights.transforms(), or an image processor of transformers; got {preprocess!r}; "
            "a callable on batches of images is passed as the model itself"
        )
    return read


def _as_list(images: Any) -> list[Any] | None:
    """Return several images as a list, None if it is one image."""
    if isinstance(images, list | tuple) and any(np.ndim(image) >= 2 for image in images):
        return list(images)
    return list(images) if isinstance(images, np.ndarray) and images.ndim == 4 else None


# -- several fills -------------------------------------------------------------------------------------------


def _fills(fill: Any) -> dict[str, Fill]:
    """Return the option ``fill`` as functions by name: one, or those of a list that is no colour."""
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
    values, errors = (
        np.stack([getattr(one, name) for one in by_fill]) for name in ("values", "standard_errors")
    )
    fidelity, spreads = _fidelity(by_fill, design), values.std(axis=0, ddof=1)
    sampled = next((one for one in by_fill if one.method == "sampled"), first)
    return replace(
        first,
        values=values.mean(axis=0),
        standard_errors=_of_mean(errors),
        intercepts=np.mean([one.intercepts for one in by_fill], axis=0),
        surrogate_predictions=np.mean([one.surrogate_predictions for one in by_fill], axis=0),
        surrogate_errors=_of_mean([_or_zero(one.surrogate_errors, one.predictions) for one in by_fill]),
        fidelity=fidelity[0],
        fidelity_errors=fidelity[1],
        method=sampled.method,
        reason=sampled.reason,
        calls=np.sum([one.calls for one in by_fill], axis=0),
        row_converged=np.all([one.row_converged for one in by_fill], axis=0),
        row_warnings=(_warnings(parts, values, errors),),
        provenance={
            **first.provenance,
            "fill": ", ".join(parts),
            "by_fill": {name: one.values[0].tolist() for name, one in parts.items()},
            "fill_spread": spreads[0].tolist(),
        },
        shares=None,
        share_errors=None,
        controls=None,
        effective_rows=None,
        explainer=None,
        fit=None,
    )


def _of_mean(errors: Any) -> Floats:
    return np.asarray(np.sqrt((np.asarray(errors) ** 2).sum(axis=0)) / len(errors))


def _or_zero(numbers: Any, like: Floats) -> Floats:
    return np.zeros_like(like) if numbers is None else np.asarray(numbers)


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

    shares, errors = (
        np.stack([np.ravel(getattr(one, name)) for one in by_fill])
        for name in ("fidelity", "fidelity_errors")
    )
    best = combined(shares)
    moved = [
        combined(shares + np.where(np.arange(len(by_fill))[:, None] == i, errors, 0.0))
        for i in range(len(by_fill))
    ]
    return best.reshape(shape), np.sqrt(((np.stack(moved) - best) ** 2).sum(axis=0)).reshape(shape)


def _warnings(parts: Mapping[str, Explanation], values: Floats, errors: Floats) -> tuple[str, ...]:
    """What the fills warn of, and superpixels about which they do not agree, largest first."""
    texts = [f"{text} (fill {name})" for name, one in parts.items() for text in one.row_warnings[0]]
    first = next(iter(parts.values()))
    answers = np.max([np.abs([one.predictions, one.intercepts]) for one in parts.values()], axis=(0, 1))
    certain = np.abs(values) > np.maximum(_CERTAIN * errors, ROUNDING * answers[:, None])
    opposed = (certain & (values > 0)).any(axis=0) & (certain & (values < 0)).any(axis=0)
    sizes = np.where(opposed, np.abs(values).max(axis=0), 0.0)[0].reshape(len(first.feature_names), -1)
    for k, name in enumerate(first.output_names):
        worst = [j for j in np.argsort(-sizes[:, k], kind="stable")[:_MOST_NAMED] if sizes[j, k] > 0]
        if worst:
            of = f" (output {name})" if len(first.output_names) > 1 else ""
            named = ", ".join(first.feature_names[j] for j in worst)
            texts.append(f"the fills do not agree whether these raise or lower the answer: {named}{of}")
    return tuple(texts)
