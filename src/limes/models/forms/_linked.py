"""f(x) = c + Σ_k a_k link(margin_k(x)): probabilities, means behind a log link, and small networks.

The margins are sums of functions of one column, or of small groups of columns, so that under a product design
E e^{zS} is a product, and a link is a sum of exponentials on the range of S (``_links.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Floats, times
from limes._checks import finite_array
from limes.exceptions import InputError
from limes.models.forms._activations import CURVES
from limes.models.forms._base import Form, FormBase, Sum, coefficients, outputs_of, zero
from limes.models.forms._links import LINKS, SQUARES, Link
from limes.models.forms._margins import Margin, as_margin
from limes.models.forms._presence import NormalizedLinear
from limes.models.forms._reducible import Linear


@dataclass(frozen=True, eq=False)
class Linked(FormBase):
    """f(x) = intercept + Σ_k coef[k] · link(margin_k(x)).

    Parameters
    ----------
    margin
        A form with one output, or with K of them: a sum of functions of one column each, as linear and
        additive models are, and of step functions of a few columns, as pairs of explainable boosting are;
        or a :class:`NormalizedLinear` over words.
    link
        "logistic", "probit", "cloglog", "exp", or an activation: "tanh", "erf", "cos", "relu", "gelu",
        "silu", "softplus"; or a square: "logistic squared", "probit squared", "cloglog squared".
    coef
        (K,), or (K, k) for k outputs; by default each margin is an output.
    intercept
        A number, or (k,).

    Raises
    ------
    InputError
        If the margin is no such sum, or its pairs join too many columns; if the link is unknown, or shapes
        disagree.

    Examples
    --------
    >>> from limes.models import forms
    >>> forms.Linked(forms.Linear([1.0, 2.0], -3.0), "logistic").predict([[1.0, 1.0]])
    array([0.5])
    """

    margin: Form
    link: str
    coef: Floats | None = None
    intercept: Floats = field(default_factory=zero)
    output_arrays: ClassVar[tuple[str, ...]] = ("coef",)

    def __post_init__(self) -> None:
        if self.link not in CURVES:
            raise InputError(f"link must be one of {sorted(CURVES)}, got {self.link!r}")
        if not isinstance(self.margin, Form):
            raise InputError(f"margin must be a form, got {type(self.margin).__name__}")
        count = outputs_of(self.margin)
        default: ArrayLike = np.eye(count[0]) if count else np.ones(1)
        coef, intercept = coefficients(default if self.coef is None else self.coef, self.intercept)
        if len(coef) != (count or (1,))[0]:
            raise InputError(f"{(count or (1,))[0]} margins need as many rows of coef, got {len(coef)}")
        self._freeze(coef=coef, intercept=intercept)
        if not isinstance(self.margin, NormalizedLinear):
            self.margins  # noqa: B018 - refuses margins that are no sums

    @property
    def size(self) -> int:
        return self.margin.size

    @property
    def curve(self) -> Link:
        """The link."""
        return CURVES[self.link]

    @cached_property
    def margins(self) -> Margin:
        """The K margins: a sum with outputs (K,), and interactions."""
        terms, interactions = as_margin(self.margin)
        if terms.intercept.ndim:
            return Margin(terms, interactions)
        loadings = tuple(loading[:, None] for loading in terms.loadings)
        terms = replace(terms, loadings=loadings, intercept=terms.intercept[None])
        return Margin(terms, tuple(replace(each, coef=each.coef[:, None]) for each in interactions))

    @property
    def terms(self) -> Sum:
        """The K margins, as a sum with outputs (K,).

        Raises
        ------
        InputError
            If they have interactions.
        """
        terms, interactions = self.margins
        if interactions:
            raise InputError("the margin is not a sum of functions of one column each: columns interact")
        return terms

    @property
    def adds_up(self) -> bool:
        """Whether an output is a sum of several links, or of an activation, that may cancel."""
        assert self.coef is not None  # noqa: S101 - set by __post_init__
        terms = np.count_nonzero(self.coef.reshape(len(self.coef), -1), axis=0)
        return self.curve.tilts == (0.0,) or bool((terms > 1).any())

    def predict(self, x: Floats) -> Floats:
        margins = self.margin.predict(x)
        assert self.coef is not None  # noqa: S101 - set by __post_init__
        return np.asarray(
            self.intercept + times(self.curve.function(margins.reshape(len(margins), -1)), self.coef)
        )


# -- networks with one hidden layer ----------------------------------------------------------------------


# The identity is no curve, and of the links one is an activation
ACTIVATIONS = tuple(sorted({"identity", "logistic"} | CURVES.keys() - LINKS.keys() - SQUARES.keys()))


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
        return int(self.weights.shape[1])

    @cached_property
    def expanded(self) -> Linear | Linked:
        """The form as links of linear margins, or as a linear form if the activation is the identity."""
        if self.activation == "identity":
            return Linear(self.weights.T @ self.scales, self.intercept + self.offsets @ self.scales)
        return Linked(Linear(self.weights.T, self.offsets), self.activation, self.scales, self.intercept)

    def predict(self, x: Floats) -> Floats:
        return self.expanded.predict(x)
