"""Templates of pages; everything that is put into them is escaped."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import Environment


def rendered(name: str, content: Mapping[str, Any]) -> str:
    """Fill in a template; a name that it asks for and ``content`` lacks is an error."""
    return _environment().get_template(name).render(content)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("limes.show"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
