"""The account of predictions: contributions of columns that add up to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limes._explanation.selection import selected
from limes._explanation.wording import count

if TYPE_CHECKING:
    from limes._arrays import Floats, Ints

# Axes of each array, as those of an explanation: features "d", rows "n", outputs "k"
CONTRIBUTION_AXES: Mapping[str, str] = {
    **dict.fromkeys(("values", "standard_errors", "alone", "last"), "ndk"),
    **dict.fromkeys(("base_values", "base_errors"), "nk"),
    "calls": "n",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Contributions:
    """Shapley values of the features at n rows: ``base_values`` + Σ_j ``values`` = the model's prediction.

    Of a table the game is v(S) = E_w[f | the columns of S have the row's values]: w is the row's own law,
    that of LIME's limit. Each column keeps the row's value with probability t, and β_j(t) is what it then
    adds on average: φ_j = ∫₀¹ β_j(t) dt. Where β_j(0) and β_j(1) differ, the column interacts with others.

    They are exact where the model was read and the integral has a closed form. Else walks estimate them: the
    row's values replace those of a drawn row one after the other, in random order, until standard errors are
    below the explainer's ``tolerance``, or 1.5 % of the largest contribution, or the row's calls are used.
    Probabilities of boosted trees, whose margin is read, are walked without a call: errors are mostly below
    1 % of the largest contribution.
    Under ``law="joint"`` the rows are the background's own, with their weights; for an infinite bandwidth
    these are interventional Shapley values against the whole background. They are exact for these rows, of
    trees, sums and kernels, and of other models that were read if columns are few.

    Of words, superpixels, segments and parts of several inputs the game is v(S) = f(S shown, all others
    hidden), whatever the bandwidth. They are exact wherever the coefficients are. Else weighted least squares
    estimate them from answers to subsets, those of the coefficients, within ``max_calls`` for both.

    Attributes
    ----------
    values : (n, d) or (n, d, k)
        φ, in the order of the explanation's features and outputs.
    base_values : (n,) or (n, k)
        E_w f, the model's average around the row; that of the drawn rows where E_w f is not known. The
        model's answer with everything hidden, f(∅), of a text, an image or a series.
    standard_errors : as ``values``
        0 where exact; ±1.96 of them are a 95 % interval.
    base_errors : as ``base_values``
        Standard errors of these; NaN in an explanation that was stored without them.
    alone : as ``values``
        β(0) = E_w[f | x_j = ξ_j] - E_w f, what the value adds by itself. Sampled: the mean over the walks
        in which column j comes first, NaN without any. It has fewer of them than ``values``, and no error.
        For texts, images and series f({j}) - f(∅), from calls of the model.
    last : as ``values``
        β(1) = f(ξ) - E_w[f | all other columns have the row's values], what it adds to the others;
        likewise. For texts, images and series f(all) - f(all but j), from calls of the model.
    calls : (n,)
        Model calls for the contributions alone; 0 where the form of a read model answers.

    Raises
    ------
    InputError
        When they are first read, if the model was fitted again since the rows were explained, ``max_calls``
        is too few, or ``method="exact"`` asks for contributions that have no closed form.
    ModelError
        When they are first read, if the model fails.

    References
    ----------
    Shapley 1953; Owen 1972, "Multilinear extensions of games"; Lundberg & Lee 2017, for the weights of
    subsets.

    Examples
    --------
    >>> import limes
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> explanation = limes.TabularExplainer(Ridge(alpha=0).fit(X, [0, 2, 1, 3]), X)([[1.0, 1.0]])
    >>> account = explanation.contributions
    >>> bool(np.isclose(account.base_values + account.values.sum(axis=1), explanation.predictions).all())
    True
    """

    values: Floats
    base_values: Floats
    base_errors: Floats
    standard_errors: Floats
    alone: Floats
    last: Floats
    calls: Ints

    def __repr__(self) -> str:
        n, d, *k = self.values.shape
        outputs = f" x {k[0]} outputs" if k else ""
        return f"<Contributions: {count(n, 'row')} x {count(d, 'feature')}{outputs}>"

    def select(self, positions: Mapping[str, Any], *, drops_axis: bool) -> Contributions:
        """Those at positions of the rows, "n", features, "d", and outputs, "k"."""
        several = self.values.ndim == 3
        return Contributions(
            **{
                name: selected(getattr(self, name), axes, positions, several=several, drops_axis=drops_axis)
                for name, axes in CONTRIBUTION_AXES.items()
            }
        )

    def at(self, rows: Sequence[int]) -> Contributions:
        """Those of rows, by position."""
        return Contributions(**{name: getattr(self, name)[list(rows)] for name in CONTRIBUTION_AXES})
