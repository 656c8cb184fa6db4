"""The range that a network gets after its preprocessing, whatever the type; turned photographs."""

from __future__ import annotations

import re

import numpy as np
import pytest

import limes

pytest.importorskip("PIL")
from PIL import Image

RNG = np.random.default_rng(3)
BYTES = RNG.integers(0, 256, (8, 8, 3)).astype(np.uint8)
BYTES[0, 0], BYTES[0, 1] = 0, 255
HALVES = {"segments": np.repeat([[0, 1]], 8, axis=0).repeat(4, axis=1), "fill": 0}
PREPROCESSES = {
    "mean 128": limes.Preprocess(mean=128, scale=128),
    "mean 127.5": limes.Preprocess(mean=127.5, scale=127.5),
    "over 255": limes.Preprocess(scale=255),
    "of bytes": limes.Preprocess(mean=(123.7, 116.3, 103.5), scale=(58.4, 57.1, 57.4)),
    "of shares": limes.Preprocess(mean=(0.485, 0.456, 0.406), scale=(0.229, 0.224, 0.225)),
    "half": limes.Preprocess(mean=0.5, scale=0.5),
}
# the same photograph in other numbers
OTHERS = {
    "floats from -1 to 1": BYTES / 127.5 - 1,
    "single floats from -1 to 1": (BYTES / 127.5 - 1).astype(np.float32),
    "half floats from -1 to 1": (BYTES / 127.5 - 1).astype(np.float16),
    "int8": (BYTES.astype(np.int16) - 128).astype(np.int8),
    "12 bits": np.round(BYTES * (4095 / 255)).astype(np.uint16),
    "12 bits, big endian": np.round(BYTES * (4095 / 255)).astype(">u2"),
    "10 bits": np.round(BYTES * (1023 / 255)).astype(np.uint16),
    "14 bits": np.round(BYTES * (16383 / 255)).astype(np.uint16),
    "8 bits in 16": BYTES.astype(np.uint16),
    "12 bits in int16": np.round(BYTES * (4095 / 255)).astype(np.int16),
    "12 bits in int64": np.round(BYTES * (4095 / 255)).astype(np.int64),
    "16 bits in int32": BYTES.astype(np.int32) * 257,
    "16 bits in floats": BYTES * 257.0,
    "4 bits": (BYTES // 17).astype(np.uint8),
    "0 and 1": (BYTES > 127).astype(np.uint8),
}
ROUNDING = {"half floats from -1 to 1": 0.3, "4 bits": 17.0, "0 and 1": 128.0}


def asked_of(photo, preprocess):
    """Return what the network gets of a photograph, and the warnings."""
    batches = []

    def model(batch):
        batches.append(np.array(batch))
        return np.asarray(batch, dtype=np.float64).mean(axis=(1, 2, 3))

    explanation = limes.ImageExplainer(model, preprocess=preprocess, **HALVES)(photo)
    batches = np.concatenate(batches)
    # the photograph itself, among halves that are black
    whole = batches[np.argmax([np.ptp(image, axis=(1, 2)).sum() for image in batches])]
    return whole, explanation.warnings


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("kind", PREPROCESSES)
def test_an_image_of_another_range_is_named_with_what_to_pass(name, kind):
    """Return what the warning says to pass makes the network get what it gets of the bytes themselves."""
    photo, preprocess = OTHERS[name], PREPROCESSES[kind]
    is_bytes = preprocess.white == 255
    right = BYTES if is_bytes else BYTES / 255
    expected, none = asked_of(right, preprocess)
    assert none == ()
    got, warnings = asked_of(photo, preprocess)
    if name == "0 and 1" and not is_bytes:
        assert warnings == ()  # black and white shares
        return
    (warning,) = warnings
    cure = re.search(r"pass (\(?image.*?|\S+ \* .*?)(?:, |$)", warning).group(1)
    passed = eval(cure, {"image": photo})  # noqa: S307 - the warning's own expression
    if not is_bytes and "if 255 is white" in warning:  # no image says how many bits it has
        passed = passed * 17.0 if name == "4 bits" else passed
    again, _ = asked_of(passed, preprocess)
    step = 1.0 if is_bytes else 1 / 255
    allowed = (ROUNDING.get(name, 0.6) * step + 1e-6) / np.min(preprocess.scale)
    np.testing.assert_allclose(again, expected, atol=allowed)
    if "the network gets" in warning:  # and its numbers are those of the network
        low, high = re.search(r"network gets (\S+) to (\S+)", warning).groups()
        assert float(low) == pytest.approx(got.min(), rel=0.02, abs=0.01)
        assert float(high) == pytest.approx(got.max(), rel=0.02, abs=0.01)


@pytest.mark.parametrize("kind", PREPROCESSES)
def test_images_of_the_range_that_is_expected_have_no_warning(kind):
    preprocess = PREPROCESSES[kind]
    shares = [BYTES / 255, (BYTES / 255).astype(np.float32), (BYTES / 255).astype(np.float16), BYTES > 127]
    numbers = [BYTES, BYTES.astype(float), BYTES.astype(np.int16), BYTES.astype(np.int64), BYTES // 4]
    for photo in numbers if preprocess.white == 255 else shares:
        assert asked_of(photo, preprocess)[1] == ()


@pytest.mark.parametrize(
    ("photo", "preprocess", "words"),
    [
        (
            BYTES.astype(np.int16) * 16 - 1024,
            "mean 128",
            "network gets -9 to 22.9 .* pass numbers from 0, where",
        ),
        (BYTES.astype(np.int16) * 16 - 1024, "of shares", "pass numbers from 0, where it is black, to 1$"),
        (
            (BYTES / 255 - 0.45) / 0.225,
            "of bytes",
            "nearly black.*normalised already, leave mean and scale out",
        ),
        ((BYTES / 255 - 0.45) / 0.225, "of shares", "in place of -2.12 to 2.64.*normalised already"),
        (BYTES / 5100, "half", "nearly black; pass the image divided by its white"),
        (BYTES / 128, "mean 128", "nearly black; pass numbers from 0 to 255"),
    ],
)
def test_other_ranges_are_named(photo, preprocess, words):
    (warning,) = asked_of(photo, PREPROCESSES[preprocess])[1]
    assert re.search(words, warning)


def test_mean_and_scale_of_another_white_are_compared_with_the_usual_range():
    deep = limes.Preprocess(mean=32768, scale=32768)
    (warning,) = asked_of(BYTES, deep)[1]
    assert re.search("-1 to -0.992 for the network, where about -1 to 1 is usual", warning)
    assert asked_of(BYTES.astype(np.uint16) * 257, deep)[1] == ()
    assert asked_of(BYTES, limes.Preprocess())[1] == ()


# -- turned photographs --------------------------------------------------------------------------------------

# what the marks 1 to 8 of EXIF mean (JEITA CP-3451, 4.6.4 A)
TURNS = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a.swapaxes(0, 1)[::-1, ::-1],
    8: lambda a: np.rot90(a, 1),
}
STORED = np.arange(6 * 8 * 3, dtype=np.uint8).reshape(6, 8, 3)


def written(folder, mark, suffix, pixels=STORED):
    exif = Image.Exif()
    exif[0x0112] = mark
    path = folder / f"{mark}.{suffix}"
    Image.fromarray(pixels).save(path, exif=exif, **({"lossless": True} if suffix == "webp" else {}))
    return path


def seen_by_model(images):
    batches = []

    def model(batch):
        batches.append(np.array(batch))
        return np.asarray(batch, dtype=np.float64).reshape(len(batch), -1).mean(axis=1)

    limes.ImageExplainer(model, segments="grid", segment_options={"rows": 1, "columns": 2}, fill=255)(images)
    return batches[0][0]


@pytest.mark.parametrize("suffix", ["png", "tiff", "webp"])
@pytest.mark.parametrize("mark", TURNS)
def test_a_picture_of_pil_is_turned_as_its_file_is(tmp_path, mark, suffix):
    path, upright = written(tmp_path, mark, suffix), TURNS[mark](STORED)
    with Image.open(path) as picture:
        for image in (path, str(path), picture, [picture], [path]):
            np.testing.assert_array_equal(seen_by_model(image), upright)
        picture.load()
        np.testing.assert_array_equal(seen_by_model(picture), upright)
        np.testing.assert_array_equal(limes.Preprocess(channels="last")(picture), upright)


@pytest.mark.parametrize("kind", ["grey", "palette", "16 bits", "background", "part"])
def test_every_kind_of_picture_is_turned(tmp_path, kind):
    pixels = STORED[..., 0] if kind != "16 bits" else STORED[..., 0].astype(np.uint16) * 250
    path = written(tmp_path, 6, "png", pixels)
    if kind == "palette":
        exif = Image.Exif()
        exif[0x0112] = 6
        Image.fromarray(pixels).convert("P").save(path, exif=exif)
    with Image.open(path) as picture:
        if kind == "background":
            explainer = limes.ImageExplainer(
                lambda batch: batch.mean(axis=(1, 2)),
                segments="grid",
                segment_options={"rows": 1, "columns": 1},
                hide="background",
                background=[picture, picture],
            )
            assert explainer(picture).feature_names == explainer(path).feature_names
            return
        if kind == "part":
            part = limes.ImagePart(segments="grid", fill=0)
            np.testing.assert_array_equal(part.parse(picture).photo, part.parse(path).photo)
            return
        seen = seen_by_model(picture)
        np.testing.assert_array_equal(seen, seen_by_model(path))
        assert seen.shape[:2] == (8, 6)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF:UserWarning")
@pytest.mark.parametrize("marks", [b"II*\x00\xff\xff\xff\xff", b"no marks at all", b"II*\x00\x08\x00", b""])
def test_marks_that_cannot_be_read_turn_nothing(tmp_path, marks):
    """A viewer shows such a photograph as it is stored."""
    path = tmp_path / "torn.png"
    Image.fromarray(STORED).save(path, exif=b"Exif\x00\x00" + marks)
    with Image.open(path) as picture:
        for image in (path, picture):
            np.testing.assert_array_equal(seen_by_model(image), STORED)
