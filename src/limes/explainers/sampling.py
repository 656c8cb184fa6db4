"""What a user may say about sampling, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from limes.exceptions import InputError
from limes.expectations.controls import CONTROLS, Control
from limes.expectations.sampling import Sampling, Tolerance
from limes.explainers.options import check_choice, check_count, check_size, seed_of

_AUTO = "auto"
_MARGIN = "margin"
CONTROL_NAMES = (_AUTO, *CONTROLS, _MARGIN)


def sampling_of(*, max_calls: Any, tolerance: Any, rng: Any, batch_size: Any, retry: Any) -> Sampling:
    """The options that explainers share.

    Raises
    ------
    InputError
        If one of them is not usable.
    """
    if retry is not None and not callable(retry):
        raise InputError(
            f"retry must be a callable (error, attempt) -> seconds to wait, or None to give up; got {retry!r}"
        )
    return Sampling(
        max_calls=check_count("max_calls", max_calls),
        tolerance=tolerance_of(tolerance),
        seed=seed_of(rng),
        batch_size=check_count("batch_size", batch_size),
        retry=retry,
    )


def tolerance_of(tolerance: Any) -> Tolerance | None:
    """None, a number in the output's units, or a text such as "5%" of the largest coefficient."""
    if tolerance is None:
        return None
    if not isinstance(tolerance, str):
        return Tolerance(check_size("tolerance", tolerance))
    try:
        share = float(tolerance.removesuffix("%")) if tolerance.endswith("%") else 0.0
    except ValueError:
        share = 0.0
    if not 0 < share < 100:
        raise InputError(
            f"tolerance={tolerance!r} is neither a number nor a share of the largest coefficient such as '5%'"
        )
    return Tolerance(share / 100, relative=True)


def controls_of(control: Any, margin: Control | None) -> Mapping[str, Control]:
    """Candidates for the control variate: all there are for "auto", else the one that is named.

    Raises
    ------
    InputError
        If there is no such control, or no margin to be read.
    """
    check_choice("control", control, CONTROL_NAMES)
    known = CONTROLS if margin is None else {**CONTROLS, _MARGIN: margin}
    if control == _AUTO:
        return known
    if control not in known:
        raise InputError("control='margin' needs a model with a margin that can be read; use 'auto'")
    return {control: known[control]}
