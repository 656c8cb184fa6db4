"""Sparse matrices of scipy are tables, and the model gets matrices of their class."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge

import limes

DENSE = sparse.random(200, 12, 0.3, random_state=0).toarray()
Y = DENSE.sum(axis=1)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.coo_array])
def test_they_are_explained_as_their_dense_tables(kind):
    model = Ridge().fit(kind(DENSE), Y)
    explanation = limes.TabularExplainer(model, kind(DENSE))(kind(DENSE[:3]))
    dense = limes.TabularExplainer(model, DENSE)(DENSE[:3])
    assert explanation.method == "exact"
    np.testing.assert_array_equal(explanation.coefficients.values, dense.coefficients.values)
    np.testing.assert_array_equal(explanation.predictions, dense.predictions)


def test_functions_get_their_kind():
    seen = set()

    def model(table):
        seen.add(type(table))
        return np.asarray(table.sum(axis=1)).ravel()

    table = sparse.csr_matrix(DENSE)
    explanation = limes.TabularExplainer(model, table, max_calls=1024)(table[3])
    assert seen == {sparse.csr_matrix}
    assert explanation.predictions[0] == pytest.approx(Y[3])


def test_single_precision_stays():
    table = sparse.csr_matrix(DENSE.astype(np.float32))
    model = LogisticRegression().fit(table, Y > 1)
    explanation = limes.TabularExplainer(model, table)(table[:2])
    np.testing.assert_allclose(explanation.predictions, model.predict_proba(table[:2]), rtol=1e-6)
