"""Forms over the superpixels of an image, which are on or off.

A perturbed image shows number p of the image where its superpixel is on, and number p of the fill where it is
off: every column of the model takes one of two values. Sums and products over columns are then sums and
products over superpixels, and a test of a column tests whether its superpixel is on, or has a fixed result.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Floats, Ints
from limes._checks import finite_array
from limes.exceptions import InputError
from limes.models.forms._base import (
    Combination,
    Form,
    FormBase,
    Reducible,
    Sum,
    SumOfProducts,
    check_rows,
    coefficients,
    zero,
)
from limes.models.forms._linked import Linked, Ridges
from limes.models.forms._presence import presence_of_columns
from limes.models.forms._reducible import Boxes, Linear
from limes.models.forms._softmax import Softmax
from limes.models.forms._trees import Forest


@dataclass(frozen=True, eq=False)
class SwitchProducts(FormBase):
    """f(z) = intercept + Σ_i coef[i] ∏_j (on[i, j] if z_j = 1 else off[i, j]).

    A product over columns, such as a Gaussian kernel, is also a product over superpixels.

    Parameters
    ----------
    on, off
        (m, d).
    coef
        (m,), or (m, k) for k outputs.
    intercept
        A number, or (k,).

    Raises
    ------
    InputError
        If a number is not finite, or shapes disagree.

    Examples
    --------
    >>> from limes.models import forms
    >>> forms.SwitchProducts([[2.0, 3.0]], [[1.0, 0.5]], [10.0]).predict([[1, 1], [1, 0], [0, 0]])
    array([60., 10.,  5.])
    """

    on: Floats
    off: Floats
    coef: Floats
    intercept: Floats = field(default_factory=zero)
    output_arrays: ClassVar[tuple[str, ...]] = ("coef",)

    def __post_init__(self) -> None:
        on, off = finite_array("on", self.on, 2), finite_array("off", self.off, 2)
        coef, intercept = coefficients(self.coef, self.intercept)
        if on.shape != off.shape or len(on) != len(coef):
            raise InputError(
                f"on, off and coef need a row a product: shapes {on.shape}, {off.shape}, {coef.shape}"
            )
        self._freeze(on=on, off=off, coef=coef, intercept=intercept)

    @classmethod
    def from_products(cls, products: SumOfProducts, switches: Switches | None = None) -> SwitchProducts:
        """A sum of ``products`` over columns that take two values: 0 and 1, unless ``switches`` are given."""
        if switches is None:
            count = len(products.functions)
            switches = Switches(np.ones(count), np.zeros(count), np.arange(count))
        factors = np.ones((2, len(products.coef), switches.size))
        for j, function in enumerate(products.functions):
            if function is not None:
                both = np.array([switches.fill[j], switches.shown[j]])
                factors[:, :, switches.labels[j]] *= function(both).T
        return cls(factors[1], factors[0], products.coef, products.intercept)

    @property
    def size(self) -> int:
        """Number of switches d."""
        return int(self.on.shape[1])

    def predict(self, z: ArrayLike) -> Floats:
        """Values (n, ...) at rows ``z`` (n, d)."""
        rows = check_rows(z, self.size)
        product = np.ones((len(rows), len(self.coef)))
        for j, column in enumerate(rows.T > 0):
            product *= np.where(column[:, None], self.on[:, j], self.off[:, j])
        return np.asarray(product @ self.coef + self.intercept)


@dataclass(frozen=True, eq=False)
class Switches:
    """The two values of each of n columns, and the superpixel that chooses between them; (n,) each."""

    shown: Floats
    fill: Floats
    labels: Ints

    @property
    def size(self) -> int:
        """Number of superpixels d."""
        return int(self.labels.max()) + 1

    def sums(self, values: Floats) -> Floats:
        """Sums over the columns of each superpixel, (n, ...) -> (d, ...)."""
        sums = np.zeros((self.size, *values.shape[1:]))
        np.add.at(sums, self.labels, values)
        return sums


def over_switches(form: Form, switches: Switches) -> Form:
    """f(x(z)) as a form over superpixels z.

    Linear: coef_j = Σ over the pixels p of j of λ_p (shown_p - fill_p), intercept c + Σ_p λ_p fill_p.
    Trees and boxes: products of superpixels that are on or off. Links: of these forms of their margins.

    Raises
    ------
    InputError
        If the form is of another type, or reads another number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from limes.models import forms
    >>> from limes.models.forms._switches import Switches, over_switches
    >>> pixels = Switches(np.array([3.0, 4.0, 5.0]), np.array([1.0, 1.0, 0.0]), np.array([0, 0, 1]))
    >>> over_switches(forms.Linear([1.0, 1.0, 2.0]), pixels).coef
    array([ 5., 10.])
    """
    if isinstance(form, Combination):
        parts = [over_switches(part, switches) for part in form.parts]
        return Combination(parts, form.weights, form.intercept)
    if isinstance(form, Linked):
        return replace(form, margin=over_switches(form.margin, switches))
    if isinstance(form, Ridges):
        return over_switches(form.expanded, switches)
    if isinstance(form, Softmax):
        raise InputError(
            "probabilities of three classes over pixels have no exact expectation; their margins have"
        )
    if form.size != switches.labels.size:
        raise InputError(f"the form reads {form.size} columns, the image has {switches.labels.size} numbers")
    if isinstance(form, Linear):
        moved = switches.shown - switches.fill
        coef = switches.sums(form.coef * moved.reshape(-1, *(1,) * (form.coef.ndim - 1)))
        return Linear(coef, form.intercept + switches.fill @ form.coef)
    if isinstance(form, Forest | Boxes):
        return presence_of_columns(form, switches.labels, switches.shown, switches.size, switches.fill)
    if isinstance(form, Reducible):
        reduced = form.reduce()
        if isinstance(reduced, Sum):
            return _linear(reduced, switches)
        return SwitchProducts.from_products(reduced, switches)
    raise InputError(f"a {type(form).__name__} over pixels is no sum, no product and no tree")


def _linear(terms: Sum, switches: Switches) -> Linear:
    """A sum over columns that take two values is linear in the superpixels."""
    intercept = np.array(terms.intercept, dtype=np.float64)
    effects = np.zeros((switches.labels.size, *intercept.shape))
    for j, (function, loading) in enumerate(zip(terms.functions, terms.loadings, strict=True)):
        if function is not None:
            both = np.array([switches.fill[j], switches.shown[j]])
            off, on = np.tensordot(function(both), loading, axes=(0, 0))
            effects[j] = on - off
            intercept = intercept + off
    return Linear(switches.sums(effects), intercept)
