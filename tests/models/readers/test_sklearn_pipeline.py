"""Pipelines: predictions at every edge, explanations in the user's columns, and reasons for sampling."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import limes
import oracle
from effort import crossed
from internals import CannotRead, Table, read_form
from limes.exceptions import ModelError
from limes.models import forms

TEXT, NUMBERS, CODES = ["job", "region"], ["income", "age", "gain"], ["code", "member"]


def mixed(n=300, seed=0):
    """Text and numbers with missing values, a category of numbers, a flag."""
    rng = np.random.default_rng(seed)
    job = rng.choice(["nurse", "clerk", "smith", "abbot"], n, p=[0.5, 0.3, 0.17, 0.03])
    job[:4] = ["nurse", "clerk", "smith", "abbot"]
    frame = pd.DataFrame(
        {
            "income": rng.lognormal(3, 1, n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 90, n)),
            "gain": np.where(rng.random(n) < 0.5, 0.0, rng.exponential(10, n)),
            "job": pd.Series(job).where(rng.random(n) > 0.1),
            "region": rng.choice(list("NSEW"), n),
            "code": rng.integers(0, 6, n),
            "member": rng.random(n) < 0.3,
        }
    )
    frame.loc[0, "age"], frame.loc[1, "job"] = np.nan, np.nan
    target = (
        np.log(frame["income"])
        + 2.0 * (frame["job"] == "nurse")
        - frame["age"].fillna(20) / 50
        + frame["gain"] / 20 * (frame["region"] == "N")
        + (frame["code"] == 2)
        - frame["member"]
    )
    return frame, target.to_numpy() + rng.normal(0, 0.1, n)


FRAME, TARGET = mixed()
LABELS = np.digitize(TARGET, np.quantile(TARGET, [0.3, 0.7]))


# -- predictions ------------------------------------------------------------------------------------------


def edges_of(form, j):
    """Numbers of column j at which a form may change its mind."""
    if isinstance(form, forms.Combination):
        return np.concatenate([edges_of(part, j) for part in form.parts])
    if isinstance(form, forms.Forest):
        return np.unique(form.threshold[(form.feature == j) & (form.set_of < 0)])
    function = form.reduce().functions[j]
    families = [function, *getattr(function, "families", ())]
    return np.concatenate([np.zeros(0), *[np.asarray(getattr(f, "cuts", [])) for f in families]])


def adversarial(form, matrix, *, rows, keep=(), low=-1e6, rng=0):
    """Rows with columns drawn on their own; numbers at edges, a few ulps beside, in float32, far away."""
    rng = np.random.default_rng(rng)
    result = np.stack([rng.choice(column, rows) for column in matrix.T], axis=1)
    for j in set(range(matrix.shape[1])) - set(keep):
        edges = edges_of(form, j)
        edges = edges[np.isfinite(edges)]
        edges = rng.choice(edges, 200) if edges.size > 200 else edges
        near = [edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)]
        near += [np.nextafter(n, np.copysign(np.inf, n - edges + 0.0)) for n in near[1:]]
        single = edges.astype(np.float32)
        near += [s.astype(float) for s in (single, np.nextafter(single, np.float32(np.inf)))]
        pool = np.concatenate([*near, [1e6, low, max(low, -0.3), 0.7]])
        pool = pool[pool >= low]
        result[:, j] = np.where(rng.random(rows) < 0.5, rng.choice(pool, rows), result[:, j])
    return result


def check(model, frame=FRAME, method="predict", *, keep=None, rows=1200, low=-1e6):
    """The form of a fitted pipeline, after comparing it with the pipeline."""
    table = Table.fit(frame)
    form = read_form(model, method, table.schema)
    fixed = [j for j, c in enumerate(table.columns) if c.categorical or c.name in CODES]
    fixed += [table.names.index(name) for name in keep or ()]
    x = adversarial(form, table.matrix, rows=rows, keep=fixed, low=low)
    expected = getattr(model, method)(table.decode(x))
    np.testing.assert_allclose(form.predict(x), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    return form


def prepared(numbers="passthrough", text=None, rest="passthrough"):
    """Numbers and text of the mixed table, each its own way."""
    text = text or make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    return make_column_transformer((numbers, NUMBERS), (text, TEXT), remainder=rest)


def imputed(*steps):
    return make_pipeline(SimpleImputer(strategy="median", add_indicator=True), *steps)


def test_texts_reach_a_model_that_has_no_names_of_columns():
    catboost = pytest.importorskip("catboost")
    X = FRAME[["job", "income"]]
    options = {"one_hot_max_size": 10, "verbose": 0, "allow_writing_files": False}
    booster = catboost.CatBoostRegressor(iterations=5, cat_features=[0], **options)
    check(make_pipeline(SimpleImputer(strategy="most_frequent"), booster).fit(X, TARGET), X)


SCALERS = {
    "standard": StandardScaler(),
    "without mean": StandardScaler(with_mean=False),
    "without std": StandardScaler(with_std=False),
    "neither": StandardScaler(with_mean=False, with_std=False),
    "min-max": MinMaxScaler((-2, 3)),
    "clipped": MinMaxScaler(clip=True),
    "robust": RobustScaler(),
    "robust without centering": RobustScaler(with_centering=False),
    "robust without scaling": RobustScaler(with_scaling=False),
    "max-abs": MaxAbsScaler(),
    "two": make_pipeline(RobustScaler(), MinMaxScaler()),
}
LINEAR = LinearRegression()
TREE = DecisionTreeRegressor(random_state=0)
FOREST = RandomForestRegressor(8, random_state=0)


@pytest.mark.parametrize(("scaler", "last"), crossed(SCALERS, [LINEAR, TREE, FOREST]))
def test_scalers(scaler, last):
    check(make_pipeline(prepared(imputed(SCALERS[scaler])), last).fit(FRAME, TARGET))


def _quiet(model, frame):
    """Fit, without being told that a bin is too narrow."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(frame, TARGET)


MONOTONE = {
    "yeo-johnson": PowerTransformer(),
    "box-cox": PowerTransformer("box-cox", standardize=False),
    "uniform": QuantileTransformer(n_quantiles=40, random_state=0),
    "normal": QuantileTransformer(n_quantiles=40, output_distribution="normal", random_state=0),
    "log1p": FunctionTransformer(np.log1p),
    "log": FunctionTransformer(np.log),
    "sqrt": FunctionTransformer(np.sqrt, validate=True),
    "arcsinh": FunctionTransformer(np.arcsinh),
    "float32 bins": KBinsDiscretizer(
        5, encode="ordinal", dtype=np.float32, quantile_method="averaged_inverted_cdf"
    ),
    "binary": Binarizer(threshold=25.0),
}


@pytest.mark.parametrize("step", MONOTONE)
def test_rising_functions_in_front_of_trees(step):
    frame = FRAME[["income", "code"]] + 1.0
    check(_quiet(make_pipeline(MONOTONE[step], FOREST), frame), frame, low=1e-3)


@pytest.mark.parametrize("missing_left", [True, False])
def test_undefined_logarithms_are_treated_as_missing(missing_left):
    """Trees route NaN, and log makes NaN of what is below 0."""
    rng = np.random.default_rng(3)
    X = np.where(rng.random((200, 1)) < 0.3, np.nan, rng.uniform(0.5, 3, (200, 1)))
    y = np.where(np.isnan(X[:, 0]) | (X[:, 0] < 1), 0.0, 1.0)
    y = y if missing_left else np.where(X[:, 0] < 1, 0.0, 1.0)
    model = make_pipeline(FunctionTransformer(np.log), DecisionTreeRegressor(max_depth=3)).fit(X, y)
    form = read_form(model, "predict", None)
    x = np.concatenate([np.linspace(-2, 4, 400), edges_of(form, 0), [np.nan, -1e-300, 1e-300]])
    x = x[np.isfinite(x) | np.isnan(x)]
    x = x[x != 0][:, None]
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(form.predict(x), model.predict(x))


BINS = [
    {"encode": encode, "strategy": strategy}
    for encode in ("ordinal", "onehot", "onehot-dense")
    for strategy in ("uniform", "quantile")
]


@pytest.mark.parametrize("options", BINS, ids=lambda o: "-".join(o.values()))
@pytest.mark.parametrize("last", [LINEAR, DecisionTreeRegressor(max_depth=6)], ids=["linear", "tree"])
def test_bins(options, last):
    bins = KBinsDiscretizer(5, quantile_method="averaged_inverted_cdf", **options)
    check(_quiet(make_pipeline(prepared(make_pipeline(SimpleImputer(), bins)), last), FRAME))


ENCODERS = {
    "all": OneHotEncoder(),
    "dense": OneHotEncoder(sparse_output=False, dtype=np.float32),
    "first dropped": OneHotEncoder(drop="first"),
    "binary dropped": OneHotEncoder(drop="if_binary"),
    "named dropped": OneHotEncoder(drop=["clerk", "S"]),
    "ignore": OneHotEncoder(handle_unknown="ignore"),
    "infrequent": OneHotEncoder(min_frequency=0.1, handle_unknown="infrequent_if_exist"),
    "infrequent dropped": OneHotEncoder(max_categories=2, drop="first", handle_unknown="ignore"),
    "given": OneHotEncoder(categories=[["smith", "clerk", "nurse", "abbot", np.nan], list("WESN")]),
    "ordinal": OrdinalEncoder(),
    "ordinal missing": OrdinalEncoder(encoded_missing_value=-3),
    "ordinal unknown": OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=9, encoded_missing_value=-5, min_frequency=0.1
    ),
    "target": TargetEncoder(target_type="continuous"),
}


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("last", [LINEAR, TREE], ids=["linear", "tree"])
def test_encoders_of_text_with_missing_values(encoder, last):
    if encoder == "ordinal" and last is LINEAR:
        text = make_pipeline(ENCODERS[encoder], SimpleImputer())  # missing stays missing
    else:
        text = ENCODERS[encoder]
    check(make_pipeline(prepared(SimpleImputer(), text), last).fit(FRAME, TARGET))


@pytest.mark.parametrize(
    "encoder", ["ignore", "infrequent", "infrequent dropped", "ordinal unknown", "target"]
)
def test_categories_unseen_in_training(encoder):
    """The background knows more than the training data did."""
    seen = (FRAME["job"] != "abbot") & FRAME["job"].notna() & (FRAME["region"] != "W")
    model = make_pipeline(prepared(SimpleImputer(), ENCODERS[encoder]), TREE).fit(FRAME[seen], TARGET[seen])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn tells of unknown categories
        check(model)


@pytest.mark.parametrize("unknown", ["error", "ignore"])
@pytest.mark.parametrize("last", [LINEAR, TREE], ids=["linear", "tree"])
def test_categories_that_are_numbers(unknown, last):
    encoders = (
        (OneHotEncoder(handle_unknown=unknown), ["code", "member"]),
        (StandardScaler(), ["code", "income"]),
    )
    check(make_pipeline(make_column_transformer(*encoders), last).fit(FRAME, TARGET))
    only = make_pipeline(make_column_transformer(encoders[0], remainder="drop"), last).fit(FRAME, TARGET)
    form = check(only)
    free = FRAME.assign(code=FRAME["code"] + 0.5) if unknown == "ignore" else FRAME
    assert form.predict(Table.fit(free).matrix).shape == (len(free),)
    if unknown == "ignore":
        np.testing.assert_allclose(form.predict(Table.fit(free).matrix), only.predict(free), rtol=1e-12)


def test_numbers_encoded_as_categories_are_explained_as_categories():
    model = make_pipeline(make_column_transformer((OneHotEncoder(), ["code"])), TREE).fit(FRAME, TARGET)
    by_model = limes.TabularExplainer(model, FRAME, method="exact")(FRAME.iloc[:1])
    by_option = limes.TabularExplainer(model, FRAME, method="exact", categorical=["code"])(FRAME.iloc[:1])
    assert by_model.coefficients.values[0, 5] != 0
    np.testing.assert_array_equal(by_model.coefficients.values, by_option.coefficients.values)


# -- structure --------------------------------------------------------------------------------------------


def test_columns_by_name_position_slice_mask_callable_and_remainder():
    by_name = ColumnTransformer(
        [
            ("text", OneHotEncoder(), make_column_selector(dtype_exclude=["number", "bool"])),
            ("slice", imputed(), slice("income", "gain")),
            ("nothing", StandardScaler(), []),
            ("dropped", "drop", ["code"]),
        ],
        remainder="passthrough",
        transformer_weights={"slice": 0.3},
    )
    check(make_pipeline(by_name, FOREST).fit(FRAME, TARGET))
    numbers = FRAME[NUMBERS + CODES].astype(float).to_numpy()
    by_place = ColumnTransformer(
        [
            ("a", imputed(StandardScaler()), [1, 0]),
            ("b", MinMaxScaler(), slice(2, 3)),
            ("c", "passthrough", [-1]),
        ],
        remainder=StandardScaler(),
    )
    check(make_pipeline(by_place, FOREST).fit(numbers, TARGET), numbers)
    mask = ColumnTransformer([("a", StandardScaler(), np.array([True, False, False, True, False]))])
    check(make_pipeline(mask, FOREST).fit(numbers, TARGET), numbers)


def test_the_background_may_have_other_columns_and_another_order():
    model = make_pipeline(prepared(imputed(), rest="drop"), FOREST).fit(FRAME, TARGET)
    check(model, FRAME[FRAME.columns[::-1]].assign(more=1.5))


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_nested_pipelines_and_dataframes_between_steps(output):
    first = ColumnTransformer(
        [("text", OneHotEncoder(sparse_output=False), TEXT), ("rest", imputed(), NUMBERS)],
        remainder="passthrough",
    ).set_output(transform=output)
    second = ColumnTransformer(
        [
            (
                "a",
                StandardScaler(),
                ["rest__income", "rest__missingindicator_age"] if output != "default" else [6, 9],
            )
        ],
        remainder="passthrough",
        sparse_threshold=0,
    ).set_output(transform=output)
    inner = Pipeline([("first", first), ("second", second), ("nothing", "passthrough")])
    check(Pipeline([("inner", inner), ("none", None), ("last", FOREST)]).fit(FRAME, TARGET))


def test_sparse_matrices_are_scaled_as_scikit_learn_scales_them():
    for scaler in (StandardScaler(with_mean=False), MaxAbsScaler(), RobustScaler(with_centering=False)):
        encoder = prepared(SimpleImputer(), OneHotEncoder(), rest="drop").set_params(sparse_threshold=1.0)
        model = make_pipeline(encoder, scaler, VarianceThreshold(0.01), TREE).fit(FRAME, TARGET)
        assert model[0].sparse_output_
        check(model)


def test_unions_and_selections():
    union = FeatureUnion(
        [
            ("scaled", StandardScaler()),
            ("bins", KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf")),
            ("out", "drop"),
            ("same", "passthrough"),
        ],
        transformer_weights={"scaled": -2.0},
    )
    numbers = FRAME[["income", "gain", "code"]]
    for last in (LINEAR, TREE):
        check(_quiet(make_pipeline(union, SelectKBest(k=7), last), numbers), numbers)
    flags = FeatureUnion(
        [("flag", MissingIndicator(features="all")), ("fill", SimpleImputer(strategy="mean"))]
    )
    for last in (LINEAR, TREE):
        check(make_pipeline(flags, last).fit(FRAME[NUMBERS], TARGET), FRAME[NUMBERS])


IMPUTERS = [
    {"strategy": "mean"},
    {"strategy": "most_frequent", "add_indicator": True},
    {"strategy": "constant", "fill_value": -7},
    {"strategy": "median", "keep_empty_features": True},
    {"strategy": "median", "keep_empty_features": False},
]


@pytest.mark.parametrize("options", IMPUTERS, ids=lambda o: "-".join(map(str, o.values())))
@pytest.mark.filterwarnings("ignore:Skipping features")
def test_imputers_of_numbers(options):
    frame = FRAME[NUMBERS].assign(empty=np.nan)
    for last in (LINEAR, TREE):
        check(make_pipeline(SimpleImputer(**options), last).fit(frame, TARGET), frame)


def test_imputers_of_text():
    fill = SimpleImputer(strategy="constant", fill_value="?")
    check(
        make_pipeline(prepared(SimpleImputer(), make_pipeline(fill, OneHotEncoder())), TREE).fit(
            FRAME, TARGET
        )
    )
    clerk = SimpleImputer(missing_values="clerk", strategy="most_frequent", add_indicator=True)
    frame = FRAME.assign(job=FRAME["job"].fillna("nurse").astype(object))[TEXT]
    check(make_pipeline(clerk, OrdinalEncoder(), TREE).fit(frame, TARGET), frame)
    frame = pl.from_pandas(FRAME[["job", "income"]])
    none = make_pipeline(SimpleImputer(missing_values=None, strategy="most_frequent"), OneHotEncoder())
    check(
        make_pipeline(make_column_transformer((none, ["job"]), remainder="passthrough"), TREE).fit(
            frame, TARGET
        ),
        frame,
    )


# -- last steps -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "method"),
    [
        (LogisticRegression(max_iter=500), "decision_function"),
        (DecisionTreeClassifier(max_depth=4, random_state=0), "predict_proba"),
        (RandomForestClassifier(6, random_state=0), "predict_proba"),
        (GradientBoostingClassifier(n_estimators=5, random_state=0), "decision_function"),
    ],
    ids=["logistic", "tree", "forest", "boosting"],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers(last, method, classes):
    labels = LABELS if classes == 3 else LABELS > 0
    model = make_pipeline(prepared(imputed(StandardScaler())), last).fit(FRAME, labels)
    check(model, method=method)


def test_sample_weights_targets_constants_and_depth():
    weights = np.random.default_rng(0).uniform(0.1, 3, len(TARGET))
    both = np.stack([TARGET, -(TARGET**2)], axis=1)
    prepare = prepared(imputed(StandardScaler()))
    check(make_pipeline(prepare, Ridge()).fit(FRAME, TARGET, ridge__sample_weight=weights))
    check(make_pipeline(prepare, TREE).fit(FRAME, both))
    check(make_pipeline(prepare, LINEAR).fit(FRAME, both))
    for last in (LINEAR, TREE, DecisionTreeRegressor(max_depth=1)):
        check(make_pipeline(prepare, last).fit(FRAME, np.full(len(TARGET), 2.5)))
        check(make_pipeline(prepare, last).fit(FRAME, TARGET))
    deep = np.cumsum(np.random.default_rng(1).exponential(size=300))[:, None]
    chain = DecisionTreeRegressor(min_samples_leaf=1, random_state=0)
    check(make_pipeline(StandardScaler(), chain).fit(deep, 2.0 ** np.arange(300.0) % 1e9), deep)


@pytest.mark.parametrize(
    "last",
    [
        SVR(C=3.0, gamma=0.2),
        HistGradientBoostingRegressor(max_iter=8, min_samples_leaf=5),
        VotingRegressor([("a", Ridge()), ("b", RandomForestRegressor(3, random_state=0))]),
        make_pipeline(StandardScaler(), GradientBoostingRegressor(n_estimators=4)),
    ],
    ids=["svr", "histogram", "voting", "pipeline"],
)
def test_other_last_steps(last):
    model = make_pipeline(prepared(imputed(StandardScaler())).set_params(sparse_threshold=0), last)
    check(model.fit(FRAME, TARGET), low=-100.0)


def test_scaled_kernels_stay_kernels():
    numbers = FRAME[["income", "gain"]]
    model = make_pipeline(RobustScaler(), SVR()).fit(numbers, TARGET)
    assert isinstance(check(model, numbers), forms.GaussianKernels)
    assert isinstance(
        check(make_pipeline(RobustScaler(), LINEAR).fit(numbers, TARGET), numbers), forms.Linear
    )


@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler(), PolynomialFeatures(2)],
        [PolynomialFeatures(2, interaction_only=True, include_bias=False), MinMaxScaler()],
        [MinMaxScaler(), PolynomialFeatures(2), StandardScaler(), VarianceThreshold(), RobustScaler()],
        [PolynomialFeatures(1)],
        [PolynomialFeatures(2), StandardScaler(), PCA(3), StandardScaler()],
    ],
    ids=["scaled", "interactions", "everything", "degree one", "components"],
)
def test_polynomials(steps):
    numbers = FRAME[["income", "gain", "code"]]
    form = check(make_pipeline(*steps, Ridge()).fit(numbers, TARGET), numbers, low=-100.0)
    assert isinstance(form, forms.Quadratic)
    small = numbers / 50
    classifier = make_pipeline(*steps, LogisticRegression(max_iter=5000, tol=1e-1)).fit(small, LABELS)
    check(classifier, small, "decision_function", low=-2.0)


def test_polynomials_of_categories_and_of_imputed_numbers():
    model = make_pipeline(prepared(imputed(StandardScaler()), rest="drop"), PolynomialFeatures(2), Ridge())
    check(model.fit(FRAME, TARGET), low=-100.0)


def test_texts_that_reach_the_last_step():
    lightgbm = pytest.importorskip("lightgbm")
    frame = FRAME[["income", "region", "code"]].assign(region=FRAME["region"].astype("category"))
    step = make_column_transformer((StandardScaler(), ["income"]), remainder="passthrough")
    last = lightgbm.LGBMRegressor(n_estimators=8, n_jobs=1, verbose=-1, min_child_samples=5)
    model = make_pipeline(step.set_output(transform="pandas"), last).fit(frame, TARGET)
    table = Table.fit(frame)
    form = read_form(model, "predict", table.schema)
    np.testing.assert_allclose(form.predict(table.matrix), model.predict(frame), rtol=1e-12)


def boosters():
    """Regressors of other libraries, and how closely they add up."""
    xgboost, catboost = pytest.importorskip("xgboost"), pytest.importorskip("catboost")
    lightgbm = pytest.importorskip("lightgbm")
    return [
        (xgboost.XGBRegressor(n_estimators=8, n_jobs=1), 1e-5),
        (lightgbm.LGBMRegressor(n_estimators=8, n_jobs=1, verbose=-1, min_child_samples=5), 1e-12),
        (catboost.CatBoostRegressor(iterations=8, verbose=0, thread_count=1), 1e-12),
    ]


@pytest.mark.parametrize("k", range(3), ids=["xgboost", "lightgbm", "catboost"])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_boosters_of_other_libraries(k):
    last, tolerance = boosters()[k]
    prepare = prepared(imputed(StandardScaler()), OneHotEncoder(sparse_output=False), rest="drop")
    model = make_pipeline(prepare, last).fit(FRAME, TARGET)
    table = Table.fit(FRAME)
    form = read_form(model, "predict", table.schema)
    x = adversarial(form, table.matrix, rows=1200, keep=[3, 4, 5, 6])
    expected = model.predict(table.decode(x))
    np.testing.assert_allclose(form.predict(x), expected, rtol=tolerance, atol=tolerance)


# -- explanations -----------------------------------------------------------------------------------------

SMALL, SMALL_TARGET = FRAME[["income", "age", "job", "code"]].iloc[:14], TARGET[:14]
EDGES = [np.quantile(SMALL[name].dropna(), [0, 0.4, 0.7, 1]) for name in ("income", "age")]
ENCODED = make_column_transformer(
    (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["job"]),
    (imputed(StandardScaler()), ["income", "age"]),
    (OneHotEncoder(), ["code"]),
)
EXPLAINED = {
    "linear": ([LINEAR], "predict"),
    "forest": ([FOREST], "predict"),
    "svr": ([SVR()], "predict"),
    "logistic": ([LogisticRegression()], "decision_function"),
    "classifier": ([RandomForestClassifier(5, random_state=0)], "predict_proba"),
    "polynomial": ([PolynomialFeatures(2), Ridge()], "predict"),
}


def enumerated(table, answer, row, bandwidth):
    """LIME's surrogate with the background's own values inside bins, by asking for every combination."""
    columns, cells = [], []
    for j, column in enumerate(table.columns):
        values, counts = np.unique(table.matrix[:, j], return_counts=True)
        places = np.arange(values.size)
        if not column.categorical:
            last = len(EDGES[j]) - 1
            places = np.array([last if np.isnan(v) else oracle.bin_of(EDGES[j], v) for v in values])
        same = (values == row[j]) | (np.isnan(values) & np.isnan(row[j]))
        cells.append(int(places[same][0]))
        column = oracle.atoms_column(values, counts, places)
        columns.append(oracle.bin_weighted(column, cells[-1], bandwidth))
    return oracle.truth(columns, lambda x: answer(table.decode(x)), cells)


@pytest.mark.parametrize("last", EXPLAINED)
@pytest.mark.parametrize("bandwidth", [0.4, 2.0])
def test_explanations_equal_enumeration(last, bandwidth):
    """Whole pipelines, missing values among the categories and the bins."""
    steps, method = EXPLAINED[last]
    y = SMALL_TARGET if method == "predict" else LABELS[:14] > 0
    model = make_pipeline(ENCODED, *steps).fit(SMALL, y)
    options = {"method": "exact", "law": "empirical", "bandwidth": bandwidth, "categorical": ["code"]}
    output = "margin" if method == "decision_function" else None
    explainer = limes.TabularExplainer(model, SMALL, bins=[*EDGES, None, None], output=output, **options)
    explanation = explainer(SMALL.iloc[:3])
    assert explanation.method == "exact"
    table = Table.fit(SMALL, categorical=["code"])
    for i, row in enumerate(table.matrix[:3]):
        truth = enumerated(table, getattr(model, method), row, bandwidth)
        assert oracle.error(explanation.coefficients.values[i], truth.coef, truth.size) < oracle.EXACT
        assert (
            oracle.error(explanation.coefficients.intercepts[i], truth.intercept, truth.size) < oracle.EXACT
        )


@pytest.mark.parametrize(
    ("steps", "breaks"),
    [
        ([StandardScaler(), PolynomialFeatures(2), Ridge()], ()),
        ([MinMaxScaler(clip=True), LINEAR], (0.0, 3.0)),
        ([FunctionTransformer(np.log1p), RobustScaler(), LINEAR], ()),
        ([RobustScaler(), SVR(gamma=0.3)], ()),
        ([QuantileTransformer(n_quantiles=20), DecisionTreeRegressor(max_depth=3, random_state=0)], None),
        ([PowerTransformer(), DecisionTreeRegressor(max_depth=3, random_state=0)], None),
    ],
    ids=["polynomial", "clipped", "log", "kernels", "quantiles", "power"],
)
def test_explanations_equal_quadrature(steps, breaks):
    """Truncated normals inside bins, the pipeline itself as the integrand."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.uniform(0, 3, (100, 2)), [[0, 0], [3, 3]]])
    model = make_pipeline(*steps).fit(X, np.sin(X[:, 0]) + X[:, 1] ** 2)
    form = read_form(model, "predict", None)
    bins = (
        [np.array([-0.5, 0.8, 2.0, 3.5])] * 2,
        [np.array([0.2, 1.5, 2.6])] * 2,
        [np.array([0.4, 0.5, 0.6])] * 2,
    )
    surrogate = limes.limit(limes.designs.ProductDesign.from_bins(*bins, [0.4, 2.5], 0.7), form)
    columns = []
    for j in range(2):
        cuts = edges_of(form, j).tolist() if breaks is None else breaks
        column = oracle.binned_column(*(part[j] for part in bins), breaks=cuts, resolution=0.3)
        columns.append(oracle.bin_weighted(column, (0, 2)[j], 0.7))
    truth = oracle.truth(columns, model.predict, [0, 2])
    assert oracle.error(surrogate.coef, truth.coef, truth.size) < oracle.EXACT
    assert oracle.error(surrogate.intercept, truth.intercept, truth.size) < oracle.EXACT


def test_a_scaled_pipeline_explains_as_the_bare_model():
    """Scaling changes nothing for least squares, and the explanation is in the user's units."""
    numbers = FRAME[["income", "gain"]]
    bare, scaled = (
        LinearRegression().fit(numbers, TARGET),
        make_pipeline(StandardScaler(), LinearRegression()),
    )
    scaled.fit(numbers, TARGET)
    result = [
        limes.TabularExplainer(m, numbers, bins=None)(numbers.iloc[:2]).coefficients.values
        for m in (bare, scaled)
    ]
    np.testing.assert_allclose(result[0], result[1], rtol=1e-9)
    np.testing.assert_allclose(result[0][0], bare.coef_, rtol=1e-9)


# -- what is not read -------------------------------------------------------------------------------------


class OwnScaler(StandardScaler):
    """A subclass may do anything."""


class OwnStep(TransformerMixin, BaseEstimator):
    """A class that no reader handles."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X)


def negative(X):
    return -X


NUMBERS_ONLY = FRAME[["income", "gain", "code"]]
REFUSED = [
    ([OwnScaler(), LINEAR], r"step 'ownscaler' \(OwnScaler\): it is a subclass of StandardScaler"),
    ([OwnStep(), LINEAR], r"step 'ownstep' \(OwnStep\): limes does not know what it does"),
    ([PCA(2), TREE], r"as principal components are, linear models are read only, not DecisionTreeRegressor"),
    ([Normalizer(), TREE], r"step 'normalizer'"),
    ([KNNImputer(), TREE], r"step 'knnimputer'"),
    ([FunctionTransformer(negative), LINEAR], r"does not know what the function 'negative' does"),
    ([FunctionTransformer(np.floor), LINEAR], r"the function 'floor' does"),
    ([FunctionTransformer(np.log1p, kw_args={"dtype": "f8"}), LINEAR], r"the function 'log1p' does"),
    ([PolynomialFeatures(3), LINEAR], r"PolynomialFeatures of degree 2 is read"),
    ([PolynomialFeatures(2), TREE], r"behind PolynomialFeatures linear models are read, not DecisionTree"),
    ([PolynomialFeatures(2), MinMaxScaler(clip=True), LINEAR], r"between PolynomialFeatures and the model"),
    ([FeatureUnion([("p", PolynomialFeatures(2))]), LINEAR], r"step 'p' \(PolynomialFeatures\): limes does"),
    ([StandardScaler(), KNeighborsRegressor()], r"limes cannot read KNeighborsRegressor yet"),
    ([StandardScaler(), OneHotEncoder(handle_unknown="ignore"), LINEAR], r"after another step has changed"),
    ([SimpleImputer(missing_values=0), TREE], r"step 'simpleimputer' .* differently from the others"),
]


@pytest.mark.parametrize(("steps", "reason"), REFUSED, ids=[reason[:40] for _, reason in REFUSED])
def test_reasons(steps, reason):
    model = make_pipeline(*steps).fit(NUMBERS_ONLY, TARGET)
    with pytest.raises(CannotRead, match=reason):
        read_form(model, "predict", Table.fit(NUMBERS_ONLY).schema)


def test_reasons_of_the_last_step_and_of_no_step():
    four = np.digitize(TARGET, np.quantile(TARGET, [0.2, 0.5, 0.8]))
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(NUMBERS_ONLY, four)
    with pytest.raises(CannotRead, match="predict_proba of LogisticRegression is not a sum"):
        read_form(model, "predict_proba", None)
    assert limes.TabularExplainer(model, NUMBERS_ONLY, max_calls=256).method == "sampled"
    for last in ("passthrough", None):
        with pytest.raises(CannotRead, match="predicts nothing"):
            read_form(Pipeline([("s", StandardScaler()), ("last", last)]).fit(NUMBERS_ONLY), "predict", None)
    with pytest.raises(CannotRead, match="does not store how many columns"):
        read_form(make_pipeline(OwnStep(), Ridge()).fit(NUMBERS_ONLY, TARGET), "predict", None)
    with pytest.raises(ModelError, match="not fitted"):
        read_form(make_pipeline(StandardScaler(), Ridge()), "predict", Table.fit(NUMBERS_ONLY).schema)


def test_text_needs_a_schema():
    model = make_pipeline(OneHotEncoder(), Ridge()).fit(FRAME[["region"]], TARGET)
    assert "categories such as 'E', but the column is taken as numbers" in limes.models.read(model).reason
    assert isinstance(
        limes.models.read(make_pipeline(StandardScaler(), Ridge()).fit(NUMBERS_ONLY, TARGET)), forms.Linear
    )


def test_categories_unseen_in_training_are_an_error_of_the_model():
    seen = FRAME["region"] != "W"
    model = make_pipeline(make_column_transformer((OneHotEncoder(), ["region"])), TREE).fit(
        FRAME[seen], TARGET[seen]
    )
    with pytest.raises(CannotRead, match=r"step .onehotencoder. .* 'W' was not in the training data"):
        read_form(model, "predict", Table.fit(FRAME).schema)
    with pytest.raises(ModelError, match="unknown categories"):
        limes.TabularExplainer(model, FRAME.sort_values("region", ascending=False))


def test_a_pipeline_of_other_columns_than_the_background():
    model = make_pipeline(StandardScaler(), Ridge()).fit(NUMBERS_ONLY, TARGET)
    with pytest.raises(CannotRead, match="was fitted on 3 columns and gets 2"):
        read_form(model, "predict", Table.fit(NUMBERS_ONLY.iloc[:, :2]).schema)
    with pytest.raises(ModelError, match="feature names"):
        limes.TabularExplainer(model, NUMBERS_ONLY.iloc[:, :2])
    named = make_pipeline(make_column_transformer((StandardScaler(), ["gain"])), Ridge()).fit(
        NUMBERS_ONLY, TARGET
    )
    with pytest.raises(CannotRead, match="was fitted on 3 columns and gets 2"):
        read_form(named, "predict", Table.fit(NUMBERS_ONLY[["income", "code"]]).schema)


def test_none_and_nan_as_two_categories_are_refused():
    frame = pd.DataFrame({"a": pd.Series(["x", None, float("nan"), "y"] * 5, dtype=object)})
    model = make_pipeline(OneHotEncoder(), Ridge()).fit(frame, np.arange(20.0))
    with pytest.raises(CannotRead, match="distinguishes None from NaN"):
        read_form(model, "predict", Table.fit(frame).schema)


def test_trees_on_categories_that_are_no_small_numbers():
    frame = FRAME[["code"]] - 1
    model = make_pipeline(OneHotEncoder(), TREE).fit(frame, TARGET)
    with pytest.raises(CannotRead, match=r"column 'code': trees split it by its categories.*such as -1"):
        read_form(model, "predict", Table.fit(frame).schema)
    check(make_pipeline(OneHotEncoder(), LINEAR).fit(frame, TARGET), frame)


def test_more_columns_behind_the_transformer_than_in_training():
    model = make_pipeline(make_column_transformer((StandardScaler(), [0, 1])), Ridge()).fit(
        NUMBERS_ONLY, TARGET
    )
    model[0].output_indices_ = {"standardscaler": slice(0, 1), "remainder": slice(0, 0)}
    with pytest.raises(CannotRead, match="returns 2 columns and returned another number"):
        read_form(model, "predict", Table.fit(NUMBERS_ONLY).schema)


@pytest.mark.parametrize("encoder", [OneHotEncoder(), OrdinalEncoder()])
@pytest.mark.parametrize("model", [Lasso(0.3), DecisionTreeRegressor(max_depth=2)])
def test_codes_that_the_model_does_not_use_remain_categories(encoder, model):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=200), "k": rng.integers(0, 4, 200)})
    encode = ColumnTransformer([("k", encoder, ["k"])], remainder="passthrough")
    model = make_pipeline(encode, model).fit(table, 2 * table["a"] + 0.01 * rng.normal(size=200))
    explanation = limes.TabularExplainer(model, table)(table[:5])
    assert explanation.method == "exact"
    assert [texts[1] for texts in explanation.conditions] == [f"k = {k}" for k in table["k"][:5]]
    assert not explanation.coefficients.values[:, 1].any()
