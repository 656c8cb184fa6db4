"""Five prompts of ten sources each, and the sources that a reader would name."""

from __future__ import annotations

from typing import NamedTuple

import limes

SYSTEM = "Answer in one short sentence, from the sources."


class Question(NamedTuple):
    """Sources and a question; ``leads`` are positions of the sources that the answer rests on."""

    name: str
    sources: tuple[str, ...]
    question: str
    answer: str | None  # None: what the model writes
    leads: tuple[int, ...]

    @property
    def prompt(self) -> limes.Prompt:
        sources = limes.Prompt("Sources:\n", limes.sources(self.sources), f"\nQuestion: {self.question}")
        return limes.Prompt.chat(
            [{"role": "system", "content": SYSTEM}, {"role": "user", "content": sources}]
        )


QUESTIONS = (
    Question(
        "one fact",
        (
            "The harbour was built in 1850.",
            "The keeper of the lighthouse is called Tomas.",
            "The boat of the baker is red.",
            "Ada owns the old mill.",
            "It rains often in spring.",
            "The school has forty pupils.",
            "The market is on Tuesday.",
            "The doctor lives next to the church.",
            "The bridge was closed in winter.",
            "The baker sells dark bread.",
        ),
        "What is the name of the keeper of the lighthouse?",
        None,
        (1,),
    ),
    Question(
        "two facts",
        (
            "The museum opens at ten.",
            "Mrs Lindqvist is the mayor of Halden.",
            "The river froze last year.",
            "Trains to the coast leave at noon.",
            "The library has two floors.",
            "The mayor of Halden lives in the yellow house.",
            "Apples are cheap in autumn.",
            "The theatre shows a comedy.",
            "A storm broke the old oak.",
            "The bakery is next to the station.",
        ),
        "In which house does Mrs Lindqvist live?",
        "Mrs Lindqvist lives in the yellow house.",
        (1, 5),
    ),
    Question(
        "said twice",
        (
            "The concert begins at eight.",
            "Parking is free on Sundays.",
            "The hotel has ninety rooms.",
            "The ferry to the island is called Morning Star.",
            "The garden closes at dusk.",
            "Coffee is served on the terrace.",
            "The name of the island's ferry is Morning Star.",
            "The tower was painted in May.",
            "Bicycles can be rented at the port.",
            "The beach is three miles long.",
        ),
        "What is the ferry to the island called?",
        None,
        (3, 6),
    ),
    Question(
        "a contradiction",
        (
            "The farm has two horses.",
            "The meeting is on Friday.",
            "The road was repaired in June.",
            "The shop sells paper and ink.",
            "The meeting is on Monday.",
            "The choir sings in the chapel.",
            "The pond is deep and cold.",
            "Eva bought a new coat.",
            "The clock is ten minutes fast.",
            "The fence is made of oak.",
        ),
        "On which day is the meeting?",
        "The meeting is on Friday.",
        (1, 4),
    ),
    Question(
        "nothing relevant",
        (
            "The cat sleeps on the roof.",
            "Paul plays the cello.",
            "The soup is too salty.",
            "The lamp in the hall is broken.",
            "Snow fell in the mountains.",
            "The letter arrived on Thursday.",
            "The carpet is blue.",
            "Ants live under the stones.",
            "The painter uses thin brushes.",
            "The old map hangs in the office.",
        ),
        "What is the capital of France?",
        "The capital of France is Paris.",
        (),
    ),
)
