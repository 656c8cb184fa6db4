"""Several fills of superpixels: averages, by enumeration of images with a fill drawn at random."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import limes
from internals import CHECK_CALLS
from limes.exceptions import InputError

RNG = np.random.default_rng(0)
IMAGE = RNG.integers(0, 256, (8, 8, 3)).astype(np.uint8)
GRID = {"rows": 2, "columns": 2}


def rough(images):
    """A function of superpixels together."""
    light = np.asarray(images, dtype=float).mean(axis=3) / 255
    return light[:, :4].mean(axis=(1, 2)) * light[:, 4:, :4].std(axis=(1, 2)) + light[:, 7, 7] ** 2


def explained(fill, **options):
    explainer = limes.ImageExplainer(
        rough, segments="grid", segment_options=GRID, fill=fill, **({"max_calls": 300} | options)
    )
    return explainer(IMAGE)


def enumerated(fills, bandwidth=0.25):
    """Coefficients and R² of least squares over all images of all fills."""
    labels = np.repeat(np.repeat([[0, 1], [2, 3]], 4, axis=0), 4, axis=1)
    rows = np.array(list(product([0.0, 1.0], repeat=4)))
    off = 4 - rows.sum(axis=1)
    w = np.tile(np.exp(-((1 - np.sqrt(1 - off / 4)) ** 2) / (2 * bandwidth**2)), len(fills))
    images = [
        np.where((z > 0)[labels][..., None], IMAGE, np.broadcast_to(fill, IMAGE.shape).astype(np.uint8))
        for fill in fills
        for z in rows
    ]
    z, f = np.tile(rows, (len(fills), 1)), rough(images)
    a = np.column_stack([np.ones(len(z)), z])
    beta = np.linalg.solve(a.T @ (w[:, None] * a), a.T @ (w * f))
    spread = w @ (f - w @ f / w.sum()) ** 2
    return beta, 1 - w @ (f - a @ beta) ** 2 / spread


def test_the_average_is_the_surrogate_of_a_fill_drawn_at_random():
    fills = [0, [200, 100, 30], IMAGE[::-1].copy()]
    explanation = explained([np.zeros(()), np.array(fills[1]), fills[2]])
    beta, share = enumerated(fills)
    assert explanation.method == "exact"
    assert explanation.coefficients.values[0] == pytest.approx(beta[1:], rel=1e-9, abs=1e-12)
    assert explanation.coefficients.intercepts[0] == pytest.approx(beta[0], rel=1e-9)
    assert explanation.fidelity[0] == pytest.approx(share, rel=1e-9)
    assert explanation.fidelity_errors[0] == 0
    parts = np.array(list(explanation.provenance["by_fill"].values()))
    assert parts.mean(axis=0) == pytest.approx(explanation.coefficients.values[0])
    assert parts.std(axis=0, ddof=1) == pytest.approx(explanation.provenance["fill_spread"])


def test_errors_of_sampled_averages_cover():
    options = {"segment_options": {"rows": 4, "columns": 4}, "segments": "grid", "max_calls": 400}
    truth = limes.ImageExplainer(rough, fill=["mean", "blur"], **options | {"max_calls": (1 << 17) + 16})(
        IMAGE
    )
    assert truth.method == "exact"
    inside = []
    for seed in range(8):
        explanation = limes.ImageExplainer(rough, fill=["mean", "blur"], rng=seed, **options)(IMAGE)
        assert explanation.method == "sampled"
        assert explanation.model_calls <= 400 + CHECK_CALLS
        inside.append(
            np.abs(explanation.coefficients.values - truth.coefficients.values)
            <= 3 * explanation.coefficients.standard_errors
        )
    assert np.mean(inside) > 0.95


def test_errors_of_fills_that_are_alike_cover():
    """Two fills that hardly differ: errors of the same drawn sets would be the same, and not cancel."""
    near = [np.full(IMAGE.shape, 10, dtype=np.uint8), np.full(IMAGE.shape, 12, dtype=np.uint8)]
    options = {"segment_options": {"rows": 4, "columns": 4}, "segments": "grid", "fill": near}
    truth = limes.ImageExplainer(rough, max_calls=(1 << 17) + 16, **options)(IMAGE)
    assert truth.method == "exact"
    within = []
    for seed in range(40):
        explanation = limes.ImageExplainer(rough, rng=seed, max_calls=400, **options)(IMAGE)
        for name in ("coefficients", "contributions"):
            its, true = getattr(explanation, name), getattr(truth, name)
            within.append(np.abs(its.values - true.values) <= 1.96 * its.standard_errors)
    assert np.mean(within) >= 0.93
    again = limes.ImageExplainer(rough, rng=0, max_calls=400, **options)(IMAGE)
    twice = limes.ImageExplainer(rough, rng=0, max_calls=400, **options)(IMAGE)
    np.testing.assert_array_equal(again.contributions.values, twice.contributions.values)


def test_fills_that_do_not_agree_are_named():
    explanation = limes.ImageExplainer(
        lambda images: np.asarray(images, dtype=float)[:, 0, 0, 0],
        segments="grid",
        segment_options=GRID,
        fill=[np.array(0), np.array(255)],
    )(np.full((4, 4, 3), 100, dtype=np.uint8))
    assert (
        "the fills do not agree whether these raise or lower the answer: superpixel 0"
        in explanation.warnings[0]
    )
    assert "by_fill" not in explanation.to_html()


def test_superpixels_about_which_fills_do_not_agree_are_named_for_each_output():
    explanation = limes.ImageExplainer(
        lambda images: np.asarray(images, dtype=float)[:, [0, 0, -1], [0, 0, -1], 0] * [1.0, 0.0, 2.0],
        segments="grid",
        segment_options=GRID,
        fill=[np.array(0), np.array(255)],
        labels=["first", "none", "last"],
    )(np.full((4, 4, 3), 100, dtype=np.uint8))
    named = [text for text in explanation.warnings if "do not agree" in text]
    assert [text.rsplit(": ", 1)[1] for text in named] == [
        "superpixel 0 (output first)",
        "superpixel 3 (output last)",
    ]


def test_colours_with_transparency_have_their_numbers_as_names():
    image = RNG.integers(0, 256, (4, 4, 4)).astype(np.uint8)
    result = limes.ImageExplainer(
        rough, segments="grid", segment_options=GRID, fill=["mean", [0, 10, 20, 255]]
    )(np.tile(image, (2, 2, 1)))
    assert [*result.provenance["by_fill"]] == ["mean", "[0, 10, 20, 255]"]


def test_lists_of_images_and_json(tmp_path):
    explainer = limes.ImageExplainer(rough, segments="grid", segment_options=GRID, fill=["mean", "blur"])
    both = explainer([IMAGE, IMAGE[::-1].copy()])
    np.testing.assert_array_equal(both[0].coefficients.values, explainer(IMAGE).coefficients.values)
    again = limes.Explanation.from_json(both[1].to_json())
    assert again.provenance["fill_spread"] == both[1].provenance["fill_spread"]


def test_a_colour_is_one_fill():
    assert "by_fill" not in explained([10, 20, 30]).provenance
    assert explained((1.5, 2, 3)).provenance["fill"]


@pytest.mark.parametrize("fill", [["mean", "mean"], ["mean", "sky"], ["mean", None]])
def test_wrong_lists(fill):
    with pytest.raises(InputError, match="fill"):
        explained(fill)


def test_fewer_calls_than_fills_are_refused():
    with pytest.raises(InputError, match="max_calls=1 is less than a call for each of 2 fills"):
        limes.ImageExplainer(lambda images: images[:, 0, 0, 0], fill=["mean", 0], max_calls=1)


@pytest.mark.parametrize("image", [IMAGE, IMAGE[..., 0]])
def test_a_list_of_numbers_is_a_colour_and_greys_are_lists(image):
    def light(images):
        return np.asarray(images, dtype=float).reshape(len(images), -1).mean(axis=1) ** 2

    def coefficients(fill):
        explainer = limes.ImageExplainer(
            light, segments="grid", segment_options=GRID, fill=fill, max_calls=300
        )
        return explainer(image).coefficients.values

    greys = [[0], [255]]
    mean = np.mean([coefficients(grey) for grey in (0, 255)], axis=0)
    assert coefficients(greys) == pytest.approx(mean, rel=1e-9, abs=1e-12)
    with pytest.raises(InputError, match=r"shape \(2,\).*Several greys are \[\[0\], \[255\]\]"):
        coefficients([0, 255])
