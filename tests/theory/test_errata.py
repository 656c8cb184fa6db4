"""Formulas that are wrong as printed: the printed one fails, the corrected one holds."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.special import ndtr

import limes
import oracle
from limes.designs import ExchangeableDesign, ProductDesign
from limes.models import forms
from limes.theory import gaussian_bins, inverse_gram, robustness, smooth_limit, theorem_samples
from oracle import EXACT
from paper import IDENTITY, Paper, paper


def close(result, expected):
    return oracle.error(result, expected) < EXACT


# -- 2020, Theorem 3.1: σ̃ is printed as its square ----------------------------------------------------------


def gaussian_case(bandwidth=0.7):
    edges, means, stds = gaussian_bins([0.0, 1.0], 1.5)
    row = np.array([0.5, 0.2])
    return Paper(np.array(edges), np.array(means), np.array(stds), row, bandwidth, "euclidean")


def theorem_3_1(spread, middle, lower, upper):
    a, b = (lower - middle) / spread, (upper - middle) / spread
    alpha = ndtr(b) - ndtr(a)
    theta = spread * (np.exp(-0.5 * b**2) - np.exp(-0.5 * a**2)) / np.sqrt(2 * np.pi)
    return -theta / (alpha * (1 - alpha))


def test_sigma_tilde_of_the_2020_paper_is_a_root():
    case, nu, sigma = gaussian_case(), 0.7, 1.5
    truth = case.truth(lambda x: x.sum(axis=1))[1:]
    middle = (nu**2 * case.means[:, 0] + sigma**2 * case.instance) / (nu**2 + sigma**2)
    row = np.arange(2)
    ends = case.edges[row, case.cells], case.edges[row, np.add(case.cells, 1)]
    printed = nu**2 * sigma**2 / (nu**2 + sigma**2)
    assert close(theorem_3_1(np.sqrt(printed), middle, *ends), truth)
    assert oracle.error(theorem_3_1(printed, middle, *ends), truth) > 0.01
    mended = smooth_limit([1.0, 1.0], 0.0, case.instance, mean=case.means[:, 0], std=sigma, bandwidth=nu)
    assert close(mended.coef, truth)


def test_example_11_of_2022_has_theta_with_the_wrong_prefactor():
    """Printed 1/(s √(2π)); it is s/√(2π). Then e_j×/(p c_j) = α_j m_j - θ_j."""
    case, nu, sigma = gaussian_case(), 0.7, 1.5
    s = nu * sigma / np.hypot(nu, sigma)
    for j in range(2):
        m = (nu**2 * case.means[j, 0] + sigma**2 * case.instance[j]) / (nu**2 + sigma**2)
        b, pc = case.cells[j], case.p * case.c(j)
        lower, upper = (case.edges[j][b] - m) / s, (case.edges[j][b + 1] - m) / s
        steps = (np.exp(-0.5 * upper**2) - np.exp(-0.5 * lower**2)) / np.sqrt(2 * np.pi)
        alpha, moment = case.e(j)[b] / pc, case.e(j, IDENTITY)[b] / pc
        assert close(alpha * m - s * steps, moment)
        assert oracle.error(alpha * m - steps / s, moment) > 0.01


# -- 2022, Proposition 13 and Corollary 14: Γ lacks the factor C --------------------------------------------


@pytest.mark.parametrize("weights", ["bins", "euclidean"])
def test_gamma_of_sums_lacks_the_normalisation(weights):
    case, parts = paper(3, weights=weights), (np.sin, np.exp)
    truth = case.moments(lambda x: np.sin(x[:, 0]) + np.exp(x[:, 1]))
    means = [case.e(k, f).sum() / (case.p * case.c(k)) for k, f in enumerate(parts)]
    printed = [sum(means)]
    for j, f in enumerate(parts):
        b, pc, e, ef = case.cells[j], case.p * case.c(j), case.e(j), case.e(j, f)
        printed.append(e[b] / pc * sum(means) + (ef[b] - e[b] / pc * ef.sum()) / pc)
    assert close(case.C * np.array(printed), truth)
    assert oracle.error(printed, truth) > 0.1


def test_gamma_of_lines_lacks_the_normalisation():
    case, slopes = paper(4), np.array([1.0, -2.0])
    truth = case.moments(lambda x: x @ slopes)
    gamma = np.array([case.e(j, IDENTITY).sum() / (case.p * case.c(j)) for j in range(2)])
    printed = [slopes @ gamma]
    for j, slope in enumerate(slopes):
        b, pc = case.cells[j], case.p * case.c(j)
        e, moment = case.e(j)[b], case.e(j, IDENTITY)[b]
        printed.append(e / pc * (slopes @ gamma) + slope / pc * (moment - gamma[j] * e))
    assert close(case.C * np.array(printed), truth)
    assert oracle.error(printed, truth) > 0.1


# -- 2022, section 3.2.3: "β → 0 as ν → 0" ------------------------------------------------------------------


def test_a_narrow_bandwidth_does_not_make_the_limit_vanish():
    """It is the ridge's fit that vanishes: its penalty meets a mass of n C v, which goes to 0."""
    form, coefs, shrunk = forms.Linear([2.0, -1.0], 0.0), [], []
    for bandwidth in (1.0, 0.1, 0.01):
        design = paper(5, bandwidth=bandwidth).design()
        coefs.append(limes.limit(design, form).coef)
        mass = 5000 * np.exp(design.log_weight) * design.variance
        shrunk.append(coefs[-1] * mass / (mass + 1.0))
    # of a linear model it is even the same at every bandwidth (Corollary 4)
    assert np.allclose(coefs, coefs[0], rtol=EXACT)
    assert np.abs(coefs[0]).min() > 0.1
    assert np.abs(shrunk[-1]).max() < 1e-90


# -- 2022, Proposition 2: robustness ------------------------------------------------------------------------


def printed_robustness(d, p, bandwidth):
    return np.sqrt(d * (9 * d + 4 * p**2)) * np.exp(0.5 / bandwidth**2) / (p - 1)


def farthest(design, place):
    """Norm of (β₀, β) of the model that is 1 in the instance's bin and -1 elsewhere; |f| ≤ 1."""
    form = forms.Boxes([[place[0]]], [[place[1]]], [2.0], intercept=-1.0)
    surrogate = limes.limit(design, form)
    return float(np.hypot(surrogate.intercept, surrogate.coef[0]))


@pytest.mark.parametrize("p", [2, 4, 20, 1000])
def test_proposition_2_fails_for_many_bins(p):
    edges = np.arange(p + 1.0)
    middle = edges[:-1] + 0.5
    design = ProductDesign.from_bins([edges], [middle], [np.full(p, 0.3)], [0.5], np.inf)
    reached = farthest(design, (-np.inf, 1.0))
    assert reached <= robustness(design).norm
    assert (reached > printed_robustness(1, p, np.inf)) == (p >= 20)


# -- 2022, Theorem 1 and Proposition 24: C_f for C_f² -------------------------------------------------------


def test_the_sample_size_must_not_depend_on_the_unit():
    """f in cents and ε in cents is the same problem; the printed first term asks for 100 times fewer rows."""
    setting = {"size": 3, "bins": 4, "bandwidth": 1.0}
    euros = theorem_samples(0.01, bound=1.0, **setting)
    assert theorem_samples(1.0, bound=100.0, **setting) == pytest.approx(euros, rel=1e-12)
    assert printed_first_term(1.0, 100.0) == pytest.approx(printed_first_term(0.01, 1.0) / 100)


def printed_first_term(tolerance, bound, d=3, p=4, nu=1.0, risk=0.05):
    c = 1 / p + (1 - 1 / p) * np.exp(-0.5 / nu**2)
    size = 2**12 * bound * d**4 * p**4 * np.exp(nu**-2) * np.log(8 * d / risk)
    return size / (c ** (2 * d) * tolerance**2)


def test_the_concentration_of_gamma_as_printed_is_broken_by_coin_flips():
    """Proposition 24: P(‖Γ̂ - Γ‖ ≥ t) ≤ 4d exp(-n t²/(32 C_f d²)), f = ±C_f with equal chances."""
    bound, n, d = 1e4, 100, 1
    flips = np.random.default_rng(0).choice([-bound, bound], size=(2000, n))
    # ν = ∞ and f independent of z: Γ = 0, and its first entry alone is the mean of f
    t = 0.1 * bound
    seen = float((np.abs(flips.mean(axis=1)) >= t).mean())
    assert seen > 0.2
    assert 4 * d * np.exp(-n * t**2 / (32 * bound * d**2)) < 1e-6
    assert 4 * d * np.exp(-n * t**2 / (32 * bound**2 * d**2)) >= seen


# -- 2020, Lemmas 8.4 and 9.3, Remark 8.1: concentration, and the eigenvalues of Σ⁻¹ -------------------------


def quartile_columns(d, rng, rows):
    """z of the first quartile's bin in d columns at ν = ∞: coins of ¼, all weights 1."""
    return (rng.random((rows, d)) < 0.25).astype(float)


def test_lemma_8_4_of_2020_fails_in_many_columns():
    """P(‖Σ̂ - Σ‖ ≥ t) ≤ 4d² exp(-2nt²): its union bound leaves the norm of (d + 1)² entries out."""
    d, t, rng = 20, 2.0, np.random.default_rng(0)
    means = np.append(1.0, np.full(d, 0.25))
    sigma = np.outer(means, means)
    sigma[np.diag_indices(d + 1)] = means
    rows = np.column_stack([np.ones(400), quartile_columns(d, rng, 400)])
    far = [np.linalg.norm(np.outer(row, row) - sigma, 2) >= t for row in rows]  # n = 1
    assert np.mean(far) > 0.9
    assert 4 * d**2 * np.exp(-2 * t**2) < 0.55


def test_lemma_9_3_of_2020_fails_as_f_is_not_centred():
    """P(‖Γ̂ - Γ‖ > t) ≤ 4d exp(-nt²/(2‖∇f‖²σ²)) of f(x) = 10 + x/1000, n = 1, t = 1."""
    x = np.random.default_rng(0).normal(size=1000)
    f, z = 10 + 1e-3 * x, x <= np.quantile(x, 0.25)
    away = np.hypot(f - f.mean(), z * f - (z * f).mean())
    assert (away > 1).all()
    assert 4 * np.exp(-1 / (2 * 1e-3**2)) == 0.0


def test_the_secular_equation_of_2020_has_a_minus():
    """Remark 8.1, at the eigenvalues of C Σ⁻¹: + is printed before its last sum."""
    design = gaussian_case().design()
    s, alpha = np.exp(design.log_weight) * inverse_gram(design), design.inclusion
    last = lambda value: (alpha / ((1 - alpha) * (1 - value * alpha * (1 - alpha)))).sum()  # noqa: E731
    for value in np.linalg.eigvalsh(s):
        first = 1 + (alpha / (1 - alpha)).sum() - value
        assert first - last(value) == pytest.approx(0.0, abs=1e-9 * abs(first))
        assert abs(first + last(value)) > 0.5


# -- 2021, Proposition 12 and Theorems 1, 2: M for M² -------------------------------------------------------


def test_the_concentration_of_gamma_for_texts_is_broken_by_large_answers():
    """P(‖Γ̂ - Γ‖ ≥ t) ≤ 4d exp(-nt²/(32 M d²)): two words, f = M (z_1 - z_2), ν = ∞, so that E f = 0."""
    bound, n, d = 1e4, 100, 2
    sets = np.array([[0, 0], [0, 0], [1, 0], [0, 1]])  # s uniform on 1, 2, and then which
    z = sets[np.random.default_rng(0).integers(4, size=(2000, n))]
    t = 0.1 * bound
    seen = float((np.abs(bound * (z[..., 0] - z[..., 1]).mean(axis=1)) >= t).mean())
    assert seen > 0.1
    assert 4 * d * np.exp(-n * t**2 / (32 * bound * d**2)) < 1e-30
    assert 4 * d * np.exp(-n * t**2 / (32 * bound**2 * d**2)) > 1  # with M², nothing is claimed


# -- 2021, Remarks 1, 2 and 4: what the paper leaves open ---------------------------------------------------


def test_the_norm_of_the_inverse_for_texts_is_bounded_in_d():
    """Remark 2 conjectures ‖Σ⁻¹‖ ~ d (Proposition 9 has d^{3/2}): it tends to a constant."""
    norms = [
        np.linalg.norm(inverse_gram(ExchangeableDesign.word_deletions(d)), 2) for d in (50, 100, 200, 400)
    ]
    assert (np.diff(norms) < 0).all()
    assert norms[-1] == pytest.approx(26.0, rel=0.01)
    assert norms[-1] < 1e-5 * 70 * 400**1.5 * np.exp(2.5 / 0.25**2)


def test_a_word_that_the_model_does_not_use_has_a_coefficient():
    """Remark 4 asks whether it is 0, as it is in tables: not for the indicator of two of nine words."""
    design = ExchangeableDesign.word_deletions(9)
    coef = limes.limit(design, forms.PresenceProducts([([0, 1], [], 1.0)])).coef
    assert coef[2:] == pytest.approx(np.full(7, -0.0102), abs=5e-5)
    # by least squares over all 2^9 - 1 texts
    z = np.array(list(product([0.0, 1.0], repeat=9)))[:-1]
    removed = 9 - z.sum(axis=1)
    weight = np.exp(-((1 - np.sqrt(1 - removed / 9)) ** 2) / (2 * 0.25**2))
    weight /= [comb(9, int(s)) for s in removed]
    root = np.sqrt(weight)[:, None]
    rows = np.column_stack([np.ones(len(z)), z])
    fit, *_ = np.linalg.lstsq(root * rows, root[:, 0] * z[:, 0] * z[:, 1], rcond=None)
    assert coef == pytest.approx(fit[1:], abs=1e-9)


# -- 2022, Appendix B.3 -------------------------------------------------------------------------------------


def test_the_bound_of_the_inverse_that_2022_states_without_a_proof_holds():
    """‖Σ⁻¹‖ ≲ c^{-d} e^{1/(2ν²)} (d + p), with the constant 1.75."""
    for d, p, nu in product((1, 3, 8), (2, 4, 10, 40), (0.4, 1.0, 3.0)):
        edges, middle = np.arange(p + 1.0), np.arange(p) + 0.5
        design = ProductDesign.from_bins([edges] * d, [middle] * d, [np.full(p, 0.3)] * d, [0.5] * d, nu)
        c = 1 / p + (1 - 1 / p) * np.exp(-0.5 / nu**2)
        norm = np.linalg.norm(inverse_gram(design), 2)
        assert norm <= 1.75 * c**-d * np.exp(0.5 / nu**2) * (d + p)
