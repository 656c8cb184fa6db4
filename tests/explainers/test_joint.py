"""``law="joint"``: the background's own rows, against plain weighted least squares on them."""

import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

import limes
from effort import repeats
from internals import CHECK_CALLS, WITNESSES
from limes.exceptions import InputError, ModelError
from oracle import EXACT


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def forest(diabetes):
    X, y = diabetes
    return RandomForestRegressor(20, random_state=0).fit(X, y)


def plain(z, f, bandwidth):
    """Intercept and coefficients of weighted least squares on centred columns, of least norm."""
    w = np.exp(-(z.shape[1] - z.sum(axis=1)) / (2 * bandwidth**2))
    alpha, mean = (np.average(a, axis=0, weights=w) for a in (z, f))
    root = np.sqrt(w)[:, None]
    coef = np.linalg.lstsq(root * (z - alpha), root[:, 0] * (f - mean), rcond=1e-12)[0]
    return mean - alpha @ coef, coef


def quartiles(X):
    """Number of the bin (a, b] of every value."""
    inner = [np.unique(np.percentile(column, [25, 50, 75])) for column in X.to_numpy().T]
    return np.column_stack(
        [np.searchsorted(q, column) for q, column in zip(inner, X.to_numpy().T, strict=True)]
    )


@pytest.mark.parametrize("bandwidth", [None, 0.25 * np.sqrt(10), np.inf])
@pytest.mark.parametrize("read", [True, False])
def test_coefficients_are_plain_weighted_least_squares(diabetes, forest, bandwidth, read):
    X, _ = diabetes
    model = forest if read else lambda table: forest.predict(table)
    explainer = limes.TabularExplainer(model, X, law="joint", bandwidth=bandwidth)
    explanation = explainer(X.iloc[:6])
    cells, f = quartiles(X), forest.predict(X)
    nu = 0.75 * np.sqrt(10) if bandwidth is None else bandwidth
    for i in range(6):
        z = (cells == cells[i]).astype(float)
        intercept, coef = plain(z, f, nu)
        np.testing.assert_allclose(
            explanation.coefficients.values[i], coef, rtol=EXACT, atol=EXACT * np.abs(coef).max()
        )
        assert explanation.coefficients.intercepts[i] == pytest.approx(intercept, rel=EXACT)
        w = np.exp(-(10 - z.sum(axis=1)) / (2 * nu**2))
        assert explanation.coefficients.effective_rows[i] == pytest.approx(
            w.sum() ** 2 / (w**2).sum(), rel=EXACT
        )
        rest = f - intercept - z @ coef
        r2 = 1 - np.average(rest**2, weights=w) / np.average((f - np.average(f, weights=w)) ** 2, weights=w)
        assert explanation.fidelity[i] == pytest.approx(r2, rel=EXACT)
    assert explanation.method == "sampled"
    calls = 0 if read else 2 + CHECK_CALLS + WITNESSES + 442
    assert (explanation.calls == (0 if read else 1)).all()  # the predictions
    assert explainer.pool_calls == calls
    assert (explanation.shared_calls == calls).all()
    assert "joint" in explanation.reason
    assert ("read model" in explanation.reason) == read


def test_shares_add_up_and_several_outputs_are_those_of_each(diabetes):
    X, y = diabetes
    model = RandomForestClassifier(20, random_state=0).fit(X, np.digitize(y, [100, 180]))
    both = limes.TabularExplainer(model, X, law="joint")(X.iloc[:3])
    assert both.coefficients.values.shape == (3, 10, 3)
    np.testing.assert_allclose(both.coefficients.shares.sum(axis=1), both.fidelity, rtol=EXACT)
    one = limes.TabularExplainer(model, X, law="joint", output=1)(X.iloc[:3])
    np.testing.assert_allclose(
        both.coefficients.values[..., 1], one.coefficients.values, rtol=EXACT, atol=1e-14
    )
    np.testing.assert_allclose(
        both.coefficients.standard_errors[..., 1], one.coefficients.standard_errors, rtol=EXACT
    )


def test_effects_are_means_of_cells_and_all_together_fit_best(diabetes, forest):
    X, _ = diabetes
    explanation = limes.TabularExplainer(forest, X, law="joint")(X.iloc[:1])
    cells, f = quartiles(X), forest.predict(X)
    w = np.exp(-(10 - (cells == cells[0]).sum(axis=1)) / (2 * (0.75 * np.sqrt(10)) ** 2))
    mean = np.average(f, weights=w)
    for j, name in enumerate(X.columns):
        effect = explanation.effects[name]
        expected = [
            np.average(f[cells[:, j] == b], weights=w[cells[:, j] == b]) - mean
            for b in range(cells[:, j].max() + 1)
        ]
        np.testing.assert_allclose(effect.values, expected, rtol=EXACT)
        assert effect.current == cells[0, j]
        assert len(effect.cells) == len(expected)
        assert effect.cells[effect.current] == explanation.conditions[0][j]
    basis = np.column_stack([pd.get_dummies(cells[:, j]).to_numpy(float) for j in range(10)])
    root = np.sqrt(w)
    fitted = basis @ np.linalg.lstsq(root[:, None] * basis, root * f, rcond=None)[0]
    r2 = 1 - np.average((f - fitted) ** 2, weights=w) / np.average((f - mean) ** 2, weights=w)
    assert explanation.additive_fidelity[0] == pytest.approx(r2, rel=EXACT)
    assert explanation.fidelity[0] <= r2
    (pair,) = explanation.interactions(top=1)
    assert 0 <= pair.share < 1 - r2


def test_shares_of_effects_and_pairs_do_not_depend_on_the_unit_of_the_answers(diabetes, forest):
    X, _ = diabetes
    plain, large = (
        limes.TabularExplainer(lambda x, unit=unit: unit * forest.predict(x), X, law="joint")(X.iloc[:1])
        for unit in (1.0, 1e4)
    )
    assert large.additive_fidelity_errors[0] == pytest.approx(plain.additive_fidelity_errors[0], rel=EXACT)
    for one, other in zip(plain.interactions(top=3), large.interactions(top=3), strict=True):
        assert one.features == other.features
        assert other.share == pytest.approx(one.share, rel=EXACT)
        assert other.share_error == pytest.approx(one.share_error, rel=EXACT)
        assert one.share_error > 0


def test_errors_cover_the_population():
    """Backgrounds are samples of a population; its own weighted least squares is the truth."""
    rng = np.random.default_rng(0)
    population = rng.normal(size=(20_000, 4)) @ np.array(
        [[1.0, 0.6, 0.0, 0.3], [0.0, 1.0, 0.4, 0.0], [0.0, 0.0, 1.0, 0.5], [0.0, 0.0, 0.0, 1.0]]
    )
    edges = [np.array([-20.0, -0.6, 0.1, 0.9, 20.0])] * 4

    def model(x):
        return np.sin(x[:, 0]) + x[:, 1] * (x[:, 2] > 0) + 0.3 * x[:, 3] ** 2

    row = np.array([[0.3, -0.2, 1.1, -1.0]])
    cells = np.stack([np.searchsorted(edges[0][1:-1], column) for column in population.T], axis=1)
    z = (cells == np.searchsorted(edges[0][1:-1], row[0])).astype(float)
    _, truth = plain(z, model(population), 1.5)
    inside, ratios = [], []
    for _ in range(repeats(300, 150)):
        sample = population[rng.choice(len(population), 250)]
        explanation = limes.TabularExplainer(model, sample, law="joint", bins=edges, bandwidth=1.5)(
            row, progress=False
        )
        error = explanation.coefficients.standard_errors[0]
        inside.append(np.abs(explanation.coefficients.values[0] - truth) <= 1.96 * error)
        ratios.append((explanation.coefficients.values[0] - truth) / error)
    assert 0.93 <= np.mean(inside) <= 0.985
    assert np.mean(inside, axis=0).min() >= 0.9
    # no wider than need be
    assert np.std(ratios) > 0.75


def test_collinear_columns_share_the_effect_of_their_sum():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    X = pd.DataFrame({"a": x, "b": 2 * x + 1, "c": rng.normal(size=400)})
    explanation = limes.TabularExplainer(lambda t: t["a"].to_numpy(), X, law="joint")(X.iloc[:1])
    z = quartiles(X) == quartiles(X)[0]
    _, coef = plain(z.astype(float), x, 0.75 * np.sqrt(3))
    assert coef[0] == pytest.approx(coef[1])
    np.testing.assert_allclose(explanation.coefficients.values[0], coef, rtol=EXACT)
    (warning,) = [text for text in explanation.warnings if "collinear" in text]
    assert warning.startswith("a, b:")


def test_rows_depend_on_nothing_but_themselves(diabetes, forest):
    X, _ = diabetes
    model = partial(RandomForestRegressor.predict, forest)
    whole = limes.TabularExplainer(model, X, law="joint", batch_size=100)(X.iloc[:8], workers=2)
    single = pickle.loads(pickle.dumps(limes.TabularExplainer(model, X, law="joint")))
    for i in (7, 0):
        one = single(X.iloc[[i]])
        np.testing.assert_array_equal(one.coefficients.values[0], whole.coefficients.values[i])
        np.testing.assert_array_equal(
            one.coefficients.standard_errors[0], whole.coefficients.standard_errors[i]
        )


def test_a_failing_model_keeps_its_answers(diabetes, forest):
    X, _ = diabetes
    sizes = []

    def model(table):
        sizes.append(len(table))
        if len(sizes) == 8:
            raise ConnectionError("away")
        return forest.predict(table)

    explainer = limes.TabularExplainer(model, X, law="joint", batch_size=100)
    with pytest.raises(ModelError, match="away"):
        explainer(X.iloc[:2])
    before = explainer.pool_calls
    checks = 2 + CHECK_CALLS + WITNESSES
    assert checks < before < checks + 442
    explanation = explainer(X.iloc[:2])
    assert explainer.pool_calls == checks + WITNESSES + 442
    reference = limes.TabularExplainer(lambda t: forest.predict(t), X, law="joint")(X.iloc[:2])
    np.testing.assert_array_equal(explanation.coefficients.values, reference.coefficients.values)


def test_max_calls_takes_a_random_part_of_the_background(diabetes, forest):
    X, _ = diabetes
    options = {"law": "joint", "max_calls": 200, "contributions": False, "rng": 1}
    explainer = limes.TabularExplainer(lambda t: forest.predict(t), X, **options)
    assert explainer(X.iloc[:1]).shared_calls.tolist() == [explainer.pool_calls]
    assert 180 < explainer.pool_calls < 200


def test_few_rows_and_missed_tolerances_are_warned_about(diabetes, forest):
    X, _ = diabetes
    narrow = limes.TabularExplainer(forest, X, law="joint", bandwidth=0.35, tolerance="1%")(X.iloc[:1])
    assert not narrow.coefficients.converged
    assert any("background rows count around this row" in text for text in narrow.warnings)
    assert any("use a larger background" in text for text in narrow.warnings)


def test_ridge_is_that_of_lime_with_correlated_columns(diabetes, forest):
    X, _ = diabetes
    plain_fit = limes.TabularExplainer(forest, X, law="joint")(X.iloc[:1])
    shrunk = limes.TabularExplainer(forest, X, law="joint", ridge=50.0)(X.iloc[:1])
    assert np.linalg.norm(shrunk.coefficients.values) < np.linalg.norm(plain_fit.coefficients.values)
    tiny = limes.TabularExplainer(forest, X, law="joint", ridge=1e-9)(X.iloc[:1])
    # the instance itself is one of 5,000 rows of the ridge
    np.testing.assert_allclose(
        tiny.coefficients.values,
        plain_fit.coefficients.values,
        atol=0.02 * np.abs(plain_fit.coefficients.values).max(),
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": None}, "bins="),
        ({"bins": "auto"}, "bins="),
        ({"weights": "euclidean"}, "weights='bins'"),
        ({"method": "exact"}, "standard errors"),
        ({"law": "copula"}, "'joint'"),
    ],
)
def test_options_that_the_joint_law_refuses(diabetes, forest, options, message):
    X, _ = diabetes
    with pytest.raises(InputError, match=message):
        limes.TabularExplainer(forest, X, **{"law": "joint", **options})


def test_designs_are_compared_for_independent_columns_only(diabetes, forest):
    X, _ = diabetes
    explainer = limes.TabularExplainer(forest, X, law="joint")
    with pytest.raises(InputError, match="bins=None"):
        limes.suggest_design(explainer, X.iloc[:1])


def test_tables_and_categories():
    pytest.importorskip("pyarrow")
    from limes.scale import explain_frame

    rng = np.random.default_rng(0)
    city = rng.choice(["Rome", "Oslo", "Lima"], 300)
    X = pd.DataFrame({"city": city, "age": rng.normal(size=300) + (city == "Oslo")})
    X.loc[::17, "age"] = np.nan
    explainer = limes.TabularExplainer(
        lambda t: (t["city"] == "Oslo") + t["age"].fillna(0) ** 2, X, law="joint"
    )
    frame = explain_frame(explainer, X.iloc[:20])
    explanation = explainer(X.iloc[:20])
    np.testing.assert_array_equal(frame["value_age"], explanation.coefficients.values[:, 1])
    assert frame["error"].isna().all()


def test_read_models_that_cannot_be_integrated_answer_themselves(diabetes):
    X, y = diabetes
    model = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X, y > 140)
    read = limes.TabularExplainer(model, X, law="joint")
    explanation = read(X.iloc[:2])
    assert explanation.model_calls == read.pool_calls == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        called = limes.TabularExplainer(model, X, law="joint", method="sampled")
    reference = called(X.iloc[:2])
    assert called.pool_calls == 2 + CHECK_CALLS + WITNESSES + 442
    np.testing.assert_allclose(
        explanation.coefficients.values, reference.coefficients.values, rtol=1e-9, atol=1e-12
    )


def test_the_surrogate_is_the_mean_of_the_box_where_only_its_rows_have_weight():
    """At this bandwidth a row with one other cell weighs e^-1250, which no float64 holds."""
    X = np.random.default_rng(0).normal(size=(4000, 2))
    explanation = limes.TabularExplainer(lambda x: x[:, 0] + x[:, 1] ** 2, X, law="joint", bandwidth=0.02)(
        X[:1]
    )
    edges = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    cells = np.column_stack([np.searchsorted(edges[:, j], X[:, j]) for j in range(2)])
    box = X[(cells == cells[0]).all(axis=1)]
    f = box[:, 0] + box[:, 1] ** 2
    assert explanation.coefficients.surrogate_predictions[0] == pytest.approx(f.mean(), rel=EXACT)
    assert explanation.coefficients.surrogate_errors[0] == pytest.approx(
        f.std(ddof=1) / np.sqrt(f.size), rel=0.05
    )


def test_one_row_outside_a_cell_is_too_few_for_a_coefficient():
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"a": rng.normal(size=60), "rare": ["usual"] * 59 + ["rare"]})
    model = lambda x: x["a"] + rng.normal(size=len(x))  # noqa: E731
    explanation = limes.TabularExplainer(model, X, law="joint")(X.iloc[[0]])
    errors = dict(zip(explanation.feature_names, explanation.coefficients.standard_errors[0], strict=True))
    assert np.isfinite(errors["a"])
    assert np.isinf(errors["rare"])


def test_errors_of_a_small_background_by_their_formulas():
    """Not below HC2 sandwich errors times Student's t of the effective rows; R² by the delta method.

    R² is that of the rows; its error covers what it exceeds R² of their population by, tr(Cov(β) Σ) / Var f.
    """
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 3))
    f = X @ [1.0, -2.0, 0.5] + rng.normal(size=40)
    answers = {row.tobytes(): value for row, value in zip(X, f, strict=True)}
    model = lambda rows: np.array([answers[row.tobytes()] for row in rows])  # noqa: E731
    explanation = limes.TabularExplainer(model, X, law="joint", method="sampled")(X[:1])
    edges = np.percentile(X, [25, 50, 75], axis=0)
    cells = np.stack([np.searchsorted(edges[:, j], X[:, j], side="left") for j in range(3)], axis=1)
    z = (cells == cells[0]).astype(float)
    w = np.exp(-(3 - z.sum(axis=1)) / (2 * 0.75**2 * 3))
    w /= w.sum()
    x = np.column_stack([np.ones(40), z])
    inverse = np.linalg.inv(x.T @ (w[:, None] * x))
    rest = f - x @ (inverse @ (x.T @ (w * f)))
    leverage = w * np.einsum("ij,jk,ik->i", x, inverse, x)
    influence = (inverse @ (x * w[:, None]).T)[1:]
    plain = np.sqrt(influence**2 @ (rest**2 / (1 - leverage)))
    effective = [
        min(w[side].sum() ** 2 / (w[side] ** 2).sum() for side in (z[:, j] > 0, z[:, j] == 0))
        for j in range(3)
    ]
    factors = stats.t.ppf(0.975, np.array(effective) - 1) / stats.norm.ppf(0.975)
    assert (factors > 1.05).all()
    # answers that were not seen make them larger
    assert (explanation.coefficients.standard_errors[0] > plain * factors).all()
    away = f - w @ f
    unexplained = (w @ rest**2) / (w @ away**2)
    error = np.sqrt((w**2 * (rest**2 - unexplained * away**2) ** 2).sum()) / (w @ away**2)
    assert explanation.fidelity[0] == pytest.approx(1 - unexplained, rel=1e-9)
    sigma = (z - w @ z).T @ (w[:, None] * (z - w @ z))
    noise = (
        np.einsum("jn,jk,kn->jn", influence, sigma, influence) @ (rest**2 / (1 - leverage)) / (w @ away**2)
    )
    error = np.sqrt(error**2 + 2 * (noise**2).sum() + noise.sum() ** 2)
    assert explanation.fidelity_errors[0] == pytest.approx(error, rel=1e-9)


def test_errors_of_fidelity_cover_that_of_the_population():
    """For 400 rows of 30 columns R² is 0.08 where that of the population is 0.006."""
    population = np.random.default_rng(0).normal(size=(60_000, 30))

    def model(x):
        return 0.8 * x[:, 3] + 2.0 * np.sign(x[:, 0] * x[:, 1] * x[:, 2])

    truth = limes.TabularExplainer(model, population, law="joint")(population[:1]).fidelity[0]
    rng, inside = np.random.default_rng(1), []
    for _ in range(8):
        drawn = population[np.append(0, rng.choice(60_000, 400, replace=False))]
        explanation = limes.TabularExplainer(model, drawn, law="joint")(drawn[:1])
        inside.append(abs(explanation.fidelity[0] - truth) <= 1.96 * explanation.fidelity_errors[0])
    assert np.mean(inside) >= 0.85


@pytest.mark.parametrize(("bandwidth", "likeness"), [(np.inf, ""), (1.0, ", by their likeness to this one")])
def test_only_a_bandwidth_weights_the_usual_answer(diabetes, forest, bandwidth, likeness):
    X = diabetes[0]
    explanation = limes.TabularExplainer(forest, X, law="joint", bandwidth=bandwidth)(X[:1])
    printed = " ".join(str(explanation).split())
    assert f"usual: the model's average over the background's rows{likeness};" in printed


def test_the_reason_says_how_contributions_were_computed(diabetes, forest):
    X, y = diabetes
    wide = np.hstack([X, X**2, X**3])
    boosted = GradientBoostingClassifier(n_estimators=2, random_state=0).fit(wide, y > 140)
    cases = (
        (forest, X, "exact", "; contributions are exact for them (sampled from the read model)"),
        (
            boosted,
            wide,
            "sampled",
            "; contributions are estimated, as exact contributions against 442 rows by all coalitions of ",
        ),
        (
            lambda x: forest.predict(x),
            X,
            "sampled",
            "; the model is called: a callable has no structure to read",
        ),
    )
    for model, table, method, words in cases:
        explainer = limes.TabularExplainer(model, table, law="joint", rng=0)
        for explanation in (
            explainer(table[:1], progress=False),
            explainer.contributions(table[:1], progress=False),
        ):
            assert explanation.contributions.method == method
            assert words in explanation.reason
