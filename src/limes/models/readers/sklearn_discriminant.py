"""Quadratic discriminant analysis of scikit-learn: the log-likelihood of a normal law is quadratic."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models.folding.feature_maps import Column
from limes.models.folding.fold import fold
from limes.models.folding.kinds import Affine, Monotone
from limes.models.quadratic import Quadratic
from limes.models.read import CannotRead
from limes.models.reductions import Form
from limes.models.schema import Schema


def quadratic(model: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """The log prior - [log det C + (x - mean)ᵀ C⁻¹ (x - mean)] / 2 of each class; of two the difference.

    C = R diag(s) Rᵀ, with R in rotations_ and s in scalings_. The quadratic is written in standardised
    columns, so that those far from 0 keep their digits.
    """
    if method != "decision_function":
        raise CannotRead(
            "the probabilities of QuadraticDiscriminantAnalysis are not a sum of products; its margin is "
            "read exactly with output='margin'"
        )
    means = np.asarray(model.means_, dtype=np.float64)
    laws = list(zip(model.rotations_, model.scalings_, strict=True))
    center = means.mean(axis=0)
    scale = np.sqrt(np.mean([(rotation**2) @ scaling for rotation, scaling in laws], axis=0))
    parts = zip(means, laws, model.priors_, strict=True)
    classes = [_log_likelihood((mean - center) / scale, law, scale, prior) for mean, law, prior in parts]
    matrix, coef, constant = (np.stack(each, axis=-1) for each in zip(*classes, strict=True))
    if len(classes) == 2:
        matrix, coef, constant = (each[..., 1] - each[..., 0] for each in (matrix, coef, constant))
    columns = [_standardised(j, *ends) for j, ends in enumerate(zip(center, scale, strict=True))]
    return fold(Quadratic(matrix, coef, constant), columns, [str(j) for j in range(center.size)])


def _log_likelihood(
    mean: Floats, law: tuple[Floats, Floats], scale: Floats, prior: float
) -> tuple[Floats, Floats, Floats]:
    """Matrix, coefficients and constant of one class, in standardised columns with its mean there."""
    rotation, scaling = law
    precision = (rotation / scaling) @ rotation.T * np.outer(scale, scale)
    constant = np.log(prior) - 0.5 * (np.log(scaling).sum() + mean @ precision @ mean)
    return -0.5 * precision, precision @ mean, np.asarray(constant)


def _standardised(column: int, center: float, scale: float) -> Column:
    return Column(column, Monotone(partial(_scaled, center, scale), Affine(1.0 / scale, float(center))))


def _scaled(center: float, scale: float, x: Any) -> Any:
    return (x - center) / scale
