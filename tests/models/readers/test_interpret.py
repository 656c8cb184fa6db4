"""Explainable boosting machines, read and compared with their predictions and their surrogates."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest

import limes
import oracle
import slopes
import strategies
from effort import repeats
from enumerated import explained, table_of
from internals import CannotRead, Schema, read_form
from limes.exceptions import ModelError, NotReadableError
from limes.models import forms
from oracle import EXACT

glassbox = pytest.importorskip("interpret.glassbox")

pytestmark = [
    pytest.mark.filterwarnings("ignore:Missing values detected"),
    pytest.mark.filterwarnings("ignore:For multiclass"),
    pytest.mark.filterwarnings("ignore:Interactions with 3"),
]

# Tens of scores added in another order.
SAME = 1e-12

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 4))
X[:, 3] = RNG.integers(0, 4, N)
X[RNG.random(N) < 0.1, 1] = np.nan
Y = np.sin(X[:, 0]) + np.nan_to_num(X[:, 1]) * X[:, 2] + X[:, 3]
TWO, THREE = np.where(Y > 1, "yes", "no"), np.digitize(Y, [0.0, 2.0])
NAMES = ["a", "b", "c", "d"]
CITIES = np.array(["Bern", "Genf", "Lugano", "Zug"])


def machine(kind="Regressor", **options):
    defaults = {"outer_bags": 2, "max_rounds": 30, "n_jobs": 1, "random_state": 0}
    return getattr(glassbox, f"ExplainableBoosting{kind}")(**{**defaults, **options})


def fitted(kind, **options):
    target = {"Regressor": Y, "two": TWO, "three": THREE}[kind]
    return machine("Regressor" if kind == "Regressor" else "Classifier", **options).fit(X, target)


def method_of(model):
    return "decision_function" if hasattr(model, "classes_") else "predict"


def rows(model, sample=X):
    """The sample with holes and extremes, and every cut, beside it, and its float32 neighbour."""
    wild = sample.copy()
    wild[:20, 2], wild[20:30, 0], wild[30:40, 0], wild[40:50, 3] = np.nan, 1e300, -0.0, np.nan
    wild[50:55, 0], wild[55:60, 3], wild[60:65, 3] = 5e-324, 99.0, 1.5
    result = [wild]
    for j, levels in enumerate(model.bins_):
        for cuts in levels:
            if not isinstance(cuts, dict) and len(cuts):
                near = [cuts, np.nextafter(cuts, -np.inf), np.nextafter(cuts, np.inf)]
                values = np.concatenate([*near, cuts.astype(np.float32).astype(float)])
                at = sample[RNG.integers(0, len(sample), len(values))].copy()
                at[:, j] = values
                result.append(at)
    return np.concatenate(result)


def assert_read(model, schema=None):
    form, x, method = read_form(model, method_of(model), schema), rows(model), method_of(model)
    assert len(x) >= 500
    assert oracle.error(form.predict(x), getattr(model, method)(x)) < SAME
    return form


INTERACTIONS = [0, 3, [(0, 1, 2), (0, 3)], [(3, 1)]]


@pytest.mark.parametrize("kind", ["Regressor", "two", "three"])
@pytest.mark.parametrize("types", [None, ["continuous", "continuous", "continuous", "nominal"]])
@pytest.mark.parametrize("interactions", INTERACTIONS, ids=str)
def test_values(kind, types, interactions):
    coarse = {"max_interaction_bins": 8} if isinstance(interactions, list) else {}
    form = assert_read(fitted(kind, feature_types=types, interactions=interactions, **coarse))
    assert type(form).__name__ == ("Reduced" if interactions == 0 else "Combination")
    if kind == "three":
        x = X[:50]
        assert oracle.error(form.select(1).predict(x), form.predict(x)[:, 1]) < SAME
        assert oracle.error(form.select([2, 0]).predict(x), form.predict(x)[:, [2, 0]]) < SAME


@pytest.mark.parametrize(
    "options",
    [
        {"max_bins": 3},
        {"max_bins": 1024, "max_interaction_bins": 4},
        {"max_rounds": 1, "outer_bags": 1},
        {"feature_types": ["continuous", "quantile", "uniform", "continuous"]},
        {"feature_types": ["continuous", "continuous", "continuous", ["0", "1", "2", "3"]]},
        {"exclude": [0, 1], "interactions": 1},
    ],
    ids=str,
)
def test_options(options):
    assert_read(fitted("Regressor", **options))


def test_many_interactions_are_one_sum_of_products(monkeypatch):
    model = fitted("three", interactions=5)
    form, x = assert_read(model), rows(model)
    assert len(form.parts) == 2
    monkeypatch.setattr("limes.models.readers.interpret._BLOCK", 1000)
    blocks = assert_read(model)
    assert len(blocks.parts) > 2
    assert oracle.error(blocks.predict(x), form.predict(x)) < SAME


def test_weights_and_constant_targets():
    assert_read(machine().fit(X, Y, sample_weight=RNG.uniform(0.1, 9.0, N)))
    assert np.ptp(assert_read(machine().fit(X, np.full(N, 3.0))).predict(X)) == 0


def test_edited_models():
    model = fitted("Regressor", interactions=2)
    model.remove_terms([0])
    assert_read(model)
    model.scale(0, 2.5)
    model.sweep()
    assert_read(model)


def test_private_models_are_not_guessed():
    class Subclass(glassbox.ExplainableBoostingRegressor):
        pass

    model = Subclass(outer_bags=1, max_rounds=2, n_jobs=1).fit(X, Y)
    assert isinstance(limes.models.read(model), forms.BlackBox)


# -- tables with texts ------------------------------------------------------------------------------------


def frame(kind="object"):
    texts = pd.Series(CITIES[X[:, 3].astype(int)])
    column = {
        "object": texts.astype(object),
        "category": texts.astype("category"),
        "string": texts.astype("string"),
        "integers": pd.Series(X[:, 3].astype(int) * 10),
        "floats": pd.Series(X[:, 3] * 0.5),
        "integer categories": pd.Series(X[:, 3].astype(int)).astype("category"),
        "booleans": pd.Series(X[:, 3] > 1),
    }[kind]
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "d": column})


@pytest.mark.parametrize(
    "kind", ["object", "category", "string", "integers", "floats", "integer categories", "booleans"]
)
@pytest.mark.parametrize("target", [Y, THREE], ids=["numbers", "classes"])
def test_categories(kind, target):
    table = frame(kind)
    types = ["continuous", "continuous", "continuous", "nominal"]
    model = machine("Regressor" if target is Y else "Classifier", feature_types=types).fit(table, target)
    output = None if target is Y else "margin"
    explainer = limes.TabularExplainer(model, table, output=output, categorical=["d"], method="exact")
    explanation = explainer(table[:40])
    assert np.allclose(explanation.predictions, getattr(model, method_of(model))(table[:40]))
    assert explanation.coefficients.values.any()


def test_a_category_unseen_in_training_has_its_own_score():
    table = frame().sort_values("d").reset_index(drop=True)
    seen = table["d"] != "Zug"
    model = machine(interactions=[(0, 3), (3, 1)]).fit(table[seen], Y[seen.to_numpy()])
    assert "Zug" not in model.bins_[3][0]
    explainer = limes.TabularExplainer(model, table, method="exact")
    last = explainer(table[-5:])
    assert last.conditions[0][3] == "d = Zug"
    assert np.allclose(last.predictions, model.predict(table[-5:]))


def test_missing_texts():
    table = frame()
    table.loc[:30, "d"] = None
    model = machine(interactions=[(3, 1)]).fit(table, Y)
    explanation = limes.TabularExplainer(model, table, method="exact")(table[:5])
    assert np.allclose(explanation.predictions, model.predict(table[:5]))


def test_columns_are_found_by_name():
    table = frame()
    model = machine().fit(table, Y)
    moved = table[["d", "b", "a", "c"]]
    explanation = limes.TabularExplainer(model, moved, method="exact")(moved[:5])
    straight = limes.TabularExplainer(model, table, method="exact")(table[:5])
    order = [straight.feature_names.index(name) for name in explanation.feature_names]
    assert np.allclose(explanation.coefficients.values, straight.coefficients.values[:, order], rtol=EXACT)


def test_ignored_columns():
    model = machine(exclude=[1], interactions=[(0, 2)]).fit(X, Y)
    model.feature_types_in_ = ["continuous", "ignore", "continuous", "continuous"]
    form = read_form(model, "predict", None)
    assert oracle.error(form.predict(X), model.predict(X)) < SAME
    fewer = read_form(model, "predict", Schema(("x0", "x1", "x2"), ((), (), ())))
    assert oracle.error(fewer.predict(X[:, [0, 2, 3]]), model.predict(X[:, [0, 2, 3]])) < SAME


# -- surrogates -------------------------------------------------------------------------------------------


def small(rng, several=False):
    x = rng.normal(size=(80, 2))
    y = np.sin(2 * x[:, 0]) * x[:, 1] + x[:, 0]
    options = {"interactions": 1, "max_bins": 8, "max_interaction_bins": 4, "max_rounds": 20}
    if several:
        return machine("Classifier", **options).fit(x, np.digitize(y, [-0.5, 0.5]))
    return machine(**options).fit(x, y)


def cuts_of(model):
    """Steps jump at the last number below their cut."""
    return [np.unique(np.nextafter(np.concatenate(levels), -np.inf)) for levels in model.bins_]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("weights", strategies.WEIGHTS)
def test_limits(seed, several, weights):
    rng = np.random.default_rng(seed)
    model = small(rng, several)
    bins = [strategies.stated_bins(rng, 3, open_ends=seed % 2 == 0) for _ in range(2)]
    lists = [list(part) for part in zip(*bins, strict=True)]
    stated = strategies.Stated(*lists, instance=rng.normal(size=2), bandwidth=0.7, weights=weights)
    ask = getattr(model, method_of(model))
    truth = oracle.truth(stated.steps(cuts_of(model)), ask, stated.cells)
    surrogate = limes.limit(stated.design(), read_form(model, method_of(model), None))
    assert oracle.error(surrogate.coef, truth.coef, truth.size) < EXACT
    assert oracle.error(surrogate.intercept, truth.intercept, truth.size) < EXACT


@pytest.mark.parametrize("several", [False, True])
def test_slopes(several):
    rng = np.random.default_rng(7)
    model = small(rng, several)
    design, columns = slopes.normal_columns(rng, 2)
    ask, form = getattr(model, method_of(model)), read_form(model, method_of(model), None)
    slopes.assert_slopes(design, form, ask, columns(cuts_of(model)))


def test_columns_of_categories_and_gaps():
    """The surrogate over a table's own laws: cells and values enumerated, numbers at their own values."""
    table = frame()[["a", "d"]].round(1)
    model = machine(interactions=1).fit(table, Y)
    explainer = limes.TabularExplainer(model, table, law="empirical", bandwidth=1.0, method="exact")
    explanation = explainer(table[:1])
    edges = np.quantile(table["a"], [0, 0.25, 0.5, 0.75, 1.0])
    values, counts = np.unique(table["a"], return_counts=True)
    number = oracle.atoms_column(values, counts, [oracle.bin_of(edges, v) for v in values])
    cities, share = np.unique(table["d"], return_counts=True)
    city = oracle.atoms_column(np.arange(4), share)
    cells = [oracle.bin_of(edges, table["a"][0]), int(np.argmax(cities == table["d"][0]))]
    columns = [oracle.bin_weighted(c, b, 1.0) for c, b in zip([number, city], cells, strict=True)]

    def f(x):
        return model.predict(pd.DataFrame({"a": x[:, 0], "d": cities[x[:, 1].astype(int)]}))

    truth = oracle.truth(columns, f, cells)
    assert oracle.error(explanation.coefficients.values[0], truth.coef, truth.size) < EXACT
    assert oracle.error(explanation.coefficients.intercepts[0], truth.intercept, truth.size) < EXACT


# -- behind a link -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["poisson_deviance", "gamma_deviance"])
@pytest.mark.parametrize("interactions", [0, 2])
def test_a_log_link(objective, interactions):
    """The exponential of a score, of pairs too; against answers of the machine itself to drawn rows."""
    model = machine(objective=objective, interactions=interactions).fit(X, np.exp(Y / 4))
    form = read_form(model, "predict", PLAIN)
    assert isinstance(form, forms.Linked)
    x = rows(model)
    np.testing.assert_allclose(form.predict(x), model.predict(x), rtol=1e-12)
    exact = limes.TabularExplainer(model, X, law="truncnorm", method="exact")(X[:2])
    options = {"law": "truncnorm", "method": "sampled", "max_calls": 8192}
    drawn = limes.TabularExplainer(lambda q: model.predict(q), X, **options)(X[:2])
    assert exact.method == "exact"
    assert (
        np.abs(exact.coefficients.values - drawn.coefficients.values)
        < 5 * drawn.coefficients.standard_errors + 1e-6
    ).all()
    assert np.abs(exact.coefficients.values).max() > 20 * drawn.coefficients.standard_errors.max()


# -- what is refused --------------------------------------------------------------------------------------


def damaged(change):
    model = copy.deepcopy(fitted("Regressor", interactions=0))
    change(model)
    return model


def set_link(model):
    model.link_ = "inverse"


def set_kind(model):
    model.feature_types_in_ = ["continuous"] * 3 + ["periodic"]


def cut_scores(model):
    model.term_scores_[0] = model.term_scores_[0][:-1]


def spoil_scores(model):
    model.term_scores_[0] = model.term_scores_[0] * np.nan


def fold_scores(model):
    model.term_scores_[0] = model.term_scores_[0][None]


def large_category():
    x = X.copy()
    x[:, 3] = x[:, 3] * 1e17
    return machine(feature_types=["continuous"] * 3 + ["nominal"]).fit(x, Y)


def repeat_term(model):
    model.term_features_ = [*model.term_features_, model.term_features_[0]]
    model.term_scores_ = [*model.term_scores_, model.term_scores_[0]]


PLAIN = Schema(("a", "b", "c", "d"), ((),) * 4)
NOMINAL = ["continuous"] * 3 + ["nominal"]
REFUSED = [
    (lambda: fitted("two"), "predict_proba", PLAIN, "output='margin'"),
    (lambda: fitted("two"), "predict", PLAIN, "output='margin'"),
    (lambda: machine("Classifier").fit(X, np.zeros(N)), "decision_function", PLAIN, "monoclassification"),
    (lambda: damaged(set_link), "predict", PLAIN, "link 'inverse'"),
    (lambda: damaged(set_kind), "predict", PLAIN, "unknown kind 'periodic'"),
    (lambda: damaged(cut_scores), "predict", PLAIN, "damaged"),
    (lambda: damaged(spoil_scores), "predict", PLAIN, "damaged"),
    (lambda: damaged(fold_scores), "predict", PLAIN, "damaged"),
    (lambda: damaged(repeat_term), "predict", PLAIN, "two terms of one column"),
    (large_category, "predict", PLAIN, "too large"),
    (lambda: fitted("Regressor"), "predict", Schema(("u", "v"), ((), ())), "others"),
    (lambda: fitted("Regressor"), "predict", Schema(PLAIN.names, (("x",), (), (), ())), "for a number"),
    (
        lambda: fitted("Regressor", feature_types=NOMINAL),
        "predict",
        Schema(PLAIN.names, ((), (), (), ("x", 1.0))),
        "mixes texts",
    ),
]


@pytest.mark.parametrize(("build", "method", "schema", "reason"), REFUSED)
def test_refused(build, method, schema, reason):
    with pytest.raises(CannotRead, match=reason):
        read_form(build(), method, schema)


def test_the_reason_reaches_the_user():
    model = fitted("two", interactions=[(0, 1), (1, 2), (0, 2)], max_bins=100, max_interaction_bins=100)
    with pytest.raises(NotReadableError, match=r"output='margin'.*join 3 columns in tables of"):
        limes.TabularExplainer(model, X, method="exact")
    assert limes.TabularExplainer(model, X, output="margin").method == "exact"
    sampled = limes.TabularExplainer(model, X, max_calls=64, control="none")(X[:1])
    assert "join 3 columns" in sampled.reason


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(repeats(200, 3)))
def test_probabilities_with_pairs_against_enumeration(seed):
    """The machine's own probabilities at all combinations of two to five values of up to six columns."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 7))
    values = [np.sort(rng.normal(size=rng.integers(2, 6 if d < 5 else 4))) for _ in range(d)]
    table = table_of(values, 120, rng)
    margin = table @ rng.normal(size=d) + 2 * table[:, 0] * table[:, -1]
    y = (margin + rng.logistic(size=120) > 0).astype(int)
    y[:12] = [0, 1] * 6
    pairs = [(int(rng.integers(j)), j) for j in range(1, d)] + [(0, d - 1)] * (d > 3)
    kinds = [str(rng.choice(["continuous", "nominal"])) for _ in range(d)]
    model = machine("Classifier", interactions=pairs, max_rounds=20, feature_types=kinds).fit(table, y)
    row, bandwidth = table[rng.integers(120)], float(rng.choice([0.5, 1.0, 0.75 * np.sqrt(d)]))
    explainer = limes.TabularExplainer(
        model, table, categorical=list(range(d)), bandwidth=bandwidth, method="exact"
    )
    explanation = explainer(row[None])
    coef, start, size = explained(model.predict_proba, values, table, row, bandwidth)
    assert oracle.error(explanation.coefficients.values[0], coef, size) < EXACT
    assert oracle.error(explanation.coefficients.intercepts[0], start, size) < EXACT


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("options", [{}, {"law": "empirical"}, {"weights": "euclidean"}, {"bins": None}])
def test_probabilities_with_pairs_against_draws(options):
    """Missing values, numbers in bins, categories: draws of w, the machine asked at each."""
    x = np.where(np.isnan(X), 0.0, X) if options.get("bins", 0) is None else X
    model = machine("Classifier", interactions=[(0, 1), (1, 3)]).fit(x, TWO)
    explainer = limes.TabularExplainer(model, x, output="yes", method="exact", **options)
    design = explainer._model.family.at(x[17]).in_units()
    moments = explainer._model.bound.expectation.moments(design)
    draws, h = design.draw(np.random.default_rng(1).random((1 << 15, 4)))
    f = model.predict_proba(draws)[:, 1]
    assert abs(f.mean() - moments.mean) <= 5 * f.std() / np.sqrt(len(f))
    products = (h - design.inclusion) * (f - f.mean())[:, None]
    z = (products.mean(axis=0) - moments.gamma) / (products.std(axis=0) / np.sqrt(len(f)))
    assert np.abs(z).max() < 5


def test_categories_that_the_background_takes_for_numbers():
    model = fitted("Regressor", feature_types=NOMINAL)
    by_model = limes.TabularExplainer(model, X, method="exact")(X[:1])
    by_option = limes.TabularExplainer(model, X, categorical=[3], method="exact")(X[:1])
    np.testing.assert_array_equal(by_model.coefficients.values, by_option.coefficients.values)


@pytest.mark.filterwarnings("ignore")
def test_a_model_of_other_columns():
    with pytest.raises(ModelError, match="columns"):
        limes.TabularExplainer(fitted("Regressor"), X[:, :2])
