r"""Compare a form with the model it was read from, where its explanations will come from.

A form that agrees with the model on the background may still be wrong: explanations average over rows that
are not in the background, and they come from an expectation, not from the form's own ``predict``. So

1. the model is asked about background rows and about rows of the background's law, and the form must
   give the same answers;
2. the expectation, under a design with one atom a column, must give the model's answer at that row;
3. the expectation's E_w f and Cov_w(h, f) must agree with draws of w, within the error of the draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._bars import progress_of
from limes._expectations.moments import Moments
from limes._expectations.weighted_rows import ERRORS, UNSEEN_ROWS
from limes._explainers.tables.table import Table
from limes._explanation.wording import cell
from limes._pipeline import Expectation, Pipeline
from limes.designs._exchangeable import ExchangeableDesign
from limes.designs._marginals import Marginal, categorical
from limes.designs._product import ProductDesign, ProductFamily
from limes.designs._weights import BinWeights
from limes.exceptions import ModelError, ReadMismatchError
from limes.models._identity import Predict

# Rows that the model is asked about: of the background, and of its law in each of two ways
_BACKGROUND, _LAW = 744, 128
# Rows at which the expectation must give the model's answer: enough for a forest to use its table of splits;
# mixed from two rows, as the table has an entry for each value of a column
_ATOMS, _MIXED = 12, 2
# Their bandwidth, so small that other rows' atoms have no weight
_NARROW = 1e-3
# Draws of a first comparison with an expectation, and of the second one that decides
TABLE_DRAWS = (512, 1 << 14)
SUBSET_DRAWS = (128, 1 << 12)
# Rounding of means, in units of the largest value
_ROUNDING = 1e-8
# Columns of a row that messages show
_SHOWN = 8

# Number of draws -> rows x and features h
Draw: TypeAlias = Callable[[int], tuple[Floats, Floats]]


@dataclass(frozen=True, eq=False)
class Probe:
    """Rows (n, d) at which form and model are compared.

    First come ``background`` rows of the background, then rows mixed from a few of these, then others.
    ``origins`` are the rows' kinds in words, ``table`` has their columns.
    """

    rows: Floats
    background: int
    origins: Sequence[str]
    table: Table

    @classmethod
    def of(cls, table: Table, marginals: Sequence[Marginal], also: Floats | None = None) -> Probe:
        """Take background rows, rows whose columns come from different background rows, and rows of the law.

        ``also`` are further rows (m, d), those to be explained.
        """
        background = _spread_rows(table.matrix)
        few = table.matrix[np.linspace(0, len(table.matrix) - 1, _MIXED).astype(np.int64)]
        law = np.concatenate(
            [shuffled(few, _ATOMS), shuffled(table.matrix, _LAW), _drawn(table.matrix[0], marginals)]
        )
        for j, column in enumerate(table.columns):
            if column.dtype.kind == "f" and column.dtype.itemsize < 8:
                law[:, j] = law[:, j].astype(column.dtype)  # as the model gets it
        explained = np.zeros((0, law.shape[1])) if also is None else also
        origins = (
            *(f"background row {i}" for i in background),
            *["a row of the background's law"] * len(law),
            *["an explained row"] * len(explained),
        )
        rows = np.concatenate([table.matrix[background], law, explained])
        return cls(rows, len(background), origins, table)

    def answers(self, ask: Predict) -> Floats:
        """Return the model's answers at all rows.

        Raises
        ------
        ModelError
            If it fails on background rows.
        ReadMismatchError
            If it fails on other rows only.
        """
        try:
            return ask(self.rows)
        except ModelError as error:
            ask(self.rows[: self.background])
            raise ReadMismatchError(
                f"the model fails on perturbed rows, which its form predicts: {error}"
            ) from error

    def where(self, i: int) -> str:
        """Return row i in words: its kind, and its first columns."""
        values = self.table.originals(self.rows[i : i + 1])[0]
        cells = [f"{name}={cell(value)}" for name, value in zip(self.table.names, values, strict=True)]
        more = ", ..." if len(cells) > _SHOWN else ""
        return f"{self.origins[i]} ({', '.join(cells[:_SHOWN])}{more})"


def check_agreement(expected: Floats, computed: Floats, allowed: float, where: Callable[[int], str]) -> None:
    """Compare a form's numbers (n, ...) with the model's own answers.

    Raises
    ------
    ReadMismatchError
        Naming the first row where they differ by more than is allowed.
    """
    if expected.shape != computed.shape:
        raise ReadMismatchError(
            f"the model answers shape {expected.shape}, its form answers {computed.shape}"
        )
    wrong = ~(np.abs(expected - computed) <= allowed)
    if wrong.any():
        i = int(np.argmax(wrong.reshape(len(wrong), -1).any(axis=1)))
        raise ReadMismatchError(
            f"at {where(i)} the model answers {expected[i]}, its form answers {computed[i]}"
        )


def check_atoms(expectation: Expectation, probe: Probe, answers: Floats, allowed: float) -> None:
    """Explain some rows under designs of one atom per column: E_w f must be the model's answer there.

    Expectations that need densities are compared with draws alone.

    Raises
    ------
    ReadMismatchError
        Naming the first row where it is not.
    """
    if getattr(expectation, "needs_densities", False):
        return
    places = probe.background + np.arange(_ATOMS)
    rows = probe.rows[places]
    family = ProductFamily(tuple(categorical(column) for column in rows.T), BinWeights(_NARROW))
    pipeline = Pipeline(family, expectation, penalty=None)
    fitted = pipeline.explain(rows, family.cells(rows), answers[places], progress=progress_of(shown=False))
    check_agreement(
        answers[places],
        fitted.at_instance,
        allowed,
        lambda i: f"{probe.where(places[i])}, as a law of this row alone,",
    )


def check_draws(moments: Moments, predict: Predict, design: Any, draw: Draw, draws: Sequence[int]) -> None:
    """Compare E_w f and Cov_w(h, f) with draws of w, on which the form itself is evaluated.

    ``draw`` returns rows x and their features h under the design, both (n, ...). Few draws may miss rare
    values; the last and largest of ``draws`` decides.

    Raises
    ------
    ReadMismatchError
        If they disagree by more than the error of the draws.
    """
    if not any(_agrees_with_draws(moments, predict, design, *draw(count)) for count in draws):
        raise ReadMismatchError(
            f"the exact expectation differs from a mean over {draws[-1]:,} draws by more than its error"
        )


def widened(family: ProductFamily) -> ProductFamily:
    """Widen the bandwidth where nearly all draws would lie in the instance's own cells."""
    usual = 0.75 * np.sqrt(len(family.marginals))
    if family.weights.bandwidth >= usual:
        return family
    return replace(family, weights=replace(family.weights, bandwidth=usual))


def product_rows(design: ProductDesign, seed: int = 0) -> Draw:
    """Return a function that draws independent rows of a product design."""

    def draw(count: int) -> tuple[Floats, Floats]:
        return design.draw(np.random.default_rng(seed).random((count, design.size)))

    return draw


def kept_features(design: ExchangeableDesign) -> Draw:
    """Return a function that draws independent sets of kept words or superpixels."""

    def draw(count: int) -> tuple[Floats, Floats]:
        rng = np.random.default_rng(0)
        law = design.counts.law
        removed = rng.choice(law.size, size=count, p=law / law.sum())
        places = rng.permuted(np.tile(np.arange(design.size), (count, 1)), axis=1)
        z = (places >= removed[:, None]).astype(np.float64)
        return z, z

    return draw


def subset_rows(d: int, rows: int) -> Floats:
    """Return a row that keeps all d features, and random rows, small to large, by a fixed seed; (rows, d)."""
    rng = np.random.default_rng(0)
    shares = np.linspace(0.05, 0.95, rows - 1)
    return np.vstack([np.ones(d), (rng.random((rows - 1, d)) < shares[:, None]).astype(np.float64)])


def _agrees_with_draws(moments: Moments, predict: Predict, design: Any, x: Floats, h: Floats) -> bool:
    """Return whether moments lie within the errors of means over draws, in units of their ranges."""
    count = len(x)
    f = predict(x).reshape(count, -1)
    # an indicator that is constant over the draws may still vary
    h_unit = np.where(_indicators(design), 1.0, _unit(np.abs(h - design.inclusion)))
    f_unit = _unit(np.abs(f))
    h, f = (h - design.inclusion) / h_unit, f / f_unit
    mean, rest = f.mean(axis=0), f - f.mean(axis=0)
    gamma = h.T @ rest / count
    variances = np.maximum((h**2).T @ rest**2 / count - gamma**2, 0.0)
    estimates = np.concatenate([mean[None], gamma])
    errors = np.sqrt(np.concatenate([f.var(axis=0)[None], variances]) / count)
    exact = np.concatenate(
        [
            moments.mean.reshape(1, -1) / f_unit,
            moments.gamma.reshape(design.size, -1) / (h_unit[:, None] * f_unit),
        ]
    )
    allowed = ERRORS * errors + UNSEEN_ROWS * np.ptp(f, axis=0) / count + _ROUNDING
    return bool((np.abs(exact - estimates) <= allowed).all())


def _indicators(design: Any) -> Bools:
    """Return which features are 0 or 1; the others are slopes."""
    if isinstance(design, ExchangeableDesign):
        return np.ones(design.size, dtype=np.bool_)
    return np.asarray(~design.slopes)


def _unit(sizes: Floats) -> Floats:
    largest = sizes.max(axis=0)
    return np.where(largest > 0, largest, 1.0)


def _spread_rows(matrix: Floats) -> Ints:
    """Return positions of evenly spread rows, and of a row with a missing value for each such column."""
    missing = np.isnan(matrix)
    return np.union1d(even_positions(len(matrix), _BACKGROUND), missing.argmax(axis=0)[missing.any(axis=0)])


def even_positions(n: int, most: int) -> Ints:
    """Return at most ``most`` of n positions, evenly spread."""
    return np.linspace(0, n - 1, min(most, n)).astype(np.int64)


def shuffled(matrix: Floats, count: int) -> Floats:
    """Return rows (count, d) whose columns come from different rows of a matrix (n, d)."""
    places = np.random.default_rng(0).integers(len(matrix), size=(count, matrix.shape[1]))
    return np.take_along_axis(matrix, places, axis=0)


def _drawn(row: Floats, marginals: Sequence[Marginal]) -> Floats:
    """Return rows of the law without weights."""
    design = ProductFamily(tuple(marginals), BinWeights(np.inf)).at(row)
    return product_rows(design, seed=1)(_LAW)[0]
