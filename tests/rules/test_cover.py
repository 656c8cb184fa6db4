"""Rules that cover a table, against enumerations of rows, of lists of rules, and of the law of draws.

Conditions are judged by their numbers and levels, not by what the rules themselves say holds; answers are
those of the model's own ``predict``.
"""

from __future__ import annotations

import json
import re
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import limes
from effort import repeats
from internals import shortest, widest
from limes.exceptions import InputError, NotReadableError, UnknownOptionError

COLUMNS, LEVELS = 5, 4


def xgboost():
    library = pytest.importorskip("xgboost")
    return library.XGBClassifier(n_estimators=12, max_depth=3, n_jobs=1)


MODELS = {
    "tree": lambda: DecisionTreeClassifier(max_depth=5, random_state=0),
    "forest": lambda: RandomForestClassifier(9, max_depth=4, random_state=0),
    # votes of pure leaves of an even number of trees are equal in many rows
    "ties": lambda: RandomForestClassifier(4, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=12, random_state=0),
    "xgboost": xgboost,
    "logistic": LogisticRegression,
    "kernel": SVC,
    "one-hot": lambda: make_pipeline(
        OneHotEncoder(sparse_output=False), GradientBoostingClassifier(n_estimators=12, random_state=0)
    ),
}
SEEDS = range(repeats(4, 1))
GRID = np.array([*product(np.arange(float(LEVELS)), repeat=COLUMNS)])


def meets(conditions, frame):
    """Which rows of a frame meet conditions, by their numbers and levels."""
    inside = np.ones(len(frame), dtype=bool)
    for each in conditions:
        values = frame[each.column]
        if each.levels is not None:
            holds = values.isin(each.levels).to_numpy()
        else:
            numbers = values.to_numpy(dtype=float)
            holds = ~np.isnan(numbers)
            holds &= numbers > (-np.inf if each.above is None else each.above)
            holds &= numbers <= (np.inf if each.at_most is None else each.at_most)
        inside &= holds | (values.isna().to_numpy() & each.missing)
    return inside


def grid_case(seed, kind, rows=120):
    """A model of whole numbers, its table and labels."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, LEVELS, (rows, COLUMNS)).astype(float)
    score = x[:, 0] - x[:, 1] + (x[:, 2] > 1) * x[:, 3] + 0.5 * rng.normal(size=rows)
    y = np.where(score > np.median(score), "yes", "no")
    if kind == "xgboost":
        y = (y == "yes").astype(int)
    names = [f"x{j}" for j in range(COLUMNS)]
    frame = pd.DataFrame(x, columns=names)
    model = MODELS[kind]()
    return model.fit(x, y), x, frame


def check_list(audit, frame, claimed):
    """Rows, coverage, exceptions and rows without a rule, computed again from conditions and claims."""
    covered = np.zeros(len(frame), dtype=bool)
    for rule in audit.rules:
        inside, has = meets(rule.conditions, frame), claimed(rule)
        assert [*np.flatnonzero(inside)] == [*rule.rows]
        assert rule.coverage == inside.mean()
        assert [*np.flatnonzero(inside & ~has)] == [*rule.exceptions]
        assert [*np.flatnonzero(inside & has & ~covered)] == [*rule.new_rows]
        assert rule.new_rows, "no rule of the list is needless"
        covered |= inside & has
    assert [*np.flatnonzero(~covered)] == [*audit.uncovered]
    assert audit.coverage == pytest.approx(covered.mean())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", MODELS)
def test_every_possible_row_of_a_certain_rule_has_its_class(kind, seed):
    model, x, frame = grid_case(seed, kind)
    audit = limes.rules.cover(model, x, output="margin" if kind == "kernel" else None)
    grid = pd.DataFrame(GRID, columns=frame.columns)
    of_grid, of_rows = (np.array([str(label) for label in model.predict(rows)]) for rows in (GRID, x))
    assert audit.complete
    assert audit.rules
    for rule in audit.rules:
        assert rule.proved
        assert not rule.exceptions
        assert {*of_grid[meets(rule.conditions, grid)]} == {rule.claim}
    check_list(audit, frame, lambda rule: of_rows == rule.claim)
    if kind != "kernel":  # whose bounds need not be tight
        assert audit.uncovered == ()
    held = audit.holds(GRID)
    assert [[*row] for row in held.T] == [[*meets(rule.conditions, grid)] for rule in audit.rules]


@pytest.mark.parametrize("kind", ["tree", "forest", "logistic"])
def test_no_condition_of_a_certain_rule_can_be_dropped(kind):
    model, x, frame = grid_case(0, kind)
    audit = limes.rules.cover(model, x)
    grid, of_grid = pd.DataFrame(GRID, columns=frame.columns), model.predict(GRID)
    for rule in audit.rules:
        for dropped in rule.conditions:
            rest = [each for each in rule.conditions if each is not dropped]
            assert {*of_grid[meets(rest, grid)]} == {"no", "yes"}


def test_relations_of_a_domain_make_rules_wider():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 6, 200).astype(float)
    x = pd.DataFrame({"part": a, "whole": a + rng.integers(0, 3, 200), "other": rng.integers(0, 3, 200)})
    y = (x["part"] + x["whole"] > 6).to_numpy()
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(x, y)
    domain = limes.Domain.fit(x, orders=[("part", "whole")])
    audit = limes.rules.cover(model, x, domain=domain)
    grid = pd.DataFrame(product(range(6), range(8), range(3)), columns=x.columns)
    grid = grid[grid["part"] <= grid["whole"]]
    of_grid = model.predict(grid)
    for rule in audit.rules:
        assert {*map(str, of_grid[meets(rule.conditions, grid)])} == {rule.claim}
    assert "part <= whole" in audit.domain
    free = limes.rules.cover(model, x, domain=limes.Domain.fit(x, orders=[]))
    assert len(audit.rules) <= len(free.rules)


def test_categories_and_missing_values():
    rng = np.random.default_rng(1)
    n = 150
    frame = pd.DataFrame(
        {
            "purpose": pd.Categorical(rng.choice(["car", "radio", "house"], n)),
            "income": rng.choice([1.0, 2.0, 3.0, np.nan], n),
            "age": rng.integers(20, 24, n),
        }
    )
    good = (frame["purpose"] == "car") | (frame["income"] > 1.5)
    model = HistGradientBoostingClassifier(
        max_iter=15, min_samples_leaf=4, categorical_features="from_dtype", random_state=0
    ).fit(frame, np.where(good, "good", "bad"))
    audit = limes.rules.cover(model, frame)
    values = product(["car", "radio", "house"], [1.0, 2.0, 3.0, np.nan], range(20, 24))
    grid = pd.DataFrame(values, columns=frame.columns)
    grid["purpose"] = pd.Categorical(grid["purpose"], categories=frame["purpose"].cat.categories)
    of_grid, of_rows = model.predict(grid), model.predict(frame)
    assert audit.uncovered == ()
    for rule in audit.rules:
        assert {*of_grid[meets(rule.conditions, grid)]} == {rule.claim}
    check_list(audit, frame, lambda rule: of_rows == rule.claim)
    levels = [each.levels for rule in audit.rules for each in rule.conditions if each.column == "purpose"]
    assert {*sum(levels, ())} <= {"car", "radio", "house"}


@pytest.mark.parametrize("objective", ["certain", "precision"])
@pytest.mark.parametrize("kind", [LinearRegression, lambda: GradientBoostingRegressor(n_estimators=8)])
def test_intervals_of_numbers(kind, objective):
    rng = np.random.default_rng(2)
    x = rng.integers(0, LEVELS, (100, COLUMNS)).astype(float)
    model = kind().fit(x, x[:, 0] * 2 - x[:, 1] + x[:, 2] * x[:, 3])
    audit = limes.rules.cover(model, x, within=2.0, objective=objective)
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(COLUMNS)])
    grid, of_grid = pd.DataFrame(GRID, columns=frame.columns), model.predict(GRID)
    of_rows, slack = model.predict(x), 1e-9
    for rule in audit.rules:
        assert rule.high - rule.low == pytest.approx(4.0)
        if objective == "certain":
            inside = of_grid[meets(rule.conditions, grid)]
            assert rule.low - slack <= inside.min()
            assert inside.max() <= rule.high + slack
    check_list(audit, frame, lambda rule: (of_rows >= rule.low - slack) & (of_rows <= rule.high + slack))
    assert audit.uncovered == ()


# -- rules that are precise ---------------------------------------------------------------------------------


def share_in(rule, frame, grid, claimed):
    """The share of other answers in a rule, where each column is drawn from the frame's values in it."""
    weight = np.ones(len(grid))
    inside = meets(rule.conditions, grid)
    for name in frame:
        of_column = [each for each in rule.conditions if each.column == name]
        possible = frame.loc[meets(of_column, frame), name]
        weight *= grid[name].map(possible.value_counts(normalize=True)).fillna(0.0)
    assert weight[inside].sum() == pytest.approx(1.0)
    return float(weight[inside & ~claimed].sum())


@pytest.mark.parametrize("kind", ["tree", "forest", "logistic"])
def test_precise_rules_keep_their_bounds_under_the_law_itself(kind):
    broken = rules = 0
    for seed in range(repeats(10, 4)):
        model, x, frame = grid_case(seed, kind)
        audit = limes.rules.cover(model, x, objective="precision", error=0.1, rng=seed)
        grid, of_grid, of_rows = (
            pd.DataFrame(GRID, columns=frame.columns),
            model.predict(GRID),
            model.predict(x),
        )
        check_list(audit, frame, lambda rule, of_rows=of_rows: of_rows == rule.claim)
        assert audit.uncovered == ()
        shares = [share_in(rule, frame, grid, of_grid == rule.claim) for rule in audit.rules]
        assert all(rule.bound <= 0.1 for rule in audit.rules)
        assert all(len(rule.exceptions) <= 0.1 * len(rule.rows) for rule in audit.rules)
        assert all(not rule.proved for rule in audit.rules)
        broken += any(share > rule.bound for share, rule in zip(shares, audit.rules, strict=True))
        rules += len(audit.rules)
    # each list fails with a probability of 5 % at most
    assert broken <= 1
    assert rules > 0


def test_precise_rules_of_a_function_are_fewer_than_certain_ones():
    model, x, frame = grid_case(3, "forest")
    certain = limes.rules.cover(model, x)
    precise = limes.rules.cover(
        lambda rows: model.predict_proba(rows)[:, 1],
        x,
        objective="precision",
        threshold=0.5,
        classes=("no", "yes"),
    )
    of_rows = model.predict(x)
    check_list(precise, frame, lambda rule: of_rows == rule.claim)
    assert len(precise.rules) < len(certain.rules)


def test_draws_keep_together_what_the_domain_does():
    rng = np.random.default_rng(0)
    one = rng.integers(0, 3, 200)
    x = pd.DataFrame(
        {f"job_{k}": (one == k).astype(float) for k in range(3)} | {"age": rng.integers(0, 9, 200)}
    )
    calls = []

    def predict(rows):
        calls.append(rows[[f"job_{k}" for k in range(3)]].to_numpy().sum(axis=1))
        return ((rows["job_1"] == 1) | (rows["age"] > 5)).to_numpy().astype(float)

    domain = limes.Domain.fit(x)
    assert domain.one_hot == ((0, 1, 2),)
    audit = limes.rules.cover(predict, x, objective="precision", threshold=0.5, domain=domain)
    assert audit.uncovered == ()
    assert {*np.concatenate(calls).tolist()} == {1.0}


# -- lists --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(repeats(150, 30)))
def test_lists_are_as_short_and_as_wide_as_any(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 9)), int(rng.integers(1, 16))
    covers = rng.random((m, n)) < rng.choice([0.15, 0.3, 0.5])
    every = covers.any(axis=0)
    lists = [list(its) for size in range(m + 1) for its in combinations(range(m), size)]
    fewest = min(len(its) for its in lists if (covers[its].any(axis=0) == every).all())
    chosen = shortest(covers)
    assert (covers[list(chosen.positions)].any(axis=0) == every).all()
    assert len(chosen.positions) == fewest == chosen.bound
    for length in range(1, m + 1):
        most = max(int(covers[its].any(axis=0).sum()) for its in lists if len(its) <= length)
        wide = widest(covers, length)
        assert len(wide.positions) <= length
        assert int(covers[list(wide.positions)].any(axis=0).sum()) == most == wide.bound


def test_greedy_choice_is_bettered_where_it_is_not_the_shortest():
    # two candidates cover all; the greedy one begins with the widest of three
    covers = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 1, 0, 1, 1, 0]], dtype=bool)
    covers = np.repeat(covers, [1, 1, 1], axis=0)
    assert sorted(shortest(covers).positions) == [0, 1]


def test_bounds_hold_where_no_program_is_solved(monkeypatch):
    module = pytest.importorskip("limes._rules.covering")
    monkeypatch.setattr(module, "_MOST_WHOLE", 0)
    for seed in range(30):
        covers = np.random.default_rng(seed).random((8, 14)) < 0.3
        every = covers.any(axis=0)
        sizes = [
            len(its)
            for size in range(9)
            for its in combinations(range(8), size)
            if (covers[list(its)].any(axis=0) == every).all()
        ]
        chosen = shortest(covers)
        assert chosen.bound <= min(sizes) <= len(chosen.positions)


def test_a_longest_list_covers_as_many_rows_as_its_candidates_can():
    model, x, _ = grid_case(1, "forest")
    whole, short = limes.rules.cover(model, x), limes.rules.cover(model, x, max_rules=3)
    assert len(short.rules) == 3 < len(whole.rules)
    assert short.fewest is None
    assert len(x) - len(short.uncovered) <= short.most
    assert short.coverage < 1.0 == whole.coverage
    assert f"cover more than {short.most} rows" in " ".join(str(short).split())


# -- what users see -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["certain", "precision"])
def test_the_same_call_gives_the_same_list(objective):
    model, x, _ = grid_case(2, "forest")
    first, second = (limes.rules.cover(model, x, objective=objective, rng=5) for _ in range(2))
    assert [rule.to_dict() for rule in first.rules] == [rule.to_dict() for rule in second.rules]


def test_time_that_is_spent_is_stated():
    model, x, _ = grid_case(0, "forest")
    audit = limes.rules.cover(model, x, time_limit=1e-9)
    assert audit.rules == ()
    assert not audit.complete
    assert audit.untried == len(x) == len(audit.uncovered)
    assert f"before {len(x)} rows could be looked at" in " ".join(str(audit).split())


def test_one_answer_needs_no_condition():
    model = DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"])
    audit = limes.rules.cover(model, [[0.0], [0.25]])
    assert [rule.text for rule in audit.rules] == ["every row  ->  no"]


def test_new_values_of_the_table_widen_the_domain():
    model = DecisionTreeClassifier().fit([[0.0], [4.0]], ["no", "yes"])
    domain = limes.Domain.fit([[0.0], [1.0]])
    audit = limes.rules.cover(model, [[0.0], [9.0]], domain=domain)
    assert audit.domain == ("x0: whole numbers from 0 to 9",)
    assert {rule.claim for rule in audit.rules} == {"no", "yes"}


def test_frames_json_and_pages():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"<b>age</b>": rng.integers(20, 60, 80), "city": rng.choice(["<i>", "b"], 80)})
    y = np.where((frame["<b>age</b>"] > 40) | (frame["city"] == "b"), "<u>yes", "no")
    encode = make_pipeline(
        OneHotEncoder(handle_unknown="ignore", sparse_output=False), DecisionTreeClassifier()
    )
    audit = limes.rules.cover(encode.fit(frame, y), frame)
    table = audit.to_frame()
    assert [*table["rows"]] == [len(rule.rows) for rule in audit.rules]
    assert [*table["claim"]] == [rule.claim for rule in audit.rules]
    whole = json.loads(json.dumps(audit.to_dict(), allow_nan=False))
    assert whole["rules"][0]["text"] == audit.rules[0].text
    assert whole["rules"][0]["rows"] == [*audit.rules[0].rows]
    page = audit._repr_html_()
    assert "&lt;b&gt;age" in page
    assert not any(tag in page + audit.rules[0]._repr_html_() for tag in ("<b>age", "<i>", "<u>yes"))
    assert repr(audit) == f"<RuleList: {len(audit.rules)} rules, 80 of 80 rows covered>"
    assert repr(audit.rules[0]) == f"<CoveringRule: {audit.rules[0].text}>"


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"objective": "sure"}, InputError, "objective='sure' is not one of"),
        ({"error": 0.1}, InputError, "objective='precision' allows"),
        ({"objective": "precision", "error": 2.0}, InputError, "error"),
        ({"threshold": 0.5, "within": 0.1}, InputError, "not both"),
        ({"domain": "all"}, InputError, "limes.Domain.fit"),
        ({"classes": ("one",)}, InputError, "two names"),
        ({"max_rules": 0}, InputError, "max_rules"),
        ({"max_rule": 3}, UnknownOptionError, "did you mean 'max_rules'"),
        ({"time_limit": -1.0}, InputError, "time_limit"),
    ],
)
def test_bad_options_are_refused(options, error, text):
    model, x, _ = grid_case(0, "tree")
    with pytest.raises(error, match=text):
        limes.rules.cover(model, x, **options)


OF_CLASSES = ["tree", "forest", "ties", "boosting", "logistic", "one-hot"]


def class_case(seed, kind):
    """A model of four classes of whole numbers, and its table."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, LEVELS, (120, COLUMNS)).astype(float)
    score = x[:, 0] - x[:, 1] + (x[:, 2] > 1) * x[:, 3] + 0.5 * rng.normal(size=len(x))
    labels = np.array(["least", "less", "more", "most"])
    y = labels[np.digitize(score, np.quantile(score, [0.25, 0.5, 0.75]))]
    return MODELS[kind]().fit(x, y), x


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", OF_CLASSES)
def test_rules_of_several_classes_claim_the_one_that_is_predicted(kind, seed):
    model, x = class_case(seed, kind)
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(COLUMNS)])
    grid, of_grid, of_rows = pd.DataFrame(GRID, columns=frame.columns), model.predict(GRID), model.predict(x)
    audit = limes.rules.cover(model, x)
    assert audit.output == "class"
    assert audit.uncovered == ()
    for rule in audit.rules:
        assert rule.proved
        assert (rule.low, rule.high) == (-np.inf, np.inf)
        assert {*of_grid[meets(rule.conditions, grid)]} == {rule.claim}
    check_list(audit, frame, lambda rule: of_rows == rule.claim)
    assert {rule.claim for rule in audit.rules} == {*of_rows}


@pytest.mark.parametrize("kind", ["forest", "logistic"])
def test_bounds_of_rules_of_several_classes_hold_for_rows_of_an_independent_sampler(kind):
    model, x = class_case(0, kind)
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(COLUMNS)])
    audit = limes.rules.cover(model, x, objective="precision", error=0.1, classes=["a", "b", "c", "d"])
    names = dict(zip("abcd", ["least", "less", "more", "most"], strict=True))
    rng = np.random.default_rng(1)
    for rule in audit.rules:
        inside = frame[meets(rule.conditions, frame)]
        # each column from the values of the table that meet its condition
        columns = [
            frame[name][meets([each for each in rule.conditions if each.column == name], frame)]
            for name in frame
        ]
        drawn = np.column_stack([rng.choice(values, 20_000) for values in columns])
        assert (model.predict(drawn) != names[rule.claim]).mean() <= rule.bound + 0.01
        assert rule.bound <= 0.1
        assert len(inside) == len(rule.rows)


def test_names_of_several_classes_are_as_many():
    model, x = class_case(0, "tree")
    with pytest.raises(InputError, match=r"classes must be 4 names, of .*'least'"):
        limes.rules.cover(model, x, classes=["no", "yes"])
    assert limes.rules.cover(model, x, output="less").rules


def test_models_without_bounds_or_classes_are_refused():
    _, x, _ = grid_case(0, "tree")
    with pytest.raises(InputError, match="rules need within="):
        limes.rules.cover(LinearRegression().fit(x, x[:, 0]), x)
    with pytest.raises(NotReadableError, match="objective='precision' takes any model"):
        limes.rules.cover(lambda rows: rows[:, 0], x, threshold=0.5)
    domain = limes.Domain.fit(x, fixed=["x1"])
    with pytest.raises(InputError, match="fixed= keeps 'x1'"):
        limes.rules.cover(DecisionTreeClassifier().fit(x, x[:, 0] > 1), x, domain=domain)
    related = limes.Domain.fit([[0.0, 1.0], [1.0, 2.0]], orders=[(0, 1)])
    tree = DecisionTreeClassifier().fit([[0.0, 1.0], [1.0, 2.0]], [0, 1])
    with pytest.raises(InputError, match="row 1 breaks 'x0 <= x1'"):
        limes.rules.cover(tree, [[0.0, 1.0], [2.0, 1.0]], domain=related)


@pytest.mark.parametrize("seed", range(3))
def test_a_written_interval_allows_nothing_that_was_not_proved(seed):
    """The text of a condition is read as a person reads it, and lies in the interval that was proved."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"fare": rng.lognormal(3.0, 1.0, 120), "age": rng.uniform(1.0, 80.0, 120).round(1)})
    y = (X["fare"] * 0.7 + X["age"] > 50.0).astype(int)
    model = RandomForestClassifier(10, max_depth=4, random_state=seed).fit(X, y)
    audit = limes.rules.cover(model, X)
    conditions = [each for rule in audit.rules for each in rule.conditions]
    assert conditions
    for each in conditions:
        ends = re.fullmatch(
            rf"(?:(?P<low>[\d.]+) < )?{each.column}(?: > (?P<above>[\d.]+))?(?: <= (?P<high>[\d.]+))?",
            each.text,
        )
        low, high = ends["low"] or ends["above"], ends["high"]
        assert (low is None) == (each.above is None)
        assert (high is None) == (each.at_most is None)
        values = X[each.column]
        written = values.between(
            float(low) if low else -np.inf, float(high) if high else np.inf, inclusive="right"
        )
        exact = values.between(
            -np.inf if each.above is None else each.above,
            np.inf if each.at_most is None else each.at_most,
            inclusive="right",
        )
        assert (written == exact).all()
        if low:
            assert each.above <= float(low)
        if high:
            assert float(high) <= each.at_most


def test_rules_are_printed_as_wide_as_the_terminal_and_rows_by_their_names(monkeypatch):
    rng = np.random.default_rng(0)
    names = [f"a_column_with_a_long_name_{j}" for j in range(4)]
    x = pd.DataFrame(rng.random((60, 4)), columns=names, index=[f"case-{i}" for i in range(60)])
    model = DecisionTreeClassifier(random_state=0).fit(x, (x.sum(axis=1) > 2.0).astype(int))
    audit = limes.rules.cover(model, x, max_rules=2)
    assert audit.uncovered
    assert audit.uncovered_ids == tuple(x.index[list(audit.uncovered)])
    for width in (80, 160):
        monkeypatch.setenv("COLUMNS", str(width))
        text = str(audit)
        assert max(map(len, text.splitlines())) <= width
        assert audit.uncovered_ids[0] in text
        for rule in audit.rules:
            for condition in rule.conditions:  # no condition is broken
                assert any(condition.text in line for line in text.splitlines())
            assert f"->  {rule.claim}" in text
            assert f"rows: {len(rule.rows)}" in text
    precise = limes.rules.cover(model, x, objective="precision", error=0.3, rng=0)
    for rule in precise.rules:
        assert rule.exception_ids == tuple(x.index[list(rule.exceptions)])
        assert all(name in str(rule) for name in rule.exception_ids[:8])
    assert json.loads(json.dumps(audit.to_dict()))["uncovered_ids"] == [*audit.uncovered_ids]
