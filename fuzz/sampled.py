"""A cheap look at explanations that are sampled: are they within their own standard errors of the oracle?"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import limes
from fuzz.answers import answers_of
from fuzz.tables import TooLargeError, Trial
from fuzz.verdict import MISMATCH, SAMPLED, Verdict

# Standard errors come from four sequences, so that z has heavy tails: what is off must be off twice
_LIMIT, _CALLS = 10.0, (1024, 4096)


def look(trial: Trial, options: Any, rows: Any) -> Verdict:
    """Compare one row; twice as the first time may be chance."""
    if trial.case.shape == "draws":
        return Verdict(SAMPLED)
    row = rows[:1]
    explanation: Any = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            sample = trial.background.table(trial.background.matrix[:200])
            answers = answers_of(trial.model, options.output, sample)
            beta, _, size = trial.oracle(answers, options, row, trial.widths)
            for seed, calls in enumerate(_CALLS):
                explainer = trial.explainer(options, max_calls=calls, control="additive", rng=seed)
                explanation = explainer(trial.background.table(row), progress=False)
                gap = np.abs(explanation.coefficients.values.reshape(beta.shape) - beta)
                z = gap / (explanation.coefficients.standard_errors.reshape(beta.shape) + 1e-6 * size)
                if z.max() <= _LIMIT:
                    return Verdict(SAMPLED, detail="looked at")
        except (limes.exceptions.LimesError, TooLargeError):
            return Verdict(SAMPLED)
    values = explanation.coefficients.values.reshape(beta.shape)[0].tolist()
    return Verdict(MISMATCH, 1, f"sampled, |z| = {z.max():.3g}", 0, values, beta[0].tolist())
