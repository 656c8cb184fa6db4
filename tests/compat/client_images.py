"""How public code calls ``lime`` on images; see ``client_tables``."""

from __future__ import annotations

import numpy as np
from skimage.color import gray2rgb
from skimage.segmentation import mark_boundaries
from sklearn.linear_model import LinearRegression

from compat.client_material import NINE, PICTURE, colours, nine


def _explained(lime, ask=colours, *, image=PICTURE, options=None, **call):
    explainer = lime.lime_image.LimeImageExplainer(**({"random_state": 0} | (options or {})))
    call = {"segmentation_fn": nine, "num_samples": 300, "top_labels": 3, "hide_color": 0} | call
    return explainer.explain_instance(image, ask, **call)


def coefficients_of_superpixels(lime, tmp):
    explanation = _explained(lime)
    return {label: dict(explanation.local_exp[label]) for label in sorted(explanation.top_labels)}


def the_default_call(lime, tmp):
    result = lime.lime_image.LimeImageExplainer().explain_instance(
        PICTURE, colours, top_labels=2, hide_color=0, num_samples=100
    )
    image, mask = result.get_image_and_mask(result.top_labels[0], positive_only=True, hide_rest=True)
    return image.shape, mask.shape


def superpixels_by_name(lime, tmp):
    from lime.wrappers.scikit_image import SegmentationAlgorithm

    segment = SegmentationAlgorithm("slic", n_segments=9, compactness=20, sigma=1)
    result = _explained(lime, segmentation_fn=segment)
    return result.segments.shape


def quickshift_by_name(lime, tmp):
    from lime.wrappers.scikit_image import SegmentationAlgorithm

    segment = SegmentationAlgorithm("quickshift", kernel_size=1, max_dist=200, ratio=0.2)
    return _explained(lime, segmentation_fn=segment).segments.shape


def what_speaks_for_a_label(lime, tmp):
    return _explained(lime).get_image_and_mask(0, positive_only=True, num_features=1, hide_rest=True)[1]


def what_speaks_against_a_label(lime, tmp):
    result = _explained(lime)
    return result.get_image_and_mask(0, positive_only=False, negative_only=True, num_features=1)[1]


def both_sides_of_a_label(lime, tmp):
    image, mask = _explained(lime).get_image_and_mask(0, positive_only=False, num_features=3)
    return image.shape, sorted(set(np.unique(mask)) - {0})


def only_large_coefficients(lime, tmp):
    result = _explained(lime)
    return result.get_image_and_mask(0, positive_only=False, num_features=9, min_weight=0.02)[1]


def boundaries_of_what_is_shown(lime, tmp):
    result = _explained(lime)
    image, mask = result.get_image_and_mask(result.top_labels[0], num_features=5)
    return mark_boundaries(image / 2 + 0.5, mask).shape


def a_heat_map(lime, tmp):
    explanation = _explained(lime)
    weights = dict(explanation.local_exp[explanation.top_labels[0]])
    return np.vectorize(weights.get)(explanation.segments)


def scores_and_surrogates(lime, tmp):
    surrogate = _explained(lime, top_labels=1)
    label = surrogate.top_labels[0]
    return label, surrogate.intercept[label], float(surrogate.score), np.ravel(surrogate.local_pred)


def labels_by_number(lime, tmp):
    explanation = _explained(lime, labels=(0, 2), top_labels=None)
    return {label: dict(explanation.local_exp[label]) for label in (0, 2)}


def filled_with_the_mean(lime, tmp):
    def rough(images):
        p = images[:, :12, :12, 1].std(axis=(1, 2)) / 40
        return np.column_stack([p, 1 - p])

    return dict(_explained(lime, rough, hide_color=None, top_labels=2).local_exp[0])


def fractions_of_a_network(lime, tmp):
    """Pixels between -1 and 1, as mobile networks take them."""
    image = PICTURE / 127.5 - 1
    explanation = _explained(lime, lambda images: colours((images + 1) * 127.5), image=image, hide_color=-1)
    return dict(explanation.local_exp[0])


def a_sigmoid_of_one_column(lime, tmp):
    explanation = _explained(lime, lambda images: colours(images)[:, :1], labels=(0,), top_labels=None)
    return dict(explanation.local_exp[0])


def a_grey_image(lime, tmp):
    result = _explained(lime, image=PICTURE[..., 0], ask=lambda images: colours(images + np.arange(3)))
    return result.image.shape


def a_grey_image_made_colours(lime, tmp):
    """Digits are shown in colours, and the function takes one channel."""

    def light(images):
        p = images[..., 0].mean(axis=(1, 2)) / 255
        return np.column_stack([1 - p, p])

    return dict(_explained(lime, light, image=gray2rgb(PICTURE[..., 0]), top_labels=2).local_exp[1])


def batches_of_images(lime, tmp):
    seen = []

    def ask(images):
        seen.append(len(images))
        return colours(images)

    explanation = _explained(lime, ask, batch_size=7, progress_bar=False) if _has_bar(lime) else None
    explanation = explanation or _explained(lime, ask, batch_size=7)
    assert max(seen) == 7
    return dict(explanation.local_exp[0])


def _has_bar(lime):
    import inspect

    return "progress_bar" in inspect.signature(lime.lime_image.LimeImageExplainer.explain_instance).parameters


def a_kernel_width(lime, tmp):
    return dict(_explained(lime, options={"kernel_width": 1.0}).local_exp[0])


def another_distance_and_regressor(lime, tmp):
    explanation = _explained(lime, distance_metric="euclidean", model_regressor=LinearRegression())
    return dict(explanation.local_exp[0])


def few_features(lime, tmp):
    return len(_explained(lime, num_features=3).local_exp[0])


def rows_of_one_s_own(lime, tmp):
    """Subclasses draw other rows, in grey, say."""

    class Halves(lime.lime_image.LimeImageExplainer):
        def data_labels(self, image, fudged_image, segments, classifier_fn, num_samples, **_):
            d = len(np.unique(segments))
            data = np.vstack([np.ones(d), 1 - np.eye(d)])
            images = np.array([np.where(row[segments][..., None] > 0, image, fudged_image) for row in data])
            return data, classifier_fn(images)

    explanation = Halves(random_state=0).explain_instance(
        PICTURE, colours, segmentation_fn=lambda _: NINE, hide_color=0, top_labels=1
    )
    return dict(explanation.local_exp[explanation.top_labels[0]])


def rows_of_the_explainer(lime, tmp):
    explainer = lime.lime_image.LimeImageExplainer(random_state=0)
    data, answers = explainer.data_labels(PICTURE, PICTURE * 0, NINE, colours, 50)
    return data.shape, np.shape(answers), data[0]
