"""A model over features that are on or off, as words and superpixels are: read if it can be, else asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from limes._arrays import Floats
from limes.designs.exchangeable import ExchangeableDesign
from limes.exceptions import InputError, NotReadableError, ReadMismatchError
from limes.expectations.controls.control import Control, no_control
from limes.expectations.controls.kernel import switch_kernels
from limes.expectations.controls.margin import margin_control
from limes.expectations.controls.process import gaussian_process
from limes.expectations.moments import ExactMoments, Moments
from limes.expectations.sampled import SampledExpectation
from limes.expectations.sampling import Sampling
from limes.explainers.verification import SUBSET_DRAWS, check_draws, kept_features
from limes.models.forms.base import BlackBox, Form
from limes.pipeline import Expectation, exact_expectation

CONTROLS = ("auto", "none", "kernel", "process", "margin")


@dataclass(frozen=True, eq=False)
class Switched:
    """A model at one text or image.

    Attributes
    ----------
    ask
        (n, d) rows of switches -> (n,) or (n, k), the model's answers.
    form
        What could be read, or a black box with the reason.
    margin
        The form behind the model's link, if there is one that could be read.
    kernel
        The control of that name.
    usual
        Name of the control of models that can only be asked.
    computed
        A design, and the form's moments under it, where they were computed already.
    """

    ask: Callable[[Floats], Floats]
    form: Form | BlackBox
    margin: Form | None = None
    kernel: Control = switch_kernels
    usual: str = "kernel"
    computed: tuple[ExchangeableDesign, Moments] | None = None

    def verified(self, design: ExchangeableDesign) -> Switched:
        """The same, as a black box if the form's exact moments disagree with the form itself."""
        if isinstance(self.form, BlackBox):
            return self
        moments = exact_expectation(self.form, ExchangeableDesign).moments(design)
        try:
            check_draws(moments, self.form.predict, design, kept_features(design), SUBSET_DRAWS)
        except ReadMismatchError as reason:
            return replace(self, form=BlackBox(self.ask, str(reason)))
        return replace(self, computed=(design, moments))

    def expectation(
        self, design: ExchangeableDesign, *, method: str, sampling: Sampling, control: str, features: str
    ) -> Expectation:
        """Exact where the form is known, else by asking: all subsets if they are few, a sample if not.

        Raises
        ------
        NotReadableError
            If ``method="exact"``, the model could not be read, and the subsets are many.
        InputError
            If ``control="margin"`` and there is none.
        """
        if method != "sampled" and not isinstance(self.form, BlackBox):
            exact = exact_expectation(self.form, ExchangeableDesign)
            return exact if self.computed is None else _Computed(exact, *self.computed)
        if method == "exact" and design.states(sampling.max_calls) is None:
            raise NotReadableError(
                f"method='exact' needs a model that can be read: {self.reason}; or a budget for all 2^d "
                f"subsets of d = {design.size} {features} (max_calls). Use method='auto' to sample it, with "
                "error bars"
            )
        return SampledExpectation(self.ask, replace(sampling, controls=self._controls(control)))

    @property
    def reason(self) -> str:
        """Why it is sampled."""
        return self.form.reason if isinstance(self.form, BlackBox) else "asked for by method='sampled'"

    def _controls(self, control: str) -> Mapping[str, Control]:
        """Candidates for the control variate."""
        known: dict[str, Control] = {"none": no_control, "kernel": self.kernel, "process": gaussian_process}
        if self.margin is not None:
            exact = exact_expectation(self.margin, ExchangeableDesign)
            known["margin"] = margin_control(self.margin.predict, exact, rest=no_control)
        if control == "auto":
            # others take some tenths of a second, and are hardly better than a margin
            best = self.usual if self.margin is None else "margin"
            return {name: known[name] for name in ("none", best)}
        if control not in known:
            raise InputError("control='margin' needs a model with a margin that can be read; use 'auto'")
        return {control: known[control]}


@dataclass(frozen=True)
class _Computed:
    """An exact expectation whose moments under one design were computed already."""

    expectation: ExactMoments
    design: ExchangeableDesign
    known: Moments

    @property
    def method(self) -> Literal["exact"]:
        """How moments are had."""
        return "exact"

    def moments(self, design: ExchangeableDesign, row: Floats | None = None) -> Moments:
        """E_w f and Cov_w(h, f), exactly."""
        return self.known if design is self.design else self.expectation.moments(design, row)
