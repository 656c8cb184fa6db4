"""lime's discretizers: bins and statistics are lime's; draws stay in their bins."""

from __future__ import annotations

import lime.discretize
import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_iris

from limes.compat.lime import discretize
from limes.exceptions import InputError

X, Y = load_iris(return_X_y=True)
KINDS = ("QuartileDiscretizer", "DecileDiscretizer", "EntropyDiscretizer")


@pytest.mark.parametrize("kind", KINDS)
def test_bins_and_statistics_are_lime_s(kind):
    ours, theirs = (
        getattr(home, kind)(X, [1], "abcd", Y, random_state=0) for home in (discretize, lime.discretize)
    )
    assert ours.names == theirs.names
    assert ours.to_discretize == theirs.to_discretize
    for stat in ("means", "stds", "mins", "maxs"):
        for j in ours.to_discretize:
            np.testing.assert_allclose(getattr(ours, stat)[j], getattr(theirs, stat)[j])
    np.testing.assert_array_equal(ours.discretize(X), theirs.discretize(X))
    np.testing.assert_array_equal(ours.discretize(X[0]), theirs.discretize(X[0]))


def test_draws_are_truncated_normals():
    cut = discretize.QuartileDiscretizer(X, [], "abcd", random_state=0)
    low, high, mean, std = (s[0][1] for s in (cut.mins, cut.maxs, cut.means, cut.stds))
    law = stats.truncnorm((low - mean) / std, (high - mean) / std, loc=mean, scale=std)
    levels = np.linspace(0, 1, 21)
    np.testing.assert_allclose(cut.drawn(0, np.ones(21, dtype=int), levels), law.ppf(levels), rtol=1e-12)


def test_a_bin_without_width_gives_its_value():
    data = np.column_stack([np.full(40, 7.0), np.arange(40.0)])
    cut = discretize.QuartileDiscretizer(data, [], "ab", random_state=0)
    np.testing.assert_array_equal(cut.undiscretize(cut.discretize(data))[:, 0], 7.0)


def test_one_row_comes_back_as_a_row():
    cut = discretize.QuartileDiscretizer(X, [], "abcd", random_state=0)
    again = cut.undiscretize(cut.discretize(X[3]))
    np.testing.assert_array_equal(cut.discretize(again), cut.discretize(X[3]))


def test_entropy_needs_labels_and_own_bins_a_method():
    with pytest.raises(InputError, match="training_labels"):
        discretize.EntropyDiscretizer(X, [], "abcd")
    with pytest.raises(NotImplementedError, match="bins"):
        discretize.BaseDiscretizer(X, [], "abcd")


def test_one_s_own_bins():
    class Halves(discretize.BaseDiscretizer):
        def bins(self, data, labels):
            return [[np.median(data[:, j])] for j in self.to_discretize]

    assert Halves(X, [], "abcd").names[0] == ["a <= 5.80", "a > 5.80"]
