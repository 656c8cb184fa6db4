"""Ways to explain an item by features that are kept or removed; captum's is the same for all items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np


class Item(Protocol):
    """An explained input: ``size`` features, and a function of inputs."""

    @property
    def size(self) -> int: ...

    def ask(self, inputs: Any) -> Any:
        """Probability of the item's class (n,)."""
        ...

    def masked(self, z: Any) -> Any:
        """Probability (n,) where the features of z (n, d) are kept."""
        ...


Way = Callable[[Any, int], Any]


def ways(limes: Way, lime: Way, partition: Way, calls: int) -> dict[str, Way]:
    """Ways by the name of their library: (item, seed) -> coefficients (d,)."""
    return {
        "limes": limes,
        "lime": lime,
        "shap.Partition": partition,
        "captum.Lime": lambda item, seed: captum_lime(item, calls, seed),
        "captum.Lime, least squares": lambda item, seed: captum_lime(item, calls, seed, linear=True),
    }


def of_both_classes(item: Item) -> Callable[[Any], Any]:
    """Probabilities (n, 2) of all else and of the item's class, as lime wants them."""

    def both(inputs: Any) -> Any:
        p = item.ask(inputs)
        return np.column_stack([1 - p, p])

    return both


def captum_lime(item: Item, calls: int, seed: int, *, linear: bool = False) -> Any:
    """Coefficients (d,): by its default, a lasso of penalty 0.01, or least squares."""
    import torch
    from captum._utils.models.linear_model import SkLearnLasso, SkLearnLinearRegression
    from captum.attr import Lime

    torch.manual_seed(seed)
    model = SkLearnLinearRegression() if linear else SkLearnLasso(alpha=0.01)
    explainer = Lime(
        lambda z: torch.as_tensor(np.asarray(item.masked(z.numpy() > 0.5))), interpretable_model=model
    )
    result = explainer.attribute(
        torch.ones(1, item.size),
        baselines=torch.zeros(1, item.size),
        n_samples=calls,
        perturbations_per_eval=50,
    )
    return result[0].detach().numpy().astype(float)
