"""Codes of things: categories are what the model's encoder says, whatever they are and what stands behind.

The oracle is enumeration: the model's own answers to the product of the columns' values, and all subsets of
the columns. What a model is asked about is recorded outside of limes.
"""

from __future__ import annotations

import re
from functools import wraps
from itertools import combinations, product
from math import comb

import numpy as np
import pandas as pd
import polars as pl
import pytest
from catboost import CatBoostRegressor
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)

import limes
from effort import crossed
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.exceptions import InputError, ModelError
from oracle import EXACT

ROWS = 240
RNG = np.random.default_rng(0)
AGE, DEBT = RNG.choice([21.5, 30.25, 44.0, 58.5], ROWS), RNG.choice([-1.0, 0.5, 2.25], ROWS)
PLACE = RNG.integers(0, 6, ROWS)
EFFECT = np.array([2.0, -1.5, 0.25, 3.0, -2.5, 1.0])
Y = 0.05 * AGE - DEBT + EFFECT[PLACE] * (1 + (DEBT > 0))

CODES = {
    "from 0": [0, 1, 2, 3, 4, 5],
    "negative": [-9, 1, 2, 3, 4, 5],
    "all negative": [-6, -5, -4, -3, -2, -1],
    "large": [5000, 5001, 5002, 5003, 5004, 5005],
    "beyond float32": [2**24 + i for i in range(6)],
    "far apart": [-9, 10, 20, 30, 999_999, 10**12],
    "fractions": [-1.5, 0.1, 0.2, 0.5, 1.25, 7.75],
    "tiny fractions": [1e-12, 2e-12, 3e-12, 1.0, 1.0 + 1e-12, 2.0],
    "floats": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    "two": [False, True],
    "text": ["a", "b", "c", "d", "e", "f"],
    "numbers as text": ["0", "1", "007", "7", "-9", "0.5"],
}
# which scikit-learn's encoders do not sort
MIXED = ["a", -9, 0.5, 7, "b", 5000]


class Mapped(TransformerMixin, BaseEstimator):
    """An encoder as people write it: a mapping of values, and nothing for others."""

    def fit(self, X, y):
        column = pd.DataFrame(X).iloc[:, 0]
        self.means_ = pd.Series(np.asarray(y)).groupby(column.to_numpy()).mean().to_dict()
        return self

    def transform(self, X):
        return np.array([[self.means_[value]] for value in pd.DataFrame(X).iloc[:, 0]])


class Listed(Mapped):
    """Another one, with categories under scikit-learn's name."""

    def fit(self, X, y):
        self.categories_ = [list(dict.fromkeys(pd.DataFrame(X).iloc[:, 0]))]
        return self

    def transform(self, X):
        return np.array([[self.categories_[0].index(value)] for value in pd.DataFrame(X).iloc[:, 0]])


class Wrapped(Mapped):
    """One that has scikit-learn's inside."""

    def fit(self, X, y):
        self.inner = OneHotEncoder(sparse_output=False).fit(X)
        return self

    def transform(self, X):
        return self.inner.transform(X)


ENCODERS = {
    "one-hot": OneHotEncoder(),
    "ignore": OneHotEncoder(handle_unknown="ignore"),
    "dropped": OneHotEncoder(drop="first", sparse_output=False),
    "rare": OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=45),
    "ordinal": OrdinalEncoder(),
    "ordinal, unknown": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    "target": TargetEncoder(),
    "behind an imputer": make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
    "mapping": Mapped(),
    "categories_": Listed(),
    "inside": Wrapped(),
}
READ = [name for name in ENCODERS if name not in ("mapping", "categories_", "inside")]
MODELS = {
    "linear": Ridge(),
    "forest": RandomForestRegressor(5, max_depth=4, random_state=0),
    "boosting": GradientBoostingRegressor(n_estimators=5, random_state=0),
    "neighbours": KNeighborsRegressor(3),
}


def table(codes):
    place = PLACE % len(codes)
    values = np.array(codes, dtype=object if any(isinstance(c, str) for c in codes) else None)[place]
    return pd.DataFrame({"age": AGE, "place": values, "debt": DEBT})


def fitted(encoder, model, X):
    before = make_column_transformer((clone(ENCODERS[encoder]), ["place"]), remainder="passthrough")
    return make_pipeline(before, clone(MODELS[model])).fit(X, Y)


def shapley(model, X, row):
    """Contributions against the product of the columns' distributions, by all subsets of all states."""
    levels = [X[name].value_counts(normalize=True, sort=False) for name in X]
    d = len(levels)
    states = pd.DataFrame([*product(*(level.index for level in levels))], columns=X.columns).astype(X.dtypes)
    weights = [np.array(w) for w in zip(*product(*(level.to_numpy() for level in levels)), strict=True)]
    kept = [(states[name] == row[name]).to_numpy() for name in X]
    answers = np.asarray(model.predict(states))

    def value(S):
        # given the row's values of S, the states that have them, by the other columns' shares
        rows = np.logical_and.reduce([kept[j] for j in S]) if S else np.ones(len(states), dtype=bool)
        share = np.prod([weights[j] for j in range(d) if j not in S], axis=0) * np.ones(len(states))
        return (answers * share)[rows].sum()

    parts = []
    for j in range(d):
        others = [i for i in range(d) if i != j]
        parts.append(
            sum(
                (value((*S, j)) - value(S)) / (d * comb(d - 1, size))
                for size in range(d)
                for S in combinations(others, size)
            )
        )
    return np.array(parts)


@pytest.fixture
def calls(monkeypatch):
    """All tables that any Pipeline is called with."""
    tables, method = [], Pipeline.predict

    @wraps(method)
    def predict(self, X, **options):
        tables.append(X)
        return method(self, X, **options)

    monkeypatch.setattr(Pipeline, "predict", predict)
    return tables


def strangers(tables, X, name="place"):
    """Values that a model was asked about and that are not the background's."""
    return {value for each in tables for value in each[name]} - set(X[name])


# -- behind an encoder ---------------------------------------------------------------------------------------


# SimpleImputer takes no booleans
CASES = [case for case in crossed(CODES, READ, MODELS, share=4) if case[:2] != ("two", "behind an imputer")]


@pytest.mark.parametrize(("codes", "encoder", "model"), CASES)
def test_any_codes_behind_any_encoder_are_categories_and_read_exactly(codes, encoder, model, calls):
    X = table(CODES[codes])
    pipeline = fitted(encoder, model, X)
    explainer = limes.TabularExplainer(pipeline, X, law="empirical", bandwidth=np.inf)
    explanation = explainer(X.iloc[:2])
    assert strangers(calls, X) == set()
    assert explanation.conditions[0][1] == f"place = {X['place'].iloc[0]}"
    if model != "neighbours":
        assert explanation.method == "exact", explanation.reason
    account = explanation.contributions
    errors = np.zeros(3) if model != "neighbours" else 5 * account.standard_errors[0]
    truth = shapley(pipeline, X, X.iloc[0])
    assert (np.abs(account.values[0] - truth) <= EXACT * np.abs(Y).max() + errors).all()


@pytest.mark.parametrize(("codes", "encoder"), crossed(CODES, ["mapping", "categories_", "inside"]))
@pytest.mark.parametrize("model", ["linear", "neighbours"])
def test_encoders_that_people_write_decide_what_a_category_is(codes, encoder, model, calls):
    X = table(CODES[codes])
    explanation = limes.TabularExplainer(fitted(encoder, model, X), X, max_calls=512)(X.iloc[:1])
    assert strangers(calls, X) == set()
    assert explanation.conditions[0][1] == f"place = {X['place'].iloc[0]}"


@pytest.mark.parametrize("encoder", ["mapping", "categories_"])
def test_texts_and_numbers_in_one_column(encoder, calls):
    X = table(MIXED)
    limes.TabularExplainer(fitted(encoder, "neighbours", X), X, max_calls=512)(X.iloc[:1])
    assert strangers(calls, X) == set()


def of_array(X, model):
    """On an array, with a mask of the columns in the place of their names."""
    before = make_column_transformer((OneHotEncoder(), [1]), remainder="passthrough")
    return make_pipeline(before, model).fit(X.to_numpy(), Y)


WITH_ENCODERS = {
    "search": lambda: GridSearchCV(
        fitted("one-hot", "forest", CODED), {"randomforestregressor__max_depth": [2]}
    ),
    "voting": lambda: VotingRegressor(
        [("a", fitted("ignore", "forest", CODED)), ("b", fitted("ordinal", "linear", CODED))]
    ),
    "stacking": lambda: StackingRegressor([("a", fitted("ordinal", "forest", CODED))], Ridge(), cv=2),
    "bagging": lambda: BaggingRegressor(of_array(CODED, KNeighborsRegressor()), 3, random_state=0),
    "voting, neighbours": lambda: VotingRegressor([("a", fitted("one-hot", "neighbours", CODED))]),
    "nested": lambda: make_pipeline(FunctionTransformer(), fitted("one-hot", "neighbours", CODED)),
    "union": lambda: make_pipeline(
        FeatureUnion(
            [
                ("a", make_column_transformer((OneHotEncoder(), ["place"]))),
                ("b", make_column_transformer(("passthrough", ["age"]))),
            ]
        ),
        KNeighborsRegressor(),
    ),
    "selector": lambda: make_pipeline(
        make_column_transformer(
            (OneHotEncoder(), lambda X: [c for c in X if c == "place"]), (StandardScaler(), ["age"])
        ),
        KNeighborsRegressor(),
    ),
}
CODED = table(CODES["negative"])


@pytest.mark.parametrize("kind", WITH_ENCODERS)
def test_encoders_inside_of_other_models(kind, calls):
    model = WITH_ENCODERS[kind]().fit(CODED, Y)
    calls.clear()
    explanation = limes.TabularExplainer(model, CODED, max_calls=512)(CODED.iloc[:1])
    assert explanation.conditions[0][1] == "place = " + str(CODED["place"].iloc[0])
    assert explanation.provenance["categories of the model"] == ["place"]
    assert strangers([each for each in calls if hasattr(each, "columns")], CODED) == set()


class Handmade:
    """A model as people write it, which is no pipeline."""

    def __init__(self, X):
        self.encoder = OneHotEncoder(sparse_output=False).fit(X[["place"]])
        self.inner = KNeighborsRegressor(3).fit(self.numbers(X), Y)

    def numbers(self, X):
        return np.hstack([self.encoder.transform(X[["place"]]), X[["age", "debt"]]])

    def predict(self, X):
        return self.inner.predict(self.numbers(X))


def test_an_encoder_among_the_attributes_of_a_model():
    explanation = limes.TabularExplainer(Handmade(CODED), CODED, max_calls=512)(CODED.iloc[:1])
    assert explanation.provenance["categories of the model"] == ["place"]


@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        *(("CatBoost", codes) for codes in ("negative", "large", "far apart")),
        ("HistGradientBoosting", "large"),
    ],
)
def test_models_that_take_categories_themselves(kind, codes):
    X = table(CODES[codes])
    if kind == "CatBoost":
        options = {
            "cat_features": ["place"],
            "one_hot_max_size": 20,
            "verbose": 0,
            "allow_writing_files": False,
        }
        model = CatBoostRegressor(n_estimators=5, depth=3, random_seed=0, **options).fit(X, Y)
    else:
        model = HistGradientBoostingRegressor(max_iter=5, categorical_features=["place"], random_state=0).fit(
            X, Y
        )
    explanation = limes.TabularExplainer(model, X, law="empirical", bandwidth=np.inf)(X.iloc[:1])
    assert explanation.provenance["categories of the model"] == ["place"]
    assert explanation.method == "exact", explanation.reason
    assert np.abs(explanation.contributions.values[0] - shapley(model, X, X.iloc[0])).max() <= 1e-6


TABLES = {
    "frame": lambda X: X,
    "ints": lambda X: X.astype({"place": "Int64"}),
    "declared": lambda X: X.astype({"place": "category"}),
    "array": lambda X: X.to_numpy(),
    "ints in an array": lambda X: X.assign(age=AGE.astype(int), debt=PLACE).to_numpy().astype(np.int64),
    "polars": pl.from_pandas,
    "gaps": lambda X: X.assign(place=X["place"].where(np.arange(ROWS) % 9 > 0)),
    "gaps in an array": lambda X: X.assign(place=X["place"].where(np.arange(ROWS) % 9 > 0)).to_numpy(),
}


@pytest.mark.parametrize("kind", TABLES)
def test_codes_of_any_kind_of_table(kind):
    X = TABLES[kind](CODED)
    is_array = isinstance(X, np.ndarray)
    before = make_column_transformer(
        (OneHotEncoder(), [1] if is_array else ["place"]), remainder="passthrough"
    )
    model = make_pipeline(before, RandomForestRegressor(5, max_depth=4, random_state=0)).fit(X, Y)
    explanation = limes.TabularExplainer(model, X)(X[:3])
    assert explanation.method == "exact", explanation.reason
    assert explanation.predictions == pytest.approx(model.predict(X[:3]), rel=EXACT)
    places = [value for _, value, _ in explanation.data]
    assert [value is None or value in CODES["negative"] for value in places] == [True] * 3


def test_columns_that_no_encoder_has_stay_numbers():
    X = CODED.assign(place=PLACE)
    steps = [StandardScaler(), KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf")]
    for step in steps:
        model = make_pipeline(
            make_column_transformer((step, ["age", "place"]), remainder="drop"), Ridge()
        ).fit(X, Y)
        explanation = limes.TabularExplainer(model, X)(X.iloc[:1])
        assert "categories of the model" not in explanation.provenance
        assert "own values" not in explanation.provenance


def test_edges_of_an_encoded_column_make_it_a_number(calls):
    bins = {"place": [-9, 0, 5]}
    for encoder, model in (("ignore", "linear"), ("ignore", "forest"), ("one-hot", "neighbours")):
        explainer = limes.TabularExplainer(fitted(encoder, model, CODED), CODED, bins=bins, max_calls=256)
        explanation = explainer(CODED.iloc[:1])
        assert explanation.method == "sampled"
        assert explanation.conditions[0][1] == "place > 0"
        # few whole numbers are drawn as they are
        assert strangers(calls, CODED) == set()
    X = table(CODES["fractions"])
    with pytest.raises(ModelError, match=r"'place' holds? few distinct values .*categorical="):
        limes.TabularExplainer(fitted("one-hot", "neighbours", X), X, bins={"place": [-2, 0.3, 8]})(
            X.iloc[:1]
        )


def test_a_row_of_another_code_is_refused_with_the_codes_where_the_encoder_refuses_it():
    """A code is no other category than a text: an encoder that takes unknown ones has an answer."""
    row = CODED.iloc[:1].assign(place=77)
    explainer = limes.TabularExplainer(fitted("one-hot", "forest", CODED), CODED)
    with pytest.raises(InputError, match=r"'place': 77 does not occur .* has -9, 1, 2"):
        explainer(row)
    model = fitted("ignore", "forest", CODED)
    explanation = limes.TabularExplainer(model, CODED)(row)
    assert explanation.method == "exact"
    assert "place = 77" in explanation.conditions[0]
    assert "unseen" in [warning.code for warning in explanation.row_warnings[0]]
    np.testing.assert_allclose(explanation.predictions, model.predict(row), rtol=1e-9)


def test_numbers_in_the_place_of_texts_get_advice():
    X = table(CODES["numbers as text"])
    model = fitted("one-hot", "linear", X)
    with pytest.raises(
        ModelError, match=r"trained on texts such as '-9' in column 'place', .* numbers such as -9"
    ):
        limes.TabularExplainer(model, CODED)(CODED.iloc[:1])


# -- behind a function ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("codes", [name for name, codes in CODES.items() if not isinstance(codes[0], str)])
@pytest.mark.parametrize("bandwidth", [None, 0.3])
def test_every_value_that_a_function_gets_occurs_or_a_warning_counts(codes, bandwidth):
    X, tables = table(CODES[codes]), []

    def function(T):
        tables.append(T)
        return 0.05 * T["age"] + T["debt"] * np.searchsorted(CODES[codes], T["place"])

    options = {"bandwidth": bandwidth, "contributions": False, "max_calls": 1024}
    explanation = limes.TabularExplainer(function, X, **options)(X.iloc[:1])
    whole = all(float(code).is_integer() for code in CODES[codes])
    warned = [str(warning) for warning in explanation.row_warnings[0] if warning.code == "new values"]
    assert whole == (strangers(tables, X) == set())
    if whole:
        assert not any("of place" in text for text in warned)
        return
    (text,) = warned
    rows = pd.concat(tables)
    share = (~rows["place"].isin(X["place"])).mean()
    assert share > 0
    (counted,) = re.findall(r"(\d+) % of the rows [^,]* of place that|place \((\d+) %\)", text)
    # eight rows check whether it is a function, and the background's are among the rows of a call
    assert abs(100 * share - float("".join(counted))) <= 4
    assert "categorical=" in text


def test_columns_of_many_whole_numbers_are_counted_and_measurements_are_not():
    n = 600
    X = np.column_stack([RNG.integers(0, 50, n), RNG.normal(size=n), RNG.integers(0, 10**6, n)])
    explanation = limes.TabularExplainer(lambda T: T.sum(axis=1), X, max_calls=256)(X[:1])
    (text,) = [str(warning) for warning in explanation.row_warnings[0] if warning.code == "new values"]
    assert "of x0 that" in text
    assert "x1" not in text
    assert "x2" not in text
    occurring = limes.TabularExplainer(lambda T: T.sum(axis=1), X, law="empirical", max_calls=256)(X[:1])
    assert not [warning for warning in occurring.row_warnings[0] if warning.code == "new values"]


def test_few_whole_numbers_are_their_own_values_for_functions_alone():
    X = CODED.assign(place=PLACE)[["age", "debt", "place"]]
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, Y)
    of_model, of_function = (limes.TabularExplainer(each, X) for each in (model, lambda T: model.predict(T)))
    row = X.iloc[0]
    draws = [
        np.unique(its.design(row).draw(RNG.random((500, 3)))[0][:, 2]) for its in (of_model, of_function)
    ]
    assert not set(draws[0]) <= set(PLACE)  # LIME's truncated normals
    assert set(draws[1]) <= set(PLACE)
    assert of_function(X.iloc[:1]).provenance["own values"] == ["place"]


def test_codes_behind_a_function_against_enumeration():
    X = CODED.assign(place=[CODES["large"][i] for i in PLACE])
    effect = dict(zip(CODES["large"], EFFECT, strict=True))

    class Answers:
        def predict(self, T):
            return (0.05 * T["age"] + T["place"].map(effect) * (1 + (T["debt"] > 0))).to_numpy()

    model = Answers()
    explainer = limes.TabularExplainer(lambda T: model.predict(T), X, law="empirical", bandwidth=np.inf)
    account = explainer(X.iloc[:1]).contributions
    errors = 5 * account.standard_errors[0] + EXACT
    assert (np.abs(account.values[0] - shapley(model, X, X.iloc[0])) <= errors).all()


def test_the_drop_in_has_lime_s_law_for_whole_numbers():
    X, tables = np.column_stack([AGE, PLACE]), []

    def function(T):
        tables.append(T)
        return T.sum(axis=1)

    LimeTabularExplainer(X, mode="regression").explain_instance(X[0], function, num_samples=512)
    assert not np.isin(np.concatenate(tables)[:, 1], PLACE).all()
