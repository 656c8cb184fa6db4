"""A suggested design is the best of the candidates, on draws that did not choose it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

import limes
from effort import repeats
from internals import _WORTH, SharedDraws, suggestion_module
from limes.exceptions import InputError

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))


def boosted(x):
    return np.where(x[:, 0] > 0, 3.0, 0.0) + x[:, 1] * (x[:, 2] > 0)


@pytest.mark.parametrize(
    ("y", "expected"),
    [(X @ [1.0, -2.0, 0.5, 0.0], "slopes"), (2.0 * (X[:, 0] > np.median(X[:, 0])), "two bins")],
)
def test_the_winner_is_the_design_that_fits_the_model(y, expected):
    """Slopes of a plane, and two bins of a step at the median, capture all."""
    model = LinearRegression() if expected == "slopes" else HistGradientBoostingRegressor(max_leaf_nodes=2)
    explainer = limes.TabularExplainer(model.fit(X, y), X)
    suggestion = limes.suggest_design(explainer, X[:4])
    assert suggestion.name == expected
    assert suggestion.fidelity.max() == pytest.approx(1.0, abs=0.03)
    assert expected in str(suggestion)
    assert suggestion.reason in repr(suggestion)
    for options, own_fidelity in zip(suggestion.candidates, suggestion.own_fidelity, strict=True):
        fidelity = explainer._with_design(**options)(X[:4], progress=False).fidelity
        assert own_fidelity == pytest.approx(np.median(fidelity), rel=1e-9)


def features_at(explainer, row, x):
    model, rows = explainer._model_at(row)
    return model.features_at(rows[0], x)


def test_numbers_are_those_of_fresh_draws_and_of_the_rows():
    model = RandomForestRegressor(10, random_state=0).fit(X, boosted(X))
    explainer = limes.TabularExplainer(model, X)
    for i in range(repeats(20, 3)):
        suggestion = limes.suggest_design(explainer, X[[i]])
        x, _ = explainer.design(X[i]).draw(np.random.default_rng(i).random((20_000, 4)))
        f = model.predict(x)
        away = model.predict(X[[i]])[0] - f.mean()
        for at, options in enumerate(suggestion.candidates):
            other = explainer._with_design(**options)
            explanation = other(X[[i]], progress=False)
            g = (
                explanation.coefficients.intercepts[0]
                + features_at(other, X[[i]], x) @ explanation.coefficients.values[0]
            )
            score = 1 - np.mean((f - g) ** 2) / f.var()
            assert abs(suggestion.fidelity[at] - score) < 6 * suggestion.fidelity_errors[at] + 0.01
            miss = abs(explanation.coefficients.local_errors[0])
            assert suggestion.miss[at] == pytest.approx(miss, abs=1e-12)
            share = (1 - suggestion.row_fidelity[at]) * away**2 / max(miss**2, 1e-300)
            assert miss < 1e-6 or share == pytest.approx(1.0, rel=0.25)


def test_the_winner_fits_best_of_those_that_miss_no_more():
    model = RandomForestRegressor(10, random_state=0).fit(X, boosted(X))
    explainer = limes.TabularExplainer(model, X)
    suggestion = limes.suggest_design(explainer, X[:60])
    scores = (suggestion.fidelity + suggestion.row_fidelity) / 2
    best = suggestion.names.index(suggestion.name)
    assert suggestion.miss[best] <= suggestion.miss[0]
    assert suggestion.other_side[best] <= suggestion.other_side[0]
    misses = [
        np.abs(explainer._with_design(**options)(X[:60], progress=False).coefficients.local_errors)
        for options in suggestion.candidates
    ]
    for at, its in enumerate(misses):
        if scores[at] > scores[best] + _WORTH:  # it is refused for what it does at the rows
            better, worse = (its < misses[0]).sum(), (its > misses[0]).sum()
            assert (
                suggestion.miss[at] > suggestion.miss[0]
                or suggestion.row_fidelity[at] < suggestion.row_fidelity[0]
                or better - worse < np.sqrt(better + worse)
            )


@pytest.mark.parametrize("kind", ["forest", "logistic", "margin"])
def test_new_rows_are_missed_no_more_than_by_the_default(kind):
    table, classes = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(table))
    table, classes = table[order, :10], classes[order]
    forest = RandomForestClassifier(30, min_samples_leaf=3, random_state=0)
    model = (forest if kind == "forest" else LogisticRegression(max_iter=5000)).fit(table[::2], classes[::2])
    options = {"output": "margin"} if kind == "margin" else {}
    explainer = limes.TabularExplainer(model, table[::2], **options)
    suggestion = limes.suggest_design(explainer, table[::2][:100])
    rows = table[1::2][:150]
    missed, sides = [], []
    for each in (explainer, explainer._with_design(**suggestion.options)):
        explanation = each(rows, progress=False)
        f, g = (
            numbers.reshape(len(rows), -1)[:, -1]
            for numbers in (explanation.predictions, explanation.coefficients.surrogate_predictions)
        )
        threshold = 0.0 if kind == "margin" else 0.5
        missed.append(np.median(np.abs(f - g)))
        sides.append(np.mean((f > threshold) != (g > threshold)))
    assert missed[1] <= missed[0]
    assert sides[1] <= sides[0]


def test_the_noise_is_that_of_weighted_fits():
    """Least squares on 5,000 weighted rows, forty times: four coefficients' spread is known to 6 %."""
    model = LinearRegression().fit(X, X @ [1.0, -2.0, 0.5, 0.0])
    explainer = limes.TabularExplainer(model, X, bandwidth=1.0)
    suggestion = limes.suggest_design(explainer, X[:1])
    for name in ("two bins", "quartiles"):
        at, fits = suggestion.names.index(name), []
        bins = suggestion.candidates[at]["bins"]
        unweighted = explainer._with_design(bins=bins, bandwidth=np.inf).design(X[0])
        for seed in range(40):
            x, z = unweighted.draw(np.random.default_rng(seed).random((5000, 4)))
            root = np.exp(-(1.0 - z).sum(axis=1) / 4)  # √π at ν = 1
            columns = np.column_stack([np.ones(5000), z]) * root[:, None]
            fits.append(np.linalg.lstsq(columns, model.predict(x) * root, rcond=None)[0][1:])
        noise = np.sqrt(np.var(fits, axis=0, ddof=1).sum()) / np.linalg.norm(np.mean(fits, axis=0))
        assert suggestion.noise[at] == pytest.approx(noise, rel=0.25)


def test_every_design_fits_a_constant_model_without_error():
    model = LinearRegression().fit(X, np.full(300, 2.0))
    suggestion = limes.suggest_design(limes.TabularExplainer(model, X), X[:1])
    assert suggestion.fidelity.tolist() == [1.0] * len(suggestion.names)
    assert not suggestion.fidelity_errors.any()


def test_bins_may_be_chosen_automatically_also_where_values_are_missing():
    """A column with missing values has quartiles, and a cell for them, beside the others' slopes."""
    x = X.copy()
    x[::7, 2] = np.nan
    y = X @ [3.0, -2.0, 0.2, 1.0]
    model = HistGradientBoostingRegressor(max_iter=60, max_leaf_nodes=8).fit(x, y)
    explainer = limes.TabularExplainer(model, x, bins="auto")
    assert explainer.suggestion.name.startswith("slopes")
    explanation = explainer(x[:2], progress=False)
    assert explanation.method == "exact"
    assert explanation.conditions[0] == ("x0", "x1", "x2 is missing", "x3")
    assert explanation.provenance["bins"] is None
    assert limes.TabularExplainer(model, x).suggestion is None
    with pytest.raises(InputError, match="needs a TabularExplainer"):
        limes.suggest_design(model, x)


def test_a_form_is_compared_with_its_model_once_and_not_for_every_design(monkeypatch):
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    explainer, sizes, predict_proba = limes.TabularExplainer(model, X), [], LogisticRegression.predict_proba

    def counted(self, rows):
        sizes.append(len(rows))
        return predict_proba(self, rows)

    monkeypatch.setattr(LogisticRegression, "predict_proba", counted)
    explainer._with_design(bins="decile")
    assert sizes
    sizes.clear()
    explainer._with_design(bins="decile", is_trial=True)
    assert not sizes


# -- a model that is asked -----------------------------------------------------------------------------------


def counted(predict):
    """The same function, and the numbers of rows that it was asked about."""
    sizes = []

    def answer(x):
        sizes.append(len(x))
        return predict(x)

    return answer, sizes


def test_designs_share_the_answers_of_a_function_and_count_them():
    model, sizes = counted(boosted)
    explainer = limes.TabularExplainer(model, X)
    sizes.clear()
    suggestion = limes.suggest_design(explainer, X[:20])
    calls = sum(sizes[1:])  # the first asks a few rows again, which the explainer counts
    assert suggestion.model_calls == calls <= 16_384 + 20
    assert f"asked about {calls:,} rows" in str(suggestion)
    assert suggestion.judged_rows == 20
    sizes.clear()
    few = limes.suggest_design(explainer, X[:20], max_calls=512)
    assert few.model_calls == sum(sizes[1:]) <= 512 + 20
    with pytest.raises(InputError, match="pass 160 or more"):
        limes.suggest_design(explainer, X[:20], max_calls=100)
    again = limes.suggest_design(explainer, X[:20])
    assert again.fidelity.tolist() == suggestion.fidelity.tolist()


def test_designs_do_not_call_a_read_model():
    model = HistGradientBoostingRegressor(max_iter=20).fit(X, boosted(X))
    assert limes.suggest_design(limes.TabularExplainer(model, X), X[:2]).model_calls == 0


@pytest.mark.parametrize(
    ("function", "holds"),
    [
        (lambda x: 2.0 * x[:, 0] - x[:, 1] + 0.5 * x[:, 3], "slopes"),
        (lambda x: np.column_stack([x[:, 0] > np.median(X[:, 0]), 1.0 * (x[:, 1] > 9)]), "two bins"),
    ],
)
def test_a_design_that_fits_a_function_has_no_residual(function, holds):
    suggestion = limes.suggest_design(limes.TabularExplainer(function, X), X[:5])
    at = suggestion.names.index(holds)
    assert suggestion.name == holds
    for numbers in (suggestion.fidelity, suggestion.own_fidelity, suggestion.row_fidelity):
        assert numbers[at] == pytest.approx(1.0, abs=1e-9)
    assert suggestion.miss[at] == pytest.approx(0.0, abs=1e-9)
    assert suggestion.noise[at] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("is_wide", repeats([False, True], [False]))
def test_errors_of_answers_that_are_shared_cover_what_a_read_model_has(monkeypatch, is_wide):
    """R² around single rows, of models that are asked, and of the same ones, read, on other draws."""
    d = 8
    if is_wide:  # trees split the columns that the answers choose
        monkeypatch.setattr(suggestion_module, "_MOST_CONTROLLED", 4)
    x = np.random.default_rng(1).normal(size=(400, d))
    y = x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) + (x[:, 3] > 0.5) + x[:, 4:] @ [1.0, 0.5, -0.5, 0.2]
    models = [
        RandomForestRegressor(10, max_depth=6, random_state=0).fit(x, y),
        HistGradientBoostingRegressor(max_iter=30, max_leaf_nodes=6).fit(x, np.exp(0.3 * y)),
    ]
    inside = []
    for model in models:
        read = limes.TabularExplainer(model, x)
        for seed in range(repeats(60, 3)):
            row = x[[seed]]
            exact = limes.suggest_design(read, row)
            sampled = limes.suggest_design(
                limes.TabularExplainer(model.predict, x, method="sampled", rng=seed), row
            )
            # bandwidths are tried of the best design: another one where two are about as good
            names = [name for name in exact.names if name in sampled.names][:5]
            assert len(names) >= 4
            its, same = ([one.names.index(name) for name in names] for one in (sampled, exact))
            gap = np.abs(sampled.fidelity[its] - exact.fidelity[same])
            errors = np.hypot(sampled.fidelity_errors[its], exact.fidelity_errors[same])
            inside += (gap <= 1.96 * errors).tolist()
            # and the surrogates' own R², and the misses, are the same but for few percent
            assert np.abs(sampled.own_fidelity[its] - exact.own_fidelity[same]).max() < 0.1
            scale = np.sqrt(((exact.miss[same] ** 2) / (1 - exact.row_fidelity[same] + 1e-12)).max())
            assert np.abs(sampled.miss[its] - exact.miss[same]).max() < 0.35 * scale + 0.2
    assert np.mean(inside) >= 0.93


def test_trees_of_few_columns_make_errors_of_a_wide_table_small(monkeypatch):
    monkeypatch.setattr(suggestion_module, "_MOST_CONTROLLED", 4)
    x = np.random.default_rng(0).normal(size=(300, 16))
    explainer, errors = limes.TabularExplainer(boosted, x, rng=0), []
    for _ in range(2):
        errors.append(limes.suggest_design(explainer, x[:2], max_calls=4096).fidelity_errors)
        monkeypatch.setattr(suggestion_module, "strongest", lambda *_: np.zeros(16, dtype=bool))
    assert np.median(errors[0] / errors[1]) < 0.8


def test_a_narrow_bandwidth_is_judged_at_the_rows_that_have_draws_enough():
    explainer = limes.TabularExplainer(boosted, X, bandwidth=0.1)
    suggestion = limes.suggest_design(explainer, X[:300])
    assert 1 < suggestion.judged_rows < 300
    assert f"compared at {suggestion.judged_rows} rows" in str(suggestion)
    assert np.isfinite(suggestion.miss).all()
    assert suggestion.model_calls <= 16_384 + 300


def test_a_function_of_categories_missing_values_and_held_columns():
    rng = np.random.default_rng(2)
    table = pd.DataFrame(
        {"a": rng.normal(size=300), "b": rng.choice(["u", "v"], 300), "c": rng.normal(size=300)}
    )
    table.loc[::9, "a"] = np.nan

    def function(t):
        return 3.0 * (t["b"] == "v") + t["a"].isna() * 0.0 + t["c"]

    explainer = limes.TabularExplainer(function, table, hold=["c"])
    suggestion = limes.suggest_design(explainer, table.iloc[:12])
    at = suggestion.names.index("slopes")
    assert suggestion.fidelity[at] == pytest.approx(1.0, abs=1e-9)
    assert suggestion.miss[at] == pytest.approx(0.0, abs=1e-9)
    assert np.isfinite(suggestion.fidelity).all()


@pytest.mark.parametrize(
    "options", [{}, {"bins": None}, {"weights": "euclidean"}, {"hold": [1]}, {"bandwidth": 0.5}]
)
def test_shared_draws_have_the_moments_of_every_row(options):
    """Weighted means of the features are E_w h, exactly known, also of rows that no draw was made for."""
    x = X.copy()
    x[::5, 2] = np.nan
    x[:, 3] = np.round(x[:, 3])
    family = limes.TabularExplainer(lambda t: t[:, 0], x, categorical=[3], **options)._model_at(x)[0].family
    rows = x[:24]
    if "hold" in options:
        rows[:, 1] = np.where(np.arange(24) % 2, 0.3, -0.7)
    designs = [family.at(row) for row in rows]
    draws = SharedDraws.of(family, rows, designs, 4096, np.random.SeedSequence(0))
    assert draws.sizes.min() > 4096 / 24
    for row, design, weights in zip(rows, designs, draws.weights, strict=True):
        h = design.feature(draws.x)
        error = np.sqrt(weights**2 @ (h - design.inclusion) ** 2)
        assert (np.abs(weights @ h - design.inclusion) <= 5 * error + 1e-12).all()
        if "hold" in options:
            assert not weights[draws.x[:, 1] != row[1]].any()
