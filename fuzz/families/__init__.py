"""Families of random cases. A family is a function (generator, seed) -> case with a share in the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from fuzz.families import (
    accounts,
    beside,
    boosted,
    differences,
    groups,
    images,
    kernels,
    linear,
    links,
    model_changes,
    pairs,
    pipelines,
    texts,
    trees,
)

__all__ = ["FAMILIES", "draw"]

Generator: TypeAlias = Callable[[Any, int], Any]

# A family's generators, each with its share
FAMILIES: Mapping[str, tuple[tuple[Generator, float], ...]] = {
    "trees": (
        (trees.plain, 2.0),
        (trees.boosting, 2.0),
        (trees.histogram, 2.0),
        (trees.composed, 2.0),
        (trees.targets, 0.7),
        (trees.isolation, 0.5),
        (trees.wide, 0.2),
        (boosted.xgboost, 3.0),
        (boosted.lightgbm, 3.5),
        (boosted.catboost, 2.0),
        (boosted.frames, 1.5),
    ),
    "tables": (
        (linear.plain, 2.0),
        (linear.wide, 0.2),
        (linear.polynomial, 1.0),
        (kernels.plain, 1.5),
        (pipelines.scaled, 2.5),
        (pipelines.stepwise, 1.0),
        (pipelines.encoded, 2.5),
        (pipelines.columns, 2.0),
        (pipelines.additive, 1.0),
        (pipelines.margins, 1.0),
    ),
    "links": (
        (links.plain, 3.0),
        (links.stumps, 1.0),
        (links.pairs, 2.0),
        (links.results, 2.0),
        (links.networks, 2.0),
        (links.words, 2.0),
    ),
    "texts": ((texts.text, 1.0),),
    "images": ((images.image, 1.0),),
    "accounts": accounts.generators(),
    "beside": beside.generators(),
    "pairs": pairs.generators(),
    "differences": differences.generators(),
    "groups": groups.generators(),
    "model changes": model_changes.generators(),
}


def draw(family: str, rng: Any, seed: int) -> Any:
    """A case of a family."""
    generators = FAMILIES[family]
    shares = [share for _, share in generators]
    total = sum(shares)
    place = rng.choice(len(generators), p=[share / total for share in shares])
    return generators[place][0](rng, seed)
