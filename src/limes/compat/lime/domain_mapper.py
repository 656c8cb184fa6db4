"""From positions of features to what they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limes.explanation import Explanation as Told

Pairs = list[tuple[int, float]]

__all__ = ["DomainMapper", "Pairs"]


class DomainMapper:
    """Names of features by their positions; subclasses know the kind of data.

    ``page_options`` are what :meth:`Explanation.as_html` takes beside its own options.
    """

    page_options: frozenset[str] = frozenset()

    def map_exp_ids(self, exp: Pairs, **kwargs: Any) -> list[tuple[Any, float]]:  # noqa: ARG002 - lime's signature
        """Replace positions by names."""
        return [*exp]

    def on_page(self, told: Told, **kwargs: Any) -> Told:  # noqa: ARG002 - of the kind of data
        """An explanation as pages show it, with options of `page_options`."""
        return told

    def visualize_instance_html(
        self,
        exp: Pairs,  # noqa: ARG002 - lime's signature
        label: int,  # noqa: ARG002
        div_name: str,  # noqa: ARG002
        exp_object_name: str,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> str:
        """Nothing: pages are limes' own and run no script."""
        return ""
