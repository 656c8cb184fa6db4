"""Drawing of data: a class names the module of ``limes._show`` that draws it.

``limes._show`` imports the classes that it draws, explanations and diagnoses; they do not import it. Here,
and only here, its modules are looked up by name, when something is drawn for the first time. The pictures of
an explanation, ``explanation.plot.bar(row=0)``, are listed here, and drawn by ``limes/_show/plots.py`` and
``limes/_show/rows.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.console import Console, ConsoleOptions, RenderResult


def drawer(medium: str) -> Any:
    """Return the module of ``limes._show`` that draws on a medium: "terminal", "html", "plots", ..."""
    return import_module(f"limes._show.{medium}")


def write_text(text: str, path: str | Path | None) -> str:
    """Return the text, and write it to `path` if given.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    if path is not None:
        if not Path(path).parent.is_dir():
            raise InputError(
                f"cannot write {str(path)!r}: the folder {str(Path(path).parent)!r} does not exist"
            )
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write {str(path)!r}: {error.strerror or error}") from error
    return text


class Printable:
    """Data with a module that draws it: ``plain_text(data)``, ``printed(data, options)``, ``card(data)``."""

    _terminal: ClassVar[str]

    def __str__(self) -> str:
        return str(drawer(self._terminal).plain_text(self))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield drawer(self._terminal).printed(self, options)

    def _repr_html_(self) -> str:
        return str(drawer("cards").fragment(drawer(self._terminal).card(self)))


# Methods of the explainers of lime and shap
_OTHER_METHODS = ("explain_instance", "shap_values", "explain")


class Described(Printable):
    """An explainer: a card with the facts that it gives to its explanations."""

    _terminal: ClassVar[str] = "explainers"

    def _facts(self) -> Mapping[str, Any]:
        raise NotImplementedError

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _OTHER_METHODS:
                raise AttributeError(f"{type(self).__name__} has no {name}(): call it, explainer(rows)")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return str(drawer(self._terminal).one_line_summary(self))


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
    """The pictures of one explanation.

    Most take ``ax=``, return it, and show nothing; ``images`` returns a figure. Some accept words for the
    picture: ``title=`` in place of the usual one; ``names=``, a mapping from features to displayed names; and
    ``unit=`` of the prediction.
    """

    explanation: Any

    def bar(
        self,
        row: int | None = None,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        max_features: int = 10,
        names: Mapping[str, str] | None = None,
        title: str | None = None,
        unit: str = "",
    ) -> Axes:
        """Draw the largest coefficients: of one row as signed bars, of many as their mean size.

        Parameters
        ----------
        row : int
            Position of one row. The default is the only row, or else all rows together: mean absolute
            coefficients, with lines from the 10 % to the 90 % quantile over rows.
        output : name or position
            The default is the positive class of two, else the output with the largest prediction.
        ax : matplotlib Axes
            Axes to draw on; a new figure unless given.
        max_features : int
        names, title, unit
            Words for the picture.

        Returns
        -------
        Axes
            Error bars reach 1.96 standard errors to each side when one row is sampled. Slopes are drawn per
            standard deviation of their columns.
        """
        options = {"ax": ax, "max_features": max_features, "captions": self._captions(names, title, unit)}
        if row is None and len(self.explanation) > 1:
            return self._draw("rows", "mean_bar", output, **options)
        return self._draw("plots", "bar", row or 0, output, **options)

    def waterfall(
        self,
        row: int = 0,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        max_features: int = 10,
        names: Mapping[str, str] | None = None,
        title: str | None = None,
        unit: str = "",
    ) -> Axes:
        """Draw how one row's coefficients add up: intercept, surrogate, what it misses, prediction.

        Slopes count from the columns' means: a step is the slope times the row's distance from its mean.

        Raises
        ------
        InputError
            If the explanation is sparse: its rule states the same.
        """
        captions = self._captions(names, title, unit)
        return self._draw(
            "plots", "waterfall", row, output, ax=ax, max_features=max_features, captions=captions
        )

    def beeswarm(
        self,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        max_features: int = 10,
        names: Mapping[str, str] | None = None,
        title: str | None = None,
        unit: str = "",
    ) -> Axes:
        """Draw the coefficients of all rows, one dot a row, one line a feature.

        Dots that would overlap are stacked. Numbers are coloured by their rank among the values of the
        feature, grey where missing; categories have a colour each, and their names under their dots.

        Parameters
        ----------
        output : name or position
            The default is the positive class of two, else the output with the largest mean prediction.
        ax : matplotlib Axes
            Axes to draw on; a new figure unless given.
        max_features : int
        names, title, unit
            Words for the picture.

        Returns
        -------
        Axes
        """
        captions = self._captions(names, title, unit)
        return self._draw("rows", "beeswarm", output, ax=ax, max_features=max_features, captions=captions)

    def heatmap(
        self,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        max_features: int = 10,
        names: Mapping[str, str] | None = None,
        title: str | None = None,
        unit: str = "",
    ) -> Axes:
        """Draw the coefficients of all rows as colours, rows in order of decreasing prediction.

        Colours are full at the 99 % quantile of their sizes. Up to 30 rows are named.
        """
        captions = self._captions(names, title, unit)
        return self._draw("rows", "heatmap", output, ax=ax, max_features=max_features, captions=captions)

    def dependence(
        self,
        feature: str | int,
        *,
        color: str | int | None = None,
        output: str | int | None = None,
        ax: Axes | None = None,
        names: Mapping[str, str] | None = None,
        title: str | None = None,
        unit: str = "",
    ) -> Axes:
        """Draw the coefficient of a feature against its value, one dot a row.

        Parameters
        ----------
        feature : name or position
        color : name or position
            Another feature, by whose values the dots are coloured.
        output : name or position
            The default is the positive class of two, else the output with the largest mean prediction.
        ax : matplotlib Axes
            Axes to draw on; a new figure unless given.
        names, title, unit
            Words for the picture.

        Returns
        -------
        Axes
            Lines reach 1.96 standard errors to each side where rows are sampled.
        """
        captions = self._captions(names, title, unit)
        return self._draw("rows", "dependence", feature, color, output, ax=ax, captions=captions)

    def effect(
        self,
        feature: str | int,
        row: int = 0,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        title: str | None = None,
        unit: str = "",
    ) -> Axes:
        """Draw the whole effect of a feature around one row: a bar a cell, the row's own in colour.

        Parameters
        ----------
        feature : name or position
        row : int
        output : name or position
            The default is the positive class of two, else the output with the largest prediction.
        ax : matplotlib Axes
            Axes to draw on; a new figure unless given.
        title, unit
            Words for the picture.

        Returns
        -------
        Axes
            Whiskers reach 1.96 standard errors to each side where the model was sampled.
        """
        return self._draw("effects", "effect", feature, row, output, ax=ax, title=title, unit=unit)

    def effects(
        self,
        row: int = 0,
        output: str | int | None = None,
        *,
        ax: Sequence[Axes] | None = None,
        top: int = 6,
        unit: str = "",
    ) -> Sequence[Axes]:
        """Draw the largest whole effects around one row side by side, with one scale.

        Parameters
        ----------
        row : int
        output : name or position
            The default is the positive class of two, else the output with the largest prediction.
        ax : sequence of matplotlib Axes
            Axes to draw on, one for each; a new figure unless given.
        top : int
            Largest number of effects.
        unit : str
            Unit of the prediction.
        """
        drawn: Sequence[Axes] = drawer("effects").effects(
            self.explanation, row, output, axes=ax, top=top, unit=unit
        )
        return drawn

    def bandwidth(
        self,
        row: int = 0,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        max_features: int = 6,
        title: str | None = None,
    ) -> Axes:
        """Draw the coefficients of one row at other bandwidths, which the explainer computes.

        Raises
        ------
        InputError
            If the explanation comes from a file, or its explainer has no bandwidth.
        """
        captions = self._captions(None, title, "")
        return self._draw(
            "plots", "bandwidth", row, output, ax=ax, max_features=max_features, captions=captions
        )

    def text(
        self, output: str | int | None = None, *, ax: Axes | None = None, title: str | None = None
    ) -> Axes:
        """Draw the explained text, its words coloured by their coefficients.

        Characters that matplotlib's font does not have are drawn as boxes; the HTML page has them all.

        Parameters
        ----------
        output : name or position
            The default is the positive class of two, else the output with the largest prediction.
        ax : matplotlib Axes
            Axes to draw on; a new figure unless given.

        Returns
        -------
        Axes

        Raises
        ------
        InputError
            If the explanation is not of a text.
        """
        return self._draw("plots", "text", output, ax=ax, captions=self._captions(None, title, ""))

    def series(
        self,
        output: str | int | None = None,
        *,
        channel: str | int | None = None,
        ax: Axes | None = None,
        title: str | None = None,
    ) -> Axes:
        """Draw the explained series on the colours of its segments' coefficients.

        Parameters
        ----------
        output : name or position
            The default is the positive class of two, else the output with the largest prediction.
        channel : name or position
            The first unless given.
        ax : matplotlib Axes
            Axes to draw on; a new figure unless given.

        Returns
        -------
        Axes

        Raises
        ------
        InputError
            If the explanation is not of a series by segments, or there is no such channel.
        """
        captions = self._captions(None, title, "")
        return self._draw("series", "series", output, channel=channel, ax=ax, captions=captions)

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
            The default is the positive class of two, else the output with the largest prediction.
        kind : "overlay", "cutout", "boundaries" or "original"
            All superpixels in the colours of their coefficients; the top ones alone; outlines; the image.
        top, sign : int, and "+", "-" or "both"
            Number and sign of the superpixels that are cut out or outlined.
        ax : matplotlib Axes
            Axes to draw on; a new figure unless given.

        Returns
        -------
        Axes

        Raises
        ------
        InputError
            If the explanation is not of an image.
        """
        return self._draw("plots", "image", output, kind=kind, top=top, sign=sign, ax=ax)

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

    def _captions(self, names: Mapping[str, str] | None, title: str | None, unit: str) -> Any:
        return drawer("axes").Captions.of(self.explanation, names, title, unit)

    def _draw(self, module: str, picture: str, *selection: Any, **options: Any) -> Axes:
        axes: Axes = getattr(drawer(module), picture)(self.explanation, *selection, **options)
        return axes
