"""Which columns a form reads: changes of all others leave its answers as they are."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from internals import columns_read
from limes import models
from limes.models import forms

D = 4
BOOSTED = GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0).fit(
    np.random.default_rng(1).normal(size=(80, D)) * [1.0, 0.0, 1.0, 0.0], np.arange(80) % 3 == 0
)
FORMS = {
    "linear": (forms.Linear([1.0, 0.0, -2.0, 0.0]), [0, 2]),
    "additive": (forms.Additive([np.sin, None, None, np.cos]), [0, 3]),
    "product": (forms.Multiplicative([None, np.cos, np.exp, None]), [1, 2]),
    "boxes": (
        forms.Boxes([[0.0, -np.inf, -np.inf, -np.inf]], [[1.0, np.inf, np.inf, 0.5]], [2.0]),
        [0, 3],
    ),
    "trees": (models.read(BOOSTED, "margin"), [0, 2]),
    "link": (models.read(BOOSTED), [0, 2]),
    "network": (forms.Ridges([[1.0, 0.0, 0.0, -1.0]], [0.1], [2.0], "tanh"), [0, 3]),
    "softmax": (
        forms.Softmax(forms.Linear(np.outer([0.0, 1.0, 0.0, 2.0], [1.0, 0.0, -1.0]), [0.0, 0.0, 0.0])),
        [1, 3],
    ),
    "combination": (
        forms.Combination(
            [forms.Linear([1.0, 0.0, 0.0, 0.0]), forms.Multiplicative([None, np.cos, np.exp, None])],
            np.array([0.5, 0.5]),
        ),
        [0, 1, 2],
    ),
    "kernels": (forms.GaussianKernels(np.zeros((2, D)), [1.0, 2.0], 1.0), [0, 1, 2, 3]),
}


@pytest.mark.parametrize("name", FORMS)
def test_other_columns_change_no_answer(name):
    form, reads = FORMS[name]
    rows = np.random.default_rng(0).normal(size=(50, D))
    # by trying: which columns' other values change an answer
    tried = [
        j
        for j in range(D)
        if (form.predict(np.where(np.arange(D) == j, rows[::-1], rows)) != form.predict(rows)).any()
    ]
    assert tried == reads
    assert np.flatnonzero(columns_read(form)).tolist() == reads
