"""A real classifier on real photographs: the strongest superpixels lie on the object, and matter.

The boxes were drawn by hand on the middle of each photograph, scaled to 224 x 224: left, top, right, bottom.
Only they are kept here; photographs and network are read from LIMES_DATA.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import limes
from effort import repeats
from internals import image_view

ROOT = Path(__file__).parents[2]
DATA = (ROOT / os.environ.get("LIMES_DATA", "../shared/data")).resolve()
CLASSES = {
    "bird": "chickadee",
    "cat": "Egyptian cat",
    "coffee": "espresso",
    "parrot": "macaw",
    "grace_hopper": "military uniform",
    "china_palace": "palace",
    "chelsea_cat": "Egyptian cat",
    "rocket": "missile",
}
BOXES = {
    "bird": [(0, 48, 165, 190), (120, 105, 224, 142)],
    "cat": [(0, 110, 185, 224), (62, 22, 185, 150)],
    "coffee": [(38, 8, 180, 172)],
    "parrot": [(80, 0, 200, 85), (58, 70, 188, 170), (45, 150, 120, 224)],
    "grace_hopper": [(65, 0, 165, 55), (8, 122, 224, 224)],
    "china_palace": [(0, 12, 132, 205)],
}
CALLS, TOP, DRAWS = 256, 5, repeats(50, 20)
PIXELS = limes.Preprocess(mean=127, scale=128, size=224)

pytestmark = pytest.mark.skipif(
    not (DATA / "models").exists(), reason="photographs and networks are not here: set LIMES_DATA"
)


@cache
def session():
    runtime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # tests run side by side
    return runtime.InferenceSession(DATA / "models" / "efficientnet_lite0.onnx", options)


def explainer(segments="quickshift", calls=CALLS):
    pytest.importorskip("skimage", reason="pip install scikit-image")
    return limes.ImageExplainer(
        session(),
        segments=segments,
        preprocess=PIXELS,
        link="softmax",
        labels=(DATA / "models" / "imagenet_labels_1001.txt").read_text().splitlines()[1:],
        top=1,
        max_calls=calls,
    )


@cache
def explained(photograph):
    """The image that the network sees, as floats, and its explanation."""
    from PIL import Image

    with Image.open(DATA / "images" / f"{photograph}.jpg") as opened:
        photo = np.asarray(opened.convert("RGB"))
    image = PIXELS.framing(photo).apply(photo).astype(float)
    return image, explainer()(image, progress=False)


@pytest.mark.parametrize("photograph", repeats([*BOXES], ["bird"]))
def test_the_top_superpixels_lie_on_the_object(photograph):
    """The largest coefficient's by more than half, and most of what the five largest add up to."""
    _, explanation = explained(photograph)
    assert explanation.output_names == (CLASSES[photograph],)
    inside = np.zeros((224, 224), dtype=bool)
    for left, top, right, bottom in BOXES[photograph]:
        inside[top:bottom, left:right] = True
    assert inside.mean() < 0.65
    seen = image_view(explanation, 0)
    top = seen.top(TOP, "+")
    on_object = np.array([inside[seen.labels == j].mean() for j in top])
    assert on_object[0] > 0.5
    share = np.average(on_object, weights=seen.values[top])
    assert share > 0.6
    assert share > inside.mean()


@pytest.mark.parametrize("photograph", repeats([*CLASSES], ["bird"]))
def test_deleting_the_top_fifth_is_worse_than_deleting_any_fifth(photograph):
    """Mean over draws; deleted superpixels show their mean."""
    image, explanation = explained(photograph)
    d = explanation.coefficients.values.shape[1]
    fifth = round(0.2 * d)
    rng = np.random.default_rng(0)
    top = np.argsort(-explanation.coefficients.values[0, :, 0])[:fifth]
    deleted = np.stack([top, *(rng.choice(d, fifth, replace=False) for _ in range(DRAWS))])
    kept = np.ones((DRAWS + 1, d))
    np.put_along_axis(kept, deleted, 0.0, axis=1)
    probability = answers(image, explanation, kept)
    assert probability[0] < probability[1:].mean()
    assert probability[0] < explanation.predictions[0, 0]


def answers(image, explanation, kept):
    """The network's own probabilities of the class, asked without limes's composition."""
    labels = image_view(explanation, 0).labels
    fill = image.copy()
    for j in range(kept.shape[1]):
        fill[labels == j] = image[labels == j].mean(axis=0)
    images = np.where((kept[:, labels] > 0)[..., None], image, fill)
    batch = np.moveaxis((images - 127) / 128, -1, 1).astype(np.float32)
    logits = session().run(["logits"], {"image": batch})[0].astype(float)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    names = (DATA / "models" / "imagenet_labels_1001.txt").read_text().splitlines()[1:]
    return powers[:, names.index(explanation.output_names[0])] / powers.sum(axis=1)
