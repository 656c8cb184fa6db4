r"""Choosing ν: as narrow as fidelity and stability allow, and always with the curve and the reason.

Over a grid of ν, averaged over rows:

    locality    share of the row's conditions that hold in a weighted row: what is near, and how near
    fidelity    R² of the surrogate under the weights
    noise       ‖standard errors‖ / ‖β‖ of ``lime``'s fit to 5,000 weighted rows, n_eff = n E[π]² / E[π²]:
                Var β_j ≈ (1 - R²) Var_w f / (n_eff v_j)
    drift       ‖β(√2 ν) - β(ν/√2)‖ / ‖β(ν)‖: what another choice of ν would have changed

References
----------
Garreau & von Luxburg 2022, section 3.2.3, asks for large bandwidths; users ask for local ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import Bools, Floats
from limes.diagnostics.bandwidth import grid
from limes.diagnostics.diagnose import output_of
from limes.diagnostics.scene import Scene
from limes.exceptions import InputError
from limes.surrogates.linear import LIME_SAMPLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import Console, ConsoleOptions, RenderResult

# Aims: noise and drift at most, and of the bandwidths that have both, this share of the best fidelity
NOISE, DRIFT, FIDELITY = 0.1, 0.2, 0.9
# Where no bandwidth is so quiet, noise may be so many times the least that there is
_QUIETEST = 1.25


@dataclass(frozen=True, kw_only=True, eq=False)
class Suggestion:
    """A bandwidth, why, and the curves that it was chosen from: arrays (G,) over ``bandwidths``."""

    bandwidth: float
    reason: str
    current: float
    bandwidths: Floats
    locality: Floats
    fidelity: Floats
    noise: Floats
    drift: Floats

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the curves; takes ``ax=``, returns it, shows nothing."""
        from limes.show.suggestion import draw

        return draw(self, ax)

    def __repr__(self) -> str:
        return f"<Suggestion: bandwidth={self.bandwidth:.3g}; {self.reason}>"

    def __str__(self) -> str:
        from limes.show.suggestion import plain_text

        return plain_text(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from limes.show.suggestion import printed

        yield printed(self)


def suggest_bandwidth(
    explainer: Any, X: Any, *, output: str | int | None = None, calls: int | None = None
) -> Suggestion:
    """Suggest a bandwidth for an explainer, from some of its rows; nothing is changed by it.

    The narrowest ν whose coefficients could be estimated from ``lime``'s 5,000 rows (noise), do not hang on
    ν (drift), and fit nearly as well as the best of such ν (fidelity). The reason says what stands in the way
    of a narrower one.

    Parameters
    ----------
    explainer
        A :class:`limes.TabularExplainer` or :class:`limes.TextExplainer`.
    X
        Rows (or texts) to judge by; 20 to 50 are enough.
    output
        As in :func:`limes.diagnose`.
    calls
        Rows that the model is asked for around each row; 4096 unless given.

    Raises
    ------
    InputError
        If the explainer has no bandwidth to be chosen, or the model is constant around all rows.

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
    if not hasattr(explainer, "scene"):
        raise InputError("suggest_bandwidth needs a TabularExplainer or a TextExplainer")
    found = explainer(X)
    explanations = found if isinstance(found, list) else [found]
    scenes: list[Scene] = [explainer.scene(e, output=output_of(e, output), calls=calls) for e in explanations]
    return _chosen([_curves(scene) for scene in scenes], scenes[0].bandwidth)


@dataclass(frozen=True, eq=False)
class _Curves:
    """Of the rows of one scene: arrays (n, G)."""

    bandwidths: Floats
    locality: Floats
    fidelity: Floats
    noise: Floats
    drift: Floats


def _curves(scene: Scene) -> _Curves:
    inner = grid(scene.bandwidth if np.isfinite(scene.bandwidth) else 1.0)
    found = [_at(scene, float(bandwidth)) for bandwidth in inner]
    return _Curves(inner, *(np.stack(part, axis=1) for part in zip(*found, strict=True)))


def _at(scene: Scene, bandwidth: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Locality, fidelity, noise and drift of each row at one bandwidth, (n,) each."""
    step = np.sqrt(2.0)
    estimates = scene.source.path(scene, np.array([bandwidth / step, bandwidth, bandwidth * step]))
    designs, squares = scene.designs(bandwidth), scene.designs(bandwidth / step)
    rows = []
    for i, (estimate, design, square) in enumerate(zip(estimates, designs, squares, strict=True)):
        below, coef, above = estimate.value
        sample = scene.wide_samples[i]
        variance = float(sample.variance(sample.weights(bandwidth)).value)
        fidelity = float(np.clip(coef @ design.gamma(coef) / variance, 0.0, 1.0)) if variance > 0 else np.nan
        share = float(np.exp(2 * design.log_weight - square.log_weight))
        size = float(np.linalg.norm(coef))
        drift = float(np.linalg.norm(above - below)) / size if size > 0 else 0.0
        left = (1.0 - fidelity) * variance / (LIME_SAMPLES * share)
        spread = design.variance[design.variance > 0]
        noise = float(np.sqrt((left / spread).sum())) / size if size > 0 else 0.0
        rows.append((float(design.inclusion.mean()), fidelity, noise, drift))
    locality, fidelity_, noise_, drift_ = np.array(rows).T
    return locality, fidelity_, noise_, drift_


def _chosen(curves: list[_Curves], current: float) -> Suggestion:
    bandwidths = curves[0].bandwidths
    locality, fidelity, noise, drift = (
        _middle(np.concatenate([getattr(c, name) for c in curves]))
        for name in ("locality", "fidelity", "noise", "drift")
    )
    quiet = max(NOISE, _QUIETEST * float(np.nanmin(noise)))
    steady = (noise <= quiet) & (drift <= DRIFT)
    best = float(np.nanmax(np.where(steady, fidelity, np.nan), initial=0.0))
    good = np.stack([noise <= quiet, drift <= DRIFT, fidelity >= FIDELITY * best])
    every = good.all(axis=0)
    if not every.any():
        raise InputError("no bandwidth could be judged by these rows: does the model vary around them?")
    at = int(np.argmax(every))
    return Suggestion(
        bandwidth=float(bandwidths[at]),
        reason=_reason(at, good, locality, fidelity, bandwidths),
        current=current,
        bandwidths=bandwidths,
        locality=locality,
        fidelity=fidelity,
        noise=noise,
        drift=drift,
    )


def _middle(values: Floats) -> Floats:
    """The median row's number at each bandwidth; NaN where less than half of the rows have one."""
    few = np.isfinite(values).mean(axis=0) < 0.5
    filled = np.where(np.isfinite(values) | few, values, np.nan)
    filled[:, few] = 0.0
    return np.where(few, np.nan, np.nanmedian(filled, axis=0))


_OBSTACLES = ("lime's 5,000 rows would be too noisy", "coefficients hang on ν", "the surrogate fits worse")


def _reason(at: int, good: Bools, locality: Floats, fidelity: Floats, bandwidths: Floats) -> str:
    told = (
        f"there {locality[at]:.0%} of a row's conditions hold in a weighted row, and R² is {fidelity[at]:.2f}"
    )
    if at == 0:
        return f"the narrowest ν that was tried meets all aims; {told}"
    which = [obstacle for obstacle, met in zip(_OBSTACLES, good[:, at - 1], strict=True) if not met]
    why = f"at ν = {bandwidths[at - 1]:.3g} {' and '.join(which)}"
    return f"the narrowest ν that meets all aims; {why}; {told}"
