"""Who is measured. limes and the model itself must run; the others may be absent, with a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from benchmarks.speed import (
    fasttreeshap_path,
    lime_default,
    limes_exact,
    limes_one,
    predict,
    shap_interventional,
    shap_path,
    shapiq_path,
    woodelf_path,
)
from benchmarks.speed.cases import AbsentError, Case, tiny

REQUIRED: list[ModuleType] = [limes_exact, limes_one, predict]
OTHERS: list[ModuleType] = [
    shap_path,
    shapiq_path,
    fasttreeshap_path,
    woodelf_path,
    shap_interventional,
    lime_default,
]


def prepare(competitor: ModuleType, case: Case) -> Callable[[Any], Any]:
    """The competitor's ``explain``, or AbsentError with the reason."""
    with reasons(competitor):
        return competitor.prepare(case)


def load(competitor: ModuleType) -> None:
    """Import and compile its code, so that neither is counted as the preparation of a model."""
    case = tiny()
    with reasons(competitor):
        competitor.prepare(case)(case.X[:10])


@contextmanager
def reasons(competitor: ModuleType) -> Iterator[None]:
    """An error inside another library is the reason why it is absent; our own errors stay errors."""
    try:
        yield
    except AbsentError:
        raise
    except Exception as error:
        if competitor in REQUIRED:
            raise
        raise AbsentError(_reason(error)) from error


def _reason(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"not installed: there is no module {error.name}"
    return f"fails with {type(error).__name__}: {error}".splitlines()[0][:150]
