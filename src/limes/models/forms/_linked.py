"""f(x) = c + Σ_k a_k link(margin_k(x)): probabilities, means behind a log link, and small networks.

The margins are sums of functions of one column, and of step functions of a few columns, so that under a
product design E e^{zS} is a product, and a link is a sum of exponentials on the range of S (``_links.py``).

Effects of pairs in explainable boosting, and trees that test two columns or three, are constant on the cells
of a grid. Under a product law the columns that they join, directly or through others, make a group, and
E e^{zS} is a product over groups. A group's factor is a sum over the cells of its columns, done one column
after the other: summing out column c uses the table of c and of the columns that it still interacts with (its
scope). The largest of these tables decides whether that is cheap.

References
----------
Dechter 1999, Bucket elimination: a unifying framework for reasoning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from limes._arrays import Floats, Ints, times
from limes._functions import (
    Function,
    Identity,
    Lookup,
    ShapeOfTuples,
    Stacked,
    Step,
    landmarks,
    texture,
)
from limes._tuples import ColumnGroups, Tuples
from limes.exceptions import InputError
from limes.models.forms._base import (
    Combination,
    Form,
    FormBase,
    Linear,
    Reducible,
    Sum,
    SumOfProducts,
    outputs_of,
    zero,
)
from limes.models.forms._links import CURVES, LINKS, SQUARES, Link
from limes.models.forms._planes import CLASSES
from limes.models.forms._presence import NormalizedLinear, PresenceProducts
from limes.models.forms._trees import Forest
from limes.models.forms._tuples import ForestOfTuples


def as_sum(form: Form) -> Sum:
    if isinstance(form, Combination):
        parts = [(weight, as_sum(part)) for weight, part in zip(form.weights, form.parts, strict=True)]
        return add_sums(parts, form.intercept)
    if isinstance(form, Forest):
        return _stumps(form)
    if isinstance(form, ForestOfTuples):
        return _stumps(form.forest, form.grouping)
    if isinstance(form, PresenceProducts):
        return _single_words(form)
    terms = form.reduce() if isinstance(form, Reducible) else None
    if isinstance(terms, SumOfProducts):
        read = [j for j, function in enumerate(terms.functions) if function is not None]
        effects = {j: (terms.functions[j], terms.coef) for j in read}
        one = Sum.of_columns(len(terms.functions), effects, terms.intercept)
        terms = one if len(read) <= 1 else None
    if terms is None:
        raise InputError(f"{type(form).__name__} is not a sum of functions of one column each")
    return terms


def add_sums(parts: list[tuple[float, Sum]], intercept: Floats) -> Sum:
    """Σ_i weight_i · part_i + intercept."""
    size = len(parts[0][1].functions)
    effects = {}
    for j in range(size):
        read = [(p.functions[j], w * p.loadings[j]) for w, p in parts if p.functions[j] is not None]
        if read:
            families: tuple[Any, ...] = tuple(family for family, _ in read)
            together = Stacked(families) if len(families) > 1 else families[0]
            effects[j] = together, np.concatenate([loading for _, loading in read])
    constant = intercept + sum(weight * part.intercept for weight, part in parts)
    return Sum.of_columns(size, effects, np.asarray(constant, dtype=np.float64))


def _single_words(form: PresenceProducts) -> Sum:
    count = np.bincount(form.product, minlength=len(form.coef))
    if (count > 1).any():
        raise InputError("the products are not a sum of words: some have two")
    ones = form.coef[form.product]
    sign = np.where(form.present, 1.0, -1.0).reshape(-1, *(1,) * (ones.ndim - 1))
    effects = np.zeros((form.size, *form.intercept.shape))
    np.add.at(effects, form.word, sign * ones)
    constant = form.intercept + form.coef[count == 0].sum(axis=0) + ones[~form.present].sum(axis=0)
    return Sum((Identity(),) * form.size, tuple(effects[:, None]), constant)


def _stumps(form: Forest, grouping: ColumnGroups | None = None) -> Sum:
    """A forest of trees that test one column, or one group of columns, each: a table a column."""
    place = np.arange(form.size) if grouping is None else grouping.place
    column_of = _columns_of_trees(form, place)
    outputs = form.intercept.shape
    unit = np.eye(int(np.prod(outputs))).reshape(-1, *outputs)
    single = form.feature[form.roots] < 0
    constant = form.intercept + form.value[form.roots[single]].sum(axis=0)
    effects: dict[int, tuple[Function | None, Floats]] = {}
    for j in np.unique(column_of[column_of >= 0]).tolist():
        trees = replace(form, roots=form.roots[column_of == j], intercept=np.zeros(outputs))
        tuples, (column, *others) = (
            (None if grouping is None else grouping.tuples[j]),
            np.flatnonzero(place == j),
        )
        if tuples is None:
            effects[j] = _table(trees, int(column), len(unit)), unit
        else:
            shape = _ValuesOfTuples(trees, tuples, np.array([column, *others]), len(unit))
            effects[j] = ShapeOfTuples(tuples, shape), unit
    return Sum.of_columns(form.size if grouping is None else grouping.size, effects, constant)


@dataclass(frozen=True, eq=False)
class _ValuesOfTuples:
    """The sum of trees of one group, (n,) -> (outputs, n)."""

    trees: Forest
    tuples: Tuples
    members: Ints
    outputs: int

    def __call__(self, x: Floats) -> Floats:
        rows = np.zeros((x.size, self.trees.size))
        rows[:, self.members] = self.tuples.decode(x)
        return np.asarray(self.trees.predict(rows).reshape(x.size, self.outputs).T)


def _columns_of_trees(form: Forest, place: Ints) -> Ints:
    """The ``place`` of the columns that each tree tests, (T,), -1 for a constant."""
    ends = np.append(form.roots[1:], form.feature.size)
    columns = np.full(form.roots.size, -1)
    if not (form.roots[:-1] < form.roots[1:]).all():
        raise InputError("the nodes of the forest's trees are not in the order of their roots")
    for tree, (first, end) in enumerate(zip(form.roots, ends, strict=True)):
        tested = form.feature[first:end]
        tested = np.unique(place[tested[tested >= 0]])
        if tested.size > 1:
            raise InputError("the trees are not a sum of functions of one column each: some test two columns")
        columns[tree] = tested[0] if tested.size else -1
    return columns


def _table(trees: Forest, column: int, outputs: int) -> Function:
    """The sum of trees of one column, as steps between their thresholds or by category."""

    def values(x: Floats) -> Floats:
        rows = np.zeros((x.size, trees.size))
        rows[:, column] = x
        return trees.predict(rows).reshape(x.size, outputs).T

    nodes = trees.feature == column
    missing = values(np.array([np.nan]))[:, 0]
    if (trees.set_of[nodes] >= 0).any():
        codes = np.arange(float(trees.sets.shape[1]))
        return Lookup(codes, values(codes), missing, values(np.array([-1.0]))[:, 0])
    cuts = np.unique(trees.threshold[nodes])
    return Step(cuts, values(np.append(cuts, np.inf)), missing)


# -- interactions ----------------------------------------------------------------------------------------


# Cells of all tables of a group: some 20 ms a row
MOST_CELLS = 50_000
# Largest number of products that are split by the columns that they read
_MOST_PRODUCTS = 2048


@dataclass(frozen=True, eq=False)
class StepInteraction:
    """Σ_i coef[i] ∏_c functions[c]_i(x_c) over some columns c, constant on the cells of a grid."""

    columns: tuple[int, ...]
    functions: tuple[Function, ...]
    products: Ints  # (m,) positions of the products among the functions
    coef: Floats  # (m, ...)

    def table(self, points: Sequence[Floats]) -> Floats:
        """Values at all combinations of points of each column, (A_1, A_2, ..., K)."""
        table = self.coef.reshape(len(self.coef), -1).T
        for function, x in zip(self.functions[:-1], points[:-1], strict=True):
            table = table[..., None, :] * function(x)[self.products].T
        table = table @ self.functions[-1](points[-1])[self.products]
        return np.asarray(np.moveaxis(table, 0, -1))


class Margin(NamedTuple):
    terms: Sum
    interactions: tuple[StepInteraction, ...]


class Elimination(NamedTuple):
    """One column is summed out; ``scope`` are the columns that it interacts with, latest first."""

    column: int
    scope: tuple[int, ...]


def as_margin(form: Form) -> Margin:
    """Write a form as Σ_j f_j(x_j) and interactions."""
    margin = terms_of(form)
    interactions = margin.interactions
    marks = {j: [landmarks(f) for f in functions_of(interactions, j)] for j in columns_of(interactions)}
    # refuses too many cells of the grid along the columns
    steps_of_groups(interactions, {j: np.unique(np.concatenate(points)).size for j, points in marks.items()})
    return margin


def columns_of(interactions: Sequence[StepInteraction]) -> list[int]:
    return sorted({j for each in interactions for j in each.columns})


def steps_of_groups(
    interactions: Sequence[StepInteraction], sizes: Mapping[int, int]
) -> list[list[Elimination]]:
    """Columns that interactions join, in the order of summing them out; ``sizes`` count their cells."""
    groups: list[set[int]] = []
    for each in interactions:
        joined = [group for group in groups if group & set(each.columns)]
        groups = [group for group in groups if group not in joined] + [set(each.columns).union(*joined)]
    return [_elimination([e.columns for e in interactions], group, sizes) for group in groups]


def _elimination(
    scopes: Sequence[tuple[int, ...]], group: set[int], sizes: Mapping[int, int]
) -> list[Elimination]:
    tables = [set(scope) for scope in set(scopes) if set(scope) <= group]
    order: list[tuple[int, set[int]]] = []
    remaining, cells = set(group), 0
    while remaining:
        met = {j: set().union(*(table for table in tables if j in table)) | {j} for j in remaining}
        column = min(sorted(remaining), key=lambda j: prod(sizes[k] for k in met[j]))
        cells += prod(sizes[k] for k in met[column])
        if cells > MOST_CELLS:
            raise InputError(
                f"its interactions join {len(group)} columns in tables of {cells:,} cells and more, too many "
                f"for an exact sum (at most {MOST_CELLS:,})"
            )
        scope = met[column] - {column}
        tables = [table for table in tables if column not in table] + ([scope] if scope else [])
        order.append((column, scope))
        remaining.remove(column)
    place = {column: i for i, (column, _) in enumerate(order)}
    return [Elimination(c, tuple(sorted(scope, key=lambda j: -place[j]))) for c, scope in order]


def functions_of(interactions: Sequence[StepInteraction], column: int) -> list[Function]:
    read = [each.functions[each.columns.index(column)] for each in interactions if column in each.columns]
    return list({id(function): function for function in read}.values())


def terms_of(form: Form) -> Margin:
    """Write a form as `as_margin` does, however many columns join; InputError where it is no such sum."""
    if isinstance(form, Combination):
        parts = [(weight, terms_of(part)) for weight, part in zip(form.weights, form.parts, strict=True)]
        terms = add_sums([(weight, part.terms) for weight, part in parts], form.intercept)
        weighted = [replace(each, coef=w * each.coef) for w, part in parts for each in part.interactions]
        return Margin(terms, tuple(weighted))
    try:
        return Margin(as_sum(form), ())
    except InputError:
        if (products := _few_steps(form)) is None:
            raise
    constant, interactions = _taken_apart(products)
    terms = Sum.of_columns(len(products.functions), {}, products.intercept + constant)
    return Margin(terms, interactions)


def _few_steps(form: Form) -> SumOfProducts | None:
    """The products of a form, if they are few, and constant between breaks."""
    many = isinstance(form, Forest | ForestOfTuples) and int((form.feature < 0).sum()) > _MOST_PRODUCTS
    terms = form.reduce() if isinstance(form, Reducible) and not many else None
    if not isinstance(terms, SumOfProducts) or len(terms.coef) > _MOST_PRODUCTS:
        return None
    constant = all(texture(function).constant for function in terms.functions if function is not None)
    return terms if constant else None


def _taken_apart(terms: SumOfProducts) -> tuple[Floats, tuple[StepInteraction, ...]]:
    """The products that read no column, added up, and the others by the columns that they read."""
    reads = np.zeros((len(terms.coef), len(terms.functions)), dtype=np.bool_)
    for j, function in enumerate(terms.functions):
        if function is not None:
            reads[:, j] = (function(landmarks(function)) != 1.0).any(axis=1)
    patterns, which = np.unique(reads, axis=0, return_inverse=True)
    interactions, constant = [], np.zeros(terms.intercept.shape)
    for i, pattern in enumerate(patterns):
        products = np.flatnonzero(which.ravel() == i)
        columns = tuple(np.flatnonzero(pattern).tolist())
        if not columns:
            constant = constant + terms.coef[products].sum(axis=0)
            continue
        functions = tuple(f for f in (terms.functions[j] for j in columns) if f is not None)
        interactions.append(StepInteraction(columns, functions, products, terms.coef[products]))
    return constant, tuple(interactions)


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
    coef: Floats = None  # type: ignore[assignment]  # set by __post_init__
    intercept: Floats = field(default_factory=zero)
    axes: ClassVar[Mapping[str, str]] = {"coef": "m ..."}

    def __post_init__(self) -> None:
        if self.link not in CURVES:
            raise InputError(f"link must be one of {sorted(CURVES)}, got {self.link!r}")
        if not isinstance(self.margin, Form):
            raise InputError(f"margin must be a form, got {type(self.margin).__name__}")
        outputs = outputs_of(self.margin)
        default = np.eye(outputs[0]) if outputs else np.ones(1)
        coef: Any = self.coef
        self._freeze(coef=default if coef is None else coef)
        super().__post_init__()
        if len(self.coef) != len(default):
            raise InputError(f"{len(default)} margins need as many rows of coef, got {len(self.coef)}")
        self._freeze(size=self.margin.size)
        if not isinstance(self.margin, NormalizedLinear):
            self.margins  # noqa: B018 - refuses margins that are no sums

    @property
    def curve(self) -> Link:
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
        """The K margins, as a sum with outputs (K,); refused if they have interactions."""
        terms, interactions = self.margins
        if interactions:
            raise InputError("the margin is not a sum of functions of one column each: columns interact")
        return terms

    @property
    def adds_up(self) -> bool:
        """Whether an output is a sum of several links, or of an activation, that may cancel."""
        terms = np.count_nonzero(self.coef.reshape(len(self.coef), -1), axis=0)
        return self.curve.tilts == (0.0,) or bool((terms > 1).any())

    def predict(self, x: Floats) -> Floats:
        return self.answers(self.margin.predict(x))

    def answers(self, margins: Floats) -> Floats:
        """Return f where the margins have these values.

        Parameters
        ----------
        margins
            (n,), or (n, K) for K margins.
        """
        values = self.curve.function(margins.reshape(len(margins), -1))
        return np.asarray(self.intercept + times(values, self.coef))


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
    axes: ClassVar[Mapping[str, str]] = {"weights": "m d", "offsets": "m", "scales": "m ..."}

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise InputError(f"activation must be one of {list(ACTIVATIONS)}, got {self.activation!r}")
        super().__post_init__()

    @cached_property
    def expanded(self) -> Linear | Linked:
        """The form as links of linear margins, or as a linear form if the activation is the identity."""
        if self.activation == "identity":
            return Linear(self.weights.T @ self.scales, self.intercept + self.offsets @ self.scales)
        return Linked(Linear(self.weights.T, self.offsets), self.activation, self.scales, self.intercept)

    def predict(self, x: Floats) -> Floats:
        return self.expanded.predict(x)


@dataclass(frozen=True, eq=False)
class Softmax(FormBase):
    """f(x) = intercept + Σ_c coef[c] · softmax_c(margins(x)), for three classes.

    Parameters
    ----------
    margin
        A form with three outputs: a sum of functions of one column each, as linear and additive models are.
    coef
        (3,), or (3, k) for k outputs; by default each class is an output.
    intercept
        A number, or (k,).

    Raises
    ------
    InputError
        If the margin is no such sum, or has not three outputs; if shapes disagree.

    Examples
    --------
    >>> from limes.models import forms
    >>> classes = forms.Softmax(forms.Linear([[1.0, 0.0, -1.0]], [0.0, 0.0, 0.0]))
    >>> classes.predict([[0.0]])
    array([[0.33333333, 0.33333333, 0.33333333]])
    """

    margin: Form
    coef: Floats = None  # type: ignore[assignment]  # set by __post_init__
    intercept: Floats = field(default_factory=zero)
    axes: ClassVar[Mapping[str, str]] = {"coef": "m ..."}

    def __post_init__(self) -> None:
        if outputs_of(self.margin) != (CLASSES,):
            raise InputError(f"softmax is read for three margins, got outputs {outputs_of(self.margin)}")
        coef: Any = self.coef
        self._freeze(coef=np.eye(CLASSES) if coef is None else coef)
        super().__post_init__()
        if len(self.coef) != CLASSES:
            raise InputError(f"three classes need as many rows of coef, got {len(self.coef)}")
        self._freeze(size=self.margin.size)
        self.terms  # noqa: B018 - refuses margins that are no sums

    @cached_property
    def terms(self) -> Sum:
        return as_sum(self.margin)

    def predict(self, x: Floats) -> Floats:
        return self.answers(self.margin.predict(x))

    def answers(self, margins: Floats) -> Floats:
        """Return f where the margins have these values.

        Parameters
        ----------
        margins
            (n, 3).
        """
        # along rows: a reduction over three columns takes three times as long
        shares = np.exp(margins.T - np.maximum.reduce(margins.T))
        shares /= np.add.reduce(shares)
        return np.asarray(self.intercept + times(shares.T, self.coef))
