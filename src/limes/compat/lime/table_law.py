"""lime's own rows of a table: columns independent, each drawn from the training data's law.

feature z_j = 1 in the instance's bin or category, else 0;  without bins, the value in standard deviations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.compat.lime.discretize import BaseDiscretizer
from limes.compat.lime.lime_base import LimeBase
from limes.compat.lime.surrogates import Surrogates, explained
from limes.compat.lime.table_training import Request, Training
from limes.exceptions import InputError

__all__ = ["LimeEngine", "Neighbourhood", "TableLaw"]


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Features and rows (n, d), the instance's first."""

    features: Floats
    rows: Floats

    def distances(self, metric: Any) -> Floats:
        """Of each row's features from the instance's, (n,)."""
        if metric == "euclidean":
            return np.asarray(np.sqrt(((self.features - self.features[0]) ** 2).sum(axis=1)))
        from sklearn.metrics import pairwise_distances

        return np.asarray(pairwise_distances(self.features, self.features[:1], metric=metric)).ravel()


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

    def sample(self, row: Floats, count: int, rng: np.random.Generator) -> Neighbourhood:
        """Draw ``count`` rows, of which the first is the instance."""
        rows = np.tile(row, (count, 1))
        features = np.ones_like(rows)
        for j in range(len(row)):
            draw: Callable[..., None] = self._cell if j in self.values else self._number
            draw(j, row, rows, features, rng)
        return Neighbourhood(features, rows)

    def _cell(self, j: int, row: Floats, rows: Floats, features: Floats, rng: np.random.Generator) -> None:
        cells = rng.choice(np.asarray(self.values[j]), size=len(rows) - 1, p=self.frequencies[j])
        binned = self.discretizer is not None and j in self.discretizer.lambdas
        own = self.discretizer.lambdas[j](row[j]) if binned and self.discretizer else row[j]
        features[1:, j] = cells == own
        rows[1:, j] = cells
        if binned and self.discretizer:
            rows[1:, j] = self.discretizer.drawn(j, cells.astype(int), rng.uniform(size=len(cells)))

    def _number(self, j: int, row: Floats, rows: Floats, features: Floats, rng: np.random.Generator) -> None:
        centre = row[j] if self.around else self.mean[j]
        rows[1:, j] = centre + self.scale[j] * rng.standard_normal(len(rows) - 1)
        features[:, j] = (rows[:, j] - self.mean[j]) / self.scale[j]


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
        near = self.law.sample(request.row, request.samples, self._stream(request.row))
        said, distances = request.answers(table.decode(near.rows)), near.distances(request.metric)
        options = (request.features, self.selection, request.regressor)
        fits = {k: self.base.fit(near.features, said[:, k], distances, *options) for k in request.labels}
        found = explained(
            fits,
            self.mode,
            predictions=request.said[request.labels],
            feature_names=tuple(self.training.names),
            conditions=(self.training.conditions(request.row),),
            data=table.originals(request.row[None]),
            calls=np.array([request.samples]),
            provenance=self.provenance,
        )
        scores = partial(dict[int, float], {k: fit.score for k, fit in fits.items()})
        return Surrogates(fits, scores, request.said, (float(said.min()), float(said.max())), found)

    def _stream(self, row: Floats) -> np.random.Generator:
        """Of the seeds and the row alone."""
        return np.random.default_rng([*self.seeds, *row.view(np.uint32).tolist()])
