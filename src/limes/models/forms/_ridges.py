"""Networks with one hidden layer: sums of ridge functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from limes._arrays import Floats
from limes._checks import finite_array
from limes.exceptions import InputError
from limes.models.forms._additive import Linear
from limes.models.forms._base import FormBase, coefficients, zero
from limes.models.forms._linked import Linked

# Without the identity, which is no curve
ACTIVATIONS = ("cos", "erf", "gelu", "identity", "logistic", "relu", "silu", "softplus", "tanh")


@dataclass(frozen=True, eq=False)
class Ridges(FormBase):
    """f(x) = intercept + Σ_h scales[h] · activation(weights[h]·x + offsets[h]).

    Each weights[h]·x + offsets[h] is a sum of independent terms under a product design, so that expectations
    follow from characteristic functions (Fourier). "relu" has an exact expectation where enough columns have
    densities, or all of them few values (4,096² combinations), all others have one under any law.

    Parameters
    ----------
    weights
        (m, d), a row a hidden unit.
    offsets
        (m,).
    scales
        (m,), or (m, k) for k outputs.
    activation
        "identity", "logistic", "tanh", "relu", "gelu", "silu", "softplus", "erf", or "cos" (random Fourier
        features).
    intercept
        A number, or (k,).

    Raises
    ------
    InputError
        If the activation is unknown, a number is not finite, or shapes disagree.

    Examples
    --------
    >>> from limes.models import forms
    >>> network = forms.Ridges([[1.0, -1.0], [1.0, 1.0]], [0.0, -1.0], [2.0, 3.0], "relu", 0.5)
    >>> network.predict([[1.0, 0.0], [0.0, 2.0]])
    array([2.5, 3.5])
    """

    weights: Floats
    offsets: Floats
    scales: Floats
    activation: str
    intercept: Floats = field(default_factory=zero)
    output_arrays: ClassVar[tuple[str, ...]] = ("scales",)

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise InputError(f"activation must be one of {list(ACTIVATIONS)}, got {self.activation!r}")
        weights, offsets = finite_array("weights", self.weights, 2), finite_array("offsets", self.offsets, 1)
        scales, intercept = coefficients(self.scales, self.intercept, "scales")
        if not len(weights) == len(offsets) == len(scales):
            raise InputError(
                f"weights, offsets and scales need a row a hidden unit: shapes {weights.shape}, "
                f"{offsets.shape}, {scales.shape}"
            )
        self._freeze(weights=weights, offsets=offsets, scales=scales, intercept=intercept)

    @property
    def size(self) -> int:
        """Number of columns d."""
        return int(self.weights.shape[1])

    @cached_property
    def expanded(self) -> Linear | Linked:
        """The form as links of linear margins, or as a linear form if the activation is the identity."""
        if self.activation == "identity":
            return Linear(self.weights.T @ self.scales, self.intercept + self.offsets @ self.scales)
        return Linked(Linear(self.weights.T, self.offsets), self.activation, self.scales, self.intercept)

    def predict(self, x: Floats) -> Floats:
        """Values (n, ...) at rows (n, d)."""
        return self.expanded.predict(x)
