r"""A design that fits: bins, slopes and bandwidths compared by what they leave of the model on common draws.

LIME's indicator, "in the row's own bin or not", captures little of most models, and less with finer bins;
slopes or two wide bins may capture more. Their own R² are not comparable, as each design has its own law.
Around each row all surrogates are therefore compared on the same rows x of the explainer's law w,

    R² = 1 - E_w (f - g)² / Var_w f,

with f evaluated through the read form, where there is one. Beside it stand R² under the design's own law, the
noise that ``lime``'s 5,000 rows would have, and locality, the share of a row's conditions that hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from limes._arrays import Floats, fingerprint, is_constant, streams
from limes._explanation.drawing import Card, Printable
from limes._explanation.wording import estimate_text
from limes.exceptions import InputError
from limes.surrogates import LIME_SAMPLES

# Designs by name: the option ``bins`` of `limes.TabularExplainer`
_BINS: Mapping[str, Any] = {"two bins": 2, "quartiles": "quartile", "deciles": "decile", "slopes": None}
# Bandwidths of the best of them that are compared too, as multiples of the explainer's
_BANDWIDTHS = (0.5, 2.0)
# R² that another bandwidth must gain
_WORTH = 0.01
# Rows of the common law around each explained row
_DRAWS = 2048
# Numbers of each design, by their names
_NUMBERS = ("fidelity", "fidelity_errors", "own_fidelity", "noise", "locality")


@dataclass(frozen=True, kw_only=True, eq=False)
class DesignSuggestion(Printable):
    """A design, the reason for it, and the table behind it: medians over rows, arrays (m,) over ``names``.

    Attributes
    ----------
    name, options
        The winner, and its options: ``limes.TabularExplainer(model, X, **suggestion.options)``.
    reason
        Why it was chosen.
    names, candidates
        The designs that were compared, and their options.
    fidelity, fidelity_errors
        R² on the common draws, and its standard error from the draws.
    own_fidelity
        R² under the design's own law, as ``explanation.fidelity`` has it.
    noise
        ‖standard errors‖ / ‖β‖ of a fit to ``lime``'s 5,000 rows.
    locality
        Mean share of a row's conditions that hold in a weighted row; NaN without bins.
    """

    name: str
    options: Mapping[str, Any]
    reason: str
    names: tuple[str, ...]
    candidates: tuple[Mapping[str, Any], ...]
    fidelity: Floats
    fidelity_errors: Floats
    own_fidelity: Floats
    noise: Floats
    locality: Floats

    def __repr__(self) -> str:
        return f"<DesignSuggestion: {self.name}; {self.reason}>"

    def _card(self) -> Card:
        columns = self.names, *(getattr(self, name) for name in _NUMBERS)
        return Card(
            title=f"suggested design: {self.name}",
            subtitle=self.reason,
            columns=["design", "R²", "own R²", "noise", "locality"],
            rows=[
                [
                    name,
                    estimate_text(r2, error),
                    f"{in_law:.3f}",
                    f"{noise:.0%}",
                    "" if np.isnan(locality) else f"{locality:.0%}",
                ]
                for name, r2, error, in_law, noise, locality in zip(*columns, strict=True)
            ],
            strong=self.names.index(self.name),
            remarks=(
                "R²: of the surrogate on common draws. own R²: under the design's own law.",
                "noise: standard error of lime's own fit to 5,000 rows, as a share of the coefficients. "
                "locality: share of the row's conditions that hold in a perturbed row.",
            ),
        )


@dataclass(frozen=True, eq=False)
class _Judged:
    """One design: its options, and medians over the rows of what a `DesignSuggestion` has of it."""

    name: str
    options: Mapping[str, Any]
    numbers: Floats  # by _NUMBERS

    @property
    def fidelity(self) -> float:
        return float(self.numbers[0])


def suggest_design(explainer: Any, X: Any) -> DesignSuggestion:
    """Suggest bins or slopes, and a bandwidth, for a tabular explainer, which is not changed.

    Compared are two bins (cut at the median), quartiles, deciles and slopes at the explainer's bandwidth, and
    the best of them at half and twice that. The winner captures most of the model, in the median over the
    rows, on common draws of the explainer's own law; another bandwidth must gain 0.01. A model that cannot be
    read is called: for each design and row as often as the explainer's options say, and 2,048 times a row for
    the draws.

    Parameters
    ----------
    explainer
        A :class:`limes.TabularExplainer`.
    X
        Rows to compare the designs at: one, or 20 to 50 for a whole table.

    Raises
    ------
    InputError
        If the explainer is not one of tables.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> import limes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> explainer = limes.TabularExplainer(LinearRegression().fit(X, y), X)
    >>> limes.suggest_design(explainer, X.iloc[:3]).name
    'slopes'
    """
    if not hasattr(explainer, "with_design"):
        raise InputError("suggest_design needs a TabularExplainer")
    model, rows = explainer.model_at(X)
    designs, predict = model.laws(rows)
    # the explainer's law around each row, on which all designs are compared, and the model's answers
    x = [
        design.sampler(streams(1, fingerprint(row), 1)).draw(_DRAWS)[0]
        for row, design in zip(rows, designs, strict=True)
    ]
    draws = [(drawn, predict(drawn).reshape(_DRAWS, -1)) for drawn in x]
    # only coefficients are judged
    designed = partial(explainer.with_design, contributions=False)
    every = [_judge(name, designed(bins=bins), draws, X) for name, bins in _BINS.items()]
    fidelity = attrgetter("fidelity")
    best = max(every, key=fidelity)
    bandwidth, bins = float(best.options["bandwidth"]), best.options["bins"]
    if np.isfinite(bandwidth):
        more = []
        for other in (factor * bandwidth for factor in _BANDWIDTHS):
            design = designed(bins=bins, bandwidth=other)
            more.append(_judge(f"{best.name}, ν = {other:.3g}", design, draws, X))
        every += more
        wider_or_narrower = max(more, key=fidelity)
        # another bandwidth changes what is explained: R² must rise by enough
        if wider_or_narrower.fidelity > best.fidelity + _WORTH:
            best = wider_or_narrower
    second = max((judged for judged in every if judged is not best), key=fidelity)
    return DesignSuggestion(
        name=best.name,
        options=best.options,
        reason=(
            f"on common draws it captures {best.fidelity:.0%} of what the model does around a row, "
            f"{second.name} {second.fidelity:.0%}"
        ),
        names=tuple(judged.name for judged in every),
        candidates=tuple(judged.options for judged in every),
        **dict(zip(_NUMBERS, np.stack([judged.numbers for judged in every], axis=1), strict=True)),
    )


def _judge(name: str, explainer: Any, draws: Sequence[tuple[Floats, Floats]], X: Any) -> _Judged:
    """Judge a design on rows x (m, d) around each row, and the model's answers f (m, k) there."""
    explanation, (model, rows) = explainer(X, progress=False), explainer.model_at(X)
    n, d = explanation.values.shape[:2]
    values, intercepts = explanation.values.reshape(n, d, -1), explanation.intercepts.reshape(n, -1)
    fits = [
        _r_squared(f, f - intercepts[i] - model.features_at(rows[i], x) @ values[i])
        for i, (x, f) in enumerate(draws)
    ]
    features = explainer.features(X)
    explained = (values**2 * features.variance[:, :, None]).sum(axis=1)
    own_fidelity = explanation.fidelity.reshape(n, -1)
    # what is left of the model has the variance explained · (1 - R²) / R²
    rest = explained * np.divide(
        1.0 - own_fidelity, own_fidelity, out=np.zeros_like(own_fidelity), where=own_fidelity > 0
    )
    effective = LIME_SAMPLES * model.effective_share(rows)
    safe = np.where(features.variance > 0, features.variance, np.inf)
    errors = np.sqrt((rest[:, None] / (effective[:, None, None] * safe[:, :, None])).sum(axis=(1, 2)))
    size = np.sqrt((values**2).sum(axis=(1, 2)))
    locality = features.inclusion.mean(axis=1)
    if explanation.provenance["bins"] is None:
        locality = np.full(n, np.nan)
    noise = np.divide(errors, size, out=np.zeros(n), where=size > 0)
    numbers = np.column_stack([fits, own_fidelity.mean(axis=1), noise, locality])
    return _Judged(name, explainer.design_options, np.median(numbers, axis=0))


def _r_squared(f: Floats, rest_of_f: Floats) -> tuple[float, float]:
    """R² of all outputs together, by what is not captured of f (m, k), and its standard error."""
    away = (f - f.mean(axis=0)) ** 2
    total, rest = away.sum(axis=1), (rest_of_f**2).sum(axis=1)
    variance = total.mean()
    if is_constant(variance, np.abs(f).max()):
        return 1.0, 0.0
    ratio = rest.mean() / variance
    error = np.sqrt(np.mean((rest - ratio * total) ** 2) / len(f)) / variance
    return float(1.0 - ratio), float(error)
