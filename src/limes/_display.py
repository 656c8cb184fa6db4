"""A picture of one row's surrogate, by the conventions of scikit-learn's displays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from limes._checks import check_choice
from limes._explainers.tabular import TabularExplainer
from limes.exceptions import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from limes._explanation import Explanation

_KINDS = ("bar", "waterfall")


class LocalSurrogateDisplay:
    """Local surrogate of one row, drawn as scikit-learn's displays are.

    Use :meth:`from_estimator`, or pass an explanation; all parameters are stored as attributes.

    Parameters
    ----------
    explanation : Explanation
        Of one or many rows of a table.
    row : int
        Which of its rows is drawn.
    output : name or position
        Which output is drawn: the positive class of two, else that with the largest prediction, unless given.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the surrogate is drawn, after :meth:`plot`.
    figure_ : matplotlib Figure
        The figure of these.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import limes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> display = limes.LocalSurrogateDisplay.from_estimator(Ridge().fit(X, y), X, row=3)
    >>> display.explanation.method, display.ax_.figure is display.figure_
    ('exact', True)
    """

    ax_: Axes
    figure_: Figure

    def __init__(self, explanation: Explanation, *, row: int = 0, output: str | int | None = None) -> None:
        self.explanation = explanation
        self.row = row
        self.output = output

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        row: int = 0,
        background: Any = None,
        output: Any = None,
        kind: str = "bar",
        max_features: int = 10,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Explain a row of a table by :class:`limes.TabularExplainer`, and draw it.

        Parameters
        ----------
        estimator
            A fitted estimator, a Pipeline, or a callable.
        X : table (n, d)
            The row is one of its rows.
        row : int
            Position of the row, from 0, or from the end if negative.
        background : table
            What bins and laws are learnt from; X unless given.
        output
            As for :class:`limes.TabularExplainer`.
        kind, max_features, ax
            As for :meth:`plot`.
        **options
            As for :class:`limes.TabularExplainer`: ``bins``, ``bandwidth``, ``rng``, ...

        Returns
        -------
        LocalSurrogateDisplay
            Drawn: ``ax_`` and ``figure_`` are set.

        Raises
        ------
        InputError
            If an option, the row or the table is not usable.
        """
        import narwhals as nw

        check_choice("kind", kind, _KINDS)
        table: Any = nw.from_native(X, eager_only=True, pass_through=True)
        if type(row) is not int or not -len(table) <= row < len(table):
            raise InputError(f"row={row!r}: X has {len(table)} rows; pass a position, counted from 0")
        position = range(len(table))[row]
        explainer = TabularExplainer(
            estimator, X if background is None else background, output=output, **options
        )
        chosen = nw.to_native(table[position : position + 1], pass_through=True)
        explanation = explainer(chosen, ids=None if hasattr(X, "iloc") else [position])
        return cls(explanation).plot(kind=kind, max_features=max_features, ax=ax)

    def plot(self, *, kind: str = "bar", max_features: int = 10, ax: Axes | None = None) -> Self:
        """Draw the surrogate.

        Parameters
        ----------
        kind : "bar" or "waterfall"
            The largest coefficients, with error bars where they are sampled; or how they add up from the
            intercept to the surrogate, and what is missing to the prediction.
        max_features : int
        ax : matplotlib Axes
            Where to draw; a new figure unless given.

        Returns
        -------
        LocalSurrogateDisplay
            Itself.
        """
        draw = getattr(self.explanation.plot, check_choice("kind", kind, _KINDS))
        self.ax_ = draw(self.row, self.output, ax=ax, max_features=max_features)
        self.figure_ = self.ax_.figure  # type: ignore[assignment] # of no subfigure
        return self
