"""Kernel machines of scikit-learn: support vectors, kernel ridge, Gaussian processes.

All of them are f(x) = c + Σ_i a_i K(x, ζ_i). An RBF kernel is a product of Gaussian bumps over columns, a
Laplacian one a product of exp(-γ |x_j - ζ_j|), a linear one makes f linear, a polynomial of degree two makes
it quadratic. Other kernels are no such products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes._functions import Decay
from limes.models._algebra import combine, map_outputs
from limes.models._identity import qualified_name
from limes.models._reading import CannotRead, Schema, dense, refuse_all_but_margin
from limes.models.forms._base import Form, GaussianKernels, Linear, Quadratic, Reduced, SumOfProducts


@dataclass(frozen=True)
class Machine:
    """c + Σ_i coef[i] K(x, centers[i]) and the numbers that kernels use."""

    centers: Floats
    coef: Floats
    intercept: Floats
    gamma: float
    degree: float
    coef0: float


def regressor(model: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """SVR and NuSVR."""
    _numbers_only(model, schema)
    return _support(model, dense(model.dual_coef_)[0], np.asarray(model.intercept_)[0])


def one_class(model: Any, method: str, schema: Schema | None) -> Form:
    """OneClassSVM: decision_function, and score_samples, which is higher by the offset."""
    offset = {"decision_function": 0.0, "score_samples": float(np.asarray(model.offset_).ravel()[0])}
    if method not in offset:
        raise CannotRead(
            "OneClassSVM.predict returns +1 or -1, which is no sum of kernels; pass model.decision_function"
        )
    _numbers_only(model, schema)
    start = np.asarray(model.intercept_)[0] + offset[method]
    return _support(model, dense(model.dual_coef_)[0], start)


def classifier(model: Any, method: str, schema: Schema | None) -> Form:
    """Margins of SVC and NuSVC: of two classes, or of each pair of classes."""
    refuse_all_but_margin(model, method, "kernels")
    _numbers_only(model, schema)
    dual, intercept = dense(model.dual_coef_), np.asarray(model.intercept_, dtype=np.float64)
    if len(model.classes_) == 2:
        return _support(model, dual[0], intercept[0])
    if model.decision_function_shape != "ovo":
        raise CannotRead(
            f"decision_function_shape={model.decision_function_shape!r} counts the votes of "
            "pairs of classes, which is not a sum of kernels; set model.decision_function_shape = 'ovo' for "
            "the margin of each pair"
        )
    return _support(model, _pairwise(dual, np.asarray(model.n_support_, dtype=np.int64)), intercept)


def _pairwise(dual: Floats, counts: Ints) -> Floats:
    """Weights of the support vectors in each pair of classes, (m, pairs).

    Support vectors are sorted by class; row c of ``dual`` holds a vector's weight against the c-th other
    class.
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    coef = []
    for a, b in combinations(range(len(counts)), 2):
        coef.append(np.where(owner == a, dual[b - 1], 0.0) + np.where(owner == b, dual[a], 0.0))
    return np.stack(coef, axis=1)


def _support(model: Any, coef: Floats, intercept: Floats) -> Form:
    as_form = _kernel(model.kernel)
    machine = Machine(
        centers=dense(model.support_vectors_).reshape(-1, model.n_features_in_),
        coef=coef,
        intercept=intercept,
        gamma=float(model._gamma),  # noqa: SLF001 - "scale" needs the training data, fit stores the number here
        degree=model.degree,
        coef0=model.coef0,
    )
    return as_form(machine)


def ridge(model: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """KernelRidge."""
    _numbers_only(model, schema)
    as_form, coef = _kernel(model.kernel), np.asarray(model.dual_coef_, dtype=np.float64)
    machine = Machine(
        centers=dense(model.X_fit_),
        coef=coef,
        intercept=np.zeros(coef.shape[1:]),
        gamma=1.0 / model.n_features_in_ if model.gamma is None else float(model.gamma),
        degree=model.degree,
        coef0=model.coef0,
    )
    return as_form(machine)


def machine_form(name: Any, machine: Machine) -> Form:
    """The form of a machine, by the name of its kernel."""
    return _kernel(name)(machine)


def _kernel(name: Any) -> Callable[[Machine], Form]:
    if not isinstance(name, str):
        raise CannotRead(f"limes does not know what a kernel that is a callable computes; {_READ}")
    if name not in _KERNELS:
        raise CannotRead(f"kernel={name!r} {_NO_PRODUCT.get(name, UNKNOWN)}; {_READ}")
    return _KERNELS[name]


_READ = "'rbf', 'laplacian', 'linear' and 'poly' of degree 2 are read exactly"
# Why a kernel is not read, by its name
_NO_PRODUCT: Mapping[str, str] = {
    "additive_chi2": "is a sum of fractions that limes does not integrate yet",
    "chi2": "is a product of exponentials of fractions that limes does not integrate yet",
    "cosine": "divides by the length of the row, which all columns make together",
    "precomputed": "needs the kernel's values, and does not depend on the columns",
    "sigmoid": "is tanh of a sum over columns, which is neither a sum nor a product of one function a column",
}


def _linear(machine: Machine) -> Form:
    return Linear(np.tensordot(machine.centers, machine.coef, axes=(0, 0)), machine.intercept)


def _gaussian(machine: Machine) -> Form:
    """K = exp(-γ ‖x - ζ‖²); γ = 0 reads no column."""
    precision = np.full(machine.centers.shape[1], 2.0 * machine.gamma)
    return _bumps(machine.centers, machine.coef, precision, machine.intercept)


def _polynomial(machine: Machine) -> Form:
    """K = (γ x·ζ + r)²."""
    if machine.degree != 2:
        raise CannotRead(
            f"kernel='poly' of degree {machine.degree} multiplies that many columns, and only "
            f"products of two are read; {_READ}"
        )
    centers = machine.gamma * machine.centers
    matrix = np.einsum("ij,ik,i...->jk...", centers, centers, machine.coef)
    coef = 2.0 * machine.coef0 * np.tensordot(centers, machine.coef, axes=(0, 0))
    return Quadratic(matrix, coef, machine.intercept + machine.coef0**2 * machine.coef.sum(axis=0))


def _laplacian(machine: Machine) -> Form:
    """K = exp(-γ Σ_j |x_j - ζ_j|)."""
    rates = np.full(machine.centers.shape[1], machine.gamma)
    return _decays(machine.centers, machine.coef, rates, machine.intercept)


def _decays(centers: Floats, coef: Floats, rates: Floats, intercept: Floats) -> Form:
    """A rate of 0 reads no column."""
    functions = tuple(
        Decay(column, float(rate)) if rate > 0 else None
        for column, rate in zip(centers.T, rates, strict=True)
    )
    return Reduced(SumOfProducts(functions, np.asarray(coef), np.asarray(intercept, dtype=np.float64)))


_KERNELS: Mapping[str, Callable[[Machine], Form]] = {
    "laplacian": _laplacian,
    "linear": _linear,
    "poly": _polynomial,
    "polynomial": _polynomial,
    "rbf": _gaussian,
}


def _bumps(centers: Floats, coef: Floats, precision: Floats, intercept: Floats) -> GaussianKernels:
    with np.errstate(divide="ignore"):
        return GaussianKernels(centers, coef, 1.0 / np.sqrt(precision), intercept)


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


def _read_monomial(term: _Monomial, centers: Floats, alpha: Floats) -> Form:
    coef, intercept = term.weight * alpha, np.zeros(alpha.shape[1:])
    narrow, decaying = bool(term.precision.any()), bool(term.rate.any())
    if narrow and decaying:
        raise CannotRead("a product of RBF with an exponential kernel is not read")
    if term.dots == 0 and decaying:
        return _decays(centers, coef, term.rate, intercept)
    if term.dots == 0 and narrow:
        return _bumps(centers, coef, term.precision, intercept)
    if term.dots == 0:
        return Linear(np.zeros((centers.shape[1], *intercept.shape)), coef.sum(axis=0))
    if term.dots > 2 or narrow or decaying:
        raise CannotRead(
            "a product of DotProduct with RBF or an exponential kernel, or with more than one DotProduct, is "
            "not read"
        )
    degree = float(term.dots)
    machine = Machine(centers, coef, intercept, gamma=1.0, degree=degree, coef0=0.0)
    return _linear(machine) if term.dots == 1 else _polynomial(machine)


# -- input ----------------------------------------------------------------------------------


def _numbers_only(model: Any, schema: Schema | None) -> None:
    """Refuse columns that x holds as codes: scikit-learn would convert their texts to numbers."""
    coded = (
        [name for name, levels in zip(schema.names, schema.levels, strict=True) if levels] if schema else []
    )
    if coded:
        raise CannotRead(
            f"{type(model).__name__} reads the texts of column {coded[0]!r} as numbers; convert the column"
        )


# -- kernels of Gaussian processes, as sums of products that are read ------------------------------------


@dataclass(frozen=True)
class _Monomial:
    """weight · exp(-Σ_j precision_j (x_j - ζ_j)²/2 - Σ_j rate_j |x_j - ζ_j|) · (x·ζ) ** dots.

    Kernels are sums of these.
    """

    weight: float
    precision: Floats
    rate: Floats
    dots: int = 0

    def __mul__(self, other: _Monomial) -> _Monomial:
        return _Monomial(
            self.weight * other.weight,
            self.precision + other.precision,
            self.rate + other.rate,
            self.dots + other.dots,
        )

    def power(self, exponent: float) -> _Monomial:
        """The power of a monomial without dots."""
        return _Monomial(self.weight**exponent, self.precision * exponent, self.rate * exponent)


def _expand_kernel(kernel: Any, d: int) -> list[_Monomial]:
    kind = type(kernel)
    if not qualified_name(kind) or kind.__qualname__ not in _EXPAND:
        reason = _NO_PRODUCT_KERNELS.get(kind.__qualname__, UNKNOWN)
        raise CannotRead(f"the kernel {kind.__qualname__} {reason}; {_READ_KERNELS}")
    return _EXPAND[kind.__qualname__](kernel, d)


UNKNOWN = "is not known to limes"
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


def _constant(kernel: Any, d: int) -> list[_Monomial]:
    return [_Monomial(float(kernel.constant_value), np.zeros(d), np.zeros(d))]


def _white(kernel: Any, d: int) -> list[_Monomial]:  # noqa: ARG001 - the noise of different rows is independent
    return []


def _rbf(kernel: Any, d: int) -> list[_Monomial]:
    return [_Monomial(1.0, _lengths(kernel, d) ** -2.0, np.zeros(d))]


def _lengths(kernel: Any, d: int) -> Floats:
    return np.broadcast_to(np.asarray(kernel.length_scale, dtype=np.float64), (d,))


def _matern(kernel: Any, d: int) -> list[_Monomial]:
    """Smoothness nu = inf is RBF; nu = 1/2 is exp(-distance / length), a product in one dimension only."""
    if kernel.nu == np.inf:
        return _rbf(kernel, d)
    if kernel.nu == 0.5 and d == 1:
        return [_Monomial(1.0, np.zeros(d), 1.0 / _lengths(kernel, d))]
    raise CannotRead(f"the kernel Matern(nu={kernel.nu:g}) {_ROUND}; {_READ_KERNELS}")


def _pairwise_kernel(kernel: Any, d: int) -> list[_Monomial]:
    """exp(-γ ‖x - ζ‖²) or exp(-γ ‖x - ζ‖₁), by its metric."""
    if kernel.metric not in ("rbf", "laplacian") or kernel.pairwise_kernels_kwargs:
        raise CannotRead(f"the kernel PairwiseKernel({kernel.metric!r}) is not read; {_READ_KERNELS}")
    gamma, none = np.full(d, float(kernel.gamma)), np.zeros(d)
    return [_Monomial(1.0, 2.0 * gamma, none) if kernel.metric == "rbf" else _Monomial(1.0, none, gamma)]


def _dot(kernel: Any, d: int) -> list[_Monomial]:
    none = np.zeros(d)
    return [_Monomial(float(kernel.sigma_0) ** 2, none, none), _Monomial(1.0, none, none, dots=1)]


def _sum(kernel: Any, d: int) -> list[_Monomial]:
    return _expand_kernel(kernel.k1, d) + _expand_kernel(kernel.k2, d)


def _product(kernel: Any, d: int) -> list[_Monomial]:
    return _multiplied(_expand_kernel(kernel.k1, d), _expand_kernel(kernel.k2, d))


def _power(kernel: Any, d: int) -> list[_Monomial]:
    base, exponent = _expand_kernel(kernel.kernel, d), float(kernel.exponent)
    if len(base) == 1 and base[0].dots == 0:
        return [base[0].power(exponent)]
    if exponent not in (1.0, 2.0):
        raise CannotRead(f"a sum of kernels to the power {exponent:g} is not read; powers 1 and 2 are")
    return base if exponent == 1.0 else _multiplied(base, base)


def _multiplied(first: list[_Monomial], second: list[_Monomial]) -> list[_Monomial]:
    return [a * b for a in first for b in second]


_EXPAND: Mapping[str, Callable[[Any, int], list[_Monomial]]] = {
    "ConstantKernel": _constant,
    "DotProduct": _dot,
    "Exponentiation": _power,
    "Matern": _matern,
    "PairwiseKernel": _pairwise_kernel,
    "Product": _product,
    "RBF": _rbf,
    "Sum": _sum,
    "WhiteKernel": _white,
}
