"""Pictures of images: masks, overlays, HTML without a network, several on one figure."""

from __future__ import annotations

import re

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt

from internals import (
    from_data_url,
    gallery,
    image_view,
    labels_from_data_url,
    labels_to_data_url,
    to_data_url,
)
from limes import Explanation, ImageExplainer
from limes.exceptions import InputError
from samples import explanation as of_a_table

IMAGE = np.random.default_rng(0).integers(0, 256, (8, 12, 3)).astype(np.uint8)
LABELS = np.repeat(np.repeat([[0, 1, 2], [3, 4, 5]], 4, axis=0), 4, axis=1)
WEIGHTS = np.array([3.0, -2.0, 1.0, 0.0, -4.0, 0.5])


def additive(images):
    """Two answers, the second the first with its sign turned: a superpixel counts by its brightest pixel."""
    shown = np.stack(
        [images[:, j == LABELS].reshape(len(images), -1).max(axis=1) > 0 for j in range(6)], axis=1
    )
    answer = shown @ WEIGHTS
    return np.stack([answer, -answer], axis=1)


@pytest.fixture(scope="module")
def explanation():
    return ImageExplainer(additive, segments=LABELS, fill=0, labels=["for <it>", "against"])(IMAGE)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.mark.parametrize(
    ("top", "sign", "expected"),
    [
        (1, "+", [0]),
        (2, "+", [0, 2]),
        (9, "+", [0, 2, 5]),
        (1, "-", [4]),
        (9, "-", [4, 1]),
        (3, "both", [4, 0, 1]),
        (9, "both", [4, 0, 1, 2, 5]),
    ],
)
def test_masks_are_the_top_superpixels(explanation, top, sign, expected):
    mask = explanation.mask("for <it>", top=top, sign=sign)
    assert mask.dtype == bool
    assert np.array_equal(mask, np.isin(LABELS, expected))
    assert image_view(explanation, 0).top(top, sign).tolist() == expected


def test_the_default_output_is_the_one_predicted(explanation):
    predicted = explanation.output_names[int(np.argmax(explanation.predictions[0]))]
    assert np.array_equal(explanation.mask(top=2), explanation.mask(predicted, top=2))
    assert np.array_equal(explanation.mask(1, top=1, sign="-"), explanation.mask(0, top=1))


def test_features_that_are_left_out_are_not_drawn(explanation):
    few = explanation[:, ["superpixel 2", "superpixel 4"]]
    assert np.array_equal(few.mask(0, top=6, sign="both"), np.isin(LABELS, [2, 4]))


def test_pictures(explanation):
    result = image_view(explanation, 0)
    overlay = result.overlay().astype(int)
    inner = ~result.edges
    red = overlay[..., 0] - overlay[..., 2]
    assert red[inner & (LABELS == 0)].min() > 30  # raises
    assert red[inner & (LABELS == 4)].max() < -30  # lowers
    assert np.abs(red[LABELS == 3]).max() <= 1
    cutout = result.picture("cutout", 1, "+")
    assert np.array_equal(cutout[LABELS == 0], IMAGE[LABELS == 0])
    assert np.unique(cutout[LABELS != 0].reshape(-1, 3), axis=0).shape == (1, 3)
    assert result.boundaries(5, "both").shape == IMAGE.shape
    assert np.array_equal(result.picture("original", 1, "+"), IMAGE)


def test_a_constant_model_has_no_colours():
    dull = ImageExplainer(lambda images: np.ones(len(images)), segments=LABELS)(IMAGE)
    assert not dull.mask().any()
    assert np.ptp(image_view(dull, 0).overlay(), axis=2).max() == 0


def test_plots_take_axes_and_return_them(explanation):
    axes = plt.subplots()[1]
    assert explanation.plot.image("against", kind="cutout", top=2, sign="-", ax=axes) is axes
    assert explanation.plot.image().get_title().startswith(("for", "against"))
    *pictures, scale = explanation.plot.images().axes
    assert [ax.get_title().split("\n")[0] for ax in pictures] == ["image", "for <it>", "against"]
    low, high = scale.get_xlim()
    assert -low == high == pytest.approx(np.abs(explanation.coefficients.values).max())
    assert len(explanation.plot.images(["against"], kind="boundaries").axes) == 2
    assert len(gallery([explanation, explanation], kinds=("original", "cutout")).axes) == 4


def test_the_page_needs_no_network(explanation):
    page = explanation.to_html()
    assert "img-src data:" in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert page.count(explanation.provenance["image"]) == 1
    assert page.count('aria-label="the image that is explained"') == 2
    assert "for &lt;it&gt;" in page
    assert "for <it>" not in page


def test_many_superpixels_and_large_photographs_survive():
    labels = np.arange(70_000).reshape(200, 350)
    assert np.array_equal(labels_from_data_url(labels_to_data_url(labels)), labels)
    assert np.array_equal(labels_from_data_url(labels_to_data_url(labels % 256)), labels % 256)
    assert np.array_equal(from_data_url(to_data_url(IMAGE, lossless=False)), IMAGE)
    large = np.full((600, 600, 3), 90, np.uint8)
    assert to_data_url(large, lossless=False).startswith("data:image/jpeg")
    assert np.abs(from_data_url(to_data_url(large, lossless=False)).astype(int) - 90).max() <= 2


def test_explanations_without_an_image_are_refused(explanation):
    table = of_a_table()
    for draw in (table.mask, table.plot.image, table.plot.images):
        with pytest.raises(InputError, match="no image here"):
            draw()
    assert "lx-photo" not in table.to_html().split("</style>")[-1]
    with pytest.raises(InputError, match="sign='plus'"):
        explanation.mask(sign="plus")
    with pytest.raises(InputError, match="top=0"):
        explanation.mask(top=0)
    with pytest.raises(InputError, match="kind='heat'"):
        explanation.plot.image(kind="heat")
    with pytest.raises(InputError, match="nothing to draw"):
        gallery([])
    broken = explanation.provenance | {"image": "data:image/png;base64,AAAA"}
    with pytest.raises(InputError, match="damaged"):
        Explanation.from_json(
            explanation.to_json().replace(explanation.provenance["image"], broken["image"])
        ).mask()
