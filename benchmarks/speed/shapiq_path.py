"""shapiq.TreeExplainer, path-dependent, first order."""

from importlib.metadata import version

import numpy as np

from benchmarks.speed.cases import AbsentError

NAME = "shapiq"
ANSWERS = "path-dependent Shapley values"
PACKAGE = "shapiq"
ROWS = 20


def prepare(case):
    from shapiq import TreeExplainer

    if tuple(map(int, version("shapiq").split(".")[:2])) < (1, 8):
        raise AbsentError(
            "shapiq before 1.8 is not compiled, and takes seconds a row; 1.8 needs Python >= 3.12"
        )
    explainer = TreeExplainer(case.model, max_order=1, index="SV")
    return lambda rows: np.array([explainer.explain(row).get_n_order_values(1) for row in rows])
