"""The account of a change of models, and of a change of a row and its model together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._checks import check_choice, listed
from limes._explainers.tabular import TabularExplainer
from limes._explanation import Explanation
from limes._explanation.attribution import CONTRIBUTION_AXES, Contributions, changed
from limes._explanation.differences import made_of_both, spent_on_both
from limes.exceptions import InputError, ModelError
from limes.models._columns import fitted_names

# Under which model the changed values of a row are explained
_UNDER = ("new", "old", "both")
_NEW = "values under the new model, models at the earlier row"
_OLD = "values under the old model, models at the present row"
# What to do where models have other columns or labels
_ALIKE = (
    "pass two functions that take one table and answer alike, such as "
    "lambda table: model.predict_proba(table[its_columns])[:, 1]"
)


def between_models(
    old: Any,
    new: Any,
    X: Any,
    *,
    before: Any = None,
    values_under: str = "new",
    background: Any = None,
    ids: Any = None,
    **options: Any,
) -> Explanation:
    r"""Explain why two models answer otherwise, at the same rows, or at rows that have changed as well.

    Contributions are linear in the model, so that under one law

        f_new(ξ) - f_old(ξ) = (E f_new - E f_old) + Σ_j (φ_j^new - φ_j^old).

    The first term is the change of what is usual, the base of the result. With ``before``, the rows as they
    were when the old model answered,

        f_new(ξ) - f_old(ξ') = [f_new(ξ) - f_new(ξ')] + [f_new(ξ') - f_old(ξ')],

    and each column has two features: "income (value)", what its new value does under the new model, and
    "income (model)", what the new model makes of its earlier value.

    Parameters
    ----------
    old, new
        Two models, or explainers of them. The law is that of ``new``, if it is a `TabularExplainer`: the old
        model is explained against its background, under its options.
    X
        One row or many.
    before
        The earlier row, or one for each row of ``X``. None: the same rows.
    values_under
        The model under which changed values are explained: "new", with the two models compared at the
        earlier row; "old", with the two compared at the present row; "both", half of each. The three differ
        by how the change of the model depends on the change of values.
    background, **options
        As of `TabularExplainer`, where ``new`` is a model.
    ids
        Names of the rows.

    Returns
    -------
    Explanation
        Its ``predictions`` are the differences of answers, and its contributions add up to them. It is exact
        where both models are read; else standard errors are those of both added. There are no coefficients.

    Raises
    ------
    InputError
        If there is no background, or the models have other columns or outputs.
    ModelError
        If a model fails.

    Examples
    --------
    >>> import limes
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> old = LinearRegression().fit(X, X[:, 0])
    >>> new = LinearRegression().fit(X, X[:, 0] + 2.0 * X[:, 1])
    >>> change = limes.between_models(old, new, X[3], background=X)
    >>> change.predictions.round(6).tolist(), (np.abs(change.contributions.values) > 1e-9).tolist()
    ([2.0], [[False, True]])
    >>> both = limes.between_models(old, new, X[3], before=X[0], background=X)
    >>> both.feature_names, both.predictions.round(6).tolist()
    (('x0 (value)', 'x1 (value)', 'x0 (model)', 'x1 (model)'), [3.0])
    """
    check_choice("values_under", values_under, _UNDER)
    if not isinstance(new, TabularExplainer):
        if background is None:
            raise InputError(
                "the two models are compared under one law: pass background=, a table of rows, or an "
                "explainer, limes.TabularExplainer(new, background), in the place of the new model"
            )
        with _advising(new, background):
            new = TabularExplainer(new, background, **options)
    elif background is not None or options:
        raise InputError("new is an explainer, which has a background and options: pass no others")
    with _advising(old, X if background is None else background):
        elder = new._of_model(old)  # noqa: SLF001 - the same law
    if before is None:
        return _change(elder, new, X, ids)
    by_order = []
    if values_under != "old":
        by_order.append(_joined(new.between(X, before, ids=ids), _change(elder, new, before), _NEW))
    if values_under != "new":
        by_order.append(_joined(elder.between(X, before, ids=ids), _change(elder, new, X), _OLD))
    return by_order[0] if len(by_order) == 1 else _mean(*by_order)


@contextmanager
def _advising(model: Any, background: Any) -> Iterator[None]:
    """Say what to do about a model that was fitted on other columns than the table has."""
    try:
        yield
    except ModelError as error:
        names = fitted_names(model)
        if not names or {*names} == {*getattr(background, "columns", names)}:
            raise
        raise ModelError(f"{error}; or {_ALIKE}", batch=error.batch) from error


def _change(old: TabularExplainer, new: TabularExplainer, X: Any, ids: Any = None) -> Explanation:
    later, earlier = new.contributions(X, ids=ids), old.contributions(X, ids=ids)
    if later.output_names != earlier.output_names:
        names, others = (listed(its.output_names) for its in (earlier, later))
        raise InputError(f"the old model has other outputs ({names}) than the new one ({others}): {_ALIKE}")
    return later.minus(earlier)


def _joined(values: Explanation, models: Explanation, order: str) -> Explanation:
    """The account of what changed values do, and of what the change of models does, column by column."""
    if len(models) < len(values):  # one earlier row
        models = models[[0] * len(values)]
    names = values.feature_names
    parts = [values.contributions, models.contributions]

    def beside(name: str) -> Floats:
        return np.concatenate([getattr(part, name) for part in parts], axis=1)

    return changed(
        values,
        contributions=parts[1].changed(
            **{name: beside(name) for name in ("values", "standard_errors", "alone", "last")},
            base_errors=parts[0].base_errors + parts[1].base_errors,
            **spent_on_both(*parts),
        ),
        predictions=values.predictions - parts[0].base_values + models.predictions,
        feature_names=(*(f"{name} (value)" for name in names), *(f"{name} (model)" for name in names)),
        conditions=tuple(
            (*changes, *(f"new model: {condition}" for condition in conditions))
            for changes, conditions in zip(values.conditions, models.conditions, strict=True)
        ),
        data=np.concatenate([values.data, models.data], axis=1),
        **made_of_both(values, models),
        provenance={**models.provenance, "order": order},
        explainer=None,
        fit=None,
    )


def _mean(first: Explanation, second: Explanation) -> Explanation:
    """Half of each account, which add up to the same."""
    halves, others = first.contributions, second.contributions
    numbers = {
        name: (getattr(halves, name) + getattr(others, name)) / 2.0
        for name in CONTRIBUTION_AXES
        if name not in ("calls", "row_converged")
    }
    return changed(
        first,
        contributions=Contributions(**numbers, **spent_on_both(halves, others)),
        **made_of_both(first, second),
        provenance={**first.provenance, "order": "half of each: " + _NEW + ", and " + _OLD},
    )
