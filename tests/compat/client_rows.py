"""Further ways in which public code calls ``lime`` on tables and sequences; see ``client_tables``."""

from __future__ import annotations

import json
import pickle
import re

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from matplotlib import pyplot as plt
from sklearn.linear_model import BayesianRidge, HuberRegressor

from compat.client_material import (
    CLASS,
    FOREST,
    FRAME,
    NAMES,
    NUMBER,
    ROW,
    SEQUENCES,
    THREE,
    X,
    chances,
    of_last,
)

CLASSES = ["refused", "granted"]
LEVELS = ["low", "mid", "high"]


def _explainer(lime, **options):
    options = {"feature_names": NAMES, "class_names": CLASSES, "random_state": 0} | options
    return lime.lime_tabular.LimeTabularExplainer(X, **options)


def _explained(lime, predict=FOREST.predict_proba, *, row=ROW, options=None, **call):
    return _explainer(lime, **(options or {})).explain_instance(
        row, predict, **({"num_samples": 2500} | call)
    )


def _sequences(lime, **options):
    options = {"feature_names": ["load", "heat"], "random_state": 0} | options
    return lime.lime_tabular.RecurrentTabularExplainer(SEQUENCES, **options)


# -- sequences -----------------------------------------------------------------------------------------------


def an_aggregate_of_transactions(lime, tmp):
    """A fraud model sees means and maxima of the steps."""

    def fraud(windows):
        score = windows.mean(axis=1)[:, 1] + windows.max(axis=1)[:, 0] - 0.5
        p = 1 / (1 + np.exp(-2 * score))
        return np.column_stack([1 - p, p])

    explainer = _sequences(lime, class_names=["fine", "fraud"], discretize_continuous=True)
    explanation = explainer.explain_instance(SEQUENCES[1], fraud, num_features=6, num_samples=5000)
    return dict(explanation.as_list())


def the_last_of_all_scores(lime, tmp):
    """A network returns a score a step, (n, T, 1), and the last is explained."""

    def every_step(sequences):
        return np.cumsum(sequences[:, :, :1] - 0.5 * sequences[:, :, 1:], axis=1)

    explainer = _sequences(lime, mode="regression", discretize_continuous=False)
    explanation = explainer.explain_instance(
        SEQUENCES[2], lambda s: every_step(s)[:, -1, 0], num_features=6, num_samples=2500
    )
    return dict(explanation.as_list())


def channels_before_steps(lime, tmp):
    """The network takes (n, features, steps)."""

    def network(series):
        return of_last(np.moveaxis(series, 1, 2))

    explainer = _sequences(lime, class_names=CLASSES)
    explanation = explainer.explain_instance(
        SEQUENCES[3], lambda s: network(np.transpose(s, (0, 2, 1))), num_samples=2500
    )
    return dict(explanation.as_map()[1])


# -- results that are computed with --------------------------------------------------------------------------


def a_label_that_a_regression_ignores(lime, tmp):
    result = _explained(lime, NUMBER.predict, options={"mode": "regression"}, labels=(150))
    return dict(result.as_map()[1])


def statistics_of_the_discretizer(lime, tmp):
    bins = _explainer(lime).discretizer
    return [
        (bins.names[j], np.array(bins.mins[j]), np.array(bins.maxs[j]), np.array(bins.means[j]))
        for j in range(4)
    ]


def a_prediction_from_bins(lime, tmp):
    """All conditions hold at the row: intercept and coefficients add up."""
    result = _explained(lime)
    total = result.intercept[1] + sum(weight for _, weight in result.local_exp[1])
    return round(total - float(np.ravel(result.local_pred)[0]), 9)


def a_prediction_from_the_scaler(lime, tmp):
    explainer = _explainer(lime, discretize_continuous=False)
    result = explainer.explain_instance(ROW, chances, num_samples=2500)
    scaled = (ROW - explainer.scaler.mean_) / explainer.scaler.scale_
    total = result.intercept[1] + sum(weight * scaled[j] for j, weight in result.local_exp[1])
    return round(total - float(np.ravel(result.local_pred)[0]), 9)


def conditions_and_values_of_the_row(lime, tmp):
    mapper = _explained(lime).domain_mapper
    return (
        list(map(str, mapper.discretized_feature_names)),
        list(mapper.feature_values),
        mapper.all_categorical,
    )


def json_of_lists(lime, tmp):
    explanation = _explained(lime)
    shown = {"conditions": explanation.as_list(), "p": explanation.predict_proba.tolist()}
    return sorted(json.loads(json.dumps(shown)))


def numbers_as_texts(lime, tmp):
    surrogate = _explained(lime)
    texts = (
        f"{surrogate.score:6.2f}",
        f"{surrogate.score:.1%}".rstrip("%"),
        str(round(float(surrogate.score), 3)),
        "%.3f" % surrogate.local_pred.item(),  # noqa: UP031 - as such code has it
    )
    return [float(text) for text in texts]


def five_samples(lime, tmp):
    return len(_explained(lime, num_samples=5, num_features=4).as_list())


def all_arguments_by_name(lime, tmp):
    explainer = lime.lime_tabular.LimeTabularExplainer(
        training_data=X,
        mode="classification",
        training_labels=CLASS,
        feature_names=NAMES,
        categorical_features=None,
        categorical_names=None,
        kernel_width=None,
        kernel=None,
        verbose=False,
        class_names=CLASSES,
        feature_selection="auto",
        discretize_continuous=True,
        discretizer="quartile",
        sample_around_instance=False,
        random_state=1,
        training_data_stats=None,
    )
    explanation = explainer.explain_instance(
        data_row=ROW,
        predict_fn=FOREST.predict_proba,
        labels=(0, 1),
        top_labels=None,
        num_features=4,
        num_samples=2500,
        distance_metric="euclidean",
        model_regressor=None,
    )
    return dict(explanation.as_list(label=1))


def the_top_five_of_twelve_classes(lime, tmp):
    def twelve(rows):
        scores = np.outer(np.asarray(rows)[:, 1], np.arange(12)) / 4 - 0.1 * np.arange(12) ** 2
        share = np.exp(scores - scores.max(axis=1, keepdims=True))
        return share / share.sum(axis=1, keepdims=True)

    options = {"class_names": [f"class {k}" for k in range(12)]}
    explanation = _explained(lime, twelve, options=options, top_labels=5)
    assert isinstance(explanation.as_html(), str)
    return explanation.available_labels()


# -- picks ---------------------------------------------------------------------------------------------------


def _picked(lime, predict=FOREST.predict_proba, **options):
    from lime import submodular_pick

    names = LEVELS if predict == THREE.predict_proba else CLASSES
    return submodular_pick.SubmodularPick(
        _explainer(lime, class_names=names), X[:8], predict, num_features=4, num_samples=500, **options
    )


def ranks_in_picks_of_two_labels(lime, tmp):
    """The mean rank of each column, over the picks and their labels."""
    picks = _picked(lime, THREE.predict_proba, method="full", num_exps_desired=3, top_labels=3)
    ranks = {name: [] for name in NAMES}
    for one in picks.sp_explanations:
        for rank, (condition, _) in enumerate(one.as_list(label=0)):
            ranks[next(name for name in NAMES if name in condition)].append(rank)
    return {name: len(places) for name, places in ranks.items()}


def conditions_of_picks_taken_apart(lime, tmp):
    picks = _picked(lime, method="full", num_exps_desired=8)
    parts = [
        re.findall(r"(?:(-?\d+\.\d\d) < )?([a-z]+)(?: <= (-?\d+\.\d\d)| > (-?\d+\.\d\d))?", condition)[0]
        for one in picks.sp_explanations
        for condition, _ in one.as_list(label=one.available_labels()[0])
    ]
    frame = pd.DataFrame(parts, columns=["above", "name", "to", "over"])
    return len(frame), sorted(frame["name"].unique())


def pickled_picks(lime, tmp):
    picks = _picked(lime, sample_size=5, num_exps_desired=2)
    path = tmp / "picks.pickle"
    path.write_bytes(pickle.dumps(picks.sp_explanations))
    return [len(one.as_map()) for one in pickle.loads(path.read_bytes())]


def a_notebook_of_picks(lime, tmp):
    picks = _picked(lime, sample_size=5, num_exps_desired=2)
    return [one.show_in_notebook(show_table=True) for one in picks.sp_explanations]


# -- pages, figures, threads ---------------------------------------------------------------------------------


def a_page_of_xgboost(lime, tmp):
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=10, max_depth=3, random_state=0, n_jobs=1).fit(X, CLASS)
    explanation = _explained(lime, model.predict_proba)
    explanation.save_to_file(tmp / "boosted.html")
    return (tmp / "boosted.html").stat().st_size > 0, len(explanation.as_list())


def a_figure_of_lightgbm(lime, tmp):
    import lightgbm

    model = lightgbm.LGBMRegressor(n_estimators=10, num_leaves=4, verbose=-1, n_jobs=1).fit(
        X, NUMBER.predict(X)
    )
    explanation = _explained(lime, model.predict, options={"mode": "regression"})
    figure = explanation.as_pyplot_figure()
    bars = len(figure.axes[0].patches)
    plt.close(figure)
    return bars, explanation.as_list()[0][0]


def a_page_rewritten(lime, tmp):
    page = _explained(lime).as_html(show_table=True)
    page = page.replace("<body>", '<body style="background: white">')
    (tmp / "rewritten.html").write_text(page, encoding="utf-8")
    return "background: white" in page, page.lower().count("</body>")


def rows_in_threads(lime, tmp):
    explainer = _explainer(lime, random_state=None)
    explain = delayed(
        lambda row: explainer.explain_instance(row, FOREST.predict_proba, num_samples=500).as_map()
    )
    results = Parallel(n_jobs=2, prefer="threads")(explain(row) for row in X[:6])
    return [len(result[1]) for result in results]


# -- surrogates and subclasses -------------------------------------------------------------------------------


def a_subclass_that_calls_super(lime, tmp):
    class Named(lime.lime_tabular.LimeTabularExplainer):
        def __init__(self, data, **options):
            super().__init__(data, **options)
            self.calls = 0

        def explain_instance(self, data_row, predict_fn, **options):
            self.calls += 1
            explanation = super().explain_instance(data_row, predict_fn, **options)
            explanation.names = dict(explanation.as_list())
            return explanation

    explainer = Named(X, feature_names=NAMES, random_state=0)
    explanation = explainer.explain_instance(ROW, FOREST.predict_proba, num_samples=2500)
    return explainer.calls, explanation.names


def the_base_and_its_methods(lime, tmp):
    base = lime.lime_base.LimeBase(lambda d: np.exp(-(d**2) / 2), random_state=0)
    rng = np.random.default_rng(1)
    z = rng.integers(0, 2, (300, 5)).astype(float)
    z[0] = 1
    answers = z @ [2.0, -1.0, 0.0, 0.5, 0.0] + 0.01 * rng.normal(size=300)
    weights = np.exp(-(5 - z.sum(axis=1)) / 5)
    root = np.sqrt(weights)
    _, path = base.generate_lars_path(z * root[:, None], answers * root)
    kept = [
        sorted(int(j) for j in base.feature_selection(z, answers, weights, 2, method))
        for method in ("forward_selection", "highest_weights", "lasso_path")
    ]
    return path.shape[0], kept, [int(j) for j in base.forward_selection(z, answers, weights, 3)]


def robust_regressors(lime, tmp):
    results = [
        _explained(lime, chances, model_regressor=regressor, num_features=4).as_map()[1]
        for regressor in (HuberRegressor(max_iter=1000), BayesianRidge())
    ]
    return [dict(pairs) for pairs in results]


def a_fork_of_the_regression(lime, tmp):
    """The body of lime's method is copied, and changed here and there."""
    from lime import explanation as lime_explanation
    from lime import lime_tabular

    class Fork(lime_tabular.LimeTabularExplainer):
        def explain_instance(self, data_row, predict_fn, num_features=10, num_samples=2500):
            data, inverse = self._LimeTabularExplainer__data_inverse(data_row, num_samples)
            scaled = (data - self.scaler.mean_) / self.scaler.scale_
            distances = np.sqrt(((scaled - scaled[0]) ** 2).sum(axis=1))
            answers = predict_fn(inverse)
            cells = self.discretizer.discretize(data_row)
            conditions = [self.discretizer.names[j][int(cells[j])] for j in range(len(data_row))]
            mapper = lime_tabular.TableDomainMapper(
                self.feature_names,
                self.convert_and_round(data_row),
                scaled[0],
                categorical_features=range(len(data_row)),
                discretized_feature_names=conditions,
            )
            result = lime_explanation.Explanation(mapper, mode=self.mode, class_names=self.class_names)
            result.predicted_value = answers[0]
            result.min_value, result.max_value = min(answers), max(answers)
            result.intercept[0], result.local_exp[0], result.score, result.local_pred = (
                self.base.explain_instance_with_data(
                    scaled,
                    answers[:, None],
                    distances,
                    0,
                    num_features,
                    feature_selection=self.feature_selection,
                )
            )
            result.intercept[1] = result.intercept[0]
            result.local_exp[1] = list(result.local_exp[0])
            result.local_exp[0] = [(j, -weight) for j, weight in result.local_exp[1]]
            return result

    explainer = Fork(X, mode="regression", feature_names=NAMES, random_state=0)
    result = explainer.explain_instance(ROW, NUMBER.predict)
    result.save_to_file(tmp / "fork.html")
    assert result.min_value <= result.predicted_value <= result.max_value
    return dict(result.as_list()), float(result.predicted_value)


# -- what fails in lime, and some of it here -----------------------------------------------------------------


def classes_for_probabilities(lime, tmp):
    return _explained(lime, THREE.predict).as_list()


def a_frame_with_texts(lime, tmp):
    frame = FRAME.assign(town=np.where(CLASS > 0, "Bern", "Graz"))

    def predict(rows):
        bern = (pd.DataFrame(rows, columns=frame.columns)["town"] == "Bern").to_numpy(dtype=float)
        return np.column_stack([1 - bern, bern])

    explainer = lime.lime_tabular.LimeTabularExplainer(frame, categorical_features=["town"], random_state=0)
    return dict(explainer.explain_instance(frame.iloc[0], predict, num_samples=500).as_list())
