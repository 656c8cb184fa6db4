"""Inputs that are taken apart into features: texts, images, series, rows of tables.

A part has a splitter, which makes features of an input, and a filler, which says what stands where a feature
is hidden. :class:`limes.CompositeExplainer` explains models of several of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Protocol, Self

from limes._arrays import Bools, Floats, Objects

__all__ = ["Input", "InputPart", "InputPiece"]


class InputPiece(Protocol):
    """One input of a kind, taken apart into d features."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, (d,)."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """What holds of the explained input, (d,)."""

    @property
    def data(self) -> Objects:
        """What is shown beside each feature, (d,)."""

    @property
    def key(self) -> Hashable:
        """What tells inputs apart."""

    @property
    def picture(self) -> Mapping[str, Any]:
        """What pictures are drawn from; empty where nothing is drawn."""

    @property
    def changes(self) -> Bools:
        """Whether hiding a feature changes the input, (d,)."""

    def compose(self, z: Floats) -> Any:
        """Return a batch of n inputs at rows z (n, d): 1 shows a feature, 0 hides it."""


class Input(InputPiece, Protocol):
    """A text, an image, a series or several inputs, which an explainer takes."""

    def only(self, kept: Bools) -> Self:
        """Return it with some of its features; the others are always shown."""


class InputPart(Protocol):
    """A kind of input."""

    def parse(self, raw: Any) -> InputPiece:
        """Take an input apart.

        Raises
        ------
        InputError
            If it is no such input.
        """
