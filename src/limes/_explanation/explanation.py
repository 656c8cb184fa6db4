"""The explanation of one or many rows: frozen arrays, names, and how they were computed.

``limes._show`` draws it, and is imported when something is drawn (``drawing.py``). Cells of its table and
facts of its provenance are plain Python values, so that JSON returns exactly what is stored: ``None``, a
truth value, a whole number, a float or a text; facts may nest in lists and dictionaries.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from limes._checks import check_choice, is_count
from limes._explanation import json
from limes._explanation.attribution import (
    COEFFICIENT_AXES,
    Attributions,
    Coefficients,
    Contributions,
    ReadingField,
    coarse_level,
    has_coefficients,
    has_no_surrogate,
    requested,
)
from limes._explanation.differences import minus
from limes._explanation.drawing import OTHER_NAMES, Page, drawer, write_text
from limes._explanation.fields import ARRAYS, TUPLES, entries_at, plain_data, plain_ids, validated
from limes._explanation.fit import Fit, account_at, leading
from limes._explanation.record import completed, largest_bars, record_of_warnings
from limes._explanation.rules import Certificate, check_weights, is_certain
from limes._explanation.selection import (
    feature_names_of,
    is_single,
    name_positions,
    row_positions,
    selected,
    split_key,
)
from limes._explanation.view import one_line_summary, why_not_computed
from limes._warnings import RowWarning, of_outputs
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from limes._arrays import Bools, Floats, Ints, Objects
    from limes._explanation.fit import Effects, Interaction
    from limes._show.plots import Plots


# Names of coefficients that an explanation had itself until version 0.3, and those of both readings
_MOVED = (
    *("values", "standard_errors", "intercepts", "surrogate_predictions", "surrogate_errors", "local_errors"),
    *("shares", "share_errors", "effective_rows", "controls"),
)
_OF_BOTH = ("values", "standard_errors")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Explanation(Page):
    """The explanation of n rows, d features and one or k outputs, and its two readings.

    ``contributions`` add up to the model's predictions; ``coefficients`` are those of LIME's surrogate. One
    that was not asked for is computed when it is first read, from what the explainer keeps. Arrays are copied
    and read-only; a one-row input gives n = 1.

    Parameters
    ----------
    coefficients : Coefficients, or None
        LIME's limit, if it was asked for.
    contributions : Contributions, or None
        Shapley values, if they were asked for: see ``contributions=`` of explainers. JSON and pickles hold
        those that were, or that are exact and quick.
    predictions : (n,) or (n, k)
        Predictions of the model at the rows.
    feature_names, output_names : d names; one name for (n, d), k for (n, d, k)
        Output names differ from each other; a repeated feature name selects all its features.
    conditions : n tuples of d texts
        Conditions that hold at the row, such as ``"bmi <= -0.54"`` or ``"age is missing"``.
    data : (n, d)
        The rows in the user's own values; None where missing. NumPy scalars become Python ones,
        dates and other objects become text, so that JSON returns the same.
    method : "exact" or "sampled"
    reason : str
        Why the explanation is sampled; or why it is exact although the model was not read.
    calls : (n,)
        Model calls for this row alone: its prediction, and what its coefficients rest on, if they were asked
        for; those for contributions are in ``contributions.calls``.
    row_warnings : n tuples of texts
        Warnings about each row, which all media show; each has a ``code`` and the names of the ``outputs``
        that it is about, none for all. Those that need R² are added when they are first read.
    shared_calls : (n,), or None
        Model calls that a row shares with others: for the pool that it was sampled from, and for checks;
        None where exact.
    provenance : mapping
        Options and facts that JSON can hold: bandwidth, weights, bins, law, version. ``"meaning"``,
        if present, replaces the sentence under tables and pictures that defines a coefficient.
    ids : n texts or numbers, or None
        Names of the rows: the index of a dataframe, or what ``explainer(X, ids=...)`` was passed;
        their positions where they have no names. Rows keep their names when they are selected.
    errors : pairs of a name and a text
        Names and reasons of rows that have no explanation, with ``errors="row"``.
    explainer : any
        The explainer, for ``limes.diagnose``; it is neither written to JSON nor pickled.
    fit : Fit, or None
        Computes R², effects, interactions, and readings that were not asked for, when they are first read;
        neither written to JSON nor pickled, which store R².
    certificates : n certificates, or none; see :class:`limes._explanation.rules.Certificate`

    Raises
    ------
    InputError
        Shapes, names or kinds do not agree.

    Examples
    --------
    >>> explanation = Explanation(
    ...     coefficients=Coefficients(
    ...         values=[[0.5, -2.0]], standard_errors=[[0.0, 0.0]], intercepts=[3.0],
    ...         surrogate_predictions=[1.5], fidelity=[0.9], calls=[1], row_converged=[True]),
    ...     predictions=[1.6], feature_names=["age", "bmi"], output_names=["risk"],
    ...     conditions=[["age > 40", "bmi <= 25"]], data=[[52, 21.5]], method="exact",
    ...     calls=[1], row_warnings=[[]])
    >>> explanation
    <Explanation: 1 row x 2 features, exact; risk: bmi <= 25 -2.00, age > 40 +0.50>
    >>> explanation[0, "bmi"].coefficients.values
    array([[-2.]])
    >>> Explanation.from_json(explanation.to_json()).coefficients.values.tolist()
    [[0.5, -2.0]]
    >>> explanation.top(1).feature_names, explanation.to_frame().shape  # .to_html() is a page
    (('bmi',), (2, 10))
    >>> import limes
    >>> rules = limes.SparseExplainer(lambda X: 0.5 * X[:, 0] - 0.25 * X[:, 3], k=2)([[1, 1, -1, 1]])
    >>> rules.rules() == (rules.rule(),)
    True
    >>> X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> product = limes.TabularExplainer(lambda X: X[:, 0] * X[:, 1], X, rng=0)([[1.0, 1.0]])
    >>> product.interactions(top=1)[0].features
    ('x0', 'x1')
    >>> halves = np.repeat([[0, 0, 1, 1]], 4, axis=0)
    >>> explainer = limes.ImageExplainer(lambda batch: batch.mean(axis=(1, 2, 3)), segments=halves, fill=0.5)
    >>> image = explainer(np.ones((4, 4, 3)))
    >>> image.mask(top=1).sum().item(), image.heatmap().shape
    (8, (4, 4))
    """

    coefficients: Coefficients = ReadingField()  # type: ignore[assignment]  # noqa: RUF009 - a descriptor
    contributions: Contributions = ReadingField()  # type: ignore[assignment]  # noqa: RUF009 - a descriptor
    predictions: Floats
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    conditions: tuple[tuple[str, ...], ...]
    data: Objects
    method: Literal["exact", "sampled"]
    reason: str = ""
    calls: Ints
    row_warnings: tuple[tuple[RowWarning, ...], ...] = record_of_warnings()
    shared_calls: Ints | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    certificates: tuple[Certificate, ...] = ()
    ids: tuple[Any, ...] = None  # type: ignore[assignment]  # positions
    errors: tuple[tuple[Any, str], ...] = ()
    explainer: Any = None
    fit: Fit | None = None

    _widest: ClassVar[int] = 120  # longer lines are hard to follow
    _html: ClassVar[str] = "html"

    def __post_init__(self) -> None:
        stored = self._stored()
        its = stored["coefficients"]
        if self.fit is None and its is not None and its.stored["fidelity"] is None:
            raise InputError(
                "fidelity is missing; pass R², one number a row and output, or the fit that computes it"
            )
        for name, value in validated(stored).items():
            object.__setattr__(self, name, value)

    if not TYPE_CHECKING:  # mypy would accept any name

        def __getattr__(self, name):
            if name in _MOVED:
                alone = (
                    requested(self, "coefficients") is None and requested(self, "contributions") is not None
                )
                # where contributions alone were asked for, other numbers would be taken for them
                reading = "contributions" if alone and name in _OF_BOTH else "coefficients"
                (other,) = {"contributions", "coefficients"} - {reading}
                also = f"; {other} are explanation.{other}.{name}" if name in _OF_BOTH else ""
                text = f"explanation.{name} is explanation.{reading}.{name}{also}"
                warnings.warn(text, FutureWarning, stacklevel=2)
                return getattr(getattr(self, reading), name)
            advice = f"; it is {OTHER_NAMES[name]}" if name in OTHER_NAMES else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{advice}")

    @property
    def model_calls(self) -> int:
        """Model calls of all rows, those for contributions included, without those that rows share.

        Together with ``shared_calls`` they are the rows that the model was asked about.
        """
        reading = requested(self, "contributions")
        return int(self.calls.sum()) + (0 if reading is None else int(reading.calls.sum()))

    @property
    def _main(self) -> Attributions:
        """The reading that is shown unless another is named."""
        reading: Attributions = getattr(self, leading(self))
        return reading

    def _warnings_of_coefficients(self) -> tuple[tuple[RowWarning, ...], ...]:
        """The record with all that is about coefficients, whether or not they were asked for."""
        if requested(self, "coefficients") is not None:
            return self.row_warnings
        if "_of_coefficients" not in vars(self):
            vars(self)["_of_coefficients"] = completed(self, vars(self)["row_warnings"])
        record: tuple[tuple[RowWarning, ...], ...] = vars(self)["_of_coefficients"]
        return record

    @property
    def row_converged(self) -> Bools:
        """Whether each row is exact or accurate, as the reading has it that was asked for, (n,).

        Where both were, the contributions; of facts that hold for certain, whether they are proved.
        """
        if self.certificates and is_certain(self):
            return np.array([one.proved for one in self.certificates])
        account = requested(self, "contributions")
        reading: Attributions = self.coefficients if account is None else self.contributions
        return reading.row_converged

    @property
    def converged(self) -> bool:
        """Whether every row is exact, or its standard errors are small enough and to be trusted."""
        return bool(self.row_converged.all())

    @property
    def row_methods(self) -> tuple[str, ...]:
        """Method of each row, "exact" or "sampled"; ``method`` is "sampled" if any row is.

        Rows of a model that was read are exact, but for those whose quadrature has no nine digits.
        """
        reading = requested(self, "coefficients")
        return (self.method,) * len(self) if reading is None else self.coefficients.row_methods

    @property
    def fidelity(self) -> Floats:
        """The weighted R² of the surrogate, (n,) or (n, k): see `Coefficients`."""
        return self.coefficients.fidelity

    @property
    def fidelity_errors(self) -> Floats:
        """Standard errors of the fidelity: see `Coefficients`."""
        return self.coefficients.fidelity_errors

    @property
    def effects(self) -> Effects:
        """The whole effect of every column, E_w[f | cell] - E_w f in each of its cells, row by row.

        A slope's cells are ten slices of its law around the row.

        A column's coefficient compares the row's own cell with the average of the others: one number of this
        curve. ``effects["bmi"]`` selects one, on the positive class of two; ``to_frame()`` lists all.
        Effects are computed when they are first read; the model is not called.

        Raises
        ------
        InputError
            If the explanation comes from JSON or a pickle.
        """
        return self._computed("effects").effects(feature_names_of(self), self.output_names, self.predictions)

    @property
    def levels(self) -> tuple[Self, ...]:
        """The levels of an account with ``hierarchy=True``, the coarse one first, and this explanation last.

        The coarse level has the sentences of a text, or the coarse rectangles of an image. Each level is
        an explanation with its own errors; coarse values are sums of all finer ones, also after a
        selection. Explanations without ``hierarchy=True`` have one level, themselves.
        """
        stored = self.provenance.get("coarse")
        if stored is None or len(self) != 1:
            return (self,)
        try:
            return coarse_level(self, stored), self
        except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
            raise InputError(f"the coarse level of this explanation is damaged: {error!r}") from error

    @property
    def additive_fidelity(self) -> Floats:
        """R² of all effects together, (n,) or (n, k): of the best sum of functions of the cells."""
        return self._computed("additive_fidelity").additive()[0]

    @property
    def additive_fidelity_errors(self) -> Floats:
        """Standard errors of ``additive_fidelity``, 0 where exact."""
        return self._computed("additive_fidelity_errors").additive()[1]

    def interactions(self, top: int = 3) -> tuple[Interaction, ...]:
        """Return the ``top`` pairs of these features that matter most beyond their effects, row by row.

        A pair has E_w[rest | both cells], with rest the residuals of f from the best sum of functions of
        single features, and the share of Var_w f that it explains. Where columns are independent, it is
        E_w[f | both cells] - E_w[f | one] - E_w[f | other] + E_w f. Pairs are exact for tables that are read
        and for up to twelve words or superpixels; else estimated on rows of w, with standard errors.

        Raises
        ------
        InputError
            See ``effects``.
        """
        if not is_count(top):
            raise InputError(f"interactions(top={top!r}): top is the number of pairs; pass 1 or more")
        return self._computed("interactions").interactions(self.feature_names, self.output_names, top)

    def minus(self, other: Explanation) -> Explanation:
        """Return the account of the difference: contributions to f - g, of the same rows and features.

        Accounts are linear in the model: where f is explained here, and g in ``other``, under one law,
        the differences of base and contributions add up to f(ξ) - g(ξ). Standard errors are added. See
        `limes.between_models`, and ``explainer.between`` for two rows of one model.

        Raises
        ------
        InputError
            If rows, features or outputs are not the same, in the same order, or contributions are refused.

        Examples
        --------
        >>> import limes
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> new, old = (limes.TabularExplainer(lambda x, a=a: a * x[:, 0], X)(X[3]) for a in (3.0, 2.0))
        >>> change = new.minus(old)
        >>> change.predictions.tolist(), (change.contributions.values > 1e-9).tolist()
        ([1.0], [[True, False]])
        """
        return minus(self, other)

    def _computed(self, name: str) -> Fit:
        if self.fit is None or has_no_surrogate(self):
            raise InputError(why_not_computed(self, name))
        return self.fit

    @property
    def warnings(self) -> tuple[str, ...]:
        """The rows' warnings, without repetitions, in their order."""
        return tuple(dict.fromkeys(text for row in self.row_warnings for text in row))

    @property
    def plot(self) -> Plots:
        """Pictures: ``explanation.plot.bar(row=0)``, ``.beeswarm()``, and ``.text()`` of a text."""
        return drawer("plots").Plots(self)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return one_line_summary(self)

    def _drawn(self, width: int) -> RenderableType:
        return drawer("terminal").table(self, width)  # type: ignore[no-any-return]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not options.ascii_only:
            yield from drawer("terminal").coloured_input(self, options.max_width)
        yield from super().__rich_console__(console, options)

    def __len__(self) -> int:
        return len(self.predictions)

    def __iter__(self) -> Iterator[Self]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, key: Any) -> Self:
        """Select rows, features and outputs: ``e[0]``, ``e["L3"]``, ``e[:, "bmi"]``, ``e[..., -1]``.

        Rows are selected by position, or a name that is a text; columns by the table's own name of whatever
        type, its text, or position. Rows and features keep their axis; one output drops it.

        Raises
        ------
        UnknownNameError
            No row, feature or output has this name; it is a KeyError and an `InputError`.
        IndexError
            A position, or the length of a mask, does not fit.
        InputError
            A whole number is the name of one column and the position of another.
        """
        row, feature, output = split_key(key)
        rows = row_positions(row, self.ids)
        features = self.feature_names if isinstance(feature, slice) else feature_names_of(self)
        columns = name_positions(feature, features, "feature")
        outputs = name_positions(output, self.output_names, "output")
        return self._at(rows, columns, outputs, drops_axis=is_single(output))

    def _at(self, rows: Ints, columns: Ints, outputs: Ints, *, drops_axis: bool = False) -> Self:
        """Return these positions of rows, features and outputs."""
        if len(columns) < len(self.feature_names):
            check_weights(self, "a selection of features")
        positions = {"n": rows, "d": columns, "k": outputs}
        stored = self._stored()
        several = self.predictions.ndim == 2
        part = partial(selected, positions=positions, several=several, drops_axis=drops_axis)
        for name, axes in ARRAYS.items():
            stored[name] = None if stored[name] is None else part(stored[name], axes)
        for name in READINGS:
            if stored[name] is not None:
                stored[name] = stored[name].select(positions, drops_axis=drops_axis)
        for name, axes in TUPLES.items():
            if stored[name]:
                stored[name] = entries_at(stored[name], [positions[letter] for letter in axes])
        its = requested(self, "coefficients")
        if its is not None and its.controls and stored["coefficients"].controls is None:
            # the exact rows among sampled ones
            stored |= {"shared_calls": None, "method": "exact", "reason": ""}
        if several:
            names = set(stored["output_names"])
            stored["row_warnings"] = [of_outputs(row, names) for row in stored["row_warnings"]]
        fit = None if self.fit is None else self.fit.select(positions, drops_axis=drops_axis)
        selection = type(self)(**stored, explainer=self.explainer, fit=fit)
        if has_coefficients(self) and (len(columns) < len(self.feature_names) or "_largest" in vars(self)):
            vars(selection)["_largest"] = largest_bars(self)[rows][:, outputs]
        return selection

    def top(self, k: int = 5) -> Self:
        """Return the ``k`` features with the largest mean absolute contribution, largest first.

        The mean goes over rows and outputs; ties keep their order. An explanation without contributions goes
        by its coefficients, as ``explanation.coefficients.top`` does.
        """
        return self._at_features(self._main.largest(k))

    def _at_features(self, positions: Ints) -> Self:
        """Return these positions of features."""
        return self._at(np.arange(len(self)), positions, np.arange(len(self.output_names)))

    def reasons(
        self,
        k: int = 4,
        catalogue: Mapping[str, Any] | None = None,
        *,
        row: int | str | None = None,
        output: str | int | None = None,
        sign: str = "both",
        of: str | None = None,
        scale: str | None = None,
    ) -> tuple[str, ...]:
        """Return the k largest contributions of a row as sentences, marked where the order is not certain.

        Parameters
        ----------
        k : int
            Number of sentences.
        catalogue : mapping
            Sentences by feature, which may contain ``{value}``, also in a format of Python's as
            ``{value:,.0f}``, ``{condition}`` and ``{effect}``; or pairs of them, where the feature raises the
            prediction, and where it lowers it; or three, the last where its value is missing. Without it a
            missing value has a sentence that says so.
        row, output
            The row, by position or name; the output, the positive class of two unless given. Without a row
            several rows have sentences about the first, with a ``FutureWarning``.
        sign : "both", "+" or "-"
            Whether to count only reasons that raise the prediction, "+", or lower it, "-".
        of : "contributions" or "coefficients"
            What the value contributes to the prediction; or LIME's coefficients, what differs between the
            condition and all else. Contributions are the default, where an explanation can have them: a rule
            has its weights, a file without contributions, or a call with ``contributions=False``, LIME's
            coefficients.
        scale : "units" or "percentage points"
            Units of the output; or hundredths, the default of contributions to a probability.

        Returns
        -------
        tuple of texts
            Texts with the attributes ``feature``, ``condition``, ``data``, ``value``, ``standard_error`` and
            ``certain``: whether the place in the order, and the sign, are certain by 1.96 standard errors.

        Raises
        ------
        InputError
            If a name in the catalogue is no feature, an entry no sentence or with an unknown field, or an
            option not valid; and as `Contributions`, where these are yet to be computed.

        Examples
        --------
        >>> import limes
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import Ridge
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> explanation = limes.TabularExplainer(Ridge().fit(X, y), X)(X.iloc[:1])
        >>> name = explanation.reasons(1)[0].feature
        >>> explanation.reasons(1, {name: "It is {value}."})[0].startswith("It is ")
        True
        """
        return drawer("exports").reasons(self, k, catalogue, row, output, sign, of or leading(self), scale)  # type: ignore[no-any-return]

    @property
    def certificate(self) -> Certificate:
        """The certificate of a sparse explanation; for several rows use ``explanation[i].certificate``.

        Raises
        ------
        InputError
            If the explanation is not sparse, or not of one row.
        """
        return self._certified(None)

    def rule(self, row: int | None = None) -> str:
        """Return a sparse explanation as text: ``0.5 [income > 70] - 0.75 [debt > 35]  ->  score = -0.25``.

        Raises
        ------
        InputError
            If the explanation is not sparse, or has several rows and ``row`` is None.
        """
        return self._certified(row).rule

    def rules(self) -> tuple[str, ...]:
        """Return the rules of all rows as texts, in their order.

        Raises
        ------
        InputError
            If the explanation is not sparse.
        """
        return tuple(self.rule(row) for row in range(len(self)))

    def _certified(self, row: int | None) -> Certificate:
        if not self.certificates:
            raise InputError("only explanations of limes.SparseExplainer have a certificate and a rule")
        if row is None and len(self) != 1:
            raise InputError(f"the explanation has {len(self)} rows: choose one, as in explanation[0]")
        return self.certificates[row or 0]

    def mask(
        self,
        output: str | int | None = None,
        *,
        top: int = 5,
        sign: str = "+",
        of: str = "explained",
        part: str | None = None,
    ) -> Bools:
        """Return which pixels belong to the superpixels that matter most, (H, W).

        Parameters
        ----------
        output : name or position
            The output with the largest prediction, unless given.
        top, sign : int, and "+", "-" or "both"
            Largest number of superpixels, and the sign of their contributions.
        of : "explained" or "image"
            Pixels of the image as the network gets it, cropped and scaled; or of the image as it was passed.
        part : name
            The image that is meant, of several inputs; the first unless given.

        Raises
        ------
        InputError
            The explanation is not of an image, or an option is not valid.
        """
        return drawer("inputs").mask(self, output, top, sign, of, part)  # type: ignore[no-any-return]

    def heatmap(
        self, output: str | int | None = None, *, of: str = "explained", part: str | None = None
    ) -> Floats:
        """Return the contribution of each pixel's superpixel, (H, W); NaN outside of what is explained.

        An explanation that has no contributions has its coefficients there.

        Parameters
        ----------
        output : name or position
            The output with the largest prediction, unless given.
        of, part : "explained" or "image", and a name
            See :meth:`mask`.

        Raises
        ------
        InputError
            The explanation is not of an image, or an option is not valid.
        """
        return drawer("inputs").heatmap(self, output, of, part)  # type: ignore[no-any-return]

    def to_frame(
        self,
        backend: Literal["pandas", "polars", "pyarrow", "contributions", "coefficients", "pairs"] = "pandas",
        *,
        of: Literal["contributions", "coefficients", "pairs"] | None = None,
    ) -> Any:
        """Return a long data frame: one line a row, feature and output.

        Parameters
        ----------
        backend : "pandas", "polars" or "pyarrow"
            The library of the frame; or what ``of`` is, as in ``to_frame("pairs")``.
        of : "contributions", "coefficients" or "pairs"
            What ``value`` is: contributions, the default where the explanation can have them, LIME's
            coefficients, or pairs of contributions.

        Returns
        -------
        data frame
            Its columns are row (position), id (name), feature, condition (LIME's), data (a text, null where
            missing), output, value, standard_error; of contributions alone, last, base and prediction, where
            base and values add up to the prediction; of coefficients prediction and fidelity (R²). Pairs
            have row, id, feature, other, output, value, standard_error, and add up to contributions.
            Facts that hold for certain have a line each: row, id, feature, condition, data, output,
            prediction, without (the answer to a row that shares all other facts, or NaN) and proved.

        Raises
        ------
        InputError
            If an option is not valid; and as `Contributions`, where these are yet to be computed.
        """
        return drawer("exports").to_frame(self, backend, of or leading(self))

    def to_json(self, path: str | Path | None = None, *, fit: bool = True, pairs: bool = False) -> str:
        """Return strictly valid JSON, and write it to `path` if given; see `limes._explanation.json`.

        Without ``fit`` R² is left out, and so are warnings that follow from effects: of LIME's coefficients
        these take most of the time. In an explanation that is read from such a text it is NaN, with an
        infinite error. ``pairs`` stores those of contributions, too: d² numbers a row.

        Examples
        --------
        >>> import limes
        >>> from sklearn.linear_model import LinearRegression
        >>> X = [[0.0], [1.0], [2.0], [3.0]]
        >>> explanation = limes.TabularExplainer(LinearRegression().fit(X, [0, 1, 3, 5]), X)([[1.0]])
        >>> limes.Explanation.from_json(explanation.to_json(fit=False)).fidelity
        array([nan])
        """
        return write_text(json.dumps(self._fields(fit=fit, pairs=pairs)), path)

    def to_html(
        self,
        path: str | Path | None = None,
        *,
        kind: Literal["card", "report", "decision"] = "card",
        **options: Any,
    ) -> str:
        """Return a self-contained page, and write it to `path` if given.

        Parameters
        ----------
        path : str or Path
            The file to write.
        kind : "card", "report" or "decision"
            "card": pictures of up to a few rows, without any script. "report": all rows, to search, sort and
            compare, see :meth:`to_report`. "decision": a sheet of paper about one row, see
            :func:`limes.decision_page`.
        options
            Those of the report or of the decision's page; a card has none.

        Raises
        ------
        InputError
            If there is no such kind, a card is given options, or the folder does not exist.

        Examples
        --------
        >>> import limes
        >>> X = [[0.0], [1.0], [2.0], [3.0]]
        >>> explanation = limes.TabularExplainer(lambda X: X[:, 0], X)([[1.0]])
        >>> "Approved" in explanation.to_html(kind="decision", decision="Approved")
        True
        """
        check_choice("kind", kind, ("card", "report", "decision"))
        if kind == "report":
            return self.to_report(path, **options)
        if kind == "decision":
            page: str = drawer("decision").decision_page(self, path, **options)
            return page
        if options:
            raise InputError(f"to_html({', '.join(options)}=): a card has no options; pass kind='report'")
        return super().to_html(path)

    def to_report(
        self,
        path: str | Path | None = None,
        *,
        other: Any = None,
        models: Sequence[str] = ("first model", "second model"),
        diagnosis: Any = False,
        bandwidths: bool | None = None,
        effects: bool | None = None,
        title: str | None = None,
        progress: bool = True,
    ) -> str:
        """Return a self-contained interactive page, and write it to `path` if given.

        It lists all rows, to search, sort and filter, and shows a row's contributions, coefficients, effects,
        rule and findings. Two rows, or two models, can be put side by side. Where β(ν) is exact, a slider
        moves ν. The page needs no network, and a browser of 2023 or later; :meth:`to_html` makes one without
        any script.

        Parameters
        ----------
        path : str or Path
            The file to write.
        other : Explanation
            An explanation of the same rows and outputs by another model, to compare with.
        models : two texts
            Names of the two models.
        diagnosis : bool, or Diagnosis
            Whether to add the diagnosis of each row by :func:`limes.diagnose`, which calls the model; or the
            diagnosis itself.
        bandwidths : bool
            Whether to add the slider of bandwidths, which calls no model: 25 more explanations of each
            row. The default is True for up to 10,000 rows, or up to 50 where they take long, as for
            probabilities behind a link.
        effects : bool
            Whether to add the whole effects of columns. By default, as bandwidths, if they are a million
            numbers at most.
        title : str
            Title in place of the usual one.
        progress : bool
            Show progress bars when it takes more than a second.

        Returns
        -------
        str
            The page. Coefficients have seven digits; those at other bandwidths, and effects, are within
            5e-4 and 2e-4 of the largest of their row.

        Raises
        ------
        InputError
            The explanation has no rows, ``other`` has other rows or outputs, the folder does not exist, or
            ``bandwidths=True`` where coefficients at other bandwidths are not exact.

        Examples
        --------
        >>> import limes
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = RandomForestRegressor(10, max_depth=4, random_state=0).fit(X, y)
        >>> explanation = limes.TabularExplainer(model, X)(X.iloc[:5])
        >>> explanation.to_report(title="Five patients").startswith("<!doctype html>")
        True
        """
        text = drawer("report").page(
            self,
            other,
            models=models,
            diagnosis=diagnosis,
            bandwidths=bandwidths,
            effects=effects,
            title=title,
            progress=progress,
        )
        return write_text(text, path)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the explanation that `to_json` wrote as ``text``, every float to the last bit.

        Raises
        ------
        InputError
            The text is damaged, of an unknown format or version, or a path, for which there is `read_json`.
        """
        return cls(**nested(json.loads(json.checked_text(text), *_FLAT)))

    @classmethod
    def read_json(cls, path: str | Path) -> Self:
        """Return the explanation that `to_json` wrote into the file ``path``.

        Raises
        ------
        InputError
            The file cannot be read, or `from_json` refuses its text.
        """
        return cls(**nested(json.loads(json.read_text(path), *_FLAT, f"The file {path}")))

    def to_shap(
        self,
        *,
        of: Literal["contributions", "coefficients"] | None = None,
        base: Literal["common"] | None = None,
        interactions: bool = False,
    ) -> Any:
        """Return a ``shap.Explanation``, for shap's plots and for code that reads its fields.

        Parameters
        ----------
        of : "contributions" or "coefficients"
            The values are contributions, which sum with the base values to the predictions; or LIME's
            coefficients, which sum with the intercepts to the surrogate's prediction, where a slope adds its
            product with the distance from the column's mean. The output's name then says so. Contributions
            are the default, where the explanation can have them.
        base : "common"
            One base for all rows, a number an output, as shap's decision plot and its force plot of many rows
            need: contributions under an infinite bandwidth, where the base is the model's average over the
            background. Each row has its own base unless given.
        interactions : bool
            Whether the values are pairs, (n, d, d) or (n, d, d, k), as of ``shap_interaction_values``.

        Raises
        ------
        InputError
            If an option is not valid, or the explanation has no explainer that gives one base; and as
            `Contributions`, where these are yet to be computed.

        Examples
        --------
        >>> explanation.to_shap()  # doctest: +SKIP
        """
        return drawer("exports").to_shap(self, of or leading(self), base, interactions=interactions)

    def __reduce__(self) -> tuple[Any, ...]:
        # through the constructor: arrays that were merely unpickled would be writable
        return partial(from_fields, **self._fields()), ()

    def _fields(self, *, fit: bool = True, pairs: bool = False) -> dict[str, Any]:
        """Return what JSON holds: the fields, with those of the coefficients among them."""
        account = account_at(self, range(len(self))) if leading(self) == "contributions" else None
        if pairs:
            account = self.contributions.with_pairs()
        names = [name for name in _stored_names(type(self)) if name not in READINGS]
        fields = {name: getattr(self, name) if fit else vars(self)[name] for name in names}
        coefficients = dict.fromkeys(_OF_COEFFICIENTS)
        if requested(self, "coefficients") is not None:
            _ = self.fidelity if fit else None  # is stored
            coefficients = {name: self.coefficients.stored[name] for name in _OF_COEFFICIENTS}
        return {
            **coefficients,
            **fields,
            "account": None if account is None else account.present,
            "certificates": [vars(certificate) for certificate in self.certificates],
        }

    def _stored(self) -> dict[str, Any]:
        """Return the fields as they are: None where the fit has not computed them yet."""
        return {name: vars(self)[name] for name in _stored_names(type(self))}


def frozen_explanation(**library_fields: Any) -> Explanation:
    """Return an explanation of fields that the library made: they are not validated again.

    Arrays are its own, but ``predictions``, which may be the model's; its provenance is plain.
    """
    explanation = object.__new__(Explanation)
    state = vars(explanation)
    state |= _DEFAULTS | library_fields
    state["predictions"] = np.array(state["predictions"])
    for name in ARRAYS:
        if name != "data" and state[name] is not None:
            state[name].flags.writeable = False
    state["data"], state["ids"] = plain_data(state["data"]), plain_ids(state["ids"])
    state["provenance"] = dict(state["provenance"])
    for reading in READINGS:
        if state[reading] is not None:
            state[reading].freeze()
    return explanation


def _stored_names(kind: type[Explanation]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name not in ("explainer", "fit"))


READINGS = ("coefficients", "contributions")
_DEFAULTS: dict[str, Any] = {
    "coefficients": None,
    "contributions": None,
    "reason": "",
    "shared_calls": None,
    "certificates": (),
    "errors": (),
    "explainer": None,
    "fit": None,
}
# Names in JSON, where fields of the coefficients are beside the others
_OF_COEFFICIENTS = tuple(f.name for f in fields(Coefficients) if f.init and f.name != "calls")
_FLAT = (
    (*_OF_COEFFICIENTS, *(n for n in _stored_names(Explanation) if n not in READINGS), "account"),
    {**COEFFICIENT_AXES, **ARRAYS},
)


def nested(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an explanation, of those in JSON, where the coefficients' are among the others."""
    flat = dict(fields)
    its = {name: flat.pop(name, None) for name in _OF_COEFFICIENTS}
    coefficients = None if its["values"] is None else Coefficients(**its, calls=flat["calls"])
    account = flat.pop("account", None)
    return {**flat, "coefficients": coefficients, "contributions": account}


def from_fields(**fields: Any) -> Explanation:
    """Return an explanation of fields as JSON holds them."""
    return Explanation(**nested(fields))
