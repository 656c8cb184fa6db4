"""The display of scikit-learn's kind: what it draws is the explainer's, where it is asked to draw."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import polars
import pytest
from sklearn.datasets import load_iris
from sklearn.inspection import PartialDependenceDisplay
from sklearn.tree import DecisionTreeClassifier

import limes
from limes.exceptions import InputError, UnknownOptionError

mpl.use("agg")


@pytest.fixture(scope="module")
def fitted():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y), X


@pytest.fixture(autouse=True)
def closed():
    yield
    mpl.pyplot.close("all")


def widths(axes):
    return sorted(patch.get_width() for patch in axes.patches)


def test_the_bars_are_the_coefficients(fitted):
    model, X = fitted
    display = limes.LocalSurrogateDisplay.from_estimator(model, X, row=70, output=2)
    expected = limes.TabularExplainer(model, X, output=2)(X.iloc[[70]])
    np.testing.assert_array_equal(display.explanation.values, expected.values)
    np.testing.assert_allclose(widths(display.ax_), sorted(expected.values[0]), rtol=1e-12)
    assert "row 70" in display.ax_.get_title(loc="left") + display.ax_.get_title()


@pytest.mark.parametrize(
    "table", [lambda X: X, polars.from_pandas, lambda X: X.to_numpy(), lambda X: X.to_numpy().tolist()]
)
def test_tables_of_any_kind(fitted, table):
    _, X = fitted
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X.to_numpy(), np.repeat([0, 1, 2], 50))
    other = X.to_numpy()
    display = limes.LocalSurrogateDisplay.from_estimator(
        lambda rows: model.predict_proba(np.asarray(rows)),
        table(X),
        row=-1,
        rng=0,
        max_calls=64,
        control="none",
    )
    assert display.explanation.ids == (149,)
    np.testing.assert_array_equal(display.explanation.data[0], other[-1])


def test_it_keeps_to_the_conventions_of_scikit_learn(fitted):
    """What a display of scikit-learn has after drawing, this one has."""
    model, X = fitted
    figure, (left, right) = mpl.pyplot.subplots(1, 2)
    theirs = PartialDependenceDisplay.from_estimator(model, X, [3], target=0, ax=left)
    display = limes.LocalSurrogateDisplay.from_estimator(model, X, row=3, ax=right)
    assert theirs.figure_ is display.figure_ is figure
    assert display.ax_ is right
    again = display.plot(kind="waterfall")
    assert again is display
    assert display.figure_ is not figure


def test_an_explanation_that_exists_is_drawn(fitted):
    model, X = fitted
    explanation = limes.TabularExplainer(model, X)(X.iloc[:5])
    display = limes.LocalSurrogateDisplay(explanation, row=4, output="1").plot(max_features=2)
    assert not hasattr(limes.LocalSurrogateDisplay(explanation), "ax_")
    assert len(display.ax_.patches) == 2


@pytest.mark.parametrize("row", [150, -151, "a", 1.0, True])
def test_rows_that_do_not_exist(fitted, row):
    with pytest.raises(InputError, match="X has 150 rows; pass a position"):
        limes.LocalSurrogateDisplay.from_estimator(*fitted, row=row)


def test_words_that_are_not_known(fitted):
    with pytest.raises(InputError, match="kind='bars' is not one of"):
        limes.LocalSurrogateDisplay.from_estimator(*fitted, kind="bars")
    with pytest.raises(UnknownOptionError, match="bin"):
        limes.LocalSurrogateDisplay.from_estimator(*fitted, bin=4)
