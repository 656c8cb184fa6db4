"""From an explanation to its diagnosis: every diagnostic at each row, and its findings.

A new diagnostic is a part of `fit.py` or `tables.py`, and a line at its end.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from limes._arrays import Floats
from limes._diagnostics.bandwidth import BandwidthPath
from limes._diagnostics.context import DiagnosticContext, JointContext, SubsetContext, TableContext
from limes._diagnostics.finding import (
    ADDITIVE,
    SEVERITIES,
    Finding,
    Measure,
    RowOutput,
    by_reading,
    output_positions,
)
from limes._diagnostics.fit import OF_ANY, accounts
from limes._diagnostics.tables import OF_TABLES, Profile
from limes._explanation import Explanation
from limes._explanation.attribution import NO_SURROGATE
from limes._explanation.drawing import Page, drawer, write_text
from limes._explanation.fit import account_at, additive_at, leading
from limes._explanation.json import jsonable
from limes._explanation.view import PARTIAL_FIT, view_row
from limes._explanation.wording import count
from limes._threads import one_blas_thread, progress_bar
from limes._warnings import RowWarning, of_outputs
from limes.exceptions import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from limes._show.diagnostics import DiagnosisPlots

# Rows diagnosed together: samples of 4096 rows of 30 columns are 200 MB
_BLOCK = 100

_BY_CONTEXT = {
    TableContext: {**OF_ANY, **OF_TABLES},
    # without profiles, boxes and edges, which assume independent columns
    JointContext: {**OF_ANY, "dependence": OF_TABLES["dependence"]},
    SubsetContext: OF_ANY,
}


@one_blas_thread()
def diagnose(
    explanation: Explanation,
    explainer: Any = None,
    *,
    output: str | int | None = None,
    max_calls: int | None = None,
    progress: bool = True,
    calls: int | None = None,
) -> Diagnosis:
    """Report when an explanation should not be trusted: numbers, sentences, advice.

    Coefficients at other bandwidths, averages of the model in each bin, and changes at a bin's edge are exact
    where the explanation is exact; variances are sampled. Everything is sampled, with standard errors, where
    the model cannot be read. Thresholds are in ``limes/_diagnostics/finding.py``.

    Parameters
    ----------
    explanation
        An explanation of any explainer with a bandwidth, with all its features.
    explainer
        The explainer of the explanation; needed only if the explanation of a table or text came from a file.
        Explanations of images, series and composite inputs cannot be diagnosed from a file.
    output
        Name or position of the output; unless given, the positive one of two classes, else the one with the
        largest prediction of each row.
    max_calls
        Model calls around each row, beside its explanation: 512 unless given, and 4096 where the model cannot
        be read.
    progress
        Show a progress bar when it takes more than a second.
    calls
        The former name of ``max_calls``, with a FutureWarning.

    Returns
    -------
    Diagnosis
        ``.findings``, ``.rows``, ``.to_html()``, ``.to_json()``, ``.plot``; it prints as a table.

    Raises
    ------
    InputError
        If the explanation has no explainer, or the explainer has no diagnostics.

    References
    ----------
    Garreau & von Luxburg 2020 and 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import limes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = RandomForestRegressor(10, random_state=0).fit(X, y)
    >>> diagnosis = limes.diagnose(limes.TabularExplainer(model, X)(X.iloc[:2]))
    >>> all(finding.advice for finding in diagnosis.findings)
    True
    """
    if not isinstance(explanation, Explanation):
        raise InputError(
            f"diagnose needs an explanation, got {type(explanation).__name__}: pass "
            "limes.TabularExplainer(model, background)(rows)"
        )
    if calls is not None:
        text = "diagnose(calls=) is max_calls=, as of all explainers; the name ends with the next release"
        warnings.warn(text, FutureWarning, stacklevel=2)
        max_calls = calls
    if NO_SURROGATE in explanation.provenance:
        raise InputError(
            f"diagnose is about LIME's surrogate, and {explanation.provenance[NO_SURROGATE]}; "
            "explanation.warnings says what is not certain of the contributions"
        )
    explainer = explainer if explainer is not None else explanation.explainer
    if not hasattr(explainer, "_diagnostic_context"):
        if explanation.certificates:
            raise InputError("diagnose has no diagnostics of rules: explanation.certificate has their errors")
        raise InputError(
            "diagnose needs the explainer that made the explanation, and a saved explanation has none: for "
            "tables and texts pass it, limes.diagnose(explanation, explainer); else explain again"
        )
    positions, rows = output_positions(explanation, output), []
    with progress_bar(len(explanation), "diagnosing", unit="rows", shown=progress) as bar:
        for start in range(0, len(explanation), _BLOCK):
            block = slice(start, start + _BLOCK)
            context: DiagnosticContext = explainer._diagnostic_context(  # noqa: SLF001
                explanation[block], output=positions[block], calls=max_calls
            )
            results = {name: diagnostic(context) for name, diagnostic in _BY_CONTEXT[type(context)].items()}
            results = {"account": accounts(explanation[block], positions[block])} | results
            exact = _exact_additive(explanation[block], explainer)
            for i, row in enumerate(context.row_outputs):
                of_row = {name: result for name, each in results.items() if (result := each[i]) is not None}
                record = explanation.row_warnings[start + i]
                additive = float(exact[i, positions[start + i]])
                warned, position = of_outputs(record, {row.output}), int(positions[start + i])
                headline = _headline(explanation[start + i][:, :, [position]])
                rows.append(RowDiagnosis(start + i, row, of_row, warned, additive, headline))
            bar.update(len(context.rows))
    return Diagnosis(tuple(rows), explanation.method)


def _headline(one: Explanation) -> str:
    """The prediction and what is usual, as all media say it; "" without contributions that are shown."""
    account = account_at(one, [0]) if leading(one) == "contributions" else None
    return "" if account is None else view_row(one, 0, 1, account=account).outputs[0].titled


def _exact_additive(explanation: Explanation, explainer: Any) -> Floats:
    """R² of whole effects, (n, k), NaN where it has no closed form."""
    if explanation.fit is None and explanation.method == "exact" and hasattr(explainer, "_model_at"):
        # that of a file has no effects
        explanation = explainer(explanation.data, progress=False)[..., list(explanation.output_names)]
    return additive_at(explanation)[0]


@dataclass(frozen=True, eq=False)
class RowDiagnosis:
    """One row: its explanation, and the result of each diagnostic by its name."""

    number: int
    explanation: RowOutput
    diagnostics: Mapping[str, Any]
    warnings: tuple[RowWarning, ...] = ()  # of the explanation, about this output
    exact_additive: float = float("nan")  # R² of whole effects, where it has a closed form
    headline: str = ""  # the prediction and what is usual; "" where LIME's coefficients are shown

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Findings about contributions, then those about LIME's coefficients alone; warnings first in each.

        That of a low R² is left out if single columns' effects capture enough.
        """
        findings = (finding for result in self.diagnostics.values() for finding in result.findings())
        relevant = (f for f in findings if f.kind != "fidelity" or not self.additive >= ADDITIVE)
        by_severity = sorted(relevant, key=lambda f: SEVERITIES.index(f.severity))
        return tuple(finding for part in by_reading(by_severity) for finding in part)

    @property
    def fidelity(self) -> float:
        """R² of the surrogate under the weights."""
        return float(self.diagnostics["fit"].fidelity)

    @property
    def additive(self) -> float:
        """Share of the variance that whole effects of single columns capture; NaN unless all have cells."""
        if np.isfinite(self.exact_additive):
            return self.exact_additive
        complete = len(self.profiles) == len(self.explanation.names)
        return float(self.diagnostics["cancellation"].additive) if complete else float("nan")

    @property
    def verdict(self) -> str:
        """Write about contributions, then about coefficients: warnings, and where no check fails."""
        return " ".join(filter(None, (self.verdict_on_contributions, self.verdict_on_lime)))

    @property
    def verdict_on_contributions(self) -> str:
        """Warnings about contributions, and that no check adds to them, if so; "" if they are not shown."""
        if not self.headline:
            return ""
        warnings = [warning for warning in self.warnings if warning.reading != "coefficients"]
        return _verdict("The explanation", warnings, by_reading(self.findings)[0], "the contributions")

    @property
    def verdict_on_lime(self) -> str:
        """Warnings about LIME's coefficients, and how much the surrogate captures."""
        warnings = [w for w in self.warnings if w.reading == "coefficients" or not self.headline]
        findings = by_reading(self.findings)[1] if self.headline else self.findings
        captured = _captured([self.fidelity], [self.additive], "this row")
        text = _verdict("LIME's view", warnings, findings, "LIME's coefficients")
        if not captured:
            return text
        # the account of the prediction stands; coefficients alone are a rough summary
        rough = self.fidelity < PARTIAL_FIT and self.headline and not findings
        advice = ": report contributions, and coefficients only as comparisons of averages" if rough else ""
        return f"{text} {captured[0].upper()}{captured[1:]}{advice}.".strip()

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """Numbers that are always reported, those about contributions first."""
        measures = [measure for result in self.diagnostics.values() for measure in result.measures()]
        return tuple(measure for part in by_reading(measures) for measure in part)

    @property
    def path(self) -> BandwidthPath:
        """The bandwidth path."""
        path: BandwidthPath = self.diagnostics["bandwidth"]
        return path

    @property
    def lime(self) -> Floats:
        """Coefficients (d,) that ``lime`` would print, in expectation."""
        return np.asarray(self.diagnostics["shrinkage"].lime)

    @property
    def shares(self) -> Floats:
        """Each feature's part of R², (d,)."""
        return np.asarray(self.diagnostics["fit"].shares)

    @property
    def beyond(self) -> Floats | None:
        """Coefficients (d,) beyond the nearest edge; None if no column has edges."""
        edge = self.diagnostics.get("edge")
        return None if edge is None else edge.coef.value

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """Averages of the model in the cells of each column, those that hide most first; () for texts."""
        cancellation = self.diagnostics.get("cancellation")
        return () if cancellation is None else cancellation.profiles

    def to_dict(self) -> dict[str, Any]:
        """Return the row's part of the JSON of a diagnosis."""
        return {
            "row": self.number,
            "output": self.explanation.output,
            "fidelity": self.fidelity,
            "additive_fidelity": self.additive,
            "headline": self.headline,
            "findings": [asdict(finding) for finding in self.findings],
            "measures": [asdict(measure) for measure in self.measures],
            "path": {
                "features": self.explanation.names,
                "bandwidths": self.path.bandwidths,
                "coefficients": self.path.values,
                "standard_errors": self.path.errors,
                "own": self.path.current,
            },
            "lime": self.lime,
            "shares": self.shares,
            "beyond_the_edge": self.beyond,
            "profiles": [
                {
                    "feature": profile.name,
                    "cells": profile.texts,
                    "own": profile.current,
                    "means": profile.mean,
                    "standard_errors": profile.error,
                    "probabilities": profile.probability,
                }
                for profile in self.profiles
            ],
        }


def _verdict(what: str, warnings: Sequence[RowWarning], findings: Sequence[Finding], about: str) -> str:
    """Warnings, and that no check adds to them, if so; "" where findings say all."""
    text = f"{what} warns: {'; '.join(w.sentence for w in warnings)}." if warnings else ""
    silence = "" if findings else "No check adds to that." if warnings else f"No check concerns {about}."
    return " ".join(filter(None, (text, silence)))


def _captured(fidelities: Sequence[float], additives: Sequence[float], where: str) -> str:
    """A sentence on what surrogates and whole effects capture, "" where the model does not vary."""
    fits, effects = (np.array([x for x in numbers if np.isfinite(x)]) for numbers in (fidelities, additives))
    if not fits.size:
        return ""
    share = max(float(np.median(fits)), 0.0)
    text = f"the surrogate captures {share:.0%} of what the model does around {where}"
    if effects.size:
        text += f", whole effects of single columns {float(np.median(effects)):.0%}"
    return text


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Page):
    """The findings and measures of explained rows: what to know before trusting an explanation.

    Attributes
    ----------
    rows
        A :class:`RowDiagnosis` for each row: ``.findings``, ``.measures``, ``.path``, ``.profiles``,
        ``.shares``, ``.lime`` and ``.beyond`` (coefficients).
    method
        "exact" or "sampled".

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

    _widest: ClassVar[int] = 110
    _html: ClassVar[str] = "diagnostics"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all rows, row by row."""
        return tuple(finding for row in self.rows for finding in row.findings)

    @property
    def verdict(self) -> str:
        """Sentence on how much the surrogates capture, and how many rows have no finding."""
        if len(self) == 1:
            return self.rows[0].verdict
        captured = _captured(
            [row.fidelity for row in self.rows], [row.additive for row in self.rows], "these rows (medians)"
        )
        on_lime = f"{self._silence(True)}{f'; {captured}' if captured else ''}."
        if not any(row.headline for row in self.rows):
            return f"In {on_lime}"
        return f"In {self._silence(False)}. LIME's view: in {on_lime}"

    def _silence(self, of_lime: bool) -> str:
        """In how many rows no check concerns contributions, or LIME's coefficients, and how many warn."""
        warned = [
            any((warning.reading == "coefficients") == of_lime for warning in row.warnings)
            for row in self.rows
        ]
        findings = [by_reading(row.findings)[of_lime] for row in self.rows]
        silent = sum(not (its or warns) for its, warns in zip(findings, warned, strict=True))
        about, who = ("coefficients", "that") if of_lime else ("the contributions", "the explanation")
        text = f"{silent:,} of {len(self):,} rows no check concerns {about}"
        return f"{text}, and {who} of {sum(warned):,} warns" if any(warned) else text

    def counts(self) -> Mapping[tuple[str, str], int]:
        """Return the number of rows with each (kind, severity)."""
        return Counter(
            pair for row in self.rows for pair in dict.fromkeys((f.kind, f.severity) for f in row.findings)
        )

    def numbered(self, numbers: Sequence[int]) -> Diagnosis:
        """Return the diagnosis with other row numbers, such as their positions in a file."""
        rows = [replace(row, number=number) for row, number in zip(self.rows, numbers, strict=True)]
        return Diagnosis(tuple(rows), self.method)

    def __repr__(self) -> str:
        severities = [finding.severity for finding in self.findings]
        counts = ", ".join(count(severities.count(s), s) for s in ("warning", "note"))
        return f"<Diagnosis: {count(len(self), 'row')}, {counts}, {self.method}>"

    def _drawn(self, width: int) -> RenderableType:  # noqa: ARG002 - tables break lines
        drawn: RenderableType = drawer("diagnostics").drawn(self)
        return drawn

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[RowDiagnosis]:
        return iter(self.rows)

    def __getitem__(self, row: int) -> Diagnosis:
        """Return the diagnosis of one row."""
        return Diagnosis((self.rows[row],), self.method)

    @property
    def plot(self) -> DiagnosisPlots:
        """Pictures: ``.plot.bandwidth(row=0)`` and ``.plot.profile(row=0)``."""
        plots: DiagnosisPlots = drawer("diagnostics").DiagnosisPlots(self)
        return plots

    def to_json(self, path: str | Path | None = None) -> str:
        """Return strictly valid JSON, and write it to `path` if given.

        It holds findings, measures and all coefficients that were computed: ``lime`` are those that the
        ``lime`` package would print, ``beyond_the_edge`` those beyond the nearest edge.
        """
        content = {
            "format": "limes.diagnosis",
            "version": 1,
            "method": self.method,
            "rows": [row.to_dict() for row in self.rows],
        }
        text = json.dumps(jsonable(content), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return write_text(text, path)
