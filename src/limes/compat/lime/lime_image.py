"""lime's explainer of images: its calls and results, with the limit or lime's own sampling behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Never

import numpy as np

from limes._arrays import Floats
from limes._checks import check_choice, check_count, check_seed, refuse_unknown
from limes.compat.lime.answers import chosen_labels
from limes.compat.lime.engines import Seeds, engine_for, engine_of
from limes.compat.lime.images.answers import ImageAnswers, ImageRequest, estimator_of
from limes.compat.lime.images.explanation import ImageExplanation, coloured
from limes.compat.lime.images.law import LimeImages, asked, switches
from limes.compat.lime.images.limit import LimitImages
from limes.compat.lime.lime_base import SELECTIONS, LimeBase, default_kernel
from limes.compat.lime.surrogates import Surrogates, filled
from limes.compat.lime.switched_limit import fewest
from limes.designs.exchangeable import BANDWIDTH
from limes.designs.weights import check_bandwidth
from limes.explainers.images.fills import filled as switched_off
from limes.explainers.images.fills import filler
from limes.explainers.images.pixels import checked_image, rgb
from limes.explainers.images.superpixels import checked_labels, quickshift, segmenter, superpixels
from limes.models.images import SwitchedImage

# scikit-image's own, which lime's quickshift gets too, whatever its seed
_SEED = 42

__all__ = ["ImageExplanation", "LimeImageExplainer"]


class LimeImageExplainer:
    """Explain predictions on images.

    The parameters are lime's; ``engine`` is "limit", "lime" or None (:mod:`limes.compat.lime.engines`).
    Requests that only lime's own sampling knows (another kernel, metric or regressor, or too few samples for
    the limit) go to engine "lime" in any case, and ``explanation.engine_reason`` says so. A seed fixes each
    image's result, whatever came before.

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
        from sklearn.utils import check_random_state

        refuse_unknown(unknown, LimeImageExplainer)
        engine_of(engine)
        self.engine = engine
        self.feature_selection = check_choice("feature_selection", feature_selection, tuple(SELECTIONS))
        self.kernel_width = check_bandwidth(BANDWIDTH if kernel_width is None else kernel_width)
        self.random_state = check_random_state(random_state)
        self._seeds = Seeds.of(random_state, self.random_state)
        self._kernel = kernel
        weigh = partial(kernel or default_kernel, kernel_width=self.kernel_width)
        self.base = LimeBase(weigh, verbose, random_state=self.random_state)
        facts = {"engine": "lime", "bandwidth": self.kernel_width, "ridge": 1.0, "seed": self._seeds.lime}
        self._engines: dict[str, Callable[[ImageRequest], Surrogates]] = {
            "limit": LimitImages(self.kernel_width, feature_selection, self._seeds.limit, verbose),
            "lime": LimeImages(self.base, feature_selection, self._seeds.lime, facts),
        }

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
            The labels to explain, or how many of the largest answers; the second counts if it is given.
        hide_color
            What a superpixel shows when it is off: None for its mean colour, a number, a colour or an image.
        num_features, num_samples, batch_size
            Superpixels in a surrogate; images that the classifier is asked about, at most; at once.
        segmentation_fn
            Image -> superpixels (H, W), any whole numbers; or these themselves, or a name that
            :class:`limes.ImageExplainer` knows. None: lime's quickshift of the colours that people see.
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
        switched, segments = self._switched(image, classifier_fn, hide_color, segmentation_fn, random_seed)
        answers = ImageAnswers(classifier_fn, switched, check_count("batch_size", batch_size))
        said = answers(np.ones((1, switched.size)))[0]
        request = ImageRequest(
            answers,
            said,
            chosen_labels(said, labels, top_labels),
            check_count("num_features", num_features),
            check_count("num_samples", num_samples),
            distance_metric,
            model_regressor,
            bool(progress_bar),
        )
        explanation = ImageExplanation(coloured(switched.shown), segments)
        explanation.random_state = self.random_state
        engine = self._engine(request)
        found = _renamed(self._engines[engine[0]](request), np.unique(segments))
        return filled(explanation, found, engine, top=bool(top_labels))

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
        """Draw lime's own rows (n, d) of superpixels that are shown; ask for their answers (n, k)."""
        pixels = checked_image(image)
        fill = switched_off(filler(np.asarray(fudged_image)), pixels, np.zeros(1, dtype=np.int64))
        switched = SwitchedImage(pixels, fill, superpixels(lambda _: segments, pixels))
        rows = switches(num_samples, switched.size, np.random.default_rng(self._seeds.lime))
        return rows, asked(ImageAnswers(classifier_fn, switched, batch_size), rows, progress=progress_bar)

    def _switched(
        self, image: Any, classifier_fn: Any, hide_color: Any, segmentation_fn: Any, random_seed: int | None
    ) -> tuple[SwitchedImage, Any]:
        """The image as the classifier takes it, with fill and superpixels; and the user's own segments."""
        pixels = checked_image(image)
        if pixels.ndim == 2 and estimator_of(classifier_fn, pixels.size) is None:
            pixels = np.ascontiguousarray(coloured(pixels))
        if segmentation_fn is None:
            segmentation_fn = default_segmentation(random_seed)
        segments = checked_labels(segmenter(segmentation_fn, None)(pixels))
        labels = superpixels(lambda _: segments, pixels)
        fill = filler("mean" if hide_color is None else hide_color)
        return SwitchedImage(pixels, switched_off(fill, pixels, labels), labels), segments

    def _engine(self, request: ImageRequest) -> tuple[str, str]:
        """Which engine answers, and why, if it is not the one that was asked for."""
        # what may be read need not be asked
        least = 1 if request.answers.reads else fewest(request.image.size)
        only_lime = {
            "kernel": self._kernel is not None,
            "model_regressor": request.regressor is not None,
            "distance_metric": request.metric != "cosine",
            f"num_samples < {least}": request.samples < least,
        }
        return engine_for(self.engine, only_lime)


def default_segmentation(seed: int | None = None) -> Callable[[Any], Any]:
    """Superpixels by lime's own quickshift, of any image as people see it."""
    known = _SEED if seed is None else check_seed(seed)
    return lambda image: quickshift(rgb(image), seed=known)


def _renamed(found: Surrogates, segments: Any) -> Surrogates:
    """Call superpixels by the user's own numbers."""
    fits = {k: replace(fit, features=segments[fit.features]) for k, fit in found.fits.items()}
    return replace(found, fits=fits)
