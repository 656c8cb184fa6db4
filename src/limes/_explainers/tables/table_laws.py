"""The laws of perturbed rows by name, columns independent or joint, and the options that choose one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from limes._arrays import Floats, streams
from limes._checks import check_choice
from limes._explainers.options import SamplingOptions
from limes._explainers.sampling_warnings import OCCURRING, PERTURBED, SampleKind
from limes.designs._joint import JointFamily
from limes.designs._marginals import LAWS
from limes.designs._product import ProductFamily
from limes.designs._weights import WEIGHTS
from limes.exceptions import InputError

Family: TypeAlias = ProductFamily | JointFamily

# Rows of a larger background that are used, unless max_calls says otherwise: around each explained row all of
# them are compared with it
_MOST_ROWS = 1 << 17
# Key of the stream that chooses them, where those of explained rows have the row's hash
_KEY = 0x6A6F696E


class TableLaw(Protocol):
    """What perturbed rows are.

    Attributes
    ----------
    in_bin
        Name of the law inside a bin, for one column by itself.
    sample
        What a sample of it consists of, in words.
    """

    @property
    def in_bin(self) -> str: ...

    @property
    def sample(self) -> SampleKind: ...

    def check(self, *, bins: Any, weights: str, method: str, hold: Any) -> None:
        """Raise InputError if other options do not go with the law."""
        ...

    def family(
        self, product: ProductFamily, background: Floats, *, max_calls: int | None, seed: int
    ) -> Family:
        """Return the designs of a background (N, d), given those with independent columns.

        Of a larger background ``max_calls`` rows are used, chosen by the seed.
        """
        ...


@dataclass(frozen=True)
class ProductLaw:
    """Columns are independent, and each is drawn from its bins."""

    in_bin: str
    sample: SampleKind = PERTURBED

    def check(self, *, bins: Any, weights: str, method: str, hold: Any) -> None:
        pass

    def family(
        self,
        product: ProductFamily,
        background: Floats,  # noqa: ARG002 - its laws are learnt
        *,
        max_calls: int | None,  # noqa: ARG002
        seed: int,  # noqa: ARG002
    ) -> Family:
        return product


@dataclass(frozen=True)
class JointLaw:
    """The background's own rows, weighted by the cells that they change."""

    in_bin: str = "truncnorm"
    sample: SampleKind = OCCURRING

    def check(self, *, bins: Any, weights: str, method: str, hold: Any) -> None:
        if hold:
            raise InputError(
                f"law='joint' explains by rows that occur, and few of them share the values that "
                f"hold={hold!r} asks for: use another law, or a background of such rows"
            )
        if bins is None or (isinstance(bins, str) and bins == "auto"):
            raise InputError(
                f"law='joint' compares cells, and bins={bins!r} has none: pass bins='quartile', or "
                "any other bins"
            )
        if weights != "bins":
            raise InputError(f"law='joint' counts changed cells: pass weights='bins', not {weights!r}")
        if method == "exact":
            raise InputError(
                "law='joint' averages over the background's rows, which are a sample of their population: "
                "coefficients have standard errors, and method='exact' does not go with it; use 'auto'"
            )

    def family(
        self, product: ProductFamily, background: Floats, *, max_calls: int | None, seed: int
    ) -> Family:
        most = max_calls or _MOST_ROWS
        if len(background) <= most:
            return JointFamily(product, background)
        (stream,) = streams(seed, _KEY, 1)
        chosen = np.random.default_rng(stream).choice(len(background), most, replace=False)
        return JointFamily(product, background[np.sort(chosen)])


TABLE_LAWS: Mapping[str, TableLaw] = {**{name: ProductLaw(name) for name in LAWS}, "joint": JointLaw()}


@dataclass(frozen=True)
class TabularOptions:
    """Options of :class:`limes.TabularExplainer`; an InputError if one is not usable."""

    output: Any
    bins: Any
    target: Any
    law: str
    bandwidth: float | None
    weights: str
    ridge: float
    sampling: SamplingOptions
    hold: tuple[str, ...] = ()
    by_predict: bool = False  # whether the user passed a model's predict, and not the model

    def __post_init__(self) -> None:
        check_choice("law", self.law, tuple(TABLE_LAWS))
        check_choice("weights", self.weights, tuple(WEIGHTS))
        method = self.sampling.method
        self.table_law.check(bins=self.bins, weights=self.weights, method=method, hold=self.hold)

    @cached_property
    def table_law(self) -> TableLaw:
        """The law that ``law`` names."""
        return TABLE_LAWS[self.law]

    @property
    def weights_name(self) -> str:
        """Name of the weights: slopes always have smooth ones."""
        return "euclidean" if self.bins is None else self.weights
