r"""Choosing ν: as narrow as fidelity and stability allow, and always with the curve and the reason.

Over a grid of ν, averaged over rows:

    locality    share of the row's conditions that hold in a weighted row
    fidelity    R² of the surrogate under the weights
    noise       ‖standard errors‖ / ‖β‖ of ``lime``'s fit to 5,000 weighted rows, n_eff = n E[π]² / E[π²]:
                Var β_j ≈ (1 - R²) Var_w f / (n_eff v_j)
    drift       ‖β(√2 ν) - β(ν/√2)‖ / ‖β(ν)‖: the change of coefficients with ν

References
----------
Garreau & von Luxburg 2022, section 3.2.3, asks for large bandwidths; users ask for local ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from limes._arrays import Bools, Floats
from limes._threads import one_blas_thread
from limes.diagnostics.bandwidth import grid
from limes.diagnostics.context import DiagnosticContext
from limes.diagnostics.row_output import output_positions
from limes.exceptions import InputError
from limes.explanation.drawing import Printable, drawer
from limes.surrogates.linear import LIME_SAMPLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Aims: largest noise and drift, and share of the best fidelity of the bandwidths that meet both
NOISE, DRIFT, FIDELITY = 0.1, 0.2, 0.9
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

    _terminal: ClassVar[str] = "suggestion"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the curves; takes ``ax=``, returns it, shows nothing."""
        axes: Axes = drawer("suggestion").draw(self, ax)
        return axes

    def __repr__(self) -> str:
        return f"<Suggestion: bandwidth={self.bandwidth:.3g}; {self.reason}>"


@one_blas_thread()
def suggest_bandwidth(
    explainer: Any, X: Any, *, output: str | int | None = None, calls: int | None = None
) -> Suggestion:
    """Suggest a bandwidth for an explainer, which is not changed, from some of its rows.

    The narrowest ν whose coefficients could be estimated from ``lime``'s 5,000 rows (noise), hardly depend on
    ν (drift), and fit nearly as well as the best of such ν (fidelity). The reason states why no narrower one
    was chosen.

    Parameters
    ----------
    explainer
        A :class:`limes.TabularExplainer` or :class:`limes.TextExplainer`.
    X
        Rows (or texts) to compute the curves from; 20 to 50 are enough.
    output
        As in :func:`limes.diagnose`.
    calls
        Model calls around each row; 4096 unless given.

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
    return _choose([_curves(context) for context in contexts], contexts[0].bandwidth)


@dataclass(frozen=True, eq=False)
class _Curves:
    """Curves of the rows of one context: arrays (n, G)."""

    bandwidths: Floats
    locality: Floats
    fidelity: Floats
    noise: Floats
    drift: Floats


def _curves(context: DiagnosticContext) -> _Curves:
    bandwidths = grid(context.bandwidth if np.isfinite(context.bandwidth) else 1.0)
    points = [_point(context, float(bandwidth)) for bandwidth in bandwidths]
    return _Curves(bandwidths, *(np.stack(part, axis=1) for part in zip(*points, strict=True)))


def _point(context: DiagnosticContext, bandwidth: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return locality, fidelity, noise and drift of each row at one bandwidth, (n,) each."""
    step = np.sqrt(2.0)
    estimates = context.source.path(context, np.array([bandwidth / step, bandwidth, bandwidth * step]))
    designs, squares = context.designs(bandwidth), context.designs(bandwidth / step)
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
        rows.append((float(design.inclusion.mean()), fidelity, noise, drift))
    locality, fidelities, noises, drifts = np.array(rows).T
    return locality, fidelities, noises, drifts


def _choose(curves: list[_Curves], current: float) -> Suggestion:
    bandwidths = curves[0].bandwidths
    locality, fidelity, noise, drift = (
        _median(np.concatenate([getattr(c, name) for c in curves]))
        for name in ("locality", "fidelity", "noise", "drift")
    )
    quiet = max(NOISE, _QUIETEST * float(np.nanmin(noise)))
    steady = (noise <= quiet) & (drift <= DRIFT)
    best = float(np.nanmax(np.where(steady, fidelity, np.nan), initial=0.0))
    good = np.stack([noise <= quiet, drift <= DRIFT, fidelity >= FIDELITY * best])
    meets_all = good.all(axis=0)
    if not meets_all.any():
        raise InputError("no bandwidth could be judged by these rows: does the model vary around them?")
    chosen = int(np.argmax(meets_all))
    return Suggestion(
        bandwidth=float(bandwidths[chosen]),
        reason=_reason(chosen, good, locality, fidelity, bandwidths),
        current=current,
        bandwidths=bandwidths,
        locality=locality,
        fidelity=fidelity,
        noise=noise,
        drift=drift,
    )


def _median(values: Floats) -> Floats:
    """Return the median over rows at each bandwidth; NaN if less than half of the rows have a number."""
    few = np.isfinite(values).mean(axis=0) < 0.5
    filled = np.where(np.isfinite(values) | few, values, np.nan)
    filled[:, few] = 0.0
    return np.where(few, np.nan, np.nanmedian(filled, axis=0))


_OBSTACLES = ("lime's 5,000 rows would be too noisy", "coefficients depend on ν", "the surrogate fits worse")


def _reason(g: int, good: Bools, locality: Floats, fidelity: Floats, bandwidths: Floats) -> str:
    curves = (
        f"there {locality[g]:.0%} of a row's conditions hold in a weighted row, and R² is {fidelity[g]:.2f}"
    )
    if g == 0:
        return f"the narrowest ν that was tried meets all aims; {curves}"
    unmet = [obstacle for obstacle, met in zip(_OBSTACLES, good[:, g - 1], strict=True) if not met]
    why = f"at ν = {bandwidths[g - 1]:.3g} {' and '.join(unmet)}"
    return f"the narrowest ν that meets all aims; {why}; {curves}"
