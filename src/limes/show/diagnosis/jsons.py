"""A diagnosis as strictly valid JSON: findings, measures, and all the coefficients that were looked at.

``lime`` are those that the ``lime`` package would print, ``beyond_the_edge`` those beyond the nearest edge.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from limes.show.jsons import encoded

if TYPE_CHECKING:
    from limes.diagnostics.diagnosis import Diagnosis, RowDiagnosis

FORMAT = "limes.diagnosis"
VERSION = 1


def dumps(diagnosis: Diagnosis) -> str:
    """Return the diagnosis as JSON."""
    found = {
        "format": FORMAT,
        "version": VERSION,
        "method": diagnosis.method,
        "rows": [_row(row) for row in diagnosis.rows],
    }
    return json.dumps(encoded(found), allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _row(row: RowDiagnosis) -> dict[str, Any]:
    path = row.path
    return {
        "row": row.number,
        "output": row.facts.output,
        "findings": [asdict(finding) for finding in row.findings],
        "measures": [asdict(measure) for measure in row.measures],
        "path": {
            "features": row.facts.names,
            "bandwidths": path.bandwidths,
            "coefficients": path.values,
            "standard_errors": path.errors,
            "own": path.own,
        },
        "lime": row.lime,
        "shares": row.shares,
        "beyond_the_edge": row.beyond,
        "profiles": [
            {
                "feature": profile.name,
                "cells": profile.texts,
                "own": profile.own,
                "means": profile.mean,
                "standard_errors": profile.error,
                "probabilities": profile.probability,
            }
            for profile in row.profiles
        ],
    }
