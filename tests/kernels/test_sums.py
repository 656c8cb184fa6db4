"""Kernels of words, switches, searches, pools and exponentials against their definitions, entry for entry."""

from itertools import pairwise, product

import numpy as np
import pytest

import plain_kernels as plain
from compiled import EXACT, close, errors_of, kernels, nodes_of, pool, search
from effort import repeats

# -- words and switches ------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("outputs", [1, 2])
def test_texts_subset_by_subset(d, outputs):
    rng = np.random.default_rng(d)
    y, c, within = rng.random(d), rng.normal(size=(d, outputs)), rng.random(d + 1)
    profile, loss = np.zeros((outputs, d + 1)), np.zeros((d, outputs))
    start, rest = np.zeros((1 + outputs, 1)), np.zeros((1 + outputs, 1))
    start[0] = 1.0
    kernels.add_node(y, c, within, d + 1, 0.7, profile, loss, start, rest)
    expected = plain.text_node(y, c, within, 0.7)
    close(profile, expected[0])
    close(loss, expected[1])


def test_long_texts_that_are_computed_twice_add_up():
    """Beyond 128 words states are computed again; E[(1 - z_j) g | r] summed over j is (d - r) E[g | r]."""
    d, rng = 300, np.random.default_rng(4)
    y, c = rng.uniform(0.9, 1.0, d), rng.normal(size=(d, 1))
    start, rest = np.array([[1.0], [0.0]]), np.zeros((2, 1))
    for r in (1, 130, 299):
        within = np.zeros(d + 1)
        within[r] = 1.0
        profile, loss = np.zeros((1, d + 1)), np.zeros((d, 1))
        kernels.add_node(y, c, within, d + 1, 1.0, profile, loss, start, rest)
        np.testing.assert_allclose(loss.sum(), (d - r) * profile[0, r], rtol=1e-9)


@pytest.mark.parametrize("d", [3, 8, 21])
@pytest.mark.parametrize("outputs", [1, 2])
def test_effects_of_words_set_by_set(d, outputs):
    rng = np.random.default_rng(d)
    a, c = rng.random(d), 4.0 * rng.normal(size=(outputs, d))
    a[2], c[:, 2] = 0.0, 0.0  # a word without weight
    b, base, weights = rng.normal(size=outputs), rng.random(outputs), rng.normal(size=(5, d + 1))
    words, excess = np.array([0, 1]), np.array([0.0, 0.0, 0.0, 0.7])

    def value(z):
        norm = z @ a + excess[int(z[0] + 2 * z[1])]
        margin = b + (c @ z / np.sqrt(norm) if norm > 0 else 0.0)
        return 1.0 / (1.0 + np.exp(-margin))

    sizes = rng.integers(d + 1, size=40)
    sizes[:3] = 0, 1, d
    sizes[21::2] = sizes[20::2]  # pairs of one size
    effects, totals = np.zeros((outputs, d)), np.zeros((outputs, 3))
    kernels.add_subsets(
        c, a, b, base, words, np.array([0, 2]), excess, np.array([0, 4]), sizes, weights, 5, effects, totals
    )
    expected, sums = plain.word_effects(value, d, base, sizes.tolist(), weights, 5)
    close(effects, expected)
    close(totals, sums)


@pytest.mark.parametrize("d", [0, 1, 4, 9])
def test_products_switch_by_switch(d):
    rng = np.random.default_rng(d)
    on, off = rng.normal(size=(3, d)), rng.normal(size=(3, d))
    law, every, within = rng.random((3, d + 1))
    mean, coef = np.zeros(3), np.zeros((3, d))
    kernels.add_products(on, off, law, every, within, mean, coef)
    for i in range(3):
        expected = plain.switch_product(on[i], off[i], law, every, within)
        close(mean[i], expected[0])
        close(coef[i], expected[1])


def test_every_path_of_a_text_and_no_other():
    rng = np.random.default_rng(5)
    for _ in range(20):
        trees = plain.Trees.random(rng, 3, 5, 4, 1)
        word_of = np.array([0, 2, -1, 1])
        value_of, fill = rng.normal(size=4), rng.normal(size=4)
        nodes, no = kernels.Trees(4, *nodes_of(trees)[1:]), np.zeros(0, np.int64)
        paths, factors = kernels.presence_paths(
            word_of, value_of, fill, 3, nodes, no, no, no, np.zeros(0, np.bool_)
        )
        leaf = np.zeros(paths, np.int64)
        of_path, word, present = (
            np.zeros(factors, np.int64),
            np.zeros(factors, np.int64),
            np.zeros(factors, np.bool_),
        )
        again = kernels.presence_paths(word_of, value_of, fill, 3, nodes, leaf, of_path, word, present)
        assert again == (paths, factors)
        for z in product([False, True], repeat=3):
            x = [value_of[j] if w >= 0 and z[w] else fill[j] for j, w in enumerate(word_of)]
            met = np.ones(paths, np.bool_)
            np.logical_and.at(met, of_path, np.array(z)[word] == present)
            close(trees.value[leaf[met]].sum(axis=0), trees.predict(x))


# -- the exact search --------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [2, 3, 6])
def test_shares_of_the_pairwise_bound(slots):
    gram, moments, ones, swept = search(12)
    q = np.zeros(12)
    eta, floor = kernels.tighten(gram, moments, ones, swept, slots, 9.0, 0.5, 0.1, np.inf, 0, q)
    assert eta == 0.1
    close(floor, 9.0 + 2 * 0.1 * 0.5 - (swept[0] + 2 * 0.1 * swept[1] + 0.01 * swept[2]))
    close(q, plain.pairwise_shares(gram, moments + 0.1 * ones, slots))
    _, better = kernels.tighten(gram, moments, ones, swept, slots, 9.0, 0.5, 0.1, np.inf, 40, q)
    least = np.sort(plain.pairwise_shares(gram, moments + 0.1, slots))[-slots:].sum()
    assert better - np.sort(q)[-slots:].sum() >= floor - least - EXACT


def test_the_best_pair_of_all():
    gram, moments, ones, swept = search(14, seed=1)

    def objective(i, j):
        part = np.ix_([i, j], [i, j])
        b, one = moments[[i, j]], ones[[i, j]]
        alpha = swept[0] + b @ np.linalg.solve(gram[part], b)
        beta = swept[1] + b @ np.linalg.solve(gram[part], one)
        delta = swept[2] + one @ np.linalg.solve(gram[part], one)
        return 9.0 - alpha + (beta - 0.5) ** 2 / delta

    pairs = {(i, j): objective(i, j) for i in range(14) for j in range(i + 1, 14)}
    value, first, second = kernels.best_pair(gram, moments, ones, swept, 9.0, 0.5, np.inf)
    assert (first, second) == min(pairs, key=pairs.get)
    close(value, min(pairs.values()))
    assert kernels.best_pair(gram, moments, ones, swept, 9.0, 0.5, -1e9) == (-1e9, -1, -1)


def test_sweeping_in_is_the_schur_complement():
    gram, moments, ones, swept = search(7)
    rest = np.zeros((4, 4)), np.zeros(4), np.zeros(4), np.zeros(3)
    kernels.sweep_in(gram, moments, ones, swept, 2, *rest)
    row = gram[2, 3:] / gram[2, 2]
    close(rest[0], gram[3:, 3:] - np.outer(gram[3:, 2], row))
    close(rest[1], moments[3:] - row * moments[2])
    close(rest[2], ones[3:] - row * ones[2])
    close(rest[3], swept + np.array([moments[2] ** 2, moments[2], 1.0]) / gram[2, 2])


# -- pools ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 5, 6, 23, 64, 130])
@pytest.mark.parametrize("kind", [np.uint8, np.uint32])
def test_sums_over_a_pool_are_those_of_its_matrix(d, kind):
    rng = np.random.default_rng(d)
    cells, instances, weights = pool(rng, d, kind)
    for size, parts in ((7, 4), (1, 1)):
        values, sums = rng.normal(size=(480, size)), np.full((2, parts, d + 1, size), np.nan)
        kernels.pool_sums(cells, instances, weights, values, sums)
        for i in range(2):
            close(sums[i], plain.pool_sums(cells, instances[i], weights[i], values, parts))
    gram, squares, numbers = np.full((2, 2, d + 1, d + 1), np.nan), *np.full((2, 2, d + 1), np.nan)
    kernels.pool_gram(cells, instances, weights, gram, squares, numbers)
    for i in range(2):
        z, w = plain.around(cells, instances[i], weights[i])
        close(gram[i], plain.pool_sums(cells, instances[i], weights[i], z, 2))
        close(squares[i], w**2 @ z)
        close(numbers[i], z.sum(axis=0))


@pytest.mark.parametrize("d", [1, 23, 70])
@pytest.mark.parametrize("kind", [np.uint8, np.uint32])
@pytest.mark.parametrize("separate", [False, True])
def test_sums_of_errors_are_those_of_each_row(d, kind, separate):
    rng = np.random.default_rng(d)
    arguments = errors_of(rng, *pool(rng, d, kind), separate=separate)
    kernels.pool_errors(*arguments)
    cells, instances, weights, answers, residuals, differs, limits, coef, center, *result, _ = arguments
    for i, k in product(range(2), range(2)):
        columns = (answers[:, k], residuals[:, k], differs[:, k], limits[:, k], coef[i, k], center[i, k])
        expected = plain.pool_errors(cells, instances[i], weights[i], *columns, separate, 4)
        for actual, exact in zip([*(sums[i, k] for sums in result[:3]), result[3][i]], expected, strict=True):
            np.testing.assert_allclose(actual, exact, rtol=1e-9, atol=1e-12 * np.abs(exact).max())


def test_explained_rows_have_the_same_bits_by_themselves():
    rng = np.random.default_rng(0)
    arguments = errors_of(rng, *pool(rng, 23, np.uint8, count=3))
    kernels.pool_errors(*arguments)
    for i in range(3):
        alone = [a[i : i + 1].copy() if len(a) == 3 else a for a in arguments[:-1]]
        kernels.pool_errors(*alone, False)
        for whole, one in zip(arguments[-5:-1], alone[-4:], strict=True):
            assert np.array_equal(whole[i : i + 1], one)


def test_pools_refuse_what_does_not_belong_together():
    rng = np.random.default_rng(0)
    cells, instances, weights = pool(rng, 5, np.uint8)
    values = np.ones((480, 2))
    for wrong in ((2, 7, 6, 2), (2, 4, 5, 2), (2, 4, 6, 1), (1, 4, 6, 2)):
        with pytest.raises(ValueError):
            kernels.pool_sums(cells, instances, weights, values, np.zeros(wrong))
    with pytest.raises(ValueError):
        kernels.pool_sums(cells, instances[:, :4].copy(), weights, values, np.zeros((2, 4, 6, 2)))
    with pytest.raises(ValueError):
        kernels.pool_gram(cells, instances, weights, np.zeros((2, 1, 6, 5)), *np.zeros((2, 2, 6)))
    arguments = errors_of(rng, cells, instances, weights)
    for place in range(3, len(arguments) - 1):
        wrong = [*arguments]
        wrong[place] = np.ascontiguousarray(wrong[place][..., :-1])
        with pytest.raises(ValueError):
            kernels.pool_errors(*wrong)


# -- exponentials of sums of words --------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 5, 9])
def test_waves_are_means_over_subsets(d):
    rng = np.random.default_rng(d)
    nodes = 3
    on = rng.normal(size=(nodes, d)) + 1j * rng.normal(size=(nodes, d))
    off, weights = (
        rng.uniform(0.2, 1.0, size=(nodes, d)),
        rng.normal(size=nodes) + 1j * rng.normal(size=nodes),
    )
    within, width = rng.uniform(size=d + 1), np.array([d + 1, d, 1])
    profile, loss = np.zeros(d + 1), np.zeros(d)
    kernels.add_waves(
        np.ascontiguousarray(on.real), np.ascontiguousarray(on.imag), off, width,
        np.ascontiguousarray(weights.real), np.ascontiguousarray(weights.imag), within, profile, loss,
    )  # fmt: skip
    expected, without = np.zeros(d + 1), np.zeros(d)
    subsets = np.array(list(product((0, 1), repeat=d)))
    kept = subsets.sum(axis=1)
    for n in range(nodes):
        values = (weights[n] * np.prod(np.where(subsets == 1, on[n], off[n]), axis=1)).real
        for r in range(width[n]):
            expected[r] += values[kept == r].mean()
            without += within[r] * ((1 - subsets) * values[:, None])[kept == r].mean(axis=0)
    close(profile, expected)
    close(loss, without)


@pytest.mark.parametrize("seed", range(12))
def test_node_products_are_products(seed):
    rng = np.random.default_rng(seed)
    rows, nodes, outputs = rng.integers(1, 9), rng.choice([1, 7, 256, 600]), rng.integers(1, 4)
    factors = rng.integers(1, 5)
    widths, counts = rng.integers(1, 4, size=factors), rng.integers(1, 6, size=factors)

    def numbers(*shape):
        return rng.normal(size=shape) + 1j * rng.normal(size=shape)

    def in_parts(values):
        return np.concatenate([values.real, values.imag], axis=-1)

    means = [numbers(count, nodes) for count in counts]
    replaced = [numbers(count, width, nodes) for count, width in zip(counts, widths, strict=True)]
    patterns = np.stack([rng.integers(count, size=rows) for count in counts])
    weights = numbers(outputs, nodes)
    sums = rng.normal(size=(rows, outputs))
    changes = rng.normal(size=(rows, widths.sum(), outputs))
    expected_sums, expected_changes = sums.copy(), changes.copy()
    kernels.add_node_products(
        [in_parts(mean) for mean in means],
        [in_parts(change) for change in replaced],
        patterns,
        in_parts(weights),
        sums,
        changes,
    )
    for i in range(rows):
        chosen = np.array([mean[patterns[f, i]] for f, mean in enumerate(means)])
        expected_sums[i] += (weights * chosen.prod(axis=0)).sum(axis=1).real
        place = 0
        for f in range(factors):
            others = np.delete(chosen, f, axis=0).prod(axis=0)
            for change in replaced[f][patterns[f, i]]:
                expected_changes[i, place] += (weights * others * change).sum(axis=1).real
                place += 1
    close(sums, expected_sums)
    close(changes, expected_changes)


@pytest.mark.parametrize("is_grid", [False, True])
@pytest.mark.parametrize("seed", range(repeats(80, 12)))
def test_kept_products_are_products(seed, is_grid):
    rng = np.random.default_rng(seed)
    nodes, outputs, points = int(rng.choice([1, 7, 64, 150])), rng.integers(1, 4), rng.integers(1, 4)
    # few factors, and several blocks of them
    counts = rng.integers(1, 6, size=rng.choice([1, 2, 5, 32, 75]))
    each = rng.integers(0, 30, size=points)
    start = np.append(0, np.cumsum(each))

    def numbers(*shape):
        return np.exp(0.3 * rng.normal(size=shape) + 1j * rng.normal(size=shape))

    def in_parts(values):
        return np.concatenate([values.real, values.imag], axis=-1)

    first, second = rng.integers(6, size=nodes), rng.integers(3, size=nodes)
    means, weights = [numbers(count, nodes) for count in counts], numbers(outputs, nodes)
    along, across = [numbers(points, 6) for _ in counts], [numbers(points, 3) for _ in counts if is_grid]
    patterns = np.stack([rng.integers(count, size=points) for count in counts])
    shares = rng.random((counts.size, start[-1], 2))
    arrays = [in_parts(np.reshape(each, (-1, points, size))) for each, size in ((along, 6), (across, 3))]
    before_its = np.cumsum(counts) - counts
    before = rng.normal(size=(start[-1], outputs)), rng.normal(size=(start[-1], counts.size, outputs))
    expected_sums, expected_changes = (each.copy() for each in before)
    for point, (begin, end) in enumerate(pairwise(start)):
        g = np.array([each[point, first] for each in along])
        g = g * np.array([each[point, second] for each in across]) if is_grid else g
        m = np.array([each[patterns[f, point]] for f, each in enumerate(means)])
        for i in range(begin, end):
            mixed = shares[:, i, :1] * g + shares[:, i, 1:] * m
            expected_sums[i] += (weights * mixed.prod(axis=0)).sum(axis=1).real
            for f in range(counts.size):
                others = np.delete(mixed, f, axis=0).prod(axis=0) * shares[f, i].sum()
                expected_changes[i, f] += (weights * others * (g[f] - m[f])).sum(axis=1).real
    by_set = {}
    for only in kernels.instructions():
        sums, changes = (each.copy() for each in before)
        tables = in_parts(np.concatenate(means)), *arrays, patterns + before_its[:, None]
        tables = *tables, start, first, second, shares, in_parts(weights)
        kernels.add_kept_products(*tables, sums, changes, only)
        close(sums, expected_sums)
        close(changes, expected_changes)
        by_set[only] = sums.tobytes(), changes.tobytes()
    assert len({*by_set.values()}) == 1


def test_kept_products_refuse_what_does_not_fit():
    table, its, zeros = np.ones((1, 4)), np.ones((1, 1, 4)), np.zeros((1, 1), dtype=np.int64)
    places = [zeros, np.array([0, 3]), np.array([0, 1]), np.array([0, 0])]
    numbers = [np.ones((1, 3, 2)), np.ones((1, 4)), np.zeros((3, 1)), np.zeros((3, 1, 1)), ""]
    fitting = [table, its, its, *places, *numbers]
    kernels.add_kept_products(*fitting)
    wrong = [
        (0, np.ones((1, 6))),
        (1, np.ones((1, 2, 4))),
        (1, np.ones((1, 1, 3))),
        (1, np.ones((2, 1, 4))),
        (1, np.ones((0, 1, 4))),
        (2, np.ones((2, 1, 4))),
        (2, np.ones((1, 2, 4))),
        (2, np.ones((1, 1, 3))),
        (3, np.ones((1, 1), dtype=np.int64)),
        (3, np.zeros((2, 1), dtype=np.int64)),
        (4, np.array([0, 2])),
        (4, np.array([0, 4, 3])),
        (5, np.array([0, 2])),
        (5, np.array([0])),
        (6, np.array([0, -1])),
        (7, np.ones((1, 3, 1))),
        (8, np.ones((2, 4))),
        (9, np.zeros((2, 1))),
        (10, np.zeros((3, 2, 1))),
        (11, "none"),
    ]
    for place, array in wrong:
        with pytest.raises(ValueError, match=r"must|no such pattern|does not have"):
            kernels.add_kept_products(*fitting[:place], array, *fitting[place + 1 :])


def test_node_products_refuse_what_does_not_fit():
    table, change, patterns = np.ones((1, 4)), np.ones((1, 1, 4)), np.zeros((1, 3), dtype=np.int64)
    fitting = [[table], [change], patterns, np.ones((1, 4)), np.zeros((3, 1)), np.zeros((3, 1, 1))]
    kernels.add_node_products(*fitting)
    wrong = [
        (0, [np.ones((1, 6))]),
        (1, [np.ones((2, 1, 4))]),
        (1, []),
        (2, np.ones((1, 3), dtype=np.int64)),
        (2, np.zeros((2, 3), dtype=np.int64)),
        (3, np.ones((2, 4))),
        (4, np.zeros((2, 1))),
        (5, np.zeros((3, 2, 1))),
    ]
    for place, array in wrong:
        with pytest.raises(ValueError, match=r"must|no such pattern"):
            kernels.add_node_products(*fitting[:place], array, *fitting[place + 1 :])


@pytest.mark.parametrize("seed", range(repeats(40, 12)))
def test_exponentials_are_sums_over_points(seed):
    rng = np.random.default_rng(seed)
    counts = rng.choice([0, 1, 63, 64, 65, 200], size=rng.integers(1, 6))
    start = np.concatenate([[0], np.cumsum(counts)])
    functionals = 1 + seed % 2
    value, weight = rng.normal(size=start[-1]), rng.normal(size=(functionals, start[-1]))
    equidistant = rng.choice([0, 1, 2, 64, 65, 300])
    poles = rng.normal(size=rng.integers(0 if equidistant else 1, 4))
    contour = rng.normal() + 1j * (rng.normal() + rng.random() * np.arange(equidistant))
    nodes = np.concatenate([contour, poles])
    offsets = rng.normal(size=(counts.size, nodes.size))
    offsets[:, :equidistant] = offsets[:, :1]
    sums = rng.normal(size=(counts.size, functionals, 2, nodes.size))
    expected = sums[:, :, 0] + 1j * sums[:, :, 1]
    for i in range(counts.size):
        of_row = slice(start[i], start[i + 1])
        waves = np.exp(np.multiply.outer(nodes, value[of_row]) - offsets[i, :, None])
        expected[i] += weight[:, of_row] @ waves.T
    kernels.add_exponentials(
        value, weight, start, nodes.view(np.float64).reshape(-1, 2), int(equidistant), offsets, sums
    )
    close(sums[:, :, 0], expected.real)
    close(sums[:, :, 1], expected.imag)


def test_exponentials_refuse_what_does_not_fit():
    value, start, nodes = np.ones(3), np.array([0, 1, 3]), np.ones((4, 2))
    fitting = [value, np.ones((2, 3)), start, nodes, 4, np.ones((2, 4)), np.zeros((2, 2, 2, 4))]
    kernels.add_exponentials(*fitting)
    wrong = [
        (0, np.ones(2)),
        (1, np.ones((3, 2))),
        (1, np.ones((3, 3))),
        (1, np.ones((1, 3))),
        (2, np.array([0, 1, 2])),
        (2, np.array([1, 1, 3])),
        (2, np.array([0, 4, 3])),
        (2, np.array([0, 3])),
        (3, np.ones((3, 2))),
        (4, 5),
        (4, -1),
        (5, np.ones((2, 3))),
        (6, np.zeros((2, 2, 2, 3))),
        (6, np.zeros((1, 2, 2, 4))),
    ]
    for place, argument in wrong:
        with pytest.raises(ValueError, match=r"must|fewer nodes"):
            kernels.add_exponentials(*fitting[:place], argument, *fitting[place + 1 :])


def test_waves_refuse_what_does_not_fit():
    two, one = np.ones((1, 2)), np.ones(1)
    fitting = [two, two, two, np.array([3]), one, one, np.ones(3), np.zeros(3), np.zeros(2)]
    kernels.add_waves(*fitting)
    wrong = {
        1: np.ones((1, 3)),
        3: np.array([4]),
        4: np.ones(2),
        6: np.ones(2),
        7: np.zeros(2),
        8: np.zeros(3),
    }
    for place, array in wrong.items():
        with pytest.raises(ValueError, match="must be"):
            kernels.add_waves(*fitting[:place], array, *fitting[place + 1 :])
    kernels.add_waves(*(np.zeros((1, 0)),) * 3, np.array([1]), one, one, np.ones(1), np.zeros(1), np.zeros(0))
