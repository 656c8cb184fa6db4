"""Explanations of every library are converted to the same numbers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from internals import from_fields
from limes.evaluate import Attribution, attribution
from limes.exceptions import InputError

VALUES = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]])


def test_arrays_and_lists():
    assert np.array_equal(attribution(VALUES).values, VALUES)
    assert np.array_equal(attribution(VALUES.tolist()).values, VALUES)
    assert attribution(VALUES).errors is None
    values = Attribution(VALUES, VALUES)
    assert attribution(values) is values


def explained(values):
    n, d = values.shape[:2]
    outputs = values.shape[2:]
    return from_fields(
        values=values,
        standard_errors=np.abs(values) / 10,
        intercepts=np.zeros((n, *outputs)),
        predictions=np.zeros((n, *outputs)),
        surrogate_predictions=np.zeros((n, *outputs)),
        fidelity=np.ones((n, *outputs)),
        feature_names=[f"x{j}" for j in range(d)],
        output_names=[f"y{k}" for k in range(*(outputs or (1,)))],
        conditions=[["c"] * d] * n,
        data=np.zeros((n, d)),
        method="sampled",
        calls=[1] * n,
        row_converged=[True] * n,
        row_warnings=[[]] * n,
    )


def test_limes_has_errors_too():
    result = attribution(explained(VALUES))
    assert np.array_equal(result.values, VALUES)
    assert np.allclose(result.errors, np.abs(VALUES) / 10)
    # a list of single rows is the same
    again = attribution(list(explained(VALUES)))
    assert np.array_equal(again.values, VALUES)
    assert np.array_equal(again.errors, result.errors)


def test_several_outputs():
    both = np.stack([VALUES, 2 * VALUES], axis=2)
    assert np.array_equal(attribution(explained(both)).values, 2 * VALUES)
    assert np.array_equal(attribution(explained(both), output=0).values, VALUES)
    three = np.stack([VALUES] * 3, axis=2)
    with pytest.raises(InputError, match="3 outputs"):
        attribution(explained(three))


def test_shap_with_one_row_or_many_and_outputs():
    shap = pytest.importorskip("shap")
    many = shap.Explanation(values=VALUES, base_values=np.zeros(2))
    assert np.array_equal(attribution(many).values, VALUES)
    assert np.array_equal(attribution(many[1]).values, VALUES[1:])
    assert np.array_equal(attribution([many[0], many[1]]).values, VALUES)
    both = shap.Explanation(values=np.stack([VALUES, -VALUES], axis=2), base_values=np.zeros((2, 2)))
    assert np.array_equal(attribution(both).values, -VALUES)
    assert np.array_equal(attribution(both[0], output=0).values, VALUES[:1])


@pytest.mark.parametrize("mode", ["regression", "classification"])
def test_lime_itself(mode):
    lime = pytest.importorskip("lime.lime_tabular")
    X = np.random.default_rng(0).normal(size=(300, 3))

    def predict(x):
        first = 1 / (1 + np.exp(-4 * x[:, 0] + 2 * x[:, 1]))
        return np.stack([1 - first, first], axis=1) if mode == "classification" else first

    explainer = lime.LimeTabularExplainer(X, mode=mode, random_state=0)
    one = explainer.explain_instance(X[0], predict, num_features=3, num_samples=1000)
    result = attribution(one).values
    assert result.shape == (1, 3)
    assert [result[0, j] for j, _ in one.local_exp[1]] == [value for _, value in one.local_exp[1]]
    assert np.array_equal(attribution([one, one]).values, np.repeat(result, 2, axis=0))
    with pytest.raises(InputError, match="no label"):
        attribution(one, output=7)


def test_lime_of_few_features_leaves_the_others_at_0():
    one = SimpleNamespace(
        local_exp={1: [(2, 0.5)]}, domain_mapper=SimpleNamespace(feature_names=["a", "b", "c"])
    )
    assert attribution(one).values.tolist() == [[0.0, 0.0, 0.5]]


@pytest.mark.parametrize("thing", [3.0, "text", [], {"a": 1}, [1.0, 2.0]])
def test_other_objects_are_refused(thing):
    with pytest.raises(InputError):
        attribution(thing)


def test_values_must_be_finite_and_of_one_width():
    with pytest.raises(InputError, match="finite"):
        attribution([[np.nan, 1.0]])
    with pytest.raises(InputError, match="same number of features"):
        attribution([explained(VALUES), explained(VALUES[:, :2])])
