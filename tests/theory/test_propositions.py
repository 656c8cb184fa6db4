"""The tabular papers' closed forms, each against quadrature, and against what the library computes.

Designs are the papers': the same number p of bins in every column, all alike. Their notation: ``paper.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import integrate
from scipy.special import ndtr

import limes
import oracle
import strategies
from effort import examples
from limes.designs import ProductDesign
from limes.models import forms
from limes.theory import gaussian_bins, smooth_limit, switch_off_bandwidth
from oracle import EXACT
from paper import IDENTITY, ONE, Paper, paper

WEIGHTS = pytest.mark.parametrize("weights", ["bins", "euclidean"])
SEEDS = pytest.mark.parametrize("seed", range(3))


def close(result, expected):
    assert oracle.error(result, expected) < EXACT


def both(case, form, f, formula):
    """A formula (d + 1,), intercept first, is what quadrature says and what the library says."""
    close(formula, case.truth(f))
    limit = limes.limit(case.design(), form)
    close(np.append(limit.intercept, limit.coef), formula)


# -- Σ ----------------------------------------------------------------------------------------------------


@WEIGHTS
@SEEDS
def test_propositions_10_and_11_the_gram_and_its_inverse(seed, weights):
    case = paper(seed, weights=weights)
    d = case.d
    alpha = np.array([case.e(j)[case.cells[j]] / (case.p * case.c(j)) for j in range(d)])
    gram = np.array([case.moments(lambda x, k=k: with_one(case, x)[:, k]) for k in range(d + 1)])
    expected = np.outer(np.append(1, alpha), np.append(1, alpha))
    expected[np.arange(1, d + 1), np.arange(1, d + 1)] = alpha
    close(gram, case.C * expected)
    inverse = np.diag(np.append(1 + (alpha / (1 - alpha)).sum(), 1 / (alpha * (1 - alpha))))
    inverse[0, 1:] = inverse[1:, 0] = -1 / (1 - alpha)
    close(gram @ (inverse / case.C), np.eye(d + 1))
    close(case.design().inclusion, alpha)
    close(np.exp(case.design().log_weight), case.C)


def with_one(case, x):
    """Z = (1, z)."""
    edges = zip(case.edges, case.cells, x.T, strict=True)
    z = [(e[b] < column) & (column <= e[b + 1]) for e, b, column in edges]
    return np.column_stack([np.ones(len(x)), *z]).astype(float)


@WEIGHTS
@SEEDS
@pytest.mark.parametrize("bandwidth", [0.5, 1.3, 10.0])
def test_proposition_12_the_norm_of_the_inverse(seed, weights, bandwidth):
    """2√2 d p² e^{2/ν²}/C; for default weights e^{1/(2ν²)}, with which Theorem 1 is proved."""
    case = paper(seed, weights=weights, bandwidth=bandwidth)
    if weights == "euclidean":  # it asks for data in a range of 1
        shrunk = case.edges[:, :1], np.ptp(case.edges, axis=1, keepdims=True)
        case = Paper(
            (case.edges - shrunk[0]) / shrunk[1],
            (case.means - shrunk[0]) / shrunk[1],
            case.stds / shrunk[1],
            (case.instance - shrunk[0].ravel()) / shrunk[1].ravel(),
            bandwidth,
            weights,
        )
    alpha, d = case.design().inclusion, case.d
    gram = np.outer(np.append(1, alpha), np.append(1, alpha))
    gram[np.arange(1, d + 1), np.arange(1, d + 1)] = alpha
    norm = 1 / (np.linalg.eigvalsh(gram)[0] * case.C)
    power = 2.0 if weights == "euclidean" else 0.5
    assert norm <= 2 * np.sqrt(2) * d * case.p**2 * np.exp(power / bandwidth**2) / case.C


@SEEDS
def test_example_3_smooth_weights(seed):
    """e_jb in closed form, for parameters of each bin; and C where bins are Gaussian quantiles (Eq. 24)."""
    case = paper(seed, weights="euclidean")
    nu = case.bandwidth
    for j in range(case.d):
        mu, sigma, q, xi = case.means[j], case.stds[j], case.edges[j], case.instance[j]
        total = nu**2 + sigma**2
        m, s = (nu**2 * mu + sigma**2 * xi) / total, nu * sigma / np.sqrt(total)
        mass = ndtr((q[1:] - mu) / sigma) - ndtr((q[:-1] - mu) / sigma)
        tilted = ndtr((q[1:] - m) / s) - ndtr((q[:-1] - m) / s)
        close(case.e(j), tilted / mass * nu / np.sqrt(total) * np.exp(-((xi - mu) ** 2) / (2 * total)))
    edges, means, stds = gaussian_bins([0.3, -1.0], 1.5)
    design = ProductDesign.from_bins(edges, means, stds, [0.9, 0.2], nu, weights="euclidean")
    total = nu**2 + 1.5**2
    away = 0.6**2 + 1.2**2
    close(np.exp(design.log_weight), nu**2 / total * np.exp(-away / (2 * total)))


# -- any f ------------------------------------------------------------------------------------------------


def wavy(x):
    return np.sin(x.sum(axis=1)) + x[:, 0] * x[:, -1] ** 2


@WEIGHTS
@SEEDS
def test_theorem_1_and_proposition_15_any_model(seed, weights):
    case = paper(seed, weights=weights)
    mean, *with_z = case.moments(wavy)
    coef, intercept = [], mean
    for j, gamma in enumerate(with_z):
        pc, e = case.p * case.c(j), case.e(j)[case.cells[j]]
        coef.append(-pc / (pc - e) * mean + pc**2 / (e * (pc - e)) * gamma)
        intercept += e / (pc - e) * mean - pc / (pc - e) * gamma
    close(np.append(intercept, coef) / case.C, case.truth(wavy))


@pytest.mark.parametrize("bandwidth", [1.0, 1e4])
def test_the_limit_of_a_wide_bandwidth(bandwidth):
    """Equations 9 and 10: c = 1 and π = 1. At ν = 1 they are not yet true."""
    case = paper(0, bandwidth=bandwidth)
    mean, *with_z = paper(0, bandwidth=np.inf).moments(wavy)
    p = case.p
    coef = [-p / (p - 1) * mean + p**2 / (p - 1) * gamma for gamma in with_z]
    intercept = (1 + case.d / (p - 1)) * mean - p / (p - 1) * sum(with_z)
    error = oracle.error(np.append(intercept, coef), case.truth(wavy))
    assert (error < 1e-7) == (bandwidth > 1)


@WEIGHTS
def test_propositions_9_and_29_features_that_the_model_does_not_use(weights):
    case = paper(1, d=3, weights=weights)
    form = forms.Multiplicative([np.sin, lambda x: 1 + 0 * x, np.cos])
    truth = case.truth(lambda x: np.sin(x[:, 0]) * np.cos(x[:, 2]))
    result = limes.limit(case.design(), form).coef
    assert abs(truth[2]) < EXACT
    assert abs(result[1]) < EXACT
    assert min(abs(result[0]), abs(result[2])) > 1e-3


# -- sums -------------------------------------------------------------------------------------------------

SUM = (np.sin, lambda x: x**3 + np.exp(x))


def total(x):
    return sum(f(x[:, j]) for j, f in enumerate(SUM))


@WEIGHTS
@SEEDS
def test_propositions_3_and_17_sums(seed, weights):
    case = paper(seed, weights=weights)
    intercept, coef = 0.0, []
    for j, f in enumerate(SUM):
        b, pc, e, ef = case.cells[j], case.p * case.c(j), case.e(j), case.e(j, f)
        coef.append(pc / (e[b] * (pc - e[b])) * (ef[b] - e[b] / pc * ef.sum()))
        intercept += (ef.sum() - ef[b]) / (pc - e[b])
    both(case, forms.Additive(list(SUM)), total, np.append(intercept, coef))


SLOPES = np.array([2.0, -1.0])


def line(x):
    return x @ SLOPES + 0.7


@WEIGHTS
@SEEDS
def test_corollaries_4_and_18_lines(seed, weights):
    case = paper(seed, weights=weights)
    gamma = np.array([case.e(j, IDENTITY).sum() / (case.p * case.c(j)) for j in range(2)])
    intercept, coef = line(gamma), []
    for j, slope in enumerate(SLOPES):
        b, pc = case.cells[j], case.p * case.c(j)
        e, moment = case.e(j)[b], case.e(j, IDENTITY)[b]
        coef.append(pc / (e * (pc - e)) * (moment - gamma[j] * e) * slope)
        intercept -= (moment - gamma[j] * e) * slope / (pc - e)
    both(case, forms.Linear(SLOPES, 0.7), line, np.append(intercept, coef))


@SEEDS
def test_corollary_4_means_of_bins(seed):
    """β_j = λ_j Σ_b (mean in ξ's bin - mean in bin b) / (p - 1), whatever ν."""
    case = paper(seed)
    mean = np.array(
        [
            [oracle.cell_mean(*part) for part in zip(m, s, e, e[1:], strict=False)]
            for m, s, e in zip(case.means, case.stds, case.edges, strict=True)
        ]
    )
    row_means = mean[np.arange(2), case.cells]
    for bandwidth in (0.05, 1.0, np.inf):
        again = Paper(case.edges, case.means, case.stds, case.instance, bandwidth)
        result = limes.limit(again.design(), forms.Linear(SLOPES, 0.7)).coef
        close(result, SLOPES * (row_means[:, None] - mean).sum(axis=1) / (case.p - 1))


# -- products ---------------------------------------------------------------------------------------------

PRODUCT = (lambda x: 2 + np.sin(x), lambda x: np.exp(x) + x**2)


def times(x):
    return np.prod([f(x[:, j]) for j, f in enumerate(PRODUCT)], axis=0)


@WEIGHTS
@SEEDS
def test_proposition_5_and_lemma_19_products(seed, weights):
    case = paper(seed, weights=weights)
    both(case, forms.Multiplicative(list(PRODUCT)), times, product_formula(case, PRODUCT))


def product_formula(case, parts):
    height = np.prod([case.c(j, f) for j, f in enumerate(parts)]) / case.C
    intercept, coef = height, []
    for j, f in enumerate(parts):
        b, pc, e, ef = case.cells[j], case.p * case.c(j), case.e(j), case.e(j, f)
        ratio = ef[b] / e[b] * case.c(j) / case.c(j, f)
        coef.append(height * pc / (pc - e[b]) * (ratio - 1))
        intercept += height * e[b] / (pc - e[b]) * (1 - ratio)
    return np.append(intercept, coef)


@SEEDS
def test_proposition_8_gaussian_kernels(seed):
    case, width = paper(seed), 0.8
    center = np.random.default_rng(seed).normal(size=2)
    for j in range(2):
        mu, sigma, q = case.means[j], case.stds[j], case.edges[j]
        m = (width**2 * mu + sigma**2 * center[j]) / (width**2 + sigma**2)
        s = sigma * width / np.hypot(sigma, width)
        mass = ndtr((q[1:] - m) / s) - ndtr((q[:-1] - m) / s)
        own_mass = ndtr((q[1:] - mu) / sigma) - ndtr((q[:-1] - mu) / sigma)
        formula = s / sigma * mass / own_mass * np.exp(-((mu - center[j]) ** 2) / (2 * (width**2 + sigma**2)))
        factor = np.where(np.arange(case.p) == case.cells[j], 1.0, np.exp(-0.5 / case.bandwidth**2))
        close(case.e(j, bump(center[j], width)), factor * formula)
    parts = [bump(c, width) for c in center]
    form = forms.GaussianKernels(center[None], [1.0], width)
    both(
        case,
        form,
        lambda x: np.exp(-((x - center) ** 2).sum(axis=1) / (2 * width**2)),
        product_formula(case, parts),
    )


def bump(center, width):
    return lambda x: np.exp(-((x - center) ** 2) / (2 * width**2))


# -- boxes ------------------------------------------------------------------------------------------------


def box_in(case, cells, rng):
    """A box inside one cell of the grid, faces away from its edges."""
    row = np.arange(case.d)
    lower, upper = case.edges[row, cells], case.edges[row, np.add(cells, 1)]
    ends = np.sort(rng.uniform(0.05, 0.95, size=(2, case.d)), axis=0)
    return lower + ends[0] * (upper - lower), lower + ends[1] * (upper - lower)


def proposition_6(case, lower, upper, cells):
    """(d + 1,) of 1[x in box], the box inside the cells."""
    row = np.arange(case.d)
    mu, sigma = case.means[row, cells], case.stds[row, cells]
    first, last = case.edges[row, cells], case.edges[row, np.add(cells, 1)]

    def mass(a, b):
        return ndtr((b - mu) / sigma) - ndtr((a - mu) / sigma)

    importance = np.prod(mass(lower, upper) / mass(first, last))
    aligned = np.array(cells) == case.cells
    away = np.exp(-(~aligned).sum() / (2 * case.bandwidth**2))
    t = np.exp(-0.5 / case.bandwidth**2)
    p, d, c = case.p, case.d, 1 / case.p + (1 - 1 / case.p) * t
    coef = importance * away / (p * c) ** (d - 1) * np.where(aligned, 1, -1 / ((p - 1) * t))
    return np.append(importance * away / (p * c) ** d - coef.sum() / (p * c), coef)


@SEEDS
@pytest.mark.parametrize("aligned", [0, 1, 3])
def test_proposition_6_indicators_of_boxes(seed, aligned):
    case, rng = paper(seed, d=3), np.random.default_rng(seed)
    cells = [b if j < aligned else (b + 1) % case.p for j, b in enumerate(case.cells)]
    lower, upper = box_in(case, cells, rng)
    formula = proposition_6(case, lower, upper, cells)
    close(formula, stepped(case, [(lower, upper, 1.0)]))
    limit = limes.limit(case.design(), forms.Boxes([lower], [upper], [1.0]))
    close(np.append(limit.intercept, limit.coef), formula)


def stepped(case, boxes):
    """Quadrature of Σ value 1[lower < x <= upper], a point between any two faces."""
    places = [sorted({v for lo, up, _ in boxes for v in (lo[j], up[j])}) for j in range(case.d)]
    columns = [
        oracle.bin_weighted(
            oracle.binned_column(case.edges[j], case.means[j], case.stds[j], breaks=places[j]),
            case.cells[j],
            case.bandwidth,
        ).collapsed(places[j])
        for j in range(case.d)
    ]
    surrogate = oracle.truth(
        columns, lambda x: sum(v * ((lo < x) & (x <= up)).all(axis=1) for lo, up, v in boxes), case.cells
    )
    return np.append(surrogate.intercept, surrogate.coef)


def test_proposition_6_needs_the_box_inside_one_cell():
    case = paper(0)
    cells = list(case.cells)
    lower, upper = box_in(case, cells, np.random.default_rng(0))
    upper[0] = case.edges[0][-1]  # now over several cells
    assert oracle.error(proposition_6(case, lower, upper, cells), stepped(case, [(lower, upper, 1.0)])) > 0.01


@SEEDS
def test_corollary_7_partitions(seed):
    case, rng = paper(seed, d=3), np.random.default_rng(seed)
    boxes, formula = [], np.zeros(4)
    for _ in range(6):
        cells = rng.integers(case.p, size=3).tolist()
        lower, upper = box_in(case, cells, rng)
        boxes.append((lower, upper, float(rng.normal())))
        formula += boxes[-1][2] * proposition_6(case, lower, upper, cells)
    close(formula, stepped(case, boxes))
    lowers, uppers, values = zip(*boxes, strict=True)
    limit = limes.limit(case.design(), forms.Boxes(lowers, uppers, values))
    close(np.append(limit.intercept, limit.coef), formula)


# -- the 2020 paper ---------------------------------------------------------------------------------------


@settings(max_examples=examples(40))
@given(strategies.rngs)
def test_theorem_3_1_and_corollary_3_1(rng):
    """Smooth weights and Gaussian quantile bins: closed form, library, quadrature."""
    d, bins = 2, int(rng.integers(2, 7))
    mean, std = rng.normal(size=d), float(rng.uniform(0.5, 2.0))
    bandwidth = float(rng.choice([0.5, 1.0, 3.0]))
    instance = mean + std * rng.normal(size=d) * 0.8
    slopes = rng.normal(size=d)
    surrogate = smooth_limit(slopes, 0.3, instance, mean=mean, std=std, bandwidth=bandwidth, bins=bins)
    edges, means, stds = gaussian_bins(mean, std, bins=bins)
    case = Paper(np.array(edges), np.array(means), np.array(stds), instance, bandwidth, "euclidean")
    form = forms.Linear(slopes, 0.3)
    both(case, form, lambda x: x @ slopes + 0.3, np.append(surrogate.intercept, surrogate.coef))
    close(surrogate.inclusion, case.design().inclusion)
    assert surrogate.local_error == pytest.approx(
        surrogate.intercept + surrogate.coef.sum() - (slopes @ instance + 0.3), rel=EXACT, abs=EXACT
    )


@pytest.mark.parametrize("bins", [4, 7])
def test_equation_4_1_the_bandwidth_that_switches_off(bins):
    rng = np.random.default_rng(0)
    instance, mean = rng.normal(size=200) * 0.7, np.full(200, 0.1)
    width = switch_off_bandwidth(instance, mean=mean, std=0.9, bins=bins)
    some = ~np.isnan(width)
    assert 10 < some.sum() < 190
    # elsewhere the coefficient keeps its sign at every bandwidth
    signs = []
    for bandwidth in np.geomspace(0.1, 100, 60):
        surrogate = smooth_limit(
            np.ones(200), 0.0, instance, mean=mean, std=0.9, bandwidth=bandwidth, bins=bins
        )
        signs.append(np.sign(surrogate.coef))
    assert (np.ptp(signs, axis=0)[~some] == 0).all()
    for j in np.flatnonzero(some):
        at = {
            v: smooth_limit([1.0], 0.0, [instance[j]], mean=[0.1], std=0.9, bandwidth=v, bins=bins).coef[0]
            for v in (width[j], 0.9 * width[j], 1.1 * width[j])
        }
        assert abs(at[width[j]]) < 1e-9
        assert at[0.9 * width[j]] * at[1.1 * width[j]] < 0


def test_the_closed_form_against_adaptive_quadrature_that_knows_nothing():
    edges, _, _ = gaussian_bins([0.0], 1.0)
    lower, upper, xi, nu = edges[0][2], edges[0][3], 0.4, 0.7

    def integral(g, a, b):
        return integrate.quad(
            lambda x: g(x) * np.exp(-0.5 * x**2 - 0.5 * ((x - xi) / nu) ** 2), a, b, epsabs=1e-13
        )[0]

    inside = integral(lambda x: x, lower, upper) / integral(ONE, lower, upper)
    rest = integral(lambda x: x, -9, lower) + integral(lambda x: x, upper, 9)
    outside = rest / (integral(ONE, -9, lower) + integral(ONE, upper, 9))
    surrogate = smooth_limit([3.0], 0.0, [xi], mean=[0.0], std=1.0, bandwidth=nu)
    assert surrogate.coef[0] == pytest.approx(3 * (inside - outside), rel=1e-9)
