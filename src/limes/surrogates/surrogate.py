"""The local linear model that stands in for f around one instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from limes._arrays import Floats
from limes.designs.features import aligned
from limes.exceptions import ModelError

# Features that a message lists
_NAMED = 5


@dataclass(frozen=True, eq=False)
class Surrogate:
    """g(x) = intercept + Σ_j coef[j] h_j(x), with h_j = z_j, or x_j for slopes.

    Attributes
    ----------
    intercept
        () or (k,).
    coef
        β, (d,) or (d, k).
    standard_errors
        Of coef, same shape; 0 where exact.
    fidelity
        R² of g under w, () or (k,); NaN where Var_w f was not computed.
    shares
        What each feature has of it, β_j Γ_j / Var_w f, same shape as coef; they add up to R².
    """

    intercept: Floats
    coef: Floats
    standard_errors: Floats
    fidelity: Floats
    shares: Floats

    def per(self, units: Floats) -> Surrogate:
        """The surrogate of features in units (d,) as one of the features themselves: coefficients divided."""
        with np.errstate(over="ignore"):
            return replace(
                self,
                coef=self.coef / aligned(units, self.coef),
                standard_errors=self.standard_errors / aligned(units, self.standard_errors),
            )


def check_finite(surrogate: Surrogate, *, axis: int, names: Sequence[str] = ()) -> None:
    """Refuse coefficients and intercepts that are infinite or NaN.

    ``axis`` is that of the features among the axes of the coefficients: 0 for one design, 1 for several.

    Raises
    ------
    ModelError
        Naming the features: by ``names``, or by their places.
    """
    finite = np.isfinite(surrogate.coef)
    if finite.all() and np.isfinite(surrogate.intercept).all():
        return
    others = tuple(i for i in range(finite.ndim) if i != axis)
    places = np.flatnonzero(~finite.all(axis=others)).tolist()
    told = ", ".join(repr(names[j]) if names else str(j) for j in places[:_NAMED])
    what = f"the coefficient of feature {told} is" if places else "the surrogate's intercept is"
    raise ModelError(
        f"{what} no finite number: the model's answers, or their change per unit of the feature, are beyond "
        "what a float64 can hold (1.8e308); rescale the column, or the model's output"
    )
