r"""A design that fits: bins, slopes and bandwidths compared at the rows and around them.

LIME's indicator, "in the row's own bin or not", captures little of most models around a row, and less with
finer bins, while the bars of finer bins come nearer to the prediction at the row. A design is judged by both:

    at the rows      1 - Σ_i (f - g)² / Σ_i (f - E_w f)², predictions f and surrogates g at the rows i
    around them      1 - E_w (f - g)² / Var_w f, in the median over the rows

The second is taken on the same rows x of the explainer's law w for all designs, since their own R² are not
comparable, with f evaluated through the read form, where there is one. The best design by the mean of both is
suggested, among those that capture something around the rows, and miss the rows no more than the explainer's
own: in the median, the mean square, and the share on the other side of the threshold. Beside them stand R²
under the design's own law, the noise that ``lime``'s 5,000 rows would have, and locality, the share of a
row's conditions that hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints, fingerprint, is_constant, streams
from limes._explanation.drawing import Card, Printable
from limes._explanation.wording import number
from limes.exceptions import InputError
from limes.surrogates import LIME_SAMPLES

# Designs by name: the option ``bins`` of `limes.TabularExplainer`
_BINS: Mapping[str, Any] = {"two bins": 2, "quartiles": "quartile", "deciles": "decile", "slopes": None}
# Bandwidths of the best of them that are compared too, as multiples of the explainer's
_BANDWIDTHS = (0.5, 2.0)
# What another bandwidth must gain, as it changes what is explained
_WORTH = 0.01
# Rows of the common law around a row, and most rows around which designs are compared
_DRAWS, _AROUND = 2048, 32
# By how many more rows than are met worse another design must meet rows better, in standard deviations of
# chance
_SURELY = 1.0
# Share of how far predictions are from the model's average around the rows, below which a miss does not count
_NEGLIGIBLE = 0.01


@dataclass(frozen=True, kw_only=True, eq=False)
class DesignSuggestion(Printable):
    """A design, the reason for it, and the table behind it: arrays (m,) over ``names``.

    Attributes
    ----------
    name, options
        The winner, and its options: ``limes.TabularExplainer(model, X, **suggestion.options)``.
    reason
        Why it was chosen.
    names, candidates
        The designs that were compared, and their options; the explainer's own is the first.
    miss, other_side
        Median of |prediction - surrogate| over the rows, of several outputs together; and the share of rows
        whose surrogate lies on the other side of the threshold.
    row_fidelity
        R² at the rows.
    fidelity, fidelity_errors
        R² around them, the median on the common draws, and its standard error from the draws.
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
    miss: Floats
    other_side: Floats
    row_fidelity: Floats
    fidelity: Floats
    fidelity_errors: Floats
    own_fidelity: Floats
    noise: Floats
    locality: Floats

    def __repr__(self) -> str:
        return f"<DesignSuggestion: {self.name}; {self.reason}>"

    def _card(self) -> Card:
        columns = {
            "design": [*self.names],
            "miss": [number(miss, 3) for miss in self.miss],
            "other side": [f"{share:.0%}" for share in self.other_side],
            "at rows": [f"{r2:.2f}" for r2 in self.row_fidelity],
            "around": [f"{r2:.2f}" for r2 in self.fidelity],
            "noise": [f"{noise:.0%}" for noise in self.noise],
            "locality": ["" if np.isnan(share) else f"{share:.0%}" for share in self.locality],
        }
        if not self.other_side.any():  # as of amounts, which have no threshold
            del columns["other side"]
        return Card(
            title=f"suggested design: {self.name}",
            subtitle=self.reason,
            columns=[*columns],
            rows=[list(cells) for cells in zip(*columns.values(), strict=True)],
            strong=self.names.index(self.name),
            remarks=(
                "miss: |prediction - surrogate| at a row, the median. other side: of the threshold.",
                "at rows, around: R² of the surrogates at the rows, and on common draws around them.",
                "noise: standard error of lime's own fit to 5,000 rows, as a share of the coefficients. "
                "locality: share of the row's conditions that hold in a perturbed row.",
            ),
        )


@dataclass(frozen=True, eq=False)
class _Judged:
    """One design: its options, how it misses the rows, and how it fits."""

    name: str
    options: Mapping[str, Any]
    misses: Floats  # of the rows, (n,)
    other_side: float
    spread: float  # mean square of the predictions about the model's average around the rows
    numbers: Floats  # medians of the rest, by _NUMBERS

    @property
    def miss(self) -> float:
        return float(np.median(self.misses))

    @property
    def fidelity(self) -> float:
        return float(self.numbers[0])

    @property
    def row_fidelity(self) -> float:
        square = float((self.misses**2).mean())
        return 1.0 - square / self.spread if self.spread > 0 else 1.0

    @property
    def score(self) -> float:
        return (self.row_fidelity + self.fidelity) / 2

    def is_as_near_as(self, other: _Judged) -> bool:
        """Whether it surely misses the rows no more than another, and is better than a constant."""
        smallest = _NEGLIGIBLE * np.sqrt(self.spread)
        misses, others = (np.maximum(each.misses, smallest) for each in (self, other))
        if (
            np.median(misses) > np.median(others)
            or (misses**2).mean() > (others**2).mean()
            or self.other_side > other.other_side
            or self.fidelity < 0
        ):
            return False
        better, worse = (misses < others).sum(), (misses > others).sum()
        return bool(better - worse >= _SURELY * np.sqrt(better + worse))


# Numbers of a design by rows, by their names
_NUMBERS = ("fidelity", "fidelity_errors", "own_fidelity", "noise", "locality")


def suggest_design(explainer: Any, X: Any) -> DesignSuggestion:
    """Suggest bins or slopes, and a bandwidth, for a tabular explainer, which is not changed.

    Compared are the explainer's own bins, two bins (cut at the median), quartiles, deciles and slopes at its
    bandwidth, and the best of them at half and twice that. The winner fits best, by the mean of R² at the
    rows and around them, among those that miss the rows no more than the explainer's own design does; another
    bandwidth must gain 0.01. A model that cannot be read is called: for each design and row as often as the
    explainer's options say, and 2,048 times for the draws around each of 32 rows.

    Parameters
    ----------
    explainer
        A :class:`limes.TabularExplainer`.
    X
        Rows to compare the designs at: one, or 50 to 500 for a whole table.

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
    # the explainer's law around some rows, evenly among all, on which designs are compared
    around = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _AROUND)).astype(np.int64))
    designs, predict = model.laws(rows[around])
    x = [
        design.sampler(streams(1, fingerprint(row), 1)).draw(_DRAWS)[0]
        for row, design in zip(rows[around], designs, strict=True)
    ]
    draws = [(drawn, predict(drawn).reshape(_DRAWS, -1)) for drawn in x]
    some = model.table.decode(rows[around])
    at_rows = predict(rows[around]).reshape(len(around), -1)
    averages = np.stack([f.mean(axis=0) for _, f in draws])
    spread = float(((at_rows - averages) ** 2).mean())
    spread = 0.0 if is_constant(spread, np.abs(at_rows).max()) else spread

    def judge(name: str, bins: Any, bandwidth: float | None = None) -> _Judged:
        # only coefficients are judged
        candidate = explainer.with_design(bins=bins, bandwidth=bandwidth, contributions=False, is_trial=True)
        return _judge(name, candidate, X, (around, some), draws, spread)

    present = explainer.design_options
    as_is = judge(_name(present["bins"]), **present)
    others = {name: bins for name, bins in _BINS.items() if name != as_is.name}
    if explainer.has_codes:
        others.pop("slopes", None)
    every = [as_is, *(judge(name, bins) for name, bins in others.items())]

    def best_of(candidates: Sequence[_Judged]) -> _Judged:
        # the first of those that are equal, which is the explainer's own if it is one
        allowed = (each for each in candidates if each is as_is or each.is_as_near_as(as_is))
        return max(allowed, key=attrgetter("score"), default=as_is)

    best = best_of(every)
    bandwidth, bins = float(best.options["bandwidth"]), best.options["bins"]
    if np.isfinite(bandwidth):
        bandwidths = [factor * bandwidth for factor in _BANDWIDTHS]
        more = [judge(f"{best.name}, ν = {other:.3g}", bins, other) for other in bandwidths]
        every += more
        wider_or_narrower = best_of(more)
        if wider_or_narrower.score > best.score + _WORTH:
            best = wider_or_narrower
    # what it is compared with in words: the explainer's own design, or the next best
    second = max((each for each in every if each is not best), key=attrgetter("score"))
    return DesignSuggestion(
        name=best.name,
        options=best.options,
        reason=_reason(best, second if best is as_is else as_is),
        names=tuple(judged.name for judged in every),
        candidates=tuple(judged.options for judged in every),
        miss=np.array([judged.miss for judged in every]),
        other_side=np.array([judged.other_side for judged in every]),
        row_fidelity=np.array([judged.row_fidelity for judged in every]),
        **dict(zip(_NUMBERS, np.stack([judged.numbers for judged in every], axis=1), strict=True)),
    )


def _name(bins: Any) -> str:
    """The name of a design with these bins."""
    names = (name for name, value in _BINS.items() if type(bins) is type(value) and bins == value)
    return next(names, f"bins={bins!r}" if isinstance(bins, str | int) else "present bins")


def _reason(best: _Judged, other: _Judged) -> str:
    sides = (
        f", and {best.other_side:.0%} of them on the other side of the threshold ({other.other_side:.0%})"
        if best.other_side or other.other_side
        else ""
    )
    return (
        f"it misses the rows by {number(best.miss, 3)} in the median ({other.name} {number(other.miss, 3)})"
        f"{sides}; around them it captures {max(best.fidelity, 0.0):.0%} of what the model does "
        f"({max(other.fidelity, 0.0):.0%})"
    )


def _judge(
    name: str,
    explainer: Any,
    X: Any,
    around: tuple[Ints, Any],
    draws: Sequence[tuple[Floats, Floats]],
    spread: float,
) -> _Judged:
    """Judge a design at rows, and around those at some positions, which follow as a table.

    ``draws`` are rows x (m, d) of a common law around each of those, and the model's answers f (m, k) there.
    """
    explanation, (model, rows) = explainer(X, progress=False), explainer.model_at(X)
    predictions, surrogates = explanation.predictions, explanation.surrogate_predictions
    misleading = model.row_warnings.misleading(predictions, surrogates)
    sides = [any(w.code == "other side" for w in warnings) for warnings in misleading.values()]
    places, table = around
    n, d = len(places), rows.shape[1]
    some, features = explanation[places], explainer.features(table)
    values, intercepts = some.values.reshape(n, d, -1), some.intercepts.reshape(n, -1)
    fits = [
        _r_squared(f, f - intercepts[i] - model.features_at(rows[place], x) @ values[i])
        for i, (place, (x, f)) in enumerate(zip(places.tolist(), draws, strict=True))
    ]
    explained = (values**2 * features.variance[:, :, None]).sum(axis=1)
    own_fidelity = some.fidelity.reshape(n, -1)
    # what is left of the model has the variance explained · (1 - R²) / R²
    rest = explained * np.divide(
        1.0 - own_fidelity, own_fidelity, out=np.zeros_like(own_fidelity), where=own_fidelity > 0
    )
    effective = LIME_SAMPLES * model.effective_share(rows[places])
    safe = np.where(features.variance > 0, features.variance, np.inf)
    errors = np.sqrt((rest[:, None] / (effective[:, None, None] * safe[:, :, None])).sum(axis=(1, 2)))
    size = np.sqrt((values**2).sum(axis=(1, 2)))
    locality = features.inclusion.mean(axis=1)
    if explanation.provenance["bins"] is None:
        locality = np.full(n, np.nan)
    noise = np.divide(errors, size, out=np.zeros(n), where=size > 0)
    numbers = np.column_stack([fits, own_fidelity.mean(axis=1), noise, locality])
    return _Judged(
        name,
        explainer.design_options,
        np.sqrt(((predictions - surrogates).reshape(len(rows), -1) ** 2).mean(axis=1)),
        sum(sides) / len(rows),
        spread,
        np.median(numbers, axis=0),
    )


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
