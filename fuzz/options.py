"""Random options of an explanation, and rows that are hard on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz.background import Background

Array = Any


@dataclass(frozen=True)
class Options:
    """Options of ``TabularExplainer``, as they stand in the call.

    ``categorical`` is what the oracle takes for categories; ``named`` whether the call says so. ``groups``
    are columns by position.
    """

    bins: Any = "quartile"
    law: str = "truncnorm"
    weights: str = "bins"
    bandwidth: float | None = None
    output: Any = None
    categorical: tuple[int, ...] = ()
    named: bool = True
    groups: tuple[tuple[int, ...], ...] = ()

    def keywords(self, names: list[str] | None = None) -> dict[str, Any]:
        """Keyword arguments that differ from the library's defaults."""
        result: dict[str, Any] = {}
        for name in ("bins", "law", "weights", "bandwidth", "output"):
            value = getattr(self, name)
            if value != _DEFAULT[name]:
                result[name] = value
        if self.categorical and self.named:
            result["categorical"] = [j if names is None else names[j] for j in self.categorical]
        if self.groups:
            result["groups"] = {
                f"group {i}": [j if names is None else names[j] for j in its]
                for i, its in enumerate(self.groups)
            }
        return result

    def players(self, d: int) -> list[tuple[int, ...]]:
        """Groups and the columns that stand alone, in the order of their first columns."""
        grouped = {j for its in self.groups for j in its}
        return sorted([*self.groups, *((j,) for j in range(d) if j not in grouped)])

    def without(self, j: int) -> Options:
        """The same without column j."""
        bins = [*self.bins[:j], *self.bins[j + 1 :]] if isinstance(self.bins, list) else self.bins
        rest = [tuple(i - (i > j) for i in its if i != j) for its in self.groups]
        return replace(self, bins=bins, groups=tuple(its for its in rest if its))

    def nu(self, d: int) -> float:
        """The bandwidth that is meant."""
        return 0.75 * float(np.sqrt(d)) if self.bandwidth is None else float(self.bandwidth)

    @property
    def kind(self) -> str:
        """Weights that are meant: always smooth where there are no bins."""
        return "euclidean" if self.bins is None else self.weights


# Libraries put a border for missing values at -3.4e38: at such a distance no weight has a digit
_FAR = 1e30

_DEFAULT: dict[str, Any] = {
    "bins": "quartile",
    "law": "truncnorm",
    "weights": "bins",
    "bandwidth": None,
    "output": None,
}


@dataclass(frozen=True)
class Menu:
    """The options that a case may have.

    Attributes
    ----------
    outputs
        Outputs that can be explained.
    laws
        Laws inside bins; only "empirical" where the oracle must ask the model at the law's own points.
    categorical
        Columns whose numbers are categories.
    unnamed
        Whether the call may leave it to the library to see that they are.
    slopes
        Whether bins=None is asked.
    narrow, least
        The smallest bandwidth of smooth weights, and of weights by bins.
    """

    outputs: tuple[Any, ...] = (None,)
    laws: tuple[str, ...] = ("truncnorm", "truncnorm", "uniform", "empirical")
    categorical: tuple[int, ...] = ()
    unnamed: bool = False
    slopes: bool = True
    narrow: float = 0.02
    least: float = 0.02


def draw_options(rng: Any, menu: Menu, background: Background) -> Options:
    """One set of options; the plain default is one of six."""
    base = Options(
        output=_pick(rng, menu.outputs),
        categorical=menu.categorical,
        named=not (menu.unnamed and rng.random() < 0.25),
    )
    if "truncnorm" in menu.laws and rng.random() < 1 / 6:
        return base
    missing = bool(np.isnan(background.matrix[:, _numeric(background)]).any())
    slopes = menu.slopes and not missing and rng.random() < 0.2
    bins = None if slopes else _bins(rng, background)
    weights = "euclidean" if rng.random() < 0.35 else "bins"
    smooth = bins is None or weights == "euclidean"
    law = _pick(rng, menu.laws)
    low = max(menu.narrow, 0.3 if slopes and law == "uniform" else 0.0) if smooth else menu.least
    bandwidth = _pick(
        rng, (None, None, np.inf, 0.02, 0.1, 0.3, 1.0, 3.0, float(np.round(rng.uniform(0.05, 2), 2)))
    )
    if bandwidth is not None and bandwidth < low:
        bandwidth = low
    return replace(base, bins=bins, law=law, weights=weights, bandwidth=bandwidth)


def _pick(rng: Any, choices: tuple[Any, ...]) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _numeric(background: Background) -> Array:
    return np.flatnonzero([not flag for flag in background.categorical])


def _bins(rng: Any, background: Background) -> Any:
    kind = int(rng.integers(6))
    if kind < 2:
        return "quartile"
    if kind == 2:
        return "decile"
    if kind == 3:
        return int(rng.integers(2, 9))
    edges = [_edges(rng, background.matrix[:, j]) for j in range(background.matrix.shape[1])]
    return [None if flag else edge for flag, edge in zip(background.categorical, edges, strict=True)]


def _edges(rng: Any, x: Array) -> list[float] | None:
    """Edges of bins that hold values: between distinct values, and at times on one; ends may be infinite."""
    values = np.unique(x[~np.isnan(x)])
    if rng.random() < 0.2 or values.size < 4:
        return None
    count = int(rng.integers(1, min(5, values.size - 1) + 1))
    at = np.sort(rng.choice(values.size - 1, count, replace=False))
    share = np.where(rng.random(count) < 0.3, 0.0, rng.uniform(0.1, 0.9, count))
    inner = values[at] + share * (values[at + 1] - values[at])
    low = _pick(rng, (float(values[0]), float(values[0] - 1.5), -np.inf))
    high = _pick(rng, (float(values[-1]), float(values[-1] + 1.5), np.inf))
    edges = np.unique([low, *inner, high]).tolist()
    owner = np.searchsorted(edges[1:-1], values, side="left")
    return edges if np.unique(owner).size == len(edges) - 1 else None


def draw_groups(rng: Any, d: int) -> tuple[tuple[int, ...], ...]:
    """Groups of a random partition of d columns into two parts or more: those of several columns."""
    if d < 3:
        return ()
    while True:
        owner = rng.integers(0, int(rng.integers(2, d)), d)
        players = [tuple(np.flatnonzero(owner == g).tolist()) for g in np.unique(owner)]
        groups = [its for its in players if len(its) > 1]
        if len(players) > 1 and groups:
            return tuple(groups)


def draw_rows(
    rng: Any, background: Background, cuts: list[Array], count: int, *, inside: bool = False
) -> Array:
    """Rows of the background with hostile values put in: cuts and their neighbours, zeros, out of range.

    ``inside`` keeps to the background's own values and to what lies beyond its ends: where laws are made of
    points, a bin without any has no law that a grid of points could know.
    """
    matrix = background.matrix
    rows = matrix[rng.integers(len(matrix), size=count)].copy()
    for j, categorical in enumerate(background.categorical):
        present = matrix[~np.isnan(matrix[:, j]), j]
        places = np.unique(present) if categorical or inside else _hostile(rng, present, cuts[j])
        if inside and not categorical:
            places = np.concatenate([places, [present.min() - 1.0, present.max() + 1.0]])
        if np.isnan(matrix[:, j]).any():
            places = np.append(places, np.nan)
        chosen = rng.random(count) < 0.4
        rows[chosen, j] = rng.choice(places, int(chosen.sum()))
    return rows


def _hostile(rng: Any, present: Array, cuts: Array) -> Array:
    reach = float(present.max() - present.min()) or 1.0
    places = [0.0, -0.0, present.min(), present.max(), present.min() - reach, present.max() + 0.3 * reach]
    places += np.quantile(present, [0.25, 0.5, 0.75]).tolist()
    cuts = cuts[np.abs(cuts) < _FAR]
    some = rng.choice(cuts, min(cuts.size, 8), replace=False) if cuts.size else np.zeros(0)
    single = some.astype(np.float32)
    with np.errstate(over="ignore"):
        beside = [np.nextafter(single, np.float32(side)).astype(float) for side in (np.inf, -np.inf)]
    near = [np.nextafter(some, side) for side in (np.inf, -np.inf)]
    return np.concatenate([places, some, single.astype(float), *beside, *near])
