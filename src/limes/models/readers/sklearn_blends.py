"""Steps of scikit-learn that make weighted sums of columns, as principal components are."""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models.folding.blends import Blend, Component
from limes.models.folding.kinds import itself
from limes.models.readers.sklearn_transformers import Columns, alone

LINEAR_MAPS = (
    "FactorAnalysis",
    "FastICA",
    "GaussianRandomProjection",
    "IncrementalPCA",
    "LinearDiscriminantAnalysis",
    "PCA",
    "SparseRandomProjection",
    "TruncatedSVD",
)
# Rows that a step is asked for at once
_BLOCK = 1000


def linear_map(step: Any, columns: Columns) -> Columns:
    """Shift + matrix @ x, as the step itself says at 0 and at the unit vectors."""
    columns.expect(int(step.n_features_in_))
    plain, width = alone(step), len(columns.columns)
    shift = _asked(plain, np.zeros((1, width)))[0]
    units = [np.eye(min(_BLOCK, width - i), width, i) for i in range(0, width, _BLOCK)]
    matrix = np.concatenate([_asked(plain, block) - shift for block in units]).T
    blend = Blend(columns.columns, matrix, shift, type(step).__qualname__)
    return Columns(tuple(Component(k, itself(), blend) for k in range(shift.size)))


def _asked(step: Any, rows: Floats) -> Floats:
    found = step.transform(rows)
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=np.float64)
