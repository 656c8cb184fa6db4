"""
A photograph
============

Which parts of a photograph decide? The photographs ship with scikit-learn. The model scores how much of a picture is
the warm yellow of a petal: a function that everyone can check by eye, called in batches like a network.
"""

# %%
import numpy as np
from sklearn.datasets import load_sample_image

flower = load_sample_image("flower.jpg")[::2, ::2]  # (213, 320, 3), whole numbers up to 255


def warmth(images):
    """Share of warm pixels of each image, (n,)."""
    red, green, blue = np.moveaxis(np.asarray(images, dtype=float), -1, 0)
    return ((red > 120) & (red > 1.3 * blue) & (green < red)).mean(axis=(1, 2))


print(f"{warmth(flower[None])[0]:.1%} of the pixels are warm")

# %%
# Superpixels
# -----------
#
# The image is cut into superpixels. Some are switched off at random (their mean colour is shown instead), and a coefficient is the
# effect of a superpixel's presence. ``segments=`` takes "quickshift", "slic", "grid" and others, an array of labels, or a function.
import limes

explainer = limes.ImageExplainer(
    warmth, segments="slic", segment_options={"n_segments": 40}, fill=(0, 0, 0), rng=0
)
explanation = explainer(flower)
explanation.plot.images()

# %%
print(
    f"{explanation.values.shape[1]} superpixels, {explanation.method}, {explanation.model_calls} calls, R² = {explanation.fidelity[0]:.3f}"
)
print("largest standard error:", f"{explanation.standard_errors.max():.1e}")

# %%
# Pixels of the answer
# --------------------
#
# ``mask`` selects the pixels of the largest coefficients, for a picture of your own:
from matplotlib import pyplot as plt

mask = explanation.mask(top=6)
_, ax = plt.subplots()
ax.imshow(np.where(mask[..., None], flower, 255))
ax.set_axis_off()

# %%
# How sure
# --------
#
# The bars are the superpixels' coefficients with 95 % intervals, where the model was sampled.
explanation.plot.bar(max_features=8)

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
