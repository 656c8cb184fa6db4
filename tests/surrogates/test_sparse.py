"""Sparse solvers against brute force over supports, and against each other."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import strategies
from effort import examples, repeats
from internals import (
    FLIP_LAWS,
    SOLVERS,
    FlipLaw,
    FreeQuadratic,
    Incumbent,
    Node,
    PerspectiveSearch,
    Point,
    PopulationProblem,
    Relaxation,
    SampleProblem,
    SearchProblem,
    boxed,
    branch_and_bound,
    hard_thresholding,
    perspective_bound,
    project,
    projection,
    summing_to,
)
from limes.exceptions import InputError

# -- brute force ------------------------------------------------------------------------------------------


def nearest(v, target, k):
    """Least ‖u - v‖² over every support of k entries, in extended precision."""
    v = np.asarray(v, dtype=np.longdouble)
    shift = np.median(v)
    v = v - shift  # moves every distance by the same amount
    least = np.inf
    for support in combinations(range(v.size), k):
        part = v[list(support)]
        rest = (v**2).sum() - (part**2).sum()
        least = min(least, rest + (part.sum() - target) ** 2 / k)
    return least


def distance(u, v):
    v = np.asarray(v, dtype=np.longdouble)
    shift = np.median(v)
    u = np.asarray(u, dtype=np.longdouble)
    # ‖u - v‖² and ‖u - (v - shift)‖² differ by a constant on the hyperplane: compare on the shifted one
    return ((u - (v - shift)) ** 2).sum()


def best_objective(problem, k):
    """Least objective over every support of k literals, by the residuals of a constrained fit.

    With a constant b = y - Σu it is a plain regression of f - y on s - 1.
    """
    least = np.inf
    for support in combinations(range(problem.size), k):
        if problem.intercept:
            away, rest = problem.signs[:, support] - 1.0, problem.values - problem.target
            u, *_ = np.linalg.lstsq(away, rest, rcond=None)
            least = min(least, np.mean((away @ u - rest) ** 2))
            continue
        u = np.zeros(problem.size)
        chosen = np.array(support)
        u[chosen], _ = summing_to(problem.target, *problem.on_support(chosen))
        least = min(least, problem.objective(u))
    return least


# -- problems ---------------------------------------------------------------------------------------------


def sample(rng, *, d, m, correlation=0.0, repeated=False, target=None, intercept=False):
    """Signs with a common cause, a linear response with noise that leaves weights inside the box."""
    common = rng.random((m, 1))
    mixed = (1 - correlation) * rng.random((m, d)) + correlation * common
    signs = np.where(mixed < rng.uniform(0.2, 0.5), -1.0, 1.0)
    if repeated:
        signs[:, -1] = signs[:, 0]
    values = 0.1 * (signs @ rng.normal(size=d)) + 0.2 * rng.normal(size=m)
    instance = rng.choice([-1.0, 1.0], d)
    target = rng.uniform(-1, 1) if target is None else target
    return SampleProblem(instance, target, signs, values, intercept)


def inside(solution):
    return np.abs(solution.w).max() < 1.0


# -- projection -------------------------------------------------------------------------------------------


@given(
    strategies.rngs,
    st.integers(1, 10),
    st.sampled_from([0.0, 0.3, -1.0, 1.0]),
    st.sampled_from([1e-8, 1.0, 1e6]),
    st.sampled_from([0.0, 1.0, 1e5]),
    st.booleans(),
)
def test_projection_is_the_best_of_all_supports(rng, d, target, scale, shift, ties):
    v = rng.integers(-2, 3, d).astype(float) if ties else rng.normal(size=d)
    v = scale * (v + shift)
    for k in range(1, d + 1):
        u = project(v, target, k)
        assert np.count_nonzero(u) <= k
        assert u.sum() == pytest.approx(target, abs=oracle.ROUNDING * max(1.0, np.abs(v).max()))
        result, expected = distance(u, v), nearest(v, target, k)
        rounding = oracle.ROUNDING * max(1.0, np.abs(v).max()) ** 2
        assert float(result) == pytest.approx(float(expected), rel=oracle.EXACT, abs=rounding)


@given(
    strategies.rngs, st.integers(2, 9), st.sampled_from([0.0, 0.5, 1.0, 3.0]), st.sampled_from([*FLIP_LAWS])
)
def test_the_population_optimum_is_the_least_squares_of_all_rows(rng, d, spread, name):
    """Every row of {±1}^d, weighted by the law: weighted least squares on every support."""
    law, k = FLIP_LAWS[name](d, spread), int(rng.integers(1, d))
    rows = oracle.all_rows(d)
    probability = oracle.row_law(rows, np.ones(d), spread, name)
    values = rng.uniform(-1, 1, len(rows))
    mean = probability @ values
    gamma = (probability * (values - mean)) @ (rows - law.correlation)
    problem = PopulationProblem(
        np.ones(d), float(values[-1]), law, gamma, mean, probability @ (values - mean) ** 2
    )
    root = np.sqrt(probability * len(rows))
    weighted = SampleProblem(np.ones(d), problem.target, root[:, None] * rows, root * values)
    least = np.inf
    for support in combinations(range(d), k):
        chosen = np.array(support)
        part = weighted.signs[:, chosen]
        u, _ = summing_to(problem.target, part.T @ part / len(part), part.T @ weighted.values / len(part))
        least = min(least, np.mean((part @ u - weighted.values) ** 2))
    solution = projection(problem, k)
    assert solution.objective == pytest.approx(least, rel=oracle.EXACT)
    assert weighted.objective(solution.w) == pytest.approx(least, rel=oracle.EXACT)
    assert solution.proved
    assert solution.gap == 0.0


@given(
    strategies.rngs,
    st.integers(1, 9),
    st.sampled_from([0.0, 1e-3, 0.3, 1.0, 100.0]),
    st.sampled_from([0.0, 0.3, -5.0]),
    st.booleans(),
)
def test_a_pulled_projection_is_the_best_of_all_supports(rng, d, pull, total, ties):
    """‖u - v‖² + pull (Σu - total)² by least squares on every support."""
    v = rng.integers(-2, 3, d).astype(float) if ties else rng.normal(size=d)
    for k in range(1, d + 1):
        u, least = project(v, total, k, pull), np.inf
        for support in combinations(range(d), k):
            chosen = np.array(support)
            rows = np.vstack([np.eye(k), np.full((1, k), np.sqrt(pull))])
            answers = np.append(v[chosen], np.sqrt(pull) * total)
            best, *_ = np.linalg.lstsq(rows, answers, rcond=None)
            rest = (v**2).sum() - (v[chosen] ** 2).sum()
            least = min(least, rest + ((rows @ best - answers) ** 2).sum())
        assert np.count_nonzero(u) <= k
        error = ((u - v) ** 2).sum() + pull * (u.sum() - total) ** 2
        assert error == pytest.approx(least, rel=oracle.EXACT, abs=oracle.ROUNDING * (1 + pull * total**2))


@given(
    strategies.rngs,
    st.integers(2, 8),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    st.sampled_from([0, 1, 50]),
    st.sampled_from([*FLIP_LAWS]),
)
def test_the_population_optimum_with_a_constant_is_the_least_squares_of_all_rows(rng, d, spread, base, name):
    """Every row of {±1}^d, weighted by the law: f - y on s - 1, on every support."""
    law, k = FLIP_LAWS[name](d, spread), int(rng.integers(1, d))
    rows = oracle.all_rows(d)
    probability = oracle.row_law(rows, np.ones(d), spread, name)
    values = base + rng.uniform(-1, 1, len(rows))
    target, mean = float(values[0]), float(probability @ values)  # the first row flips nothing
    gamma = (probability * (values - mean)) @ (rows - law.correlation)
    variance = float(probability @ (values - mean) ** 2)
    problem = PopulationProblem(np.ones(d), target, law, gamma, mean, variance, intercept=True)
    least, root = np.inf, np.sqrt(probability)
    for support in combinations(range(d), k):
        away = root[:, None] * (rows[:, support] - 1.0)
        u, *_ = np.linalg.lstsq(away, root * (values - target), rcond=None)
        least = min(least, ((away @ u - root * (values - target)) ** 2).sum())
    surrogate = projection(problem, k)
    rounding = oracle.ROUNDING * (1 + base) ** 2
    assert surrogate.objective == pytest.approx(least, rel=oracle.EXACT, abs=rounding)
    assert surrogate.intercept + surrogate.w.sum() == pytest.approx(target, abs=oracle.ROUNDING * (1 + base))
    errors = surrogate.intercept + rows @ surrogate.w - values
    assert probability @ errors**2 == pytest.approx(least, rel=oracle.EXACT, abs=rounding)
    assert surrogate.proved


def greedy(v, k, target):
    """GSHP of Kyrillidis et al. 2013, in its own words: the selector, and the projector on Σu = target."""
    chosen = [int(np.argmax(target * v))]
    while len(chosen) < k:
        far = np.abs(v - (v[chosen].sum() - target) / len(chosen))
        far[chosen] = -1.0
        chosen.append(int(np.argmax(far)))
    u = np.zeros(v.size)
    u[chosen] = v[chosen] - (v[chosen].sum() - target) / k
    return u


def test_the_papers_projection_is_not_one_where_the_prediction_is_0():
    """Lemma 2 of 2025: its first pick, the largest y v_j, is undefined at y = 0; elsewhere both agree."""
    rng, wrong, exact = np.random.default_rng(0), 0, 0
    for _ in range(60):
        v = rng.normal(size=7)
        for target in (0.4, -0.7):
            assert ((greedy(v, 3, target) - v) ** 2).sum() == pytest.approx(
                ((project(v, target, 3) - v) ** 2).sum()
            )
        least = ((project(v, 0.0, 3) - v) ** 2).sum()
        wrong += ((greedy(v, 3, 0.0) - v) ** 2).sum() > least * (1 + 1e-9)
        exact += ((greedy(v, 3, 0.0) - v) ** 2).sum() >= least * (1 - 1e-9)
    assert wrong > 10
    assert exact == 60


def test_algorithm_2_of_2025_returns_more_than_k_literals_where_x_has_zeros():
    """It keeps k entries outside the support of x, and k within."""
    x, w, k = np.array([1.0, 1, 1, 0, 0, 0]), np.array([0.9, -0.5, 0.2, 2.0, -1.0, 0.3]), 2
    outside, within = np.flatnonzero(x == 0), np.flatnonzero(x)
    kept = outside[np.argsort(-np.abs(w[outside]))[:k]]
    result = np.zeros(6)
    result[kept] = w[kept]
    result[within] = greedy(w[within], k, 0.5)
    assert x @ result == pytest.approx(0.5)
    assert np.count_nonzero(result) == 2 * k


def test_a_common_shift_moves_no_projection():
    v = np.random.default_rng(0).normal(size=30)
    assert project(v + 1000.0, 0.3, 5) == pytest.approx(project(v, 0.3, 5), abs=1e-10)


# -- branch and bound -------------------------------------------------------------------------------------


def test_branch_and_bound_is_the_best_of_all_supports():
    """300 designs: few and many rows, correlated and repeated literals, y = 0."""
    for seed in range(repeats(300, 60)):
        rng = np.random.default_rng(seed)
        d, m = int(rng.integers(4, 10)), int(rng.choice([25, 60, 300]))
        k = int(rng.integers(1, min(6, d) + 1))
        problem = sample(
            rng,
            d=d,
            m=m,
            correlation=float(rng.choice([0.0, 0.3, 0.8])),
            repeated=seed % 5 == 0,
            target=0.0 if seed % 7 == 0 else None,
        )
        solution = branch_and_bound(problem, k)
        expected = best_objective(problem, k)
        assert solution.objective == pytest.approx(expected, rel=oracle.EXACT), seed
        assert solution.proved, seed
        assert perspective_bound(problem, k) <= expected * (1 + oracle.EXACT), seed


def test_branch_and_bound_with_a_constant_is_the_best_of_all_supports():
    """Designs of few and many rows, correlated, repeated and constant literals, any base."""
    for seed in range(repeats(1000, 75)):
        rng = np.random.default_rng(seed)
        d, m = int(rng.integers(3, 10)), int(rng.choice([12, 25, 60, 300]))
        k = int(rng.integers(1, min(6, d) + 1))
        problem = sample(
            rng,
            d=d,
            m=m,
            correlation=float(rng.choice([0.0, 0.3, 0.8])),
            repeated=seed % 5 == 0,
            target=float(rng.choice([0.0, 0.5, 30.0])),
            intercept=True,
        )
        problem = replace(problem, values=problem.values + rng.choice([0.0, 0.5, 30.0]))
        if seed % 6 == 0:
            problem.signs[:, 1] = 1.0
        surrogate, expected = branch_and_bound(problem, k), best_objective(problem, k)
        rounding = oracle.ROUNDING * problem.square
        assert surrogate.objective == pytest.approx(expected, rel=oracle.EXACT, abs=rounding), seed
        assert surrogate.proved, seed
        assert surrogate.intercept + surrogate.w @ problem.instance == pytest.approx(problem.target), seed
        assert perspective_bound(problem, k) <= expected * (1 + oracle.EXACT) + rounding, seed


def test_the_perspective_bound_with_a_constant_is_of_use():
    problem = sample(np.random.default_rng(3), d=12, m=2000, intercept=True)
    expected = best_objective(problem, 4)
    assert 0.8 * expected < perspective_bound(problem, 4) <= expected * (1 + oracle.EXACT)


@pytest.mark.parametrize("seed", range(3))
def test_branch_and_bound_closes_a_sample_of_ordinary_size(seed):
    rng = np.random.default_rng(seed)
    signs = np.where(rng.random((1000, 200)) < FlipLaw(200, 1.0).flip, -1.0, 1.0)
    values = np.tanh(signs @ rng.normal(size=200) * 0.1)
    problem = SampleProblem(rng.choice([-1.0, 1.0], 200), float(np.tanh(0.3)), signs, values)
    solution = branch_and_bound(problem, 7, time_limit=30.0)
    assert solution.proved
    assert solution.gap == 0.0
    assert solution.support.size == 7
    assert solution.w @ problem.instance == pytest.approx(problem.target, abs=oracle.ROUNDING)
    assert solution.objective <= hard_thresholding(problem, 7).objective * (1 + oracle.EXACT)


def hard_instance():
    """Many more literals than rows: correlations are too large for a quick proof."""
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], (60, 300))
    return SampleProblem(np.ones(300), 0.1, signs, rng.uniform(-1, 1, 60))


def uncrowded_instance():
    """More rows than the perspective bound needs."""
    rng = np.random.default_rng(1)
    signs = rng.choice([-1.0, 1.0], (400, 40))
    values = np.tanh(signs @ rng.normal(size=40) * 0.2) + 0.3 * signs[:, 0] * signs[:, 1]
    return SampleProblem(np.ones(40), 0.1, signs, values)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_perspective_search_is_the_best_of_all_supports(intercept):
    """From the worst incumbent there is; every bound on the way lies below the optimum."""
    void = 0
    for seed in range(runs := repeats(60, 12)):
        rng = np.random.default_rng(seed)
        d, k = int(rng.integers(5, 11)), int(rng.integers(2, 5))
        problem = sample(rng, d=d, m=int(rng.integers(3 * d, 8 * d)), correlation=0.3, intercept=intercept)
        if seed % 4 == 0:  # two literals that hold in the same rows, and one that always holds
            problem.signs[:, 3], problem.signs[:, 1] = problem.signs[:, 0], 1.0
        search = PerspectiveSearch(problem, k, worst(problem, k))
        expected = best_objective(problem, k)
        bounds = list(search.run(np.inf))
        if not bounds:  # literals that determine each other
            void += 1
            continue
        assert search.incumbent.best == pytest.approx(expected, rel=oracle.EXACT, abs=oracle.ROUNDING)
        assert max(bounds) <= expected * (1 + oracle.EXACT) + oracle.ROUNDING
        assert bounds[-1] >= expected * (1 - oracle.EXACT) - oracle.ROUNDING
        loose = PerspectiveSearch(problem, k, worst(problem, k, tolerance=0.2))
        *_, lower = loose.run(np.inf)
        assert 0.8 * expected * (1 - oracle.EXACT) - oracle.ROUNDING <= lower <= loose.incumbent.best
        assert lower <= expected * (1 + oracle.EXACT) + oracle.ROUNDING
    assert void < 0.2 * runs


def worst(problem, k, tolerance=0.0):
    """The worst incumbent there is, which closes nodes whose bound is no more than this share below it."""
    return Incumbent(SearchProblem.from_sample(problem, tolerance), np.arange(k), np.inf)


def objectives(problem, k):
    """The objective of every support of k literals."""
    for support in combinations(range(problem.size), k):
        yield support, best_objective(problem.among(np.array(support)), k)


@pytest.mark.parametrize("intercept", [False, True])
def test_every_point_of_the_relaxation_bounds_every_support(intercept):
    """Wherever u, η and the ridges lie, and with literals swept in; what it decides, the supports do."""
    decided = 0
    for seed in range(repeats(60, 15)):
        rng = np.random.default_rng(seed)
        problem = sample(rng, d=7, m=60, correlation=0.3, intercept=intercept)
        free, chosen = np.split(rng.permutation(7), [5])
        quadratic = FreeQuadratic.from_sample(problem).reduced(chosen, free)
        dense = np.linalg.solve(quadratic.gram, quadratic.moments)
        largest = quadratic.smallest_eigenvalue() * np.diag(quadratic.gram)
        u, eta = dense * rng.normal(1.0, 0.2, 5), 0.1 * rng.normal() * (not intercept)
        relaxed = Relaxation.at(
            quadratic, 2, Point(u, np.ones(5), rng.uniform(0.1, 1.0, 5) * largest, eta, 0.0)
        )
        among = [(s, value) for s, value in objectives(problem, 4) if set(chosen) <= set(s)]
        best = min(value for _, value in among)
        assert relaxed.bound <= best * (1 + oracle.EXACT)
        cutoff = relaxed.bound + 0.3 * (best - relaxed.bound) + 0.02 * best
        enters, leaves = relaxed.decided(cutoff)
        decided += enters.any() or leaves.any()
        for support, value in among:
            if value < cutoff * (1 - oracle.EXACT):
                assert set(free[enters]) <= set(support)
                assert not set(free[leaves]) & set(support)
    assert decided > 0


@pytest.mark.parametrize("intercept", [False, True])
def test_the_root_bound_is_that_of_the_semidefinite_program(intercept):
    """The bound of Dong, Chen and Linderoth in its primal form, by an interior-point method for cones."""
    cvxpy = pytest.importorskip("cvxpy", reason="pip install limes[sparse]")
    for seed in range(repeats(6, 2)):
        problem, k = sample(np.random.default_rng(seed), d=9, m=40, correlation=0.2, intercept=intercept), 3
        bound = perspective_bound(problem, k)
        assert bound == pytest.approx(semidefinite_bound(cvxpy, problem, k), rel=0.01)
        assert bound <= best_objective(problem, k) * (1 + oracle.EXACT)


def semidefinite_bound(cvxpy, problem, k):
    d, signs = problem.size, problem.signs - problem.intercept
    lifted, shares = cvxpy.Variable((d + 1, d + 1), PSD=True), cvxpy.Variable(d)
    rest = problem.values - problem.target * problem.intercept
    rows = np.column_stack([signs, -rest])
    loss = cvxpy.trace((rows.T @ rows / len(rows)) @ lifted)
    constraints = [lifted[d, d] == 1.0, shares <= 1.0, cvxpy.sum(shares) == k]
    for j in range(d):
        block = cvxpy.bmat([[lifted[j, j], lifted[j, d]], [lifted[d, j], shares[j]]])
        constraints.append(block >> 0)
    if not problem.intercept:
        constraints.append(cvxpy.sum(lifted[:d, d]) == problem.target)
        loss += 10.0 * (
            cvxpy.sum(lifted[:d, :d]) - problem.target**2
        )  # (Σu)² = y²: an equality has no interior
    program = cvxpy.Problem(cvxpy.Minimize(loss), constraints)
    return float(program.solve(solver=cvxpy.CLARABEL))


def test_fifteen_of_many_literals_are_proved_in_few_nodes():
    rng = np.random.default_rng(0)
    signs = np.where(rng.random((1000, 160)) < FlipLaw(160, 1.0).flip, -1.0, 1.0)
    values = np.tanh(signs @ rng.normal(size=160) / 12.0)
    problem = SampleProblem(np.ones(160), float(values.mean()), signs, values, intercept=True)
    search = PerspectiveSearch(problem, 15, worst(problem, 15))
    bounds = list(search.run(np.inf))
    assert search.finished
    assert search.nodes < 200
    assert len(bounds) > 1
    assert (np.diff(bounds) >= 0.0).all()
    assert search.incumbent.best <= hard_thresholding(problem, 15).objective * (1 + oracle.EXACT)


@pytest.mark.parametrize("intercept", [False, True])
def test_many_literals_are_proved_by_the_perspective_search(intercept):
    problem = replace(uncrowded_instance(), intercept=intercept)
    solution = branch_and_bound(problem, 14, time_limit=60.0)
    alone = PerspectiveSearch(problem, 14, worst(problem, 14))
    *_, lower = alone.run(np.inf)
    assert solution.proved is True
    json.dumps(
        [solution.proved, solution.gap, solution.lower_bound, solution.objective]
    )  # numbers of Python's own
    assert alone.incumbent.best == pytest.approx(solution.objective, rel=oracle.EXACT)
    assert lower == pytest.approx(solution.objective, rel=oracle.EXACT)


def test_a_root_that_cannot_be_solved_in_time_is_not_begun():
    problem = uncrowded_instance()
    search = PerspectiveSearch(problem, 5, worst(problem, 5), deadline=0.0)
    assert list(search.run(np.inf)) == []
    assert not search.finished


@pytest.mark.parametrize("intercept", [False, True])
def test_both_searches_prove_the_same_optimum(intercept):
    """Each alone, from the worst incumbent there is for the perspective search."""
    for seed in range(repeats(20, 4)):
        rng = np.random.default_rng(seed)
        d, k = int(rng.integers(30, 70)), int(rng.integers(4, 8))
        problem = sample(rng, d=d, m=400, correlation=0.2, intercept=intercept)
        by_pairs = branch_and_bound(problem, k, time_limit=1e6)  # the first turn is long enough
        search = PerspectiveSearch(problem, k, worst(problem, k))
        *_, lower = search.run(np.inf)
        assert by_pairs.proved
        assert search.incumbent.best == pytest.approx(by_pairs.objective, rel=oracle.EXACT)
        assert lower == pytest.approx(by_pairs.objective, rel=oracle.EXACT)


def test_a_search_that_runs_out_of_time_reports_an_honest_gap():
    problem = hard_instance()
    branch_and_bound(problem, 5, time_limit=0.01)  # compiled, or read from the disk
    short, longer = (branch_and_bound(problem, 7, time_limit=t) for t in (0.1, 1.5))
    assert not short.proved
    assert 0.0 <= short.lower_bound < short.objective
    assert short.gap == pytest.approx(1 - short.lower_bound / short.objective)
    assert longer.lower_bound >= short.lower_bound * (1 - oracle.EXACT)
    assert longer.objective <= short.objective * (1 + oracle.EXACT)
    assert short.seconds < 2.0


def test_threads_prove_the_same_optimum():
    for seed in range(20):
        problem = sample(np.random.default_rng(seed), d=40, m=80, correlation=0.3)
        alone, together = (branch_and_bound(problem, 5, threads=threads) for threads in (1, 3))
        assert alone.proved
        assert together.proved
        assert together.objective == pytest.approx(alone.objective, rel=oracle.EXACT)


def test_threads_end_with_the_time():
    solution = branch_and_bound(hard_instance(), 7, time_limit=0.5, threads=2)
    assert not solution.proved
    assert 0.0 <= solution.lower_bound < solution.objective
    assert solution.seconds < 3.0


def test_an_error_in_one_thread_ends_the_search(monkeypatch):
    def broken(*_):
        raise MemoryError("no room")

    monkeypatch.setattr(Node, "child", broken)
    with pytest.raises(MemoryError, match="no room"):
        branch_and_bound(hard_instance(), 7, time_limit=20.0, threads=2)


def test_a_search_reports_progress():
    steps = []
    problem = sample(np.random.default_rng(5), d=40, m=60, correlation=0.3)
    solution = branch_and_bound(problem, 6, on_progress=lambda *step: steps.append(step))
    assert solution.proved
    seconds, lower, best = np.array(steps).T
    assert len(steps) == solution.nodes - 1
    assert (np.diff(seconds) >= 0).all()
    assert (np.diff(best) <= 0).all()
    assert (lower <= best).all()
    assert lower[-1] > 0.0


@pytest.mark.parametrize("threads", [0, 1.5, True])
def test_a_number_of_threads_that_cannot_be_is_refused(threads):
    with pytest.raises(InputError, match="threads"):
        branch_and_bound(hard_instance(), 3, threads=threads)


def test_a_tolerance_is_kept():
    problem = sample(np.random.default_rng(5), d=40, m=200)
    exact, loose = branch_and_bound(problem, 5), branch_and_bound(problem, 5, tolerance=0.1)
    assert loose.proved
    assert loose.nodes <= exact.nodes
    assert loose.gap <= 0.1 + 1e-9
    assert loose.lower_bound <= exact.objective <= loose.objective * (1 + oracle.EXACT)


@pytest.mark.parametrize(("tolerance", "time_limit"), [(-0.1, 1.0), (1.0, 1.0), (0.0, 0.0)])
def test_search_options_out_of_range_are_refused(tolerance, time_limit):
    with pytest.raises(InputError, match="tolerance"):
        branch_and_bound(hard_instance(), 3, tolerance=tolerance, time_limit=time_limit)


@pytest.mark.parametrize("seed", range(repeats(10, 2)))
def test_branch_and_bound_agrees_with_scip(seed):
    pyscipopt = pytest.importorskip("pyscipopt", reason="pip install pyscipopt")
    rng = np.random.default_rng(seed)
    problem, k = sample(rng, d=20, m=100), 2 + seed % 2
    solution = branch_and_bound(problem, k)
    assert inside(solution)
    assert solution.objective == pytest.approx(
        by_scip(pyscipopt, problem, k), rel=1e-5
    )  # SCIP's own tolerance


def by_scip(pyscipopt, problem, k):
    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("numerics/feastol", 1e-8)  # by default the loss may lie 1e-6 below the quadratic
    d = problem.size
    u = [model.addVar(lb=-1.0, ub=1.0) for _ in range(d)]
    used = [model.addVar(vtype="B") for _ in range(d)]
    loss = model.addVar(lb=0.0)
    gram = problem.signs.T @ problem.signs / len(problem.signs)
    moments = problem.values @ problem.signs / len(problem.signs)
    square = float(problem.values @ problem.values) / len(problem.signs)
    quadratic = pyscipopt.quicksum(gram[i, j] * u[i] * u[j] for i in range(d) for j in range(d))
    linear = pyscipopt.quicksum(moments[i] * u[i] for i in range(d))
    model.addCons(loss >= quadratic - 2 * linear + square)
    model.addCons(pyscipopt.quicksum(u) == problem.target)
    model.addCons(pyscipopt.quicksum(used) <= k)
    for i in range(d):
        model.addCons(u[i] <= used[i])
        model.addCons(-u[i] <= used[i])
    model.setObjective(loss, "minimize")
    model.setParam("limits/gap", 0.0)
    model.optimize()
    return model.getObjVal()


# -- hard thresholding, the relaxation --------------------------------------------------------------------


@given(strategies.rngs, st.booleans())
@settings(max_examples=examples(30))
def test_hard_thresholding_is_feasible_and_no_better_than_the_optimum(rng, intercept):
    problem = sample(rng, d=8, m=200, intercept=intercept)
    surrogate = hard_thresholding(problem, 3)
    assert np.count_nonzero(surrogate.w) <= 3
    total = surrogate.intercept + surrogate.w @ problem.instance
    assert total == pytest.approx(problem.target, abs=oracle.ROUNDING)
    assert surrogate.objective >= best_objective(problem, 3) * (1 - oracle.EXACT)


@pytest.mark.parametrize("base", [0.0, 7.0])
def test_hard_thresholding_with_a_constant_recovers_a_sparse_truth(base):
    rng = np.random.default_rng(1)
    signs = np.where(rng.random((1000, 50)) < 0.27, -1.0, 1.0)
    weights = np.zeros(50)
    weights[[3, 20, 41]] = 0.5, -0.3, 0.2
    problem = SampleProblem(np.ones(50), base + 0.4, signs, base + signs @ weights, intercept=True)
    surrogate = hard_thresholding(problem, 3)
    assert surrogate.w == pytest.approx(weights, abs=1e-9)
    assert surrogate.intercept == pytest.approx(base, abs=1e-9)


def test_hard_thresholding_finds_a_sparse_truth():
    rng = np.random.default_rng(1)
    signs = np.where(rng.random((1000, 50)) < 0.27, -1.0, 1.0)
    weights = np.zeros(50)
    weights[[3, 20, 41]] = 0.5, -0.3, 0.2
    problem = SampleProblem(np.ones(50), 0.4, signs, signs @ weights)
    solution = hard_thresholding(problem, 3)
    assert solution.w == pytest.approx(weights, abs=1e-9)
    assert not solution.proved or solution.objective == pytest.approx(0.0, abs=1e-20)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_relaxation_bounds_the_optimum_from_below(intercept):
    pytest.importorskip("cvxpy", reason="pip install 'limes[sparse]'")
    problem = sample(np.random.default_rng(2), d=10, m=200, intercept=intercept)
    relaxed, exact = SOLVERS["convex"].solve(problem, 3), branch_and_bound(problem, 3)
    assert inside(exact)
    total = relaxed.intercept + relaxed.w @ problem.instance
    assert total == pytest.approx(problem.target, abs=1e-9)
    assert relaxed.objective <= exact.objective * (1 + 1e-6)  # Clarabel's own tolerance
    assert np.abs(relaxed.w).sum() <= 3 + 1e-6


def test_the_relaxation_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(InputError, match=r"limes\[sparse\]"):
        SOLVERS["convex"].solve(hard_instance(), 3)


# -- all solvers ------------------------------------------------------------------------------------------


def problem_for(needs):
    whole = sample(np.random.default_rng(0), d=6, m=100)
    if needs is SampleProblem:
        return whole
    return PopulationProblem(whole.instance, 0.2, FlipLaw(6, 1.0), whole.moments, 0.0, 1.0)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("k", [0, -1, 7, 1.5, True])
def test_an_impossible_size_is_refused(name, k):
    solver = SOLVERS[name]
    with pytest.raises(InputError, match="k"):
        solver.solve(problem_for(solver.needs), k)


@pytest.mark.parametrize("name", ["projection", "hard_thresholding", "branch_and_bound"])
def test_a_constant_model_needs_only_its_value(name):
    solver, law = SOLVERS[name], FlipLaw(6, 1.0)
    signs = np.where(law.flips(np.random.default_rng(0), 300), -1.0, 1.0)
    whole = SampleProblem(np.ones(6), 0.0, signs, np.zeros(300))
    none = PopulationProblem(np.ones(6), 0.0, law, np.zeros(6), 0.0, 0.0)
    solution = solver.solve(whole if solver.needs is SampleProblem else none, 3)
    assert solution.objective == pytest.approx(0.0, abs=1e-20)
    assert solution.w == pytest.approx(np.zeros(6), abs=1e-12)


# -- the box ----------------------------------------------------------------------------------------------


@given(strategies.rngs, st.integers(1, 5))
def test_the_boxed_fit_meets_its_optimality_conditions(rng, n):
    factor = rng.normal(size=(n + 3, n))
    gram, moments = factor.T @ factor, 5 * rng.normal(size=n)
    target = float(rng.uniform(-n, n)) if rng.random() < 0.8 else float(rng.choice([-n, n]))
    u = boxed(gram, moments, target)
    assert u.sum() == pytest.approx(target, abs=1e-9)
    assert np.abs(u).max() <= 1.0
    pull = moments - gram @ u
    scale = 1e-8 * (1.0 + np.abs(moments).max())
    # moving weight from i to j helps only where i has pull to spare, and both have room
    for i in range(n):
        for j in range(n):
            if u[i] > -1 + 1e-12 and u[j] < 1 - 1e-12:
                assert pull[j] - pull[i] <= scale


def test_a_coefficient_that_leaves_the_box_is_brought_back():
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], (200, 6))
    answers = 3.0 * signs[:, 0] - 2.5 * signs[:, 1]
    free, problem = (SampleProblem(np.ones(6), 0.5, signs, answers, box=box) for box in (np.inf, 1.0))
    for name in ("hard_thresholding", "branch_and_bound"):
        assert SOLVERS[name].solve(free, 2).w == pytest.approx([3.0, -2.5, 0, 0, 0, 0])
        solution = SOLVERS[name].solve(problem, 2)
        assert np.abs(solution.w).max() <= 1.0
        assert solution.w.sum() == pytest.approx(0.5)
        # branch and bound searches the box, too
        assert solution.proved == (name == "branch_and_bound")
        assert solution.lower_bound <= solution.objective


def test_a_population_optimum_outside_the_box_is_fitted_again_inside():
    """Two literals with a fixed sum have one degree of freedom: the least value on a grid."""
    law = FlipLaw(3, spread=0.0)
    gamma = np.array([1.6, 0.05, -1.4])
    problem = PopulationProblem(np.ones(3), 0.7, law, gamma, mean=0.1, variance=5.0, box=1.0)
    inside = projection(problem, k=2)
    assert inside.support.tolist() == [0, 2]
    first = np.linspace(-0.3, 1.0, 1301)  # |u| <= 1 for u and 0.7 - u
    grid = [problem.objective(np.array([u, 0.0, problem.target - u])) for u in first]
    assert inside.w[0] == pytest.approx(first[np.argmin(grid)], abs=1e-3)
    assert inside.objective == pytest.approx(min(grid), rel=1e-6)
    assert np.abs(inside.w).max() <= 1.0


def test_a_target_beyond_the_box_is_refused():
    with pytest.raises(InputError, match="cannot add up"):
        boxed(np.eye(2), np.zeros(2), 2.5)


@pytest.mark.parametrize("problem", [hard_instance(), uncrowded_instance()], ids=["crowded", "many rows"])
def test_no_step_but_one_bound_follows_the_time_limit(monkeypatch, problem):
    """At the root too: no exchange, no better multiplier, no eigenvalues; the bound is valid all the same."""
    from internals import pairwise, search

    best = branch_and_bound(problem, 3)
    tries = []
    tighten = pairwise._kernels.tighten

    def counted(*arguments):
        tries.append(arguments[9])
        return tighten(*arguments)

    monkeypatch.setattr(pairwise._kernels, "tighten", counted)
    monkeypatch.setattr(pairwise, "_best_entrant", lambda *_: pytest.fail("an exchange after the time limit"))
    monkeypatch.setattr(search, "PerspectiveSearch", lambda *_: pytest.fail("a search after the time limit"))
    late = branch_and_bound(problem, 3, time_limit=1e-9)
    assert set(tries) == {0}
    assert late.lower_bound <= best.objective <= late.objective
    assert late.nodes == 1
