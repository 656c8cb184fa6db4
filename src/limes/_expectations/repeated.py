r"""A model whose answers are random, asked several times about every state of a small design.

β = W f̄ has no error of sampling states, only that of the mean answers f̄_z of R repetitions:

    Var A f̄ = Σ_z A_z² s_z² / R      for any linear functional A of the answers, s_z² their variance at z.

Each repetition is one call or two, of states in random order, so that answers which depend on the rows beside
them vary too. Where the functional varies between repetitions by more than that, answers have something in
common within a call (a mask of dropout), and the variance of the R repetitions counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limes._arrays import Floats, is_constant, streams
from limes._expectations.estimate import check_squares
from limes._expectations.moments import Moments, SampleStatistics, boxed
from limes._expectations.residual import is_surprising, student_factors
from limes._expectations.sampled import SampledExpectation

if TYPE_CHECKING:
    from limes._expectations.sampled import SampledRow
    from limes._expectations.sampling import SampledDesign
    from limes.models._calling.caller import Calls

# Repetitions at least, and degrees of freedom of the answers' variance at least
_REPETITIONS, _FREEDOM = 4, 16


def repetitions(states: int, max_calls: int) -> int:
    """Return how often each state is asked; below 2 the budget does not allow repetitions."""
    return min(max(_REPETITIONS, 1 + -(-_FREEDOM // states)), max_calls // states)


class RepeatedExpectation(SampledExpectation):
    """Moments of a random function under a design with few states."""

    def _states(self, design: SampledDesign) -> tuple[Floats, Floats, Floats]:
        states = design.states(self.max_calls)
        assert states is not None  # noqa: S101 - by whom it is made
        return states

    def _until_converged(
        self, design: SampledDesign, key: int, calls: Calls, prediction: Floats | None
    ) -> Moments:
        del prediction
        z, probability, weights = self._states(design)
        ask, rng = calls.one_pass(calls), np.random.default_rng(streams(self._sampling.seed, key, 1)[0])
        answers = []
        for i in range(repetitions(len(z), self.max_calls)):
            order = rng.permutation(len(z))
            parts = [ask(z[part]) for part in np.array_split(order, 1 + i % 2)]
            answers.append(np.concatenate(parts)[np.argsort(order)])
        return self._moments(design, np.stack(answers), probability, weights)

    def _moments(
        self, design: SampledDesign, answers: Floats, probability: Floats, weights: Floats
    ) -> Moments:
        """Moments from answers (R, m, ...) at m states."""
        shape = answers.shape[2:]
        f = answers.reshape(*answers.shape[:2], -1)
        check_squares(f.reshape(-1, f.shape[2]))
        count, mean_answers = len(f), f.mean(axis=0)
        noise = f.var(axis=0, ddof=1) / count  # (m, k) variances of the mean answers
        error = _Errors(f, noise)
        mean, coef = probability @ mean_answers, weights @ mean_answers
        gamma, centred = design.gamma(coef), mean_answers - mean
        # squares of mean answers are too large by the variances of these
        variance = np.maximum(probability @ centred**2 - probability @ noise, 0.0)
        variance = np.where(is_constant(variance, np.abs(f).max(axis=(0, 1))), 0.0, variance)
        excess_of_squares = np.stack(
            [np.diag(design.gamma((weights * noise[:, k]) @ weights.T)) for k in range(f.shape[2])], axis=1
        )
        total = np.where(variance > 0, variance, np.nan)
        shares, moved_gamma = coef * gamma / total, design.gamma(weights)
        fidelity_errors, share_errors = np.empty(f.shape[2]), np.empty(coef.shape)
        for k in range(f.shape[2]):
            grown = 2.0 * probability * centred[:, k]  # d Var_w f
            moved = coef[:, k, None] * moved_gamma + gamma[:, k, None] * weights - shares[:, k, None] * grown
            functionals = np.vstack([moved, moved.sum(axis=0)]) / total[k]
            *share_errors[:, k], fidelity_errors[k] = error(functionals)[:, k]
        coef_errors, tolerance = error(weights), self._sampling.tolerance
        excess = 0.0 if tolerance is None else float(tolerance.excess(coef, coef_errors))
        differ = np.ptp(f.reshape(-1, f.shape[2]), axis=0) > 0
        return Moments(
            mean=mean.reshape(shape),
            gamma=gamma.reshape(-1, *shape),
            coef_errors=coef_errors.reshape(-1, *shape),
            variance=variance.reshape(shape),
            calls=np.array(f.shape[0] * f.shape[1]),
            converged=np.array(excess <= 1.0),
            sampled=SampleStatistics(
                surrogate_errors=error((probability + design.departure @ weights)[None])[0].reshape(shape),
                fidelity_errors=np.where(np.isnan(total), np.inf, fidelity_errors).reshape(shape),
                share_errors=share_errors.reshape(-1, *shape),
                excess=np.array(excess),
                control=np.array("none", dtype="U16"),
                noise=excess_of_squares.reshape(-1, *shape),
                unlike=np.where(differ, f.shape[0] * f.shape[1], 0).reshape(shape),
                carriers=np.full(shape, np.inf),
                effective=np.array(float(f.shape[0] * f.shape[1])),
                collinear=np.zeros(design.size, dtype=np.bool_),
                answers=boxed(answers.reshape(-1, *shape)),
            ),
        )

    def _partial_moments(
        self, design: SampledDesign, key: int, row: SampledRow, prediction: Floats | None
    ) -> Moments | None:
        del design, key, prediction
        return row.moments

    def answered(self, design: SampledDesign, row: Floats, count: int) -> tuple[Floats, Floats, None]:
        """Return the states of each repetition, their weights, and that rows are independent."""
        del row
        z, probability, _ = self._states(design)
        again = count // len(z)
        return np.tile(z, (again, 1)), np.tile(probability / again, again), None


class _Errors:
    """Standard errors of linear functionals of mean answers; ±1.96 of them is a 95 % interval."""

    def __init__(self, f: Floats, noise: Floats) -> None:
        self._f, self._noise = f, noise

    def __call__(self, functionals: Floats) -> Floats:
        """Errors (m', k) of functionals (m', m)."""
        count, parts = len(self._f), functionals[:, :, None] ** 2 * self._noise  # (m', m, k)
        within, squares = parts.sum(axis=1), (parts**2).sum(axis=1)
        effective = np.divide(within**2, squares, out=np.ones_like(within), where=squares > 0)
        repeated = np.stack([functionals @ f for f in self._f])  # (R, m', k)
        between = repeated.var(axis=0, ddof=1) / count
        ratio = np.divide(between, within, out=np.ones_like(within), where=within > 0)
        freedom = count - 1
        by_states = within * student_factors(freedom * effective) ** 2
        by_calls = between * student_factors(np.array(float(freedom))) ** 2
        return np.asarray(
            np.sqrt(np.where(is_surprising(ratio, freedom), np.maximum(by_calls, by_states), by_states))
        )


def repeats_states(design: SampledDesign, max_calls: int) -> bool:
    """Return whether all states of a design can be asked repeatedly."""
    states = design.states(max_calls)
    return states is not None and repetitions(len(states[0]), max_calls) > 1
