"""LIME's law for texts, n rows at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from papers.common.lime_law import Draw

from . import theory


def deletions(answer: Callable[[np.ndarray], np.ndarray], d: int, bandwidth: float) -> Draw:
    """The text itself, and n - 1 rows that s words are taken out of, s uniform on 1, ..., d."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        removed = np.concatenate([[0], rng.integers(1, d, size=n - 1, endpoint=True)])
        # the words that come first in a random order are removed
        order = rng.random((n, d)).argsort(axis=1).argsort(axis=1)
        z = (order >= removed[:, None]).astype(np.float64)
        return z, answer(z), theory.psi(removed / d, bandwidth)

    return draw
