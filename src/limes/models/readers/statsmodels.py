"""Results of statsmodels: sums of columns, and curves of such sums, by predictions or linear predictors.

A result predicts curve(params · x), whatever offset or exposure it was fitted with: these belong to rows.
With a formula, x are its terms: columns, and indicators of the levels of a column, are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._functions import Function, Identity, Lookup
from limes.models._calling.outputs import Methods, Predict
from limes.models._identity import qualified_name, replaced_method
from limes.models._reading import CannotRead, Schema
from limes.models.forms._base import Form, Linear, Reduced, Sum
from limes.models.forms._linked import Linked

# The curve of a model's class, or of the link of a generalised linear model
_CURVES: Mapping[str, str] = {
    f"statsmodels.{name}": curve
    for curve, names in {
        "identity": "GLS GLSAR MixedLM OLS QuantReg RLM WLS Identity",
        "exp": "GeneralizedPoisson NegativeBinomial NegativeBinomialP Poisson Log",
        "logistic": "Logit",
        "probit": "Probit",
        "cloglog": "CLogLog",
    }.items()
    for name in names.split()
}
# g[T.b], C(g)[b]: 1 where column g is b
_LEVEL = re.compile(r"^(?:C\((?P<factor>[^(),]+)\)|(?P<column>[^()\[\]:]+))\[(?:T\.)?(?P<level>[^\]]*)\]$")


def result(model: Any, method: str, schema: Schema | None) -> Form:
    """A fitted result: its mean ("predict") or its linear predictor ("decision_function")."""
    fitted = model.model
    if replaced_method(fitted) is not None or replaced_method(model._results) is not None:  # noqa: SLF001 - what predicts
        raise CannotRead("a method of the result's model was replaced by another function")
    is_glm = qualified_name(type(fitted)) == "statsmodels.GLM"
    kind = type(fitted.family.link if is_glm else fitted)
    curve = _CURVES.get(qualified_name(kind))
    if curve is None and is_glm:
        raise CannotRead(
            f"GLM with the link {kind.__name__}: identity, log, logit, probit and cloglog are read"
        )
    if curve is None:
        raise CannotRead(f"limes cannot read statsmodels' {kind.__name__} yet")
    params = np.asarray(model.params, dtype=np.float64)
    if params.ndim > 1:
        raise CannotRead(f"{kind.__name__} has several linear predictors, of which softmax is taken")
    # a dispersion may follow the coefficients, or variances of groups, whose own effects predict ignores
    params = params[: fitted.exog.shape[1]]
    margin = _of_formula(fitted, params, schema) if hasattr(fitted, "formula") else Linear(params)
    return margin if method == "decision_function" or curve == "identity" else Linked(margin, curve)


def _of_formula(fitted: Any, params: Floats, schema: Schema | None) -> Form:
    if schema is None:
        raise CannotRead("a formula names columns: pass the background as a table with names")
    intercept = np.zeros(())
    lines = np.zeros(len(schema.names))
    levels: dict[int, dict[float, float]] = {}
    names = fitted.exog_names[: params.size]  # behind them stands the dispersion of counts
    for name, value in zip(map(str, names), params, strict=True):
        if name == "Intercept":
            intercept = intercept + value
        elif name in schema.names:
            lines[schema.names.index(name)] += value
        else:
            column, key = _indicator(name, schema)
            levels.setdefault(column, {})[key] = float(value)
    terms = [_term(line, levels.get(j, {})) for j, line in enumerate(lines)]
    functions, loadings = zip(*terms, strict=True)
    return Reduced(Sum(functions, loadings, intercept))


def _indicator(name: str, schema: Schema) -> tuple[int, float]:
    """The column and the code of the level whose indicator a term of a formula is."""
    match = _LEVEL.match(name)
    source = match and (match["factor"] or match["column"]).strip()
    if not match or source not in schema.names:
        raise CannotRead(
            f"the formula's term {name!r} is neither a column nor a level of one: columns computed in a "
            "Pipeline, or in the table, are read"
        )
    column = schema.names.index(source)
    texts = [str(level) for level in schema.levels[column]]
    if texts and match["level"] in texts:
        return column, float(texts.index(match["level"]))
    try:
        return column, np.nan if texts else float(match["level"])
    except ValueError as error:
        raise CannotRead(f"the level of {name!r} is not in the background's column") from error


def _term(line: float, levels: Mapping[float, float]) -> tuple[Function | None, Floats]:
    """The function of one column with its loading; a level that the formula does not know raises there."""
    if levels and line:
        raise CannotRead("the formula takes one column for a number and for a category")
    if not levels:
        return (Identity(), np.array([line])) if line else (None, np.zeros(1))
    keys = np.array(sorted(key for key in levels if not np.isnan(key)))
    values = np.array([[levels[key] for key in keys]])
    return Lookup(keys, values, np.full(1, np.nan), np.zeros(1)), np.ones(1)


def _linear_predictor(model: Any) -> Predict:
    """The sum behind a result; models without a curve have no such option."""
    options = signature(model.model.predict).parameters
    return partial(model.predict, **({"which": "linear"} if "which" in options else {}))


METHODS: Methods = {("statsmodels.ResultsWrapper", "decision_function"): _linear_predictor}
