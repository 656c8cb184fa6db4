"""Detects that a model was fitted again since it was read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import ReadMismatchError
from limes.explainers.verification import check_agreement
from limes.models.identity import ModelState, qualified_name, state_of
from limes.models.reading import READERS

# Explained rows at which a model is asked whose state does not show a new fit
_ROWS = 64
# Relative rounding of answers that were added up in float32
_REFIT_ROUNDING = 1e-5


def few_rows(rows: Floats) -> Floats:
    """Return at most 64 of the rows, evenly spread."""
    return rows[:: -(-len(rows) // _ROWS)]


class Watch:
    """The state of a model when it was read, and the answers of its form.

    Only models of a known class are watched: any other object may change at each call without being fitted.

    Parameters
    ----------
    model
        The model.
    ask, predict
        The model's own answers, and those of its form; None if it could not be read.
    allowed
        Largest difference of the two, among answers as large as the background's.
    """

    def __init__(
        self,
        model: Any,
        *,
        ask: Callable[[Floats], Floats] | None = None,
        predict: Callable[[Floats], Floats] | None = None,
        allowed: float = 0.0,
    ) -> None:
        self.model = model
        self._ask = ask
        self._predict = predict
        self._allowed = allowed
        self._state = self._present()

    def unchanged(self, rows: Floats) -> bool:
        """Return whether the model is the one that was read, as far as explained rows (n, d) show it."""
        present = self._present()
        if self._state is None:  # the copy of a model has its own state
            self._state = present
        if self._state is None or present is None:
            return True
        if not self._state.equals(present):
            return False
        return present.complete or self._agrees(few_rows(rows))

    def _agrees(self, rows: Floats) -> bool:
        if self._ask is None or self._predict is None:
            return True
        answers, computed = self._ask(rows), self._predict(rows)
        # rows far from the background may have larger answers
        allowed = self._allowed + _REFIT_ROUNDING * float(np.abs(answers).max())
        try:
            check_agreement(answers, computed, allowed, str)
        except ReadMismatchError:
            return False
        return True

    def _present(self) -> ModelState | None:
        return state_of(self.model) if qualified_name(type(self.model)) in READERS else None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_state": None}
