"""The choice of a form's expectation, under designs of columns and of words; the columns that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from limes._arrays import Bools
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
from limes.models.forms._base import Boxes, Combination, Form, Reducible, Sum, SumOfProducts
from limes.models.forms._linked import Linked, Ridges, Softmax
from limes.models.forms._links import Relu
from limes.models.forms._presence import NormalizedLinear, PresenceProducts, SwitchProducts, presence_products
from limes.models.forms._trees import Forest
from limes.models.forms._tuples import ForestOfTuples, OverTuples

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


def columns_read(form: Form) -> Bools:
    """Whether a form's answers may depend on each column, (d,); True where its structure does not say."""
    reads = np.zeros(form.size, dtype=np.bool_)
    if isinstance(form, Forest | ForestOfTuples):
        reads[form.feature[form.feature >= 0]] = True
    elif isinstance(form, Linked | Softmax):
        reads |= columns_read(form.margin)
    elif isinstance(form, Ridges):
        reads |= form.weights.any(axis=0)
    elif isinstance(form, Combination):
        for part in form.parts:
            reads |= columns_read(part)
    elif isinstance(form, OverTuples):
        reads[form.grouping.place[columns_read(form.form)]] = True
    elif isinstance(form, Reducible):
        reads |= _in_terms(form.reduce())
    else:
        reads[:] = True
    return reads


def _in_terms(terms: Sum | SumOfProducts) -> Bools:
    reads = np.array([function is not None for function in terms.functions])
    if isinstance(terms, Sum):
        reads &= np.array([bool(loading.any()) for loading in terms.loadings])
    return reads


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
