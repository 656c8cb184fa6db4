"""Boosters behind estimators of scikit-learn's kind, asked without the estimator's own checks.

These take ten times as long as one row of the booster. Answers to users come from the estimator all the same;
this is for questions whose answers are compared with a form's.
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
    """Return what asks the booster of a model for the answers of a method; None if that is no shorter."""
    find = _BOOSTERS.get((qualified_name(type(model)), method))
    return None if find is None else find(model, method)


def _lightgbm(model: Any, method: str) -> Direct:
    def ask(rows: Floats) -> Floats:
        booster = getattr(model, "booster_", model)
        # one thread: for few rows others take longer to start than to answer
        return np.asarray(booster.predict(rows, raw_score=method == "decision_function", num_threads=1))

    return ask


_BOOSTERS: Mapping[tuple[str, str], Callable[[Any, str], Direct]] = {
    ("lightgbm.Booster", "predict"): _lightgbm,
    ("lightgbm.Booster", "decision_function"): _lightgbm,
    ("lightgbm.LGBMRegressor", "predict"): _lightgbm,
    ("lightgbm.LGBMRegressor", "decision_function"): _lightgbm,
    ("lightgbm.LGBMRanker", "predict"): _lightgbm,
    ("lightgbm.LGBMRanker", "decision_function"): _lightgbm,
    ("lightgbm.LGBMClassifier", "decision_function"): _lightgbm,
}
