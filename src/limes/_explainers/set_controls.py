r"""Readable models g of answers to few sets of units, with exact contributions.

A set is z in {0, 1}^d, x_j = 2 z_j - 1. Candidates, each fitted to all parts of the sets but one in turn:

*Ridge*: g = b + Σ_p c_p (z · node_p), by the penalty of the largest likelihood. A node is a sum of units: a
unit by itself, or what a group or a rectangle has of them.

*Logistic ridges* of probabilities: the same of log odds. Rows count alike, or by how much p depends on these.
Their contributions are those of σ(b + a · z), by quadrature (``linked_words.py``).

*All pairs*: a Gaussian process with the covariance of the ridge, and of independent coefficients of all
products x_i x_j, i < j. Both variances and the noise maximise the likelihood. Many small interactions are no
noise to it.

*LASSO* (Tibshirani 1996) of the nodes, and of them with the products x_i x_j of leading units: few units
matter, and some of these together. Of each penalty there is also the mean of the LASSO and of least squares
on what it chose (the relaxed LASSO of Meinshausen 2007). Leading are the units that the LASSO without
products has first. They are chosen without the held-out part, as all that is fitted.

x_i x_j is the same where all units are shown as where none is, and treats i and j alike, so that it adds
nothing to any contribution: z_i z_j gives a half to each. Its coefficient c says what both have together that
neither has alone: 4c = f(ij) - f(i) - f(j) + f(none), > 0 where one needs the other, < 0 where one repeats
the other.

g is the convex combination of the candidates (Wolpert 1992), of each with its best penalty, that leaves least
of the held-out answers. Each answer is compared with the g that was fitted without its part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from typing import NamedTuple

import numpy as np

from limes._arrays import Floats, Ints, are_complements, are_probabilities
from limes._expectations.linked_words import LinkedWordsExpectation
from limes._expectations.moments import REFUSED
from limes._sampling.controls.control import evenly_spread
from limes._shapley.coalitions import exact_account
from limes.models.forms._base import Linear
from limes.models.forms._linked import Linked

# Parts of up to a number of sets, and of more
_PARTS, _FEW, _FEWER_PARTS = 8, 300, 4
# Probabilities nearer to 0 or 1 would decide an unweighted fit of log odds; in a weighted one those below
# the second number are alike, and slopes are taken to be larger by the third
_NEAREST, _FAINTEST, _LEAST_SLOPE = 1e-3, 1e-6, 0.02
# Penalties of the ridge, of nodes between 0 and 1, and the most rows that models are fitted to, that all
# pairs are, and that their variances are chosen by
_PENALTIES = np.geomspace(1e-4, 1e3, 29)
_MOST_FITTED, _MOST_OF_PAIRS, _MOST_CHOOSING = 2048, 512, 256
# Variances of all products together as shares of that of all slopes, and of the noise
_RATIOS, _NOISES = (0.0, 0.05, 0.2, 1.0), np.geomspace(1e-4, 3.0, 10)
# Penalties of the LASSO as shares of the least that leaves nothing; steps, of which every fifth is compared
# with the one before: they end where none moves by more; units whose products it has
SHARES, _STEPS, _LOOK, _STILL = np.geomspace(0.7, 3e-3, 12), 120, 5, 1e-7
_LEADING = 10
# Pairs in the result, which as many fits have as held-out parts would by more than chance
_REPORTED, _STABLE = 5, 0.75
# A model of other sets is taken alone if it leaves this share of the answers' squares at most
_AS_GOOD = 0.02
# The LASSOs; what the first leaves of the second's squares, at most, if its pairs are reported
_BOTH, _HELPFUL = ("leading pairs", "lasso"), 0.8

_TINY = np.finfo(np.float64).tiny

# Two units, and what both have together that neither has alone
Pair = tuple[int, int, float]


class SetControl(NamedTuple):
    """g of d units and k outputs at n sets."""

    gamma: Floats  # its contributions, (d, k): means over the fits without each part
    rest: Floats  # answers less those of the g that does not know them, (n, k)
    pairs: tuple[tuple[Pair, ...], ...]  # the strongest of each output
    beside: Floats | None = None  # its answers to other rows, (m, k)

    def with_complement(self) -> SetControl:
        """The same of 1 - f and f, from g of f alone."""
        gamma, rest = (np.concatenate([-its, its], axis=1) for its in (self.gamma, self.rest))
        beside = None if self.beside is None else np.concatenate([1.0 - self.beside, self.beside], axis=1)
        return SetControl(gamma, rest, (tuple((i, j, -c) for i, j, c in self.pairs[0]), *self.pairs), beside)


class _Fits(NamedTuple):
    """Models of one kind, by their penalties: a of them."""

    gamma: Floats  # (a, d, k)
    answers: Floats  # at held-out sets, (a, n, k)
    pairs: list[tuple[Ints, Floats]] | None = None  # of each output: units (q, 2), coefficients (a, q)


@dataclass(frozen=True, eq=False)
class _Training:
    """Rows of units (m, d) with answers (m, k), held-out rows, and nodes (d, p)."""

    rows: Floats
    answers: Floats
    held: Floats
    nodes: Floats

    def thinned(self, most: int) -> tuple[Floats, Floats]:
        some = evenly_spread(len(self.rows), most)
        return self.rows[some], self.answers[some]

    @cached_property
    def spectrum(self) -> _Spectrum:
        """The decomposition that ridges of all outputs rest on, and of their log odds."""
        return _Spectrum.of(self.rows @ self.nodes)

    @cached_property
    def lassos(self) -> tuple[Floats, Floats]:
        rows, answers = self.thinned(_MOST_FITTED)
        return lasso(rows @ self.nodes, answers)


class FittedModel(NamedTuple):
    """A model of d units and k outputs that was fitted to other sets."""

    gamma: Floats  # (d, k)
    answers: Floats  # at the sets that another model is fitted to, (n, k)


def model_beside(
    nodes: Floats, earlier: Floats, earlier_f: Floats, z: Floats, f: Floats, shares: Floats, groups: Floats
) -> FittedModel:
    """A model by sets of units as one of their groups, at sets of groups: units in groups (d, g), (n, d).

    Products of units add nothing to contributions of groups, either: within a group they are constant. Log
    odds have no part in it, since contributions of groups to their probabilities are other sums.
    """
    control = set_control(nodes, earlier, earlier_f, z, f, beside=groups)
    assert control.beside is not None  # noqa: S101 - they were passed
    return FittedModel(shares.T @ control.gamma, control.beside)


def parts_of(n: int) -> int:
    """Into how many parts n sets are divided, of which each is held out in turn."""
    return _PARTS if n <= _FEW else _FEWER_PARTS


def set_control(
    nodes: Floats,
    earlier: Floats,
    earlier_f: Floats,
    z: Floats,
    f: Floats,
    *,
    beside: Floats | None = None,
    other: FittedModel | None = None,
) -> SetControl:
    """The model g by sets z (n, d) with answers f (n, k), and earlier rows (m, d), in all of its fits.

    It also answers to rows ``beside``, without log odds. The ``other`` model is one more candidate.
    """
    if are_complements(np.concatenate([earlier_f, f])):
        other = other and FittedModel(other.gamma[:, 1:], other.answers[:, 1:])
        one = set_control(nodes, earlier, earlier_f[:, 1:], z, f[:, 1:], beside=beside, other=other)
        return one.with_complement()
    count = min(parts_of(len(z)), len(z))
    part = np.arange(len(z)) % count
    kinds: dict[str, Callable[[_Training], _Fits]] = {
        "ridge": _ridges,
        "all pairs": _AllPairs(),
        "lasso": _lassos,
        "leading pairs": _lassos_with_pairs,
    }
    if beside is None and are_probabilities(np.concatenate([earlier_f, f]), add_up=False):
        kinds |= {"logistic": _logistic, "weighted": partial(_logistic, by_slope=True)}
    others = np.empty((0, z.shape[1])) if beside is None else beside
    fits: dict[str, list[_Fits]] = {name: [] for name in kinds}
    for k in range(count):
        out = part == k
        rows, answers = np.concatenate([earlier, z[~out]]), np.concatenate([earlier_f, f[~out]])
        training = _Training(rows, answers, np.concatenate([z[out], others]), nodes)
        for name in list(kinds):
            try:
                fits[name].append(kinds[name](training))
            except REFUSED:  # contributions to these probabilities have no exact sum
                del kinds[name], fits[name]
    return _combined(fits, part, f, other)


def pairs_of_states(z: Floats, f: Floats) -> tuple[tuple[Pair, ...], ...]:
    """The strongest pairs of each output, by answers (2^d, k) to all sets (2^d, d).

    The mean over sets of the others of f(ij) - f(i) - f(j) + f(none) (Banzhaf's interaction).
    """
    i, j = np.triu_indices(z.shape[1], 1)
    x = 2.0 * z - 1.0
    sizes = 4.0 * (x[:, i] * x[:, j]).T @ f / len(z)  # (pairs, k)
    # sums of answers that cancel are no pairs
    rounding = 1e-12 * np.abs(f).max(axis=0)
    reported = []
    for its, least in zip(sizes.T, rounding, strict=True):
        order = np.argsort(-np.abs(its), kind="stable")[:_REPORTED]
        reported.append(tuple((int(i[p]), int(j[p]), float(its[p])) for p in order if abs(its[p]) > least))
    return tuple(reported)


def _combined(fits: dict[str, list[_Fits]], part: Ints, f: Floats, other: FittedModel | None) -> SetControl:
    """The best penalty of each kind, and the best convex combination of kinds, of each output."""
    gammas, predicted, pairs, beside = [], [], [], []
    for name, each in fits.items():
        answers = np.empty((len(each[0].answers), *f.shape))
        for k, fit in enumerate(each):
            answers[:, part == k] = fit.answers[:, : (part == k).sum()]
        best = ((f - answers) ** 2).sum(axis=1).argmin(axis=0)
        outputs = np.arange(f.shape[1])
        gammas.append(np.mean([fit.gamma[best, :, outputs] for fit in each], axis=0).T)
        predicted.append(answers[best, :, outputs].T)
        others = [fit.answers[:, (part == k).sum() :][best, :, outputs].T for k, fit in enumerate(each)]
        beside.append(np.mean(others, axis=0))
        if name == "leading pairs":
            pairs = [
                _reported_pairs([fit.pairs[o] for fit in each if fit.pairs], int(best[o])) for o in outputs
            ]
    if other is not None:
        gammas.append(other.gamma)
        predicted.append(other.answers)
        beside.append(np.empty((0, f.shape[1])))
    gamma, rest = np.empty(gammas[0].shape), np.empty(f.shape)
    at_others, names = np.zeros(beside[0].shape), list(fits)
    for o in range(f.shape[1]):
        share = convex(np.stack([its[:, o] for its in predicted], axis=1), f[:, o])
        if other is not None:
            remaining = ((f[:, o] - other.answers[:, o]) ** 2).sum()
            # several models may answer alike to few sets: the one of other sets has seen more of them
            if remaining <= _AS_GOOD * ((f[:, o] - f[:, o].mean()) ** 2).sum():
                share = np.eye(len(predicted))[-1]
        if len(at_others):
            at_others[:, o] = sum(s * its[:, o] for s, its in zip(share, beside, strict=True))
        gamma[:, o] = sum(s * its[:, o] for s, its in zip(share, gammas, strict=True))
        rest[:, o] = f[:, o] - sum(s * its[:, o] for s, its in zip(share, predicted, strict=True))
        with_pairs, without = (
            float(((f[:, o] - predicted[names.index(kind)][:, o]) ** 2).sum()) for kind in _BOTH
        )
        if not with_pairs < _HELPFUL * without:  # products predict no better than chance would
            pairs[o] = ()
    return SetControl(gamma, rest, tuple(pairs), at_others)


def convex(x: Floats, y: Floats) -> Floats:
    """Weights w >= 0 with sum 1 of the least |x w - y|."""
    from scipy.optimize import nnls

    scale = max(float(np.abs(y).max()), float(np.abs(x).max()), _TINY)
    # a row that is as large as all others together, a thousand times, makes the sum 1
    heavy = 1e3 * np.sqrt(len(y))
    weights, _ = nnls(np.vstack([x / scale, np.full(x.shape[1], heavy)]), np.append(y / scale, heavy))
    return np.asarray(weights / weights.sum())


def _reported_pairs(each: list[tuple[Ints, Floats]], penalty: int) -> tuple[Pair, ...]:
    """Pairs that most fits chose, with the mean of their coefficients."""
    coefs: dict[tuple[int, int], list[float]] = {}
    for units, coef in each:
        for (i, j), c in zip(units.tolist(), coef[penalty].tolist(), strict=True):
            if c:
                coefs.setdefault((min(i, j), max(i, j)), []).append(c)
    often = {pair: its for pair, its in coefs.items() if len(its) >= _STABLE * len(each)}
    pairs = [(*pair, 4.0 * float(np.sum(its)) / len(each)) for pair, its in often.items()]
    return tuple(sorted(pairs, key=lambda pair: (-abs(pair[2]), pair))[:_REPORTED])


# -- kinds ---------------------------------------------------------------------------------------------------


def ridge(x: Floats, y: Floats, weights: Floats | None = None) -> tuple[Floats, Floats]:
    """Coefficients (p, k) and levels (k,) of ridge regressions, by the penalty of the largest likelihood.

    ``weights`` (n,) are those of rows, 1 by default.
    """
    return _Spectrum.of(x, weights).ridge(y)


@dataclass(frozen=True, eq=False)
class _Spectrum:
    """Rows x (n, p), thinned, weighted and centred, by the eigenvectors of the smaller product of them."""

    some: slice  # of the rows
    weights: Floats  # (n,)
    center: Floats  # (p,)
    x: Floats
    squares: Floats
    axes: Floats

    @classmethod
    def of(cls, x: Floats, weights: Floats | None = None) -> _Spectrum:
        """The decomposition of rows x, by ``weights`` of rows, 1 by default."""
        some = evenly_spread(len(x), _MOST_FITTED)
        x = x[some]
        weights = np.ones(len(x)) if weights is None else weights[some]
        center = np.average(x, axis=0, weights=weights)
        x = np.sqrt(weights)[:, None] * (x - center)
        # several times faster than singular values of x
        squares, axes = np.linalg.eigh(x.T @ x if len(x) >= x.shape[1] else x @ x.T)
        return cls(some, weights, center, x, np.maximum(squares, 0.0), axes)

    def ridge(self, y: Floats) -> tuple[Floats, Floats]:
        x, axes, squares, n = self.x, self.axes, self.squares, len(self.x)
        y = y[self.some]
        level = np.average(y, axis=0, weights=self.weights)
        y = np.sqrt(self.weights)[:, None] * (y - level)
        is_tall = n >= x.shape[1]
        target = axes.T @ (x.T @ y if is_tall else y)
        projected = target**2 if is_tall else squares[:, None] * target**2
        total = np.maximum((y**2).sum(axis=0), _TINY)
        scores = []
        for penalty in _PENALTIES:
            fit = (total - (projected / (squares + penalty)[:, None]).sum(axis=0)) / penalty
            logs = np.log(squares + penalty).sum() + (n - squares.size) * np.log(penalty)
            scores.append(n * np.log(np.maximum(fit, _TINY)) + logs)
        penalties = _PENALTIES[np.argmin(scores, axis=0)]
        coef = axes @ (target / (squares[:, None] + penalties))
        coef = coef if is_tall else x.T @ coef
        return coef, level - self.center @ coef


def _ridges(its: _Training) -> _Fits:
    slopes, level = its.spectrum.ridge(its.answers)
    coef = its.nodes @ slopes
    return _Fits(coef[None], (level + its.held @ coef)[None])


def _logistic(its: _Training, *, by_slope: bool = False) -> _Fits:
    from scipy.special import expit, logit

    nearest = _FAINTEST if by_slope else _NEAREST
    p = np.clip(its.answers, nearest, 1.0 - nearest)
    if by_slope:
        # of all outputs together: faint probabilities would decide the fit otherwise
        steep = p * (1.0 - p) + _LEAST_SLOPE
        weights = (steep / steep.max(axis=0)).mean(axis=1) ** 2
        slopes, level = ridge(its.rows @ its.nodes, np.asarray(logit(p)), weights / weights.max())
    else:
        slopes, level = its.spectrum.ridge(np.asarray(logit(p)))
    coef = its.nodes @ slopes
    form = Linked(Linear(coef, level), "logistic")
    gamma = exact_account(LinkedWordsExpectation(form), form.predict, len(coef)).values[0]
    return _Fits(gamma[None], np.asarray(expit(level + its.held @ coef))[None])


class ProcessOfPairs:
    """Gaussian processes of k outputs, with covariance single + ratio double, of columns and of their pairs.

    The first answers choose ratio and noise of each output for all.
    """

    def __init__(self) -> None:
        self._chosen: list[tuple[float, float]] = []

    @property
    def ratios(self) -> list[float]:
        return [ratio for ratio, _ in self._chosen]

    def fit(self, single: Floats, double: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Levels (k,), and weights (n, k) of rows with answers y (n, k) and covariances (n, n)."""
        level = y.mean(axis=0)
        if not self._chosen:
            # of fewer rows, since decompositions of all would take most of the time
            some = evenly_spread(len(y), _MOST_CHOOSING)
            first, second = single[some, some], double[some, some]
            spectra = {ratio: np.linalg.eigh(first + ratio * second) for ratio in _RATIOS}
            self._chosen = _likeliest(spectra, (y - level)[some])
        weights = np.empty(y.shape)
        alike = sorted(range(len(self._chosen)), key=self._chosen.__getitem__)
        for (ratio, noise), its in groupby(alike, self._chosen.__getitem__):
            outputs = [*its]
            covariance = single + ratio * double + noise * np.eye(len(y))
            weights[:, outputs] = np.linalg.solve(covariance, (y - level)[:, outputs])
        return level, weights

    def answers(self, single: Floats, double: Floats, level: Floats, weights: Floats) -> Floats:
        """Answers to other rows, (m, k), by their covariances (m, n)."""
        each = [(single + ratio * double) @ its for ratio, its in zip(self.ratios, weights.T, strict=True)]
        return np.asarray(level + np.stack(each, axis=1))


class _AllPairs:
    """The process of units and of their products."""

    def __init__(self) -> None:
        self._process = ProcessOfPairs()

    def __call__(self, its: _Training) -> _Fits:
        rows, answers = its.thinned(_MOST_OF_PAIRS)
        scale = np.trace(its.nodes.T @ its.nodes)
        # Σ_p (z · node_p)² is about 1
        x, held = ((2.0 * z - 1.0) @ its.nodes / np.sqrt(scale) for z in (rows, its.held))
        both = [_products(2.0 * z - 1.0, 2.0 * rows - 1.0) for z in (rows, its.held)]
        # the constant has the variance of all slopes
        linear = [z @ x.T + 1.0 for z in (x, held)]
        level, weights = self._process.fit(linear[0], both[0], answers)
        gamma = 2.0 * its.nodes @ (x.T @ weights) / np.sqrt(scale)
        return _Fits(gamma[None], self._process.answers(linear[1], both[1], level, weights)[None])


def _products(a: Floats, b: Floats) -> Floats:
    """Σ_{i<j} a_i a_j b_i b_j over the number of pairs, of rows a (n, d) and b (m, d)."""
    d = a.shape[1]
    return np.asarray(((a @ b.T) ** 2 - a**2 @ (b**2).T) / max(d * (d - 1), 1))


def _likeliest(spectra: Mapping[float, tuple[Floats, Floats]], y: Floats) -> list[tuple[float, float]]:
    """The ratio and the noise of the largest likelihood, of each output y (n, k)."""
    best = [(np.inf, 0.0, 1.0)] * y.shape[1]
    for ratio, (sizes, axes) in spectra.items():
        squares = (axes.T @ y) ** 2
        for noise in _NOISES.tolist():
            total = np.maximum(sizes, 0.0) + noise
            fit = np.maximum((squares / total[:, None]).mean(axis=0), _TINY)
            scores = len(y) * np.log(fit) + np.log(total).sum()
            best = [min(old, (float(score), ratio, noise)) for old, score in zip(best, scores, strict=True)]
    return [(ratio, noise) for _, ratio, noise in best]


def _lassos(its: _Training) -> _Fits:
    coef, level = its.lassos
    units = its.nodes @ coef  # (a, d, k)
    return _Fits(units, level[:, None] + its.held @ units)


def _lassos_with_pairs(its: _Training) -> _Fits:
    rows, answers = its.thinned(_MOST_FITTED)
    x, p = rows @ its.nodes, its.nodes.shape[1]
    first, _ = its.lassos
    sizes = np.abs(its.nodes @ first[len(SHARES) // 2 : len(SHARES)]).sum(axis=0)
    gammas, predictions, pairs = [], [], []
    for k in range(answers.shape[1]):
        leading = np.argsort(-sizes[:, k], kind="stable")[:_LEADING]
        i, j = (leading[its] for its in np.triu_indices(leading.size, 1))
        both, held = ((2.0 * z[:, i] - 1.0) * (2.0 * z[:, j] - 1.0) for z in (rows, its.held))
        coef, level = (c[..., 0] for c in lasso(np.concatenate([x, both], axis=1), answers[:, k : k + 1]))
        units = coef[:, :p] @ its.nodes.T  # (a, d): products add nothing
        gammas.append(units)
        predictions.append(level[:, None] + units @ its.held.T + coef[:, p:] @ held.T)
        pairs.append((np.stack([i, j], axis=1), coef[:, p:]))
    return _Fits(np.stack(gammas, axis=2), np.stack(predictions, axis=2), pairs)


def lasso(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Coefficients (2a, p, k) and levels (2a, k) of LASSOs, then of relaxed ones, by a penalties.

    |y - level - x coef|² / 2n + penalty Σ_p σ_p |coef_p|, σ_p the standard deviation of column p, at the
    penalties that are ``SHARES`` of the least which leaves no column. By accelerated proximal gradients
    (Beck & Teboulle 2009): a held-out part chooses among the results, and their last digits do not matter.
    """
    center, level = x.mean(axis=0), y.mean(axis=0)
    spread = x.std(axis=0)
    varies = spread > 1e-9 * max(float(np.abs(x).max()), _TINY)
    standard = np.divide(x - center, spread, out=np.zeros_like(x), where=varies)
    gram, gamma = standard.T @ standard / len(x), standard.T @ (y - level) / len(x)
    penalties = SHARES[:, None] * np.abs(gamma).max(axis=0)  # (a, k)
    shape = (len(gamma), *penalties.shape)
    target = np.broadcast_to(gamma[:, None], shape).reshape(len(gamma), -1)
    step = 1.0 / _largest(gram)
    coef = ahead = np.zeros_like(target)
    threshold, momentum = step * penalties.ravel(), 1.0
    for i in range(_STEPS):
        moved = ahead - step * (gram @ ahead - target)
        new = np.sign(moved) * np.maximum(np.abs(moved) - threshold, 0.0)
        if i % _LOOK == 0 and np.abs(new - coef).max() <= _STILL * np.abs(new).max(initial=0.0):
            coef = new
            break
        later = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = new + (momentum - 1.0) / later * (new - coef)
        coef, momentum = new, later
    relaxed = coef.copy()
    outputs = np.tile(np.arange(y.shape[1]), len(SHARES))
    for column, output in enumerate(outputs.tolist()):
        on = np.flatnonzero(coef[:, column])
        if 0 < on.size <= len(x) // 3:
            its = gram[np.ix_(on, on)] + 1e-2 * np.eye(on.size)
            relaxed[on, column] = (coef[on, column] + np.linalg.solve(its, gamma[on, output])) / 2.0
    both = np.stack([coef, relaxed]).reshape(2, *shape).transpose(0, 2, 1, 3).reshape(-1, shape[0], shape[2])
    both = both * np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)[:, None]
    return both, level - center @ both


def _largest(gram: Floats) -> float:
    """The largest eigenvalue, from above: by powers, and no more than the largest sum of a row's sizes."""
    sizes = np.abs(gram).sum(axis=1)
    # the sizes of a matrix of few rows may be orthogonal to what they are the sizes of
    vectors = np.stack([sizes, np.cos(np.arange(1.0, 1.0 + sizes.size) ** 2)], axis=1)
    for _ in range(30):
        vectors = gram @ vectors / np.maximum(np.linalg.norm(vectors, axis=0), _TINY)
    largest = 1.1 * float(np.linalg.norm(vectors, axis=0).max())
    return max(min(largest, float(sizes.max())), _TINY)
