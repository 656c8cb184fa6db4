"""Checks of options and values that every room shares, advice for their messages, and optional libraries."""

from __future__ import annotations

import difflib
import inspect
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import islice
from numbers import Real
from typing import Any, Never, TypeGuard

import numpy as np

from limes.exceptions import InputError, LimesError, UnknownOptionError

# Names or levels that a message lists
SHOWN = 10


# Userinfo of a URL, also of a path that was one (s3:/user:secret@bank); options whose names speak of secrets
_USERINFO = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+:/+)[^/@\s]*@")
_SECRET = re.compile(r"key|secret|password|passwd|token|signature|^sig$", re.IGNORECASE)
_OPTION = re.compile(r"([?&]([^=&\s]+)=)[^&\s]+")


def is_secret(option: str) -> bool:
    """Return whether the name of a URL's option is one of a credential."""
    return _SECRET.search(option) is not None


def without_credentials(text: str) -> str:
    """Return a text in which URLs have no user, password or other credential."""
    text = _USERINFO.sub(r"\1", text)
    return _OPTION.sub(lambda option: f"{option[1]}..." if is_secret(option[2]) else option[0], text)


def is_count(value: object, least: int = 1) -> TypeGuard[int]:
    """Return whether a value is a whole number, ``least`` or larger, that can be a length."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return bool(least <= value <= sys.maxsize)


def check_count(name: str, value: Any, least: int = 1) -> int:
    if not is_count(value, least):
        raise InputError(f"{name} must be a whole number >= {least}, got {value!r}")
    return int(value)


def as_number(value: Any) -> float:
    """Return a real number as a float; NaN for anything else, and for whole numbers beyond float64."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def check_threshold(name: str, value: Any, is_probability: Callable[[], bool]) -> Any:
    """Return a threshold; refuse one outside 0 and 1 where answers are probabilities."""
    if isinstance(value, Real) and not 0.0 <= float(value) <= 1.0 and is_probability():
        raise InputError(
            f"{name}={value!r}: the answers are probabilities, from 0 to 1: pass a number between these"
        )
    return value


def check_number(name: str, value: Any) -> float:
    number = as_number(value)
    if not math.isfinite(number):
        raise InputError(f"{name} must be a finite number, got {value!r}")
    return number


def check_size(name: str, value: Any, *, zero: bool = False) -> float:
    """Return the value if it is a finite number > 0 (or >= 0)."""
    number = as_number(value)
    if not math.isfinite(number) or number < 0 or (number == 0 and not zero):
        raise InputError(f"{name} must be a finite number {'>=' if zero else '>'} 0, got {value!r}")
    return number


def check_probability(name: str, value: Any) -> float:
    number = as_number(value)
    if not 0 < number < 1:
        raise InputError(f"{name} must be a number between 0 and 1, got {value!r}")
    return number


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        close = difflib.get_close_matches(str(value), choices, n=1)
        advice = f"; did you mean {close[0]!r}?" if close else ""
        raise InputError(f"{name}={value!r} is not one of {list(choices)}{advice}")
    return value


def check_seed(rng: Any) -> int:
    """Convert ``rng`` to an integer seed: None becomes 0; a generator is asked for one number, once."""
    if rng is None:
        return 0
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if isinstance(rng, np.random.SeedSequence):
        return int(rng.generate_state(1, np.uint64)[0])
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise InputError(
            f"rng must be None, a whole number >= 0, a numpy Generator or a SeedSequence, got {rng!r}"
        )
    return int(rng)


def with_options(function: Callable[..., Any], options: Iterable[tuple[str, Any, Any]]) -> inspect.Signature:
    """The signature of a callable, with ``options`` (name, default, type) in place of its ``**keywords``."""
    whole, keyword = inspect.signature(function), inspect.Parameter.KEYWORD_ONLY
    named = [p for p in whole.parameters.values() if p.kind is not p.VAR_KEYWORD]
    shared = [
        inspect.Parameter(name, keyword, default=value, annotation=kind) for name, value, kind in options
    ]
    return whole.replace(parameters=[*named, *shared])


def refuse_unknown(unknown: Mapping[str, Any], owner: type) -> None:
    """Raise for keyword arguments that do not exist, with the nearest one that does."""
    if unknown:
        options = [p for p in inspect.signature(owner).parameters if p != "unknown"]
        raise unknown_option(owner.__name__, next(iter(unknown)), options)


def refuse_in_call(unknown: Mapping[str, Any], owner: type, method: str = "__call__") -> Never:
    """Raise for keyword arguments that a call of an explainer does not take: its constructor may."""
    name = next(iter(unknown))
    options = inspect.signature(owner).parameters
    option = name if name in options else _OTHER_OPTIONS.get(name, "")
    call = "a call" if method == "__call__" else f"{method}()"
    if option in options:
        raise UnknownOptionError(
            f"{call} takes no {name}=: pass {option}= to the explainer, {owner.__name__}(..., {option}=)"
        )
    its = [p for p in inspect.signature(getattr(owner, method)).parameters if p not in ("self", "unknown")]
    raise unknown_option(
        f"{call} of {owner.__name__}" if call == "a call" else f"{owner.__name__}.{call}", name, its
    )


# Options of lime and shap, and their counterparts here
_OTHER_OPTIONS = {
    "kernel_width": "bandwidth",
    "num_samples": "max_calls",
    "nsamples": "max_calls",
    "random_state": "rng",
    "seed": "rng",
    "data": "background",
    "training_data": "background",
    "masker": "background",
    "mode": "output",
    "categorical_features": "categorical",
    "discretizer": "bins",
    "num_features": "max_features",
    "max_display": "max_features",
}
# What to do where an option of lime and shap has no counterpart
_ADVICE = {
    "feature_names": "pass the background as a data frame",
    "class_names": "a model's classes_ name its outputs, and output= chooses among them",
    "num_features": "explanation.top(k) selects features, and plots take max_features=",
}


def unknown_option(owner: str, name: str, options: Sequence[str]) -> UnknownOptionError:
    """Return the error for an option that does not exist, with its counterpart, or the nearest that does."""
    if _OTHER_OPTIONS.get(name) in options:
        return UnknownOptionError(f"{owner} has no option {name!r}; here it is {_OTHER_OPTIONS[name]}=")
    if name in _ADVICE and "background" in options:
        return UnknownOptionError(f"{owner} has no option {name!r}; {_ADVICE[name]}")
    close = difflib.get_close_matches(name, options, n=1)
    advice = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(options)}"
    return UnknownOptionError(f"{owner} has no option {name!r}; {advice}")


def did_you_mean(wanted: Any, names: Iterable[str]) -> str:
    """Return the nearest name, whatever its case, as the end of a sentence; "" if none is near."""
    folded = {str(name).casefold(): name for name in names}
    match = difflib.get_close_matches(str(wanted).casefold(), folded, n=1)
    return f" (did you mean {folded[match[0]]!r}?)" if match else ""


def listed(values: Collection[Any]) -> str:
    shown = [repr(value) for value in islice(values, SHOWN)]
    return ", ".join(shown) + (", ..." if len(values) > SHOWN else "") or "no value at all"


class MissingLibraryError(LimesError, ImportError):
    """An optional library is needed and not installed."""


def require(module: str, purpose: str, *, package: str | None = None) -> Any:
    """Import a module, or raise an error with its purpose and the package to install."""
    try:
        return import_module(module)
    except ImportError as problem:
        raise MissingLibraryError(
            f"{purpose} needs {module}, which could not be imported ({problem}); "
            f"install it: pip install {package or module}"
        ) from problem
