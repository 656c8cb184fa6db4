"""A model over features that are on or off, as words and superpixels are: read if it can be, else asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from limes._arrays import Floats
from limes.designs.exchangeable import ExchangeableDesign
from limes.exceptions import InputError, NotReadableError, ReadMismatchError
from limes.expectations.controls.control import Control, none
from limes.expectations.controls.margin import margin
from limes.expectations.controls.process import gaussian_process
from limes.expectations.controls.switches import switch_kernels
from limes.expectations.sampled import SampledExpectation
from limes.expectations.sampling import Sampling
from limes.models.reductions import BlackBox, Form
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
    """

    ask: Callable[[Floats], Floats]
    form: Form | BlackBox
    margin: Form | None = None
    kernel: Control = switch_kernels
    usual: str = "kernel"

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
            return exact_expectation(self.form, ExchangeableDesign)
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
        known: dict[str, Control] = {"none": none, "kernel": self.kernel, "process": gaussian_process}
        if self.margin is not None:
            exact = exact_expectation(self.margin, ExchangeableDesign)
            known["margin"] = margin(self.margin.predict, exact, rest=none)
        if control == "auto":
            # others take some tenths of a second, and are hardly better than a margin
            best = self.usual if self.margin is None else "margin"
            return {name: known[name] for name in ("none", best)}
        if control not in known:
            raise InputError("control='margin' needs a model with a margin that can be read; use 'auto'")
        return {control: known[control]}


def check_reading(expected: Floats, found: Floats, tolerance: float, where: Callable[[int], str]) -> None:
    """Refuse what was read off a model if it does not answer what the model answers.

    Raises
    ------
    ReadMismatchError
        Naming the first row where they differ by more than the tolerance, relative to the largest answer.
    """
    if expected.shape != found.shape:
        raise ReadMismatchError(
            f"the model answers shape {expected.shape}, what was read off it gives {found.shape}; pass a "
            "callable instead of the model, and please report this"
        )
    wrong = ~(np.abs(expected - found) <= tolerance * np.abs(expected).max())
    if wrong.any():
        row = int(np.argmax(wrong.reshape(len(wrong), -1).any(axis=1)))
        raise ReadMismatchError(
            f"for {where(row)} the model answers {expected[row]}, what was read off it gives {found[row]}; "
            "pass a callable instead of the model, and please report this"
        )
