"""Photographs from files, and grey or transparent ones for networks of three channels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onnx_models as onnx
from limes import CompositeExplainer, ImageExplainer, ImagePart, Preprocess
from limes.exceptions import InputError

Image = pytest.importorskip("PIL.Image", reason="pip install pillow")
RNG = np.random.default_rng(0)
PHOTO = RNG.integers(0, 256, (6, 8, 3)).astype(np.uint8)
GREY = PHOTO[..., 0].copy()
LABELS = np.repeat(np.repeat([[0, 1], [2, 3]], 3, axis=0), 4, axis=1)
ALPHA = np.where(np.arange(8) < 3, 51, 255).astype(np.uint8) * np.ones((6, 1), np.uint8)
CLEAR = np.dstack([PHOTO, ALPHA])
# 51 is a fifth of 255
ON_WHITE = np.rint(np.where((ALPHA == 255)[..., None], PHOTO, PHOTO * 0.2 + 255 * 0.8)).astype(np.uint8)


def network(channels=3, layout="first"):
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    weights = np.random.default_rng(1).normal(size=(48 * channels, 2))
    shape = ("n", channels, 6, 8) if layout == "first" else ("n", 6, 8, channels)
    return onnx.session(onnx.linear(weights, shape))


def explained(model, image, **options):
    return ImageExplainer(model, segments=LABELS, **options)(image)


def brightness(images):
    return np.asarray(images, dtype=float).reshape(len(images), -1)[:, ::7].sum(axis=1) ** 2 / 1e5


WANT_THREE = {
    "ONNX, channels first": lambda: (network(), {}),
    "ONNX, channels last": lambda: (network(layout="last"), {}),
    "mean of three": lambda: (brightness, {"preprocess": Preprocess(mean=[1, 2, 3], scale=2)}),
}


@pytest.mark.parametrize("kind", WANT_THREE)
@pytest.mark.parametrize("fill", ["mean", 0, "blur"])
def test_grey_is_repeated_for_a_network_of_three_channels(kind, fill):
    model, options = WANT_THREE[kind]()
    as_rgb = explained(model, np.repeat(GREY[..., None], 3, axis=2), fill=fill, **options)
    for image in (GREY, GREY[..., None], Image.fromarray(GREY)):
        grey = explained(model, image, fill=fill, **options)
        np.testing.assert_array_equal(grey.coefficients.values, as_rgb.coefficients.values)
        assert grey.warnings == ()


@pytest.mark.parametrize("kind", WANT_THREE)
@pytest.mark.parametrize(
    ("image", "white"),
    [
        (CLEAR, ON_WHITE),
        (CLEAR / 255.0, (PHOTO * (ALPHA / 255)[..., None] + 255 - ALPHA[..., None]) / 255),
        (CLEAR.astype(np.uint16) * 257, ON_WHITE.astype(np.uint16) * 257),
        (Image.fromarray(CLEAR), ON_WHITE),
    ],
    ids=["bytes", "shares", "16 bits", "PIL"],
)
def test_transparent_pixels_are_shown_on_white_with_a_warning(kind, image, white):
    model, options = WANT_THREE[kind]()
    clear, solid = (explained(model, one, fill=0, **options) for one in (image, white))
    rounding = 3e-3 if getattr(image, "dtype", None) == np.uint16 else 1e-6
    np.testing.assert_allclose(clear.predictions, solid.predictions, rtol=rounding)
    np.testing.assert_allclose(
        clear.coefficients.values,
        solid.coefficients.values,
        rtol=0,
        atol=rounding * np.abs(solid.coefficients.values).max(),
    )
    (warning,) = set(clear.warnings) - set(solid.warnings)
    assert "transparent in 37.5% of its pixels" in warning
    assert "on white" in warning


def test_an_opaque_alpha_is_dropped_without_a_warning():
    solid = np.dstack([PHOTO, np.full((6, 8), 255, np.uint8)])
    explanation = explained(network(), solid, fill=0)
    np.testing.assert_array_equal(
        explanation.coefficients.values, explained(network(), PHOTO, fill=0).coefficients.values
    )
    assert explanation.warnings == ()


def test_functions_get_the_image_unchanged():
    shapes = set()

    def model(batch):
        shapes.add(batch.shape[1:])
        return brightness(batch)

    for image in (GREY, GREY[..., None], PHOTO, CLEAR):
        explained(model, image)
    assert shapes == {(6, 8), (6, 8, 1), (6, 8, 3), (6, 8, 4)}


@pytest.mark.parametrize(
    ("channels", "image", "message"),
    [
        (1, PHOTO, r"takes images of 1 channel, and this one has 3: pass image.convert\('L'\)"),
        (4, PHOTO, "takes images of 4 channels, and this one has 3"),
    ],
)
def test_other_channels_are_refused_by_their_number(channels, image, message):
    with pytest.raises(InputError, match=message):
        explained(network(channels), image)
    assert explained(network(1), GREY).coefficients.values.shape == (1, 4, 2)


def test_the_first_convolution_says_what_a_torch_module_takes():
    torch = pytest.importorskip("torch", reason="pip install torch")
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 3), torch.nn.Flatten(), torch.nn.Linear(48, 2))
    grey, colour = (explained(module, one) for one in (GREY, np.repeat(GREY[..., None], 3, axis=2)))
    np.testing.assert_array_equal(grey.coefficients.values, colour.coefficients.values)


# -- files ---------------------------------------------------------------------------------------------------


def test_paths(tmp_path):
    first, second = tmp_path / "first.png", tmp_path / "second.png"
    Image.fromarray(PHOTO).save(first)
    Image.fromarray(CLEAR).save(second)
    expected = explained(brightness, PHOTO)
    for path in (first, str(first)):
        np.testing.assert_array_equal(
            explained(brightness, path).coefficients.values, expected.coefficients.values
        )
    one, other = explained(brightness, [first, str(second)])
    np.testing.assert_array_equal(one.coefficients.values, expected.coefficients.values)
    np.testing.assert_array_equal(other.coefficients.values, explained(brightness, CLEAR).coefficients.values)
    composite = CompositeExplainer(
        lambda parts: brightness(parts["photo"]), {"photo": ImagePart(segments=LABELS)}
    )
    np.testing.assert_array_equal(
        composite({"photo": first}).coefficients.values, composite({"photo": PHOTO}).coefficients.values
    )


def test_a_photograph_that_a_camera_turned_is_upright(tmp_path):
    path = tmp_path / "turned.png"
    exif = Image.Exif()
    exif[0x0112] = 6  # turned to the right by a quarter
    Image.fromarray(np.rot90(PHOTO)).save(path, exif=exif)
    np.testing.assert_array_equal(
        explained(brightness, path).coefficients.values, explained(brightness, PHOTO).coefficients.values
    )


def _cut_short(path: Path) -> None:
    Image.fromarray(RNG.integers(0, 256, (64, 64, 3)).astype(np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:3000])


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("missing.png", lambda path: None, "there is no such file"),
        (
            "notes.png",
            lambda path: path.write_text("no image"),
            "no image file that PIL reads: pass an array",
        ),
        ("empty.jpg", lambda path: path.write_bytes(b""), "no image file"),
        ("short.png", _cut_short, "truncated.*: copy or download it again"),
        ("folder", lambda path: path.mkdir(), "could not be read as an image"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, write, message):
    path = tmp_path / name
    write(path)
    with pytest.raises(InputError, match=message) as error:
        explained(brightness, path)
    assert name in str(error.value)
    with pytest.raises(InputError, match=f"image 1: .*{name}"):
        explained(brightness, [PHOTO, path])


def test_a_decompression_bomb(tmp_path, monkeypatch):
    path = tmp_path / "bomb.png"
    Image.fromarray(PHOTO).save(path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    with pytest.raises(InputError, match="pass a smaller copy, or, if you trust the file, an array"):
        explained(brightness, path)
