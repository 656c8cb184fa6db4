"""Texts that try to become markup, script, style, JSON or commands where names and cells are shown."""

from __future__ import annotations

_OPENERS = ("", '"', "'", "</script>", "</style>", "</textarea>", "-->", "]]>", "}}", "\\u003c/script>")
_BODIES = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    '" onmouseover="alert(1)',
    "<iframe src=javascript:alert(1)></iframe>",
)
_SINGLE = (
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "url(https://example.invalid/a.png)",
    "@import 'https://example.invalid/a.css';",
    "{{ 7 * 7 }}",
    "{% include 'x' %}",
    "${alert(1)}",
    "`${alert(1)}`",
    "<!--<script>",
    "\u2028alert(1)\u2029",
    "\u202egnp.exe",
    "\x00\x1b]0;title\x07",
    "__proto__",
    "constructor",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<style>*{display:none}</style>",
)
PAYLOADS = tuple(opener + body for opener in _OPENERS for body in _BODIES) + _SINGLE
"""66 of them."""
