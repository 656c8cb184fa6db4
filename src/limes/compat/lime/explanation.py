"""What lime's explainers return, with standard errors and the way back to :class:`limes.Explanation`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.compat.lime.domain_mapper import DomainMapper, Pairs
from limes.compat.lime.exceptions import LimeError
from limes.compat.lime.pages import Fit, with_numbers
from limes.compat.lime.per_label import PerLabel, UnknownLabelError
from limes.exceptions import UnknownOptionError

if TYPE_CHECKING:
    from limes._arrays import Floats
    from limes.explanation import Explanation as Told

__all__ = ["DomainMapper", "Explanation", "PerLabel", "UnknownLabelError"]


class Explanation:
    """One row's surrogates, one a label.

    Parameters
    ----------
    domain_mapper : DomainMapper
    mode : "classification" or "regression"
    class_names : sequence of names
    random_state : any
        Kept for lime's signature.

    Attributes
    ----------
    local_exp, standard_errors : {label: [(feature, coefficient or its standard error)]}
        Largest coefficient first. Of a regression, label 1 is the prediction and label 0 its negative.
    intercept : {label: number}
    local_pred, score : PerLabel
        The surrogate's prediction at the row, and its weighted R².
    predict_proba, predicted_value : (k,), number
        The model's answer at the row; the latter of a regression, whose answers near the row go from
        ``min_value`` to ``max_value``.
    engine, engine_reason : str
        "limit" or "lime", and why the latter where it was not asked for.
    limes : limes.Explanation
        The same explanation, one output a label.

    Raises
    ------
    LimeError
        Another mode.
    """

    def __init__(
        self,
        domain_mapper: DomainMapper,
        mode: str = "classification",
        class_names: Sequence[Any] | None = None,
        random_state: Any = None,
    ) -> None:
        if mode not in ("classification", "regression"):
            raise LimeError(f'mode={mode!r} is neither "classification" nor "regression"')
        self.domain_mapper = domain_mapper
        self.mode = mode
        self.random_state = random_state
        self.local_exp: dict[int, Pairs] = {}
        self.standard_errors: dict[int, Pairs] = {}
        self.intercept: dict[int, float] = {}
        self.local_pred: PerLabel | None = None
        self._score: PerLabel | Callable[[], PerLabel] | None = None
        # NaN where the model would have to be asked
        self.known_scores = PerLabel({1: np.nan})
        self.engine = ""
        self.engine_reason = ""
        self._told: Told | Callable[[], Told] | None = None
        self.top_labels: list[int] | None = None
        self.predict_proba: Floats | None = None
        if mode == "regression":
            self.class_names: Sequence[Any] | None = ["negative", "positive"]
            self.predicted_value: float | None = None
            self._range: tuple[float, float] | Callable[[], tuple[float, float]] = (0.0, 1.0)
            self.dummy_label = 1
        else:
            self.class_names = class_names

    @property
    def limes(self) -> Told | None:
        """The same explanation as limes has them, made when it is asked for."""
        if callable(self._told):
            self._told = self._told()
        return self._told

    @limes.setter
    def limes(self, value: Told | Callable[[], Told] | None) -> None:
        self._told = value

    @property
    def score(self) -> PerLabel | None:
        """Weighted R² of the surrogate; model calls that it needs are made when it is asked for."""
        if callable(self._score):
            self._score = self._score()
        return self._score

    @score.setter
    def score(self, value: PerLabel | Callable[[], PerLabel] | None) -> None:
        self._score = value

    @property
    def min_value(self) -> float:
        """Smallest answer of a regression near the row; model calls are made when it is asked for."""
        return self._bounds()[0]

    @property
    def max_value(self) -> float:
        """Largest answer of a regression near the row; model calls are made when it is asked for."""
        return self._bounds()[1]

    def ranges_over(self, bounds: Callable[[], tuple[float, float]]) -> None:
        """Let a regression's smallest and largest answer be these, had when they are asked for."""
        self._range = bounds

    def __getstate__(self) -> dict[str, Any]:
        # what asks the model when it is wanted is asked now: functions need not be picklable
        asked = {"_score": self.score, "_told": self.limes} | (
            {"_range": self._bounds()} if self.mode == "regression" else {}
        )
        return vars(self) | asked

    def _bounds(self) -> tuple[float, float]:
        if callable(self._range):
            self._range = self._range()
        return self._range

    def available_labels(self) -> list[int]:
        """Labels that were explained; [1] of a regression."""
        if self.mode == "regression":
            return [self.dummy_label]
        return list(self.top_labels or self.local_exp)

    def as_list(self, label: int = 1, **kwargs: Any) -> list[tuple[Any, float]]:
        """(Condition, coefficient), largest first; a regression ignores the label.

        Raises
        ------
        UnknownLabelError
            A label that was not explained; it is a KeyError and a LimeError.
        """
        pairs = self.local_exp[self._known(label)]
        return [(name, float(value)) for name, value in self.domain_mapper.map_exp_ids(pairs, **kwargs)]

    def as_map(self) -> dict[int, Pairs]:
        """{label: [(feature, coefficient)]}."""
        return self.local_exp

    def as_pyplot_figure(
        self, label: int = 1, figsize: tuple[float, float] | None = None, **kwargs: Any
    ) -> Any:
        """Bars in a new pyplot figure, with 95 % intervals where the coefficients are sampled."""
        import matplotlib.pyplot as plt

        pairs = self.as_list(label, **kwargs)[::-1]
        errors = [1.96 * error for _, error in self.standard_errors.get(self._known(label), [])[::-1]]
        figure, ax = plt.subplots(figsize=figsize, layout="constrained")
        values = [value for _, value in pairs]
        colours = ["green" if value > 0 else "red" for value in values]
        ax.barh(range(len(pairs)), values, color=colours, xerr=errors if any(errors) else None)
        ax.set_yticks(range(len(pairs)), [str(name) for name, _ in pairs], parse_math=False)
        named = "" if self.mode == "regression" else f" for class {self._name(label)}"
        ax.set_title(f"Local explanation{named}", parse_math=False)
        return figure

    def as_html(
        self,
        labels: Sequence[int] | None = None,
        predict_proba: bool = True,
        show_predicted_value: bool = True,
        **kwargs: Any,
    ) -> str:
        """A self-contained page; no scripts, and every name is escaped.

        Parameters
        ----------
        labels
            All that were explained, unless given; of a regression they are ignored.
        predict_proba, show_predicted_value
            Whether the model's prediction is shown, of a classification and of a regression.
        **kwargs
            What lime's pages of such data know. Of tables: ``show_table=False`` leaves out the row's values,
            ``show_all=True`` shows all features. Of texts: ``text=False`` leaves out the text.

        Raises
        ------
        UnknownOptionError
            An option that these pages do not know.
        UnknownLabelError
            A label that was not explained.
        """
        from limes.show.html import page

        known = self.domain_mapper.page_options
        if unknown := [name for name in kwargs if name not in known]:
            own = ("labels", "predict_proba", "show_predicted_value", *sorted(known))
            raise UnknownOptionError(f"as_html has no option {unknown[0]!r}; known: {', '.join(own)}")
        told = self._outputs(labels) if kwargs.get("show_all") else self._shown(labels)
        told = self.domain_mapper.on_page(told, **kwargs)
        predicted = show_predicted_value if self.mode == "regression" else predict_proba
        hidden = () if predicted else ("prediction", "local difference")
        return page(told, hidden=hidden if kwargs.get("show_table", True) else (*hidden, "value"))

    def show_in_notebook(
        self,
        labels: Sequence[int] | None = None,
        predict_proba: bool = True,
        show_predicted_value: bool = True,
        **kwargs: Any,
    ) -> None:
        """Show :meth:`as_html` in a notebook."""
        from importlib import import_module

        notebook = import_module("IPython.display")
        notebook.display(notebook.HTML(self.as_html(labels, predict_proba, show_predicted_value, **kwargs)))

    def save_to_file(
        self,
        file_path: str | Path,
        labels: Sequence[int] | None = None,
        predict_proba: bool = True,
        show_predicted_value: bool = True,
        **kwargs: Any,
    ) -> None:
        """Write :meth:`as_html` to a file."""
        page = self.as_html(labels, predict_proba, show_predicted_value, **kwargs)
        Path(file_path).write_text(page, encoding="utf-8")

    def _repr_html_(self) -> str:
        return self._shown(None)._repr_html_()

    def _shown(self, labels: Sequence[int] | None) -> Told:
        """What pages show: the numbers of this explanation, with the words of limes' own."""
        told = self._outputs(labels)
        fits = [
            Fit(
                coef=dict(self.local_exp[label]),
                errors=dict(self.standard_errors[label]),
                intercept=self.intercept[label],
                prediction=np.nan if self.local_pred is None else self.local_pred[label],
                score=self.known_scores[label],
            )
            for label in self._wanted(labels)
        ]
        return with_numbers(told, fits, self._place)

    def _place(self, feature: int) -> int:
        """Where limes' explanation has a feature."""
        return feature

    def _outputs(self, labels: Sequence[int] | None) -> Told:
        if self.limes is None:
            raise LimeError("this explanation was made by hand: only an explainer's can be shown as a page")
        if self.mode == "regression":
            return self.limes
        return self.limes[..., [list(self.local_exp).index(label) for label in self._wanted(labels)]]

    def _wanted(self, labels: Sequence[int] | None) -> list[int]:
        given = None if self.mode == "regression" else labels
        return [self._known(label) for label in (self.available_labels() if given is None else given)]

    def _known(self, label: int) -> int:
        wanted = self.dummy_label if self.mode == "regression" else label
        if wanted not in self.local_exp:
            raise UnknownLabelError(
                f"label {label!r} was not explained, only {self.available_labels()}: "
                "give labels= or top_labels= to explain_instance"
            )
        return wanted

    def _name(self, label: int) -> str:
        return str(label if self.class_names is None else self.class_names[label])
