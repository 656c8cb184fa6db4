"""``TreeExplainer``: by the covers of the trees without data, against background rows with data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._explainers.tabular import TabularExplainer
from limes._explanation.attribution import Contributions
from limes._shapley.covers import Covers
from limes.compat.shap._base import (
    Account,
    ExplainedRows,
    Explainer,
    background_of,
    is_of_trees,
    peer_error,
    raw_form,
    raw_output,
)
from limes.exceptions import InputError
from limes.models import path_length
from limes.models._identity import qualified_name

_PERTURBATIONS = ("auto", "interventional", "tree_path_dependent")
_UNSET: Any = object()


class TreeExplainer(Explainer):
    """Contributions of the columns to what a tree, a forest or boosted trees predict, exactly.

    Without ``data`` the columns that are not known follow the trees' own counts of training rows,
    ``law="covers"`` of :class:`limes.TabularExplainer`. With ``data`` they are taken from its rows, all of
    them: ``law="joint"`` with an infinite bandwidth.

    Parameters
    ----------
    model
        A tree, forest or boosted trees of scikit-learn, XGBoost, LightGBM or CatBoost, or a Pipeline of one.
    data
        Background rows (m, d): a table, a masker or a summary of one.
    model_output
        "raw": the margin of boosted classifiers, else what the model predicts, as shap has it;
        "probability", with ``data`` alone; or the name of a method, "predict" or "predict_proba".
    feature_perturbation
        "auto", "interventional" (with ``data``) or "tree_path_dependent".
    feature_names
        Names for the results.
    approximate, link, linearize_link
        Are ignored, as shap does.

    Attributes
    ----------
    expected_value : number, (1,) or (k,)
        The base, of shap's shape.

    Raises
    ------
    InputError
        If the model is no sum of trees or an option is not known; the error is shap's, too, where that is
        installed.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from limes.compat import shap
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RandomForestRegressor(5, random_state=0).fit(X, y)
    >>> explainer = shap.TreeExplainer(model)
    >>> total = explainer.expected_value + explainer.shap_values(X[:3]).sum(axis=1)
    >>> bool(abs(total - model.predict(X[:3])).max() < 1e-9)
    True
    """

    def __init__(
        self,
        model: Any,
        data: Any = None,
        model_output: str = "raw",
        feature_perturbation: str = "auto",
        feature_names: Any = None,
        approximate: Any = _UNSET,  # noqa: ARG002 - shap ignores it, too
        link: Any = None,
        linearize_link: Any = None,  # noqa: ARG002
        **_options: Any,
    ) -> None:
        _check_options(_options, {"masker", "algorithm", "output_names", "seed"})
        data = _options.get("masker") if data is None else data
        self.output_names = _options.get("output_names")
        if feature_perturbation not in _PERTURBATIONS:
            raise peer_error(
                "InvalidFeaturePerturbationError",
                f"feature_perturbation must be one of {_PERTURBATIONS}, got {feature_perturbation!r}",
            )
        if feature_perturbation == "interventional" and data is None:
            warnings.warn(
                "feature_perturbation='interventional' without background data is answered by the trees' own "
                "counts of training rows, 'tree_path_dependent': pass data=",
                FutureWarning,
                stacklevel=2,
            )
        if feature_perturbation == "tree_path_dependent" and data is not None:
            warnings.warn(
                "data= is ignored with feature_perturbation='tree_path_dependent': the trees' own counts of "
                "training rows are used, where shap counts the rows of data again",
                UserWarning,
                stacklevel=2,
            )
        self.by_covers = data is None or feature_perturbation == "tree_path_dependent"
        self.feature_perturbation = "tree_path_dependent" if self.by_covers else "interventional"
        self.model, self.masker, self.link, self.model_output = model, data, link, model_output
        if qualified_name(type(model)) == "sklearn.IsolationForest":
            model = path_length(model)
        if not is_of_trees(model):
            raise peer_error(
                "InvalidModelError", f"Model type not yet supported by TreeExplainer: {type(model)}"
            )
        self.feature_names = feature_names
        output = self._output_of(model, model_output)
        self._base: Floats | None = None
        if self.by_covers:
            self.data = None
            self._explainer = TabularExplainer(model, law="covers", output=output)
            form = raw_form(model)
            if form is not None:
                self._base = Covers(form).base
            return
        background = background_of(data)
        self.data = background.rows
        self._explainer = TabularExplainer(
            model, background.repeated, law="joint", bandwidth=np.inf, output=output
        )
        self._account_of(self._explainer.contributions(background.repeated[:2]).contributions)

    def _output_of(self, model: Any, model_output: str) -> Any:
        if model_output == "raw":
            return raw_output(model)
        if model_output == "log_loss":
            raise InputError(
                "model_output='log_loss' is not explained here: explain model_output='probability', or pass "
                "the loss as a function to KernelExplainer"
            )
        if self.by_covers:
            raise ValueError(
                'Only model_output="raw" is supported for feature_perturbation="tree_path_dependent": pass '
                "data=, against which probabilities are explained"
            )
        if model_output in ("probability", "predict_proba"):
            return "probability" if hasattr(model, "predict_proba") else None
        if model_output == "predict" and not hasattr(model, "predict_proba"):
            return None
        raise InputError(
            f"model_output={model_output!r} is not known; use 'raw', 'probability' or the name of a method"
        )

    @property
    def expected_value(self) -> Any:
        """The base: a number, an array (k,) of several outputs, (1,) of scikit-learn's trees by covers."""
        if self._base is None:
            raise AttributeError(
                "expected_value is known once rows were explained: the model's categories are read from them"
            )
        if self._base.size > 1:
            return self._base.copy()
        of_sklearn = type(self.model).__module__.startswith("sklearn.")
        return self._base.copy() if self.by_covers and of_sklearn else self._base[0]

    def _account(self, rows: ExplainedRows, **_: Any) -> Account:
        return self._account_of(self._explainer.contributions(rows.table).contributions)

    def _account_of(self, contributions: Contributions) -> Account:
        """The account that shap has of these, whose base is that of all rows."""
        account = Account.of(contributions)
        if self._is_second_class(account.base):
            account = account.at((..., 1))
        self._base = np.atleast_1d(account.base[0])
        return account

    def _is_second_class(self, base: Floats) -> bool:
        """Whether shap has one output, the second class's, where the model has two: boosted probabilities."""
        is_probability = self.model_output == "probability" and raw_output(self.model) == "margin"
        return is_probability and base.ndim == 2 and base.shape[1] == 2

    def shap_values(
        self,
        X: Any,
        y: Any = None,
        tree_limit: int | None = None,
        approximate: bool = False,
        check_additivity: bool = True,  # noqa: ARG002 - sums are always compared with the model's answers
        from_call: bool = False,  # noqa: ARG002
    ) -> Floats:
        """Contributions (n, d) of one output, (n, d, k) of several; without the first axis of one row ``X``.

        They are compared with the model's own answers, whatever ``check_additivity`` is. ``approximate`` and
        ``from_call`` are ignored: the values are exact, and no slower. ``y`` and ``tree_limit`` are refused.
        """
        _check_call(y, tree_limit, approximate)
        return self._shap_values(X)

    def shap_interaction_values(self, X: Any, y: Any = None, tree_limit: int | None = None) -> Floats:
        """Contributions of pairs at rows ``X``, (n, d, d) or (n, d, d, k): they add up to those of columns.

        ``y`` and ``tree_limit`` are refused.
        """
        _check_call(y, tree_limit, approximate=False)
        rows = ExplainedRows.of(X)
        account = self._explainer.contributions(rows.table).contributions
        pairs: Floats = np.array(account.pairs)
        if self._is_second_class(account.base_values):
            pairs = np.ascontiguousarray(pairs[..., 1])
        self._account_of(account)
        return pairs[0] if rows.is_flat else pairs

    def __call__(
        self,
        X: Any,
        y: Any = None,
        interactions: bool = False,
        check_additivity: bool = True,  # noqa: ARG002
        approximate: bool = False,
    ) -> Any:
        """Return shap's Explanation of rows ``X``; of pairs with ``interactions``.

        Sums are always compared with the model's answers, whatever ``check_additivity`` is. ``approximate``
        is ignored, and ``y`` refused.
        """
        _check_call(y, None, approximate)
        explanation = self._explanation(X)
        if interactions:
            pairs = self.shap_interaction_values(X)
            explanation.values = pairs[None] if pairs.ndim < 3 else pairs
        return explanation


def _check_options(options: dict[str, Any], names: set[str]) -> None:
    unknown = sorted(options.keys() - names)
    if unknown:
        raise TypeError(f"TreeExplainer() got an unexpected keyword argument {unknown[0]!r}")


def _check_call(y: Any, tree_limit: int | None, approximate: bool) -> None:
    if y is not None:
        raise InputError("y= is for model_output='log_loss', which is not explained here")
    if tree_limit not in (None, -1):
        raise InputError(
            f"tree_limit={tree_limit!r}: pass a model of as many trees, such as booster[:{tree_limit}]"
        )
    if approximate:
        warnings.warn(
            "approximate=True is ignored: the values are exact, and take no longer", UserWarning, stacklevel=3
        )
