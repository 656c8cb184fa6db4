"""Every explainer notices a second fit, and takes no call of the model for one, whatever its parts remember.

The oracle is a new explainer of the model as it is, and the model's own predictions.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    GradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RANSACRegressor, Ridge, SGDRegressor
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import limes
from effort import crossed
from internals import WITNESSES, requested
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.compat.lime.lime_text import LimeTextExplainer
from limes.exceptions import InputError
from limes.scale import explain_frame

RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {"a": RNG.normal(size=80), "b": RNG.exponential(size=80), "c": RNG.integers(0, 5, 80).astype(float)}
)
Y = (X.a + X.b * X.c / 3).to_numpy()
OTHER = 3.0 - 2.0 * Y
FEW = {"max_calls": 256, "control": "none", "rng": 0}


# -- parts that remember -------------------------------------------------------------------------------------


class Part(RegressorMixin, BaseEstimator):
    """A tree that writes an attribute whenever it predicts."""

    def __init__(self, inner=None):
        self.inner = inner

    def fit(self, X, y):
        self.inner_ = DecisionTreeRegressor(max_depth=3, random_state=0).fit(np.asarray(X), y)
        return self

    def predict(self, X):
        self.remember(X)
        return self.inner_.predict(np.asarray(X))


class Counts(Part):
    def remember(self, X):
        self.calls_ = getattr(self, "calls_", 0) + 1


class Names(Part):
    def remember(self, X):
        self.names_ = list(getattr(X, "columns", range(np.shape(X)[1])))


class Last(Part):
    def remember(self, X):
        self.last_ = X.copy()


class Recalls(Part):
    def remember(self, X):
        before = getattr(self, "memory_", {})
        self.memory_ = {**before, len(before): np.asarray(X)[:1]}


class Wrapped(Part):
    def remember(self, X):
        self.inner_ = clone_fitted(self.inner_)


def clone_fitted(tree):
    """Another object with the same fit."""
    other = clone(tree)
    vars(other).update(vars(tree))
    return other


PARTS = [Counts, Names, Last, Recalls, Wrapped]


class Doubled(RegressorMixin, BaseEstimator):
    def __init__(self, part=None):
        self.part = part

    def fit(self, X, y):
        self.part_ = clone(self.part).fit(X, y)
        return self

    def predict(self, X):
        return 2.0 * self.part_.predict(X)


class Plain:
    """No estimator, with its part in an attribute."""

    def __init__(self, part):
        self.part = part

    def fit(self, X, y):
        self.part.fit(X, y)
        return self

    def predict(self, X):
        return self.part.predict(X)


class Hidden(Plain):
    """No estimator, with its part in a dictionary."""

    def __init__(self, part):
        self.parts = {"part": part}

    @property
    def part(self):
        return self.parts["part"]


class Function(Plain):
    """Explained as a function of its part, not as itself."""

    def __init__(self, part, make):
        super().__init__(part)
        self.function = make(part)


class Frozen(Plain):
    @property
    def function(self):
        return FrozenEstimator(self.part)


def stack(*parts, **options):
    return StackingRegressor([(str(i), part) for i, part in enumerate(parts)], cv=2, **options)


def forest():
    return RandomForestRegressor(3, random_state=0)


WRAPPERS = {
    "bare": lambda part: part,
    "pipeline": lambda part: make_pipeline(StandardScaler(), part),
    "products": lambda part: make_pipeline(PolynomialFeatures(), StandardScaler(), part),
    "columns": lambda part: make_pipeline(
        make_column_transformer((StandardScaler(), ["a", "b"]), remainder="passthrough"), part
    ),
    "function step": lambda part: make_pipeline(FunctionTransformer(np.abs), part),
    "union": lambda part: make_pipeline(
        FeatureUnion([("s", StandardScaler()), ("p", PolynomialFeatures())]), part
    ),
    "nested": lambda part: make_pipeline(StandardScaler(), make_pipeline(MinMaxScaler(), part)),
    "vote": lambda part: VotingRegressor([("a", part), ("b", Ridge())]),
    "vote of pipelines": lambda part: VotingRegressor([("a", make_pipeline(StandardScaler(), part))]),
    "stack": lambda part: stack(part),
    "stack below a forest": lambda part: stack(part, Ridge(), final_estimator=forest()),
    "stack below neighbours": lambda part: stack(part, final_estimator=KNeighborsRegressor()),
    "stack above": lambda part: stack(Ridge(), final_estimator=part),
    "stack with columns": lambda part: stack(
        part, final_estimator=GradientBoostingRegressor(n_estimators=3, random_state=0), passthrough=True
    ),
    "stack of neighbours": lambda part: stack(KNeighborsRegressor(), part),
    "bag": lambda part: BaggingRegressor(part, 3, random_state=0),
    "large bag": lambda part: BaggingRegressor(part, 18, random_state=0),
    "boosted": lambda part: AdaBoostRegressor(part, n_estimators=3, random_state=0),
    "boosted from": lambda part: GradientBoostingRegressor(init=part, n_estimators=3, random_state=0),
    "scaled target": lambda part: TransformedTargetRegressor(part, transformer=StandardScaler()),
    "bent target": lambda part: TransformedTargetRegressor(part, func=np.arcsinh, inverse_func=np.sinh),
    "search": lambda part: GridSearchCV(part, {}, cv=2),
    "random search": lambda part: RandomizedSearchCV(part, {"inner": [None]}, n_iter=1, cv=2),
    "search of pipelines": lambda part: GridSearchCV(make_pipeline(StandardScaler(), part), {}, cv=2),
    "targets": MultiOutputRegressor,
    "chain": RegressorChain,
    "outliers": lambda part: RANSACRegressor(part, random_state=0, min_samples=40),
    "frozen": Frozen,
    "own estimator": Doubled,
    "own class": Plain,
    "own dictionary": Hidden,
    "lambda": lambda part: Function(part, lambda its: lambda X: its.predict(X)),
    "partial": lambda part: Function(part, lambda its: partial(Part.predict, its)),
    "bound method": lambda part: Function(part, lambda its: its.predict),
}


def predictions(explained, rows):
    return np.asarray(explained.predict(rows) if hasattr(explained, "predict") else explained(rows))


# one part of each wrapper is enough for another law
CASES = [
    *crossed(WRAPPERS, PARTS, ["truncnorm"], share=2),
    *crossed(WRAPPERS, PARTS, ["joint"], share=2 * len(PARTS)),
]


@pytest.mark.parametrize(("name", "part", "law"), CASES)
def test_a_call_is_no_second_fit_and_a_second_fit_is_one(name, part, law):
    two = name in ("targets", "chain")
    first, second = (np.column_stack([y, -y]) if two else y for y in (Y, OTHER))
    model = WRAPPERS[name](part()).fit(X, first)
    explained = getattr(model, "function", model)
    explainer = limes.TabularExplainer(explained, X, law=law, **FEW)
    bound = explainer._model
    for rows in (X.iloc[:1], X.iloc[3:5]):
        predictions(explained, X.iloc[50:60])
        account = explainer(rows, progress=False).contributions
        total = account.base_values + account.values.sum(axis=1)
        np.testing.assert_allclose(total, predictions(explained, rows), rtol=1e-9)
    assert explainer._model is bound
    before = explainer(rows, progress=False)
    late = explainer.reproducible(rows, progress=False)  # without contributions so far
    model.fit(X, second)
    if before.fit.is_read or "read model" in before.reason:
        assert late.contributions is not None
    else:
        with pytest.raises(InputError, match="the model was fitted again since this explanation"):
            late.contributions  # noqa: B018 - reading computes them
    after = explainer(rows, progress=False)
    fresh = limes.TabularExplainer(explained, X, law=law, **FEW)(rows, progress=False)
    np.testing.assert_allclose(after.coefficients.values, fresh.coefficients.values, rtol=1e-7, atol=1e-9)
    assert np.abs(after.coefficients.values - before.coefficients.values).max() > 0.05


# -- every explainer, every way to hold a model, every way to fit it again -----------------------------------


TABLE, NAMES = X.to_numpy(), [*X]


class Linear:
    """A linear model of scikit-learn, fitted again in place."""

    def __init__(self):
        self.model = SGDRegressor(random_state=0).fit(TABLE, Y)

    def fit(self):
        self.model.fit(TABLE, OTHER)

    def partial_fit(self):
        for _ in range(100):
            self.model.partial_fit(TABLE, OTHER)

    def update(self):
        self.model.coef_ *= -1.0

    def load(self):
        vars(self.model).update(vars(clone(self.model).fit(TABLE, OTHER)))


class Boosted:
    """Trees of XGBoost, whose fit no attribute shows, at a level far above their spread."""

    level = 1e5

    def __init__(self):
        library = pytest.importorskip("xgboost")
        self.data = [library.DMatrix(TABLE, y + self.level) for y in (Y, OTHER)]
        options = {"n_estimators": 3, "max_depth": 3, "n_jobs": 1, "base_score": self.level}
        self.model = library.XGBRegressor(**options).fit(TABLE, Y + self.level)
        self.booster = self.model.get_booster()
        self.booster.set_param({"nthread": 1})

    def fit(self):
        self.model.fit(TABLE, OTHER + self.level)

    def partial_fit(self):
        self.model.fit(TABLE, OTHER + self.level, xgb_model=self.booster)

    def update(self):
        for i in range(3, 30):
            self.booster.update(self.data[1], i)

    def load(self):
        library = pytest.importorskip("xgboost")
        parameters = {"max_depth": 3, "base_score": self.level, "nthread": 1}
        self.booster.load_model(library.train(parameters, self.data[1], 3).save_raw())


class Near(Boosted):
    level = 0.0


HOLDERS = {
    "estimator": lambda its: its.model,
    "bound method": lambda its: its.model.predict,
    "lambda": lambda its: lambda rows: its.model.predict(rows),
    "own class": lambda its: Plain(its.model),
    "Booster": lambda its: its.booster,
    "lambda of a Booster": lambda its: lambda rows: its.booster.inplace_predict(rows),
}
ROWS = TABLE[[7, 9]]


def tabular(explained, **options):
    return partial(limes.TabularExplainer(explained, TABLE, **FEW, **options), ROWS, progress=False)


def long_table(explained):
    explainer = limes.TabularExplainer(explained, pd.DataFrame(TABLE, columns=NAMES), **FEW)
    return lambda: (
        explain_frame(explainer, pd.DataFrame(ROWS, columns=NAMES)).select_dtypes("number").to_numpy()
    )


def drop_in(explained):
    explainer = LimeTabularExplainer(TABLE, mode="regression", random_state=0)
    function = explained.predict if hasattr(explained, "fit") or isinstance(explained, Plain) else explained

    def explain():
        one = explainer.explain_instance(ROWS[0], function, num_samples=256, num_features=3)
        return np.array([*[weight for _, weight in sorted(one.local_exp[1])], one.predicted_value])

    return explain


EXPLAINERS = {
    "product": tabular,
    "sampled": partial(tabular, method="sampled"),
    "joint": partial(tabular, law="joint"),
    "joint, sampled": partial(tabular, law="joint", method="sampled"),
    "slopes": partial(tabular, bins=None),
    "long table": long_table,
    "drop-in": drop_in,
    "maple": lambda explained: partial(limes.MapleExplainer(explained, TABLE, trees=10, rng=0), ROWS),
    "rules": lambda explained: partial(
        limes.SparseExplainer(explained, literals=limes.Literals.fit(TABLE), k=2, samples=200),
        ROWS,
        progress=False,
    ),
}


def numbers(result):
    if isinstance(result, np.ndarray):
        return result
    account = requested(result, "contributions")
    parts = [result.coefficients.values, result.predictions, *([] if account is None else [account.values])]
    return np.concatenate([np.ravel(part) for part in parts])


COMBINATIONS = [
    (explainer, holder, subject, change)
    for explainer, holder, subject, change in crossed(
        EXPLAINERS, HOLDERS, [Linear, Boosted, Near], ["fit", "partial_fit", "update", "load"], share=3
    )
    if "Booster" not in holder or (subject is not Linear and change in ("update", "load"))
]


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize(("explainer", "holder", "subject", "change"), COMBINATIONS)
def test_a_model_that_is_fitted_again_is_explained_as_it_is(explainer, holder, subject, change):
    its = subject()
    explained = HOLDERS[holder](its)
    if explainer == "drop-in" and holder == "Booster":
        pytest.skip("lime takes functions")
    explain = EXPLAINERS[explainer](explained)
    before, repeated = numbers(explain()), numbers(explain())
    np.testing.assert_allclose(before, repeated, rtol=1e-9)
    getattr(its, change)()
    after, fresh = numbers(explain()), numbers(EXPLAINERS[explainer](explained)())
    np.testing.assert_allclose(after, fresh, rtol=1e-9, atol=1e-9)
    assert np.nanmax(np.abs(after - before)) > 0.05


# -- texts, and what a check costs ---------------------------------------------------------------------------

TEXT = " ".join(["good", *(f"w{i}" for i in range(20))])


class Scorer:
    """A model of texts that is fitted again by another scale."""

    def __init__(self):
        self.scale = 1.0

    def predict(self, texts):
        return self.scale * np.array(
            [0.3 * text.count("good") + 0.01 * len(text.split()) ** 2 for text in texts]
        )


@pytest.mark.parametrize("name", ["own class", "bound method", "lambda"])
def test_texts_are_asked_anew_and_late_contributions_of_an_earlier_fit_are_refused(name):
    model = Scorer()
    holder = SimpleNamespace(model=model)
    explainer = limes.TextExplainer(
        HOLDERS[name](holder), max_calls=400, tolerance="20%", contributions=False
    )
    late, before = explainer(TEXT, progress=False), explainer(TEXT, progress=False)
    assert before.contributions.values.size  # of the same model
    model.scale = -2.0
    after = explainer(TEXT, progress=False)
    np.testing.assert_allclose(after.coefficients.values, -2.0 * before.coefficients.values, rtol=1e-9)
    np.testing.assert_allclose(after.contributions.values, -2.0 * before.contributions.values, rtol=1e-9)
    with pytest.raises(InputError, match="the model was fitted again since this explanation"):
        late.contributions  # noqa: B018 - reading computes them


def test_lime_text_explains_the_model_as_it_is():
    model = Scorer()
    explainer = LimeTextExplainer(random_state=0)

    def p(texts):
        share = 1.0 / (1.0 + np.exp(-model.predict(texts)))
        return np.column_stack([1.0 - share, share])

    before = explainer.explain_instance(TEXT, p, num_samples=256, num_features=3).local_exp[1]
    model.scale = -1.0
    after = explainer.explain_instance(TEXT, p, num_samples=256, num_features=3).local_exp[1]
    assert [word for word, _ in before] == [word for word, _ in after]
    assert all(a * b < 0 for (_, a), (_, b) in zip(before, after, strict=True))


class Counted:
    def __init__(self, model):
        self.model, self.rows = model, 0

    def predict(self, rows):
        self.rows += len(rows)
        return self.model.predict(rows)


@pytest.mark.parametrize("law", ["truncnorm", "joint"])
def test_a_call_asks_about_eight_rows_again_and_counts_them(law):
    model = Counted(Ridge().fit(TABLE, Y))
    options = {**FEW, "max_calls": 1024, "contributions": False}
    explainer = limes.TabularExplainer(model, TABLE, law=law, **options)
    explainer.fill_pool(progress=False)
    for rows in (1, 5):
        before, counted = model.rows, explainer.pool_calls
        explainer(TABLE[:rows], progress=False)
        assert model.rows - before == rows + WITNESSES
        assert explainer.pool_calls - counted == WITNESSES == 8


def test_a_model_that_was_read_and_shows_its_fit_is_not_asked(monkeypatch):
    model = make_pipeline(StandardScaler(), forest()).fit(TABLE, Y)
    explainer = limes.TabularExplainer(model, TABLE)
    explainer(ROWS, progress=False)
    monkeypatch.setattr(RandomForestRegressor, "predict", None)  # a call would fail
    assert explainer(ROWS, progress=False).method == "exact"


def test_a_random_model_keeps_its_pool():
    rng = np.random.default_rng(0)

    def model(rows):
        model.rows += len(rows)
        return rows[:, 0] + 0.1 * rng.normal(size=len(rows))

    model.rows = 0
    explainer = limes.TabularExplainer(model, TABLE, contributions=False, **FEW)
    explainer(ROWS, progress=False)
    before = model.rows
    for _ in range(20):
        explainer(ROWS, progress=False)
    assert model.rows - before <= 20 * (2 * WITNESSES + len(ROWS))
    assert explainer.model_warnings


def test_a_random_model_that_was_fitted_again_has_a_new_pool():
    rng, slope = np.random.default_rng(0), [1.0]
    explainer = limes.TabularExplainer(
        lambda rows: slope[0] * rows[:, 0] + 0.01 * rng.normal(size=len(rows)), TABLE, **FEW
    )
    before = explainer(ROWS, progress=False)
    slope[0] = -1.0
    after = explainer(ROWS, progress=False)
    np.testing.assert_allclose(after.coefficients.values[:, 0], -before.coefficients.values[:, 0], atol=0.1)


def test_diagnose_refuses_an_earlier_fit_of_a_function():
    slope = [1.0]
    explainer = limes.TabularExplainer(lambda rows: slope[0] * rows[:, 0], TABLE, **FEW)
    explanation = explainer(ROWS, progress=False)
    assert limes.diagnose(explanation, progress=False).rows
    slope[0] = -1.0
    with pytest.raises(InputError, match="the model was fitted again since this explanation"):
        limes.diagnose(explanation, progress=False)
