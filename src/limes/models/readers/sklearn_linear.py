"""Linear models of scikit-learn, naive Bayes, quadratic discriminant analysis and kernel machines.

Joint log-likelihoods log P(class) + log P(x | class) of naive Bayes are sums of functions of one column, and
those of joint normal laws quadratic; two classes have one margin, the difference of theirs, k classes have k.
Kernel machines are f(x) = c + Σ_i a_i K(x, ζ_i), with kernels that are products of functions of one column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._functions import Decay, Polynomial
from limes.models._algebra import combine, map_outputs
from limes.models._calling.outputs import has_identity_link
from limes.models._feature_maps import ModelColumn, centered_map
from limes.models._folding import fold
from limes.models._identity import qualified_name
from limes.models._reading import CannotRead, Schema, dense, refuse_all_but_margin
from limes.models.forms._base import Form, GaussianKernels, Linear, Quadratic, Reduced, Sum, SumOfProducts
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


def _coefficients(model: Any) -> tuple[Floats, Floats]:
    return dense(model.coef_), np.asarray(model.intercept_, dtype=np.float64)


def _softmax_scale(model: Any) -> float:
    """1 where probabilities are the softmax of the margins; 0 where each class has a logistic function."""
    if type(model).__name__ == "SGDClassifier":
        return 0.0
    apart = getattr(model, "multi_class", "") == "ovr" or getattr(model, "solver", "") == "liblinear"
    return float(not apart)


# probabilities of SGDClassifier's Huber loss are no logistic of the margin
@with_probabilities(
    "effects",
    where=lambda model: type(model).__name__ != "SGDClassifier" or bool(model.loss == "log_loss"),
    scale=_softmax_scale,
)
def classifier(model: Any, method: str, schema: Schema | None) -> Linear:  # noqa: ARG001
    """coef_ (k, d), intercept_ (k,); two classes have one margin, and the logistic of it as probability."""
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


# -- joint log-likelihoods of classes ---------------------------------------------------------------------


@with_probabilities("effects")
def counts(model: Any, method: str, schema: Schema | None) -> Linear:  # noqa: ARG001
    """The log prior + Σ_j x_j feature_log_prob_[class, j]; the complement variant has no prior."""
    logs = _finite(model, model.feature_log_prob_)
    # a complement model of one class is the exception
    prior = type(model).__name__ == "MultinomialNB" or len(model.classes_) == 1
    start = model.class_log_prior_ if prior else np.zeros(len(logs))
    return Linear(_margin(logs).T, _margin(_finite(model, start)))


@with_probabilities("effects")
def binary(model: Any, method: str, schema: Schema | None) -> Forest | Linear:  # noqa: ARG001
    """The log prior + Σ_j log P(x_j > binarize | class), or of the complement."""
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
    node = np.arange(3 * len(above))
    is_root = node % 3 == 0
    return Forest(
        feature=np.where(is_root, node // 3, -1),
        threshold=np.where(is_root, threshold, 0.0),
        left=np.where(is_root, node + 1, -1),
        right=np.where(is_root, node + 2, -1),
        missing_left=np.zeros(node.size, dtype=np.bool_),
        value=np.stack([np.zeros_like(above), below, above], axis=1).reshape(node.size, *above.shape[1:]),
        roots=node[is_root],
        intercept=intercept,
        size=len(above),
    )


@with_probabilities("effects")
def normal(model: Any, method: str, schema: Schema | None) -> Reduced:  # noqa: ARG001
    """The log prior - Σ_j [log(2π var) + (x_j - theta)² / var] / 2."""
    theta, var = np.asarray(model.theta_, dtype=np.float64), _finite(model, model.var_)
    # parabolas about the mean of the classes' thetas: columns far from 0 keep their digits
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


def quadratic(model: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """The log prior - [log det C + (x - mean)ᵀ C⁻¹ (x - mean)] / 2 of each class, C = R diag(s) Rᵀ."""
    refuse_all_but_margin(model, method, "products")
    means = np.asarray(model.means_, dtype=np.float64)
    laws = list(zip(model.rotations_, model.scalings_, strict=True))  # R and s
    # in standardised columns, so that those far from 0 keep their digits
    center = means.mean(axis=0)
    scale = np.sqrt(np.mean([(rotation**2) @ scaling for rotation, scaling in laws], axis=0))
    matrices, coefs, constants = [], [], []
    for mean, (rotation, scaling), prior in zip((means - center) / scale, laws, model.priors_, strict=True):
        precision = (rotation / scaling) @ rotation.T * np.outer(scale, scale)
        matrices.append(-0.5 * precision)
        coefs.append(precision @ mean)
        constants.append(np.log(prior) - 0.5 * (np.log(scaling).sum() + mean @ precision @ mean))
    stacked = (np.stack(each, axis=-1) for each in (matrices, coefs, constants))
    form = Quadratic(*(each[..., 1] - each[..., 0] if len(means) == 2 else each for each in stacked))
    columns = [ModelColumn(j, centered_map(*ends)) for j, ends in enumerate(zip(center, scale, strict=True))]
    return fold(form, columns, [str(j) for j in range(center.size)])


# -- kernel machines --------------------------------------------------------------------------------------


def support_regressor(model: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """SVR and NuSVR."""
    return _support(model, schema, dense(model.dual_coef_)[0], np.asarray(model.intercept_)[0])


def support_one_class(model: Any, method: str, schema: Schema | None) -> Form:
    """OneClassSVM: decision_function, and score_samples, which is higher by the offset."""
    offset = {"decision_function": 0.0, "score_samples": float(np.asarray(model.offset_).ravel()[0])}
    if method not in offset:
        raise CannotRead(
            "OneClassSVM.predict returns +1 or -1, which is no sum of kernels; pass model.decision_function"
        )
    start = np.asarray(model.intercept_)[0] + offset[method]
    return _support(model, schema, dense(model.dual_coef_)[0], start)


def support_classifier(model: Any, method: str, schema: Schema | None) -> Form:
    """Margins of SVC and NuSVC: of two classes, or of each pair of classes."""
    refuse_all_but_margin(model, method, "kernels")
    dual, intercept = dense(model.dual_coef_), np.asarray(model.intercept_, dtype=np.float64)
    if len(model.classes_) == 2:
        return _support(model, schema, dual[0], intercept[0])
    if model.decision_function_shape != "ovo":
        raise CannotRead(
            f"decision_function_shape={model.decision_function_shape!r} counts the votes of "
            "pairs of classes, which is not a sum of kernels; set model.decision_function_shape = 'ovo' for "
            "the margin of each pair"
        )
    # support vectors are sorted by class; row c of dual holds a vector's weight against the c-th other class
    owner = np.repeat(np.arange(len(model.classes_)), model.n_support_)
    coef = [
        np.where(owner == a, dual[b - 1], 0.0) + np.where(owner == b, dual[a], 0.0)
        for a, b in combinations(range(len(model.classes_)), 2)
    ]
    return _support(model, schema, np.stack(coef, axis=1), intercept)


def _support(model: Any, schema: Schema | None, coef: Floats, intercept: Floats) -> Form:
    _numbers_only(model, schema)
    # "scale" needs the training data, fit stores the number
    return machine_form(model, model.support_vectors_, coef, intercept, model._gamma)  # noqa: SLF001


def kernel_ridge(model: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """KernelRidge."""
    _numbers_only(model, schema)
    coef = np.asarray(model.dual_coef_, dtype=np.float64)
    return machine_form(model, model.X_fit_, coef, np.zeros(coef.shape[1:]), model.gamma)


def _numbers_only(model: Any, schema: Schema | None) -> None:
    """Refuse columns that x holds as codes: scikit-learn would convert their texts to numbers."""
    for name, levels in zip(schema.names, schema.levels, strict=True) if schema else ():
        if levels:
            raise CannotRead(
                f"{type(model).__name__} reads the texts of column {name!r} as numbers; convert the column"
            )


_READ = "'rbf', 'laplacian', 'linear' and 'poly' of degree 2 are read exactly"
_UNKNOWN = "is not known to limes"
# Why a kernel is not read, by its name
_NO_PRODUCT: Mapping[str, str] = {
    "additive_chi2": "is a sum of fractions that limes does not integrate yet",
    "chi2": "is a product of exponentials of fractions that limes does not integrate yet",
    "cosine": "divides by the length of the row, which all columns make together",
    "precomputed": "needs the kernel's values, and does not depend on the columns",
    "sigmoid": "is tanh of a sum over columns, which is neither a sum nor a product of one function a column",
}


def machine_form(model: Any, centers: Any, coef: Floats, intercept: Floats, gamma: float | None) -> Form:
    """The form of c + Σ_i coef[i] K(x, centers[i]), by the name of a model's kernel and its options."""
    kernel = model.kernel
    if not isinstance(kernel, str):
        raise CannotRead(f"limes does not know what a kernel that is a callable computes; {_READ}")
    if kernel not in ("laplacian", "linear", "poly", "polynomial", "rbf"):
        raise CannotRead(f"kernel={kernel!r} {_NO_PRODUCT.get(kernel, _UNKNOWN)}; {_READ}")
    centers, rate = dense(centers).reshape(-1, model.n_features_in_), 1.0 / model.n_features_in_
    rates = np.full(centers.shape[1], rate if gamma is None else float(gamma))
    if kernel == "linear":
        return _linear(centers, coef, intercept)
    if kernel == "rbf":  # K = exp(-γ ‖x - ζ‖²)
        return _bumps(centers, coef, intercept, 2.0 * rates)
    if kernel == "laplacian":  # K = exp(-γ Σ_j |x_j - ζ_j|)
        return _decays(centers, coef, intercept, rates)
    degree = 3.0 if model.degree is None else model.degree
    if degree != 2:
        raise CannotRead(
            f"kernel='poly' of degree {degree} multiplies that many columns, and only products of two are "
            f"read; {_READ}"
        )
    return _polynomial(rates * centers, coef, intercept, 1.0 if model.coef0 is None else model.coef0)


def _linear(centers: Floats, coef: Floats, intercept: Floats) -> Form:
    return Linear(np.tensordot(centers, coef, axes=(0, 0)), intercept)


def _polynomial(centers: Floats, coef: Floats, intercept: Floats, shift: float = 0.0) -> Form:
    """K = (x·ζ + shift)²."""
    matrix = np.einsum("ij,ik,i...->jk...", centers, centers, coef)
    slopes = 2.0 * shift * np.tensordot(centers, coef, axes=(0, 0))
    return Quadratic(matrix, slopes, intercept + shift**2 * coef.sum(axis=0))


def _bumps(centers: Floats, coef: Floats, intercept: Floats, precision: Floats) -> GaussianKernels:
    """A precision of 0 reads no column."""
    with np.errstate(divide="ignore"):
        return GaussianKernels(centers, coef, 1.0 / np.sqrt(precision), intercept)


def _decays(centers: Floats, coef: Floats, intercept: Floats, rates: Floats) -> Form:
    """A rate of 0 reads no column."""
    pairs = zip(centers.T, rates.tolist(), strict=True)
    functions = tuple(Decay(column, rate) if rate > 0 else None for column, rate in pairs)
    return Reduced(SumOfProducts(functions, coef, np.asarray(intercept, dtype=np.float64)))


# -- Gaussian processes -----------------------------------------------------------------------------------


def gaussian_process(model: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """Posterior mean of GaussianProcessRegressor: std · Σ_i α_i K(x, ζ_i) + mean."""
    if not hasattr(model, "X_train_"):
        raise CannotRead("GaussianProcessRegressor is not fitted: its prior mean is 0 everywhere")
    _numbers_only(model, schema)
    centers, alpha = dense(model.X_train_), np.asarray(model.alpha_, dtype=np.float64)
    mean, std = np.asarray(model._y_train_mean), np.asarray(model._y_train_std)  # noqa: SLF001 - stored nowhere else
    if alpha.size == len(alpha):  # one target, (n,) or (n, 1)
        alpha, mean, std = alpha.ravel(), mean.reshape(()), std.reshape(())
    terms = _expand_kernel(model.kernel_, centers.shape[1])
    constant = Linear(np.zeros((centers.shape[1], *alpha.shape[1:])))  # of a kernel that is only noise
    parts = [_read_monomial(term, centers, alpha) for term in terms] or [constant]
    normal = std if alpha.ndim == 1 else np.diag(np.broadcast_to(std, alpha.shape[1:]))
    return combine([map_outputs(combine(parts), normal)], intercept=mean)


@dataclass(frozen=True)
class _Monomial:
    """weight · exp(-Σ_j precision_j (x_j - ζ_j)²/2 - Σ_j rate_j |x_j - ζ_j|) · (x·ζ) ** dots."""

    # Kernels are sums of these.

    weight: float
    precision: Floats
    rate: Floats
    dots: int = 0


def _read_monomial(term: _Monomial, centers: Floats, alpha: Floats) -> Form:
    machine = centers, term.weight * alpha, np.zeros(alpha.shape[1:])
    narrow, decaying = bool(term.precision.any()), bool(term.rate.any())
    if narrow and decaying:
        raise CannotRead("a product of RBF with an exponential kernel is not read")
    if term.dots > 2 or (term.dots and (narrow or decaying)):
        raise CannotRead(
            "a product of DotProduct with RBF or an exponential kernel, or with more than one DotProduct, is "
            "not read"
        )
    if decaying:
        return _decays(*machine, term.rate)
    if narrow:
        return _bumps(*machine, term.precision)
    if term.dots == 0:
        slopes = np.zeros((centers.shape[1], *alpha.shape[1:]))
        return Linear(slopes, term.weight * alpha.sum(axis=0))
    return _linear(*machine) if term.dots == 1 else _polynomial(*machine)


_READ_KERNELS = (
    "sums, products and powers of RBF, Matern(nu=inf), PairwiseKernel('rbf' or 'laplacian'), ConstantKernel, "
    "WhiteKernel and DotProduct are read exactly"
)
_ROUND = "is a function of the distance that no product of one function a column equals"
_NO_PRODUCT_KERNELS: Mapping[str, str] = {
    "CompoundKernel": "returns several kernels at once",
    "ExpSineSquared": _ROUND,
    "RationalQuadratic": _ROUND,
}


def _expand_kernel(kernel: Any, d: int) -> list[_Monomial]:
    none = np.zeros(d)
    match qualified_name(type(kernel)).removeprefix("sklearn."):
        case "ConstantKernel":
            return [_Monomial(float(kernel.constant_value), none, none)]
        case "WhiteKernel":
            return []  # the noise of different rows is independent
        case "RBF" | "Matern" | "PairwiseKernel":
            return [_of_distance(kernel, d)]
        case "DotProduct":
            return [_Monomial(float(kernel.sigma_0) ** 2, none, none), _Monomial(1.0, none, none, dots=1)]
        case "Sum":
            return _expand_kernel(kernel.k1, d) + _expand_kernel(kernel.k2, d)
        case "Product":
            return _multiplied(_expand_kernel(kernel.k1, d), _expand_kernel(kernel.k2, d))
        case "Exponentiation":
            return _power(_expand_kernel(kernel.kernel, d), float(kernel.exponent))
    name = type(kernel).__qualname__
    raise CannotRead(f"the kernel {name} {_NO_PRODUCT_KERNELS.get(name, _UNKNOWN)}; {_READ_KERNELS}")


def _of_distance(kernel: Any, d: int) -> _Monomial:
    none = np.zeros(d)
    if type(kernel).__qualname__ == "PairwiseKernel":  # exp(-γ ‖x - ζ‖²) or exp(-γ ‖x - ζ‖₁), by its metric
        if kernel.metric not in ("rbf", "laplacian") or kernel.pairwise_kernels_kwargs:
            raise CannotRead(f"the kernel PairwiseKernel({kernel.metric!r}) is not read; {_READ_KERNELS}")
        gamma = np.full(d, float(kernel.gamma))
        return _Monomial(1.0, 2.0 * gamma, none) if kernel.metric == "rbf" else _Monomial(1.0, none, gamma)
    lengths = np.broadcast_to(np.asarray(kernel.length_scale, dtype=np.float64), (d,))
    smoothness = getattr(kernel, "nu", np.inf)  # of Matern, which is RBF at nu = inf
    if smoothness == np.inf:
        return _Monomial(1.0, lengths**-2.0, none)
    if smoothness == 0.5 and d == 1:  # exp(-distance / length), a product in one dimension only
        return _Monomial(1.0, none, 1.0 / lengths)
    raise CannotRead(f"the kernel Matern(nu={smoothness:g}) {_ROUND}; {_READ_KERNELS}")


def _power(base: list[_Monomial], exponent: float) -> list[_Monomial]:
    if len(base) == 1 and base[0].dots == 0:
        (only,) = base
        return [_Monomial(only.weight**exponent, only.precision * exponent, only.rate * exponent)]
    if exponent not in (1.0, 2.0):
        raise CannotRead(f"a sum of kernels to the power {exponent:g} is not read; powers 1 and 2 are")
    return base if exponent == 1.0 else _multiplied(base, base)


def _multiplied(first: list[_Monomial], second: list[_Monomial]) -> list[_Monomial]:
    return [
        _Monomial(a.weight * b.weight, a.precision + b.precision, a.rate + b.rate, a.dots + b.dots)
        for a in first
        for b in second
    ]
