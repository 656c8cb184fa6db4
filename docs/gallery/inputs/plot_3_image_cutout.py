"""
Image cut-out
=============

The superpixels with the largest contributions alone, as pictures in LIME's paper show them.

.. index:: cut-out, image mask
"""

# %%
import numpy as np
from sklearn.datasets import load_sample_image

import limes

temple = load_sample_image("china.jpg")[::3, ::3]


def blue(images):
    """Mean blue of each image: a model that everyone can check by eye."""
    return np.asarray(images, dtype=float)[..., 2].mean(axis=(1, 2)) / 255


explainer = limes.ImageExplainer(
    blue, segments="slic", segment_options={"n_segments": 30}, fill=(0, 0, 0), rng=0
)
explanation = explainer(temple, progress=False)
explanation.plot.image(kind="cutout", top=8)

# %%
# ``kind=`` is "overlay", "cutout", "boundaries" or "original"; ``explanation.mask(top=8)`` has the pixels.
explanation.plot.images()
