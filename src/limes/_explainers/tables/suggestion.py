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

A model that cannot be read is asked by each design, and for the law around the rows, once for all rows
(``shared.py``). What the errors of such fits add to a miss is taken off it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import ROUNDING, Floats, Ints, fingerprint, is_constant, streams
from limes._checks import check_count
from limes._explainers.tables.laws import fit_laws
from limes._explainers.tables.shared import SharedAnswers, SharedDraws
from limes._explainers.verified_form import even_positions
from limes._explanation.drawing import Card, Printable
from limes._explanation.wording import count, number
from limes._sampling.controls.tables import tree_control
from limes._sampling.controls.wide import strongest
from limes._threads import one_blas_thread
from limes.designs._product import FeatureNumbers, ProductDesign, ProductFamily, Rows
from limes.exceptions import InputError
from limes.models._calling.caller import Calls
from limes.surrogates import LIME_SAMPLES

if TYPE_CHECKING:
    from limes._explainers.results import RowWarnings
    from limes._explainers.tables.model import TabularModel

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
# Most rows that an unread model is asked about, in shares of this number: the draws around rows, and those of
# seven designs; and least draws a coefficient around each row
_CALLS, _SHARES, _LEAST = 16_384, 8, 4
# Columns beyond which the answers choose those that trees split, which follow the model: trees of all of them
# take longer than they are worth
_MOST_CONTROLLED = 128
# Most rows at which designs of such a model are compared
_MOST_ROWS = 128
# Key of the streams of its draws, where those of explained rows have the row's hash
_KEY = 0x64657367
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
    judged_rows
        Rows at which designs were compared: all, where the model was read.
    model_calls
        Model calls, 0 where the model was read.
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
    judged_rows: int
    model_calls: int

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
                *self._costs(),
            ),
        )

    def _costs(self) -> Iterator[str]:
        if self.model_calls:
            rows = count(self.judged_rows, "row")
            yield f"compared at {rows}; the model was asked about {self.model_calls:,} rows."


@dataclass(frozen=True, eq=False)
class _Judged:
    """One design: its options, how it misses the rows, and how it fits."""

    name: str
    options: Mapping[str, Any]
    misses: Floats  # of the rows, (n,)
    other_side: float
    spread: float  # mean square of the predictions about the model's average around the rows
    numbers: Floats  # medians of the rest, by _NUMBERS

    @classmethod
    def of(
        cls,
        name: str,
        options: Mapping[str, Any],
        warnings: RowWarnings,
        both: tuple[Floats, Floats],
        spread: float,
        numbers: Floats,
        noise: Floats | float = 0.0,
    ) -> _Judged:
        """Judge by predictions and surrogates (n, ...), ``both``.

        ``noise`` (n,) is what errors of the surrogates add to squares.
        """
        misleading = warnings.misleading(*both)
        sides = [any(w.code == "other side" for w in each) for each in misleading.values()]
        gaps = (both[0] - both[1]).reshape(len(both[0]), -1)
        gaps = np.where(np.abs(gaps) > ROUNDING * np.abs(both).max(), gaps, 0.0)
        squares = (gaps**2).sum(axis=1) - noise
        misses = np.sqrt(np.maximum(squares, 0.0) / gaps.shape[1])
        return cls(name, options, misses, sum(sides) / len(gaps), spread, numbers)

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
# What they are computed from, of the fit at a row
_OF_FITS = ("coef", "own_fidelity", "rest")


@one_blas_thread()
def suggest_design(explainer: Any, X: Any, *, max_calls: int | None = None) -> DesignSuggestion:
    """Suggest bins or slopes, and a bandwidth, for a tabular explainer, which is not changed.

    Compared are the explainer's own bins, two bins (cut at the median), quartiles, deciles and slopes at
    its bandwidth, and the best of them at half and twice that. The winner fits best, by the mean of R² at
    the rows and around them, among those that miss the rows no more than the explainer's own design does;
    another bandwidth must gain 0.01. Each design calls a model that cannot be read once for all rows.

    Parameters
    ----------
    explainer
        A :class:`limes.TabularExplainer`.
    X
        Rows to compare the designs at: one, or 50 to 500 for a whole table.
    max_calls
        Maximum calls of a model that cannot be read, besides those for ``X``: 16,384, or 32 a column for
        wide tables. Up to seven designs share them. Designs are then compared at no more than 128 rows,
        evenly spread, or at fewer where the answers are too few for all, as under a narrow bandwidth
        (``judged_rows``).

    Raises
    ------
    InputError
        If the explainer is not one of independent columns, or ``max_calls`` is less than 32 a column.
    ModelError
        If the model fails.

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
    if not hasattr(explainer, "_with_design"):
        raise InputError("suggest_design needs a TabularExplainer")
    most = None if max_calls is None else check_count("max_calls", max_calls)
    model, rows = explainer._model_at(X)  # noqa: SLF001
    if model.options.groups is not None:
        raise InputError("suggest_design compares designs of columns: pass an explainer without groups=")
    is_read = model.bound.expectation.method == "exact"
    compared = _ByForm(explainer, X, model, rows) if is_read else _ByAnswers(explainer, model, rows, most)
    present = explainer._design_options  # noqa: SLF001
    as_is = compared.judge(_name(present["bins"]), **present)
    others = {name: bins for name, bins in _BINS.items() if name != as_is.name}
    if explainer._has_codes:  # noqa: SLF001
        others.pop("slopes", None)
    every = [as_is, *(compared.judge(name, bins, present["bandwidth"]) for name, bins in others.items())]

    def best_of(candidates: Sequence[_Judged]) -> _Judged:
        # the first of those that are equal, which is the explainer's own if it is one
        allowed = (each for each in candidates if each is as_is or each.is_as_near_as(as_is))
        return max(allowed, key=attrgetter("score"), default=as_is)

    best = best_of(every)
    bandwidth, bins = float(best.options["bandwidth"]), best.options["bins"]
    if np.isfinite(bandwidth):
        bandwidths = [factor * bandwidth for factor in _BANDWIDTHS]
        more = [compared.judge(f"{best.name}, ν = {other:.3g}", bins, other) for other in bandwidths]
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
        judged_rows=len(as_is.misses),
        model_calls=compared.model_calls,
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


# -- designs of a model that was read ------------------------------------------------------------------------


class _ByForm:
    """Judges designs by exact explanations of all rows, and by the form on draws around some of them."""

    model_calls = 0

    def __init__(self, explainer: Any, X: Any, model: TabularModel, rows: Floats) -> None:
        self._explainer, self._X, self._model = explainer, X, model
        # the explainer's law around some rows, evenly among all, on which designs are compared
        self._places = even_positions(len(rows), _AROUND)
        some = rows[self._places]
        designs, predict = model.laws(some)
        x = [
            design.sampler(streams(1, fingerprint(row), 1)).draw(_DRAWS)[0]
            for row, design in zip(some, designs, strict=True)
        ]
        self._draws = [(drawn, predict(drawn).reshape(_DRAWS, -1)) for drawn in x]
        averages = np.stack([f.mean(axis=0) for _, f in self._draws])
        self._spread = _spread(predict(some).reshape(len(some), -1), averages)

    def judge(self, name: str, bins: Any, bandwidth: float) -> _Judged:
        # only coefficients are judged
        explainer = self._explainer._with_design(  # noqa: SLF001
            bins=bins, bandwidth=bandwidth, contributions=False, is_trial=True
        )
        explanation, (model, rows) = explainer(self._X, progress=False), explainer._model_at(self._X)  # noqa: SLF001
        n, places = len(self._places), self._places
        some = explanation[places]
        values, intercepts = (
            some.coefficients.values.reshape(n, rows.shape[1], -1),
            some.coefficients.intercepts.reshape(n, -1),
        )
        around = [
            _r_squared(f, f - intercepts[i] - model.features_at(rows[place], x) @ values[i])
            for i, (place, (x, f)) in enumerate(zip(places.tolist(), self._draws, strict=True))
        ]
        fidelity = some.fidelity.reshape(n, -1)
        # what is left of the model has the variance explained · (1 - R²) / R²
        explained = (values**2 * _features(model.family, rows[places]).variance[:, :, None]).sum(axis=1)
        rest = explained * np.divide(
            1.0 - fidelity, fidelity, out=np.zeros_like(fidelity), where=fidelity > 0
        )
        return _Judged.of(
            name,
            explainer._design_options,  # noqa: SLF001
            model.row_warnings,
            (explanation.predictions, explanation.coefficients.surrogate_predictions),
            self._spread,
            _medians(model.family, rows[places], np.array(around), values, fidelity, rest),
        )


# -- designs of a model that is asked ------------------------------------------------------------------------


class _ByAnswers:
    """Judges designs by fits to answers that all rows share: those of each design, and of common draws."""

    def __init__(self, explainer: Any, model: TabularModel, rows: Floats, most: int | None) -> None:
        self._explainer, self._model = explainer, model
        least = _LEAST * (rows.shape[1] + 1)
        if most is not None and most < _SHARES * least:
            raise InputError(
                f"max_calls={most} are too few for {_SHARES} designs of {rows.shape[1]} columns: pass "
                f"{_SHARES * least} or more"
            )
        self._count = max(_CALLS // _SHARES, least) if most is None else most // _SHARES
        self._seed = model.options.sampling.sampling.seed
        self._families: dict[tuple[Any, float], ProductFamily] = {}
        self._designs: dict[tuple[ProductFamily, int], ProductDesign] = {}  # at rows, by their positions
        self._all_rows = rows
        present = explainer._design_options  # noqa: SLF001
        bandwidths = [present["bandwidth"] * min(_BANDWIDTHS), present["bandwidth"]]
        families = [self._family(present["bins"], bandwidth) for bandwidth in bandwidths]
        if not explainer._has_codes:  # noqa: SLF001
            families.append(self._family(None, present["bandwidth"]))
        # evenly spread rows around which all designs have draws enough
        n = min(len(rows), _MOST_ROWS)
        while True:
            self._at = even_positions(len(rows), n)
            if n == 1 or all(self._draws(family, 0, self._at).sizes.min() >= least for family in families):
                break
            n //= 2
        self._rows = rows[self._at]
        sampling = model.options.sampling
        self._predict = Calls(
            model.bound.read_predict or model.bound.ask,
            batch_size=sampling.batch_size,
            retry=sampling.retry,
        )
        self._is_asked = model.bound.asks
        self._asked_before = len(rows)
        self._predictions = self._predict(self._rows)
        self._places = even_positions(n, _AROUND)
        self._answered: list[tuple[Floats, Floats]] = []  # rows x and answers f
        self._common = self._answers(self._draws(model.family, 0, self._at[self._places]))
        averages = np.stack([self._common.mean(i) for i in range(len(self._places))])
        self._spread = _spread(self._predictions[self._places].reshape(len(averages), -1), averages)

    @property
    def model_calls(self) -> int:
        return self._asked_before + (len(self._predict) if self._is_asked else 0)

    def _family(self, bins: Any, bandwidth: float) -> ProductFamily:
        """The law of a design, for which the model is not asked."""
        key = (bins if bins is None or isinstance(bins, str | int) else "given"), bandwidth
        if key not in self._families:
            model = self._model
            options = replace(model.options, bins=bins, bandwidth=bandwidth)
            marginals = fit_laws(
                model.table,
                bins,
                options.target,
                options.law_in_bin,
                options.missing,
                own_values=model.own_values,
            )
            self._families[key] = options.product_family(model.table, marginals, model.units)
        return self._families[key]

    def _draws(self, family: ProductFamily, number: int, positions: Ints) -> SharedDraws:
        """The draws of this number for some of all rows."""
        for i in positions.tolist():
            if (family, i) not in self._designs:
                self._designs[family, i] = family.at(self._all_rows[i])
        designs = [self._designs[family, i] for i in positions.tolist()]
        stream = streams(self._seed, _KEY, number + 1)[number]
        return SharedDraws.of(family, self._all_rows[positions], designs, self._count, stream)

    def _answers(self, draws: SharedDraws) -> SharedAnswers:
        """The model's answers, beside trees that know those to all draws before."""
        control = None
        if self._answered:
            x, f = (np.concatenate(parts) for parts in zip(*self._answered, strict=True))
            columns = self._split(x, f)
            if columns.size:
                control = tree_control(draws.family.at(draws.rows[0]), x, f, columns)
        f = self._predict(draws.x).reshape(len(draws.x), -1)
        self._answered.append((draws.x, f))
        return draws.answered(f, control)

    def _split(self, x: Floats, f: Floats) -> Ints:
        """Columns that trees may split, given answers f (m, k) to rows x (m, d)."""
        if x.shape[1] <= _MOST_CONTROLLED:
            return np.arange(x.shape[1])
        quartiles = self._family("quartile", self._explainer._design_options["bandwidth"])  # noqa: SLF001
        return np.flatnonzero(strongest(quartiles.marginals, quartiles.cells(x), f))

    def judge(self, name: str, bins: Any, bandwidth: float) -> _Judged:
        family = self._family(bins, bandwidth)
        answers = self._answers(self._draws(family, 1, self._at))
        fits = [answers.fit(i) for i in range(len(self._rows))]
        some = [fits[i] for i in self._places.tolist()]
        values, fidelity, rest = (np.stack([getattr(fit, of) for fit in some]) for of in _OF_FITS)
        around = np.array([fit.around(self._common, i) for i, fit in enumerate(some)])
        surrogates = np.stack([fit.surrogate for fit in fits]).reshape(self._predictions.shape)
        return _Judged.of(
            name,
            {"bins": bins, "bandwidth": bandwidth},
            self._model.row_warnings,
            (self._predictions, surrogates),
            self._spread,
            _medians(family, self._rows[self._places], around, values, fidelity, rest),
            noise=np.array([fit.noise for fit in fits]),
        )


def _spread(at_rows: Floats, averages: Floats) -> float:
    """Mean square of predictions at rows about the model's averages around them, (n, k) both."""
    spread = float(((at_rows - averages) ** 2).mean())
    return 0.0 if is_constant(spread, np.abs(at_rows).max()) else spread


def _features(family: ProductFamily, rows: Floats) -> FeatureNumbers:
    return Rows(family, rows, family.cells(rows)).features.unscaled


def _medians(
    family: ProductFamily, rows: Floats, around: Floats, values: Floats, fidelity: Floats, rest: Floats
) -> Floats:
    """Medians over rows (n, d) of the numbers of a design, by `_NUMBERS`.

    ``around`` (n, 2) are R² around the rows and its errors, ``values`` (n, d, k) coefficients, ``fidelity``
    and ``rest`` (n, k) R² under the design's own law, and what is left of the variance there.
    """
    features, n = _features(family, rows), len(rows)
    # E[π]² / E[π²], the effective share of a weighted sample of the background's law
    narrower = replace(family.weights, bandwidth=family.weights.bandwidth / np.sqrt(2.0))
    squared = _features(replace(family, weights=narrower), rows).log_weight
    effective = LIME_SAMPLES * np.exp(2.0 * features.log_weight - squared)
    safe = np.where(features.variance > 0, features.variance, np.inf)
    errors = np.sqrt((rest[:, None] / (effective[:, None, None] * safe[:, :, None])).sum(axis=(1, 2)))
    size = np.sqrt((values**2).sum(axis=(1, 2)))
    locality = np.full(n, np.nan) if family.slopes is not None else features.inclusion.mean(axis=1)
    noise = np.divide(errors, size, out=np.zeros(n), where=size > 0)
    numbers = np.column_stack([around, fidelity.mean(axis=1), noise, locality])
    return np.asarray(np.median(numbers, axis=0))


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
