"""Tables of the other families, whose contributions are compared; and columns that are equal."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fuzz.accounts import AccountCase
from fuzz.families import boosted, kernels, linear, links, pipelines, trees
from fuzz.families.columns import number, pick, size, target
from fuzz.options import Menu
from fuzz.script import Setup, call
from fuzz.tables import TableCase

_ALIKE = (
    call("sklearn.linear_model.Ridge"),
    call("sklearn.svm.SVR", C=10.0),
    call("sklearn.kernel_ridge.KernelRidge", kernel="rbf", gamma=0.5),
    call("sklearn.linear_model.PoissonRegressor"),
)


def account(generator: Callable[[Any, int], TableCase], rng: Any, seed: int) -> AccountCase:
    """A case of another family."""
    return AccountCase.of(generator(rng, seed))


def twins(rng: Any, seed: int) -> AccountCase:
    """Two columns with the same values, and a model that treats them alike."""
    model = pick(rng, _ALIKE)
    columns = tuple(number(rng, odd=False) for _ in range(int(rng.choice([1, 2]))))
    table = "np.column_stack([C[0], *C]).astype(float)"
    y = f"np.abs({target(rng)})" if "Poisson" in model.name else target(rng)
    case = TableCase(
        model.short, Setup(seed, size(rng, 25, 40), columns, y, model, table), Menu(), "smooth", 0.7
    )
    return AccountCase.of(case, twins=True)


def tables() -> dict[Callable[[Any, int], TableCase], float]:
    """Return those of tables that have a grid, each with its share."""
    return {
        trees.plain: 2.0,
        trees.boosting: 1.5,
        trees.histogram: 1.5,
        trees.composed: 1.5,
        boosted.xgboost: 1.5,
        boosted.lightgbm: 1.5,
        boosted.catboost: 1.0,
        boosted.frames: 1.0,
        linear.plain: 1.0,
        linear.polynomial: 0.7,
        kernels.plain: 2.0,
        pipelines.scaled: 1.0,
        pipelines.encoded: 1.0,
        pipelines.columns: 1.0,
        pipelines.additive: 0.7,
        links.plain: 2.0,
        links.stumps: 0.7,
        links.pairs: 1.0,
        links.networks: 1.5,
    }


def generators() -> tuple[tuple[Callable[[Any, int], AccountCase], float], ...]:
    """Return those of tables that have a grid, and of equal columns."""
    return (*((partial(account, one), share) for one, share in tables().items()), (twins, 1.5))
