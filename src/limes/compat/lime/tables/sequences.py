"""Sequences as rows of a table: a column for each value at each time step, the last step is t-0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Objects
from limes.exceptions import InputError

__all__ = ["Asked", "Sequences"]


@dataclass(frozen=True)
class Sequences:
    """Arrays (n, timesteps, features) and their tables (n, features · timesteps), a feature's steps together.

    Examples
    --------
    >>> sequences = Sequences(timesteps=2, features=1)
    >>> sequences.names(["load"])
    ['load_t-1', 'load_t-0']
    """

    timesteps: int
    features: int

    @classmethod
    def of(cls, training_data: Any) -> Sequences:
        """What an array holds.

        Raises
        ------
        InputError
            If it has not three axes.
        """
        shape = np.shape(training_data)
        if len(shape) != 3:
            raise InputError(
                f"training_data has shape {shape}, expected three axes: (rows, timesteps, features)"
            )
        return cls(shape[1], shape[2])

    def names(self, names: Sequence[Any] | None) -> list[str]:
        """Names of the table's columns; features are numbered unless they have names.

        Raises
        ------
        InputError
            Another number of names.
        """
        known = range(self.features) if names is None else names
        if len(known) != self.features:
            raise InputError(
                f"feature_names has {len(known)} names, but training_data has {self.features} features a step"
            )
        return [f"{name}_t-{self.timesteps - 1 - t}" for name in known for t in range(self.timesteps)]

    def flat(self, rows: Any) -> Objects:
        """Rows of a table; one sequence (timesteps, features) gives one.

        Raises
        ------
        InputError
            Sequences of another shape.
        """
        array = np.asarray(rows)
        several = array[None] if array.ndim == 2 else array
        if several.shape[1:] != (self.timesteps, self.features):
            raise InputError(
                f"data_row has shape {array.shape}, expected ({self.timesteps}, {self.features}): "
                "timesteps, features"
            )
        return several.transpose(0, 2, 1).reshape(len(several), -1)

    def folded(self, table: Objects) -> Objects:
        """Sequences (n, timesteps, features) of a table's rows."""
        return table.reshape(len(table), self.features, self.timesteps).transpose(0, 2, 1)


@dataclass(frozen=True)
class Asked:
    """A function of sequences as a function of their table; equal where function and shape are."""

    predict_fn: Callable[[Any], Any]
    sequences: Sequences

    def __call__(self, table: Any) -> Any:
        """What the function answers."""
        return self.predict_fn(self.sequences.folded(np.asarray(table)))
