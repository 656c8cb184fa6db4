"""Control variates: readable models of a black box, whose exact coefficients are known.

β is linear in f, so β(f) = β(h) + β(f - h) for any h. A readable h that follows f leaves little to be
estimated from samples. It is fitted to calls that were made anyway, on all folds but one, and used on that
one: so h does not know the rows it is subtracted from, and what is estimated stays unbiased.
"""

from limes.expectations.controls.additive import additive
from limes.expectations.controls.control import Control, Fitted, Zero, none
from limes.expectations.controls.kernel import kernel
from limes.expectations.controls.tree import tree

__all__ = ["CONTROLS", "Control", "Fitted", "Zero", "additive", "kernel", "none", "tree"]

# In the order in which they are tried
CONTROLS: dict[str, Control] = {"none": none, "additive": additive, "tree": tree, "kernel": kernel}
