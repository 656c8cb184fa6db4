"""Explain rows by a base and few literals that add up to the prediction, with a certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal, Never, Unpack

import numpy as np

from limes import __version__
from limes._arrays import Floats, Ints, fingerprint, streams
from limes._checks import (
    as_number,
    check_choice,
    check_count,
    check_probability,
    check_size,
    check_threshold,
    refuse_in_call,
    refuse_unknown,
)
from limes._explainers.options import SamplingOptions
from limes._explainers.results import compute_each, fixed_warnings, interrupted, reason_of, score_warnings
from limes._explainers.tables.table import ids_of
from limes._explanation import Explanation
from limes._explanation.attribution import changed
from limes._explanation.drawing import Described
from limes._explanation.explanation import from_fields
from limes._explanation.rules import Contrast
from limes._explanation.wording import chosen, holding_text, number, rule_text
from limes._rules import options
from limes._rules.classes import Classes, class_labels
from limes._rules.contrast import freed
from limes._rules.contrast_question import (
    OPTIONS,
    ContrastOptions,
    ContrastRequest,
    check_directions,
    names_of,
)
from limes._rules.domain import Domain
from limes._rules.least_cost import NODES
from limes._rules.literals import Literals, TableRows, check_columns
from limes._rules.model import ModelReading, RowCalls, RuleModel
from limes._rules.neighbourhood import SIGNS, TABLE_DRAWS, LiteralNeighbourhood
from limes._rules.problem import check_sparsity
from limes._rules.rule import (
    EvaluatedRule,
    RefusedRowError,
    SparseConfig,
    explain_row,
    rule_warnings,
)
from limes._rules.rule_facts import RuleFacts, agreement
from limes._rules.solvers import SOLVERS, search_options
from limes._rules.sufficient import (
    TIME_LIMIT,
    CertainRule,
    Question,
    check_facts,
    claim_of,
    with_certain,
)
from limes._threads import LRUCache, one_blas_thread, progress_of
from limes._warnings import RowWarning
from limes.exceptions import InputError, ModelError
from limes.models._calling.caller import (
    CHECK_CALLS,
    ModelCaller,
    OneOutput,
    Retry,
    few_inputs,
    spread_of_answers,
)
from limes.models._calling.outputs import SCORE, THRESHOLDS, behind_method, resolve

_MEANING = (
    "weight of a literal, which counts +1 where it holds and -1 where it does not; "
    "with the intercept they add up to the prediction"
)
# of columns that keep their values, with a constant
_DIFFERENCE = "what the rule says of the prediction if the fact holds rather than not"
# Boxes that a search for the worst case cuts at most
_BOXES = {"bounds": 0, "exact": 2000}
# Literals of a rule, and seconds of a search, unless the user says other numbers
_LITERALS, _SECONDS = 7, 60.0
# k="smallest" tries no more: longer rules are not read, and their precision is not enumerated
_MOST_LITERALS = 20


class SparseExplainer(Described):
    r"""Explain a prediction by a constant and k literals that add up to it, and certify how well.

    Around the instance x every literal flips with probability q = e^{-σ}/(1 + e^{-σ}). The explanation w has
    at most k nonzero weights and a constant b, b + w·x = f(x), and least fidelity error E (b + w·z - f(z))².
    Its errors are estimated on fresh rows, with upper bounds that hold with the stated confidence.

    Parameters
    ----------
    model
        A fitted estimator or a callable. Without ``literals`` it takes rows of ``values``, and so do you.
    k
        Number of literals, 7 by default, or "smallest": the fewest (20 at most) whose bound is at most
        ``error``, of the rules that minimise the error that is certified.
    objective
        The error that the literals minimise. None: with k="smallest" the error that ``certify`` bounds, else
        "fidelity". "fidelity": the error of the weights. "precision": at most k
        facts S under which the answer moves least, E[|f(z) - f(x)| given z_S = x_S]. "class": facts under
        which it stays on its side of ``threshold``, least P[other side given z_S = x_S]. Both are searched
        for in a sample, by branch and bound, and bounded on fresh rows; weights are then the least squares
        on S. "certain": the fewest facts such that every row that shares them, whatever its other columns
        are in the ``domain``, is on the same side of ``threshold``, or within ``error`` of f(x): proved by
        bounds over boxes, for models that are read. It takes no ``k``; the certificate has ``columns``,
        ``proved``, ``minimal``, ``smallest`` and ``counterexamples``.
    domain
        :class:`limes.Domain`, which rows are possible, for "certain" and for contrasts: columns that it fixes
        stay, and changed rows obey its relations. Neighbours of other rules need not. None: for "certain"
        every column takes any value between the least and the largest of the literals' table, whole numbers
        where all of these are whole, and its levels. A row's own values are always possible.
    facts
        For "certain": "values" (a fact is the row's own value of a column) or "literals" (that it lies in
        the bin or level of ``literals``). None: "literals" if they are passed, else "values".
    threshold
        For "class" and "certain": the number between the classes; 0.5 for probabilities, 0 for margins. Of
        three classes or more, without ``output``, the class that ``predict`` gives stays the same. For
        "certain" also "class": that the model predicts the row's class, of any number of classes.
    spread
        σ ≥ 0, 1 by default; the larger, the closer to the instance. Laws of a table have none.
    intercept
        Whether the constant b is fitted. False is the paper's form: b = 0 and w·x = f(x), whatever the range
        of the answers, so that literals carry the model's base.
    box
        Without a constant, the largest |w_j|; the paper's is 1. None: no bound, but for "convex", which needs
        one: 1, or where answers leave [-1, 1] their largest size (with a constant half of their range).
    law
        Which literals flip. "literal": each with probability q, independently. "count": j of them with
        probability proportional to e^{-σj}, which ones is a uniform draw; its E[s f] is always sampled.
        For "precision" and "class" also anchors' law, in which neighbours share nothing but the facts, by any
        value of the same bin: "background", the other columns are those of a row of the literals' table; or
        "marginals", each column is drawn from the table on its own: E[s f] is exact, as for "literal".
        Under "background", and of more than four under "marginals", facts are added one by one to the best
        sets, with no proof that others do no better. Under "background", with ``encoding="thresholds"`` of
        the literals, they are sides of a cut, too.
        For "certain" "background" are the ranges of the background, which it has anyway.
    samples
        Rows around each instance that w is fitted on.
    solver
        "projection": the optimum under the law itself, from E[s f], which is exact for models that can be
        read and else estimated from the sample. "hard_thresholding", "branch_and_bound" (certified) and
        "convex" (dense, a bound) solve the problem of the sample.
    literals
        :class:`limes.Literals` of a table; rows to explain are then rows of that table. None: with a
        ``domain`` those of its table, in four bins a column.
    exclude
        Names of columns or literals that no rule uses; the best rule of the others is found.
    fixed, directions
        Names of columns that keep the row's values, and of columns that only rise or only fall, by name:
        ``{"age": "up"}``. Contrasts change rows in no other way, and certain facts are proved for the rows of
        the ``domain`` that differ in no other way: a fixed column needs no fact. Other rules may use them.
    neighbourhood
        With literals: "columns" (one literal for each column, which keeps its value or takes a background
        value of another bin, so that every row is possible; the model takes rows of the table) or "flips"
        (the literals flip independently, as in the paper; the model takes their ``values``).
    values
        (-1, 1), the paper's, or (0, 1): the numbers that the model takes for a literal that does not hold
        and for one that does. A rule counts them -1 and +1 in both cases. A model that stores its training
        rows is refused if these have the other numbers; other models cannot be checked.
    confidence
        Probability with which all bounds of the certificate hold together.
    output
        As for :class:`limes.TabularExplainer`; of two classes the second is explained, of more choose one.
        For "precision", "class" and "certain" None is the class that the model predicts at the rows, which
        share one: for "precision" its probability, else that ``predict`` gives it.
    fresh
        Number of fresh rows for the certificate; ``samples`` by default.
    scale
        The range of the model's answers, which bounds need. (low, high); None: [-1, 1]; an answer outside
        either is an error. "auto": [0, 1] of probabilities, the range of sums, and the leaves of trees;
        of any other model that of the answers seen ([-1, 1] if they lie inside), and the certificate says
        that it is an assumption.
    error, certify
        For "certain" ``error`` is the largest distance from f(x), in place of a threshold. For k="smallest"
        the bound in units of the answers, and the error that it bounds: "precision",
        "fidelity" (the mean square), or that of the ``objective``. None: that of the ``objective``, else
        "precision". With another solver than "projection", or without a constant, rules minimise their
        fidelity error: the first of them whose precision error is small enough need not be the shortest.
    worst_case
        ``certificate.worst_case`` of models that are read: the range of answers over all combinations of
        background values that satisfy the rule. "bounds": of forests quickly, and perhaps too wide; "exact":
        by a search, which may stop at bounds. Sums are exact in both.
    method
        For "projection" and law "literal": "exact", "sampled" or "auto".
    gap, time_limit, threads
        For "branch_and_bound": the gap to stop at, seconds per row (60), and how many threads search
        together. For "certain" ``time_limit`` is 10 seconds; what was proved until then holds. For
        "precision" and "class" it limits a row's search for the best facts, in the place of a number of
        operations that take about a second.
    tolerance
        The former name of ``gap``, with a FutureWarning.
    rng, batch_size, retry
        As for :class:`limes._explainers.options.SamplingOptions`.

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
    Koriche, Lagniez and Tran, "Probabilistic Explanations for Regression Models", 2025; "background":
    Ribeiro, Singh and Guestrin, "Anchors: high-precision model-agnostic explanations", AAAI 2018; "certain":
    Ignatiev, Narodytska and Marques-Silva, "Abduction-based explanations for machine learning models", AAAI
    2019.

    Examples
    --------
    >>> import limes
    >>> explainer = limes.SparseExplainer(lambda X: 0.5 * X[:, 0] - 0.25 * X[:, 3], k=2)
    >>> explanation = explainer([[1, 1, -1, 1]])
    >>> explanation.rule()
    '0.5 [x0 = 1] - 0.25 [x3 = 1]  ->  output = 0.25'
    >>> round(explanation.certificate.r2, 6), explanation.certificate.stability
    (1.0, 1.0)

    The paper's own form, by its Algorithm 1, of a model with a base:

    >>> paper = limes.SparseExplainer(
    ...     lambda X: 0.5 * X[:, 0] - 0.25 * X[:, 3] + 2.0, k=2, intercept=False, solver="hard_thresholding"
    ... )
    >>> explanation = paper([[1, 1, -1, 1]])
    >>> weights = explanation.coefficients
    >>> float(weights.intercepts[0]), round(float(weights.values[0] @ [1, 1, -1, 1]), 9)
    (0.0, 2.25)
    >>> def product(X):
    ...     return 0.6 * X[:, 0] * X[:, 1] + 0.1 * X[:, 2] + 0.05 * X[:, 3]
    >>> limes.SparseExplainer(product, k=2, spread=0.0, objective="precision")([[1, 1, 1, 1]]).rule()
    '[x0 = 1] and [x1 = 1]  ->  output within 0.3 of 0.75'

    Facts that hold whatever else a row of the table has:

    >>> from sklearn.datasets import load_wine
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> wines, grapes = load_wine(return_X_y=True, as_frame=True)
    >>> forest = RandomForestClassifier(20, random_state=0).fit(wines, grapes == 2)
    >>> anchors = limes.SparseExplainer(
    ...     forest,
    ...     literals=limes.Literals.fit(wines),
    ...     law="background",
    ...     k="smallest",
    ...     objective="class",
    ...     error=0.05,
    ...     rng=0,
    ... )
    >>> certificate = anchors(wines.iloc[[160]]).certificate
    >>> certificate.neighbourhood
    "neighbours are rows of the table, with values of the facts' bins where they lack them"
    >>> certificate.bounds["class"] <= 0.05, certificate.agreement
    (True, 1.0)

    Facts that hold for certain:

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = [[1.0, 5.0], [2.0, 6.0], [3.0, 5.0], [4.0, 6.0]]
    >>> tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, [0, 0, 1, 1])
    >>> explainer = limes.SparseExplainer(tree, domain=limes.Domain.fit(X), objective="certain")
    >>> certificate = explainer([[1.5, 6.0]]).certificate
    >>> certificate.columns, certificate.proved, certificate.smallest
    (('x0',), True, True)
    """

    def __init__(
        self,
        model: Any,
        *,
        k: int | str | None = None,
        objective: str | None = None,
        threshold: float | str | None = None,
        intercept: bool = True,
        box: float | None = None,
        spread: float | None = None,
        law: str = "literal",
        samples: int = 1000,
        solver: str = "projection",
        literals: Literals | None = None,
        domain: Domain | None = None,
        facts: str | None = None,
        exclude: Sequence[Any] = (),
        fixed: Sequence[Any] = (),
        directions: Mapping[Any, str] | None = None,
        neighbourhood: str | None = None,
        values: tuple[float, float] = SIGNS,
        confidence: float = 0.95,
        output: Any = None,
        fresh: int | None = None,
        scale: Any = "auto",
        error: float | None = None,
        certify: str | None = None,
        worst_case: str = "bounds",
        method: str = "auto",
        gap: float | None = None,
        tolerance: float | None = None,
        time_limit: float | None = None,
        threads: int = 1,
        rng: int | np.random.Generator | np.random.SeedSequence | None = None,
        batch_size: int = 4096,
        retry: Retry | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, SparseExplainer)
        check_choice("solver", solver, tuple(SOLVERS))
        check_choice("worst_case", worst_case, tuple(_BOXES))
        self._boxes = _BOXES[worst_case]
        self._options = SamplingOptions(method=method, rng=rng, batch_size=batch_size, retry=retry)
        self._spread = check_size("spread", 1.0 if spread is None else spread, zero=True)
        is_certain = objective == "certain"
        fact_kind = check_facts(facts, literals, domain)
        if is_certain:
            law = "literal" if law == "background" else law
            k, largest, error = options.check_certain(k, error, certify, solver, intercept)
        elif facts is not None:
            raise InputError("facts= goes with objective='certain'")
        self._rows = options.rows_with_domain(literals, domain, neighbourhood, law, values)
        self._domain = domain
        self._k, error = options.check_literals(_LITERALS if k is None else k, error)
        free = solver == "projection" and intercept is True and box is None
        objective, certify = options.check_errors(
            objective, certify, is_smallest=self._k is None, is_free=free
        )
        if law in TABLE_DRAWS:
            options.check_draws(law, objective, spread)
        self._exclude, self._fixed = names_of("exclude", exclude), names_of("fixed", fixed)
        self._directions = check_directions(directions)
        if self._rows.width is not None:
            for option in ("exclude", "fixed", "directions"):
                self._rows.positions(option, getattr(self, f"_{option}"), self._rows.width)
        model, output = behind_method(model, output)
        self._rows = self._rows.for_model(model)
        check_columns(model, self._rows)
        self._output = resolve(model, output)
        self._ask = OneOutput(ModelCaller(model, self._output, self._rows.decode), self._output)
        self._config = SparseConfig(
            solver=solver,
            sizes=(),
            samples=check_count("samples", samples),
            fresh=check_count("fresh", samples if fresh is None else fresh),
            confidence=check_probability("confidence", confidence),
            seed=self._options.sampling.seed,
            error=error,
            certify=certify,
            search=search_options(
                solver, gap, tolerance, _SECONDS if time_limit is None else time_limit, threads
            ),
            intercept=options.check_intercept(intercept),
            box=options.check_box(box, intercept, solver),
            objective=objective,
            threshold=0.0,
            seconds=time_limit,
        )
        self._threshold, self._has_usual_threshold = threshold, threshold is None
        self._question: Question | None = None
        # of three classes or more the one that is predicted is chosen row by row
        takes_class = largest is None if is_certain else self._config.is_to_hold
        has_none = threshold is None or (is_certain and isinstance(threshold, str) and threshold == "class")
        self._by_class = takes_class and output is None and has_none and method == "auto"
        self._by_class = self._by_class and len(class_labels(model)) > 2
        self._answers_class = False
        if is_certain:
            threshold = "class" if self._by_class else threshold
            seconds = check_size("time_limit", TIME_LIMIT if time_limit is None else time_limit)
            claim = claim_of(self._output, threshold, largest, len(class_labels(model)))
            self._question = Question(
                self._rows, domain, fact_kind, claim, seconds, self._fixed, self._directions
            )
        elif self._config.is_to_hold:
            self._config = self._holding(threshold)
        elif threshold is not None:
            raise InputError("threshold= goes with objective='class'")
        self._reader = RuleModel(
            model,
            self._output,
            self._ask,
            self._rows,
            self._spread,
            law,
            solver,
            method,
            options.check_scale(scale),
        )
        self._repetition: LRUCache[None, float] = LRUCache(1)
        self._bound = self._reader.bind() if method == "exact" else None
        of_weights = {
            **({"meaning": _DIFFERENCE, "difference": 2} if self._counts_facts else {"meaning": _MEANING}),
            "neighbourhood": self._rows.label,
            "law": law,
            **({} if law in TABLE_DRAWS else {"spread": self._spread}),
            "k": _LITERALS if k is None else k,
            "intercept": intercept,
            "solver": solver,
        }
        self._provenance = {
            "limes": __version__,
            "model": type(model).__name__,
            "answer": self._output.method or "call",
            **({} if is_certain else of_weights),
            "objective": objective,
            "seed": self._config.seed,
        }

    def _holding(self, threshold: float | str | None) -> SparseConfig:
        """Return the options of a rule that is to hold."""
        config, method = self._config, self._output.method
        if config.solver != "projection" or not config.intercept:
            raise InputError(
                f"objective={config.objective!r} searches facts and fits a constant: leave out solver=, "
                "intercept= and box="
            )
        if config.objective == "precision":
            if threshold is not None:
                raise InputError("threshold= goes with objective='class'")
            return config
        if threshold is None and method not in THRESHOLDS:
            raise InputError(
                "objective='class' needs threshold=: only probabilities and margins have a default"
            )
        between = as_number(THRESHOLDS[method] if threshold is None else threshold)
        if not np.isfinite(between):
            raise InputError(f"threshold must be a finite number, got {threshold!r}")
        return replace(config, threshold=between)

    def _facts(self) -> Mapping[str, Any]:
        return {**self._provenance, "reason": self._model.reason}

    @property
    def method(self) -> Literal["exact", "sampled"]:
        """How E[s f] is computed: "exact" or "sampled"."""
        return self._model.method

    _has_rules = True

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the table's columns, which are the features.

        Raises
        ------
        InputError
            If the features are literals that flip.
        """
        if not isinstance(self._rows, TableRows):
            raise InputError(
                "the features are literals: pass literals=limes.Literals.fit(...), neighbourhood='columns'"
            )
        return self._rows.names(0)

    @property
    def reproducible(self) -> SparseExplainer:
        """The same explainer: rows are explained one by one, however a table is cut."""
        return self

    def fill_pool(self, *, progress: bool = True) -> None:
        """Do nothing, whatever ``progress`` is: no answers are shared between rows."""

    def _typical_row(self) -> Any:
        """Return a row like those to explain."""
        return self._rows.decode(self._rows.checked_rows(len(self.feature_names))[:1])

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_bound": None}  # what was read is read again

    @property
    def _model(self) -> ModelReading:
        self._bound = self._bound or self._reader.bind()
        return self._bound

    def _current(self, rows: Floats) -> ModelReading:
        model = self._model
        if not model.watch.unchanged(rows):
            self._bound = model = self._reader.bind()
        return model

    @one_blas_thread()
    def __call__(
        self,
        X: Any,
        *,
        exclude: Sequence[Any] = (),
        progress: bool = True,
        workers: int = 1,
        **unknown: Never,
    ) -> Explanation:
        """Explain one row or many.

        Parameters
        ----------
        X
            Rows of -1 and +1, or rows of the literals' table.
        exclude
            Names that these rules do not use, besides those of the explainer.
        progress
            Show a progress bar when it takes more than a second or two.
        workers
            Rows that are explained at the same time, each in its own thread.

        Raises
        ------
        InputError
            If a row is not usable: says which.
        ModelError
            If the model fails. Its ``partial`` is the explanation of the rows so far; calls made so far are
            kept, and the same call continues from them.
        Interrupted
            If the user stops it (Ctrl-C), with the same ``partial``; a KeyboardInterrupt.
        """
        if unknown:
            refuse_in_call(unknown, SparseExplainer)
        rows = self._rows.encode(X)
        if self._by_class:
            chosen_one = self._of_class(rows, by_predict=self._config.objective == "class")
            return chosen_one(X, exclude=exclude, progress=progress, workers=workers)
        model = self._current(rows)
        near, names = [self._rows.near(row, self._spread) for row in rows], ids_of(X, len(rows))
        excluded = self._rows.positions(
            "exclude", (*self._exclude, *names_of("exclude", exclude)), rows.shape[1]
        )
        check_threshold("threshold", self._threshold, lambda: self._answers_probabilities(rows))
        for one, name in zip(near, names, strict=True):
            self._rows.check_varies(one, name)
        config = self._with_sizes(near[0], excluded)
        results, error = compute_each(
            range(len(rows)),
            lambda i: self._explain_row(model, config, near[i], rows[i], names[i]),
            progress=progress_of(shown=progress),
            workers=check_count("workers", workers),
        )
        finished = [i for i, result in enumerate(results) if result is not None]
        rules = [result for result in results if result is not None]
        explanation = None
        if rules:
            around = [near[i] for i in finished]
            explanation = self._to_explanation(model, config, rows[finished], around, rules)
            explanation = changed(explanation, ids=tuple(names[i] for i in finished))
        if error is not None or explanation is None:
            raise interrupted(error, explanation, len(rows)) from error
        return explanation

    def contrast(
        self,
        X: Any,
        *,
        below: float | None = None,
        above: float | None = None,
        to: Any = None,
        minimize: str = "columns",
        costs: Mapping[Any, float] | None = None,
        exclude: Sequence[Any] = (),
        fixed: Sequence[Any] = (),
        directions: Mapping[Any, str] | None = None,
        among: str = "values",
        nodes: int = NODES,
    ) -> Contrast:
        """Find the best change of one row that takes the prediction beyond a threshold, or to another class.

        By default the fewest columns change. They take values of the background. Of models that are read it
        is proved by bounds that no change is better, where the search is not too long, else the contrast
        states a lower bound and the gap; of others it is the best of ``fresh`` rows drawn around the row.
        With a ``domain`` of the explainer the changed row obeys its relations, and its fixed columns stay.

        Parameters
        ----------
        X
            One row.
        below, above
            The threshold, one of the two: fall below it, or rise above it.
        to
            Without a threshold, the class that the model is to predict, by its label. None: any other class
            than the one it predicts, by its own ``predict``.
        minimize
            "columns": how many columns change. "cost": the sum of their costs times their changes, in units
            of each column's standard deviation in the background (of a category, or of a missing value: any
            change is 1).
        costs
            For "cost", and for rows: what a unit of each column costs, by name; 1 by default.
        exclude
            Names of columns that do not change, besides those of the explainer.
        fixed
            The same: names of columns that do not change.
        directions
            Columns that only rise or only fall, by name: ``{"age": "up", "debt": "down"}``; besides the
            explainer's.
        among
            "values": columns change one by one, to values that the background has. "rows": the changed row is
            the row of the background beyond the threshold whose change costs least.
        nodes
            How many boxes a search cuts at most.

        Raises
        ------
        InputError
            If it is not one row, or a threshold, name or option is not usable.
        ModelError
            If the model fails.

        References
        ----------
        Cui, Chen, He and Chen, "Optimal action extraction for random forests and boosted trees", KDD 2015.
        """
        request = ContrastRequest(
            below=below,
            above=above,
            to=to,
            minimize=minimize,
            costs=costs,
            exclude=exclude,
            fixed=fixed,
            directions=directions,
            among=among,
            nodes=nodes,
        )
        return self._contrasts(X, 1, request)[0]

    def contrasts(
        self, X: Any, k: int = 3, *, disjoint: bool = False, **options: Unpack[ContrastOptions]
    ) -> tuple[Contrast, ...]:
        """Find several changes of one row, the best first; none has all columns of an earlier one.

        Each is the best of those that leave a column of every earlier answer as it is, with a proof or the
        gap. For rows they are the next nearest. There are fewer where no other is seen.

        Parameters
        ----------
        X
            One row.
        k
            How many.
        disjoint
            Whether each leaves all columns of the earlier answers as they are, in the place of one.
        options
            As for ``contrast``.

        Raises
        ------
        InputError, ModelError
            As ``contrast``.
        """
        refuse_unknown({o: v for o, v in options.items() if o not in OPTIONS}, ContrastRequest)
        return self._contrasts(X, check_count("k", k), ContrastRequest(disjoint=disjoint, **options))

    @one_blas_thread()
    def _contrasts(self, X: Any, count: int, request: ContrastRequest) -> tuple[Contrast, ...]:
        (row,) = self._one_row(X)
        if self._by_class or (request.is_of_classes and self._output.is_of_several_classes):
            return SparseExplainer._contrasts(self._of_class(row[None, :]), X, count, request)
        model = self._current(row[None, :])
        request.check_reach(lambda: self._answers_probabilities(row[None, :]))
        request = request.beside(self._exclude, self._fixed, self._directions)
        domain = self._domain if self._question is None else self._question.domain_of(row.size)

        def drawn() -> Floats:
            near = self._rows.near(row, self._spread)
            (stream,) = streams(self._config.seed, fingerprint(row), 1)
            rng = np.random.default_rng(stream)
            return near.draw(rng, self._config.fresh)[1]

        question = request.question(self._rows, row, model, self._ask, domain, drawn)
        quantity = "probability" if self._answers_probabilities(row[None, :]) else "prediction"
        border = None
        if quantity == "probability" or self._output.method == "decision_function":
            border = THRESHOLDS[self._output.method]
        return question.contrasts(count, self._ask, border, output=self._ask.name, quantity=quantity)

    def _of_class(self, rows: Floats, *, by_predict: bool = False) -> SparseExplainer:
        """Return the explainer of the class that the model predicts at rows.

        It is of the class's share, or of whether the model predicts it: the largest share may be below one
        half.
        """
        reader, one = self._reader, copy(self)
        classes = Classes(reader.model, self._rows, reader.form_of)
        places = np.unique(classes(rows)).tolist()
        if len(places) > 1:
            other = " with threshold='class'" if self._config.objective == "certain" else ""
            raise InputError(
                f"the model predicts {len(places)} classes at these rows, and an explanation is of one "
                f"output: pass the rows of one class at a time, or output={other}"
            )
        label, model, config = classes.labels[places[0]], reader.model, self._config
        output = resolve(model, label)
        if by_predict:
            model, config = classes.indicator(label), replace(config, threshold=0.5)
            output = model.output
            reader = replace(reader, passed=reader.passed or model.answer_range)
        ask = OneOutput(ModelCaller(model, output, self._rows.decode), output)
        vars(one).update(
            _output=output,
            _ask=ask,
            _config=config,
            _answers_class=by_predict,
            _reader=replace(reader, model=model, output=output, ask=ask),
            _bound=None,
            _repetition=LRUCache(1),
            _by_class=False,
        )
        return one

    def _one_row(self, X: Any) -> Floats:
        rows = self._rows.encode(X)
        if len(rows) != 1:
            raise InputError(f"a contrast is of one row, got {len(rows)}: pass X.iloc[[i]], or X[i : i + 1]")
        return rows

    @property
    def _is_probability(self) -> bool:
        """Whether the answers so far are those of ``predict_proba``, and no scores in their place."""
        return self._output.method == "predict_proba" and self._ask.first.are_probabilities(add_up=False)

    def _answers_probabilities(self, rows: Floats) -> bool:
        """Whether answers are probabilities; where none is known yet, the first row is asked about."""
        if not self._ask.first:
            self._ask(rows[:1])
        return self._is_probability

    def _spread_of_answers(self, model: ModelReading, d: int) -> float:
        """Return the largest difference of two answers to one input; 0 where the model was read."""
        if model.method == "exact":
            return 0.0
        inputs, retry = few_inputs(self._rows.checked_rows(d)), self._options.sampling.retry
        return self._repetition.get(None, lambda: spread_of_answers(self._ask, inputs, retry))

    def _explain_row(
        self, model: ModelReading, config: SparseConfig, near: LiteralNeighbourhood, row: Floats, name: Any
    ) -> tuple[EvaluatedRule, CertainRule | None]:
        key, sampling = fingerprint(row), self._options.sampling
        calls = model.unfinished.take(key)
        if calls is None:
            calls = RowCalls(self._ask, batch_size=sampling.batch_size, retry=sampling.retry)
        try:
            if self._question is None:
                rule = explain_row(near, calls, row, config, model)
                its_facts = RuleFacts(self._rows, row, near, rule.solution.support)
                rule = replace(rule, agreement=agreement(its_facts, rule, model, calls))
                return replace(rule, calls=calls.rows), None
            calls.restart()
            quantity = "probability" if self._is_probability else "prediction"
            excluded = np.array(config.excluded, dtype=np.int64)
            its = self._question.solve(model, row, calls, excluded, name=self._ask.name, quantity=quantity)
            searched = calls.rows
            positions = np.flatnonzero(np.isin(near.varying, its.columns))
            rule = explain_row(near, calls, row, config, model, positions)
            return replace(rule, calls=rule.calls + searched), its
        except RefusedRowError as refusal:
            raise ModelError(
                f"row {name!r} has no exact expectation: {refusal}; pass method='auto', which samples it"
            ) from refusal
        except (ModelError, KeyboardInterrupt):
            model.unfinished.put(key, calls)
            raise

    def _with_sizes(self, near: LiteralNeighbourhood, excluded: Ints) -> SparseConfig:
        config = replace(self._config, excluded=tuple(excluded.tolist()))
        # of the literals of one column a rule uses one at most
        size = len(np.unique(near.varying[config.candidates(near)]))
        if not size:
            raise InputError("exclude= leaves no literal that a rule could use")
        if self._question is not None:
            return replace(config, sizes=(size,))
        if self._k is None:
            # the answer may move little enough without a fact
            least = 0 if config.is_to_hold else 1
            return replace(config, sizes=tuple(range(least, min(size, _MOST_LITERALS) + 1)))
        check_sparsity(self._k, size)
        return replace(config, sizes=(self._k,))

    def _to_explanation(
        self,
        model: ModelReading,
        config: SparseConfig,
        rows: Floats,
        near: Sequence[LiteralNeighbourhood],
        results: Sequence[tuple[EvaluatedRule, CertainRule | None]],
    ) -> Explanation:
        rules, certain = zip(*results, strict=True)
        feature_names = self._rows.names(rows.shape[1])
        values, errors = np.zeros((2, len(rows), len(feature_names)))
        facts = [
            RuleFacts(self._rows, row, around, rule.solution.support)
            for row, around, rule in zip(rows, near, rules, strict=True)
        ]
        for i, (its, rule) in enumerate(zip(facts, rules, strict=True)):
            # of the literals of one column a rule uses one at most
            values[i, its.features] = rule.solution.w[its.support]
            errors[i, its.features] = rule.standard_errors[its.support]
        intercepts = np.array([rule.intercept for rule in rules])
        output = self._ask.name
        at_rows = np.stack([self._rows.signs(row) for row in rows])
        texts = [
            self._text(row, values[i] * at_rows[i], rules[i], facts[i].texts) if its is None else its.rule
            for i, (row, its) in enumerate(zip(rows, certain, strict=True))
        ]
        calls = np.array([rule.calls for rule in rules])
        calls[0] += 0 if model.method == "exact" or None in self._repetition else CHECK_CALLS
        predictions = np.array([rule.target for rule in rules])
        scores = self._scores_of(predictions)
        fixed = fixed_warnings(self._rows.remark, self._spread_of_answers(model, rows.shape[1])) + scores
        refusals = {i: rule.refusal for i, rule in enumerate(rules) if rule.refusal}
        is_share = self._output.method == "predict_proba" and not scores
        surrogate = {
            "values": values,
            "standard_errors": errors,
            "intercepts": intercepts,
            "surrogate_predictions": intercepts + (values * at_rows).sum(axis=1),
            "fidelity": np.array([rule.r2 for rule in rules]),
            "controls": tuple("none" if rule.refusal else "" for rule in rules) if refusals else None,
            "row_converged": np.array([rule.meets and rule.is_accurate for rule in rules]),
        }
        return from_fields(
            **(surrogate if self._question is None else {}),  # facts that hold for certain have no weights
            predictions=predictions,
            feature_names=feature_names,
            output_names=(output,),
            conditions=tuple(its.conditions for its in facts),
            data=self._rows.originals(rows),
            method="sampled" if refusals else model.method,
            reason=reason_of(refusals, len(rows)) or model.reason,
            calls=calls,
            row_warnings=tuple(
                fixed + rule_warnings(rule) + (() if its is None else its.warnings) for rule, its in results
            ),
            provenance={
                **self._provenance,
                **({"quantity": SCORE} if scores else {}),
                **self._excluded(config, feature_names),
            },
            certificates=tuple(
                with_certain(
                    rule.certificate(
                        self._rows.conditions(row),
                        rule=text,
                        facts=of_row.texts,
                        quantity="probability" if is_share else "prediction",
                        **self._of_all_rows(model, of_row, its),
                    ),
                    its,
                )
                for rule, its, text, row, of_row in zip(rules, certain, texts, rows, facts, strict=True)
            ),
        )

    def _scores_of(self, predictions: Floats) -> tuple[RowWarning, ...]:
        """Warn of scores in the place of probabilities; they have no usual threshold."""
        warnings = score_warnings(self._reader.model, self._output.method, self._ask.first, predictions)
        if warnings and self._config.objective == "class" and self._has_usual_threshold:
            raise InputError(f"{warnings[0]}; objective='class' needs threshold= of a score")
        return warnings

    @property
    def _counts_facts(self) -> bool:
        """Whether a literal is a fact that holds or not, and the constant what remains without any."""
        return self._rows.counts_facts and self._config.intercept

    def _text(self, row: Floats, u: Floats, rule: EvaluatedRule, facts: Sequence[str]) -> str:
        """The rule, with parts u (d,) of the prediction at the row, where all literals count +1."""
        name, config, constant = self._ask.name, self._config, rule.intercept
        if config.is_to_hold:
            claim = f"within {number(rule.bounds['band'], 2)} of {number(rule.target)}"
            if config.objective == "class":
                claim = f"{'<' if rule.target < config.threshold else '>='} {chosen(config.threshold)}"
            return holding_text(facts, name, "is predicted" if self._answers_class else claim)
        if self._counts_facts:
            u, constant = 2.0 * u, constant - float(u.sum())
        return rule_text(self._rows.facts(row, u), name, rule.target, constant)

    def _of_all_rows(
        self, model: ModelReading, facts: RuleFacts, certain: CertainRule | None
    ) -> dict[str, Any]:
        """Return what the certificate says of all rows with these facts, and how many there are."""
        box = facts.box
        if certain is not None:
            row, columns = facts.row, certain.columns
            box = self._rows.box(row, columns)
            if self._question is not None and self._question.facts == "values":
                box = freed(box, row, np.setdiff1d(np.arange(row.size), columns).tolist())
            box = tuple(
                its[values.contains(its).astype(bool)] for its, values in zip(box, certain.free, strict=True)
            )
        worst_case, is_exact = model.worst_case(box, self._boxes)
        return {
            "coverage": facts.coverage,
            "background_rows": self._rows.background_size,
            "worst_case": worst_case,
            "worst_case_exact": is_exact,
        }

    def _excluded(self, config: SparseConfig, names: tuple[str, ...]) -> dict[str, Any]:
        return {"exclude": [names[j] for j in config.excluded]} if config.excluded else {}
