import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internals import bin_edges, entropy_edges, quantile_edges
from limes.exceptions import InputError

NAN = float("nan")
SKEWED = np.array([0, 0, 0, 0, 0, 0, 1, 2, 3, 10.0])


def one(x, bins, **options):
    """Edges of a single numeric column."""
    column = np.asarray(x, dtype=float)[:, None]
    (edges,) = bin_edges(column, [True], bins=bins, **options)
    return edges


def counts(edges, x):
    present = x[~np.isnan(x)]
    return np.bincount(np.searchsorted(edges[1:-1], present), minlength=edges.size - 1)


columns = st.one_of(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0, NAN]), min_size=1, max_size=40),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40),
).map(lambda values: np.array([*values, 1.0]))


@settings(deadline=None)
@given(columns, st.one_of(st.sampled_from(["quartile", "decile"]), st.integers(2, 30)))
def test_computed_bins_cover_the_column_and_the_outer_ones_are_not_empty(x, bins):
    edges = one(x, bins)
    assert edges[0] == np.nanmin(x)
    assert edges[-1] == np.nanmax(x)
    assert (counts(edges, x)[[0, -1]] > 0).all()
    assert (np.diff(edges[1:]) > 0).all() or edges.size == 2
    assert edges[1] >= edges[0]


@settings(deadline=None)
@given(columns, st.integers(2, 12))
def test_dropping_edges_never_parts_values_that_percentiles_hold_together(x, count):
    inner = quantile_edges(x, count)
    kept = one(x, count)[1:-1]
    assert set(kept) <= set(inner)
    present = x[~np.isnan(x)]
    before, after = np.searchsorted(inner, present), np.searchsorted(kept, present)
    assert np.array_equal(np.unique(before).size, np.unique(after).size)


@settings(deadline=None)  # the first call imports scikit-learn
@given(columns, st.integers(0, 5))
def test_entropy_bins_cover_the_column_and_none_is_empty(x, seed):
    target = np.random.default_rng(seed).integers(0, 3, x.size)
    edges = one(x, "entropy", target=target)
    assert edges[0] == np.nanmin(x)
    assert edges[-1] == np.nanmax(x)
    assert (counts(edges, x) > 0).all()


@pytest.mark.parametrize(("bins", "ranks"), [("quartile", [25, 50, 75]), ("decile", range(10, 100, 10))])
def test_named_quantiles_are_those_of_lime(bins, ranks):
    x = np.random.default_rng(0).normal(size=501)
    assert np.array_equal(one(x, bins)[1:-1], np.unique(np.percentile(x, list(ranks))))
    assert np.array_equal(one(x, bins), one(x, len(list(ranks)) + 1))


def test_lime_itself_has_these_inner_edges():
    discretize = pytest.importorskip("lime.discretize")
    rng = np.random.default_rng(3)
    data = np.column_stack([rng.normal(size=400), rng.integers(0, 4, 400)]).astype(float)
    labels = (data[:, 0] + data[:, 1] > 1).astype(int)
    theirs = {
        "quartile": discretize.QuartileDiscretizer(data, [], ["a", "b"]),
        "decile": discretize.DecileDiscretizer(data, [], ["a", "b"]),
        "entropy": discretize.EntropyDiscretizer(data, [], ["a", "b"], labels=labels, random_state=0),
    }
    for bins, discretizer in theirs.items():
        ours = bin_edges(data, [True, True], bins=bins, target=labels)
        binned = discretizer.discretize(data)
        for j, edges in enumerate(ours):
            # lime keeps edges beyond the last value: equal once its empty bins are squeezed out
            _, squeezed = np.unique(binned[:, j], return_inverse=True)
            assert np.array_equal(np.searchsorted(edges[1:-1], data[:, j]), squeezed)


def test_ties_give_a_first_bin_of_width_zero():
    edges = one(SKEWED, "quartile")
    assert edges.tolist() == [0.0, 0.0, 1.75, 10.0]
    assert counts(edges, SKEWED).tolist() == [6, 1, 3]


def test_an_edge_at_the_largest_value_is_dropped():
    assert one([0, 1, 5, 5, 5, 5, 5, 5], "quartile").tolist() == [0.0, 4.0, 5.0]


def test_a_constant_column_is_one_bin_of_width_zero():
    assert one([7.0] * 5, "quartile").tolist() == [7.0, 7.0]
    assert one([7.0, NAN], "entropy", target=[0, 1]).tolist() == [7.0, 7.0]


def test_missing_values_do_not_move_edges():
    assert np.array_equal(one([*SKEWED, NAN, NAN], 3), one(SKEWED, 3))


def test_columns_that_are_not_numeric_get_none():
    first, second = bin_edges(np.column_stack([SKEWED, SKEWED]), np.array([False, True]), bins=2)
    assert first is None
    assert second.tolist() == [0.0, 0.0, 10.0]


def test_entropy_splits_where_the_class_changes():
    x = np.arange(20.0)
    assert entropy_edges(x, np.where(x < 7, "no", "yes")).tolist() == [6.5]
    assert entropy_edges(x, np.where(x < 7, 0.25, 0.75)).tolist() == [6.5]  # floats, but two classes


def test_entropy_of_a_quantity_uses_a_regression_tree():
    x = np.linspace(0, 1, 64)
    assert np.allclose(entropy_edges(x, x), (x[7:-1:8] + x[8::8]) / 2)


def test_entropy_without_a_split_is_the_median():
    assert entropy_edges(np.array([1.0, 2.0, 4.0, NAN]), ["a"] * 4).tolist() == [2.0]


def test_given_edges_are_kept_and_none_means_quartiles():
    data = np.column_stack([SKEWED, SKEWED, SKEWED])
    given_edges = [[-np.inf, 0, 5, np.inf], None, None]
    first, second, third = bin_edges(data, [True, True, False], bins=given_edges)
    assert first.tolist() == [-np.inf, 0.0, 5.0, np.inf]
    assert np.array_equal(second, one(SKEWED, "quartile"))
    assert third is None


def test_given_edges_may_have_different_lengths_or_be_one_matrix():
    data = np.column_stack([SKEWED, SKEWED])
    assert [e.size for e in bin_edges(data, [True] * 2, bins=[[0, 10], [0, 5, 10]])] == [2, 3]
    assert [e.size for e in bin_edges(data, [True] * 2, bins=np.array([[0, 10], [0, 11]]))] == [
        2,
        2,
    ]


@pytest.mark.parametrize(
    ("bins", "words"),
    [
        (
            "quartiles",
            ["'quartiles'", "did you mean 'quartile'?", "'decile', 'entropy'", "list of edges"],
        ),
        ("zzz", ["'zzz'", "'quartile'"]),
        (1, ["bins=1", "2 or more"]),
        (0, ["bins=0"]),
        (True, ["bins=True", "whole number"]),
        (2.5, ["bins=2.5", "whole number"]),
        ("entropy", ["target="]),
        ([[0, 10], [0, 10]], ["2 columns", "has 1", "None"]),
        ([[0, 5, 5, 10]], ["'age'", "5 is followed by 5", "drop repeats"]),
        ([[10, 0]], ["'age'", "10 is followed by 0", "sort"]),
        ([[0, NAN, 10]], ["'age'", "nan"]),
        ([[0, 9]], ["'age'", "0 to 9", "0 to 10", "widen"]),
        ([[1, 12]], ["'age'", "1 to 12", "0 to 10", "-inf"]),
        ([[0, 4, 6, 10]], ["'age'", "(4, 6]", "merge"]),
        ([[-5, -1, 10]], ["'age'", "[-5, -1]", "merge"]),
        ([[0]], ["'age'", "two or more", "both ends"]),
        ([5], ["'age'", "two or more"]),
        ([["low", "high"]], ["'age'", "not numbers"]),
    ],
)
def test_errors_say_what_where_and_what_to_do(bins, words):
    with pytest.raises(InputError) as caught:
        one(SKEWED, bins, names=["age"])
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ([0, 1], ["(2,)", "10 rows", "each row"]),
        ([0.0] * 9 + [NAN], ["row 9", "drop"]),
        ([*"abcdefgh", None, "i"], ["row 8", "drop"]),
    ],
)
def test_unusable_targets_are_refused(target, words):
    with pytest.raises(InputError) as caught:
        one(SKEWED, "entropy", target=target)
    for word in words:
        assert word in str(caught.value)


def test_edges_for_a_categorical_column_are_refused():
    with pytest.raises(InputError, match=r"column 0, which is categorical: put None"):
        bin_edges(SKEWED[:, None], [False], bins=[[0, 10]])


def test_a_column_without_values_is_refused():
    with pytest.raises(InputError, match="column 0 holds no values"):
        one([NAN, NAN], "quartile")
