"""Constructors and ``predict`` of forms refuse ragged and non-numeric arguments by an InputError."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from limes.designs import BinStatistics, ProductDesign
from limes.exceptions import InputError
from limes.models import forms, read

TREE = read(DecisionTreeRegressor(max_depth=2).fit(np.eye(4), range(4)))
LINEAR = forms.Linear([1.0, 2.0])
TWO_COLUMNS = {
    "linear": LINEAR,
    "additive": forms.Additive([np.square, None]),
    "product": forms.Multiplicative([np.square, None]),
    "boxes": forms.Boxes([[0.0, 0.0]], [[1.0, 1.0]], [1.0]),
    "kernels": forms.GaussianKernels([[0.0, 0.0]], [1.0], 1.0),
    "kernels of one column": forms.GaussianKernels([[0.0, 0.0]], [1.0], [1.0, np.inf]),
    "linked": forms.Linked(LINEAR, "logistic"),
    "network": forms.Ridges([[1.0, -1.0]], [0.0], [2.0], "relu"),
    "combination": forms.Combination([LINEAR, LINEAR], [0.5, 0.5]),
    "norm": forms.NormalizedLinear([1.0, 2.0], [1.0, 1.0]),
}


@pytest.mark.parametrize("form", TWO_COLUMNS.values(), ids=TWO_COLUMNS)
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0]], r"rows must be \(n, 2\), .* got shape \(1, 1\)"),
        ([[1.0, 2.0, 3.0]], r"got shape \(1, 3\)"),
        ([1.0, 2.0], "x must have 2 dimensions"),
        ([["a", "b"]], "x must be numbers"),
        ([[1.0, 2.0], [1.0]], "x must be numbers, in rows of equal length"),
    ],
)
def test_rows_of_another_shape(form, rows, message):
    with pytest.raises(InputError, match=message):
        form.predict(rows)


def test_rows_of_a_forest():
    with pytest.raises(InputError, match=r"rows must be \(n, 4\)"):
        TREE.predict(np.zeros((2, 3)))
    with pytest.raises(InputError, match="x must have 2 dimensions"):
        TREE.predict(np.zeros(4))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: forms.Linear(["a"]), "coef must be numbers.*'a'"),
        (lambda: forms.Linear([[1.0, 2.0], [1.0]]), "coef must be numbers, in rows of equal length"),
        (lambda: forms.Linear([1.0], [1.0, 2.0]), r"intercept must be a number or one an output.*\(2,\)"),
        (lambda: forms.Additive(5), "functions and breaks must be lists"),
        (lambda: forms.Additive([np.square], breaks=3), "functions and breaks must be lists"),
        (lambda: forms.Additive([np.square], breaks=[["a"]]), "breaks must be numbers"),
        (lambda: forms.Additive([np.square], breaks=[[np.nan]]), "breaks must be finite"),
        (lambda: forms.Combination([LINEAR], [np.nan]), "weights must be finite"),
        (lambda: forms.Linked(3, "logistic"), "margin must be a form, got int"),
        (lambda: forms.PresenceProducts([((0,), 1.0)]), "product 0 must be a triple"),
        (lambda: forms.PresenceProducts([((0,), (), "x")]), "coef of product 0 must be numbers"),
        (lambda: BinStatistics([0, 1], [0.5], ["a"]).marginal(), "stds must be numbers"),
        (lambda: BinStatistics([[0, 1]], [0.5], [1.0]).marginal(), "edges must have 1 dimensions"),
        (
            lambda: ProductDesign.from_bins([["a", 1]], [[0.5]], [[1.0]], [0.2], 1.0),
            "column 0: edges must be numbers",
        ),
        (lambda: ProductDesign.from_bins([[0, 1]], [[0.5]], [[1.0]], ["b"], 1.0), "instance must be numbers"),
    ],
)
def test_arguments_of_another_type(make, message):
    with pytest.raises(InputError, match=message):
        make()


NODES = {
    "feature": [0, -1, -1],
    "threshold": [0.5, 0.0, 0.0],
    "left": [1, -1, -1],
    "right": [2, -1, -1],
    "missing_left": [True, False, False],
    "value": [0.0, 1.0, 2.0],
    "roots": np.array([0]),
    "intercept": 0.0,
    "size": 1,
}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("feature", 0, "threshold must have an entry for each of the nodes"),
        ("threshold", [0.5], "threshold must have an entry for each of the nodes"),
        ("left", [1, -1], "left must have an entry"),
        ("missing_left", True, "missing_left must have an entry"),
        ("value", [[[0.0]], [[1.0]], [[2.0]]], "value must have an entry"),
        ("roots", 0.5, "roots must be a list of nodes"),
        ("roots", True, "roots must be a list of nodes"),
        ("size", 2.5, "size must be a whole number"),
        ("intercept", [1.0, 2.0], "intercept must be a number or one an output"),
        ("intercept", "a", "intercept must be numbers"),
    ],
)
def test_nodes_of_a_forest(field, value, message):
    assert forms.Forest(**NODES).predict([[0.0], [1.0]]).tolist() == [1.0, 2.0]
    with pytest.raises(InputError, match=message):
        forms.Forest(**{**NODES, field: value})
