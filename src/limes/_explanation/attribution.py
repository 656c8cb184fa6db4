"""The two readings of an explanation, in one shape: numbers of the features that add up to something.

`Contributions` add up to the model's prediction, `Coefficients` of LIME's surrogate to the surrogate's. Each
belongs to an explanation, which has the names, the rows and the predictions that both are about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

import numpy as np

from limes._arrays import DIFFERENCE_ROUNDING
from limes._checks import is_count
from limes._explanation.drawing import Printable, drawer
from limes._explanation.selection import by_size, selected
from limes._explanation.wording import CONFIDENCE, count, number, percentage
from limes._names import Names
from limes._warnings import RowWarning, by_output, sentence
from limes.exceptions import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from limes._arrays import Bools, Floats, Ints
    from limes._explanation.explanation import Explanation
    from limes._explanation.fit import WithinGroup
    from limes._sampling.least_squares import Tolerance
    from limes._shapley.exact import RowContributions

# Axes of each array: features "d", rows "n", outputs "k"; arrays of one output have no axis k
CONTRIBUTION_AXES: Mapping[str, str] = {
    **dict.fromkeys(("values", "standard_errors", "alone", "last"), "ndk"),
    **dict.fromkeys(("base_values", "base_errors"), "nk"),
    **dict.fromkeys(("calls", "row_converged"), "n"),
}
# The fact of a provenance that says why there is no surrogate
NO_SURROGATE = "surrogate"
# Those of pairs, where these are stored
PAIR_AXES: Mapping[str, str] = dict.fromkeys(("known_pairs", "known_pair_errors"), "nddk")
COEFFICIENT_AXES: Mapping[str, str] = {
    **dict.fromkeys(("values", "standard_errors", "shares", "share_errors"), "ndk"),
    **dict.fromkeys(("intercepts", "surrogate_predictions", "fidelity"), "nk"),
    **dict.fromkeys(("surrogate_errors", "fidelity_errors"), "nk"),
    **dict.fromkeys(("effective_rows", "calls", "row_converged"), "n"),
}
# None where all rows are exact
OF_SAMPLES = ("shares", "share_errors", "surrogate_errors", "effective_rows", "controls")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Attributions(Printable):
    """Numbers of the features at n rows, with their errors, that add up to a total.

    Attributes
    ----------
    values : (n, d) or (n, d, k)
        In the order of the explanation's features and outputs.
    standard_errors : as ``values``
        0 where exact; ±1.96 of them are a 95 % interval.
    calls : (n,)
        Model calls for these numbers of a row alone.
    row_converged : (n,)
        Whether a row is exact, or its errors are within the tolerance.
    """

    kind: ClassVar[Literal["coefficients", "contributions"]]
    _axes: ClassVar[Mapping[str, str]]

    values: Floats
    standard_errors: Floats
    calls: Ints
    row_converged: Bools
    # to which it belongs, once it is read from it
    explanation: Explanation = field(default=None, init=False)  # type: ignore[assignment]

    def of(self, explanation: Explanation) -> Self:
        """The same numbers, read from an explanation."""
        bound = copy(self)
        object.__setattr__(bound, "explanation", explanation)
        return bound

    def freeze(self) -> None:
        """Make the arrays read-only."""
        for its in vars(self).values():
            if isinstance(its, np.ndarray):
                its.flags.writeable = False

    def changed(self, **changes: Any) -> Self:
        """The same with other fields."""
        return type(self)(**self.stored | changes)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        n, d, *k = self.values.shape
        outputs = f" x {k[0]} outputs" if k else ""
        return f"<{type(self).__name__}: {count(n, 'row')} x {count(d, 'feature')}{outputs}>"

    def _drawn(self, width: int) -> RenderableType:
        drawn: RenderableType = drawer("terminal").table(self.explanation, width, self.kind)
        return drawn

    def __str__(self) -> str:
        is_read = vars(self).get("explanation") is not None
        return super().__str__() if is_read else repr(self)

    def _repr_html_(self) -> str:
        return str(drawer("html").fragment(self.explanation, of=self.kind))

    def __getitem__(self, key: Any) -> Self:
        """Select rows, features and outputs, as of an explanation: ``[0]``, ``[:, "bmi"]``, ``[..., -1]``."""
        return self._read_from(self.explanation[key])

    def _read_from(self, explanation: Any) -> Self:
        read: Self = getattr(explanation, self.kind)
        return read

    @property
    def converged(self) -> bool:
        """Whether every row is exact, or its errors are within the tolerance."""
        return bool(self.row_converged.all())

    @property
    def method(self) -> Literal["exact", "sampled"]:
        """The text "sampled" if any number has an error, else "exact"."""
        return "sampled" if self.standard_errors.any() else "exact"

    @property
    def row_warnings(self) -> tuple[tuple[RowWarning, ...], ...]:
        """Warnings about each row, without those that are about the other reading alone."""
        raise NotImplementedError

    def top(self, k: int = 5) -> Self:
        """Return the ``k`` features with the largest mean absolute value, largest first.

        The mean goes over rows and outputs; ties keep their order.
        """
        return self._read_from(self.explanation._at_features(self.largest(k)))  # noqa: SLF001 - its reading

    def largest(self, k: int) -> Ints:
        """Positions of the ``k`` features with the largest mean absolute value, largest first."""
        if not is_count(k):
            raise InputError(f"top(k={k!r}): k is the number of features; pass 1 or more")
        # the sum orders as the mean does, and is defined without rows
        sizes = np.abs(self.values).sum(axis=(0, *range(2, self.values.ndim)))
        return by_size(sizes)[:k]

    def reasons(
        self, k: int = 4, catalogue: Mapping[str, Any] | None = None, **options: Any
    ) -> tuple[str, ...]:
        """Return the k largest of a row as sentences: see `Explanation.reasons`."""
        return self.explanation.reasons(k, catalogue, of=self.kind, **options)

    @property
    def plot(self) -> Any:
        """Pictures of these numbers: ``.bar(row=0)``, ``.beeswarm()``, ``.dependence("bmi")``."""
        return drawer("plots").Plots(self.explanation, of=self.kind)

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow", "pairs"] = "pandas") -> Any:
        """Return a long data frame: one line a row, feature and output; of contributions also of "pairs"."""
        return drawer("exports").frame_of_attribution(self, backend)

    @property
    def stored(self) -> dict[str, Any]:
        """The fields as they are: R² is None where it is not computed yet."""
        return {each.name: vars(self)[each.name] for each in fields(self) if each.init}

    def select(self, positions: Mapping[str, Any], *, drops_axis: bool) -> Self:
        """Return those at positions of the rows, "n", features, "d", and outputs, "k"."""
        stored, several = self.stored, self.values.ndim == 3
        part = partial(selected, positions=positions, several=several, drops_axis=drops_axis)
        arrays = {
            name: part(stored[name], axes) for name, axes in self._axes.items() if stored[name] is not None
        }
        return type(self)(**stored | arrays)


def _are_accurate(computed: RowContributions, accuracy: Tolerance | None) -> Bools:
    """Whether errors of rows, those of the base among them, are within the accuracy."""
    if accuracy is None:
        return np.ones(len(computed.base), dtype=np.bool_)
    return accuracy.with_base(computed.values, computed.errors, computed.base_errors) <= 1.0


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Contributions(Attributions):
    """Shapley values of the features at n rows: ``base_values`` + Σ_j ``values`` = the model's prediction.

    Of a table the game is v(S) = E_w[f | the columns of S have the row's values]: w is the row's own law,
    that of LIME's limit. Each column keeps the row's value with probability t, and β_j(t) is what it then
    adds on average: φ_j = ∫₀¹ β_j(t) dt. Where β_j(0) and β_j(1) differ, the column interacts with others.

    They are exact where the model was read and the integral has a closed form. Else walks estimate them: the
    row's values replace those of a drawn row one after the other, in random order, until standard errors, the
    base's among them, are below the explainer's ``tolerance``, or 1.5 % of the largest contribution, or the
    row's calls are used.
    Probabilities of boosted trees, whose margin is read, are walked without a call: errors are mostly below
    1 % of the largest contribution.
    Under ``law="joint"`` the rows are the background's own, with their weights; for an infinite bandwidth
    these are interventional Shapley values against the whole background. They are exact for these rows, of
    trees, sums and kernels, and of other models that were read if columns are few.

    Of words, superpixels, segments and parts of several inputs the game is v(S) = f(S shown, all others
    hidden), whatever the bandwidth. They are exact wherever the coefficients are. Else weighted least squares
    estimate them from answers to subsets, those of the coefficients, within ``max_calls`` for both.

    Attributes
    ----------
    values : (n, d) or (n, d, k)
        φ, in the order of the explanation's features and outputs.
    base_values : (n,) or (n, k)
        E_w f, the model's average around the row; that of the drawn rows where E_w f is not known. The
        model's answer with everything hidden, f(∅), of a text, an image or a series.
    standard_errors : as ``values``
        0 where exact; ±1.96 of them are a 95 % interval.
    base_errors : as ``base_values``
        Standard errors of these; NaN in an explanation that was stored without them.
    alone : as ``values``
        β(0) = E_w[f | x_j = ξ_j] - E_w f, what the value adds by itself. Sampled: the mean over the walks
        in which column j comes first, NaN without any. It has fewer of them than ``values``, and no error.
        For texts, images and series f({j}) - f(∅), from calls of the model.
    last : as ``values``
        β(1) = f(ξ) - E_w[f | all other columns have the row's values], what it adds to the others;
        likewise. For texts, images and series f(all) - f(all but j), from calls of the model.
    calls : (n,)
        Model calls for the contributions alone; 0 where the form of a read model answers.
    row_converged : (n,)
        Whether a row is exact, or its errors and that of its base are within ``tolerance=``; without one
        1.5 % of the largest contribution to each output.

    Raises
    ------
    InputError
        When they are first read, if the model was fitted again since the rows were explained, ``max_calls``
        is too few, or ``method="exact"`` asks for contributions that have no closed form.
    ModelError
        When they are first read, if the model fails.

    References
    ----------
    Shapley 1953; Owen 1972, "Multilinear extensions of games"; Lundberg & Lee 2017, for the weights of
    subsets. Grabisch & Roubens 1999, for pairs; Lundberg et al. 2020, for their matrix.

    Examples
    --------
    >>> import limes
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> explanation = limes.TabularExplainer(Ridge(alpha=0).fit(X, [0, 2, 1, 3]), X)([[1.0, 1.0]])
    >>> account = explanation.contributions
    >>> bool(np.isclose(account.base_values + account.values.sum(axis=1), explanation.predictions).all())
    True
    """

    kind = "contributions"
    _axes: ClassVar[Mapping[str, str]] = {**CONTRIBUTION_AXES, **PAIR_AXES}

    base_values: Floats
    base_errors: Floats
    alone: Floats
    last: Floats
    # where pairs were stored: `pairs` computes others
    known_pairs: Floats | None = None
    known_pair_errors: Floats | None = None

    @classmethod
    def of_rows(
        cls,
        computed: RowContributions,
        features: Any = slice(None),
        outputs: Any = 0,
        accuracy: Tolerance | None = None,
    ) -> Contributions:
        """Return those at positions of features and outputs, a number for one output that has no axis.

        The ``accuracy`` is that of exact ones unless given.
        """

        def chosen(numbers: Floats) -> Floats:
            some = np.ascontiguousarray(numbers[..., outputs])  # sums have the bits of those of a selection
            some.flags.writeable = False
            return some

        return cls(
            values=chosen(computed.values[:, features]),
            standard_errors=chosen(computed.errors[:, features]),
            base_values=chosen(computed.base),
            base_errors=chosen(computed.base_errors),
            alone=chosen(computed.alone[:, features]),
            last=chosen(computed.last[:, features]),
            calls=computed.calls,
            row_converged=_are_accurate(computed, accuracy),
        )

    def within(self, group: Any) -> WithinGroup:
        """How the columns of a group share its contribution: Owen's value.

        The group's columns take the row's values one after the other, in all orders, while other groups have
        theirs or not as a whole; those that have not yet have the values of one row of the background.

        Parameters
        ----------
        group
            Name of a group of ``groups=``, or its position among the features.

        Returns
        -------
        WithinGroup
            ``names`` of the columns, ``values`` (n, m) or (n, m, k) and their ``standard_errors``. Exact
            where contributions are, of up to 8 columns, but under ``law="joint"``; else orders are drawn,
            with about ``max_calls`` calls of a function a row.

        Raises
        ------
        InputError
            If the feature is no group, the explanation was stored and has no explainer any more, or
            ``max_calls`` are fewer than 4 (m + 1).

        References
        ----------
        Owen 1977, "Values of games with a priori unions".

        Examples
        --------
        >>> import limes
        >>> import numpy as np
        >>> from sklearn.linear_model import Ridge
        >>> X = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
        >>> model = Ridge(alpha=0.1).fit(X, [0, 2, 1, 3])
        >>> account = limes.TabularExplainer(model, X, groups={"side": ["x1", "x2"]})(X[:1]).contributions
        >>> shares = account.within("side")
        >>> shares.names, bool(np.allclose(shares.values.sum(axis=1), account.values[:, 1]))
        (('x1', 'x2'), True)
        """
        explanation = self.explanation
        place = Names(explanation.feature_names).one("within: ", group)
        if explanation.fit is None or not len(self):
            raise InputError("within() needs rows and their explainer: explain the rows again")
        shares: WithinGroup = explanation.fit.within(place)
        return shares

    @property
    def row_warnings(self) -> tuple[tuple[RowWarning, ...], ...]:
        """Warnings about each row, without those that are about LIME's coefficients alone."""
        return account_warnings(self.explanation, self, range(len(self)))

    @property
    def total(self) -> Floats:
        """Return what the base and the values add up to, (n,) or (n, k): the model's predictions."""
        return self.explanation.predictions

    @property
    def pairs(self) -> Floats:
        """Which columns act together, (n, d, d) or (n, d, d, k), computed when it is first read.

        With the Shapley interaction index φ_ij = ∫₀¹ (β_j(t | i kept) - β_j(t | i drawn)) dt, pairs have
        φ_ij / 2 at (i, j) and at (j, i), and the diagonal what is left of the contribution, φ_i - ½ Σ_j φ_ij.
        The rows add up to ``values``, the whole to the prediction less the base. A selection of features
        keeps the pairs of these, and their diagonal as it is. They are exact where the contributions of a
        table are; else they are estimated from at most another ``max_calls`` calls a row, from as few as
        contributions need, with wide errors. An InputError is
        raised of texts, images and series, which have none, and in explanations from files that were
        written without ``to_json(pairs=True)``.

        Examples
        --------
        >>> import limes
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> explainer = limes.TabularExplainer(DecisionTreeRegressor(max_depth=3).fit(X, y), X)
        >>> account = explainer.contributions(X[:2]).contributions
        >>> account.pairs.shape, abs(account.pairs.sum(axis=2) - account.values).max() < 1e-9
        ((2, 10, 10), np.True_)
        """
        return self._of_pairs[0]

    @property
    def pair_errors(self) -> Floats:
        """Standard errors of ``pairs``, 0 where exact."""
        return self._of_pairs[1]

    @property
    def _of_pairs(self) -> tuple[Floats, Floats]:
        """Pairs and their errors; what was computed stays out of the fields, which are stored."""
        if self.known_pairs is not None and self.known_pair_errors is not None:
            return self.known_pairs, self.known_pair_errors
        state = vars(self)
        if "_pairs" not in state:
            fit = getattr(self.explanation, "fit", None)
            if fit is None and "change of" in getattr(self.explanation, "provenance", ()):
                raise InputError(
                    "a difference of two accounts has the difference of their pairs: subtract "
                    "contributions.pairs of the two explanations"
                )
            if fit is None:
                raise InputError(
                    "pairs of contributions are not stored here, and there is no explainer to compute them: "
                    "read them from the explanation that an explainer returned, or store them with "
                    "to_json(pairs=True)"
                )
            halves, errors = fit.pairs()
            diagonal = np.arange(halves.shape[1])
            halves[:, diagonal, diagonal] += self.values
            of_both = np.hypot(errors[:, diagonal, diagonal], self.standard_errors)
            errors[:, diagonal, diagonal] = of_both
            for each in (halves, errors):
                each.flags.writeable = False
            state["_pairs"] = halves, errors
        pairs: tuple[Floats, Floats] = state["_pairs"]
        return pairs

    def at(self, rows: Sequence[int]) -> Contributions:
        """Return those of rows, by position."""
        return Contributions(**{name: its[list(rows)] for name, its in self.present.items()})

    @property
    def present(self) -> dict[str, Any]:
        """The fields, without pairs unless these are stored."""
        return {name: its for name, its in self.stored.items() if its is not None}

    def with_pairs(self) -> Contributions:
        """The same with pairs among the fields."""
        return self.changed(known_pairs=self.pairs, known_pair_errors=self.pair_errors)


# Contributions whose order people look at, at least of this share of the largest; codes of warnings that are
# about contributions alone
_LEAST_SEEN = 0.01
_LOOKED_AT, OF_ERRORS = 4, ("contribution errors", "contribution order")


def account_warnings(
    explanation: Any, account: Contributions, rows: Sequence[int]
) -> tuple[tuple[RowWarning, ...], ...]:
    """Warnings about the contributions (m, d, ...) of some rows: of the rows, the model, and their errors."""
    written, names = vars(explanation)["row_warnings"], explanation.output_names
    errors = account.standard_errors.reshape(len(rows), -1, len(names))
    values = account.values.reshape(errors.shape)
    of_base = np.nan_to_num(account.base_errors.reshape(len(rows), -1), posinf=np.inf)
    # answers for coefficients serve contributions, too
    spent, record = np.where(account.calls > 0, account.calls + explanation.calls[rows], 0), []
    for i, row in enumerate(rows):
        its = [w for w in written[row] if w.reading != "coefficients" and w.code not in OF_ERRORS]
        if errors[i].any() or of_base[i].any():
            calls = None if account.row_converged[i] else int(spent[i])
            its += _about_errors(explanation, row, values[i], errors[i], of_base[i], calls)
        record.append(tuple(its))
    return tuple(record)


def _about_errors(
    explanation: Any, row: int, values: Floats, errors: Floats, of_base: Floats, calls: int | None
) -> list[RowWarning]:
    """Warnings about one row's contributions (d, k): that errors are large, or the order not certain.

    ``calls`` are those after which errors, or those of the base (k,), are too large; None if they are not.
    """
    names, sentences = explanation.feature_names, [""] * values.shape[1]
    # what is rounding beside the prediction, or no bar to see beside the largest, has no place in an order
    rounding = DIFFERENCE_ROUNDING * np.abs(explanation.predictions[row]).reshape(-1)
    for k, (its, spread) in enumerate(zip(values.T, errors.T, strict=True)):
        order, size = by_size(np.abs(its))[: _LOOKED_AT + 1], np.abs(its)
        tied = [
            f"{names[a]} and {names[b]}"
            for a, b in pairwise(order.tolist())
            if size[a] - size[b] < CONFIDENCE * np.hypot(spread[a], spread[b])
            and size[a] > max(rounding[k], _LEAST_SEEN * size[order[0]])
        ]
        sentences[k] = sentence("contribution order", pairs="; ".join(tied)) if tied else ""
    warnings = [*by_output(sentences, explanation.output_names, "contribution order")]
    if calls is not None:
        moves = np.abs(values).max(axis=0) > rounding
        of_values, its_base = (
            error_shares(values[:, moves], some[..., moves]).max(initial=0.0)
            for some in (errors, of_base[None])
        )
        share, most = max(of_values, its_base), CONFIDENCE * float(errors.max())
        facts = {
            "share": f"{share:.2g} times the size" if share >= 1 else percentage(share),
            "spent": f" after {count(calls, 'model call')}" if calls else "",
            "more": ": pass a larger max_calls" if calls else "",
            "most": f"at most {number(most, 2)}" if np.isfinite(most) else "of any size",
        }
        name = ("base" if its_base > of_values else "") if moves.any() else "unseen"
        warnings.insert(0, RowWarning.of("contribution errors", name, **facts))
    return warnings


def error_shares(values: Floats, errors: Floats) -> Floats:
    """Errors (..., m, k) as shares of the largest of contributions (..., d, k); 0 where all are 0."""
    largest = np.abs(values).max(axis=-2, keepdims=True, initial=0.0)
    return np.asarray(np.divide(errors, largest, out=np.zeros(errors.shape), where=largest > 0))


class _LateField:
    """A field that is stored beside the others, and may be computed when it is first read."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __set__(self, owner: Any, value: Any) -> None:
        vars(owner)[self._name] = value


class _FidelityField(_LateField):
    """R² of coefficients, which the explanation's fit computes when it is first read."""

    def __get__(self, coefficients: Any, owner: type) -> Any:
        if coefficients is None:
            return None  # the default of the dataclass
        state = vars(coefficients)
        explanation = coefficients.explanation
        # threads may compute it at the same time, and get the same numbers
        if state[self._name] is None and explanation is not None and explanation.fit is not None:
            state["fidelity"], state["fidelity_errors"] = explanation.fit.fidelity()
        return state[self._name]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Coefficients(Attributions):
    """LIME's limit: coefficients of the local linear surrogates of n rows.

    The surrogate of a row is ``intercept + sum_j value_j * [condition j holds]``: a value is how much the
    surrogate changes if the condition holds rather than not. A slope is per unit of its column.

    Attributes
    ----------
    values, standard_errors : (n, d) or (n, d, k)
        Coefficients and their standard errors, 0 where a coefficient is exact. A text, image, series or
        composite input may have a feature that looks the same when it is hidden: the model is never asked
        without it, and its coefficient is NaN, with an infinite error.
    intercepts, surrogate_predictions, fidelity : (n,) or (n, k)
        Intercepts of the surrogate, its predictions at the row; the weighted R², 1 where the model does not
        vary. ``fidelity`` is computed when it is first read, unless it is known.
    calls : (n,)
        Model calls for this row alone: its prediction, and what its coefficients rest on.
    row_converged : (n,)
        Whether a row is exact, or its errors are within ``tolerance=`` and to be trusted; without a tolerance
        1.5 % of the largest coefficient of each output. Errors are not to be trusted where all or nearly all
        answers are alike, few rows decide a coefficient, too few rows count, features change together or
        hardly change, R² cannot be estimated, or sampling was cut short.
    effective_rows : (n,), or None
        Effective sample size (Σ w)² / Σ w² of the perturbed rows behind each row; None where exact.
    shares, share_errors : (n, d) or (n, d, k), or None
        Each feature's part of the fidelity, with standard errors; None where exact.
    surrogate_errors : (n,) or (n, k), or None
        Standard errors of the surrogate's predictions; None where exact.
    fidelity_errors : (n,) or (n, k)
        Standard errors of the fidelity; 0 where exact, inf where few answers decide it, which is NaN then.
    controls : n texts, or None
        The control variate of each row; "" where a row is exact among sampled ones, None where all are.

    References
    ----------
    Garreau & von Luxburg 2020 and 2022; Mardaoui & Garreau 2021.

    Examples
    --------
    >>> import limes
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> explanation = limes.TabularExplainer(Ridge(alpha=0).fit(X, [0, 2, 1, 3]), X, bins=None)([[1.0, 1.0]])
    >>> explanation.coefficients.values.round(9).tolist()
    [[1.0, 2.0]]
    """

    kind = "coefficients"
    _axes = COEFFICIENT_AXES

    intercepts: Floats
    surrogate_predictions: Floats
    fidelity: Floats = _FidelityField()  # type: ignore[assignment]
    fidelity_errors: Floats = _FidelityField()  # type: ignore[assignment]
    shares: Floats | None = None
    share_errors: Floats | None = None
    surrogate_errors: Floats | None = None
    effective_rows: Floats | None = None
    controls: tuple[str, ...] | None = None

    @property
    def row_warnings(self) -> tuple[tuple[RowWarning, ...], ...]:
        """Warnings about each row, without those that are about contributions alone."""
        record = self.explanation._warnings_of_coefficients()  # noqa: SLF001 - its reading
        return tuple(tuple(w for w in row if w.reading != "contributions") for row in record)

    @property
    def base_values(self) -> Floats:
        """The intercepts."""
        return self.intercepts

    @property
    def total(self) -> Floats:
        """Return what the intercepts and the values add up to, (n,) or (n, k): the surrogate's predictions.

        A slope adds its product with the row's value.
        """
        return self.surrogate_predictions

    @property
    def local_errors(self) -> Floats:
        """Error of the surrogate at the rows themselves: prediction - surrogate's, (n,) or (n, k).

        Its standard errors are ``surrogate_errors``.
        """
        return self.explanation.predictions - self.surrogate_predictions

    @property
    def row_methods(self) -> tuple[str, ...]:
        """Method of each row, "exact" or "sampled".

        Rows of a model that was read are exact, but for those whose quadrature has no nine digits.
        """
        if self.controls is None:
            return (self.explanation.method,) * len(self)
        return tuple("sampled" if control else "exact" for control in self.controls)

    def select(self, positions: Mapping[str, Any], *, drops_axis: bool) -> Coefficients:
        """Select positions of the rows, "n", features, "d", and outputs, "k"; exact ones have no errors."""
        some = super().select(positions, drops_axis=drops_axis)
        if self.controls is None:
            return some
        controls = tuple(self.controls[i] for i in positions["n"])
        stored = some.stored | {"controls": controls}
        return Coefficients(**stored if any(controls) else stored | dict.fromkeys(OF_SAMPLES))


def requested(explanation: Any, reading: str) -> Any:
    """Return a reading that was asked for, "coefficients" or "contributions"; None if it was not."""
    return vars(explanation)[reading]


def is_by_covers(explanation: Any) -> bool:
    """Whether the law is that of trees' covers, which has contributions alone."""
    return bool(vars(explanation)["provenance"].get("law") == "covers")


def has_no_surrogate(explanation: Any) -> bool:
    """Whether the law has contributions alone: that of covers, or one other row."""
    return is_by_covers(explanation) or NO_SURROGATE in vars(explanation)["provenance"]


def has_coefficients(explanation: Any) -> bool:
    """Whether an explanation has LIME's coefficients, or what computes them."""
    computes = vars(explanation)["fit"] is not None and not has_no_surrogate(explanation)
    return computes or requested(explanation, "coefficients") is not None


Kind = TypeVar("Kind", bound="Explanation")


def changed(explanation: Kind, **changes: Any) -> Kind:
    """Return the same with other fields; a reading that was not asked for stays so."""
    stored = {each.name: vars(explanation)[each.name] for each in fields(explanation)}
    return type(explanation)(**stored | changes)


def coarse_level(explanation: Kind, stored: Mapping[str, Any]) -> Kind:
    """The coarse level of an account at two levels, which the provenance of the fine one holds.

    It has values and errors of sentences, or of coarse rectangles.
    """
    several = explanation.predictions.ndim == 2
    outputs = [stored["outputs"].index(name) for name in explanation.output_names]
    values, errors = (
        np.asarray(stored[name])[None, :, outputs if several else outputs[0]]
        for name in ("values", "standard_errors")
    )
    account, unknown = requested(explanation, "contributions"), np.full(values.shape, np.nan)
    numbers = {"values": values, "standard_errors": errors}
    if account is not None:
        account = account.changed(**numbers, alone=unknown, last=unknown)
    coefficients = requested(explanation, "coefficients")
    if coefficients is not None:
        no_fit = {
            "fidelity": np.full(explanation.predictions.shape, np.nan),
            "fidelity_errors": np.full(explanation.predictions.shape, np.inf),
        }
        coefficients = coefficients.changed(**numbers, **no_fit)
    return changed(
        explanation,
        coefficients=coefficients,
        contributions=account,
        feature_names=tuple(stored["names"]),
        conditions=(tuple(stored["conditions"]),),
        data=np.array([stored["data"]], dtype=object),
        provenance={name: fact for name, fact in explanation.provenance.items() if name != "coarse"}
        | stored["picture"],
    )


class ReadingField(_LateField):
    """The field of a reading: what was asked for; what was not, the fit computes when it is first read.

    Only what was asked for is stored, and shown by other calls.
    """

    def __get__(self, explanation: Any, owner: type) -> Any:
        if explanation is None:
            return None  # the default of the dataclass
        state = vars(explanation)
        key = f"_{self._name}"
        if key not in state:
            reading = state[self._name]
            if reading is None:
                reading = getattr(explanation._computed(self._name), self._name)()  # noqa: SLF001 - its field
            state[key] = reading.of(explanation)
        return state[key]
