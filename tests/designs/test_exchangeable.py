"""Exchangeable designs: their law, Σ, subsets and samples, against 150 digits and against enumeration."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
import words
from effort import repeats
from limes.designs import ExchangeableDesign
from limes.exceptions import InputError
from oracle import EXACT

NARROW = 1e-3
BANDWIDTHS = (NARROW, *words.BANDWIDTHS)


def design(kind, d, bandwidth):
    designs = {
        "words": ExchangeableDesign.word_deletions,
        "superpixels": ExchangeableDesign.superpixel_switches,
    }
    return designs[kind](d, bandwidth)


def relative(result, expected):
    """Relative error of one number against a decimal; what float64 cannot hold counts as 0."""
    expected = Decimal(0) if abs(expected) < Decimal("1e-300") else expected
    return float(abs(Decimal(float(result)) - expected) / (abs(expected) or 1))


kinds = pytest.mark.parametrize("kind", words.KINDS)
bandwidths = pytest.mark.parametrize("bandwidth", BANDWIDTHS)


# -- the law and Σ ----------------------------------------------------------------------------------------


@kinds
@bandwidths
@pytest.mark.parametrize("d", [1, 2, 3, 7, 30, 200])
def test_the_law_and_both_eigenvalues_in_150_digits(kind, d, bandwidth):
    """α₁ - α₂ and α₁ - α₂ + d (α₂ - α₁²), which vanish with the bandwidth, to nine digits."""
    result, p = design(kind, d, bandwidth), words.law(kind, d, bandwidth)
    for s, probability in enumerate(p):
        assert relative(result.counts.law[s], probability) < EXACT
    with localcontext() as context:
        context.prec = words.DIGITS
        a1 = words.presence(p, 1, 0)
        mean = sum(s * q for s, q in enumerate(p))
        across = words.presence(p, 1, 1) if d > 1 else Decimal(0)
        along = sum((s - mean) ** 2 * q for s, q in enumerate(p)) / d
        if d > 1 and bandwidth != NARROW:
            a2 = words.presence(p, 2, 0)
            assert abs(across - (a1 - a2)) + abs(along - (a1 - a2 + d * (a2 - a1 * a1))) < Decimal("1e-130")
        assert relative(result.inclusion[0], a1) < EXACT
        assert relative(result.departure[0], 1 - a1) < EXACT
        assert relative(result.variance[0], a1 * mean / d) < EXACT
        assert relative(result.counts.within_variance, across) < EXACT
        assert relative(result.counts.between_variance, along) < EXACT
    total = sum(words.weights(kind, d, bandwidth)).ln()
    assert abs(float(result.log_weight) - float(total)) < EXACT * max(1.0, abs(float(total)))
    assert result.inclusion.shape == result.variance.shape == result.departure.shape == (d,)
    assert result.at_instance.tolist() == [1.0] * d
    assert result.size == d


@kinds
@pytest.mark.parametrize("bandwidth", repeats([0.001, 0.25, np.inf], [0.25]))
def test_thousands_of_features(kind, bandwidth):
    d = repeats(10_000, 3_000)
    result, p = design(kind, d, bandwidth), words.law(kind, d, bandwidth)
    with localcontext() as context:
        context.prec = 60
        mean = sum(s * q for s, q in enumerate(p))
        spread = sum((s - mean) ** 2 * q for s, q in enumerate(p)) / d
        pairs = sum(s * (d - s) * q for s, q in enumerate(p)) / (d * (d - 1))
    assert relative(result.departure[0], mean / d) < EXACT
    assert relative(result.counts.between_variance, spread) < EXACT
    assert relative(result.counts.within_variance, pairs) < EXACT
    for k, r in repeats([(1, 0), (2, 0), (1, 1), (3, 2), (0, 4)], [(1, 0), (3, 2)]):
        assert relative(result.a(k, r), words.presence(p, k, r)) < EXACT


@kinds
@bandwidths
@pytest.mark.parametrize("d", [1, 4, 25])
def test_a_is_the_probability_of_kept_and_removed_features(kind, d, bandwidth):
    result, p = design(kind, d, bandwidth), words.law(kind, d, bandwidth)
    for k in range(min(d, 5) + 1):
        for r in range(min(d - k, 5) + 1):
            assert relative(result.a(k, r), words.presence(p, k, r)) < EXACT
    assert result.a(d, 1) == result.a(0, d + 1) == 0.0


@kinds
@bandwidths
@pytest.mark.parametrize("d", [1, 2, 6, 10])
def test_every_subset_with_its_probability(kind, d, bandwidth):
    result = design(kind, d, bandwidth)
    z, log_probability = result.enumerate()
    assert z.shape == (2**d, d)
    assert len({tuple(row) for row in z}) == 2**d
    p = words.law(kind, d, bandwidth)
    for row, log in zip(z, log_probability, strict=True):
        s = d - int(row.sum())
        assert relative(np.exp(log), p[s] / math.comb(d, s)) < EXACT
    probability = np.exp(log_probability)
    mean = probability @ z
    covariance = (z - mean).T @ (probability[:, None] * (z - mean))
    assert np.abs(mean - result.inclusion).max() < 1e-12
    identity = result.spectral(lambda v: v, np.eye(d))
    assert np.abs(identity - covariance).max() < 1e-12


# -- the paper --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 5, 40])
@pytest.mark.parametrize("bandwidth", words.BANDWIDTHS)
def test_propositions_1_6_7_and_9(d, bandwidth):
    """α_p, Σ⁻¹ through c_d and the σ's, and the bounds on both; α's are not divided by α₀ there."""
    result = design("words", d, bandwidth)
    s = np.arange(1, d + 1)
    psi = np.exp(-((1 - np.sqrt(1 - s / d)) ** 2) / (2 * bandwidth**2))
    alpha = [
        np.mean(psi * np.prod([(d - s - k) / (d - k) for k in range(p)], axis=0)) for p in range(min(d, 4))
    ]
    total = np.exp(result.log_weight)
    for p, expected in enumerate(alpha):
        assert result.a(p, 0) * total == pytest.approx(expected, rel=EXACT)
    a0, a1 = alpha[:2]
    a2 = result.a(2, 0) * total
    smallest = np.exp(-0.5 / bandwidth**2)
    assert a1 - a2 >= smallest / 6
    c = total**2 * result.counts.between_variance
    assert c >= smallest**4 / 40
    if bandwidth >= 0.25:
        assert c == pytest.approx((d - 1) * a0 * a2 - d * a1**2 + a0 * a1, rel=1e-6)
        sigma = np.array(
            [
                (d - 1) * a2 + a1,
                -a1,
                ((d - 2) * a0 * a2 - (d - 1) * a1**2 + a0 * a1) / (a1 - a2),
                (a1**2 - a0 * a2) / (a1 - a2),
            ]
        )
        dense = np.full((d + 1, d + 1), a2)
        dense[0], dense[:, 0] = a1, a1
        np.fill_diagonal(dense, a1)
        dense[0, 0] = a0
        inverse = np.full((d + 1, d + 1), sigma[3])
        inverse[0], inverse[:, 0] = sigma[1], sigma[1]
        np.fill_diagonal(inverse, sigma[2])
        inverse[0, 0] = sigma[0]
        assert np.abs(dense @ inverse / c - np.eye(d + 1)).max() < 1e-6
        # Proposition 9
        assert np.linalg.norm(inverse / c, 2) <= 70 * d**1.5 * np.exp(2.5 / bandwidth**2)
        # the lower right block of Σ⁻¹ is the inverse of the centred Σ
        ours = result.solve(np.eye(d)) / total
        assert np.abs(ours - inverse[1:, 1:] / c).max() < 1e-6 * np.abs(ours).max()


@pytest.mark.parametrize("d", [2, 7, 100])
def test_corollaries_1_and_3(d):
    """No weights at all: α_p = (d - p) / ((p + 1) d), c_d = (d² - 1) / (12 d)."""
    result = design("words", d, np.inf)
    for p in range(min(d, 6) + 1):
        assert result.a(p, 0) == pytest.approx((d - p) / ((p + 1) * d), rel=EXACT)
    assert result.counts.between_variance == pytest.approx((d * d - 1) / (12 * d), rel=EXACT)
    inverse = result.solve(np.eye(d))
    assert inverse[0, 0] == pytest.approx(6 * (d * d - 2 * d + 3) / (d * d - 1), rel=EXACT)
    assert inverse[0, 1] == pytest.approx(-6 * (d - 3) / (d * d - 1), rel=EXACT, abs=1e-12)


# -- solving ----------------------------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize("bandwidth", [1e-200, 1e-8, *BANDWIDTHS])
@pytest.mark.parametrize("d", [2, 3, 10, 500])
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_gamma_and_solve_undo_each_other_at_any_bandwidth(kind, bandwidth, d, outputs):
    coef = np.random.default_rng(d).normal(size=(d, *outputs))
    moments = design(kind, d, bandwidth)
    assert oracle.error(moments.solve(moments.gamma(coef)), coef) < EXACT


@given(st.integers(2, 40), st.sampled_from([0.1, 0.25, 1.0, np.inf]), st.sampled_from(words.KINDS))
def test_solve_is_the_inverse_of_a_dense_matrix(d, bandwidth, kind):
    moments = design(kind, d, bandwidth)
    a1, a2 = moments.a(1, 0), moments.a(2, 0)
    dense = np.full((d, d), a2 - a1 * a1) + (a1 - a2) * np.eye(d)
    if np.linalg.cond(dense) > 1e5:
        return
    gamma = np.random.default_rng(d).normal(size=(d, 2))
    assert oracle.error(moments.solve(gamma), np.linalg.solve(dense, gamma)) < EXACT
    assert oracle.error(moments.gamma(gamma), dense @ gamma) < EXACT


def test_a_single_word_is_next_to_always_deleted_and_has_a_coefficient():
    """Its Σ is tiny and no zero, so that Σ⁻¹Γ is f(1) - f(0), whatever the bandwidth."""
    for bandwidth in (1e-3, 0.05, 0.25, np.inf):
        moments = design("words", 1, bandwidth)
        assert moments.solve(moments.gamma(np.array([0.7])))[0] == pytest.approx(0.7, rel=EXACT)
    moments = design("words", 1, 0.25)
    assert moments.inclusion[0] < 1e-26
    assert moments.solve(moments.inclusion * moments.departure * 0.7)[0] == pytest.approx(0.7, rel=EXACT)
    assert not moments.sample(9, np.random.SeedSequence(0))[0].any()
    image = design("superpixels", 1, np.inf)
    assert image.variance == pytest.approx(0.25)
    assert image.solve(image.gamma(np.array([3.0]))) == pytest.approx(3.0)


def test_between_and_within_have_limits():
    """ν → 0: only one word is deleted, and next to never two; or no superpixel, and next to never one."""
    text, image = design("words", 5, 1e-300), design("superpixels", 5, 1e-300)
    assert text.counts.law.tolist() == [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert text.counts.between.tolist() == [0.0, 1.0, -1.0, 0.0, 0.0, 0.0]
    assert text.counts.within == pytest.approx([0.0, 5.0, 0.0, 0.0, 0.0, 0.0])
    assert image.counts.between.tolist() == [1.0, -1.0, 0.0, 0.0, 0.0, 0.0]
    assert image.counts.within == pytest.approx([0.0, 5.0, 0.0, 0.0, 0.0, 0.0])


# -- samples ----------------------------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize(("d", "bandwidth"), [(1, 0.25), (2, np.inf), (5, 0.1), (9, 0.25), (9, np.inf)])
def test_samples_are_unbiased(kind, d, bandwidth):
    """Means over replicates of products of up to three features, kept and removed: |z| < 4.5."""
    result, rng = design(kind, d, bandwidth), np.random.default_rng(d)
    groups = [rng.choice(d, min(d, size), replace=False) for size in (1, 2, 2, 3, 3)]
    signs = [rng.integers(0, 2, g.size) for g in groups]
    replicates = [
        result.sample(10, stream)[0] for stream in np.random.SeedSequence(d).spawn(repeats(3000, 800))
    ]
    for group, sign in zip(groups, signs, strict=True):
        means = np.array([(z[:, group] == sign).all(axis=1).mean() for z in replicates])
        expected = result.a(int(sign.sum()), int((1 - sign).sum()))
        error = max(means.std(ddof=1) / np.sqrt(means.size), 1e-15)
        assert abs(means.mean() - expected) / error < oracle.Z_LIMIT


def test_each_row_alone_has_the_law():
    """Row 0 and row 6 of seven, over 6,000 replicates: every subset as often as it should, |z| < 4.5."""
    result = design("words", 4, 0.5)
    z, log_probability = result.enumerate()
    rows = np.stack([result.sample(7, s)[0] for s in np.random.SeedSequence(3).spawn(6000)])
    for i in (0, 6):
        for subset, expected in zip(z, np.exp(log_probability), strict=True):
            count = (rows[:, i] == subset).all(axis=1).sum()
            deviation = np.sqrt(6000 * expected * (1 - expected))
            assert abs(count - 6000 * expected) <= oracle.Z_LIMIT * deviation


@given(
    st.sampled_from(words.KINDS),
    st.integers(1, 60),
    st.sampled_from(BANDWIDTHS),
    st.integers(1, 300),
    st.integers(0, 2**32),
)
def test_counts_are_stratified_and_streams_decide(kind, d, bandwidth, points, seed):
    result = design(kind, d, bandwidth)
    x, h = result.sample(points, np.random.SeedSequence(seed))
    again, _ = result.sample(points, np.random.SeedSequence(seed))
    assert x.shape == h.shape == (points, d)
    assert x.dtype == h.dtype == np.float64
    assert np.array_equal(x, h)
    assert np.array_equal(x, again)
    assert set(np.unique(x)) <= {0.0, 1.0}
    counted = np.bincount(d - x.sum(axis=1).astype(int), minlength=d + 1)
    assert np.abs(counted - points * result.counts.law).max() < 2


def test_different_streams_differ():
    result = design("words", 30, 0.25)
    a, b = (result.sample(64, s)[0] for s in np.random.SeedSequence(0).spawn(2))
    assert not np.array_equal(a, b)


def test_a_symmetric_law_gives_complements():
    z, _ = design("superpixels", 12, np.inf).sample(64, np.random.SeedSequence(1))
    rows = {tuple(row) for row in z}
    assert np.mean([tuple(1 - row) in rows for row in z]) > 0.8


@pytest.mark.parametrize(
    ("kind", "bandwidth", "gain"),
    [("superpixels", 0.25, 2.0), ("words", np.inf, 1.8), ("words", 0.25, 1.15), ("words", 0.1, 0.9)],
)
def test_variance_of_coefficients_falls_for_interactions(kind, bandwidth, gain):
    """Least squares of 30 products of two features, against independent rows; where few words are ever
    deleted together there is nothing to gain, and nothing is lost."""
    d, points, rng = 24, 256, np.random.default_rng(0)
    result = design(kind, d, bandwidth)
    places = [rng.choice(d, 2, replace=False) for _ in range(30)]
    heights = rng.normal(size=30)

    def f(z):
        return sum(c * z[:, p].prod(axis=1) for c, p in zip(heights, places, strict=True))

    def spread(draw):
        fits = [oracle.least_squares(z, f(z), np.ones(points))[1] for z in map(draw, range(150))]
        return np.var(fits, axis=0).mean()

    def independent(seed):
        rng = np.random.default_rng(seed)
        removed = rng.choice(d + 1, points, p=result.counts.law)
        return (rng.random((points, d)).argsort(axis=1) >= removed[:, None]).astype(float)

    def ours(seed):
        return result.sample(points, np.random.SeedSequence(seed))[0]

    assert spread(independent) / spread(ours) > gain


# -- errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [ExchangeableDesign.word_deletions, ExchangeableDesign.superpixel_switches])
@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ((0,), ["whole number >= 1", "0"]),
        ((2.5,), ["whole number", "2.5"]),
        ((True,), ["whole number", "True"]),
        (("3",), ["whole number", "'3'"]),
        ((3, 0.0), ["bandwidth", "> 0"]),
        ((3, -1), ["bandwidth", "-1"]),
        ((3, float("nan")), ["bandwidth", "nan"]),
        ((3, None), ["bandwidth", "None"]),
    ],
)
def test_errors_say_what_is_wrong(make, arguments, parts):
    with pytest.raises(InputError) as caught:
        make(*arguments)
    for part in parts:
        assert part in str(caught.value)


def test_too_many_features_to_enumerate():
    with pytest.raises(InputError, match=r"21 features have 2\^21 subsets.*sample"):
        design("words", 21, 0.25).enumerate()


def test_numbers_of_numpy_are_numbers():
    assert design("words", np.int64(5), np.float32(0.25)).size == 5
    assert ExchangeableDesign.word_deletions(5).counts.law == pytest.approx(
        design("words", 5, 0.25).counts.law
    )


def test_penalties_that_differ_between_features_are_refused():
    result = design("words", 3, 0.25)
    with pytest.raises(InputError, match="same penalty"):
        result.spectral(lambda v: v + np.ones(3), np.ones(3))
