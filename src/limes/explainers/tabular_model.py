"""One model on one background, under fixed options: all that explanations of rows are computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from limes import __version__
from limes._arrays import Floats, Ints, Objects, column_stds, distinct_rows
from limes.designs.marginals import Marginal
from limes.designs.product import ProductFamily
from limes.designs.weights import named_weights
from limes.expectations.sampling import Sampling
from limes.explainers.cautions import Cautions, Silent
from limes.explainers.conditions import cell_texts
from limes.explainers.laws import learnt_laws
from limes.explainers.subject import Reading, Subject
from limes.explainers.table import Table
from limes.pipeline import Pipeline

SLOPE_MEANING = (
    "change of the surrogate per unit of a number, or when a category holds against when it does not"
)


@dataclass(frozen=True)
class TabularOptions:
    """Options of :class:`limes.TabularExplainer`, checked."""

    output: Any
    bins: Any
    target: Any
    law: str
    bandwidth: float | None
    weights: str
    ridge: float
    method: str
    control: str
    sampling: Sampling

    @property
    def weights_name(self) -> str:
        """Slopes have smooth weights, whatever was asked for."""
        return "euclidean" if self.bins is None else self.weights


@dataclass(frozen=True, eq=False)
class TabularModel:
    """What a :class:`limes.TabularExplainer` computes explanations from; made anew for a model fitted again.

    Attributes
    ----------
    table
        The background; columns that the model takes for categories are categorical.
    family
        The designs, one at each row.
    texts
        Of each column, the condition that each of its cells stands for.
    subject
        The model, read and checked.
    pipeline
        Family, expectation and surrogate.
    units
        (d,) standard deviation of numbers, 1 for categories and for columns that do not vary.
    provenance
        How explanations came about.
    warns
        Whether explanations carry the warnings that cost next to nothing.
    """

    table: Table
    family: ProductFamily
    texts: Sequence[Objects]
    subject: Subject
    pipeline: Pipeline
    units: Floats
    provenance: dict[str, Any]
    warns: bool = True

    @classmethod
    def of(
        cls, model: Any, table: Table, options: TabularOptions, also: Floats | None = None
    ) -> TabularModel:
        """Read the model, learn the background's laws, and hold the one against the other.

        ``also`` are further rows at which the model must agree with what was read.

        Raises
        ------
        InputError, ModelError, NotReadableError, ReadMismatchError
            As :class:`limes.TabularExplainer` says.
        """
        reading = Reading.of(model, options.output, table)
        numbers = [j for j in np.flatnonzero(table.numeric).tolist() if j in reading.category_columns]
        by_model = [j for j in numbers if not _has_bins(options.bins, j)]
        if len(by_model) < len(numbers):
            (name, *_) = (table.names[j] for j in numbers if j not in by_model)
            reading = reading.unread(
                f"the model takes column {name!r} for categories, and bins= cuts it as a number: give None "
                "in its place"
            )
        table = table.with_categories(by_model)
        marginals = learnt_laws(table, options.bins, options.target, options.law)
        units = _units(table)
        family = _family(table, marginals, units, options)
        subject = Subject.of(
            reading,
            table,
            family,
            method=options.method,
            sampling=options.sampling,
            control=options.control,
            also=also,
        )
        slopes = np.zeros(len(marginals), dtype=np.bool_) if family.slopes is None else family.slopes
        pipeline = Pipeline(
            family,
            subject.expectation,
            penalty=options.ridge or None,
            # lime fits slopes on standardised columns: its penalty is per standard deviation
            scales=np.where(slopes, units, 1.0),
            names=table.names,
        )
        return cls(
            table,
            family,
            [
                np.array(cell_texts(column, law), dtype=object)
                for column, law in zip(table.columns, marginals, strict=True)
            ],
            subject,
            pipeline,
            units,
            _provenance(model, table, family, subject, options, by_model),
        )

    def reproducible(self) -> TabularModel:
        """The same, with results that are the same to the last bit however a table is cut; no warnings."""
        subject = replace(self.subject, predict=self.subject.predict_reproducibly)
        return replace(self, subject=subject, pipeline=self.pipeline.reproducible(), warns=False)

    @cached_property
    def cautions(self) -> Cautions | Silent:
        """Warnings that cost next to nothing."""
        return Cautions.of(self.table, self.family, self.units) if self.warns else Silent()

    def conditions(self, cells: Ints) -> tuple[tuple[str, ...], ...]:
        """Texts of the rows' cells (n, d); rows with the same cells share a tuple."""
        patterns, place = distinct_rows(cells)
        columns = [texts[column] for texts, column in zip(self.texts, patterns.T, strict=True)]
        texts = list(zip(*columns, strict=True))
        return tuple(map(texts.__getitem__, place.tolist()))


def _units(table: Table) -> Floats:
    scales = column_stds(table.matrix)
    return np.where(table.numeric & (scales > 0), scales, 1.0)


def _has_bins(bins: Any, j: int) -> bool:
    """Whether the user gave bins for a column."""
    return isinstance(bins, list | tuple) and j < len(bins) and bins[j] is not None


def _family(
    table: Table, marginals: tuple[Marginal, ...], units: Floats, options: TabularOptions
) -> ProductFamily:
    slopes = table.numeric & (options.bins is None)
    bandwidth = 0.75 * np.sqrt(len(marginals)) if options.bandwidth is None else options.bandwidth
    return ProductFamily(
        marginals,
        named_weights(options.weights_name, bandwidth),
        slopes=slopes if slopes.any() else None,
        scales=units,
    )


def _provenance(
    model: Any,
    table: Table,
    family: ProductFamily,
    subject: Subject,
    options: TabularOptions,
    by_model: Sequence[int],
) -> dict[str, Any]:
    bins = options.bins
    sampled = subject.expectation.method == "sampled"
    return {
        **({"meaning": SLOPE_MEANING} if bins is None else {}),
        "limes": __version__,
        "model": type(model).__name__,
        "answer": subject.answer,
        "background": f"{len(table.matrix)} rows",
        "bins": bins if bins is None or isinstance(bins, str | int) else "given",
        **({"categories of the model": [table.names[j] for j in by_model]} if by_model else {}),
        "law": options.law,
        "weights": options.weights_name,
        "bandwidth": float(family.weights.bandwidth),
        "ridge": float(options.ridge),
        "seed": options.sampling.seed if sampled else None,
    }
