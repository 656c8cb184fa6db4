"""Data that is drawn: as a `Card`, a table and some sentences, or else by modules of ``limes._show``.

``limes._show`` imports the classes that it draws; they do not import it. Here, and only here, its modules are
looked up by name, so that explaining loads no library of plots, tables or templates.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from limes._explanation.wording import count, one_line
from limes.exceptions import InputError

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult


def drawer(medium: str) -> Any:
    """Return a module of ``limes._show``: "terminal", "html", "plots", ..."""
    return import_module(f"limes._show.{medium}")


def write_text(text: str, path: str | Path | None) -> str:
    if path is not None:
        if not Path(path).parent.is_dir():
            raise InputError(
                f"cannot write {str(path)!r}: the folder {str(Path(path).parent)!r} does not exist"
            )
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write {str(path)!r}: {error.strerror or error}") from error
    return text


@dataclass(frozen=True, kw_only=True)
class Card:
    """A title, facts, a table and remarks, which terminals and notebooks draw alike."""

    title: str
    subtitle: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()  # as long as the columns
    strong: int | None = None  # the row that stands out
    bars: int | None = None  # the column that is drawn with characters of one width
    remarks: Sequence[str] = ()


class Printable:
    """Data that terminals and notebooks draw: as its card, unless a class draws more."""

    _widest: ClassVar[int | None] = None  # characters of a printed line; None: as wide as the terminal

    def _card(self) -> Card:
        raise NotImplementedError

    def _drawn(self, width: int) -> RenderableType:  # noqa: ARG002 - for tables that fit it
        drawn: RenderableType = drawer("terminal").drawn_card(self._card())
        return drawn

    def __str__(self) -> str:
        return str(drawer("terminal").plain_text(self._drawn, self._widest))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.ascii_only:
            yield drawer("terminal").ascii_text(str(self))
        else:
            yield self._drawn(options.max_width)

    def _repr_html_(self) -> str:
        return str(drawer("html").card_fragment(self._card()))


class Page(Printable):
    """Data with a page as well."""

    _html: ClassVar[str]  # the module with page(data) and fragment(data)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return a self-contained page with pictures, and write it to `path` if given."""
        return write_text(drawer(self._html).page(self), path)

    def _repr_html_(self) -> str:
        return str(drawer(self._html).fragment(self))


# Names of lime's and shap's explanations, and their counterparts here
OTHER_NAMES = {
    "as_list": "explanation.top(), or .to_frame()",
    "account": "explanation.contributions",
    "as_map": "explanation.coefficients.values, with .feature_names",
    "as_pyplot_figure": "explanation.plot.bar()",
    "base_values": "explanation.contributions.base_values",
    "coef": "explanation.coefficients.values",
    "intercept": "explanation.coefficients.intercepts",
    "local_exp": "explanation.coefficients.values",
    "local_pred": "explanation.coefficients.surrogate_predictions",
    "predict_proba": "explanation.predictions",
    "r2": "explanation.fidelity",
    "save_to_file": "explanation.to_html(path)",
    "score": "explanation.fidelity",
    "shap_values": "explanation.contributions.values",
    "show_in_notebook": "the explanation itself, as the last line of a cell",
}
# Methods of their explainers
_OTHER_METHODS = ("explain_instance", "shap_values", "explain")
# Facts that are shown of an explanation, but not of its explainer
_NOT_SHOWN = ("meaning", "base", "model", "slopes", "seed", "quantity")
_LONGEST_FACT = 120


class Described(Printable):
    """An explainer: a card with the facts that it gives to its explanations."""

    def _facts(self) -> Mapping[str, Any]:
        raise NotImplementedError

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _OTHER_METHODS:
                raise AttributeError(f"{type(self).__name__} has no {name}(): call it, explainer(rows)")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        facts = self._facts()
        parts = [str(facts["model"]), *(str(facts[name]) for name in ("background",) if name in facts)]
        names, method = getattr(self, "feature_names", None), getattr(self, "method", None)
        parts += [count(len(names), "column")] if names else []
        parts += [method] if method else []
        return f"<{type(self).__name__}: {', '.join(parts)}>"

    def _card(self) -> Card:
        facts, method = self._facts(), getattr(self, "method", None)
        reason = facts.get("reason", "")
        sampled = f"sampled, with standard errors{f', because {reason}' if reason else ''}"
        shown = fact_texts({name: fact for name, fact in facts.items() if fact is not None}, _NOT_SHOWN)
        return Card(
            title=f"{type(self).__name__} of {facts['model']}",
            subtitle="exact: the model was read" if method == "exact" else sampled if method else "",
            rows=[(name, fact) for name, fact in shown if fact],
        )


def fact_texts(
    facts: Mapping[str, Any], hidden: Collection[str], longest: int = _LONGEST_FACT
) -> list[tuple[str, str]]:
    """Return names and texts of facts, cut at a length."""
    written = ((name, one_line(_written(fact))) for name, fact in facts.items() if name not in hidden)
    return [
        (one_line(name), text if len(text) <= longest else f"{text[:longest]}…") for name, text in written
    ]


def _written(fact: Any) -> str:
    if isinstance(fact, (list, tuple)) and fact and all(isinstance(name, str) for name in fact):
        return ", ".join(fact)
    return fact if isinstance(fact, str) else json.dumps(fact, ensure_ascii=False, default=str)
