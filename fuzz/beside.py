"""Numbers beside the coefficients: effects of all cells, R², R² of the effects, and pairs.

All are sums over the grid of the columns' points, of the answers of the model itself: with P(point | cell) in
place of the law of one column, or of two. Numbers without an error are exact, to the tolerance of
coefficients; the others lie within six of their errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

import limes
from fuzz.answers import Answers, answers_of
from fuzz.grid import Truth, settled
from fuzz.laws import Law
from fuzz.nodes import probabilities, quadrature
from fuzz.options import Options
from fuzz.tables import TableCase, Trial, rounding_of
from fuzz.verdict import AGREES, CRASH, MISMATCH, NOT_FINITE, SAMPLED, SKIPPED, VANISHING, Verdict, compare

Array = Any

# Answers of the grid of one row, and of one whose panels were halved; pairs of each row and output
_LARGEST, _FINEST, _PAIRS = 60_000, 1_000_000, 3
# Standard errors that an estimate may be off by; tolerances of coefficients that R² may be off by
_FAR, _RATIOS = 6.0, 30.0


@dataclass(frozen=True)
class BesideCase(TableCase):
    """A case of a table whose numbers beside the coefficients are compared."""

    prints: ClassVar[str] = (
        "[e.values.tolist() for e in explanation.effects], explanation.fidelity, "
        "explanation.additive_fidelity, explanation.interactions(3)"
    )

    @classmethod
    def of(cls, case: TableCase) -> BesideCase:
        """The same case."""
        return cls(**vars(case))

    def run(self) -> BesideTrial:
        """Run the case's script."""
        return BesideTrial.of(self)

    def options(self, rng: Any, trial: Trial) -> Options:
        """A set of options; the library chooses the cells of slopes, so that there are bins."""
        # the library has bins of columns that the model alone takes for categories
        options = replace(super().options(rng, trial), named=True)
        return replace(options, bins="quartile", law="empirical") if options.bins is None else options


class Around(NamedTuple):
    """The numbers around one row; effects of cells (p, k) a column, and the laws that they come from."""

    effects: list[Array]
    masses: list[Array]
    laws: list[Array]  # P(point | cell), (p, m)
    mean: Array  # (k,)
    variance: Array
    r_squared: Array
    additive: Array

    def pair(self, grid: Array, i: int, j: int) -> Array:
        """Effects of a pair of columns beyond those of both, (p, q, k)."""
        both = _mean(
            grid - self.mean,
            [q @ law for q, law in zip(self.masses, self.laws, strict=True)],
            {i: self.laws[i], j: self.laws[j]},
        )
        return both - self.effects[i][:, None] - self.effects[j][None]


def around(grid: Array, masses: list[Array], laws: list[Array], cells: list[int]) -> Around:
    """By the definitions, for a row in these cells."""
    points = [q @ law for q, law in zip(masses, laws, strict=True)]
    mean = _mean(grid, points, {})
    f = grid - mean
    variance = _mean(f**2, points, {})
    effects = [_mean(f, points, {j: law}) for j, law in enumerate(laws)]
    explained, additive = np.zeros((2, variance.size))
    for q, effect, cell in zip(masses, effects, cells, strict=True):
        additive += q @ effect**2
        # Σ_b q_b e_b = 0: of a likely cell the sum of the others keeps its digits, of a rare one its effect
        others, moved = np.delete(q, cell), np.delete(effect, cell, axis=0)
        rest = others.sum()
        main = q[cell] * effect[cell] if q[cell] < rest else others @ moved
        explained += main * (main / q[cell]) / rest if rest > 0 and q[cell] > 0 else 0.0
    safe = np.where(variance > 0, variance, 1.0)
    return Around(effects, masses, laws, mean, variance, explained / safe, additive / safe)


def _mean(f: Array, points: list[Array], conditional: dict[int, Array]) -> Array:
    """E f with some columns' laws replaced by those given cells, each of which leaves an axis."""
    for j in range(len(points) - 1, -1, -1):
        law = conditional.get(j, points[j][None])
        f = np.moveaxis(np.tensordot(law, f, (1, j)), 0, j)
    return f.reshape(*(len(conditional[j]) for j in sorted(conditional)), f.shape[-1])


class BesideTrial(Trial):
    """A case that was run."""

    def _checked(self, options: Options, rows: Array) -> Verdict:
        if self.case.shape == "draws" or rows.shape[1] > 6:
            return Verdict(SKIPPED, detail="no grid")
        tables = self.background.table(rows)
        try:
            explanation = self.explainer(options)(tables, progress=False)
            if explanation.method == "sampled":
                return Verdict(SAMPLED)
            stated = [Stated.of(explanation, i) for i in range(len(rows))]
        except limes.exceptions.LimesError as error:
            return self._after(error, options, tables)
        except Exception as error:  # noqa: BLE001 - any other error is a fault of the library
            return Verdict(CRASH, len(rows), f"{type(error).__name__}: {error}", 0)
        answers = answers_of(self.model, options.output, self.background.table(self.background.matrix[:200]))
        return self._judged(stated, answers, options, rows)

    def _judged(self, stated: list[Stated], answers: Answers, options: Options, rows: Array) -> Verdict:
        far = np.nanmax(np.abs(self.background.matrix), axis=0)
        rounding = rounding_of(self.laws(options), far, options.nu(rows.shape[1]))
        values = np.stack([each.stacked for each in stated])
        zeros = np.zeros((len(rows), values.shape[2]))

        def judge(values: Array, means: Array, truth: Truth, share: float = 1.0) -> Verdict:
            level = share * max(answers.slope, answers.level)
            return compare(values, means, *truth, slope=share * answers.slope, level=level, rounding=rounding)

        truths = partial(self._truth, answers, options, rows)
        truth, widths = truths(self.widths), self.widths
        verdict = judge(values, zeros, truth)
        if verdict.kind == MISMATCH and self.case.shape == "smooth":
            truth, widths = self._settled(truth, truths, judge)
            verdict = judge(values, zeros, truth)
        if verdict.fault:
            return verdict
        for i, row in enumerate(rows):
            wrong = next(self._wrong(stated[i], answers, options, row, widths, truth.size, rounding), "")
            if wrong:
                # an estimate of eight sequences exceeds this once in some thousands: draw other sequences
                explained = self.explainer(options, rng=1)(self.background.table(rows), progress=False)
                again = Stated.of(explained, i)
                wrong = next(self._wrong(again, answers, options, row, widths, truth.size, rounding), "")
            if wrong:
                kind = NOT_FINITE if wrong.endswith("not finite") else MISMATCH
                return Verdict(kind, len(rows), wrong, i)
        return verdict

    def _settled(self, truth: Truth, truths: Any, judge: Any) -> tuple[Truth, Array]:
        """A truth of panels that are fine enough, and their widths."""
        last = [self.widths]

        def finer(widths: Array) -> Truth:
            last.append(widths)
            return truths(widths, largest=_FINEST)

        result = settled(truth, self.widths, finer, judge)
        return result, min(last, key=lambda widths: float(np.sum(widths)))

    def _wrong(
        self,
        stated: Stated,
        answers: Answers,
        options: Options,
        row: Array,
        widths: Array,
        size: float,
        rounding: float,
    ) -> Iterator[str]:
        """Return what is wrong with R² and pairs at a row."""
        truth, grid = self._around(answers, options, row, widths, _FINEST)
        spread = np.sqrt(np.maximum(truth.variance, 1e-300))
        # relative to Var f, whose answers are rounded
        level = max(answers.slope, answers.level) if answers.level != answers.slope else answers.slope
        allowed = _RATIOS * (level * np.maximum(1.0, VANISHING * size / spread) + rounding * size / spread)
        judged = truth.variance > (1e-9 * size) ** 2
        # of an unknown variance there are no shares
        whole_unknown = np.isinf(stated.additive[1])
        for name, (value, error), expected in (
            ("R²", stated.fidelity, truth.r_squared),
            ("R² of the effects", stated.additive, truth.additive),
        ):
            unknown = np.isnan(value) & np.isinf(error)
            if (np.isnan(value) & ~np.isinf(error)).any():
                yield f"{name} is not finite"
            gap = np.abs(value - expected)[judged & ~unknown]
            if (gap > (allowed + _FAR * error)[judged & ~unknown]).any():
                yield f"{name} is {value.tolist()} ± {error.tolist()}, not {expected.tolist()}"
        largest = np.maximum(np.max([np.abs(e).max(axis=0) for e in truth.effects], axis=0), VANISHING * size)
        for i, j, k, values, share, error in stated.pairs:
            if not np.isfinite(values).all():
                yield "a pair is not finite"
            expected = truth.pair(grid, i, j)[:, :, k]
            # differences of three effects
            if (np.abs(values - expected) > 3.0 * answers.slope * largest[k] + 3.0 * rounding * size).any():
                yield f"the pair {i}, {j} is {values.tolist()}, not {expected.tolist()}"
            whole = truth.masses[i] @ expected**2 @ truth.masses[j] / truth.variance[k]
            if np.isnan(share) and np.isinf(error) and whole_unknown[k]:
                continue
            if judged[k] and not np.abs(share - whole) <= allowed[k] + _FAR * error:
                yield f"the share of the pair {i}, {j} is {share} ± {error}, not {whole}"

    def _truth(
        self, answers: Answers, options: Options, rows: Array, widths: Array, largest: int = _LARGEST
    ) -> Truth:
        """Effects of all cells, one column after the other, (n, cells, k)."""
        each = [self._around(answers, options, row, widths, largest) for row in rows]
        effects = np.stack([np.concatenate(truth.effects) for truth, _ in each])
        return Truth(effects, np.zeros((len(rows), effects.shape[2])), max(np.abs(g).max() for _, g in each))

    def _around(
        self, answers: Answers, options: Options, row: Array, widths: Array, largest: int
    ) -> tuple[Around, Array]:
        laws, nu = self.laws(options), options.nu(row.size)
        weighted = [law.weighted(float(x), options.kind, nu) for law, x in zip(laws, row, strict=True)]
        points_and_masses = [self._points_of(j, law, widths) for j, law in enumerate(weighted)]
        grid = self._grid(answers, options, [values for values, _ in points_and_masses], largest)
        masses = [np.exp(law.log_mass - law.log_mass.max()) for law in weighted]
        cells = [law.locate(float(x)) for law, x in zip(laws, row, strict=True)]
        masses = [mass / mass.sum() for mass in masses]
        return around(grid, masses, [law for _, law in points_and_masses], cells), grid

    def _points_of(self, j: int, law: Law, widths: Array) -> tuple[Array, Array]:
        """Points of a column, and P(point | cell)."""
        if self.case.shape == "smooth":
            values, conditional = quadrature(law, self.cuts[j], widths[j] * law.scale)
        else:
            at = self._points(j, law)
            values, conditional = at.values, probabilities(law, at)
        return values, conditional / conditional.sum(axis=1, keepdims=True)


class Stated(NamedTuple):
    """Numbers of the library about one row."""

    effects: list[Array]  # of all columns, (p, k) each
    fidelity: tuple[Array, Array]
    additive: tuple[Array, Array]
    pairs: list[tuple[int, int, int, Array, float, float]]

    @classmethod
    def of(cls, explanation: Any, i: int) -> Stated:
        names, outputs = explanation.feature_names, explanation.output_names
        d, k = len(names), len(outputs)
        # names may repeat: effects come in the order of outputs and columns
        effects = [*explanation[i : i + 1].effects]
        columns = [np.stack([effects[o * d + j].values for o in range(k)], axis=1) for j in range(d)]
        numbers = [
            np.reshape(getattr(explanation, name)[i], -1).astype(float)
            for name in ("fidelity", "fidelity_errors", "additive_fidelity", "additive_fidelity_errors")
        ]
        pairs = [
            (
                names.index(pair.features[0]),
                names.index(pair.features[1]),
                outputs.index(pair.output),
                pair.values,
                pair.share,
                pair.share_error,
            )
            for pair in explanation[i : i + 1].interactions(_PAIRS)
        ]
        return cls(columns, (numbers[0], numbers[1]), (numbers[2], numbers[3]), pairs)

    @property
    def stacked(self) -> Array:
        return np.concatenate(self.effects)


__all__ = ["AGREES", "BesideCase", "BesideTrial"]
