"""The explanation of explainers: shap's own class where shap is installed, else one like it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from limes.exceptions import InputError

# Axes of each field: rows "n", features "d", outputs "k"
_AXES = {
    "values": "ndk",
    "error_std": "ndk",
    "base_values": "nk",
    "data": "nd",
    "display_data": "nd",
    "feature_names": "d",
    "output_names": "k",
    "instance_names": "n",
}


@dataclass(eq=False)
class Explanation:
    """Contributions of features at rows, with the names and values of shap's class, without its plots.

    Parameters
    ----------
    values : (n, d) or (n, d, k)
        Contributions, which add up with ``base_values``, (n,) or (n, k), to the model's outputs.
    base_values, data, display_data, error_std
        Bases; the rows (n, d) as they are, and as they are shown; standard errors of the values, or None.
    feature_names, output_names, instance_names
        Names of columns, outputs and rows, or None.
    compute_time
        Seconds, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from limes.compat.shap.explanation import Explanation
    >>> explanation = Explanation(np.array([[1.0, -2.0]]), np.array([3.0]), feature_names=["age", "bmi"])
    >>> explanation[0].values.tolist(), float(explanation[0, "bmi"].values)
    ([1.0, -2.0], -2.0)
    """

    values: Any
    base_values: Any = None
    data: Any = None
    display_data: Any = None
    instance_names: Any = None
    feature_names: Any = None
    output_names: Any = None
    error_std: Any = None
    compute_time: float | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""
        return tuple(np.shape(self.values))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Explanation:
        """Select rows, features and outputs by position or by name, as of an array."""
        keys = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in [k for k in keys if k is Ellipsis]:
            at = next(i for i, k in enumerate(keys) if k is Ellipsis)
            keys[at : at + 1] = [slice(None)] * (3 - len(keys) + 1)
        axes = dict(zip("ndk", keys, strict=False))
        for axis, names in (("d", self.feature_names), ("k", self.output_names)):
            if isinstance(axes.get(axis), str):
                axes[axis] = _position(axes[axis], names)
        changed = {}
        for each in fields(self):
            value, letters = getattr(self, each.name), _AXES.get(each.name)
            if value is None or letters is None:
                continue
            array = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)
            index = tuple(axes.get(letter, slice(None)) for letter in letters)
            changed[each.name] = array[index[: array.ndim]] if array.ndim else value
        return replace(self, **changed)

    def _reduced(self, reduction: Any, axis: int) -> Explanation:
        return replace(self, values=reduction(self.values, axis=axis), base_values=None, data=None)

    @property
    def abs(self) -> Explanation:
        """The sizes of the values."""
        return replace(self, values=np.abs(self.values))

    def mean(self, axis: int) -> Explanation:
        """The mean of the values over an axis."""
        return self._reduced(np.mean, axis)

    def max(self, axis: int) -> Explanation:
        """The largest of the values over an axis."""
        return self._reduced(np.max, axis)

    def min(self, axis: int) -> Explanation:
        """The smallest of the values over an axis."""
        return self._reduced(np.min, axis)

    def sum(self, axis: int) -> Explanation:
        """The sum of the values over an axis."""
        return self._reduced(np.sum, axis)


def _position(name: str, names: Any) -> int:
    texts = [] if names is None else [*map(str, names)]
    if name not in texts:
        raise InputError(f"nothing is called {name!r}; names are {texts}")
    return texts.index(name)


def has_shap() -> bool:
    """Whether shap itself is installed."""
    return _peer[0] is not None if _peer else find_spec("shap") is not None


def explanation_class() -> Any:
    """The class of shap, or the one here where shap is not installed."""
    peer = shap_module()
    return Explanation if peer is None else peer.Explanation


# shap itself, once it was needed; under the name "shap" there may be this package by then
_peer: list[Any] = []


def shap_module() -> Any:
    """The library shap itself, None where it is not installed."""
    if not _peer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own imports warn of matplotlib's next version
            _peer.append(import_module("shap") if has_shap() else None)
    return _peer[0]


def is_loaded_here(module: Any) -> bool:
    """Whether a module is shap itself, and this package loaded it."""
    return bool(_peer) and _peer[0] is module
