"""What explanations are judged on: a model, rows, and a background that other values come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.explainers.tables.table import Table
from limes.models.outputs import ModelCaller, resolve

# Rows that the model is asked for at once
_BATCH = 20_000


@dataclass(frozen=True, eq=False)
class Task:
    """A model's answers at rows of a table.

    Made by :meth:`of`. All functions of :mod:`limes.evaluate` take one, so that all explanations meet the
    same rows, the same draws and the same model.

    Attributes
    ----------
    table
        The background.
    rows
        (n, d) rows to be explained, encoded.
    ask
        (m, d) -> (m,), the one output that is explained.
    """

    table: Table
    rows: Floats
    ask: Callable[[Floats], Floats]

    @classmethod
    def of(cls, model: Any, background: Any, X: Any, *, output: Any = None) -> Task:
        """Take a model, a background and rows as :class:`limes.TabularExplainer` does.

        Parameters
        ----------
        model
            A fitted estimator, or a callable X -> (n,) or (n, k).
        background
            Table that values of removed features are drawn from.
        X
            Rows whose explanations are judged.
        output
            As in :class:`limes.TabularExplainer`; of two classes the second if not given.

        Raises
        ------
        InputError
            If rows do not match the background, or one of several outputs has to be chosen.

        Examples
        --------
        >>> task = Task.of(lambda x: x[:, 0], [[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]])
        >>> task.predictions.tolist(), task.typical
        ([5.0], 2.0)
        """
        table = Table.fit(background)
        wanted = ModelCaller(model, resolve(model, output), table.decode)
        return cls(table, table.encode(X), _one_output(wanted))

    @property
    def X(self) -> Any:  # noqa: N802 - the field's name for a table
        """The rows as the model takes them."""
        return self.table.decode(self.rows)

    @cached_property
    def predictions(self) -> Floats:
        """Answers at the rows, (n,)."""
        return self.predict(self.rows)

    @cached_property
    def unit(self) -> float:
        """Standard deviation of f over the background, in which areas are told; 1 where f does not vary."""
        return float(np.std(self._background_answers)) or 1.0

    @cached_property
    def typical(self) -> float:
        """Mean of f over the background."""
        return float(np.mean(self._background_answers))

    @cached_property
    def scales(self) -> Floats:
        """Standard deviations of numbers, (d,); 0 for categories."""
        return np.where(self.table.numeric, np.nanstd(self.table.matrix, axis=0), 0.0)

    def predict(self, x: Floats) -> Floats:
        """Answers at rows (m, d) -> (m,), in batches."""
        parts = [self.ask(x[i : i + _BATCH]) for i in range(0, len(x), _BATCH)]
        return np.concatenate(parts)

    @cached_property
    def _background_answers(self) -> Floats:
        return self.predict(self.table.matrix[:_BATCH])


def _one_output(ask: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    def answer(x: Floats) -> Floats:
        found = ask(x)
        if found.ndim == 2 and found.shape[1] > 2:
            raise InputError(f"the model has {found.shape[1]} outputs: choose one with output=")
        return found if found.ndim == 1 else np.asarray(found[:, -1])

    return answer
