"""What explainers hand to diagnostics: the neighbourhoods of explained rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from limes._arrays import Floats, Ints, Objects
from limes.designs.exchangeable import ExchangeableDesign
from limes.designs.product import ProductFamily
from limes.diagnostics.facts import facts_of
from limes.diagnostics.subset_scene import SubsetScene
from limes.diagnostics.table_scene import TableScene
from limes.exceptions import InputError
from limes.explainers.subject import Subject
from limes.explainers.table import Table
from limes.explanation import Explanation
from limes.pipeline import Expectation


def table_scene(
    explanation: Explanation,
    table: Table,
    family: ProductFamily,
    subject: Subject,
    *,
    texts: Sequence[Objects],
    units: Floats,
    output: Ints,
    calls: int | None,
) -> TableScene:
    """The scene of the rows of a table's explanation; bandwidth, ridge and seed are in its provenance.

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
    return TableScene(
        facts=facts_of(explanation, output),
        rows=table.encode(explanation.data),
        output=_positions(explanation, output, subject.outputs),
        predict=subject.predict,
        expectation=subject.expectation,
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


def subset_scene(
    explanation: Explanation,
    expectation: Expectation,
    predict: Callable[[Floats], Floats],
    make: Callable[[int, float], ExchangeableDesign],
    *,
    outputs: Sequence[str],
    output: Ints,
    calls: int | None,
) -> SubsetScene:
    """The scene of a text or an image; ``make`` gives the design of d features at a bandwidth."""
    d = len(explanation.feature_names)
    return SubsetScene(
        facts=facts_of(explanation, output),
        rows=np.ones((1, d)),
        output=_positions(explanation, output, outputs),
        predict=predict,
        expectation=expectation,
        bandwidth=float(explanation.provenance["bandwidth"]),
        ridge=float(explanation.provenance["ridge"]),
        budget=calls,
        seed=int(explanation.provenance.get("seed") or 0),
        make=lambda bandwidth: make(d, bandwidth),
    )


def _positions(explanation: Explanation, output: Ints, outputs: Sequence[str]) -> Ints:
    """Where the chosen outputs are among the model's own."""
    unknown = [name for name in explanation.output_names if name not in outputs]
    if unknown:
        raise InputError(f"this explainer has no output {unknown[0]!r}, only {list(outputs)}")
    return np.array([outputs.index(explanation.output_names[k]) for k in output])
