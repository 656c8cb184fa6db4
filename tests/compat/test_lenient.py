"""Calls of public code that lime takes: accepted with a warning, live attributes, overridden methods."""

from __future__ import annotations

import pickle
import subprocess
import sys

import lime.lime_tabular
import lime.lime_text
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from limes.compat.lime.lime_base import LimeBase
from limes.compat.lime.lime_image import LimeImageExplainer
from limes.compat.lime.lime_tabular import LimeTabularExplainer, RecurrentTabularExplainer
from limes.compat.lime.lime_text import LimeTextExplainer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
MODEL = LogisticRegression().fit(X, X[:, 0] - X[:, 2] > 0)
IMAGE = RNG.integers(0, 256, (8, 8, 3)).astype(np.uint8)
QUARTERS = np.repeat(np.repeat([[0, 1], [2, 3]], 4, axis=0), 4, axis=1)
ENGINES = pytest.mark.parametrize("engine", ["limit", "lime"])


def chances(x):
    """A function, of which nothing is read."""
    return MODEL.predict_proba(x)


def lengths(texts):
    p = np.array([0.1 + 0.8 * ("good" in text) for text in texts])
    return np.column_stack([1 - p, p])


def redness(images):
    red = images[..., 0].mean(axis=(1, 2)) / 255
    return np.column_stack([1 - red, red])


def of_image(explainer):
    return explainer.explain_instance(
        IMAGE, redness, hide_color=0, segmentation_fn=lambda image: QUARTERS, progress_bar=False
    )


# -- what lime accepts and cannot mean -----------------------------------------------------------------------


@ENGINES
def test_sampling_around_an_instance_in_bins_is_ignored(engine):
    plain = LimeTabularExplainer(X, random_state=0, engine=engine)
    with pytest.warns(UserWarning, match="it is ignored, as lime does") as caught:
        around = LimeTabularExplainer(X, random_state=0, engine=engine, sample_around_instance=True)
    assert caught[0].filename == __file__
    result = [e.explain_instance(X[0], MODEL.predict_proba) for e in (plain, around)]
    assert result[0].as_list() == result[1].as_list()
    assert result[1].engine == engine


@ENGINES
@pytest.mark.parametrize(("names", "shown"), [(["churn"], ["churn", "1"]), (list("abc"), ["a", "b"])])
def test_names_of_classes_that_do_not_fit(names, shown, engine):
    explainer = LimeTabularExplainer(X, class_names=names, engine=engine)
    with pytest.warns(UserWarning, match=f"class_names has {len(names)} names"):
        result = explainer.explain_instance(X[0], MODEL.predict_proba)
    assert result.class_names == shown


def test_a_name_of_the_target_among_the_columns():
    with pytest.warns(UserWarning, match="the first 4 are used"):
        explainer = LimeTabularExplainer(X, feature_names=["a", "b", "c", "d", "target"])
    assert explainer.feature_names == ["a", "b", "c", "d"]


def test_a_flat_sequence_is_its_columns():
    loads = RNG.normal(size=(60, 3, 2))
    explainer = RecurrentTabularExplainer(loads, mode="regression", random_state=0)
    flat = loads[0].T.ravel()
    result = [explainer.explain_instance(row, lambda x: x[:, 2, 1]).as_list() for row in (loads[0], flat)]
    assert result[0] == result[1]


STRICT = """
import numpy as np
import limes.compat.lime
limes.compat.lime.install(strict=True)
from lime.lime_tabular import LimeTabularExplainer
try:
    LimeTabularExplainer(np.eye(4), sample_around_instance=True)
except ValueError as error:
    print(error)
"""


def test_strict():
    result = subprocess.run([sys.executable, "-c", STRICT], capture_output=True, text=True, check=True)
    assert "pass discretize_continuous=False too" in result.stdout


@ENGINES
def test_the_surrogate_s_prediction_is_lime_s_array(engine):
    theirs = lime.lime_tabular.LimeTabularExplainer(X, random_state=0)
    theirs = theirs.explain_instance(X[0], MODEL.predict_proba, labels=(1, 0)).local_pred
    result = LimeTabularExplainer(X, random_state=0, engine=engine)
    result = result.explain_instance(X[0], MODEL.predict_proba, labels=(1, 0))
    ours = result.local_pred
    assert isinstance(ours, type(theirs))
    assert ours.shape == theirs.shape == (1,)
    assert [float(p) for p in ours] == ours.tolist() == [ours[0]] == [ours[-1]] == [ours.item()]
    assert ours[0] == pytest.approx(theirs[0], abs=0.1)
    assert ours.by_label[0] == ours[0]
    restored = pickle.loads(pickle.dumps(ours))
    assert restored.by_label == ours.by_label


# -- attributes that are rebound -----------------------------------------------------------------------------


@ENGINES
def test_another_selection_of_features(engine):
    explainer = LimeTabularExplainer(X, random_state=0, engine=engine, feature_selection="highest_weights")
    assert len(explainer.explain_instance(X[0], MODEL.predict_proba, num_features=2).as_list()) == 2
    explainer.feature_selection = "none"
    assert len(explainer.explain_instance(X[0], MODEL.predict_proba, num_features=2).as_list()) == 4


@pytest.mark.parametrize("kind", ["lime", "limit"])
def test_another_seed(kind):
    explainer = LimeTabularExplainer(X, random_state=0, engine=kind)
    options = {"num_features": 4, "num_samples": 300}
    first = explainer.explain_instance(X[0], chances, **options).as_list()
    explainer.random_state = np.random.RandomState(7)
    second = explainer.explain_instance(X[0], chances, **options).as_list()
    explainer.random_state = np.random.RandomState(7)
    third = explainer.explain_instance(X[0], chances, **options).as_list()
    assert first != second == third


class Halved(LimeBase):
    """Another surrogate, by the method that lime calls."""

    def explain_instance_with_data(self, data, labels, distances, label, count, **options):
        result = super().explain_instance_with_data(data, labels, distances, label, count, **options)
        return (result[0], [(j, value / 2) for j, value in result[1]], *result[2:])


class Foreign:
    """A base class without the library's methods, as other packages have."""

    def explain_instance_with_data(
        self, data, labels, distances, label, num_features, feature_selection="auto", model_regressor=None
    ):
        assert data.shape[0] == labels.shape[0] == distances.shape[0]
        return 0.5, [(1, 0.25)], 0.75, np.array([0.625])


@ENGINES
def test_another_base_answers(engine):
    explainer = LimeTabularExplainer(X, random_state=0, engine="lime")
    plain = explainer.explain_instance(X[0], chances, num_samples=300)
    explainer = LimeTabularExplainer(X, random_state=0, engine=engine)
    explainer.base = Halved(explainer.base.kernel_fn)
    explanation = explainer.explain_instance(X[0], chances, num_samples=300)
    assert explanation.local_exp[1] == [(j, value / 2) for j, value in plain.local_exp[1]]
    assert explanation.engine == "lime"
    if engine == "limit":
        assert "Halved" in explanation.engine_reason
    explainer.base = Foreign()
    explanation = explainer.explain_instance(X[0], chances, num_samples=300)
    assert explanation.local_exp[1] == [(1, 0.25)]
    assert (explanation.intercept[1], explanation.score[1], explanation.local_pred[0]) == (0.5, 0.75, 0.625)
    assert np.isinf(explanation.standard_errors[1][0][1])


def test_another_kernel_of_the_base():
    explainer = LimeTabularExplainer(X, random_state=0)
    explainer.base.kernel_fn = lambda d: np.exp(-d)
    explanation = explainer.explain_instance(X[0], chances, num_samples=300)
    expected = LimeTabularExplainer(X, random_state=0, kernel=lambda d, kernel_width: np.exp(-d))
    assert explanation.as_list() == expected.explain_instance(X[0], chances, num_samples=300).as_list()
    assert "base.kernel_fn" in explanation.engine_reason


# -- methods that are called or overridden -------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"discretize_continuous": False}])
def test_rows_by_lime_s_private_method(options):
    explainer = LimeTabularExplainer(X, random_state=0, **options)
    data, rows = explainer._LimeTabularExplainer__data_inverse(X[3], 5000, "gaussian")
    theirs = lime.lime_tabular.LimeTabularExplainer(X, random_state=0, **options)
    expected = theirs._LimeTabularExplainer__data_inverse(X[3], 5000)
    np.testing.assert_allclose(rows[0], X[3])
    np.testing.assert_allclose(data[0], expected[0][0])
    # two samples of the same law
    for ours, other in zip((data, rows), expected, strict=True):
        gap = ours.mean(axis=0) - other.mean(axis=0)
        assert (np.abs(gap) < 5 * np.sqrt((ours.var(axis=0) + other.var(axis=0)) / 5000)).all()


def test_rows_of_sparse_tables():
    explainer = LimeTabularExplainer(csr_matrix(X), random_state=0)
    data, rows = explainer._LimeTabularExplainer__data_inverse(csr_matrix(X[:1]), 10)
    assert data.shape == rows.shape == (10, 4)
    np.testing.assert_allclose(rows[0].toarray()[0], X[0])
    assert (data != rows).nnz == 0


class Narrow(LimeTabularExplainer):
    """Draws rows nearer to the instance."""

    def _LimeTabularExplainer__data_inverse(self, data_row, num_samples):  # noqa: N802
        data = data_row + 0.1 * np.random.default_rng(0).normal(size=(num_samples, len(data_row)))
        data[0] = data_row
        return data, data


def test_rows_of_a_subclass():
    seen = []

    def watched(x):
        seen.append(np.asarray(x))
        return MODEL.predict_proba(x)

    explainer = Narrow(X, random_state=0, discretize_continuous=False)
    result = explainer.explain_instance(X[3], watched, num_samples=400)
    assert np.abs(seen[-1] - X[3]).max() < 0.6
    assert result.engine_reason == "only lime's sampling supports your own __data_inverse"


def test_texts_by_lime_s_private_method():
    explainer = LimeTextExplainer(random_state=0)
    indexed = lime.lime_text.IndexedString("good food and good service")
    from limes.compat.lime.lime_text import IndexedString

    ours = explainer._LimeTextExplainer__data_labels_distances(IndexedString(indexed.raw), lengths, 2000)
    theirs = lime.lime_text.LimeTextExplainer(random_state=0)
    expected = theirs._LimeTextExplainer__data_labels_distances(indexed, lengths, 2000)
    for our, their in zip(ours, expected, strict=True):
        assert our.shape == their.shape
        np.testing.assert_allclose(our[0], their[0])
        gap = np.abs(our.mean(axis=0) - their.mean(axis=0))
        assert (gap < 5 * np.sqrt((our.var(axis=0) + their.var(axis=0)) / 2000) + 1e-9).all()


class OneWordLess(LimeTextExplainer):
    """Removes one word at a time."""

    def _LimeTextExplainer__data_labels_distances(  # noqa: N802
        self, indexed_string, classifier_fn, num_samples, distance_metric="cosine"
    ):
        d = indexed_string.num_words()
        data = np.vstack([np.ones(d), 1 - np.eye(d)])
        texts = [indexed_string.inverse_removing(np.flatnonzero(row == 0)) for row in data]
        return data, classifier_fn(texts), np.zeros(d + 1)


def test_texts_of_a_subclass():
    explanation = OneWordLess(random_state=0).explain_instance("good food and rest", lengths)
    assert explanation.engine_reason == "only lime's sampling supports your own __data_labels_distances"
    assert explanation.as_list()[0][0] == "good"


class Stripes(LimeImageExplainer):
    """Shows all superpixels but one."""

    def data_labels(
        self, image, fudged_image, segments, classifier_fn, num_samples, batch_size=10, progress_bar=True
    ):
        d = np.unique(segments).size
        data = np.vstack([np.ones(d), 1 - np.eye(d)])
        images = [np.where((row[segments] == 0)[..., None], fudged_image, image) for row in data]
        return data, classifier_fn(np.stack(images))


@pytest.mark.parametrize("engine", [None, "lime"])
def test_images_of_a_subclass(engine):
    explanation = of_image(Stripes(random_state=0, engine=engine))
    plain = of_image(LimeImageExplainer(random_state=0))
    assert explanation.engine == "lime"
    # the answers add up over superpixels, but for lime's ridge on five rows
    assert [j for j, _ in explanation.local_exp[1]] == [j for j, _ in plain.local_exp[1]]


def test_batches_of_texts():
    sizes = []

    def watched(texts):
        sizes.append(len(texts))
        return lengths(texts)

    text = " ".join(f"word{j}" for j in range(30))
    for engine in ("limit", "lime"):
        LimeTextExplainer(batch_size=32, engine=engine).explain_instance(text, watched, num_samples=500)
    assert max(sizes) <= 32


# -- pages ---------------------------------------------------------------------------------------------------


def seven(rows):
    """Seven classes, of which a page names five."""
    share = np.exp(np.outer(np.asarray(rows)[:, 0], np.arange(7)))
    return share / share.sum(axis=1, keepdims=True)


@ENGINES
def test_pages_have_bars_of_all_classes(engine):
    names = [f"class <{k}>" for k in range(7)]
    explainer = LimeTabularExplainer(X, class_names=names, random_state=0, engine=engine)
    result = explainer.explain_instance(X[0], seven, num_samples=300)
    for page in (result.as_html(), result._repr_html_()):
        bars = page.split('class="lx-classes"')[1].split("</table>")[0]
        assert bars.count("<tr>") == 6
        assert "2 others together" in bars
        assert "class &lt;6&gt;" in bars
        assert f"{np.sort(seven(X[:1])[0])[-1]:.3f}"[:4] in bars
    assert 'class="lx-classes"' not in result.as_html(predict_proba=False)


def test_a_regression_has_no_bars_of_classes():
    explainer = LimeTabularExplainer(X, mode="regression", random_state=0)
    assert 'class="lx-classes"' not in explainer.explain_instance(X[0], lambda x: x[:, 0]).as_html()
