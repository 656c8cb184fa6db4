"""Measures of explanations, the same for limes, lime, shap, or any array of values.

task = limes.evaluate.EvaluationTask.of(model, background, X)
limes.evaluate.fidelity(explanation, task)
limes.evaluate.compare({"limes": explain, "shap": other}, task)
"""

from limes.evaluate._comparison import Comparison, compare, plot_curves
from limes.evaluate._measures import (
    Bins,
    Curves,
    Explain,
    Neighbourhood,
    Removal,
    Stability,
    curves,
    fidelity,
    infidelity,
    precision,
    sensitivity,
    stability,
)
from limes.evaluate._task import Attribution, EvaluationTask, Score, attribution

# the shorter public name
Task = EvaluationTask

__all__ = [
    "Attribution",
    "Bins",
    "Comparison",
    "Curves",
    "Explain",
    "Neighbourhood",
    "Removal",
    "Score",
    "Stability",
    "Task",
    "attribution",
    "compare",
    "curves",
    "fidelity",
    "infidelity",
    "plot_curves",
    "precision",
    "sensitivity",
    "stability",
]
