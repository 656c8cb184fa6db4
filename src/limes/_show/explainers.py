"""An explainer as a card: its model, whether that was read, and how rows are explained."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from limes._explanation.wording import count, one_line
from limes._show import cards

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType

    from limes._explanation.drawing import Described

_LONGEST_FACT = 120
# Facts that are shown of an explanation, but not of its explainer
_NOT_SHOWN = ("meaning", "model", "slopes", "seed", "quantity")


def one_line_summary(explainer: Described) -> str:
    """Return the explainer's kind and model, and whether it is exact."""
    facts = explainer._facts()  # noqa: SLF001 - this is its drawing
    parts = [str(facts["model"]), *(str(facts[name]) for name in ("background",) if name in facts)]
    names = getattr(explainer, "feature_names", None)
    parts += [count(len(names), "column")] if names else []
    method = getattr(explainer, "method", None)
    parts += [method] if method else []
    return f"<{type(explainer).__name__}: {', '.join(parts)}>"


def card(explainer: Described) -> cards.Card:
    """Return the facts of an explainer as a table."""
    facts = explainer._facts()  # noqa: SLF001 - this is its drawing
    shown = [(name, _fact(fact)) for name, fact in facts.items() if name not in _NOT_SHOWN]
    return cards.Card(
        title=f"{type(explainer).__name__} of {facts['model']}",
        subtitle=_method(explainer, facts),
        rows=[(one_line(name), fact) for name, fact in shown if fact],
    )


def _method(explainer: Described, facts: Any) -> str:
    method, reason = getattr(explainer, "method", None), facts.get("reason", "")
    if method == "exact":
        return "exact: the model was read"
    if method is None:
        return ""
    return f"sampled, with standard errors{f', because {reason}' if reason else ''}"


def _fact(fact: Any) -> str:
    text = one_line(fact if isinstance(fact, str) else "" if fact is None else json.dumps(fact, default=str))
    return text if len(text) <= _LONGEST_FACT else f"{text[:_LONGEST_FACT]}…"


def plain_text(explainer: Described) -> str:
    """Return the printed text, without colours."""
    return cards.plain_text(card(explainer))


def printed(explainer: Described, options: ConsoleOptions) -> RenderableType:
    """Return the renderable that rich prints."""
    return cards.printed(card(explainer), options)
