"""PIL images of every mode, and ranges of pixels: the model gets the colours that a person sees."""

import re

import numpy as np
import pytest
from PIL import Image

import limes
from internals import pixels_of, read_image
from limes.compat.lime.lime_image import LimeImageExplainer
from limes.exceptions import InputError

RNG = np.random.default_rng(0)
COLOURS = np.zeros((8, 8, 3), np.uint8)
COLOURS[:4], COLOURS[4:] = (250, 10, 10), (10, 60, 250)
COLOURS[2:6, 2:6] = (200, 220, 30)
PHOTO = Image.fromarray(COLOURS)
GREY = PHOTO.convert("L")
CLEAR = PHOTO.convert("RGBA")
CLEAR.putalpha(Image.fromarray(RNG.integers(0, 256, (8, 8), dtype=np.uint8)))
HALVES = np.repeat([[0, 1]], 4, axis=1) * np.ones((8, 1), dtype=np.int64)


def palette():
    return PHOTO.convert("P", palette=Image.Palette.ADAPTIVE)


def transparent_palette():
    picture = palette()
    picture.info["transparency"] = picture.getpixel((0, 0))
    return picture


def of_mode(mode):
    return PHOTO.convert(mode)


PICTURES = {
    "L": GREY,
    "RGB": PHOTO,
    "RGBA": CLEAR,
    "P": palette(),
    "P of grey": GREY.convert("P"),
    "P with transparency": transparent_palette(),
    "PA": CLEAR.convert("PA"),
    "1": of_mode("1"),
    "LA": CLEAR.convert("LA"),
    "RGBa": CLEAR.convert("RGBa"),
    "RGBX": of_mode("RGBX"),
    "CMYK": of_mode("CMYK"),
    "YCbCr": of_mode("YCbCr"),
    "HSV": of_mode("HSV"),
    "I": of_mode("I"),
    "F": GREY.convert("F"),
}


def seen(pixels):
    """(H, W, 3): the colours of an array (H, W) or (H, W, 3 or 4)."""
    pixels = np.asarray(pixels)
    return np.repeat(pixels[..., None], 3, axis=2) if pixels.ndim == 2 else pixels[..., :3]


@pytest.mark.parametrize("mode", PICTURES)
def test_a_picture_has_the_colours_that_a_person_sees(mode):
    picture = PICTURES[mode]
    np.testing.assert_array_equal(seen(pixels_of(picture)), np.asarray(picture.convert("RGB")))
    if "transparency" in picture.info or mode in ("RGBA", "LA", "PA", "RGBa"):
        alpha = np.asarray(picture.convert("RGBA"))[..., 3]
        np.testing.assert_array_equal(pixels_of(picture)[..., 3], alpha)


def colours(batch):
    """Mean red, green and blue, (n, 3), of a batch (n, H, W) or (n, H, W, C)."""
    return np.array([seen(image).reshape(-1, 3).mean(axis=0) / 255 for image in np.asarray(batch)])


EXPLAINERS = {
    "image": lambda picture: limes.ImageExplainer(colours, segments=HALVES)(picture).predictions[0],
    "composite": lambda picture: limes.CompositeExplainer(
        lambda parts: colours(parts["i"]), {"i": limes.ImagePart(segments=HALVES)}
    )({"i": picture}).predictions[0],
    "drop-in": lambda picture: (
        LimeImageExplainer(random_state=0)
        .explain_instance(picture, colours, segmentation_fn=HALVES, num_samples=20)
        .predict_proba
    ),
}


@pytest.mark.parametrize("explain", EXPLAINERS)
@pytest.mark.parametrize("mode", PICTURES)
def test_every_explainer_asks_about_those_colours(explain, mode):
    expected = np.asarray(PICTURES[mode].convert("RGB")).reshape(-1, 3).mean(axis=0) / 255
    assert EXPLAINERS[explain](PICTURES[mode]) == pytest.approx(expected)


def test_a_list_of_pictures_and_a_fill_are_read_alike():
    black = Image.new("P", (8, 8))
    pictures = [palette(), of_mode("CMYK")]
    for picture, explanation in zip(
        pictures, limes.ImageExplainer(colours, segments=HALVES, fill=black)(pictures), strict=True
    ):
        expected = np.asarray(picture.convert("RGB")).reshape(-1, 3).mean(axis=0) / 255
        assert explanation.predictions[0] == pytest.approx(expected)
        assert explanation.coefficients.intercepts[0] == pytest.approx(np.zeros(3), abs=1e-9)


SIXTEEN = np.array([[0, 256, 65535, 1000]], np.uint16)


@pytest.mark.parametrize(
    "picture",
    [
        Image.fromarray(SIXTEEN),
        Image.frombytes("I;16B", (4, 1), SIXTEEN.astype(">u2").tobytes()),
        Image.fromarray(SIXTEEN.astype(np.int32)),
    ],
    ids=["I;16", "I;16B", "I"],
)
def test_sixteen_bits_stay(picture):
    pixels = pixels_of(picture)
    assert pixels.dtype == np.uint16
    np.testing.assert_array_equal(pixels, SIXTEEN)


@pytest.mark.parametrize(
    ("picture", "words"),
    [
        (Image.new("LAB", (4, 4)), ["'LAB'", "ImageCms"]),
        (Image.fromarray(np.array([[-3, 5]], np.int32)), ["'I'", "-3", "white"]),
        (Image.fromarray(np.array([[0, 70_000]], np.int32)), ["'I'", "70000", "white"]),
    ],
    ids=["LAB", "negative", "beyond 16 bits"],
)
def test_a_mode_that_is_not_understood_is_refused_by_its_name(picture, words):
    with pytest.raises(InputError) as error:
        limes.ImageExplainer(colours)(picture)
    assert all(word in str(error.value) for word in words)


@pytest.mark.parametrize(
    ("mode", "suffix"),
    [
        ("P", "png"),
        ("P", "gif"),
        ("P with transparency", "png"),
        ("1", "png"),
        ("LA", "png"),
        ("CMYK", "jpg"),
    ],
)
def test_files_are_read_as_they_are_seen(tmp_path, mode, suffix):
    path = tmp_path / f"picture.{suffix}"
    PICTURES[mode].save(path)
    pixels = read_image(path)
    assert pixels.shape == (8, 8, 3)
    with Image.open(path) as picture:
        np.testing.assert_array_equal(pixels, np.asarray(picture.convert("RGB")))


# -- ranges of pixels --------------------------------------------------------------------------------------

BYTES = limes.Preprocess(mean=127.5, scale=127.5)
IMAGENET = limes.Preprocess(mean=(123.675, 116.28, 103.53), scale=(58.395, 57.12, 57.375))
SHARES = limes.Preprocess(mean=(0.485, 0.456, 0.406), scale=(0.229, 0.224, 0.225))
RAW = limes.Preprocess()
BLACK_AND_WHITE = COLOURS > 128


@pytest.mark.parametrize(
    ("photo", "preprocess", "like", "preprocess_like", "warns"),
    [
        (COLOURS.astype(np.uint16) * 257, BYTES, COLOURS, BYTES, "uint16.*1/257"),
        (COLOURS.astype(np.uint16) * 257, IMAGENET, COLOURS, IMAGENET, "uint16.*1/257"),
        (COLOURS.astype(">u2") * np.array(257, ">u2"), BYTES, COLOURS, BYTES, "1/257"),
        (BLACK_AND_WHITE, BYTES, BLACK_AND_WHITE * np.uint8(255), BYTES, "bool.*multiplied by 255$"),
        (COLOURS, SHARES, COLOURS * 1.0, SHARES, "up to 250.*0 to 1.*image / 255"),
        (COLOURS * 1.0, SHARES, COLOURS * 1.0, SHARES, "up to 250.*0 to 1.*image / 255"),
        (BLACK_AND_WHITE, SHARES, BLACK_AND_WHITE * 1.0, SHARES, None),
        (COLOURS, BYTES, COLOURS, BYTES, None),
        (COLOURS.astype(float), BYTES, COLOURS, BYTES, None),
        (COLOURS / 255, SHARES, COLOURS / 255, SHARES, None),
        (COLOURS, RAW, COLOURS, RAW, None),
        (COLOURS / 255, RAW, COLOURS / 255, RAW, None),
        (COLOURS / 127.5 - 1, BYTES, COLOURS / 127.5 - 1, BYTES, r"-1.01 to -0.992 .*127.5 \* \(image"),
        (COLOURS.astype(np.int32) * 16, BYTES, COLOURS.astype(float) * 16, RAW, "up to 4000"),
        (COLOURS.astype(np.uint16), BYTES, None, None, r"nearly black.*astype\('uint8'\)"),
    ],
)
def test_pixels_of_another_white_are_brought_to_the_network_s(
    photo, preprocess, like, preprocess_like, warns
):
    batches = []

    def model(batch):
        batches.append(np.array(batch))
        return np.asarray(batch).mean(axis=(1, 2, 3))

    explain = limes.ImageExplainer(model, segments=HALVES, fill=0, preprocess=preprocess)
    explanation = explain(photo)
    if warns is None:
        assert explanation.warnings == ()
    else:
        (warning,) = explanation.warnings
        assert re.search(warns, warning)
    if preprocess_like is preprocess:
        np.testing.assert_allclose(batches[0][0], preprocess(like), rtol=1e-6, atol=1e-6)
        # what a superpixel is filled with has the same units: black is the network's black
        dark = preprocess(np.zeros_like(like))
        assert np.isclose(np.concatenate(batches), dark).all(axis=(1, 2, 3)).any()


@pytest.mark.parametrize(
    ("photo", "preprocess", "words"),
    [
        (COLOURS / 255, BYTES, ["0.98", "mean=127.5", "0 to 255", "255 * image"]),
        ((COLOURS / 255).astype(np.float32), IMAGENET, ["0 to 255", "255 * image"]),
    ],
)
def test_floats_of_another_range_are_refused_with_the_remedy(photo, preprocess, words):
    with pytest.raises(InputError) as error:
        limes.ImageExplainer(lambda batch: batch.mean(axis=(1, 2, 3)), preprocess=preprocess)(photo)
    assert all(word in str(error.value) for word in words)


def test_booleans_keep_their_shapes_when_resized():
    picture = limes.Preprocess(size=4, resample="bilinear")
    framed = picture.framing(BLACK_AND_WHITE).apply(BLACK_AND_WHITE)
    half = picture.framing(COLOURS).apply(BLACK_AND_WHITE * np.uint8(255)) > 127
    assert framed.dtype == np.bool_
    np.testing.assert_array_equal(framed, half)


def test_preprocess_reads_pictures_too():
    np.testing.assert_allclose(BYTES(palette()), BYTES(np.asarray(palette().convert("RGB"))))
