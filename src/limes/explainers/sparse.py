"""Explain rows by few literals that add up to the prediction, with a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Never

import numpy as np

from limes import __version__
from limes._arrays import Floats
from limes.designs.literals import LiteralNeighbourhood
from limes.exceptions import InputError, NotReadableError, ReadMismatchError
from limes.expectations.moments import ExactMoments
from limes.explainers.literals import Literals
from limes.explainers.options import check_choice, check_count, check_size, refuse_unknown, seed_of
from limes.explainers.sparse_options import OneOutput, checked_confidence, checked_k, checked_scale
from limes.explainers.sparse_rows import rows_of
from limes.explainers.sparse_warnings import meets, warnings_of
from limes.explainers.verification import check_agreement
from limes.explainers.watch import Watch
from limes.explanation import Explanation
from limes.explanation.certificate import Certificate
from limes.explanation.wording import rule_text
from limes.models.calling.caller import ModelCaller
from limes.models.calling.outputs import resolve
from limes.models.forms.base import BlackBox
from limes.models.reading import read_output, tolerance_of
from limes.pipeline import METHODS, exact_expectation
from limes.sparse_pipeline import Judged, Plan, explain_row
from limes.surrogates.solvers import SOLVERS
from limes.surrogates.sparse import PopulationProblem, check_sparsity

_MEANING = (
    "weight of a literal, which counts +1 where it holds and -1 where it does not; "
    "together they add up to the prediction"
)
# k="smallest" looks no further: longer rules are not read, and their precision is not enumerated
_MOST_LITERALS = 20


class SparseExplainer:
    r"""Explain a prediction by k literals whose weights add up to it, and certify how well.

    Around x every literal flips with probability q = e^{-σ}/(1 + e^{-σ}). The explanation w has at most k
    nonzero weights, w·x = f(x), and least fidelity error E (w·z - f(z))². Fresh rows then tell its errors,
    with upper bounds that hold with the stated confidence.

    Parameters
    ----------
    model
        A fitted estimator or a callable. Without ``literals`` it takes rows of -1 and +1, and so do you.
    k
        Number of literals, or "smallest": the fewest whose bound is at most ``error`` (20 at most).
    spread
        σ ≥ 0; 0 makes all rows equally likely.
    samples
        Rows around each instance that w is fitted on.
    solver
        "projection": the optimum under the law itself, from E[s f], which is exact for models that can be
        read and else estimated from the sample. "hard_thresholding", "branch_and_bound" (certified) and
        "convex" (dense, a bound) solve the problem of the sample.
    literals
        :class:`limes.Literals` of a table; rows to explain are then rows of that table.
    neighbourhood
        With literals: "columns" (a literal a column: it stays as it is, or takes a background value of
        another bin; no row is impossible; the model takes rows of the table) or "flips" (the literals flip on
        their own, as in the paper; the model takes their -1 and +1).
    confidence
        With which all bounds of the certificate hold together.
    output
        As for :class:`limes.TabularExplainer`; of two classes the second is explained, of more choose one.
    fresh
        Fresh rows for the certificate; as many as ``samples`` if not given.
    scale
        "auto": answers in [-1, 1] stay as they are, others are scaled from the range that was seen. (low,
        high): from this range. None: they must lie in [-1, 1].
    error, certify
        For k="smallest": the bound, and of what, "precision" or "fidelity", in units of the scale.
    method
        For "projection": "exact", "sampled" or "auto".
    tolerance, time_limit, threads
        Of "branch_and_bound": the gap to stop at, seconds a row, and how many threads search together.
    rng
        Seed. A row's result depends on seed and row only; None is a fixed seed.

    Raises
    ------
    InputError
        If an option or a row is not usable.
    ModelError
        If the model fails.
    NotReadableError
        If ``method="exact"`` and the model cannot be read.

    References
    ----------
    Koriche, Lagniez and Tran, "Probabilistic Explanations for Regression Models", 2025.

    Examples
    --------
    >>> import limes
    >>> explainer = limes.SparseExplainer(lambda X: 0.5 * X[:, 0] - 0.25 * X[:, 3], k=2)
    >>> explanation = explainer([[1, 1, -1, 1]])
    >>> explanation.rule()
    '0.5 [x0 = 1] - 0.25 [x3 = 1]  ->  output = 0.25'
    >>> explanation.certificate.proved
    True
    """

    def __init__(
        self,
        model: Any,
        *,
        k: int | str = 7,
        spread: float = 1.0,
        samples: int = 1000,
        solver: str = "projection",
        literals: Literals | None = None,
        neighbourhood: str | None = None,
        confidence: float = 0.95,
        output: Any = None,
        fresh: int | None = None,
        scale: Any = "auto",
        error: float | None = None,
        certify: str = "precision",
        method: str = "auto",
        tolerance: float = 0.0,
        time_limit: float = 60.0,
        threads: int = 1,
        rng: int | np.random.Generator | np.random.SeedSequence | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, SparseExplainer)
        check_choice("solver", solver, tuple(SOLVERS))
        check_choice("method", method, METHODS)
        check_choice("certify", certify, ("precision", "fidelity"))
        self._spread = check_size("spread", spread, zero=True)
        self._rows = rows_of(literals, neighbourhood)
        self._k, self._error = checked_k(k, error)
        wanted = resolve(model, output)
        self._ask = OneOutput(ModelCaller(model, wanted, self._rows.decode), wanted)
        self._model, self._wanted, self._method = model, wanted, method
        self._expectation, self._reason, self._watch = self._read(solver)
        search: dict[str, Any] = {"tolerance": tolerance, "time_limit": time_limit, "threads": threads}
        self._plan = Plan(
            solver=solver,
            sizes=(),
            samples=check_count("samples", samples),
            fresh=check_count("fresh", samples if fresh is None else fresh),
            confidence=checked_confidence(confidence),
            seed=seed_of(rng),
            scale=checked_scale(scale),
            seen=None if scale != "auto" else self._rows.known_answers(self._ask),
            error=self._error,
            certify=certify,
            search=tuple((name, search[name]) for name in SOLVERS[solver].options),
        )
        self._provenance = {
            "meaning": _MEANING,
            "limes": __version__,
            "model": type(model).__name__,
            "answer": wanted.method or "call",
            "neighbourhood": self._rows.label,
            "spread": self._spread,
            "k": k,
            "solver": solver,
            "seed": self._plan.seed,
        }

    @property
    def method(self) -> Literal["exact", "sampled"]:
        """How E[s f] is had: "exact" or "sampled"."""
        return "sampled" if self._expectation is None else "exact"

    def __call__(self, X: Any, *, progress: bool = True) -> Explanation:
        """Explain one row or many.

        Parameters
        ----------
        X
            Rows of -1 and +1, or rows of the literals' table.
        progress
            Show a progress bar when it takes more than a second or two.

        Raises
        ------
        InputError
            If a row is not usable: says which.
        ModelError
            If the model fails.
        """
        rows = self._rows.encode(X)
        if not self._watch.unchanged(rows):
            self._read_again()
        near = [self._rows.near(row, self._spread) for row in rows]
        plan = self._sized(near[0].law.size)
        steps = list(zip(near, rows, strict=True))
        found = [
            explain_row(around, self._ask, row, plan, self._expectation)
            for around, row in (_watched(steps) if progress and len(steps) > 1 else steps)
        ]
        return self._explanation(rows, near, found)

    def _read_again(self) -> None:
        """Take the model as it is now: it was fitted again."""
        self._expectation, self._reason, self._watch = self._read(self._plan.solver)
        if self._plan.seen is not None:
            self._plan = replace(self._plan, seen=self._rows.known_answers(self._ask))

    def _read(self, solver: str) -> tuple[ExactMoments | None, str, Watch]:
        """The exact expectation if Γ is of use and can be read, else why rows are sampled."""
        unread, exact = Watch(self._model), self._method == "exact"
        if SOLVERS[solver].needs is not PopulationProblem:
            if exact:
                raise InputError(
                    f"method='exact' goes with solver='projection'; {solver!r} works on a sample"
                )
            return None, f"solver={solver!r} works on a sample", unread
        if self._method == "sampled":
            return None, "asked for by method='sampled'", unread
        form = read_output(self._model, self._wanted, self._rows.decode, schema=self._rows.schema)
        if isinstance(form, BlackBox):
            if exact:
                raise NotReadableError(f"method='exact' needs a model that can be read: {form.reason}")
            return None, form.reason, unread
        if self._wanted.columns is None and self._ask.column is not None:
            form = form.select(self._ask.column)
        rows = self._rows.checked_rows(form.size)
        answers = self._ask(rows)
        allowed = tolerance_of(self._model) * float(np.abs(answers).max())
        try:
            check_agreement(answers, form.predict(rows), allowed, lambda i: f"row {rows[i]}")
        except ReadMismatchError as error:
            if exact:
                raise
            return None, str(error), unread
        watch = Watch(self._model, ask=self._ask, predict=form.predict, allowed=allowed)
        return exact_expectation(form), "", watch

    def _sized(self, size: int) -> Plan:
        if self._k is None:
            return replace(self._plan, sizes=tuple(range(1, min(size, _MOST_LITERALS) + 1)))
        check_sparsity(self._k, size)
        return replace(self._plan, sizes=(self._k,))

    def _explanation(
        self, rows: Floats, near: Sequence[LiteralNeighbourhood], found: Sequence[Judged]
    ) -> Explanation:
        plan = self._plan
        shape = (len(rows), len(self._rows.names(rows.shape[1])))
        values, errors = np.zeros(shape), np.zeros(shape)
        for i, (around, one) in enumerate(zip(near, found, strict=True)):
            values[i, around.varying] = one.scale.half * one.solution.w
            errors[i, around.varying] = one.scale.half * one.standard_errors
        intercepts = np.array([one.scale.middle for one in found])
        name = self._ask.name
        at_rows = np.stack([self._rows.signs(row) for row in rows])
        rules = [
            rule_text(values[i] * at_rows[i], self._rows.holding(row), name, found[i].target, intercepts[i])
            for i, row in enumerate(rows)
        ]
        return Explanation(
            values=values,
            standard_errors=errors,
            intercepts=intercepts,
            predictions=np.array([one.target for one in found]),
            surrogate_predictions=intercepts + (values * at_rows).sum(axis=1),
            fidelity=np.array([one.explained for one in found]),
            feature_names=self._rows.names(rows.shape[1]),
            output_names=(name,),
            conditions=tuple(self._rows.conditions(row) for row in rows),
            data=self._rows.originals(rows),
            method=self.method,
            reason=self._reason,
            calls=np.array([one.calls for one in found]),
            row_converged=np.array([meets(one, plan) for one in found]),
            row_warnings=tuple(warnings_of(one, plan) for one in found),
            provenance=self._provenance,
            certificates=tuple(
                self._certificate(one, rule).facts() for one, rule in zip(found, rules, strict=True)
            ),
        )

    def _certificate(self, one: Judged, rule: str) -> Certificate:
        return Certificate(
            solver=self._plan.solver,
            fidelity=one.fidelity,
            fresh_fidelity=one.fresh_fidelity,
            precision=one.precision.value,
            precision_error=one.precision.error,
            coincidence=one.precision.coincidence,
            confidence=self._plan.confidence,
            bounds=one.bounds,
            objective=one.solution.objective,
            lower_bound=one.solution.lower_bound,
            gap=one.solution.gap,
            proved=one.solution.proved,
            nodes=one.solution.nodes,
            samples=self._plan.samples,
            fresh_samples=self._plan.fresh,
            theory=one.theory,
            scale=(one.scale.low, one.scale.high),
            rule=rule,
        )


def _watched(steps: Any) -> Any:
    from tqdm.auto import tqdm

    return tqdm(steps, desc="explaining", delay=1.0)
