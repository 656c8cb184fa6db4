"""Whether the model is a function: how far its answers to one input are apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from limes._diagnostics.context import DiagnosticContext
from limes._diagnostics.finding import Finding, Measure
from limes.models._calling.caller import spread_of_answers


@dataclass(frozen=True)
class Repetition:
    """Largest difference of two answers to one input; 0 for a function."""

    spread: float

    def measures(self) -> Iterator[Measure]:
        yield from ()

    def findings(self) -> Iterator[Finding]:
        if self.spread > 0.0:
            yield Finding(
                kind="repetition",
                severity="warning",
                features=(),
                number=self.spread,
                error=0.0,
                unit="largest difference of two answers to the same input",
                sentence=(
                    f"The model answered differently for the same input (up to {self.spread:.3g}): it is "
                    "random, or what it answers depends on the rows beside it."
                ),
                advice=(
                    "Call model.eval() if it is a network, fix its seed, and let nothing be fitted to the "
                    "batch in predict; then explain again."
                ),
            )


def repetitions(context: DiagnosticContext) -> list[Repetition]:
    """Ask a few inputs twice; the model is the same for all rows."""
    return [Repetition(spread_of_answers(context.predict, context.inputs))] * len(context)
