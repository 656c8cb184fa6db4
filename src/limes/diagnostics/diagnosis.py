"""A diagnosis: what all diagnostics have seen at each row, and what of it is a finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from limes._arrays import Floats
from limes.diagnostics.bandwidth import Path
from limes.diagnostics.cancellation import Cancellation, Profile
from limes.diagnostics.edges import Edge
from limes.diagnostics.facts import Facts
from limes.diagnostics.finding import Finding, Measure, Reading, ordered
from limes.diagnostics.fit import Fit
from limes.diagnostics.shrinkage import Shrinkage

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from limes.show.diagnosis.plots import DiagnosisPlots


@dataclass(frozen=True, eq=False)
class RowDiagnosis:
    """One row: the readings of each diagnostic, by its name."""

    number: int
    facts: Facts
    readings: Mapping[str, Reading]

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Warnings first."""
        return ordered(finding for reading in self.readings.values() for finding in reading.findings())

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """Numbers that are always told."""
        return tuple(measure for reading in self.readings.values() for measure in reading.measures())

    @property
    def path(self) -> Path:
        """The bandwidth path."""
        found = self.readings["bandwidth"]
        assert isinstance(found, Path)  # noqa: S101 - by the registry
        return found

    @property
    def lime(self) -> Floats:
        """Coefficients (d,) that ``lime`` would print, in expectation."""
        found = self.readings["shrinkage"]
        assert isinstance(found, Shrinkage)  # noqa: S101 - by the registry
        return found.lime

    @property
    def shares(self) -> Floats:
        """What each feature has of R², (d,)."""
        found = self.readings["fit"]
        assert isinstance(found, Fit)  # noqa: S101 - by the registry
        return found.shares

    @property
    def beyond(self) -> Floats | None:
        """Coefficients (d,) beyond the nearest edge; None where there is none."""
        found = self.readings.get("edge")
        return found.coef.value if isinstance(found, Edge) else None

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """Averages of the model in the cells of each column, those that hide most first; none of texts."""
        found = self.readings.get("cancellation")
        return tuple(found.ordered()) if isinstance(found, Cancellation) else ()


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """What to know before one trusts an explanation.

    Attributes
    ----------
    rows
        A :class:`RowDiagnosis` each: ``.findings``, ``.measures``, ``.path``, ``.profiles``, ``.shares``,
        ``.lime`` and ``.beyond`` (coefficients).
    method
        "exact" or "sampled": where the numbers come from.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> import limes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> explanation = limes.TabularExplainer(LinearRegression().fit(X, y), X)(X.iloc[:2])
    >>> diagnosis = limes.diagnose(explanation)
    >>> sorted({finding.kind for finding in diagnosis.findings})
    ['cancellation', 'dependence']
    """

    rows: tuple[RowDiagnosis, ...]
    method: str

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of all rows, row by row."""
        return tuple(finding for row in self.rows for finding in row.findings)

    def counts(self) -> Mapping[tuple[str, str], int]:
        """In how many rows each (kind, severity) was found."""
        return Counter(
            pair for row in self.rows for pair in dict.fromkeys((f.kind, f.severity) for f in row.findings)
        )

    def numbered(self, numbers: Sequence[int]) -> Diagnosis:
        """The same, with other numbers for the rows, such as their places in a file."""
        rows = [replace(row, number=number) for row, number in zip(self.rows, numbers, strict=True)]
        return Diagnosis(tuple(rows), self.method)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[RowDiagnosis]:
        return iter(self.rows)

    def __getitem__(self, row: int) -> Diagnosis:
        """The diagnosis of one row."""
        return Diagnosis((self.rows[row],), self.method)

    @property
    def plot(self) -> DiagnosisPlots:
        """Pictures: ``.plot.bandwidth(row=0)`` and ``.plot.profiles(row=0)``."""
        from limes.show.diagnosis.plots import DiagnosisPlots

        return DiagnosisPlots(self)

    def to_json(self, path: str | FilePath | None = None) -> str:
        """Return strictly valid JSON, and write it to `path` if given."""
        from limes.show.diagnosis.jsons import dumps

        return _written(dumps(self), path)

    def to_html(self, path: str | FilePath | None = None) -> str:
        """Return a self-contained page with pictures, and write it to `path` if given."""
        from limes.show.diagnosis.html import page

        return _written(page(self), path)

    def _repr_html_(self) -> str:
        from limes.show.diagnosis.html import fragment

        return fragment(self)

    def __repr__(self) -> str:
        from limes.show.diagnosis.terminal import one_line_summary

        return one_line_summary(self)

    def __str__(self) -> str:
        from limes.show.diagnosis.terminal import plain_text

        return plain_text(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from limes.show.diagnosis.terminal import printed

        yield printed(self, options)


def _written(text: str, path: str | FilePath | None) -> str:
    if path is not None:
        FilePath(path).write_text(text, encoding="utf-8")
    return text
