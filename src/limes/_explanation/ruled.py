"""Explanations by rules: the methods of sparse explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from limes._explanation.fields import Certificate
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Ruled:
    """An explanation whose rows may be rules with certificates."""

    certificates: tuple[Mapping[str, Any], ...]

    if TYPE_CHECKING:

        def __len__(self) -> int: ...

    @property
    def certificate(self) -> Certificate:
        """The certificate of a sparse explanation; for several rows use ``explanation[i].certificate``.

        Raises
        ------
        InputError
            If the explanation is not sparse, or not of one row.
        """
        return Certificate(**self._certified(None))

    def rule(self, row: int | None = None) -> str:
        """Return a sparse explanation as text: ``0.5 [income > 70] - 0.75 [debt > 35]  ->  score = -0.25``.

        Raises
        ------
        InputError
            If the explanation is not sparse, or has several rows and ``row`` is None.
        """
        return str(self._certified(row)["rule"])

    def rules(self) -> tuple[str, ...]:
        """Return the rules of all rows as texts, in their order.

        Raises
        ------
        InputError
            If the explanation is not sparse.
        """
        return tuple(self.rule(row) for row in range(len(self)))

    def _certified(self, row: int | None) -> Mapping[str, Any]:
        if not self.certificates:
            raise InputError("only explanations of limes.SparseExplainer have a certificate and a rule")
        if row is None and len(self) != 1:
            raise InputError(f"the explanation has {len(self)} rows: choose one, as in explanation[0]")
        return self.certificates[row or 0]
