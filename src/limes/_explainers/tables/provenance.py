"""The facts about a model on a table that its explanations keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from limes import __version__
from limes._arrays import mean_and_std
from limes._explainers.tables.laws import TabularOptions
from limes._explainers.tables.table import Table
from limes.designs._product import ProductFamily
from limes.models._calling.outputs import is_log_odds

if TYPE_CHECKING:
    from limes._explainers.tables.model import BoundModel

SLOPE_MEANING = (
    "how much the surrogate changes per unit of a number, or if a category holds rather than not; bars are "
    "per standard deviation"
)


def provenance(
    model: Any,
    table: Table,
    family: ProductFamily,
    bound: BoundModel,
    options: TabularOptions,
    by_model: Sequence[int],
) -> dict[str, Any]:
    """Options and facts of explanations that JSON can hold; the model takes ``by_model`` for categories."""
    bins, output = options.bins, bound.reading.output
    sampled = bound.expectation.method == "sampled"
    error_bound = getattr(bound.expectation, "error_bound", 0.0)
    return {
        **({"meaning": SLOPE_MEANING} if bins is None else {}),
        **_slopes(table, family),
        "limes": __version__,
        "model": type(model).__name__,
        "answer": output.method or "call",
        **({"quantity": "log-odds"} if is_log_odds(model, output, table.decode(table.matrix[:2])) else {}),
        "background": f"{len(table.matrix)} rows",
        "bins": bins if bins is None or isinstance(bins, str | int) else "given",
        **({"hold": list(options.hold)} if options.hold else {}),
        **({"missing": list(options.missing)} if options.missing else {}),
        **({"categories of the model": [table.names[j] for j in by_model]} if by_model else {}),
        "law": options.law,
        "weights": options.weights_name,
        "bandwidth": float(family.weights.bandwidth),
        "ridge": float(options.ridge),
        **({"error bound": f"{error_bound:g} of each mean, by quadrature"} if error_bound else {}),
        "seed": options.sampling.sampling.seed if sampled else None,
        **({"tolerance": str(options.sampling.sampling.accuracy)} if sampled else {}),
    }


def _slopes(table: Table, family: ProductFamily) -> dict[str, Any]:
    """Mean and standard deviation of each column that has a slope, by its name."""
    if family.slopes is None:
        return {}
    slopes = {}
    for j in np.flatnonzero(family.slopes).tolist():
        column = table.matrix[:, j]
        mean, deviation = mean_and_std(column[np.isfinite(column)])
        slopes[table.names[j]] = {"mean": mean, "deviation": deviation}
    return {"slopes": slopes}
