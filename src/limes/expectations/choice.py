"""Which exact expectation a form has, by its type, under which kind of design.

A new one is a line here. Under a product design anything that reduces to a sum or a sum of products has one;
under an exchangeable design sums have, and what tests or adds words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from limes.designs.exchangeable import ExchangeableDesign
from limes.designs.product import ProductDesign
from limes.exceptions import InputError
from limes.expectations.combined import CombinedExpectation, ExactMoments
from limes.expectations.exact import ExactExpectation
from limes.expectations.forest import ForestExpectation
from limes.expectations.switches import SwitchExpectation
from limes.expectations.tfidf import NormalizedExpectation
from limes.expectations.words import PresenceExpectation, SumExpectation
from limes.models.forms.base import Form, Reducible, Sum, SumOfProducts
from limes.models.forms.boxes import Boxes
from limes.models.forms.combination import Combination
from limes.models.forms.normalized_linear import NormalizedLinear
from limes.models.forms.presence import PresenceProducts, presence_products
from limes.models.forms.switches import SwitchProducts
from limes.models.forms.trees import Forest

Make = Callable[[Any], ExactMoments]


@dataclass(frozen=True)
class _Rules:
    """Forms with an expectation of their own, and what the others reduce to."""

    own: Mapping[type, Make]
    reduced: Mapping[type, Make]
    expects: str


def _presence(form: Forest | Boxes) -> ExactMoments:
    return PresenceExpectation(presence_products(form))


_RULES: Mapping[type, _Rules] = {
    ProductDesign: _Rules(
        own={Forest: ForestExpectation},
        reduced={Sum: ExactExpectation, SumOfProducts: ExactExpectation},
        expects="forms over columns, as Linear, Boxes, Forest; forms over words need an ExchangeableDesign",
    ),
    ExchangeableDesign: _Rules(
        own={
            PresenceProducts: PresenceExpectation,
            NormalizedLinear: NormalizedExpectation,
            SwitchProducts: SwitchExpectation,
            Forest: _presence,
            Boxes: _presence,
        },
        reduced={
            Sum: lambda form: SumExpectation(form.reduce()),
            SumOfProducts: lambda form: SwitchExpectation(SwitchProducts.from_products(form.reduce())),
        },
        expects="sums and sums of products, PresenceProducts, NormalizedLinear, Forest, and sums of them",
    ),
}


def exact_expectation(form: Form, kind: type = ProductDesign) -> ExactMoments:
    """The exact expectation of a form under one kind of design: ProductDesign or ExchangeableDesign.

    Raises
    ------
    InputError
        If the kind of design has none for such a form, or there is no such kind of design.
    """
    if kind not in _RULES:
        known = " or ".join(sorted(k.__name__ for k in _RULES))
        raise InputError(f"expected a design, {known}; got {kind.__name__}")
    if isinstance(form, Combination):
        parts = [exact_expectation(part, kind) for part in form.parts]
        return CombinedExpectation(parts, form.weights, form.intercept)
    rules = _RULES[kind]
    make = rules.own.get(type(form))
    if make is None and isinstance(form, Reducible):
        make = rules.reduced.get(type(form.reduce()))
    if make is not None:
        return make(form)
    if not isinstance(form, Form):
        raise InputError(f"expected a form of limes.models.forms, got {type(form).__name__}")
    raise InputError(
        f"{type(form).__name__} has no exact expectation under {kind.__name__}, which takes {rules.expects}"
    )
