"""Explain models of several inputs at once: a text, an image, a series, a row of a table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import Any, Never, Unpack, cast

import numpy as np

from limes._arrays import Bools, Floats, Objects
from limes._checks import check_choice, did_you_mean, refuse_in_call
from limes._explainers.backgrounds import check_items, split_rows
from limes._explainers.frames import (
    as_table,
    by_part,
    check_columns,
    columns_of_frame,
    parts_of_table,
    rows_of,
)
from limes._explainers.hierarchy import GroupedUnits, check_hierarchy
from limes._explainers.image import ImagePart
from limes._explainers.input_groups import PARTS, GroupedInput, InputGroups
from limes._explainers.masked import InputModel, InputPart, InputPiece, MaskedExplainer, MaskedInput
from limes._explainers.options import MaskedKeywords, complete, takes
from limes._explainers.series import SeriesPart
from limes._explainers.text import TextPart
from limes.designs._exchangeable import BANDWIDTH, ExchangeableDesign
from limes.exceptions import InputError
from limes.models._calling.hugging_face import Estimator, adapted
from limes.models._reading import CannotRead
from limes.models.forms._base import Form

# Kinds that need no options
_BY_NAME: Mapping[str, type[TextPart] | type[ImagePart] | type[SeriesPart]] = {
    "text": TextPart,
    "image": ImagePart,
    "series": SeriesPart,
}
# Entries of a picture that go by the conditions of features
_BY_CONDITION = ("spans", "superpixels", "stretches")


@dataclass(frozen=True, eq=False)
class CompositeInput(MaskedInput):
    """The inputs of one prediction, each taken apart."""

    pieces: Mapping[str, InputPiece]  # by the names of the parts
    kept: Bools | None = None  # the features that can be hidden, among those of all parts; None if all can

    @classmethod
    def parse(cls, parts: Mapping[str, InputPart], raw: Any) -> CompositeInput:
        raw = by_part(parts, raw)
        if not isinstance(raw, Mapping):
            raise InputError(f"pass a mapping with the parts {list(parts)}, got {type(raw).__name__}")
        for name in raw:
            if name not in parts:
                raise InputError(f"there is no part {name!r}{did_you_mean(name, parts)}")
        pieces = {}
        for name, part in parts.items():
            if name not in raw:
                raise InputError(f"the part {name!r} is missing")
            try:
                pieces[name] = part.parse(raw[name])
            except InputError as error:
                raise InputError(f"part {name!r}: {error}") from None
        return cls(pieces)

    @cached_property
    def ends(self) -> dict[str, tuple[int, int]]:
        ends = list(accumulate((len(piece.names) for piece in self.pieces.values()), initial=0))
        return dict(zip(self.pieces, pairwise(ends), strict=True))

    @property
    def size(self) -> int:
        return max(end for _, end in self.ends.values()) if self.kept is None else int(self.kept.sum())

    @property
    def names(self) -> tuple[str, ...]:
        return self._joined("names")

    @property
    def conditions(self) -> tuple[str, ...]:
        return self._joined("conditions")

    def _joined(self, attribute: str) -> tuple[str, ...]:
        return tuple(
            f"{name}: {text}" for name, piece in self.pieces.items() for text in getattr(piece, attribute)
        )

    @property
    def data(self) -> Objects:
        return np.concatenate([piece.data for piece in self.pieces.values()])

    @property
    def key(self) -> Hashable:
        return tuple(piece.key for piece in self.pieces.values())

    @property
    def changes(self) -> Bools:
        return np.concatenate([_changes(piece) for piece in self.pieces.values()])

    def only(self, kept: Bools) -> CompositeInput:
        return replace(self, kept=kept)

    @cached_property
    def draws(self) -> int:
        return check_items(prod(_draws(piece) for piece in self.pieces.values()))

    def compose(self, z: Floats) -> dict[str, Any]:
        z, items = split_rows(z, self.draws)
        if self.kept is not None:
            shown, z = z, np.ones((len(z), self.kept.size))
            z[:, self.kept] = shown
        batch = {}
        for name, piece in self.pieces.items():
            rows, draws = z[:, slice(*self.ends[name])], _draws(piece)
            if draws > 1:  # the parts' items are the digits of the whole's
                rows, items = np.column_stack([rows, items % draws]), items // draws
            batch[name] = piece.compose(rows)
        return batch

    def composer(self, model: Any) -> Callable[[Floats], Any]:
        names = columns_of_frame(model)
        if names is None:
            return self.compose
        check_columns(model, self.compose(np.ones((1, self.size + (self.draws > 1)))))
        return lambda z: as_table(self.compose(z), names)

    def over(self, read: Callable[[], Form]) -> Form:  # noqa: ARG002 - whatever the model is
        raise CannotRead("limes reads models of one input, and calls those of several")

    @property
    def picture(self) -> Mapping[str, Any]:
        """The features of each part, and the pictures of the parts that have one."""
        pictures = {
            name: {
                key: {f"{name}: {condition}": place for condition, place in entry.items()}
                if key in _BY_CONDITION
                else entry
                for key, entry in piece.picture.items()
            }
            for name, piece in self.pieces.items()
            if getattr(piece, "picture", {})
        }
        parts = {name: list(ends) for name, ends in self.ends.items()}
        return {"parts": parts} | ({"pictures": pictures} if pictures else {})


@takes(MaskedKeywords, max_calls=1100, batch_size=64)
class CompositeExplainer(MaskedExplainer[CompositeInput | GroupedInput]):
    r"""Explain predictions of a model of several inputs: words, superpixels, segments and columns together.

    The surrogate g = β₀ + Σ_j β_j z_j over the features of all parts minimises E_w (f - g)², with z_j = 1 if
    feature j is shown. Perturbed inputs hide s of all d features: s is uniform on 1, ..., d, then the
    features are uniform. They are weighted towards the inputs by exp(-(1 - √(1 - s/d))² / (2ν²)).

    Parameters
    ----------
    model
        A callable (or anything with ``predict``) that takes a dict of batches, by the names of the parts, and
        returns (n,) or (n, k). A batch is a list of n texts, an array of n images, an array of n series, or a
        table of n rows. An estimator that was fitted on a table with names, as a Pipeline of a
        ColumnTransformer with columns of texts, gets such a table: a text part is named by its column, and
        the columns of row parts are the others. From ``transformers``, whatever the names of the parts: a
        text-classification pipeline, or a pair (network, tokenizer), of two texts, as premise and hypothesis
        are.
    parts
        For such a Pipeline a table, the background: columns that a vectorizer takes are texts, by their
        names, and all others that are used are the part "row". Else a mapping from names to
        :class:`limes.TextPart`, :class:`limes.ImagePart`, :class:`limes.SeriesPart` or
        :class:`limes.TablePart`, or to "text", "image" or "series" for their defaults. Any object with such a
        ``parse`` is a part, too.
    groups
        Features that are shown or hidden together, as one feature. "part": each part is one. Or a mapping of
        names to lists of parts, and of features as they are named: ``{"all texts": ["title", "advert"],
        "size": ["house: rooms", "house: area"]}``. Features in no group stand alone.
    hierarchy
        True: contributions at two levels, of the groups (without ``groups``, of the parts) and of their
        features, which add up to those of their group. Groups have the contributions of the game in which
        they are shown or hidden as a whole, features of up to twelve Owen's value, more of them nearly so
        (docs/sampling.md); ``explanation.levels`` has both levels. It takes parts whose
        hidden features look the same each time; ``bandwidth``, ``ridge``, ``tolerance`` and ``control`` are
        not used.
    bandwidth
        ν > 0, infinity allowed.
    output, top, labels, link
        As for :class:`limes.ImageExplainer`.
    ridge, method, tolerance, max_calls, control, rng, batch_size, retry, contributions, threshold
        As for :class:`limes.TextExplainer`. Where 2^d + 8 is at most ``max_calls``, the model is called on
        all inputs, and the explanation is exact.

    Raises
    ------
    InputError
        If an option is not usable, there is no part, or ``groups`` names what no input can have.

    References
    ----------
    The law of hidden features is that of words in Mardaoui & Garreau, "An Analysis of LIME for Text Data",
    2021, section 2.2.

    Examples
    --------
    >>> import pandas as pd
    >>> import limes
    >>> houses = pd.DataFrame({"rooms": [2, 3, 5], "floor": [0, 1, 1]})
    >>> def price(batch):
    ...     bright = [float("bright" in text) for text in batch["advert"]]
    ...     return 100 * batch["house"]["rooms"] + 50 * pd.Series(bright)
    >>> explainer = limes.CompositeExplainer(
    ...     price, {"advert": "text", "house": limes.TablePart(background=houses)})
    >>> explanation = explainer({"advert": "bright flat", "house": {"rooms": 5, "floor": 1}})
    >>> dict(zip(explanation.feature_names, (explanation.coefficients.values[0].round(6) + 0.0).tolist()))
    {'advert: bright': 50.0, 'advert: flat': 0.0, 'house: rooms': 200.0, 'house: floor': 0.0}

    The advert as a whole beside the house:

    >>> explainer = limes.CompositeExplainer(
    ...     price, {"advert": "text", "house": limes.TablePart(background=houses)}, groups="part")
    >>> explanation = explainer({"advert": "bright flat", "house": {"rooms": 5, "floor": 1}})
    >>> dict(zip(explanation.feature_names, explanation.contributions.values[0].round(6).tolist()))
    {'advert': 50.0, 'house': 200.0}
    """

    _kind = "input"
    _several = "inputs"
    _features = "features"
    _feature = "feature"
    _hidden = "hidden"
    _meaning = "change of the surrogate when the feature is shown against when it is hidden"
    _advice = "use another fill or mask, or a background in which these columns vary"
    _design = staticmethod(ExchangeableDesign.word_deletions)

    def __init__(
        self,
        model: Any,
        parts: Any,
        *,
        groups: Any = None,
        hierarchy: bool = False,
        bandwidth: float = BANDWIDTH,
        ridge: float = 0.0,
        **options: Unpack[MaskedKeywords],
    ) -> None:
        chosen = complete(CompositeExplainer, options)
        self._hierarchy = check_hierarchy(
            hierarchy, chosen, bandwidth=(bandwidth, BANDWIDTH), ridge=(ridge, 0.0)
        )
        by_name = parts_of_table(model, parts) if hasattr(parts, "columns") else _parts_by_name(parts)
        self._parts = by_name
        self._groups = InputGroups.of(by_name, PARTS if hierarchy and groups is None else groups)
        self._group = PARTS if groups is None else "group"
        self._model = InputModel.of(adapted(model), chosen)
        super().__init__(
            model,
            self._parsed,
            chosen,
            bandwidth,
            ridge,
            inputs={name: type(part).__name__ for name, part in by_name.items()},
        )

    def _parsed(self, raw: Any) -> CompositeInput | GroupedInput:
        item = CompositeInput.parse(self._parts, raw)
        return item if self._groups is None or self._hierarchy else self._groups.grouped(item)

    def __call__(self, inputs: Any, *, progress: bool = True, workers: int = 1, **unknown: Never) -> Any:
        """Explain the inputs of one prediction, or of each of several.

        Parameters
        ----------
        inputs
            A mapping from the names of the parts to one input each, or a row of a table with the columns of
            all texts and row parts, gives an explanation of one row; a list of them, or a table, a list of
            explanations. ``explanation.provenance["parts"]`` says which features belong to
            a part: the first, and the one behind the last.
        progress
            Show a progress bar when it takes more than a second or two.
        workers
            Inputs that are explained at the same time, each in its own thread.

        Raises
        ------
        InputError
            If a part is missing, unknown or not usable: says which.
        ModelError
            If the model fails; its ``partial`` has the explanations of the inputs before.
        NotReadableError
            If ``method="exact"``, and there are too many features to ask about all their subsets.
        Interrupted
            If the user stops it (Ctrl-C), with the same ``partial``; a KeyboardInterrupt.
        """
        if unknown:
            refuse_in_call(unknown, CompositeExplainer)
        several = inputs if isinstance(inputs, list | tuple) else rows_of(inputs, self._parts)
        return self._explain(inputs, several, progress=progress, workers=workers)

    def _units(self, item: Any) -> GroupedUnits | None:
        if not self._hierarchy:
            return None
        assert self._groups is not None  # noqa: S101 - parts are groups where there are no others
        if item.draws > 1:
            drawn = next(name for name, piece in item.pieces.items() if _draws(piece) > 1)
            raise InputError(
                f"hierarchy=True takes parts with one fill, and {drawn!r} draws what is hidden from a "
                'background: leave its hide="background" out'
            )
        return GroupedUnits.of(np.arange(item.size), self._groups.of_features(item)[1])

    def _at_levels(self, item: Any, units: Any) -> tuple[CompositeInput, GroupedInput]:  # noqa: ARG002 - all features
        assert self._groups is not None  # noqa: S101 - as units have groups
        return item, self._groups.grouped(item)

    def _remarks(self, item: CompositeInput | GroupedInput) -> tuple[str, ...]:
        model = self._model.model
        if not (isinstance(model, Estimator) and model.texts):
            return ()
        (texts,) = model.inputs_of(item.compose(np.ones((1, item.size))))
        return tuple(filter(None, [model.truncation(*texts)]))


def _draws(piece: InputPiece) -> int:
    return getattr(piece, "draws", 1)


def _changes(piece: InputPiece) -> Bools:
    """Which features change their input when hidden; those of a user's own part are compared."""
    if hasattr(piece, "changes"):
        return piece.changes
    d = len(piece.names)
    batch = piece.compose(1.0 - np.eye(d + 1, d, -1))
    if not isinstance(batch, list | tuple | np.ndarray):
        return np.ones(d, dtype=np.bool_)
    return np.array([not np.array_equal(batch[0], hidden) for hidden in batch[1:]], dtype=np.bool_)


def _parts_by_name(parts: Any) -> dict[str, InputPart]:
    if not isinstance(parts, Mapping) or not parts:
        raise InputError(
            f"parts must be a mapping from names to parts, such as {{'text': 'text'}}; got {parts!r}"
        )
    for name in parts:
        if not isinstance(name, str):
            raise InputError(
                f"the part {name!r} has no text for a name: the model gets a dict by these names"
            )
    return {name: _part(name, part) for name, part in parts.items()}


def _part(name: Any, part: Any) -> InputPart:
    if isinstance(part, str):
        return _BY_NAME[check_choice(f"parts[{name!r}]", part, tuple(_BY_NAME))]()
    if isinstance(part, type) or not hasattr(part, "parse"):
        raise InputError(
            f"parts[{name!r}] must be one of {list(_BY_NAME)}, or a part, as limes.TextPart(); got {part!r}"
        )
    return cast(InputPart, part)
