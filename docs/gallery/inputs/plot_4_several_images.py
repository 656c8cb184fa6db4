"""
Several images
==============

Explanations of several images in one figure, on one scale.

.. index:: image grid
"""

# %%
import numpy as np
from sklearn.datasets import load_sample_image

import limes


def blue(images):
    """Mean blue of each image: a model that everyone can check by eye."""
    return np.asarray(images, dtype=float)[..., 2].mean(axis=(1, 2)) / 255


photographs = [load_sample_image(name)[::3, ::3] for name in ("china.jpg", "flower.jpg")]
explainer = limes.ImageExplainer(
    blue, segments="grid", segment_options={"rows": 4, "columns": 6}, fill=(0, 0, 0), rng=0
)
limes.gallery(explainer(photographs, progress=False))
