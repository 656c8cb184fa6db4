"""The drop-in's tables: both engines, against limes and against lime itself."""

from __future__ import annotations

import pickle

import lime.lime_tabular
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import limes
from limes.compat.lime import engine
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
    given = {"feature_names": NAMES, "random_state": 0} | (options or {})
    return LimeTabularExplainer(X, **given).explain_instance(row, predict, **call)


def test_a_bound_method_is_read_and_exact():
    found = explained(labels=(0, 1, 2))
    told = limes.TabularExplainer(FOREST, X)(X[60])
    assert (found.engine, found.limes.method) == ("limit", "exact")
    for label in range(3):
        coef = dict(found.as_map()[label])
        np.testing.assert_allclose([coef[j] for j in range(4)], told.values[0, :, label], rtol=1e-12)
        assert found.intercept[label] == pytest.approx(told.intercepts[0, label])
        assert found.local_pred[label] == pytest.approx(told.surrogate_predictions[0, label])
        assert {error for _, error in found.standard_errors[label]} == {0.0}
    assert found.available_labels() == [0, 1, 2]


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


@pytest.mark.parametrize("binned", [True, False])
def test_the_engine_lime_has_lime_s_law(binned):
    def ours(seed):
        explainer = LimeTabularExplainer(
            BODIES, mode="regression", random_state=seed, discretize_continuous=binned, engine="lime"
        )
        return dict(explainer.explain_instance(BODIES[3], REGRESSOR.predict, num_samples=400).as_map()[1])

    def theirs(seed):
        explainer = lime.lime_tabular.LimeTabularExplainer(
            BODIES, mode="regression", random_state=seed, discretize_continuous=binned
        )
        return dict(explainer.explain_instance(BODIES[3], REGRESSOR.predict, num_samples=400).as_map()[1])

    def runs(explain):
        return np.array([[c[j] for j in range(10)] for c in map(explain, range(60))])

    first, second = runs(ours), runs(theirs)
    # ten coefficients, two tests each, at 1 % together
    level = 0.01 / 20
    assert stats.ttest_ind(first, second).pvalue.min() > level
    assert min(stats.levene(a, b).pvalue for a, b in zip(first.T, second.T, strict=True)) > level


@ENGINES
def test_a_regression_is_told_as_lime_tells_it(chosen):
    explainer = LimeTabularExplainer(BODIES, mode="regression", engine=chosen, random_state=0)
    found = explainer.explain_instance(BODIES[3], REGRESSOR.predict, num_features=3)
    assert found.available_labels() == [1]
    assert found.local_exp[0] == [(j, -value) for j, value in found.local_exp[1]]
    assert found.predicted_value == pytest.approx(REGRESSOR.predict(BODIES[3:4])[0])
    assert found.as_list() == found.as_list(label=7)
    assert (
        found.local_pred[0]
        == found.local_pred[1]
        == pytest.approx(found.intercept[1] + sum(value for _, value in found.local_exp[1]))
    )
    assert 0 < found.score < 1


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


def test_what_only_lime_knows_is_said():
    found = explained(distance_metric="manhattan")
    assert (found.engine, found.engine_reason) == ("lime", "only lime's own sampling knows distance_metric")


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
def test_frames_with_texts_go_in_and_reach_the_model_as_frames(chosen):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(50, 9, 200), "town": rng.choice(["Ulm", "Bern"], 200)})
    one_hot = OneHotEncoder(handle_unknown="ignore")
    model = make_pipeline(one_hot, RandomForestClassifier(5, random_state=0)).fit(
        frame, frame["town"] == "Ulm"
    )
    explainer = LimeTabularExplainer(frame, engine=chosen, random_state=0)
    found = explainer.explain_instance(frame.iloc[0], model.predict_proba, num_samples=500)
    assert found.as_list()[0][0] == f"town={frame['town'][0]}"


def test_missing_values_are_explained_by_the_limit_and_refused_by_lime():
    data = X.copy()
    data[::7, 2] = np.nan
    model = RandomForestClassifier(5, random_state=0).fit(data, Y)
    found = LimeTabularExplainer(data, feature_names=NAMES).explain_instance(data[0], model.predict_proba)
    assert "petal length (cm) is missing" in dict(found.as_list())
    with pytest.raises(InputError, match="missing values"):
        LimeTabularExplainer(data, engine="lime").explain_instance(data[1], model.predict_proba)


@ENGINES
def test_probabilities_of_one_column(chosen):
    with engine(chosen):
        found = explained(lambda x: FOREST.predict_proba(x)[:, 1], num_samples=300)
    np.testing.assert_allclose(found.predict_proba.sum(), 1.0)


@ENGINES
def test_explainers_and_explanations_can_be_pickled(chosen):
    explainer = LimeTabularExplainer(X, random_state=0, engine=chosen)
    found = explainer.explain_instance(X[3], FOREST.predict_proba, num_samples=300)
    again = pickle.loads(pickle.dumps(explainer)).explain_instance(
        X[3], FOREST.predict_proba, num_samples=300
    )
    assert pickle.loads(pickle.dumps(found)).as_map() == found.as_map() == again.as_map()
    assert pickle.loads(pickle.dumps(found)).score == found.score


@ENGINES
def test_pictures_and_pages(chosen, tmp_path):
    names = ["setosa", "</script><b>", "virginica"]
    found = explained(options={"class_names": names, "engine": chosen}, top_labels=2, num_features=2)
    figure = found.as_pyplot_figure(label=found.top_labels[0], figsize=(4, 2))
    assert len(figure.axes[0].patches) == 2
    plt.close(figure)
    found.save_to_file(tmp_path / "page.html", labels=[1])
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
    with pytest.raises(InputError, match="one at a time"):
        LimeTabularExplainer(X, mode="regression").explain_instance(X[0], lambda x: x)
    with pytest.raises(InputError, match="class_names has 1"):
        explained(options={"class_names": ["one"]})
