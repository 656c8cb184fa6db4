"""Networks and random features: read, verified against the model, and explained exactly."""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType

import numpy as np
import pytest
from scipy.special import erf
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingRegressor
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler, SkewedChi2Sampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import limes
from effort import crossed, repeats
from limes.models import forms

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

D, T = load_diabetes(return_X_y=True)
T = (T - T.mean()) / T.std()
C, L = load_breast_cancer(return_X_y=True)
C = C[:, :8]
DRAWS = repeats(1 << 19, 1 << 15)
ACTIVATIONS = ["identity", "logistic", "tanh", "relu"]


def regressor(activation="relu", units=(12,)):
    return MLPRegressor(
        hidden_layer_sizes=units, activation=activation, solver="lbfgs", max_iter=60, random_state=0
    )


def classifier(activation="relu", units=(12,)):
    return MLPClassifier(
        hidden_layer_sizes=units, activation=activation, solver="lbfgs", max_iter=30, random_state=0
    )


def margins(model, X):
    """The sums before the output's link, by the layers' own arithmetic."""
    hidden = {
        "identity": lambda s: s,
        "logistic": lambda s: 1 / (1 + np.exp(-s)),
        "tanh": np.tanh,
        "relu": lambda s: np.maximum(s, 0),
    }[model.activation]
    inner = hidden(X @ model.coefs_[0] + model.intercepts_[0])
    return inner @ model.coefs_[1] + model.intercepts_[1]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_predictions_of_networks(activation):
    model = regressor(activation).fit(D * 20, T)
    form = limes.models.read(model)
    assert isinstance(form, forms.Linear if activation == "identity" else forms.Ridges)
    assert np.allclose(form.predict(D * 20), model.predict(D * 20), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("activation", "classes"), crossed(ACTIVATIONS, [2, 3]))
def test_margins_of_networks(activation, classes):
    X = StandardScaler().fit_transform(C)
    y = L if classes == 2 else np.digitize(X[:, 0], [-0.5, 0.5])
    model = classifier(activation).fit(X, y)
    form = limes.models.read(model, "margin")
    expected = margins(model, X) if classes > 2 else margins(model, X)[:, 0]
    assert np.allclose(form.predict(X), expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    assert limes.TabularExplainer(model, X, output="margin", method="exact")(X[:1]).method == "exact"


PIPELINES = {
    "relu": (make_pipeline(StandardScaler(), regressor()), D, T, None),
    "tanh": (make_pipeline(StandardScaler(), regressor("tanh")), D, T, None),
    "logistic": (make_pipeline(SimpleImputer(), StandardScaler(), regressor("logistic")), D, T, None),
    "margin": (make_pipeline(StandardScaler(), classifier()), C, L, "margin"),
    "components": (make_pipeline(StandardScaler(), PCA(n_components=4), regressor()), D, T, None),
    "bagged": (BaggingRegressor(make_pipeline(StandardScaler(), regressor()), 2, random_state=0), D, T, None),
    "fourier": (make_pipeline(StandardScaler(), RBFSampler(gamma=0.05, random_state=0), Ridge()), D, T, None),
    "fourier margin": (
        make_pipeline(
            StandardScaler(), RBFSampler(gamma=0.05, random_state=0), StandardScaler(), LogisticRegression()
        ),
        C,
        L,
        "margin",
    ),
    "skewed": (make_pipeline(MinMaxScaler(), SkewedChi2Sampler(random_state=0), Ridge()), C, 1.0 * L, None),
    "centers": (
        make_pipeline(StandardScaler(), Nystroem(gamma=0.05, n_components=30, random_state=0), Ridge()),
        D,
        T,
        None,
    ),
    "laplacian centers": (
        make_pipeline(
            StandardScaler(), Nystroem(kernel="laplacian", n_components=20, random_state=0), Ridge()
        ),
        D,
        T,
        None,
    ),
}


@cache
def trained(name):
    """A pipeline, which all tests share."""
    model, X, y, _ = PIPELINES[name]
    return model.fit(X, y)


@pytest.mark.parametrize(
    ("name", "options"),
    crossed(PIPELINES, [{}, {"law": "uniform"}, {"weights": "euclidean"}, {"bins": None}]),
)
def test_networks_and_random_features_are_exact(name, options):
    _, X, _, output = PIPELINES[name]
    if name == "skewed" and options.get("bins", 1) is None:
        pytest.skip("a normal law reaches where the transformer raises")
    explainer = limes.TabularExplainer(trained(name), X, output=output, method="exact", **options)
    assert explainer(X[:1]).method == "exact"


@pytest.mark.parametrize(
    ("name", "options"), crossed(["relu", "tanh", "margin", "fourier"], [{}, {"bins": None}])
)
def test_exact_networks_against_their_own_answers(name, options):
    """Draws of w, the model asked at each: |z| of the mean and of every coefficient."""
    _, X, _, output = PIPELINES[name]
    model = trained(name)
    explainer = limes.TabularExplainer(model, X, output=output, **options)
    design = explainer._model.family.at(X[17]).in_units()
    moments = explainer._model.bound.expectation.moments(design)
    x, h = design.draw(np.random.default_rng(1).random((DRAWS, X.shape[1])))
    f = model.predict(x) if output is None else margins(model[-1], model[:-1].transform(x))[:, 0]
    assert abs(f.mean() - moments.mean) <= 5 * f.std() / np.sqrt(DRAWS)
    products = (h - design.inclusion) * (f - f.mean())[:, None]
    z = (products.mean(axis=0) - moments.gamma) / (products.std(axis=0) / np.sqrt(DRAWS))
    assert np.abs(z).max() < 5


@pytest.mark.parametrize(
    ("model", "X", "y", "reason"),
    [
        (regressor(units=(5, 5)), D, T, "with 2 hidden layers"),
        (classifier(), C, L, "output='margin'"),
        (make_pipeline(RBFSampler(), LogisticRegression()), C, L, "output='margin'"),
        (make_pipeline(RBFSampler(), regressor()), D, T, "linear models are read"),
        (make_pipeline(MinMaxScaler(), Nystroem(kernel="chi2"), Ridge()), C, L, "fractions"),
    ],
)
def test_other_networks_have_a_reason(model, X, y, reason):
    form = limes.models.read(model.fit(X, y))
    assert isinstance(form, forms.BlackBox)
    assert reason in form.reason


def test_layers_without_activation_are_one():
    model = regressor("identity", (6, 5, 4)).fit(D, T)
    form = limes.models.read(model)
    assert isinstance(form, forms.Linear)
    assert np.allclose(form.predict(D), model.predict(D), rtol=0, atol=1e-12)


def test_probabilities_of_a_network_without_hidden_activation_are_exact():
    X = StandardScaler().fit_transform(C)
    explainer = limes.TabularExplainer(classifier("identity").fit(X, L), X, method="exact")
    assert explainer(X[:1]).method == "exact"


def test_a_network_with_a_kink_on_many_categories_is_sampled_with_the_reason():
    X = np.random.default_rng(0).integers(3, size=(200, 4)).astype(float)
    model = regressor().fit(X, X.sum(axis=1))
    assert limes.TabularExplainer(model, X, categorical=[0, 1, 2, 3])(X[:1]).method == "exact"
    X = np.random.default_rng(0).integers(3, size=(200, 30)).astype(float)  # 3^30 combinations
    model = regressor().fit(X, X.sum(axis=1))
    explanation = limes.TabularExplainer(model, X, categorical=list(range(30)), max_calls=256)(X[:1])
    assert explanation.method == "sampled"
    assert "too few columns have a density" in explanation.reason
    smooth = regressor("tanh").fit(X, X.sum(axis=1))
    assert limes.TabularExplainer(smooth, X, categorical=[0, 1, 2, 3])(X[:1]).method == "exact"


def test_probabilities_of_a_network_have_their_margin_as_control():
    model = make_pipeline(StandardScaler(), classifier("tanh")).fit(C, L)
    explainer = limes.TabularExplainer(model, C, output=1, control="margin", max_calls=256, rng=0)
    explanation = explainer(C[:1])
    assert explanation.method == "sampled"
    assert explanation.coefficients.controls == ("margin",)


@pytest.mark.parametrize("activation", ["ReLU", "Tanh", "Sigmoid", "GELU", "SiLU", "Softplus"])
def test_sequential_networks_of_torch(activation):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers = [
        torch.nn.Linear(10, 8),
        getattr(torch.nn, activation)(),
        torch.nn.Dropout(),
        torch.nn.Linear(8, 1),
    ]
    network, X = torch.nn.Sequential(*layers), D * 20
    assert isinstance(limes.models.read(network), forms.Ridges)
    assert limes.TabularExplainer(network, X, method="exact")(X[:1]).method == "exact"
    ending = torch.nn.Sequential(*layers, torch.nn.Sigmoid())
    assert "as a margin, it is read" in limes.models.read(ending).reason
    deeper = torch.nn.Sequential(*layers[:2], torch.nn.Linear(8, 8), *layers[1:])
    assert "2 hidden layers" in limes.models.read(deeper).reason


class _Array(np.ndarray):
    """As much of a tensor as the reader asks for."""

    def detach(self):
        return self

    double = cpu = detach

    def numpy(self):
        return np.asarray(self, dtype=float)


@pytest.fixture
def stand_in(monkeypatch):
    """Modules of torch's names and attributes, where torch itself is not there to be asked."""
    module = ModuleType("torch")
    hooks = {"_forward_hooks": {}, "_forward_pre_hooks": {}, "__module__": "torch"}
    for name in ("Dropout", "GELU", "Identity", "ReLU", "SiLU", "Softplus", "Tanh"):
        setattr(module, name, type(name, (), {**hooks, "approximate": "none", "beta": 1, "threshold": 20}))

    def linear(self, weight, bias=None):
        self.weight = np.asarray(weight).view(_Array)
        self.bias = None if bias is None else np.asarray(bias).view(_Array)

    module.Linear = type("Linear", (), {**hooks, "__init__": linear})
    module.Sequential = type("Sequential", (list,), {**hooks, "__call__": lambda self, x: x})
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.mark.parametrize("activation", ["GELU", "SiLU", "Softplus", "ReLU", "Tanh"])
def test_activations_of_torch_by_their_names(stand_in, activation):
    rng = np.random.default_rng(0)
    first, last = stand_in.Linear(rng.normal(size=(4, 3)), rng.normal(size=4)), stand_in.Linear([[1.0] * 4])
    network = stand_in.Sequential([first, stand_in.Dropout(), getattr(stand_in, activation)(), last])
    form = limes.models.read(network)
    assert isinstance(form, forms.Ridges)
    assert form.activation == activation.lower()
    x = rng.normal(size=(5, 3))
    inner = x @ np.asarray(first.weight).T + np.asarray(first.bias)
    curve = {
        "GELU": lambda s: s * (1 + erf(s / np.sqrt(2))) / 2,
        "SiLU": lambda s: s / (1 + np.exp(-s)),
        "Softplus": lambda s: np.log1p(np.exp(s)),
        "ReLU": lambda s: np.maximum(s, 0),
        "Tanh": np.tanh,
    }[activation]
    assert np.allclose(form.predict(x), curve(inner).sum(axis=1), rtol=0, atol=1e-12)


def test_options_of_activations_are_not_ignored(stand_in):
    network = stand_in.Sequential([stand_in.Linear([[1.0]]), stand_in.GELU(), stand_in.Linear([[1.0]])])
    network[1].approximate = "tanh"
    assert "this one has" in limes.models.read(network).reason
    network[1] = stand_in.Softplus()
    network[1].beta = 2
    assert "this one has" in limes.models.read(network).reason
