"""Coefficients of LIME's limit by summing the model's own answers over the grid of all columns.

Columns are independent under the weighted law, so that E_w f is a sum over the grid of columns' points, and

    β_j = E_w[f | z_j = 1] - E_w[f | z_j = 0],    or Cov_w(x_j, f) / Var_w(x_j) for slopes,
    β_0 = E_w f - Σ_j E_w[h_j] β_j.

The points of a smooth model are nodes in panels. Analytic functions have errors that fall geometrically as
panels are halved: where a halving no longer moves a coefficient, what is left is far less than that move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fuzz.laws import Law
from fuzz.nodes import EvaluationPoints, probabilities, quadrature
from fuzz.normal import log_density, log_sum
from fuzz.verdict import AGREES, Verdict

Array = Any

# Of the tolerance, what the last halving of panels may move
_MOVED = 0.1


class Truth(NamedTuple):
    """Coefficients (n, d, k), intercepts (n, k), and the largest answer of the model."""

    beta: Array
    start: Array
    size: float


def settled(
    truth: Truth, widths: Array, at: Callable[[Array], Truth], judge: Callable[..., Verdict]
) -> Truth:
    """Halve the panels of one column after the other, until none of these moves a tenth of the tolerance.

    ``at`` makes a truth of panels' widths, (d,); ``judge`` compares values and intercepts with one. Only
    columns along which the model is steep keep finer panels.
    """
    still, j = 0, 0
    while still < len(widths):
        halved = np.where(np.arange(len(widths)) == j, widths / 2, widths)
        finer = at(halved)
        if judge(finer.beta, finer.start, truth, _MOVED).kind == AGREES:
            still += 1
        else:
            truth, widths, still = finer, halved, 0
        j = (j + 1) % len(widths)
    return truth


@dataclass(frozen=True)
class Part:
    """One column at one row: probabilities of its points, the contrast, and E_w h."""

    mean: Array
    contrast: Array
    center: float


def part_of(law: Law, x: float, conditional: Array, values: Array) -> Part:
    """Mean and contrast functionals over a column's points, given P(point | cell) of the weighted law."""
    if law.slope:
        p = conditional[0] / conditional[0].sum()
        origin = float(values[np.argmax(p)])  # large offsets would cancel
        away = values - origin
        away -= p @ away
        away -= p @ away
        variance = float(p @ away**2)
        contrast = p * away / variance if variance > 0 else np.zeros(p.size)
        return Part(p, contrast, origin + float(p @ (values - origin)))
    row_cell = law.locate(x)
    others = law.log_mass.copy()
    others[row_cell] = -np.inf
    if np.isneginf(others).all():
        return Part(conditional[row_cell], np.zeros(conditional.shape[1]), 1.0)
    rest = float(log_sum(others))
    elsewhere = np.exp(others - rest) @ conditional
    alpha = float(1.0 / (1.0 + np.exp(np.clip(rest - law.log_mass[row_cell], -745.0, 709.0))))
    inside = conditional[row_cell]
    away = np.exp(rest - np.logaddexp(rest, law.log_mass[row_cell]))
    return Part(alpha * inside + away * elsewhere, inside - elsewhere, alpha)


def summed(answers: Array, parts: list[list[Part]]) -> tuple[Array, Array]:
    """Coefficients (rows, d, k) and intercepts (rows, k), from answers on the grid (n_1, ..., n_d, k).

    ``parts`` has a list a row, of a part a column. Columns are summed away from the last to the first; beside
    the plain mean one sum is carried for each column whose contrast was taken.
    """
    d = answers.ndim - 1
    sums: dict[int, Array] = {-1: np.broadcast_to(answers, (len(parts), *answers.shape))}
    for j in range(d - 1, -1, -1):
        mean = np.stack([row[j].mean for row in parts])
        contrast = np.stack([row[j].contrast for row in parts])
        new = {key: _contract(total, mean) for key, total in sums.items()}
        new[j] = _contract(sums[-1], contrast)
        sums = new
    beta = np.stack([sums[j] for j in range(d)], axis=1)
    center = np.array([[p.center for p in row] for row in parts])
    return beta, sums[-1] - np.einsum("rd,rdk->rk", center, beta)


def _contract(total: Array, weights: Array) -> Array:
    """Sum away the axis before the last, row by row: (r, ..., n, k) and (r, n)."""
    if total.strides[0] == 0:  # the same for every row: one product
        return np.einsum("...nk,rn->r...k", total[0], weights, optimize=True)
    return np.einsum("r...nk,rn->r...k", total, weights, optimize=True)


def step_parts(
    law: Law, at: EvaluationPoints, x: float, weights: str, bandwidth: float, moments: float | None = None
) -> Part:
    """A column's part where the model is constant between cuts."""
    weighted = law.weighted(x, weights, bandwidth)
    if law.slope:
        return _step_slope(weighted, at, moments)
    return part_of(weighted, x, probabilities(weighted, at), at.values)


def _step_slope(law: Law, at: EvaluationPoints, width: float | None) -> Part:
    """Slopes need E[x | interval] too: of a normal law in closed form, else nodes added up by interval."""
    if law.std.size == 1 and np.isfinite(law.std[0]) and np.isinf(law.low[0]):
        return _normal_slope(law, at)
    values, p = quadrature(law, at.cuts, width or law.scale)
    place = at.single + np.searchsorted(at.cuts, values, side="left")
    for i, single in enumerate(at.values[: at.single]):
        place[values == single] = i
    fine = part_of(law, 0.0, p, values)
    size = at.values.size
    return Part(
        np.bincount(place, fine.mean, minlength=size),
        np.bincount(place, fine.contrast, minlength=size),
        fine.center,
    )


def _normal_slope(law: Law, at: EvaluationPoints) -> Part:
    """E[(x - m) 1(a < x < b)] = s (φ(a') - φ(b')), a' = (a - m) / s: over the variance s²."""
    m, s = float(law.mean[0]), float(law.std[0])
    density = np.exp(log_density(at.cuts, m, s))  # φ / s
    edges = np.concatenate([[0.0], density, [0.0]])
    contrast = np.concatenate([np.zeros(at.single), edges[:-1] - edges[1:]])
    return Part(probabilities(law, at)[0], contrast, m)
