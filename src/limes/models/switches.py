"""Forms over the numbers of an image, as forms over its superpixels.

A perturbed image shows the number p of the image where its superpixel is on, and that of the fill where it is
off: every column of the model takes one of two values. What adds up, or multiplies, over columns then does so
over superpixels, and a test of a column asks whether its superpixel is on, or nothing at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limes._arrays import Floats, Ints
from limes.exceptions import InputError
from limes.models.additive import Linear
from limes.models.boxes import Boxes
from limes.models.combination import Combination
from limes.models.presence import presence_of_columns
from limes.models.reductions import Form, Reducible, Sum, SumOfProducts
from limes.models.switch_products import SwitchProducts
from limes.models.trees import Forest


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

    def gathered(self, each: Floats) -> Floats:
        """Sums over the columns of each superpixel, (n, ...) -> (d, ...)."""
        found = np.zeros((self.size, *each.shape[1:]))
        np.add.at(found, self.labels, each)
        return found


def over_switches(form: Form, switches: Switches) -> Form:
    """f(x(z)) as a form over superpixels z.

    Linear: coef_j = Σ over the pixels p of j of λ_p (shown_p - fill_p), intercept c + Σ_p λ_p fill_p.
    Trees and boxes: products of superpixels that are on or off.

    Raises
    ------
    InputError
        If the form is of another type, or reads another number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from limes.models import forms
    >>> from limes.models.switches import Switches, over_switches
    >>> pixels = Switches(np.array([3.0, 4.0, 5.0]), np.array([1.0, 1.0, 0.0]), np.array([0, 0, 1]))
    >>> over_switches(forms.Linear([1.0, 1.0, 2.0]), pixels).coef
    array([ 5., 10.])
    """
    if isinstance(form, Combination):
        parts = [over_switches(part, switches) for part in form.parts]
        return Combination(parts, form.weights, form.intercept)
    if form.size != switches.labels.size:
        raise InputError(f"the form reads {form.size} columns, the image has {switches.labels.size} numbers")
    if isinstance(form, Linear):
        moved = switches.shown - switches.fill
        coef = switches.gathered(form.coef * moved.reshape(-1, *(1,) * (form.coef.ndim - 1)))
        return Linear(coef, form.intercept + switches.fill @ form.coef)
    if isinstance(form, Forest | Boxes):
        return presence_of_columns(form, switches.labels, switches.shown, switches.size, switches.fill)
    if isinstance(form, Reducible):
        reduced = form.reduce()
        return _added(reduced, switches) if isinstance(reduced, Sum) else _multiplied(reduced, switches)
    raise InputError(f"a {type(form).__name__} over pixels is no sum, no product and no tree")


def _added(terms: Sum, switches: Switches) -> Linear:
    intercept = np.array(terms.intercept, dtype=np.float64)
    each = np.zeros((switches.labels.size, *intercept.shape))
    for j, (function, loading) in enumerate(zip(terms.functions, terms.loadings, strict=True)):
        if function is not None:
            both = np.array([switches.fill[j], switches.shown[j]])
            off, on = np.tensordot(function(both), loading, axes=(0, 0))
            each[j] = on - off
            intercept = intercept + off
    return Linear(switches.gathered(each), intercept)


def _multiplied(products: SumOfProducts, switches: Switches) -> SwitchProducts:
    factors = np.ones((2, len(products.coef), switches.size))
    for j, function in enumerate(products.functions):
        if function is not None:
            factors[:, :, switches.labels[j]] *= function(np.array([switches.fill[j], switches.shown[j]])).T
    return SwitchProducts(factors[1], factors[0], products.coef, products.intercept)
