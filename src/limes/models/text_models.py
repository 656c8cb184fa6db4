"""Models of texts: the steps that turn texts into numbers, and the estimator behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from limes.exceptions import InputError, ModelError
from limes.models.identity import qualified_name

_SEARCHES = tuple(
    f"sklearn.{name}"
    for name in ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")
)
VECTORIZERS = ("sklearn.CountVectorizer", "sklearn.TfidfVectorizer", "sklearn.HashingVectorizer")


@dataclass(frozen=True, eq=False)
class TextModel:
    """A model of texts.

    Attributes
    ----------
    steps
        Applied to texts, one after the other; none if the model takes texts.
    head
        The estimator behind them.
    """

    steps: tuple[Any, ...]
    head: Any

    @classmethod
    def from_model(cls, model: Any, vectorizer: Any = None) -> TextModel:
        """Take a Pipeline apart, or put a vectorizer in front of a model.

        Raises
        ------
        InputError
            If the model takes numbers and there is no vectorizer.
        """
        if vectorizer is not None and (isinstance(vectorizer, type) or not hasattr(vectorizer, "transform")):
            raise InputError(
                "vectorizer must be fitted and have a transform method, as a TfidfVectorizer has; got "
                f"{vectorizer.__name__ if isinstance(vectorizer, type) else type(vectorizer).__name__}"
            )
        steps, head = _taken_apart(model)
        if vectorizer is not None and steps and qualified_name(type(steps[0])) in VECTORIZERS:
            raise InputError(
                f"the Pipeline has a {type(steps[0]).__name__}: leave vectorizer= out, or pass "
                "the Pipeline's last step with it"
            )
        steps = steps if vectorizer is None else (vectorizer, *steps)
        if not steps and hasattr(head, "n_features_in_"):
            raise InputError(
                f"{type(head).__name__} takes {head.n_features_in_} numbers, not texts: pass the "
                "vectorizer, TextExplainer(model, vectorizer=vectorizer), or a Pipeline of both"
            )
        return cls(steps, head)

    def encode(self, texts: Sequence[str]) -> Any:
        """The input of the head for texts.

        Raises
        ------
        ModelError
            If a step raises.
        """
        return transform(self.steps, list(texts))


def transform(steps: Sequence[Any], batch: Any) -> Any:
    """Apply steps to texts or rows.

    Raises
    ------
    ModelError
        If a step raises.
    """
    for step in steps:
        try:
            batch = step.transform(batch)
        except Exception as error:
            name, kind = type(step).__name__, type(error).__name__
            raise ModelError(
                f"{name}.transform raised {kind}: {error}{_advice(step, batch)}", batch=batch
            ) from error
    return batch


def _advice(step: Any, batch: Any) -> str:
    """Advice if texts were passed to a step that takes none."""
    if not isinstance(batch, list) or qualified_name(type(step)) in VECTORIZERS:
        return ""
    return (
        "; it was called on a list of texts: pass a vectorizer, TextExplainer(model, "
        "vectorizer=vectorizer), or a callable on a list of texts"
    )


def _taken_apart(model: Any) -> tuple[tuple[Any, ...], Any]:
    """Steps and last estimator of Pipelines, also if nested, searched over or frozen."""
    if qualified_name(type(model)) in _SEARCHES and hasattr(model, "best_estimator_"):
        return _taken_apart(model.best_estimator_)
    if qualified_name(type(model)) == "sklearn.FrozenEstimator":
        return _taken_apart(model.estimator)
    if qualified_name(type(model)) != "sklearn.Pipeline":
        return (), model
    before = tuple(step for _, step in model.steps[:-1] if step is not None and step != "passthrough")
    steps, head = _taken_apart(model.steps[-1][1])
    return (*before, *steps), head
