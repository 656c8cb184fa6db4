"""XGBoost, LightGBM and CatBoost: numbers, missing values, integer codes, pandas categories."""

from __future__ import annotations

from typing import Any

from fuzz.families.columns import (
    CODES,
    MISSING_CODES,
    PLAIN_CODES,
    classes,
    number,
    pick,
    seeded,
    size,
    target,
)
from fuzz.families.trees import dimension
from fuzz.options import Menu
from fuzz.script import Call, Setup, call
from fuzz.tables import TableCase

_FRAME = "pd.DataFrame({{{}}})"


def _columns(rng: Any, d: int, *, coded: bool, kinds: Any = CODES) -> tuple[str, ...]:
    """Numbers with missing values; the first a column of codes if wanted."""
    result = [number(rng, missing=True) for _ in range(d)]
    if coded:
        result[0] = pick(rng, kinds)
    return tuple(result)


def _task(rng: Any) -> tuple[str, str, tuple[Any, ...]]:
    """Kind of model, target and outputs that are sums."""
    if rng.random() < 0.6:
        return "Regressor", target(rng), (None,)
    return "Classifier", classes(rng, int(rng.choice([2, 2, 3])), texts=False), ("margin",)


def xgboost(rng: Any, seed: int) -> TableCase:
    """gbtree and dart; codes as categories."""
    coded = rng.random() < 0.4
    d = dimension(rng)
    kind, y, outputs = _task(rng)
    options: dict[str, Any] = {
        "n_estimators": int(rng.integers(2, 8)),
        "max_depth": int(rng.integers(1, 5)),
        "learning_rate": pick(rng, (0.3, 1.0)),
        "n_jobs": 1,
    }
    if rng.random() < 0.25:
        options |= {"booster": "dart", "rate_drop": 0.4}
    if rng.random() < 0.25:
        options["tree_method"] = pick(rng, ("exact", "approx")) if not coded else "approx"
    if rng.random() < 0.2:
        options["subsample"] = 0.7
    if coded:
        options |= {"feature_types": ["c", *"q" * (d - 1)], "enable_categorical": True}
        if rng.random() < 0.5:
            options["max_cat_to_onehot"] = pick(rng, (1, 100))
    if kind == "Regressor" and not coded and rng.random() < 0.15:
        y, options["multi_strategy"] = f"np.column_stack([{y}, {target(rng)}])", "multi_output_tree"
        options.pop("booster", None)
        options.pop("rate_drop", None)
    model = Call(f"xgboost.XGB{kind}", (), options)
    # XGBoost refuses negative codes
    kinds = [c for c in CODES if "-1" not in c] + list(MISSING_CODES)
    setup = Setup(seed, size(rng), _columns(rng, d, coded=coded, kinds=kinds), y, model)
    codes = (0,) if coded else ()
    return TableCase(model.short, setup, Menu(outputs, categorical=codes, unnamed=coded))


def lightgbm(rng: Any, seed: int) -> TableCase:
    """gbdt, dart and rf; zero_as_missing, use_missing=False; codes as categories."""
    coded = rng.random() < 0.45
    d = dimension(rng)
    kind, y, outputs = _task(rng)
    options: dict[str, Any] = {
        "n_estimators": int(rng.integers(2, 8)),
        "num_leaves": int(rng.integers(2, 10)),
        "min_child_samples": int(rng.integers(1, 8)),
        "learning_rate": pick(rng, (0.3, 1.0)),
        "verbose": -1,
        "n_jobs": 1,
    }
    if rng.random() < 0.4:
        options |= pick(
            rng,
            (
                {"zero_as_missing": True},
                {"use_missing": False},
                {"boosting_type": "dart", "drop_rate": 0.5},
                {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.7},
                {"extra_trees": True},
            ),
        )
    if coded:
        options |= {"min_data_per_group": 1, "cat_smooth": 0.0, "cat_l2": 0.0}
        if rng.random() < 0.5:
            options["max_cat_to_onehot"] = pick(rng, (1, 100))
    model = Call(f"lightgbm.LGBM{kind}", (), options)
    fit = "X, y, categorical_feature=[0]" if coded else "X, y"
    if coded and rng.random() < 0.15:
        fit = "X[C[0] != 1], y[C[0] != 1], categorical_feature=[0]"
    kinds = CODES + MISSING_CODES
    setup = Setup(seed, size(rng, 60), _columns(rng, d, coded=coded, kinds=kinds), y, model, fit=fit)
    codes = (0,) if coded else ()
    return TableCase(model.short, setup, Menu(outputs, categorical=codes, unnamed=coded))


def catboost(rng: Any, seed: int) -> TableCase:
    """Three ways to grow, with missing values."""
    kind, y, outputs = _task(rng)
    model = Call(f"catboost.CatBoost{kind}", (), _catboost_options(rng))
    setup = Setup(seed, size(rng), _columns(rng, dimension(rng), coded=False), y, model)
    return TableCase(model.short, setup, Menu(outputs))


def _catboost_options(rng: Any) -> dict[str, Any]:
    return {
        "iterations": int(rng.integers(2, 8)),
        "depth": int(rng.integers(1, 5)),
        "learning_rate": pick(rng, (0.3, 1.0)),
        "grow_policy": pick(rng, ("SymmetricTree", "Depthwise", "Lossguide")),
        "random_seed": seeded(rng),
        "logging_level": "Silent",
        "allow_writing_files": False,
        "thread_count": 1,
    }


_TEXTS = "np.array(['u', 'v', 'w', 'x', 'y', 'z'])[C[{}].astype(int) % 6]"


def frames(rng: Any, seed: int) -> TableCase:
    """pandas tables: categories, texts, integers; one column of categories and some of numbers."""
    d = int(rng.choice([2, 3]))
    kind, y, outputs = _task(rng)
    library = pick(rng, ("catboost", "lightgbm", "xgboost", "sklearn"))
    texts = _TEXTS.format(0)
    cells = [f"'k': {texts if library == 'catboost' else f'pd.Categorical({texts})'}"]
    cells += [f"'{name}': C[{j + 1}]" for j, name in enumerate("ab"[: d - 1])]
    table = _FRAME.format(", ".join(cells))
    fit = "X, y"
    small = {"learning_rate": pick(rng, (0.3, 1.0)), "n_estimators": int(rng.integers(2, 8))}
    if library == "catboost":
        model = Call(
            f"catboost.CatBoost{kind}",
            (),
            {**_catboost_options(rng), "cat_features": ["k"], "one_hot_max_size": 20},
        )
    elif library == "lightgbm":
        model = Call(
            f"lightgbm.LGBM{kind}",
            (),
            {
                **small,
                "num_leaves": 6,
                "min_child_samples": 3,
                "min_data_per_group": 1,
                "verbose": -1,
                "n_jobs": 1,
            },
        )
    elif library == "xgboost":
        model = Call(
            f"xgboost.XGB{kind}", (), {**small, "max_depth": 3, "enable_categorical": True, "n_jobs": 1}
        )
    else:
        model = call(
            f"sklearn.ensemble.HistGradientBoosting{kind}",
            max_iter=5,
            max_depth=3,
            min_samples_leaf=3,
            categorical_features="from_dtype",
        )
    columns = _columns(rng, d, coded=True, kinds=PLAIN_CODES)
    setup = Setup(seed, size(rng, 60), columns, y, model, table=table, fit=fit)
    return TableCase(f"{model.short}, frame", setup, Menu(outputs))
