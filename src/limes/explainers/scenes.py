"""What explainers hand to diagnostics: the neighbourhoods of explained rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from limes._arrays import Floats, Ints, Objects
from limes.designs.exchangeable import ExchangeableDesign
from limes.designs.product import ProductFamily
from limes.diagnostics.context import SubsetContext, TableContext
from limes.diagnostics.row_output import row_outputs
from limes.diagnostics.source import source_of
from limes.exceptions import InputError
from limes.explainers.subject import Subject
from limes.explainers.table import Table
from limes.explanation import Explanation
from limes.pipeline import Expectation


def table_context(
    explanation: Explanation,
    table: Table,
    family: ProductFamily,
    subject: Subject,
    *,
    texts: Sequence[Objects],
    units: Floats,
    output: Ints,
    calls: int | None,
) -> TableContext:
    """Return the context of the rows of a table's explanation; bandwidth, ridge, seed are in its provenance.

    Raises
    ------
    InputError
        If features or outputs are not those of the explainer.
    """
    if explanation.feature_names != table.names:
        raise InputError(
            "diagnose needs an explanation by this explainer with all its features, in their order: "
            "diagnose first, and pick features afterwards"
        )
    return TableContext(
        row_outputs=row_outputs(explanation, output),
        rows=table.encode(explanation.data),
        positions=_positions(explanation, output, subject.outputs),
        predict=subject.predict,
        source=source_of(subject.expectation),
        bandwidth=float(explanation.provenance["bandwidth"]),
        ridge=float(explanation.provenance["ridge"]),
        budget=calls,
        seed=int(explanation.provenance.get("seed") or 0),
        family=family,
        background=table.matrix,
        numeric=table.numeric,
        texts=texts,
        units=units,
    )


def subset_context(
    explanation: Explanation,
    expectation: Expectation,
    predict: Callable[[Floats], Floats],
    make: Callable[[int, float], ExchangeableDesign],
    *,
    outputs: Sequence[str],
    output: Ints,
    calls: int | None,
) -> SubsetContext:
    """Return the context of a text or an image; ``make`` gives the design of d features at a bandwidth."""
    d = len(explanation.feature_names)
    return SubsetContext(
        row_outputs=row_outputs(explanation, output),
        rows=np.ones((1, d)),
        positions=_positions(explanation, output, outputs),
        predict=predict,
        source=source_of(expectation),
        bandwidth=float(explanation.provenance["bandwidth"]),
        ridge=float(explanation.provenance["ridge"]),
        budget=calls,
        seed=int(explanation.provenance.get("seed") or 0),
        make_design=lambda bandwidth: make(d, bandwidth),
    )


def _positions(explanation: Explanation, output: Ints, outputs: Sequence[str]) -> Ints:
    """Where the chosen outputs are among the model's own."""
    unknown = [name for name in explanation.output_names if name not in outputs]
    if unknown:
        raise InputError(f"this explainer has no output {unknown[0]!r}, only {list(outputs)}")
    return np.array([outputs.index(explanation.output_names[k]) for k in output])
