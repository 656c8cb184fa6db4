"""Small explanations that are checked by hand, with odd values that break careless code."""

from __future__ import annotations

from typing import Any

import numpy as np

from internals import Explanation, from_fields

NAMES = ("age", "sex", "bmi", "bp", "cholesterol", "ldl", "hdl", "tch", "ltg", "glucose")
CLASSES = ("setosa", "versicolor", "virginica", "other", "fifth", "sixth")


def fields(n: int = 1, k: int | None = None, *, sampled: bool = False, d: int = 10) -> dict[str, Any]:
    """Return the constructor's arguments for n rows, d features and k outputs (None: one)."""
    rng = np.random.default_rng([n, k or 0, d])
    outputs = () if k is None else (k,)
    scale = np.geomspace(20, 0.05, d).reshape(1, d, *(1 for _ in outputs))
    values = rng.normal(size=(n, d, *outputs)) * scale
    data = rng.normal(size=(n, d)).astype(object)
    if d > 1:
        data[:, 1] = rng.choice(["female", "male"], n)
    names = [NAMES[j % 10] + (f"_{j}" if j >= 10 else "") for j in range(d)]
    intercepts = rng.normal(100, 10, size=(n, *outputs))
    return {
        "values": values,
        "standard_errors": np.abs(values) * 0.1 + 0.2 if sampled else np.zeros_like(values),
        "intercepts": intercepts,
        "predictions": intercepts + values.sum(axis=1) + 1.5,
        "surrogate_predictions": intercepts + values.sum(axis=1),
        "fidelity": np.full((n, *outputs), 0.875),
        "feature_names": names,
        "output_names": ["progression"] if k is None else CLASSES[:k],
        "conditions": [[f"{name} <= {row}.5" for name in names] for row in range(n)],
        "data": data,
        "method": "sampled" if sampled else "exact",
        "reason": "the model is a function" if sampled else "",
        "calls": np.full(n, 64 if sampled else 1),
        "row_converged": np.ones(n, dtype=bool),
        "row_warnings": [[] for _ in range(n)],
        "provenance": {"bandwidth": 2.37, "weights": "bins", "edges": [[-1.0, 0.0, 1.0]]},
    }


def explanation(n: int = 1, k: int | None = None, **options: Any) -> Explanation:
    """Return an explanation of n rows and k outputs; further fields replace the random ones."""
    field_options = {name: options.pop(name) for name in ("sampled", "d") if name in options}
    return from_fields(**{**fields(n, k, **field_options), **options})
