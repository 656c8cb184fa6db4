"""Measures of explanations, the same for limes, lime, shap, or any array of values.

task = limes.evaluate.EvaluationTask.of(model, background, X)
limes.evaluate.fidelity(explanation, task)
limes.evaluate.compare({"limes": explain, "shap": other}, task)
"""

from limes.evaluate._comparison import Comparison, compare, plot_curves
from limes.evaluate._faithfulness import (
    Bins,
    Curves,
    Neighbourhood,
    Removal,
    curves,
    fidelity,
    infidelity,
    precision,
)
from limes.evaluate._repetition import Explain, Stability, sensitivity, stability
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
