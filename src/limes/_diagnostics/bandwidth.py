"""The bandwidth path β(ν), and the choice of ν: as narrow as fidelity and stability allow.

ν decides how near perturbed rows are. A coefficient may change its sign with it, or vanish at the one ν that
was used. The path shows each coefficient on a grid of ν, a geometric one around the explainer's. A suggestion
averages over rows, and comes with the curve and the reason:

    locality    share of the row's conditions that hold in a weighted row
    fidelity    R² of the surrogate under the weights
    noise       ‖standard errors‖ / ‖β‖ of ``lime``'s fit to 5,000 weighted rows, n_eff = n E[π]² / E[π²]:
                Var β_j ≈ (1 - R²) Var_w f / (n_eff v_j)
    drift       ‖β(√2 ν) - β(ν/√2)‖ / ‖β(ν)‖: the change of coefficients with ν
    miss        |prediction - surrogate| at the row, in standard deviations of the model under w of the
                explainer's ν

References
----------
Garreau & von Luxburg 2022, section 3.2.3 (which asks for large bandwidths; users ask for local ones) and
figure 7; 2020, section 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import Bools, Floats
from limes._diagnostics.context import DiagnosticContext
from limes._diagnostics.finding import Finding, Measure, RowOutput, enumerate_names, output_positions
from limes._explanation.drawing import Card, Printable, drawer
from limes._explanation.view import SURE
from limes._explanation.wording import number
from limes._threads import one_blas_thread
from limes.exceptions import InputError
from limes.surrogates import LIME_SAMPLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# The grid reaches from ν/10 to 10ν; beyond it the weights of bins hardly change
REACH, POINTS = 10.0, 25
# A coefficient counts at a bandwidth if it is at least this share of the largest one there
_COUNTS = 0.1
# A sign change within the first factor of the explainer's ν is a warning, as another default would have
# reversed the sign; within the second it is a note; farther away it is ignored: it concerns the row's box
_NEAR, _FAR = 3.0, 5.0
# A coefficient that does not count at ν, and is this share of the largest one at another bandwidth, vanishes
_PRESENT = 0.2


@dataclass(frozen=True, kw_only=True, eq=False)
class BandwidthPath:
    row: RowOutput
    bandwidths: Floats  # (G,)
    values: Floats  # (G, d)
    errors: Floats  # (G, d)
    current: int  # position of the explainer's ν

    @property
    def bandwidth(self) -> float:
        return float(self.bandwidths[self.current])

    @property
    def significant(self) -> Bools:
        """(G, d) whether a coefficient counts at its bandwidth: it is large enough, and surely not 0."""
        size = np.abs(self.values)
        largest = np.nanmax(np.where(np.isfinite(size), size, -1.0), axis=1, keepdims=True)
        return np.asarray(
            (size >= _COUNTS * largest) & (size > SURE * self.errors) & (largest > self.row.rounding)
        )

    @property
    def _near(self) -> Bools:
        """(G, 1) whether a bandwidth is near enough to matter for the explanation."""
        if np.isinf(self.bandwidth):
            return np.ones((self.bandwidths.size, 1), dtype=np.bool_)
        ratio = np.abs(np.log(self.bandwidths / self.bandwidth))
        return np.asarray(ratio <= np.log(_FAR) + 1e-9)[:, None]

    @property
    def _sizes(self) -> Floats:
        """(G, d) sizes of coefficients, 0 where they are unknown or far away."""
        return np.where(np.isfinite(self.values) & self._near, np.abs(self.values), 0.0)

    def crossings(self, j: int) -> list[float]:
        """Bandwidths where coefficient j changes its sign, linear in log ν between two points of the grid."""
        nonzero = np.flatnonzero(np.isfinite(self.values[:, j]) & (self.values[:, j] != 0))
        crossings = []
        for a, b in pairwise(nonzero.tolist()):
            low, high = self.values[a, j], self.values[b, j]
            if low * high < 0:
                share = low / (low - high)
                logs = np.log(self.bandwidths[[a, b]])
                crossings.append(float(np.exp(logs[0] + share * (logs[1] - logs[0]))))
        return crossings

    def flips(self) -> list[int]:
        """Features that count at the explainer's ν, and with the opposite sign at another; largest first."""
        sign = np.where(self.significant & self._near, np.sign(self.values), 0.0)
        opposite = np.flatnonzero((sign * sign[self.current] < 0).any(axis=0))
        sizes = np.abs(self.values[self.current, opposite])
        return [int(j) for j in opposite[np.argsort(-sizes, kind="stable")]]

    def nearest_flip(self, j: int) -> float:
        """The crossing between ν and the nearest bandwidth with the opposite sign."""
        sign = np.where(self.significant[:, j], np.sign(self.values[:, j]), 0.0)
        opposite = np.flatnonzero(sign * sign[self.current] < 0)
        target = opposite[np.argmin(np.abs(opposite - self.current))]
        low, high = sorted((self.bandwidth, float(self.bandwidths[target])))
        between = [c for c in self.crossings(j) if low <= c <= high]
        return min(between, key=lambda c: abs(np.log(c / self.bandwidth)))

    def vanished(self) -> list[int]:
        """Features whose coefficient does not count at ν, but at another bandwidth."""
        size = self._sizes
        largest = size.max(axis=1)
        small = size[self.current] + SURE * self.errors[self.current] < _COUNTS * largest[self.current]
        present = size - SURE * self.errors > np.maximum(_PRESENT * largest, self.row.rounding)[:, None]
        return np.flatnonzero(small & present.any(axis=0)).tolist()

    def measures(self) -> Iterator[Measure]:
        low, high = self.bandwidths[self._near[:, 0]][[0, -1]]
        remark = f"coefficients that change sign between ν = {low:.2g} and {high:.2g}"
        yield Measure("sign changes", float(len(self.flips())), 0.0, remark)

    def findings(self) -> Iterator[Finding]:
        yield from map(self._flip, self.flips())
        vanished = self.vanished()
        if vanished:
            yield self._vanished([self.row.names[j] for j in vanished], self._sizes[:, vanished].max(axis=1))

    def _flip(self, j: int) -> Finding:
        flip = self.nearest_flip(j)
        ratio = max(flip / self.bandwidth, self.bandwidth / flip)
        direction = "wider" if flip > self.bandwidth else "narrower"
        sign = "positive" if self.values[self.current, j] > 0 else "negative"
        return Finding(
            kind="bandwidth",
            severity="warning" if ratio <= _NEAR else "note",
            features=(self.row.names[j],),
            number=flip,
            unit="bandwidth where the sign changes",
            sentence=(
                f"The coefficient of “{self.row.conditions[j]}” is {sign} at ν = {self.bandwidth:.3g}, but "
                f"changes its sign at ν ≈ {flip:.3g}, {ratio:.2g} times {direction}."
            ),
            advice=(
                "Do not report its sign without ν: look at the path, choose ν with limes.suggest_bandwidth."
            ),
        )

    def _vanished(self, names: Sequence[str], sizes: Floats) -> Finding:
        """``sizes`` (G,) are the largest of these features'."""
        return Finding(
            kind="bandwidth",
            severity="note",
            features=tuple(names),
            number=float(sizes.max()),
            unit="largest coefficient elsewhere on the path",
            sentence=(
                f"{enumerate_names(names)}: small at the bandwidth {self.bandwidth:.3g}, but up to "
                f"{number(sizes.max(), 3)} in size at {self.bandwidths[sizes.argmax()]:.3g}."
            ),
            advice=(
                "A small coefficient here does not mean that the feature is unused: "
                "diagnosis.plot.bandwidth() shows it at other bandwidths."
            ),
        )


def grid(bandwidth: float) -> Floats:
    """Bandwidths around the explainer's in equal ratios; if ν is infinite, around 1, with ν last."""
    if np.isinf(bandwidth):
        return np.append(np.geomspace(1.0 / REACH, REACH, POINTS - 1), np.inf)
    return bandwidth * np.geomspace(1.0 / REACH, REACH, POINTS)


def placed_grid(bandwidth: float) -> tuple[Floats, int]:
    """The grid, which holds the explainer's bandwidth to the last bit, and its position there."""
    bandwidths = grid(bandwidth)
    if np.isinf(bandwidth):
        return bandwidths, POINTS - 1
    current = int(np.argmin(np.abs(np.log(bandwidths) - np.log(bandwidth))))
    bandwidths[current] = bandwidth
    return bandwidths, current


def paths(context: DiagnosticContext) -> list[BandwidthPath]:
    bandwidths, current = placed_grid(context.bandwidth)
    estimates = context.source.path(context, bandwidths)
    return [
        BandwidthPath(row=row, bandwidths=bandwidths, values=e.value, errors=e.error, current=current)
        for row, e in zip(context.row_outputs, estimates, strict=True)
    ]


# Aims: largest noise and drift, share of the best fidelity of the bandwidths that meet both, and what may be
# added to the miss at the explainer's ν
NOISE, DRIFT, FIDELITY, MISS = 0.1, 0.2, 0.9, 0.01
# If no bandwidth meets the aim for noise, it may be this multiple of the smallest noise
_QUIETEST = 1.25


@dataclass(frozen=True, kw_only=True, eq=False)
class Suggestion(Printable):
    """A bandwidth, its reason, and the curves behind the choice: arrays (G,) over ``bandwidths``."""

    bandwidth: float
    reason: str
    current: float
    bandwidths: Floats
    locality: Floats
    fidelity: Floats
    noise: Floats
    drift: Floats
    miss: Floats

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the curves; takes ``ax=``, returns it, shows nothing."""
        axes: Axes = drawer("diagnostics").draw_suggestion(self, ax)
        return axes

    def __repr__(self) -> str:
        return f"<Suggestion: bandwidth={self.bandwidth:.3g}; {self.reason}>"

    def _card(self) -> Card:
        chosen = int(np.argmin(np.abs(self.bandwidths - self.bandwidth)))
        points = sorted({chosen, *range(0, self.bandwidths.size, _EVERY)})
        rows = []
        for g in points:
            bandwidth = float(self.bandwidths[g])
            in_use = bool(np.isclose(bandwidth, self.current))
            remark = ", ".join(["suggested"] * (g == chosen) + ["in use"] * in_use)
            shares = [_percent(float(getattr(self, name)[g])) for name in CURVES]
            rows.append([number(bandwidth, 3), *shares, remark])
        return Card(
            title=f"bandwidth {number(self.bandwidth, 3)}",
            subtitle=self.reason,
            columns=["ν", *CURVES, ""],
            rows=rows,
            strong=points.index(chosen),
            remarks=_MEANINGS,
        )


CURVES = ("locality", "fidelity", "noise", "drift", "miss")
_EVERY = 3  # lines of the table, in points of the curves
_MANY = 10.0
_MEANINGS = (
    "locality: share of the row's conditions that hold in a perturbed row. fidelity: R² of the surrogate.",
    "noise: standard error of lime's own fit to 5,000 rows, as a share of the coefficients.",
    "drift: change of the coefficients between ν / √2 and √2 ν, as a share of them.",
    "miss: |prediction - surrogate| at the row, as a share of how far the model varies around it.",
)


def _percent(share: float) -> str:
    if np.isnan(share):
        return "?"
    return f"{share:.0%}" if share < _MANY else f"> {_MANY:.0%}"


@one_blas_thread()
def suggest_bandwidth(
    explainer: Any, X: Any, *, output: str | int | None = None, calls: int | None = None
) -> Suggestion:
    """Suggest a bandwidth for an explainer, which is not changed, from some of its rows.

    The narrowest ν whose coefficients could be estimated from ``lime``'s 5,000 rows (noise), hardly depend on
    ν (drift), fit nearly as well as the best of such ν (fidelity), and whose surrogate misses the predictions
    at the rows no more than at the explainer's ν (miss). The reason states why no narrower one was chosen.

    Parameters
    ----------
    explainer
        A :class:`limes.TabularExplainer` or :class:`limes.TextExplainer`.
    X
        Rows (or texts) to compute the curves from; 20 to 50 are enough.
    output
        See :func:`limes.diagnose`.
    calls
        Model calls around each row: 512 unless given, and 4096 where the model cannot be read.

    Raises
    ------
    InputError
        If the explainer has no bandwidth, or the model is constant around all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import limes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = RandomForestRegressor(10, random_state=0).fit(X, y)
    >>> suggestion = limes.suggest_bandwidth(limes.TabularExplainer(model, X), X.iloc[:5])
    >>> 0 < suggestion.bandwidth < 24
    True
    """
    if not hasattr(explainer, "diagnostic_context"):
        raise InputError("suggest_bandwidth needs a TabularExplainer or a TextExplainer")
    result = explainer(X)
    contexts: list[DiagnosticContext] = [
        explainer.diagnostic_context(e, output=output_positions(e, output), calls=calls)
        for e in (result if isinstance(result, list) else [result])
    ]
    current = contexts[0].bandwidth
    tried = grid(current if np.isfinite(current) else 1.0)
    curves = [  # (5, n, G)
        np.stack([_point(context, float(bandwidth)) for bandwidth in tried], axis=-1) for context in contexts
    ]
    return _choose(np.concatenate(curves, axis=1), tried, current)


def _point(context: DiagnosticContext, bandwidth: float) -> Floats:
    """Locality, fidelity, noise, drift and miss of each row at one bandwidth, (5, n)."""
    step = np.sqrt(2.0)
    estimates = context.source.path(context, np.array([bandwidth / step, bandwidth, bandwidth * step]))
    designs, squares = context.features(bandwidth), context.features(bandwidth / step)
    rows = []
    for i, (estimate, design, square) in enumerate(zip(estimates, designs, squares, strict=True)):
        below, coef, above = estimate.value
        sample = context.wide_samples[i]
        variance = float(sample.variance(sample.weights(bandwidth)).value)
        fidelity = float(np.clip(coef @ design.gamma(coef) / variance, 0.0, 1.0)) if variance > 0 else np.nan
        share = float(np.exp(2 * design.log_weight - square.log_weight))
        size = float(np.linalg.norm(coef))
        drift = float(np.linalg.norm(above - below)) / size if size > 0 else 0.0
        residual = (1.0 - fidelity) * variance / (LIME_SAMPLES * share)
        spread = design.variance[design.variance > 0]
        noise = float(np.sqrt((residual / spread).sum())) / size if size > 0 else 0.0
        mean = float(sample.mean(sample.weights(bandwidth)).value)
        surrogate = mean + float(coef @ (context.at_row(design) - design.inclusion))
        unit = float(np.sqrt(context.variance(i).value))
        miss = abs(context.row_outputs[i].prediction - surrogate) / unit if unit > 0 else 0.0
        rows.append((float(design.inclusion.mean()), fidelity, noise, drift, miss))
    return np.array(rows).T


_OBSTACLES = (
    "lime's 5,000 rows would be too noisy",
    "coefficients depend on ν",
    "the surrogate fits worse",
    "the surrogate misses the predictions by more than now",
)


def _choose(curves: Floats, bandwidths: Floats, current: float) -> Suggestion:
    locality, fidelity, noise, drift, miss = map(_median, curves)
    quiet = max(NOISE, _QUIETEST * float(np.nanmin(noise)))
    steady = (noise <= quiet) & (drift <= DRIFT)
    best = float(np.nanmax(np.where(steady, fidelity, np.nan), initial=0.0))
    now = int(np.argmin(np.abs(np.log(bandwidths) - np.log(current)))) if np.isfinite(current) else -1
    aims = [noise <= quiet, drift <= DRIFT, fidelity >= FIDELITY * best]
    if not np.all(aims, axis=0).any():
        raise InputError("no bandwidth could be judged by these rows: does the model vary around them?")
    good = np.stack([*aims, miss <= miss[now] + MISS])
    meets_all = good.all(axis=0)
    g = int(np.argmax(meets_all)) if meets_all.any() else now % bandwidths.size
    reason = "the narrowest ν that was tried meets all aims"
    if not meets_all.any():
        reason = "no other ν meets all aims and misses the predictions no more"
    elif g > 0:
        unmet = [obstacle for obstacle, met in zip(_OBSTACLES, good[:, g - 1], strict=True) if not met]
        reason = f"the narrowest ν that meets all aims; at ν = {bandwidths[g - 1]:.3g} {' and '.join(unmet)}"
    share, fit = f"{locality[g]:.0%} of a row's conditions hold", f"R² is {fidelity[g]:.2f}"
    return Suggestion(
        bandwidth=float(bandwidths[g]),
        reason=f"{reason}; there {share} in a weighted row, {fit}, and the miss {_percent(miss[g])}",
        current=current,
        bandwidths=bandwidths,
        locality=locality,
        fidelity=fidelity,
        noise=noise,
        drift=drift,
        miss=miss,
    )


def _median(values: Floats) -> Floats:
    """Median over rows at each bandwidth; NaN if less than half of the rows have a number."""
    few = np.isfinite(values).mean(axis=0) < 0.5
    filled = np.where(np.isfinite(values) | few, values, np.nan)
    filled[:, few] = 0.0
    return np.where(few, np.nan, np.nanmedian(filled, axis=0))
