"""Options of the command line that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from limes._checks import with_options
from limes._cli import files
from limes.exceptions import InputError

Command = TypeVar("Command", bound=Callable[..., None])

# Values of --law that facts of --sparse have
_LAWS_OF_RULES = ("background", "marginals")

FittedModel = Annotated[Path, typer.Argument(help="A fitted model, as for explain.")]
MaxCalls = Annotated[int | None, typer.Option(help="As for explain.")]
Sparse = Annotated[
    int | None, typer.Option(min=1, help="Explain by a base and this number of facts, with a certificate.")
]
Exclude = Annotated[
    list[str] | None, typer.Option(help="A column that no fact of --sparse uses; may be repeated.")
]
Objective = Annotated[
    str,
    typer.Option(
        help="What facts are for: fidelity of the weights; precision, or class: while they hold, the "
        "prediction moves least, or keeps its side of --threshold. certain, without --sparse: the fewest "
        "values that guarantee the class, or the side, of every row within the ranges of the background."
    ),
]
Background = Annotated[
    Path | None, typer.Option(help="A table from which bins are learnt; default: the table itself.")
]
Row = Annotated[
    str, typer.Option(help="Which row of the table, counted from 0; or its name in the column --id.")
]
Id = Annotated[str | None, typer.Option("--id", help="The column with the rows' names; it is no feature.")]
Html = Annotated[Path | None, typer.Option(help="Write a self-contained HTML page here.")]
Json = Annotated[Path | None, typer.Option(help="Write the result as JSON here.")]


@dataclass(frozen=True)
class SharedOptions:
    """Options that all commands have which explain: of the explainer, and of reading its model."""

    output: Annotated[
        str | None,
        typer.Option(
            help="margin, probability, or a class label; the default is the model's own. In explain-table "
            "also all: both of two classes, of which the second is the default."
        ),
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(help="Of a decision, to warn of other surrogates. Default: 0.5, of margins 0."),
    ] = None
    missing: Annotated[
        list[float] | None, typer.Option(help="A code of missing values, such as -7; may be repeated.")
    ] = None
    categorical: Annotated[
        list[str] | None,
        typer.Option(help="A column whose numbers are codes, or several: a,b,c; may be repeated."),
    ] = None
    dtype: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=TYPE",
            help="How a table's column is read: text, number or bool; may be repeated. Columns become what "
            "the model's encoders have unless given.",
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(
            "--drop",
            "--target",
            help="A column that is no feature of the model (the target); may be repeated.",
        ),
    ] = None
    bins: Annotated[
        str, typer.Option(help="quartile, decile, auto, a number of bins, or none for slopes.")
    ] = "quartile"
    law: Annotated[
        str | None,
        typer.Option(
            help="Of perturbed rows: truncnorm, uniform or empirical in bins; joint: rows that occur. "
            "covers: contributions by training rows at nodes of trees, as of shap.TreeExplainer(model). "
            "Default: empirical for contributions, truncnorm for coefficients."
        ),
    ] = None
    bandwidth: Annotated[
        float | None, typer.Option(help="Default: 0.75 √(number of columns); 0.25 for texts and images.")
    ] = None
    weights: Annotated[str, typer.Option(help="bins or euclidean.")] = "bins"
    method: Annotated[str, typer.Option(help="auto, exact or sampled.")] = "auto"
    seed: Annotated[int, typer.Option(help="Seed of the sampler.")] = 0
    trust: Annotated[
        list[str] | None, typer.Option(help="A type that a .skops file may hold; may be repeated.")
    ] = None
    trust_pickle: Annotated[
        bool, typer.Option("--trust-pickle", help="Load a pickle. It can run any code: only your own files.")
    ] = False

    @property
    def types(self) -> files.ColumnTypes:
        return files.ColumnTypes.of(self.dtype)

    def load(self, path: Path) -> Any:
        return files.load_model(path, trust=self.trust, trust_pickle=self.trust_pickle)

    def of_inputs(self, model: Any, max_calls: int | None = None) -> dict[str, Any]:
        """Options for texts and images, which have their own defaults."""
        limits = {"bandwidth": self.bandwidth, "max_calls": max_calls, "threshold": self.threshold}
        return self._common(model) | {name: value for name, value in limits.items() if value is not None}

    def of_tables(self, model: Any, max_calls: int | None = None) -> dict[str, Any]:
        options: dict[str, Any] = {"law": self.law, "weights": self.weights, "bandwidth": self.bandwidth}
        options |= {"threshold": self.threshold, "missing": self.missing or [], **self._of_columns()}
        options = {
            **self._common(model),
            **options,
            "bins": files.parse_bins(self.bins),
            "max_calls": max_calls,
        }
        if self.law != "covers":
            return options
        # the explainer refuses options of other laws: those that the user did not choose are left out
        usual = SharedOptions().of_tables(model)
        kept = {name: value for name, value in options.items() if name not in usual or value != usual[name]}
        return {"output": options["output"], **kept}

    def of_rules(
        self, model: Any, facts: int | None, exclude: list[str] | None, objective: str
    ) -> dict[str, Any]:
        options: dict[str, Any] = {"bins": files.parse_bins(self.bins), "k": facts, "exclude": exclude or []}
        options |= self._of_columns() | ({} if objective == "fidelity" else {"objective": objective})
        options |= {"threshold": self.threshold} if objective in ("class", "certain") else {}
        options |= {"law": self.law} if self.law in _LAWS_OF_RULES else {}
        return {**self._common(model), **options}

    def _of_columns(self) -> dict[str, Any]:
        return {"categorical": self.categorical} if self.categorical else {}

    def _common(self, model: Any) -> dict[str, Any]:
        return {"output": files.output_of(self.output, model), "method": self.method, "rng": self.seed}

    def check_law(self, command: str) -> None:
        """Raise InputError where a command needs more than the contributions that the law of covers has."""
        if self.law == "covers":
            raise InputError(
                f"--law covers has contributions alone, which limes explain prints: {command} needs another"
            )

    def is_by_facts(
        self,
        facts: int | None,
        exclude: list[str] | None,
        objective: str,
        max_calls: int | None,
        *,
        is_table: bool = True,
        of_one: bool = False,
    ) -> bool:
        """Return whether rows are explained by facts; raise InputError for options that do not go with it."""
        is_certain = objective == "certain"
        if is_certain and not of_one:
            raise InputError(
                "--objective certain is for one row: use limes explain, or limes.rules.cover in Python"
            )
        if is_certain and facts is not None:
            raise InputError("--objective certain finds the fewest facts: leave out --sparse")
        if facts is None and not is_certain:
            if exclude or objective != "fidelity":
                other = ", or pass --objective certain" if of_one else ""
                raise InputError(f"--exclude and --objective go with --sparse{other}")
            return False
        if is_certain and (self.bins, self.law) != (SharedOptions.bins, SharedOptions.law):
            raise InputError(
                "--objective certain is about values, and draws no rows: leave out --bins, --law"
            )
        of_values = (self.weights, self.bandwidth, max_calls)
        has_law = self.law not in (SharedOptions.law, *_LAWS_OF_RULES)
        if not is_table or has_law or of_values != (SharedOptions.weights, None, None):
            raise InputError(
                f"{'--objective certain' if is_certain else '--sparse'} explains tables by facts that hold: "
                "leave out --weights, --bandwidth and --max-calls, and --law but for background and marginals"
            )
        return True


def with_shared_options(command: Command) -> Command:
    """Write `SharedOptions` in place of a command's ``**options`` into its signature, which typer reads."""
    command.__annotations__ = get_type_hints(command, include_extras=True)
    kinds = get_type_hints(SharedOptions, include_extras=True)
    options = ((field.name, field.default, kinds[field.name]) for field in fields(SharedOptions))
    command.__signature__ = with_options(command, options)  # type: ignore[attr-defined]
    return command
