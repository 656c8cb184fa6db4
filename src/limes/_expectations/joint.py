r"""Moments under the joint law: weighted least squares on the background's rows, predicted once for all.

With w_i ∝ t^#changed around an explained row (``designs/_joint.py``) and e = f - E_w f - β · (z - α),

    β = Σ⁺ Σ_i w_i (z_i - α) (f_i - E_w f),      C_i = w_i Σ⁺ (z_i - α) e_i / √(1 - leverage_i).

The coefficients are exact for these rows. Their standard errors refer to the population that the rows are a
sample of: Σ_i C_i² is the sandwich estimator of a regression with random regressors (White 1980), with the
bias reduction HC2. The cells are treated as fixed, however they were cut. A sum that rests on few rows is
widened as in ``residual.py``, and ``rule_of_three.py`` bounds what answers that are all alike may hide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from limes._arrays import Bools, Floats, Ints, is_constant
from limes._expectations.estimate import check_squares
from limes._expectations.moments import (
    Moments,
    SampleStatistics,
    are_complements,
    boxed,
    with_complement,
)
from limes._expectations.questions import Questions
from limes._expectations.residual import LEAST_LEFT, student_factors
from limes._expectations.rule_of_three import UNSEEN, AnswerStatistics, RareAnswers
from limes._expectations.sampling import CALLS, Sampling
from limes._threads import Locked, Progress
from limes.designs._joint import JointDesign, JointFamily, OccurringRows

# A standard error needs this effective number of rows with a feature, and as many without
_FEWEST = 2.0


class JointExpectation(Locked):
    """Moments of one function under the joint laws of one background; threads may share it.

    Parameters
    ----------
    family
        The designs.
    predict
        (n, d) -> (n,) or (n, k).
    sampling
        Tolerance, size of batches and retries.
    """

    method: Literal["sampled"] = "sampled"

    def __init__(self, family: JointFamily, predict: Callable[[Floats], Floats], sampling: Sampling) -> None:
        self.family = family
        self._predict = predict
        self._sampling = sampling
        self._questions = Questions(family.rows, sampling.batch_size)
        super().__init__()

    @property
    def pool_calls(self) -> int:
        """Number of rows that have been predicted for all explained rows."""
        return len(self.family.rows) - self._questions.missing

    def fill(self, progress: Progress, *, workers: int = 1) -> None:
        """Predict the background's rows, unless they have been predicted.

        Raises
        ------
        ModelError
            If the model fails; the answers so far are kept.
        """
        with self._lock:
            if missing := self._questions.missing:
                with progress(missing, CALLS) as on_progress:
                    self._questions.ask(self._predict, self._sampling.retry, on_progress, workers)
        check_squares(self._answers)

    @cached_property
    def _answers(self) -> Floats:
        return np.concatenate(self._questions.answers())

    @property
    def answers(self) -> Floats:
        """Answers to the background's rows, (n, k)."""
        return self._answers.reshape(len(self._answers), -1)

    @cached_property
    def _complement(self) -> bool:
        """Whether answers are two probabilities, of which only the second is computed."""
        return are_complements(self.answers)

    @cached_property
    def _computed(self) -> Floats:
        return np.ascontiguousarray(self.answers[:, 1:]) if self._complement else self.answers

    @cached_property
    def _statistics(self) -> AnswerStatistics:
        return AnswerStatistics.from_rows(self._computed)

    def moments(self, design: Any, row: Floats) -> Moments:  # noqa: ARG002 - the row's cells decide it
        """Return the moments at a row (d,)."""
        return self.at(self.family.cells(row[None])[0])[1]

    def at(self, cells: Ints) -> tuple[JointDesign, Moments]:
        """Return the design at a row with these cells (d,), and its moments."""
        rows = self.family.around(cells)
        fit = JointFit(rows, rows.design(), self._computed, self._statistics)
        shape = (1,) if self._complement else self._answers.shape[1:]
        columns = (cells.size, *shape)
        excess = self._sampling.accuracy.excess(fit.coef, fit.coef_errors)
        moments = Moments(
            mean=fit.mean.reshape(shape),
            gamma=fit.gamma.reshape(columns),
            coef_errors=fit.coef_errors.reshape(columns),
            variance=fit.variance.reshape(shape),
            converged=np.array(excess <= 1.0 and fit.answers_differ),
            sampled=SampleStatistics(
                surrogate_errors=fit.surrogate_errors.reshape(shape),
                fidelity_errors=fit.fidelity_errors.reshape(shape),
                share_errors=fit.share_errors.reshape(columns),
                excess=np.array(excess),
                control=np.array("none", dtype="U16"),
                noise=np.zeros(columns),  # R² is that of the rows themselves
                unlike=fit.rare.n_unlike.reshape(shape),
                carriers=fit.carriers.reshape(shape),
                effective=np.array(rows.effective),
                collinear=fit.design.collinear,
                answers=boxed(np.empty(0)),  # the pool holds them
            ),
            shared=np.array(len(self.answers)),
        )
        return fit.design, with_complement(moments) if self._complement else moments


@dataclass(frozen=True, eq=False)
class JointFit:
    """Weighted least squares of answers f (n, k) on the indicators of occurring rows, with errors.

    ``statistics`` are those of the answers.
    """

    rows: OccurringRows
    design: JointDesign
    f: Floats
    statistics: AnswerStatistics

    @cached_property
    def mean(self) -> Floats:
        """E_w f, (k,)."""
        return np.asarray(self.rows.weights @ self.f)

    @cached_property
    def _centred(self) -> Floats:
        return self.f - self.mean

    @cached_property
    def gamma(self) -> Floats:
        """Cov_w(z, f), (d, k)."""
        gamma: Floats = self.rows.departures.T @ (self.rows.weights[:, None] * self._centred)
        gamma[self.design.variance == 0] = 0.0
        return gamma

    @cached_property
    def coef(self) -> Floats:
        """β, (d, k)."""
        return self.design.solve(self.gamma)

    @cached_property
    def residuals(self) -> Floats:
        """Residuals e without bias reduction, (n, k)."""
        return np.asarray(self._centred - self.rows.departures @ self.coef)

    @cached_property
    def influence(self) -> Floats:
        """Influences W with β = W f: Σ⁺ (z - α) w, (d, n)."""
        return np.asarray(self.design.inverse @ (self.rows.weights[:, None] * self.rows.departures).T)

    @cached_property
    def errors(self) -> Floats:
        """Residuals e, enlarged by the leverage, (n, k)."""
        leverage = self.rows.weights + np.einsum("jn,nj->n", self.influence, self.rows.departures)
        return np.asarray(self.residuals / np.sqrt(np.maximum(1.0 - leverage, LEAST_LEFT))[:, None])

    @cached_property
    def rare(self) -> RareAnswers:
        """Rows whose answers are rare."""
        return RareAnswers.from_rows(self.statistics, self.errors, None)

    @property
    def answers_differ(self) -> bool:
        """Whether the answers of every output differ; without them no coefficient can be estimated."""
        return bool((self.rare.n_unlike > 0).all() or not (self.design.variance > 0).any())

    @cached_property
    def _support(self) -> Floats:
        """Effective number of rows inside or outside the cell of each column, whichever is smaller, (d,)."""
        w, z = self.rows.weights, self.rows.z
        total, squares = w @ z, w**2 @ z
        sides = [(total, squares), (1.0 - total, w @ w - squares)]
        sizes = [np.divide(a**2, b, out=np.zeros_like(a), where=b > 0) for a, b in sides]
        return np.asarray(np.minimum(*sizes))

    @cached_property
    def _unidentified(self) -> Bools:
        """Columns (d,) that vary in the background, but in too few of the rows that count."""
        varies = (self.rows.z != self.rows.z[0]).any(axis=0)
        return np.asarray(varies & (self._support < _FEWEST))

    def _spread(self, influence: Floats) -> tuple[Floats, Floats]:
        """Variances of sums of errors with influences (m, n), and the rows that carry them, (m, k) each."""
        squares = influence**2
        within, fourth = squares @ self.errors**2, squares**2 @ self.errors**4
        effective = np.divide(within**2, fourth, out=np.full_like(within, np.inf), where=fourth > 0)
        least = self.rare.least_variances(influence)
        return within + np.maximum(within * UNSEEN / effective, least), effective

    @cached_property
    def _coef_spread(self) -> tuple[Floats, Floats]:
        return self._spread(self.influence)

    @cached_property
    def coef_errors(self) -> Floats:
        """Standard errors of the coefficients, (d, k), such that ±1.96 of them is a 95 % interval."""
        factors = student_factors(np.maximum(self._support, _FEWEST) - 1.0)
        errors = np.sqrt(self._coef_spread[0]) * factors[:, None]
        errors[self.design.variance == 0] = 0.0
        errors[self._unidentified] = np.inf
        return np.asarray(errors)

    @property
    def surrogate_errors(self) -> Floats:
        """Standard errors of the surrogate at the explained row, (k,)."""
        influence = self.rows.weights + self.design.departure @ self.influence
        blind = (self._unidentified & (self.design.departure != 0)).any()
        return np.where(blind, np.inf, np.sqrt(self._spread(influence[None])[0][0]))

    @property
    def carriers(self) -> Floats:
        """Effective number of rows behind a coefficient's error, (k,): the median over features."""
        effective = self._coef_spread[1][self.design.variance > 0]
        if not len(effective):
            return np.full(self.f.shape[1], np.inf)
        return np.asarray(np.sort(effective, axis=0)[len(effective) // 2])

    @cached_property
    def variance(self) -> Floats:
        """Var_w f, (k,)."""
        variance = self.rows.weights @ self._centred**2
        return np.where(is_constant(variance, np.abs(self.f).max(axis=0)), 0.0, variance)

    @cached_property
    def noise(self) -> Floats:
        """What errors of β add to β_j Γ_j in expectation, (d, k): the diagonal of Cov(β) Σ."""
        return np.asarray((self.influence * self.design.gamma(self.influence)) @ self.errors**2)

    @property
    def fidelity_errors(self) -> Floats:
        """Standard errors of R² = 1 - E_w e² / Var_w f, (k,): the delta method, and the second order of β.

        R² is that of the background's rows, which β was fitted to. In their population it is smaller by
        Σ_j noise_j / Var_w f in expectation, which the errors cover.
        """
        first = mean_ratio_error(self.rows.weights, self.residuals**2, self._centred**2)
        safe = np.where(self.variance > 0, self.variance, 1.0)
        noise = self.noise / safe
        return np.asarray(np.sqrt(first**2 + 2.0 * (noise**2).sum(axis=0) + noise.sum(axis=0) ** 2))

    @property
    def share_errors(self) -> Floats:
        """Standard errors of the features' shares β_j Γ_j / Var_w f, (d, k), by the delta method."""
        safe = np.where(self.variance > 0, self.variance, np.nan)
        shares = self.coef * self.gamma / safe
        w, away = self.rows.weights, self.rows.departures
        errors = np.empty_like(shares)
        for k, f in enumerate(self._centred.T):
            moved = self.influence * self.errors[:, k] * self.gamma[:, k, None]
            moved += self.coef[:, k, None] * w * (away.T * f - self.gamma[:, k, None])
            moved -= shares[:, k, None] * w * (f**2 - self.variance[k])
            errors[:, k] = np.sqrt((moved**2).sum(axis=1)) / safe[k]
        return errors


def mean_ratio_error(weights: Floats, part: Floats, whole: Floats) -> Floats:
    """Standard errors (k,) of E_w part / E_w whole, (n, k) both, of independent rows; 0 without a whole."""
    total = weights @ whole
    safe = np.where(total > 0, total, 1.0)
    ratio = (weights @ part) / safe
    moved = weights[:, None] * (part - ratio * whole) / safe
    return np.where(total > 0, np.sqrt((moved**2).sum(axis=0)), 0.0)
