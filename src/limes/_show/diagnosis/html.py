"""A diagnosis as HTML: findings, numbers and pictures in one self-contained page.

Pictures are SVG that the template writes from positions computed here; it escapes every text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import Floats
from limes._explanation.wording import CONFIDENCE, count, difference, estimate, number, one_line, shorten
from limes._show.axes import COLOURS, largest, log_ticks, spread_labels, ticks
from limes._show.diagnosis.terminal import also, by_kind, first_of_each
from limes._show.html import render

if TYPE_CHECKING:
    from limes._diagnostics.bandwidth import BandwidthPath
    from limes._diagnostics.cancellation import Profile
    from limes._diagnostics.diagnosis import Diagnosis, RowDiagnosis
    from limes._diagnostics.finding import Finding

MAX_ROWS = 20
MAX_LINES, MAX_PROFILES, MAX_CELLS = 6, 6, 16
_WIDTH, _HEIGHT = 860.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 60.0, 230.0, 12.0, 36.0


def page(diagnosis: Diagnosis) -> str:
    """Return a page that needs nothing but a browser."""
    return render("diagnosis_page.html", _content(diagnosis))


def fragment(diagnosis: Diagnosis) -> str:
    """Return a part of a page whose style touches nothing outside itself."""
    return render("diagnosis.html", _content(diagnosis))


def _content(diagnosis: Diagnosis) -> dict[str, Any]:
    n = len(diagnosis)
    shown = diagnosis.rows[:MAX_ROWS]
    return {
        "title": f"Diagnosis of {count(n, 'row')}",
        "method": diagnosis.method,
        "kinds": _kinds(diagnosis) if n > 1 else [],
        "total": n,
        "verdict": diagnosis.verdict,
        "rows": [_row(row) for row in shown],
        "omitted": count(n - len(shown), "further row") if n > len(shown) else "",
    }


def _kinds(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    counts = diagnosis.counts()
    return [
        {
            "kind": kind,
            "warnings": counts.get((kind, "warning"), 0),
            "notes": counts.get((kind, "note"), 0),
            "row": row,
            **_finding(finding),
        }
        for kind, row, finding in first_of_each(diagnosis)
    ]


def _row(row: RowDiagnosis) -> dict[str, Any]:
    explanation = row.explanation
    severities = [finding.severity for finding in row.findings]
    return {
        "number": row.number,
        "output": explanation.title or one_line(explanation.output),
        "prediction": number(explanation.prediction),
        "surrogate": number(explanation.surrogate),
        "counted": [(s, severities.count(s)) for s in ("warning", "note") if s in severities],
        "verdict": row.verdict,
        "findings": [
            {**_finding(finding), "also": one_line(also(others)) if others else ""}
            for finding, others in by_kind(row.findings)
        ],
        "measures": [
            {
                "name": measure.name,
                **dict(zip(("value", "error"), estimate(measure.value, measure.error), strict=True)),
                "remark": one_line(measure.remark),
            }
            for measure in row.measures
        ],
        "path": _path(row.path),
        "profiles": [_profile(profile) for profile in row.profiles[:MAX_PROFILES]],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.kind,
        "url": finding.url,
        "severity": finding.severity,
        **dict(zip(("number", "error"), estimate(finding.number, finding.error), strict=True)),
        "unit": one_line(finding.unit),
        "sentence": one_line(finding.sentence),
        "advice": one_line(finding.advice),
    }


def _path(path: BandwidthPath) -> dict[str, Any]:
    finite = np.isfinite(path.bandwidths)
    x, chosen = path.bandwidths[finite], largest(path, MAX_LINES)
    values, reach = path.values[finite][:, chosen], CONFIDENCE * path.errors[finite][:, chosen]
    reach = np.where(np.isfinite(reach), reach, 0.0)
    low, high = np.nanmin(values - reach, initial=0.0), np.nanmax(values + reach, initial=0.0)
    across = _Scale(float(np.log(x[0])), float(np.log(x[-1])), _LEFT, _WIDTH - _RIGHT)
    up = _Scale(float(low), float(high), _HEIGHT - _BOTTOM, _TOP)
    xs = across.positions(np.log(x))
    ends = [up.position(v[np.isfinite(v)][-1]) for v in values.T]
    labels = spread_labels(ends, 15.0)
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "left": _LEFT,
        "right": _WIDTH - _RIGHT,
        "bottom": _HEIGHT - _BOTTOM,
        "top": _TOP,
        "zero": up.position(0.0),
        "current": across.position(np.log(path.bandwidth)) if np.isfinite(path.bandwidth) else None,
        "bandwidth": number(path.bandwidth, 3),
        "xticks": [(across.position(np.log(t)), number(t, 2)) for t in log_ticks(x[0], x[-1])],
        "yticks": [(up.position(t), number(t, 3)) for t in ticks(low, high)],
        "lines": [
            {
                "colour": colour,
                "points": _points(xs, up.positions(v)),
                "band": _band(xs, up.positions(v - r), up.positions(v + r)) if (r > 0).any() else "",
                "end": end,
                "label_at": label,
                "label": shorten(path.row.conditions[j], 32),
                "title": one_line(path.row.conditions[j]),
            }
            for j, colour, v, r, end, label in zip(
                chosen, COLOURS, values.T, reach.T, ends, labels, strict=False
            )
        ],
    }


class _Scale:
    """The map from numbers to positions in a picture."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self._low, self._start = low, start
        self._slope = (end - start) / ((high - low) or 1.0)

    def positions(self, values: Floats) -> Floats:
        return np.asarray(self._start + self._slope * (values - self._low))

    def position(self, value: float) -> float:
        return round(float(self.positions(np.asarray(value))), 1)


def _points(x: Floats, y: Floats) -> str:
    finite = np.isfinite(y)
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[finite], y[finite], strict=True))


def _band(x: Floats, lower: Floats, upper: Floats) -> str:
    x, lower, upper = (a[np.isfinite(lower) & np.isfinite(upper)] for a in (x, lower, upper))
    return f"{_points(x, lower)} {_points(x[::-1], upper[::-1])}"


def _profile(profile: Profile) -> dict[str, Any]:
    center = float(profile.probability @ profile.mean)
    cells = _most_frequent(profile)
    reach = CONFIDENCE * profile.error
    ends = np.concatenate([profile.mean - reach, profile.mean + reach, [center]])
    scale = _Scale(float(ends.min()), float(ends.max()), 2.0, 98.0)
    omitted = len(profile.texts) - len(cells)
    explained = profile.explained / profile.between if profile.between > 0 else 0.0
    return {
        "name": one_line(profile.name),
        "coef": difference(profile.coef),
        "explained": f"{explained:.0%}",
        "center": scale.position(center),
        "average": number(center),
        "cells": [
            {
                "text": without_name(one_line(profile.texts[b]), one_line(profile.name)),
                "current": b == profile.current,
                "x": min(scale.position(center), scale.position(profile.mean[b])),
                "width": round(abs(scale.position(profile.mean[b]) - scale.position(center)), 1),
                "whisker": (
                    scale.position(profile.mean[b] - reach[b]),
                    scale.position(profile.mean[b] + reach[b]),
                )
                if reach[b] > 0
                else None,
                "mean": number(profile.mean[b]),
            }
            for b in cells
        ],
        "omitted": count(omitted, "rarer cell") if omitted else "",
    }


def without_name(text: str, name: str) -> str:
    """Return the condition of a cell without its column's name: "<= 63", "63 – 71", "Private"."""
    low, separator, high = text.partition(f" < {name} <= ")
    if separator:
        return f"{low} – {high}"
    return text.removeprefix(name).strip().removeprefix("= ") or text


def _most_frequent(profile: Profile) -> list[int]:
    """Return the most frequent cells, the instance's among them, in their order."""
    order = np.argsort(-profile.probability, kind="stable").tolist()
    first = [profile.current, *(b for b in order if b != profile.current)]
    return sorted(first[:MAX_CELLS])
