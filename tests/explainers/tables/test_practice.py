"""Defects that users of tables reported, each with its reproduction."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import Ridge

import limes
from limes.exceptions import InputError

X, Y = load_diabetes(return_X_y=True, as_frame=True)
FOREST = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, Y)


def test_no_advice_is_to_take_finer_bins():
    """An indicator of the row's bin captures less of the model the finer the bins are."""
    product = limes.TabularExplainer(
        lambda x: np.sign(x[:, 0]) * np.sign(x[:, 1]), X.to_numpy()[:, :2], max_calls=1024, rng=0
    )
    result = limes.diagnose(product(X.to_numpy()[:1, :2], progress=False), progress=False).findings
    poor = [finding for finding in result if finding.kind == "fidelity"]
    assert poor
    assert not any("finer" in finding.advice for finding in poor)


def test_the_reason_names_no_fold_of_a_calibrated_model():
    table = X.iloc[:, :3]
    forest = RandomForestClassifier(3, random_state=0)
    model = CalibratedClassifierCV(forest, cv=2).fit(table, Y > 140)
    explanation = limes.TabularExplainer(model, table, max_calls=128)(table.iloc[[0]], progress=False)
    assert explanation.method == "sampled"
    assert "RandomForestClassifier" in explanation.reason
    assert "calibrated_classifiers_" not in explanation.reason


def test_coefficients_that_are_the_same_in_all_rows_have_no_spread():
    explanation = limes.TabularExplainer(Ridge().fit(X, Y), X, bins=None)(X.iloc[:20], progress=False)
    text = str(limes.summary(explanation))
    assert "e-1" not in text


def test_a_background_of_one_row_is_refused():
    with pytest.raises(InputError, match=r"the background has one row.*pass the training data"):
        limes.TabularExplainer(FOREST, X.iloc[:1])


@pytest.mark.parametrize("bins", ["quartile", None])
def test_a_column_without_a_value_is_a_single_cell(bins):
    table = X.iloc[:100, :3].assign(age=np.nan)
    model = HistGradientBoostingRegressor(max_iter=3).fit(X.iloc[:100, :3], Y[:100])
    explanation = limes.TabularExplainer(model, table, bins=bins)(table.iloc[[0]], progress=False)
    assert explanation.conditions[0][0] == "age is missing"
    assert explanation.coefficients.values[0, 0] == 0.0


def test_an_unknown_class_and_a_model_for_an_explanation_are_refused():
    classes = RandomForestClassifier(3, random_state=0).fit(X, np.where(Y > 140, "high", "low"))
    with pytest.raises(InputError, match=r"output='setosa' is not a class of the model; pass one of .'high'"):
        limes.TabularExplainer(classes, X, output="setosa")
    with pytest.raises((InputError, TypeError), match="explanation"):
        limes.diagnose(FOREST)
