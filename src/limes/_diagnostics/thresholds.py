"""When a number becomes a finding: the thresholds of all diagnostics, in one table.

============== ================================================== =========== ===========
kind           quantity                                           warning     note
============== ================================================== =========== ===========
cancellation   share of Var_w f between a column's cells          ≥ 0.2       ≥ 0.1
               share of that which the coefficient captures       ≤ 0.05      ≤ 0.1
alignment      change when the column alone leaves its cell       ≤ 0.1 of |β|
bandwidth      factor between ν and the sign change               ≤ 3         ≤ 5
edge           standard deviations to the next bin                ≤ 0.001     ≤ 0.002
fidelity       R², where single columns capture less than half    < 0.25      < 0.5
local error    standard deviations of the model                   > 2         > 1.5
dependence     a coefficient's difference between the laws,
               each in units of its largest                       ≥ 0.8       ≥ 0.5
shrinkage      of the largest coefficient                                     ≥ 0.1
sample size    effective rows for each coefficient                            < 10
============== ================================================== =========== ===========

A sampled number must pass its threshold by two standard errors.
"""

from __future__ import annotations

from collections.abc import Mapping

from limes._diagnostics.finding import Severity

Levels = Mapping[Severity, float]

# A feature matters if its cells explain this share of the model's variance ...
MATTERS: Levels = {"warning": 0.2, "note": 0.1}
# ... and is hidden if the coefficient captures at most this share of that, ...
CAPTURED: Levels = {"warning": 0.05, "note": 0.1}
# ... and at most this part of what it would capture of a linear effect in the same cell: bins hide every
# effect in an inner cell, as R² shows. Only bins that hide nearly all of the model's variance are a flaw
OF_LINEAR = 0.25
NEARLY_ALL = 0.9
# Distances in standard deviations: below the precision of measurements
EDGE: Levels = {"warning": 1e-3, "note": 2e-3}
# Change of a coefficient beyond the edge, as a share of the largest one
CHANGES: Levels = {"warning": 0.25, "note": 0.5}
# R² below this; where whole effects of single columns capture half, only the cells make R² low
POOR: Levels = {"warning": 0.25, "note": 0.5}
ADDITIVE = 0.5
# Local error above this, in standard deviations of the model under w
FAR: Levels = {"warning": 2.0, "note": 1.5}
# Difference of a coefficient between the product and the joint law, each in units of its largest one: at 1 a
# feature that leads under one law is nothing under the other
APART: Levels = {"warning": 0.8, "note": 0.5}
# Difference of lime's coefficients, as a share of the largest one
SHRUNK = 0.1
# Effective rows for each coefficient
ROWS = 10
