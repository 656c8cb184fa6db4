"""Which superpixels speak for what a network sees in three photographs: docs/images/photographs.jpg.

Needs ``pip install 'limes[images,onnx]'``, and the photographs and network of LIMES_DATA.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

import limes

ROOT = Path(__file__).parents[1]
DATA = ROOT / os.environ.get("LIMES_DATA", "../shared/data")

explainer = limes.ImageExplainer(
    onnxruntime.InferenceSession(DATA / "models" / "efficientnet_lite0.onnx"),
    preprocess=limes.Preprocess(mean=127, scale=128, size=224),
    labels=(DATA / "models" / "imagenet_labels_1001.txt").read_text().splitlines()[1:],
    top=1,
    max_calls=500,
)
photographs = [
    np.asarray(Image.open(DATA / "images" / f"{name}.jpg"))
    for name in ("coffee", "grace_hopper", "china_palace")
]
figure = limes.gallery(explainer(photographs), kinds=("original", "overlay", "cutout"))
figure.set_size_inches(6.6, 7.6)
figure.savefig(ROOT / "docs" / "images" / "photographs.jpg", dpi=80, pil_kwargs={"quality": 88})
