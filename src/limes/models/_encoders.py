"""Columns that a model takes for categories, as its encoders store them, whatever stands behind these.

A walk follows the user's columns from step to step, through pipelines, column transformers, unions and the
parts of any model that was fitted on the same columns, as long as a step leaves their values as they are. A
step that stores what it knows of a column is its encoder:

    categories_                     scikit-learn's encoders, and those written like them
    {column: values or mapping}     a mapping of the step's columns
    [mapping, ...]                  a mapping of values for each column, all values of the background in it

and of models that take categories the positions that these store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes.models._calling.border import FAILURES, failure_text
from limes.models._identity import qualified_name

# The user's column behind each column of a step; None where a step before has changed it
Sources = Sequence[int | None]

# Steps of scikit-learn that leave the values of their columns as they are, missing ones apart
_UNCHANGED = ("sklearn.FunctionTransformer", "sklearn.SimpleImputer")
# Parts that get other columns than the model: the answers of models before them
_OTHER_COLUMNS = ("final_estimator_", "final_estimator")
# Models inside of models, inside of models, ...: no one nests more
_DEEPEST = 8


def encoded_columns(
    model: Any, names: Sequence[str], values: Callable[[int], Collection[Any]] = lambda _: ()
) -> dict[int, list[Any]]:
    """The columns that an encoder of the model takes for categories, by position, and what it has of each.

    ``names`` are the user's columns, and ``values`` the values that one of them has, by its position. A
    model that takes categories itself has [].
    """
    walk = _Walk(tuple(names), values, {}, set())
    try:
        walk.through(model, range(len(names)))
    except FAILURES as error:  # an attribute of the user's may be anything
        failure_text(error)
    return walk.encoded


def encoded_texts(model: Any, names: Sequence[str]) -> dict[int, list[str]]:
    """The columns whose encoder has texts alone, by position, with these."""
    encoded = encoded_columns(model, names)
    texts = {j: [v for v in values if not _is_missing(v)] for j, values in encoded.items()}
    return {j: its for j, its in texts.items() if its and all(isinstance(v, str) for v in its)}


@dataclass(frozen=True, eq=False)
class _Walk:
    names: tuple[str, ...]
    values: Callable[[int], Collection[Any]]
    encoded: dict[int, list[Any]]
    seen: set[int]  # of the parts of models, by identity

    def through(self, step: Any, sources: Sources, depth: int = 0) -> Sources:
        """Note the columns that a step encodes; return the columns behind it."""
        if step is None or isinstance(step, str):
            return sources
        if isinstance(getattr(step, "steps", None), list):
            for _, inner in step.steps:
                sources = self.through(inner, sources, depth + 1)
            return sources
        if isinstance(getattr(step, "_transformer_to_input_indices", None), Mapping):
            return self._side_by_side(step, sources, depth)
        if isinstance(getattr(step, "transformer_list", None), list):
            behind = [self.through(part, sources, depth + 1) for _, part in step.transformer_list]
            return [source for part in behind for source in part]
        stored = _categories(step, self._labels(step, sources), sources, self.values)
        if stored:
            self._note(sources, stored)
            return []
        if _is_unchanged(step):
            return _kept(step, sources)
        if _is_of(step, "sklearn") and hasattr(step, "get_support"):
            return [source for source, keeps in zip(sources, step.get_support(), strict=False) if keeps]
        if depth < _DEEPEST:
            self._inside(step, sources, depth)
        return []

    def _note(self, sources: Sources, stored: Mapping[int, list[Any]]) -> None:
        for i, categories in stored.items():
            if (source := sources[i]) is not None:
                self.encoded.setdefault(source, categories)

    def _labels(self, step: Any, sources: Sources) -> list[Any]:
        """Names of a step's columns: those it was fitted on, or the user's."""
        fitted = _names_of(step)
        if len(fitted) == len(sources):
            return fitted
        return [i if source is None else self.names[source] for i, source in enumerate(sources)]

    def _side_by_side(self, step: Any, sources: Sources, depth: int) -> Sources:
        """Each transformer's columns in its place among those of all."""
        inputs, places = step._transformer_to_input_indices, step.output_indices_  # noqa: SLF001 - masks and names, resolved
        sources = self._as_fitted(step, sources)
        behind: list[int | None] = [None] * max((place.stop for place in places.values()), default=0)
        for name, part, _ in step.transformers_:
            if part == "drop" or not len(inputs[name]):
                continue
            its = [sources[i] if i < len(sources) else None for i in inputs[name]]
            after, place = self.through(part, its, depth + 1), places[name]
            if len(after) == place.stop - place.start:
                behind[place] = after
        return behind

    def _as_fitted(self, step: Any, sources: Sources) -> Sources:
        """The columns in the order of those that a step was fitted on, if it stores their names."""
        fitted = _names_of(step)
        by_name = {self.names[source]: source for source in sources if source is not None}
        if not by_name.keys() & {*fitted}:
            return sources
        return [by_name.get(name) for name in fitted]

    def _inside(self, model: Any, sources: Sources, depth: int) -> None:
        """Look into the parts of a model that get its columns."""
        if id(model) in self.seen:
            return
        self.seen.add(id(model))
        self._note(sources, {j: [] for j in _categories_of_model(model) if j < len(sources)})
        if _is_of(model, "sklearn") and hasattr(model, "transform") and not hasattr(model, "predict"):
            return  # what is inside of scikit-learn's transformers gets other columns
        chosen = getattr(model, "estimators_features_", None)
        for name, parts in _parts(model):
            for i, part in enumerate(parts):
                its = sources
                if name == "estimators_" and isinstance(chosen, list) and i < len(chosen):
                    its = [sources[j] if j < len(sources) else None for j in chosen[i]]
                if _gets(part, its, self.names):
                    self.through(part, self._as_fitted(part, its), depth + 1)


def _parts(model: Any) -> Iterator[tuple[str, Sequence[Any]]]:
    """Attributes of a model that may be models, or lists of them, by name."""
    for name, value in tuple(getattr(model, "__dict__", {}).items()):
        if name in _OTHER_COLUMNS:
            continue
        if isinstance(value, Mapping):
            value = [*value.values()]
        elif isinstance(value, np.ndarray):
            value = value.ravel().tolist() if value.dtype == object else []
        yield name, value if isinstance(value, list | tuple) else [value]


def _gets(part: Any, sources: Sources, names: Sequence[str]) -> bool:
    """Whether a part is fitted on these columns: by their names, or by their number."""
    if not hasattr(part, "__dict__") or isinstance(part, type):
        return False
    inner = getattr(part, "estimator", None)  # a calibrated part has no names, the one inside it has
    if fitted := _names_of(part) or _names_of(inner):
        return {*fitted} <= {names[source] for source in sources if source is not None}
    return len(sources) in (getattr(part, "n_features_in_", None), getattr(inner, "n_features_in_", None))


def _names_of(step: Any) -> list[Any]:
    """Names of the columns that a step was fitted on; [] if it stores none."""
    names = getattr(step, "feature_names_in_", None)
    return [*names] if isinstance(names, list | tuple | np.ndarray) else []


def _is_of(step: Any, library: str) -> bool:
    return qualified_name(type(step)).startswith(f"{library}.")


def _categories_of_model(model: Any) -> list[int]:
    """Positions of the columns that a model itself takes for categories."""
    if _is_of(model, "catboost"):
        return [int(j) for j in model.get_cat_feature_indices()]
    flags = getattr(model, "is_categorical_", None)  # HistGradientBoosting
    return np.flatnonzero(flags).tolist() if isinstance(flags, np.ndarray) else []


# -- one step ------------------------------------------------------------------------------------------------


def _is_unchanged(step: Any) -> bool:
    if qualified_name(type(step)) not in _UNCHANGED:
        return False
    return getattr(step, "func", None) is None and getattr(step, "indicator_", None) is None


def _kept(step: Any, sources: Sources) -> Sources:
    """The columns that an imputer does not drop: those that had values in training."""
    statistics = getattr(step, "statistics_", None)
    if statistics is None or len(statistics) != len(sources) or step.keep_empty_features:
        return sources
    return [s for s, fill in zip(sources, statistics, strict=True) if fill is not None and fill == fill]


def _categories(
    step: Any, labels: Sequence[Any], sources: Sources, values: Callable[[int], Collection[Any]]
) -> dict[int, list[Any]]:
    """The categories that a step stores, by the positions of its columns; {} if it is not an encoder."""
    if not hasattr(step, "transform"):
        return {}
    stored, count = getattr(step, "categories_", None), len(sources)
    if isinstance(stored, Mapping):
        its = {i: stored.get(label, stored.get(i)) for i, label in enumerate(labels)}
        return {i: [*categories] for i, categories in its.items() if categories is not None}
    if isinstance(stored, list | tuple | np.ndarray):
        if count == 1 and (len(stored) != 1 or not np.ndim(stored[0])):
            stored = [stored]  # of one column, without a list around it
        if len(stored) == count:
            return {i: np.asarray(categories).ravel().tolist() for i, categories in enumerate(stored)}
    if _is_of(step, "sklearn"):
        return {}
    mapped: dict[int, list[Any]] = {}
    for value in tuple(getattr(step, "__dict__", {}).values()):
        for i, categories in _by_column(value, labels):
            source = sources[i]
            if source is not None and {*values(source)} <= {*categories}:
                mapped.setdefault(i, categories)
    return mapped


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _by_column(value: Any, labels: Sequence[Any]) -> Iterator[tuple[int, list[Any]]]:
    """The categories of each column in an attribute that is a mapping of columns, or a list of mappings."""
    if isinstance(value, Mapping):
        keyed = {i: value[label] for i, label in enumerate(labels) if label in value}
        keyed |= {i: value[i] for i in range(len(labels)) if i not in keyed and i in value}
        entries = [(i, entry) for i, entry in keyed.items() if isinstance(entry, Mapping)]
        if not entries and len(labels) == 1:
            entries = [(0, value)]
    elif isinstance(value, list | tuple) and len(value) == len(labels):
        entries = [(i, entry) for i, entry in enumerate(value) if isinstance(entry, Mapping)]
    else:
        return
    yield from ((i, [*entry]) for i, entry in entries)
