"""One case of a table: run it, explain it, and compare with the oracle that goes with it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

import limes
from fuzz import draws
from fuzz.answers import Answers, answers_of
from fuzz.background import Background, background_of
from fuzz.cuts import NoCutsError, cuts_of
from fuzz.grid import Part, Truth, part_of, settled, step_parts, summed
from fuzz.laws import Law, categories, numbers
from fuzz.nodes import EvaluationPoints, evaluation_points, quadrature
from fuzz.options import Menu, Options, draw_options, draw_rows
from fuzz.script import Setup
from fuzz.verdict import AGREES, CRASH, MISMATCH, REFUSED, REJECTED, SAMPLED, SKIPPED, Verdict, compare

Array = Any

# Rows of a grid that the model is asked at once; the largest grid, and that of panels that were halved
_BATCH, _LARGEST, _FINEST = 60_000, 400_000, 6_000_000
# Smooth models at smooth weights have a separate grid for each row
_OWN_GRIDS = 4


@dataclass(frozen=True)
class TableCase:
    """A case, and how it is compared.

    ``shape`` is "steps" (the model is constant between cuts that are read off it), "atoms" (the background
    has few values, and laws are made of them), "smooth" (quadrature between kinks, panels no wider than
    ``width`` standard deviations), or "draws".
    """

    reader: str
    setup: Setup
    menu: Menu
    shape: str = "steps"
    width: float = 1.0
    kinks: Callable[[Any], list[Array]] | None = None

    def run(self) -> Trial:
        """Run the case's script."""
        return Trial.of(self)

    def options(self, rng: Any, trial: Trial) -> Options:
        """A set of options."""
        return draw_options(rng, self.menu, trial.background)

    def rows(self, rng: Any, trial: Trial, count: int) -> Array:
        """Rows to explain."""
        return draw_rows(rng, trial.background, trial.cuts, count, inside=self.shape == "atoms")


@dataclass
class Trial:
    """A case that was run: its model, its background, and answers that were already given."""

    case: TableCase
    model: Any
    background: Background
    cuts: list[Array]
    cache: dict[Any, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, case: TableCase) -> Trial:
        """Run the case's script.

        Raises
        ------
        Exception
            Whatever the model's library raises, for data or parameters that it does not take.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            variables = case.setup.run()
            background = background_of(variables["X"], case.menu.categorical)
            d = background.matrix.shape[1]
            if case.shape == "steps":
                cuts = cuts_of(variables["model"], d)
            elif case.kinks is not None:
                cuts = case.kinks(variables["model"])
            else:
                cuts = [np.zeros(0)] * d
        return cls(case, variables["model"], background, cuts)

    def check(self, options: Options, rows: Array) -> Verdict:
        """Explain rows and compare; a second, finer oracle is asked before a mismatch is called."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self._checked(options, rows)
            except TooLargeError as error:
                return Verdict(SKIPPED, detail=str(error))

    def _checked(self, options: Options, rows: Array) -> Verdict:
        rows = self._within(options, rows)
        tables = self.background.table(rows)
        if not self._takes(tables):
            takes = [self._takes(self.background.table(rows[i : i + 1])) for i in range(len(rows))]
            rows = rows[np.array(takes)]
            if not len(rows):
                return Verdict(SKIPPED, detail="the model takes none of the rows")
            tables = self.background.table(rows)
        try:
            explainer = self.explainer(options)
            if explainer.method == "sampled":
                return Verdict(SAMPLED)
            explanation = explainer(tables, progress=False)
        except limes.exceptions.LimesError as error:
            return self._after(error, options, tables)
        except Exception as error:  # noqa: BLE001 - any other error is a fault of the library
            return Verdict(CRASH, len(rows), f"{type(error).__name__}: {error}", 0)
        answers = answers_of(self.model, options.output, self.background.table(self.background.matrix[:200]))
        if self.case.shape == "draws":
            return draws.compare_drawn(
                explanation, answers, self.background, self.laws(options), options, rows
            )
        return self._against(explanation, answers, options, rows)

    def _takes(self, tables: Any) -> bool:
        """Whether the model itself answers rows: a transformer may take positive numbers alone."""
        try:
            self.model.predict(tables)
        except ValueError:
            return False
        return True

    def _within(self, options: Options, rows: Array) -> Array:
        """Keep rows where a flat law has slopes: seen from far outside, all of it lies at one end."""
        if options.bins is not None or options.law != "uniform":
            return rows
        low, high = np.nanmin(self.background.matrix, axis=0), np.nanmax(self.background.matrix, axis=0)
        return np.clip(rows, low, high)

    def _against(self, explanation: Any, answers: Answers, options: Options, rows: Array) -> Verdict:
        if self.case.shape == "smooth" and options.kind == "euclidean":
            rows = rows[:_OWN_GRIDS]
        n, laws = len(rows), self.laws(options)
        far = np.nanmax(np.abs(self.background.matrix), axis=0)

        def judge(values: Array, intercepts: Array, truth: Truth, share: float = 1.0) -> Verdict:
            """Hold coefficients against the oracle's, to a share of the tolerance."""
            return compare(
                values,
                intercepts,
                *truth,
                slope=share * answers.slope,
                level=share * max(answers.slope, answers.level),
                units=np.array([law.scale if law.slope else 1.0 for law in laws]),
                rounding=rounding_of(laws, far, options.nu(rows.shape[1])),
                reach=max([1.0, *(x / law.scale for law, x in zip(laws, far, strict=True) if law.slope)]),
            )

        values, intercepts = explanation.coefficients.values[:n], explanation.coefficients.intercepts[:n]
        truth = self.oracle(answers, options, rows, self.widths)
        verdict = judge(values, intercepts, truth)
        if verdict.kind != MISMATCH or self.case.shape != "smooth":
            return verdict
        finer = partial(self.oracle, answers, options, rows, largest=_FINEST)
        return judge(values, intercepts, settled(truth, self.widths, finer, judge))

    @property
    def widths(self) -> Array:
        """Widths of panels of smooth models, (d,), to begin with."""
        return np.full(self.background.matrix.shape[1], self.case.width)

    def explainer(self, options: Options, **more: Any) -> Any:
        """Return what is under test."""
        names = None if isinstance(self.background.like, np.ndarray) else list(self.background.like.columns)
        return limes.TabularExplainer(self.model, self.background.like, **options.keywords(names), **more)

    def _after(self, error: Exception, options: Options, tables: Any) -> Verdict:
        """Whether sampling would have worked where "auto" raised."""
        text = f"{type(error).__name__}: {error}"
        try:
            sampler = self.explainer(options, method="sampled", control="none", max_calls=64)
            sampler(tables[:1], progress=False)
        except limes.exceptions.LimesError:
            return Verdict(REJECTED, detail=text)
        except Exception as other:  # noqa: BLE001 - as above
            return Verdict(CRASH, 1, f"{type(other).__name__}: {other}", 0)
        return Verdict(REFUSED, detail=text)

    def laws(self, options: Options) -> list[Law]:
        """Each column's law under the options."""
        result = []
        for j, categorical in enumerate(self.background.categorical):
            x = self.background.matrix[:, j]
            if categorical or j in options.categorical:
                result.append(categories(x))
                continue
            bins = options.bins[j] if isinstance(options.bins, list) else options.bins
            result.append(
                numbers(
                    x, "quartile" if isinstance(options.bins, list) and bins is None else bins, options.law
                )
            )
        return result

    def oracle(
        self, answers: Answers, options: Options, rows: Array, widths: Array, largest: int = _LARGEST
    ) -> Truth:
        """By a grid; of smooth models by panels no wider than ``widths`` (d,), in units of columns."""
        laws = self.laws(options)
        nu, kind = options.nu(rows.shape[1]), options.kind
        if self.case.shape == "smooth":
            return self._smooth(answers, options, rows, laws, widths, largest)
        points = [self._points(j, law) for j, law in enumerate(laws)]
        grid = self._grid(answers, options, [at.values for at in points], largest)
        parts = [
            [
                self._part(law, at, float(x), kind, nu, j)
                for j, (law, at, x) in enumerate(zip(laws, points, row, strict=True))
            ]
            for row in rows
        ]
        beta, start = summed(grid, parts)
        return Truth(beta, start, float(np.abs(grid).max()))

    def _points(self, j: int, law: Law) -> EvaluationPoints:
        values = np.unique(self.background.matrix[:, j])
        if self.case.shape == "atoms" or law.inner is None:
            return EvaluationPoints(values, values.size, np.zeros(0))
        return evaluation_points(law, self.cuts[j], extra=values)

    def _part(self, law: Law, at: EvaluationPoints, x: float, kind: str, nu: float, j: int) -> Part:
        key = ("part", id(law), None if kind == "bins" and not law.slope else x, law.locate(x), j)
        cache = self.cache.setdefault("parts", {})
        if cache.get("law", {}).get(j) is not law:
            cache.setdefault("law", {})[j] = law
            cache[j] = {}
        if key not in cache[j]:
            cache[j][key] = step_parts(law, at, x, kind, nu)
        return cache[j][key]

    def _smooth(
        self,
        answers: Answers,
        options: Options,
        rows: Array,
        laws: list[Law],
        widths: Array,
        largest: int,
    ) -> Truth:
        nu, kind = options.nu(rows.shape[1]), options.kind
        groups = [rows] if kind == "bins" else [row[None] for row in rows]
        result = []
        for group in groups:
            points_and_masses = []
            for j, law in enumerate(laws):
                tilted = law if kind == "bins" else law.weighted(float(group[0, j]), kind, nu)
                points_and_masses.append(quadrature(tilted, self.cuts[j], widths[j] * law.scale))
            grid = self._grid(answers, options, [values for values, _ in points_and_masses], largest)
            parts = [
                [
                    part_of(law.weighted(float(x), kind, nu), float(x), p, values)
                    for law, x, (values, p) in zip(laws, row, points_and_masses, strict=True)
                ]
                for row in group
            ]
            result.append((*summed(grid, parts), float(np.abs(grid).max())))
        beta, start, size = zip(*result, strict=True)
        return Truth(np.concatenate(beta), np.concatenate(start), max(size))

    def _grid(self, answers: Answers, options: Options, values: list[Array], largest: int) -> Array:
        """Answers at every combination of the columns' values, (n_1, ..., n_d, k)."""
        shape = tuple(v.size for v in values)
        if np.prod(shape, dtype=float) > largest:
            raise TooLargeError(f"a grid of {shape}")
        key = (repr(options.output), *(v.tobytes() for v in values))
        if key in self.cache:
            return self.cache[key]
        rows = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, len(values))
        parts = [
            answers.ask(self.background.table(rows[i : i + _BATCH])) for i in range(0, len(rows), _BATCH)
        ]
        result = np.concatenate(parts)
        result = result.reshape(*shape, result.shape[1])
        if len(rows) <= _LARGEST:
            self.cache[key] = result
        return result


def rounding_of(laws: list[Law], largest: Array, bandwidth: float) -> float:
    """How far rounding a column's numbers to float64 moves a probability of its weighted law.

    A rounding is 8 units in the last place of the column's ``largest`` number; it counts in units of the
    narrowest piece, which is no wider than its own deviation, its limits, or the weight.
    """
    worst = 0.0
    for law, x in zip(laws, largest, strict=True):
        spread = np.minimum(np.minimum(law.std, law.high - law.low), bandwidth * law.scale)[~law.points]
        if spread.size:
            worst = max(worst, 8 * np.finfo(float).eps * float(x / spread.min()))
    return worst


class TooLargeError(Exception):
    """The grid would be too large to ask."""


__all__ = ["AGREES", "NoCutsError", "TableCase", "TooLargeError", "Trial", "replace"]
