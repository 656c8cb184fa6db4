"""lime's explainer of images: its calls and results, answered by the limit or by lime's sampling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Never

import numpy as np

from limes._arrays import Floats, Ints
from limes._checks import check_seed, refuse_unknown
from limes._explainers.image import MEANING, ImageExplainer, Photograph
from limes._explainers.photographs import checked_image, rgb
from limes._explainers.superpixels import (
    Segmentation,
    checked_labels,
    filler,
    mean_colours,
    quickshift,
    segmenter,
)
from limes.compat.lime import lime_base
from limes.compat.lime._engines import (
    BaseExplainer,
    Call,
    MaskedAdapter,
    engine_name,
    in_batches,
    model_behind,
)
from limes.compat.lime._leniency import batch_size_of, kernel_width_of
from limes.compat.lime.exceptions import warn_or_raise
from limes.compat.lime.explanation import DomainMapper, Explanation, Pairs, refuse_list_options
from limes.compat.lime.lime_base import PerturbedRows
from limes.compat.lime.wrappers.scikit_image import SegmentationAlgorithm
from limes.designs._exchangeable import BANDWIDTH
from limes.exceptions import InputError
from limes.models._calling.caller import ModelCaller
from limes.models._calling.outputs import resolve
from limes.models._images import columns


def _estimator_of(classifier_fn: Any, size: int) -> Any:
    behind = model_behind(classifier_fn, "classification")
    return behind[0] if behind is not None and columns(behind[0]) == size else None


@dataclass(frozen=True, eq=False)
class ImageClassifier:
    """Calls ``classifier_fn`` with batches of images, and checks its answers.

    Answers are columns as they come: one number an image is one label, 0.
    """

    classifier_fn: Any
    item: Photograph
    batch_size: int
    mode: ClassVar[str] = "classification"

    @cached_property
    def model(self) -> Any:
        estimator = _estimator_of(self.classifier_fn, self.item.image.shown.size)
        return self.classifier_fn if estimator is None else estimator

    @cached_property
    def _caller(self) -> ModelCaller:
        return ModelCaller(self.model, resolve(self.model), self.item.composer(self.model))

    def __call__(self, z: Floats, *, progress: bool = False) -> Floats:
        """Answers (n, k) where the superpixels of z (n, d) are shown, with a bar if it takes long."""

        def columns_of(rows: Floats) -> Floats:
            return self._caller(rows).reshape(len(rows), -1)

        return in_batches(columns_of, z, self.batch_size, progress=progress)


@dataclass(frozen=True, eq=False)
class ImageAdapter(MaskedAdapter):
    """Images, whose superpixels are shown or filled, each with probability ½."""

    facts = {"meaning": MEANING}  # noqa: RUF012 - constant

    def item(self, instance: Photograph) -> Photograph:
        return instance

    def is_read(self, call: Call) -> bool:
        return call.predict.model is not call.predict.classifier_fn

    def explainer(self, call: Call, seed: int) -> ImageExplainer:
        predict, prediction = call.predict, np.asarray(call.prediction)
        # numbers from 0; of no label at all the first, which is not used
        labels = [k % len(prediction) for k in call.choose_labels(prediction)] or [0]
        classes, image = getattr(predict.model, "classes_", None), call.instance.image
        return ImageExplainer(
            predict.model,
            segments=image.labels,
            fill=image.fill,
            bandwidth=self.bandwidth,
            output=labels if classes is None else [classes[k] for k in labels],
            max_calls=max(2, call.num_samples) - 1,
            contributions="auto" if self.is_read(call) else False,
            batch_size=predict.batch_size,
            rng=seed,
        )

    def fingerprint(self, instance: Photograph) -> Sequence[int]:
        return instance.key

    def draw(self, call: Call, rng: np.random.Generator) -> tuple[Floats, Floats]:
        z = _switches(call.instance.size, call.num_samples, rng)
        return z, z

    def ask(self, call: Call, rows: Any) -> Floats:
        return np.asarray(call.predict(rows, progress=call.progress))


def _switches(d: int, count: int, rng: np.random.Generator) -> Floats:
    """Draw rows z (count, d) of superpixels that are shown (1) or filled (0), in the first all shown."""
    z = rng.integers(0, 2, size=(count, d)).astype(np.float64)
    z[0] = 1.0
    return np.asarray(z)


# scikit-image's own, which lime's quickshift gets too, whatever its seed
_SEED = 42

# what lime's module imports is imported from there by public code
__all__ = [
    "ImageExplanation",
    "LimeImageExplainer",
    "SegmentationAlgorithm",
    "default_segmentation",
    "lime_base",
]


class SegmentMapper(DomainMapper):
    """Names of segments."""

    def map_exp_ids(self, exp: Pairs, **kwargs: Any) -> list[tuple[Any, float]]:
        """Replace numbers of segments by names."""
        refuse_list_options(kwargs)
        return [(f"superpixel {segment}", value) for segment, value in exp]


class ImageExplanation(Explanation):
    """One image's surrogates, one a label; all that explanations of tables have, and pictures.

    Parameters
    ----------
    image : (H, W, C) or (H, W)
    segments : (H, W)
        Superpixels, any whole numbers; features are called by them.
    **options
        Of :class:`limes.compat.lime.explanation.Explanation`.

    Attributes
    ----------
    local_exp, standard_errors : {label: [(segment, coefficient or its standard error)]}
        Largest coefficient first.
    top_labels, intercept, local_pred, score, predict_proba, engine, engine_reason, limes
        As :class:`limes.compat.lime.explanation.Explanation` has them.
    """

    def __init__(self, image: Any, segments: Any, **options: Any) -> None:
        self.image = image
        self.segments = segments
        super().__init__(SegmentMapper(), **options)

    def _pairs(self, features: Ints, numbers: Floats) -> Pairs:
        # limes counts superpixels from 0, whatever they are called
        return super()._pairs(np.unique(self.segments)[features], numbers)

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
        pairs = self.local_exp[self._explained(label)]
        if positive_only and negative_only:
            raise InputError("positive_only and negative_only exclude each other: pass one, or neither")
        sign = 1 if positive_only else -1 if negative_only else 0
        mask = self._signs(_largest(pairs, sign, num_features, min_weight))
        image = _coloured(self.image)
        shown = np.where((mask != 0)[..., None], image, 0).astype(image.dtype) if hide_rest else image.copy()
        if sign:
            return shown, np.abs(mask)
        for channel, side in enumerate((-1, 1)):
            shown[mask == side, channel] = image.max()
        return shown, mask

    def _signs(self, pairs: Pairs) -> Any:
        names, places = np.unique(self.segments, return_inverse=True)
        signs = np.zeros(len(names), dtype=np.int64)
        for segment, value in pairs:
            signs[np.searchsorted(names, segment)] = -1 if value < 0 else 1
        return signs[places].reshape(np.shape(self.segments))

    def _position(self, feature: int) -> int:
        return int(np.searchsorted(np.unique(self.segments), feature))


def _largest(pairs: Pairs, sign: int, count: int, least: float) -> Pairs:
    # as lime has them: the first of one sign that are large enough, or those of the first
    if sign:
        return [(j, value) for j, value in pairs if sign * value > max(least, 0.0)][:count]
    return [(j, value) for j, value in pairs[:count] if abs(value) >= least]


def _coloured(image: Any) -> Any:
    planes = image[..., None] if np.ndim(image) == 2 else image
    return np.repeat(planes, 3, axis=2) if planes.shape[2] == 1 else planes


class LimeImageExplainer(BaseExplainer):
    """Explain predictions on images.

    The parameters are lime's; ``engine`` is "limit", "lime" or None (:func:`limes.compat.lime.engine`).
    Calls that only lime's sampling supports (another kernel, metric or regressor, or too few samples for
    the limit) go to engine "lime" in any case, with the reason in ``explanation.engine_reason``. A seed
    fixes each image's result, whatever came before.

    Raises
    ------
    InputError
        An option that is not usable.

    Examples
    --------
    >>> import numpy as np
    >>> def redness(images):
    ...     red = images[..., 0].mean(axis=(1, 2)) / 255
    ...     return np.column_stack([1 - red, red])
    >>> image = np.zeros((8, 8, 3), dtype=np.uint8)
    >>> image[:4, :4, 0] = 200
    >>> quarters = np.repeat(np.repeat([[1, 2], [3, 4]], 4, axis=0), 4, axis=1)
    >>> explainer = LimeImageExplainer(random_state=0)
    >>> explanation = explainer.explain_instance(
    ...     image, redness, top_labels=None, hide_color=0, segmentation_fn=lambda image: quarters)
    >>> explanation.engine, [(j, round(value, 3) + 0.0) for j, value in explanation.local_exp[1]][0]
    ('limit', (1, 0.196))
    """

    _draws = "data_labels"

    def __init__(
        self,
        kernel_width: float | None = BANDWIDTH,
        kernel: Callable[..., Floats] | None = None,
        verbose: bool = False,
        feature_selection: str = "auto",
        random_state: Any = None,
        *,
        engine: str | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, LimeImageExplainer)
        options = (feature_selection, random_state, engine)
        super().__init__("classification", kernel, verbose, None, *options)
        width = BANDWIDTH if kernel_width is None else kernel_width
        bandwidth = kernel_width_of(width, BANDWIDTH, kernel)
        # a kernel of the user's gets any number
        self.kernel_width = bandwidth if kernel is None else float(width)
        self._adapt(ImageAdapter(bandwidth), self.kernel_width)

    def explain_instance(
        self,
        image: Any,
        classifier_fn: Callable[[Any], Any],
        labels: Iterable[int] = (1,),
        hide_color: Any = None,
        top_labels: int | None = 5,
        num_features: int = 100000,
        num_samples: int = 1000,
        batch_size: int = 10,
        segmentation_fn: Callable[[Any], Any] | None = None,
        distance_metric: str = "cosine",
        model_regressor: Any = None,
        random_seed: int | None = None,
        progress_bar: bool = True,
    ) -> ImageExplanation:
        """Explain one image; lime's parameters.

        Parameters
        ----------
        image : (H, W, C) or (H, W)
            Whole numbers or fractions, of 1, 3 or 4 channels. Grey ones (H, W) become RGB, but for an
            estimator that was fitted on as many numbers as they have pixels.
        classifier_fn
            A batch of images (n, H, W, C) -> (n, k), or (n,); or the ``predict_proba`` of an estimator that
            was fitted on flattened images. Batches are one buffer: copy what you keep.
        labels, top_labels
            The labels to explain, or how many of the largest answers; the second takes precedence.
        hide_color
            What a superpixel shows when it is off: None for its mean colour, a number, a colour or an image.
        num_features, num_samples, batch_size
            Superpixels in a surrogate; images that the classifier is called with, at most; at once.
        segmentation_fn
            Image -> superpixels (H, W), any whole numbers; or these themselves, or a name that
            :class:`limes.ImageExplainer` knows. None: lime's quickshift, with engine "lime" of the pixels as
            they are, as in lime, else of the colours that people see.
        distance_metric, model_regressor
            lime's; another choice than the default needs its sampling.
        random_seed
            Of the default segmentation; None is scikit-image's own, so that an image has one segmentation.
        progress_bar
            Whether work of more than a second shows one.

        Raises
        ------
        InputError
            An image, segments, a fill or an option that is not usable, or a label that there is not.
        ModelError
            If the classifier fails, or answers in another shape, or not in finite numbers.
        """
        item, segments = self._item(image, classifier_fn, hide_color, segmentation_fn, random_seed)
        predict = ImageClassifier(classifier_fn, item, batch_size_of(batch_size, max(num_samples, 1)))
        prediction = predict(np.ones((1, item.size)))[0]
        # a wrong label is refused before the classifier is called with more images
        chosen = self._choose_labels(prediction, labels, top_labels)
        options = num_features, num_samples, distance_metric, model_regressor
        call = Call(
            item, predict, lambda _: chosen, *options, progress=bool(progress_bar), prediction=prediction
        )
        return ImageExplanation(_coloured(item.photo), segments, **self._answer(call, top_labels))

    def _overridden_rows(self, call: Call) -> PerturbedRows:
        predict, item, image = call.predict, call.instance, call.instance.image
        arguments = item.photo, image.fill, image.labels, predict.classifier_fn, call.num_samples
        options = {"batch_size": predict.batch_size, "progress_bar": call.progress}
        return PerturbedRows(*self.data_labels(*arguments, **options))

    def data_labels(
        self,
        image: Any,
        fudged_image: Any,
        segments: Any,
        classifier_fn: Callable[[Any], Any],
        num_samples: int,
        batch_size: int = 10,
        progress_bar: bool = True,
    ) -> tuple[Floats, Floats]:
        """Draw lime's rows (n, d) of superpixels that are shown; call the classifier for answers (n, k)."""
        item = Photograph.parse(image, Segmentation(lambda _: segments), filler(np.asarray(fudged_image)))
        rows = _switches(item.size, num_samples, np.random.default_rng(self._seeds.lime))
        return rows, ImageClassifier(classifier_fn, item, batch_size)(rows, progress=progress_bar)

    def _item(
        self, image: Any, classifier_fn: Any, hide_color: Any, segmentation_fn: Any, random_seed: int | None
    ) -> tuple[Photograph, Any]:
        """The image, and its superpixels as the segmentation calls them."""
        # lime's own superpixels and colours are those of three channels
        pixels = checked_image(image) if segmentation_fn is None or hide_color is None else _checked(image)
        if pixels.ndim == 2 and _estimator_of(classifier_fn, pixels.size) is None:
            pixels = np.ascontiguousarray(_coloured(pixels))
        if segmentation_fn is None:
            as_lime = engine_name(self.engine) == "lime"
            segmentation_fn = default_segmentation(random_seed, as_lime=as_lime)
        segments = _whole_labels(segmenter(segmentation_fn, None).segment(pixels))
        fill = mean_colours if hide_color is None else filler(_spread(hide_color, pixels.shape))
        return Photograph.parse(pixels, Segmentation(lambda _: segments), fill, check=np.asarray), segments


def _checked(image: Any) -> Any:
    """The image, with any number of channels and pixels that are no numbers too, as lime takes it."""
    try:
        return checked_image(image)
    except InputError as error:
        pixels = np.asarray(image)
        if pixels.ndim not in (2, 3) or pixels.dtype.kind not in "biuf" or not pixels.size:
            raise
        remedy = "pass 1, 3 or 4 channels of finite numbers"
        warn_or_raise(str(error), remedy, "the classifier gets it as it is, as in lime")
        return np.ascontiguousarray(pixels)


def _whole_labels(labels: Any) -> Ints:
    try:
        return checked_labels(labels)
    except InputError as error:
        fractions = np.asarray(labels)
        if fractions.dtype.kind != "f" or fractions.ndim != 2:
            raise
        warn_or_raise(str(error), "pass whole numbers", "they are counted from 0")
        return np.unique(fractions, return_inverse=True)[1].reshape(fractions.shape)


def _spread(hide_color: Any, shape: tuple[int, ...]) -> Any:
    """A colour or part of an image as an image, where numpy makes it one, as in lime."""
    if isinstance(hide_color, str) or callable(hide_color):
        return hide_color
    try:
        return np.broadcast_to(np.asarray(hide_color), shape)
    except ValueError:
        return hide_color


def default_segmentation(seed: Any = None, *, as_lime: bool = False) -> Callable[[Any], Any]:
    """Superpixels by lime's own quickshift, of any image as people see it.

    Or ``as_lime`` calls it: floats beyond 0 to 1 have no colours that people see, and other superpixels.
    """
    checked = _SEED
    try:
        checked = _SEED if seed is None else check_seed(seed)
    except InputError:
        warn_or_raise(f"random_seed={seed!r}", "pass a whole number >= 0", "it is ignored, as in lime")
    if not as_lime:
        return lambda image: quickshift(rgb(image), seed=checked)
    options = {"kernel_size": 4, "max_dist": 200, "ratio": 0.2, "random_seed": checked}
    segment = SegmentationAlgorithm("quickshift", **options)
    # it takes colours only
    return lambda image: segment(image if image.shape[2:] == (3,) else rgb(image))
