"""A contrast: the fewest columns of a row whose change moves the prediction beyond a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from limes._explanation.drawing import Printable, drawer


@dataclass(frozen=True)
class Change:
    """One column that changes: its value and condition at the row, and the new ones."""

    feature: str
    value: Any
    condition: str
    new_value: Any
    new_condition: str


@dataclass(frozen=True)
class Contrast(Printable):
    """The columns that have to change for a prediction to fall below a threshold, or to rise above it.

    Attributes
    ----------
    changes
        The smallest set of columns that was found to be enough; empty where the row is beyond the threshold
        already, and where no row of background values is beyond it.
    prediction, new_prediction
        Predictions at the row, and at the row with the changes.
    threshold, side
        The threshold, and the side of it to reach: "below" or "above".
    reached
        Whether the changes are enough.
    proved
        Whether bounds of the model's form over all background values show that fewer columns are not enough,
        or, where the threshold is not reached, that no row reaches it.
    reason
        Why this is not proved.
    output
        Name of the output.

    Examples
    --------
    >>> import limes
    >>> X = [[0.0, 5.0], [1.0, 6.0], [2.0, 7.0], [3.0, 8.0]]
    >>> explainer = limes.SparseExplainer(lambda X: X[:, 0] + X[:, 1], literals=limes.Literals.fit(X), k=1)
    >>> explainer.contrast([[3.0, 8.0]], below=9.5).changes[0].feature
    'x0'
    """

    changes: tuple[Change, ...]
    prediction: float
    new_prediction: float
    threshold: float
    side: Literal["below", "above"]
    reached: bool
    proved: bool
    reason: str
    output: str

    _terminal: ClassVar[str] = "contrast"

    def __repr__(self) -> str:
        return str(drawer(self._terminal).one_line_summary(self))
