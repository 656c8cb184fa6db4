"""
An image classifier
===================

A handwritten 3 is read as an 8. Which pixels decided, and does the answer depend on how pixels are hidden?

.. index:: image classifier, saliency, superpixels, misclassification
"""

# %%
# A digit that is misread
# -----------------------
#
# A support vector machine has learnt 240 threes and eights that ship with scikit-learn.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

digits = load_digits()
either = np.isin(digits.target, [3, 8])
images, labels = 15 * digits.images[either], digits.target[either]  # 0 is black, 240 white
model = SVC().fit(images[:240].reshape(240, 64), labels[:240])
digit = images[240]
print(f"a {labels[240]}, read as {model.predict(digit.reshape(1, 64))[0]}")

# %%
# Pixels
# ------
#
# The contributions of the pixels start at the model's answer to a grey image and add up to its answer to this one. The margin is positive for an 8: red pixels
# speak for it, blue ones for a 3. Kernel machines are read, so that the contributions are exact.
import limes

pixels = {"segments": "grid", "segment_options": {"rows": 8, "columns": 8}}
explainer = limes.ImageExplainer(model, **pixels, fill=127, output="margin")
explanation = explainer(digit)
explanation.plot.images()

# %%
account = explanation.contributions
print(
    f"from {account.base_values[0]:+.2f} to the margin {explanation.predictions[0]:+.2f}, {explanation.method}"
)
print(account.row_warnings[0] or "no warning")

# %%
# How pixels are hidden
# ---------------------
#
# ``fill=127`` shows a hidden pixel as grey. With ``fill=0`` it shows no ink. Black pixels are then the same hidden as shown: they contribute 0,
# LIME's coefficients of them are unknown, and a warning says so.
without_ink = limes.ImageExplainer(model, **pixels, fill=0, output="margin")(digit)
without_ink.plot.images()

# %%
print(*without_ink.warnings, sep="\n")

# %%
# Photographs
# -----------
#
# A photograph is cut into superpixels: ``segments=`` takes "quickshift", "slic", "grid" and others, an array of labels, or a function. This
# model scores how much of a picture is the warm yellow of a petal, a function that everyone can check by eye. It is called in batches like a network.
from sklearn.datasets import load_sample_image

flower = load_sample_image("flower.jpg")[::2, ::2]  # (213, 320, 3), whole numbers up to 255


def warmth(images):
    """Share of warm pixels of each image, (n,)."""
    red, green, blue = np.moveaxis(np.asarray(images, dtype=float), -1, 0)
    return ((red > 120) & (red > 1.3 * blue) & (green < red)).mean(axis=(1, 2))


superpixels = {"segments": "slic", "segment_options": {"n_segments": 40}}
explanation = limes.ImageExplainer(warmth, **superpixels, fill=(0, 0, 0), rng=0)(flower, progress=False)
explanation.plot.images()

# %%
# A function is sampled, and the bars have 95 % intervals:
account = explanation.contributions
print(
    f"{account.values.shape[1]} superpixels, {explanation.method}, {explanation.model_calls} calls, errors up to {account.standard_errors.max():.4f}"
)
explanation.plot.bar(max_features=8)

# %%
# Pixels of the answer
# --------------------
#
# ``mask`` selects the pixels of the superpixels with the largest contributions, for a picture of your own:
from matplotlib import pyplot as plt

mask = explanation.mask(top=6)
_, ax = plt.subplots()
ax.imshow(np.where(mask[..., None], flower, 255))
ax.set_axis_off()

# %%
# A network
# ---------
#
# Torch modules and ONNX sessions are models as they are; ``Preprocess`` says how an image becomes the network's input:
#
# .. code-block:: text
#
#     explainer = limes.ImageExplainer(
#         onnxruntime.InferenceSession("efficientnet_lite0.onnx"),
#         preprocess=limes.Preprocess(mean=127, scale=128, size=224),
#         labels="labels.txt", top=3,
#     )
#
# :doc:`/photographs` has such photographs, and :func:`limes.gallery` draws several side by side.
