"""Input of image explainers: dtypes, modes of PIL, containers, answers. It is explained right, or refused.

The oracle is arithmetic: the mean of an image falls by a quarter's share when the quarter is black.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import limes
from limes.exceptions import InputError, ModelError

Image = pytest.importorskip("PIL.Image", reason="pip install pillow")

BYTES = np.random.default_rng(0).integers(1, 256, (8, 8, 3)).astype(np.uint8)
GREY = BYTES[..., 0]
PICTURE = Image.fromarray(BYTES)
QUARTERS = {
    "segments": "grid",
    "segment_options": {"rows": 2, "columns": 2},
    "fill": 0,
    "contributions": False,
}


def mean(images):
    images = np.asarray(images, dtype=float)
    return images.reshape(len(images), -1).mean(axis=1)


def expected(pixels):
    """Return what each quarter adds to the mean."""
    pixels = np.asarray(pixels, dtype=float).reshape(8, 8, -1)
    return np.array([pixels[r : r + 4, c : c + 4].sum() / pixels.size for r in (0, 4) for c in (0, 4)])


def alpha(colours, opaque=255):
    return np.dstack([colours, np.full((8, 8), opaque, dtype=np.uint8)])


# images, and the numbers that the model gets
IMAGES = {
    "16 bits": (BYTES.astype(np.uint16) * 257, BYTES.astype(float) * 257),
    "16 bits, big-endian": ((BYTES.astype(np.uint16) * 257).astype(">u2"), BYTES.astype(float) * 257),
    "32 bits": (BYTES.astype(np.int32), BYTES),
    "64 bits": (BYTES.astype(np.int64), BYTES),
    "floats": (BYTES / 255, BYTES / 255),
    "single": ((BYTES / 255).astype(np.float32), (BYTES / 255).astype(np.float32)),
    "single, big-endian": ((BYTES / 255).astype(">f4"), (BYTES / 255).astype(np.float32)),
    "half": ((BYTES / 255).astype(np.float16), (BYTES / 255).astype(np.float16)),
    "-1 to 1": (BYTES / 127.5 - 1, BYTES / 127.5 - 1),
    "booleans": (BYTES > 99, BYTES > 99),
    "fortran": (np.asfortranarray(BYTES), BYTES),
    "upside down": (BYTES[::-1, ::-1], BYTES[::-1, ::-1]),
    "read-only": (np.frombuffer(BYTES.tobytes(), np.uint8).reshape(8, 8, 3), BYTES),
    "grey": (GREY, GREY),
    "grey with an axis": (GREY[..., None], GREY),
    "lists": (BYTES.tolist(), BYTES),
    "grey lists": (GREY.tolist(), GREY),
    "a frame": (pd.DataFrame(GREY), GREY),
    "PIL, RGB": (PICTURE, BYTES),
    "PIL, L": (Image.fromarray(GREY), GREY),
    "PIL, 1": (Image.fromarray(GREY > 99), np.where(GREY > 99, 255, 0)),
    "PIL, RGBA": (PICTURE.convert("RGBA"), alpha(BYTES)),
    "PIL, LA": (Image.fromarray(GREY).convert("LA"), alpha(np.dstack([GREY] * 3))),
    "PIL, La": (Image.fromarray(GREY).convert("LA").convert("La"), alpha(np.dstack([GREY] * 3))),
    "PIL, a palette": (Image.fromarray(GREY).convert("P"), np.dstack([GREY] * 3)),
    "PIL, RGBX": (PICTURE.convert("RGBX"), BYTES),
    "PIL, CMYK": (PICTURE.convert("CMYK"), BYTES),
    "PIL, HSV": (PICTURE.convert("HSV"), np.asarray(PICTURE.convert("HSV").convert("RGB"))),
    "PIL, YCbCr": (PICTURE.convert("YCbCr"), np.asarray(PICTURE.convert("YCbCr").convert("RGB"))),
    "PIL, 16 bits": (Image.fromarray(GREY.astype(np.uint16) * 257), GREY.astype(float) * 257),
    "PIL, I": (Image.fromarray(GREY.astype(np.int32)), GREY),
    "PIL, F": (Image.fromarray(GREY.astype(np.float32)), GREY),
}


@pytest.mark.parametrize(("image", "pixels"), IMAGES.values(), ids=IMAGES)
def test_images(image, pixels):
    explanation = limes.ImageExplainer(mean, **QUARTERS)(image)
    assert explanation.method == "exact"
    # float16 is added up in double precision here, and single numbers have 24 bits
    np.testing.assert_allclose(explanation.coefficients.values[0], expected(pixels), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(explanation.predictions[0], np.mean(pixels, dtype=float), rtol=1e-9)


def test_containers():
    explainer = limes.ImageExplainer(mean, **QUARTERS)
    for images in ([BYTES, GREY], (PICTURE, Image.fromarray(GREY)), [BYTES.tolist(), GREY.tolist()]):
        both = (
            explainer(images) if isinstance(images[0], np.ndarray | Image.Image) else map(explainer, images)
        )
        for one, pixels in zip(both, (BYTES, GREY), strict=True):
            np.testing.assert_allclose(one.coefficients.values[0], expected(pixels), rtol=1e-9)
    (one,) = explainer(BYTES[None])
    np.testing.assert_allclose(one.coefficients.values[0], expected(BYTES), rtol=1e-9)
    several = explainer([GREY.tolist(), GREY.T.tolist(), GREY.tolist()])
    np.testing.assert_allclose(several[1].coefficients.values[0], expected(GREY.T), rtol=1e-9)


ANSWERS = {
    "a list": (list, None),
    "one column": (lambda y: y[:, None], "0"),
    "a frame": (lambda y: pd.DataFrame({"cat": y, "dog": -y}), "cat"),
    "a mapping": (lambda y: {"cat": y, "dog": -y}, "cat"),
    "mappings": (lambda y: [{"dog": -v, "cat": v} for v in y], "cat"),
    "a scalar of one image": (lambda y: float(y[0]) if len(y) == 1 else y, None),
}


@pytest.mark.parametrize(("form", "name"), ANSWERS.values(), ids=ANSWERS)
def test_answers(form, name):
    explanation = limes.ImageExplainer(lambda images: form(mean(images)), **QUARTERS)(BYTES)
    explanation = explanation if name is None else explanation[..., name]
    np.testing.assert_allclose(explanation.coefficients.values.ravel(), expected(BYTES), rtol=1e-9)


HOLES = np.where(BYTES > 250, np.nan, BYTES)
# Refused input, the message, the image after its advice, and that image's pixels
REFUSED = {
    "complex": (BYTES * 1j, r"got ndarray of complex128: convert it", np.abs, BYTES),
    "objects": (BYTES.astype(object), r"convert it by \.astype\(float\)", lambda x: x.astype(float), BYTES),
    "holes": (HOLES, "every pixel must be finite", np.nan_to_num, np.nan_to_num(HOLES)),
    "a mask": (
        np.ma.masked_greater(BYTES, 200),
        r"masked pixels: pass image\.filled",
        lambda x: x.filled(0),
        np.where(BYTES > 200, 0, BYTES),
    ),
    "channels first": (
        np.moveaxis(BYTES, -1, 0),
        r"move them there: np\.moveaxis\(image, 0, -1\)",
        lambda x: np.moveaxis(x, 0, -1),
        BYTES,
    ),
    "five channels": (np.dstack([BYTES, BYTES[..., :2]]), "choose three", lambda x: x[..., :3], BYTES),
    "one row of numbers": (BYTES.ravel(), "reshape it", lambda x: x.reshape(8, 8, 3), BYTES),
    "five axes": (BYTES[None, None], "reshape it", lambda x: x.reshape(8, 8, 3), BYTES),
    "nothing": (None, "got NoneType", lambda _: BYTES, BYTES),
    "no pixels": (BYTES[:0], "has no pixels", lambda _: BYTES, BYTES),
    "unequal rows": ([[1, 2], [3]], "rows differ in length", lambda _: GREY.tolist(), GREY),
}


@pytest.mark.parametrize(("image", "message", "advice", "pixels"), REFUSED.values(), ids=REFUSED)
def test_refused_input_has_advice_that_works(image, message, advice, pixels):
    explainer = limes.ImageExplainer(mean, **QUARTERS)
    with pytest.raises(InputError, match=message):
        explainer(image)
    np.testing.assert_allclose(explainer(advice(image)).coefficients.values[0], expected(pixels), rtol=1e-9)


def test_paths_and_unusual_colours(tmp_path):
    explainer = limes.ImageExplainer(mean, **QUARTERS)
    path = tmp_path / "photo.png"
    PICTURE.save(path)
    for named in (path, str(path)):
        np.testing.assert_allclose(explainer(named).coefficients.values[0], expected(BYTES), rtol=1e-9)
    with pytest.raises(InputError, match=r"lost\.png"):
        explainer(tmp_path / "lost.png")
    with Image.open(path) as photo:
        np.testing.assert_allclose(explainer(photo).coefficients.values[0], expected(BYTES), rtol=1e-9)
    lab = (
        Image.fromarray(BYTES, mode="LAB")
        if hasattr(Image, "_lab")
        else Image.frombytes("LAB", (8, 8), BYTES.tobytes())
    )
    with pytest.raises(InputError, match=r"mode 'LAB' of PIL.*pass numpy\.asarray\(image\)"):
        explainer(lab)
    np.testing.assert_allclose(
        explainer(np.asarray(lab)).coefficients.values[0], expected(np.asarray(lab)), rtol=1e-9
    )


def test_answers_that_are_no_numbers():
    with pytest.raises(ModelError, match="returned None: is a return missing"):
        limes.ImageExplainer(lambda images: None, **QUARTERS)(BYTES)
    with pytest.raises(ModelError, match="return its transpose, a row each"):
        limes.ImageExplainer(lambda images: np.stack([mean(images)] * 3), **QUARTERS)(BYTES)
