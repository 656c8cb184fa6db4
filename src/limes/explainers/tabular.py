"""Explain rows of a table."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Floats, Ints
from limes.designs.columns import LAWS
from limes.designs.features import FeatureTable, stacked_features
from limes.designs.product import ProductDesign
from limes.diagnostics.context import TableContext
from limes.explainers.doubts import doubts
from limes.explainers.found import FittedRows, found
from limes.explainers.options import check_choice, check_count, check_size, refuse_unknown
from limes.explainers.progress import progress_of
from limes.explainers.sampling import CONTROL_NAMES, sampling_of
from limes.explainers.scenes import table_context
from limes.explainers.table import Table
from limes.explainers.tabular_model import TabularModel, TabularOptions
from limes.explainers.unfinished import cut_short
from limes.explainers.watch import few_rows
from limes.explanation import Explanation
from limes.models.calling.caller import Retry
from limes.pipeline import METHODS, Interrupted, Method

# Rows predicted at once, where predictions are all that is needed
_BATCH = 10_000


class TabularExplainer:
    r"""Explain predictions on a table: what LIME converges to, exactly where the model can be read.

    The surrogate is g = β₀ + Σ_j β_j z_j, where z_j says that column j stays in the row's bin (or
    category), and minimises E_w (f - g)² under the background's law, columns independent, weighted towards
    the row:

        β_j = E_w[f | z_j = 1] - E_w[f | z_j = 0].

    Parameters
    ----------
    model
        A fitted estimator, a Pipeline, or a callable: X -> (n,) or (n, k).
    background
        Table or array (n, d): bins, frequencies and the laws inside bins are learnt from it. pandas, polars,
        pyarrow, numpy, lists. The model is asked with tables of the same kind, names, categories and dtypes
        (whole-number columns become float64 where their perturbed values are not whole).
    output
        None: ``predict`` of regressors, ``predict_proba`` of classifiers. "margin", "probability", a class
        label, or a list of labels.
    bins
        "quartile", "decile", "entropy" (needs ``target``), a number of bins, a list of edge arrays with
        both ends (as ``numpy.histogram`` takes them) or of :class:`limes.designs.BinStatistics`, which are
        not learnt from the background, or None: no bins, β_j is the slope in x_j itself, per unit of the
        column, under normal(mean, std) with smooth weights.
    target
        (n,) what "entropy" bins are to separate.
    law
        Inside a bin: "truncnorm" (LIME's), "uniform", or "empirical" (the bin's own background values).
    categorical
        Names or positions of columns to be taken as categories; text, booleans and categoricals always are.
    bandwidth
        ν > 0; 0.75 √d if not given, infinity allowed.
    weights
        "bins": exp(-#changed columns / (2ν²)), LIME's default. "euclidean": exp(-‖x - ξ‖² / (2ν²)), in
        standard deviations of each column; another category counts 1. Without bins weights are always smooth.
    ridge
        0, or the penalty of ``lime``'s own fit on 5000 rows (``lime`` uses 1).
    method
        "exact" (an error where the model cannot be read), "sampled", or "auto".
    tolerance
        Sampling stops when no coefficient's standard error is larger: a number in the output's units, or a
        share of the largest coefficient, "5%". None spends the budget.
    max_calls
        Rows that the model may be asked for, per explained row.
    control
        Readable model that takes variance away from the sampler: "none", "additive", "tree", "kernel",
        "margin" (of models with a link, where the margin can be read), or "auto", which takes the one that
        leaves least of the variance of rows it has not seen. ``explanation.controls`` says which. "auto"
        takes about a second a row of 4096 calls, beside the model's own time; "additive" a tenth of it.
    rng
        Seed of the sampler. A row's result depends on seed and row only; None is a fixed seed.
    batch_size
        Rows handed to the model at once, at most.
    retry
        (error, attempt) -> seconds to wait before a failed batch is tried again, or None to give up; attempts
        count from 1. None never tries again.

    Raises
    ------
    InputError
        If the background or an option is not usable.
    ModelError
        If the model fails on background rows.
    NotReadableError
        If ``method="exact"`` and the model cannot be read.
    ReadMismatchError
        If ``method="exact"`` and what was read off the model does not answer what the model answers, on the
        background or on rows of its law: says where. With "auto" such a model is sampled, and the reason
        says where.

    Notes
    -----
    A model that is fitted again is read again at the next call. Columns of numbers that the model takes for
    categories (by an encoder, or by itself) are categories here too.

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
    >>> explanation.method, explanation.values.shape
    ('exact', (2, 10))
    """

    def __init__(
        self,
        model: Any,
        background: Any,
        *,
        output: Any = None,
        bins: Any = "quartile",
        target: ArrayLike | None = None,
        law: str = "truncnorm",
        categorical: Any = None,
        bandwidth: float | None = None,
        weights: str = "bins",
        ridge: float = 0.0,
        method: str = "auto",
        tolerance: float | None = None,
        max_calls: int = 4096,
        control: str = "auto",
        rng: int | np.random.Generator | np.random.SeedSequence | None = None,
        batch_size: int = 4096,
        retry: Retry | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, TabularExplainer)
        check_choice("method", method, METHODS)
        check_choice("law", law, tuple(LAWS))
        self._options = TabularOptions(
            output=output,
            bins=bins,
            target=target,
            law=law,
            bandwidth=bandwidth,
            weights=weights,
            ridge=check_size("ridge", ridge, zero=True),
            method=method,
            control=check_choice("control", control, CONTROL_NAMES),
            sampling=sampling_of(
                max_calls=max_calls, tolerance=tolerance, rng=rng, batch_size=batch_size, retry=retry
            ),
        )
        self._explained = model
        self._background = Table.fit(background, categorical=categorical)
        self._arrange: Callable[[TabularModel], TabularModel] = _as_it_is
        self._model = TabularModel.of(model, self._background, self._options)

    @property
    def method(self) -> Method:
        """How rows will be explained: "exact" or "sampled"."""
        return self._model.pipeline.method

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._background.names

    def __call__(self, X: Any, *, progress: bool = True, workers: int = 1) -> Explanation:
        """Explain one row or many.

        Parameters
        ----------
        X
            Rows of the background's columns: a table of any kind, one row as a list, Series or mapping.
            Columns of a dataframe are matched by name.
        progress
            Show a progress bar when it takes more than a second or two.
        workers
            Rows that are sampled at the same time, each in its own thread: for models that wait for
            something, or release the interpreter. Exact explanations always use all cores.

        Raises
        ------
        InputError
            If columns do not match, or a value is infinite, of an unseen category, or missing where the
            background has none: says which row and column.
        ModelError
            If the model fails. Its ``batch`` is the table it was given, its ``partial`` the explanation of
            the rows that were done; calls made so far are kept, and the same call goes on from them.
        Interrupted
            If the user stops it (Ctrl-C), with the same ``partial``; a KeyboardInterrupt.
        """
        return self.told(self.fitted(X, progress=progress, workers=workers))

    def fitted(self, X: Any, *, progress: bool = True, workers: int = 1) -> FittedRows:
        """Rows' numbers alone, of which `told` makes the explanation; parameters and errors of a call."""
        model, rows = self._current(X)
        starts = range(0, len(rows), _BATCH)
        predictions = np.concatenate([model.subject.predict(rows[i : i + _BATCH]) for i in starts])
        cells = model.family.cells(rows)
        try:
            fitted = model.pipeline.explain(
                rows,
                cells,
                predictions,
                progress=progress_of(shown=progress),
                workers=check_count("workers", workers),
            )
        except Interrupted as stop:
            done = None
            if stop.fitted is not None:
                at = stop.rows
                done = self.told(FittedRows(model, rows[at], cells[at], predictions[at], stop.fitted))
            raise cut_short(stop.__cause__, done, len(rows)) from stop.__cause__
        return FittedRows(model, rows, cells, predictions, fitted)

    def told(self, done: FittedRows) -> Explanation:
        """Make the explanation of rows that were fitted: with conditions, warnings and provenance."""
        model, rows, cells, predictions, fitted = done
        doubtful = doubts(
            fitted,
            predictions,
            model.table.names,
            model.subject.outputs,
            max_calls=self._options.sampling.max_calls,
        )
        return Explanation(
            **found(fitted),
            predictions=predictions,
            feature_names=model.table.names,
            output_names=model.subject.outputs,
            conditions=model.conditions(cells),
            data=model.table.originals(rows),
            method=model.pipeline.method,
            reason=model.subject.reason,
            row_warnings=model.cautions.of_rows(rows, cells, fitted, predictions, doubtful),
            provenance=model.provenance,
            explainer=self,
        )

    def _current(self, X: Any) -> tuple[TabularModel, Floats]:
        """The model as it is now, read again if it was fitted again, and the rows to be explained.

        Threads may read a model twice, but each explains all of its rows from one reading.
        """
        model = self._model
        rows = model.table.encode(X)
        if model.subject.watch.unchanged(rows):
            return model, rows
        again = TabularModel.of(self._explained, self._background, self._options, few_rows(rows))
        self._model = model = self._arrange(again)
        return model, model.table.encode(X)

    @cached_property
    def reproducible(self) -> TabularExplainer:
        """The same explainer, with results that are the same to the last bit however a table is cut.

        Else a few rows of a forest are added up in another order than many, and a black box is asked for the
        predictions of many rows at once, which is quicker. Its explanations carry no warnings.
        """
        other = copy(self)
        vars(other).update(_arrange=TabularModel.reproducible, _model=self._model.reproducible())
        return other

    def design(self, row: Any) -> ProductDesign:
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
        model, rows = self._current(row)
        return model.family.at(rows[0])

    def features(self, X: Any) -> FeatureTable:
        """Return what rows' designs say of the features alone, (n, d) each: E_w h, Var_w h, h at the row."""
        model, rows = self._current(X)
        if model.family.by_cell:
            return model.family.features(model.family.cells(rows))
        return stacked_features([model.family.at(row) for row in rows])

    def diagnostic_context(
        self, explanation: Explanation, *, output: Ints, calls: int | None
    ) -> TableContext:
        """What ``limes.diagnose`` and ``limes.suggest_bandwidth`` ask of explained rows."""
        model = self._model
        return table_context(
            explanation,
            model.table,
            model.family,
            model.subject,
            texts=model.texts,
            units=model.units,
            output=output,
            calls=calls,
        )


def _as_it_is(model: TabularModel) -> TabularModel:
    return model
