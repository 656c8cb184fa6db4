"""Accounts of a difference: equal to an enumeration over the user's own predict, of rows and of models."""

from __future__ import annotations

from itertools import combinations
from math import comb, factorial

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, SplineTransformer
from sklearn.svm import SVR

import limes
from limes.exceptions import CellError, InputError, ModelError

X, Y = load_diabetes(return_X_y=True)
X = np.round(X[:, [0, 2, 3, 8, 9]] * 20.0, 2)
CLASSES = np.digitize(Y, np.quantile(Y, [0.4, 0.7]))


def enumerated(predict, a, b):
    """Shapley values, those alone, and last, of f at a's values for a set of columns, else b's."""
    d = a.size
    value = {}
    for size in range(d + 1):
        for kept in combinations(range(d), size):
            row = b.copy()
            row[list(kept)] = a[list(kept)]
            value[kept] = predict(row[None])[0]
    phi = [0.0] * d
    for j in range(d):
        for kept in value:
            if j not in kept:
                share = factorial(len(kept)) * factorial(d - len(kept) - 1) / factorial(d)
                phi[j] = phi[j] + share * (value[tuple(sorted((*kept, j)))] - value[kept])
    whole = tuple(range(d))
    alone = [value[(j,)] - value[()] for j in range(d)]
    last = [value[whole] - value[tuple(i for i in whole if i != j)] for j in range(d)]
    return np.array(phi), np.array(alone), np.array(last)


MODELS = {
    "linear": Ridge(),
    "splines": make_pipeline(SplineTransformer(4), Ridge(0.1)),
    "forest": RandomForestRegressor(20, max_depth=6, random_state=0),
    "kernel": SVR(C=50.0),
    "kernel ridge": KernelRidge(kernel="rbf", gamma=0.3),
    "products": make_pipeline(PolynomialFeatures(2, interaction_only=True), Ridge(0.1)),
    "network": MLPRegressor(hidden_layer_sizes=(6,), activation="tanh", max_iter=300, random_state=0),
    "kinks": MLPRegressor(hidden_layer_sizes=(6,), activation="relu", max_iter=300, random_state=0),
}
CLASSIFIERS = {
    "logistic": LogisticRegression(),
    "three classes": LogisticRegression(),
    "boosted": GradientBoostingClassifier(n_estimators=20, random_state=0),
    "forest of classes": RandomForestClassifier(10, max_depth=5, random_state=0),
}


def fitted(name):
    with np.errstate(all="ignore"):
        if name in MODELS:
            return MODELS[name].fit(X, Y), None
        target = CLASSES if name == "three classes" else CLASSES > 0
        model = CLASSIFIERS[name].fit(X, target)
    return model, model.predict_proba


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("law", [None, "joint"])
@pytest.mark.parametrize("name", [*MODELS, *CLASSIFIERS])
def test_two_rows_equal_an_enumeration(name, law):
    model, probabilities = fitted(name)
    predict = probabilities or model.predict
    explainer = limes.TabularExplainer(model, X, law=law, rng=0)
    explanation = explainer.between(X[:3], X[10])
    account = explanation.contributions
    assert explanation.method == "exact"
    assert not account.standard_errors.any()
    size = np.abs(account.values).max()
    for i in range(3):
        its = enumerated(predict, X[i], X[10])
        for computed, right in zip((account.values, account.alone, account.last), its, strict=True):
            assert computed[i] == pytest.approx(right, abs=1e-9 * size)
    assert account.base_values == pytest.approx(np.broadcast_to(predict(X[10:11]), account.base_values.shape))
    assert explanation.predictions == pytest.approx(predict(X[:3]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [*MODELS, *CLASSIFIERS, "function"])
def test_pairs_of_two_rows_equal_an_enumeration(name):
    """They were refused, with the advice to read them from the very explanation."""
    if name == "function":
        forest = fitted("forest")[0]
        model = predict = lambda rows: forest.predict(rows)
    else:
        model, probabilities = fitted(name)
        predict = probabilities or model.predict
    explainer = limes.TabularExplainer(model, X, rng=0)
    account = explainer.between(X[:2], X[10]).contributions
    assert not account.pair_errors.any()
    np.testing.assert_allclose(account.pairs.sum(axis=2), account.values, atol=1e-9)
    d = X.shape[1]
    for i in range(2):
        for first, second in combinations(range(d), 2):
            rest, expected = [j for j in range(d) if j not in (first, second)], 0.0
            for size in range(d - 1):
                for kept in combinations(rest, size):
                    rows = np.repeat(X[10:11], 4, axis=0)
                    rows[:, kept] = X[i, kept]
                    rows[1::2, first], rows[2:, second] = X[i, first], X[i, second]
                    none, one, other, both = predict(rows)
                    expected = expected + (both - one - other + none) / ((d - 1) * comb(d - 2, size))
            size = np.abs(account.values).max()
            np.testing.assert_allclose(2 * account.pairs[i, first, second], expected, atol=1e-9 * size)
    assert limes.Explanation.from_json(
        explainer.between(X[0], X[10]).to_json(pairs=True)
    ).contributions.pairs == pytest.approx(account.pairs[:1], abs=1e-12)


def test_pairs_of_too_many_columns_and_of_two_models_are_refused_with_the_way():
    wide = np.random.default_rng(0).normal(size=(50, 14))
    explainer = limes.TabularExplainer(lambda rows: rows.prod(axis=1), wide, max_calls=300)
    with pytest.raises(InputError, match="differ in 14 columns"):
        _ = explainer.between(wide[0], wide[1]).contributions.pairs
    change = limes.between_models(fitted("forest")[0], fitted("linear")[0], X[0], background=X, before=X[1])
    with pytest.raises(InputError, match=r"subtract contributions\.pairs of the two"):
        _ = change.contributions.pairs


def test_there_is_no_diagnosis_of_two_rows():
    explanation = limes.TabularExplainer(fitted("forest")[0], X).between(X[0], X[1])
    with pytest.raises(InputError, match="diagnose is about LIME's surrogate"):
        limes.diagnose(explanation)


def test_a_row_for_each_row():
    explainer = limes.TabularExplainer(fitted("forest")[0], X)
    together = explainer.between(X[:3], X[5:8]).contributions.values
    alone = [explainer.between(X[i], X[5 + i]).contributions.values[0] for i in range(3)]
    assert np.array_equal(together, np.stack(alone))
    with pytest.raises(InputError, match="b has 2 rows, and a has 3"):
        explainer.between(X[:3], X[5:7])


def test_columns_that_agree_have_nothing():
    model = fitted("forest")[0]
    b = X[0].copy()
    b[1] += 1.0
    values = limes.TabularExplainer(model, X).between(X[0], b).contributions.values[0]
    assert np.flatnonzero(values).tolist() in ([1], [])
    same = limes.TabularExplainer(model, X).between(X[0], X[0]).contributions
    assert not same.values.any()


@pytest.mark.parametrize("name", ["forest", "logistic", "kernel", "network"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_reference_alone_is_the_same_law(name):
    model, _ = fitted(name)
    beside = limes.TabularExplainer(model, X).between(X[:4], X[7]).contributions.values
    alone = limes.TabularExplainer(model, reference=X[7])(X[:4])
    both = limes.TabularExplainer(model, X, reference=X[7])(X[:4])
    for explanation in (alone, both):
        assert explanation.contributions.values == pytest.approx(beside, rel=1e-9, abs=1e-12)
        assert not any(w for row in alone.row_warnings for w in row)
    with pytest.raises(InputError, match="a law without bins"):
        _ = alone.coefficients


def test_many_columns_of_a_function_have_errors_that_hold():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(60, 20))
    weights = rng.normal(size=20)

    def f(x):
        return np.tanh(x @ weights / 3.0) + x[:, 0] * x[:, 1]

    explainer = limes.TabularExplainer(f, wide, rng=0)
    # the same function with two hidden terms, as a sum of what an enumeration can have
    inside, away = 0, []
    for i in range(8):
        explanation = explainer.between(wide[i], wide[i + 20])
        account = explanation.contributions
        assert explanation.method == "sampled"
        assert account.base_values[0] == f(wide[i + 20 : i + 21])[0]
        assert not account.base_errors.any()
        total = account.base_values + account.values.sum(axis=1)
        assert total == pytest.approx(f(wide[i : i + 1]), abs=1e-9)
        right = by_permutations(f, wide[i], wide[i + 20], 20_000)
        errors = account.standard_errors[0]
        away += (np.abs(account.values[0] - right) / errors).tolist()
        inside += int((np.abs(account.values[0] - right) <= 1.96 * errors).sum())
    assert inside >= 0.9 * len(away)


def by_permutations(f, a, b, count):
    """Shapley values by random orders, as they are defined."""
    rng = np.random.default_rng(1)
    orders = rng.permuted(np.tile(np.arange(a.size), (count, 1)), axis=1)
    rows = np.tile(b, (count, 1))
    before, phi = f(rows), np.zeros(a.size)
    for column in orders.T:
        rows[np.arange(count), column] = a[column]
        after = f(rows)
        np.add.at(phi, column, after - before)
        before = after
    return phi / count


def test_categories_that_the_reference_lacks():
    frame = pd.DataFrame({"colour": ["red", "blue", "green", "red"] * 10, "size": np.arange(40.0)})
    target = frame["size"] * (frame["colour"] == "green")
    encoder = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestRegressor(10, random_state=0)).fit(frame, target)
    explanation = limes.TabularExplainer(model, reference=frame.iloc[[0]])(frame.iloc[[38, 37]])
    for i, row in enumerate((38, 37)):
        a, b = frame.iloc[[row]], frame.iloc[[0]]
        mixed = [b, b.assign(colour=a["colour"].iloc[0]), b.assign(size=a["size"].iloc[0]), a]
        v = [float(model.predict(one)[0]) for one in mixed]
        right = [0.5 * (v[1] - v[0] + v[3] - v[2]), 0.5 * (v[2] - v[0] + v[3] - v[1])]
        assert explanation.contributions.values[i] == pytest.approx(right, abs=1e-9)
    assert explanation.conditions[0] == ("colour: red → green", "size: 0 → 38")
    function = limes.TabularExplainer(lambda table: model.predict(table), reference=frame.iloc[[0]])
    assert function(frame.iloc[[38]]).contributions.values == pytest.approx(
        explanation.contributions.values[:1], abs=1e-9
    )


def test_two_models_are_a_difference_of_accounts():
    old, new = fitted("forest")[0], RandomForestRegressor(15, max_depth=4, random_state=1).fit(X, Y)
    explainer = limes.TabularExplainer(new, X)
    change = limes.between_models(old, explainer, X[:4])
    both = [limes.TabularExplainer(model, X).contributions(X[:4]).contributions for model in (new, old)]
    assert change.contributions.values == pytest.approx(both[0].values - both[1].values, abs=1e-12)
    assert change.contributions.base_values == pytest.approx(both[0].base_values - both[1].base_values)
    assert change.predictions == pytest.approx(new.predict(X[:4]) - old.predict(X[:4]))
    adds_up(change)
    # whichever of the two is an explainer
    again = limes.between_models(limes.TabularExplainer(old, X[:50]), explainer, X[:4])
    assert np.array_equal(again.contributions.values, change.contributions.values)
    raw = limes.between_models(old, new, X[:4], background=X)
    assert np.array_equal(raw.contributions.values, change.contributions.values)


@pytest.mark.parametrize("under", ["new", "old", "both"])
def test_a_row_and_its_model_have_changed(under):
    old, new = fitted("forest")[0], RandomForestRegressor(15, max_depth=4, random_state=1).fit(X, Y)
    change = limes.between_models(old, new, X[:3], before=X[5:8], values_under=under, background=X)
    assert change.predictions == pytest.approx(new.predict(X[:3]) - old.predict(X[5:8]))
    adds_up(change)
    d = X.shape[1]
    values = change.contributions.values[:, :d]
    by_model = [
        np.stack([enumerated(model.predict, X[i], X[5 + i])[0] for i in range(3)]) for model in (new, old)
    ]
    right = {"new": by_model[0], "old": by_model[1], "both": 0.5 * (by_model[0] + by_model[1])}
    assert values == pytest.approx(right[under], abs=1e-9)
    assert change.feature_names[:1] == ("x0 (value)",)
    assert limes.Explanation.from_json(change.to_json()).contributions.values == pytest.approx(
        change.contributions.values
    )


def adds_up(explanation):
    account = explanation.contributions
    assert account.base_values + account.values.sum(axis=1) == pytest.approx(
        explanation.predictions, abs=1e-9 * np.abs(account.values).max()
    )


def test_rows_that_cannot_be_compared_are_refused():
    model = fitted("forest")[0]
    explainer = limes.TabularExplainer(model, X)
    first, second = explainer(X[:2]), explainer(X[2:4])
    with pytest.raises(InputError, match="other rows"):
        first.minus(explainer(X[:3]))
    with pytest.raises(InputError, match="other features"):
        first.minus(second[:, :2])
    with pytest.raises(InputError, match=r"minus\(list\): pass the other explanation"):
        first.minus([])
    with pytest.raises(InputError, match="new is an explainer"):
        limes.between_models(model, explainer, X[0], background=X)
    with pytest.raises(InputError, match="there is no compiled with reference="):
        limes.TabularExplainer(model, reference=X[0]).compiled()
    with pytest.raises(InputError, match="reference= is a mapping"):
        limes.TabularExplainer(model, reference={"x0": 1.0})
    with pytest.raises(InputError, match="law='covers' has no law of one other row"):
        limes.TabularExplainer(model, law="covers").between(X[0], X[1])
    names, table = list("abcd"), pd.DataFrame(X[:, :4], columns=list("abcd"))
    fewer = RandomForestClassifier(3, random_state=0).fit(table[["a", "b"]], X[:, 0] > 0)
    other = RandomForestClassifier(3, random_state=0).fit(table, np.where(X[:, 0] > 0, "good", "bad"))
    with pytest.raises(ModelError, match=r"pass two functions .*predict_proba\(table"):
        limes.between_models(fewer, other, table[:1], background=table)
    whole = RandomForestClassifier(3, random_state=0).fit(table, X[:, 0] > 0)
    with pytest.raises(InputError, match=r"other outputs \('False', 'True'\) than .* pass two functions"):
        limes.between_models(whole, other, table[:1], background=table)
    functions = (
        lambda rows: fewer.predict_proba(rows[["a", "b"]])[:, 1],
        lambda rows: other.predict_proba(rows[names])[:, 1],
    )
    change = limes.between_models(*functions, table[:1], background=table)
    expected = functions[1](table[:1]) - functions[0](table[:1])
    np.testing.assert_allclose(change.predictions, expected, atol=1e-12)
    with pytest.raises(InputError, match="pass background="):
        limes.between_models(model, model, X[0])
    with pytest.raises(InputError, match="background= is missing"):
        limes.TabularExplainer(model)
    with pytest.raises(InputError, match="reference= is the law"):
        limes.TabularExplainer(model, X, reference=X[0], law="joint")
    with pytest.raises(InputError, match="reference=row"):
        limes.TabularExplainer(model, X[:1])
    with pytest.raises(InputError, match="is one row, and this table has 2"):
        limes.TabularExplainer(model, reference=X[:2])


@pytest.mark.parametrize("under", ["new", "both"])
def test_all_calls_of_both_models_are_counted(under):
    def function(x):
        return x[:, 0] * x[:, 1]

    explainer = limes.TabularExplainer(function, X, max_calls=300, rng=0)
    parts = [explainer.between(X[0], X[1]), explainer.contributions(X[1]), explainer.contributions(X[1])]
    if under == "both":
        parts += [explainer.between(X[0], X[1]), explainer.contributions(X[0]), explainer.contributions(X[0])]
    change = limes.between_models(function, explainer, X[0], before=X[1], values_under=under)
    assert change.model_calls == sum(part.model_calls for part in parts)
    assert change.shared_calls is not None
    assert change.shared_calls[0] >= max(int(part.shared_calls[0]) for part in parts)


def test_media_say_what_is_compared():
    model, _ = fitted("logistic")
    explanation = limes.TabularExplainer(model, X).between(X[0], X[1])
    assert "at the other row" in str(explanation)
    assert "Usual is" not in explanation.to_html()
    change = limes.between_models(model, LogisticRegression(C=0.1).fit(X, CLASSES > 0), X[0], background=X)
    assert "change of P(target = True)" in str(change)
    assert "is the change of what is usual" in " ".join(str(change).split())


def test_an_error_about_rows_says_which_of_the_two():
    table = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "bmi": [2.0, 1.0, 4.0, 3.0]})
    explainer = limes.TabularExplainer(lambda x: x["age"] * x["bmi"], table)
    good, renamed = table.iloc[[0]], table.iloc[[1]].rename(columns={"age": "Age"})
    infinite = table.iloc[[1]].assign(bmi=np.inf)
    for between in (explainer.between, explainer.compiled().between):
        with pytest.raises(InputError, match=r"^a: X has no column 'age'"):
            between(renamed, good)
        with pytest.raises(InputError, match=r"^b: X has no column 'age'"):
            between(good, renamed)
        with pytest.raises(CellError, match=r"^b: row 0, column 'bmi': inf"):
            between(good, infinite)
        with pytest.raises(CellError, match=r"^a: row 0, column 'bmi': inf"):
            between(infinite, good)
    with pytest.raises(InputError, match=r"^b has 2 rows, and a has 3"):
        explainer.between(table[:3], table[:2])
