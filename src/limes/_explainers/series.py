"""Explain series."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Never

import numpy as np

from limes import __version__
from limes._checks import refuse_unknown
from limes._explainers.masked import MaskedExplainer
from limes._explainers.masked_model import CONTROLS, MaskableModel, MaskedModel
from limes._explainers.options import SamplingOptions
from limes._explainers.parts.series import SeriesPart, SplitSeries
from limes.designs._exchangeable import BANDWIDTH, ExchangeableDesign
from limes.exceptions import InputError
from limes.models._calling.caller import Retry
from limes.models._images import columns

_MEANING = "change of the surrogate when the segment is shown against when it is hidden"
# Recordings have fewer channels as a rule, and series more steps
_MANY_CHANNELS = 24
_ONE_SEGMENT = "the whole series is one segment: its coefficient compares the series with its fill"


class SeriesExplainer(MaskedExplainer[SplitSeries]):
    r"""Explain predictions on time series, by segments of time or bands of frequencies.

    The surrogate g = β₀ + Σ_j β_j z_j minimises E_w (f - g)², with z_j = 1 if segment j is shown, 0 if it is
    hidden. Perturbed series hide s of the d segments: s is uniform on 1, ..., d, then the segments are
    uniform. They are weighted towards the series by exp(-(1 - √(1 - s/d))² / (2ν²)).

    Parameters
    ----------
    model
        A callable (or anything with ``predict``) that takes a batch of series and returns (n,) or (n, k); a
        ``torch.nn.Module``; or a fitted estimator, which gets series flattened to rows, and is read if it can
        be.
    segments
        "equal": of equal length. "changepoint": segments that vary least, Ward's clusters of neighbouring
        steps. "frequency": bands of equally many frequencies, which add up to the series. Whole numbers, one
        a step; or a callable series (T, C) -> such numbers.
    count
        Largest number of segments or bands. Up to 10 are exact for any model, which is called on all 2^10
        series.
    fill
        What replaces a hidden segment: the "mean" of the series, or where the segment is level with it, a
        standard deviation more; a "line" from the value before it to the one after it; "noise" of the series'
        mean and spread, drawn once; numbers: one, one a channel, or one a step; or a callable (series,
        labels) -> such numbers. A segment that is the same when it is hidden has a NaN coefficient, with a
        warning.
    channels
        "together": a segment is hidden in all channels at once. "apart": in each channel separately.
    layout
        What the model takes. "last": (n, T, C). "first": (n, C, T), as models of torch, sktime and aeon do;
        series are passed as (T, C) all the same. None: "last", and a series of fewer steps than channels is
        refused, as it is most likely (C, T), or several series (n, T): "last" confirms it.
    bandwidth
        ν > 0, infinity allowed.
    output, top, labels, link
        As for :class:`limes.ImageExplainer`.
    ridge, method, tolerance, max_calls, control, rng, batch_size, retry
        As for :class:`limes.TextExplainer`.

    Raises
    ------
    InputError
        If an option is not usable.

    References
    ----------
    The law of hidden segments is that of words in Mardaoui & Garreau, "An Analysis of LIME for Text Data",
    2021, section 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> import limes
    >>> def late_rise(series):
    ...     return series[:, 6:].mean(axis=1) - series[:, :6].mean(axis=1)
    >>> explanation = limes.SeriesExplainer(late_rise, count=4, fill=0.0)(np.arange(12.0))
    >>> explanation.method, explanation.feature_names
    ('exact', ('0 to 2', '3 to 5', '6 to 8', '9 to 11'))
    >>> explanation.values[0].round(6).tolist()
    [-0.5, -2.0, 3.5, 5.0]
    """

    _kind = "series"
    _several = "series"
    _features = "segments"
    _advice = "use another fill, or fewer bands"
    _design = staticmethod(ExchangeableDesign.word_deletions)

    def __init__(
        self,
        model: Any,
        *,
        segments: Any = "equal",
        count: int = 10,
        fill: Any = "mean",
        channels: str = "together",
        layout: str | None = None,
        bandwidth: float = BANDWIDTH,
        output: Any = None,
        top: int = 5,
        labels: Sequence[str] | str | Path | None = None,
        link: str | None = None,
        ridge: float = 0.0,
        method: str = "auto",
        tolerance: float | str | None = None,
        max_calls: int = 1024,
        control: str = "auto",
        rng: int | np.random.Generator | np.random.SeedSequence | None = None,
        batch_size: int = 256,
        retry: Retry | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, SeriesExplainer)
        options = SamplingOptions(
            method, tolerance, max_calls, control, rng, batch_size, retry, controls=CONTROLS
        )
        self._part = SeriesPart(segments=segments, count=count, fill=fill, channels=channels, layout=layout)
        self._model = MaskableModel.of(model, output=output, top=top, labels=labels, link=link)
        provenance = {
            "meaning": _MEANING,
            "limes": __version__,
            "model": type(model).__name__,
            "segments": segments if isinstance(segments, str) else type(segments).__name__,
            "fill": fill if isinstance(fill, str | int | float) else type(fill).__name__,
            "channels": channels,
            "link": link,
        }
        super().__init__(options, bandwidth, ridge, provenance)

    def __call__(self, series: Any, *, progress: bool = True, workers: int = 1) -> Any:
        """Explain one series, or each of several.

        Parameters
        ----------
        series
            (T,), (T, C), a pandas Series, or a frame with a column a channel, gives an explanation of one
            row; a list of them, or (n, T, C), a list of explanations, as does (n, T) for an estimator that
            was fitted on T columns. Lengths may differ where the model allows it.
        progress
            Show a progress bar when it takes more than a second or two.
        workers
            Series that are explained at the same time, each in its own thread.

        Raises
        ------
        InputError
            If it is no series, or none that the model takes: says which.
        ModelError
            If the model fails; its ``partial`` has the explanations of the series before.
        NotReadableError
            If ``method="exact"``, the model cannot be read, and there are too many segments to ask about all.
        Interrupted
            If the user stops it (Ctrl-C), with the same ``partial``; a KeyboardInterrupt.
        """
        several = _as_list(series, columns(self._model.model))
        if several is None:
            return self._explain(series, progress=progress)
        return self._explain_each(several, progress=progress, workers=workers)

    def _parse(self, raw: Any) -> SplitSeries:
        return self._part.parse(raw)

    def _bind(self, item: SplitSeries) -> MaskedModel:
        model, numbers = self._model.model, item.series.values.size
        wanted = columns(model)
        if wanted is not None and wanted != numbers:
            raise InputError(
                f"{type(model).__name__} was fitted on {wanted} numbers, and the series has {numbers}: pass "
                "series of the length and channels that it was fitted on"
            )
        compose = item.compose if wanted is None else item.rows
        return self._model.bind(item.size, compose, item.over, self._features)

    def _remarks(self, item: SplitSeries) -> tuple[str, ...]:
        steps, channels = item.series.values.shape
        warnings = [] if len(item.names) > 1 else [_ONE_SEGMENT]
        if channels > _MANY_CHANNELS and self._part.layout is None:
            warnings.append(
                f"({steps}, {channels}) is one series of {steps} steps and {channels} channels here: pass "
                f"list(numpy.asarray(series)) if it is {steps} series, or layout='last' to confirm it"
            )
        return tuple(warnings)


def _as_list(series: Any, fitted_on: int | None) -> list[Any] | None:
    """Return several series as a list, None if it is one; ``fitted_on`` columns was the estimator fitted."""
    if getattr(series, "shape", ())[1:] == (fitted_on,):
        rows = series.iloc if hasattr(series, "iloc") else np.asarray(series)
        return [rows[i] for i in range(len(series))]
    if isinstance(series, list | tuple) and any(np.ndim(one) >= 1 for one in series):
        return list(series)
    return list(series) if isinstance(series, np.ndarray) and series.ndim == 3 else None
