"""Input and results of a diagnostic: one output of one explained row; findings and measures.

A *measure* is a number that is always reported. A *finding* has a number, a sentence with its meaning and an
advice, and is reported only where something is wrong:

============== ================================================== =========== ===========
kind           quantity                                           warning     note
============== ================================================== =========== ===========
cancellation   share of Var_w f between a column's cells          ≥ 0.2       ≥ 0.1
cancellation   share of that which the coefficient captures; a    ≤ 0.05      ≤ 0.1
               note: less than it would of a linear effect, too
alignment      effect of the column alone, as a share of β        ≤ 0.1
bandwidth      factor between ν and the sign change               ≤ 3         ≤ 5
edge           standard deviations to the next bin                ≤ 0.001     ≤ 0.002
fidelity       R², where single columns capture less than half    < 0.25      < 0.5
local error    standard deviations of the model                   > 2         > 1.5
dependence     a coefficient's difference between the laws,
               each in units of its largest, or of a fifth of
               the other law's                                    ≥ 0.8       ≥ 0.5
shrinkage      of the largest coefficient                                     ≥ 0.1
sample size    effective rows for each coefficient                            < 10
interaction    Σ|last - alone| / Σ|φ| of exact contributions                  ≥ 1.5
============== ================================================== =========== ===========

A sampled number must pass its threshold by two standard errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, Literal, TypeVar

import numpy as np

from limes._arrays import ROUNDING, EqualByValue, Floats, Ints
from limes._explanation import Explanation, view
from limes._explanation.view import PARTIAL_FIT, output_position, output_title, row_label


@dataclass(frozen=True, kw_only=True, eq=False)
class RowOutput:
    """One output of one explained row; values and errors are (d,)."""

    names: tuple[str, ...]
    conditions: tuple[str, ...]
    output: str
    values: Floats
    errors: Floats
    intercept: float
    prediction: float
    surrogate: float
    surrogate_error: float
    fit: Callable[[], tuple[float, float]]  # R² and its error, which some forms take long for
    title: str = ""  # name of the output in texts
    label: str = ""  # name of the row in texts

    @property
    def fidelity(self) -> float:
        return self._fit[0]

    @property
    def fidelity_error(self) -> float:
        return self._fit[1]

    @cached_property
    def _fit(self) -> tuple[float, float]:
        return self.fit()

    @property
    def heading(self) -> str:
        """The row, and its output unless it is the only one of a model, without a name."""
        return self.label if self.title == "prediction" else f"{self.label}, {self.title}"

    @property
    def rounding(self) -> float:
        # the largest coefficient that rounding may cause where the model does not vary
        return ROUNDING * max(abs(self.prediction), abs(self.intercept), abs(self.surrogate))


def row_outputs(explanation: Explanation, output: Ints) -> tuple[RowOutput, ...]:
    """The part of an explanation that concerns each row's output, given by its position (n,)."""
    n = len(explanation)
    values, errors = (
        a.reshape(n, a.shape[1], -1)
        for a in (explanation.coefficients.values, explanation.coefficients.standard_errors)
    )

    def entry(array: Any, i: int) -> float:
        return 0.0 if array is None else float(array.reshape(n, -1)[i, output[i]])

    def fit(i: int) -> tuple[float, float]:
        return entry(explanation.fidelity, i), entry(explanation.fidelity_errors, i)

    return tuple(
        RowOutput(
            names=explanation.feature_names,
            conditions=explanation.conditions[i],
            output=explanation.output_names[output[i]],
            values=values[i, :, output[i]],
            errors=errors[i, :, output[i]],
            intercept=entry(explanation.coefficients.intercepts, i),
            prediction=entry(explanation.predictions, i),
            surrogate=entry(explanation.coefficients.surrogate_predictions, i),
            surrogate_error=entry(explanation.coefficients.surrogate_errors, i),
            fit=partial(fit, i),
            title=output_title(explanation, int(output[i])),
            label=row_label(explanation, i),
        )
        for i in range(n)
    )


def output_positions(explanation: Explanation, output: str | int | None) -> Ints:
    """The position of each row's output, (n,): of `output`, or if None of the one shown first."""
    rows = range(len(explanation))
    return np.array([output_position(explanation, output, i) for i in rows], dtype=np.int64)


Severity = Literal["note", "warning"]
SEVERITIES: tuple[Severity, ...] = ("warning", "note")
# What a number is about: contributions, LIME's coefficients, or "" both, as codes of warnings are
Reading = Literal["", "contributions", "coefficients"]


def worst(passes: Callable[[Severity], bool]) -> Severity | None:
    return next((severity for severity in SEVERITIES if passes(severity)), None)


Levels = Mapping[Severity, float]

# A feature matters if its cells explain this share of the model's variance ...
MATTERS: Levels = {"warning": view.MATTERS, "note": 0.1}
# ... and is hidden if the coefficient captures at most this share of that. Bins hide every effect in an inner
# cell: a note also needs at most this part of what it would capture of a linear effect in that cell, or bins
# that hide nearly all of the model's variance
CAPTURED: Levels = {"warning": view.CAPTURED, "note": 0.1}
OF_LINEAR = 0.25
NEARLY_ALL = 0.9
# Distances in standard deviations: below the precision of measurements
EDGE: Levels = {"warning": 1e-3, "note": 2e-3}
# Change of a coefficient beyond the edge, as a share of the largest one
CHANGES: Levels = {"warning": 0.25, "note": 0.5}
# R² below this; where whole effects of single columns capture half, only the cells make R² low
POOR: Levels = {"warning": 0.25, "note": PARTIAL_FIT}
ADDITIVE = 0.5
# Local error above this, in standard deviations of the model under w
FAR: Levels = {"warning": 2.0, "note": 1.5}
# Difference of a coefficient between the product and the joint law, each in units of its largest one: at 1 a
# feature that leads under one law is nothing under the other. Averages over rows that do not occur are
# flatter, but not by any factor: a unit is at least this part of the other law's, so that ten times as large
# coefficients are a note
APART: Levels = {"warning": 0.8, "note": 0.5}
SAME_SCALE = 0.2
# Difference of lime's coefficients, as a share of the largest one
SHRUNK = 0.1
# Sum of what columns add last less what they add alone, in sizes, as a multiple of that of contributions; the
# pairs that are then named
ORDER, PAIRS = 1.5, 3
# Effective rows for each coefficient
ROWS = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding(EqualByValue):
    """Something that a reader of the explanation should consider.

    Attributes
    ----------
    kind
        Name of the diagnostic.
    severity
        "warning": without it the explanation misleads. "note": worth knowing.
    features
        Names of the features concerned; empty if it is about the whole explanation.
    number, error, unit
        The measurement, its standard error (0 where exact), and its quantity in words.
    sentence, advice
        The meaning of the measurement, and what to do.
    reading
        What it is about: "contributions", LIME's "coefficients", or "" both.

    Examples
    --------
    >>> Finding(kind="edge", severity="note", features=("bmi",), number=0.0, error=0.0, unit="",
    ...         sentence="bmi lies on an edge.", advice="Report both sides.").code
    'finding-edge'
    """

    kind: str
    severity: Severity
    features: tuple[str, ...] = ()
    number: float
    error: float = 0.0
    unit: str
    sentence: str
    advice: str
    reading: Reading = "coefficients"

    @property
    def title(self) -> str:
        """The kind, under the word LIME where it is about coefficients alone."""
        return in_lime(self.kind, self.reading)

    @property
    def code(self) -> str:
        """The anchor of the finding's section in docs/findings.md: "finding-local-error"."""
        return f"finding-{self.kind.replace(' ', '-')}"

    @property
    def url(self) -> str:
        """The address of that section, "" until the package states where its documentation is."""
        return f"{home}/findings.html#{self.code}" if (home := documentation()) else ""


@cache
def documentation() -> str:
    """The documentation's address, of the package's metadata (``[project.urls]``); "" without one."""
    from importlib.metadata import PackageNotFoundError, metadata  # loads slowly

    try:
        urls = metadata("limes").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    addresses: dict[str, str] = dict(url.split(", ", 1) for url in urls)
    return addresses.get("Documentation", "").rstrip("/")


@dataclass(frozen=True, eq=False)
class Measure(EqualByValue):
    """A number that is reported for every row: its name, its error (0 where exact), and how to read it."""

    name: str
    value: float
    error: float
    remark: str
    reading: Reading = "coefficients"

    @property
    def title(self) -> str:
        """The name, under the word LIME where it is about coefficients alone."""
        return in_lime(self.name, self.reading)


def in_lime(name: str, reading: Reading) -> str:
    return f"LIME: {name}" if reading == "coefficients" else name


Part = TypeVar("Part", bound=Finding | Measure)


def by_reading(parts: Iterable[Part]) -> tuple[list[Part], list[Part]]:
    """Return what is about contributions, or both readings; and what is about LIME's coefficients alone."""
    lists: tuple[list[Part], list[Part]] = ([], [])
    for part in parts:
        lists[part.reading == "coefficients"].append(part)
    return lists


def enumerate_names(names: Sequence[str], most: int = 3) -> str:
    head = ", ".join(names[:most])
    return head if len(names) <= most else f"{head} and {len(names) - most} more"
