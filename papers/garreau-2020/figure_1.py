"""Figure 1: the superpixels that speak for one label of a photograph, and for another."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import limes
from limes._show.inputs import draw_image
from papers.common.drawn import Drawn, panels
from papers.common.expected import Sampled

DATA = Path(os.environ.get("LIMES_DATA", Path(__file__).parents[3] / "shared" / "data"))
MODEL, PHOTOGRAPH = DATA / "models" / "efficientnet_lite0.onnx", DATA / "images" / "grace_hopper.jpg"
LABELS = DATA / "models" / "imagenet_labels_1001.txt"
AVAILABLE = MODEL.exists() and all(find_spec(name) for name in ("onnxruntime", "skimage"))
PAIR = ("military uniform", "Windsor tie")
CALLS = 1000


def draw(runs: int) -> Drawn:  # noqa: ARG001 - one run, with its own standard errors
    """The photograph, and the five superpixels with the largest coefficients for each of two labels."""
    explanation = explain()
    figure, axes = panels(3, width=6.0, height=2.3)
    draw_image(axes[0], explanation, 0, kind="original", top=5, sign="+", title=False)
    axes[0].set_title("(a) photograph", fontsize=10)
    for panel, ax, place in zip("bc", axes[1:], (0, 1), strict=True):
        draw_image(ax, explanation, place, kind="cutout", top=5, sign="+", title=False)
        ax.set_title(f"({panel}) {PAIR[place]}", fontsize=10)
    numbers = {
        label: Sampled(
            explanation.coefficients.values[0, :, k], explanation.coefficients.standard_errors[0, :, k]
        )
        for k, label in enumerate(PAIR)
    }
    shares = explanation.predictions[0]
    return Drawn(figure, numbers, _TEXT.format(*shares, explanation.coefficients.values.shape[1]))


def explain() -> limes.Explanation:
    """Both labels from the same calls."""
    import onnxruntime
    from PIL import Image

    session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    explainer = limes.ImageExplainer(
        session,
        segments="slic",
        segment_options={"n_segments": 60},
        preprocess=limes.Preprocess(mean=127, scale=128, size=224),
        link="softmax",
        labels=LABELS.read_text().splitlines()[1:],
        output=list(PAIR),
        max_calls=CALLS,
    )
    with Image.open(PHOTOGRAPH) as opened:
        return explainer(np.asarray(opened.convert("RGB")))


_TEXT = """**Claim.** LIME shows which superpixels speak for a label: for 'terrapin' those of the turtle,
and for 'strawberry' others.

**Here.** Neither the photograph nor Inception is at hand. EfficientNet-Lite0 gives the portrait of Grace
Hopper (public domain, US Navy) {:.2f} for 'military uniform' and {:.2f} for 'Windsor tie'. Of {}
superpixels the cap and its badge speak most for the one, collar and tie for the other; both explanations
come from the same 1000 calls, with standard errors.
"""
