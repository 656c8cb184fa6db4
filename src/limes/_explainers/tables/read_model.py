"""A model as it was read, before it is compared with its own answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limes._explainers.tables.table import Table
from limes.exceptions import InputError
from limes.models._algebra import category_columns
from limes.models._calling.caller import ModelCaller
from limes.models._calling.outputs import Output, prediction_method, resolve
from limes.models._reading import read_output
from limes.models.forms._base import BlackBox, Form


@dataclass(frozen=True, eq=False)
class ReadModel:
    """A model and the form that could be read, before the background's laws are learnt.

    Attributes
    ----------
    model, output
        The model, and which of its answers.
    form
        Of the answers, or a black box with the reason.
    margin
        Form of the margin behind the answers' link, and the model's output for it; None without a
        margin that can be read.
    """

    model: Any
    output: Output
    form: Form | BlackBox
    margin: tuple[Form, Output] | None

    @classmethod
    def of(cls, model: Any, output: Any, table: Table) -> ReadModel:
        """Read a model.

        Raises
        ------
        InputError, ModelError
            As for :class:`limes.TabularExplainer`.
        """
        output = resolve(model, output)
        if getattr(model, "n_features_in_", len(table.columns)) != len(table.columns):
            # a reader's error about other columns would puzzle the user: the model raises its own
            ModelCaller(model, output, table.decode)(table.matrix[:2])
        form = read_output(model, output, table.decode, schema=table.schema)
        return cls(model, output, form, _margin_of(model, output, table))

    def unread(self, reason: str) -> ReadModel:
        """Return the same model, left to sampling."""
        return replace(self, form=BlackBox(np.asarray, reason), margin=None)

    @property
    def category_columns(self) -> frozenset[int]:
        """Positions of the columns that the model takes for categories."""
        margin_form = None if self.margin is None else self.margin[0]
        forms = [form for form in (self.form, margin_form) if isinstance(form, Form)]
        return frozenset().union(*map(category_columns, forms))


def _margin_of(model: Any, output: Output, table: Table) -> tuple[Form, Output] | None:
    if (
        output.method not in ("predict", "predict_proba")
        or prediction_method(model, "decision_function") is None
    ):
        return None
    try:
        margin_output = resolve(model, "margin")
    except InputError:
        return None
    form = read_output(model, margin_output, table.decode, schema=table.schema)
    return None if isinstance(form, BlackBox) else (form, margin_output)
