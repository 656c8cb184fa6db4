"""The explanation of lime's explainers, with standard errors and the same explanation as limes has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._checks import unknown_option
from limes._explanation.attribution import changed
from limes._explanation.explanation import from_fields
from limes._explanation.wording import CONFIDENCE
from limes._warnings import RowWarning
from limes.compat.lime.exceptions import LimeError, UnknownLabelError, warn_or_raise
from limes.compat.lime.lime_base import Surrogates
from limes.exceptions import UnknownOptionError

if TYPE_CHECKING:
    from limes._arrays import Floats, Ints
    from limes._diagnostics.context import DiagnosticContext
    from limes._explanation import Explanation as LimesExplanation

Pairs = list[tuple[int, float]]
_PER_DEVIATION = (
    "change of the surrogate per standard deviation of a number, or when a category holds against when not"
)

__all__ = ["DomainMapper", "Explanation", "Pairs", "PerLabel", "UnknownLabelError", "id_generator"]


def refuse_list_options(unknown: Mapping[str, Any], *options: str) -> None:
    """Raise for options of ``as_list`` and of the figure of it that their mapper does not have."""
    if unknown:
        raise unknown_option("as_list", next(iter(unknown)), ["label", *options])


class DomainMapper:
    """Names of features by their positions; subclasses know the kind of data.

    ``page_options`` are what :meth:`Explanation.as_html` takes beside its own options.
    """

    page_options: frozenset[str] = frozenset()

    def map_exp_ids(self, exp: Pairs, **kwargs: Any) -> list[tuple[Any, float]]:  # noqa: ARG002 - lime's signature
        """Replace positions by names."""
        return [*exp]

    def on_page(self, explanation: LimesExplanation, **kwargs: Any) -> LimesExplanation:  # noqa: ARG002
        """An explanation as pages show it, with options of `page_options`."""
        return explanation

    def picture(self, conditions: Mapping[int, str]) -> dict[str, Any]:  # noqa: ARG002
        """The picture of an explanation that was filled in by hand, by its conditions."""
        return {}

    def visualize_instance_html(
        self,
        exp: Pairs,  # noqa: ARG002 - lime's signature
        label: int,  # noqa: ARG002
        div_name: str,  # noqa: ARG002
        exp_object_name: str,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> str:
        """Nothing: pages are limes' and run no script."""
        return ""


class PerLabel(float):
    """A number of the label explained last, as lime has it; ``[label]`` is any label's.

    ``[0]`` is the number itself where no label 0 was explained, as lime's arrays of one number have it.

    Examples
    --------
    >>> score = PerLabel({1: 0.25, 2: 0.5})
    >>> float(score), score[1], score[0]
    (0.5, 0.25, 0.5)
    """

    def __new__(cls, values: Mapping[int, float]) -> PerLabel:
        return super().__new__(cls, list(values.values())[-1])

    def __init__(self, values: Mapping[int, float]) -> None:
        self.by_label = dict(values)

    def __getitem__(self, label: int) -> float:
        if label not in self.by_label and label == 0:
            return float(self)
        return self.by_label[label]

    def __reduce__(self) -> tuple[Any, ...]:
        return PerLabel, (self.by_label,)


class LocalPrediction(np.ndarray[Any, np.dtype[np.float64]]):
    """lime's array of one number, that of the label explained last; ``by_label[label]`` is any label's.

    Examples
    --------
    >>> prediction = LocalPrediction({1: 0.25, 2: 0.5})
    >>> prediction.tolist(), prediction.by_label[1]
    ([0.5], 0.25)
    """

    by_label: dict[int, float]

    def __new__(cls, values: Mapping[int, float]) -> LocalPrediction:
        prediction = np.array([list(values.values())[-1]], dtype=np.float64).view(cls)
        prediction.by_label = dict(values)
        return prediction

    def __array_finalize__(self, other: Any) -> None:
        self.by_label = getattr(other, "by_label", {})

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalPrediction, (self.by_label,)


class Explanation:
    """One row's surrogates, one a label.

    Parameters
    ----------
    domain_mapper : DomainMapper
    mode : "classification" or "regression"
    class_names : sequence of names
    random_state : any
        Kept for lime's signature.
    surrogates : Surrogates
        What an engine computed; None leaves the attributes to be filled by hand.
    engine : (name, reason)
        The engine, and why this one where another was asked for.
    top : bool
        Whether labels are those of the largest answers.

    Attributes
    ----------
    local_exp, standard_errors : {label: [(feature, coefficient or its standard error)]}
        Largest coefficient first. Of a regression, label 1 is the prediction and label 0 its negative.
    intercept : {label: number}
    local_pred : LocalPrediction
        The surrogate's prediction at the row, (1,), of the label explained last.
    score : PerLabel
        Its weighted R²; model calls that it needs are made when it is read.
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
        *,
        surrogates: Surrogates | None = None,
        engine: tuple[str, str] = ("", ""),
        top: bool = False,
    ) -> None:
        if mode not in ("classification", "regression"):
            raise LimeError(f'mode={mode!r} is neither "classification" nor "regression"')
        regression = mode == "regression"
        fits = {} if surrogates is None else surrogates.fits
        prediction = None if surrogates is None else surrogates.prediction
        self.domain_mapper: Any = domain_mapper
        self.mode = mode
        self.random_state = random_state
        self.engine, self.engine_reason = engine
        self.top_labels = list(fits) if top and not regression else None
        self.local_exp = {k: self._pairs(fit.features, fit.coef) for k, fit in fits.items()}
        self.standard_errors = {k: self._pairs(fit.features, fit.errors) for k, fit in fits.items()}
        # users shorten, sort and extend local_exp: the outputs of the fits stay in this order
        self._fitted = [1] if regression else list(fits)
        self.intercept = {k: fit.intercept for k, fit in fits.items()}
        local = self._per_label({k: fit.local_pred for k, fit in fits.items()})
        self.local_pred = None if local is None else LocalPrediction(local.by_label)
        # NaN where the model would have to be called
        self._free_score = self._per_label({k: fit.score for k, fit in fits.items()})
        self._surrogates = surrogates
        self.predict_proba: Floats | None = None
        if regression:
            self.class_names: Sequence[Any] | None = ["negative", "positive"]
            self.predicted_value = None if prediction is None else float(prediction[0])
            self.dummy_label = 1
            if fits:
                self._mirror()
        else:
            self.class_names = class_names
            self.predict_proba = prediction

    def _pairs(self, features: Ints, numbers: Floats) -> Pairs:
        return [(int(j), float(number)) for j, number in zip(features, numbers, strict=True)]

    def _mirror(self) -> None:
        # lime calls a regression label 1, and its negative label 0
        for pairs in (self.local_exp, self.standard_errors):
            pairs[1] = pairs.pop(0)
        self.local_exp[0] = [(j, -value) for j, value in self.local_exp[1]]
        self.standard_errors[0] = list(self.standard_errors[1])
        self.intercept[1] = self.intercept[0]

    def _per_label(self, values: dict[int, float]) -> PerLabel | None:
        if not values:
            return None
        if self.mode == "regression":
            return PerLabel({1: values[0]})
        # lime lists the top label last
        return PerLabel(dict(reversed(values.items())) if self.top_labels else values)

    @cached_property
    def limes(self) -> LimesExplanation | None:
        """The same explanation as limes has it, made when it is asked for."""
        if self._surrogates is None or not self._surrogates.fits:
            return None
        explanation = self._surrogates.explanation()
        if self.mode == "regression" or self.class_names is None:
            return explanation
        names = tuple(str(self.class_names[k]) for k in self._surrogates.fits)
        distinct = len(set(names)) == len(names)
        return renamed(explanation, output_names=names) if distinct else explanation

    @cached_property
    def score(self) -> PerLabel | None:
        """Weighted R² of the surrogate; model calls that it needs are made when it is asked for."""
        return None if self._surrogates is None else self._per_label(self._surrogates.scores())

    @property
    def min_value(self) -> float:
        """Smallest answer of a regression near the row; model calls are made when it is asked for."""
        return self._bounds[0]

    @min_value.setter
    def min_value(self, value: float) -> None:
        self.__dict__["_bounds"] = (value, self.max_value)

    @property
    def max_value(self) -> float:
        """Largest answer of a regression near the row; model calls are made when it is asked for."""
        return self._bounds[1]

    @max_value.setter
    def max_value(self, value: float) -> None:
        self.__dict__["_bounds"] = (self.min_value, value)

    @cached_property
    def _bounds(self) -> tuple[float, float]:
        if self._surrogates is None:
            return 0.0, 1.0  # lime's, where no engine made the explanation
        answers = self._surrogates.answers()
        return float(answers.min()), float(answers.max())

    def __getstate__(self) -> dict[str, Any]:
        # model calls that may still be wanted are made now: functions need not be picklable
        bounds = {"_bounds": self._bounds} if self.mode == "regression" else {}
        return {**vars(self), "score": self.score, "limes": self.limes, **bounds, "_surrogates": None}

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
        UnknownOptionError
            An option that features of this kind do not have.
        """
        pairs = self.local_exp[self._explained(label)]
        return [(name, float(value)) for name, value in self.domain_mapper.map_exp_ids(pairs, **kwargs)]

    def as_map(self) -> dict[int, Pairs]:
        """{label: [(feature, coefficient)]}."""
        return self.local_exp

    def as_pyplot_figure(
        self, label: int = 1, figsize: tuple[float, float] | None = None, **kwargs: Any
    ) -> Any:
        """Bars in a new pyplot figure, with 95 % intervals where the coefficients are sampled."""
        import matplotlib.pyplot as plt

        pairs, label = self.as_list(label, **kwargs)[::-1], self._explained(label)
        errors = dict(self.standard_errors.get(label, ()))
        reach = [CONFIDENCE * errors.get(j, 0.0) for j, _ in self.local_exp[label][::-1]]
        figure, ax = plt.subplots(figsize=figsize, layout="tight")
        values = [value for _, value in pairs]
        colours = ["green" if value > 0 else "red" for value in values]
        ax.barh(range(len(pairs)), values, color=colours, xerr=reach if any(reach) else None)
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
            None for all that were explained; ignored of a regression.
        predict_proba, show_predicted_value
            Whether the model's prediction is shown, of a classification and of a regression.
        **kwargs
            Options of lime's pages of such data. Of tables: ``show_table=False`` leaves out the row's values,
            ``show_all=True`` shows all features. Of texts: ``text=False`` leaves out the text.

        Raises
        ------
        UnknownOptionError
            An option that these pages do not have.
        UnknownLabelError
            A label that was not explained.
        """
        from limes._show.html import page

        mapper = self._page_mapper
        options = mapper.page_options
        if unknown := [name for name in kwargs if name not in options]:
            names = ", ".join(("labels", "predict_proba", "show_predicted_value", *sorted(options)))
            problem = f"as_html has no option {unknown[0]!r}"
            if options:
                raise UnknownOptionError(f"{problem}; known: {names}")
            # pages of no kind of data have none, and lime hands them to the mapper, whatever they are
            warn_or_raise(problem, f"leave it out; known: {names}", "pages run no script of a mapper's own")
        if not self._is_fitted(labels):
            return page(
                mapper.on_page(self._by_hand(labels), **kwargs),
                hidden=("value", "not captured at the row"),
                classes=self._answers() if predict_proba else None,
                of="coefficients",
            )
        explanation = self._outputs(labels) if kwargs.get("show_all") else self._shown(labels)
        predicted = show_predicted_value if self.mode == "regression" else predict_proba
        hidden = () if predicted else ("prediction", "not captured at the row")
        return page(
            mapper.on_page(explanation, **kwargs),
            hidden=hidden if kwargs.get("show_table", True) else (*hidden, "value"),
            classes=self._answers() if predict_proba else None,
            of="coefficients",
        )

    def _answers(self) -> dict[str, float] | None:
        if self.predict_proba is None:
            return None
        names = [self._name(label) for label in range(len(self.predict_proba))]
        if len(set(names)) < len(names):
            names = [f"{name} ({k})" for k, name in enumerate(names)]
        return dict(zip(names, self.predict_proba.tolist(), strict=True))

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
        from limes._show.html import fragment

        shown = self._shown(None) if self._is_fitted(None) else self._by_hand(None)
        return fragment(shown, classes=self._answers(), of="coefficients")

    def _shown(self, labels: Sequence[int] | None) -> LimesExplanation:
        """Return what pages show: the features and numbers of this explanation, in the words of limes'."""
        from limes._explainers.tables.laws import SLOPE_MEANING

        original, wanted = self._outputs(labels), self._wanted(labels)
        coefs = [dict(self.local_exp[label]) for label in wanted]
        errors = [dict(self.standard_errors.get(label, ())) for label in wanted]
        used = list(dict.fromkeys(j for coef in coefs for j in coef))
        picked = original[:, [self._position(j) for j in used]]
        numbers: dict[str, Any] = {
            "values": [[coef.get(j, 0.0) for coef in coefs] for j in used],
            # nothing is known of the error of a coefficient that a user added
            "standard_errors": [
                [
                    error.get(j, np.nan if j in coef else 0.0)
                    for coef, error in zip(coefs, errors, strict=True)
                ]
                for j in used
            ],
            "intercepts": [self.intercept[label] for label in wanted],
            "surrogate_predictions": [
                getattr(self.local_pred, "by_label", {}).get(k, np.nan) for k in wanted
            ],
        }
        other: dict[str, Any] = dict.fromkeys(("shares", "share_errors", "surrogate_errors"))
        facts = picked.provenance
        if any(len(coef) < len(original.feature_names) for coef in coefs):
            # limes' fidelity is that of all features
            score = self._free_score
            numbers["fidelity"] = [np.nan if score is None else score[label] for label in wanted]
            other["fidelity_errors"] = None
        if original.provenance.get("meaning") == SLOPE_MEANING:
            facts = {**original.provenance, "meaning": _PER_DEVIATION}
        for name, values in numbers.items():
            other[name] = np.reshape(values, getattr(picked.coefficients, name).shape)
        return changed(picked, coefficients=picked.coefficients.changed(**other), provenance=facts)

    def _by_hand(self, labels: Sequence[int] | None) -> LimesExplanation:
        """Get what pages show of attributes that were filled in by hand: the conditions and coefficients."""
        wanted = self._wanted(labels)
        if not wanted:
            raise LimeError("no label was explained: there is nothing to show")
        coefs = [dict(self.local_exp[label]) for label in wanted]
        used = list(dict.fromkeys(j for coef in coefs for j in coef))
        texts = [str(text) for text, _ in self.domain_mapper.map_exp_ids([(j, 0.0) for j in used])]
        if len(set(texts)) < len(texts):
            texts = [f"{text} ({j})" for j, text in zip(used, texts, strict=True)]
        values = np.array([[[coef.get(j, 0.0) for coef in coefs] for j in used]], dtype=np.float64)
        intercepts = np.array([[self.intercept.get(label, 0.0) for label in wanted]], dtype=np.float64)
        surrogates = intercepts + values.sum(axis=1)
        answers: Any = self.predicted_value if self.mode == "regression" else self.predict_proba
        places = [0] if self.mode == "regression" else wanted
        if answers is None or max(places) >= np.size(answers):
            predictions = surrogates
        else:
            predictions = np.atleast_1d(np.asarray(answers, dtype=np.float64))[None, places]
        score = np.ravel([np.nan if self.score is None else self.score]).astype(np.float64)
        return from_fields(
            values=values,
            standard_errors=np.full_like(values, np.nan),
            intercepts=intercepts,
            predictions=predictions,
            surrogate_predictions=surrogates,
            fidelity=np.broadcast_to(score[:1], (1, len(wanted))),
            feature_names=tuple(texts),
            output_names=("prediction",) if self.mode == "regression" else tuple(map(self._name, wanted)),
            conditions=(tuple(texts),),
            data=np.full((1, len(texts)), "", dtype=object),
            method="sampled",
            reason="its numbers were filled in by hand",
            calls=np.zeros(1, dtype=np.int64),
            row_converged=np.ones(1, dtype=np.bool_),
            row_warnings=((),),
            provenance=self._page_mapper.picture(dict(zip(used, texts, strict=True))),
        )

    @property
    def _page_mapper(self) -> DomainMapper:
        # that of another library has no pages here
        return self.domain_mapper if isinstance(self.domain_mapper, DomainMapper) else DomainMapper()

    def _position(self, feature: int) -> int:
        return feature

    def _outputs(self, labels: Sequence[int] | None) -> LimesExplanation:
        if self.limes is None:
            raise LimeError("this explanation was made by hand: there is no explanation of limes behind it")
        if self.mode == "regression":
            return self.limes
        return self.limes[..., [self._fitted.index(label) for label in self._wanted(labels)]]

    def _is_fitted(self, labels: Sequence[int] | None) -> bool:
        """Whether limes explained all of these labels; others were filled in by hand."""
        return self.limes is not None and {*self._wanted(labels)} <= {*self._fitted}

    def _wanted(self, labels: Sequence[int] | None) -> list[int]:
        if labels is None or self.mode == "regression":
            labels = [label for label in self.available_labels() if label in self.local_exp]
        return [self._explained(label) for label in labels]

    def _explained(self, label: int) -> int:
        wanted = self.dummy_label if self.mode == "regression" else label
        if wanted not in self.local_exp:
            raise UnknownLabelError(
                f"label {label!r} was not explained, only {self.available_labels()}: "
                "pass labels= or top_labels= to explain_instance"
            )
        return wanted

    def _name(self, label: int) -> str:
        names = self.class_names
        return str(label if names is None or label >= len(names) else names[label])


def id_generator(size: int = 15, random_state: Any = None) -> str:
    """A random name of letters and digits, such as lime's pages have; for code that imports it."""
    from string import ascii_uppercase, digits

    from sklearn.utils import check_random_state

    return "".join(check_random_state(random_state).choice([*ascii_uppercase, *digits], size))


def renamed(explanation: LimesExplanation, **names: Any) -> LimesExplanation:
    """Replace names of features, outputs or conditions; ``limes.diagnose`` works as before."""
    explainer = explanation.explainer
    if explainer is not None:
        explainer = _RenamedExplainer(explainer, explanation.feature_names, explanation.output_names)
    if "output_names" in names:
        new = dict(zip(explanation.output_names, names["output_names"], strict=True))
        names["row_warnings"] = tuple(
            tuple(
                RowWarning.about([new.get(name, name) for name in w.outputs], w.sentence, w.code)
                for w in record
            )
            for record in explanation.row_warnings
        )
    return changed(explanation, **names, explainer=explainer)


@dataclass(frozen=True, eq=False)
class _RenamedExplainer:
    """An explainer with its names of features and outputs, for explanations in which they were replaced."""

    explainer: Any
    features: tuple[str, ...]
    outputs: tuple[str, ...]

    def _diagnostic_context(
        self, explanation: LimesExplanation, *, output: Ints, calls: int | None
    ) -> DiagnosticContext:
        from limes._diagnostics.finding import row_outputs

        original = changed(
            explanation, feature_names=self.features, output_names=self.outputs, explainer=self.explainer
        )
        context: DiagnosticContext = self.explainer._diagnostic_context(original, output=output, calls=calls)  # noqa: SLF001
        return replace(context, row_outputs=row_outputs(explanation, output))
