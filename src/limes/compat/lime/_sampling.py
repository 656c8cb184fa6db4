"""Engine "lime": lime's own rows, drawn as lime draws them, and lime's surrogate fitted to their answers.

Tables: columns are independent, each drawn from the training data's law. Feature z_j = 1 in the instance's
bin or category, else 0; without bins, it is the value in standard deviations.
Texts: s of d words are removed, s uniform on 1, ..., d, which ones by chance.
Images: each superpixel is shown with probability ½.
The first row is the instance itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import Floats
from limes._expectations.sampling import DEFAULT_TOLERANCE
from limes.compat.lime.discretize import BaseDiscretizer
from limes.compat.lime.lime_base import LimeBase, LocalFit, PerturbedRows, Surrogates
from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes._explanation import Explanation as LimesExplanation
    from limes.compat.lime._call import Call, Kind


@dataclass(frozen=True, eq=False)
class SamplingEngine:
    """Answers calls as lime does: draw rows, call the model, fit."""

    kind: Kind
    base: Any
    selection: str
    seed: int

    def __call__(self, call: Call) -> Surrogates:
        """Fit surrogates to ``call.num_samples`` rows, which depend on the seed and the instance alone."""
        near = self.drawn(call) if call.override is None else call.override.draw()
        features, answers = near.features, near.answers
        distance = near.distances if near.distances is not None else self._distances(call, features)
        prediction = answers[0] if call.prediction is None else call.prediction
        labels = call.choose_labels(prediction)
        options = (call.num_features, self.selection, call.regressor)
        fits = self.kind.place_features(call, self._fits(features, answers, distance, labels, *options))
        facts = {"engine": "lime", "bandwidth": self.kind.bandwidth, "ridge": 1.0, "seed": self.seed}
        explanation = _explanation(
            {label: self.kind.in_input_units(fit) for label, fit in fits.items()},
            self.kind.mode,
            predictions=prediction[labels],
            calls=np.array([len(answers)]),
            **self.kind.describe(call, {name: fact for name, fact in facts.items() if fact is not None}),
        )
        bounds = float(answers.min()), float(answers.max())
        scores = {label: fit.score for label, fit in fits.items()}
        return Surrogates(fits, prediction, lambda: scores, lambda: bounds, lambda: explanation)

    def drawn(self, call: Call) -> PerturbedRows:
        """Lime's rows, and the model's answers."""
        rng = np.random.default_rng([self.seed, *self.kind.fingerprint(call)])
        features, rows = self.kind.draw(call, rng)
        # first what may be refused, then what may take long
        distance = self._distances(call, features)
        return PerturbedRows(features, self.kind.ask(call, rows), distance)

    def _distances(self, call: Call, features: Floats) -> Floats:
        return self.kind.distance_unit * distances(features, call.metric, self.kind.metric)

    def _fits(
        self, features: Floats, answers: Floats, distance: Floats, labels: Sequence[int], *options: Any
    ) -> dict[int, LocalFit]:
        """Fits of the labels: all at once by lime's base, one by one by a user's own."""
        if type(self.base) is LimeBase:
            return self.base.fits(features, answers, distance, labels, *options)
        return {k: _foreign_fit(self.base, features, answers, distance, k, *options) for k in labels}


def _foreign_fit(
    base: Any,
    features: Floats,
    answers: Floats,
    distance: Floats,
    label: int,
    count: int,
    selection: str,
    regressor: Any,
) -> LocalFit:
    """Return the fit of another base, by the method that lime calls; it has no standard errors."""
    intercept, pairs, score, local = base.explain_instance_with_data(
        features, answers, distance, label, count, model_regressor=regressor, feature_selection=selection
    )[:4]
    coef = np.array([float(value) for _, value in pairs])
    return LocalFit(
        intercept=float(np.ravel(intercept)[0]),
        features=np.array([int(j) for j, _ in pairs], dtype=np.int64),
        coef=coef,
        errors=np.full(coef.size, np.inf),
        score=float(score),
        local_pred=float(np.ravel(local)[0]),
    )


def _explanation(
    fits: Mapping[int, LocalFit], mode: str, *, predictions: Floats, **fields: Any
) -> LimesExplanation:
    """Make limes' explanation of lime's fits of one row; a regression has no axis of outputs."""
    from limes._explanation import Explanation

    d = len(fields["feature_names"])
    values, errors = np.zeros((2, 1, d, len(fits)))
    for place, fit in enumerate(fits.values()):
        values[0, fit.features, place] = fit.coef
        errors[0, fit.features, place] = fit.errors
    numbers = np.array([[(fit.intercept, fit.local_pred, fit.score) for fit in fits.values()]])
    index = (..., 0) if mode == "regression" else (...,)
    return Explanation(
        values=values[index],
        standard_errors=errors[index],
        intercepts=numbers[..., 0][index],
        predictions=predictions[None][index],
        surrogate_predictions=numbers[..., 1][index],
        fidelity=numbers[..., 2][index],
        output_names=("output",) if mode == "regression" else tuple(str(label) for label in fits),
        method="sampled",
        reason='engine "lime" samples',
        row_converged=DEFAULT_TOLERANCE.excess(values, errors) <= 1.0,
        row_warnings=((),),
        **fields,
    )


# Distances (n,) of features (n, d) from the first row, by the metric that is each kind of data's default
_DISTANCES: dict[str, Callable[[Floats], Floats]] = {
    "euclidean": lambda h: np.asarray(np.sqrt(((h - h[0]) ** 2).sum(axis=1))),
    # of rows of 0 and 1, the first of which has no 0
    "cosine": lambda z: np.asarray(1.0 - np.sqrt(z.mean(axis=1))),
}


def distances(features: Floats, metric: Any, default: str) -> Floats:
    """Distances (n,) of features (n, d) from the first row; the ``default`` of a kind has a formula."""
    if metric == default:
        return _DISTANCES[default](features)
    from sklearn.metrics import pairwise_distances

    try:
        return np.asarray(pairwise_distances(features, features[:1], metric=metric)).ravel()
    except ValueError as error:
        raise InputError(
            f"distance_metric={metric!r} is no metric of scikit-learn's that measures these rows: {error}"
        ) from error


def deletions(d: int, count: int, rng: np.random.Generator) -> Floats:
    """Draw rows z (count, d) of kept words (1), of which the first is the whole text.

    Word by word: with l of the last m words yet to be removed, the next one is with chance l / m.
    """
    to_remove = rng.integers(1, d + 1, count - 1).astype(np.float64)
    kept = np.ones((d, count))
    for j, row in enumerate(kept[:, 1:]):
        np.greater_equal(rng.random(count - 1) * (d - j), to_remove, out=row)
        to_remove += row - 1.0
    return kept.T


def switches(d: int, count: int, rng: np.random.Generator) -> Floats:
    """Draw rows z (count, d) of superpixels that are shown (1) or filled (0), in the first all shown."""
    z = rng.integers(0, 2, size=(count, d)).astype(np.float64)
    z[0] = 1.0
    return np.asarray(z)


def _latin(count: int, d: int, rng: np.random.Generator) -> Floats:
    from scipy.stats import qmc

    return np.asarray(qmc.LatinHypercube(d, rng=rng).random(count))


# Levels (n, d) in (0, 1) of the columns' distribution functions, by lime's names
SAMPLINGS: dict[str, Callable[[int, int, np.random.Generator], Floats]] = {
    "gaussian": lambda count, d, rng: rng.random((count, d)),
    "lhs": _latin,
}


@dataclass(frozen=True, eq=False)
class LimeSampler:
    """Laws of a table's columns: bins or categories (``values``) with their frequencies, and normals.

    ``discretizer`` is None where numbers are not cut into bins; ``around`` centres normals on the instance.
    """

    discretizer: BaseDiscretizer | None
    values: Mapping[int, Any]
    frequencies: Mapping[int, Floats]
    mean: Floats
    scale: Floats
    around: bool

    def draw(self, row: Floats, count: int, sampling: str, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw features and rows, both (count, d), of which the first are the instance's."""
        levels = SAMPLINGS[sampling](count - 1, len(row), rng)
        columns = [self._column(j, row[j], levels[:, j]) for j in range(len(row))]
        rows = np.column_stack([values for values, _ in columns])
        return np.column_stack([h for _, h in columns]), np.vstack([row, rows])

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
        # one level serves twice: once it has chosen the bin, its place between the bin's levels is uniform
        inside = np.clip((levels - upper[place] + share[place]) / share[place], 0.0, 1.0)
        instance_cell = self.discretizer.lambdas[j](x)
        return self.discretizer.drawn(j, cells.astype(int), inside), np.append(1.0, cells == instance_cell)

    def _numbers(self, j: int, x: float, levels: Floats) -> tuple[Floats, Floats]:
        from scipy.special import ndtri

        centre = x if self.around else self.mean[j]
        values = centre + self.scale[j] * ndtri(np.clip(levels, 2.0**-54, 1.0 - 2.0**-53))
        return values, (np.append(x, values) - self.mean[j]) / self.scale[j]
