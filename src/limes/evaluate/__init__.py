"""How good is an explanation? The same measures for limes, lime, shap, or any array of values.

task = limes.evaluate.Task.of(model, background, X)
limes.evaluate.fidelity(explanation, task)
limes.evaluate.compare({"limes": explain, "shap": other}, task)
"""

from limes.evaluate.comparison import Comparison, compare
from limes.evaluate.faithfulness import Curves, curves, fidelity, infidelity
from limes.evaluate.neighbourhoods import Bins, Neighbourhood, Removal
from limes.evaluate.plots import plot_curves
from limes.evaluate.score import Score
from limes.evaluate.sparse import precision
from limes.evaluate.stability import Explain, Stability, sensitivity, stability
from limes.evaluate.task import Task
from limes.evaluate.values import Attribution, attribution

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
