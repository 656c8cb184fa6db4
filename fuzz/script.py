"""A case as the script that makes it: what is run is what is printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

# Shortest scripts import these under the names that everyone uses
_ALIASES = {"numpy": "np", "pandas": "pd"}


@dataclass(frozen=True)
class Raw:
    """A piece of source that is no number or text, such as a lambda; with the modules that it needs."""

    source: str
    imports: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """``name(*args, **kwargs)`` of a class or function given by its full name; arguments may be calls."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def short(self) -> str:
        """The name without its module."""
        return self.name.rsplit(".", 1)[-1]


def call(name: str, *args: Any, **kwargs: Any) -> Call:
    """Write ``Call`` as the call looks."""
    return Call(name, args, kwargs)


def source_of(value: Any) -> str:
    """Python source of a value made of calls, lists, tuples, numbers and texts."""
    if isinstance(value, Raw):
        return value.source
    if isinstance(value, Call):
        arguments = [source_of(a) for a in value.args]
        arguments += [f"{key}={source_of(item)}" for key, item in value.kwargs.items()]
        return f"{value.short}({', '.join(arguments)})"
    if isinstance(value, list | tuple):
        inner = ", ".join(source_of(item) for item in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"nan": "np.nan", "inf": "np.inf", "-inf": "-np.inf"}[repr(float(value))]
    return repr(value)


def imports_of(value: Any) -> Iterator[str]:
    """Import lines that a value's source needs."""
    if isinstance(value, Raw):
        yield from value.imports
    if isinstance(value, Call):
        module, name = value.name.rsplit(".", 1)
        yield f"from {module} import {name}"
        for item in (*value.args, *value.kwargs.values()):
            yield from imports_of(item)
    if isinstance(value, list | tuple):
        for item in value:
            yield from imports_of(item)


@dataclass(frozen=True)
class Setup:
    """Data and a fitted model.

    Attributes
    ----------
    seed
        Of the columns: column j is drawn from the stream (seed, j), so that one may be dropped alone.
    n
        Rows of the background.
    columns
        Expressions of one column each, in ``r`` (its stream), ``n`` and ``np``.
    target
        Expression of y in ``Z`` (the numbers that the columns began as), ``r`` and ``np``.
    model
        The estimator, not fitted.
    table
        Expression of the background X in the list of columns ``C``.
    fit
        Arguments of fit.
    wrap
        What the fitted model is handed to; "" for nothing.
    explained
        Rows of the background, the first of X; 0 for all.
    twice
        Whether there is a second model, ``old``, of targets in the reverse order.
    """

    seed: int
    n: int
    columns: tuple[str, ...]
    target: str
    model: Call
    table: str = "np.column_stack(C).astype(float)"
    fit: str = "X, y"
    wrap: str = ""
    explained: int = 0
    twice: bool = False

    def lines(self) -> list[str]:
        """The script that leaves X, y and model."""
        texts = [*self.columns, self.target, self.table, self.fit, source_of(self.model)]
        plain = [f"import {name} as {alias}" for name, alias in _ALIASES.items() if _names(alias, texts)]
        imports = {*imports_of(self.model)} | (
            {f"from {self.wrap.rsplit('.', 1)[0]} import {self.wrap.rsplit('.', 1)[1]}"}
            if self.wrap
            else set()
        )
        lines = ["import numpy as np", *(line for line in plain if "numpy" not in line), *sorted(imports)]
        lines.append(f"n, stream = {self.n}, lambda j: np.random.default_rng([{self.seed}, j])")
        for j, column in enumerate(self.columns):
            lines.append(f"r = stream({self._streams[j]}); c{j} = {column}")
        names = ", ".join(f"c{j}" for j in range(len(self.columns)))
        lines.append(f"C = [{names}]; r = stream(99)")
        lines += [f"X = {self.table}", f"y = {self.target}"]
        fitted = f"{source_of(self.model)}.fit({self.fit})"
        fitted = f"{self.wrap.rsplit('.', 1)[1]}({fitted})" if self.wrap else fitted
        lines.append(f"model = {fitted}")
        if self.twice:
            lines += ["y = y[::-1]", f"old = {fitted}"]
        if self.explained:
            lines.append(f"X = X[:{self.explained}]")
        return lines

    kept: tuple[int, ...] = ()

    @property
    def _streams(self) -> tuple[int, ...]:
        return self.kept or tuple(range(len(self.columns)))

    def without(self, j: int) -> Setup:
        """The same without column j; the other columns stay as they are."""
        kept = tuple(s for i, s in enumerate(self._streams) if i != j)
        return replace(self, columns=tuple(c for i, c in enumerate(self.columns) if i != j), kept=kept)

    def run(self) -> dict[str, Any]:
        """Run the script: the namespace that it leaves."""
        namespace: dict[str, Any] = {}
        exec("\n".join(self.lines()), namespace)  # noqa: S102 - it was written by this package
        return namespace


def _names(alias: str, texts: list[str]) -> bool:
    return any(f"{alias}." in text for text in texts)


def evaluate(source: str, namespace: Mapping[str, Any] | None = None) -> Any:
    """Value of an expression of this package."""
    import numpy as np

    return eval(source, {"np": np, **(namespace or {})})  # noqa: S307 - it was written by this package
