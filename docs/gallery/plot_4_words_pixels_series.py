"""
Words, pixels, series
=====================

A coefficient a word, a superpixel, or a segment of a time series.
"""

# %%
import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import limes

# %%
# ``plot.text``
# -------------
reviews = ["good food", "friendly people", "slow service", "cold food", "good service", "rude people"]
model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(reviews, [1, 1, 0, 0, 1, 0])
words = limes.TextExplainer(model, output="margin")("Good food, slow service, friendly people")
words.plot.text()

# %%
words

# %%
# ``plot.images``
# ---------------
temple = load_sample_image("china.jpg")[::3, ::3]


def blue(images):
    """Mean blue of each image."""
    return np.asarray(images, dtype=float)[..., 2].mean(axis=(1, 2)) / 255


pixels = limes.ImageExplainer(
    blue, segments="slic", segment_options={"n_segments": 30}, fill=(0, 0, 0), rng=0
)(temple)
pixels.plot.images()

# %%
# ``plot.image``: the largest superpixels alone
# ---------------------------------------------
pixels.plot.image(kind="cutout", top=5)

# %%
# ``limes.gallery``: several images
# ---------------------------------
flower = load_sample_image("flower.jpg")[::3, ::3]
explainer = limes.ImageExplainer(
    blue, segments="grid", segment_options={"rows": 4, "columns": 6}, fill=(0, 0, 0), rng=0
)
limes.gallery(explainer([temple, flower]))

# %%
# ``plot.series``
# ---------------
t = np.linspace(0, 1, 200)
signal = np.sin(12 * t) + 2.0 * np.exp(-(((t - 0.6) / 0.05) ** 2))
peak = limes.SeriesExplainer(lambda series: series.max(axis=1), segments="equal", count=8)(signal)
peak.plot.series()
