"""The compiled kernels by definition: one leaf, one subset, one row at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from math import comb

import numpy as np


@dataclass
class Trees:
    """A forest's node arrays, -1 standing for a leaf's feature."""

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    set_of: np.ndarray
    sets: np.ndarray
    value: np.ndarray
    roots: np.ndarray

    @classmethod
    def random(cls, rng, trees, depth, columns, outputs, *, codes=0, leaf=0.2):
        """Trees with thresholds from a small grid; column 0 holds categories if ``codes`` is their number."""
        nodes = []  # feature, threshold, left, right, missing_left, set_of

        def grow(level):
            at = len(nodes)
            nodes.append(None)
            if level == depth or rng.random() < leaf:
                nodes[at] = (-1, 0.0, -1, -1, False, -1)
                return at
            j = int(rng.integers(columns))
            children = grow(level + 1), grow(level + 1)
            of_sets = int(rng.integers(5)) if codes and j == 0 else -1
            nodes[at] = (j, rng.integers(-3, 4) / 2.0, *children, rng.random() < 0.5, of_sets)
            return at

        roots = [grow(0) for _ in range(trees)]
        columns_of_nodes = list(zip(*nodes, strict=True))
        types = (np.int64, float, np.int64, np.int64, np.bool_, np.int64)
        arrays = [np.array(c, dtype=t) for c, t in zip(columns_of_nodes, types, strict=True)]
        sets = rng.random((5, codes)) < 0.5 if codes else np.zeros((0, 0), dtype=np.bool_)
        return cls(*arrays, sets, rng.normal(size=(len(nodes), outputs)), np.array(roots))

    def goes_left(self, node, x):
        """Whether a node sends x left."""
        if np.isnan(x):
            return bool(self.missing_left[node])
        if self.set_of[node] >= 0:
            return x in np.flatnonzero(self.sets[self.set_of[node]])
        return x <= self.threshold[node]

    def predict(self, row):
        """Sum of the leaf values that a row reaches."""
        total = np.zeros(self.value.shape[1])
        for node in self.roots:
            while self.feature[node] >= 0:
                node = (self.left if self.goes_left(node, row[self.feature[node]]) else self.right)[node]
            total += self.value[node]
        return total

    def paths(self):
        """For every leaf the edges above it, (node, goes_left), from the root."""

        def below(node, path):
            if self.feature[node] < 0:
                yield node, path
                return
            yield from below(self.left[node], [*path, (node, True)])
            yield from below(self.right[node], [*path, (node, False)])

        for root in self.roots:
            yield from below(root, [])


def mean_and_contrast(splits, leaves, table, cells):
    """E_w f (k,) and contrasts (d, k): leaf by leaf, from the table of splits (S, 4, W).

    A leaf's probability is the product of its edges' ratios; its contrast in a column is that probability
    times the sum of the column's changes.
    """
    column, parent, side = splits
    mean, contrast = np.zeros(leaves.shape[2]), np.zeros((cells.size, leaves.shape[2]))
    for s, where in product(range(len(column)), (0, 1)):
        probability, changes = 1.0, np.zeros(cells.size)
        edge, below = s, where
        while True:
            ratios = table[edge, :, cells[column[edge]]]
            probability *= ratios[below]
            changes[column[edge]] += ratios[2 + below]
            if parent[edge] == edge:
                break
            edge, below = parent[edge], side[edge]
        mean += probability * leaves[s, where]
        contrast += np.outer(changes, probability * leaves[s, where])
    return mean, contrast


def shapley_values(game, d):
    """For a game of sets of d columns: of the empty set (k,), and values, alone, and last, (3, d, k)."""
    sums = np.zeros((3, d, len(game(frozenset()))))
    for j in range(d):
        others = [i for i in range(d) if i != j]
        for size in range(d):
            for chosen in map(frozenset, combinations(others, size)):
                change = game(chosen | {j}) - game(chosen)
                sums[0, j] += change / (d * comb(d - 1, size))
                sums[1, j] += change * (size == 0)
                sums[2, j] += change * (size == d - 1)
    return game(frozenset()), sums


def shapley_indices(game, d):
    """Interaction indices of a game of sets of d columns, (d, d, k)."""
    indices = np.zeros((d, d, len(game(frozenset()))))
    for i, j in combinations(range(d), 2):
        others = [each for each in range(d) if each not in (i, j)]
        for size in range(d - 1):
            for chosen in map(frozenset, combinations(others, size)):
                change = game(chosen | {i, j}) - game(chosen | {i}) - game(chosen | {j}) + game(chosen)
                indices[i, j] += change / ((d - 1) * comb(d - 2, size))
        indices[j, i] = indices[i, j]
    return indices


def covers_game(trees, covers, row):
    """v(S): at a split whose column is not in S both children count, by their covers."""

    def value(node, kept):
        j = trees.feature[node]
        if j < 0:
            return trees.value[node]
        children = trees.left[node], trees.right[node]
        if j in kept:
            return value(children[0 if trees.goes_left(node, row[j]) else 1], kept)
        parts = [covers[child] / covers[node] if covers[node] > 0 else 0.5 for child in children]
        return parts[0] * value(children[0], kept) + parts[1] * value(children[1], kept)

    return cache(lambda kept: sum(value(root, kept) for root in trees.roots))


def joint_game(trees, row, background, weights):
    """v(S) = Σ_b w_b f(row_S, b_rest), by the forest's values at mixed rows."""

    @cache
    def game(kept):
        mixed = np.where(np.isin(np.arange(row.size), [*kept]), row, background)
        return weights @ np.array([trees.predict(each) for each in mixed])

    return game


def joint_contributions(trees, row, background, weights):
    return shapley_values(joint_game(trees, row, background, weights), row.size)


def forest_game(splits, leaves, masses, inside, cells):
    """v(S) = E_w[f | x_S = row_S], leaf by leaf.

    ``masses`` (S, 2, W) are the probabilities of edges' intervals by the row's cell, ``inside`` (S, 2) states
    whether the row is in them.
    """
    column = splits[0]

    @cache
    def game(kept):
        value = np.zeros(leaves.shape[2])
        for s, where in product(range(len(column)), (0, 1)):
            last = {}
            for edge in _edges_above(splits, s, where):
                last.setdefault(column[edge[0]], edge)
            chances = [inside[e] if j in kept else masses[(*e, cells[j])] for j, e in last.items()]
            value += np.prod(chances) * leaves[s, where]
        return value

    return game


def forest_contributions(splits, leaves, masses, inside, cells):
    return shapley_values(forest_game(splits, leaves, masses, inside, cells), cells.size)


def _edges_above(splits, s, where):
    """Edges (split, side) from a child of split s up to the root."""
    _, parent, side = splits
    while True:
        yield s, where
        if parent[s] == s:
            return
        s, where = parent[s], side[s]


def means_given_cells(splits, leaves, reached, conditional, cells):
    """E[f | cell] less a number a column, (d, W, k): leaf by leaf, from probabilities (S, 2, W) of edges.

    ``reached`` are those under the row's law, by the row's cell, and ``conditional`` those given each cell.
    Columns that no edge above a leaf tests add the same to every cell.
    """
    column = splits[0]
    means = np.zeros((cells.size, reached.shape[2], leaves.shape[2]))
    for s, where in product(range(len(column)), (0, 1)):
        last = {}  # the lowest edge on each column: what is above it holds wherever it does
        for edge in _edges_above(splits, s, where):
            last.setdefault(column[edge[0]], edge)
        probability = {j: reached[(*edge, cells[j])] for j, edge in last.items()}
        for j, edge in last.items():
            others = np.prod([p for other, p in probability.items() if other != j])
            means[j] += np.multiply.outer(conditional[edge] * others, leaves[s, where])
    return means


def around(cells, instance, weights):
    """The matrix z (n, 1 + d), constant first, of pool rows with cells (d, n), and their weights."""
    same = instance == cells.T
    return np.column_stack([np.ones(len(same)), same]), weights[same.sum(axis=1)]


def parted(rows, parts):
    """Equal parts of rows, (parts, n, ...)."""
    return rows.reshape(parts, len(rows) // parts, *rows.shape[1:])


def pool_sums(cells, instance, weights, values, parts):
    """Sums of w z v over each part, (parts, 1 + d, q)."""
    z, w = around(cells, instance, weights)
    return parted(z, parts).transpose(0, 2, 1) @ parted(w[:, None] * values, parts)


def usual(errors, rounding):
    """The value that most are within rounding of, if more than half are: by a vote."""
    candidate, votes = errors[0], 0
    for value in errors:
        if votes == 0:
            candidate = value
        votes += -1 if abs(value - candidate) > rounding else 1
    return candidate


def pool_errors(
    cells, instance, weights, answers, residuals, differs, limits, coef, center, separate, sequences
):
    """Sums over a pool's rows for one output of one explained row: powers, moved, totals, sides."""
    z, w = around(cells, instance, weights)
    n = len(z)
    rest, other, surrogate, leverage, influence = np.concatenate(
        [part @ values for part, values in zip(parted(z, len(coef)), coef, strict=True)]
    ).T
    e = (residuals - rest) / np.sqrt(np.maximum(1 - w * leverage, 0.01))
    c, o, g = w * e, w * (answers - other), w * influence
    square = (answers - (other if separate else surrogate)) ** 2
    mean = w @ square / w.sum()
    a, b = 2 * c * (surrogate - center), w * (square - mean)
    unlike = (differs != 0) & (np.abs(e - usual(e, limits[0])) > limits[0])
    left = np.abs(e) > limits[1]
    powers = z.T @ np.column_stack([c**2, c**4, o**2, o**4, c * (b if separate else a + b), unlike, left])
    moved = np.column_stack([z * c[:, None], g * e]).reshape(sequences, n // sequences, -1).sum(axis=1)
    above, below = g > 0, g < 0
    counts = [x[side].sum() for x in (unlike, left) for side in (above, below)]
    totals = [mean, a @ a, a @ b, b @ b, ((g * e) ** 2).sum(), ((g * e) ** 4).sum(), *counts]
    sides = [above.sum(), below.sum(), (g[above] ** 2).sum(), (g[below] ** 2).sum()]
    return powers, moved, np.array(totals), np.array(sides)


def pool_squares(cells, answers, factors, curves, base):
    """Sums of w and w² (2,), and of w r², w² r², w² r⁴, (k, 3), of one surrogate over the rows of a pool."""
    columns = np.arange(cells.shape[1])
    weights, squares = np.zeros(2), np.zeros((len(answers), 3))
    for row, f in zip(cells, answers.T, strict=True):
        w = np.prod(factors[columns, row])
        rest = (f - base - curves[columns, :, row].sum(axis=0)) ** 2
        weights += w, w**2
        squares += np.stack([w * rest, w**2 * rest, w**2 * rest**2], axis=1)
    return weights, squares


def subsets(d, size):
    """All indicator vectors of d words with ``size`` ones."""
    for chosen in combinations(range(d), size):
        z = np.zeros(d, dtype=np.bool_)
        z[list(chosen)] = True
        yield z


def text_node(y, c, within, weight):
    """E[g | r] (q, d + 1) and Σ_r within[r] E[(1 - z_j) g | r] (d, q) of g = weight · (c·z) ∏ y."""
    d, outputs = c.shape
    profile, loss = np.zeros((outputs, d + 1)), np.zeros((d, outputs))
    for r in range(d + 1):
        for z in subsets(d, r):
            g = weight * c[z].sum(axis=0) * y[z].prod() / comb(d, r)
            profile[:, r] += g
            loss += np.outer(~z, within[r] * g)
    return profile, loss


def switch_product(on, off, law, every, within):
    """Σ_s law_s E[f | s], and Σ_s (every_s E[f | s] + within_s E[z_j f | s]) for each j; s are off."""
    d = on.size
    mean, coef = 0.0, np.zeros(d)
    for s in range(d + 1):
        for z in subsets(d, d - s):
            f = np.where(z, on, off).prod() / comb(d, s)
            mean += law[s] * f
            coef += every[s] * f + within[s] * f * z
    return mean, coef


def pairwise_shares(gram, r, slots):
    """q_i of the pairwise bound, by its formula."""
    p, partners = len(gram), slots - 1
    scale = 1.0 / np.sqrt(np.diag(gram))
    e = gram * np.outer(scale, scale)
    cut = np.maximum(np.abs(e) - 0.9 / partners, 0.0)
    np.fill_diagonal(cut, 0.0)
    room = 1.0 - np.sort(cut, axis=1)[:, -partners:].sum(axis=1)
    c = np.clip(e, -0.9 / partners, 0.9 / partners) * partners / np.sqrt(np.outer(room, room))
    v = r * scale / np.sqrt(room)
    gain = np.zeros((p, p))
    for i, j in product(range(p), range(p)):
        if i != j:
            gain[i, j] = (v[i] ** 2 + v[j] ** 2 - 2 * c[i, j] * v[i] * v[j]) / (1 - c[i, j] ** 2)
    return np.sort(gain, axis=1)[:, -partners:].sum(axis=1) / (2 * partners)


def splitmix(state):
    """Random numbers of 64 bits."""
    whole = (1 << 64) - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & whole
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & whole
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & whole
        yield z ^ (z >> 31)


def word_effects(value, d, base, sizes, weights, seed):
    """Sums over random sets, word by word: ``value`` maps z (d,) to (m,), ``weights`` are (5, d + 1)."""
    numbers, order = splitmix(seed), list(range(d))
    effects, totals = np.zeros((len(base), d)), np.zeros((len(base), 3))
    for at, r in enumerate(sizes):
        few, z = min(r, d - r), np.zeros(d)
        if at % 2 and sizes[at - 1] == r:
            z[order[few : 2 * few]] = 1.0
        else:
            for i in range(2 * few):
                place = i + (((next(numbers) >> 32) * (d - i)) >> 32)
                order[i], order[place] = order[place], order[i]
            z[order[:few]] = 1.0
        z = z if few == r else 1.0 - z
        for j in range(d):
            with_j, without = z.copy(), z.copy()
            with_j[j], without[j] = 1.0, 0.0
            change = value(with_j) - value(without)
            inside = int(z[j])
            effects[:, j] += weights[inside, r] * change
            totals[:, 0] += weights[2 + inside, r] * change
        away = value(z) - base
        totals[:, 1] += weights[4, r] * away
        totals[:, 2] += weights[4, r] * away**2
    return effects, totals
