r"""A few explanations that together show what a model depends on: lime's submodular pick (SP-LIME).

With W_ij the size of feature j in explanation i and I_j = √(Σ_i W_ij) its importance, explanations are picked
one after the other, each to add most to the importance that is covered,

    c(V) = Σ_j I_j [some i in V has W_ij > 0].
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes._checks import check_choice, check_count, is_count
from limes._threads import progress_of
from limes.compat.lime._leniency import sliced_count
from limes.compat.lime.exceptions import warn_or_raise
from limes.compat.lime.explanation import Explanation
from limes.compat.lime.lime_image import ImageExplanation
from limes.exceptions import InputError

METHODS = ("sample", "full")

__all__ = ["SubmodularPick", "picked", "sizes"]


class SubmodularPick:
    """Explain rows of data, and pick explanations that cover much of what matters.

    Parameters
    ----------
    explainer
        A LimeTabularExplainer or LimeTextExplainer, for classification or regression.
    data
        Rows, as an array or a dataframe, or texts.
    predict_fn
        As ``explainer.explain_instance`` takes it.
    method : "sample" or "full"
        Whether some rows are explained, drawn without replacement, or all.
    sample_size, num_exps_desired, num_features
        How many rows are drawn; explanations are picked; features are in an explanation.
    random_state
        Of the draw; None takes the explainer's, without using it up.
    progress_bar
        Whether work of more than a second shows one.
    **kwargs
        Further options of ``explain_instance``; ``top_labels`` is 1 if it is not among them.

    Attributes
    ----------
    explanations
        Of all rows that were explained; ``indices`` are their positions in the data.
    sp_explanations
        The picked ones, the most important first; ``V`` are their positions in ``explanations``.

    Raises
    ------
    InputError
        An option that is not usable, or images, whose superpixels have nothing in common.

    References
    ----------
    Ribeiro et al. 2016, section 4, algorithm 2.

    Examples
    --------
    >>> from limes.compat.lime.lime_tabular import LimeTabularExplainer
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X, y)
    >>> explainer = LimeTabularExplainer(X, random_state=0)
    >>> pick = SubmodularPick(explainer, X, model.predict_proba, sample_size=10, num_exps_desired=2)
    >>> len(pick.explanations), len(pick.sp_explanations)
    (10, 2)
    """

    def __init__(
        self,
        explainer: Any,
        data: Any,
        predict_fn: Callable[[Any], Any],
        method: str = "sample",
        sample_size: int = 1000,
        num_exps_desired: int = 5,
        num_features: int = 10,
        *,
        random_state: Any = None,
        progress_bar: bool = True,
        **kwargs: Any,
    ) -> None:
        check_choice("method", method, METHODS)
        size = sliced_count("sample_size", sample_size) if method == "sample" else len(data)
        count = _count_of(num_exps_desired)
        if len(data) == 0:
            warn_or_raise("data has no rows", "pass some", "nothing is explained, as in lime")
        if random_state is None:
            random_state = getattr(explainer, "random_state", None)
        self.indices = _row_indices(len(data), method, size, random_state)
        rows = data.iloc if hasattr(data, "iloc") else data
        options = {"num_features": num_features, "top_labels": 1, **kwargs}
        self.explanations = []
        with progress_of(shown=progress_bar)(len(self.indices)) as advance:
            for i in self.indices:
                explanation = explainer.explain_instance(rows[int(i)], predict_fn, **options)
                if isinstance(explanation, ImageExplanation):
                    raise InputError("images have no superpixels in common: pass tables or texts")
                self.explanations.append(explanation)
                advance(1)
        if count > len(self.explanations):
            warnings.warn(
                f"num_exps_desired={count}, and there are {len(self.explanations)} explanations: "
                "all of them are picked",
                stacklevel=2,
            )
        self.V = picked(sizes(self.explanations), count)
        self.sp_explanations = [self.explanations[i] for i in self.V]


def _count_of(value: Any) -> int:
    """A number of picks as lime takes it: whatever `int` makes a whole number of; none below 1."""
    if is_count(value):
        return int(value)
    try:
        count = int(value)
    except (TypeError, ValueError):
        return check_count("num_exps_desired", value)
    warn_or_raise(
        f"num_exps_desired={value!r}", "pass a whole number >= 1", f"{max(count, 0)} are picked, as in lime"
    )
    return count


def sizes(explanations: Sequence[Explanation]) -> Floats:
    """Sizes of coefficients W (n, d), added up over labels; columns are the features that occur."""
    entries = [
        (i, name, abs(value))
        for i, explanation in enumerate(explanations)
        for label in explanation.available_labels()
        for name, value in explanation.as_list(label=label)
    ]
    columns = {name: j for j, name in enumerate(dict.fromkeys(name for _, name, _ in entries))}
    matrix = np.zeros((len(explanations), len(columns)))
    for i, name, size in entries:
        matrix[i, columns[name]] += size
    return matrix


def picked(matrix: Floats, count: int) -> list[int]:
    """Rows of W (n, d) that greedily cover most importance; of equals the last, as lime takes it.

    Examples
    --------
    >>> import numpy as np
    >>> picked(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 3.0]]), 2)
    [1, 0]
    """
    used, importance = matrix > 0, np.sqrt(matrix.sum(axis=0))
    unpicked, uncovered = np.ones(len(matrix), dtype=bool), np.ones(matrix.shape[1], dtype=bool)
    chosen: list[int] = []
    for _ in range(min(count, len(matrix))):
        gain = np.where(unpicked, used @ (importance * uncovered), -1.0)
        best = len(gain) - 1 - int(np.argmax(gain[::-1]))
        chosen.append(best)
        unpicked[best] = False
        uncovered &= ~used[best]
    return chosen


def _row_indices(rows: int, method: str, size: int, random_state: Any) -> Ints:
    from sklearn.utils import check_random_state

    if method == "full":
        return np.arange(rows)
    if size > rows:
        warnings.warn(
            f"sample_size={size}, and data has {rows} rows: all of them are explained", stacklevel=3
        )
    # a copy: the next pick of this explainer is the same
    order: Ints = deepcopy(check_random_state(random_state)).permutation(rows)
    return order[:size]
