"""Sparse tables: zeros stay zeros, the rest has lime's law."""

from __future__ import annotations

import pickle

import lime.lime_tabular
import numpy as np
import pytest
from scipy import sparse, stats

from effort import repeats
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.exceptions import InputError

RNG = np.random.default_rng(0)
COUNTS = sparse.csr_matrix(RNG.poisson(0.8, size=(120, 8)).astype(float))
# lime multiplies by the deviations where it should divide: at deviations of 1 both are right
EVEN = sparse.csr_matrix(COUNTS / COUNTS.toarray().std(axis=0))
ROW = int(np.argmax(np.diff(EVEN.indptr)))
SLOPES = np.arange(8) - 3.0


def chances(rows):
    assert sparse.issparse(rows)
    p = 1 / (1 + np.exp(-0.3 * np.asarray(rows @ SLOPES)))
    return np.stack([1 - p, p], axis=1)


def explained(row=EVEN[ROW], data=EVEN, predict=chances, options=None, **call):
    explainer = LimeTabularExplainer(data, random_state=0, **(options or {}))
    return explainer.explain_instance(row, predict, **{"num_samples": 300, **call})


def test_the_law_is_lime_s():
    def runs(kind):
        result = [
            # with more features than values lime takes the first one several times
            kind(EVEN, random_state=seed).explain_instance(
                EVEN[ROW], chances, num_samples=200, num_features=8
            )
            for seed in range(repeats(200, 60))
        ]
        maps = [dict(one.as_map()[1]) for one in result]
        return np.array([[coef[j] for j in range(8)] for coef in maps]).T

    assert EVEN[ROW].nnz == 8
    ours, theirs = runs(LimeTabularExplainer), runs(lime.lime_tabular.LimeTabularExplainer)
    level = 0.01 / (2 * len(ours))
    for a, b in zip(ours, theirs, strict=True):
        assert stats.ttest_ind(a, b, equal_var=False).pvalue > level
        assert stats.levene(a, b, center="mean").pvalue > level


@pytest.mark.parametrize("around", [False, True])
def test_values_are_drawn_around_the_mean_or_the_row(around):
    seen = []
    options = {"mode": "regression", "sample_around_instance": around}
    explained(predict=lambda x: seen.append(x) or np.zeros(x.shape[0]), options=options, num_samples=2001)
    drawn = seen[0][1:].toarray()
    centre = EVEN[ROW].toarray()[0] if around else EVEN.toarray().mean(axis=0)
    # four standard errors of a mean of 2000, in eight columns
    np.testing.assert_allclose(drawn.mean(axis=0), centre, atol=4 / np.sqrt(2000))
    np.testing.assert_allclose(drawn.std(axis=0), 1.0, atol=4 / np.sqrt(4000))


def test_coefficients_are_per_standard_deviation_and_in_units_in_limes():
    result = explained(
        COUNTS[ROW], COUNTS, predict=lambda x: np.asarray(x @ SLOPES), options={"mode": "regression"}
    )
    scale = COUNTS.toarray().std(axis=0)
    for j, value in result.as_map()[1]:
        assert value == pytest.approx(SLOPES[j] * scale[j], abs=0.1)
        assert result.limes.coefficients.values[0, j] == pytest.approx(value / scale[j])
    assert {j for j, _ in result.as_map()[1]} == set(COUNTS[ROW].indices)
    assert (result.engine, result.engine_reason) == ("lime", "only lime's sampling supports sparse tables")
    assert "coefficient" in result.as_html()


def test_zeros_stay_zeros():
    seen = []
    row = EVEN[int(np.flatnonzero(np.diff(EVEN.indptr) == 3)[0])]
    explained(row, predict=lambda x: seen.append(x) or np.zeros(x.shape[0]), options={"mode": "regression"})
    assert set(seen[0].nonzero()[1]) == set(row.indices) != set(range(8))


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array])
def test_any_kind_of_sparse(kind):
    assert explained(kind(EVEN[ROW]), kind(EVEN)).as_map() == explained().as_map()


def test_rows_are_repeatable_and_pickled():
    explainer = LimeTabularExplainer(EVEN, random_state=0)
    first = explainer.explain_instance(EVEN[ROW], chances, num_samples=100)
    assert explainer.explain_instance(EVEN[ROW], chances, num_samples=100).as_map() == first.as_map()
    again = pickle.loads(pickle.dumps(explainer)).explain_instance(EVEN[ROW], chances, num_samples=100)
    assert pickle.loads(pickle.dumps(first)).as_map() == again.as_map()
    assert [e.as_map() for e in explainer.explain_instances(EVEN[:2], chances, num_samples=50)]


def test_errors_are_advice():
    with pytest.raises(InputError, match=r"shape \(7,\), expected \(8,\)"):
        explained(np.ones(7))
    with pytest.raises(InputError, match="expected one row of 8"):
        explained(EVEN[:2])
    with pytest.raises(InputError, match="expected one row of 8"):
        explained(EVEN[0, :5])
    with pytest.raises(InputError, match="hold numbers only"):
        explained(options={"categorical_features": [0]})
    holed = EVEN.copy()
    holed.data[0] = np.nan
    with pytest.raises(InputError, match="finite"):
        explained(data=holed)
