"""Preprocessing of torchvision and transformers, by objects with their attributes: the network's input.

Their own classes were compared with on real photographs (torchvision 0.28, transformers 5.23): squashed
images agree to their rounding, crops but for the pixel on which a crop begins.
"""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import limes
from internals import preprocess_like
from limes.exceptions import InputError

PHOTO = np.random.default_rng(0).integers(0, 256, (60, 80, 3)).astype(np.uint8)
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class Interpolation(Enum):
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"


def preset(resize=(30,), crop=(15,)):
    return SimpleNamespace(
        resize_size=list(resize),
        crop_size=list(crop),
        mean=MEAN,
        std=STD,
        interpolation=Interpolation.BILINEAR,
    )


def processor(**changed):
    facts = {
        "do_resize": True,
        "size": {"height": 20, "width": 24},
        "resample": 3,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": MEAN,
        "image_std": STD,
    }
    return SimpleNamespace(**facts | changed)


def step(kind, **facts):
    return type(kind, (), facts)()


def composition(*steps):
    return SimpleNamespace(transforms=list(steps))


def network_input(transform):
    read = preprocess_like(transform)
    return read(read.framing(PHOTO).apply(PHOTO))


def expected(shares):
    """(C, H, W), of shares of 255 (H, W, 3)."""
    return np.moveaxis((shares - MEAN) / STD, -1, 0)


def test_a_squashed_image_is_that_of_pil():
    resized = np.asarray(Image.fromarray(PHOTO).resize((24, 20), Image.Resampling.BICUBIC)) / 255
    np.testing.assert_allclose(network_input(processor()), expected(resized), rtol=1e-5, atol=1e-5)


def test_a_middle_is_that_of_the_resized_image():
    # 60 x 80 resized to 30 x 40, of which 15 x 15 are seen: pixels 15 to 45 and 25 to 55 of the photograph
    part = Image.fromarray(PHOTO[15:45, 25:55]).resize((15, 15), Image.Resampling.BILINEAR)
    np.testing.assert_allclose(
        network_input(preset()), expected(np.asarray(part) / 255), rtol=1e-5, atol=1e-5
    )


def test_compositions_presets_and_processors_agree():
    steps = composition(
        step("Resize", size=30, interpolation=Interpolation.BILINEAR),
        step("CenterCrop", size=(15, 15)),
        step("ToTensor"),
        step("Normalize", mean=MEAN, std=STD),
    )
    crop = {"do_center_crop": True, "crop_size": {"height": 15, "width": 15}, "resample": 2}
    of_processor = processor(size={"shortest_edge": 30}, **crop)
    for other in (steps, of_processor):
        np.testing.assert_array_equal(network_input(other), network_input(preset()))


@pytest.mark.parametrize(("scale", "factor"), [(True, 1 / 255), (False, 1.0)])
def test_a_change_of_dtype_scales_if_it_says_so(scale, factor):
    steps = composition(
        step("Resize", size=(20, 24), interpolation=Interpolation.BILINEAR),
        step("ToDtype", scale=scale),
        step("Normalize", mean=MEAN, std=STD),
    )
    resized = np.asarray(Image.fromarray(PHOTO).resize((24, 20), Image.Resampling.BILINEAR)) * factor
    np.testing.assert_allclose(network_input(steps), expected(resized), rtol=1e-5, atol=1e-4)


def test_shares_of_a_processor():
    small = preprocess_like(processor(size={"shortest_edge": 224}, crop_pct=0.875))
    large = preprocess_like(processor(size={"shortest_edge": 384}, crop_pct=0.875))
    assert (small.size, small.fit, small.share) == ((224, 224), "crop", 0.875)
    assert (large.size, large.fit, large.share) == ((384, 384), "squash", 1.0)
    plain = preprocess_like(processor(do_rescale=False, do_normalize=False, do_resize=False))
    assert (plain.size, plain.mean, plain.scale) == (None, 0.0, 1.0)


def test_an_explainer_takes_them():
    seen = []

    def first(images):
        seen.append(np.shape(images))
        return np.asarray(images, dtype=float).mean(axis=(1, 2, 3))

    result = limes.ImageExplainer(
        first, segments="grid", segment_options={"rows": 2, "columns": 2}, preprocess=preset()
    )(PHOTO)
    assert seen[0][1:] == (3, 15, 15)
    assert result.mask(of="image").shape == (60, 80)


@pytest.mark.parametrize(
    "transform",
    [
        preset(crop=(40,)),
        preset(crop=(10, 20)),
        processor(size={"shortest_edge": 30}),
        processor(resample=9),
        composition(step("RandomCrop", size=3)),
        composition(step("CenterCrop", size=3)),
        composition(
            step("CenterCrop", size=40), step("Resize", size=(20, 20), interpolation=Interpolation.BILINEAR)
        ),
    ],
)
def test_transforms_that_are_not_read_are_refused(transform):
    with pytest.raises(InputError, match="preprocess"):
        preprocess_like(transform)


@pytest.mark.parametrize("other", [3, "crop", np.negative])
def test_other_objects(other):
    with pytest.raises(InputError, match=r"torchvision's weights\.transforms"):
        limes.ImageExplainer(lambda images: images, preprocess=other)


@pytest.mark.parametrize("options", [{"share": 0}, {"share": 1.5}, {"share": "a"}, {"resample": "cubic"}])
def test_options_of_preprocess(options):
    with pytest.raises(InputError, match=next(iter(options))):
        limes.Preprocess(size=4, **options)
