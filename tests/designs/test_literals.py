"""Neighbourhoods of literals: the law and exact g = E[s f] against enumeration, draws against the law."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
import strategies
from internals import (
    FLIP_LAWS,
    ColumnChanges,
    CountLaw,
    ExactExpectation,
    FlipLaw,
    ForestExpectation,
    LiteralFlips,
    OtherValues,
)
from limes.exceptions import InputError
from limes.models import forms

SPREADS = (0.0, 0.1, 1.0, 3.0)


def signed_mean(moments, law):
    """g = 2 Γ + ρ E f."""
    return 2.0 * moments.gamma + law.correlation * moments.mean


@pytest.mark.parametrize("name", FLIP_LAWS)
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("d", [1, 2, 4, 7])
def test_moments_of_a_law_are_those_of_its_definition(name, spread, d):
    rows, law = oracle.all_rows(d), FLIP_LAWS[name](d, spread)
    instance = np.where(np.arange(d) % 3, -1.0, 1.0)
    probability = oracle.row_law(rows, instance, spread, name)
    signs = rows * instance
    mean = probability @ signs
    assert mean == pytest.approx(np.full(d, law.correlation), rel=oracle.ROUNDING, abs=1e-15)
    assert probability @ (signs == -1) == pytest.approx(np.full(d, law.away / 2), rel=oracle.ROUNDING)
    covariance = ((signs - mean) * probability[:, None]).T @ (signs - mean)
    expected = law.shared + law.variance * np.eye(d)
    assert covariance == pytest.approx(expected, rel=oracle.ROUNDING, abs=1e-14)


@pytest.mark.parametrize("spread", [0.0, 5.0, 30.0, 150.0])
def test_the_probability_that_two_literals_flip_keeps_its_digits_where_flips_are_rare(spread):
    """E (s_i - 1)(s_j - 1) = 4 P(both flip), by sums of positive numbers."""
    law, d = CountLaw(9, spread), 9
    flips = np.arange(d + 1)
    weights = np.exp(-spread * flips)
    both = 4 * (weights * flips * (flips - 1)).sum() / weights.sum() / (d * (d - 1))
    assert law.away**2 + law.shared == pytest.approx(both, rel=oracle.EXACT)
    assert law.away * (2 - law.away) - law.shared == pytest.approx(law.variance, rel=oracle.EXACT)


@pytest.mark.parametrize("name", FLIP_LAWS)
@pytest.mark.parametrize("spread", SPREADS)
def test_probabilities_of_patterns_are_those_of_all_rows(name, spread):
    rows, law = oracle.all_rows(6), FLIP_LAWS[name](6, spread)
    probability = oracle.row_law(rows, np.ones(6), spread, name)
    for size in range(7):
        for flipped in range(size + 1):
            pattern = np.where(np.arange(size) < flipped, -1.0, 1.0)
            expected = probability[(rows[:, :size] == pattern).all(axis=1)].sum()
            assert law.pattern(np.array([flipped]), size)[0] == pytest.approx(expected, rel=oracle.EXACT)


@pytest.mark.parametrize("spread", [0.0, 0.7])
def test_literals_elsewhere_have_the_conditional_law(spread):
    rows, law, draws = oracle.all_rows(7), CountLaw(7, spread), 40_000
    probability = oracle.row_law(rows, np.ones(7), spread, "count")
    condition = (rows[:, 0] < 0) & (rows[:, 1] > 0)  # one of two flips
    flips = law.elsewhere(np.random.default_rng(2), np.ones(draws, dtype=int), np.arange(2, 7))
    places = 2 ** np.arange(5)
    counts = np.bincount(flips @ places, minlength=32) / draws
    expected = np.bincount((rows[condition, 2:] < 0) @ places, probability[condition], minlength=32)
    expected /= expected.sum()
    errors = np.sqrt(expected * (1 - expected) / draws)
    assert (np.abs(counts - expected) < oracle.Z_LIMIT * errors).all()


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_counts_of_flips_have_the_law(spread):
    """All rows with as many flips are equally likely, and the numbers of flips are a geometric law."""
    rows, law, draws = oracle.all_rows(5), CountLaw(5, spread), 60_000
    expected = oracle.row_law(rows, np.ones(5), spread, "count")
    flips = law.flips(np.random.default_rng(1), draws)
    counts = np.bincount(flips @ 2 ** np.arange(5), minlength=32) / draws
    errors = np.sqrt(expected * (1 - expected) / draws)
    assert (np.abs(counts - expected) < oracle.Z_LIMIT * errors).all()


@given(strategies.rngs, st.sampled_from(SPREADS), st.integers(1, 6))
def test_g_of_a_linear_model_is_exact(rng, spread, d):
    instance = rng.choice([-1.0, 1.0], d)
    form = forms.Linear(rng.normal(size=d), rng.normal())
    check_exact(ExactExpectation(form), form, instance, spread)


@given(strategies.rngs, st.sampled_from(SPREADS), st.integers(1, 6))
def test_g_of_an_additive_model_is_exact(rng, spread, d):
    instance, bend = rng.choice([-1.0, 1.0], d), rng.normal(size=d)
    form = forms.Additive([lambda x, b=b: np.exp(b * x) for b in bend], breaks=[[0.0]] * d)
    check_exact(ExactExpectation(form), form, instance, spread)


@given(strategies.rngs, st.sampled_from(SPREADS), st.integers(1, 6), st.integers(1, 8))
def test_g_of_a_forest_is_exact(rng, spread, d, seed):
    from sklearn.ensemble import RandomForestRegressor

    from limes.models import read

    instance, x = rng.choice([-1.0, 1.0], d), rng.choice([-1.0, 1.0], (50, d))
    model = RandomForestRegressor(3, random_state=seed).fit(x, rng.normal(size=50))
    form = read(model)
    check_exact(ForestExpectation(form), form, instance, spread)


def check_exact(expectation, form, instance, spread):
    near = LiteralFlips(instance, spread)
    rows = oracle.all_rows(instance.size)
    probability, values = oracle.row_law(rows, instance, spread), form.predict(rows)
    expected = (probability * values) @ (rows * instance)
    result = signed_mean(expectation.moments(near.design), near.law)
    assert oracle.error(result, expected, np.abs(values).max()) < oracle.EXACT


def test_flips_have_the_law():
    law = FlipLaw(5, 1.0)
    flips = law.flips(np.random.default_rng(3), 200_000)
    error = np.sqrt(law.flip * (1 - law.flip) / len(flips))
    assert np.abs(flips.mean(axis=0) - law.flip).max() < oracle.Z_LIMIT * error
    together = (flips[:, 0] & flips[:, 1]).mean()
    assert together == pytest.approx(law.flip**2, abs=oracle.Z_LIMIT * error)


@pytest.mark.parametrize("spread", [0.0, 1.0, 8.0])
def test_a_byte_on_the_edge_is_decided_by_a_second_draw(spread):
    law = FlipLaw(1, spread)
    flips = law.flips(np.random.default_rng(0), 2_000_000)
    assert flips.mean() == pytest.approx(law.flip, abs=oracle.Z_LIMIT * np.sqrt(law.flip / 2e6))


def test_rows_flip_the_instance():
    near = LiteralFlips([1.0, -1.0, 1.0], spread=0.5)
    flips = near.law.flips(np.random.default_rng(0), 200)
    rows = near.rows(flips, np.random.default_rng(0))
    assert np.array_equal(rows == near.instance, ~flips)
    assert set(np.unique(rows)) == {-1.0, 1.0}


@pytest.fixture
def changes():
    others = [OtherValues(np.array(values)) for values in ([1.0, 1.0, 5.0], [], [-2.0])]
    return ColumnChanges(np.array([0.0, 7.0, 3.0]), others, spread=1.0)


def test_columns_keep_their_value_or_take_another(changes):
    assert changes.law.size == 2
    assert changes.instance.tolist() == [1.0, 1.0]
    flips = changes.law.flips(np.random.default_rng(0), 1000)
    rows = changes.rows(flips, np.random.default_rng(1))
    assert np.array_equal(rows[:, 0] == 0.0, ~flips[:, 0])
    assert (rows[:, 1] == 7.0).all()
    assert np.array_equal(rows[:, 2], np.where(flips[:, 1], -2.0, 3.0))
    assert (rows[flips[:, 0], 0] == 1.0).mean() == pytest.approx(2 / 3, abs=0.15)


def test_g_under_column_changes_is_exact(changes):
    form = forms.Multiplicative([np.exp, np.cos, lambda x: 1.0 + x**2])
    q, stay = changes.law.flip, 1.0 - changes.law.flip
    first = [(0.0, stay, 1), (1.0, q * 2 / 3, -1), (5.0, q / 3, -1)]
    third = [(3.0, stay, 1), (-2.0, q, -1)]
    expected = np.zeros(2)
    for (a, p, s), (b, r, t) in product(first, third):
        expected += p * r * float(form.predict(np.array([[a, 7.0, b]]))[0]) * np.array([s, t])
    moments = ExactExpectation(form).moments(changes.design)
    result = signed_mean(moments, changes.law)[list(changes.varying)]
    assert result == pytest.approx(expected, rel=oracle.EXACT)


@pytest.mark.parametrize(
    ("instance", "spread", "message"),
    [
        ([1.0, 0.0], 1.0, "literal 1 of the instance is 0.0"),
        ([1.0, np.nan], 1.0, "literal 1"),
        ([], 1.0, "one row of literals"),
        ([[1.0]], 1.0, "one row of literals"),
        ([1.0], -0.1, "spread must be"),
        ([1.0], np.inf, "spread must be"),
        ([1.0], True, "spread must be"),
    ],
)
def test_bad_input_is_refused(instance, spread, message):
    with pytest.raises(InputError, match=message):
        LiteralFlips(instance, spread)


def test_a_neighbourhood_where_nothing_varies_is_refused():
    with pytest.raises(InputError, match="one literal"):
        ColumnChanges(np.array([1.0]), [OtherValues(np.array([]))], 1.0).law  # noqa: B018
