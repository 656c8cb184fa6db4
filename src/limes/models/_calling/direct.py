"""Boosters behind estimators of scikit-learn's kind, called without the estimator's own checks.

The checks take ten times as long as one row of the booster. These predictions are never displayed: they are
compared with a form's, to detect that the estimator was fitted again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models._identity import qualified_name

# rows (n, d) of numbers -> answers
Direct = Callable[[Floats], Floats]


def direct_question(model: Any, method: str) -> Direct | None:
    """Return a function that predicts like a method, by the model's booster; None if that saves nothing."""
    find = _BOOSTERS.get((qualified_name(type(model)), method))
    return None if find is None else find(model, method)


def _lightgbm(model: Any, method: str) -> Direct:
    is_margin, threads = method == "decision_function", _lightgbm_threads(model.n_jobs)

    def ask(rows: Floats) -> Floats:
        return np.asarray(model.booster_.predict(rows, raw_score=is_margin, num_threads=threads))

    return ask


def _lightgbm_threads(n_jobs: int | None) -> int:
    """Return the estimator's own number of threads: LightGBM keeps the last one for its next training."""
    from joblib import cpu_count

    if n_jobs is None:
        return int(cpu_count(only_physical_cores=True))
    return max(int(cpu_count()) + 1 + n_jobs, 1) if n_jobs < 0 else n_jobs


_BOOSTERS: Mapping[tuple[str, str], Callable[[Any, str], Direct]] = {
    ("lightgbm.LGBMRegressor", "predict"): _lightgbm,
    ("lightgbm.LGBMRegressor", "decision_function"): _lightgbm,
    ("lightgbm.LGBMRanker", "predict"): _lightgbm,
    ("lightgbm.LGBMRanker", "decision_function"): _lightgbm,
    ("lightgbm.LGBMClassifier", "decision_function"): _lightgbm,
}
