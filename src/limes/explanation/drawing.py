"""How data is drawn: a class names the module of ``limes.show`` that draws it.

``limes.show`` imports the classes that it draws, explanations and diagnoses; they do not import it. Here, and
only here, its modules are looked up by name, when something is drawn for the first time. The pictures of an
explanation, ``explanation.plot.bar(row=0)``, are listed here and drawn by ``limes/show/plots.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.console import Console, ConsoleOptions, RenderResult


def drawer(medium: str) -> Any:
    """Return the module of ``limes.show`` that draws on a medium: "terminal", "html", "plots", ..."""
    return import_module(f"limes.show.{medium}")


def write_text(text: str, path: str | Path | None) -> str:
    """Return the text, and write it to `path` if given."""
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


class Printable:
    """Data with a terminal drawing: ``plain_text(data)`` and ``printed(data, options)`` of one module."""

    _terminal: ClassVar[str]

    def __str__(self) -> str:
        return str(drawer(self._terminal).plain_text(self))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield drawer(self._terminal).printed(self, options)


class Page(Printable):
    """Data with a page as well: ``page(data)`` and ``fragment(data)``, and ``one_line_summary(data)``."""

    _html: ClassVar[str]

    def to_html(self, path: str | Path | None = None) -> str:
        """Return a self-contained page with pictures, and write it to `path` if given."""
        return write_text(drawer(self._html).page(self), path)

    def _repr_html_(self) -> str:
        return str(drawer(self._html).fragment(self))

    def __repr__(self) -> str:
        return str(drawer(self._terminal).one_line_summary(self))


@dataclass(frozen=True)
class Plots:
    """The pictures of one explanation: they take ``ax=``, return it and show nothing."""

    explanation: Any

    def bar(
        self,
        row: int = 0,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        max_features: int = 10,
    ) -> Axes:
        """Draw the largest coefficients of one row as signed bars.

        Parameters
        ----------
        row : int
        output : name or position
            The output with the largest prediction for this row, unless given.
        ax : matplotlib Axes
            Where to draw; a new figure unless given.
        max_features : int

        Returns
        -------
        Axes
            Error bars reach 1.96 standard errors to each side when the explanation is sampled.
        """
        return self._draw("bar", row, output, ax=ax, max_features=max_features)

    def beeswarm(
        self, output: str | int | None = None, *, ax: Axes | None = None, max_features: int = 10
    ) -> Axes:
        """Draw the coefficients of all rows, one dot a row, one line a feature.

        Dots that would overlap are stacked. Their colour is the rank of the row's value among the
        values of the feature; grey where these are no numbers or missing.

        Parameters
        ----------
        output : name or position
            The last output, unless given.
        ax : matplotlib Axes
            Where to draw; a new figure unless given.
        max_features : int

        Returns
        -------
        Axes
        """
        return self._draw("beeswarm", output, ax=ax, max_features=max_features)

    def bandwidth(
        self,
        row: int = 0,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        max_features: int = 6,
    ) -> Axes:
        """Draw the coefficients of one row at other bandwidths, which the explainer computes.

        Raises
        ------
        InputError
            If the explanation comes from a file, or its explainer has no bandwidth.
        """
        return self._draw("bandwidth", row, output, ax=ax, max_features=max_features)

    def text(self, output: str | int | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the explained text, its words coloured by their coefficients.

        Characters that matplotlib's font does not have are drawn as boxes; the HTML page has them all.

        Parameters
        ----------
        output : name or position
            The output with the largest prediction, unless given.
        ax : matplotlib Axes
            Where to draw; a new figure unless given.

        Returns
        -------
        Axes

        Raises
        ------
        InputError
            If the explanation is not of a text.
        """
        return self._draw("text", output, ax=ax)

    def image(
        self,
        output: str | int | None = None,
        *,
        kind: str = "overlay",
        top: int = 5,
        sign: str = "both",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the explained image.

        Parameters
        ----------
        output : name or position
            The output with the largest prediction, unless given.
        kind : "overlay", "cutout", "boundaries" or "original"
            All superpixels in the colours of their coefficients; the top ones alone; outlines; the image.
        top, sign : int, and "+", "-" or "both"
            Which superpixels are cut out or outlined.
        ax : matplotlib Axes
            Where to draw; a new figure unless given.

        Returns
        -------
        Axes

        Raises
        ------
        InputError
            If the explanation is not of an image.
        """
        return self._draw("image", output, kind=kind, top=top, sign=sign, ax=ax)

    def images(
        self,
        outputs: list[str | int] | None = None,
        *,
        kind: str = "overlay",
        top: int = 5,
        sign: str = "both",
    ) -> Figure:
        """Draw the image, and beside it one picture an output; see :meth:`image`."""
        figure: Figure = drawer("plots").images(self.explanation, outputs, kind=kind, top=top, sign=sign)
        return figure

    def _draw(self, picture: str, *selection: Any, **options: Any) -> Axes:
        axes: Axes = getattr(drawer("plots"), picture)(self.explanation, *selection, **options)
        return axes
