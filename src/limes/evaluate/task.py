"""The data of an evaluation (model, rows and background), and the score of one measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.explainers.tables.table import Table
from limes.models.calling.caller import ModelCaller
from limes.models.calling.outputs import resolve

# Rows in a call of the model
_BATCH = 20_000


@dataclass(frozen=True, eq=False)
class Score:
    """One measure of explanations of n rows.

    Attributes
    ----------
    name
        Name of the measure.
    rows
        (n,) the value for each row; NaN where it is not defined.
    better
        "higher" or "lower".
    """

    name: str
    rows: Floats
    better: Literal["higher", "lower"]

    @property
    def mean(self) -> float:
        """Mean over rows where it is defined; NaN if it never is."""
        defined = self.rows[~np.isnan(self.rows)]
        return float(defined.mean()) if defined.size else float("nan")

    @property
    def error(self) -> float:
        """Standard error of the mean over rows; NaN for fewer than two."""
        defined = self.rows[~np.isnan(self.rows)]
        return float(defined.std(ddof=1) / np.sqrt(defined.size)) if defined.size > 1 else float("nan")

    def __repr__(self) -> str:
        return f"<Score {self.name}: {self.mean:.4g} ± {self.error:.2g}, {self.better} is better>"


@dataclass(frozen=True, eq=False)
class EvaluationTask:
    """A model's answers at rows of a table.

    Built by :meth:`of`. All functions of :mod:`limes.evaluate` take one, so that all explanations have the
    same rows, the same draws and the same model.

    Attributes
    ----------
    table
        The background.
    rows
        (n, d) explained rows, encoded.
    model
        (m, d) -> (m,), the explained output.
    """

    table: Table
    rows: Floats
    model: Callable[[Floats], Floats]

    @classmethod
    def of(cls, model: Any, background: Any, X: Any, *, output: Any = None) -> EvaluationTask:
        """Make a task from a model, a background and rows, as for :class:`limes.TabularExplainer`.

        Parameters
        ----------
        model
            A fitted estimator, or a callable X -> (n,) or (n, k).
        background
            Table from which values of removed features are drawn.
        X
            Rows whose explanations are evaluated.
        output
            As in :class:`limes.TabularExplainer`; by default the second of two classes.

        Raises
        ------
        InputError
            If rows do not match the background, or ``output`` has to choose one of several.

        Examples
        --------
        >>> task = EvaluationTask.of(lambda x: x[:, 0], [[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]])
        >>> task.predictions.tolist(), task.typical
        ([5.0], 2.0)
        """
        table = Table.fit(background)
        caller = ModelCaller(model, resolve(model, output), table.decode)
        return cls(table, table.encode(X), _one_output(caller))

    @property
    def X(self) -> Any:  # noqa: N802 - the field's name for a table
        """The rows as the model takes them."""
        return self.table.decode(self.rows)

    @cached_property
    def predictions(self) -> Floats:
        """Predictions at the rows, (n,)."""
        return self.predict(self.rows)

    @cached_property
    def unit(self) -> float:
        """Standard deviation of f over the background, the unit of areas; 1 where f does not vary."""
        return float(np.std(self._background_predictions)) or 1.0

    @cached_property
    def typical(self) -> float:
        """Mean of f over the background."""
        return float(np.mean(self._background_predictions))

    @cached_property
    def scales(self) -> Floats:
        """Standard deviations of numbers, (d,); 0 for categories."""
        return np.where(self.table.numeric, np.nanstd(self.table.matrix, axis=0), 0.0)

    def predict(self, x: Floats) -> Floats:
        """Predict rows (m, d) -> (m,), in batches."""
        parts = [self.model(x[i : i + _BATCH]) for i in range(0, len(x), _BATCH)]
        return np.concatenate(parts)

    @cached_property
    def _background_predictions(self) -> Floats:
        return self.predict(self.table.matrix[:_BATCH])


def _one_output(model: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    def predict(x: Floats) -> Floats:
        predictions = model(x)
        if predictions.ndim == 2 and predictions.shape[1] > 2:
            raise InputError(f"the model has {predictions.shape[1]} outputs: choose one with output=")
        return predictions if predictions.ndim == 1 else np.asarray(predictions[:, -1])

    return predict
