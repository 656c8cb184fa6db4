r"""Summaries of many explanations: mean sizes with their spread, a few rows to inspect, and cohorts.

β are contributions, or LIME's coefficients where these are asked for, or there are no contributions.

The rows are SP-LIME's pick, whose explanations show most of what the model uses. Row i *shows* the k features
with its largest |β_ij|. With importances I_j = √Σ_i |β_ij|, a set V of rows has the coverage
c(V) = Σ_j I_j 1[some row of V shows j]. Greedy selection, always the row with the largest gain, reaches at
least 1 - 1/e of the best set of that size. As no row can add more to V than it adds now, for these very rows

    c(best) <= c(V) + Σ of the k largest gains.

References
----------
Ribeiro, Singh & Guestrin 2016, section 4, algorithm 2; Nemhauser, Wolsey & Fisher 1978.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import Bools, Floats, Objects
from limes._checks import check_choice, is_count
from limes._explanation import Explanation
from limes._explanation.drawing import Card, Printable, drawer
from limes._explanation.explanation import READINGS
from limes._explanation.fit import leading
from limes._explanation.rules import check_weights
from limes._explanation.view import is_probability, output_position, output_title
from limes.exceptions import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from limes._show.diagnostics import SummaryPlots

GUARANTEE = 1.0 - np.exp(-1.0)
MOST_COHORTS = 20


@dataclass(frozen=True)
class Pick:
    """Rows in the order of their selection, their coverage of all importance, and its bound.

    ``coverage`` and ``bound`` are shares of Σ I_j: no set of the same size covers more than ``bound``.
    """

    rows: tuple[int, ...]
    coverage: float
    bound: float
    ids: tuple[Any, ...] = ()  # names of the rows

    @property
    def ratio(self) -> float:
        """Lower bound of the share of the best pick's coverage; at least 1 - 1/e."""
        return self.coverage / self.bound if self.bound > 0 else 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Cohort:
    """A group of rows: their number, mean |β| and mean β, (d,) each; their mean base and mean prediction.

    The base is that of contributions, the model's average around the rows, or LIME's intercept.
    """

    name: str
    rows: int
    mean_abs: Floats
    mean: Floats
    base: float
    prediction: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Summary(Printable):
    """Contributions or coefficients β of n rows and one output; arrays are (d,), features in their own order.

    Attributes
    ----------
    of
        The kind of β: "contributions" or "coefficients".
    mean_abs, spread
        Mean of |β| over rows, and its standard deviation.
    mean, low, high
        Mean of β, and the 10 % and 90 % quantiles over rows.
    errors
        Standard errors of both means from the sampling of these rows, at most: the means of the rows' errors,
        0 where exact.
    positive
        Share of rows with β > 0.
    pick
        Rows to inspect.
    cohorts
        The cohorts, largest first; empty without ``by=``.
    warnings
        How many rows have a warning of each code, most frequent first.
    is_probability
        Whether the output is one: contributions to it are shown in percentage points.
    """

    names: tuple[str, ...]
    output: str
    rows: int
    of: str
    mean_abs: Floats
    spread: Floats
    mean: Floats
    low: Floats
    high: Floats
    errors: Floats
    positive: Floats
    pick: Pick
    cohorts: tuple[Cohort, ...]
    warnings: Mapping[str, int]
    is_probability: bool = False

    @property
    def unit(self) -> float:
        """Get what numbers are multiplied by where they are shown: contributions to a probability by 100."""
        return 100.0 if self.of == "contributions" and self.is_probability else 1.0

    def order(self) -> list[int]:
        """Return the features by mean |β|, largest first."""
        return [int(j) for j in np.argsort(-self.mean_abs, kind="stable")]

    @property
    def plot(self) -> SummaryPlots:
        """Pictures: ``.plot.importance()`` and ``.plot.cohorts()``."""
        plots: SummaryPlots = drawer("diagnostics").SummaryPlots(self)
        return plots

    def to_dict(self) -> dict[str, list[Any]]:
        """Return one list a column, features by mean |β|, for any dataframe library."""
        order = self.order()
        columns = {
            "feature": [self.names[j] for j in order],
            **{
                name: getattr(self, name)[order].tolist()
                for name in ("mean_abs", "spread", "mean", "low", "high", "errors", "positive")
            },
        }
        each = ((name, c) for name in ("mean_abs", "mean") for c in self.cohorts)
        return {**columns, **{f"{name}, {c.name}": getattr(c, name)[order].tolist() for name, c in each}}

    def __repr__(self) -> str:
        first = ", ".join(f"{self.names[j]} {self.mean_abs[j]:.3g}" for j in self.order()[:3])
        return f"<Summary: {self.rows} rows, {self.output}; mean |{self.of[:-1]}|: {first}>"

    def _card(self) -> Card:
        card: Card = drawer("diagnostics").summary_card(self)
        return card

    def _drawn(self, width: int) -> RenderableType:
        table: RenderableType = drawer("diagnostics").summary_table(self, width)
        return table


def summary(
    explanation: Explanation,
    *,
    output: str | int | None = None,
    by: Any = None,
    rows: int = 5,
    features: int = 5,
    of: str | None = None,
    cohorts: Any = None,
) -> Summary:
    """Summarise many rows: what matters, how much that differs, and which rows to inspect.

    Mean |β_j| over rows with its standard deviation; a pick of ``rows`` rows that together show the most
    important features (SP-LIME, greedy, with a bound on what the best pick could cover); means by cohort.

    Parameters
    ----------
    explanation
        An explanation of several rows of a table.
    output
        Name or position; the positive class of two, else the output with the largest mean prediction.
    by
        The cohorts: a feature's name (its conditions), a label for each row, (n,), or a mask, (n,).
    rows, features
        Number of rows to pick, and number of features that a row shows.
    of
        The kind of β: "contributions", the default where the explanation can have them, or "coefficients",
        LIME's.
    cohorts
        The earlier name of ``by``.

    Raises
    ------
    InputError
        If there are no rows, or ``by`` does not fit; as `Explanation.contributions`.

    References
    ----------
    Ribeiro, Singh & Guestrin 2016, section 4.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import limes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = RandomForestRegressor(10, random_state=0).fit(X, y)
    >>> summary = limes.summary(limes.TabularExplainer(model, X)(X.iloc[:50]), by="sex")
    >>> [summary.names[j] for j in summary.order()[:2]], len(summary.cohorts)
    (['bmi', 's5'], 2)
    """
    if not isinstance(explanation, Explanation) or len(explanation) == 0:  # type: ignore[redundant-expr]
        raise InputError("summary needs one explanation of several rows, as explainers of tables return")
    check_weights(explanation, "summary")
    if cohorts is not None:
        warnings.warn("cohorts= is by=", FutureWarning, stacklevel=2)
        by = cohorts
    for name, value in (("rows", rows), ("features", features)):
        if not is_count(value):
            raise InputError(f"{name}={value!r}; pass a whole number, 1 or more")
    one = explanation[..., output_position(explanation, output, None)]
    of = check_choice("of", of or leading(one), READINGS)
    reading = getattr(one, of)
    values, errors = reading.values, reading.standard_errors
    size = np.abs(values)
    low, high = np.quantile(values, [0.1, 0.9], axis=0)
    pick = greedy_pick(largest_features(values, features), np.sqrt(size.sum(axis=0)), rows)
    codes = Counter(code for record in reading.row_warnings for code in {w.code for w in record})
    return Summary(
        names=one.feature_names,
        output=output_title(one, 0),
        is_probability=is_probability(one),
        rows=len(one),
        of=of,
        mean_abs=size.mean(axis=0),
        spread=size.std(axis=0),
        mean=values.mean(axis=0),
        low=low,
        high=high,
        errors=errors.mean(axis=0),  # which rows that share a pool or their values have in common
        positive=(values > 0).mean(axis=0),
        pick=replace(pick, ids=tuple(one.ids[row] for row in pick.rows)),
        cohorts=() if by is None else cohorts_of(one, by, of),
        warnings=dict(codes.most_common()),
    )


def cohorts_of(one: Explanation, by: Any, of: str) -> tuple[Cohort, ...]:
    """The cohorts of an explanation of one output, largest first: see `summary`."""
    labels, reading = _labels(one, by), getattr(one, of)
    names, counts = np.unique(labels.astype(str), return_counts=True)
    if len(names) > MOST_COHORTS:
        raise InputError(f"by has {len(names)} labels; group them to at most {MOST_COHORTS}")
    bases = reading.base_values if of == "contributions" else reading.intercepts
    cohorts = []
    for name in names[np.argsort(-counts, kind="stable")]:
        its = labels == name
        cohorts.append(
            Cohort(
                name=str(name),
                rows=int(its.sum()),
                mean_abs=np.abs(reading.values[its]).mean(axis=0),
                mean=reading.values[its].mean(axis=0),
                base=float(bases[its].mean()),
                prediction=float(one.predictions[its].mean()),
            )
        )
    return tuple(cohorts)


def _labels(explanation: Explanation, by: Any) -> Objects:
    if isinstance(by, str):
        conditions = explanation[:, by].conditions
        return np.array([condition for condition, *_ in conditions], dtype=object)
    labels = np.asarray(by.to_list() if hasattr(by, "to_list") else by, dtype=object)
    if labels.shape != (len(explanation),):
        raise InputError(
            f"by has shape {labels.shape}; pass a feature's name, or one label for each of the "
            f"{len(explanation)} rows"
        )
    if all(isinstance(label, bool | np.bool_) for label in labels):
        name = getattr(by, "name", None) or "selected"
        return np.where(labels.astype(np.bool_), str(name), f"not {name}").astype(object)
    return np.array([str(label) for label in labels], dtype=object)


def largest_features(values: Floats, features: int) -> Bools:
    """Which features each row shows, (n, d): those with its largest coefficients that are not 0."""
    size = np.abs(values)
    order = np.argsort(-size, axis=1, kind="stable")[:, :features]
    shows = np.zeros(size.shape, dtype=np.bool_)
    np.put_along_axis(shows, order, np.take_along_axis(size, order, axis=1) > 0, axis=1)
    return shows


def greedy_pick(shows: Bools, importance: Floats, rows: int) -> Pick:
    """Pick rows greedily until no row gains anything; shows (n, d), importance (d,) >= 0."""
    remaining, picked = importance.copy(), []
    for _ in range(min(rows, len(shows))):
        gains = shows @ remaining
        best = int(np.argmax(gains))
        if not gains[best] > 0:
            break
        picked.append(best)
        remaining[shows[best]] = 0.0
    total = float(importance.sum())
    covered = total - float(remaining.sum())
    gains = np.sort(shows @ remaining)[::-1][:rows]
    bound = min(total, covered + float(gains.sum()), covered / GUARANTEE)
    if total == 0:
        return Pick((), 1.0, 1.0)
    return Pick(tuple(picked), covered / total, bound / total)
