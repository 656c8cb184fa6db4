"""Options of ``SparseExplainer``, checked: what goes with what, and what to pass in the place of the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._checks import check_choice, check_count, check_size
from limes._rules.domain import Domain
from limes._rules.literals import Literals, SignRows, TableRows, rows_of
from limes._rules.problem import AnswerRange
from limes._rules.solvers import SOLVERS
from limes.exceptions import InputError

# Errors that facts minimise, and that certificates bound
OBJECTIVES = ("fidelity", "precision", "class", "certain")


def rows_with_domain(
    literals: Literals | None, domain: Domain | None, neighbourhood: str | None, law: str, values: Any
) -> SignRows:
    """Return how rows are taken; without literals by those of the domain's table."""
    if literals is None and domain is not None:
        literals = Literals.of_table(domain.table)
    rows = rows_of(literals, neighbourhood, law, values)
    if domain is not None and not isinstance(rows, TableRows):
        raise InputError(
            "domain= says which rows of a table are possible: leave out neighbourhood='flips', whose rows "
            "are literals"
        )
    return rows


def check_certain(
    k: int | str | None, error: float | None, certify: str | None, solver: str, intercept: object
) -> tuple[None, float | None, None]:
    """Return the options of rules that are to hold for certain: no k, the largest change, no bound."""
    if k is not None:
        raise InputError(
            "objective='certain' finds the fewest facts that are sufficient: leave out k=, and exclude= what "
            "they must not use"
        )
    if certify is not None or solver != "projection" or intercept is not True:
        raise InputError("objective='certain' takes no certify=, solver= or intercept=: leave them out")
    return None, None if error is None else check_size("error", error, zero=True), None


def check_draws(law: str, objective: str, spread: float | None) -> None:
    if objective not in ("precision", "class"):
        raise InputError(
            f"law={law!r} is for rules that are to hold: pass objective='precision' or 'class'; "
            f"got {objective!r}, which goes with law='literal' or 'count'"
        )
    if spread is not None:
        raise InputError(f"spread= has no effect under law={law!r}, in which no column keeps its value")


def check_scale(scale: Any) -> AnswerRange | None:
    if isinstance(scale, str) and scale == "auto":
        return None
    if scale is None:
        return AnswerRange(-1.0, 1.0, "scale=")
    try:
        low, high = (float(end) for end in scale)
    except (TypeError, ValueError) as problem:
        raise InputError(f"scale must be 'auto', None or (low, high), got {scale!r}") from problem
    if not (np.isfinite([low, high]).all() and low < high):
        raise InputError(f"scale=(low, high) needs finite numbers, low < high; got {scale!r}")
    return AnswerRange(low, high, "scale=")


def check_literals(k: int | str, error: float | None) -> tuple[int | None, float | None]:
    """Return the number of literals, None for "smallest"; and the error that the latter has to meet."""
    if k == "smallest":
        if error is None:
            raise InputError("k='smallest' needs error=, the bound that the explanation has to meet")
        return None, check_size("error", error)
    if error is not None:
        raise InputError("error= goes with k='smallest'")
    if isinstance(k, str):
        raise InputError(f"k must be a whole number >= 1 or 'smallest', got {k!r}")
    return check_count("k", k), None


def check_errors(
    objective: str | None, certify: str | None, *, is_smallest: bool, is_free: bool
) -> tuple[str, str]:
    """Return the error that literals minimise and the one that is certified: the same for the fewest.

    Rules of some solvers minimise their fidelity error; ``is_free`` excludes these.
    """
    for name, error in (("objective", objective), ("certify", certify)):
        if error is not None:
            check_choice(name, error, OBJECTIVES)
    certified = certify or objective or "precision"
    if objective is None:
        objective = certified if is_smallest and (is_free or certified == "class") else "fidelity"
    # rules of least fidelity error may be certified by their precision, too, and say so
    if certified != objective and (objective, certified) != ("fidelity", "precision"):
        raise InputError(
            f"objective={objective!r} and certify={certified!r} are two errors, and the fewest literals for "
            "one are not those for the other: leave out certify="
        )
    return objective, certified


def check_intercept(intercept: object) -> bool:
    if not isinstance(intercept, bool):
        raise InputError(f"intercept must be True or False, got {intercept!r}")
    return intercept


def check_box(box: Any, intercept: bool, solver: str) -> float | None:
    if box is None:
        return None
    if intercept and not SOLVERS[solver].boxed:
        raise InputError("box= bounds the weights of the paper's form: pass intercept=False, too")
    return check_size("box", box)
