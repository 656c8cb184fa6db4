"""Sequences have the explanations of their flattened tables, and the model gets sequences."""

from __future__ import annotations

import inspect
import pickle

import lime.lime_tabular
import numpy as np
import pytest

from limes.compat.lime.lime_tabular import LimeTabularExplainer, RecurrentTabularExplainer
from limes.exceptions import InputError, UnknownOptionError

LOADS = np.random.default_rng(0).normal(size=(80, 3, 2))
ENGINES = pytest.mark.parametrize("chosen", ["limit", "lime"])


def last(sequences):
    """Return what the last step of the second feature says, less the first step of the first."""
    assert sequences.shape[1:] == (3, 2)
    return sequences[:, 2, 1] - 0.5 * sequences[:, 0, 0]


def chances(sequences):
    p = 1 / (1 + np.exp(-last(sequences)))
    return np.stack([1 - p, p], axis=1)


@ENGINES
def test_steps_that_count_are_found_by_their_names(chosen):
    explainer = RecurrentTabularExplainer(
        LOADS, mode="regression", feature_names=["a", "b"], random_state=0, engine=chosen
    )
    assert explainer.feature_names == ["a_t-2", "a_t-1", "a_t-0", "b_t-2", "b_t-1", "b_t-0"]
    explanation = explainer.explain_instance(LOADS[0], last, num_features=2)
    assert [("b_t-0" in name, "a_t-2" in name) for name, _ in explanation.as_list()] == [
        (True, False),
        (False, True),
    ]
    assert explanation.predicted_value == pytest.approx(last(LOADS[:1])[0])


@ENGINES
def test_it_is_the_table_s_explanation(chosen):
    options = {"discretize_continuous": False, "random_state": 0, "engine": chosen}
    table = LOADS.transpose(0, 2, 1).reshape(80, 6)
    ours = RecurrentTabularExplainer(LOADS, **options).explain_instance(LOADS[4], chances, num_samples=300)
    flat = LimeTabularExplainer(table, **options).explain_instance(
        table[4], lambda x: chances(x.reshape(-1, 2, 3).transpose(0, 2, 1)), num_samples=300
    )
    assert ours.as_map() == flat.as_map()
    np.testing.assert_allclose(ours.predict_proba, chances(LOADS[4:5])[0])


def test_the_limit_is_of_lime_s_own_explanations():
    ours = RecurrentTabularExplainer(LOADS, feature_names=["a", "b"], random_state=0)
    theirs = lime.lime_tabular.RecurrentTabularExplainer(LOADS, feature_names=["a", "b"], random_state=0)
    limit = dict(ours.explain_instance(LOADS[4], chances).as_list())
    means = dict(theirs.explain_instance(LOADS[4], chances).as_list())
    assert limit.keys() == means.keys()
    # 5000 rows know a coefficient of a probability to about 0.01
    np.testing.assert_allclose([limit[name] for name in means], list(means.values()), atol=0.04)


def test_one_function_is_one_function_at_every_call():
    sizes = []

    def heard(sequences):
        sizes.append(len(sequences))
        return last(sequences)

    explainer = RecurrentTabularExplainer(LOADS, mode="regression")
    explainer.explain_instance(LOADS[0], heard, num_samples=256)
    first = len(sizes)
    explainer.explain_instance(LOADS[1], heard, num_samples=256)
    assert len(sizes) - first < first
    assert pickle.loads(pickle.dumps(explainer)).n_timesteps == 3


def test_signatures_are_lime_s():
    for method in ("__init__", "explain_instance"):
        ours, theirs = (
            [p.name for p in inspect.signature(getattr(kind, method)).parameters.values()]
            for kind in (RecurrentTabularExplainer, lime.lime_tabular.RecurrentTabularExplainer)
        )
        assert ours[: len(theirs)] == theirs


def test_errors_are_advice():
    with pytest.raises(InputError, match="rows, timesteps, features"):
        RecurrentTabularExplainer(LOADS[0])
    with pytest.raises(InputError, match="has 2 a step"):
        RecurrentTabularExplainer(LOADS, feature_names=["a"])
    with pytest.raises(InputError, match=r"expected \(3, 2\)"):
        RecurrentTabularExplainer(LOADS).explain_instance(LOADS[0][:2], chances)
    with pytest.raises(UnknownOptionError, match="RecurrentTabularExplainer has no option"):
        RecurrentTabularExplainer(LOADS, sample_around_instance=True)
