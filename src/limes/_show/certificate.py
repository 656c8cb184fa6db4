"""A certificate as a card of plain sentences."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING

from limes._explanation.sentences import certificate_sentences
from limes._explanation.wording import number
from limes._show import cards

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType

    from limes._explanation.fields import Certificate


def one_line_summary(certificate: Certificate) -> str:
    """Return the fresh error and its bound."""
    error, bound = math.sqrt(certificate.fresh_fidelity), math.sqrt(certificate.bounds["fidelity"])
    return (
        f"<Certificate: errs by {number(error, 3)} on fresh rows, at most {number(bound, 3)} with "
        f"{certificate.confidence:.0%} confidence>"
    )


def card(certificate: Certificate) -> cards.Card:
    """Return what the certificate states, sentence by sentence."""
    return cards.Card(
        title="Certificate",
        subtitle=certificate.rule,
        remarks=(
            *certificate_sentences(asdict(certificate)),
            f"The bounds hold together with {certificate.confidence:.0%} confidence.",
        ),
    )


def plain_text(certificate: Certificate) -> str:
    """Return the printed text, without colours."""
    return cards.plain_text(card(certificate))


def printed(certificate: Certificate, options: ConsoleOptions) -> RenderableType:
    """Return the renderable that rich prints."""
    return cards.printed(card(certificate), options)
