r"""How well the surrogate of one input with parts fits, and its effects, computed at first access.

R² = (2 b·Γ - b·Σb) / Var_w f. Var_w f is β·Γ itself for a sum over words or superpixels, follows from second
moments for a link of a sum, is exact by enumeration where the 2^d sets are few, and is else estimated on sets
that are drawn from w and evaluated through the read form: the model is not called. A feature has two cells,
removed and kept,

    E_w[f | z_j = 1] - E_w f = Γ_j / α,      E_w[f | z_j = 0] - E_w f = -Γ_j / (1 - α),

and the best sum of functions of the cells is the surrogate. Features are dependent under w: effects do not
add up to it, as those of a table's columns do. Pairs are what the surrogate leaves.

A feature that is the same hidden as shown is not in the design (``models/_images.py``). In the explanation it
has a NaN coefficient with an infinite error, as an effect has that no row informs, no part of R², and a
contribution of 0.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from limes._arrays import Bools, Floats, power_of_two, r_squared, streams
from limes._diagnostics.finding import enumerate_names
from limes._expectations.moments import REFUSED, ExactMoments
from limes._explainers.few_units import CompletedExpectation, CompletedGame, completed_account
from limes._explainers.set_estimates import FewSets
from limes._explanation.fit import RowEffects, WithinGroup
from limes._fidelity.variance import link_variance
from limes._fidelity.weighted_rows import PairEffect, Total, WeightedRows, largest_pairs
from limes._sampling.sampled import Beside, RepeatedExpectation, SampledExpectation, error_of_explained
from limes._shapley.coalitions import SampledAccount, account_of_states, exact_account, seconds
from limes._shapley.exact import RowContributions
from limes._threads import one_blas_thread
from limes._warnings import RowWarning
from limes.designs._exchangeable import ExchangeableDesign
from limes.exceptions import InputError
from limes.models._identity import FITTED_AGAIN, WITNESSES, Witnesses, rounding_of
from limes.models.forms._base import Form, Reducible, Sum
from limes.models.forms._linked import Linked, Ridges

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limes._explanation.attribution import Coefficients
from limes._fitting import Fitted

# The most sets that are enumerated; sets that are drawn, in how many independent sequences; the most numbers
# (sets times features) that these may have
_STATES, _ROWS, _SEQUENCES, _NUMBERS = 4096, 4096, 4, 4_000_000
_CELLS = ("removed", "kept")
# What a feature has that the fit leaves out
_ABSENT = {"values": np.nan, "standard_errors": np.inf, "shares": 0.0, "share_errors": 0.0}
# Expectations that contributions ask nothing beyond
_ASK_NO_MORE = RepeatedExpectation | CompletedExpectation
# Features that a warning names
_MOST_NAMED = 5


def identified(changes: Bools) -> Bools:
    """The features that the design has: those that hiding changes, or one where none does."""
    # a design needs a feature; the model is the same with and without that one: it changes no number
    return changes if changes.any() else np.arange(changes.size) == 0


def among_all(numbers: Floats, changes: Bools, absent: float) -> Floats:
    """Numbers of the design's features, (d, ...), at their places among all; ``absent`` of others."""
    merged = np.full((changes.size, *numbers.shape[1:]), absent)
    merged[identified(changes)] = numbers
    merged[~changes] = absent
    return merged


def coefficients_of_all(coefficients: Coefficients, changes: Bools) -> Coefficients:
    """Coefficients of some features as those of all, (1, d) or (1, d, k)."""
    stored = coefficients.stored
    return coefficients.changed(
        **{
            name: among_all(np.asarray(stored[name])[0], changes, absent)[None]
            for name, absent in _ABSENT.items()
            if stored[name] is not None
        }
    )


def identification_warning(names: Sequence[str], changes: Bools, advice: str) -> tuple[RowWarning, ...]:
    """Warn of features that are the same hidden as shown."""
    same = [names[j] for j in np.flatnonzero(~changes).tolist()]
    if not same:
        return ()
    named, which = enumerate_names(same, _MOST_NAMED), "one" if len(same) == 1 else "several"
    return (RowWarning.of("hidden alike", which, names=named, advice=advice),)


class SubsetFits:
    """The fit of one input; ``RowFits`` of one row.

    ``form`` was read, or ``ask`` (m, d) -> (m, ...) is a black box, and ``sampled`` its expectation where not
    all sets were enumerated. ``exact`` is the expectation of a form that was verified, and ``account`` makes
    what samples contributions, None with method="exact". ``spread`` is that of a model which is asked, None
    of a form; it is asked about ``witnesses`` again before contributions are computed later. ``changes`` are
    the features of the design among all, None if it has them all.
    """

    is_quick = True
    has_curves = False  # present or absent: the coefficient says it all

    def __init__(
        self,
        form: Form | None,
        ask: Callable[[Floats], Floats],
        sampled: SampledExpectation | None,
        fitted: Fitted,
        design: ExchangeableDesign,
        seed: int,
        changes: Bools | None = None,
        *,
        prediction: Floats,
        exact: ExactMoments | None = None,
        account: Callable[[], SampledAccount | FewSets] | None = None,
        spread: float | None = None,
        witnesses: int = WITNESSES,
    ) -> None:
        self._form, self._ask, self._sampled, self._fitted = form, ask, sampled, fitted
        self._predict = ask if form is None else form.predict
        self._design, self._seed = design, seed
        self._prediction, self._exact, self._account = prediction, exact, account
        self._spread, self._witnesses = spread, witnesses
        self._changes = np.ones(design.size, dtype=np.bool_) if changes is None else changes
        self._places = np.flatnonzero(identified(self._changes))
        sizes = [np.abs(numbers[0].reshape(-1)) for numbers in (fitted.moments.mean, fitted.at_instance)]
        # size of the answers, (k,), by which numbers of the model are divided
        self._unit = power_of_two(np.maximum(*sizes))
        self._mean = np.asarray(fitted.moments.mean[0].reshape(-1) / self._unit)
        self._gamma = self._per_feature(fitted.moments.gamma)
        self._is_sum = isinstance(form, Reducible) and isinstance(form.reduce(), Sum)

    def fidelities(self, rows: Sequence[int]) -> list[tuple[Floats, Floats]]:
        return [self._fidelity for _ in rows]

    hidden: ClassVar[None] = None  # a feature has two cells, and its coefficient is its effect

    def additive_numbers(self, rows: Sequence[int]) -> list[tuple[Floats, Floats, Floats | None]]:
        return [(*fit.r_squared, fit.hidden) for fit in self.additive(rows)]

    def additive(self, rows: Sequence[int]) -> list[SubsetFits]:
        return [self for _ in rows]

    @cached_property
    def _fidelity(self) -> tuple[Floats, Floats]:
        return self._r_squared(self._per_feature(self._fitted.surrogate.coef))

    @cached_property
    def r_squared(self) -> tuple[Floats, Floats]:
        """R² of all effects together and its standard errors, (k,) each: of the limit without a penalty."""
        return self._r_squared(self._design.solve(self._gamma))

    def pairs(
        self,
        row: int,  # noqa: ARG002 - there is one row
        output: int,
        top: int,
        columns: Sequence[int],
    ) -> list[PairEffect]:
        position = {int(j): i for i, j in enumerate(self._places) if self._changes[j]}
        columns = [position[j] for j in columns if j in position]
        if self._is_sum or len(columns) < 2:
            return []
        coef, (rows, exact) = self._design.solve(self._gamma), self._rows()
        rest = rows.residuals(self._mean, self._design.inclusion, coef)[:, output]
        error_of = None if self._game is None else partial(self._error_in_game, rows, output)
        explained = self._explained(coef)[output]
        unexplained, error = rows.mean(rest[:, None] ** 2)
        total = Total((explained + unexplained) or np.ones(1), 0.0 * error if exact else error)
        masses = self._masses_of_two
        pairs = [
            pair.of_output(0, self._unit[output])
            for pair in largest_pairs(rows, rest, masses, top, columns, total, exact=exact, error_of=error_of)
        ]
        places = self._places.tolist()
        return [pair._replace(columns=(places[pair.columns[0]], places[pair.columns[1]])) for pair in pairs]

    def _error_in_game(self, rows: WeightedRows, output: int, weights: Floats) -> Floats:
        """Error (1,), in units, of the sum by ``weights`` (m,) of what coefficients leave of answers."""
        assert self._game is not None  # noqa: S101 - it is asked where there is one
        regressors = np.vstack([np.ones(rows.weights.size), rows.h])
        weighted = regressors * rows.weights
        of_answers = weights - (regressors @ weights) @ np.linalg.pinv(weighted @ regressors.T) @ weighted
        return np.asarray(self._game.estimates(of_answers[None])[1][:, output] / self._unit[output])

    @property
    def _masses_of_two(self) -> Floats:
        """P_w of the cells of two features, (2, 2)."""
        alpha, first = self._design.counts.inclusion, np.zeros(self._design.size)
        first[0] = 1.0
        both = alpha**2 + self._design.gamma(first)[1]
        none = 1.0 - 2.0 * alpha + both
        return np.maximum([[none, alpha - both], [alpha - both, both]], 0.0)

    def within(self, row: int, column: int) -> WithinGroup:  # noqa: ARG002 - there is no group
        raise InputError("within() shares the contribution of a group of columns of a table, by groups=")

    @property
    def account_seconds(self) -> float:
        return 0.0 if self._exact is None else seconds(self._form, self._design.size)

    @property
    def pair_seconds(self) -> float:
        return np.inf

    @one_blas_thread()
    def contributions(self, rows: Sequence[int], *, is_current: bool = False) -> RowContributions:
        try:
            account = self._exact_contributions
        except REFUSED:
            # method="exact" gives no estimates
            if self._account is None:
                raise
            account = None
        if account is None and not is_current and "_sampled_contributions" not in vars(self):
            self._check_current()
        return (account or self._sampled_contributions).take(np.asarray(rows))

    def _check_current(self) -> None:
        """Ask about a few sets again, and raise an InputError if the model was fitted again."""
        sampled = self._fitted.sampled
        if self._spread is None or sampled is None or isinstance(self._sampled, _ASK_NO_MORE | None):
            return
        design, answers = self._design, sampled.answers[0][: self._witnesses]
        sets = self._sampled.redraw(design, design.at_instance, len(answers))[0][: len(answers)]
        witnesses = Witnesses(self._ask, sets, answers, rounding_of(answers), self._spread)
        with self._account_by_calls.tally.counting():
            is_current = witnesses.repeat()
        if not is_current:
            raise InputError(FITTED_AGAIN)

    @one_blas_thread()
    def exact_contributions(self, rows: Sequence[int]) -> RowContributions | None:
        try:
            account = self._exact_contributions
        except REFUSED:
            return None
        return account and account.take(np.asarray(rows))

    def halved_pairs(self, rows: Sequence[int]) -> tuple[Floats, Floats]:  # noqa: ARG002 - of no row
        raise InputError(
            "pairs of contributions are of columns of a table: explanation.interactions() says which parts "
            "of a text, an image or a series act together"
        )

    @cached_property
    def _exact_contributions(self) -> RowContributions | None:
        """Return those of a form, or of answers to all sets; None where there are neither."""
        d, answers = self._design.size, self._fitted.moments.answers
        if self._exact is not None:
            return self._of_all(exact_account(self._exact, self._predict, d))
        if answers is None:
            return None
        return self._of_all(account_of_states(answers[0].reshape(1, 1 << d, -1), self._prediction, d))

    @cached_property
    def _sampled_contributions(self) -> RowContributions:
        d, sampled = self._design.size, self._fitted.sampled
        if sampled is not None and isinstance(self._sampled, RepeatedExpectation):
            answers = sampled.answers[0].reshape(-1, 1 << d, self._prediction.size)
            return self._of_all(account_of_states(answers, self._prediction, d))
        if self._game is not None:
            return self._of_all(completed_account(self._game, self._prediction, d))
        return self._of_all(self._account_by_calls.compute())

    @cached_property
    def _game(self) -> CompletedGame | None:
        """The answers to some sets, and what they say of the others, of few features."""
        sampled, its = self._fitted.sampled, self._sampled
        if sampled is None or not isinstance(its, CompletedExpectation):
            return None
        return its.game(self._design, self._design.at_instance, sampled.answers[0])

    @cached_property
    def _account_by_calls(self) -> SampledAccount | FewSets:
        assert self._account is not None  # noqa: S101 - method="exact" refused before
        return self._account()

    def _of_all(self, account: RowContributions) -> RowContributions:
        """The contributions of all features: 0 of those that are the same hidden as shown."""
        values, errors, alone, last = (
            among_all(numbers[0], self._changes, 0.0)[None]
            for numbers in (account.values, account.errors, account.alone, account.last)
        )
        return replace(account, values=values, errors=errors, alone=alone, last=last)

    def cell_texts(self, row: int, column: int) -> tuple[str, ...]:  # noqa: ARG002 - the same for all
        return _CELLS

    @cached_property
    def effects(self) -> RowEffects:
        design, gamma = self._design, self._gamma
        inside = np.array([design.counts.exclusion, design.counts.inclusion])
        safe = np.where(inside > 0, inside, 1.0)
        values = np.stack([-gamma / safe[0], gamma / safe[1]], axis=1)  # (d, 2, k)
        errors = np.zeros_like(values)
        if self._fitted.sampled is not None:
            values, errors = self._estimated_effects()
        coef = design.solve(gamma)
        whole = self._explained(coef)
        r2, r2_error = self.r_squared
        shares = coef * gamma * np.where(whole > 0, r2 / np.where(whole > 0, whole, 1.0), 0.0)
        # others have NaN effects, and are always kept
        changes = self._changes
        return RowEffects(
            list(among_all(values * self._unit, changes, np.nan)),
            list(among_all(errors * self._unit, changes, np.inf)),
            [inside if change else np.array([0.0, 1.0]) for change in changes.tolist()],
            [1] * changes.size,
            among_all(shares, changes, 0.0),
            among_all(shares * np.where(r2 > 0, r2_error / np.where(r2 > 0, r2, 1.0), 0.0), changes, 0.0),
        )

    def _explained(self, coef: Floats) -> Floats:
        """2 b·Γ - b·Σb, the part of Var_w f that coefficients (d, k) explain, (k,)."""
        return np.asarray((coef * (2.0 * self._gamma - self._design.gamma(coef))).sum(axis=0))

    def _r_squared(self, coef: Floats) -> tuple[Floats, Floats]:
        """R² of coefficients (d, k), in units, and its standard errors."""
        explained, variance, its = self._explained(coef), self._variance, self._fitted
        if self._game is not None:
            assert its.sampled is not None  # noqa: S101 - its answers are those of the game
            variance = its.moments.variance[0].reshape(-1) / self._unit**2
            r2, _ = r_squared(explained, variance, np.ones(self._unit.size))
            return r2, its.sampled.fidelity_errors[0].reshape(-1)
        if not np.isnan(variance).any():
            rest, error = np.maximum(variance - explained, 0.0), np.zeros(self._unit.size)
        else:
            rows, exact = self._rows()
            more = np.zeros(self._unit.size)
            if (beside := self._beside) is not None:
                beside = beside.unlike(rows.h.T, rows.f)
                # by the answers with another at these sets, and what these have instead
                f, level = beside.replaced(rows.h.T, rows.f)
                rows = replace(rows, f=f)
                at_sets = self._mean + (beside.x - self._design.inclusion) @ coef
                more = beside.probability @ ((beside.f - at_sets) ** 2 - (level - at_sets) ** 2)
            residuals = rows.residuals(self._mean, self._design.inclusion, coef)
            rest, error = rows.mean(residuals**2) if its.sampled is None else rows.mean_square(residuals)
            rest = np.maximum(rest + more, 0.0)
            # these squares have no error, and R² has that of the explained part
            moved = np.divide(np.abs(more), explained, out=np.zeros_like(rest), where=explained > 0)
            error = 0.0 * error if exact else np.hypot(error, moved * self._explained_error)
        return r_squared(explained, explained + rest, np.ones(self._unit.size), error)

    @cached_property
    def _variance(self) -> Floats:
        """Var_w f in units², (k,), of sums and of links of sums; nan of others."""
        if self._is_sum:
            # a sum is its own least squares surrogate
            return np.asarray((self._design.solve(self._gamma) * self._gamma).sum(axis=0))
        exact = None
        if isinstance(self._form, Linked | Ridges) and self._fitted.sampled is None:
            exact = link_variance(self._form, self._unit, ExchangeableDesign)
        return np.full(self._unit.size, np.nan) if exact is None else exact.variance(self._design)

    @property
    def _explained_error(self) -> Floats:
        """Standard error of b·Σb, (k,), by those of coefficients."""
        return error_of_explained(self._gamma, self._per_feature(self._fitted.moments.coef_errors))

    @property
    def _beside(self) -> Beside | None:
        """Sets that were asked about beside those that were drawn, in units."""
        its, sampled = self._fitted.sampled, self._sampled
        if its is None or sampled is None or sampled.beside is None or not its.beside[0].size:
            return None
        return Beside.of(self._design, sampled.beside, its.beside[0] / self._unit)

    def _per_feature(self, numbers: Floats) -> Floats:
        """Numbers (1, d, ...) in units, (d, k)."""
        return np.asarray(numbers[0].reshape(self._design.size, -1) / self._unit)

    def _rows(self) -> tuple[WeightedRows, bool]:
        """Sets with their weights, and whether they are all there are."""
        sampled, groups, exact = self._fitted.sampled, None, False
        if self._game is not None:
            states = self._design.states(1 << self._design.size)
            assert states is not None  # noqa: S101 - there are few
            (z, weights, _), answers = states, self._game.expected()
        elif sampled is not None:
            # those that the model was asked about
            assert self._sampled is not None  # noqa: S101 - the model was sampled
            answers, instance = sampled.answers[0], self._design.at_instance
            z, weights, groups = self._sampled.answered(self._design, instance, len(answers))
        elif (boxes := self._fitted.moments.answers) is not None:
            answers, exact = boxes[0], True
            states = self._design.states(len(answers))
            assert states is not None  # noqa: S101 - these are its answers
            z, weights, _ = states
        elif (states := self._design.states(_STATES)) is not None:
            z, weights, _ = states
            answers, exact = self._predict(z), True
        else:
            count = min(_ROWS, max(_NUMBERS // self._design.size, _ROWS // 8))
            sampler = self._design.sampler(streams(self._seed, self._design.size, _SEQUENCES))
            z, _, groups = sampler.draw(count // _SEQUENCES)
            answers, weights = self._predict(z), np.full(len(z), 1.0 / len(z))
        answers = answers.reshape(len(z), -1) / self._unit
        return WeightedRows(np.ascontiguousarray(z.T), answers, weights, groups), exact

    def _estimated_effects(self) -> tuple[Floats, Floats]:
        """Means of the answers in either cell less their mean, (d, 2, k), and standard errors."""
        rows, _ = self._rows()
        mean = rows.weights @ rows.f
        values, errors = np.zeros((2, self._design.size, 2, self._unit.size))
        if self._game is not None:
            z, weights = rows.h, rows.weights
            inside = np.stack([1.0 - z, z], axis=1) * weights
            of_cells = inside / inside.sum(axis=2, keepdims=True) - weights
            values, errors = self._game.estimates(of_cells.reshape(-1, weights.size))
            shape = self._design.size, 2, self._unit.size
            return values.reshape(shape) / self._unit, errors.reshape(shape) / self._unit
        for j, z in enumerate(rows.h):
            for cell in (0, 1):
                weights = rows.weights * (z == cell)
                if not weights.any():
                    values[j, cell], errors[j, cell] = np.nan, np.inf
                    continue
                weights = weights / weights.sum()
                inside = weights @ rows.f
                values[j, cell] = inside - mean
                moved = weights[:, None] * (rows.f - inside) - rows.weights[:, None] * (rows.f - mean)
                errors[j, cell] = rows.error(moved)
        return values, errors
