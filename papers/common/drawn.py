"""The parts of a figure of a paper: a picture, its numbers, and a few words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from papers.common.expected import Sampled

INK = "#1d2430"


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure made again.

    Attributes
    ----------
    figure
        Of matplotlib.
    numbers
        By name: arrays that a new run must give again, or means of repeated runs.
    text
        What it shows and how it compares with the paper's, in Markdown.
    """

    figure: Any
    numbers: Mapping[str, np.ndarray | float | Sampled]
    text: str


def panels(count: int = 1, *, width: float = 8.5, height: float = 3.2) -> tuple[Any, list[Any]]:
    """A figure with ``count`` panels side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(1, count, squeeze=False)[0])
