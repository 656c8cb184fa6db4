"""Wrapped networks that accept float32 only, such as skorch's: tables of float64 are converted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import limes
from limes.exceptions import ModelError

X = np.random.default_rng(0).normal(size=(200, 3))
WEIGHTS = np.array([1.0, -2.0, 0.5], dtype=np.float32)
MESSAGES = [
    "mat1 and mat2 must have the same dtype, but got Double and Float",
    "expected scalar type Float but found Double",
    "expected m1 and m2 to have the same dtype, but got: double != float",
]


class Wrapper:
    """As much of a wrapped network as is asked for."""

    def __init__(self, message=MESSAGES[0]):
        self.message, self.kinds = message, []

    def predict(self, rows):
        rows = rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows
        self.kinds.append(rows.dtype.name)
        if rows.dtype != np.float32:
            raise RuntimeError(self.message)
        return 1 / (1 + np.exp(-(rows @ WEIGHTS)))


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("frame", [False, True])
def test_float32_where_a_network_needs_it(message, frame):
    model = Wrapper(message)
    table = pd.DataFrame(X, columns=list("abc")) if frame else X
    row = table.iloc[[3]] if frame else X[3:4]
    explanation = limes.TabularExplainer(model, table, max_calls=1024)(row)
    # asked for once a caller, of which a few are made
    assert model.kinds.count("float64") < len(model.kinds) / 2
    single = X.astype(np.float32)
    expected = limes.TabularExplainer(Wrapper().predict, single, max_calls=1024)(single[3:4])
    np.testing.assert_allclose(explanation.predictions, expected.predictions, rtol=1e-6)
    assert (
        np.abs(explanation.coefficients.values - expected.coefficients.values)
        < 5 * expected.coefficients.standard_errors
    ).all()


def test_other_failures_are_passed_on():
    class Broken(Wrapper):
        def predict(self, rows):
            raise RuntimeError(f"no such layer: {rows.dtype}")

    with pytest.raises(ModelError, match="no such layer: float64"):
        limes.TabularExplainer(Broken(), X)
    with pytest.raises(ModelError, match="but got Double and Float"):  # text columns are no float32
        limes.TabularExplainer(Wrapper(), pd.DataFrame({"a": ["x", "y"] * 9, "b": np.arange(18.0)}))


def test_skorch():
    torch = pytest.importorskip("torch", reason="pip install torch")
    skorch = pytest.importorskip("skorch", reason="pip install skorch")
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Softmax(dim=1))
    single = X.astype(np.float32)
    net = skorch.NeuralNetClassifier(layers, max_epochs=2, verbose=0).fit(single, (X[:, 0] > 0).astype(int))
    explanation = limes.TabularExplainer(net, X, max_calls=1024)(X[3:4])
    np.testing.assert_allclose(explanation.predictions, net.predict_proba(single[3:4]), rtol=1e-5)
    assert explanation.output_names == ("0", "1")
    amounts = skorch.NeuralNetRegressor(torch.nn.Linear(3, 1), max_epochs=2, verbose=0)
    amounts.fit(single, single[:, :1])
    explanation = limes.TabularExplainer(amounts, X, max_calls=1024)(X[3:4])
    expected = amounts.predict(single[3:4])
    np.testing.assert_allclose(explanation.predictions.ravel(), expected.ravel(), rtol=1e-5)
    assert explanation.provenance["answer"] == "predict"
