"""Arguments that lime accepts although they are meaningless: they run here too, with a warning.

Each is tried with ``lime`` itself, with both engines, and strictly. Those without a warning mean what lime
makes of them.
"""

from __future__ import annotations

import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from compat.client_material import (
    CLASS,
    CODED,
    CODED_MODEL,
    NAMES,
    PICTURE,
    PIPELINE,
    ROW,
    SEQUENCES,
    TEXT,
    X,
    chances,
    colours,
    nine,
    of_last,
)
from compat.lime_alias import installed
from compat.test_clients import check_alike, modules
from effort import crossed
from limes.compat.lime import engine
from limes.exceptions import InputError, LimesError

SPARSE = csr_matrix(np.where(X > 2, X, 0))


def table(lime, data=X, row=ROW, fn=chances, options=None, **call):
    explainer = lime.lime_tabular.LimeTabularExplainer(data, **({"random_state": 0} | (options or {})))
    return _numbers(explainer.explain_instance(row, fn, **({"num_samples": 2500} | call)))


def text(lime, fn=PIPELINE.predict_proba, options=None, **call):
    explainer = lime.lime_text.LimeTextExplainer(**({"random_state": 0} | (options or {})))
    return _numbers(explainer.explain_instance(TEXT, fn, **({"num_samples": 1000} | call)))


def image(lime, picture=PICTURE, fn=colours, options=None, **call):
    explainer = lime.lime_image.LimeImageExplainer(**({"random_state": 0} | (options or {})))
    call = {"segmentation_fn": nine, "num_samples": 600, "hide_color": 0, "top_labels": 1} | call
    return _numbers(explainer.explain_instance(picture, fn, **call))


def _numbers(explanation):
    """Coefficients by label and feature."""
    return {
        int(label): {str(j): float(v) for j, v in pairs} for label, pairs in explanation.local_exp.items()
    }


def regression(rows):
    return np.column_stack([rows[:, 0] / 10 - 3 * rows[:, 2], rows[:, 1]])


def sparse_chances(rows):
    return chances(rows.toarray() if hasattr(rows, "toarray") else rows)


def coded(lime, row=CODED[0], data=CODED, features=(0, 1), **options):
    options = {"categorical_features": features} | options
    return table(lime, data, row, CODED_MODEL.predict_proba, options)


def discretizer(lime, name):
    class Rounded(lime.discretize.QuartileDiscretizer):
        def undiscretize(self, data):
            return np.round(super().undiscretize(data), 1)

    class Means(lime.discretize.QuartileDiscretizer):
        def get_undiscretize_values(self, feature, values):
            return np.asarray(self.means[feature])[values]

    class FirstTwo(lime.discretize.BaseDiscretizer):
        def bins(self, data, labels):
            return [np.quantile(data[:, j], [0.5]) for j in range(2)]

    kind = {"undiscretize": Rounded, "values": Means, "few edges": FirstTwo}[name]
    return table(lime, options={"discretizer": kind(X, [], NAMES, random_state=0)})


def statistics(lime, columns):
    bins = lime.discretize.QuartileDiscretizer(X, [], NAMES)
    cells = bins.discretize(X)
    stats = {
        "means": bins.means,
        "mins": bins.mins,
        "maxs": bins.maxs,
        "stds": bins.stds,
        "feature_values": {j: [0, 1, 2, 3] for j in range(4)},
        "feature_frequencies": {j: np.bincount(cells[:, j].astype(int)).tolist() for j in range(4)},
        "bins": {j: np.percentile(X[:, j], [25, 50, 75]) for j in range(columns)},
    }
    return table(lime, options={"training_data_stats": stats}, num_samples=8000)


def selection(lime):
    class Base(lime.lime_base.LimeBase):
        def feature_selection(self, data, labels, weights, num_features, method):
            assert method == "mine"
            return np.array([0, 2])

    explainer = lime.lime_tabular.LimeTabularExplainer(X, feature_selection="mine", random_state=0)
    explainer.base = Base(explainer.base.kernel_fn)
    return _numbers(explainer.explain_instance(ROW, chances, num_samples=2500))


def recurrent(lime, row=SEQUENCES[0], names=("load", "heat")):
    explainer = lime.lime_tabular.RecurrentTabularExplainer(
        SEQUENCES, feature_names=list(names), random_state=0
    )
    return _numbers(explainer.explain_instance(row, of_last, num_samples=2500))


def pick(lime, data=X[:5], **options):
    from lime.submodular_pick import SubmodularPick

    explainer = lime.lime_tabular.LimeTabularExplainer(X, random_state=0)
    picked = SubmodularPick(explainer, data, chances, num_samples=100, **options)
    return len(picked.explanations), len(picked.sp_explanations)


def segments(lime, *names, **options):
    from lime.wrappers.scikit_image import SegmentationAlgorithm

    return np.unique(SegmentationAlgorithm(*names, **options)(PICTURE)).size > 0


def page(lime, mapper="DomainMapper", **options):
    class Waves(lime.explanation.DomainMapper):
        def visualize_instance_html(self, exp, label, div_name, exp_object_name, wave=None):
            return f"// {wave}"

    mapper = Waves() if mapper == "Waves" else lime.explanation.DomainMapper()
    result = lime.explanation.Explanation(mapper, class_names=["a", "b"])
    result.local_exp, result.intercept = {1: [(0, 0.5)]}, {1: 0.1}
    result.predict_proba = np.array([0.2, 0.8])
    return "</html>" in result.as_html(**options)


def indexed(lime, kind, raw):
    words = getattr(lime.lime_text, kind)(raw)
    return words.num_words(), words.raw_string(), words.inverse_removing([])


def one_column(fn, factor=1.0):
    return lambda batch: factor * fn(batch)[:, 1:]


def unchecked(lime, kernel_width, kind):
    """A kernel of one's own that ignores the width."""
    options = {"kernel": lambda d, kernel_width: np.exp(-d / 2), "kernel_width": kernel_width}
    return kind(lime, options=options)


NONE = {"feature_selection": "none"}
# name: (call, what the warning says, "" for none)
CASES = {
    "a label from the end": (lambda m: table(m, labels=(-1,)), "from the last answer"),
    "a label from the end, text": (lambda m: text(m, labels=[-1]), "from the last answer"),
    "a label from the end, image": (
        lambda m: image(m, labels=(-2,), top_labels=None),
        "from the last answer",
    ),
    "no label": (lambda m: len(table(m, labels=())), "labels is empty"),
    "no label, text": (lambda m: len(text(m, labels=[])), "labels is empty"),
    "no label, image": (lambda m: len(image(m, labels=[], top_labels=None)), "labels is empty"),
    "top labels: true": (lambda m: table(m, top_labels=True), "it cuts the list"),
    "all but the lowest label": (lambda m: text(m, top_labels=-1), "it cuts the list"),
    "more features than columns, a float": (lambda m: table(m, num_features=5.0), "cuts the list of"),
    "one feature: true": (lambda m: table(m, num_features=True), "cuts the list of"),
    "all features, none of them": (lambda m: table(m, num_features=0, options=NONE), "all features"),
    "all features, None": (lambda m: text(m, num_features=None, options=NONE), "all features"),
    "all but the smallest feature": (
        lambda m: table(m, num_features=-1, options={"feature_selection": "highest_weights"}),
        "cuts the list of",
    ),
    "a path to infinity": (
        lambda m: table(m, num_features=np.inf, options={"feature_selection": "lasso_path"}),
        "the path ends",
    ),
    "a selection of one's own": (selection, "only a base of your own"),
    "an infinite width": (lambda m: table(m, options={"kernel_width": np.inf}), ""),
    "an infinite width, text": (lambda m: text(m, options={"kernel_width": np.inf}), ""),
    "a negative width": (lambda m: table(m, options={"kernel_width": -3}), "its sign does not matter"),
    "a negative width, text": (lambda m: text(m, options={"kernel_width": -25}), "its sign does not matter"),
    "a negative width, image": (lambda m: image(m, options={"kernel_width": -0.5}), "sign does not matter"),
    "a width as a text": (lambda m: table(m, options={"kernel_width": "3"}), ""),
    "a width as an array": (lambda m: table(m, options={"kernel_width": np.array(3.0)}), ""),
    "no width for a kernel": (lambda m: unchecked(m, 0, table), ""),
    "None for a kernel, text": (lambda m: unchecked(m, None, text), ""),
    "a negative width for a kernel, image": (lambda m: unchecked(m, -1, image), ""),
    "several numbers of a regression": (
        lambda m: table(m, fn=regression, options={"mode": "regression"}),
        "the first is explained",
    ),
    "a column of scores": (lambda m: table(m, fn=one_column(chances, 5.0), labels=(0,)), ""),
    "a column of scores, text": (
        lambda m: text(m, fn=one_column(PIPELINE.predict_proba, 5.0), labels=(0,)),
        "",
    ),
    "a column of probabilities": (lambda m: table(m, fn=one_column(chances), labels=(0,)), ""),
    "the top of a column": (lambda m: table(m, fn=one_column(chances), top_labels=1), ""),
    "names of more classes than a column has": (
        lambda m: table(m, fn=one_column(chances), labels=(0,), options={"class_names": ["a", "b"]}),
        "predict_fn answers 1 number a row",
    ),
    "a category that is new": (lambda m: coded(m, np.r_[7.0, CODED[0, 1:]]), "does not occur"),
    "a category that is new, without bins": (
        lambda m: coded(m, np.r_[7.0, CODED[0, 1:]], discretize_continuous=False),
        "does not occur",
    ),
    "categories that are no columns": (lambda m: coded(m, features=(0, 1, 7)), r"columns \[0, 1\] are"),
    "negative positions in bins": (lambda m: coded(m, features=(0, 1, -1)), r"columns \[0, 1\] are"),
    "negative positions without bins": (
        lambda m: coded(m, features=(0, -3), discretize_continuous=False),
        r"columns \[0, 1\] are",
    ),
    "a mask of categories": (
        lambda m: coded(m, features=[True, True, False, False]),
        r"columns \[0, 1\] are",
    ),
    "names of some columns": (
        lambda m: table(m, options={"feature_names": ["a"], "discretize_continuous": False}),
        "the others are called by their position",
    ),
    "labels of other rows": (lambda m: table(m, options={"training_labels": CLASS[:5]}), ""),
    "labels that are missing": (lambda m: table(m, options={"training_labels": [np.nan] * 150}), ""),
    "labels in a frame": (lambda m: table(m, options={"training_labels": pd.DataFrame(CLASS)}), ""),
    "labels of two columns": (
        lambda m: table(m, options={"training_labels": np.eye(2)[CLASS], "discretizer": "entropy"}),
        "",
    ),
    "a discretizer that draws": (lambda m: discretizer(m, "undiscretize"), ""),
    "a discretizer that draws a column": (lambda m: discretizer(m, "values"), ""),
    "a discretizer of some columns": (lambda m: discretizer(m, "few edges"), "edges of 2 columns, of 4"),
    "statistics without edges": (lambda m: statistics(m, 0), "no edges for column 0"),
    "statistics with some edges": (lambda m: statistics(m, 2), "no edges for column 2"),
    "a dense row of a sparse table": (
        lambda m: table(m, SPARSE, SPARSE[3].toarray()[0], sparse_chances),
        "zeros too, as in lime",
    ),
    "a row of zeros": (
        lambda m: len(table(m, SPARSE, csr_matrix((1, 4)), sparse_chances)),
        "nothing is changed",
    ),
    "names of some sparse columns": (
        lambda m: len(table(m, SPARSE, SPARSE[3], sparse_chances, {"feature_names": ["a"]})),
        "the others are called by their position",
    ),
    "a target among the features of a step": (
        lambda m: recurrent(m, names=("load", "heat", "target")),
        "the first 2 are used",
    ),
    "a sequence with its axes exchanged": (lambda m: recurrent(m, SEQUENCES[0].T), "its transpose is read"),
    "a sequence among several": (lambda m: recurrent(m, SEQUENCES[:1]), ""),
    "batches of none": (lambda m: image(m, batch_size=0), "600 images are asked at once"),
    "batches of whatever": (lambda m: image(m, batch_size=None), "600 images are asked at once"),
    "batches of a float": (lambda m: image(m, batch_size=8.0), "8 images are asked at once"),
    "a colour to be spread": (lambda m: image(m, hide_color=[0]), ""),
    "a row of colours": (lambda m: image(m, hide_color=np.zeros((24, 3))), ""),
    "an image of many channels": (lambda m: image(m, np.repeat(PICTURE, 4, axis=2)[..., ::4]), ""),
    "an image of five channels": (
        lambda m: image(m, np.dstack([PICTURE, PICTURE[..., :2]])),
        "the classifier gets it as it is",
    ),
    "an image of two channels": (
        lambda m: image(m, PICTURE[..., :2], lambda v: colours(v[..., [0, 1, 1]])),
        "the classifier gets it as it is",
    ),
    "pixels without a number": (
        lambda m: image(m, np.where(PICTURE > 200, np.nan, PICTURE), lambda v: colours(np.nan_to_num(v))),
        "the classifier gets it as it is",
    ),
    "an invalid seed": (
        lambda m: len(image(m, random_seed=-1, segmentation_fn=None, num_samples=100)),
        "it is ignored",
    ),
    "parameters of another segmentation": (
        lambda m: segments(m, "quickshift", compactness=1, sigma=1, random_seed=3),
        "'compactness' is not a parameter of quickshift",
    ),
    "a misspelt parameter of a segmentation": (
        lambda m: segments(m, "slic", kernal_size=3, n_segments=4),
        "'kernal_size' is not a parameter of slic",
    ),
    "picks as a text": (lambda m: pick(m, num_exps_desired="2"), "2 are picked"),
    "no picks": (lambda m: pick(m, num_exps_desired=0), "0 are picked"),
    "picks of no rows": (lambda m: pick(m, data=X[:0], num_exps_desired=0, method="full"), "no rows|0 are"),
    "a size that is not used": (lambda m: pick(m, method="full", sample_size=None, num_exps_desired=2), ""),
    "options of a page": (lambda m: page(m, wave=1), "has no option 'wave'"),
    "options of a mapper": (lambda m: page(m, "Waves", wave=1), "run no script"),
    "a text without words": (lambda m: indexed(m, "IndexedString", "... !"), ""),
    "an empty text": (lambda m: indexed(m, "IndexedCharacters", ""), ""),
    "a random name": (lambda m: len(m.explanation.id_generator(7, np.random.RandomState(0))), ""),
}


@cache
def theirs(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CASES[name][0](modules())


@pytest.mark.parametrize(("name", "chosen"), crossed(CASES, ["limit", "lime"]))
def test_it_runs_as_in_lime(name, chosen):
    call, says = CASES[name]
    with installed(), engine(chosen), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours = call(modules())
    # of picks that more rows are asked for than there are, lime says too
    relevant = [str(w.message) for w in caught if not str(w.message).startswith("sample_size=")]
    assert bool(relevant) == bool(says), relevant
    assert all(re.search(says, message) for message in relevant)
    check_alike(ours, theirs(name))


@pytest.mark.parametrize("name", [name for name, (_, says) in CASES.items() if says])
def test_strictly_it_is_an_error(name):
    with installed(strict=True), pytest.raises(InputError):
        CASES[name][0](modules())


@pytest.mark.parametrize("chosen", ["limit", "lime"])
def test_an_explanation_without_labels_has_nothing_to_show(chosen):
    with installed(), engine(chosen):
        explainer = modules().lime_tabular.LimeTabularExplainer(X, random_state=0)
        with pytest.warns(UserWarning, match="labels is empty"):
            result = explainer.explain_instance(ROW, chances, labels=(), num_samples=100)
    assert (result.score, result.limes, result.available_labels()) == (None, None, [])
    assert result.predict_proba[1] == pytest.approx(chances(ROW[None])[0, 1])
    with pytest.raises(LimesError, match="no label was explained"):
        result.as_html()


def test_a_new_category_is_shown():
    with installed():
        explainer = modules().lime_tabular.LimeTabularExplainer(CODED, categorical_features=[0, 1])
        with pytest.warns(UserWarning, match="does not occur"):
            result = explainer.explain_instance(np.r_[7.0, CODED[0, 1:]], CODED_MODEL.predict_proba)
    assert result.limes.data[0].tolist() == [7.0, *CODED[0, 1:]]
    assert "0=7" in dict(result.as_list())
    assert "a category that training_data lacks" in result.engine_reason


def test_a_text_without_words_is_not_explained():
    with pytest.raises(InputError, match="finds no words"), installed():
        modules().lime_text.LimeTextExplainer().explain_instance("... !", PIPELINE.predict_proba)
