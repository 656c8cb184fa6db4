"""Transformers that make functions of several columns, before linear models.

Products of two columns make a linear model quadratic; random Fourier features make it a sum of cosines of
sums, whose expectations are products of characteristic functions; Nystroem's make it a kernel machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.models._folding.feature_maps import MonotoneMap, Values, numbers
from limes.models._folding.guards import Accepted, Guard
from limes.models._reading import CannotRead
from limes.models.forms._base import Form
from limes.models.forms._linked import Ridges
from limes.models.forms._reducible import Linear, from_polynomial_features
from limes.models.readers.sklearn_kernels import Machine, machine_form
from limes.models.readers.sklearn_transformers import StepColumns, refuse_sparse

# (fitted transformer, input columns, linear form over its outputs) -> form over its columns, and these
Expand = Callable[[Any, StepColumns, Linear], tuple[Form, StepColumns]]


def polynomial_features(step: Any, columns: StepColumns, form: Linear) -> tuple[Form, StepColumns]:
    """Products of two columns, squares, and columns."""
    try:
        return from_polynomial_features(np.asarray(step.powers_), form.coef, form.intercept), columns
    except InputError as error:
        raise CannotRead(f"PolynomialFeatures of degree 2 is read: {error}") from error


def fourier_features(step: Any, columns: StepColumns, form: Linear) -> tuple[Form, StepColumns]:
    """√(2/m) cos(w_h·x + b_h)."""
    scale = np.sqrt(2.0 / step.n_components)
    weights, offsets = np.asarray(step.random_weights_), np.asarray(step.random_offset_)
    return Ridges(weights.T, offsets, scale * form.coef, "cos", form.intercept), columns


def skewed_chi2_features(step: Any, columns: StepColumns, form: Linear) -> tuple[Form, StepColumns]:
    """√(2/m) cos(w_h·log(x + skewedness) + b_h); the transformer raises from -skewedness downwards."""
    refuse_sparse(columns)
    skewedness = float(step.skewedness)
    start = float(np.nextafter(-skewedness, np.inf))
    label = type(step).__qualname__
    log = MonotoneMap(partial(_shifted_log, skewedness), start=start, kinks=(), name=label)
    guards = (Guard(column, Accepted(lower=start), label) for column in columns.columns)
    logarithms = columns.each([log] * len(columns.columns)).with_guards(*columns.guards, *guards)
    return fourier_features(step, logarithms, form)


def _shifted_log(shift: float, values: Values) -> Floats:
    return np.asarray(np.log(numbers(values) + shift))


def nystroem(step: Any, columns: StepColumns, form: Linear) -> tuple[Form, StepColumns]:
    """K(x, components) normalizationᵀ: a kernel machine with the components as centers."""
    gamma = 1.0 / step.n_features_in_ if step.gamma is None else step.gamma
    if step.kernel_params:
        raise CannotRead("kernel_params= is for kernels that limes does not read")
    machine = Machine(
        centers=np.asarray(step.components_, dtype=np.float64),
        coef=np.asarray(step.normalization_, dtype=np.float64).T @ form.coef,
        intercept=form.intercept,
        gamma=float(gamma),
        degree=3.0 if step.degree is None else step.degree,
        coef0=1.0 if step.coef0 is None else step.coef0,
    )
    return machine_form(step.kernel, machine), columns
