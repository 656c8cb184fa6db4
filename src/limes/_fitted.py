"""Surrogates of n rows with what they were made of: what pipelines return, and explanations are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._expectations.moments import (
    Moments,
    SampleStatistics,
    concatenate_moments,
    stack_moments,
)
from limes._expectations.trust import can_be_trusted
from limes.designs._product import FeatureNumbers, Features, weighted_sum
from limes.exceptions import ModelError
from limes.surrogates._linear import Surrogate, check_finite, least_squares, ridge


@dataclass(frozen=True, eq=False)
class Fitted:
    """Surrogates of n rows, arrays (n, ...), and their values ``at_instance``, at the rows themselves.

    ``features`` has the moments of their features: of all rows, or of one design alone. ``moments`` are those
    of the model and of the features in units (``in_units``), which the surrogates were made of. ``refusals``
    are the rows that an exact expectation refused, so that they were sampled, with the reasons.
    """

    features: Features | FeatureNumbers
    surrogate: Surrogate
    at_instance: Floats
    moments: Moments
    refusals: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def stacked(cls, rows: Sequence[Fitted]) -> Fitted:
        """Stack n rows that were fitted one by one."""
        surrogates = [row.surrogate for row in rows]
        return cls(
            FeatureNumbers.stacked([row.features for row in rows]),
            Surrogate(
                **{f.name: np.stack([getattr(s, f.name) for s in surrogates]) for f in fields(Surrogate)}
            ),
            np.stack([row.at_instance for row in rows]),
            stack_moments([row.moments for row in rows]),
        )

    @classmethod
    def joined(cls, parts: Sequence[tuple[Ints, Fitted]], refusals: Mapping[int, str]) -> Fitted:
        """Join parts of the rows, each with the positions of its rows, in the order of positions.

        ``refusals`` are keyed by these positions.
        """
        positions = np.concatenate([rows for rows, _ in parts])
        order, fits = np.argsort(positions), [fit for _, fit in parts]
        if any(fit.sampled is not None for fit in fits):
            fits = [fit.with_statistics() for fit in fits]

        def rows_of(kind: type, name: str) -> Any:
            values = [getattr(fit, name) for fit in fits]
            numbers = {f.name: [getattr(value, f.name) for value in values] for f in fields(kind)}
            return kind(**{key: np.concatenate(arrays)[order] for key, arrays in numbers.items()})

        place = dict(zip(positions[order].tolist(), range(order.size), strict=True))
        return cls(
            rows_of(type(fits[0].features), "features"),
            rows_of(Surrogate, "surrogate"),
            np.concatenate([fit.at_instance for fit in fits])[order],
            concatenate_moments([fit.moments for fit in fits]).take(order),
            {place[row]: reason for row, reason in refusals.items() if row in place},
        )

    def with_statistics(self) -> Fitted:
        """Return the same, with the statistics of a sample without errors where it is exact."""
        if self.sampled is not None:
            return self
        statistics = SampleStatistics.of_exact(self.moments)
        return replace(self, moments=replace(self.moments, sampled=statistics))

    @property
    def calls(self) -> Ints:
        """Rows that the model was called with for each row alone, (n,)."""
        return self.moments.calls

    @property
    def shared(self) -> Ints:
        """Rows of a pool of answers that served each row, (n,)."""
        return self.moments.shared

    @property
    def cut_short(self) -> Bools:
        """Whether sampling ended early, (n,)."""
        return self.moments.cut_short

    @property
    def converged(self) -> Bools:
        """Whether errors are within the tolerance, and to be trusted, (n,); always where exact."""
        if self.sampled is None:
            return self.moments.converged
        features = self.surrogate.coef.shape[1]
        varies = (self.features.variance > 0).any(axis=-1) & np.ones(len(self.calls), dtype=np.bool_)
        trusted = can_be_trusted(self.sampled, features, varies=varies)
        return np.asarray(self.moments.converged & trusted)

    @property
    def sampled(self) -> SampleStatistics | None:
        """None where exact."""
        return self.moments.sampled

    def explanation_fields(self, *, asks: bool = True) -> dict[str, Any]:
        """Return fields of a :class:`limes.Explanation`: coefficients, and their errors if sampled.

        ``asks`` states whether the model itself predicted the rows of a sample: else no call is counted.
        """
        surrogate, sampled = self.surrogate, self.sampled
        fields = {
            "values": surrogate.coef,
            "standard_errors": surrogate.standard_errors,
            "intercepts": surrogate.intercept,
            "surrogate_predictions": self.at_instance,
            # one that needs Var_w f is left to the explanation's fit
            "fidelity": None if np.isnan(surrogate.fidelity).any() else surrogate.fidelity,
            "calls": self.calls if asks else np.zeros_like(self.calls),
            "row_converged": self.converged,
        }
        if sampled is None:
            return fields
        return {
            **fields,
            "shares": surrogate.shares,
            "surrogate_errors": sampled.surrogate_errors,
            "fidelity_errors": None if fields["fidelity"] is None else sampled.fidelity_errors,
            "share_errors": sampled.share_errors,
            "controls": tuple(sampled.control.tolist()),
            "shared_calls": self.shared if asks else np.zeros_like(self.shared),
            "effective_rows": sampled.effective,
        }


class RefusedRowsError(ModelError):
    """An exact expectation refused rows that were not to be sampled.

    ``reasons`` are keyed by the rows' positions; ``rows`` (m,) are the positions of the other ones, and
    ``fitted`` their surrogates, None if m = 0.
    """

    def __init__(self, reasons: Mapping[int, str], rows: Ints, fitted: Fitted | None) -> None:
        first, *others = reasons.values()
        super().__init__(f"{first} ({len(others)} more rows)" if others else first)
        self.reasons, self.rows, self.fitted = reasons, rows, fitted


class CutShort(Exception):  # noqa: N818 - caught by explainers, never seen by users
    """Explaining stopped early, for the reason in ``__cause__``; carries the rows that can be explained.

    ``rows`` (m,) are their positions; ``fitted`` is None if m = 0.
    """

    def __init__(self, rows: Ints, fitted: Fitted | None) -> None:
        super().__init__()
        self.rows = rows
        self.fitted = fitted


def fit_design(
    design: Features,
    moments: Moments,
    prediction: Floats,
    penalty: float | Floats | None,
    names: Sequence[str] = (),
) -> Fitted:
    """Fit the surrogate of one design, without an axis of rows; options as for `fitted_at`."""
    if penalty is None:
        surrogate = least_squares(design, moments)
    else:
        surrogate = ridge(design, moments, prediction, penalty=penalty)
    check_finite(surrogate, axis=0, names=names)
    at_instance = surrogate.intercept + weighted_sum(design.at_instance, surrogate.coef)
    return Fitted(design, surrogate, np.asarray(at_instance), moments)
