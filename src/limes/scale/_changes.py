"""The account of a row's change between two runs: the later base and contributions, less the earlier."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import narwhals as nw
import numpy as np

from limes._checks import listed
from limes.exceptions import InputError
from limes.scale._frames import ERRORS, numbers_of
from limes.scale._summary import features_in, run_and_parts


@dataclass(frozen=True)
class RowChange:
    """One output of a row in two runs, earlier and later; base and contributions add up to predictions.

    Attributes
    ----------
    row, output
        Names.
    prediction, base
        In the earlier and the later run, in the output's units.
    contributions
        Those of each column in both, 0 in a run that lacks the column.
    errors
        Standard errors of their changes, at most: those of both runs together, 0 where both are exact.

    Examples
    --------
    >>> from limes.scale import RowChange
    >>> change = RowChange("A0117", "risk", (0.3, 0.5), (0.2, 0.2), {"debt": (0.1, 0.25), "age": (0.0, 0.05)})
    >>> [(name, round(size, 2)) for name, size in change.largest]
    [('debt', 0.15), ('age', 0.05)]
    """

    row: str
    output: str
    prediction: tuple[float, float]
    base: tuple[float, float]
    contributions: Mapping[str, tuple[float, float]]
    errors: Mapping[str, float] = field(default_factory=dict)

    @property
    def largest(self) -> list[tuple[str, float]]:
        """Return what each column adds to the change, the largest first."""
        changes = [(name, later - earlier) for name, (earlier, later) in self.contributions.items()]
        return sorted(changes, key=lambda pair: -abs(pair[1]))

    def to_json(self) -> str:
        """All fields as JSON."""
        return json.dumps(asdict(self), indent=1)


def row_changes(earlier: Any, later: Any, row: str) -> list[RowChange]:
    """Return how the accounts of one row differ between two finished runs of ``limes explain-table``.

    Parameters
    ----------
    earlier, later
        The output folders, or URLs of a store.
    row
        The text of the row's key, of several keys with commas between them; its position without a key.

    Raises
    ------
    InputError
        A folder is not finished, has no contributions, or not this row, or several rows with this key, or
        the row has an error there.

    Examples
    --------
    >>> (change,) = limes.scale.row_changes("monday", "tuesday", "A0117")  # doctest: +SKIP
    >>> change.prediction, change.largest[0]  # doctest: +SKIP
    ((0.31, 0.42), ('utilisation', 0.08))
    """
    first, second = (_accounts(folder, row) for folder in (earlier, later))
    shared = [output for output in first if output in second]
    if not shared:
        raise InputError(f"row {row!r} has other outputs in both runs: {listed(first)} and {listed(second)}")
    changes = []
    for output in shared:
        (prediction, base, before, error), (prediction_later, base_later, after, error_later) = (
            first[output],
            second[output],
        )
        names = [*before, *(name for name in after if name not in before)]
        # a column that a run lacks contributes nothing there
        contributions = {name: (before.get(name, 0.0), after.get(name, 0.0)) for name in names}
        levels = (prediction, prediction_later), (base, base_later)
        # valid however the two are correlated: they may share draws
        errors = {name: error.get(name, 0.0) + error_later.get(name, 0.0) for name in names}
        changes.append(RowChange(row, output, *levels, contributions, errors))
    return changes


def _accounts(folder: Any, row: str) -> dict[str, tuple[float, float, dict[str, float], dict[str, float]]]:
    """Prediction, base, contributions and their errors of each output of a row."""
    lines: Any = None
    for frame in run_and_parts(folder)[1]:
        # columns begin with "row", the keys, "output": without keys the position is the key
        keys = frame.columns[1 : frame.columns.index("output")] or ["row"]
        texts = zip(*(map(str, frame[key].to_list()) for key in keys), strict=True)
        its = frame.filter([",".join(cells) == row for cells in texts])
        if len(its) and (lines is not None or its["row"].n_unique() > 1):
            places = dict.fromkeys(
                [*([] if lines is None else lines["row"].to_list()), *its["row"].to_list()]
            )
            raise InputError(
                f"{folder} has several rows {row!r}, at {listed([*places])} of the table: run explain-table "
                "with a further --key, by which they differ"
            )
        lines = its if len(its) else lines
    if lines is None:
        raise InputError(f"{folder} has no row {row!r}: pass the text of its key")
    return dict(_account_of(lines, folder, row))


def _account_of(lines: Any, folder: Any, row: str) -> Any:
    errors = lines.filter(~nw.col("error").is_null())["error"].to_list()
    if errors:
        raise InputError(f"row {row!r} has no explanation in {folder}: {errors[0]}")
    features = features_in(lines)
    for output in lines["output"].unique(maintain_order=True).to_list():
        its = lines.filter(nw.col("output") == output)
        numbers = numbers_of(its, "contribution", features)
        if numbers is None or np.isnan(numbers).any():
            raise InputError(f"{folder} has no contributions: run explain-table with --contributions")
        levels = (float(its[name].to_list()[0]) for name in ("prediction", "base"))
        errors = numbers_of(its, ERRORS["contribution"], features)
        errors = np.zeros_like(numbers) if errors is None else errors
        pairs = (dict(zip(features, cells[0].tolist(), strict=True)) for cells in (numbers, errors))
        yield output, (*levels, *pairs)
