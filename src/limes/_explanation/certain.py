"""Facts that hold for certain, as terminals and pages show them: each fact with a row that lacks it.

Such a rule has no surrogate: what is shown is what the model answers, which facts guarantee that, and for
each fact a possible row that shares all others and has another answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._explanation.attribution import Coefficients
from limes._explanation.rules import Certificate, certificate_sentences, is_certain
from limes._explanation.wording import beside, cell, label_text, one_line

# Columns without facts in which a counterexample differs, and that are named
_NAMED = 3


def coefficients_of(explanation: Any) -> Coefficients:
    """The coefficients of any explanation; NaN of facts that hold for certain, which have none."""
    if not is_certain(explanation):
        its: Coefficients = explanation.coefficients
        return its
    of_rows, of_features = np.full(len(explanation), np.nan), np.full(explanation.data.shape, np.nan)
    return Coefficients(
        values=of_features,
        standard_errors=of_features,
        intercepts=of_rows,
        surrogate_predictions=of_rows,
        fidelity=of_rows,
        fidelity_errors=np.zeros(of_rows.shape),
        calls=explanation.calls,
        row_converged=explanation.row_converged,
    )


@dataclass(frozen=True)
class FactLine:
    """One fact, and a row that shares all others: its changes, and what the model answers; () if unknown."""

    fact: str
    without: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CertainView:
    """One row: the answer, the facts that guarantee it, and sentences about them."""

    answer: str  # "prediction 0.28, class defaulted"
    columns: tuple[str, ...]  # of the facts, and of what they are without
    lines: tuple[FactLine, ...]
    sentences: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The facts as one sentence each."""
        return tuple(self._text(line) for line in self.lines)

    def _text(self, line: FactLine) -> str:
        if not line.without:
            return line.fact
        changes, *answers = line.without
        named = [f"{name} {text}" for name, text in zip(self.columns[2:], answers, strict=True)]
        return f"{line.fact} (without it, for example: {changes}; {', '.join(named)})"


def certain_view(
    certificate: Certificate, names: Sequence[str], row: Sequence[Any], title: str
) -> CertainView:
    """View a certificate; ``row`` has the cells of columns ``names``, ``title`` is that of the output."""
    shares_all = [place for place, its in enumerate(certificate.counterexample_facts) if not its]
    lines = tuple(_lines(certificate, names, row))
    columns = ("fact", "without it, for example", *_answer_columns(certificate, title))
    return CertainView(
        answer=_answered(certificate),
        columns=columns if any(line.without for line in lines) else columns[:1],
        lines=lines,
        sentences=(
            *certificate_sentences(certificate),
            *(_counterexample(certificate, place, names, row, title) for place in shares_all),
        ),
    )


def _counterexample(
    certificate: Certificate, place: int, names: Sequence[str], row: Sequence[Any], title: str
) -> str:
    """Write a row that shares all facts and has another answer."""
    changes = _changes(certificate, place, names, row)
    answers = zip(_answer_columns(certificate, title), _answers(certificate, place), strict=True)
    return f"The counterexample: {changes}; {', '.join(f'{name} {text}' for name, text in answers)}."


def _answered(certificate: Certificate) -> str:
    prediction = f"prediction {beside(certificate.prediction, _threshold(certificate))}"
    return f"{prediction}, class {label_text(certificate.label)}" if certificate.label else prediction


def _threshold(certificate: Certificate) -> tuple[float, ...]:
    return () if certificate.threshold is None else (certificate.threshold,)


def _answer_columns(certificate: Certificate, title: str) -> tuple[str, ...]:
    """Return what is written of a counterexample's answer: a number, a class, or both."""
    labelled = ("class",) if certificate.label else ()
    return labelled if _is_class(certificate) else (title, *labelled)


def _is_class(certificate: Certificate) -> bool:
    """Whether a class is claimed, and not on which side of a number the answer is."""
    return certificate.label != "" and certificate.threshold is None


def _answers(certificate: Certificate, place: int) -> tuple[str, ...]:
    answer = certificate.counterexample_answers[place]
    written = (beside(answer, (*_threshold(certificate), certificate.prediction)),)
    labels = tuple(label_text(label) for label in certificate.counterexample_labels[place : place + 1])
    return labels if _is_class(certificate) else (*written, *labels)


def _lines(certificate: Certificate, names: Sequence[str], row: Sequence[Any]) -> Iterator[FactLine]:
    """Yield the facts; columns that are kept together make one."""
    places = {name: i for i, its in enumerate(certificate.counterexample_facts) for name in its}
    seen = set[int]()
    for name, fact in zip(certificate.columns, certificate.facts, strict=True):
        place = places.get(name)
        if place is None:
            yield FactLine(one_line(fact), ())
        elif place not in seen:
            seen.add(place)
            together = certificate.counterexample_facts[place]
            facts = [
                one_line(its)
                for column, its in zip(certificate.columns, certificate.facts, strict=True)
                if column in together
            ]
            without = (_changes(certificate, place, names, row), *_answers(certificate, place))
            yield FactLine(" and ".join(facts), without)


def _changes(certificate: Certificate, place: int, names: Sequence[str], row: Sequence[Any]) -> str:
    """Write in which columns a counterexample differs from the row: those of its fact first."""
    example, fact = certificate.counterexamples[place], certificate.counterexample_facts[place]
    differing = {
        name: f"{one_line(name)} = {cell(new)}"
        for name, old, new in zip(names, row, example, strict=True)
        if cell(old) != cell(new)
    }
    texts = [*(differing.pop(name) for name in fact if name in differing), *differing.values()]
    shown = max(_NAMED, len(texts) - len(differing))
    more = len(texts) - shown
    if more > 0:
        texts[shown:] = [f"{more} more column{'' if more == 1 else 's'}"]
    return ", ".join(texts)
