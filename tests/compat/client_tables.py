"""How public code calls ``lime`` on tables: each function is a pattern; it returns what such code works with.

``lime`` is the package, the genuine one or that of the drop-in; ``tmp`` is an empty folder.
"""

from __future__ import annotations

import io
import pickle

import numpy as np
import pandas as pd
import sklearn.preprocessing
from matplotlib import pyplot as plt
from scipy.sparse import csr_matrix
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Lasso, LinearRegression, Ridge

from compat.client_material import (
    CLASS,
    CODED,
    CODED_MODEL,
    FOREST,
    FRAME,
    JOBS,
    NAMES,
    NUMBER,
    ROW,
    SCORE,
    SEQUENCES,
    THREE,
    TOWNS,
    X,
    chances,
    of_last,
)

CLASSES = ["refused", "granted"]


def _explainer(lime, **options):
    options = {"feature_names": NAMES, "class_names": CLASSES, "random_state": 0} | options
    return lime.lime_tabular.LimeTabularExplainer(X, **options)


def _explained(lime, predict=FOREST.predict_proba, *, row=ROW, options=None, **call):
    return _explainer(lime, **(options or {})).explain_instance(row, predict, num_samples=2500, **call)


# -- results that are read -----------------------------------------------------------------------------------


def the_list_of_a_forest(lime, tmp):
    return _explained(lime, num_features=4).as_list()


def the_map_of_two_labels(lime, tmp):
    result = _explained(lime, labels=(0, 1)).as_map()
    return {label: dict(pairs) for label, pairs in result.items()}


def the_top_label_of_three(lime, tmp):
    options = {"class_names": ["low", "mid", "high"]}
    explanation = _explained(lime, THREE.predict_proba, options=options, top_labels=1)
    top = explanation.available_labels()[0]
    return top, explanation.top_labels, explanation.as_list(label=top)


def all_labels_of_a_range(lime, tmp):
    explanation = _explained(lime, THREE.predict_proba, options={"class_names": None}, labels=range(3))
    return sorted(explanation.available_labels()), {k: len(explanation.as_list(label=k)) for k in range(3)}


def few_features(lime, tmp):
    return len(_explained(lime, num_features=2).as_list())


def sorted_local_exp(lime, tmp):
    result = _explained(lime).local_exp[1]
    order = sorted(result, key=lambda pair: pair[0])
    return [position for position, _ in order], np.array([weight for _, weight in order])


def a_table_of_coefficients(lime, tmp):
    """The coefficients of several rows, one column a feature."""
    explainer = _explainer(lime)
    rows = [
        dict(explainer.explain_instance(row, FOREST.predict_proba, num_samples=2500).as_map()[1])
        for row in X[:3]
    ]
    return pd.DataFrame(rows)[[0, 1, 2, 3]].to_numpy()


def names_from_the_list_by_splitting(lime, tmp):
    """Column names are searched in the conditions."""
    conditions = [condition for condition, _ in _explained(lime).as_list()]
    return sorted({next(name for name in NAMES if name in condition) for condition in conditions})


def the_model_s_answer(lime, tmp):
    result = _explained(lime)
    return result.predict_proba, int(result.predict_proba.argmax()), result.class_names


def intercept_score_and_surrogate(lime, tmp):
    surrogate = _explained(lime)
    return (
        surrogate.intercept[1],
        float(surrogate.score),
        [float(p) for p in surrogate.local_pred],
        surrogate.local_pred[-1],
    )


def formatted_numbers(lime, tmp):
    surrogate = _explained(lime)
    texts = f"{surrogate.score:.3f}", f"{surrogate.local_pred[0]:.2f}", f"{surrogate.intercept[1]:.4f}"
    return [float(text) for text in texts]


def a_regression(lime, tmp):
    explanation = _explained(lime, NUMBER.predict, options={"mode": "regression"})
    return explanation.as_list(), explanation.as_map().keys(), explanation.mode, explanation.dummy_label


def numbers_of_a_regression(lime, tmp):
    surrogate = _explained(lime, NUMBER.predict, options={"mode": "regression"})
    assert surrogate.min_value <= surrogate.predicted_value <= surrogate.max_value
    return surrogate.predicted_value, surrogate.intercept[1], surrogate.local_pred[0]


def a_regression_with_labels(lime, tmp):
    """Class names and labels of a regression are passed, and mean nothing."""
    return _explained(
        lime, NUMBER.predict, options={"mode": "regression", "class_names": ["score"]}, labels=(0,)
    ).as_list(label=1)


def a_network_s_column(lime, tmp):
    """Keras answers (n, 1) of a regression."""
    return _explained(
        lime, lambda rows: NUMBER.predict(rows).reshape(-1, 1), options={"mode": "regression"}
    ).as_list()


def the_domain_mapper(lime, tmp):
    mapper = _explained(lime).domain_mapper
    return list(mapper.feature_names), len(mapper.feature_values), len(mapper.discretized_feature_names)


def printed(lime, tmp):
    """With verbose the surrogate is printed."""
    from contextlib import redirect_stdout

    with redirect_stdout(io.StringIO()) as text:
        _explained(lime, options={"verbose": True})
    return [line.split()[0] for line in text.getvalue().splitlines()]


def mapped_names(lime, tmp):
    explanation = _explained(lime)
    return dict(explanation.domain_mapper.map_exp_ids(explanation.local_exp[1]))


# -- results that are shown ----------------------------------------------------------------------------------


def a_page(lime, tmp):
    page = _explained(lime).as_html(labels=[1], predict_proba=True, show_predicted_value=True)
    return isinstance(page, str), "granted" in page


def a_file(lime, tmp):
    path = tmp / "explanation.html"
    _explained(lime).save_to_file(str(path), show_table=True, show_all=False)
    return path.exists()


def a_notebook(lime, tmp):
    return _explained(lime, num_features=3).show_in_notebook(show_table=True, show_all=False)


def a_notebook_of_a_regression(lime, tmp):
    result = _explained(lime, NUMBER.predict, options={"mode": "regression"})
    return result.show_in_notebook(show_predicted_value=False)


def a_figure(lime, tmp):
    figure = _explained(lime).as_pyplot_figure()
    figure.set_size_inches(6, 4)
    figure.savefig(tmp / "figure.png")
    bars = len(figure.axes[0].patches)
    plt.close(figure)
    return bars, (tmp / "figure.png").exists()


def a_figure_of_a_label(lime, tmp):
    figure = _explained(lime, labels=(0,)).as_pyplot_figure(label=0)
    figure.set_size_inches(4, 3)
    plt.tight_layout()
    size = figure.get_size_inches()
    plt.close(figure)
    return size, len(figure.axes)


# -- options -------------------------------------------------------------------------------------------------


def positions_of_categories(lime, tmp):
    explainer = lime.lime_tabular.LimeTabularExplainer(
        CODED,
        feature_names=["job", "town", "income", "debt"],
        categorical_features=[0, 1],
        categorical_names={0: JOBS, 1: TOWNS},
        random_state=0,
    )
    explanation = explainer.explain_instance(CODED[0], CODED_MODEL.predict_proba, num_samples=2500)
    return explanation.as_list()


def encoded_categories(lime, tmp):
    """Codes are one-hot encoded inside the function, as in lime's own tutorial."""
    encoder = sklearn.preprocessing.OneHotEncoder().fit(CODED[:, :2])

    def widened(rows):
        return np.hstack([encoder.transform(rows[:, :2]).toarray(), rows[:, 2:]])

    forest = RandomForestClassifier(8, max_depth=4, random_state=0).fit(
        widened(CODED), CODED_MODEL.predict(CODED)
    )
    explainer = lime.lime_tabular.LimeTabularExplainer(
        CODED, categorical_features=[0, 1], categorical_names={0: JOBS, 1: TOWNS}, random_state=0
    )
    result = explainer.explain_instance(
        CODED[0], lambda rows: forest.predict_proba(widened(rows)), num_samples=2500
    )
    return dict(result.as_map()[1])


def deciles(lime, tmp):
    return dict(_explained(lime, options={"discretizer": "decile"}).as_map()[1])


def entropy_bins(lime, tmp):
    return dict(_explained(lime, options={"discretizer": "entropy", "training_labels": CLASS}).as_map()[1])


def no_bins(lime, tmp):
    return _explained(lime, options={"discretize_continuous": False}).as_list()


def no_bins_around_the_row(lime, tmp):
    options = {"discretize_continuous": False, "sample_around_instance": True}
    return _explained(lime, chances, options=options).as_list()


def bins_around_the_row(lime, tmp):
    options = {"discretizer": "decile", "sample_around_instance": True}
    return dict(_explained(lime, options=options).as_map()[1])


def a_kernel_width(lime, tmp):
    return dict(_explained(lime, options={"kernel_width": 3}).as_map()[1])


def a_kernel(lime, tmp):
    options = {"kernel": lambda d, kernel_width: np.exp(-d / kernel_width)}
    return dict(_explained(lime, chances, options=options).as_map()[1])


def another_distance(lime, tmp):
    return dict(_explained(lime, chances, distance_metric="manhattan").as_map()[1])


def another_regressor(lime, tmp):
    result = [
        _explained(lime, chances, model_regressor=regressor).as_map()[1]
        for regressor in (Ridge(alpha=0.1), LinearRegression(), Lasso(alpha=1e-4))
    ]
    return [dict(pairs) for pairs in result]


def every_selection(lime, tmp):
    methods = ("none", "auto", "forward_selection", "highest_weights", "lasso_path")
    return {
        method: len(_explained(lime, options={"feature_selection": method}, num_features=3).as_list())
        for method in methods
    }


def a_generator_as_seed(lime, tmp):
    options = {"random_state": np.random.RandomState(3)}
    return dict(_explained(lime, options=options).as_map()[1])


def a_wrapped_frame(lime, tmp):
    """The model wants names, the function gives them back."""
    forest = RandomForestClassifier(8, max_depth=4, random_state=0).fit(FRAME, CLASS)
    explainer = lime.lime_tabular.LimeTabularExplainer(
        FRAME.values, feature_names=list(FRAME.columns), random_state=0
    )
    predict = lambda rows: forest.predict_proba(pd.DataFrame(rows, columns=FRAME.columns))  # noqa: E731
    result = explainer.explain_instance(FRAME.values[3], predict, num_samples=2500)
    return dict(result.as_map()[1])


def fewer_class_names(lime, tmp):
    return dict(_explained(lime, options={"class_names": ["granted"]}).as_map()[1])


def a_target_among_the_names(lime, tmp):
    return dict(_explained(lime, options={"feature_names": [*NAMES, "target"]}).as_map()[1])


def statistics_in_place_of_data(lime, tmp):
    from numpy import array

    discretizer = lime.discretize.QuartileDiscretizer(X, [], NAMES)
    cells = discretizer.discretize(X)
    values = {j: np.unique(cells[:, j]).tolist() for j in range(4)}
    counts = {j: array([(cells[:, j] == v).sum() for v in values[j]]) for j in range(4)}
    stats = {
        "means": discretizer.means,
        "mins": discretizer.mins,
        "maxs": discretizer.maxs,
        "stds": discretizer.stds,
        "feature_values": values,
        "feature_frequencies": counts,
        "bins": {j: np.percentile(X[:, j], [25, 50, 75]) for j in range(4)},
    }
    options = {"training_data_stats": stats, "discretizer": discretizer}
    return dict(_explained(lime, options=options).as_map()[1])


def a_sparse_table(lime, tmp):
    sparse = csr_matrix(np.where(X > 2, X, 0))
    explainer = lime.lime_tabular.LimeTabularExplainer(sparse, random_state=0)
    result = explainer.explain_instance(
        sparse[3], lambda rows: FOREST.predict_proba(rows.toarray()), num_features=2, num_samples=300
    )
    return len(result.as_map()[1])


# -- other classes -------------------------------------------------------------------------------------------


def _picked(lime, **options):
    from lime import submodular_pick

    data = options.pop("data", X[:12])
    return submodular_pick.SubmodularPick(
        _explainer(lime), data, FOREST.predict_proba, num_features=4, num_samples=400, **options
    )


def a_submodular_pick(lime, tmp):
    result = _picked(lime, sample_size=6, num_exps_desired=2)
    return len(result.explanations), len(result.sp_explanations), len(result.V)


def a_submodular_pick_of_all(lime, tmp):
    result = _picked(lime, method="full", num_exps_desired=3)
    frame = pd.DataFrame([dict(one.as_list(one.available_labels()[0])) for one in result.sp_explanations])
    return len(frame), len(result.explanations)


def figures_of_a_submodular_pick(lime, tmp):
    result = _picked(lime, sample_size=5, num_exps_desired=2)
    figures = [one.as_pyplot_figure(label=one.available_labels()[0]) for one in result.sp_explanations]
    for figure in figures:
        plt.close(figure)
    return len(figures)


def a_recurrent_network(lime, tmp):
    explainer = lime.lime_tabular.RecurrentTabularExplainer(
        SEQUENCES, feature_names=["load", "heat"], class_names=CLASSES, random_state=0
    )
    return explainer.explain_instance(SEQUENCES[0], of_last, num_features=6, num_samples=2500).as_list()


def a_recurrent_network_of_a_number(lime, tmp):
    explainer = lime.lime_tabular.RecurrentTabularExplainer(
        SEQUENCES,
        mode="regression",
        feature_names=["load", "heat"],
        discretize_continuous=False,
        random_state=0,
    )
    explanation = explainer.explain_instance(SEQUENCES[0], lambda s: of_last(s)[:, 1], num_samples=2500)
    return explanation.as_list()


def a_flat_sequence(lime, tmp):
    explainer = lime.lime_tabular.RecurrentTabularExplainer(
        SEQUENCES[:, :1], feature_names=["load", "heat"], random_state=0
    )
    result = explainer.explain_instance(
        SEQUENCES[0, 0], lambda s: of_last(np.repeat(s, 3, axis=1)), num_samples=2500
    )
    return dict(result.as_map()[1])


def discretizers(lime, tmp):
    result = {}
    for name in ("QuartileDiscretizer", "DecileDiscretizer", "EntropyDiscretizer"):
        discretizer = getattr(lime.discretize, name)(X, [], NAMES, labels=CLASS, random_state=0)
        cells = discretizer.discretize(X)
        rows = discretizer.undiscretize(cells.copy())
        assert (discretizer.discretize(rows) == cells).mean() > 0.95
        result[name] = cells, {j: len(names) for j, names in discretizer.names.items()}
    return result


def a_discretizer_of_one_s_own(lime, tmp):
    class Halves(lime.discretize.BaseDiscretizer):
        def __init__(self, data):
            super().__init__(data, [], NAMES, labels=None, random_state=0)

        def bins(self, data, labels):
            return [np.array([np.median(column)]) for column in data.T]

    return dict(_explained(lime, options={"discretizer": Halves(X)}).as_map()[1])


def the_explainer_s_discretizer(lime, tmp):
    explainer = _explainer(lime)
    names = explainer.discretizer.names
    cell = explainer.discretizer.discretize(ROW)
    return [names[j][int(cell[j])] for j in range(4)]


def the_explainer_s_attributes(lime, tmp):
    explainer = _explainer(lime)
    return (
        explainer.mode,
        list(explainer.feature_names),
        list(explainer.categorical_features),
        explainer.feature_values,
        explainer.feature_frequencies,
        explainer.class_names,
        explainer.feature_selection,
    )


def the_explainer_s_scaler(lime, tmp):
    """Rows are brought to deviations by the explainer's scaler."""
    explainer = _explainer(lime, discretize_continuous=False)
    return (ROW - explainer.scaler.mean_) / explainer.scaler.scale_


def a_surrogate_by_hand(lime, tmp):
    base = lime.lime_base.LimeBase(lambda d: np.exp(-(d**2)), verbose=False)
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, (200, 4)).astype(float)
    z[0] = 1
    labels = np.column_stack([z @ [1.0, -2.0, 0.5, 0.0], z[:, 0]])
    distances = np.sqrt(((z - z[0]) ** 2).sum(axis=1))
    intercept, pairs, score, local = base.explain_instance_with_data(z, labels, distances, 0, 4)
    return intercept, dict(pairs), score, local


def weights_of_the_base(lime, tmp):
    return _explainer(lime).base.kernel_fn(np.array([0.0, 1.0, 2.0]))


def an_explanation_by_hand(lime, tmp):
    explanation = lime.explanation.Explanation(lime.explanation.DomainMapper(), class_names=CLASSES)
    explanation.local_exp = {1: [(0, 0.5), (2, -0.25)]}
    explanation.intercept = {1: 0.1}
    return explanation.as_list(label=1), explanation.as_map()


def another_domain_mapper(lime, tmp):
    explanation = _explained(lime)
    names = [f"column {j}" for j in range(4)]

    class Mapper(lime.explanation.DomainMapper):
        def map_exp_ids(self, exp, **kwargs):
            return [(names[j], weight) for j, weight in exp]

    explanation.domain_mapper = Mapper()
    return dict(explanation.as_list())


def shortened_local_exp(lime, tmp):
    explanation = _explained(lime)
    explanation.local_exp[1] = [pair for pair in explanation.local_exp[1] if pair[1] > 0]
    return explanation.as_list()


def a_pickled_explanation(lime, tmp):
    result = _explained(lime)
    result.domain_mapper = lime.explanation.DomainMapper()
    return dict(pickle.loads(pickle.dumps(result)).as_map()[1])


# -- customisation -------------------------------------------------------------------------------------------


def another_base(lime, tmp):
    """LEMNA, VSI and CSI replace the surrogate."""

    class Doubled(lime.lime_base.LimeBase):
        def explain_instance_with_data(self, *args, **options):
            intercept, pairs, score, local = super().explain_instance_with_data(*args, **options)
            return intercept, [(j, 2 * weight) for j, weight in pairs], score, local

    class Explainer(lime.lime_tabular.LimeTabularExplainer):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            self.base = Doubled(self.base.kernel_fn, False, random_state=self.random_state)

    result = Explainer(X, random_state=0).explain_instance(ROW, chances, num_samples=2500)
    return dict(result.as_map()[1])


def another_kernel_of_the_base(lime, tmp):
    explainer = _explainer(lime)
    explainer.base.kernel_fn = lambda d: np.exp(-(d**2) / 0.5)
    return dict(explainer.explain_instance(ROW, chances, num_samples=2000).as_map()[1])


def rows_of_the_explainer(lime, tmp):
    data, rows = _explainer(lime)._LimeTabularExplainer__data_inverse(ROW, 200)
    return data.shape, rows.shape, rows[0], data[0]


def rows_of_one_s_own(lime, tmp):
    class Near(lime.lime_tabular.LimeTabularExplainer):
        def _LimeTabularExplainer__data_inverse(self, data_row, num_samples, *_):  # noqa: N802
            rows = data_row + 0.1 * X.std(0) * np.random.default_rng(0).normal(size=(num_samples, 4))
            rows[0] = data_row
            return rows.copy(), rows

    result = Near(X, discretize_continuous=False, random_state=0).explain_instance(
        ROW, chances, num_samples=2500
    )
    return [j for j, _ in result.as_map()[1]]


def another_seed_afterwards(lime, tmp):
    explainer, result = _explainer(lime), []
    for seed in (1, 2):
        explainer.random_state = np.random.RandomState(seed)
        explainer.base.random_state = explainer.random_state
        result.append(dict(explainer.explain_instance(ROW, chances, num_samples=2500).as_map()[1]))
    return result, result[0] != result[1]


def another_selection_afterwards(lime, tmp):
    explainer = _explainer(lime)
    explainer.feature_selection = "none"
    return len(explainer.explain_instance(ROW, chances, num_features=2, num_samples=400).as_list())


def a_global_seed(lime, tmp):
    """An explainer without a seed follows NumPy's."""
    np.random.seed(5)  # noqa: NPY002 - as such code has it
    explainer = lime.lime_tabular.LimeTabularExplainer(X, feature_names=NAMES)
    result = explainer.explain_instance(ROW, FOREST.predict_proba, num_samples=2500)
    return dict(result.as_map()[1])


def scores_as_outputs(lime, tmp):
    """A regression's score is explained as a separate class."""
    both = lambda rows: np.column_stack([-NUMBER.predict(rows), NUMBER.predict(rows)])  # noqa: E731
    assert SCORE.shape == (150,)
    return dict(_explained(lime, both, labels=(1,)).as_map()[1])
