"""The drop-in's tables: both engines, against limes and against lime itself."""

from __future__ import annotations

import pickle

import lightgbm
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xgboost
from scipy import stats
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import limes
from limes.compat.lime import engine
from limes.compat.lime import explanation as lime_explanation
from limes.compat.lime.discretize import BaseDiscretizer, QuartileDiscretizer
from limes.compat.lime.exceptions import LimeError
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.exceptions import InputError, ModelError, UnknownOptionError

X, Y = load_iris(return_X_y=True)
NAMES = load_iris().feature_names
FOREST = RandomForestClassifier(20, random_state=0).fit(X, Y)
BODIES, ILLNESS = load_diabetes(return_X_y=True)
REGRESSOR = RandomForestRegressor(10, max_depth=5, random_state=0).fit(BODIES, ILLNESS)
ENGINES = pytest.mark.parametrize("chosen", ["limit", "lime"])


def explained(predict=FOREST.predict_proba, row=X[60], options=None, **call):
    arguments = {"feature_names": NAMES, "random_state": 0} | (options or {})
    return LimeTabularExplainer(X, **arguments).explain_instance(row, predict, **call)


def test_a_bound_method_is_read_and_exact():
    explanation = explained(labels=(0, 1, 2))
    exact = limes.TabularExplainer(FOREST, X)(X[60])
    assert (explanation.engine, explanation.limes.method) == ("limit", "exact")
    for label in range(3):
        coef = dict(explanation.as_map()[label])
        np.testing.assert_allclose(
            [coef[j] for j in range(4)], exact.coefficients.values[0, :, label], rtol=1e-12
        )
        assert explanation.intercept[label] == pytest.approx(exact.coefficients.intercepts[0, label])
        assert explanation.local_pred.by_label[label] == pytest.approx(
            exact.coefficients.surrogate_predictions[0, label]
        )
        assert {error for _, error in explanation.standard_errors[label]} == {0.0}
    assert explanation.available_labels() == [0, 1, 2]


def test_any_other_function_is_sampled_with_error_bars_that_hold_the_limit():
    exact, sampled = explained(), explained(lambda x: FOREST.predict_proba(x))
    assert sampled.limes.method == "sampled"
    errors, limit = dict(sampled.standard_errors[1]), dict(exact.as_map()[1])
    assert all(abs(value - limit[j]) < 5 * errors[j] for j, value in sampled.as_map()[1])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_features_left_out_leave_a_least_squares_surrogate(count):
    whole, part = explained(num_features=4), explained(num_features=count)
    rows = limes.TabularExplainer(FOREST, X)(X[60])
    design = rows.explainer.design(X[60])
    kept = [j for j, _ in part.as_map()[1]]
    mean = whole.intercept[1] + sum(b * design.inclusion[j] for j, b in whole.as_map()[1])
    assert part.intercept[1] + sum(b * design.inclusion[j] for j, b in part.as_map()[1]) == pytest.approx(
        mean
    )
    assert dict(part.as_map()[1]) == {j: b for j, b in whole.as_map()[1] if j in kept}
    assert part.score < whole.score < 1


@ENGINES
def test_a_regression_has_limes_texts(chosen):
    explainer = LimeTabularExplainer(BODIES, mode="regression", engine=chosen, random_state=0)
    explanation = explainer.explain_instance(BODIES[3], REGRESSOR.predict, num_features=3)
    assert explanation.available_labels() == [1]
    assert explanation.local_exp[0] == [(j, -value) for j, value in explanation.local_exp[1]]
    assert explanation.predicted_value == pytest.approx(REGRESSOR.predict(BODIES[3:4])[0])
    assert explanation.as_list() == explanation.as_list(label=7)
    whole = explanation.intercept[1] + sum(value for _, value in explanation.local_exp[1])
    assert explanation.local_pred[0] == explanation.local_pred.by_label[1] == pytest.approx(whole)
    assert 0 < explanation.score < 1


def test_a_read_model_is_not_called(monkeypatch):
    """But for its score, and only when that is wanted."""
    explainer = LimeTabularExplainer(X, feature_names=NAMES)
    model = RandomForestClassifier(5, random_state=0).fit(X, Y)
    explainer.explain_instance(X[0], model.predict_proba)
    sizes = []
    validate = RandomForestClassifier._validate_X_predict

    def counted(model, x):
        sizes.append(len(x))
        return validate(model, x)

    # what every answer of a forest goes through; a predict_proba of our own would not be read
    monkeypatch.setattr(RandomForestClassifier, "_validate_X_predict", counted)
    result = explainer.explain_instance(X[60], model.predict_proba)
    assert sizes == []
    assert 0 < result.score < 1
    assert sizes == []
    assert result.min_value < result.max_value
    assert sizes == [4096]
    np.testing.assert_allclose(result.predict_proba, model.predict_proba(X[60:61])[0])


def test_a_function_is_called_for_the_row_once_and_for_samples():
    sizes = []

    def predict(x):
        sizes.append(len(x))
        return FOREST.predict_proba(x)

    for chosen, most in (("limit", 256 + 1), ("lime", 256)):
        explainer = LimeTabularExplainer(X, engine=chosen)
        explainer.explain_instance(X[0], predict, num_samples=256)
        sizes.clear()
        explainer.explain_instance(X[1], predict, num_samples=256)
        assert sum(sizes) <= most


READ = {
    "a pipeline": (make_pipeline(StandardScaler(), RandomForestRegressor(5, random_state=0)), "predict"),
    "a search": (GridSearchCV(DecisionTreeRegressor(), {"max_depth": [2, 3]}, cv=2), "predict"),
    "boosted trees": (xgboost.XGBRegressor(n_estimators=5, max_depth=3), "predict"),
    "other boosted trees": (lightgbm.LGBMRegressor(n_estimators=5, n_jobs=1, verbose=-1), "predict"),
    "a margin": (GradientBoostingClassifier(n_estimators=5), "decision_function"),
    "a linear margin": (make_pipeline(StandardScaler(), LogisticRegression()), "decision_function"),
}


@pytest.mark.parametrize("binned", [True, False])
@pytest.mark.parametrize(("model", "method"), READ.values(), ids=READ)
def test_bound_methods_of_readable_models_are_exact(model, method, binned):
    model.fit(BODIES, ILLNESS if method == "predict" else ILLNESS > 150)
    explainer = LimeTabularExplainer(BODIES, mode="regression", discretize_continuous=binned)
    result = explainer.explain_instance(BODIES[3], getattr(model, method))
    assert result.limes.method == "exact"
    assert result.predicted_value == pytest.approx(np.ravel(getattr(model, method)(BODIES[3:4]))[0], rel=1e-6)


def test_probabilities_follow_a_margin_that_can_be_read(monkeypatch):
    # as of more columns, whose interactions are too many to be summed out
    monkeypatch.setattr("limes.models.forms._linked.MOST_CELLS", 100)
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=3).fit(X, Y == 1)
    explanation = explained(model.predict_proba, num_samples=1024)
    assert explanation.limes.coefficients.controls == ("margin",)
    plain = explained(lambda x: model.predict_proba(x), num_samples=1024)
    assert max(e for _, e in explanation.standard_errors[1]) < max(e for _, e in plain.standard_errors[1])


@pytest.mark.parametrize("binned", [True, False])
def test_the_parts_of_the_surrogate_add_up(binned):
    """Intercept and coefficients of lime's features at the row give the prediction of either engine."""
    features = np.ones(10) if binned else (BODIES[3] - BODIES.mean(axis=0)) / BODIES.std(axis=0)
    for chosen in ("limit", "lime"):
        explainer = LimeTabularExplainer(
            BODIES, mode="regression", discretize_continuous=binned, engine=chosen, random_state=0
        )
        surrogate = explainer.explain_instance(BODIES[3], REGRESSOR.predict, num_features=4)
        total = surrogate.intercept[1] + sum(value * features[j] for j, value in surrogate.as_map()[1])
        assert total == pytest.approx(surrogate.local_pred.by_label[1])
        # in the user's own units
        raw = np.ones(10) if binned else BODIES[3]
        assert surrogate.limes.coefficients.intercepts[0] + surrogate.limes.coefficients.values[
            0
        ] @ raw == pytest.approx(surrogate.limes.coefficients.surrogate_predictions[0])


def cut(**options):
    return QuartileDiscretizer(X, [], NAMES, random_state=0, **options)


class Thirds(BaseDiscretizer):
    def bins(self, data, labels):
        return [np.percentile(data[:, j], [33, 66]) for j in self.to_discretize]


def test_a_discretizer_of_one_s_own_has_a_limit():
    assert dict(explained(options={"discretizer": cut()}).as_list()) == pytest.approx(
        dict(explained().as_list())
    )
    thirds = Thirds(X, [], NAMES)
    result = explained(options={"discretizer": thirds}, num_features=4)
    assert (result.engine, result.limes.method) == ("limit", "exact")
    edges = [[x.min(), *q, x.max()] for x, q in zip(X.T, thirds.bins(X, None), strict=True)]
    exact = limes.TabularExplainer(FOREST, X, bins=edges, output=[1])(X[60])
    coef = dict(result.as_map()[1])
    np.testing.assert_allclose([coef[j] for j in range(4)], exact.coefficients.values[0, :, 0], rtol=1e-9)


def test_a_discretizer_says_which_columns_are_numbers():
    options = {"discretizer": QuartileDiscretizer(X, [3], NAMES)}
    assert any(name.startswith("petal width (cm)=") for name, _ in explained(options=options).as_list())


def test_statistics_stand_for_the_data():
    discretizer = cut()
    cells = discretizer.discretize(X)
    counted = [np.unique(column, return_counts=True) for column in cells.T]
    statistics = {name: getattr(discretizer, name) for name in ("means", "stds", "mins", "maxs")} | {
        "bins": {j: [*map(float, discretizer.maxs[j][:-1])] for j in range(4)},
        "feature_values": {j: values.tolist() for j, (values, _) in enumerate(counted)},
        "feature_frequencies": {j: counts.tolist() for j, (_, counts) in enumerate(counted)},
    }
    explainer = LimeTabularExplainer(np.zeros((2, 4)), feature_names=NAMES, training_data_stats=statistics)
    explanation = explainer.explain_instance(X[60], FOREST.predict_proba)
    assert (explanation.engine, explanation.limes.method) == ("limit", "exact")
    assert dict(explanation.as_list()) == pytest.approx(dict(explained().as_list()))
    apart = statistics | {"mins": {j: [low - 1 for low in statistics["mins"][j]] for j in range(4)}}
    other = LimeTabularExplainer(np.zeros((2, 4)), training_data_stats=apart)
    assert "gaps between bins" in other.explain_instance(X[60], FOREST.predict_proba).engine_reason


def test_a_discretizer_with_its_draws_is_sampled():
    class Middles(QuartileDiscretizer):
        def drawn(self, feature, cells, levels):
            return np.array(self.means[feature])[cells]

    result = explained(
        lambda x: [[1.0, len(np.unique(x[1:, 0]))]] * len(x), options={"discretizer": Middles(X, [], NAMES)}
    )
    assert result.predict_proba[1] == 4
    assert "with its own draws" in result.engine_reason


def test_draws_by_lime_s_methods():
    class Rounded(QuartileDiscretizer):
        def undiscretize(self, data):
            return np.round(super().undiscretize(data))

    class Lowest(QuartileDiscretizer):
        def get_undiscretize_values(self, feature, values):
            return np.array(self.mins[feature])[values]

    edges = np.percentile(X, [25, 50, 75], axis=0).ravel()
    for kind, values in ((Rounded, np.arange(10)), (Lowest, np.r_[X.min(axis=0), edges])):
        explainer = LimeTabularExplainer(X, discretizer=kind(X, [], NAMES), random_state=0)
        rows = explainer._LimeTabularExplainer__data_inverse(X[60], 200)[1]
        assert np.isin(rows[1:], values).all()
        results = [explainer.explain_instance(X[60], FOREST.predict_proba, num_samples=200) for _ in range(2)]
        assert "with its own draws" in results[0].engine_reason
        # nothing that another call drew changes a result
        assert results[0].as_map() == results[1].as_map()


@pytest.mark.parametrize("binned", [True, False])
def test_a_latin_hypercube_meets_every_stratum_once(binned):
    seen = []
    explainer = LimeTabularExplainer(
        BODIES, mode="regression", discretize_continuous=binned, engine="lime", random_state=0
    )
    explainer.explain_instance(
        BODIES[3], lambda x: seen.append(x) or x[:, 0], num_samples=101, sampling_method="lhs"
    )
    x, drawn = BODIES[:, 2], seen[0][1:, 2]
    if binned:
        # a quarter of 442 rows is 110 or 111 of them
        counts = np.bincount(np.searchsorted(np.percentile(x, [25, 50, 75]), drawn))
        assert abs(counts - 25).max() <= 1
    else:
        levels = stats.norm.cdf(drawn, x.mean(), x.std())
        np.testing.assert_array_equal(np.sort(np.floor(100 * levels)), np.arange(100))


@ENGINES
def test_verbose_prints_what_lime_prints(chosen, capsys):
    surrogate = explained(options={"verbose": True, "engine": chosen}, num_samples=200)
    words = capsys.readouterr().out.split()
    assert words[::2] == ["Intercept", "Prediction_local", "Right:"]
    expected = [surrogate.intercept[1], surrogate.local_pred.by_label[1], surrogate.predict_proba[1]]
    np.testing.assert_allclose([float(number) for number in words[1::2]], expected)


def test_many_rows():
    explainer = LimeTabularExplainer(X, feature_names=NAMES)
    frame = pd.DataFrame(X, columns=NAMES)
    for rows in (X[58:61], X[58:61].tolist(), frame[58:61]):
        several = explainer.explain_instances(rows, FOREST.predict_proba, num_features=2)
        assert [e.as_map() for e in several] == [explained(row=x, num_features=2).as_map() for x in X[58:61]]


def test_pickled_with_a_function_that_cannot_be():
    explanation = explained(lambda x: FOREST.predict_proba(x), num_samples=200)
    again = pickle.loads(pickle.dumps(explanation))
    assert (again.score, again.as_list()) == (explanation.score, explanation.as_list())
    assert again.limes.coefficients.values.tolist() == explanation.limes.coefficients.values.tolist()


@ENGINES
def test_a_row_s_result_depends_on_seed_and_row_alone(chosen):
    explainer = LimeTabularExplainer(X, random_state=0, engine=chosen)

    def predict(x):
        return FOREST.predict_proba(x)

    first = explainer.explain_instance(X[3], predict, num_samples=300).as_map()
    explainer.explain_instance(X[4], predict, num_samples=300)
    assert explainer.explain_instance(X[3], predict, num_samples=300).as_map() == first


def test_a_model_that_is_fitted_again_is_read_again():
    model = RandomForestClassifier(5, random_state=0).fit(X, Y)
    explainer = LimeTabularExplainer(X)
    first = explainer.explain_instance(X[60], model.predict_proba).as_map()
    model.fit(X, (Y + 1) % 3)
    again = explainer.explain_instance(X[60], model.predict_proba).as_map()
    assert again != first
    assert again == LimeTabularExplainer(X).explain_instance(X[60], model.predict_proba).as_map()


def test_the_engine_is_chosen_by_explainer_block_and_environment(monkeypatch):
    assert explained(options={"engine": "lime"}).engine == "lime"
    with engine("lime"):
        assert explained().engine == "lime"
        assert explained(options={"engine": "limit"}).engine == "limit"
    monkeypatch.setenv("LIMES_ENGINE", "lime")
    assert explained().engine == "lime"
    monkeypatch.setenv("LIMES_ENGINE", "lim")
    with pytest.raises(InputError, match="LIMES_ENGINE"):
        explained()


def test_options_of_engine_lime_alone_choose_it_with_a_reason():
    result = explained(distance_metric="manhattan")
    assert (result.engine, result.engine_reason) == ("lime", "only lime's sampling supports distance_metric")


@ENGINES
def test_a_constant_column_reaches_the_model_as_it_is(chosen):
    seen = []

    def predict(x):
        seen.append(np.unique(x[:, 1]))
        return np.column_stack([1 - x[:, 0], x[:, 0]])

    data = np.column_stack([np.linspace(0, 1, 50), np.full(50, 7.0)])
    LimeTabularExplainer(data, engine=chosen).explain_instance(data[3], predict, num_samples=100)
    assert set(np.concatenate(seen)) == {7.0}


@ENGINES
def test_frames_with_texts_reach_the_model_as_frames(chosen):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(50, 9, 200), "town": rng.choice(["Ulm", "Bern"], 200)})
    one_hot = OneHotEncoder(handle_unknown="ignore")
    model = make_pipeline(one_hot, RandomForestClassifier(5, random_state=0)).fit(
        frame, frame["town"] == "Ulm"
    )
    explainer = LimeTabularExplainer(frame, engine=chosen, random_state=0)
    explanation = explainer.explain_instance(frame.iloc[0], model.predict_proba, num_samples=500)
    assert explanation.as_list()[0][0] == f"town={frame['town'][0]}"


def test_missing_values_are_explained_by_the_limit_and_refused_by_lime():
    data = X.copy()
    data[::7, 2] = np.nan
    model = RandomForestClassifier(5, random_state=0).fit(data, Y)
    explanation = LimeTabularExplainer(data, feature_names=NAMES).explain_instance(
        data[0], model.predict_proba
    )
    assert "petal length (cm) is missing" in dict(explanation.as_list())
    with pytest.raises(InputError, match="missing values"):
        LimeTabularExplainer(data, engine="lime").explain_instance(data[1], model.predict_proba)


@ENGINES
def test_probabilities_of_one_column(chosen):
    with engine(chosen):
        result = explained(lambda x: FOREST.predict_proba(x)[:, 1], num_samples=300)
    np.testing.assert_allclose(result.predict_proba.sum(), 1.0)


@ENGINES
def test_explainers_and_explanations_can_be_pickled(chosen):
    explainer = LimeTabularExplainer(X, random_state=0, engine=chosen)
    result = explainer.explain_instance(X[3], FOREST.predict_proba, num_samples=300)
    again = pickle.loads(pickle.dumps(explainer)).explain_instance(
        X[3], FOREST.predict_proba, num_samples=300
    )
    assert pickle.loads(pickle.dumps(result)).as_map() == result.as_map() == again.as_map()
    assert pickle.loads(pickle.dumps(result)).score == result.score


@ENGINES
def test_a_pickled_regression_keeps_the_range_of_its_answers(chosen):
    explainer = LimeTabularExplainer(BODIES, mode="regression", engine=chosen, random_state=0)
    result = explainer.explain_instance(BODIES[3], REGRESSOR.predict, num_samples=300)
    again = pickle.loads(pickle.dumps(result))
    assert (again.min_value, again.max_value) == (result.min_value, result.max_value)
    assert 1 < result.min_value < result.max_value  # no probabilities


@ENGINES
def test_pictures_and_pages(chosen, tmp_path):
    names = ["setosa", "</script><b>", "virginica"]
    result = explained(options={"class_names": names, "engine": chosen}, top_labels=2, num_features=2)
    figure = result.as_pyplot_figure(label=result.top_labels[0], figsize=(4, 2))
    assert len(figure.axes[0].patches) == 2
    plt.close(figure)
    result.save_to_file(tmp_path / "page.html", labels=[1])
    page = (tmp_path / "page.html").read_text()
    assert "&lt;/script&gt;" in page
    assert "</script>" not in page
    assert "petal" in page
    assert "sepal" not in page


def test_errors_are_advice():
    with pytest.raises(UnknownOptionError, match="discretize_continuous"):
        LimeTabularExplainer(X, discretise_continuous=False)
    with pytest.raises(InputError, match="0 to 2"):
        explained(labels=(3,))
    with pytest.raises(LimeError, match="only \\[1\\]"):
        explained().as_list(label=0)
    with pytest.raises(KeyError):
        explained().as_list(label=0)
    with pytest.raises(InputError, match="no probability"):
        explained(lambda x: x[:, 0] * 10)
    with pytest.raises(ModelError, match="one line a row"):
        explained(lambda x: np.ones((1, 3)))
    with pytest.warns(UserWarning, match="the first is explained"):
        LimeTabularExplainer(X, mode="regression").explain_instance(X[0], lambda x: x)


def test_a_diagnosis_uses_limes_names():
    classes = ["setosa", "versicolor", "virginica"]
    result = explained(options={"class_names": classes}, labels=(2, 1))
    diagnosis = limes.diagnose(result.limes, output="versicolor")
    plain = limes.diagnose(limes.TabularExplainer(FOREST, X)(X[60]), output="1")
    assert "versicolor" in str(diagnosis)
    assert [f.number for f in diagnosis.findings] == [f.number for f in plain.findings]
    assert "petal length (cm)" in diagnosis.to_html()


@pytest.mark.parametrize("selection", ["forward_selection", "highest_weights", "lasso_path", "none"])
@pytest.mark.parametrize("binned", [True, False])
def test_selections_of_the_limit_are_those_of_a_large_sample(selection, binned):
    """A linear model without noise: with slopes one feature counts in the ranking by where its row is."""
    slopes = np.array([900.0, -500.0, 300.0, -1200.0, 100.0, 700.0, -400.0, 1000.0, 600.0, -800.0])

    def kept(chosen):
        explainer = LimeTabularExplainer(
            BODIES,
            mode="regression",
            feature_selection=selection,
            discretize_continuous=binned,
            engine=chosen,
            random_state=0,
        )
        result = explainer.explain_instance(BODIES[3], lambda x: x @ slopes, num_features=4, num_samples=8192)
        return {j for j, _ in result.as_map()[1]}

    assert kept("limit") == kept("lime")


def test_labels_that_a_classifier_predicts_are_no_quantity_to_read():
    """In regression mode ``predict`` of a classifier is a function like any other; a regressor's is read."""
    of_labels = explained(FOREST.predict, options={"mode": "regression"}, num_samples=500)
    assert of_labels.engine == "limit"
    assert of_labels.limes.method == "sampled"
    read = LimeTabularExplainer(BODIES, mode="regression").explain_instance(BODIES[0], REGRESSOR.predict)
    assert read.limes.method == "exact"


def test_an_explanation_of_named_labels_has_no_top_labels():
    assert explained(labels=(0, 1)).top_labels is None
    assert explained(top_labels=2).top_labels is not None
    assert lime_explanation.Explanation(lime_explanation.DomainMapper()).top_labels is None


def test_errors_name_the_columns_as_the_user_does():
    names = ["length", "width", "height", "depth"]
    explainer = LimeTabularExplainer(X, feature_names=names)
    with pytest.raises(InputError, match=r"expected 4 \('length', 'width', 'height', 'depth'\)"):
        explainer.explain_instance(X[0][:3], FOREST.predict_proba)
    with pytest.raises(InputError, match="column 'depth': inf is not finite"):
        explainer.explain_instance(np.array([1.0, 1.0, 1.0, np.inf]), FOREST.predict_proba)


def test_names_of_categories_may_be_a_list():
    table = np.c_[X[:, :2], np.arange(len(X)) % 3]
    options = {"categorical_features": [2], "mode": "regression"}
    by_list, by_dict = (
        LimeTabularExplainer(table, categorical_names=names, **options).explain_instance(
            table[1], lambda x: x[:, 2] * 1.0
        )
        for names in ([[], [], ["u", "v", "w"]], {2: ["u", "v", "w"]})
    )
    assert by_list.as_list() == by_dict.as_list()
    assert any(name.endswith("=v") for name, _ in by_list.as_list())
