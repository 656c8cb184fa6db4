"""The data of an evaluation: model, rows, background, and explanations of any kind as one matrix of values.

Every kind of object that has values is converted to an :class:`Attribution` (rows × features); the measures
use nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from limes._arrays import Floats, float_array
from limes._explainers.tables.table import Table
from limes.exceptions import InputError
from limes.models._calling.caller import ModelCaller
from limes.models._calling.outputs import is_position, resolve

# Rows in a call of the model
_BATCH = 20_000
# Name of values in messages
_VALUES = "an explanation's values"


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

    Examples
    --------
    >>> import numpy as np
    >>> import limes
    >>> limes.evaluate.Score("fidelity", np.array([0.5, 1.0]), "higher").mean
    0.75
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

    Examples
    --------
    >>> import limes
    >>> background = [[0.0], [1.0], [2.0], [3.0]]
    >>> task = limes.evaluate.Task.of(lambda X: 2 * X[:, 0], background, [[1.0]])
    >>> task.predictions
    array([2.])
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
            See :class:`limes.TabularExplainer`; by default the second of two classes.

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
        table = Table.fit(background).for_model(model)
        if isinstance(output, list | tuple) and not hasattr(model, "classes_"):
            raise InputError(f"output={output!r}: a task is about one output; pass its position")
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


def check_task(task: Any) -> EvaluationTask:
    """Return the task; raise an InputError if it is something else."""
    if not isinstance(task, EvaluationTask):
        raise InputError(
            f"task must be a limes.evaluate.Task, got {type(task).__name__}: Task.of(model, ...)"
        )
    return task


def generator(rng: int, key: int) -> np.random.Generator:
    """Return the generator of a seed and a key: all explanations have the same draws.

    Raises
    ------
    InputError
        If the seed is no whole number >= 0.
    """
    if not is_position(rng):
        raise InputError(f"rng must be a whole number >= 0, got {rng!r}: explanations share draws by it")
    return np.random.default_rng([rng, key])


def _one_output(model: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    def predict(x: Floats) -> Floats:
        predictions = model(x)
        if predictions.ndim == 2 and predictions.shape[1] > 2:
            raise InputError(f"the model has {predictions.shape[1]} outputs: choose one with output=")
        return predictions if predictions.ndim == 1 else np.asarray(predictions[:, -1])

    return predict


@dataclass(frozen=True, eq=False)
class Attribution:
    """Values of an explanation of n rows, whoever made it.

    Parameters
    ----------
    values
        (n, d).
    errors
        Standard errors of the values (n, d); None unless the explainer has them.

    Examples
    --------
    >>> import limes
    >>> limes.evaluate.Attribution([[1.0, -2.0]]).errors is None
    True
    """

    values: Floats
    errors: Floats | None = None

    def __post_init__(self) -> None:
        for name, numbers in vars(self).items():
            if numbers is not None:
                object.__setattr__(self, name, float_array(_VALUES, numbers, 1, 2))


def attribution_of(task: EvaluationTask, explanation: Any, output: Any) -> Attribution:
    """Return the values of an explanation of the task's rows.

    Raises
    ------
    InputError
        See :func:`attribution`; also if the explanation is of other rows or columns.
    """
    result = attribution(explanation, output=output)
    if result.values.shape != check_task(task).rows.shape:
        raise InputError(
            f"the explanation has {result.values.shape[0]} rows and {result.values.shape[1]} features, "
            f"the task {task.rows.shape[0]} and {task.rows.shape[1]}: explain task.X, all of its columns"
        )
    return result


def attribution(explanation: Any, *, output: Any = None) -> Attribution:
    """Return the values of an explanation of limes, shap or lime, of a list of these, or an array (n, d).

    Parameters
    ----------
    explanation
        ``limes.Explanation``, ``shap.Explanation`` or anything else with ``values``; an explanation of
        ``lime``, or a list of them, one a row; an array; or an :class:`Attribution`, which is returned as it
        is.
    output
        The output, if there are several: its position, or ``lime``'s label. By default the last of two, which
        determines the other for two classes.

    Raises
    ------
    InputError
        If the object is of another kind, ``output`` has to choose one, or values are not finite.

    Examples
    --------
    >>> attribution([[1.0, -2.0]]).values.shape
    (1, 2)
    """
    result = _converted(explanation, output)
    if result.values.ndim != 2 or not np.isfinite(result.values).all():
        raise InputError(
            f"an explanation's values must be finite and (rows, features); got {result.values.shape}"
        )
    return result


def _converted(explanation: Any, output: Any) -> Attribution:
    if isinstance(explanation, Attribution):
        return explanation
    is_list = isinstance(explanation, list | tuple) and len(explanation) > 0
    is_list = is_list and not np.isscalar(explanation[0])
    if is_list and (_is_lime(explanation[0]) or _has_values(explanation[0])):
        return _stacked(explanation, output)
    if _is_lime(explanation):
        return _from_lime(explanation, output)
    if _has_values(explanation):
        return _from_values(explanation, output)
    if is_list or isinstance(explanation, np.ndarray):
        return Attribution(_select_output(float_array(_VALUES, explanation, 1, 2, 3), output))
    raise InputError(
        f"cannot read values of a {type(explanation).__name__}: pass an explanation of limes, shap or lime, "
        "a list of them, one a row, or an array (rows, features)"
    )


def _is_lime(explanation: Any) -> bool:
    return hasattr(explanation, "local_exp")


def _has_values(explanation: Any) -> bool:
    explanation = getattr(explanation, "coefficients", explanation)
    return hasattr(explanation, "values") and not callable(explanation.values)


def _stacked(explanations: Sequence[Any], output: Any) -> Attribution:
    parts = [attribution(explanation, output=output) for explanation in explanations]
    if len({part.values.shape[1] for part in parts}) > 1:
        raise InputError("explanations in a list must have the same number of features")
    errors = [part.errors for part in parts if part.errors is not None]
    return Attribution(
        np.concatenate([part.values for part in parts]),
        np.concatenate(errors) if len(errors) == len(parts) else None,
    )


def _from_values(explanation: Any, output: Any) -> Attribution:
    explanation = getattr(explanation, "coefficients", explanation)
    values = np.asarray(explanation.values, dtype=np.float64)
    errors = getattr(explanation, "standard_errors", None)
    # a single row of shap has no axis for rows
    base = getattr(explanation, "base_values", None)
    if values.ndim == 1 or (
        values.ndim == 2 and base is not None and np.ndim(base) == 1 and _one_row(values, base)
    ):
        values = values[None]
    return Attribution(
        _select_output(values, output), None if errors is None else _select_output(np.asarray(errors), output)
    )


def _one_row(values: Floats, base: Any) -> bool:
    """Return whether (d, k) values are those of one row, not of n: there are k base values, and not n."""
    return bool(len(base) == values.shape[1] != values.shape[0])


def _select_output(values: Floats, output: Any) -> Floats:
    """Return (n, d) from (n, d) or (n, d, k)."""
    if values.ndim < 3:
        return np.asarray(values, dtype=np.float64)
    if output is None and values.shape[2] > 2:
        raise InputError(
            f"the explanation has {values.shape[2]} outputs: choose one by its position, output="
        )
    position = values.shape[2] - 1 if output is None else output
    if not is_position(position) or position >= values.shape[2]:
        raise InputError(
            f"output={output!r} is no position of the explanation's {values.shape[2]} outputs, from 0"
        )
    return np.asarray(values[..., position], dtype=np.float64)


def _from_lime(explanation: Any, output: Any) -> Attribution:
    """Read ``local_exp``, lists of (feature, value) by label; for a regression, label 0 negates label 1."""
    labels = explanation.local_exp
    label = output
    if label is None:
        label = 1 if 1 in labels else next(iter(labels))
    if label not in labels:
        raise InputError(f"the explanation of lime has no label {label!r}; it has {sorted(labels)}")
    size = len(explanation.domain_mapper.feature_names)
    values = np.zeros((1, size))
    for j, value in labels[label]:
        values[0, j] = value
    return Attribution(values)
