"""The facts of a rule at one row: their texts, and what has them: rows of the table, and a box of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Floats, Ints
from limes._explainers.verified_form import even_positions
from limes._rules.bounds import Box
from limes._rules.literals import SignRows
from limes._rules.model import ModelReading, RowCalls
from limes._rules.neighbourhood import LiteralNeighbourhood, TableDraws
from limes._rules.rule import EvaluatedRule


@dataclass(frozen=True, eq=False)
class RuleFacts:
    """Facts of a row; those of a table's draws may hold in more than the cell of their column."""

    rows: SignRows
    row: Floats
    near: LiteralNeighbourhood
    support: Ints  # positions of the literals

    @cached_property
    def features(self) -> Ints:
        return self.near.varying[self.support]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        if isinstance(self.near, TableDraws):
            return tuple(self.near.texts[i] for i in self.support.tolist())
        return tuple(self.rows.condition(self.row, j) for j in self.features.tolist())

    @property
    def conditions(self) -> tuple[str, ...]:
        """Texts of all features at the row, with the facts in the place of their columns' cells."""
        texts = list(self.rows.conditions(self.row))
        if isinstance(self.near, TableDraws):
            for j, text in zip(self.features.tolist(), self.texts, strict=True):
                texts[j] = text
        return tuple(texts)

    @property
    def coverage(self) -> float | None:
        """Share of the background's rows that have the facts; None without a background."""
        if isinstance(self.near, TableDraws):
            return float(self.near.have(self.support).mean())
        return self.rows.coverage(self.row, self.features)

    @property
    def table_rows(self) -> Floats | None:
        """The background's rows that have the facts, as the model takes them; None without a background."""
        if isinstance(self.near, TableDraws):
            return self.near.matrix[self.near.have(self.support)]
        return self.rows.rows_with(self.row, self.features)

    @property
    def box(self) -> Box:
        """All combinations of background values that have the facts."""
        if not isinstance(self.near, TableDraws):
            return self.rows.box(self.row, self.features)
        values = list(self.rows.box(self.row, self.features[:0]))
        for i, j in zip(self.support.tolist(), self.features.tolist(), strict=True):
            values[j] = np.union1d(self.near.inside[i], self.row[j])
        return tuple(values)


def agreement(facts: RuleFacts, rule: EvaluatedRule, model: ModelReading, calls: RowCalls) -> float | None:
    """Return the share of the table's rows with the facts that are as a rule that is to hold says.

    A model that has to be asked is asked about ``samples`` of these rows at most.
    """
    config = rule.problem.config
    rows = facts.table_rows if config.is_to_hold else None
    if rows is None or not len(rows):
        return None
    if model.predict is None:
        rows = rows[even_positions(len(rows), config.samples)]
    return float(rule.agrees((model.predict or calls)(rows)).mean())
