"""The engines of a table, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from limes.compat.lime.engines import Seeds
from limes.compat.lime.lime_base import LimeBase
from limes.compat.lime.surrogates import Surrogates
from limes.compat.lime.tables.law import LimeEngine, TableLaw
from limes.compat.lime.tables.limit import LimitEngine
from limes.compat.lime.tables.sparse import SparseEngine, SparseTraining
from limes.compat.lime.tables.training import Request, Training
from limes.explainers.tables.tabular_model import SLOPE_MEANING

Engine = Callable[[Request], Surrogates]
# Rows drawn from statistics, where there are no training data to check a model on
_STAND_INS = 200

__all__ = ["dense_engines", "sparse_engines"]


def dense_engines(
    training: Training,
    base: LimeBase,
    selection: str,
    seeds: Seeds,
    mode: str,
    around: bool,
    *,
    bandwidth: float,
    target: Any,
) -> dict[str, Engine]:
    """Both engines of a table with columns of numbers and categories."""
    law = TableLaw(
        training.discretizer, training.values, training.frequencies, training.mean, training.scale, around
    )
    background = training.table.matrix
    if training.stats and training.discretizer:
        rng = np.random.default_rng(seeds.limit)
        background = law.sample(background[0], 1 + _STAND_INS, "gaussian", rng).rows[1:]
    facts = {"engine": "lime", "bandwidth": bandwidth, "ridge": 1.0, "seed": seeds.lime}
    if training.discretizer is None:
        facts["meaning"] = SLOPE_MEANING
    own = training.discretizer.random_state.get_state()[1][:2].tolist() if training.discretizer else []
    options = {"bins": training.bins, "target": target, "bandwidth": bandwidth}
    return {
        "limit": LimitEngine(training, background, mode, selection, seeds.limit, options, base.verbose),
        "lime": LimeEngine(training, law, base, selection, (seeds.lime, *own), mode, facts),
    }


def sparse_engines(
    training: SparseTraining, base: LimeBase, selection: str, seeds: Seeds, mode: str, around: bool
) -> dict[str, Engine]:
    """The engine of a sparse table."""
    facts = {"engine": "lime", "ridge": 1.0, "seed": seeds.lime}
    return {"lime": SparseEngine(training, base, selection, seeds.lime, mode, around, facts)}
