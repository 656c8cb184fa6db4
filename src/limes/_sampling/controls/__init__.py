"""Control variates: readable models of a black box, whose exact coefficients are known.

β is linear in f, so β(f) = β(h) + β(f - h) for any h. A readable h that follows f leaves little to be
estimated from samples. It is fitted to rows that were predicted anyway, of all folds but one, and subtracted
in that fold: h does not depend on the rows it is subtracted from, and the estimate stays unbiased.
"""

from collections.abc import Collection

from limes._sampling.controls.control import Control, FittedControl, TooLargeError, no_control
from limes._sampling.controls.tables import (
    additive_control,
    kernel_control,
    network_control,
    tree_control,
)
from limes.exceptions import InputError

__all__ = ["CONTROLS", "Control", "FittedControl", "TooLargeError", "no_control", "too_large"]

# In the order in which they are tried
CONTROLS: dict[str, Control] = {
    "none": no_control,
    "additive": additive_control,
    "network": network_control,
    "tree": tree_control,
    "kernel": kernel_control,
}


def too_large(controls: Collection[str], columns: int) -> InputError:
    """Return the error for controls that were all asked for, and are too large for a number of columns."""
    return InputError(
        f"control={next(iter(controls))!r} is too large for {columns:,} columns: its normal equations take "
        "more than 2 GB; pass control='none', or 'auto', which leaves it out"
    )
