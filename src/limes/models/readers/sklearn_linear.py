"""Linear models of scikit-learn, naive Bayes and quadratic discriminant analysis, by predictions or margins.

The joint log-likelihood of naive Bayes, log P(class) + log P(x | class), is a sum.
With x_j a count, the summand is linear (multinomial, complement); where x_j is 0 or 1, it has two values
(Bernoulli); where x_j is normal given the class, it is a parabola. That of a joint normal law is quadratic.
Two classes have one margin, the difference of their joint log-likelihoods; k classes have k.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._functions import Polynomial
from limes.models._calling.outputs import has_identity_link
from limes.models._folding.feature_maps import Affine, ModelColumn, MonotoneMap
from limes.models._folding.fold import fold
from limes.models._reading import CannotRead, Schema, dense, refuse_all_but_margin
from limes.models.forms._base import Form, Linear, Quadratic, Reduced, Sum
from limes.models.forms._linked import Linked
from limes.models.forms._trees import Forest
from limes.models.readers.links import with_probabilities


def regressor(model: Any, method: str, schema: Schema | None) -> Linear:  # noqa: ARG001
    """coef_ (d,) or (k, d), intercept_ a number or (k,)."""
    coef, intercept = _coefficients(model)
    if hasattr(model.coef_, "toarray"):
        coef = coef.reshape(-1)  # models that have sparsify() predict one target
    if coef.ndim == 1 and intercept.ndim == 1:
        intercept = intercept[0]  # SGDRegressor and LinearSVR store one number in an array
    return Linear(coef.T, intercept)


def _is_logistic(model: Any) -> bool:
    """Return whether probabilities are the logistic of the margin; not with SGDClassifier's Huber loss."""
    return type(model).__name__ != "SGDClassifier" or bool(model.loss == "log_loss")


def _softmax_scale(model: Any) -> float:
    """1 where probabilities are the softmax of the margins; 0 where each class has a logistic function."""
    if type(model).__name__ == "SGDClassifier":
        return 0.0
    apart = getattr(model, "multi_class", "") == "ovr" or getattr(model, "solver", "") == "liblinear"
    return float(not apart)


@partial(with_probabilities, where=_is_logistic, scale=_softmax_scale)
def classifier(model: Any, method: str, schema: Schema | None) -> Linear:  # noqa: ARG001
    """coef_ (k, d), intercept_ (k,); two classes have one margin, and the logistic of it as probability."""
    refuse_all_but_margin(model, method, "effects")
    coef, intercept = _coefficients(model)
    if coef.ndim == 1 or len(coef) == 1:  # RidgeClassifier stores (d,) for two classes
        return Linear(coef.reshape(-1), intercept.reshape(-1)[0])
    return Linear(coef.T, intercept)


def generalized(model: Any, method: str, schema: Schema | None) -> Linear | Linked:
    """The sum coef · x + intercept, which is the prediction with the identity link, or its exponential."""
    margin = regressor(model, method, schema)
    return margin if method != "predict" or has_identity_link(model) else Linked(margin, "exp")


def partial_least_squares(model: Any, method: str, schema: Schema | None) -> Linear:  # noqa: ARG001
    """The sum coef · (x - mean) + intercept; coef_ (k, d) is in the units of the columns already."""
    coef, intercept = _coefficients(model)
    mean = np.asarray(model._x_mean, dtype=np.float64)  # noqa: SLF001 - stored nowhere else
    intercept = intercept - coef @ mean
    one_output = model._predict_1d  # noqa: SLF001 - whether predictions are (n,) or (n, 1)
    return Linear(coef[0], intercept[0]) if one_output else Linear(coef.T, intercept)


def one_class(model: Any, method: str, schema: Schema | None) -> Linear:  # noqa: ARG001
    """The sum coef · x - offset."""
    if method != "decision_function":
        raise CannotRead(
            f"{method} of SGDOneClassSVM is the sign of its margin, which is not a sum of effects; the "
            "margin is read exactly with output='margin'"
        )
    coef = dense(model.coef_).reshape(-1)
    return Linear(coef, -np.asarray(model.offset_, dtype=np.float64).reshape(-1)[0])


def _coefficients(model: Any) -> tuple[Floats, Floats]:
    coef = dense(model.coef_)
    return coef, np.asarray(model.intercept_, dtype=np.float64)


@with_probabilities
def counts(model: Any, method: str, schema: Schema | None) -> Linear:  # noqa: ARG001
    """The log prior + Σ_j x_j feature_log_prob_[class, j]; the complement variant has no prior."""
    refuse_all_but_margin(model, method, "effects")
    logs = _finite(model, model.feature_log_prob_)
    # a complement model of one class is the exception
    prior = type(model).__name__ == "MultinomialNB" or len(model.classes_) == 1
    start = model.class_log_prior_ if prior else np.zeros(len(logs))
    return Linear(_margin(logs).T, _margin(_finite(model, start)))


@with_probabilities
def binary(model: Any, method: str, schema: Schema | None) -> Forest | Linear:  # noqa: ARG001
    """The log prior + Σ_j log P(x_j > binarize | class), or of the complement."""
    refuse_all_but_margin(model, method, "effects")
    yes = np.asarray(model.feature_log_prob_, dtype=np.float64)
    with np.errstate(divide="ignore"):
        no = np.log(1.0 - np.exp(yes))  # as the model computes it
    yes, no = _margin(_finite(model, yes)), _margin(_finite(model, no))
    start = _margin(_finite(model, model.class_log_prior_))
    if model.binarize is None:
        return Linear((yes - no).T, start + no.sum(axis=-1))
    return _stumps(yes.T, no.T, float(model.binarize), start)


def _stumps(above: Floats, below: Floats, threshold: float, intercept: Floats) -> Forest:
    """Σ_j above[j] where x_j > threshold, else below[j]; values (d,) or (d, k)."""
    size = len(above)
    roots = 3 * np.arange(size)
    leaves = np.full(size, -1)
    inner = np.zeros(size)
    return Forest(
        feature=np.column_stack([np.arange(size), leaves, leaves]).ravel(),
        threshold=np.column_stack([np.full(size, threshold), inner, inner]).ravel(),
        left=np.column_stack([roots + 1, leaves, leaves]).ravel(),
        right=np.column_stack([roots + 2, leaves, leaves]).ravel(),
        missing_left=np.zeros(3 * size, dtype=np.bool_),
        value=np.stack([np.zeros_like(above), below, above], axis=1).reshape(3 * size, *above.shape[1:]),
        roots=roots,
        intercept=intercept,
        size=size,
    )


@with_probabilities
def normal(model: Any, method: str, schema: Schema | None) -> Reduced:  # noqa: ARG001
    """The log prior - Σ_j [log(2π var) + (x_j - theta)² / var] / 2.

    Parabolas are written about the mean of the classes' thetas, so that columns far from 0 keep their digits.
    """
    refuse_all_but_margin(model, method, "effects")
    theta, var = np.asarray(model.theta_, dtype=np.float64), _finite(model, model.var_)
    center = theta.mean(axis=0)
    offset = theta - center
    # in t = x - center: (t - offset)² = t² - 2 offset t + offset²
    linear, square = _margin(offset / var), _margin(-0.5 / var)
    constant = -0.5 * (np.log(2.0 * np.pi * var) + offset**2 / var).sum(axis=1)
    powers = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    return Reduced(
        Sum(
            tuple(Polynomial(powers, float(middle), np.full(2, np.nan)) for middle in center),
            tuple(np.stack(pair) for pair in zip(linear.T, square.T, strict=True)),
            _margin(np.log(_finite(model, model.class_prior_)) + constant),
        )
    )


def _margin(likelihoods: Floats) -> Floats:
    """The margins of classes (k, ...): of two classes the difference, without the first axis."""
    return np.asarray(likelihoods[1] - likelihoods[0] if len(likelihoods) == 2 else likelihoods)


def _finite(model: Any, logs: Any) -> Floats:
    finite = np.asarray(logs, dtype=np.float64)
    if not np.isfinite(finite).all():
        raise CannotRead(
            f"{type(model).__name__} has a column or a class of probability 0 or 1, whose log-odds are "
            "infinite: fit it with a larger alpha"
        )
    return finite


# -- quadratic discriminant analysis ----------------------------------------------------------------------


def quadratic(model: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """The log prior - [log det C + (x - mean)ᵀ C⁻¹ (x - mean)] / 2 of each class; of two the difference.

    C = R diag(s) Rᵀ, with R in rotations_ and s in scalings_. The quadratic is written in standardised
    columns, so that those far from 0 keep their digits.
    """
    refuse_all_but_margin(model, method, "products")
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


def _standardised(column: int, center: float, scale: float) -> ModelColumn:
    return ModelColumn(
        column, MonotoneMap(partial(_scaled, center, scale), Affine(1.0 / scale, float(center)))
    )


def _scaled(center: float, scale: float, x: Any) -> Any:
    return (x - center) / scale
