"""Explain rows of a table.

All that does not depend on the explained rows is one frozen :class:`TabularModel`. A call takes the present
one, or a new one where the model was fitted again.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, cached_property, partial
from importlib import import_module
from typing import Any, Never, Unpack

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Floats, Ints
from limes._checks import as_number, check_choice, check_count, check_size, refuse_in_call
from limes._diagnostics.context import JointContext, TableContext, source_of
from limes._expectations.moments import REFUSED, CutShort
from limes._explainers.options import ACCOUNT, Request, SamplingKeywords, SamplingOptions, complete, takes
from limes._explainers.results import (
    examined,
    interrupted,
    reason_of,
    refused,
    with_contributions,
    without_coefficients,
)
from limes._explainers.tables.compiled import CompiledExplainer
from limes._explainers.tables.differences import OtherRows, naming
from limes._explainers.tables.fits import exact_account
from limes._explainers.tables.groups import Groups
from limes._explainers.tables.laws import TabularOptions
from limes._explainers.tables.model import TabularModel
from limes._explainers.tables.suggestion import DesignSuggestion, suggest_design
from limes._explainers.tables.table import EncodedRows, Table, row_names
from limes._explainers.tables.verification import advice_on_types
from limes._explanation import Explanation
from limes._explanation.attribution import Contributions
from limes._explanation.differences import NO_CELLS
from limes._explanation.drawing import Described
from limes._explanation.explanation import frozen_explanation
from limes._explanation.fit import Fit
from limes._explanation.selection import shown_of
from limes._fitting import Fitted, Method, RefusedRowsError
from limes._sampling.controls import CONTROLS
from limes._threads import one_blas_thread, progress_of
from limes.designs._joint import JointDesign
from limes.designs._product import FeatureNumbers, ProductDesign, ProductFamily
from limes.exceptions import InputError, ModelError
from limes.models._calling.caller import names_of_answers, repetition_warnings
from limes.models._calling.counts import AnswerCount
from limes.models._calling.outputs import behind_method, positions_of_names
from limes.models._identity import few_rows

# Rows of the background whose answers are looked at
_PROBED = 8


@takes(SamplingKeywords)
class TabularExplainer(Described):
    r"""Explain predictions on a table by LIME's limit: exactly where the model can be read.

    The surrogate g = β₀ + Σ_j β_j z_j minimises E_w (f - g)². Here z_j = 1 if column j stays in the row's
    bin (or category); perturbed rows follow the background's law with independent columns, weighted towards
    the row:

        β_j = E_w[f | z_j = 1] - E_w[f | z_j = 0].

    Parameters
    ----------
    model
        A fitted estimator, a Pipeline, or a callable: X -> (n,) or (n, k). Behind a bound method,
        ``model.predict_proba``, the estimator itself is read.
    background
        Table or array (n, d), from which bins, frequencies and the laws inside bins are learnt. pandas,
        polars, pyarrow, numpy, lists. None with ``reference``, or ``law="covers"``. The model is called with
        tables of the same kind, names, categories and dtypes (integer columns become float64 where their
        perturbed values are not integers), and with columns in the order in which it was fitted on them, if
        it knows their names. Times, dates and durations are treated as numbers of days, periods and decimals
        as numbers; conditions show them in their original form, and slopes are per day or per period.
    reference
        One row of the table: contributions lead from the model's answer there to those at explained rows, as
        ``explainer.between`` has them. It is the law, in the place of ``law``, and has no bins, so that there
        are no coefficients. A category that only other rows have is admitted.
    output
        None: ``predict`` of regressors, ``predict_proba`` of classifiers, membership of clusterers (1 in a
        cluster, 0 outside). "margin", "probability", a class label or cluster, or a list of these.
    bins
        "quartile", "decile", "entropy" (needs ``target``), "auto" (chosen by :func:`limes.suggest_design`
        for rows of the background, with its calls of the model), a number of bins, a list of edge arrays
        with both ends (as ``numpy.histogram`` takes them) or of :class:`limes.designs.BinStatistics`, a
        mapping of columns to such (quartiles for the others; edges of times may be dates or their texts),
        or None: no bins, β_j is the slope in x_j itself, per unit of the column, under normal(mean, std)
        with smooth weights. At a row that lacks the value the feature is "x_j is missing"; the two are
        uncorrelated.
    target
        (n,) classes or numbers that "entropy" bins separate.
    law
        The law of perturbed rows. None: columns are independent; inside a bin contributions rest on the
        background's own values; coefficients, R² and effects rest on LIME's truncated normals. If the model
        is not read, columns of at most 31 distinct whole numbers have their own values for both: a function
        may take these for codes, and has no answer between two of them. A law that is named holds for both:
        with independent columns, inside a bin, "empirical" (the bin's own values), "truncnorm" or "uniform".
        "joint": the background's own rows, with their dependence, each weighted by the cells it changes;
        standard errors refer to the population they were drawn from. "covers": of a tree, forest or boosted
        trees, what ``shap.TreeExplainer(model)`` and ``pred_contribs`` of boosting libraries answer. At a
        split whose column is not known, both children count, by their numbers of training rows. It needs no
        background, and has contributions alone: of bins, coefficients, effects and a diagnosis it has none.
        Columns that depend on each other stand for each other, by the order of the splits. Of boosted
        classifiers name ``output="margin"``. Its options are ``output``, ``categorical`` and ``errors``.
    categorical
        Names or positions of columns to treat as categories; text, booleans and categoricals always are, and
        columns that an encoder of the model has, whatever their numbers are (see Notes). A name is that of
        the table, of whatever type, or its text. Name columns of codes that only a function knows: where it
        is asked about other values than a column's few, or whole ones, a row has a warning with their share.
    bandwidth
        ν > 0, or infinity; the default is 0.75 √d.
    weights
        "bins": exp(-#changed columns / (2ν²)), LIME's default. "euclidean": exp(-‖x - ξ‖² / (2ν²)), in
        standard deviations of each column; another category counts 1. Without bins weights are always smooth.
    hold
        Names or positions of columns that keep the row's value in all perturbed rows; their coefficients are
        0. Rows are then explained one by one. Not with ``law="joint"``.
    missing
        Codes that stand for missing values in columns of numbers, such as [-7, -8, -9]. A column's codes,
        which must lie beyond its values, are one separate cell, and no edge of a bin. The model gets the
        codes unchanged. Not with ``bins=None``.
    groups
        Names of groups and the columns of each, such as ``{"payment history": ["PAY_0", "PAY_2"]}``; the
        other columns stand alone. A group is one column, whose values are the combinations that the
        background's rows have: drawn whole, kept whole, in the row's cell if all its columns are. It has
        one coefficient, one contribution, one effect; ``contributions.within(name)`` shares the
        contribution among its columns. Dummies of one column belong in a group, and a row has a warning
        where they are not. Euclidean weights count another cell of a group as one unit. With a function,
        the coefficient of a group is unknown (an infinite error) where no row of the background is in the
        row's cell. Not with ``bins=None`` or ``"auto"``.
    ridge
        0, or the penalty of ``lime``'s own fit on 5000 rows (``lime`` uses 1).
    method, tolerance, max_calls, rng, batch_size, retry
        How a model that cannot be read is sampled: "exact", "sampled" or "auto"; the largest standard error
        of a coefficient, a number or "5%" of the largest coefficient; the most answers of the model that a
        row asks for, contributions included; the seed; how many rows at once; and when a failed batch is
        tried again. See :class:`limes._explainers.options.SamplingOptions`. With bins, rows share one pool
        (``pool_calls``, ``explanation.shared_calls``), so that a thousand rows cost no more than one; rows in
        rare cells or under a narrow bandwidth, and all rows without bins, are sampled each by itself.
    contributions
        When ``explanation.contributions`` are computed. "auto": exact ones when they are first read or
        shown; those that need calls of the model at once, with a progress bar.
        True: at once for all rows. False: only when they are read; no output shows them before. They have
        what coefficients leave of ``max_calls``, about half unless False; without ``max_calls`` and
        ``tolerance`` up to 2,800, or 800 for more than 64 columns. For more than 100 columns they are
        computed only when they are read, with up to 4,096 calls a row.
    threshold
        The number that decides between two outcomes, in the output's units; a row has a warning where
        surrogate and model lie on different sides of it. None is 0.5 for probabilities (of two classes the
        second's) and 0 for margins.
    control
        Readable model that reduces the sampler's variance (a control variate): "none", "additive", "tree",
        "kernel", "network" (effects of cells and a random layer, on the log odds of probabilities), "margin"
        (of models with a link, where the margin can be read), or "auto": the one that leaves the least
        variance on rows it has not seen. ``explanation.controls`` says which. With a pool it is fitted once
        per size of the pool: a network or the margin, and boosted trees if those leave much variance. At
        4,096 calls a network takes some 0.1 s, "additive" some 0.01 s. A row with its own calls fits all
        controls, which takes about a second. Of more than 128 columns such a row has no control, unless one
        is named. With a pool, beyond 512 effects and slopes (64 columns in quartiles) or half the number of
        answers, "additive" has slopes of all columns and effects of those that the answers show to matter,
        and "auto" fits neither networks nor trees.
    errors
        "raise": a cell that cannot be explained raises an error. "row": rows with such a cell are skipped;
        ``explanation.errors`` lists them with the reason, ``explanation.ids`` the rows that are explained.

    Raises
    ------
    InputError
        If the background or an option is not usable.
    ModelError
        If the model fails on background rows.
    NotReadableError
        If ``method="exact"`` and the model cannot be read.
    ReadMismatchError
        If ``method="exact"`` and the form that was read differs from the model on the background or on
        rows of its law; the message names the row. With "auto" such a model is sampled.

    Notes
    -----
    A model that is fitted again is read again, or sampled anew, at the next call: one that cannot be read is
    asked about eight rows of the background again in each call. Columns of numbers that the model takes for
    categories, by itself or by an encoder, are categories here too, read or not: encoders are the steps of
    pipelines and column transformers, and those among the attributes of other models, that have
    ``categories_`` or a mapping of each value.

    References
    ----------
    Garreau & von Luxburg, "Looking deeper into tabular LIME", 2022, Theorem 1; Ribeiro et al. 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import limes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = RandomForestRegressor(10, random_state=0).fit(X, y)
    >>> explanation = limes.TabularExplainer(model, X)(X.iloc[:2])
    >>> explanation.method, explanation.coefficients.values.shape
    ('exact', (2, 10))
    """

    # LIME itself draws numbers between whole ones
    _keeps_whole = True

    def __new__(cls, *arguments: Any, law: Any = None, **options: Any) -> TabularExplainer:  # noqa: ARG004
        """An explainer of another class under the law of covers, which has no rows to fit a surrogate to."""
        if law == "covers" and cls is TabularExplainer:
            # it is a subclass of this one, and imports it
            kind: type[TabularExplainer] = import_module("limes._explainers.covers").CoversExplainer
            return object.__new__(kind)
        return object.__new__(cls)

    @one_blas_thread()
    def __init__(
        self,
        model: Any,
        background: Any = None,
        *,
        reference: Any = None,
        output: Any = None,
        bins: Any = "quartile",
        target: ArrayLike | None = None,
        law: str | None = None,
        categorical: Any = None,
        bandwidth: float | None = None,
        weights: str = "bins",
        hold: Any = None,
        missing: Sequence[float] = (),
        groups: Mapping[str, Sequence[Any]] | None = None,
        ridge: float = 0.0,
        errors: str = "raise",
        **options: Unpack[SamplingKeywords],
    ) -> None:
        chosen = complete(TabularExplainer, options)
        automatic = isinstance(bins, str) and bins == "auto"
        if automatic and groups:
            raise InputError("bins='auto' compares designs of columns: with groups= pass bins='quartile'")
        passed, (model, output) = model, behind_method(model, output)
        is_alone = background is None
        table = Table.of_background(background, reference, law, categorical=categorical)
        self._background = table.for_model(model)
        self._probed = AnswerCount()  # what is asked beside rows that are explained, and their pool
        with AnswerCount().counting() as count:
            output = positions_of_names(
                model,
                output,
                lambda: names_of_answers(model, self._background.decode, self._background.matrix),
            )
        self._options = TabularOptions(
            output=output,
            bins="quartile" if automatic else bins,
            target=target,
            law=law,
            bandwidth=bandwidth,
            weights=weights,
            ridge=check_size("ridge", ridge, zero=True),
            sampling=SamplingOptions.of(chosen, (*CONTROLS, "margin")),
            hold=self._background.held(hold),
            missing=_codes(missing),
            by_predict=passed is not model and passed.__name__ == "predict",
            keeps_whole=self._keeps_whole,
            is_one_row=is_alone,
            groups=Groups.of(self._background, groups),
        )
        self._errors = check_choice("errors", errors, ("raise", "row"))
        self._explained = model
        self._is_reproducible = False
        self._named = count.rows  # what the names of outputs took
        self._model = TabularModel.fit(model, self._background, self._options, calls=self._named)
        # an encoder that ignores unknown categories takes every row for one without any
        if advice := advice_on_types(model, self._background):
            warnings.warn(advice, UserWarning, stacklevel=3)
        self._suggestion: DesignSuggestion | None = None
        self._reference: OtherRows | None = None
        if reference is not None:
            self._reference = OtherRows.of(self._model, reference, is_alone=is_alone)
        elif automatic:
            # the design that fits best at some rows of the background
            few = few_rows(self._background.matrix)[:: 1 if self.method == "exact" else 8]
            suggestion = suggest_design(self, self._background.decode(few))
            vars(self).update(vars(self._with_design(**suggestion.options)), _suggestion=suggestion)

    @property
    def suggestion(self) -> DesignSuggestion | None:
        """The design that ``bins="auto"`` chose, and the designs that it was compared with."""
        return self._suggestion

    def _facts(self) -> Mapping[str, Any]:
        bound = self._model.bound
        return {**self._model.provenance, "outputs": ", ".join(bound.outputs), "reason": bound.reason}

    @property
    def method(self) -> Method:
        """How rows will be explained: "exact" or "sampled"."""
        return self._model.bound.expectation.method

    @property
    def pool_calls(self) -> int:
        """Model calls that all explained rows share: the pool's, if there is one.

        Ten of them check what the model answers, and whether it is a function, by four inputs twice each, and
        eight in each call whether it was fitted again. Those about rows that were only looked at (``design``,
        ``features``) are among them.
        """
        bound = self._model.bound
        return bound.pool_calls + (self._probed.rows if bound.asks else 0)

    @property
    def model_warnings(self) -> tuple[str, ...]:
        """Warnings about the model that hold for every row: of other columns, or of varying answers."""
        remark = self._model.table.remark
        return (*filter(None, [remark]), *repetition_warnings(self._model.bound.spread))

    def fill_pool(self, *, progress: bool = True, workers: int = 1) -> None:
        """Fill the pool now, for copies of the explainer, in ``workers`` threads and with a ``progress`` bar.

        Raises
        ------
        ModelError
            If the model fails; finished answers are kept.
        """
        self._model.bound.fill_pool(progress_of(shown=progress), check_count("workers", workers))

    def _typical_row(self) -> Any:
        """Return a row of the background, as a frame of its kind."""
        return self._background.decode(self._background.matrix[:1])

    _has_rules = False

    @cached_property
    def _shown_outputs(self) -> list[int]:
        """Positions of the outputs that are shown: of two classes the second, positive one, else all."""
        if len(self._model.bound.outputs) == 1:
            return [0]
        # a few answers tell whether those of a function are probabilities
        bound = self._model.bound
        most = _PROBED if bound.budget.most is None else min(_PROBED, max(2, bound.budget.again))
        with self._probed.counting():
            return shown_of(bound.predict_all(self._background.matrix[:most]))

    @property
    def _wanted_contributions(self) -> str | bool:
        """The option ``contributions``: "auto", True or False."""
        return self._options.sampling.contributions

    @property
    def _has_quick_contributions(self) -> bool:
        """Whether rows have exact contributions within about two milliseconds: long tables show these."""
        return self._model.has_quick_contributions

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns and groups."""
        return self._model.table.names

    @property
    def _column_keys(self) -> Mapping[str, Any]:
        """The table's own names of the columns, by their texts."""
        return dict(zip(self._background.names, self._background.keys.names, strict=True))

    @one_blas_thread()
    def __call__(
        self, X: Any, *, ids: Any = None, progress: bool = True, workers: int = 1, **unknown: Never
    ) -> Explanation:
        """Explain one row or many.

        Parameters
        ----------
        X
            Rows: a table of any kind, with columns matched by name, or one as a list, Series or mapping.
        ids
            Names of the rows, (n,): by default the index of a pandas frame, else their positions.
        progress
            Show a progress bar when it takes more than a second or two.
        workers
            Rows that are sampled at once, each in its own thread. Exact explanations use all cores.

        Raises
        ------
        InputError
            If columns do not match, or a value is infinite, of a new category (unless the model is read and
            takes it), or missing where the background has none: says which row and column.
        ModelError
            If the model fails; its ``batch`` is the table it was given, its ``partial`` the explanation of
            the rows so far. Calls are kept, and the same call continues from them.
        Interrupted
            If the user stops it (Ctrl-C), with the same ``partial``; a KeyboardInterrupt.
        """
        if unknown:
            refuse_in_call(unknown, TabularExplainer)
        return self._answered(X, self._request, ids=ids, progress=progress, workers=workers)

    def contributions(
        self, X: Any, *, ids: Any = None, progress: bool = True, workers: int = 1, **unknown: Never
    ) -> Explanation:
        """Explain rows by their contributions alone; coefficients are computed when they are read.

        base + Σ_j φ_j = f(ξ): see `limes.Explanation.contributions`. Of a read model no surrogate is fitted.

        Parameters
        ----------
        X, ids, progress, workers
            As of a call of the explainer.

        Returns
        -------
        Explanation
            Its ``.contributions.values`` are computed in this call, whatever the option ``contributions``.

        Raises
        ------
        InputError, ModelError, Interrupted
            As of a call; an InputError if contributions have too few calls, or ``method="exact"`` none.

        Examples
        --------
        >>> import limes
        >>> from sklearn.linear_model import Ridge
        >>> X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
        >>> explainer = limes.TabularExplainer(Ridge(alpha=0).fit(X, [0, 2, 1, 3]), X)
        >>> account = explainer.contributions([[1.0, 1.0]]).contributions
        >>> (account.base_values + account.values.sum(axis=1)).round(9).tolist()
        [3.0]
        """
        if unknown:
            refuse_in_call(unknown, TabularExplainer, "contributions")
        return self._answered(X, ACCOUNT, ids=ids, progress=progress, workers=workers)

    def compiled(self) -> CompiledExplainer:
        """A function from one row, or a few, to contributions as plain arrays, for services.

        See `limes.CompiledExplainer`: one row of 300 boosted trees takes about half a millisecond. It is
        of the model as it is now.

        Examples
        --------
        >>> import limes
        >>> import numpy as np
        >>> from sklearn.linear_model import Ridge
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> explain = limes.TabularExplainer(Ridge(alpha=0).fit(X, [0, 2, 1, 3]), X).compiled()
        >>> explain([1.0, 1.0]).values.round(3).tolist()
        [[0.391, 0.781]]
        """
        self._needs_cells("compiled")
        model, _, _ = self._looked_at(self._background.decode(few_rows(self._background.matrix)))
        other = copy(self)
        # a row that is refused is an error, and not left out
        vars(other).update(_errors="raise")
        return CompiledExplainer(other, model)

    @property
    def _request(self) -> Request:
        """Return what a call asks for."""
        wanted = self._options.sampling.contributions
        if self._is_reproducible:
            return Request("read")
        if wanted == "auto" and self._model.bound.asks and self._options.sampling.max_calls is None:
            # a warning reports a budget of the user's that is too small
            return Request("shown" if self._model.can_afford_permutations else "read")
        return Request.of_option(wanted)

    def _answered(self, X: Any, request: Request, *, ids: Any, progress: bool, workers: int) -> Explanation:
        if self._reference is not None:
            return self._against(X, self._reference, ids=ids)
        if not request.coefficients and self._model.has_exact_contributions:
            return self._account(X, ids=ids)
        if not request.coefficients and self._model.can_ask_for_contributions_alone:
            explanation = self._unfitted(X, ids=ids)
        else:
            explanation = self._to_explanation(*self._fit(X, ids=ids, progress=progress, workers=workers))
        bar = progress_of(shown=progress)
        explanation = with_contributions(explanation, request, progress=bar, workers=workers)
        return explanation if request.coefficients else without_coefficients(explanation)

    def between(self, a: Any, b: Any, *, ids: Any = None) -> Explanation:
        r"""Explain why the model answers otherwise at rows ``a`` than at rows ``b``.

            f(a) - f(b) = Σ_j φ_j,   φ_j the Shapley values of v(S) = f(a on S, b elsewhere).

        Columns in which the two rows agree contribute 0. ``contributions.alone`` is what changing a column
        does to b, ``contributions.last`` what it did last, on the way to a.

        Parameters
        ----------
        a
            One row or many, as ``explainer(a)`` takes them.
        b
            The other row, or one for each row of ``a``.
        ids
            Names of the rows ``a``, as of a call of the explainer.

        Returns
        -------
        Explanation
            Of the rows ``a``, with ``contributions.base_values`` f(b), and no coefficients: one row is a law
            without bins. They are exact for models that were read, and for others if the combinations of the
            columns that differ are no more than their calls.

        Raises
        ------
        InputError, ModelError
            As a call of the explainer; an InputError if ``b`` has neither one row nor as many as ``a``.

        References
        ----------
        Sundararajan & Najmi 2020, "The many Shapley values for model explanation": baseline Shapley.

        Examples
        --------
        >>> import limes
        >>> import numpy as np
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> explainer = limes.TabularExplainer(lambda x: x[:, 0] * x[:, 1], X)
        >>> account = explainer.between([1.0, 1.0], [0.0, 0.0]).contributions
        >>> account.base_values.tolist(), account.values.tolist(), account.alone.tolist()
        ([0.0], [[0.5, 0.5]], [[0.0, 0.0]])
        """
        return self._against(a, OtherRows.of(self._model, b, argument="b"), ids=ids, argument="a")

    def _needs_cells(self, what: str) -> None:
        """Refuse what is about designs, where the law is one other row."""
        if self._reference is not None:
            raise InputError(
                f"there is no {what} with reference=: {NO_CELLS}; pass a background without reference="
            )

    @one_blas_thread()
    def _against(self, X: Any, other: OtherRows, *, ids: Any, argument: str = "") -> Explanation:
        """Contributions that lead from other rows to these, which are an ``argument`` of a call."""
        with naming(argument):
            model, encoded, predictions, again = self._counted(X)
        model, encoded, other = other.admitted(model, encoded, X, self._errors)
        names, errors = row_names(X, ids, encoded)
        fields = {"ids": names, "errors": errors, "explainer": self}
        return other.explain(model, encoded.matrix, predictions, again, **fields)

    @one_blas_thread()
    def _account(self, X: Any, *, ids: Any) -> Explanation:
        """Contributions of a model that was read: no surrogate is fitted."""
        model, encoded, predictions = self._current(X)
        rows, (names, errors) = model.rows(encoded.matrix), row_names(X, ids, encoded)
        none, is_joint = np.zeros(len(rows), dtype=np.int64), model.law is not model.family
        quiet = progress_of(shown=False)
        fitted = cache(partial(model.explain, rows, predictions, progress=quiet))
        make: Any = partial(model.fits, rows, predictions, fitted)
        fit = Fit.of(
            make,
            (*rows.x.shape, *predictions.shape[1:]),
            lambda: fitted().coefficients(none),
            is_read=True,
            make_warnings=cache(lambda: model.warnings_of(rows, predictions, fitted())),
        )
        try:
            outputs = np.arange(predictions.shape[1]) if predictions.ndim == 2 else 0
            bound, family = model.bound, (model.family if is_joint else model.account)
            computed = exact_account(bound.expectation, bound.form, family, rows.x, rows.cells)
            contributions = Contributions.of_rows(computed, outputs=outputs)
        except REFUSED as error:  # of some rows, which are walked to, or refused with their reason
            refusal: Any = error.with_traceback(None)
            fit = replace(
                fit,
                make=cache(lambda: replace(make(), refusal=refusal)),
                accuracy=self._options.sampling.sampling.accuracy,
            )
            contributions = fit.contributions()
        return frozen_explanation(
            contributions=contributions,
            predictions=predictions,
            feature_names=model.table.names,
            output_names=model.bound.outputs,
            conditions=model.conditions(rows),
            data=model.table.originals(rows.x),
            # of both readings, as a call for both says it
            method=model.bound.expectation.method,
            reason=model.bound.reason,
            shared_calls=none if is_joint else None,
            calls=none,
            row_warnings=model.row_warnings.about_rows(rows.x, rows.cells, predictions),
            provenance=model.provenance_of(None, predictions),
            ids=names,
            errors=errors,
            explainer=self,
            fit=fit,
        )

    @one_blas_thread()
    def _unfitted(self, X: Any, *, ids: Any) -> Explanation:
        """Rows of a model that is asked, without a surrogate, whose answers contributions need not."""
        model, encoded, predictions, again = self._counted(X)
        rows, (names, errors) = model.rows(encoded.matrix), row_names(X, ids, encoded)
        bound, sampling = model.bound, self._options.sampling

        def fitted() -> Fitted:
            if sampling.max_calls is not None:
                raise InputError(
                    f"max_calls={sampling.max_calls} is used up by contributions: explainer(rows) shares it "
                    "between contributions and coefficients"
                )
            return model.explain(rows, predictions, progress=progress_of(shown=False))

        surrogates, ones = cache(fitted), np.ones(len(rows), dtype=np.int64)
        return frozen_explanation(
            predictions=predictions,
            feature_names=model.table.names,
            output_names=bound.outputs,
            conditions=model.conditions(rows),
            data=model.table.originals(rows.x),
            method=bound.expectation.method,
            reason=bound.reason,
            calls=ones,  # the predictions
            shared_calls=bound.shared_calls(0 * ones) + again,
            row_warnings=model.row_warnings.about_rows(rows.x, rows.cells, predictions),
            provenance=model.provenance_of(None, predictions),
            ids=names,
            errors=errors,
            explainer=self,
            fit=Fit.of(
                partial(model.fits, rows, predictions, surrogates, has_surrogates=False),
                (*rows.x.shape, *predictions.shape[1:]),
                lambda: surrogates().coefficients(ones),
                accuracy=sampling.sampling.accuracy,
                make_warnings=cache(lambda: model.warnings_of(rows, predictions, surrogates())),
            ),
        )

    def _counted(self, X: Any) -> tuple[TabularModel, EncodedRows, Floats, int]:
        """The current model, rows, predictions, and how many others the model was asked about."""
        before = self._model.bound
        with AnswerCount().counting() as count:
            try:
                model, encoded, predictions = self._current(X)
            except ModelError:
                self._probed.add(count.rows)
                raise
        # beside the rows themselves, and what a new reading of the model counts
        read = 0 if model.bound is before else model.bound.checks.rows
        again = max(0, count.rows - len(encoded.matrix) - read)
        self._probed.add(again)
        return model, encoded, predictions, again

    @one_blas_thread()
    def _fit(
        self, X: Any, *, ids: Any = None, progress: bool = True, workers: int = 1
    ) -> tuple[TabularModel, Fitted, tuple[Any, ...], tuple[tuple[Any, str], ...], int]:
        """The model, the fitted rows, their names, those of others with their errors, and further calls."""
        model, encoded, predictions, again = self._counted(X)
        rows, (ids, errors) = model.rows(encoded.matrix), row_names(X, ids, encoded)
        workers = check_count("workers", workers)
        try:
            fitted = model.explain(rows, predictions, progress=progress_of(shown=progress), workers=workers)
        except (CutShort, RefusedRowsError) as stop:
            kept = tuple(ids[i] for i in stop.rows.tolist())
            refusal = stop if isinstance(stop, RefusedRowsError) else None
            if refusal and refusal.fitted is not None and self._errors == "row":
                skipped = ((ids[i], text) for i, text in sorted(refusal.reasons.items()))
                return model, refusal.fitted, kept, (*errors, *skipped), again
            some = None
            if stop.fitted is not None:
                some = self._to_explanation(model, stop.fitted, kept, errors, again)
            if refusal:
                raise refused(refusal, ids, some) from stop
            raise interrupted(stop.__cause__, some, len(rows)) from stop.__cause__
        return model, fitted, ids, errors, again

    def _to_explanation(
        self,
        model: TabularModel,
        fitted: Fitted,
        ids: tuple[Any, ...],
        errors: tuple[tuple[Any, str], ...],
        again: int,
    ) -> Explanation:
        rows, predictions = fitted.rows, fitted.predictions
        assert rows is not None  # noqa: S101 - of a table
        # of long tables the answers to rows' own draws would fill the memory
        kept = fitted if model.keeps_answers else fitted.without_answers()
        fits = partial(model.fits, rows, predictions, lambda: kept)
        is_exact = fitted.sampled is None
        reason = reason_of(fitted.refusals, len(rows)) or model.bound.reason
        asks = model.bound.asks and not fitted.refusals
        calls, shared = np.zeros((2, len(rows)), dtype=np.int64)
        if asks:
            # one is the prediction
            calls = fitted.moments.calls + (0 if is_exact else 1)
            shared = model.bound.shared_calls(fitted.moments.shared) + again
        coefficients = fitted.coefficients(calls)
        return frozen_explanation(
            coefficients=coefficients,
            calls=calls,
            shared_calls=None if is_exact else shared,
            predictions=predictions,
            feature_names=model.table.names,
            output_names=model.bound.outputs,
            conditions=model.conditions(rows),
            data=model.table.originals(rows.x),
            method="exact" if is_exact else "sampled",
            reason=reason,
            row_warnings=model.warnings_of(rows, predictions, fitted),
            provenance=model.provenance_of(fitted, predictions),
            ids=ids,
            errors=errors,
            explainer=self,
            fit=Fit.of(
                fits,
                fitted.surrogate.coef.shape,
                lambda: coefficients,
                is_read=is_exact and not reason,
                accuracy=self._options.sampling.sampling.accuracy,
                shows=self._options.sampling.contributions is not False,
            ),
        )

    def _current(self, X: Any) -> tuple[TabularModel, EncodedRows, Floats]:
        """The current model, read again after a new fit; the encoded rows; and the predictions there."""
        # threads may read a model twice, but each explains all of its rows from one reading
        present = self._model
        model, encoded = present.encoded(X, self._errors)
        answers = model.bound.answers(encoded.matrix)
        if answers is not None:
            return model, encoded, answers
        also = None
        if model is present:
            # the new model may take other columns for categories
            also = self._background.encode(model.table.decode(few_rows(encoded.matrix)))
        model = TabularModel.fit(self._explained, self._background, self._options, also, calls=self._named)
        self._model = model = model.reproducible() if self._is_reproducible else model
        model, encoded = model.encoded(X, self._errors)
        return model, encoded, model.bound.predict_all(encoded.matrix)

    @cached_property
    def reproducible(self) -> TabularExplainer:
        """The same explainer, with results that are the same to the last bit wherever a table is cut.

        Otherwise the order of summation depends on the number of rows, and so do the last bits.
        """
        other = copy(self)
        vars(other).update(_is_reproducible=True, _errors="raise", _model=self._model.reproducible())
        return other

    def _with_design(
        self,
        *,
        bins: Any,
        bandwidth: float | None = None,
        contributions: str | bool | None = None,
        is_trial: bool = False,
    ) -> TabularExplainer:
        """Return the same model's explainer with other `bins`, `bandwidth` and `contributions`, if given.

        With `is_trial` a form that agrees with the model is not compared with it again.
        """
        present, sampling = (
            self._options.bandwidth if bandwidth is None else bandwidth,
            self._options.sampling,
        )
        if contributions is not None:
            sampling = replace(sampling, contributions=contributions)
        options = replace(self._options, bins=bins, bandwidth=present, sampling=sampling)
        other = copy(self)
        bound = self._model.bound
        compared = None
        if is_trial and bound.form is not None and self._options.groups is None:
            compared = bound.read
        # a form that was compared is about the columns as they were read
        table = self._background if compared is None else self._model.table
        model = TabularModel.fit(self._explained, table, options, compared=compared, calls=self._named)
        vars(other).pop("reproducible", None)  # computed of this design
        model = model.reproducible() if self._is_reproducible else model
        vars(other).update(_options=options, _model=model, _suggestion=None)
        return other

    def _of_model(self, model: Any) -> TabularExplainer:
        """An explainer of another model, or that of another explainer, under this one's law and options."""
        output, by_predict = self._options.output, self._options.by_predict
        if isinstance(model, TabularExplainer):
            its = model._options  # noqa: SLF001 - its own class
            model, output, by_predict = model._explained, its.output, its.by_predict  # noqa: SLF001
        passed, (model, output) = model, behind_method(model, output)
        if passed is not model:
            by_predict = passed.__name__ == "predict"
        options = replace(self._options, output=output, by_predict=by_predict)
        other, table = copy(self), self._background.for_model(model)
        vars(other).pop("reproducible", None)  # computed of this model
        vars(other).pop("_shown_outputs", None)
        vars(other).update(
            _explained=model,
            _background=table,
            _options=options,
            _probed=AnswerCount(),
            _named=0,
            _suggestion=None,
            _model=TabularModel.fit(model, table, options),
        )
        return other

    @property
    def _design_options(self) -> dict[str, Any]:
        """The options ``bins`` and ``bandwidth``, with the number that the default stands for."""
        return {"bins": self._options.bins, "bandwidth": float(self._model.family.weights.bandwidth)}

    def _looked_at(self, X: Any) -> tuple[TabularModel, EncodedRows, Floats]:
        """The same for rows that are not explained: what is asked about them counts as shared."""
        with self._probed.counting():
            return self._current(X)

    def _model_at(self, X: Any) -> tuple[TabularModel, Floats]:
        """Return the present model, and rows ``X`` encoded, (n, d)."""
        model, encoded, _ = self._looked_at(X)
        return model, encoded.matrix

    @property
    def _has_codes(self) -> bool:
        """Whether columns have codes of missing values, which have no slopes."""
        return bool(self._options.missing)

    def design(self, row: Any) -> ProductDesign | JointDesign:
        """Return the weighted law w of perturbed rows at one row, with E_w h, Var_w h and its draws.

        Parameters
        ----------
        row
            As ``__call__`` takes it.

        Examples
        --------
        >>> import numpy as np
        >>> explainer = TabularExplainer(lambda X: X[:, 0], np.eye(4))
        >>> explainer.design(np.zeros(4)).inclusion.round(2)
        array([0.79, 0.79, 0.79, 0.79])
        """
        self._needs_cells("design")
        model, encoded, _ = self._looked_at(row)
        return model.law.at(encoded.matrix[0])

    @one_blas_thread()
    def features(self, X: Any) -> FeatureNumbers:
        """Return moments of the features of rows ``X``, (n, d) each: E_w h, Var_w h, h at the row."""
        self._needs_cells("features")
        model, encoded, _ = self._looked_at(X)
        rows = encoded.matrix
        if isinstance(model.law, ProductFamily) and model.law.by_cell:
            return model.law.features(model.law.cells(rows))
        return FeatureNumbers.stacked([model.law.at(row) for row in rows])

    def _diagnostic_context(
        self, explanation: Explanation, *, output: Ints, calls: int | None
    ) -> TableContext:
        """Return what ``limes.diagnose`` examines of an ``explanation``.

        ``output`` (n,) are positions, ``calls`` the budget a row.

        Raises
        ------
        InputError
            If features or outputs are not those of the explainer.
        """
        if explanation.feature_names != self.feature_names:
            raise InputError(
                "diagnose needs an explanation by this explainer with all its features, in their order: "
                "diagnose first, and pick features afterwards"
            )
        model, encoded = self._model.encoded(explanation.data, "raise")
        model.bound.check_same(encoded.matrix, explanation.predictions)
        table = model.table
        context = TableContext if isinstance(model.law, ProductFamily) else JointContext
        return context(
            **examined(explanation, output, model.bound.outputs),
            rows=encoded.matrix,
            predict=model.bound.predict,
            source=source_of(model.bound.expectation, lambda: model.effects_of_cells),
            budget=calls,
            family=model.family,
            background=table.matrix,
            numeric=table.numeric,
            texts=model.texts,
            units=model.units,
            other_law=model.other_law,
        )


def _codes(missing: Any) -> tuple[float, ...]:
    if isinstance(missing, str) or not hasattr(missing, "__iter__"):
        raise InputError(f"missing={missing!r}: pass a list of numbers, such as [-7, -8, -9]")
    codes = tuple(map(as_number, missing))
    if not all(map(math.isfinite, codes)):
        raise InputError(f"missing={missing!r}: codes are finite numbers; None and NaN are missing anyway")
    return codes
