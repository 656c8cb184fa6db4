"""
Image heat map
==============

The pixels or superpixels of an image in the colours of their coefficients.

.. index:: image, heat map of an image, saliency, superpixels
"""

# %%
# A support vector machine tells a 3 from an 8. Red pixels speak for the 8 that it reads here, blue ones for a 3.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import limes

digits = load_digits()
images, labels = (each[np.isin(digits.target, [3, 8])] for each in (digits.images, digits.target))
model = SVC(gamma=0.001).fit(images[:240].reshape(240, 64), labels[:240])
pixels = {"segments": "grid", "segment_options": {"rows": 8, "columns": 8}}
explanation = limes.ImageExplainer(model, **pixels, fill=7.5, output="margin")(images[240])
explanation.plot.images()

# %%
# ``fill=7.5`` shows a pixel that is hidden as grey. :doc:`/guides/plot_4_image` explains this misread digit, and a photograph.
