r"""Diagnostics of any explanation: whether the model is a function, contributions, LIME's fit.

    R² = (2 b·Γ - b·Σb) / Var_w f,      local error = f(ξ) - g(ξ).

R² is below 1 and the local error not 0 in general: binary features cannot follow the model inside a bin, and
weighted rows are not only near ones.

``lime`` fits a ridge regression to 5,000 weighted rows. Their effective size is n_eff / n = E[π]² / E[π²],
and π² is the weight of the bandwidth ν/√2, so that both are computed without a sample; limes draws from the
weighted law itself and wastes no rows. In expectation b_j ≈ β_j · nCv_j / (nCv_j + 1), C = E[π],
v_j = α_j (1 - α_j): hardly shrunk at ordinary bandwidths, and almost to 0 at narrow ones, where all rows
together weigh less than the penalty.

*Contributions.* A contribution is an average over the orders in which features can take the row's values.
What one adds alone and what it adds last are the ends of that average: where they are far apart, features
interact.

References
----------
``surrogates.py``; Garreau & von Luxburg 2022, section 2.3 and figure 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints, weighted_sum
from limes._diagnostics.bandwidth import paths
from limes._diagnostics.context import DiagnosticContext, Estimate, TableContext, each_row
from limes._diagnostics.finding import (
    FAR,
    ORDER,
    PAIRS,
    POOR,
    ROWS,
    SHRUNK,
    Finding,
    Measure,
    RowOutput,
    row_outputs,
    worst,
)
from limes._expectations.moments import Moments
from limes._explanation import Explanation
from limes._explanation.attribution import error_shares, requested
from limes._explanation.fit import Interaction, account_at
from limes._explanation.view import SURE, with_outputs
from limes._explanation.wording import difference, number
from limes.models._calling.caller import few_inputs, few_subsets, spread_of_answers
from limes.surrogates import LIME_SAMPLES, ridge


@dataclass(frozen=True, kw_only=True, eq=False)
class SurrogateFit:
    """The fit of one row; NaN if the model does not vary."""

    row: RowOutput
    fidelity: float  # R²
    fidelity_error: float
    deviation: Estimate  # standard deviation of the model under w
    shares: Floats  # each feature's part of R², (d,)

    @property
    def local_error(self) -> float:
        error = self.row.prediction - self.row.surrogate
        return error if abs(error) > self.row.rounding else 0.0

    @property
    def distance(self) -> float:
        return abs(self.local_error) / float(self.deviation.value) if self.deviation.value > 0 else 0.0

    @property
    def distance_error(self) -> float:
        if not self.deviation.value > 0:
            return 0.0
        of_deviation = self.distance * self.deviation.error
        return float(np.hypot(self.row.surrogate_error, of_deviation) / self.deviation.value)

    def measures(self) -> Iterator[Measure]:
        if np.isfinite(self.fidelity):
            remark = "of how the model varies around the row is captured by the surrogate"
            yield Measure("fidelity R²", self.fidelity, self.fidelity_error, remark)
        yield Measure(
            "local error",
            self.distance,
            self.distance_error,
            f"standard deviations of the model around the row is how far the surrogate "
            f"({number(self.row.surrogate)}) misses the prediction ({number(self.row.prediction)})",
        )
        if np.isfinite(self.shares).any():
            j = int(np.nanargmax(self.shares))
            remark = f"of the variance is explained by {self.row.names[j]}"
            error = self.fidelity_error / self.fidelity if self.fidelity > 0 else 0.0
            yield Measure("largest share", float(self.shares[j]), float(self.shares[j]) * error, remark)

    def findings(self) -> Iterator[Finding]:
        upper, captured = self.fidelity + SURE * self.fidelity_error, max(self.fidelity, 0.0)
        if poor := worst(lambda severity: upper < POOR[severity]):
            yield Finding(
                kind="fidelity",
                severity=poor,
                number=self.fidelity,
                error=self.fidelity_error,
                unit="R² of the surrogate under the weights",
                sentence=(
                    f"The surrogate captures {captured:.0%} of how the model varies around the row; "
                    f"the other {1 - captured:.0%} is in none of the coefficients."
                ),
                advice=(
                    "Read coefficients as contrasts of averages, not as a description of the model: it "
                    "combines features. A narrower bandwidth may fit better; limes.suggest_design "
                    "compares them."
                ),
            )
        least = self.distance - SURE * self.distance_error
        if far := worst(lambda severity: least > FAR[severity]):
            yield Finding(
                kind="local error",
                severity=far,
                number=self.local_error,
                error=self.row.surrogate_error,
                unit="prediction - surrogate's prediction",
                sentence=(
                    f"At the row itself the model predicts {number(self.row.prediction)}, and the surrogate "
                    f"{number(self.row.surrogate)}. They differ by {self.distance:.1f} standard deviations "
                    "of the model."
                ),
                advice=(
                    "Do not derive this row's prediction from the coefficients; a narrower ν is nearer to it."
                ),
            )


def _fit(context: DiagnosticContext, i: int, row: RowOutput) -> SurrogateFit:
    variance, design = context.variance(i), context.row_designs[i]
    fidelity, error, shares = row.fidelity, row.fidelity_error, np.full(row.values.size, np.nan)
    if not variance.value > 0:
        fidelity, error = np.nan, 0.0
    else:  # parts of R², which sum to (2 b·Γ - b·Σb) / Var_w f
        twice = 2 * design.gamma(context.limits[i].value) - design.gamma(row.values)
        shares = np.asarray(row.values * twice / variance.value)
        total = float(shares.sum())
        if not np.isfinite(fidelity):
            fidelity = float(np.clip(total, -1.0, 1.0))
            error = fidelity * float(variance.error / variance.value)
        elif total > 0:
            # the explanation's R² is exact, or rests on more rows than this sample: shares add up to it
            shares = shares * (fidelity / total)
    return SurrogateFit(
        row=row,
        fidelity=fidelity,
        fidelity_error=error,
        deviation=deviation_around(context, i, row),
        shares=shares,
    )


def deviation_around(context: DiagnosticContext, i: int, row: RowOutput) -> Estimate:
    variance = variance_around(context, i, row)
    value = np.sqrt(variance.value)
    return Estimate(value, variance.error / (2.0 * value) if value > 0 else np.array(0.0))


def variance_around(context: DiagnosticContext, i: int, row: RowOutput) -> Estimate:
    """Var_w f by the explanation's R², whose numerator is exact, where its error is less than a sample's."""
    sampled, design = context.variance(i), context.row_designs[i]
    gamma = 2.0 * design.gamma(context.limits[i].value) - design.gamma(row.values)
    explained, error = float(row.values @ gamma), row.fidelity_error * float(sampled.value)
    if not (explained > 0 and row.fidelity > 0 and error < float(sampled.error) * row.fidelity):
        return sampled
    value = explained / row.fidelity
    return Estimate(np.array(value), np.array(value * row.fidelity_error / row.fidelity))


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleSize:
    """Share of weighted rows that count, and mean share of the row's conditions that hold in one of them."""

    row: RowOutput
    share: float
    locality: float
    bandwidth: float

    def measures(self) -> Iterator[Measure]:
        remark = f"of weighted rows count: {LIME_SAMPLES * self.share:,.0f} of lime's {LIME_SAMPLES:,}"
        yield Measure("effective sample", self.share, 0.0, remark)
        if np.isfinite(self.locality):
            remark = "of the row's conditions hold in a weighted row, on average"
            yield Measure("locality", self.locality, 0.0, remark)

    def findings(self) -> Iterator[Finding]:
        effective, d = LIME_SAMPLES * self.share, len(self.row.names)
        if effective >= ROWS * (d + 1):
            return
        yield Finding(
            kind="sample size",
            severity="note",
            number=effective,
            unit=f"effective rows of {LIME_SAMPLES:,} weighted ones",
            sentence=(
                f"At ν = {self.bandwidth:.3g} only {effective:.2g} of {LIME_SAMPLES:,} weighted rows "
                f"count, for {d} coefficients and an intercept."
            ),
            advice=(
                f"A fit to weighted rows, as lime makes it, needs some {ROWS * (d + 1) / self.share:.1g} of "
                "them; limes draws from the weighted law and does not."
            ),
        )


def _sample_sizes(context: DiagnosticContext) -> list[SampleSize]:
    squares = context.designs(context.bandwidth / np.sqrt(2.0))
    shares = [
        float(np.exp(2 * design.log_weight - square.log_weight))
        for design, square in zip(context.row_designs, squares, strict=True)
    ]
    return [
        SampleSize(row=row, share=shares[i], locality=context.locality(i), bandwidth=context.bandwidth)
        for i, row in enumerate(context.row_outputs)
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class Shrinkage:
    """Coefficients without a penalty, those of ``lime``, and the total weight of its rows."""

    row: RowOutput
    limit: Floats  # (d,)
    lime: Floats  # (d,)
    weight: float
    bandwidth: float

    @property
    def difference(self) -> float:
        largest = np.abs(self.limit).max(initial=0.0)
        return float(np.abs(self.lime - self.limit).max(initial=0.0) / largest) if largest > 0 else 0.0

    def measures(self) -> Iterator[Measure]:
        remark = f"of the largest coefficient: what lime's fit on {LIME_SAMPLES:,} rows is off its limit"
        yield Measure("ridge shrinkage", self.difference, 0.0, remark)

    def findings(self) -> Iterator[Finding]:
        if not self.difference >= SHRUNK or np.abs(self.limit).max(initial=0.0) <= self.row.rounding:
            return
        j = int(np.abs(self.lime - self.limit).argmax())
        yield Finding(
            kind="shrinkage",
            severity="note",
            features=(self.row.names[j],),
            number=float(self.lime[j]),
            unit=f"coefficient that lime prints, in expectation, from {LIME_SAMPLES:,} rows",
            sentence=(
                f"For {self.row.names[j]} lime would print {difference(self.lime[j], 3)} where the limit "
                f"is {difference(self.limit[j], 3)}: at ν = {self.bandwidth:.3g} its {LIME_SAMPLES:,} rows "
                f"weigh {self.weight:.3g} in all, and its ridge penalty of 1 pulls coefficients towards 0."
            ),
            advice="Compare with lime at ridge=1 only, or widen the bandwidth.",
        )


def _shrinkage(context: DiagnosticContext, i: int, row: RowOutput) -> Shrinkage:
    design, limit, sample = context.row_designs[i], np.nan_to_num(context.limits[i].value), context.samples[i]
    mean = row.intercept + float(weighted_sum(design.inclusion, row.values))
    if context.ridge > 0:
        mean = float(sample.mean(sample.weights(context.bandwidth)).value)
    moments = Moments.exact(np.array(mean), design.gamma(limit))
    fitted = ridge(design, moments, np.array(row.prediction), penalty=context.penalty)
    weight = float((LIME_SAMPLES - 1) * np.exp(design.log_weight)) + 1.0
    return Shrinkage(row=row, limit=limit, lime=fitted.coef, weight=weight, bandwidth=context.bandwidth)


# Rows whose contributions must take no longer than those of a page
_QUICK = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Account:
    """Contributions of one row, their errors, what features add alone and last, (d,) each; leading pairs."""

    row: RowOutput
    values: Floats
    errors: Floats
    base_error: float
    alone: Floats
    last: Floats
    pairs: tuple[Interaction, ...] = ()

    @property
    def is_exact(self) -> bool:
        return not self.errors.any()

    @property
    def ratio(self) -> float:
        """Σ|last - alone| / Σ|φ|."""
        size = float(np.abs(self.values).sum())
        moved = float(np.abs(self.last - self.alone).sum())
        return moved / size if moved > self.row.rounding and size > 0 else 0.0

    def measures(self) -> Iterator[Measure]:
        if self.is_exact:
            remark = (
                "of the sizes of contributions is what features add last less what they add alone, in sizes: "
                "0 where they add up"
            )
            yield Measure("order of features", self.ratio, 0.0, remark, "contributions")
            return
        errors = np.append(self.errors, self.base_error)[:, None]
        of_values, of_base = (
            float(error_shares(self.values[:, None], its).max(initial=0.0))
            for its in (errors[:-1], errors[-1:])
        )
        remark = "of the largest contribution is the largest standard error of one"
        yield Measure("error of contributions", of_values, 0.0, remark, "contributions")
        remark = "of the largest contribution is the standard error of their base"
        yield Measure("error of the base", of_base, 0.0, remark, "contributions")

    def findings(self) -> Iterator[Finding]:
        if not self.is_exact or self.ratio < ORDER:
            return
        largest = np.argsort(-np.abs(self.last - self.alone), kind="stable")[:2].tolist()
        each = " and ".join(
            f"{self.row.names[j]} adds {difference(self.alone[j], 3)} alone and "
            f"{difference(self.last[j], 3)} to all others"
            for j in largest
        )
        pairs = [f"{' with '.join(pair.features)} ({pair.share:.1%})" for pair in self.pairs]
        beyond = f" Pairs that explain most of the model's variance: {', '.join(pairs)}." if pairs else ""
        names = [self.row.names[largest[0]], *(name for pair in self.pairs for name in pair.features)]
        yield Finding(
            kind="interaction",
            severity="note",
            features=tuple(dict.fromkeys(names)),
            number=self.ratio,
            unit="sum of |last - alone| over the sum of |contribution|",
            sentence=f"What a feature adds depends on the others: {each}.{beyond}",
            advice=(
                "Read the contributions of these features together: each is an average over all orders. "
                "explanation.interactions() has the pairs, plot.waterfall(ends=True) both ends."
            ),
            reading="contributions",
        )


def accounts(explanation: Explanation, output: Ints) -> list[Account | None]:
    """The account of each row's output (n,); None where contributions cost calls, or more than a moment."""
    return [
        _account(explanation[i], row, int(output[i]))
        for i, row in enumerate(row_outputs(explanation, output))
    ]


def _account(explanation: Explanation, row: RowOutput, output: int) -> Account | None:
    fit = explanation.fit
    is_quick = fit is not None and fit.make().account_seconds * _QUICK <= 1.0
    if requested(explanation, "contributions") is None and not is_quick:
        return None
    its = account_at(explanation, [0])
    if its is None:
        return None
    values, errors, alone, last = (
        with_outputs(a, explanation)[0, :, output]
        for a in (its.values, its.standard_errors, its.alone, its.last)
    )
    base_error = float(np.nan_to_num(with_outputs(its.base_errors, explanation)[0, output]))
    account = Account(row=row, values=values, errors=errors, base_error=base_error, alone=alone, last=last)
    if fit is None or not account.is_exact or account.ratio < ORDER:
        return account
    pairs = explanation[:, :, [output]].interactions(PAIRS)
    return replace(account, pairs=tuple(pair for pair in pairs if pair.share > SURE * pair.share_error))


@dataclass(frozen=True)
class Repetition:
    """Largest difference of two answers to one input; 0 for a function."""

    spread: float

    def measures(self) -> tuple[Measure, ...]:
        return ()

    def findings(self) -> Iterator[Finding]:
        if self.spread > 0.0:
            yield Finding(
                kind="repetition",
                severity="warning",
                number=self.spread,
                unit="largest difference of two answers to the same input",
                sentence=(
                    f"The model answered differently for the same input (up to {self.spread:.3g}): it is "
                    "random, or what it answers depends on the rows beside it."
                ),
                advice=(
                    "Call model.eval() if it is a network, fix its seed, and let nothing be fitted to the "
                    "batch in predict; then explain again."
                ),
                reading="",
            )


def _repetitions(context: DiagnosticContext) -> list[Repetition]:
    # the model is the same for all rows
    if isinstance(context, TableContext):
        inputs = few_inputs(context.background)
    else:
        inputs = few_subsets(context.rows.shape[1])
    return [Repetition(spread_of_answers(context.predict, inputs))] * len(context.rows)


# From a context to a result for each row
OF_ANY: Mapping[str, Callable[[Any], Sequence[Any]]] = {
    "repetition": _repetitions,
    "fit": each_row(_fit),
    "bandwidth": paths,
    "sample size": _sample_sizes,
    "shrinkage": each_row(_shrinkage),
}
