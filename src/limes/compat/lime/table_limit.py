r"""What lime converges to on a table, in lime's words.

Columns are independent, so features are uncorrelated: leaving some out changes no coefficient, and

    intercept = β₀ + Σ_out β_j E_w h_j,      R² = Σ_in β_j² Var_w h_j / Var_w f.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes.compat.lime.answers import Answers, model_behind
from limes.compat.lime.lime_base import LocalFit
from limes.compat.lime.surrogates import Surrogates
from limes.compat.lime.table_training import Request, Training

# Rows that Var_w f is estimated from, for the score
_SCORED = 4096
# Training rows whose answers tell whether the model is still the same
_PROBED = 16

__all__ = ["ORDERS", "Limit", "LimitEngine"]


@dataclass(frozen=True, eq=False)
class Limit:
    """One output's coefficients (d,) and standard errors (d,), and the design they are of."""

    coef: Floats
    errors: Floats
    intercept: float
    design: Any
    scale: Floats

    @property
    def explained(self) -> Floats:
        """Variance of the model that each feature explains, (d,)."""
        return np.asarray(self.coef**2 * self.design.variance)

    def fit(self, count: int, selection: str) -> LocalFit:
        """Keep the ``count`` features that ``selection`` takes; the score is not known yet."""
        kept = ORDERS[self._rule(count, selection)](self)[: len(self.coef) if selection == "none" else count]
        scaled = self.coef * self.scale
        kept = kept[np.argsort(-np.abs(scaled[kept]), kind="stable")]
        out = np.ones(len(self.coef), dtype=bool)
        out[kept] = False
        intercept = self.intercept + float(self.coef[out] @ self.design.inclusion[out])
        return LocalFit(
            intercept=intercept,
            features=kept,
            coef=scaled[kept],
            errors=(self.errors * self.scale)[kept],
            score=np.nan,
            local_pred=intercept + float(self.coef[kept] @ self.design.at_instance[kept]),
        )

    @staticmethod
    def _rule(count: int, selection: str) -> str:
        if selection != "auto":
            return selection
        return "forward_selection" if count <= 6 else "highest_weights"


def _by(size: Callable[[Limit], Floats]) -> Callable[[Limit], Ints]:
    return lambda limit: np.argsort(-size(limit), kind="stable")


# What lime's selections come to where features are uncorrelated
ORDERS: dict[str, Callable[[Limit], Ints]] = {
    "forward_selection": _by(lambda limit: limit.explained),
    "highest_weights": _by(lambda limit: np.abs(limit.coef * limit.design.at_instance)),
    "lasso_path": _by(lambda limit: np.abs(limit.coef * limit.scale) * limit.design.variance),
    "none": _by(lambda limit: np.abs(limit.coef)),
}


def _scores(
    limits: Sequence[Limit],
    fits: dict[int, LocalFit],
    answers: Answers,
    decode: Callable[[Floats], Any],
    seed: int,
) -> dict[int, float]:
    """Weighted R² of each fit; the model's variance comes from its answers to rows of the design."""
    from scipy.stats import qmc

    design = limits[0].design
    levels = qmc.Sobol(design.size, rng=np.random.default_rng(seed)).random(_SCORED)
    said = answers(decode(design.draw(np.clip(levels, 2.0**-54, 1.0 - 2.0**-53))[0]))
    found = {}
    for limit, (label, fit) in zip(limits, fits.items(), strict=True):
        spread = float(said[:, label].var())
        found[label] = float(limit.explained[fit.features].sum()) / spread if spread > 0 else 1.0
    return found


@dataclass(eq=False)
class LimitEngine:
    """Answers requests by the limit; keeps limes' explainer of the model that it was last asked about.

    Attributes
    ----------
    training, mode, selection, seed
        lime's.
    options
        Of :class:`limes.TabularExplainer`.
    """

    training: Training
    mode: str
    selection: str
    seed: int
    options: Mapping[str, Any]
    _known: tuple[Any, Floats, Any] | None = None

    def __call__(self, request: Request) -> Surrogates:
        """Surrogates of a row; their scores ask the model when they are asked for."""
        table = self.training.table
        found = self._explainer(request)(table.decode(request.row[None]), progress=False)
        limits = self._limits(found, request)
        pairs = zip(request.labels, limits, strict=True)
        fits = {k: limit.fit(request.features, self.selection) for k, limit in pairs}
        return Surrogates(
            fits,
            partial(_scores, limits, fits, request.answers, table.decode, self.seed),
            request.said,
            (float(request.said.min()), float(request.said.max())),
            found if self.mode == "regression" else found[..., request.labels],
        )

    def _limits(self, found: Any, request: Request) -> list[Limit]:
        outputs = np.arange(len(found.output_names))
        design = found.explainer.scene(found, output=outputs, calls=None).here[0]
        shape = (len(request.row), len(outputs))
        values, errors = found.values.reshape(shape), found.standard_errors.reshape(shape)
        intercepts, unit = found.intercepts.reshape(-1), self.training.unit
        return [Limit(values[:, k], errors[:, k], float(intercepts[k]), design, unit) for k in request.labels]

    def _explainer(self, request: Request) -> Any:
        """The known explainer, as long as the model still answers some training rows as it did."""
        table, key = self.training.table, (request.answers.predict_fn, request.samples)
        spread = np.linspace(0, len(table.matrix) - 1, _PROBED).astype(int)
        probe = request.answers(table.decode(table.matrix[spread]))
        if self._known is None or self._known[0] != key or not np.array_equal(self._known[1], probe):
            self._known = key, probe, self._made(request)
        return self._known[2]

    def _made(self, request: Request) -> Any:
        from limes.explainers.tabular import TabularExplainer

        table = self.training.table
        behind = model_behind(request.answers.predict_fn, self.mode)
        model, output = behind or (
            request.answers.flat if self.mode == "regression" else request.answers,
            None,
        )
        categorical = np.flatnonzero(~table.numeric).tolist()
        return TabularExplainer(
            model,
            table.decode(table.matrix),
            output=output,
            categorical=categorical or None,
            max_calls=request.samples,
            # a tenth of the time of "auto", and most of its gain
            control="additive",
            rng=self.seed,
            **self.options,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_known": None}
