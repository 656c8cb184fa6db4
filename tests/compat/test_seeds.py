"""Without a seed the limit is the same every time, and lime's own sample is not."""

from __future__ import annotations

import numpy as np
import pytest

from limes.compat.lime.lime_image import LimeImageExplainer
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.compat.lime.lime_text import LimeTextExplainer

X = np.random.default_rng(0).normal(size=(100, 3))
TEXT = "one two three four five six seven eight nine ten eleven twelve"
IMAGE = np.random.default_rng(0).integers(0, 255, (8, 8, 3)).astype(np.uint8)
SEGMENTS = np.arange(64).reshape(8, 8) // 4


def rows(x):
    return classes(np.tanh(x).prod(axis=1))


def texts(strings):
    return classes(np.array([("one" in s) * ("two" in s) + len(s) / 50 for s in strings]) - 1)


def images(pixels):
    level = pixels.mean(axis=3).reshape(len(pixels), 16, 4).mean(axis=2) / 255
    return classes(4 * level[:, 0] * level[:, 5] - 1)


def classes(margin):
    p = 1 / (1 + np.exp(-margin))
    return np.column_stack([1 - p, p])


def of_a_row(**options):
    return LimeTabularExplainer(X, **options).explain_instance(X[0], rows, num_samples=500).local_exp[1]


def of_a_text(**options):
    explainer = LimeTextExplainer(**options)
    return explainer.explain_instance(TEXT, texts, num_features=12, num_samples=500).local_exp[1]


def of_an_image(**options):
    explanation = LimeImageExplainer(**options).explain_instance(
        IMAGE, images, segmentation_fn=lambda image: SEGMENTS, top_labels=None, num_samples=500
    )
    return explanation.local_exp[1]


KINDS = pytest.mark.parametrize("explained", [of_a_row, of_a_text, of_an_image])


@KINDS
def test_repeated_without_a_seed(explained):
    assert explained() == explained()
    assert explained(engine="lime") != explained(engine="lime")


@KINDS
def test_repeated_with_a_seed(explained):
    assert explained(random_state=1) == explained(random_state=1)
    assert explained(random_state=1) != explained(random_state=2)
    assert explained(random_state=1, engine="lime") == explained(random_state=1, engine="lime")
