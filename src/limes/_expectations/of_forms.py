"""The choice of the expectation that computes a form's moments, under designs of columns and of words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from limes._expectations.exact import ExactExpectation
from limes._expectations.forest import ForestExpectation
from limes._expectations.linked import LinkedExpectation
from limes._expectations.linked_words import LinkedWordsExpectation
from limes._expectations.moments import (
    CachedExpectation,
    CombinedExpectation,
    ExactMoments,
    ProductExpectation,
)
from limes._expectations.softmax import SoftmaxExpectation
from limes._expectations.summed import SummedExpectation
from limes._expectations.words import (
    NormalizedExpectation,
    PresenceExpectation,
    SumExpectation,
    SwitchExpectation,
)
from limes.designs._exchangeable import ExchangeableDesign
from limes.designs._product import ProductDesign
from limes.exceptions import InputError
from limes.models.forms._base import Boxes, Combination, Form, Reducible, Sum
from limes.models.forms._linked import Linked, Ridges, Softmax
from limes.models.forms._links import Relu
from limes.models.forms._presence import NormalizedLinear, PresenceProducts, SwitchProducts, presence_products
from limes.models.forms._trees import Forest
from limes.models.forms._tuples import ForestOfTuples

T = TypeVar("T")


def exact_expectation(form: Form, kind: type = ProductDesign) -> ExactMoments:
    """The exact expectation of a form under one kind of design; InputError if it has no such one."""
    if kind not in _EXACT:
        kinds = " or ".join(sorted(k.__name__ for k in _EXACT))
        raise InputError(f"expected a design, {kinds}; got {kind.__name__}")
    if isinstance(form, Combination):
        parts = [in_one_order(exact_expectation(part, kind)) for part in form.parts]
        return CombinedExpectation(parts, form.weights, form.intercept)
    if not isinstance(form, Form):
        raise InputError(f"expected a form of limes.models.forms, got {type(form).__name__}")
    choose, accepted = _EXACT[kind]
    expectation = choose(form)
    if expectation is None:
        raise InputError(
            f"{type(form).__name__} has no exact expectation under {kind.__name__}, which takes {accepted}"
        )
    return expectation


def in_one_order(expectation: T) -> T | ForestExpectation:
    """The expectation with one order of summation for any number of rows; parts of a sum have one already."""
    return expectation.reproducible() if isinstance(expectation, ForestExpectation) else expectation


def reproducible(expectation: Any) -> Any:
    """Return an expectation whose moments at a row are the same bits in any call, and cached by its cells."""
    if not isinstance(expectation, ProductExpectation):
        return expectation
    return CachedExpectation(in_one_order(expectation))


def _over_columns(form: Form) -> ExactMoments | None:
    match form:
        case Forest() | ForestOfTuples():
            return ForestExpectation(form)
        case Ridges():
            return _over_columns(form.expanded)
        case Linked(margin=NormalizedLinear()):
            return None
        case Linked():
            return SummedExpectation(form) if form.adds_up else LinkedExpectation(form)
        case Softmax():
            return SoftmaxExpectation(form)
        case Reducible():
            return ExactExpectation(form)
    return None


def _over_words(form: Form) -> ExactMoments | None:
    match form:
        case PresenceProducts():
            return PresenceExpectation(form)
        case NormalizedLinear():
            return NormalizedExpectation(form)
        case SwitchProducts():
            return SwitchExpectation(form)
        case Ridges():
            return _over_words(form.expanded)
        case Linked(margin=NormalizedLinear()):
            return LinkedWordsExpectation(form)
        case Linked() if not isinstance(form.curve, Relu):
            return LinkedWordsExpectation(form)
        case Forest() | Boxes():
            return PresenceExpectation(presence_products(form))
        case Reducible():
            reduced = form.reduce()
            if isinstance(reduced, Sum):
                return SumExpectation(reduced)
            return SwitchExpectation(SwitchProducts.from_products(reduced))
    return None


# A new kind of design is a line here, a new form a case above
_EXACT: Mapping[type, tuple[Callable[[Form], ExactMoments | None], str]] = {
    ProductDesign: (
        _over_columns,
        "forms over columns, as Linear, Boxes, Forest; forms over words need an ExchangeableDesign",
    ),
    ExchangeableDesign: (
        _over_words,
        "sums and sums of products, PresenceProducts, NormalizedLinear, Forest, links of sums, and sums of "
        "these",
    ),
}
