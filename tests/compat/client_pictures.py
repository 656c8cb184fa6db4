"""Further ways in which public code calls ``lime`` on images; see ``client_tables``."""

from __future__ import annotations

import numpy as np
from PIL import Image
from skimage.segmentation import mark_boundaries, slic
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Lasso

from compat.client_material import NINE, PICTURE, colours, nine


def _explained(lime, ask=colours, *, image=PICTURE, options=None, **call):
    explainer = lime.lime_image.LimeImageExplainer(**({"random_state": 0} | (options or {})))
    call = {"segmentation_fn": nine, "num_samples": 400, "top_labels": 3, "hide_color": 0} | call
    return explainer.explain_instance(image, ask, **call)


def a_digit_in_patches(lime, tmp):
    """28 x 28 pixels in 196 patches of four."""
    rng = np.random.default_rng(0)
    digit = np.zeros((28, 28, 3))
    digit[4:24, 12:16] = 1.0
    digit += 0.05 * rng.random(digit.shape)
    places = np.arange(28) // 2
    patches = 14 * places[:, None] + places

    def strokes(images):
        p = images[:, 8:20, 12:16].mean(axis=(1, 2, 3))
        return np.column_stack([1 - p, p])

    result = _explained(
        lime, strokes, image=digit, segmentation_fn=lambda _: patches, num_samples=1000, top_labels=1
    )
    heat = np.vectorize(dict(result.local_exp[result.top_labels[0]]).get)(result.segments)
    return heat.shape, bool(heat[8:20, 12:16].mean() > heat[:, :8].mean())


def superpixels_from_one(lime, tmp):
    def segment(image):
        return slic(image, n_segments=9, compactness=20, start_label=1)

    result = _explained(lime, segmentation_fn=segment)
    return result.segments.min(), result.get_image_and_mask(result.top_labels[0], num_features=3)[1].shape


def a_predictor_of_pictures(lime, tmp):
    """Arrays become pictures again, and are made smaller."""

    def ask(images):
        small = [Image.fromarray(image.astype(np.uint8)).resize((8, 8)) for image in images]
        return colours(np.stack([np.asarray(picture) for picture in small]))

    return dict(_explained(lime, ask).local_exp[0])


def a_heat_map_and_its_largest_superpixels(lime, tmp):
    result = _explained(lime, top_labels=2)
    label = result.top_labels[0]
    heat = np.vectorize(dict(result.local_exp[label]).get)(result.segments)
    least = 0.5 * np.abs(heat).max()
    mask = result.get_image_and_mask(
        label, positive_only=False, hide_rest=False, num_features=1000, min_weight=least
    )[1]
    return heat / np.abs(heat).max(), np.unique(np.sign(mask))


def a_seed_of_the_segmentation(lime, tmp):
    result = _explained(lime, segmentation_fn=None, random_seed=7, num_samples=100)
    return result.segments.shape, sorted(result.local_exp) == sorted(result.top_labels)


def pixels_around_zero(lime, tmp):
    """Between -0.5 and 0.5, as some networks take them; shown with one half added."""
    image = PICTURE / 255 - 0.5
    result = _explained(lime, lambda images: colours(255 * (images + 0.5)), image=image, hide_color=-0.5)
    shown, mask = result.get_image_and_mask(0, positive_only=True, hide_rest=False)
    return dict(result.local_exp[0]), mark_boundaries(shown + 0.5, mask).shape


def a_forest_of_flat_images(lime, tmp):
    rng = np.random.default_rng(1)
    images = rng.random((60, 12, 12, 3))
    bright = (images[:, :6].mean(axis=(1, 2, 3)) > images[:, 6:].mean(axis=(1, 2, 3))).astype(int)
    forest = RandomForestClassifier(8, max_depth=4, random_state=0).fit(images.reshape(60, -1), bright)
    result = _explained(
        lime,
        lambda batch: forest.predict_proba(batch.reshape(len(batch), -1)),
        image=images[0],
        segmentation_fn=lambda _: np.repeat(np.repeat([[0, 1], [2, 3]], 6, axis=0), 6, axis=1),
        labels=(1,),
        top_labels=None,
    )
    return len(result.local_exp[1])


def a_lasso_and_another_distance(lime, tmp):
    result = _explained(lime, model_regressor=Lasso(alpha=1e-4), distance_metric="euclidean")
    return dict(result.local_exp[0])


def an_image_explanation_by_hand(lime, tmp):
    result = lime.lime_image.ImageExplanation(PICTURE, NINE)
    result.local_exp = {0: [(0, 0.5), (8, -0.25), (4, 0.1)]}
    result.intercept, result.top_labels = {0: 0.2}, [0]
    image, mask = result.get_image_and_mask(0, positive_only=False, num_features=2)
    return image.shape, mask


def a_segmentation_with_parameters_of_others(lime, tmp):
    from lime.wrappers.scikit_image import SegmentationAlgorithm

    segment = SegmentationAlgorithm(
        "quickshift", kernel_size=1, max_dist=200, compactness=1, sigma=1, random_seed=3
    )
    return _explained(lime, segmentation_fn=segment).segments.shape


def a_misspelt_segmentation(lime, tmp):
    from lime.wrappers.scikit_image import SegmentationAlgorithm

    segment = SegmentationAlgorithm("slic", n_segments=9, kernal_size=3)
    return _explained(lime, segmentation_fn=segment).segments.shape


def a_photograph_as_doubles(lime, tmp):
    """As in lime's own tutorial: 0 to 255 as floats, with the default segmentation."""
    result = lime.lime_image.LimeImageExplainer(random_state=0).explain_instance(
        PICTURE.astype("double"), colours, top_labels=2, hide_color=0, num_samples=100
    )
    return result.segments.shape, len(result.top_labels)


def channels_first(lime, tmp):
    result = _explained(
        lime,
        lambda images: colours(np.moveaxis(images, 1, -1)),
        image=np.moveaxis(PICTURE, -1, 0),
        segmentation_fn=None,
        hide_color=None,
    )
    return result.segments.shape
