"""Forms as sums of functions of one column each, where they are such sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._functions import Function, Identity, Lookup, Stacked, Step
from limes.exceptions import InputError
from limes.models.forms._base import Combination, Form, Reducible, Sum, SumOfProducts
from limes.models.forms._presence import PresenceProducts
from limes.models.forms._trees import Forest


def as_sum(form: Form) -> Sum:
    """Write a form as Σ_j f_j(x_j).

    Raises
    ------
    InputError
        If it is no such sum: it has products of functions of two columns, or trees that test two columns.
    """
    if isinstance(form, Combination):
        parts = [(weight, as_sum(part)) for weight, part in zip(form.weights, form.parts, strict=True)]
        return add_sums(parts, form.intercept)
    if isinstance(form, Forest):
        return _stumps(form)
    if isinstance(form, PresenceProducts):
        return _single_words(form)
    terms = form.reduce() if isinstance(form, Reducible) else None
    if isinstance(terms, SumOfProducts):
        terms = _single_factors(terms)
    if terms is None:
        raise InputError(f"{type(form).__name__} is not a sum of functions of one column each")
    return terms


def add_sums(parts: list[tuple[float, Sum]], intercept: Floats) -> Sum:
    """Return Σ_i weight_i · part_i + intercept."""
    size = len(parts[0][1].functions)
    functions: list[Function | None] = []
    loadings = []
    for j in range(size):
        read = [(w, p.functions[j], p.loadings[j]) for w, p in parts if p.functions[j] is not None]
        families: tuple[Any, ...] = tuple(family for _, family, _ in read)
        functions.append(Stacked(families) if len(families) > 1 else (families or (None,))[0])
        blank = np.zeros((1, *intercept.shape))
        loadings.append(np.concatenate([w * loading for w, _, loading in read]) if read else blank)
    constant = intercept + sum(weight * part.intercept for weight, part in parts)
    return Sum(tuple(functions), tuple(loadings), np.asarray(constant, dtype=np.float64))


def _single_words(form: PresenceProducts) -> Sum:
    """Products of one word each, or of none.

    Raises
    ------
    InputError
        If a product has several words.
    """
    count = np.bincount(form.product, minlength=len(form.coef))
    if (count > 1).any():
        raise InputError("the products are not a sum of words: some have two")
    ones = form.coef[form.product]
    sign = np.where(form.present, 1.0, -1.0).reshape(-1, *(1,) * (ones.ndim - 1))
    effects = np.zeros((form.size, *form.intercept.shape))
    np.add.at(effects, form.word, sign * ones)
    constant = form.intercept + form.coef[count == 0].sum(axis=0) + ones[~form.present].sum(axis=0)
    line = Identity()
    return Sum((line,) * form.size, tuple(effects[:, None]), constant)


def _single_factors(terms: SumOfProducts) -> Sum | None:
    """A sum of products that together read one column; None if they read several."""
    read = [j for j, function in enumerate(terms.functions) if function is not None]
    if len(read) > 1:
        return None
    blank = np.zeros((1, *terms.intercept.shape))
    loadings = tuple(terms.coef if j in read else blank for j in range(len(terms.functions)))
    return Sum(terms.functions, loadings, terms.intercept)


def _stumps(form: Forest) -> Sum:
    """A forest of trees that test one column each: a table a column."""
    column_of = _columns_of_trees(form)
    blank = np.zeros((1, *form.intercept.shape))
    count = int(np.prod(form.intercept.shape))
    unit = np.eye(count).reshape(count, *form.intercept.shape)
    functions: list[Function | None] = [None] * form.size
    loadings = [blank] * form.size
    single = form.feature[form.roots] < 0
    constant = form.intercept + form.value[form.roots[single]].sum(axis=0)
    for j in np.unique(column_of[column_of >= 0]).tolist():
        trees = replace(form, roots=form.roots[column_of == j], intercept=np.zeros(form.intercept.shape))
        functions[j], loadings[j] = _table(trees, j, count), unit
    return Sum(tuple(functions), tuple(loadings), constant)


def _columns_of_trees(form: Forest) -> Floats:
    """The column that each tree tests, (T,), -1 for a constant.

    Raises
    ------
    InputError
        If a tree tests two columns.
    """
    ends = np.append(form.roots[1:], form.feature.size)
    columns = np.full(form.roots.size, -1)
    if not (form.roots[:-1] < form.roots[1:]).all():
        raise InputError("the nodes of the forest's trees are not in the order of their roots")
    for tree, (first, end) in enumerate(zip(form.roots, ends, strict=True)):
        tested = np.unique(form.feature[first:end])
        tested = tested[tested >= 0]
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
