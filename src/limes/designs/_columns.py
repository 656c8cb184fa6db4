"""Marginals learnt from a background's columns, or stated by their statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from limes._arrays import Floats, Ints, float_array, mean_and_std
from limes.designs._gaussian import GaussianPieces
from limes.designs._marginals import Atoms, BinCells, Levels, Marginal, marginal
from limes.exceptions import InputError

_Part = tuple[GaussianPieces | Atoms, Ints]


@dataclass(frozen=True, eq=False)
class BinStatistics:
    """Statistics of a column without its values: the law inside bin b is a truncated normal.

    Parameters
    ----------
    edges
        (p + 1,) with both ends; the outer two may be infinite.
    means, stds
        (p,) of the values inside the bins. A bin with std 0 or without width is a point mass.
    frequencies
        (p,) non-negative; equal by default.

    Examples
    --------
    >>> import numpy as np
    >>> import limes
    >>> age = limes.designs.BinStatistics([0, 40, 99], [30, 60], [5, 9], [0.7, 0.3])
    >>> explainer = limes.TabularExplainer(lambda X: X[:, 0], np.array([[30.0], [60.0]]), bins=[age])
    >>> explainer([20.0]).conditions
    (('x0 <= 40',),)
    """

    edges: Sequence[float] | Floats
    means: Sequence[float] | Floats
    stds: Sequence[float] | Floats
    frequencies: Sequence[float] | Floats = ()

    def marginal(self) -> Marginal:
        """Return the law of the column.

        Raises
        ------
        InputError
            If lengths disagree, edges descend, or a number is not finite.
        """
        return _from_statistics("", self)


def binned(x: Floats, edges: Floats, *, law: str = "truncnorm") -> Marginal:
    """Return the law of a numeric column cut at edges (p + 1,), the in-bin laws learnt from values (n,).

    A bin whose values are all equal is an atom at that value. An empty bin has probability 0, and a uniform
    law for rows that fall into it all the same. Missing values are an atom in an extra cell.

    Raises
    ------
    InputError
        If the law is unknown.
    """
    if law not in LAWS:
        raise InputError(f"law must be one of {sorted(LAWS)}, got {law!r}")
    missing = bool(np.isnan(x).any())
    cells = BinCells(edges, missing)
    owner = cells.locate(x)
    mass = np.bincount(owner, minlength=cells.count)
    groups = np.split(x[np.argsort(owner, kind="stable")], np.cumsum(mass)[:-1])
    parts = []
    spread, empty = [], []
    for b, inside in enumerate(groups[: edges.size - 1]):
        if inside.size == 0:
            empty.append(b)
        elif inside.min() == inside.max():
            parts.append(_atoms(inside[:1], b))
        else:
            spread.append(b)
    if spread:
        parts.append(LAWS[law]([groups[b] for b in spread], np.array(spread), edges))
    if empty:
        if not np.isfinite([edges[empty], edges[1:][empty]]).all():
            raise InputError(f"edges {edges.tolist()}: a bin without values needs two finite ends")
        parts.append(_flat(np.array(empty), edges[empty], edges[1:][empty]))
    if missing:
        parts.append(_atoms(np.array([np.nan]), cells.count - 1))
    return marginal(cells, mass, parts)


def categorical(x: Floats, points: Floats | None = None) -> Marginal:
    """Return the law of a column of codes (n,): every level is an atom and a cell; so is NaN.

    ``points`` are all levels, increasing, NaN last: levels that do not occur in x have no mass.
    """
    values = np.unique(x) if points is None else points
    levels = Levels(values)
    counts = np.bincount(levels.locate(x), minlength=values.size)
    return marginal(levels, counts, [(Atoms(values, np.ones(values.size)), np.arange(values.size))])


def unbinned(x: Floats, *, law: str = "truncnorm") -> Marginal:
    """Return the law of a numeric column in one cell: normal, uniform on its range, or the values themselves.

    Missing values are an atom in a second cell.
    """
    numbers = x[~np.isnan(x)]
    if law != "truncnorm" and numbers.min() < numbers.max():
        return binned(x, np.array([numbers.min(), numbers.max()]), law=law)
    ends = np.array([-np.inf, np.inf])
    if numbers.min() == numbers.max():
        parts = [_atoms(numbers[:1], 0)]
    else:
        mean, std = np.array(mean_and_std(numbers))[:, None]
        pieces = GaussianPieces.truncated_normal(mean, std, ends[:1], ends[1:], weight=np.ones(1))
        parts = [(pieces, np.zeros(1, dtype=np.int64))]
    missing = x.size - numbers.size
    if not missing:
        return marginal(BinCells(ends), np.ones(1), parts)
    masses = np.array([numbers.size, missing])
    return marginal(BinCells(ends, True), masses, [*parts, _atoms(np.array([np.nan]), 1)])


def marginals_from_bins(
    edges: Sequence[Sequence[float] | Floats],
    means: Sequence[Sequence[float] | Floats],
    stds: Sequence[Sequence[float] | Floats],
    *,
    frequencies: Sequence[Sequence[float] | Floats] | None = None,
) -> tuple[Marginal, ...]:
    """Return marginals from bin statistics, one array a column; see ``ProductDesign.from_bins``."""
    d = len(edges)
    if d == 0:
        raise InputError("a design needs one column at least; edges is empty")
    statistics = {
        "means": means,
        "stds": stds,
        "frequencies": [()] * d if frequencies is None else frequencies,
    }
    for name, lists in statistics.items():
        if len(lists) != d:
            raise InputError(f"{name} has {len(lists)} arrays, edges has {d}: one a column is needed")
    return tuple(
        _from_statistics(f"column {j}: ", BinStatistics(*column))
        for j, column in enumerate(zip(edges, *statistics.values(), strict=True))
    )


def _from_statistics(where: str, statistics: BinStatistics) -> Marginal:
    edges, mean, std, mass = (
        float_array(where + f.name, getattr(statistics, f.name), 1) for f in fields(statistics)
    )
    count = edges.size - 1
    mass = mass if mass.size else np.ones(max(count, 0))
    if count < 1 or not {mean.shape, std.shape, mass.shape} == {(count,)}:
        raise InputError(
            f"{where}{edges.size} edges make {max(count, 0)} bins, but means, stds and frequencies have "
            f"shapes {mean.shape}, {std.shape}, {mass.shape}"
        )
    lower, upper = edges[:-1], edges[1:]
    if not (np.isfinite(mean).all() and np.isfinite(std).all() and (std >= 0).all()):
        raise InputError(f"{where}means must be finite and stds finite and >= 0")
    if not (lower <= upper).all() or not np.isfinite(edges[1:-1]).all() or (lower == np.inf).any():
        raise InputError(
            f"{where}edges must ascend, and only the outer two may be infinite; got {edges.tolist()}"
        )
    point = (std == 0) | (lower == upper)
    parts: list[_Part] = []
    spread = np.flatnonzero(~point)
    if spread.size:
        pieces = GaussianPieces.truncated_normal(
            mean[spread], std[spread], lower[spread], upper[spread], weight=np.ones(spread.size)
        )
        parts.append((pieces, spread))
    if point.any():
        # a bin does not contain its lower edge, unless its edges coincide
        place = np.clip(mean[point], np.minimum(np.nextafter(lower, np.inf), upper)[point], upper[point])
        parts.append((Atoms(place, np.ones(place.size)), np.flatnonzero(point)))
    return marginal(BinCells(edges), mass, parts)


def _atoms(values: Floats, cell: int) -> _Part:
    weight = np.full(values.size, 1.0 / values.size)
    return Atoms(values, weight), np.full(values.size, cell)


def _truncated_normal(groups: Sequence[Floats], bins: Ints, edges: Floats) -> _Part:
    mean, std = np.array([mean_and_std(inside) for inside in groups]).T
    pieces = GaussianPieces.truncated_normal(
        mean, std, edges[bins], edges[bins + 1], weight=np.ones(bins.size)
    )
    return pieces, bins


def _uniform(groups: Sequence[Floats], bins: Ints, edges: Floats) -> _Part:
    # an open outer bin is uniform as far as the background reaches
    lower, upper = edges[bins], edges[bins + 1]
    lower = np.where(np.isfinite(lower), lower, [inside.min() for inside in groups])
    upper = np.where(np.isfinite(upper), upper, [inside.max() for inside in groups])
    return _flat(bins, lower, upper)


def _flat(bins: Ints, lower: Floats, upper: Floats) -> _Part:
    middle, flat = 0.5 * lower + 0.5 * upper, np.full(bins.size, np.inf)
    return GaussianPieces.truncated_normal(middle, flat, lower, upper, weight=np.ones(bins.size)), bins


def _empirical(groups: Sequence[Floats], bins: Ints, edges: Floats) -> _Part:  # noqa: ARG001
    values, weights, cells = [], [], []
    for b, inside in zip(bins, groups, strict=True):
        places, counts = np.unique(inside, return_counts=True)
        values.append(places)
        weights.append(counts / counts.sum())
        cells.append(np.full(places.size, b))
    return Atoms(np.concatenate(values), np.concatenate(weights)), np.concatenate(cells)


# Law by name: a function of the values of some bins (one array a bin), the positions of these bins, and the
# edges of all bins
LAWS: Mapping[str, Callable[[Sequence[Floats], Ints, Floats], _Part]] = {
    "truncnorm": _truncated_normal,
    "uniform": _uniform,
    "empirical": _empirical,
}
