"""A model bound to a background: what it answers, what could be read off it, and how it is explained."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.designs.product import ProductDesign, ProductFamily
from limes.exceptions import InputError, ModelError, NotReadableError, ReadMismatchError
from limes.expectations.controls.control import Control
from limes.expectations.controls.margin import margin_control
from limes.expectations.moments import ExactMoments, Moments
from limes.expectations.sampling import Sampling
from limes.explainers.sampling import controls_of
from limes.explainers.table import Table
from limes.explainers.verification import (
    TABLE_DRAWS,
    Probe,
    check_agreement,
    check_atoms,
    check_draws,
    product_rows,
    revealing,
)
from limes.explainers.watch import Watch
from limes.models.algebra import category_columns
from limes.models.calling.caller import ModelCaller
from limes.models.calling.methods import prediction_method
from limes.models.calling.outputs import Output, resolve
from limes.models.forms.base import BlackBox, Form
from limes.models.forms.trees import Forest
from limes.models.reading import EXACT_TOLERANCE, SINGLE_TOLERANCE, read_output, tolerance_of
from limes.pipeline import Expectation, exact_expectation, expectation_of

ASKED_FOR = "asked for by method='sampled'"


@dataclass(frozen=True, eq=False)
class Reading:
    """A model, and what could be read off it; the background's laws are not known yet.

    Attributes
    ----------
    model, wanted
        The model, and which of its answers.
    form
        Of the answers, or a black box with the reason.
    margin
        Form of the margin behind the answers' link, and how the model is asked for it; None if there is
        none, or it cannot be read.
    """

    model: Any
    wanted: Output
    form: Form | BlackBox
    margin: tuple[Form, Output] | None

    @classmethod
    def of(cls, model: Any, output: Any, table: Table) -> Reading:
        """Read a model.

        Raises
        ------
        InputError, ModelError
            As :class:`limes.TabularExplainer` says.
        """
        wanted = resolve(model, output)
        if getattr(model, "n_features_in_", len(table.columns)) != len(table.columns):
            # what a reader would make of other columns is nothing that a user understands: the model says it
            ModelCaller(model, wanted, table.decode)(table.matrix[:2])
        form = read_output(model, wanted, table.decode, schema=table.schema)
        return cls(model, wanted, form, _margin_of(model, wanted, table))

    def unread(self, reason: str) -> Reading:
        """The same model, left to sampling."""
        return replace(self, form=BlackBox(np.asarray, reason), margin=None)

    @property
    def category_columns(self) -> frozenset[int]:
        """Positions of the columns that the model takes for categories."""
        behind = None if self.margin is None else self.margin[0]
        forms = [form for form in (self.form, behind) if isinstance(form, Form)]
        return frozenset().union(*map(category_columns, forms))


def _margin_of(model: Any, wanted: Output, table: Table) -> tuple[Form, Output] | None:
    if (
        wanted.method not in ("predict", "predict_proba")
        or prediction_method(model, "decision_function") is None
    ):
        return None
    try:
        output = resolve(model, "margin")
    except InputError:
        return None
    form = read_output(model, output, table.decode, schema=table.schema)
    return None if isinstance(form, BlackBox) else (form, output)


@dataclass(frozen=True, eq=False)
class Subject:
    """A model as the pipeline wants it.

    Attributes
    ----------
    predict
        (n, d) -> (n,) or (n, k), the model's own answers, or those of its form where they are the same.
    predict_reproducibly
        The same, where a row's answer does not depend on the rows beside it, to the last bit: a model may add
        up many rows in another order than few.
    expectation
        Exact or sampled.
    outputs
        Names of the outputs.
    answer
        Method of the model, "call" where it is called itself.
    reason
        Why it is sampled; "" where exact.
    watch
        Notices that the model is no longer the one that was read.
    """

    predict: Callable[[Floats], Floats]
    predict_reproducibly: Callable[[Floats], Floats]
    expectation: Expectation
    outputs: tuple[str, ...]
    answer: str
    reason: str
    watch: Watch

    @classmethod
    def of(
        cls,
        reading: Reading,
        table: Table,
        family: ProductFamily,
        *,
        method: str,
        sampling: Sampling,
        control: str,
        also: Floats | None = None,
    ) -> Subject:
        """Hold what was read against the model, and choose how it is explained.

        ``also`` are further rows at which the two must agree.

        Raises
        ------
        ModelError, NotReadableError, ReadMismatchError
            As :class:`limes.TabularExplainer` says.
        """
        check = _Check(reading.model, table, family, also)
        form, reason = reading.form, ASKED_FOR
        if isinstance(form, BlackBox):
            reason = form.reason
        elif method != "sampled":
            try:
                return cls._exact(reading, form, check)
            except (NotReadableError, ReadMismatchError) as error:
                if method == "exact":
                    raise
                reason = str(error)
        ask = check.asker(reading.wanted)
        # asked before anything else: a model that is not fitted, or fails on this table, says so itself
        names = reading.wanted.names(ask(table.matrix[:2]).shape[1:])
        controls = controls_of(control, _margin_control(reading, control, check))
        sampled = replace(sampling, controls=controls)
        return cls(
            ask,
            partial(_one_by_one, ask),
            expectation_of(BlackBox(ask, reason), ask, method=method, sampling=sampled),
            names,
            reading.wanted.method or "call",
            reason,
            Watch(reading.model),
        )

    @classmethod
    def _exact(cls, reading: Reading, form: Form, check: _Check) -> Subject:
        ask = check.asker(reading.wanted)
        expectation, answers, allowed = check.expectation(form, ask)
        predict: Callable[[Floats], Floats] = form.predict if check.tolerance <= EXACT_TOLERANCE else ask
        return cls(
            predict,
            # trees are added up row by row, by every library
            predict if isinstance(form, Forest) else form.predict,
            expectation,
            reading.wanted.names(answers.shape[1:]),
            reading.wanted.method or "call",
            "",
            Watch(reading.model, ask=ask, predict=form.predict, allowed=allowed),
        )


@dataclass(frozen=True, eq=False)
class _Check:
    """Everything that a form is held against."""

    model: Any
    table: Table
    family: ProductFamily
    also: Floats | None

    @cached_property
    def tolerance(self) -> float:
        """How closely the model itself adds up, relative to its largest answer."""
        single = any(column.dtype == np.float32 for column in self.table.columns)
        return max(tolerance_of(self.model), SINGLE_TOLERANCE if single else 0.0)

    def asker(self, wanted: Output) -> ModelCaller:
        """Asks the model with tables like the background."""
        return ModelCaller(self.model, wanted, self.table.decode)

    def expectation(self, form: Form, ask: Callable[[Floats], Floats]) -> tuple[ExactMoments, Floats, float]:
        """The exact expectation of a form that agrees with the model.

        With it go the model's answers on which they were compared, and by how much the two may differ.

        Raises
        ------
        ModelError
            If the model fails on the background.
        NotReadableError
            If the background's laws have no exact expectation of the form.
        ReadMismatchError
            If form or expectation disagree with the model.
        """
        probe = Probe.of(self.table, self.family.marginals, self.also)
        try:
            answers = probe.answers(ask)
        except ReadMismatchError:
            self._moments(form)  # which may say in which column, and at which step, there is no answer
            raise
        allowed = self.tolerance * float(np.abs(answers).max())
        check_agreement(answers, form.predict(probe.rows), allowed, probe.where)
        expectation, design, moments = self._moments(form)
        with _no_exact_expectation():
            check_atoms(expectation, probe, answers, allowed)
        check_draws(moments, form.predict, design, product_rows(design), TABLE_DRAWS)
        return expectation, answers, allowed

    def _moments(self, form: Form) -> tuple[ExactMoments, ProductDesign, Moments]:
        """The expectation, and its moments at one background row.

        Raises
        ------
        NotReadableError
            If there is none on this background.
        """
        row = self.table.matrix[len(self.table.matrix) // 2]
        design = revealing(self.family).at(row).in_units()
        with _no_exact_expectation():
            expectation = exact_expectation(form)
            return expectation, design, expectation.moments(design)


@contextmanager
def _no_exact_expectation() -> Iterator[None]:
    """Errors of an expectation as a reason to leave the model to sampling."""
    try:
        yield
    except (InputError, ModelError) as error:
        raise NotReadableError(
            f"the model was read, but its expectation is not exact on this background: {error}"
        ) from error


def _margin_control(reading: Reading, control: str, check: _Check) -> Control | None:
    """The control made of the margin behind a link; None without one, or where it is not the model's."""
    if reading.margin is None or control not in ("auto", "margin"):
        return None
    form, output = reading.margin
    try:
        return margin_control(form.predict, check.expectation(form, check.asker(output))[0])
    except (ModelError, NotReadableError, ReadMismatchError):
        if control == "margin":
            raise
        return None


def _one_by_one(ask: Callable[[Floats], Floats], rows: Floats) -> Floats:
    return np.concatenate([ask(rows[i : i + 1]) for i in range(len(rows))])
