"""Many explanations at a glance: mean |β| with its spread, a few rows to look at, and cohorts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import Floats, Objects
from limes._checks import is_count
from limes.diagnostics.pick import Pick, greedy, shown
from limes.exceptions import InputError
from limes.explanation import Explanation

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from limes.show.summary import SummaryPlots

# More cohorts are no summary
MOST_COHORTS = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Cohort:
    """Some of the rows: how many, mean |β| and mean β, (d,) each."""

    name: str
    rows: int
    mean_abs: Floats
    mean: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Summary:
    """Coefficients of n rows and one output; arrays are (d,), features in their own order.

    Attributes
    ----------
    mean_abs, spread
        Mean of |β| over rows, and its standard deviation.
    mean, low, high
        Mean of β, and the 10 % and 90 % quantiles over rows.
    positive
        Share of rows with β > 0.
    pick
        Rows worth looking at; see ``limes/diagnostics/pick.py``.
    cohorts
        By name, largest first; empty if none were asked for.
    """

    names: tuple[str, ...]
    output: str
    rows: int
    mean_abs: Floats
    spread: Floats
    mean: Floats
    low: Floats
    high: Floats
    positive: Floats
    pick: Pick
    cohorts: tuple[Cohort, ...]

    def order(self) -> list[int]:
        """Features by mean |β|, largest first."""
        return [int(j) for j in np.argsort(-self.mean_abs, kind="stable")]

    @property
    def plot(self) -> SummaryPlots:
        """Pictures: ``.plot.importance()`` and ``.plot.cohorts()``."""
        from limes.show.summary import SummaryPlots

        return SummaryPlots(self)

    def to_dict(self) -> dict[str, list[Any]]:
        """One list a column, features by mean |β|: for any dataframe library."""
        order = self.order()
        columns = {
            "feature": [self.names[j] for j in order],
            **{
                name: getattr(self, name)[order].tolist()
                for name in ("mean_abs", "spread", "mean", "low", "high", "positive")
            },
        }
        return {**columns, **{f"mean_abs, {c.name}": c.mean_abs[order].tolist() for c in self.cohorts}}

    def __repr__(self) -> str:
        first = ", ".join(f"{self.names[j]} {self.mean_abs[j]:.3g}" for j in self.order()[:3])
        return f"<Summary: {self.rows} rows, {self.output}; mean |β|: {first}>"

    def __str__(self) -> str:
        from limes.show.summary import plain_text

        return plain_text(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from limes.show.summary import printed

        yield printed(self)


def summary(
    explanation: Explanation,
    *,
    output: str | int | None = None,
    cohorts: Any = None,
    rows: int = 5,
    features: int = 5,
) -> Summary:
    """Summarise many rows: how large coefficients are and how much they differ, and which rows to look at.

    Mean |β_j| over rows with its standard deviation; a pick of ``rows`` rows that together show the most
    important features (SP-LIME, greedy, with a bound on what the best pick could cover); means by cohort.

    Parameters
    ----------
    explanation
        Of several rows of a table.
    output
        Name or position; the last one unless given.
    cohorts
        A feature's name (its conditions are the cohorts), or a label for each row, (n,).
    rows, features
        How many rows to pick, and how many features a row shows.

    Raises
    ------
    InputError
        If there are no rows, or cohorts do not fit.

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
    >>> found = limes.summary(limes.TabularExplainer(model, X)(X.iloc[:50]), cohorts="sex")
    >>> [found.names[j] for j in found.order()[:2]], len(found.cohorts)
    (['bmi', 's5'], 2)
    """
    _check(explanation, rows=rows, features=features)
    one = explanation[..., -1 if output is None else output]
    values = one.values
    size = np.abs(values)
    low, high = np.quantile(values, [0.1, 0.9], axis=0)
    return Summary(
        names=one.feature_names,
        output=one.output_names[0],
        rows=len(one),
        mean_abs=size.mean(axis=0),
        spread=size.std(axis=0),
        mean=values.mean(axis=0),
        low=low,
        high=high,
        positive=(values > 0).mean(axis=0),
        pick=greedy(shown(values, features), np.sqrt(size.sum(axis=0)), rows),
        cohorts=() if cohorts is None else _cohorts(values, _labels(one, cohorts)),
    )


def _check(explanation: Any, **counts: Any) -> None:
    if not isinstance(explanation, Explanation) or len(explanation) == 0:
        raise InputError("summary needs one explanation of several rows, as explainers of tables give")
    for name, value in counts.items():
        if not is_count(value):
            raise InputError(f"{name}={value!r}; give a whole number, 1 or more")


def _labels(explanation: Explanation, cohorts: Any) -> Objects:
    """A label for each row, as text."""
    if isinstance(cohorts, str):
        picked = explanation[:, cohorts]
        return np.array([conditions[0] for conditions in picked.conditions], dtype=object)
    labels = np.asarray(cohorts.to_list() if hasattr(cohorts, "to_list") else cohorts, dtype=object)
    if labels.shape != (len(explanation),):
        raise InputError(
            f"cohorts has shape {labels.shape}; give a feature's name, or one label for each of the "
            f"{len(explanation)} rows"
        )
    return np.array([str(label) for label in labels], dtype=object)


def _cohorts(values: Floats, labels: Objects) -> tuple[Cohort, ...]:
    names: Mapping[str, int] = dict(zip(*np.unique(labels.astype(str), return_counts=True), strict=True))
    if len(names) > MOST_COHORTS:
        raise InputError(f"cohorts has {len(names)} labels; group them to at most {MOST_COHORTS}")
    order: Sequence[str] = sorted(names, key=lambda name: -names[name])
    return tuple(
        Cohort(
            name=str(name),
            rows=int(names[name]),
            mean_abs=np.abs(values[labels == name]).mean(axis=0),
            mean=values[labels == name].mean(axis=0),
        )
        for name in order
    )
