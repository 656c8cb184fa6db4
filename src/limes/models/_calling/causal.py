"""Causal language models of transformers: log-probabilities of answers after many prompts that begin alike.

A prompt and an answer are tokens, and the network gives log p(answer | prompt) = Σ_t log p(token t | prompt,
tokens before t). Prompts that differ in what was left out of them begin alike: what they share is run once,
and its keys and values are kept. Logits are computed for the tokens of answers alone, where the network
allows it. Texts of one prompt are tokenized together, as the network would read them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from inspect import signature
from itertools import compress
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.models._calling.hugging_face import longest_read
from limes.models._calling.networks import evaluating

Tokens: TypeAlias = tuple[int, ...]
# A text, or the messages of a chat
PromptText: TypeAlias = str | list[dict[str, Any]]

# Tokens of one pass, those that are kept of a shared beginning among them; processors have less to do at once
_TOKENS, _TOKENS_ON_GPU = 4096, 2**15
# Numbers of the logits of one pass, by those of its tokens in a layer; and at most
_LOGITS, _MOST_LOGITS = 8, 2**28
# A shorter beginning is not worth a separate pass
_SHORTEST_PREFIX = 16
# Names of kept keys and values, the newest first
_MEMORIES = ("cache", "past_key_values")
# Rows of the product of matrices that tells the speed
_TRIED = 256
# Ends of the names of networks that write what follows a text
_CAUSAL = ("ForCausalLM", "LMHeadModel")


def is_causal(model: Any) -> bool:
    """Whether it is a pair (network, tokenizer), or a pipeline that writes texts."""
    pair = isinstance(model, tuple) and len(model) == 2 and hasattr(model[0], "config")
    return pair or getattr(model, "task", None) == "text-generation"


@dataclass(eq=False)
class CausalModel:
    """A network that writes what follows a text, with its tokenizer.

    ``batch_tokens`` bounds the tokens of one pass, and so its memory.
    """

    network: Any
    tokenizer: Any
    batch_tokens: int | None = None
    # the last beginning that was run, with its keys and values: None where the network cannot use them
    _prefix: tuple[Tokens, Any] = field(default=((), None), init=False)
    _shares: bool = field(default=True, init=False)
    passes: int = field(default=0, init=False)  # of the network, so far
    tokens: int = field(default=0, init=False)  # that it read, so far

    @classmethod
    def of(cls, model: Any, batch_tokens: int | None = None) -> CausalModel:
        """Take a pair (network, tokenizer) or a pipeline; InputError for another kind of network."""
        network, tokenizer = model if isinstance(model, tuple) else (model.model, model.tokenizer)
        if not hasattr(tokenizer, "decode"):
            raise InputError(
                f"a pair is (network, tokenizer), got {type(tokenizer).__name__} for the tokenizer"
            )
        name = type(network).__name__
        if getattr(network.config, "is_encoder_decoder", False) or not name.endswith(_CAUSAL):
            raise InputError(
                f"{name} is no causal language model (AutoModelForCausalLM): pass a function from a list of "
                "prompts to numbers, such as the log-probability of one answer"
            )
        return cls(network, tokenizer, batch_tokens)

    @property
    def name(self) -> str:
        return type(self.network).__name__

    @property
    def longest(self) -> int | None:
        """Largest number of tokens that the network was made for; None if it states none."""
        return longest_read(self.network, self.tokenizer)

    @property
    def room(self) -> int:
        """Tokens of one pass at most."""
        on_processor = str(self.network.device).startswith("cpu")
        return self.batch_tokens or (_TOKENS if on_processor else _TOKENS_ON_GPU)

    # -- tokens ----------------------------------------------------------------------------------------------

    def read(self, prompt: PromptText) -> Tokens:
        """The tokens of a prompt: with those that the tokenizer puts in front, or of the chat template."""
        if isinstance(prompt, str):
            return tuple(self.tokenizer(prompt)["input_ids"])
        if getattr(self.tokenizer, "chat_template", None) is None:
            raise InputError(
                f"{type(self.tokenizer).__name__} has no chat template: pass a Prompt of texts, not "
                "Prompt.chat, or set tokenizer.chat_template"
            )
        text = self.tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def answer(self, text: str) -> Tokens:
        tokens = tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        if not tokens:
            raise InputError(f"the answer {text!r} has no tokens: pass a text")
        return tokens

    def text(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode([*tokens], skip_special_tokens=True))

    def ends(self, tokens: Tokens) -> list[int]:
        """How long the text of an answer is up to each of its tokens."""
        return [len(self.text(tokens[: i + 1])) for i in range(len(tokens))]

    # -- the network -----------------------------------------------------------------------------------------

    def written(self, prompt: Tokens, most: int) -> Tokens:
        """The likeliest token after a prompt, and after that, up to ``most`` or to the end of the text."""
        torch = import_module("torch")
        its_end = getattr(getattr(self.network, "generation_config", None), "eos_token_id", None)
        ends = {*np.atleast_1d(its_end if its_end is not None else self.tokenizer.eos_token_id).tolist()}
        written: list[int] = []
        with evaluating(self.network), torch.inference_mode():
            new, past = torch.tensor([prompt], device=self.network.device), None
            self._count(len(prompt))
            while len(written) < most:
                options = {self._memory: past, **self._keep(np.array([new.shape[1] - 1]))}
                output = self.network(input_ids=new, use_cache=True, **options)
                token = int(output.logits[0, -1].argmax())
                if token in ends:
                    break
                written.append(token)
                past = _memory_of(output)
                # a network that keeps nothing reads everything again
                rest = [token] if past is not None else [*prompt, *written]
                new = torch.tensor([rest], device=self.network.device)
        return tuple(written)

    def begin(self, prompts: Sequence[Tokens]) -> int:
        """Keep what these prompts share, and others are expected to: the number of its tokens."""
        shared = common_prefix(prompts)
        # the last token of a prompt is run with its answer
        shared = shared[: min(map(len, prompts)) - 1]
        self._prefix = (), None
        if len(shared) < _SHORTEST_PREFIX or not self._shares:
            return 0
        torch = import_module("torch")
        with evaluating(self.network), torch.inference_mode():
            new = torch.tensor([shared], device=self.network.device)
            past = _memory_of(self.network(input_ids=new, use_cache=True, **self._keep(np.array([0]))))
        self._count(len(shared))
        if hasattr(past, "batch_repeat_interleave"):
            self._prefix = shared, past
        else:  # an older library, or a network with another kind of memory
            self._shares = False
        return len(self._prefix[0])

    def examined(self, prompt: Tokens, answers: Sequence[Tokens]) -> tuple[list[Floats], list[Tokens]]:
        """Log-probabilities of answers after a whole prompt, and the tokens that are likeliest at each."""
        scored = [self._run([prompt + answer[:-1]], (), None, len(answer))[0](answer) for answer in answers]
        return [one.logs for one in scored], [one.likeliest for one in scored]

    def give_up_sharing(self) -> None:
        """Run whole prompts from now on, as kept beginnings gave other numbers."""
        self._shares, self._prefix = False, ((), None)

    def log_probabilities(self, prompts: Sequence[Tokens], answers: Sequence[Tokens]) -> list[list[Floats]]:
        """Log-probabilities (tokens,) of each answer after each prompt."""
        # answers of one token are read off one pass
        together = all(len(answer) == 1 for answer in answers)
        rows: dict[Tokens, None] = {}
        for prompt in prompts:
            for answer in answers[:1] if together else answers:
                rows[prompt + answer[:-1]] = None
        lengths = {len(answer) for answer in answers}
        logs: dict[tuple[Tokens, Tokens], Floats] = {}
        for some, logits in self._passes(sorted(rows, key=len), max(lengths)):
            for ids, rest in zip(some, logits, strict=True):
                for answer in answers:
                    before = ids[: len(ids) - len(answer) + 1]
                    if before + answer[:-1] == ids:
                        logs[before, answer] = rest(answer).logs
        return [[logs[prompt, answer] for answer in answers] for prompt in prompts]

    def _passes(
        self, rows: Sequence[Tokens], most: int
    ) -> Iterator[tuple[list[Tokens], list[Callable[[Tokens], Scored]]]]:
        """Rows in batches, and for each row a function from the last tokens to their log-probabilities."""
        prefix, past = self._prefix
        # all logits that count are behind what is kept
        beginning = [row[: len(prefix)] == prefix and len(row) - most >= len(prefix) for row in rows]
        others = [not shared for shared in beginning]
        for chosen, kept, memory in ((beginning, prefix, past), (others, (), None)):
            its = [*compress(rows, chosen)]
            start = 0
            while start < len(its):
                stop = start + 1
                while stop < len(its) and self._fits(its[start : stop + 1], most):
                    stop += 1
                yield its[start:stop], self._run(its[start:stop], kept, memory, most)
                start = stop

    def _fits(self, rows: Sequence[Tokens], most: int) -> bool:
        """Whether rows, the longest of which is the last, and their logits fit into one pass."""
        width = int(getattr(self.network.config, "hidden_size", 1024))
        kept = len(_places(rows, 0, most)) if self._keeps_some else len(rows[-1])
        logits = len(rows) * kept * int(getattr(self.network.config, "vocab_size", 1))
        fit = logits <= min(_LOGITS * width * self.room, _MOST_LOGITS)
        return fit and len(rows) * len(rows[-1]) <= self.room

    def _run(
        self, rows: Sequence[Tokens], prefix: Tokens, past: Any, most: int
    ) -> list[Callable[[Tokens], Scored]]:
        torch = import_module("torch")
        new = [row[len(prefix) :] for row in rows]
        width, device = max(map(len, new)), self.network.device
        # padded behind: a token does not see what follows it
        x = torch.zeros((len(new), width), dtype=torch.long)
        for i, ids in enumerate(new):
            x[i, : len(ids)] = torch.tensor(ids)
        mask = torch.ones((len(new), len(prefix) + width), dtype=torch.long)
        for i, ids in enumerate(new):
            mask[i, len(prefix) + len(ids) :] = 0
        # logits where any row has its last tokens; of these each reads its own
        keep = _places(rows, len(prefix), most)
        options: dict[str, Any] = {"attention_mask": mask.to(device), **self._keep(keep)}
        if past is None:
            options["use_cache"] = False
        else:
            memory = deepcopy(past)
            memory.batch_repeat_interleave(len(new))
            options[self._memory] = memory
        with evaluating(self.network), torch.inference_mode():
            logits = self.network(input_ids=x.to(device), **options).logits
        if logits.shape[1] != keep.size:
            logits = logits[:, keep]
        self._count(len(new) * width)

        def reader(i: int) -> Callable[[Tokens], Scored]:
            def read(answer: Tokens) -> Scored:
                last = int(np.searchsorted(keep, len(new[i])))
                # GPUs of Apple have no doubles
                its = logits[i, last - len(answer) : last].float().cpu().double().log_softmax(-1)
                logs = its.gather(1, torch.tensor(answer)[:, None])[:, 0].numpy()
                return Scored(np.asarray(logs), tuple(its.argmax(-1).tolist()))

            return read

        return [reader(i) for i in range(len(new))]

    def _keep(self, positions: Any) -> dict[str, Any]:
        """The option that makes a network compute logits at some positions alone, where it has one."""
        if not self._keeps_some:
            return {}
        torch = import_module("torch")
        return {"logits_to_keep": torch.tensor(positions, device=self.network.device)}

    @cached_property
    def _parameters(self) -> frozenset[str]:
        return frozenset(signature(self.network.forward).parameters)

    @property
    def _keeps_some(self) -> bool:
        return "logits_to_keep" in self._parameters

    @property
    def _memory(self) -> str:
        """The name under which a network takes kept keys and values."""
        return next((name for name in _MEMORIES if name in self._parameters), _MEMORIES[-1])

    def _count(self, tokens: int) -> None:
        self.passes, self.tokens = self.passes + 1, self.tokens + tokens

    def seconds(self, tokens: int) -> float:
        """About the seconds of passes over some tokens: two operations a weight and token.

        By a product of matrices of the network's width and precision: the network is not asked.
        """
        torch = import_module("torch")
        network = self.network
        weights = sum(p.numel() for p in network.parameters()) - sum(
            p.numel() for p in network.get_input_embeddings().parameters()
        )
        width = int(getattr(network.config, "hidden_size", 1024))
        a = torch.ones((_TRIED, width), dtype=network.dtype, device=network.device)
        b = torch.ones((width, 4 * width), dtype=network.dtype, device=network.device)
        times = []
        for _ in range(3):
            start = time.perf_counter()
            float((a @ b)[0, 0])  # which waits for a GPU
            times.append(time.perf_counter() - start)
        return float(tokens * weights / (_TRIED * 4 * width * width) * min(times))

    @property
    def precision(self) -> float:
        """The relative rounding of the network's numbers."""
        torch = import_module("torch")
        return float(torch.finfo(self.network.dtype).eps)


class Scored(NamedTuple):
    """The tokens of an answer after a prompt."""

    logs: Floats  # log-probabilities, (tokens,)
    likeliest: Tokens  # in the place of each


def _places(rows: Sequence[Tokens], start: int, most: int) -> Any:
    """Places, counted from ``start``, of the ``most`` last tokens of each row; those of all rows in order."""
    ends = np.array([len(row) - start for row in rows])
    places = np.unique(ends[:, None] - 1 - np.arange(most))
    return places[places >= 0]


def _memory_of(output: Any) -> Any:
    """Keys and values of a pass; None of a network that keeps none."""
    return next((its for name in _MEMORIES if (its := getattr(output, name, None)) is not None), None)


def common_prefix(rows: Sequence[Tokens]) -> Tokens:
    shortest, longest = min(rows), max(rows)
    same = next(
        (i for i, (a, b) in enumerate(zip(shortest, longest, strict=False)) if a != b),
        min(len(shortest), len(longest)),
    )
    return shortest[:same]
