"""Functions of columns in front of linear models, kernels and trees: against predictions and quadrature."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import (
    PCA,
    FactorAnalysis,
    FastICA,
    IncrementalPCA,
    TruncatedSVD,
)
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

import limes
import oracle
import slopes
from effort import repeats
from internals import CannotRead, Schema, read_form
from limes.exceptions import ModelError, NotReadableError
from limes.models import forms

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.lognormal(0, 0.6, 200), RNG.normal(0.5, 1.5, 200)])
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 4 + X[:, 0] * (X[:, 1] > 0)
POSITIVE = np.abs(X) + 0.1


def ufunc(function):
    return FunctionTransformer(function)


# Steps, and where the functions that they compute bend: columns of the points, or one list for both
LINEAR = {
    "yeo-johnson": (PowerTransformer(), [0.0]),
    "box-cox": (PowerTransformer("box-cox"), []),
    "uniform": (QuantileTransformer(n_quantiles=30, random_state=0), None),
    "normal": (QuantileTransformer(n_quantiles=30, output_distribution="normal", random_state=0), None),
    "spline": (SplineTransformer(n_knots=5), None),
    "spline linear": (make_pipeline(StandardScaler(), SplineTransformer(6, extrapolation="linear")), None),
    "spline quantiles": (
        make_pipeline(SplineTransformer(5, degree=2, knots="quantile", include_bias=False), StandardScaler()),
        None,
    ),
    "spline continued": (SplineTransformer(4, extrapolation="continue"), None),
    "spline periodic": (SplineTransformer(5, degree=2, extrapolation="periodic"), None),
    "spline of degree one": (SplineTransformer(5, degree=1, extrapolation="constant"), None),
    "spline of logarithms": (make_pipeline(ufunc(np.arcsinh), SplineTransformer(4)), None),
    "clipped": (MinMaxScaler(clip=True), None),
    "square": (make_pipeline(StandardScaler(), ufunc(np.square)), []),
    "absolute": (make_pipeline(StandardScaler(), ufunc(np.abs), StandardScaler()), None),
    "tanh": (ufunc(np.tanh), []),
    "sine": (make_pipeline(ufunc(np.sin), StandardScaler()), []),
    "sign": (make_pipeline(StandardScaler(), ufunc(np.sign)), None),
    "negative": (ufunc(np.negative), []),
    "union": (FeatureUnion([("a", ufunc(np.square)), ("b", ufunc(np.tanh)), ("c", "passthrough")]), []),
}


def bends(step, rows):
    """Points of each column where a fitted step is not smooth, read off its own attributes."""
    parts = [part for _, part in getattr(step, "steps", [("", step)])]
    result = []
    for j in range(rows.shape[1]):
        points = []
        for place, part in enumerate(parts):
            kinks = _own_bends(part, j)
            for before in parts[:place][::-1]:
                grid = np.zeros((len(kinks), before.n_features_in_))
                grid[:, j] = kinks
                inverse = before.inverse_transform if hasattr(before, "scale_") else np.sinh
                kinks = np.asarray(inverse(grid))[:, j]
            points += np.asarray(kinks).tolist()
        result.append(sorted(set(points)))
    return result


def _own_bends(part, j):
    kind = type(part).__name__
    if kind == "SplineTransformer":
        t, k = part.bsplines_[j].t, part.degree
        turns = np.arange(-9, 10) * (t[-k - 1] - t[k]) if part.extrapolation == "periodic" else np.zeros(1)
        return np.unique(np.round((t + turns[:, None]).ravel(), 12))
    if kind == "QuantileTransformer":
        first, *_, last = q = part.quantiles_[:, j]
        shares = 2.0 ** -np.arange(1.0, 28.0)  # Φ⁻¹ is steep where ranks are nearly 0 or 1
        steep = [first + (q[1] - first) * shares, last - (last - q[-2]) * shares]
        return np.concatenate([q, [first + 1e-7, last - 1e-7], *steep])
    if kind == "MinMaxScaler":
        return np.array([part.data_min_[j], part.data_max_[j]])
    return np.zeros(1)


def fitted(name, last, rows=X):
    step, points = LINEAR[name]
    model = make_pipeline(clone(step), last).fit(rows, Y)
    return model, bends(model[0], rows) if points is None else [points] * rows.shape[1]


@pytest.mark.parametrize("name", LINEAR)
def test_linear_models_predict_what_they_predict(name):
    rows = POSITIVE if name == "box-cox" else X
    model, points = fitted(name, LinearRegression(), rows)
    form = read_form(model, "predict", None)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(500, 2)) * [1.0, 5.0]
    edges = np.array([p for each in points for p in each] or [0.0])
    near = rng.choice(np.concatenate([edges, np.nextafter(edges, 9), np.nextafter(edges, -9)]), (300, 2))
    x = np.concatenate([x, near, rows])
    x = np.abs(x) + 1e-3 if name == "box-cox" else x
    expected = model.predict(x)
    np.testing.assert_allclose(form.predict(x), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


# Bins, and means and standard deviations inside them; the second column's are point masses
BINS = (
    [np.array([0.05, 0.8, 2.0, 3.5]), np.array([-2.5, 0.4, 1.3, 4.0])],
    [np.array([0.5, 1.5, 2.6]), np.array([-0.5, 0.8, 2.0])],
    [np.array([0.4, 1e3, 0.6]), np.zeros(3)],
)


def assert_bins(form, f, points, *, shift=0.0, bandwidth=0.7):
    """Truncated normals in the bins, the model itself as the integrand."""
    edges, means, stds = BINS
    edges, means = ([part[0], part[1] + shift] for part in (edges, means))
    row = [0.4, 2.5 + shift]
    columns, cells = [], []
    for j in range(2):
        column = oracle.binned_column(edges[j], means[j], stds[j], breaks=points[j], resolution=0.15)
        cells.append(oracle.bin_of(edges[j], row[j]))
        columns.append(oracle.bin_weighted(column, cells[-1], bandwidth))
    truth = oracle.truth(columns, f, cells)
    design = limes.designs.ProductDesign.from_bins(edges, means, stds, row, bandwidth)
    surrogate = limes.limit(design, form)
    assert oracle.error(surrogate.coef, truth.coef, truth.size) < oracle.EXACT
    assert oracle.error(surrogate.intercept, truth.intercept, truth.size) < oracle.EXACT


@pytest.mark.parametrize("name", LINEAR)
def test_linear_models_behind_functions_over_bins(name):
    rows = POSITIVE if name == "box-cox" else X
    model, points = fitted(name, LinearRegression(), rows)
    shift = 3.0 if name == "box-cox" else 0.0
    assert_bins(read_form(model, "predict", None), model.predict, points, shift=shift)


@pytest.mark.skipif("clip" not in MaxAbsScaler().get_params(), reason="MaxAbsScaler cannot clip here")
def test_largest_values_are_clipped_at_both_ends():
    model = make_pipeline(MaxAbsScaler(clip=True), LinearRegression()).fit(X, Y)
    form, x = read_form(model, "predict", None), np.linspace([-30.0, -20.0], [30.0, 20.0], 41)
    np.testing.assert_allclose(form.predict(x), model.predict(x), rtol=1e-9, atol=1e-12)


def test_blends_of_more_columns_than_a_block(monkeypatch):
    """A blend's matrix is asked for block by block of columns."""
    monkeypatch.setattr("limes.models.readers.sklearn_transformers._BLOCK", 2)
    rows = np.random.default_rng(4).normal(size=(60, 5))
    model = make_pipeline(PCA(3), LinearRegression()).fit(rows, rows[:, 0] - rows[:, 4])
    form = read_form(model, "predict", None)
    np.testing.assert_allclose(form.predict(rows), model.predict(rows), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in LINEAR if name != "box-cox"])
def test_linear_models_behind_functions_as_slopes(name):
    """Normal laws on the whole line, smooth weights."""
    model, points = fitted(name, LinearRegression(), X[:, :1])
    design, columns = slopes.normal_columns(np.random.default_rng(2), 1)
    form = read_form(model, "predict", None)
    slopes.assert_slopes(design, form, model.predict, columns(points, resolution=0.1))


# -- kernels ----------------------------------------------------------------------------------------------

KERNELS = {
    "log1p": [ufunc(np.log1p), StandardScaler(), SVR(gamma=0.7)],
    "clipped": [MinMaxScaler(clip=True), SVR(gamma=9.0)],
    "yeo-johnson": [PowerTransformer(), KernelRidge(kernel="rbf", gamma=0.4, alpha=0.1)],
    "ranks": [QuantileTransformer(n_quantiles=9), KernelRidge(kernel="rbf", gamma=20.0, alpha=0.1)],
    "laplacian": [StandardScaler(), KernelRidge(kernel="laplacian", gamma=0.6, alpha=0.1)],
    "laplacian of arcsinh": [ufunc(np.arcsinh), KernelRidge(kernel="laplacian", gamma=2.0, alpha=0.1)],
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_behind_functions(name):
    steps = KERNELS[name]
    rows, y = (X[:25], Y[:25]) if "laplacian" in name else (np.abs(X[:60]), Y[:60])
    model = make_pipeline(*map(clone, steps)).fit(rows, y)
    form = read_form(model, "predict", None)
    x = np.abs(np.random.default_rng(3).normal(size=(400, 2)) * [1.0, 3.0])
    np.testing.assert_allclose(form.predict(x), model.predict(x), rtol=1e-9, atol=1e-9)
    points = bends(model[0], rows)
    if "laplacian" in name:  # a kink at each center
        points = [sorted({*each, *column}) for each, column in zip(points, rows.T, strict=True)]
    assert_bins(form, model.predict, points, shift=3.0)


# -- trees ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "steps",
    [
        [ufunc(np.square)],
        [StandardScaler(), ufunc(np.abs), MinMaxScaler()],
        [ufunc(np.negative), ufunc(np.fabs), ufunc(np.negative)],
        [ufunc(np.tanh), ufunc(np.square), ufunc(np.sqrt)],
        [ufunc(np.sign)],
        [ufunc(np.isnan)],
    ],
    ids=["square", "absolute", "falling", "rising", "sign", "isnan"],
)
@pytest.mark.parametrize("depth", [1, 7])
def test_trees_behind_squares_and_absolute_values(steps, depth):
    rng = np.random.default_rng(4)
    rows = np.where(rng.random(X.shape) < 0.1, np.nan, X - X.mean(axis=0))
    tree = DecisionTreeRegressor(max_depth=depth, random_state=0)
    model = make_pipeline(*map(clone, steps), tree).fit(rows, Y)
    form = read_form(model, "predict", None)
    forest = form.parts[0] if isinstance(form, forms.Combination) else form
    edges = np.unique(forest.threshold[(forest.feature >= 0) & np.isfinite(forest.threshold)])
    near = np.concatenate([edges, np.nextafter(edges, 99.0), np.nextafter(edges, -99.0), [0.0, -0.0, np.nan]])
    x = np.concatenate([rng.choice(near, (2000, 2)), rng.normal(size=(500, 2)) * 3, rows, -rows])
    np.testing.assert_array_equal(form.predict(x), model.predict(x))


# -- sums of columns --------------------------------------------------------------------------------------

TABLE = RNG.normal(size=(150, 5)) @ RNG.normal(size=(5, 5)) + np.arange(5.0)
TARGET = TABLE[:, 0] - 0.3 * TABLE[:, 1] * TABLE[:, 2]
BLENDS = {
    "pca": [PCA(3)],
    "whitened": [StandardScaler(), PCA(4, whiten=True)],
    "incremental": [IncrementalPCA(3, whiten=True), StandardScaler()],
    "svd": [TruncatedSVD(2)],
    "factors": [FactorAnalysis(2)],
    "independent": [FastICA(3, random_state=0), MinMaxScaler()],
    "projection": [GaussianRandomProjection(3, random_state=0)],
    "twice": [PCA(4), StandardScaler(), PCA(2)],
    "union": [FeatureUnion([("pca", PCA(2)), ("same", StandardScaler())])],
    "some columns": [make_column_transformer((PCA(2), [0, 2, 3]), remainder=ufunc(np.square))],
    "products": [StandardScaler(), PCA(2), PolynomialFeatures(2)],
}


@pytest.mark.parametrize("name", BLENDS)
def test_linear_models_behind_principal_components(name):
    model = make_pipeline(*map(clone, BLENDS[name]), Ridge(0.1)).fit(TABLE, TARGET)
    form = read_form(model, "predict", None)
    x = np.random.default_rng(5).normal(size=(300, 5)) * 4
    np.testing.assert_allclose(form.predict(x), model.predict(x), rtol=1e-9, atol=1e-9)
    if name not in ("some columns", "products"):  # a linear model in the user's columns
        assert isinstance(form, forms.Linear)
        explainer = limes.TabularExplainer(model, TABLE, bins=None, method="exact")
        expected = model.predict(np.eye(5)) - model.predict(np.zeros((1, 5)))
        np.testing.assert_allclose(
            explainer(TABLE[:2]).coefficients.values, [expected] * 2, rtol=1e-8, atol=1e-9
        )


def test_margins_behind_discriminants_and_other_models_behind_components():
    labels = np.digitize(TARGET, [-1.0, 1.0])
    model = make_pipeline(LinearDiscriminantAnalysis(), LogisticRegression()).fit(TABLE, labels)
    form = read_form(model, "decision_function", None)
    np.testing.assert_allclose(form.predict(TABLE), model.decision_function(TABLE), rtol=1e-9, atol=1e-9)
    linear = make_pipeline(PCA(3), SVR(kernel="linear")).fit(TABLE, TARGET)
    quadratic = make_pipeline(PCA(3), SVR(kernel="poly", degree=2, coef0=1.0)).fit(TABLE, TARGET)
    for each in (linear, quadratic):
        form = read_form(each, "predict", None)
        np.testing.assert_allclose(form.predict(TABLE), each.predict(TABLE), rtol=1e-8)
    for last in (DecisionTreeRegressor(), SVR()):
        with pytest.raises(CannotRead, match=f"linear models are read only, not {type(last).__name__}"):
            read_form(make_pipeline(PCA(3), last).fit(TABLE, TARGET), "predict", None)
    with pytest.raises(CannotRead, match="between PCA and the model scalers are read only"):
        read_form(make_pipeline(PCA(3), ufunc(np.tanh), Ridge()).fit(TABLE, TARGET), "predict", None)


def test_principal_components_of_images():
    rng = np.random.default_rng(6)
    images = rng.random((80, 6, 6))
    flat = images.reshape(80, -1)
    model = make_pipeline(PCA(5), Ridge()).fit(flat, flat[:, :6].sum(axis=1))
    labels = np.arange(36).reshape(6, 6) // 12
    explainer = limes.ImageExplainer(model, segments=lambda image: labels, fill=0.0, method="exact")
    result = explainer(images[0])
    z = np.array(np.meshgrid(*[[0, 1]] * 3)).reshape(3, -1).T
    answers = model.predict((images[0] * z[:, labels]).reshape(8, -1))
    expected = [answers[z[:, j] == 1].mean() - answers[z[:, j] == 0].mean() for j in range(3)]
    assert result.method == "exact"
    np.testing.assert_allclose(np.ravel(result.coefficients.values), expected, rtol=1e-9, atol=1e-12)


# -- where the model raises -------------------------------------------------------------------------------

LOGNORMAL = pd.DataFrame({"a": RNG.lognormal(0, 1, 300), "b": RNG.normal(size=300)})
GROWING = np.log(LOGNORMAL["a"]) + LOGNORMAL["b"]


def of_logarithm(last, step=None):
    step = ufunc(np.log) if step is None else step
    return make_pipeline(make_column_transformer((step, ["a"]), remainder="passthrough"), last)


BOOSTING = GradientBoostingRegressor(n_estimators=5, random_state=0)
RAISING = {
    "boosting": of_logarithm(BOOSTING),
    "square root": of_logarithm(BOOSTING, ufunc(np.sqrt)),
    "log1p": of_logarithm(BOOSTING, ufunc(np.log1p)),
    "bagging": of_logarithm(BaggingRegressor(BOOSTING, 3, random_state=0)),
    "voting": of_logarithm(VotingRegressor([("a", BOOSTING), ("b", DecisionTreeRegressor(max_depth=2))])),
    "stacking": of_logarithm(StackingRegressor([("a", BOOSTING)], Ridge())),
    "linear": of_logarithm(Ridge()),
    "no coefficient": of_logarithm(Lasso(alpha=100.0)),
    "kernels": of_logarithm(SVR()),
    "a step between": of_logarithm(
        DecisionTreeRegressor(max_depth=3), make_pipeline(ufunc(np.log), Binarizer(threshold=0.3))
    ),
    "box-cox": of_logarithm(RandomForestRegressor(3, random_state=0), PowerTransformer("box-cox")),
    "splines": of_logarithm(Ridge(), SplineTransformer(4, extrapolation="error")),
    "components": of_logarithm(Ridge(), make_pipeline(ufunc(np.log), PCA(1))),
}
ANSWERING = {
    "tree": DecisionTreeRegressor(max_depth=4, random_state=0),
    "forest": RandomForestRegressor(4, random_state=0),
    "histogram": HistGradientBoostingRegressor(max_iter=5),
    "bagging": BaggingRegressor(DecisionTreeRegressor(max_depth=3), 3, random_state=0),
}


@pytest.mark.parametrize("name", RAISING)
@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_no_form_is_finite_where_the_model_raises(name):
    model = RAISING[name].fit(LOGNORMAL, GROWING)
    form = read_form(model, "predict", Schema(("a", "b"), ((), ())))
    rng = np.random.default_rng(7)
    count = repeats(80, 24)
    x = np.column_stack([rng.normal(size=count) * 3, rng.normal(size=count)])
    answers = np.full(len(x), np.nan)
    for i, row in enumerate(x):
        try:
            answers[i] = model.predict(pd.DataFrame([row], columns=["a", "b"]))[0]
        except ValueError:
            continue
    assert count / 8 < np.isnan(answers).sum() < 7 * count / 8
    np.testing.assert_allclose(form.predict(x), answers, rtol=1e-9)
    design = limes.TabularExplainer(lambda table: table["a"], LOGNORMAL, bins=None).design(LOGNORMAL.iloc[0])
    with pytest.raises(ModelError, match=r"column 'a'.*law='uniform'"):
        limes.limit(design, form)


@pytest.mark.parametrize("name", ANSWERING)
@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_transformers_of_missing_values_are_exact_where_logarithms_are_not_defined(name):
    model = of_logarithm(ANSWERING[name]).fit(LOGNORMAL, GROWING)
    exact = limes.TabularExplainer(model, LOGNORMAL, bins=None, method="exact")(LOGNORMAL[:1])
    sampling = {"method": "sampled", "control": "none", "max_calls": 2**15, "rng": 0}
    drawn = limes.TabularExplainer(model, LOGNORMAL, bins=None, **sampling)(LOGNORMAL[:1])
    assert (
        np.abs(
            (exact.coefficients.values - drawn.coefficients.values) / drawn.coefficients.standard_errors
        ).max()
        < 6
    )


def test_inside_its_domain_a_logarithm_is_exact():
    model = of_logarithm(BOOSTING).fit(LOGNORMAL, GROWING)
    for options in ({"law": "uniform", "bins": None}, {"law": "empirical"}, {"bins": "quartile"}):
        exact = limes.TabularExplainer(model, LOGNORMAL, method="exact", **options)(LOGNORMAL[:1])
        sampling = {"method": "sampled", "control": "none", "max_calls": 2**15, "rng": 0}
        drawn = limes.TabularExplainer(model, LOGNORMAL, **sampling, **options)(LOGNORMAL[:1])
        assert (
            np.abs(
                (exact.coefficients.values - drawn.coefficients.values) / drawn.coefficients.standard_errors
            ).max()
            < 6
        )


def test_the_error_names_column_step_and_place():
    model = of_logarithm(Ridge()).fit(LOGNORMAL, GROWING)
    with pytest.raises(NotReadableError, match=r"column 'a' behind FunctionTransformer\(log\): .* at -\d"):
        limes.TabularExplainer(model, LOGNORMAL, bins=None, method="exact")(LOGNORMAL[:1])
    model = of_logarithm(BOOSTING).fit(LOGNORMAL, GROWING)
    with pytest.raises(NotReadableError, match="GradientBoostingRegressor takes no missing or inf"):
        limes.TabularExplainer(model, LOGNORMAL, bins=None, method="exact")(LOGNORMAL[:1])


# -- what is not read -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([SplineTransformer(), DecisionTreeRegressor()], "column 'x0' behind SplineTransformer"),
        ([ufunc(np.sin), DecisionTreeRegressor()], "it neither rises nor falls"),
        ([ufunc(np.square), SVR()], "scalers and linear models are read only"),
        ([ufunc(np.square), Binarizer(), Ridge()], "scalers and linear models are read only"),
        ([ufunc(np.square), SplineTransformer(), Ridge()], "scalers and linear models are read only"),
        ([ufunc(np.reciprocal), Ridge()], "does not know what the function 'reciprocal' does"),
        ([ufunc(lambda t: t), Ridge()], "does not know what the function '<lambda>' does"),
        ([QuantileTransformer(n_quantiles=9), SVR(gamma=1e12)], "too narrow to be integrated"),
    ],
)
def test_reasons(steps, reason):
    model = make_pipeline(*map(clone, steps)).fit(X, Y)
    with pytest.raises(CannotRead, match=reason):
        read_form(model, "predict", None)


@pytest.mark.parametrize(
    "steps",
    [
        [MinMaxScaler(clip=True), PolynomialFeatures(2)],
        [ufunc(np.arcsinh), PolynomialFeatures(2, include_bias=False), StandardScaler()],
        [SplineTransformer(3, degree=2), PolynomialFeatures(2, interaction_only=True)],
    ],
    ids=["clipped", "arcsinh", "splines"],
)
def test_products_of_functions_of_columns(steps):
    model = make_pipeline(*map(clone, steps), Ridge()).fit(X, Y)
    form = read_form(model, "predict", None)
    x = np.random.default_rng(8).normal(size=(300, 2)) * 2
    np.testing.assert_allclose(form.predict(x), model.predict(x), rtol=1e-9, atol=1e-9)
    assert_bins(form, model.predict, bends(model[0], X))


def test_splines_of_categories_of_missing_values_and_of_several_outputs():
    codes = np.random.default_rng(9).integers(0, 4, 200).astype(float)
    rows = np.column_stack([X[:, 0], codes])
    steps = make_column_transformer(
        (make_pipeline(OrdinalEncoder(), SplineTransformer(3)), [1]), (SplineTransformer(4), [0])
    )
    model = make_pipeline(steps, LinearRegression()).fit(rows, np.column_stack([Y, Y**2]))
    form = read_form(model, "predict", None)
    np.testing.assert_allclose(form.predict(rows), model.predict(rows), rtol=1e-9, atol=1e-9)
    blank = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    model = make_pipeline(SplineTransformer(4, handle_missing="zeros"), Ridge()).fit(blank, Y)
    form = read_form(model, "predict", None)
    np.testing.assert_allclose(form.predict(blank), model.predict(blank), rtol=1e-9)


def test_trees_behind_a_logarithm_take_the_numbers_beside_its_start_as_the_model_does():
    """The largest float64 below -1 is missing to log1p, the smallest above is not."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-0.9, 3.0, 400), np.full(60, np.nan)])
    y = np.where(np.isnan(x), 5.0, np.sin(2.0 * x))
    model = make_pipeline(FunctionTransformer(np.log1p), HistGradientBoostingRegressor(max_iter=5))
    form = limes.models.read(model.fit(x[:, None], y))
    beside = np.array([[-2.0], [np.nextafter(-1.0, -2.0)], [np.nextafter(-1.0, 0.0)], [0.5]])
    with np.errstate(invalid="ignore"):
        expected = model.predict(beside)
        np.testing.assert_allclose(form.predict(beside).ravel(), expected, rtol=oracle.EXACT)
    assert expected[1] > expected[2] + 1.0


@pytest.mark.parametrize(("function", "start"), [(np.log1p, -1.0), (np.log, 0.0)])
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_trees_that_take_infinite_numbers_are_read_at_the_start_of_a_logarithm(function, start):
    """Its logarithm is -inf there, which histogram boosting sends down its trees, and other trees refuse."""
    x = np.concatenate([np.full(80, start), start + np.random.default_rng(0).gamma(2.0, size=300)])[:, None]
    y = np.where(x[:, 0] == start, 3.0, np.sin(x[:, 0]))
    model = make_pipeline(FunctionTransformer(function), HistGradientBoostingRegressor(max_iter=5)).fit(x, y)
    at = np.array([[start], [np.nextafter(start, -9.0)], [np.nextafter(start, 9.0)], [1e308]])
    np.testing.assert_allclose(limes.models.read(model).predict(at), model.predict(at), rtol=oracle.EXACT)
    assert limes.TabularExplainer(model, x, law="empirical", method="exact")(x[:1]).method == "exact"
    tree = make_pipeline(FunctionTransformer(function), DecisionTreeRegressor()).fit(x[80:], y[80:])
    assert np.isnan(limes.models.read(tree).predict(at[:1])).all()
