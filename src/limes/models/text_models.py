"""Models of texts: the steps that make numbers of texts, and the estimator behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from limes.exceptions import InputError, ModelError
from limes.models.asking import class_name

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
        What is done to texts, one after the other; nothing where the model takes them itself.
    head
        What is asked in the end.
    """

    steps: tuple[Any, ...]
    head: Any

    @classmethod
    def of(cls, model: Any, vectorizer: Any = None) -> TextModel:
        """Take a Pipeline apart, or put a vectorizer before a model.

        Raises
        ------
        InputError
            If the model takes numbers and nobody says how texts become numbers.
        """
        if vectorizer is not None and (isinstance(vectorizer, type) or not hasattr(vectorizer, "transform")):
            raise InputError(
                "vectorizer must be fitted and have a transform method, as a TfidfVectorizer has; got "
                f"{vectorizer.__name__ if isinstance(vectorizer, type) else type(vectorizer).__name__}"
            )
        steps, head = _taken_apart(model)
        if vectorizer is not None and steps and class_name(type(steps[0])) in VECTORIZERS:
            raise InputError(
                f"the Pipeline has a {type(steps[0]).__name__} of its own: leave vectorizer= out, or pass "
                "the Pipeline's last step with it"
            )
        steps = steps if vectorizer is None else (vectorizer, *steps)
        if not steps and hasattr(head, "n_features_in_"):
            raise InputError(
                f"{type(head).__name__} takes {head.n_features_in_} numbers, not texts: pass what makes "
                "numbers of texts, TextExplainer(model, vectorizer=vectorizer), or a Pipeline of both"
            )
        return cls(steps, head)

    def encode(self, texts: Sequence[str]) -> Any:
        """What the head is given for texts.

        Raises
        ------
        ModelError
            If a step raises.
        """
        return transformed(self.steps, list(texts))


def transformed(steps: Sequence[Any], found: Any) -> Any:
    """Texts or rows, after some steps.

    Raises
    ------
    ModelError
        If a step raises.
    """
    for step in steps:
        try:
            found = step.transform(found)
        except Exception as error:
            name, kind = type(step).__name__, type(error).__name__
            raise ModelError(
                f"{name}.transform raised {kind}: {error}{_advice(step, found)}", batch=found
            ) from error
    return found


def _advice(step: Any, found: Any) -> str:
    """To whoever gives texts to what takes none."""
    if not isinstance(found, list) or class_name(type(step)) in VECTORIZERS:
        return ""
    return (
        "; it was given a list of texts: pass what makes numbers of them, TextExplainer(model, "
        "vectorizer=vectorizer), or a callable on a list of texts"
    )


def _taken_apart(model: Any) -> tuple[tuple[Any, ...], Any]:
    """Steps and last estimator of Pipelines, within each other or not, searched over or frozen."""
    if class_name(type(model)) in _SEARCHES and hasattr(model, "best_estimator_"):
        return _taken_apart(model.best_estimator_)
    if class_name(type(model)) == "sklearn.FrozenEstimator":
        return _taken_apart(model.estimator)
    if class_name(type(model)) != "sklearn.Pipeline":
        return (), model
    before = tuple(step for _, step in model.steps[:-1] if step is not None and step != "passthrough")
    steps, head = _taken_apart(model.steps[-1][1])
    return (*before, *steps), head
