"""
Image heat map
==============

The pixels or superpixels of an image in the colours of their contributions.

.. index:: image, heat map of an image, saliency, superpixels
"""

# %%
# A support vector machine tells a 3 from an 8. Red pixels speak for the 8 that it reads here, blue ones for a 3.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import limes

digits = load_digits()
either = np.isin(digits.target, [3, 8])
images, labels = 15 * digits.images[either], digits.target[either]  # 0 is black, 240 white
model = SVC().fit(images[:240].reshape(240, 64), labels[:240])
pixels = {"segments": "grid", "segment_options": {"rows": 8, "columns": 8}}
explanation = limes.ImageExplainer(model, **pixels, fill=127, output="margin")(images[240])
explanation.plot.images()

# %%
# ``fill=127`` shows a pixel that is hidden as grey. :doc:`/guides/plot_4_image` explains this misread digit, and a photograph.
