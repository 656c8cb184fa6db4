r"""``KernelExplainer``, ``PermutationExplainer``, ``ExactExplainer``, ``SamplingExplainer``: of functions.

The game is v(S) = link(Σ_b w_b f(x_S, b_-S)) over the background's rows. All coalitions are asked about where
these are few; contributions to a fitted estimator that can be read are exact without that; else sets of
columns are sampled, with standard errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from numbers import Real
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._explainers.tabular import TabularExplainer
from limes.compat.shap._base import (
    Account,
    ExplainedRows,
    Explainer,
    background_of,
    link_of,
)
from limes.exceptions import InputError, LimesError
from limes.models._calling.outputs import behind_method

# Coalitions up to which all of them are asked about, whatever a caller says
_ALWAYS = 1 << 10
# Cells of the tables of one call of the function
_CELLS = 1 << 20
# Answers that a row may ask for where sets of columns are sampled: shap's number of sets, times this
_ANSWERS_A_SET = 8
# Difference of an estimator's method and of what was read of it, as a share of the largest answer
_ALIKE = 1e-5


class FunctionExplainer(Explainer):
    """Contributions of columns to what a function of a table answers: see its subclasses."""

    _takes_arrays = False  # whether the function is asked about arrays where the background is a frame
    _sets = 500  # coalitions that a row may cost, unless the caller says how many

    def __init__(
        self,
        model: Any,
        masker: Any = None,
        link: Any = None,
        feature_names: Any = None,
        linearize_link: bool = True,  # noqa: ARG002
        seed: int | None = None,
        **_options: Any,
    ) -> None:
        unknown = sorted(_options.keys() - {"algorithm", "output_names", "data", "max_evals", "keep_index"})
        if unknown:
            raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {unknown[0]!r}")
        if not callable(model):
            raise TypeError(
                "Provided model function fails when applied to the provided data set: "
                f"{type(model).__name__} is not callable; pass one of its methods, such as model.predict"
            )
        masker = _options.get("data") if masker is None else masker
        self.model, self.masker, self.link = model, masker, link
        self.feature_names, self.output_names = feature_names, _options.get("output_names")
        self._link, self._seed = link_of(link), seed
        self._evals = _options.get("max_evals")
        self._background = background = background_of(masker)
        self._is_method = behind_method(model, None)[0] is not model
        rows = background.rows
        if self.feature_names is None and hasattr(rows, "columns"):
            self.feature_names = [*rows.columns]
        if hasattr(rows, "columns") and self._takes_arrays and not self._is_method:
            rows = rows.to_numpy()
        self.data = rows
        n = len(rows)
        self._weights = np.full(n, 1.0 / n) if background.weights is None else background.weights
        self._summary = background._replace(rows=rows)
        answers = self._answers(rows)
        self._outputs = answers.shape[1:]
        base = self._weights @ answers.reshape(n, -1)
        base = base if self._link is None else self._link(base)
        self.expected_value = base.reshape(self._outputs) if self._outputs else base[0]
        self._of_estimator = self._read() if self._is_method and self._link is None else None

    def _answers(self, table: Any) -> Floats:
        answers = self.model(table)
        return np.asarray(answers.to_numpy() if hasattr(answers, "to_numpy") else answers, dtype=np.float64)

    def _read(self) -> TabularExplainer | None:
        """The explainer of an estimator whose method this is; None where it has no exact contributions."""
        try:
            explainer = TabularExplainer(self.model, self._summary.repeated, law="joint", bandwidth=np.inf)
        except LimesError:  # the function itself is asked
            return None
        return explainer if explainer._model.has_exact_contributions else None  # noqa: SLF001

    def _account(self, rows: ExplainedRows, evals: Any = None, **_: Any) -> Account:
        table = rows.table
        if hasattr(table, "columns") and not hasattr(self.data, "iloc"):
            table = table.to_numpy()
        elif hasattr(self.data, "iloc") and not hasattr(table, "columns"):
            table = type(self.data)(np.asarray(table), columns=self.data.columns).astype(
                self.data.dtypes.to_dict()
            )
        if table.shape[1] != self.data.shape[1]:
            raise InputError(f"X has {table.shape[1]} columns, the background {self.data.shape[1]}")
        answers = self._answers(table)
        read = self._by_reading(table, answers)
        if read is not None:
            return read
        parts = [self._of_row(table, i, answers[i], evals) for i in range(len(table))]
        values, errors = (np.stack(each) for each in zip(*parts, strict=True))
        base = np.repeat(np.asarray(self.expected_value)[None], len(table), axis=0)
        return Account(values, base, errors if errors.any() else None)

    def _by_reading(self, table: Any, answers: Floats) -> Account | None:
        if self._of_estimator is None:
            return None
        explanation = self._of_estimator.contributions(table)
        if explanation.predictions.shape != answers.shape:
            return None  # another method than the one that is read
        if np.abs(explanation.predictions - answers).max() > _ALIKE * np.abs(answers).max(initial=1e-300):
            return None
        return Account.of(explanation.contributions)

    def _of_row(self, table: Any, i: int, answer: Floats, evals: Any) -> tuple[Floats, Floats]:
        """Contributions (d, ...) at one row, and their standard errors."""
        varying = np.flatnonzero(self._differ(table, i))
        sets = self._most_sets(table.shape[1], evals)
        if 2.0**varying.size <= max(sets, _ALWAYS):
            values = np.zeros((table.shape[1], *self._outputs))
            values[varying] = self._enumerated(table, i, varying)
            return values, np.zeros_like(values)
        if self._link is not None:
            most = int(np.log2(max(sets, _ALWAYS)))
            raise InputError(
                f"link={self.link!r} is explained where at most {most} columns differ from the background, "
                f"and {varying.size} do: explain the margin itself, or pass more samples"
            )
        return self._sampled(table, i, answer, sets)

    def _most_sets(self, columns: int, evals: Any) -> int:
        """Return how many coalitions a row may cost."""
        chosen = self._evals if evals in (None, "auto") else evals
        if chosen in (None, "auto"):
            return self._sets + 2 * columns
        most = float(chosen) if isinstance(chosen, Real) else np.nan
        if not 1 <= most < np.inf:
            raise InputError(
                f"{chosen!r} is no number of coalitions: pass a whole number of 1 or more, or 'auto'"
            )
        return int(most)

    def _differ(self, table: Any, i: int) -> Bools:
        if hasattr(self.data, "iloc"):
            pairs = [(self.data.iloc[:, j], table.iloc[i, j]) for j in range(table.shape[1])]
            return np.array([not bool(((c == v) | (c.isna() & (v != v))).all()) for c, v in pairs])
        background, row = self.data, table[i]
        return np.asarray(~np.all((background == row) | ((background != background) & (row != row)), axis=0))

    def _enumerated(self, table: Any, i: int, varying: Ints) -> Floats:
        """Shapley values of the columns that vary, from the answers to all coalitions of them."""
        m = varying.size
        if not m:
            return np.zeros((0, *self._outputs))
        kept = (np.arange(1 << m)[:, None] >> np.arange(m)) & 1
        game = np.concatenate([*self._means(table, i, varying, kept.astype(np.bool_))])
        if self._link is not None:
            game = self._link(game)
        sizes = kept.sum(axis=1)
        weights = np.array([1.0 / (m * comb(m - 1, s)) for s in range(m)])
        values = []
        for j in range(m):
            without = np.flatnonzero(kept[:, j] == 0)
            values.append(weights[sizes[without]] @ (game[without | (1 << j)] - game[without]))
        return np.array(values).reshape(m, *self._outputs)

    def _means(self, table: Any, i: int, varying: Ints, kept: Bools) -> Iterator[Floats]:
        """The function's mean over the background at coalitions (c, m), some at a time: (c, k) each."""
        n, d = self.data.shape
        step = max(1, _CELLS // (n * d))
        for start in range(0, len(kept), step):
            some = kept[start : start + step]
            answers = self._answers(self._mixed(table, i, varying, some))
            yield np.einsum("n,cnk->ck", self._weights, answers.reshape(len(some), n, -1))

    def _mixed(self, table: Any, i: int, varying: Ints, kept: Bools) -> Any:
        """The background's rows with the row's values in the kept columns, one coalition after the other."""
        n, places = len(self.data), np.tile(np.arange(len(self.data)), len(kept))
        if not hasattr(self.data, "iloc"):
            mixed = self.data[places]
            for a, j in enumerate(varying):
                mixed[np.repeat(kept[:, a], n), j] = table[i, j]
            return mixed
        mixed = self.data.iloc[places].reset_index(drop=True)
        for a, j in enumerate(varying):
            column = mixed.iloc[:, j].where(~np.repeat(kept[:, a], n), table.iloc[i, j])
            mixed.isetitem(j, column)
        return mixed

    def _sampled(self, table: Any, i: int, answer: Floats, sets: int) -> tuple[Floats, Floats]:
        explainer = self._sampler(sets)
        one = table.iloc[i : i + 1] if hasattr(table, "iloc") else table[i : i + 1]
        account = explainer.contributions(one, progress=False).contributions
        values, errors = account.values[0].copy(), account.standard_errors[0].copy()
        # the base is known: what the sample missed of it is shared by the columns, by their variances
        missed = answer - self.expected_value - values.sum(axis=0)
        variances = errors**2
        total = variances.sum(axis=0)
        shares = np.divide(variances, total, out=np.full(variances.shape, 1 / len(values)), where=total > 0)
        return values + shares * missed, errors

    def _sampler(self, sets: int) -> TabularExplainer:
        return TabularExplainer(
            self.model,
            self._summary.repeated,
            law="joint",
            bandwidth=np.inf,
            contributions=True,
            max_calls=max(_ANSWERS_A_SET * sets, 2 * self.data.shape[1]),
            rng=self._seed,
        )


class KernelExplainer(FunctionExplainer):
    """Contributions of columns to any function.

    Parameters
    ----------
    model
        A function of a table, (n,) or (n, k) numbers, such as ``model.predict_proba``. It is asked about
        arrays, as by shap, unless it is a method of a fitted estimator.
    data
        Background rows, all of which count: a table, or ``shap.kmeans(table, k)`` with its weights.
    feature_names
        Names for the results.
    link : "identity" or "logit"
        Contributions add up to the link of the answer.

    Attributes
    ----------
    expected_value : number or (k,)
        The link of the function's mean over the background.

    Raises
    ------
    TypeError
        If the model is not callable.
    InputError
        If an option is not known, or the link is another one and too many columns vary.

    Examples
    --------
    >>> import numpy as np
    >>> from limes.compat import shap
    >>> explainer = shap.KernelExplainer(lambda x: x[:, 0] * x[:, 1], np.zeros((1, 2)))
    >>> explainer.shap_values(np.array([[2.0, 3.0]])).tolist()
    [[3.0, 3.0]]
    """

    _takes_arrays, _sets = True, 2048

    def __init__(
        self, model: Any, data: Any = None, feature_names: Any = None, link: Any = "identity", **_options: Any
    ) -> None:
        super().__init__(model, data, link, feature_names, **_options)

    def shap_values(
        self,
        X: Any,
        nsamples: Any = "auto",
        l1_reg: Any = "num_features(10)",  # noqa: ARG002 - all columns have their values
        silent: bool = False,  # noqa: ARG002
        gc_collect: bool = False,  # noqa: ARG002
    ) -> Floats:
        """Contributions (n, d) of one output, (n, d, k) of several; without the first axis of one row ``X``.

        ``nsamples`` coalitions are asked about at most; all of them, if there are no more. ``l1_reg`` is
        ignored: no column is left out. So are ``silent`` and ``gc_collect``.
        """
        return self._shap_values(X, evals=nsamples)

    def __call__(self, X: Any, l1_reg: Any = None, silent: bool = False, nsamples: Any = "auto") -> Any:  # noqa: ARG002
        """Return shap's Explanation of rows ``X``, from ``nsamples`` coalitions at most.

        ``l1_reg`` and ``silent`` are ignored.
        """
        return self._explanation(X, evals=nsamples)


class SamplingExplainer(KernelExplainer):
    """The same, under shap's name for samples of columns: see `KernelExplainer`.

    Parameters
    ----------
    model, data, feature_names, link
        As of `KernelExplainer`.

    Examples
    --------
    >>> import numpy as np
    >>> from limes.compat import shap
    >>> explainer = shap.SamplingExplainer(lambda x: x[:, 0] * x[:, 1], np.zeros((1, 2)))
    >>> explainer(np.array([[2.0, 3.0]])).values.tolist()
    [[3.0, 3.0]]
    """

    def __call__(self, X: Any, y: Any = None, nsamples: Any = 2000) -> Any:  # type: ignore[override]  # noqa: ARG002
        """Return shap's Explanation of rows ``X``, from ``nsamples`` coalitions; ``y`` is ignored."""
        return self._explanation(X, evals=nsamples)


class PermutationExplainer(FunctionExplainer):
    """Contributions of columns to any function: see `KernelExplainer`.

    The function is asked about tables of the background's kind, and about ``max_evals`` coalitions a row at
    most, or 1,024.

    Parameters
    ----------
    model
        A function of a table, (n,) or (n, k) numbers.
    masker
        Background rows, all of which count: a table, a masker or a summary of one.
    link, feature_names, linearize_link, seed
        As of `KernelExplainer`; the third changes nothing, and the last is the seed of samples.

    Examples
    --------
    >>> import numpy as np
    >>> from limes.compat import shap
    >>> explainer = shap.PermutationExplainer(lambda x: x[:, 0] * x[:, 1], np.zeros((1, 2)))
    >>> explainer(np.array([[2.0, 3.0]])).values.tolist()
    [[3.0, 3.0]]
    """

    def __call__(
        self,
        X: Any,
        max_evals: Any = None,
        main_effects: bool = False,
        error_bounds: bool = False,  # noqa: ARG002 - errors are there, where values are sampled
        batch_size: Any = "auto",  # noqa: ARG002
        outputs: Any = None,
        silent: bool = False,  # noqa: ARG002
    ) -> Any:
        """Return shap's Explanation of rows ``X``, with ``error_std`` where the values are sampled.

        ``max_evals`` coalitions are asked about at most. ``error_bounds``, ``batch_size`` and ``silent`` are
        ignored; ``main_effects`` and ``outputs`` are refused.
        """
        if main_effects or outputs is not None:
            raise InputError("main_effects= and outputs= are not explained here: pick outputs of the result")
        return self._explanation(X, evals=max_evals)

    def shap_values(
        self,
        X: Any,
        npermutations: int = 10,
        main_effects: bool = False,
        error_bounds: bool = False,  # noqa: ARG002
        batch_evals: bool = True,  # noqa: ARG002
        silent: bool = False,  # noqa: ARG002
    ) -> Floats:
        """Contributions (n, d) or (n, d, k), for what ``npermutations`` orders, there and back, cost.

        Of rows ``X``. ``error_bounds``, ``batch_evals`` and ``silent`` are ignored; ``main_effects`` are
        refused.
        """
        if main_effects:
            raise InputError("main_effects= are not explained here")
        return self._shap_values(X, evals=npermutations * (2 * self.data.shape[1] + 1))


class ExactExplainer(FunctionExplainer):
    """Contributions of columns to any function, from all coalitions: see `KernelExplainer`.

    Parameters
    ----------
    model
        A function of a table, (n,) or (n, k) numbers.
    masker
        Background rows, all of which count: a table, a masker or a summary of one.
    link, feature_names, linearize_link, seed
        As of `KernelExplainer`; the third changes nothing, and the last is the seed of samples.

    Examples
    --------
    >>> import numpy as np
    >>> from limes.compat import shap
    >>> explainer = shap.ExactExplainer(lambda x: x[:, 0] * x[:, 1], np.zeros((1, 2)))
    >>> explainer(np.array([[2.0, 3.0]])).values.tolist()
    [[3.0, 3.0]]
    """

    _sets = 100_000

    def __call__(
        self,
        X: Any,
        max_evals: Any = None,
        main_effects: bool = False,
        error_bounds: bool = False,  # noqa: ARG002
        batch_size: Any = "auto",  # noqa: ARG002
        interactions: Any = 1,
        silent: bool = False,  # noqa: ARG002
    ) -> Any:
        """Return shap's Explanation of rows ``X``, from ``max_evals`` coalitions at most.

        ``error_bounds``, ``batch_size`` and ``silent`` are ignored; ``main_effects`` and ``interactions`` are
        refused.
        """
        if main_effects or interactions not in (1, False):
            raise InputError("main_effects= and interactions= are of trees here: use TreeExplainer")
        return self._explanation(X, evals=max_evals)
