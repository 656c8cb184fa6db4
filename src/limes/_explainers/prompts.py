"""Prompts of language models: fixed text and sources, which are shown or left out, and messages of chats.

A prompt is made of pieces: a fixed text, or a `SourceText` of parts. Parts are the features of explanations,
documents are their groups. A document of which no part is shown leaves nothing behind. A chat is a list of
messages whose contents are such pieces; a message of which nothing is shown stays, with an empty content,
because chat templates take turns.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Ints, Objects
from limes._checks import check_choice
from limes._explainers.splits import sentences
from limes.exceptions import InputError

# Units of documents, the coarsest first
UNITS = ("document", "paragraph", "sentence")
_MESSAGE = ("message", *UNITS[1:])
_EMPTY_LINES = re.compile(r"\n[^\S\n]*\n\s*")
_FIELD = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class SourceText:
    """A text in parts, each with the space behind it, and what separates it from what follows."""

    name: str  # "" of a document that goes by its text
    parts: tuple[str, ...]
    separator: str = ""

    @property
    def label(self) -> str:
        return self.name or "".join(self.parts).strip()


Piece: TypeAlias = str | SourceText


class Sources(tuple[SourceText, ...]):
    """Documents of a prompt, as :func:`limes.sources` makes them."""

    __slots__ = ()


def sources(
    documents: Iterable[str] | Mapping[str, str], *, by: str = "document", separator: str = "\n"
) -> Sources:
    r"""Return documents as parts of a :class:`limes.Prompt`, each of which is shown or left out.

    Parameters
    ----------
    documents
        Texts, or a mapping of names to texts: a document with one part goes by its name.
    by
        The parts that are explained: "document", "paragraph" (separated by empty lines) or "sentence".
        Paragraphs and sentences are explained at two levels, ``explanation.levels``: documents and parts.
    separator
        Stands behind each document of which something is shown.

    Raises
    ------
    InputError
        If there is no document, or one is no text or an empty one: says which.

    Examples
    --------
    >>> import limes
    >>> documents = {"map": "The mill is old. It stands by the river.", "diary": "It rained."}
    >>> prompt = limes.Prompt("Read:\n", limes.sources(documents, by="sentence"), "Where is the mill?")
    >>> prompt.names
    ('The mill is old.', 'It stands by the river.', 'diary')
    """
    check_choice("by", by, UNITS)
    raw: Any = documents
    if isinstance(raw, str | bytes) or not isinstance(raw, Iterable):
        raise InputError(
            f"documents must be a list of texts, or a mapping of names to texts; got {type(raw).__name__}: "
            "pass [text] for one"
        )
    named = isinstance(raw, Mapping)
    pairs = [*raw.items()] if isinstance(raw, Mapping) else [("", text) for text in raw]
    if not pairs:
        raise InputError("documents is empty: pass one text or more")
    if not isinstance(separator, str):
        raise InputError(f"separator must be a text, got {separator!r}")
    for i, (name, text) in enumerate(pairs):
        if not isinstance(text, str):
            raise InputError(f"document {name if named else i!r} is no text, but {type(text).__name__}")
        if not text.strip():
            raise InputError(f"document {name if named else i!r} is empty: leave it out")
    return Sources(SourceText(str(name), _parts(text, by), separator) for name, text in pairs)


def _parts(text: str, by: str) -> tuple[str, ...]:
    """Parts that together are the text: each begins where a unit does, and ends before the next."""
    if by == "sentence":
        starts = [start for start, _ in sentences(text)]
    elif by == "paragraph":
        starts = [0, *(match.end() for match in _EMPTY_LINES.finditer(text.rstrip()))]
    else:
        starts = [0]
    edges = [0, *starts[1:], len(text)]
    return tuple(text[start:end] for start, end in itertools.pairwise(edges))


@dataclass(frozen=True)
class Turn:
    """A message of a chat, or the one text of a prompt, whose ``facts`` are None."""

    pieces: tuple[Piece, ...]
    facts: Mapping[str, Any] | None = None  # role, name and whatever else a message has


@dataclass(frozen=True)
class Unit:
    """A part of a prompt: where its document is, and how the feature is called."""

    turn: int
    piece: int
    part: int
    name: str
    group: int


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Prompt:
    r"""A prompt of which some parts are explained: fixed texts and sources in their order.

    Parameters
    ----------
    pieces
        Texts, which always stay, and what :func:`limes.sources` returns, whose parts are shown or left out.
        Nothing is put between pieces.

    Raises
    ------
    InputError
        If a piece is something else, or no piece has sources.

    Examples
    --------
    >>> import limes
    >>> facts = limes.sources(["Anna has a red boat.", "Ben has a dog."])
    >>> prompt = limes.Prompt("Read:\n", facts, "Who has a boat?")
    >>> print(prompt)
    Read:
    Anna has a red boat.
    Ben has a dog.
    Who has a boat?
    >>> prompt.compose([[1, 0]])
    ['Read:\nAnna has a red boat.\nWho has a boat?']
    """

    turns: tuple[Turn, ...]
    fill: str = ""

    def __init__(self, *pieces: str | Sources) -> None:
        self._set((Turn(_pieces(pieces)),))
        if not self.units:
            raise InputError(
                "the prompt has no part to explain: pass limes.sources([...]) among its pieces, or use "
                "limes.Prompt.template or limes.Prompt.chat"
            )

    def _set(self, turns: tuple[Turn, ...], fill: str = "") -> None:
        object.__setattr__(self, "turns", turns)
        object.__setattr__(self, "fill", fill)

    @classmethod
    def _of(cls, turns: tuple[Turn, ...], fill: str = "") -> Prompt:
        prompt = object.__new__(cls)
        prompt._set(turns, fill)
        return prompt

    @classmethod
    def template(
        cls, text: str, fields: Mapping[str, str], *, explain: Iterable[str] | None = None
    ) -> Prompt:
        """Return a prompt whose text has ``fields`` in braces; those to ``explain`` are shown or left out.

        Parameters
        ----------
        text
            Such as "Summary of {name}, aged {age}:". Braces that hold no name of a field stay as they are.
        fields
            Names, and the texts that stand in their places.
        explain
            Names of the fields that are features; None takes all of them.

        Raises
        ------
        InputError
            If a field is not in the text, or no text; if ``explain`` does not name one of them.

        Examples
        --------
        >>> import limes
        >>> fields = {"city": "Rome", "month": "May"}
        >>> limes.Prompt.template("Weather in {city} in {month}?", fields).names
        ('city', 'month')
        """
        named: Any = explain
        chosen = set(fields if named is None else [named] if isinstance(named, str) else named)
        if not fields:
            raise InputError("fields is empty: pass names, and the texts that stand in their places")
        places = set(_FIELD.findall(text))
        for name, value in fields.items():
            if name not in places:
                raise InputError(f"the template has no place {{{name}}}: it has {sorted(places)}")
            raw: Any = value
            if not isinstance(raw, str) or (name in chosen and not raw.strip()):
                raise InputError(f"the field {name!r} is {value!r}: pass a text, or do not explain it")
        if not chosen or not chosen <= set(fields):
            raise InputError(
                f"explain={sorted(chosen)} must name fields of the template, among {sorted(fields)}"
            )
        pieces: list[Piece] = []
        for i, piece in enumerate(_FIELD.split(text)):
            if i % 2 == 0 or piece not in fields:
                pieces.append(piece if i % 2 == 0 else f"{{{piece}}}")
            else:
                value = fields[piece]
                pieces.append(SourceText(piece, (value,)) if piece in chosen else value)
        return cls._of((Turn(tuple(pieces)),))

    @classmethod
    def chat(
        cls,
        messages: Sequence[Mapping[str, Any]],
        explain: Iterable[str | int] | None = None,
        *,
        by: str = "message",
    ) -> Prompt:
        """Return a prompt of chat messages, for the tokenizer's chat template.

        Parameters
        ----------
        messages
            {"role": "user", "content": text} each. A content may be a :class:`limes.Prompt` itself: a text
            with sources.
        explain
            Roles, or positions from 0, of the messages whose contents are shown or left out. None: the
            sources of contents that are prompts; without these, all messages but the last.
        by
            The parts of these contents: "message", "paragraph" or "sentence"; messages are the groups of the
            latter two. A message of which nothing is shown has an empty content.

        Raises
        ------
        InputError
            If a message has no role or content, or ``explain`` does not name one.

        Examples
        --------
        >>> import limes
        >>> messages = [
        ...     {"role": "system", "content": "Answer briefly."},
        ...     {"role": "user", "content": "I live in Rome. What shall I wear?"},
        ... ]
        >>> limes.Prompt.chat(messages, explain=["user"], by="sentence").names
        ('I live in Rome.', 'What shall I wear?')
        """
        check_choice("by", by, _MESSAGE)
        raw: Any = messages
        if isinstance(raw, str | Mapping) or not isinstance(raw, Iterable) or not (listed := [*raw]):
            raise InputError("messages must be a list of {'role': ..., 'content': ...}, one or more")
        checked = [_message(one, i) for i, one in enumerate(listed)]
        chosen = _chosen_messages(checked, explain)
        turns = []
        for i, message in enumerate(checked):
            content, facts = message["content"], {k: v for k, v in message.items() if k != "content"}
            if isinstance(content, Prompt):
                pieces: tuple[Piece, ...] = content._text_pieces(f"message {i}")  # noqa: SLF001 - its class
            elif i in chosen and content.strip():
                pieces = (SourceText(f"{facts['role']} {i}", _parts(content, by)),)
            else:
                pieces = (content,)
            turns.append(Turn(pieces, facts))
        prompt = cls._of(tuple(turns))
        if not prompt.units:
            raise InputError("the messages to explain are empty: there is nothing to leave out")
        return prompt

    def filled(self, fill: str) -> Prompt:
        """Return the prompt with a text in place of each part that is left out.

        Parameters
        ----------
        fill
            The text; "" leaves nothing.

        Raises
        ------
        InputError
            If it is no text.
        """
        if not isinstance(fill, str):
            raise InputError(f"fill must be a text, got {fill!r}")
        return self._of(self.turns, fill)

    def _text_pieces(self, where: str) -> tuple[Piece, ...]:
        if self.is_chat:
            raise InputError(f"{where} has a chat as its content: pass a Prompt of texts and sources")
        return self.turns[0].pieces

    # -- its parts -------------------------------------------------------------------------------------------

    @property
    def is_chat(self) -> bool:
        """Whether it has messages."""
        return self.turns[0].facts is not None

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The parts that are explained, in their order."""
        units: list[Unit] = []
        group = -1
        for t, turn in enumerate(self.turns):
            for p, piece in enumerate(turn.pieces):
                if isinstance(piece, str):
                    continue
                group += 1
                single = len(piece.parts) == 1
                names = [piece.label] if single else [part.strip() for part in piece.parts]
                units += [Unit(t, p, i, name, group) for i, name in enumerate(names)]
        return tuple(units)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parts that are explained: of a document, or their text."""
        return tuple(unit.name for unit in self.units)

    @cached_property
    def group(self) -> Ints:
        """The document or message of each part, (d,)."""
        return np.array([unit.group for unit in self.units])

    @cached_property
    def group_names(self) -> tuple[str, ...]:
        """Names of the documents, or of the messages that are explained."""
        return tuple(
            piece.label for turn in self.turns for piece in turn.pieces if isinstance(piece, SourceText)
        )

    @property
    def has_sources(self) -> bool:
        """Whether documents are parts of a text that has others, and no whole messages."""
        return any(len(turn.pieces) > 1 for turn in self.turns)

    @property
    def has_levels(self) -> bool:
        """Whether documents have several parts."""
        return len(self.group_names) < len(self.units)

    # -- its texts -------------------------------------------------------------------------------------------

    def compose(self, z: Any) -> list[Any]:
        """Return prompts of which some parts are shown.

        Parameters
        ----------
        z
            (n, d), 1 where a part is shown and 0 where it is left out.

        Returns
        -------
        list
            n texts, or n lists of messages of a chat.
        """
        rows = np.asarray(z) > 0.5
        return [self._composed(row.tolist()) for row in rows]

    def _composed(self, shown: list[bool]) -> Any:
        parts: Iterator[bool] = iter(shown)
        contents = ["".join(self._written(turn.pieces, parts)) for turn in self.turns]
        if not self.is_chat:
            return contents[0]
        return [
            {**(turn.facts or {}), "content": content}
            for turn, content in zip(self.turns, contents, strict=True)
        ]

    def _written(self, pieces: Sequence[Piece], shown: Iterator[bool]) -> Iterator[str]:
        for piece in pieces:
            if isinstance(piece, str):
                yield piece
                continue
            texts = [part if next(shown) else self._hidden(part) for part in piece.parts]
            if any(texts):
                yield from (*texts, piece.separator)

    def _hidden(self, part: str) -> str:
        # the space behind a part stays with what takes its place
        return self.fill + part[len(part.rstrip()) :] if self.fill else ""

    def __str__(self) -> str:
        """The whole prompt; of a chat with the roles of its messages."""
        return self._drawn[0]

    def __repr__(self) -> str:
        parts = f"{len(self.units)} part{'s' * (len(self.units) != 1)}"
        return f"<limes.Prompt of {len(str(self)):,} characters, {parts} to explain>"

    @cached_property
    def _drawn(self) -> tuple[str, list[tuple[int, int]]]:
        """The text that is shown to people, and where each part is in it."""
        text, spans = "", []
        for i, turn in enumerate(self.turns):
            if turn.facts is not None:
                text += f"{'' if i == 0 else chr(10) * 2}{turn.facts['role']}: "
            for piece in turn.pieces:
                if isinstance(piece, str):
                    text += piece
                    continue
                for part in piece.parts:
                    start = len(text) + len(part) - len(part.lstrip())
                    spans.append((start, len(text) + len(part.rstrip())))
                    text += part
                text += piece.separator
        return text, spans

    @property
    def key(self) -> str:
        """Tells prompts apart."""
        return repr((self.turns, self.fill))


@dataclass(frozen=True)
class PromptLevel:
    """The parts of a prompt, or its documents, as explanations name and draw them."""

    text: str
    names: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    @classmethod
    def parts_of(cls, prompt: Prompt) -> PromptLevel:
        text, spans = prompt._drawn  # noqa: SLF001 - of this module
        return cls(text, prompt.names, tuple(spans))

    @classmethod
    def documents_of(cls, prompt: Prompt) -> PromptLevel:
        text, spans = prompt._drawn  # noqa: SLF001 - of this module
        edges = [
            (spans[its[0]][0], spans[its[-1]][1])
            for its in (np.flatnonzero(prompt.group == g) for g in range(len(prompt.group_names)))
        ]
        return cls(text, prompt.group_names, tuple(edges))

    @property
    def conditions(self) -> tuple[str, ...]:
        repeated = len(set(self.names)) < len(self.names)
        pairs = zip(self.names, self.spans, strict=True)
        return tuple(
            f'"{name}" at {start} present' if repeated else f'"{name}" present' for name, (start, _) in pairs
        )

    @property
    def data(self) -> Objects:
        return np.ones(len(self.names), dtype=object)

    @property
    def picture(self) -> Mapping[str, Any]:
        spans = {c: [list(span)] for c, span in zip(self.conditions, self.spans, strict=True)}
        return {"text": self.text, "spans": spans}


def _pieces(pieces: Sequence[Any]) -> tuple[Piece, ...]:
    whole: list[Piece] = []
    for i, piece in enumerate(pieces):
        if isinstance(piece, Sources):
            whole += piece
        elif isinstance(piece, str):
            whole.append(piece)
        else:
            advice = ": pass limes.sources(documents)" if isinstance(piece, list | tuple | Mapping) else ""
            raise InputError(f"piece {i} of the prompt is no text, but {type(piece).__name__}{advice}")
    return tuple(whole)


def _message(raw: Any, i: int) -> Mapping[str, Any]:
    if not (isinstance(raw, Mapping) and isinstance(raw.get("role"), str)):
        raise InputError(
            f"message {i} must have a role and a content, such as {{'role': 'user', ...}}; got {raw!r}"
        )
    if not isinstance(raw.get("content"), str | Prompt):
        raise InputError(
            f"the content of message {i} must be a text or a limes.Prompt, got "
            f"{type(raw.get('content')).__name__}"
        )
    return raw


def _chosen_messages(messages: Sequence[Mapping[str, Any]], explain: Iterable[str | int] | None) -> set[int]:
    """Positions of the messages whose texts are explained."""
    if explain is None:
        if any(isinstance(message["content"], Prompt) for message in messages):
            return set()
        if len(messages) == 1:
            raise InputError(
                "the chat has one message: name it, explain=[0], or pass a limes.Prompt as its content"
            )
        return set(range(len(messages) - 1))
    wanted = [explain] if isinstance(explain, str | int) else [*explain]
    chosen: set[int] = set()
    roles = [message["role"] for message in messages]
    for one in wanted:
        if isinstance(one, int) and not isinstance(one, bool) and -len(roles) <= one < len(roles):
            chosen.add(one % len(roles))
        elif isinstance(one, str) and one in roles:
            chosen |= {i for i, role in enumerate(roles) if role == one}
        else:
            raise InputError(
                f"explain: {one!r} is no role and no position of the {len(roles)} messages, whose roles are "
                f"{sorted(set(roles))}"
            )
    if not chosen:
        raise InputError("explain is empty: name a role or a position")
    return chosen
