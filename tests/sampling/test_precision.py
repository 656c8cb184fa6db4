"""The precision error against enumeration, and bounds against the truth."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

import oracle
from effort import repeats
from internals import (
    FLIP_LAWS,
    LiteralFlips,
    bernstein_bound,
    precision,
    theorem_accuracy,
    theorem_samples,
    zero_sum_sets,
)
from limes.exceptions import InputError


def enumerated(predict, instance, spread, w, target, law="literal"):
    """P(w), F(w) and Pr[w·z = w·x] over all rows, by their definitions."""
    rows = oracle.all_rows(instance.size)
    weight = oracle.row_law(rows, instance, spread, law)
    values = predict(rows)
    aligned = np.abs(rows @ w - instance @ w) <= 1e-9 * np.abs(w).sum()
    coincidence = weight[aligned].sum()
    error = weight[aligned] @ np.abs(values[aligned] - target) / coincidence
    return error, weight @ (rows @ w - values) ** 2, coincidence


def bent(d, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(d, 3)) / np.sqrt(d)
    return lambda rows: np.tanh(rows @ weights).mean(axis=1)


def ask(near, predict, w, **options):
    target = float(predict(near.instance[None])[0])
    u = w * near.instance
    result = precision(near, predict, u, target, rng=np.random.default_rng(0), **{"draws": 1000, **options})
    return result, target


@pytest.mark.parametrize("law", FLIP_LAWS)
@pytest.mark.parametrize("weights", [[0.3, -0.1, 0.25], [0.2, -0.2, 0.1], [0.1, 0.1, -0.2]])
def test_precision_is_that_of_all_rows(weights, law):
    rng = np.random.default_rng(1)
    d = repeats(20, 15)
    instance, w = rng.choice([-1.0, 1.0], d), np.zeros(d)
    w[[2, 5, 11]] = weights
    w[[0, 1, 3, 4]] = 0.05, 0.07, 0.011, 0.013
    near = LiteralFlips(instance, 1.0, FLIP_LAWS[law])
    result, target = ask(near, bent(d), w)
    expected, _, coincidence = enumerated(bent(d), instance, 1.0, w, target, law)
    assert result.error == 0.0
    assert result.value == pytest.approx(expected, rel=oracle.EXACT)
    assert result.coincidence == pytest.approx(coincidence, rel=oracle.EXACT)


@pytest.mark.parametrize("law", FLIP_LAWS)
def test_sampled_precision_agrees_with_enumeration(law):
    near, w = LiteralFlips(np.ones(12), 0.5, FLIP_LAWS[law]), np.zeros(12)
    w[:3] = 0.2, -0.2, 0.4
    exact, _ = ask(near, bent(12), w)
    sampled, _ = ask(near, bent(12), w, draws=20_000, exact_literals=0)
    assert sampled.error > 0.0
    assert abs(sampled.value - exact.value) < oracle.Z_LIMIT * sampled.error
    assert sampled.coincidence == pytest.approx(exact.coincidence, rel=oracle.ROUNDING)


def _broken_lemma(rows):
    """w·z except where z_0 = z_1 = 1: there it is ½ or -1, as z_2 says."""
    both = (rows[:, 0] > 0) & (rows[:, 1] > 0)
    return np.where(both, np.where(rows[:, 2] > 0, 0.5, -1.0), 0.25 * rows[:, 0] + 0.25 * rows[:, 1])


def test_the_papers_lemma_1_is_false_and_the_mended_bound_holds():
    w, near = np.array([0.25, 0.25, 0.0]), LiteralFlips(np.ones(3), 0.0)
    result, target = ask(near, _broken_lemma, w)
    _, fidelity, coincidence = enumerated(_broken_lemma, np.ones(3), 0.0, w, target)
    assert result.value == pytest.approx(0.75)
    assert np.sqrt(fidelity) == pytest.approx(0.530, abs=1e-3)
    assert result.value > np.sqrt(fidelity)  # the lemma says otherwise
    assert result.value <= np.sqrt(fidelity / coincidence)


@pytest.mark.parametrize("seed", range(20))
def test_the_mended_bound_holds_for_any_weights(seed):
    rng = np.random.default_rng(seed)
    instance, predict = rng.choice([-1.0, 1.0], 8), bent(8, seed)
    w = np.where(rng.random(8) < 0.5, rng.integers(-2, 3, 8) / 4, 0.0)
    target = float(predict(instance[None])[0])
    w[0] += (target - w @ instance) * instance[0]  # on the hyperplane
    near = LiteralFlips(instance, float(rng.choice([0.0, 1.0])))
    result, _ = ask(near, predict, w)
    _, fidelity, coincidence = enumerated(predict, instance, near.spread, w, target)
    assert result.value <= np.sqrt(fidelity / coincidence) * (1 + oracle.EXACT)
    assert coincidence >= (1 - near.law.flip) ** np.count_nonzero(w) * (1 - oracle.EXACT)


def test_zero_sum_sets_are_enumerated():
    u = np.array([0.2, -0.2, 0.3, -0.1])
    expected = {s for s in product([False, True], repeat=4) if abs(np.array(s) @ u) < 1e-12}
    assert {tuple(s) for s in zero_sum_sets(u).tolist()} == expected


def test_too_many_literals_are_refused():
    with pytest.raises(InputError, match="at most 20"):
        zero_sum_sets(np.ones(21))


@pytest.mark.parametrize("size", [20, 200])
def test_the_bernstein_bound_covers(size):
    rng, covered = np.random.default_rng(0), 0
    for _ in range(400):
        values = rng.beta(0.5, 2.0, size)
        covered += bernstein_bound(values, largest=1.0, risk=0.1) >= 0.2
    assert covered >= 0.9 * 400


def test_a_bound_needs_two_rows_and_never_exceeds_the_range():
    with pytest.raises(InputError, match="two fresh rows"):
        bernstein_bound(np.array([0.5]), largest=1.0, risk=0.05)
    assert bernstein_bound(np.array([0.5, 0.6]), largest=1.0, risk=0.05) == 1.0


def test_the_theorems_sample_size_and_accuracy_are_inverse():
    m = theorem_samples(0.1, 100, 7, 0.05)
    assert m == np.ceil((32 * np.log(200) + 8 * np.log(40)) * 64 / 0.1**2)
    assert theorem_accuracy(int(m), 100, 7, 0.05) == pytest.approx(0.1)


def test_theorem_2_needs_a_hundredth_of_the_rows_that_are_printed():
    """The paper's proof bounds |w·z - f|, of accuracy ε² where it prints ε⁴: d = 14, k = 4, risk 0.05."""
    needed = theorem_samples(0.1, 14, 4, 0.05)
    printed = np.ceil((32 * np.log(28) + 8 * np.log(40)) * 25 / 0.1**4)
    assert needed == 340_354
    assert printed == 34_035_395
    assert theorem_accuracy(1000, 14, 4, 0.05) > 1.0  # nothing is guaranteed by a thousand rows


def test_theorem_2_as_printed_fails_with_its_lemma():
    """P = 0.75 is above √F + 0.1, and F̂ of 34 million rows (2^3 differ) is F but for 1e-3."""
    rows, w = oracle.all_rows(3), np.array([0.25, 0.25, 0.0])
    value, fidelity, _ = enumerated(_broken_lemma, np.ones(3), 0.0, w, 0.5)
    m = np.ceil((32 * np.log(6) + 8 * np.log(40)) * 9 / 0.1**4)  # d = 3, k = 2, ε = 0.1
    squares = (rows @ w - _broken_lemma(rows)) ** 2
    assert squares.std() / np.sqrt(m) < 1e-3
    assert value > np.sqrt(fidelity + 1e-2) + 0.1


@pytest.mark.parametrize("law", FLIP_LAWS)
def test_theorem_2_mended_holds(law):
    """E|w·z - f| ≤ its sample's + ε for all k-sparse w at once, and P ≤ (√F̂ + ε) / Pr[w·z = w·x]."""
    d, k, risk, m = 8, 2, 0.05, 400_000
    accuracy, near = theorem_accuracy(m, d, k, risk), LiteralFlips(np.ones(d), 1.0, FLIP_LAWS[law])
    assert accuracy < 0.06
    predict, rows = bent(d), oracle.all_rows(d)
    weight, target = oracle.row_law(rows, np.ones(d), 1.0, law), float(bent(d)(np.ones((1, d)))[0])
    flips = near.law.flips(np.random.default_rng(0), m) @ 2 ** np.arange(d)
    share = np.bincount(flips, minlength=2**d) / m  # rows are listed by their flips
    values = predict(rows)
    for first, second in combinations(range(d), 2):
        for part in (-0.4, 0.1, 0.45):
            w = np.zeros(d)
            w[[first, second]] = part, target - part
            assert np.abs(w).max() <= 1
            errors = np.abs(rows @ w - values)
            assert weight @ errors <= share @ errors + accuracy
            precision_error, _, coincidence = enumerated(predict, np.ones(d), 1.0, w, target, law)
            assert precision_error <= (np.sqrt(share @ errors**2) + accuracy) / coincidence
