"""A certificate as a card: errors of a rule, their bounds, and whether the rule is the best of its size."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from limes._explanation.view import certificate_lines
from limes._explanation.wording import number
from limes._show import cards

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType

    from limes._explanation.fields import Certificate


def one_line_summary(certificate: Certificate) -> str:
    """Return the fresh error and its bound."""
    return (
        f"<Certificate: squared error {number(certificate.fresh_fidelity, 3)} on fresh rows, at most "
        f"{number(certificate.bounds['fidelity'], 3)} with {certificate.confidence:.0%} confidence>"
    )


def card(certificate: Certificate) -> cards.Card:
    """Return errors and bounds as a table."""
    return cards.Card(
        title="Certificate",
        subtitle=certificate.rule,
        rows=certificate_lines(asdict(certificate)),
        remarks=(
            f"Bounds hold together with {certificate.confidence:.0%} confidence, as long as predictions stay "
            "within the scale.",
        ),
    )


def plain_text(certificate: Certificate) -> str:
    """Return what is printed, without colours."""
    return cards.plain_text(card(certificate))


def printed(certificate: Certificate, options: ConsoleOptions) -> RenderableType:
    """Return what rich prints."""
    return cards.printed(card(certificate), options)
