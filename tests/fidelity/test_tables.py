"""R², effects and interactions of tables against enumeration and draws; lazy, and equal in every batch."""

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, PolynomialFeatures, PowerTransformer, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

import limes
import oracle
from effort import crossed, repeats
from internals import exact_variance, fits, variance, weighted_rows
from limes.exceptions import InputError
from limes.models import forms
from limes.models.forms import BlackBox

EXACT = oracle.EXACT
rng = np.random.default_rng(0)
LEVELS = rng.integers(0, [3, 4, 2, 5], size=(300, 4)).astype(float)
ANSWERS = LEVELS[:, 0] * LEVELS[:, 1] + np.sin(LEVELS[:, 3]) * LEVELS[:, 2] + 0.1 * rng.normal(size=300)
DESIGNS = [{}, {"bandwidth": 0.4}, {"weights": "euclidean"}, {"ridge": 2.0}]
DISCRETE = {
    "linear": LinearRegression(),
    "tree": DecisionTreeRegressor(max_depth=5, random_state=0),
    "forest": RandomForestRegressor(7, random_state=0),
    "classes": RandomForestClassifier(5, random_state=0),
    "kernels": SVR(C=50, gamma=0.3),
    "quadratic": make_pipeline(PolynomialFeatures(2), LinearRegression()),
    "votes": VotingRegressor([("a", LinearRegression()), ("b", RandomForestRegressor(3, random_state=0))]),
}
CLOSED = {"linear", "tree", "quadratic", "forest", "classes"}


def fitted(name):
    return DISCRETE[name].fit(LEVELS, np.digitize(ANSWERS, [2, 5]) if name == "classes" else ANSWERS)


def states(explainer, row, predict):
    """All states of a discrete design: cells (m, d), probabilities and answers (m, k)."""
    design = explainer.design(row)
    columns = []
    for coordinate in design.coordinates:
        (atoms,) = coordinate.marginal.measures
        columns.append((atoms.value[np.argsort(coordinate.marginal.owners)], coordinate.probability))
    places = [range(len(values)) for values, _ in columns]
    cells = np.array(list(itertools.product(*places)))
    grid = np.array(list(itertools.product(*[values for values, _ in columns])))
    weights = np.prod([q[cells[:, j]] for j, (_, q) in enumerate(columns)], axis=0)
    return cells, weights, predict(grid).reshape(len(grid), -1)


@pytest.mark.parametrize("options", DESIGNS, ids=str)
@pytest.mark.parametrize("name", DISCRETE)
def test_fidelity_effects_and_interactions_are_those_of_enumeration(name, options):
    model = fitted(name)
    explainer = limes.TabularExplainer(model, LEVELS, categorical=[0, 1, 2, 3], method="exact", **options)
    explanation = explainer(LEVELS[:1], progress=False)
    cells, w, f = states(explainer, LEVELS[0], model.predict_proba if name == "classes" else model.predict)
    current = [
        levels.tolist().index(x) for levels, x in zip(map(np.unique, LEVELS.T), LEVELS[0], strict=True)
    ]
    mean = w @ f
    variance = w @ (f - mean) ** 2
    coef = explanation.coefficients.values[0].reshape(4, -1)
    g = (cells == current).astype(float) @ coef
    # of coefficients that are not least squares too: what is left beside any constant
    remaining = f - g - w @ (f - g)
    additive = np.tile(mean, (len(f), 1))
    for effect in explanation.effects:
        j, k = (
            explanation.feature_names.index(effect.feature),
            explanation.output_names.index(effect.output),
        )
        expected = [
            (w[at] @ f[at, k]) / w[at].sum() - mean[k]
            for at in cells[:, j] == np.arange(len(effect.cells))[:, None]
        ]
        assert oracle.error(effect.values, expected, np.abs(f).max()) < EXACT
        assert effect.masses.sum() == pytest.approx(1.0)
        assert effect.current == current[j]
        assert not effect.standard_errors.any()
        additive[:, k] += effect.values[cells[:, j]]
    for result, errors, rest in (
        (explanation.fidelity, explanation.fidelity_errors, remaining),
        (explanation.additive_fidelity, explanation.additive_fidelity_errors, f - additive),
    ):
        gap = np.abs(result[0] - (1 - (w @ rest**2) / variance))
        allowed = EXACT + (0 if name in CLOSED else oracle.Z_LIMIT * errors[0])
        assert (gap <= allowed).all()
        assert errors.any() == (name not in CLOSED and bool(rest.any()))
    pairs = explanation.interactions(top=6)
    assert bool(pairs) == (name != "linear")
    some = explanation.feature_names[1:]
    expected = [p.features for p in pairs if p.output == explanation.output_names[0]]
    expected = [features for features in expected if {*features} <= {*some}][:1]
    few = explanation[:, some].interactions(1)
    assert [p.features for p in few if p.output == explanation.output_names[0]] == expected
    for pair in pairs:
        k = explanation.output_names.index(pair.output)
        i, j = (explanation.feature_names.index(feature) for feature in pair.features)
        for b, c in np.ndindex(pair.values.shape):
            at = (cells[:, i] == b) & (cells[:, j] == c)
            expected = w[at] @ (f - additive)[at, k] / w[at].sum()
            assert pair.values[b, c] == pytest.approx(expected, abs=EXACT * np.abs(f).max())


def test_the_variance_of_a_sum_over_bins_is_that_of_quadrature():
    """Curves, steps and lines on truncated normals, in bins with a weight."""
    edges = [[-2.0, 0.0, 1.0, 4.0], [0.0, 1.0, 2.5]]
    means, stds = [[-0.8, 0.4, 2.0], [0.5, 1.5]], [[0.5, 0.3, 0.9], [0.3, 0.6]]
    row, bandwidth = [0.5, 2.0], 0.8
    design = limes.designs.ProductDesign.from_bins(edges, means, stds, row, bandwidth)
    form = limes.models.forms.Additive([lambda x: np.sin(3 * x), lambda x: np.exp(x) - x], [[], []])
    steps = limes.models.forms.Boxes([[0.3, -np.inf]], [[1.7, np.inf]], [2.0])
    line = limes.models.forms.Linear([2.0, -1e-3], 5.0)
    columns = [
        oracle.bin_weighted(
            oracle.binned_column(e, m, s, breaks=(0.3, 1.7), resolution=0.1), oracle.bin_of(e, x), bandwidth
        )
        for e, m, s, x in zip(edges, means, stds, row, strict=True)
    ]
    for tested, functions in (
        (form, [lambda x: np.sin(3 * x), lambda x: np.exp(x) - x]),
        (steps, [lambda x: 2.0 * ((x > 0.3) & (x <= 1.7)), np.zeros_like]),
        (line, [lambda x: 2 * x, lambda x: -1e-3 * x]),
    ):
        expected = 0.0
        for column, function in zip(columns, functions, strict=True):
            law, values = column.law(), function(column.x)
            expected += float(law @ (values - law @ values) ** 2)
        closed = variance.exact_variance(tested, np.ones(1))
        assert closed.variance(design) == pytest.approx(expected, rel=EXACT)


X = rng.normal(size=(400, 5))
X[:, 3] = np.round(X[:, 3])
Y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3] + 0.1 * rng.normal(size=400)
CLASS = (Y > 0).astype(int)
READERS = {
    "linear": (Ridge(), Y, {}),
    "margin": (LogisticRegression(), CLASS, {"output": "margin"}),
    "discriminant": (LinearDiscriminantAnalysis(), CLASS, {"output": "margin"}),
    "poisson": (PoissonRegressor(), np.exp(Y / 3), {"output": "margin"}),
    "bayes": (GaussianNB(), CLASS, {"output": "margin"}),
    "tree": (DecisionTreeRegressor(max_depth=8, random_state=0), Y, {}),
    "forest": (RandomForestRegressor(10, random_state=0), Y, {}),
    "extra": (ExtraTreesRegressor(10, random_state=0), Y, {}),
    "targets": (RandomForestRegressor(5, random_state=0), np.column_stack([Y, -Y]), {}),
    "boosting": (GradientBoostingRegressor(n_estimators=20, random_state=0), Y, {}),
    "boosted margin": (
        GradientBoostingClassifier(n_estimators=8, random_state=0),
        CLASS,
        {"output": "margin"},
    ),
    "histograms": (HistGradientBoostingRegressor(max_iter=10, random_state=0), Y, {}),
    "svr": (SVR(), Y, {}),
    "kernel ridge": (KernelRidge(kernel="laplacian", gamma=0.3), Y, {}),
    "process": (GaussianProcessRegressor(RBF(1.0), alpha=0.1), Y, {}),
    "quadratic": (make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge()), Y, {}),
    "bagging": (BaggingRegressor(n_estimators=4, random_state=0), Y, {}),
    "bins": (make_pipeline(KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"), Ridge()), Y, {}),
    "power": (make_pipeline(PowerTransformer(), Ridge()), Y, {}),
}


# 2²⁰ of them give the same verdict, and take a quarter of an hour
DRAWS = repeats(1 << 16, 1 << 14)


@cache
def trained(name):
    """A model, which the tests with all options share."""
    model, y, _ = READERS[name]
    return model.fit(X, y)


@pytest.mark.parametrize(
    ("name", "options"), crossed(READERS, [{}, {"bins": None}, *repeats([{"bandwidth": 0.5}], [])])
)
def test_fidelity_is_that_of_many_draws(name, options):
    """Within its stated error, for every family of models that is read."""
    model, output = trained(name), READERS[name][2]
    explainer = limes.TabularExplainer(model, X, method="exact", **output, **options)
    explanation = explainer(X[:1], progress=False)
    form = limes.models.read(model, **output)
    assert not isinstance(form, BlackBox)
    design = explainer.design(X[0])
    coef = explanation.coefficients.values[0].reshape(5, -1)
    x, h = design.draw(np.random.default_rng(0).random((DRAWS, 5)))
    f = form.predict(x).reshape(DRAWS, -1)
    remaining = f - h @ coef
    sums = np.stack([f, f**2, remaining, remaining**2, f**2 * remaining**2, remaining**4, f**4]).mean(axis=1)
    f1, f2, l1, l2 = sums[:4]
    variance, rest = f2 - f1**2, l2 - l1**2
    ratio = rest / variance
    # the delta method, with fourth moments about 0 as an upper bound of those about the mean
    spread = np.sqrt((sums[5] / variance**2 + ratio**2 * sums[6] / variance**2) / DRAWS)
    gap = np.abs(explanation.fidelity[0] - (1 - ratio))
    assert (gap <= oracle.Z_LIMIT * np.hypot(spread, explanation.fidelity_errors[0]) + EXACT).all()
    assert ((explanation.fidelity > 0) & (explanation.fidelity <= 1)).all()


@pytest.mark.parametrize("bandwidth", [0.68, 0.86])
def test_half_of_the_pool_serves_where_it_is_enough_and_all_of_it_where_not(bandwidth):
    """Against weighted means over all rows of the pool, which have 1,024 effective ones or more."""
    explainer = limes.TabularExplainer(RandomForestRegressor(5, random_state=0).fit(X, Y), X)
    model, rows = explainer._with_design(bins="quartile", bandwidth=bandwidth)._model_at(X[:40])
    pool = weighted_rows.FormPool(model.family, lambda x: model.bound.predict(x).reshape(len(x), 1), seed=0)
    cells = model.family.cells(rows)
    curves = np.zeros((*cells.shape, max(law.cells.count for law in model.family.marginals), 1))
    squares, errors, enough = pool.squares(cells, curves, np.full((len(rows), 1), Y.mean()))
    whole = [pool.at(row) for row in cells]
    assert enough.tolist() == [one is not None for one in whole]
    for one, square, error in zip(whole, squares, errors, strict=True):
        if one is not None:
            mean, its = one.mean((one.f - Y.mean()) ** 2)
            assert abs(square - mean) <= oracle.Z_LIMIT * np.hypot(error, its) + EXACT * mean


def test_nothing_is_computed_until_it_is_looked_at(monkeypatch):
    """No R², no pool, no draw, and no call of the model even then."""
    model = RandomForestRegressor(5, random_state=0).fit(X, Y)
    explainer = limes.TabularExplainer(model, X)

    def refuse(*arguments):
        raise AssertionError("computed although no attribute was read")

    with monkeypatch.context() as patched:
        patched.setattr(fits.TableFits, "_rows_at", refuse)
        patched.setattr(weighted_rows.FormPool, "__init__", refuse)
        explanation = explainer(X[:30], progress=False)
        part = explanation[3:9, ["x1", "x0"]]
        assert len(part.top(1)) == 6
        assert "fidelity" not in repr(part)
        # effects are made when one is looked at
        effects = part.effects
        assert len(effects) == len(effects[:5]) + len(effects[5:]) == 12
        assert effects.features == ("x1", "x0")
    monkeypatch.setattr(model, "predict", refuse, raising=False)
    calls = []

    def fidelities(self, rows):
        calls.extend(rows)
        return [((np.ones(1), np.zeros(1), None), True) for _ in rows]

    monkeypatch.setattr(fits.TableFits, "_fidelities_of", fidelities)
    assert part.fidelity.tolist() == [1.0] * 6
    assert calls == list(range(3, 9))
    assert part.fidelity_errors.shape == (6,)
    assert explanation.fidelity.shape == (30,)
    assert sorted(calls) == list(range(30))  # those of the part are not computed again


def test_no_row_depends_on_the_rows_beside_it_and_threads_get_the_bits_of_one():
    model = RandomForestRegressor(8, random_state=0).fit(X, Y)
    explainer = limes.TabularExplainer(model, X)
    together = explainer(X[:12], progress=False)
    with ThreadPoolExecutor(4) as pool:
        result = list(pool.map(lambda _: together.fidelity, range(8)))
        curves = list(pool.map(lambda i: together[i % 3].effects[2].values, range(12)))
    assert all(np.array_equal(one, result[0]) for one in result)
    again = limes.TabularExplainer(model, X)
    for i in (0, 5, 11):
        alone = again(X[[i]], progress=False)
        # few rows of a forest are added up in another order than many
        assert alone.fidelity[0] == pytest.approx(together.fidelity[i], rel=oracle.ROUNDING)
    assert all(np.array_equal(curves[i], curves[i % 3]) for i in range(12))
    assert not together.fidelity.flags.writeable


def test_files_and_pickles_store_the_numbers():
    model = RandomForestRegressor(5, random_state=0).fit(X, np.column_stack([Y, Y**2]))
    explanation = limes.TabularExplainer(model, X)(X[:3], progress=False)
    for copy in (pickle.loads(pickle.dumps(explanation)), limes.Explanation.from_json(explanation.to_json())):
        assert np.array_equal(copy.fidelity, explanation.fidelity)
        assert np.array_equal(copy.fidelity_errors, explanation.fidelity_errors)
        assert np.array_equal(copy[1, :, 0].fidelity, explanation[1, :, 0].fidelity)
        for name in ("effects", "additive_fidelity", "additive_fidelity_errors"):
            with pytest.raises(InputError, match=f"{name} needs the explainer"):
                getattr(copy, name)
        with pytest.raises(InputError, match="interactions needs the explainer"):
            copy.interactions()


@pytest.mark.parametrize(
    "options", [{}, {"ridge": 1.0}, {"bins": None}, {"weights": "euclidean"}, {"bandwidth": 0.02}]
)
@pytest.mark.parametrize("method", ["exact", "sampled"])
def test_fidelity_is_never_missing(method, options):
    """Also of constant models, where there is nothing to explain: 1; but where few answers decide it."""
    for y in (Y, np.full(400, 3.7)):
        model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
        more = (
            {"control": "none", "max_calls": 560, "contributions": False, "rng": 0}
            if method == "sampled"
            else {}
        )
        explainer = limes.TabularExplainer(model, X, method=method, **more, **options)
        explanation = explainer(X[:2], progress=False)
        few = method == "sampled" and y is Y and options == {"bandwidth": 0.02}
        unknown = np.isinf(explanation.fidelity_errors) if few else np.zeros(2, dtype=bool)
        assert (np.isfinite(explanation.fidelity) | unknown).all()
        if y is not Y:
            assert explanation.fidelity.tolist() == [1.0, 1.0]
            # a sample of one answer may have missed rare ones
            assert (np.isfinite(explanation.fidelity_errors) == (method == "exact")).all()
        elif options != {"bandwidth": 0.02}:
            assert np.isfinite(explanation.fidelity_errors).all()


def test_answers_whose_squares_overflow_have_a_fidelity():
    for size in (1e-200, 1e200):
        model = Ridge().fit(X, Y)
        model.coef_, model.intercept_ = model.coef_ * size, model.intercept_ * size
        small = limes.TabularExplainer(Ridge().fit(X, Y), X)(X[:1], progress=False)
        explanation = limes.TabularExplainer(model, X)(X[:1], progress=False)
        assert explanation.fidelity == pytest.approx(small.fidelity, rel=1e-12)


def test_sampled_effects_cover_and_cost_no_calls():
    calls = []

    def model(x):
        calls.append(len(x))
        return np.tanh(x[:, 0] * x[:, 1]) + np.abs(x[:, 2] - x[:, 3]) * x[:, 0]

    z, additive = [], []
    for seed in range(10):
        explainer = limes.TabularExplainer(
            model, LEVELS, categorical=[0, 1, 2, 3], control="none", max_calls=1024, rng=seed
        )
        explanation = explainer(LEVELS[:1], progress=False)
        cells, w, f = states(explainer, LEVELS[0], model)
        spent = len(calls)
        curves = np.tile(w @ f, (len(f), 1))
        for j, effect in enumerate(explanation.effects):
            expected = [
                (w[at] @ f[at, 0]) / w[at].sum()
                for at in cells[:, j] == np.arange(len(effect.cells))[:, None]
            ]
            expected = np.array(expected) - w @ f
            z += ((effect.values - expected) / effect.standard_errors).tolist()
            curves[:, 0] += expected[cells[:, j]]
        variance = w @ (f - w @ f) ** 2
        true = 1 - (w @ (f - curves) ** 2) / variance
        additive += ((explanation.additive_fidelity - true) / explanation.additive_fidelity_errors).tolist()
        top = explanation.interactions(1)[0]
        assert top.features == ("x0", "x3")
        assert top.share_error > 0
        assert len(calls) == spent
    # Sobol' rows: errors of independent ones are conservative
    assert 0.1 < np.sqrt(np.mean(np.square(z))) < 1.2
    assert np.abs(additive).max() < oracle.Z_LIMIT


def test_effects_by_name_and_as_a_frame():
    model = RandomForestRegressor(5, random_state=0).fit(X, np.column_stack([Y, -Y]))
    explanation = limes.TabularExplainer(model, X)(X[:2], progress=False)
    effects = explanation.effects
    assert len(effects) == 2 * 2 * 5
    frame = effects.to_frame()
    assert len(frame) == sum(len(effect.cells) for effect in effects)
    assert frame.groupby(["row", "output", "feature"]).current.sum().eq(1).all()
    one = explanation[1, :, explanation.output_names[0]].effects["x1"]
    assert (one.feature, one.row, one.output) == ("x1", 0, explanation.output_names[0])
    assert one.cells[one.current] == explanation.conditions[1][1]
    # the coefficient is the row's cell against the others: one number of the curve
    outside = np.where(np.arange(len(one.cells)) == one.current, 0.0, one.masses)
    assert one.values[one.current] - outside @ one.values / outside.sum() == pytest.approx(
        explanation.coefficients.values[1, 1, 0]
    )
    with pytest.raises(InputError, match="pick a row and an output"):
        effects["x1"]
    with pytest.raises(InputError, match="no column is called 'bmi'"):
        effects["bmi"]
    with pytest.raises(InputError, match="top is the number of pairs"):
        explanation.interactions(0)


def test_effects_by_name_are_those_on_the_positive_class_of_two():
    names = np.array(["Bad", "Good"])
    model = RandomForestClassifier(5, random_state=0).fit(X, names[(Y > 0).astype(int)])
    explanation = limes.TabularExplainer(model, X)(X[:4], progress=False)
    for row in range(4):
        effect = explanation[row].effects["x1"]
        assert (effect.output, effect.row) == ("Good", 0)
        np.testing.assert_array_equal(effect.values, explanation[row, :, "Good"].effects["x1"].values)
        np.testing.assert_array_equal(
            effect.values, explanation.effects[row * 10 + 5 : row * 10 + 10][1].values
        )
    assert explanation[0, :, "Bad"].effects["x1"].output == "Bad"
    assert explanation[0, ["x1"]].effects["x1"].output == "Good"
    with pytest.raises(InputError, match=r"4 rows, outputs or columns .* as in explanation.0, :, .Good."):
        explanation.effects["x1"]
    three = RandomForestClassifier(5, random_state=0).fit(X, np.digitize(Y, [-1, 1]))
    with pytest.raises(InputError, match="3 rows, outputs or columns"):
        limes.TabularExplainer(three, X)(X[:1], progress=False).effects["x1"]


def test_effects_of_a_batch_make_objects_of_the_rows_that_are_indexed_alone(monkeypatch):
    model = RandomForestRegressor(5, random_state=0).fit(X, Y)
    explanation = limes.TabularExplainer(model, X)(X, progress=False)
    indexed, effects = [], fits.RowEffects
    monkeypatch.setattr(fits, "RowEffects", lambda *parts: indexed.append(1) or effects(*parts))
    _ = explanation.additive_fidelity, explanation.effects
    assert not indexed
    seventh = explanation.effects[5 * 7 : 5 * 8]
    for _ in range(2):
        assert [effect.row for effect in seventh] == [7] * 5
    assert len(indexed) == 1


@pytest.mark.parametrize(
    "model", [Ridge(), RandomForestRegressor(6, random_state=0), KernelRidge(kernel="rbf")]
)
def test_slopes_have_effects_in_slices_of_their_law(model):
    """Rows of the background itself, so that all states can be enumerated: effects, R² and pairs."""
    background = X[:25, :3]
    model.fit(background, Y[:25])
    explainer = limes.TabularExplainer(model, background, bins=None, law="empirical", method="exact")
    explanation = explainer(background[:1], progress=False)
    columns = [(c.marginal.measures[0].value, c.marginal.measures[0].weight) for c in
               explainer.design(background[0]).coordinates]  # fmt: skip
    grid = np.array(list(itertools.product(*[values for values, _ in columns])))
    w = np.array([np.prod(q) for q in itertools.product(*[weights for _, weights in columns])])
    f = model.predict(grid)
    mean, variance = w @ f, w @ (f - w @ f) ** 2
    additive, slices = np.full(len(f), mean), []
    for j, effect in enumerate(explanation.effects):
        edges = np.array([float(cell.split("<= ")[1]) for cell in effect.cells[:-1]])
        cell = np.array([np.argmin(np.abs(np.unique(grid[:, j]) - edge)) for edge in edges])
        cell = np.searchsorted(np.unique(grid[:, j])[cell], grid[:, j], side="left")
        slices.append(cell)
        assert effect.current == cell[np.flatnonzero(grid[:, j] == background[0, j])[0]]
        for b in range(len(effect.cells)):
            inside = w * (cell == b)
            assert effect.masses[b] == pytest.approx(inside.sum())
            expected = inside @ f / inside.sum() - mean
            assert effect.values[b] == pytest.approx(expected, abs=EXACT * np.abs(f).max())
        line = explanation.coefficients.values[0, j] * grid[:, j]
        inside = np.array([(w * (cell == b)) @ line / w[cell == b].sum() for b in range(len(effect.cells))])
        steps = effect.values - (inside - w @ line)
        additive += line - w @ line + steps[cell]
    expected = 1 - w @ (f - additive) ** 2 / variance
    errors = explanation.additive_fidelity_errors
    assert abs(explanation.additive_fidelity - expected) <= EXACT + oracle.Z_LIMIT * errors
    assert explanation.additive_fidelity >= explanation.fidelity - EXACT
    for pair in explanation.interactions(3):
        i, j = (explanation.feature_names.index(feature) for feature in pair.features)
        for b, c in np.ndindex(pair.values.shape):
            inside = w * (slices[i] == b) * (slices[j] == c)
            alone = explanation.effects[i].values[b] + explanation.effects[j].values[c] + mean
            expected = inside @ f / inside.sum() - alone
            assert pair.values[b, c] == pytest.approx(expected, abs=EXACT * np.abs(f).max())


def test_slices_of_a_plane_and_of_samples():
    """The line in its slices has nothing left; sampled slices lie within their errors of exact ones."""
    plane = limes.TabularExplainer(Ridge().fit(X, Y), X, bins=None)(X[:2], progress=False)
    assert plane.additive_fidelity == pytest.approx(1.0, abs=EXACT)
    effect = plane[0].effects["x2"]
    assert len(effect.cells) == 10
    assert effect.masses == pytest.approx(0.1)
    assert effect.cells[effect.current].count("x2") == 1
    model = RandomForestRegressor(10, random_state=0).fit(X, Y)
    exact, sampled = (
        limes.TabularExplainer(model, X, bins=None, method=method, **more)(X[:1], progress=False)
        for method, more in (("exact", {}), ("sampled", {"max_calls": 4096, "control": "none"}))
    )
    for one, other in zip(exact.effects, sampled.effects, strict=True):
        assert (np.abs(one.values - other.values) <= oracle.Z_LIMIT * other.standard_errors).all()
    gap = np.abs(exact.additive_fidelity - sampled.additive_fidelity)
    errors = np.hypot(exact.additive_fidelity_errors, sampled.additive_fidelity_errors)
    assert gap <= oracle.Z_LIMIT * errors


def test_r_squared_is_unknown_where_draws_miss_rows_of_exact_coefficients():
    """Rare leaves beyond a narrow bandwidth carry all the variance: without them R² was 0.5 ± 0.006."""
    table, y = load_diabetes(return_X_y=True, scaled=False)
    table = table[:, [2, 3, 8]]
    rows = table[[36, 72, 5]]
    small, forest = (
        RandomForestRegressor(n, random_state=0, min_samples_leaf=20).fit(table, y) for n in (30, 120)
    )
    exact = limes.TabularExplainer(small, table, bins=None, bandwidth=0.01)(rows)
    assert not exact.fidelity_errors.any()
    np.testing.assert_allclose(exact.fidelity[:2], [0.004, 4e-7], rtol=0.1)
    # of more pairs of leaves the variance is estimated
    explainer = limes.TabularExplainer(forest, table, bins=None, bandwidth=0.01)
    narrow, variances = explainer(rows), variance.ForestVariance(limes.models.read(forest), np.ones(1))
    for row, coef, fidelity, error in zip(
        rows, narrow.coefficients.values, narrow.fidelity, narrow.fidelity_errors, strict=True
    ):
        design = explainer.design(row)
        truth = coef @ design.gamma(coef) / variances.variance(design)[0]
        assert np.isnan(fidelity) == np.isinf(error)
        assert np.isnan(fidelity) or abs(fidelity - truth) < oracle.Z_LIMIT * error
    assert np.isinf(narrow.fidelity_errors[:2]).any()
    assert narrow.fidelity_errors[2] < 0.05
    usual = limes.TabularExplainer(forest, table, bins=None)(table[:50])
    assert (usual.fidelity_errors < 0.05).all()


def test_r_squared_is_unknown_where_draws_miss_what_gamma_shows():
    """Draws have thousands of rows of an event of 1e-14, and none of one of 2e-9, which decides Var_w f."""
    lightgbm = pytest.importorskip("lightgbm")
    columns = np.random.default_rng([900035, 0]), np.random.default_rng([900035, 1])
    x = np.column_stack([columns[0].normal(size=29), columns[1].uniform(-1, 1, 29)])
    noise = np.random.default_rng([900035, 99]).normal(size=29) / 2
    y = (1.0 * np.sin(1.3 * x[:, 0]) + 2.0 * np.sin(1.3 * x[:, 1] + 1) + noise >= 0.2).astype(int)
    model = lightgbm.LGBMClassifier(n_estimators=4, min_child_samples=3, verbose=-1, n_jobs=1).fit(x, y)
    explainer = limes.TabularExplainer(
        model, x, weights="euclidean", bandwidth=0.3, output="probability", contributions=False
    )
    explanation = explainer([[0.8039311975977315, 0.8258492676467644]], progress=False)
    fit = explanation.coefficients
    assert fit.values.any()
    for fidelity, error in zip(fit.fidelity.ravel(), fit.fidelity_errors.ravel(), strict=True):
        assert np.isnan(fidelity)
        assert np.isinf(error)


def test_effects_explain_no_less_than_the_surrogate():
    """Cells that no drawn row lay in counted 0: R² of the effects was 0 ± 0 beside an exact 0.59."""
    table, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table[:, :3], y)
    explainer = limes.TabularExplainer(model, table[:, :3], bandwidth=0.15 * np.sqrt(3), output=1)
    explanation = explainer(table[:40, :3])
    assert explanation.method == "exact"
    assert explanation.fidelity.max() > 0.5
    assert (explanation.additive_fidelity >= explanation.fidelity - 1e-12).all()
    assert not explanation.additive_fidelity_errors.any()
    assert not any(np.isnan(effect.values).any() for effect in explanation.effects)


@pytest.mark.parametrize("bandwidth", [0.2, 2.0, np.inf])
def test_variances_of_many_rows_of_a_sum_are_those_of_each(bandwidth):
    """To the last bit: rows that share a column's law share its variance."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=(300, 3)), rng.integers(0, 5, 300)])
    explainer = limes.TabularExplainer(lambda t: t[:, 0], x, categorical=[3], bandwidth=bandwidth)
    family = explainer._model_at(x)[0].family
    several = forms.Linear(np.column_stack([[1.0, -2.0, 0.5, 0.1], [0.0, 3.0, 1.0, 1.0]]), np.ones(2))
    one = forms.Additive([np.sin, np.square, np.cos, lambda t: 1.0 * (t == 2.0)])
    cells, draws = family.cells(x), family.at(x[0]).draw(rng.random((200_000, 4)))[0]
    for form, unit in ((several, np.array([1.0, 2.0])), (one, np.ones(1))):
        closed = exact_variance(form, unit)
        each = [closed.variance(family.of_cells(row)) for row in cells]
        np.testing.assert_array_equal(closed.of_rows(family, cells), each)
        answers = form.predict(draws).reshape(len(draws), -1) / unit
        assert answers.var(axis=0) == pytest.approx(each[0], rel=0.05)
