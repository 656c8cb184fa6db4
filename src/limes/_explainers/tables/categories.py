"""Columns of numbers that are categories to the model: by its encoders, or by what was read of it.

Categories of an encoder need not be whole numbers, nor start at 0, and trees behind it are read as splitting
sets of small whole numbers. A model that is not read over other categories is read over their positions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._explainers.reading import Reading
from limes._explainers.tables.table import Table
from limes.models._algebra import category_columns
from limes.models._encoders import encoded_columns, encoded_texts


def read_with_categories(
    model: Any, table: Table, read: Callable[[Table], Reading], bins: Any
) -> tuple[Table, Reading]:
    """Read a model of a table, in which the columns that it takes for categories become categories.

    Columns with edges of ``bins`` stay numbers, and a model that takes one of these for categories is not
    read.
    """
    encoded = encoded_columns(model, table.names, table.values_of)
    is_number = np.array([column.is_plain for column in table.columns])
    entries = bins[: len(is_number)] if isinstance(bins, list | tuple) else ()
    cut = {j for j, entry in enumerate(entries) if entry is not None and is_number[j]}
    table = table.with_categories([j for j in encoded if is_number[j] and j not in cut])
    reading = read(table)
    if reading.form is None:
        numbered = table.with_codes([j for j in encoded if not table.numeric[j]])
        again = reading if numbered is table else read(numbered)
        if again.form is not None:
            table, reading = numbered, again
    forms = [form for form in (reading.form, reading.margin) if form is not None]
    categories = frozenset().union(*map(category_columns, forms))
    if refused := sorted(categories & cut):
        reading = reading.unread(
            f"the model takes column {table.names[refused[0]]!r} for categories, and bins= cuts it as a "
            "number: pass None in its place"
        )
    return table.with_categories([j for j in categories - cut if table.columns[j].is_plain]), reading


def advice_on(model: Any, table: Table, rows: Floats) -> str:
    """What to do where a model fails on encoded rows (m, d) of a table; "" if nothing is known to help."""
    for j, texts in encoded_texts(model, table.names).items():
        values = table.values_of(j)
        if values and not any(isinstance(value, str) for value in values):
            name = table.names[j]
            return (
                f"the model was trained on texts such as {texts[0]!r} in column {name!r}, and the background "
                f"holds numbers such as {values[0]:g}: pass texts there, in the background and in rows"
            )
    return table.advice(rows)
