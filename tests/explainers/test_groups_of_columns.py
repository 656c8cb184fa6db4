"""Groups of columns, against enumeration of all combinations of tuples by the model itself."""

from __future__ import annotations

import ast
import itertools
import math
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer
from sklearn.svm import SVR

import limes
from limes.exceptions import InputError

EXACT = 1e-9
GROUPS = {"first": ["a", "c"], "second": ["b", "e"]}
MEMBERS = [["a", "c"], ["b", "e"], ["d"]]


def _table(n: int = 40, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 5)).round(1), columns=[*"abcde"])
    X["e"] = rng.integers(0, 3, n).astype(float)
    return X


def _targets(X: pd.DataFrame) -> np.ndarray:
    return np.sin(X["a"] * X["c"]) + X["b"] * X["e"] + X["d"] ** 2 + X["a"] * X["d"]


class Enumeration:
    """Tuples of each group of a background (n, d), drawn whole, and every column's cells as bins cut them."""

    def __init__(
        self,
        predict: Callable[[pd.DataFrame], np.ndarray],
        background: pd.DataFrame,
        row: pd.Series,
        ratio: float,
    ) -> None:
        self.predict, self.background, self.row = predict, background, row
        edges = {name: np.quantile(background[name], [0.25, 0.5, 0.75]) for name in background}
        self.tuples, self.weights, self.inside = [], [], []
        for names in MEMBERS:
            same = np.ones(len(background), dtype=bool)
            for name in names:
                cell = np.searchsorted(edges[name], background[name], side="left")
                same &= cell == np.searchsorted(edges[name], row[name], side="left")
            self.tuples.append(background[names].to_numpy())
            self.inside.append(same)
            self.weights.append(np.where(same, 1.0, ratio))

    def mean(self, choices: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """E f where each group has one of some tuples, with weights."""
        sizes = [range(len(w)) for _, w in choices]
        places = np.array([*itertools.product(*sizes)])
        weight = np.prod([w[p] / w.sum() for (_, w), p in zip(choices, places.T, strict=True)], axis=0)
        rows = pd.DataFrame(
            np.concatenate([t[p] for (t, _), p in zip(choices, places.T, strict=True)], axis=1),
            columns=[name for names in MEMBERS for name in names],
        )
        return np.tensordot(weight, self.predict(rows[[*self.background]]), axes=(0, 0))

    def choices(self, kept: tuple[int, ...] = ()) -> list[tuple[np.ndarray, np.ndarray]]:
        values = [self.row[names].to_numpy(dtype=float)[None] for names in MEMBERS]
        return [
            (values[g], np.ones(1)) if g in kept else (self.tuples[g], self.weights[g])
            for g in range(len(MEMBERS))
        ]

    def contributions(self) -> np.ndarray:
        count = len(MEMBERS)
        sets = (its for k in range(count + 1) for its in itertools.combinations(range(count), k))
        return _shapley({kept: self.mean(self.choices(kept)) for kept in sets}, count)

    def coefficients(self) -> np.ndarray:
        beta = []
        for g in range(len(MEMBERS)):
            choices, (tuples, inside) = self.choices(), (self.tuples[g], self.inside[g])
            both = []
            for some in (inside, ~inside):
                its = (tuples[some], np.ones(some.sum())) if some.any() else self.choices((g,))[g]
                both.append(self.mean([*choices[:g], its, *choices[g + 1 :]]))
            beta.append(both[0] - both[1])
        return np.array(beta)


def _logistic(X: pd.DataFrame, y: np.ndarray) -> Any:
    return LogisticRegression().fit(X, y > np.median(y))


def _three_classes(X: pd.DataFrame, y: np.ndarray) -> Any:
    return LogisticRegression().fit(X, np.digitize(y, np.quantile(y, [0.3, 0.7])))


MODELS: dict[str, Callable[[pd.DataFrame, np.ndarray], Any]] = {
    "linear": LinearRegression().fit,
    "additive": make_pipeline(SplineTransformer(4), LinearRegression()).fit,
    "forest": RandomForestRegressor(5, max_depth=5, random_state=0).fit,
    "boosting": GradientBoostingRegressor(n_estimators=10, max_depth=3, random_state=0).fit,
    "kernels": SVR(gamma=0.3).fit,
    "logistic": _logistic,
    "three classes": _three_classes,
    "boosted probability": lambda X, y: GradientBoostingClassifier(
        n_estimators=5, max_depth=1, random_state=0
    ).fit(X, y > np.median(y)),
    "tanh network": MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", max_iter=50, random_state=0).fit,
}


def _predict(model: Any) -> Callable[[pd.DataFrame], np.ndarray]:
    return getattr(model, "predict_proba", model.predict)


@pytest.mark.filterwarnings("ignore:.*converge")
@pytest.mark.parametrize("bandwidth", [0.7, math.inf])
@pytest.mark.parametrize("name", [*MODELS])
def test_equals_enumeration(name: str, bandwidth: float) -> None:
    X = _table()
    model = MODELS[name](X, _targets(X))
    background = X.iloc[:14]
    explainer = limes.TabularExplainer(
        model, background, groups=GROUPS, law="empirical", bandwidth=bandwidth, method="exact"
    )
    assert explainer.feature_names == ("first", "second", "d")
    rows = X.iloc[[2, 20, 33]]
    explanation = explainer(rows)
    ratio = math.exp(-0.5 / bandwidth**2)
    for i in range(len(rows)):
        oracle = Enumeration(_predict(model), background, rows.iloc[i], ratio)
        size = np.abs(oracle.mean(oracle.choices())).max()
        for its, right in (
            (explanation.contributions, oracle.contributions()),
            (explanation.coefficients, oracle.coefficients()),
        ):
            np.testing.assert_allclose(its.values[i], right, rtol=EXACT, atol=EXACT * max(1.0, size))


@pytest.mark.parametrize("weights", ["bins", "euclidean"])
@pytest.mark.parametrize("law", [None, "empirical", "truncnorm", "uniform"])
def test_every_law_and_weight_adds_up_and_agrees_with_draws(law: str | None, weights: str) -> None:
    X = _table(200)
    model = MODELS["boosting"](X, _targets(X))
    explainer = limes.TabularExplainer(model, X, groups=GROUPS, law=law, weights=weights, method="exact")
    rows = X.iloc[[3, 40]]
    explanation = explainer(rows)
    account = explanation.contributions
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, model.predict(rows), rtol=EXACT)
    # rows of the design's law are rows (n, G) of codes, which the explainer's table turns into columns
    table = explainer._model.table
    for i in range(len(rows)):
        design = explainer.design(rows.iloc[[i]])
        x, h = design.draw(np.random.default_rng(0).random((40_000, 3)))
        f = model.predict(table.decode(x))
        for j in range(3):
            inside, outside = f[h[:, j] == 1.0], f[h[:, j] == 0.0]
            error = math.sqrt(inside.var() / inside.size + outside.var() / outside.size)
            assert abs(explanation.coefficients.values[i, j] - (inside.mean() - outside.mean())) < 5 * error


def test_the_joint_law_keeps_rows_and_changes_groups_as_wholes() -> None:
    X = _table()
    background, rows = X.iloc[:14], X.iloc[[2, 20]]
    for name in ("forest", "linear", "kernels", "logistic"):
        model = MODELS[name](X, _targets(X))
        account = (
            limes.TabularExplainer(model, background, groups=GROUPS, law="joint", bandwidth=math.inf)
            .contributions(rows)
            .contributions
        )
        for i in range(len(rows)):
            game = {}
            for size in range(4):
                for kept in itertools.combinations(range(3), size):
                    mixed = background.copy()
                    for g in kept:
                        mixed[MEMBERS[g]] = rows.iloc[i][MEMBERS[g]].to_numpy()
                    game[kept] = _predict(model)(mixed).mean(axis=0)
            np.testing.assert_allclose(account.values[i], _shapley(game, 3), rtol=EXACT, atol=EXACT)


def _shapley(game: dict[tuple[int, ...], Any], d: int) -> np.ndarray:
    """Shapley values of a game on d players."""
    return np.array(
        [
            sum(
                math.factorial(k)
                * math.factorial(d - k - 1)
                / math.factorial(d)
                * (game[tuple(sorted((*kept, j)))] - game[kept])
                for k in range(d)
                for kept in itertools.combinations([i for i in range(d) if i != j], k)
            )
            for j in range(d)
        ]
    )


@pytest.mark.parametrize("name", ["forest", "kernels", "logistic", "three classes", "tanh network"])
@pytest.mark.filterwarnings("ignore:.*converge")
def test_columns_share_a_contribution_by_owens_value(name: str) -> None:
    X = _table()
    model = MODELS[name](X, _targets(X))
    background, rows = X.iloc[:14], X.iloc[[2, 20]]
    explainer = limes.TabularExplainer(model, background, groups=GROUPS, law="empirical", bandwidth=0.9)
    account = explainer.contributions(rows).contributions
    shares = account.within("first")
    assert shares.names == ("a", "c")
    np.testing.assert_array_equal(shares.standard_errors, 0.0)
    np.testing.assert_allclose(shares.values.sum(axis=1), account.values[:, 0], rtol=EXACT, atol=EXACT)
    for i in range(len(rows)):
        oracle = Enumeration(_predict(model), background, rows.iloc[i], math.exp(-0.5 / 0.81))

        def inside(kept: tuple[int, ...], oracle: Enumeration = oracle) -> Any:
            """The mean over the other groups, kept or not, where these columns of the first are kept."""
            total: Any = 0.0
            for k in range(3):
                for others in itertools.combinations((1, 2), k):
                    choices = oracle.choices(others)
                    tuples, weights = oracle.tuples[0].copy(), oracle.weights[0]
                    tuples[:, kept] = oracle.row[MEMBERS[0]].to_numpy(dtype=float)[[*kept]]
                    weight = math.factorial(k) * math.factorial(2 - k) / math.factorial(3)
                    total = total + weight * oracle.mean([(tuples, weights), *choices[1:]])
            return total

        game = {kept: inside(kept) for k in range(3) for kept in itertools.combinations(range(2), k)}
        np.testing.assert_allclose(shares.values[i], _shapley(game, 2), rtol=EXACT, atol=EXACT)


def test_columns_share_a_contribution_of_rows_that_occur() -> None:
    """Rows of a read model that no surrogate was fitted to had none: a ValueError of nothing to join."""
    X = _table()
    model = MODELS["forest"](X, _targets(X))
    background, row = X.iloc[:14], X.iloc[[20]]
    explainer = limes.TabularExplainer(model, background, groups=GROUPS, law="joint", bandwidth=math.inf)
    account = explainer.contributions(row).contributions
    shares = account.within("first")

    def mean(kept: tuple[str, ...]) -> Any:
        return model.predict(background.assign(**{name: row[name].iloc[0] for name in kept})).mean()

    game = {}
    for size in range(3):
        for kept in itertools.combinations(range(2), size):
            game[kept] = 0.0
            for k in range(3):
                for others in itertools.combinations((1, 2), k):
                    names = [*(MEMBERS[0][j] for j in kept), *(name for g in others for name in MEMBERS[g])]
                    weight = math.factorial(k) * math.factorial(2 - k) / math.factorial(3)
                    game[kept] += weight * mean(tuple(names))
    assert (np.abs(shares.values[0] - _shapley(game, 2)) < 4 * shares.standard_errors[0]).all()
    assert shares.standard_errors.any()
    np.testing.assert_allclose(shares.values[0].sum(), account.values[0, 0], rtol=EXACT)


def test_numbers_of_functions_are_within_their_errors() -> None:
    X = _table()
    background, rows = X.iloc[:14], X.iloc[[2, 20]]

    def function(Z: pd.DataFrame) -> np.ndarray:
        return (np.sin(Z["a"] * Z["c"]) + Z["b"] * Z["e"] + Z["a"] * Z["d"]).to_numpy()

    misses = []
    for seed in range(5):
        explainer = limes.TabularExplainer(
            function, background, groups=GROUPS, law="empirical", bandwidth=1.0, rng=seed
        )
        account = explainer.contributions(rows).contributions
        shares = account.within("first")
        for i in range(len(rows)):
            oracle = Enumeration(function, background, rows.iloc[i], math.exp(-0.5))
            misses += [*((account.values[i] - oracle.contributions()) / account.standard_errors[i])]
            np.testing.assert_allclose(shares.values[i].sum(), account.values[i, 0], rtol=EXACT)
    # of 30 numbers that follow a normal law all but a few are within two errors
    assert np.mean(np.abs(misses) < 2.0) > 0.8
    assert np.max(np.abs(misses)) < 4.5


# -- dummies -------------------------------------------------------------------------------------------------


def _of_kinds(n: int = 300) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A table with a column of four kinds, and the same with dummies in its place."""
    rng = np.random.default_rng(1)
    whole = pd.DataFrame({"kind": rng.integers(0, 4, n).astype(float), "x": rng.normal(size=n)})
    dummies = pd.DataFrame({f"kind_{k}": (whole["kind"] == k) * 1.0 for k in range(4)} | {"x": whole["x"]})
    return whole, dummies


class OfDummies:
    """A model of dummies as one of the column that they were made of."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, X: pd.DataFrame) -> np.ndarray:
        dummies = pd.DataFrame({f"kind_{k}": (X["kind"] == k) * 1.0 for k in range(4)} | {"x": X["x"]})
        return self.model.predict(dummies)


def test_dummies_in_a_group_equal_the_column_they_were_made_of() -> None:
    whole, dummies = _of_kinds()
    y = np.array([0.0, 2.0, -1.0, 5.0])[whole["kind"].astype(int)] * (1.0 + dummies["x"])
    by_dummies = RandomForestRegressor(10, max_depth=5, random_state=0).fit(dummies, y)
    groups = {"kind": [f"kind_{k}" for k in range(4)]}
    explained = limes.TabularExplainer(by_dummies, dummies, groups=groups, law="empirical")(dummies[:5])
    # the same function of the column of categories: its steps are known to no reader, and its values are
    values = pd.DataFrame({"kind": np.repeat(np.arange(4.0), len(whole)), "x": np.tile(whole["x"], 4)})
    table = OfDummies(by_dummies)(values).reshape(4, -1)
    ratio = math.exp(-1.0 / (2 * 0.75**2 * 2))
    for i in range(5):
        cell = np.searchsorted(np.quantile(whole["x"], [0.25, 0.5, 0.75]), whole["x"], side="left")
        kind = int(whole["kind"][i])
        weight_x = np.where(cell == cell[i], 1.0, ratio)
        counts = np.bincount(whole["kind"].astype(int), minlength=4)
        weight_kind = counts * np.where(np.arange(4) == kind, 1.0, ratio)
        means = table @ weight_x / weight_x.sum()
        others = np.arange(4) != kind
        beta = means[kind] - counts[others] @ means[others] / counts[others].sum()
        np.testing.assert_allclose(explained.coefficients.values[i, 0], beta, rtol=EXACT)
        base, alone = weight_kind @ means / weight_kind.sum(), means[kind]
        last = weight_kind @ table[:, i] / weight_kind.sum()
        phi = 0.5 * (alone - base) + 0.5 * (table[kind, i] - last)
        np.testing.assert_allclose(explained.contributions.values[i, 0], phi, rtol=EXACT, atol=EXACT)
    assert explained.data[0, 0] == str(int(whole["kind"][0]))
    assert explained.conditions[0][0] == f"kind = {int(whole['kind'][0])}"


def test_dummies_are_offered_as_a_group_by_name() -> None:
    whole, dummies = _of_kinds()
    model = LinearRegression().fit(dummies, whole["kind"])
    (warning, *others) = limes.TabularExplainer(model, dummies)(dummies[:1]).row_warnings[0]
    assert not others
    assert warning.code == "dummies"
    assert "exactly one of kind_0 … kind_3 is 1" in warning
    assert "groups={'kind': ['kind_0', 'kind_1', 'kind_2', 'kind_3']}" in warning
    grouped = limes.TabularExplainer(model, dummies, groups={"kind": [f"kind_{k}" for k in range(4)]})
    assert not grouped(dummies[:1]).row_warnings[0]
    # of columns without a common beginning of their names, side by side
    renamed = dummies.set_axis(["red", "green", "blue", "grey", "x"], axis=1)
    again = LinearRegression().fit(renamed, whole["kind"])
    (warning,) = limes.TabularExplainer(again, renamed)(renamed[:1]).row_warnings[0]
    assert "groups={'category': ['red', 'green', 'blue', 'grey']}" in warning


def test_dummies_of_several_columns_are_offered_as_groups_at_once() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (90, 3))
    columns = {f"{name}_{k}": (codes[:, j] == k) * 1.0 for j, name in enumerate("ab") for k in range(3)}
    table = pd.DataFrame(columns | {letter: (codes[:, 2] == k) * 1.0 for k, letter in enumerate("xyz")})
    model = LinearRegression().fit(table, codes[:, 0])
    (warning,) = limes.TabularExplainer(model, table)(table[:1]).row_warnings[0]
    assert warning.startswith("3 sets of columns, the first of them a_0 … a_2, have one 1 at most")
    groups = ast.literal_eval(re.search(r"groups=(\{.*\}) makes", warning)[1])
    assert groups == {"a": ["a_0", "a_1", "a_2"], "b": ["b_0", "b_1", "b_2"], "category": ["x", "y", "z"]}
    assert not limes.TabularExplainer(model, table, groups=groups)(table[:1]).row_warnings[0]


def test_a_category_that_does_not_occur_belongs_to_its_dummies() -> None:
    whole, dummies = _of_kinds()
    more = dummies.assign(kind_of_no_row=0.0)
    model = LinearRegression().fit(more, whole["kind"])
    texts = [w for w in limes.TabularExplainer(model, more)(more[:1]).row_warnings[0] if w.code == "dummies"]
    assert len(texts) == 1
    assert "'kind_3', 'kind_of_no_row']}" in texts[0]


def test_columns_that_are_no_dummies_have_no_warning() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"k_a": rng.integers(0, 2, 50) * 1.0, "k_b": rng.integers(0, 2, 50) * 1.0})
    model = LinearRegression().fit(X, X["k_a"])
    assert not limes.TabularExplainer(model, X)(X[:1]).row_warnings[0]


# -- what users see ------------------------------------------------------------------------------------------


def test_groups_stand_where_their_first_column_does_and_survive_storage(tmp_path: Any) -> None:
    X = _table()
    model = MODELS["forest"](X, _targets(X))
    explainer = limes.TabularExplainer(model, X, groups={"second": ["e", "b"], "first": ["c", "a"]})
    explanation = explainer(X[:2])
    assert explanation.feature_names == ("first", "second", "d")
    row = X.iloc[0]
    assert explanation.data[0, 0] == f"a {row['a']:g}, c {row['c']:g}"
    assert "a <= " in explanation.conditions[0][0] or "a >" in explanation.conditions[0][0]
    assert explanation.provenance["groups"] == {"second": ["b", "e"], "first": ["a", "c"]}
    stored = limes.Explanation.from_json(explanation.to_json())
    np.testing.assert_array_equal(stored.contributions.values, explanation.contributions.values)
    assert stored.data[0, 0] == explanation.data[0, 0]
    with pytest.raises(InputError, match="explain the rows again"):
        stored.contributions.within("first")
    frame = explanation.to_frame()
    assert [*frame["feature"][:3]] == ["first", "second", "d"]
    assert limes.diagnose(explanation) is not None
    for drawn in (explanation.plot.waterfall, explanation.plot.beeswarm, explanation.plot.effects):
        assert drawn() is not None
    assert "first" in explanation.to_html()


def test_a_copy_and_a_compiled_explainer_give_the_same_numbers() -> None:
    X = _table()
    model = MODELS["boosting"](X, _targets(X))
    explainer = limes.TabularExplainer(model, X[:20], groups=GROUPS)
    rows = X[15:25]
    numbers = explainer.contributions(rows).contributions.values
    copied = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_array_equal(copied.contributions(rows).contributions.values, numbers)
    compiled = explainer.compiled()
    assert compiled.feature_names == ("first", "second", "d")
    for i in range(len(rows)):
        np.testing.assert_allclose(compiled(rows.iloc[[i]]).values[0], numbers[i], rtol=EXACT, atol=1e-12)
    shuffled = explainer.contributions(rows[::-1]).contributions.values
    np.testing.assert_allclose(shuffled[::-1], numbers, rtol=EXACT, atol=1e-12)


def test_groups_of_texts_and_of_columns_with_missing_values() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "town": rng.choice(["x", "y", "z"], 200),
            "age": np.where(rng.random(200) < 0.2, np.nan, rng.normal(size=200).round(1)),
            "size": rng.normal(size=200),
            "kind": pd.Categorical(rng.choice(["p", "q"], 200)),
        }
    )
    y = X["size"] + (X["town"] == "x") + X["age"].fillna(2.0)
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["town", "kind"]), remainder="passthrough"),
        HistGradientBoostingRegressor(max_iter=10, random_state=0),
    ).fit(X, y)
    explainer = limes.TabularExplainer(model, X, groups={"place": ["town", "age"]}, method="exact")
    missing = np.flatnonzero(X["age"].isna())[:2]
    explanation = explainer(X.iloc[missing])
    account = explanation.contributions
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, model.predict(X.iloc[missing]), rtol=EXACT)
    assert explanation.data[0, 0] == f"town {X['town'][missing[0]]}, age missing"
    new = X.iloc[:1].assign(town="elsewhere")
    with pytest.raises(InputError, match="elsewhere"):
        limes.TabularExplainer(lambda Z: Z["size"].to_numpy(), X, groups={"place": ["town", "age"]})(new)


def test_a_group_is_held_as_a_whole() -> None:
    X = _table()
    model = MODELS["forest"](X, _targets(X))
    explainer = limes.TabularExplainer(model, X, groups=GROUPS, hold=["a", "c"])
    explanation = explainer(X[:2])
    np.testing.assert_array_equal(explanation.coefficients.values[:, 0], 0.0)
    np.testing.assert_array_equal(explanation.contributions.values[:, 0], 0.0)
    with pytest.raises(InputError, match="its group 'first' is kept or changed as a whole: hold 'c' as well"):
        limes.TabularExplainer(model, X, groups=GROUPS, hold=["a"])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"g": ["a", "z"]}, "groups: 'g': 'z' is not a column"),
        ({"g": ["a", "b"], "h": ["b", "c"]}, "column 'b' is in 'g' and 'h'"),
        ({"g": []}, "groups: 'g' has no columns"),
        ({"g": ["a", "a"]}, "names the column 'a' twice"),
        ({"d": ["a", "b"]}, "'d' is also the name of a column"),
        ({"g": [*"abcde"]}, "'g' has all columns"),
        ({"g": "ab"}, "pass a list of columns"),
        ({3: ["a", "b"]}, "3 is no name of a group"),
        ([["a", "b"]], "must be a mapping"),
    ],
)
def test_groups_that_are_none_are_refused(groups: Any, message: str) -> None:
    X = _table()
    with pytest.raises(InputError, match=message):
        limes.TabularExplainer(MODELS["linear"](X, _targets(X)), X, groups=groups)


def test_groups_need_bins_that_are_given() -> None:
    X = _table()
    model = MODELS["linear"](X, _targets(X))
    with pytest.raises(InputError, match="a group has no slope"):
        limes.TabularExplainer(model, X, groups=GROUPS, bins=None)
    with pytest.raises(InputError, match="compares designs of columns"):
        limes.TabularExplainer(model, X, groups=GROUPS, bins="auto")
    with pytest.raises(InputError, match="without groups="):
        limes.suggest_design(limes.TabularExplainer(model, X, groups=GROUPS), X[:2])
    with pytest.raises(InputError, match="this column is no group"):
        limes.TabularExplainer(model, X, groups=GROUPS)(X[:1]).contributions.within("d")


def test_a_compiled_explainer_keeps_no_new_combination() -> None:
    X = _table()
    explain = limes.TabularExplainer(MODELS["forest"](X, _targets(X)), X[:20], groups=GROUPS).compiled()
    tuples = [group.tuples for group in explain._model.table.groups.values()]
    before = [its.count for its in tuples]
    numbers = explain(X[20:]).values
    assert [its.count for its in tuples] == before
    again = explain(X[20:]).values
    np.testing.assert_array_equal(again, numbers)


@pytest.mark.parametrize(("drops", "misses"), [(False, False), (True, False), (False, True), (True, True)])
def test_dummies_without_a_category_are_named(drops, misses):
    """A dropped first category, or missing values, kept the usual dummies from being seen."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"rooms": rng.integers(1, 6, 400) * 1.0})
    # two columns that are seldom 1, and by chance never together
    table["has_pool"], table["has_cellar"] = np.arange(400) % 40 == 0, np.arange(400) % 40 == 1
    table["home_district"] = rng.choice(["mill", "hill", "harbour"], 400)
    if misses:
        table.loc[::10, "home_district"] = None
    encoded = pd.get_dummies(table, columns=["home_district"], drop_first=drops, dtype=float).astype(float)
    model = LinearRegression().fit(encoded, encoded.sum(axis=1))
    explanation = limes.TabularExplainer(model, encoded)(encoded.iloc[:1], progress=False)
    (text,) = [text for text in explanation.warnings if "groups=" in text]
    members = [name for name in encoded if name.startswith("home_district")]
    assert text.startswith("at most one of" if drops or misses else "exactly one of")
    assert f"groups={ {'home_district': members} }" in text


def test_a_group_of_dummies_names_the_category_that_was_dropped() -> None:
    """The base category read "district_mill 0, district_port 0"."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"district": rng.choice(["hill", "mill", "port"], 120), "age": rng.normal(size=120)})
    dummies = pd.get_dummies(table, dtype=float, drop_first=True)
    model = LinearRegression().fit(dummies, dummies["district_mill"] + dummies["age"])
    members = ["district_mill", "district_port"]
    explanation = limes.TabularExplainer(model, dummies, groups={"district": members})(dummies.iloc[:40])
    place = explanation.feature_names.index("district")
    for conditions, data, district in zip(
        explanation.conditions, explanation.data, table["district"][:40], strict=True
    ):
        text = "none of mill, port" if district == "hill" else district
        assert (conditions[place], data[place]) == (f"district = {text}", text)
    again = limes.diagnose(explanation[:2], progress=False)
    assert again
    with pytest.raises(InputError, match="'district_mill': this column is in the group 'district'"):
        explanation[0].reasons(2, {"district_mill": "It is {value}."})
