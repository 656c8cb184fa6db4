"""Trees and boxes over word counts, as presence products.

A perturbed text has a word as often as the text itself, or not at all: a column of the model has its value,
or it is 0. A test of the column is then a test of the word's presence, or none, and a leaf or a box is the
product of its tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Floats, Ints
from limes.exceptions import InputError
from limes.models.boxes import Boxes
from limes.models.trees import Forest
from limes.models.words import PresenceProducts


def presence_products(
    form: Forest | Boxes, columns: ArrayLike | None = None, values: ArrayLike | None = None
) -> PresenceProducts:
    """The form f(x(z)) over words z, where x[columns[j]] = values[j] · z_j and all other columns are 0.

    Parameters
    ----------
    form
        Over the columns that the model reads.
    columns
        (d,) the column of each word, -1 for a word that the model does not know; each column in its place
        if not given.
    values
        (d,) what the column holds where the word is kept, as its count; ones if not given.

    Raises
    ------
    InputError
        If the form is of another type, lengths disagree, a column does not exist, or two words share one.

    Examples
    --------
    >>> from limes.models import forms
    >>> from limes.models.presence import presence_products
    >>> twice = forms.Boxes([[1.5, -float("inf")]], [[float("inf"), 0.5]], [1.0])
    >>> found = presence_products(twice, columns=[1, 0], values=[1.0, 2.0])
    >>> found.predict([[0, 1], [1, 1], [0, 0]])
    array([1., 0., 0.])
    """
    if type(form) not in _CONVERT:
        raise InputError(f"expected a Forest or Boxes, got {type(form).__name__}")
    places = np.arange(form.size) if columns is None else np.asarray(columns, dtype=np.int64)
    amounts = np.ones(places.size) if values is None else np.asarray(values, dtype=np.float64)
    if places.shape != amounts.shape or places.ndim != 1:
        raise InputError(
            f"columns and values need one entry a word; got shapes {places.shape} and {amounts.shape}"
        )
    known = places[places >= 0]
    if known.max(initial=-1) >= form.size:
        raise InputError(f"there is no column {known.max()}: the form reads {form.size}, counted from 0")
    if np.unique(known).size < known.size:
        raise InputError("two words share a column: take them as one word, kept or removed together")
    word_of, value_of = np.full(form.size, -1), np.zeros(form.size)
    word_of[known], value_of[known] = np.flatnonzero(places >= 0), amounts[places >= 0]
    return presence_of_columns(form, word_of, value_of, places.size)


def presence_of_columns(
    form: Forest | Boxes, word_of: Ints, value_of: Floats, words: int, fill: Floats | None = None
) -> PresenceProducts:
    """The same, where x[c] is value_of[c] if the word word_of[c] is kept, and else fill[c].

    ``fill`` is 0 if not given, and what column c holds where word_of[c] = -1. Words may have several columns.
    """
    fill = np.zeros(form.size) if fill is None else fill
    return _CONVERT[type(form)](form, word_of, value_of, words, fill)


def _of_forest(form: Forest, word_of: Ints, value_of: Floats, words: int, fill: Floats) -> PresenceProducts:
    from limes.models.presence_walk import presence_paths

    walk = partial(
        presence_paths,
        word_of,
        value_of,
        fill,
        words,
        form.feature,
        form.threshold,
        form.left,
        form.right,
        form.set_of,
        form.sets,
        form.roots,
    )
    nothing = np.zeros(0, dtype=np.int64)
    paths, factors = walk(nothing, nothing, nothing, np.zeros(0, dtype=np.bool_))
    leaf = np.zeros(paths, dtype=np.int64)
    product, word = np.zeros(factors, dtype=np.int64), np.zeros(factors, dtype=np.int64)
    present = np.zeros(factors, dtype=np.bool_)
    walk(leaf, product, word, present)
    return PresenceProducts.of_factors(product, word, present, form.value[leaf], form.intercept, words)


def _of_boxes(form: Boxes, word_of: Ints, value_of: Floats, words: int, fill: Floats) -> PresenceProducts:
    without = (form.lower < fill) & (fill <= form.upper)
    having = (form.lower < value_of) & (value_of <= form.upper)
    possible = (without | (having & (word_of >= 0))).all(axis=1)
    tested = (without != having) & (word_of >= 0)
    product, column = np.nonzero(tested[possible])
    present = having[possible][product, column]
    value = form.value[possible]
    return PresenceProducts.of_factors(product, word_of[column], present, value, form.intercept, words)


_CONVERT: Mapping[type, Callable[..., PresenceProducts]] = {Forest: _of_forest, Boxes: _of_boxes}
