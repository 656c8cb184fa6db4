"""Kernel machines of scikit-learn, read and compared with their predictions and with their surrogates."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

import limes
import oracle
import slopes
import strategies
from effort import examples
from internals import CannotRead, Schema, read_form
from limes.exceptions import NotReadableError
from limes.models import forms
from oracle import EXACT

# Hundreds of kernels added in another order, where linear ones cancel.
SAME = 1e-10
# A Gaussian process with little noise adds weights of a million to get predictions of one.
CANCELLED = 1e-6

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
TARGETS = np.column_stack([Y, X[:, 0] ** 2])
TWO, THREE, FOUR = (np.digitize(Y, cuts) for cuts in ([0], [-0.5, 0.5], [-0.7, 0.0, 0.7]))


def rows():
    """Near, far, and on the training rows themselves."""
    rng = np.random.default_rng(1)
    far = rng.normal(size=(300, 3)) * [1.0, 10.0, 1000.0]
    return np.concatenate([3 * rng.normal(size=(600, 3)), far, X, np.nextafter(X, 9), np.zeros((1, 3))])


def assert_read(model, method, kind=None, tolerance=SAME):
    form, x = read_form(model, method, None), rows()
    expected = getattr(model, method)(x)
    assert form.size == 3
    assert kind is None or type(form).__name__ == kind
    assert oracle.error(form.predict(x), expected) < tolerance
    return form


KERNELS = {
    "rbf": [{}, {"gamma": 0.3}, {"gamma": "auto"}, {"gamma": 30.0}],
    "linear": [{}],
    "poly": [{"degree": 2}, {"degree": 2, "coef0": 0.7, "gamma": 0.2}],
}
FORM = {"rbf": "GaussianKernels", "linear": "Linear", "poly": "Quadratic"}
CASES = [pytest.param(k, o, id=f"{k} {o}") for k, several in KERNELS.items() for o in several]


@pytest.mark.parametrize(("kernel", "options"), CASES)
@pytest.mark.parametrize("machine", [SVR, NuSVR])
def test_regression(machine, kernel, options):
    model = machine(kernel=kernel, C=5.0, **options).fit(X, Y, sample_weight=RNG.uniform(0.1, 2, 90))
    assert_read(model, "predict", FORM[kernel])


@pytest.mark.parametrize(("kernel", "options"), CASES)
@pytest.mark.parametrize("machine", [SVC, NuSVC])
@pytest.mark.parametrize(("labels", "margins"), [(TWO, ()), (THREE, (3,)), (FOUR, (6,))])
def test_classification(machine, kernel, options, labels, margins):
    names = np.array(["one", "two", "three", "four"])[labels]
    more = {"nu": 0.1} if machine is NuSVC else {}
    model = machine(kernel=kernel, decision_function_shape="ovo", **more, **options).fit(X, names)
    form = assert_read(model, "decision_function", FORM[kernel], tolerance=1e-9)
    assert form.predict(X).shape[1:] == margins


@pytest.mark.parametrize(("kernel", "options"), CASES)
@pytest.mark.parametrize("method", ["decision_function", "score_samples"])
def test_one_class(kernel, options, method):
    assert_read(OneClassSVM(kernel=kernel, nu=0.2, **options).fit(X), method, FORM[kernel])


@pytest.mark.parametrize(
    ("kernel", "options"), [*CASES, pytest.param("polynomial", {"degree": 2}, id="polynomial")]
)
@pytest.mark.parametrize("target", [Y, Y[:, None], TARGETS])
def test_ridge(kernel, options, target):
    options = {**options, "gamma": None} if options.get("gamma") == "auto" else options
    model = KernelRidge(kernel=kernel, alpha=0.5, **options).fit(X, target)
    assert_read(model, "predict", FORM.get(kernel, "Quadratic"))


def test_default_options_of_ridge():
    assert_read(KernelRidge().fit(X, Y), "predict", "Linear")
    assert_read(KernelRidge(kernel="rbf").fit(X, Y), "predict", "GaussianKernels")


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_machines_fitted_on_sparse_rows(kernel):
    for model in (SVR(kernel=kernel), KernelRidge(kernel=kernel)):
        assert_read(model.fit(sp.csr_array(X), Y), "predict")
    model = SVC(kernel=kernel, decision_function_shape="ovo").fit(sp.csr_array(X), THREE)
    assert_read(model, "decision_function", tolerance=1e-9)


def test_a_kernel_of_no_width_reads_no_column():
    for model in (SVR(gamma=0.0), KernelRidge(kernel="rbf", gamma=0.0)):
        assert np.isinf(assert_read(model.fit(X, Y), "predict", "GaussianKernels").scale).all()
    assert_read(SVC(gamma=0.0).fit(X, TWO), "decision_function")


def test_constant_models_have_no_support_vectors():
    for kernel in FORM:
        model = SVR(kernel=kernel, degree=2, epsilon=100.0).fit(X, Y)
        assert len(model.support_) == 0
        form = assert_read(model, "predict")
        assert np.ptp(form.predict(rows())) == 0
        design, _ = slopes.normal_columns(np.random.default_rng(0), 3)
        assert not limes.limit(design, form).coef.any()


# -- Gaussian processes -----------------------------------------------------------------------------------

C, DOT, RBF, WHITE = kernels.ConstantKernel, kernels.DotProduct, kernels.RBF, kernels.WhiteKernel
PROCESSES = {
    "default": None,
    "noise alone": WHITE(),
    "one": RBF(0.7) + WHITE(0.1),
    "a scale a column": C(2.0) * RBF([1.0, 2.0, 0.5]) + WHITE(0.1) + C(0.3),
    "two scales": RBF(0.3) + 2.0 * RBF(3.0) + WHITE(0.2),
    "product": RBF(2.0) * RBF([1.0, 2.0, 3.0]) + WHITE(0.1),
    "cube": RBF(2.0) ** 3 * 2.0 + WHITE(0.1),
    "square of a sum": (RBF() + C(0.5) + WHITE(0.1)) ** 2 + WHITE(0.1),
    "linear": DOT() + WHITE(0.1),
    "quadratic": DOT(0.5) ** 2 + WHITE(0.1),
    "everything": DOT() * C(0.4) + DOT() * DOT(2.0) + 0.5 * RBF() + WHITE(0.1),
    "constant": C(1.5) + WHITE(0.1),
}


@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("target", [Y, Y[:, None], TARGETS], ids=["one", "column", "two"])
def test_gaussian_processes(name, normalize, target):
    model = GaussianProcessRegressor(PROCESSES[name], normalize_y=normalize, optimizer=None, alpha=1e-6)
    assert_read(model.fit(X, target), "predict", tolerance=CANCELLED)


def test_a_gaussian_process_that_learns_its_scales():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scales at their bounds
        model = GaussianProcessRegressor(C(1.0) * RBF([1.0] * 3) + WHITE()).fit(X, Y)
    form = assert_read(model, "predict", "GaussianKernels", CANCELLED)
    assert np.allclose(form.scale, model.kernel_.k1.k2.length_scale)


# -- surrogates -------------------------------------------------------------------------------------------


def small(rng, d, build):
    x = rng.normal(size=(12, d))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build().fit(x, np.sin(x).sum(axis=1) + x.prod(axis=1))


MODELS = st.sampled_from(
    [
        lambda: SVR(C=3.0),
        lambda: SVR(kernel="linear"),
        lambda: SVR(kernel="poly", degree=2, coef0=1.0),
        lambda: KernelRidge(kernel="rbf", gamma=0.4),
        lambda: GaussianProcessRegressor(RBF() + RBF(3.0) + WHITE(0.1) + DOT(), optimizer=None),
        lambda: GaussianProcessRegressor(RBF() * C(2.0) + WHITE(0.5), optimizer=None, normalize_y=True),
    ]
)


@settings(max_examples=examples(25))
@given(strategies.designs(sizes=(1, 2), most_bins=3), strategies.rngs, MODELS)
def test_limits(stated, rng, build):
    model = small(rng, stated.size, build)
    truth = oracle.truth(stated.columns(resolution=1.5), model.predict, stated.cells)
    surrogate = limes.limit(stated.design(), limes.models.read(model))
    assert oracle.error(surrogate.coef, truth.coef, truth.size) < EXACT
    assert oracle.error(surrogate.intercept, truth.intercept, truth.size) < EXACT


@settings(max_examples=examples(15))
@given(strategies.rngs, MODELS)
def test_slopes(rng, build):
    model = small(rng, 2, build)
    design, columns = slopes.normal_columns(rng, 2)
    slopes.assert_slopes(design, limes.models.read(model), model.predict, columns(resolution=1.5))


def test_explaining_a_table():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = SVC().fit(frame, np.where(TWO, "yes", "no"))
    explanation = limes.TabularExplainer(model, frame, output="margin", method="exact")(frame[:5])
    assert explanation.method == "exact"
    assert explanation.output_names == ("yes",)
    assert np.allclose(explanation.predictions, model.decision_function(frame[:5]))


def test_large_numbers_cancel_but_are_read():
    """Dot products of 1e8, weights of 1: the machine itself has seven digits left."""
    big = X * [1e4, 1.0, 1e3]
    model = SVR(kernel="linear", C=100.0, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(big, Y)
    assert limes.TabularExplainer(model, big, method="exact")(big[:2]).method == "exact"


# -- exponential kernels, and RBF by other names ------------------------------------------------------------


@pytest.mark.parametrize("gamma", [None, 0.4, 30.0])
@pytest.mark.parametrize("target", [Y, TARGETS])
def test_laplacian_ridge(gamma, target):
    model = KernelRidge(kernel="laplacian", alpha=0.5, gamma=gamma).fit(X, target)
    assert_read(model, "predict")


PAIRWISE = kernels.PairwiseKernel
OTHER_NAMES = {
    "matern": kernels.Matern([0.5, 1.0, 2.0], nu=np.inf),
    "pairwise rbf": C(2.0) * PAIRWISE(gamma=0.3, metric="rbf") + WHITE(0.1),
    "pairwise laplacian": PAIRWISE(gamma=0.3, metric="laplacian") + RBF(2.0) + DOT(),
    "product": PAIRWISE(gamma=0.3, metric="laplacian") * C(3.0) * PAIRWISE(gamma=0.2, metric="laplacian"),
    "power": (C(1.3) * PAIRWISE(gamma=0.3, metric="laplacian")) ** 1.7,
}


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_processes_with_other_kernels(name):
    assert_read(process(OTHER_NAMES[name]), "predict", tolerance=1e-9)


def test_an_exponential_process_of_one_column():
    kernel = kernels.Matern(0.7, nu=0.5)
    model = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.1).fit(X[:, :1], Y)
    x = rows()[:, :1]
    assert oracle.error(read_form(model, "predict", None).predict(x), model.predict(x)) < 1e-9


@pytest.mark.parametrize("law", ["truncnorm", "uniform", "empirical"])
@pytest.mark.parametrize("bins", ["quartile", None])
def test_laplacian_explanations_against_draws(law, bins):
    """Sobol' draws of the design's own law, the model asked: exact within six standard errors."""
    model = KernelRidge(kernel="laplacian", alpha=0.5, gamma=0.5).fit(X, Y)
    options = {"bins": bins, "law": law, "rng": 0}
    exact = limes.TabularExplainer(model, X, method="exact", **options)(X[:2])
    sampling = {"method": "sampled", "control": "none", "max_calls": 2**15}
    drawn = limes.TabularExplainer(model, X, **sampling, **options)(X[:2])
    z = (exact.coefficients.values - drawn.coefficients.values) / drawn.coefficients.standard_errors
    assert np.abs(z).max() < 6
    assert drawn.coefficients.standard_errors.max() < 0.02 * np.abs(exact.coefficients.values).max()


# -- what is refused --------------------------------------------------------------------------------------

MARGIN = "output='margin'"
REFUSED = [
    (lambda: SVR(kernel="poly").fit(X, Y), "predict", "'poly' of degree 3"),
    (lambda: SVR(kernel="sigmoid").fit(X, Y), "predict", "'sigmoid'"),
    (lambda: SVR(kernel="precomputed").fit(X @ X.T, Y), "predict", "'precomputed'"),
    (lambda: SVR(kernel=lambda a, b: a @ b.T).fit(X, Y), "predict", "a callable"),
    (lambda: KernelRidge(kernel="cosine").fit(X, Y), "predict", "'cosine' divides by the length of the row"),
    (
        lambda: KernelRidge(kernel="chi2", gamma=1.0).fit(np.abs(X), Y),
        "predict",
        "'chi2' .* does not integrate yet",
    ),
    (lambda: KernelRidge(kernel=lambda a, b: a @ b).fit(X, Y), "predict", "a callable"),
    (lambda: SVC().fit(X, THREE), "decision_function", "decision_function_shape = 'ovo'"),
    (lambda: SVC().fit(X, TWO), "predict", MARGIN),
    (lambda: NuSVC().fit(X, TWO), "predict_proba", MARGIN),
    (lambda: OneClassSVM().fit(X), "predict", "model.decision_function"),
    (lambda: GaussianProcessRegressor(), "predict", "not fitted"),
    (lambda: process(kernels.Matern()), "predict", r"Matern\(nu=1.5\) is a function of the distance"),
    (lambda: process(kernels.Matern(nu=0.5)), "predict", r"Matern\(nu=0.5\) is a function of the distance"),
    (lambda: process(PAIRWISE(metric="cosine")), "predict", r"PairwiseKernel\('cosine'\) is not read"),
    (lambda: process(RBF() * PAIRWISE(metric="laplacian")), "predict", "RBF with an exponential kernel"),
    (lambda: process(DOT() * PAIRWISE(metric="laplacian")), "predict", "RBF or an exponential kernel"),
    (lambda: process(kernels.RationalQuadratic() + WHITE()), "predict", "RationalQuadratic"),
    (lambda: process(WHITE(9.0) + kernels.ExpSineSquared()), "predict", "ExpSineSquared"),
    (lambda: process(RBF() * DOT()), "predict", "product of DotProduct"),
    (lambda: process((RBF() + C(1.0)) ** 1.5), "predict", "power 1.5"),
    (lambda: process(OwnKernel()), "predict", "OwnKernel"),
]


class OwnKernel(kernels.RBF):
    """May be anything."""


def process(kernel):
    return GaussianProcessRegressor(kernel, optimizer=None, alpha=0.1).fit(X, Y)


@pytest.mark.parametrize(("build", "method", "reason"), REFUSED, ids=[r for _, _, r in REFUSED])
def test_refused(build, method, reason):
    with pytest.raises(CannotRead, match=reason):
        read_form(build(), method, None)


def test_the_reason_reaches_the_user():
    model = SVC().fit(X, THREE)
    with pytest.raises(NotReadableError, match="'ovo'"):
        limes.TabularExplainer(model, X, output="margin", method="exact")
    explainer = limes.TabularExplainer(model, X, output="margin", max_calls=256, control="none")
    assert explainer.method == "sampled"


@pytest.mark.parametrize(
    "model", [SVR().fit(X, Y), KernelRidge().fit(X, Y), process(RBF()), SVC().fit(X, TWO)], ids=str
)
def test_texts_are_no_numbers(model):
    """scikit-learn turns "1.5" into 1.5, where x holds the code of the text."""
    method = "decision_function" if hasattr(model, "classes_") else "predict"
    with pytest.raises(CannotRead, match="'b'"):
        read_form(model, method, Schema(("a", "b", "c"), ((), ("1.5", "2"), ())))
    assert read_form(model, method, Schema(("a", "b", "c"), ((), (), ()))).size == 3


def test_a_subclass_may_be_anything():
    class Subclass(SVR):
        pass

    assert isinstance(limes.models.read(Subclass().fit(X, Y)), forms.BlackBox)
