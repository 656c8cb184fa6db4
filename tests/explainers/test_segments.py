"""Segments in the coordinates of the photograph: label maps, outlines and masks for networks that resize."""

from __future__ import annotations

import re

import numpy as np
import pytest

import words
from limes import Explanation, ImageExplainer, Preprocess
from limes.exceptions import InputError

RNG = np.random.default_rng(0)
PHOTO = RNG.integers(0, 256, (30, 50, 3)).astype(np.uint8)
FITS = ("crop", "squash", "pad")
SIDE = 8
# nine regions of the photograph with numbers that are not in a row
REGIONS = np.array([[4, 7, 11], [2, 30, 5], [8, 1, 9]])[np.arange(30)[:, None] // 10, np.arange(50) // 17]


def answers_of(batch):
    """No sum over superpixels."""
    pixels = np.asarray(batch, dtype=float)
    return pixels[:, :4].mean((1, 2, 3)) * pixels[:, 2:, 3:].mean((1, 2, 3)) / 100 + pixels[:, 7, 7, 0]


def explained(fit, segments, photo=PHOTO, **options):
    preprocess = Preprocess(size=SIDE, fit=fit, channels="last", resample="nearest")
    options = {"fill": 0, "max_calls": 1 << 12} | options
    return ImageExplainer(answers_of, preprocess=preprocess, segments=segments, **options)(photo)


def pixel(fit, i, j):
    """The pixel of the photograph at the middle of one that the network sees, by hand; None on a border."""
    if fit == "squash":
        row, column = (i + 0.5) * 30 / 8, (j + 0.5) * 50 / 8
    elif fit == "crop":
        row, column = (i + 0.5) * 30 / 8, (j + 0.5) * 30 / 8 + 10
    else:
        row, column = (i + 0.5) * 50 / 8 - 10, (j + 0.5) * 50 / 8
    return (int(row), int(column)) if 0 <= row < 30 and 0 <= column < 50 else None


def seen_by_network(fit, labels, border=-1):
    places = [[pixel(fit, i, j) for j in range(SIDE)] for i in range(SIDE)]
    return np.array([[border if at is None else labels[at] for at in row] for row in places])


def oracle(fit, labels, fill=0):
    """Coefficients by number, from the answers to every subset of what the network sees."""
    grid, image = seen_by_network(fit, labels), seen_by_network(fit, PHOTO.mean(axis=2), 0).astype(int)
    image = np.stack([seen_by_network(fit, PHOTO[..., c], 0) for c in range(3)], axis=-1)
    numbers = np.unique(grid[grid >= 0])
    batch = []
    for z in words.subsets(numbers.size):
        hidden = np.isin(grid, numbers[z == 0])
        batch.append(np.where(hidden[..., None], fill, image))
    _, coef, _ = words.surrogate(
        words.law("superpixels", numbers.size, 0.25), answers_of(np.array(batch, dtype=np.uint8))
    )
    return dict(zip(numbers.tolist(), coef.tolist(), strict=True))


def coefficients(explanation):
    numbers = [int(name.removeprefix("superpixel ")) for name in explanation.feature_names]
    return dict(zip(numbers, explanation.coefficients.values[0].tolist(), strict=True))


@pytest.mark.parametrize("fit", FITS)
def test_a_label_map_of_the_photograph(fit):
    """Superpixels keep their numbers; a border around the photograph is in none, and always shown."""
    for segments in (REGIONS, REGIONS.tolist(), lambda image: REGIONS[: len(image)]):
        explanation = explained(fit, segments)
        assert explanation.method == "exact"
        assert coefficients(explanation) == pytest.approx(oracle(fit, REGIONS), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("fit", FITS)
def test_masks_and_heat_maps_come_back_as_they_were_drawn(fit):
    explanation = explained(fit, REGIONS)
    restored = Explanation.from_json(explanation.to_json())
    numbers = explanation.contributions.values[0]
    values = dict(zip(coefficients(explanation), numbers.tolist(), strict=True))
    for one in (explanation, restored):
        heat, mask = one.heatmap(of="image"), one.mask(of="image", top=2, sign="both")
        largest = sorted(values, key=lambda j: -abs(values[j]))[:2]
        for row in range(30):
            for column in range(50):
                outside = fit == "crop" and not 10 <= column < 40
                expected = np.nan if outside else values.get(int(REGIONS[row, column]), np.nan)
                assert heat[row, column] == pytest.approx(expected, nan_ok=True)
                assert mask[row, column] == (not outside and REGIONS[row, column] in largest)
    # what the network saw has the same numbers
    small, grid = explanation.heatmap(), seen_by_network(fit, REGIONS)
    for number in np.unique(grid):
        expected = values.get(int(number), np.nan)
        assert np.unique(small[grid == number]) == pytest.approx([expected], nan_ok=True)
    assert explanation.to_html()
    assert "photo_labels" not in explanation.to_html()


def test_a_map_at_the_networks_size_is_used_unchanged():
    grid = np.arange(64).reshape(8, 8) // 16
    explanation = explained("crop", grid)
    assert explanation.feature_names == tuple(f"superpixel {j}" for j in range(4))
    assert "photo_labels" not in explanation.provenance
    np.testing.assert_array_equal(explained("crop", REGIONS).heatmap().shape, (8, 8))


def test_a_photograph_of_the_network_s_size_that_is_cropped():
    """(8, 8) are then the photograph's own coordinates: half of them are seen."""
    photo, labels = PHOTO[:8, :8], np.arange(8) // 2 * np.ones((8, 1), dtype=int)
    preprocess = Preprocess(size=8, share=0.5, channels="last")
    explanation = ImageExplainer(answers_of, preprocess=preprocess, segments=labels, fill=0)(photo)
    assert explanation.feature_names == ("superpixel 1", "superpixel 2")
    by_name = ImageExplainer(
        answers_of, preprocess=preprocess, segments="grid", segment_options={"rows": 1, "columns": 2}, fill=0
    )(photo)
    np.testing.assert_array_equal(by_name.coefficients.values, explanation.coefficients.values)


def test_fills_do_not_see_the_border():
    """The mean colour of a superpixel is the mean of its pixels alone."""
    level = np.full((30, 50, 3), 100, dtype=np.uint8)
    level[:, 25:] = 200
    seen = []
    explained(
        "pad",
        np.arange(50) // 25 * np.ones((30, 1), int),
        level,
        fill=lambda image, labels: seen.append(labels) or 0,
    )
    (labels,) = seen
    assert np.unique(labels).tolist() == [0, 1, 2]
    assert (labels[[0, 1, 6, 7]] == 2).all()
    both = explained("pad", REGIONS, fill=["mean", "blur"])
    each = [explained("pad", REGIONS, fill=fill).coefficients.values for fill in ("mean", "blur")]
    np.testing.assert_allclose(both.coefficients.values, np.mean(each, axis=0), rtol=1e-9)


# -- masks ---------------------------------------------------------------------------------------------------


def masks_of(labels):
    """As Segment Anything returns them, in any order, and some on others."""
    whole = np.zeros((30, 50), dtype=bool)
    whole[2:28, 12:38] = True
    part, low = np.zeros_like(whole), np.zeros_like(whole)
    part[6:18, 15:30] = True
    low[20:26, 14:36] = True
    return [part, whole, low]


MASKS = masks_of(REGIONS)
PAINTED = np.full((30, 50), 3)
PAINTED[MASKS[1]] = 1
PAINTED[MASKS[0]] = 0
PAINTED[MASKS[2]] = 2
FORMS = {
    "list": MASKS,
    "array": np.stack(MASKS),
    "bytes": [255 * mask.astype(np.uint8) for mask in MASKS],
    "one axis more": [mask[None] for mask in MASKS],
    "two axes more": np.stack(MASKS)[:, None],
    "dicts": [{"segmentation": mask, "area": int(mask.sum()), "bbox": [0, 0, 1, 1]} for mask in MASKS],
    "of a pipeline": {"masks": MASKS, "scores": [0.9, 0.9, 0.8]},
    "named": [{"label": "cat", "mask": mask, "score": None} for mask in MASKS],
    "callable": lambda image: [{"segmentation": mask[: len(image)]} for mask in MASKS],
}


@pytest.mark.parametrize("form", FORMS)
def test_masks(form):
    """Mask j is superpixel j, smaller masks lie on larger ones, and the rest is the last."""
    explanation = explained("crop", FORMS[form])
    assert coefficients(explanation) == pytest.approx(oracle("crop", PAINTED), rel=1e-9, abs=1e-9)
    assert explanation.warnings == ()


def test_pictures_of_pil_are_masks():
    image = pytest.importorskip("PIL.Image", reason="pip install pillow")
    masks = [{"mask": image.fromarray(255 * mask.astype(np.uint8))} for mask in MASKS]
    np.testing.assert_array_equal(
        explained("crop", masks).coefficients.values, explained("crop", MASKS).coefficients.values
    )


def test_an_outline_by_hand():
    """A mask is superpixel 1, and what is outside of it superpixel 0."""
    explanation = explained("squash", MASKS[1])
    labels = MASKS[1].astype(int)
    assert coefficients(explanation) == pytest.approx(oracle("squash", labels), rel=1e-9, abs=1e-9)
    inside = explanation.heatmap(of="image")[MASKS[1]]
    assert set(inside.tolist()) == {explanation.contributions.values[0, 1]}


def test_lost_segments_are_named_by_number():
    labels = REGIONS.copy()
    labels[0, 20] = 77  # a pixel that no middle of the network's falls on
    (warning,) = explained("squash", labels).warnings
    assert re.search(r"the segment 77 has no pixel .* 8 x 8", warning)
    empty, covered = np.zeros((30, 50), dtype=bool), MASKS[0]
    (warning,) = explained("crop", [*MASKS, empty, covered]).warnings
    assert "the segments 0, 3 have no pixel" in warning  # of two alike the later one is on top
    fine = np.arange(1500).reshape(30, 50)
    assert any("and 1428 more have no pixel" in w for w in explained("squash", fine, max_calls=200).warnings)


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        (np.zeros((50, 30), dtype=int), r"shape \(50, 30\), the image is 30 x 50, and 8 x 8 where"),
        ([np.zeros((30, 50), dtype=bool), np.zeros((8, 8), dtype=bool)], "masks must have one shape"),
        ([np.arange(1500).reshape(30, 50)] * 2, "mask 0 is no mask"),
        ([{"bbox": [0, 0, 1, 1]}], "mask 0 is a dict without an array"),
        ([{"segmentation": {"size": [30, 50], "counts": [1]}}], "binary_mask"),
        (np.zeros((2, 30, 50, 3)), r"list of masks \(H, W\); got"),
    ],
    ids=["turned", "two shapes", "numbers", "no mask", "run lengths", "four axes"],
)
def test_invalid_segments_are_refused(segments, message):
    with pytest.raises(InputError, match=message):
        explained("crop", segments)


@pytest.mark.parametrize(
    "labels", [np.where(REGIONS == 30, -4, REGIONS), np.where(REGIONS == 30, 10**6, REGIONS)]
)
def test_numbers_that_are_no_names_are_counted(labels):
    explanation = explained("squash", labels)
    assert explanation.feature_names == tuple(f"superpixel {j}" for j in range(9))
    heat = explanation.heatmap(of="image")
    for number, value in zip(
        np.unique(labels).tolist(), explanation.contributions.values[0].tolist(), strict=True
    ):
        assert heat[labels == number] == pytest.approx(value, abs=1e-12)
