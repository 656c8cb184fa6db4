"""The facts about a model on a table that its explanations keep."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from limes import __version__
from limes._explainers.tables.laws import TabularOptions, slopes_of
from limes._explainers.tables.table import Table
from limes._explanation.fields import plain_fact
from limes.designs._product import ProductFamily
from limes.models._calling.outputs import is_log_odds

if TYPE_CHECKING:
    from limes._explainers.tables.model import BoundModel

SLOPE_MEANING = (
    "how much the surrogate changes per unit of a number, or if a category holds rather than not; bars are "
    "per standard deviation"
)

_KINKS = (
    "sampled from the network as it was read, without model calls: kinks have no closed form where columns "
    "keep single values"
)


def provenance(
    model: Any,
    table: Table,
    family: ProductFamily,
    bound: BoundModel,
    options: TabularOptions,
    by_model: Sequence[int],
    own_values: Collection[int],
) -> dict[str, Any]:
    """Options and facts of explanations that JSON can hold.

    The model takes columns ``by_model`` for categories; those with ``own_values`` have no law between these.
    """
    bins, output = options.bins, bound.reading.output
    sampled = bound.expectation.method == "sampled"
    error_bound = getattr(bound.expectation, "error_bound", 0.0)
    needs_densities = getattr(bound.expectation, "needs_densities", False)
    facts = {
        **({"meaning": SLOPE_MEANING} if bins is None else {}),
        **slopes_of(table, family),
        "limes": __version__,
        "model": type(model).__name__,
        "answer": output.method or "call",
        **({} if sampled else bound.reading.precision),
        **({"quantity": "log-odds"} if is_log_odds(model, output, table.decode(table.matrix[:2])) else {}),
        "background": f"{len(table.matrix)} rows",
        "bins": bins if bins is None or isinstance(bins, str | int) else "given",
        **({"hold": list(options.hold)} if options.hold else {}),
        **({"missing": list(options.missing)} if options.missing else {}),
        **({"categories of the model": [table.names[j] for j in by_model]} if by_model else {}),
        **({"own values": [table.names[j] for j in sorted(own_values)]} if own_values else {}),
        "law": options.law_name,
        **({} if options.is_joint else {"law of contributions": options.law_of_contributions}),
        **({"contributions": _KINKS} if needs_densities else {}),
        "weights": options.weights_name,
        "bandwidth": float(family.weights.bandwidth),
        "ridge": float(options.ridge),
        **({"error bound": f"{error_bound:g} of each mean, by quadrature"} if error_bound else {}),
        "seed": options.sampling.sampling.seed if sampled else None,
        **({"tolerance": str(options.sampling.sampling.accuracy)} if sampled else {}),
    }
    plain: dict[str, Any] = plain_fact(facts, "provenance")
    return plain
