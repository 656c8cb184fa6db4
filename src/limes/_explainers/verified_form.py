r"""One reading of a model: a form that answers what the model answers, or the reason for not having one.

A form that agrees with the model on its data may still be wrong: explanations average over rows that are not
in the data, and they come from an expectation, not from the form's own ``predict``. So

1. the form must give the model's answers at probes: at rows of the background and of its law, at texts or
   images with parts removed (`VerifiedForm.compared`). A difference is small relative to the size of the
   answers, and to their spread: coefficients are differences of answers, and where answers of 10⁶ spread by
   1, what float32 loses of them is more than a coefficient;
2. the expectation's E_w f and Cov_w(h, f) must agree with draws of w, within the error of the draws
   (`check_draws`).

A table's expectation is compared with the model itself, too (``tables/model.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np

from limes._arrays import ROUNDING, Floats, Ints, is_constant, power_of_two
from limes._expectations.moments import ExactMoments, Moments
from limes._expectations.of_forms import exact_expectation
from limes._fidelity.weighted_rows import ERRORS, UNSEEN_ROWS
from limes.designs._exchangeable import ExchangeableDesign
from limes.designs._product import ProductDesign
from limes.exceptions import InputError, ModelError, NotReadableError, ReadMismatchError
from limes.models._calling.outputs import Output, resolve
from limes.models._identity import Predict, RefitDetector, Witnesses
from limes.models._reading import CannotRead
from limes.models.forms._base import Form
from limes.models.readers import EXACT_TOLERANCE, SINGLE_TOLERANCE

# Draws of a first comparison with an expectation, and of the second one that decides
TABLE_DRAWS = (512, 1 << 14)
SUBSET_DRAWS = (128, 1 << 12)
# Rounding of means, in units of the largest value
_OFF = 1e-8
# Largest difference of form and model, in standard deviations of the model's answers
_OF_SPREAD = 1e-3

NO_EXPECTATION = "the model was read, but its expectation is not exact"

# Reads the form of an output; a CannotRead or an InputError says why it has none
Read: TypeAlias = Callable[[Output], Form]
# Number of draws -> rows x and features h
Draw: TypeAlias = Callable[[int], tuple[Floats, Floats]]


@dataclass(frozen=True, eq=False, kw_only=True)
class VerifiedForm:
    """A model as it was read, for one of its outputs; rows are those that a form is about."""

    model: Any
    output: Output
    ask: Predict  # (n, d) -> (n,) or (n, k): the model's own answers
    form: Form | None = None
    reason: str = ""  # why there is no form
    margin: Form | None = None  # behind the link of the answers
    tolerance: float = EXACT_TOLERANCE  # rounding of the model's sums, relative to its largest answer
    read_predict: Predict | None = None  # the same answers without the model, once compared
    allowed: Floats | float = 0.0  # largest difference of the two, of each output
    size: float = np.inf  # of the answers at which they were compared
    witnesses: Witnesses | None = None  # of a model that nothing was read of: rows to be asked about again
    outputs: tuple[str, ...] = ()
    spread: float = 0.0  # largest difference of two answers of the model to one input

    @classmethod
    def of(cls, read: Read, *, output: Output, **facts: Any) -> Self:
        """Read a model; ``facts`` are the other fields."""
        try:
            return cls(form=read(output), output=output, **facts)
        except (CannotRead, InputError) as reason:
            return cls(reason=str(reason), output=output, **facts)

    @property
    def is_read(self) -> bool:
        """Whether a form answers, exactly or to samples, without calls of the model."""
        return self.form is not None or self.read_predict is not None

    def unread(self, reason: str) -> Self:
        return replace(self, form=None, margin=None, reason=reason)

    def allowance(self, answers: Floats) -> float:
        """Largest difference of form and model by the size of these answers."""
        return self.tolerance * float(np.abs(answers).max())

    def compared(
        self, rows: Floats, answers: Floats, where: Callable[[int], str], predict: Predict | None = None
    ) -> Self:
        """Compare the form with the model's answers at rows (n, d); a ReadMismatchError names the row.

        ``predict`` is what was read, if it is not a form.
        """
        read_predict = predict if self.form is None else self.form.predict
        if read_predict is None:
            return self
        computed, allowed = read_predict(rows), self.allowance(answers)
        check_agreement(answers, computed, allowed, where)
        size = float(np.abs(answers).max())
        return replace(
            self, read_predict=read_predict, allowed=self._within_spread(answers, computed), size=size
        )

    def _within_spread(self, answers: Floats, computed: Floats) -> Floats:
        """Largest difference of form and model, of each output; a ReadMismatchError if theirs is larger.

        Where neither varies there is nothing to explain, and only the size of the answers counts.
        """
        size = np.abs(answers).max(axis=0)
        unit = power_of_two(size)  # squares of large answers are no finite numbers
        both = [(numbers / unit).std(axis=0) for numbers in (answers, computed)]
        spread = unit * both[0]
        constant = is_constant(both[0] ** 2, size / unit) & is_constant(both[1] ** 2, size / unit)
        by_spread = np.maximum(_OF_SPREAD * spread, ROUNDING * size)
        largest = self.allowance(answers)
        allowed = np.asarray(np.where(constant, largest, np.minimum(by_spread, largest)))
        apart = np.abs(answers - computed).max(axis=0)
        if (apart > allowed).any():
            worst = np.unravel_index(np.argmax(apart - allowed), apart.shape)
            raise ReadMismatchError(self._rounding(*(float(each[worst]) for each in (apart, size, spread))))
        return allowed

    @property
    def precision(self) -> dict[str, str]:
        """Which numbers a form explains where they are not the model's to the last digit."""
        if self.tolerance < SINGLE_TOLERANCE or self.read_predict is None:
            return {}
        size = float(np.max(self.allowed))
        return {"precision": f"sums in double precision; the model's own differ by less than {size:.2g}"}

    def _rounding(self, apart: float, size: float, spread: float) -> str:
        numbers = f"{apart:.2g} at answers of {size:.2g}, which spread by {spread:.2g}"
        if self.tolerance < SINGLE_TOLERANCE:
            return f"the form that was read differs from the model by up to {numbers}"
        return (
            f"{type(self.model).__name__} adds in single precision: rounding of {numbers}; explained is the "
            "model with this rounding, not the sums that it rounds"
        )

    @property
    def predict(self) -> Predict:
        """Answers of the form where they are the model's own to the last digits, else those of the model."""
        exact = self.form is not None and self.tolerance <= EXACT_TOLERANCE
        return self.read_predict if exact and self.read_predict is not None else self.ask

    def watch(self, ask: Predict | None = None, background: Floats | None = None) -> RefitDetector:
        """Notice a new fit; ``ask`` answers as the model does, in less time."""
        read_predict = self.read_predict
        return RefitDetector(
            self.model,
            ask or self.ask,
            read_predict,
            self.allowed,
            self.size,
            background=background,
            witnesses=self.witnesses if read_predict is None else None,
        )


def margin_of(model: Any, output: Output, read: Read) -> Form | None:
    """Return the form behind the link of a model's predictions; None without one."""
    if output.method not in ("predict", "predict_proba"):
        return None
    try:
        return read(resolve(model, "margin"))
    except (CannotRead, InputError):
        return None


def exact_moments(form: Form, design: Any, where: str = "") -> tuple[ExactMoments, Moments]:
    """Return a form's exact expectation, and its moments at a design; a NotReadableError without one."""
    try:
        expectation = exact_expectation(form, type(design))
        return expectation, expectation.moments(design)
    except (InputError, ModelError) as error:
        raise NotReadableError(f"{NO_EXPECTATION}{where}: {error}") from error


def check_agreement(
    expected: Floats, computed: Floats, allowed: Floats | float, where: Callable[[int], str]
) -> None:
    """Compare a form's numbers (n, ...) with the model's; a ReadMismatchError names the first other row."""
    if expected.shape != computed.shape:
        raise ReadMismatchError(
            f"the model answers shape {expected.shape}, its form answers {computed.shape}"
        )
    wrong = ~(np.abs(expected - computed) <= allowed)
    if wrong.any():
        i = int(np.argmax(wrong.reshape(len(wrong), -1).any(axis=1)))
        raise ReadMismatchError(
            f"at {where(i)} the model answers {expected[i]}, its form answers {computed[i]}"
        )


def check_draws(moments: Moments, predict: Predict, design: Any, draw: Draw, draws: Sequence[int]) -> None:
    """Compare E_w f and Cov_w(h, f) with draws of w, on which the form itself is evaluated.

    ``draw`` returns rows x and their features h under the design, both (n, ...). Few draws may miss rare
    values; the last and largest of ``draws`` decides.
    """
    if not any(_agrees_with_draws(moments, predict, design, *draw(count)) for count in draws):
        raise ReadMismatchError(
            f"the exact expectation differs from a mean over {draws[-1]:,} draws by more than its error"
        )


def product_rows(design: ProductDesign, seed: int = 0) -> Draw:
    return lambda count: design.draw(np.random.default_rng(seed).random((count, design.size)))


def kept_features(design: ExchangeableDesign) -> Draw:
    """Draw independent sets of kept words or superpixels."""

    def draw(count: int) -> tuple[Floats, Floats]:
        rng = np.random.default_rng(0)
        law = design.counts.law
        removed = rng.choice(law.size, size=count, p=law / law.sum())
        places = rng.permuted(np.tile(np.arange(design.size), (count, 1)), axis=1)
        z = (places >= removed[:, None]).astype(np.float64)
        return z, z

    return draw


def subset_rows(d: int, rows: int) -> Floats:
    """All sets of d features if they are few, else random ones, small to large, by a fixed seed; (rows, d).

    The first row keeps all features. No set is there twice, so that there may be fewer of them.
    """
    if 1 << d <= rows:
        return np.asarray(1.0 - (np.arange(1 << d)[:, None] >> np.arange(d) & 1), dtype=np.float64)
    rng = np.random.default_rng(0)
    shares = np.linspace(0.05, 0.95, rows - 1)
    drawn = np.vstack([np.ones(d), (rng.random((rows - 1, d)) < shares[:, None]).astype(np.float64)])
    return drawn[np.sort(np.unique(drawn, axis=0, return_index=True)[1])]


def even_positions(n: int, most: int) -> Ints:
    return np.linspace(0, n - 1, min(most, n)).astype(np.int64)


def shuffled(matrix: Floats, count: int) -> Floats:
    """Rows (count, d) whose columns come from different rows of a matrix (n, d)."""
    places = np.random.default_rng(0).integers(len(matrix), size=(count, matrix.shape[1]))
    return np.take_along_axis(matrix, places, axis=0)


def _agrees_with_draws(moments: Moments, predict: Predict, design: Any, x: Floats, h: Floats) -> bool:
    """Whether moments lie within the errors of means over draws, in units of their ranges."""
    count = len(x)
    f = predict(x).reshape(count, -1)
    # an indicator that is constant over the draws may still vary
    slopes = np.asarray(getattr(design, "slopes", False))
    h_unit = np.where(slopes, _unit(np.abs(h - design.inclusion)), 1.0)
    f_unit = _unit(np.abs(f))
    h, f = (h - design.inclusion) / h_unit, f / f_unit
    mean, rest = f.mean(axis=0), f - f.mean(axis=0)
    gamma = h.T @ rest / count
    variances = np.maximum((h**2).T @ rest**2 / count - gamma**2, 0.0)
    estimates = np.concatenate([mean[None], gamma])
    errors = np.sqrt(np.concatenate([f.var(axis=0)[None], variances]) / count)
    exact = np.concatenate(
        [
            moments.mean.reshape(1, -1) / f_unit,
            moments.gamma.reshape(design.size, -1) / (h_unit[:, None] * f_unit),
        ]
    )
    allowed = ERRORS * errors + UNSEEN_ROWS * np.ptp(f, axis=0) / count + _OFF
    return bool((np.abs(exact - estimates) <= allowed).all())


def _unit(sizes: Floats) -> Floats:
    largest = sizes.max(axis=0)
    return np.where(largest > 0, largest, 1.0)
