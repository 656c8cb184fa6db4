"""Kernel machines on numbers."""

from __future__ import annotations

from typing import Any

from fuzz.families.columns import classes, number, pick, size, target
from fuzz.families.linear import few
from fuzz.options import Menu
from fuzz.script import Call, Raw, Setup, call
from fuzz.tables import TableCase

_RBF = Raw("RBF(1.3, 'fixed')", ("from sklearn.gaussian_process.kernels import RBF",))


def machine(rng: Any) -> tuple[Call, str, tuple[Any, ...]]:
    """A machine that adds up kernels, its target and its outputs."""
    gamma = pick(rng, ("scale", 0.1, 0.5, 1.5))
    kind = int(rng.integers(6))
    if kind == 0:
        return call("sklearn.svm.SVR", C=pick(rng, (1.0, 10.0)), gamma=gamma), target(rng), (None,)
    if kind == 1:
        return call("sklearn.svm.NuSVR", gamma=gamma), target(rng), (None,)
    if kind == 2:
        return call("sklearn.svm.SVC", gamma=gamma), classes(rng), ("margin",)
    if kind == 3:
        options = {"kernel": "rbf", "gamma": pick(rng, (0.1, 0.5, 1.5)), "alpha": pick(rng, (0.1, 1.0))}
        return Call("sklearn.kernel_ridge.KernelRidge", (), options), target(rng), (None,)
    if kind == 4:
        options = {"kernel": _RBF, "alpha": 0.1, "normalize_y": bool(rng.integers(2))}
        return Call("sklearn.gaussian_process.GaussianProcessRegressor", (), options), target(rng), (None,)
    kernel = pick(rng, ("linear", "poly"))
    return call("sklearn.svm.SVR", kernel=kernel, degree=2), target(rng), (None,)


def plain(rng: Any, seed: int) -> TableCase:
    """Smooth laws for one or two columns, laws of points for three."""
    model, y, outputs = machine(rng)
    model_or_scaled = model
    if rng.random() < 0.5:
        model_or_scaled = call(
            "sklearn.pipeline.make_pipeline", call("sklearn.preprocessing.StandardScaler"), model
        )
    if rng.random() < 0.5:
        setup = Setup(seed, size(rng, 25, 60), few(rng, 3), y, model_or_scaled)
        return TableCase(model.short, setup, Menu(outputs, laws=("empirical",)), "atoms")
    columns = tuple(number(rng, odd=False) for _ in range(int(rng.choice([1, 1, 2]))))
    setup = Setup(seed, size(rng, 25, 60), columns, y, model_or_scaled)
    return TableCase(model.short, setup, Menu(outputs, narrow=0.2), "smooth", 0.7)
