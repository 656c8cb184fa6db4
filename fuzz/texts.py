"""One case of texts: all 2^d deletions, put together by hand and given to the model's own Pipeline."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import limes
from fuzz.answers import answers_of
from fuzz.script import Setup
from fuzz.switched import coefficients, subsets
from fuzz.verdict import AGREES, CRASH, REFUSED, REJECTED, SAMPLED, SKIPPED, Verdict, compare

Array = Any
_LARGEST = 9


@dataclass(frozen=True)
class TextOptions:
    """Options of ``TextExplainer``, as they stand in the call."""

    bag: Any = True
    mask: str | None = None
    bandwidth: float = 0.25
    output: Any = None

    def given(self, names: Any = None) -> dict[str, Any]:  # noqa: ARG002
        """Keyword arguments that differ from the library's defaults."""
        return {key: value for key, value in vars(self).items() if value != getattr(TextOptions, key)}


@dataclass(frozen=True)
class TextCase:
    """A Pipeline fitted on texts, and what it may be asked."""

    reader: str
    setup: Setup
    outputs: tuple[Any, ...]
    words: tuple[str, ...]

    def run(self) -> TextTrial:
        """Run the case's script."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return TextTrial(self, self.setup.run()["model"])

    def options(self, rng: Any, trial: TextTrial) -> TextOptions:  # noqa: ARG002
        """A set of options."""
        return TextOptions(
            bag=[True, True, False, "spelling"][rng.integers(4)],
            mask=[None, None, "UNK", self.words[0]][rng.integers(4)],
            bandwidth=[0.25, 0.25, 0.02, 0.05, 0.1, 0.5, 1.0, np.inf][rng.integers(8)],
            output=self.outputs[rng.integers(len(self.outputs))],
        )

    def rows(self, rng: Any, trial: TextTrial, count: int) -> list[str]:  # noqa: ARG002
        """Texts of a few words, known and not, some of one word."""
        found = []
        for _ in range(count):
            size = 1 if rng.random() < 0.08 else int(rng.integers(2, 10))
            chosen = rng.choice(np.array([*self.words, "unheard", "GOOD"]), size)
            gaps = rng.choice(np.array([" ", " ", " ", ", ", ". ", "  "]), size)
            found.append("".join(w + g for w, g in zip(chosen, gaps, strict=True)).strip())
        return found


@dataclass
class TextTrial:
    """A case that was run, and answers that were already given."""

    case: TextCase
    model: Any
    known: dict[Any, Array] = field(default_factory=dict)

    def check(self, options: TextOptions, rows: list[str]) -> Verdict:
        """Explain texts and compare."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._checked(options, rows)

    def _checked(self, options: TextOptions, rows: list[str]) -> Verdict:
        try:
            explanations = self.explainer(options)(rows, progress=False)
        except limes.exceptions.LimesError as error:
            return self._after(error, options, rows)
        except Exception as error:  # noqa: BLE001 - any other error is a fault of the library
            return Verdict(CRASH, len(rows), f"{type(error).__name__}: {error}", 0)
        done = 0
        for i, (text, explanation) in enumerate(zip(rows, explanations, strict=True)):
            if explanation.method == "sampled":
                continue
            verdict = self._one(text, explanation, options)
            if verdict.kind == SKIPPED:
                continue
            done += 1
            if verdict.kind != AGREES:
                return Verdict(verdict.kind, done, verdict.detail, i, verdict.found, verdict.expected)
        return Verdict(AGREES, done) if done else Verdict(SAMPLED)

    def explainer(self, options: TextOptions, **more: Any) -> Any:
        """What is under test."""
        return limes.TextExplainer(self.model, **options.given(), **more)

    def _after(self, error: Exception, options: TextOptions, rows: list[str]) -> Verdict:
        text = f"{type(error).__name__}: {error}"
        try:
            self.explainer(options, method="sampled", control="none", max_calls=64)(rows[0], progress=False)
        except limes.exceptions.LimesError:
            return Verdict(REJECTED, detail=text)
        return Verdict(REFUSED, detail=text)

    def _one(self, text: str, explanation: Any, options: TextOptions) -> Verdict:
        pieces, owner = self._words(text, options.bag)
        d = max(owner) + 1
        if d > _LARGEST:
            return Verdict(SKIPPED)
        answers = answers_of(self.model, options.output, [text])
        key = (text, repr(options.output), options.bag, options.mask)
        if key not in self.known:
            self.known[key] = answers.ask(_deletions(pieces, owner, subsets(d), options.mask or ""))
        f = self.known[key]
        beta, start = coefficients(f, d, options.bandwidth, "texts")
        return compare(
            explanation.values, explanation.intercepts, beta[None], start[None], float(np.abs(f).max()),
            slope=answers.slope, level=answers.level,
        )  # fmt: skip

    def _words(self, text: str, bag: Any) -> tuple[list[str], list[int]]:
        """Gaps and words in turn, and which word each occurrence is."""
        pieces, end = [], 0
        for match in re.finditer(r"\w+", text):
            pieces += [text[end : match.start()], match.group()]
            end = match.end()
        pieces.append(text[end:])
        occurrences = pieces[1::2]
        if bag is False:
            return pieces, list(range(len(occurrences)))
        clean = self.model.steps[0][1].build_preprocessor() if bag is True else str
        keys = [clean(word) or word for word in occurrences]
        order = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        return pieces, [order[key] for key in keys]


def _deletions(pieces: list[str], owner: list[int], z: Array, mask: str) -> list[str]:
    """What is left of the text at each z: removed words become the mask, gaps stay."""
    gaps, words = pieces[::2], pieces[1::2]
    found = []
    for row in z[:, owner].tolist():
        shown = [word if kept else mask for word, kept in zip(words, row, strict=True)]
        found.append(gaps[0] + "".join(word + gap for word, gap in zip(shown, gaps[1:], strict=True)))
    return found
