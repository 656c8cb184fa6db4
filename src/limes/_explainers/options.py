"""The options of sampling that explainers share, documented and checked once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, TypeVar, get_type_hints

import numpy as np

from limes._checks import (
    as_number,
    check_choice,
    check_count,
    check_seed,
    check_size,
    refuse_unknown,
    with_options,
)
from limes._sampling.controls import Control
from limes._sampling.least_squares import Tolerance
from limes._sampling.sampled import Sampling
from limes.exceptions import InputError
from limes.models._calling.caller import Retry

# Most answers behind an explanation where the user sets no limit: those of one row, shared or its own, and
# those that rows share until a stated tolerance is met, or where a read form answers in the model's place
MAX_CALLS, MAX_SHARED = 4096, 16_384
# Columns for which these are too few for both coefficients and contributions
_WIDE = 64


def unasked_calls(columns: int) -> tuple[int, int]:
    """Most answers of a pool, and for a row's contributions: together fewer than the 5,000 that lime asks."""
    return (2048, 2800) if columns <= _WIDE else (MAX_CALLS, 800)


# Why a model that could be read is sampled
METHODS = ("auto", "exact", "sampled")
REQUESTED = "method='sampled' asks for it"


# In the call; in the call where they take calls of the model, else when they are first shown; only when they
# are read
When = Literal["now", "shown", "read"]


@dataclass(frozen=True)
class Request:
    """The readings that are asked for of some rows or of one input."""

    contributions: When
    coefficients: bool = True

    @classmethod
    def of_option(cls, contributions: str | bool) -> Self:
        """The request of a call, by the explainer's option "auto", True or False."""
        if contributions == "auto":
            return cls("shown")
        return cls("now" if contributions else "read")

    @property
    def may_ask(self) -> bool:
        """Whether contributions may take calls of the model."""
        return self.contributions != "read"


# Contributions, and no coefficients
ACCOUNT = Request("now", coefficients=False)


@dataclass(frozen=True)
class SamplingOptions:
    """How a model that cannot be read is sampled.

    Parameters
    ----------
    method
        "exact" (an error where the model cannot be read), "sampled", or "auto". Texts and images whose 2^d
        subsets are no more than ``max_calls``, less 8 for checks, are enumerated: exact for any model.
    tolerance
        Sampling stops when no coefficient's standard error is larger: a number in the output's units, or a
        share of the largest coefficient, "5%". None spends the budget, and ``explanation.converged`` judges
        it by 1.5 % of the largest coefficient.
    max_calls
        Most answers of the model that one row or input asks for in a call: for its prediction, checks,
        coefficients and contributions, whether other rows share them or not. ``model_calls`` and
        ``shared_calls`` add up to what was asked. Of a table half of what checks leave is for contributions,
        and of few calls the first, 8 a column and 96 at most (all for coefficients with
        ``contributions=False``); inputs draw sets that serve both. What is read later has what is left, or is
        refused. What was read of a model is compared with it beside this. Rows of a table share one pool of
        answers if ``weights="bins"``, and enough of the pool lies near the explained row; a row takes the
        smallest pool that a first look at 1,024 answers predicts to be accurate enough, or the next larger
        one until it is. None allows a pool 2,048 answers, 4,096 of more than 64 columns, and a row 4,096
        alone: a pool doubles until standard errors are below 1.5 % of the largest coefficient (less than one
        sees in a picture). With a ``tolerance``, or where a form that was read answers, it grows up to
        16,384.
        ``explainer.fill_pool()``, and tables explained by several processes, ask for the whole pool at once.
        Texts and images of more than half as many features have coefficients estimated one by one, with
        wide errors, infinite from fewer than some 60 calls. Contributions, of tables too, have finite errors
        from 16 on.
    control
        Readable model that takes variance away from the sampler: one of ``controls``, or "auto".
        ``explanation.controls`` names the one that was used.
    rng
        Seed of the sampler. A result depends on the seed and the explained row alone; None is a fixed seed.
    batch_size
        Rows, texts or images handed to the model at once, at most.
    retry
        (error, attempt) -> seconds to wait before a failed batch is tried again, or None to give up; attempts
        count from 1. None never tries again.
    contributions
        "auto", True or False: when ``explanation.contributions`` are computed, see
        :class:`limes.TabularExplainer`.
    threshold
        The number that decides between two outcomes, in the output's units: a row has a warning where
        surrogate and model lie on different sides of it. None is 0.5 for probabilities (of two classes the
        second's) and 0 for margins.
    controls
        Names that ``control`` may take, beside "auto".

    Raises
    ------
    InputError
        If one of them is not usable.
    """

    method: str = "auto"
    tolerance: float | str | None = None
    max_calls: int | None = None
    control: str = "auto"
    rng: int | np.random.Generator | np.random.SeedSequence | None = None
    batch_size: int = 4096
    retry: Retry | None = None
    contributions: str | bool = "auto"
    threshold: float | None = None
    controls: Sequence[str] = ()
    sampling: Sampling = field(init=False)  # these options as the sampler takes them

    def __post_init__(self) -> None:
        check_choice("method", self.method, METHODS)
        check_choice("control", self.control, ("auto", *self.controls))
        if self.retry is not None and not callable(self.retry):
            raise InputError(
                "retry must be a callable (error, attempt) -> seconds to wait, or None to give up; got "
                f"{self.retry!r}"
            )
        if not (isinstance(self.contributions, bool) or self.contributions == "auto"):
            raise InputError(f"contributions={self.contributions!r} is not known; use 'auto', True or False")
        if self.threshold is not None and not math.isfinite(as_number(self.threshold)):
            raise InputError(f"threshold must be a finite number, or None, got {self.threshold!r}")
        most = None if self.max_calls is None else check_count("max_calls", self.max_calls)
        sampling = Sampling(
            max_calls=MAX_CALLS if most is None else most,
            max_shared=MAX_SHARED if most is None else most,
            tolerance=_tolerance(self.tolerance),
            seed=check_seed(self.rng),
            batch_size=check_count("batch_size", self.batch_size),
            retry=self.retry,
        )
        object.__setattr__(self, "sampling", sampling)

    @property
    def has_limits(self) -> bool:
        """Whether the user says how many calls, or which accuracy."""
        return self.max_calls is not None or self.tolerance is not None

    @classmethod
    def of(cls, options: Mapping[str, Any], controls: Sequence[str]) -> SamplingOptions:
        """Take those of an explainer's options that are about sampling."""
        return cls(**{name: options[name] for name in SamplingKeywords.__annotations__}, controls=controls)

    def with_controls(self, available: Mapping[str, Control], auto: Sequence[str] = ()) -> Sampling:
        """The sampler's options with its candidates for the control variate: for "auto" those of ``auto``.

        If that is empty, all that are available are candidates.
        """
        names = tuple(auto or available) if self.control == "auto" else (self.control,)
        if not available.keys() >= set(names):
            raise InputError("control='margin' needs a model with a margin that can be read; use 'auto'")
        return replace(self.sampling, controls={name: available[name] for name in names})


class SamplingKeywords(TypedDict, total=False):
    """The options of `SamplingOptions` that explainers take."""

    method: str
    tolerance: float | str | None
    max_calls: int | None
    control: str
    rng: int | np.random.Generator | np.random.SeedSequence | None
    batch_size: int
    retry: Retry | None
    contributions: str | bool
    threshold: float | None


class MaskedKeywords(SamplingKeywords, total=False):
    """The options of explainers of images, series and several inputs."""

    output: Any
    top: int
    labels: Sequence[str] | str | Path | None
    link: str | None


_DEFAULTS: Mapping[str, Any] = {
    **{name: SamplingOptions.__dataclass_fields__[name].default for name in SamplingKeywords.__annotations__},
    "output": None,
    "top": 5,
    "labels": None,
    "link": "auto",
}
Explainer = TypeVar("Explainer", bound=type)


def takes(keywords: type, **defaults: Any) -> Callable[[Explainer], Explainer]:
    """Write options that explainers share into the signature of one, which may have other ``defaults``."""

    def decorate(explainer: Explainer) -> Explainer:
        values = {**_DEFAULTS, **defaults}
        options = ((name, values[name], kind) for name, kind in get_type_hints(keywords).items())
        # of the constructor: a class may have a separate __new__
        constructor = partial(vars(explainer)["__init__"], None)
        explainer.__signature__ = with_options(constructor, options)  # type: ignore[attr-defined]
        return explainer

    return decorate


def complete(explainer: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Add the defaults of options that `takes` wrote into a signature, and refuse unknown ones."""
    shared = {
        name: option.default for name, option in signature(explainer).parameters.items() if name in _DEFAULTS
    }
    refuse_unknown({name: value for name, value in options.items() if name not in shared}, explainer)
    return {**shared, **options}


def _tolerance(tolerance: Any) -> Tolerance | None:
    """Convert None, a number in the output's units, or a text such as "5%" of the largest coefficient."""
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
