"""From computed rows to results: several inputs, partial results, fields of an explanation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Event
from typing import Any, TypeVar

import numpy as np

from limes._arrays import Ints
from limes._bars import Progress, progress_of
from limes._explanation import Explanation
from limes._pipeline import RefusedRowsError
from limes._threads import in_workers
from limes.exceptions import InputError, Interrupted, ModelError

# Inputs whose explanation was cut short, of which the model's answers are kept
UNFINISHED = 16

Item = TypeVar("Item")
Result = TypeVar("Result")


def compute_each(
    items: Sequence[Item], compute: Callable[[Item], Result], *, progress: Progress, workers: int = 1
) -> tuple[list[Result | None], BaseException | None]:
    """Return a result per item, None for those that were not finished, and the error that ended it, if any.

    ``workers`` items are computed at the same time, each in its own thread; the first one before all others,
    so that what is learnt at it is the same however many there are.
    """
    results: list[Result | None] = [None] * len(items)
    stop = Event()
    try:
        with progress(len(items)) as advance:

            def step(i: int) -> None:
                if not stop.is_set():
                    results[i] = compute(items[i])
                    advance(1)

            for positions in (range(len(items))[:1], range(len(items))[1:]):
                in_workers(step, positions, workers, stop)
    except (ModelError, KeyboardInterrupt) as error:
        return results, error
    return results, None


def explain_each(
    items: Sequence[Item],
    explain: Callable[[Item], Explanation],
    *,
    progress: bool,
    workers: int = 1,
    name: str,
) -> list[Explanation]:
    """Explain several texts or images; after a failure the explanations so far are the error's ``partial``.

    Raises
    ------
    ModelError
        If the model fails.
    Interrupted
        If the user stops it.
    """
    results, error = compute_each(items, explain, progress=progress_of(shown=progress), workers=workers)
    explanations = [result for result in results if result is not None]
    if error is None:
        return explanations
    if isinstance(error, ModelError):
        error.partial = explanations
        raise error
    raise Interrupted(
        f"stopped: {len(explanations)} of {len(items)} {name} are explained (in this error's partial)",
        explanations,
    ) from None


def interrupted(cause: BaseException | None, partial: Explanation | None, rows: int) -> BaseException:
    """Return the error for a table that was cut short, with the explanation of the rows so far."""
    count = 0 if partial is None else len(partial)
    state = (
        f"explained so far, in part or in full: {count} of {rows} rows (in this error's partial); a repeated "
        "call continues from the calls made"
    )
    if isinstance(cause, ModelError):
        error = ModelError(f"{cause}; {state}", batch=cause.batch)
        error.partial = partial
        return error
    return Interrupted(f"stopped: {state}", partial)


def refused(refusal: RefusedRowsError, ids: Sequence[Any], partial: Explanation | None) -> ModelError:
    """Return the error for a table of which the expectation refuses rows; others are its ``partial``."""
    row, why = next(iter(refusal.reasons.items()))
    others = len(refusal.reasons) - 1
    more = f", and {others} more rows are refused" if others else ""
    error = ModelError(
        f"row {ids[row]!r} has no exact expectation: {why}{more}; pass method='auto', which samples such "
        "rows, or errors='row', which skips them"
    )
    error.partial = partial
    return error


def reason_of(refusals: Mapping[int, str], rows: int) -> str:
    """Return why some rows of a read model are sampled; "" if none is."""
    if not refusals:
        return ""
    first = next(iter(refusals.values()))
    return (
        f"{len(refusals):,} of {rows:,} rows have no exact expectation and are sampled from the read "
        f"model: {first}"
    )


def output_positions(explanation: Explanation, output: Ints, outputs: Sequence[str]) -> Ints:
    """Return the positions of an explanation's chosen outputs among all outputs of the model."""
    unknown = [name for name in explanation.output_names if name not in outputs]
    if unknown:
        raise InputError(f"this explainer has no output {unknown[0]!r}, only {list(outputs)}")
    return np.array([outputs.index(explanation.output_names[k]) for k in output])
