"""Weighted sums of forms (votes, bags and stacks of readable models), and forms that are a bare sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.models.forms.base import Form, ReducibleForm, Sum, SumOfProducts, output_intercept, zero


@dataclass(frozen=True, eq=False)
class Combination:
    """f(x) = intercept + Σ_i weights[i] · parts[i](x).

    Parameters
    ----------
    parts
        Forms over the same columns with the same outputs.
    weights
        (T,), a number each.
    intercept
        A number, or one an output.

    Raises
    ------
    InputError
        If there are no parts, or not as many weights as parts, or if columns or outputs differ.
    """

    parts: Sequence[Form]
    weights: Floats
    intercept: Floats = field(default_factory=zero)

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=np.float64)
        if not self.parts or weights.shape != (len(self.parts),):
            raise InputError(f"{len(self.parts)} parts need as many weights, got shape {weights.shape}")
        for part in self.parts:
            if not hasattr(part, "size"):
                raise InputError(f"a {type(part).__name__} is no form, and cannot be part of a combination")
        if len({part.size for part in self.parts}) != 1:
            raise InputError("parts of a combination must read the same columns")
        shapes = {outputs_of(part) for part in self.parts}
        if len(shapes) != 1:
            raise InputError(f"parts of a combination must have the same outputs, got {sorted(shapes)}")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "intercept", output_intercept(self.intercept, shapes.pop()))

    @property
    def size(self) -> int:
        """Number of columns d."""
        return self.parts[0].size

    def predict(self, x: Floats) -> Floats:
        """Values (n, ...) at rows (n, d)."""
        values = [w * part.predict(x) for w, part in zip(self.weights, self.parts, strict=True)]
        return np.asarray(self.intercept + sum(values))

    def select(self, outputs: int | list[int]) -> Combination:
        """One or several outputs."""
        return Combination(
            tuple(part.select(outputs) for part in self.parts), self.weights, self.intercept[outputs]
        )


@dataclass(frozen=True, eq=False)
class Reduced(ReducibleForm):
    """A form that is a sum, or a sum of products, without further structure."""

    terms: Sum | SumOfProducts

    @property
    def size(self) -> int:
        """Number of columns d."""
        return len(self.terms.functions)

    @property
    def intercept(self) -> Floats:
        """() or (k,)."""
        return self.terms.intercept

    def reduce(self) -> Sum | SumOfProducts:
        """The form itself."""
        return self.terms

    def select(self, outputs: int | list[int]) -> Reduced:
        """One or several outputs."""
        terms = self.terms
        intercept = terms.intercept[outputs]
        if isinstance(terms, SumOfProducts):
            return Reduced(replace(terms, coef=terms.coef[:, outputs], intercept=intercept))
        loadings = tuple(loading[:, outputs] for loading in terms.loadings)
        return Reduced(replace(terms, loadings=loadings, intercept=intercept))


def outputs_of(form: Form) -> tuple[int, ...]:
    """() for one output, (k,) for k."""
    if hasattr(form, "intercept"):
        return np.shape(form.intercept)
    return form.predict(np.zeros((1, form.size))).shape[1:]
