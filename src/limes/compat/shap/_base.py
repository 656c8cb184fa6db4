"""Parts that explainers of all kinds share: backgrounds in shap's forms, rows, and the results."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from limes._arrays import Floats, Ints
from limes._explanation.attribution import Contributions
from limes.compat.shap.explanation import explanation_class, has_shap, shap_module
from limes.exceptions import InputError
from limes.models._calling.outputs import prediction_method, resolve
from limes.models._identity import qualified_name
from limes.models._reading import CannotRead, read_output
from limes.models.forms._base import Combination, Form, Linear
from limes.models.forms._trees import Forest

# Columns up to which functions are asked about all coalitions, as shap's own "auto" does
EXACT_COLUMNS = 10
# Rows up to which weights of a summary are looked for as counts, and how many totals are tried together
_MOST_COUNTED, _COUNTED_TOGETHER = 100_000, 1_000
# Rounding of a weight that is a count over a total
_ROUNDED = 1e-14


class Background(NamedTuple):
    """Rows that stand for the features that are not known."""

    rows: Any  # a table of the user's kind
    weights: Floats | None  # (n,) with sum 1; None where rows weigh the same

    @property
    def repeated(self) -> Any:
        """The rows as a background of two or more, each as often as its weight says.

        Weights that are counts of up to 100,000 rows, as those of ``shap.kmeans``, are met exactly, others to
        a part in 100,000.
        """
        positions = np.arange(len(self.rows))
        if self.weights is not None:
            positions = np.repeat(positions, _counts(self.weights))
        if len(positions) == 1:
            positions = np.zeros(2, dtype=np.int64)
        elif self.weights is None:
            return self.rows
        return self.rows.iloc[positions] if hasattr(self.rows, "iloc") else self.rows[positions]


def _counts(weights: Floats) -> Ints:
    """The fewest rows of each kind whose shares are ``weights``."""
    for first in range(1, _MOST_COUNTED, _COUNTED_TOGETHER):
        totals = np.arange(first, first + _COUNTED_TOGETHER)[:, None]
        counts = totals * weights
        alike = (np.abs(counts - np.rint(counts)) <= _ROUNDED * totals).all(axis=1)
        if alike.any():
            return np.asarray(np.rint(counts[np.argmax(alike)]), dtype=np.int64)
    return np.asarray(np.maximum(1, np.rint(_MOST_COUNTED * weights)), dtype=np.int64)


class Account(NamedTuple):
    """Contributions (n, d) or (n, d, k), their bases (n,) or (n, k), and standard errors or None."""

    values: Floats
    base: Floats
    errors: Floats | None

    @classmethod
    def of(cls, contributions: Contributions) -> Account:
        errors = contributions.standard_errors if contributions.standard_errors.any() else None
        return cls(contributions.values.copy(), contributions.base_values.copy(), errors)

    def at(self, key: Any) -> Account:
        """The part of each array at a key, such as the first row or one output."""
        return Account(self.values[key], self.base[key], None if self.errors is None else self.errors[key])


def background_of(data: Any) -> Background:
    """A background in any of the forms that shap takes: a table, a masker of one, or k-means of one."""
    if data is None:
        raise InputError("masker cannot be None: pass background rows, such as a sample of the training data")
    if type(data).__name__ == "Impute":
        raise InputError(
            "maskers.Impute is not explained here, as feature_perturbation='correlation_dependent' is not: "
            "pass maskers.Independent, or use a TabularExplainer with groups of columns that depend on each "
            "other"
        )
    if hasattr(data, "weights") and hasattr(data, "data"):  # of shap.kmeans
        weights = np.asarray(data.weights, dtype=np.float64)
        alike = np.ptp(weights) <= 1e-12 * weights.max()
        return Background(np.asarray(data.data), None if alike else weights / weights.sum())
    inner = getattr(data, "data", None)
    if not hasattr(data, "columns") and hasattr(inner, "shape") and not isinstance(inner, memoryview):
        if hasattr(data, "feature_names") and getattr(data, "output_dataframe", False):
            inner = import_module("pandas").DataFrame(inner, columns=data.feature_names)
        data = inner  # of a masker
    if hasattr(data, "toarray"):
        data = data.toarray()
    if isinstance(data, list):
        data = np.asarray(data)
    if not hasattr(data, "shape"):
        raise InputError(
            f"a background must be a table, or a masker or a summary of one, got {type(data).__name__}"
        )
    return Background(np.asarray(data)[None] if len(data.shape) == 1 else data, None)


class ExplainedRows(NamedTuple):
    """Rows to be explained, as a table."""

    table: Any
    is_flat: bool  # whether one row was passed without its axis

    @classmethod
    def of(cls, X: Any) -> ExplainedRows:
        if hasattr(X, "get_features") and hasattr(X, "get_cat_feature_indices"):  # CatBoost's Pool
            if X.get_cat_feature_indices() or X.get_text_feature_indices():
                raise InputError(
                    "a Pool gives no categories and no texts back: pass the table it was made of"
                )
            X = np.asarray(X.get_features())
        if type(X).__name__ == "DMatrix":
            X = _rows_of_dmatrix(X)
        if hasattr(X, "toarray"):
            X = X.toarray()
        if hasattr(X, "to_frame") and not hasattr(X, "columns"):  # a Series
            return cls(X.to_frame().T.infer_objects(), is_flat=True)
        if isinstance(X, list | tuple):
            X = np.asarray(X)
        if X.ndim == 1:
            return cls(X[None], is_flat=True)
        return cls(X, is_flat=False)

    @property
    def names(self) -> list[str] | None:
        columns = getattr(self.table, "columns", None)
        return None if columns is None else [*columns]

    @property
    def cells(self) -> Any:
        return self.table.to_numpy() if hasattr(self.table, "to_numpy") else np.asarray(self.table)


def _rows_of_dmatrix(X: Any) -> Floats:
    """Rows as XGBoost stores them, in single precision, in which its trees read them; NaN where missing."""
    if "c" in (X.feature_types or ()):
        raise InputError("a DMatrix has codes in the place of categories: pass the table it was made of")
    stored = X.get_data().tocoo()
    rows = np.full(stored.shape, np.nan)
    rows[stored.row, stored.col] = stored.data
    names = X.feature_names
    return rows if names is None else import_module("pandas").DataFrame(rows, columns=names)


class Explainer:
    """Explains a model: the explainer of its kind, which ``algorithm`` names or "auto" chooses.

    Parameters
    ----------
    model
        Trees, which need no ``masker``; a linear model; or a function of a table.
    masker
        Background rows: a table, ``shap.maskers.Independent(table)``, or ``shap.kmeans(table, k)``.
    algorithm
        "auto", "tree", "linear", "exact", "permutation" or "kernel"; others, and maskers of texts and images,
        are for shap's own explainers, where it is installed.
    link, output_names, feature_names, linearize_link, seed
        ``shap.links.identity``, or ``shap.links.logit`` for functions of few columns; names for the results;
        the last but one changes nothing, and the last is the seed of samples.

    Raises
    ------
    TypeError
        If the model is neither trees, nor linear, nor callable.
    InputError
        If an option is not known, or a background is missing.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from limes.compat import shap
    >>> X, y = load_diabetes(return_X_y=True)
    >>> explainer = shap.Explainer(RandomForestRegressor(5, random_state=0).fit(X, y))
    >>> type(explainer).__name__, explainer.shap_values(X[:2]).shape
    ('TreeExplainer', (2, 10))
    """

    model: Any
    masker: Any = None
    link: Any = None
    feature_names: Any = None
    output_names: Any = None
    expected_value: Any

    def __new__(
        cls,
        model: Any = None,
        masker: Any = None,
        *_arguments: Any,
        algorithm: str = "auto",
        **_options: Any,
    ) -> Any:
        if cls is not Explainer:
            masker = _options.pop("data", masker)
            if cls.__module__ == _OF_FUNCTIONS and _has_groups(masker):
                return getattr(_peer(), cls.__name__)(model, masker, *_arguments, **_options)
            return object.__new__(cls)
        if len(_arguments) > 1:  # link, algorithm
            algorithm = _arguments[1]
        is_for_others = _is_for_others(model, masker, algorithm)
        module, name = ("", "") if is_for_others else _choice(model, masker, algorithm)
        if is_for_others or (module == _OF_FUNCTIONS and _has_groups(masker)):
            options = {"algorithm": algorithm} if len(_arguments) < 2 else {}
            return _peer().Explainer(model, masker, *_arguments, **options, **_options)
        # it is a subclass of this one
        return object.__new__(getattr(import_module(module), name))

    def _account(self, rows: ExplainedRows, **options: Any) -> Account:
        raise NotImplementedError

    def _shap_values(self, X: Any, **options: Any) -> Floats:
        rows = ExplainedRows.of(X)
        values = self._account(rows, **options).values
        return values[0] if rows.is_flat else values

    def _explanation(self, X: Any, **options: Any) -> Any:
        started, rows = perf_counter(), ExplainedRows.of(X)
        account = self._account(rows, **options)
        outputs, cells = account.values.shape[2:], rows.cells
        names = self.output_names
        if names is None and outputs:
            names = [f"Output {k}" for k in range(outputs[0])]
        if rows.is_flat:
            account, cells = account.at(0), cells[0]
        return explanation_class()(
            account.values,
            base_values=account.base,
            data=cells,
            feature_names=rows.names if self.feature_names is None else self.feature_names,
            output_names=names,
            error_std=account.errors,
            compute_time=perf_counter() - started,
        )


_OF_FUNCTIONS = "limes.compat.shap.functions"
_KINDS = {
    "tree": ("limes.compat.shap.trees", "TreeExplainer"),
    "linear": ("limes.compat.shap.linear", "LinearExplainer"),
    "exact": (_OF_FUNCTIONS, "ExactExplainer"),
    "permutation": (_OF_FUNCTIONS, "PermutationExplainer"),
    "kernel": (_OF_FUNCTIONS, "KernelExplainer"),
}


# Algorithms and maskers that only shap itself has
_ALGORITHMS_OF_OTHERS = ("partition", "additive", "deep", "gradient")
_MASKERS_OF_OTHERS = ("Text", "Image", "Fixed", "Composite", "FixedComposite", "OutputComposite")


def _is_for_others(model: Any, masker: Any, algorithm: Any) -> bool:
    """Whether shap's own explainers are asked for: of texts, images, and algorithms that are not here."""
    its = {kind.__name__ for kind in type(masker).__mro__ if kind.__module__.startswith("shap.")}
    modules = {type(each).__module__.partition(".")[0] for each in (model, masker)}
    return (
        algorithm in _ALGORITHMS_OF_OTHERS
        or not its.isdisjoint(_MASKERS_OF_OTHERS)
        or "transformers" in modules
    )


def _has_groups(masker: Any) -> bool:
    """Whether a masker or a summary of shap's has groups of features, as ``shap.maskers.Partition`` has."""
    if not any(kind.__module__.startswith("shap.") for kind in type(masker).__mro__):
        return False
    groups = getattr(masker, "groups", None)
    return (
        getattr(masker, "clustering", None) is not None
        or getattr(masker, "partition", None) is not None
        or (groups is not None and any(len(group) > 1 for group in groups))
    )


def _peer() -> Any:
    """Return shap itself; an InputError without it."""
    peer = shap_module()
    if peer is None:
        raise InputError(
            "this algorithm, and maskers of groups, texts and images, are shap's own: pip install shap, or "
            "use limes.TextExplainer and limes.ImageExplainer"
        )
    return peer


def _choice(model: Any, masker: Any, algorithm: Any) -> tuple[str, str]:
    if algorithm in _KINDS:
        return _KINDS[algorithm]
    if algorithm != "auto":
        raise InputError(f"Unknown algorithm type passed: {algorithm!r}; use auto or one of {[*_KINDS]}")
    if is_of_trees(model):
        return _KINDS["tree"]
    if masker is not None and not callable(model) and linear_form(model) is not None:
        return _KINDS["linear"]
    if not callable(model):
        raise TypeError(
            "The passed model is not callable and cannot be analyzed directly with the given masker! Model: "
            f"{model!r}; pass one of its methods, such as model.predict"
        )
    columns = np.shape(background_of(masker).rows)[1]
    return _KINDS["exact" if columns <= EXACT_COLUMNS else "permutation"]


def raw_output(model: Any) -> str | None:
    """The output that shap calls raw: the margin where the model has one, else what it predicts."""
    return "margin" if prediction_method(model, "decision_function") is not None else None


def raw_form(model: Any) -> Form | None:
    """The form of the raw output; None where it is not read."""
    try:
        return read_output(model, resolve(model, raw_output(model)))
    except (CannotRead, InputError):
        return None


def linear_form(model: Any) -> Linear | None:
    """The form of a linear model's raw output; None of another one."""
    form = raw_form(model)
    return form if isinstance(form, Linear) else None


# Names of classes of trees that are read only beside the table they were fitted on
_OF_TREES = ("XGB", "LGBM", "CatBoost", "Booster")


def is_of_trees(model: Any) -> bool:
    """Whether a model is a sum of trees, or one behind steps that are read beside a table."""
    form = raw_form(model)
    if form is None and qualified_name(type(model)) == "sklearn.Pipeline":
        return is_of_trees(model.steps[-1][1])
    if form is None:
        return type(model).__name__.startswith(_OF_TREES) and hasattr(model, "predict")
    parts = form.parts if isinstance(form, Combination) else [form]
    return all(isinstance(part, Forest) for part in parts)


def peer_error(name: str, message: str, kind: type[Exception] = InputError) -> Exception:
    """An InputError that is also shap's error of this name, where shap is installed."""
    theirs = None
    if has_shap():
        theirs = getattr(import_module("shap.utils._exceptions"), name, None)
    kinds = (kind,) if theirs is None else (kind, theirs)
    error: Exception = type(name, kinds, {})(message)
    return error


def identity(x: Any) -> Any:
    """The link that changes nothing."""
    return x


def link_of(link: Any) -> Callable[[Floats], Floats] | None:
    """The link as a function; None for the identity. It may be a name, or a function such as shap's."""
    name = link if isinstance(link, str) else getattr(link, "__name__", type(link).__name__)
    if link is None or "identity" in str(name).lower():
        return None
    if "logit" in str(name).lower():
        return lambda p: np.asarray(np.log(p / (1.0 - p)))
    if callable(link):
        return lambda p: np.asarray(link(p))
    raise InputError(f"link={link!r} is not known; use 'identity' or 'logit'")
