"""Every value reaches one leaf of each tree, whichever way a forest is evaluated."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import boosters
from effort import examples
from limes.models.forms import Forest

# Columns 0 and 1 are split by thresholds, columns 2 and 3 by sets of categories.
NUMBERS, COLUMNS, WIDTH = 2, 4, 5
CUTS = np.array([-np.inf, -1.0, 0.0, 1e-40, 0.5, 3.0, np.inf])
ROWS = np.array([-np.inf, -1e300, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 1e9, np.inf, np.nan])


def random_tree(rng, depth):
    """One tree, its nodes in the order in which they are made."""
    feature, threshold, left, right, missing_left, set_of, sets, value = ([] for _ in range(8))

    def grow(level):
        node = len(feature)
        column = int(rng.integers(COLUMNS)) if level < depth and rng.random() < 0.8 else -1
        for store, entry in (
            (feature, column),
            (threshold, float(rng.choice(CUTS)) if column < NUMBERS else 0.0),
            (left, -1),
            (right, -1),
            (missing_left, bool(rng.random() < 0.5)),
            (set_of, -1),
            (value, float(rng.normal())),
        ):
            store.append(entry)
        if column >= NUMBERS:
            set_of[node] = len(sets)
            sets.append(rng.random(WIDTH) < 0.5)
        if column >= 0:
            left[node], right[node] = grow(level + 1), grow(level + 1)
        return node

    grow(0)
    return Forest(
        feature=np.array(feature),
        threshold=np.array(threshold),
        left=np.array(left),
        right=np.array(right),
        missing_left=np.array(missing_left),
        value=np.array(value),
        roots=np.zeros(1, dtype=np.int64),
        intercept=np.zeros(()),
        size=COLUMNS,
        set_of=np.array(set_of),
        sets=np.array(sets).reshape(-1, WIDTH) if sets else np.zeros((0, 0), dtype=np.bool_),
    )


forests = st.integers(0, 2**32 - 1).map(
    lambda seed: Forest.joined(
        [random_tree(np.random.default_rng([seed, t]), depth=1 + t) for t in range(4)], intercept=np.zeros(())
    )
)


@settings(max_examples=examples(60), deadline=None)
@given(forests, st.integers(0, 2**32 - 1))
def test_leaves_add_up_to_one_and_all_paths_agree(form, seed):
    rng = np.random.default_rng(seed)
    rows = rng.choice(ROWS, (100, COLUMNS))
    reach = np.ones((len(form.reduce().coef), len(rows)))
    for j, function in enumerate(form.reduce().functions):
        if function is not None:
            reach *= function(rows[:, j])
    np.testing.assert_array_equal(reach.sum(axis=0), form.roots.size)
    boosters.assert_paths_agree(form, rows)
