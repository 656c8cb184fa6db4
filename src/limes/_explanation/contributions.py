"""The account of predictions: contributions of columns that add up to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limes._arrays import Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Contributions:
    """Shapley values of the columns at n rows: ``base_values`` + Σ_j ``values`` = the model's prediction.

    The game is v(S) = E_w[f | the columns of S have the row's values]: w is the row's own law, that of LIME's
    limit. Each column keeps the row's value with probability t, and β_j(t) is what it then adds on average:
    φ_j = ∫₀¹ β_j(t) dt. Where β_j(0) and β_j(1) differ, the column interacts with others.

    Attributes
    ----------
    values : (n, d) or (n, d, k)
        φ, in the order of the explanation's features and outputs.
    base_values : (n,) or (n, k)
        E_w f, the model's average around the row.
    standard_errors : as ``values``
        0 where exact.
    alone : as ``values``
        β(0) = E_w[f | x_j = ξ_j] - E_w f, what the value adds by itself.
    last : as ``values``
        β(1) = f(ξ) - E_w[f | all other columns have the row's values], what it adds to the others.

    References
    ----------
    Shapley 1953; Owen 1972, "Multilinear extensions of games".

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
    standard_errors: Floats
    alone: Floats
    last: Floats

    def __repr__(self) -> str:
        n, d, *k = self.values.shape
        outputs = f" x {k[0]} outputs" if k else ""
        return f"<Contributions: {n} rows x {d} features{outputs}>"
