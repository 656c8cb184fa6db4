"""Warnings about rows: texts that also say their kind, and the outputs that they are about."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

# Kinds of warnings by their codes, in the order of their weight; long tables and JSON have the codes
CODES: Mapping[str, str] = {
    "other side": "the surrogate lies on the other side of the decision's threshold than the model",
    "no probability": "the surrogate of a probability is below 0 or above 1",
    "far": "the surrogate misses the prediction by more than all its coefficients together",
    "combinations": "single columns account for less than half of how the model varies around the row, and "
    "the surrogate misses the prediction by more than a quarter of the largest bar",
    "inconsistent": "the model answers differently for the same input",
    "unchanged": "the model answers the same whatever is changed",
    "errors": "standard errors are not to be trusted",
    "tolerance": "errors are larger than the tolerance, or than 1.5 % of the largest coefficient",
    "cut short": "sampling ended early",
    "few rows": "few rows of the sample count around the row",
    "collinear": "features change together in all rows that count",
    "hardly changed": "a feature hardly changed in the sample",
    "hidden alike": "a feature looks the same hidden as shown, so that its coefficient is unknown",
    "sampled": "the row is sampled, though the model is read",
    "order": "the order of coefficients is not certain",
    "on an edge": "a value lies on the edge of its bin",
    "outside": "a value lies outside the background's range",
    "does not vary": "a column does not vary in the background",
    "probabilities": "answers between 0 and 1 do not add up to 1",
    "labels": "labels or scores are explained in another form, or as amounts",
    "input": "the input is cut, out of its range, or split in an unusual way",
    "fills": "fills of an image do not agree about a superpixel",
    "rule": "a rule is worse, or its bounds wider, than asked for",
    "contributions": "contributions were not computed",
    "other": "anything else, such as the warnings of files from earlier versions",
}


class RowWarning(str):
    """A warning about a row; its ``code`` is one of ``CODES``, its ``outputs`` are names, none for all."""

    __slots__ = ("code", "outputs")

    code: str
    outputs: tuple[str, ...]

    def __new__(cls, text: str, code: str = "other", outputs: Iterable[str] = ()) -> RowWarning:
        warning = super().__new__(cls, text)
        warning.code, warning.outputs = code, tuple(outputs)
        return warning

    @classmethod
    def about(cls, outputs: Sequence[str], sentence: str, code: str) -> RowWarning:
        """A sentence about some of several outputs, whose names it ends with."""
        return cls(f"{sentence}{_named(outputs)}", code, outputs)

    def __reduce__(self) -> tuple[Any, ...]:
        return RowWarning, (str(self), self.code, self.outputs)

    @property
    def sentence(self) -> str:
        """The text without the names of the outputs."""
        return self.removesuffix(_named(self.outputs))

    def extended(self, by: str) -> RowWarning:
        return RowWarning.about(self.outputs, f"{self.sentence}{by}", self.code)


def _named(outputs: Sequence[str]) -> str:
    return f" (output {', '.join(outputs)})" if outputs else ""


def by_output(sentences: Sequence[str], outputs: Sequence[str], code: str) -> tuple[RowWarning, ...]:
    """Warnings with sentences about outputs, "" for none; outputs with the same one share it.

    A sentence about all outputs names none.
    """
    owners: dict[str, list[str]] = {}
    for sentence, output in zip(sentences, outputs, strict=True):
        if sentence:
            owners.setdefault(sentence, []).append(output)
    return tuple(
        RowWarning(sentence, code) if len(its) == len(outputs) else RowWarning.about(its, sentence, code)
        for sentence, its in owners.items()
    )


def of_outputs(warnings: Iterable[RowWarning], names: Collection[str]) -> tuple[RowWarning, ...]:
    """Those about outputs of these names, or about all."""
    return tuple(w for w in warnings if not w.outputs or any(name in names for name in w.outputs))
