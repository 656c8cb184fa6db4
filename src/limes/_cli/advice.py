"""Advice to callers from Python, said in options of the command line."""

from __future__ import annotations

import re
from dataclasses import fields

from limes._cli.options import SharedOptions

# Calls, and what does the same here
_SAME_HERE = {
    "print(explanation.coefficients)": "on the page, --html",
    ".rows[0].measures and to_html()": "on the page, --html",
    "One row, by its position: diagnosis[i]": "One row: --row",
}
_OPTIONS = {*(option.name for option in fields(SharedOptions)), "max_calls", "exclude", "objective"}
# An option of an explainer with a text, a number or None, or with nothing, where it has to be passed
_PASSED = re.compile(r"\b([a-z_]+)=(?:'([^']*)'|(None|[0-9.]+(?<!\.))|(?![\w\[({\"'=-]))")


def on_command_line(text: str) -> str:
    """A sentence with options in the place of calls and of explainers' options."""
    for call, option in _SAME_HERE.items():
        text = text.replace(f"in {call}", option).replace(call, option)
    return _PASSED.sub(_as_option, text)


def _as_option(passed: re.Match[str]) -> str:
    name, words, other = passed.groups()
    if name not in _OPTIONS:
        return passed[0]
    value = words if other is None else other.lower()
    return f"--{name.replace('_', '-')}{'' if value is None else f' {value}'}"
