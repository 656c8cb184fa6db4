"""Short reviews with likes and stars, and a surrogate of one by all of its deletions."""

from __future__ import annotations

import numpy as np

import words

TRAINING = [
    "The food was good, and the service was good too!",
    "Good food; slow service. We waited and waited.",
    "Bad food, bad service, never again...",
    "The café was lovely: great coffee and great cake",
    "Never again! The cake was bad and the coffee cold.",
    "It was fine, the staff were slow but lovely",
    "Great staff, great food, we loved it",
    "Cold soup. Rude staff. We left and never went back",
]
LIKED = np.array([1, 1, 0, 1, 0, 1, 1, 0])
STARS = np.array([5.0, 3.5, 1.0, 4.5, 1.5, 3.0, 5.0, 0.5])
TEXT = (
    "Good FOOD, bad food: the café (zyzzyva) was bad, bad & slow!"  # Good food bad the café zyzzyva was slow
)


def enumerated(explanation, ask, bandwidth=0.25, text=TEXT):
    """Weighted least squares over all deletions of the text, each asked as a string."""
    places = [explanation.provenance["spans"][c] for c in explanation.conditions[0]]
    spans = sorted((start, end, j) for j, word in enumerate(places) for start, end in word)
    texts = []
    for z in words.subsets(len(places)):
        kept, at = "", 0
        for start, end, j in spans:
            kept += text[at:start] + (text[start:end] if z[j] else "")
            at = end
        texts.append(kept + text[at:])
    return words.surrogate(words.law("words", len(places), bandwidth), ask(texts))


def assert_exact(explanation, ask, **options):
    assert explanation.method == "exact", explanation.reason
    assert explanation.model_calls == 0
    intercept, coef, _ = enumerated(explanation, ask, **options)
    scale = np.abs(coef).max()
    assert scale > 1e-3
    np.testing.assert_allclose(explanation.coefficients.values[0], coef, rtol=1e-9, atol=1e-9 * scale)
    np.testing.assert_allclose(
        explanation.coefficients.intercepts[0], intercept, rtol=1e-9, atol=1e-9 * scale
    )
