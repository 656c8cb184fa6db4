"""The calls of lime's tutorials on images: why a photograph looks like a city, and a digit like itself.

Only the imports are others, and the photographs and digits are those that scikit-learn ships.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from skimage.color import label2rgb, rgb2gray
from skimage.segmentation import mark_boundaries
from skimage.transform import resize
from sklearn.datasets import load_digits, load_sample_images
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from limes.compat.lime import lime_image
from limes.compat.lime.wrappers.scikit_image import SegmentationAlgorithm

pictures = Path(tempfile.mkdtemp())

# -- a photograph: numbers between -1 and 1, as networks take them, and a classifier of two -


def squares(image, side=128, step=32):
    """Square pieces of a photograph."""
    places = [
        (i, j) for i in range(0, image.shape[0] - side, step) for j in range(0, image.shape[1] - side, step)
    ]
    return np.stack([image[i : i + side, j : j + side] for i, j in places])


def colours(images):
    """Mean colours of 8 x 8 places."""
    n, side = len(images), images.shape[1] // 8
    return images.reshape(n, 8, side, 8, side, 3).mean(axis=(2, 4)).reshape(n, -1)


photographs = [squares(image / 127.5 - 1) for image in load_sample_images().images]
kinds = np.repeat([0, 1], [len(each) for each in photographs])
classifier = LogisticRegression(C=0.01, max_iter=1000).fit(colours(np.concatenate(photographs)), kinds)
images = [photographs[0][104]]


def predict(batch):
    return classifier.predict_proba(colours(batch))


explainer = lime_image.LimeImageExplainer(random_state=0)
explanation = explainer.explain_instance(
    images[0].astype("double"), predict, top_labels=5, hide_color=0, num_samples=1000
)
print("Superpixels:", len(np.unique(explanation.segments)), "top labels:", explanation.top_labels)
print("Score:", round(explanation.score[explanation.top_labels[0]], 3))

best = explanation.top_labels[0]
calls = {
    "positive, rest hidden": {"positive_only": True, "num_features": 5, "hide_rest": True},
    "positive": {"positive_only": True, "num_features": 5, "hide_rest": False},
    "both": {"positive_only": False, "num_features": 10, "hide_rest": False},
    "both, large": {"positive_only": False, "num_features": 1000, "hide_rest": False, "min_weight": 0.005},
}
figure, axes = plt.subplots(1, 5, figsize=(15, 3.4), layout="constrained")
for ax, (name, options) in zip(axes, calls.items(), strict=False):
    temp, mask = explanation.get_image_and_mask(best, **options)
    ax.imshow(mark_boundaries(temp / 2 + 0.5, mask))
    ax.set_title(name)
    ax.axis("off")

# each superpixel's coefficient, in its place
heat = np.vectorize(dict(explanation.local_exp[best]).get)(explanation.segments)
image = axes[-1].imshow(heat, cmap="RdBu", vmin=-np.abs(heat).max(), vmax=np.abs(heat).max())
figure.colorbar(image, ax=axes[-1])
axes[-1].set_title("coefficients")
axes[-1].axis("off")
figure.savefig(pictures / "photograph.png")

# -- a digit: a Pipeline that takes images and ends in a forest ----------------------------------------------


class PipeStep:
    """A function as a step of a Pipeline."""

    def __init__(self, step_func):
        self._step_func = step_func

    def fit(self, *_):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def transform(self, X):
        return self._step_func(X)


digits, names = load_digits(return_X_y=True)
big = np.stack([resize(image / 16, (28, 28), order=1) for image in digits[:600].reshape(-1, 8, 8)])
X_train, X_test, y_train, y_test = train_test_split(
    np.repeat(big[..., None], 3, axis=3), names[:600], train_size=0.8, random_state=0
)
pipeline = Pipeline(
    [
        ("Make Gray", PipeStep(lambda images: [rgb2gray(image) for image in images])),
        ("Flatten Image", PipeStep(lambda images: [image.ravel() for image in images])),
        ("RF", RandomForestClassifier(50, random_state=0)),
    ]
).fit(X_train, y_train)
print("Right:", round(pipeline.score(X_test, y_test), 3))

explainer = lime_image.LimeImageExplainer(verbose=False, random_state=0)
segmenter = SegmentationAlgorithm("quickshift", kernel_size=1, max_dist=4, ratio=0.5)
explanation = explainer.explain_instance(
    X_test[0],
    classifier_fn=pipeline.predict_proba,
    top_labels=10,
    hide_color=0,
    num_samples=1000,
    segmentation_fn=segmenter,
)
figure, axes = plt.subplots(1, 2, figsize=(6, 3), layout="constrained")
temp, mask = explanation.get_image_and_mask(
    y_test[0], positive_only=True, num_features=10, hide_rest=False, min_weight=0.01
)
axes[0].imshow(label2rgb(mask, temp, bg_label=0), interpolation="nearest")
axes[0].set_title(f"Positive regions for {y_test[0]}")
temp, mask = explanation.get_image_and_mask(
    y_test[0], positive_only=False, num_features=10, hide_rest=False, min_weight=0.01
)
axes[1].imshow(label2rgb(3 - mask, temp, bg_label=0), interpolation="nearest")
axes[1].set_title(f"Both regions for {y_test[0]}")
figure.savefig(pictures / "digit.png")
largest, error = explanation.local_exp[y_test[0]][0][1], explanation.standard_errors[y_test[0]][0][1]
print(f"Largest coefficient: {largest:.3f}, known to {error:.3f}")
print("Pictures:", pictures)
