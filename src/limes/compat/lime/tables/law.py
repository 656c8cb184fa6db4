"""lime's own rows of a table: columns independent, each drawn from the training data's law.

feature z_j = 1 in the instance's bin or category, else 0;  without bins, the value in standard deviations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes.compat.lime.discretize import BaseDiscretizer
from limes.compat.lime.lime_base import LimeBase, LocalFit
from limes.compat.lime.surrogates import Surrogates, explained
from limes.compat.lime.tables.training import Request, Training
from limes.exceptions import InputError

__all__ = ["SAMPLINGS", "LimeEngine", "Neighbourhood", "TableLaw"]


def _independent(count: int, d: int, rng: np.random.Generator) -> Floats:
    return rng.random((count, d))


def _latin(count: int, d: int, rng: np.random.Generator) -> Floats:
    from scipy.stats import qmc

    return np.asarray(qmc.LatinHypercube(d, rng=rng).random(count))


# Levels (n, d) in (0, 1) of the columns' distribution functions, by lime's names
SAMPLINGS: dict[str, Callable[[int, int, np.random.Generator], Floats]] = {
    "gaussian": _independent,
    "lhs": _latin,
}


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Features and rows (n, d), the instance's first."""

    features: Floats
    rows: Floats

    def distances(self, metric: Any) -> Floats:
        """Of each row's features from the instance's, (n,).

        Raises
        ------
        InputError
            If scikit-learn has no such metric, or it is not one of such features.
        """
        if metric == "euclidean":
            return np.asarray(np.sqrt(((self.features - self.features[0]) ** 2).sum(axis=1)))
        from sklearn.metrics import pairwise_distances

        try:
            found = pairwise_distances(self.features, self.features[:1], metric=metric)
        except ValueError as error:
            raise InputError(f"distance_metric={metric!r} does not measure these rows: {error}") from error
        return np.asarray(found).ravel()


@dataclass(frozen=True, eq=False)
class TableLaw:
    """Laws of the columns: bins or categories with their frequencies, and normals.

    Attributes
    ----------
    discretizer
        None where numbers are not cut into bins.
    values, frequencies
        Of the columns with bins or categories, by position.
    mean, scale
        (d,) of the others.
    around
        Whether normals are centred on the instance.
    """

    discretizer: BaseDiscretizer | None
    values: Mapping[int, Any]
    frequencies: Mapping[int, Floats]
    mean: Floats
    scale: Floats
    around: bool

    def sample(self, row: Floats, count: int, sampling: str, rng: np.random.Generator) -> Neighbourhood:
        """Draw ``count`` rows, of which the first is the instance."""
        levels = SAMPLINGS[sampling](count - 1, len(row), rng)
        columns = [self._column(j, row[j], levels[:, j]) for j in range(len(row))]
        rows = np.column_stack([values for values, _ in columns])
        return Neighbourhood(np.column_stack([h for _, h in columns]), np.vstack([row, rows]))

    def _column(self, j: int, x: float, levels: Floats) -> tuple[Floats, Floats]:
        """Values (n - 1,) at levels, and the features (n,) of x and of these."""
        return self._cells(j, x, levels) if j in self.values else self._numbers(j, x, levels)

    def _cells(self, j: int, x: float, levels: Floats) -> tuple[Floats, Floats]:
        share = self.frequencies[j]
        upper = np.cumsum(share)
        place = np.minimum(np.searchsorted(upper, levels, side="right"), len(share) - 1)
        cells = np.asarray(self.values[j])[place]
        if self.discretizer is None or j not in self.discretizer.lambdas:
            return cells, np.append(1.0, cells == x)
        # what is left of a level, once it has chosen the bin, is the place inside it
        inside = np.clip((levels - upper[place] + share[place]) / share[place], 0.0, 1.0)
        own = self.discretizer.lambdas[j](x)
        return self.discretizer.drawn(j, cells.astype(int), inside), np.append(1.0, cells == own)

    def _numbers(self, j: int, x: float, levels: Floats) -> tuple[Floats, Floats]:
        from scipy.special import ndtri

        centre = x if self.around else self.mean[j]
        values = centre + self.scale[j] * ndtri(np.clip(levels, 2.0**-54, 1.0 - 2.0**-53))
        return values, (np.append(x, values) - self.mean[j]) / self.scale[j]


@dataclass(frozen=True, eq=False)
class LimeEngine:
    """Answers requests as lime does: draw rows, ask, fit."""

    training: Training
    law: TableLaw
    base: LimeBase
    selection: str
    seeds: tuple[int, ...]
    mode: str
    provenance: Mapping[str, Any]

    def __call__(self, request: Request) -> Surrogates:
        """Surrogates of a row, from ``request.samples`` rows."""
        table = self.training.table
        if not np.isfinite(table.matrix).all() or not np.isfinite(request.row).all():
            raise InputError('engine "lime" knows no missing values: impute them, or use engine "limit"')
        near = self.law.sample(request.row, request.samples, request.sampling, self._stream(request.row))
        said, distances = request.answers(table.decode(near.rows)), near.distances(request.metric)
        return fitted(
            request,
            self.base,
            self.selection,
            near.features,
            said,
            distances,
            columns=np.arange(len(request.row)),
            mode=self.mode,
            feature_names=tuple(self.training.names),
            conditions=(self.training.conditions(request.row),),
            data=table.originals(request.row[None]),
            provenance=self.provenance,
            units=(self.training.unit, self.training.origin),
        )

    def _stream(self, row: Floats) -> np.random.Generator:
        """Of the seeds and the row alone."""
        return np.random.default_rng([*self.seeds, *row.view(np.uint32).tolist()])


def fitted(
    request: Request,
    base: LimeBase,
    selection: str,
    features: Floats,
    said: Floats,
    distances: Floats,
    *,
    columns: Ints,
    units: tuple[Floats, Floats],
    **fields: Any,
) -> Surrogates:
    """Fit lime's surrogates of answers (n, k) on features (n, m) of columns (m,), the instance's first.

    A feature is (x - origin) / unit; ``units`` has both, (d,).
    """
    labels = request.labels(said[0])
    options = (request.features, selection, request.regressor)
    local = base.fits(features, said, distances, labels, *options)
    fits = {k: replace(fit, features=columns[fit.features]) for k, fit in local.items()}
    own = {k: _in_units(fit, *units) for k, fit in fits.items()}
    found = explained(own, predictions=said[0][labels], calls=np.array([len(said)]), **fields)
    scores = partial(dict[int, float], {k: fit.score for k, fit in fits.items()})
    bounds = partial(tuple[float, float], (float(said.min()), float(said.max())))
    return Surrogates(fits, scores, said[0], bounds, found)


def _in_units(fit: LocalFit, unit: Floats, origin: Floats) -> LocalFit:
    """The surrogate on x itself."""
    coef, errors = fit.coef / unit[fit.features], fit.errors / unit[fit.features]
    return replace(
        fit, intercept=fit.intercept - float(coef @ origin[fit.features]), coef=coef, errors=errors
    )
