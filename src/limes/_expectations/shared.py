"""What expectations have in common whose answers serve all explained rows, whatever the law is."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from limes._expectations.sampling import Progress


@runtime_checkable
class SharedAnswers(Protocol):
    """Answers of a model that are asked for once."""

    @property
    def pool_calls(self) -> int:
        """Number of rows that have been answered for all explained rows."""
        ...

    def fill(self, progress: Progress, *, workers: int = 1) -> None:
        """Ask the model for all answers that are missing; what was answered is kept if it fails."""
        ...
