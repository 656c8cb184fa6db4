"""Clusters and labels: their numbers are names, so that what is explained does not depend on them.

The answer of a clusterer is its membership: a column a cluster, 1 where ``predict`` names it, 0 elsewhere.
Mixtures have probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError

MEMBERSHIP = "membership"

# Distinct whole numbers that are probably classes or clusters
_FEWEST, _MOST = 3, 20
# Attributes of composed models with the part that answers
_PARTS = ("best_estimator_", "estimator_", "estimator")


def kind_of(model: Any) -> str | None:
    """Return scikit-learn's type of an estimator, such as "clusterer"; None of anything else."""
    kind = getattr(model, "_estimator_type", None)
    if kind is None and hasattr(model, "__sklearn_tags__"):
        try:
            kind = model.__sklearn_tags__().estimator_type
        except (AttributeError, TypeError, ValueError):  # of a class that only looks like an estimator
            return None
    return kind if isinstance(kind, str) else None


def clusters_of(model: Any) -> tuple[Any, ...] | None:
    """Return the numbers of a model's clusters, increasing; None if it has none, or does not list them."""
    if getattr(model, "classes_", None) is not None or not hasattr(model, "predict"):
        return None
    kind, last = kind_of(model), _answering(model)
    if kind == "density_estimator" and hasattr(last, "predict_proba"):
        return tuple(range(len(last.weights_))) if hasattr(last, "weights_") else None
    if kind != "clusterer":
        return None
    centres = getattr(last, "cluster_centers_", None)
    labels = set() if getattr(last, "labels_", None) is None else {*np.unique(last.labels_).tolist()}
    labels |= set() if centres is None else {*range(len(centres))}
    return tuple(sorted(labels)) or None


def _answering(model: Any) -> Any:
    """Return the last step of a pipeline, or the estimator that a search found best."""
    while True:
        parts = [getattr(model, name) for name in _PARTS if hasattr(model, name)]
        if isinstance(getattr(model, "steps", None), list) and model.steps:
            parts = [model.steps[-1][1]]
        if not parts:
            return model
        model = parts[0]


def cluster_answers(
    model: Any, clusters: tuple[Any, ...], output: Any
) -> tuple[str, int | list[int] | None, tuple[str, ...]]:
    """Resolve the option ``output`` of a clusterer: method, columns (as of ``Output``) and names.

    Raises
    ------
    InputError
        If there is no such cluster.
    """
    method = "predict_proba" if hasattr(model, "predict_proba") else MEMBERSHIP
    names = tuple(f"cluster {cluster}" for cluster in clusters)
    if output is None or (isinstance(output, str) and output == "probability"):
        return method, None, names
    several = isinstance(output, list | tuple)
    columns = [_column(one, clusters, names) for one in (output if several else [output])]
    if not columns:
        raise InputError("output=[] names no cluster")
    return method, columns if several else columns[0], tuple(names[k] for k in columns)


def _column(output: Any, clusters: tuple[Any, ...], names: tuple[str, ...]) -> int:
    for position, (cluster, name) in enumerate(zip(clusters, names, strict=True)):
        if np.ndim(output) == 0 and str(output) in (str(cluster), name):
            return position
    raise InputError(f"output={output!r} is no cluster of the model: pass one of {list(clusters)}")


def membership(model: Any) -> Callable[[Any], Floats] | None:
    """Return table -> (n, clusters), 1 in the column of the cluster that ``predict`` names."""
    clusters = clusters_of(model)
    if clusters is None:
        return None

    def predict(table: Any) -> Floats:
        of_cluster = np.asarray(model.predict(table))[:, None] == np.array(clusters)
        return np.asarray(of_cluster, dtype=np.float64)

    return predict


# -- warnings ------------------------------------------------------------------------------------------------


def replaced_labels(model: Any, method: str, *, by_predict: bool) -> str:
    """Return a warning about labels: that a ``method`` is explained in the place of ``predict``, or "".

    ``by_predict`` says whether the user passed the model's ``predict``, and not the model.
    """
    name = type(model).__name__
    if method == "predict" and kind_of(model) == "outlier_detector":
        return (
            f"{name}.predict answers 1 for inliers and -1 for outliers, which are explained as amounts: "
            "output='margin' explains the score behind them (decision_function)"
        )
    if method == "predict" or not by_predict:
        return ""
    if method == MEMBERSHIP:
        return (
            f"{name}.predict answers numbers of clusters, which are no amounts: membership of each "
            "cluster (1 inside, 0 outside) is explained in their place"
        )
    return f"{name}.predict answers labels, which are no amounts: {method} is explained in their place"


@dataclass(eq=False)
class NotedAnswers:
    """A model (n, d) -> (n,) or (n, k), and whether all answers so far look like numbers of labels.

    It notes answers that are asked for anyway, so that no row is asked about for a warning.
    """

    ask: Callable[[Floats], Floats]
    _distinct: frozenset[float] = frozenset()
    _are_labels: bool = True

    def __call__(self, x: Floats) -> Floats:
        """Answer rows (n, d)."""
        answers = self.ask(x)
        if self._are_labels:
            whole = answers.ndim == 1 and bool((answers == np.rint(answers)).all())
            # replaced whole: threads may lose answers of one batch, and never see half of a change
            self._distinct |= frozenset(np.unique(answers).tolist() if whole else ())
            self._are_labels = whole and len(self._distinct) <= _MOST
        return answers

    @property
    def remark(self) -> str:
        """A warning if the answers look like numbers of classes or clusters, or ""."""
        distinct = sorted(map(int, self._distinct)) if self._are_labels else []
        if distinct == [-1, 1]:
            return (
                "the model answers -1 and 1 alone, which are explained as amounts: if it tells outliers or "
                "classes, pass a function of its decision_function or predict_proba"
            )
        if len(distinct) < _FEWEST or distinct[0] not in (-1, 0, 1):
            return ""
        return (
            f"the model answers whole numbers from {distinct[0]} to {distinct[-1]} alone, which are "
            "explained as amounts: if they are classes or clusters, pass the fitted model itself, or a "
            "function of probabilities or distances"
        )


def noted(ask: Callable[[Floats], Floats], model: Any, method: str) -> Callable[[Floats], Floats]:
    """Return what calls a model's ``method``, with notes of its answers if these may be labels."""
    # amounts of a regressor may be whole numbers
    is_amount = method not in ("", "predict") or kind_of(model) == "regressor"
    return ask if is_amount else NotedAnswers(ask)


def label_remark(predict: Callable[[Floats], Floats]) -> str:
    """Return the warning about answers of a model that `noted` returned, or ""."""
    return predict.remark if isinstance(predict, NotedAnswers) else ""
