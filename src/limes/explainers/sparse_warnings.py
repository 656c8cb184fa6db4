"""What the user of a sparse explanation should know about it."""

from __future__ import annotations

from limes.sparse_pipeline import Judged, Plan


def meets(one: Judged, plan: Plan) -> bool:
    """Whether the certified error is as small as was asked for, if it was."""
    return plan.error is None or one.bounds[plan.certify] <= plan.error


def warnings_of(one: Judged, plan: Plan) -> tuple[str, ...]:
    """What is wrong, and what to do."""
    told = []
    if one.leaves_scale:
        told.append(
            f"the model answers outside [{one.scale.low:g}, {one.scale.high:g}], the range seen around this "
            f"row, up to {one.reach:.3g} times as far from its middle: bounds hold for a known range; give "
            "scale=(low, high)"
        )
    if one.vacuous:
        told.append(
            f"{plan.fresh} fresh rows are too few for a certificate: the bound of the precision error is no "
            "smaller than its largest possible value; raise fresh"
        )
    if not one.solution.proved and plan.solver == "branch_and_bound":
        told.append(
            f"not proved optimal within the time limit: gap {one.solution.gap:.1%}; raise time_limit, or "
            "samples, so that literals are less correlated"
        )
    if not meets(one, plan):
        told.append(
            f"no explanation of up to {one.solution.support.size} literals has a certified {plan.certify} "
            f"error of {plan.error:g}: this is the longest that was tried; raise error, or fresh"
        )
    return tuple(told)
