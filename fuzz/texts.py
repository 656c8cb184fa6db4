"""One case of texts: all 2^d deletions, put together by hand and given to the model's own Pipeline."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import limes
from fuzz.answers import answers_of
from fuzz.script import Setup
from fuzz.switched import SwitchedTrial, compare_known, subsets
from fuzz.verdict import SKIPPED, Verdict

Array = Any
_LARGEST = 9


@dataclass(frozen=True)
class TextOptions:
    """Options of ``TextExplainer``, as they stand in the call."""

    bag: Any = True
    mask: str | None = None
    bandwidth: float = 0.25
    output: Any = None

    def keywords(self, names: Any = None) -> dict[str, Any]:  # noqa: ARG002
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
        result = []
        for _ in range(count):
            size = 1 if rng.random() < 0.08 else int(rng.integers(2, 10))
            chosen = rng.choice(np.array([*self.words, "unheard", "GOOD"]), size)
            gaps = rng.choice(np.array([" ", " ", " ", ", ", ". ", "  "]), size)
            result.append("".join(w + g for w, g in zip(chosen, gaps, strict=True)).strip())
        return result


class TextTrial(SwitchedTrial):
    """A Pipeline that was fitted."""

    def explainer(self, options: TextOptions, **more: Any) -> Any:
        """Return what is under test."""
        return limes.TextExplainer(self.model, **options.keywords(), **more)

    def compared(self, text: str, explanation: Any, options: TextOptions) -> Verdict:
        """Hold one text's explanation against the oracle."""
        pieces, owner = self._words(text, options.bag)
        d = max(owner) + 1
        if d > _LARGEST:
            return Verdict(SKIPPED)
        answers = answers_of(self.model, options.output, [text])
        key = (text, repr(options.output), options.bag, options.mask)
        if key not in self.answers:
            self.answers[key] = answers.ask(_deletions(pieces, owner, subsets(d), options.mask or ""))
        f = self.answers[key]
        masked = [word == options.mask for word in pieces[1::2]]
        same = np.array([all(m for m, j in zip(masked, owner, strict=True) if j == k) for k in range(d)])
        return compare_known(
            explanation, f, same, options.bandwidth, "texts", slope=answers.slope, level=answers.level
        )

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
    """Return what is left of the text at each z: removed words become the mask, gaps stay."""
    gaps, words = pieces[::2], pieces[1::2]
    result = []
    for row in z[:, owner].tolist():
        shown = [word if kept else mask for word, kept in zip(words, row, strict=True)]
        result.append(gaps[0] + "".join(word + gap for word, gap in zip(shown, gaps[1:], strict=True)))
    return result
