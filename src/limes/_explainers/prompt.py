r"""Explain which parts of a prompt made a language model answer as it did.

v(S) = log p(answer | prompt with the parts S), and φ_j is Shapley's value of part j: the account adds up to
log p(answer | whole prompt) - log p(answer | no part). An answer's log-probability is the sum of those of its
sentences, which are further outputs, from the same calls; what their estimates miss the whole answer's
by is shared by them, in proportion to their mean squared errors.
"""

from __future__ import annotations

import itertools
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Never

import numpy as np

from limes import __version__
from limes._arrays import Floats, fingerprint, streams
from limes._checks import check_choice, check_count, refuse_in_call, refuse_unknown
from limes._explainers.hierarchy import (
    GroupedUnits,
    LevelAccount,
    account_of,
    coarse_facts,
    contributions_of,
    pair_facts,
    with_random_answers,
)
from limes._explainers.options import SamplingOptions
from limes._explainers.prompts import Prompt, PromptLevel
from limes._explainers.results import UNFINISHED, answers_alike, repetitions
from limes._explainers.splits import sentences
from limes._explanation import Explanation
from limes._explanation.attribution import NO_SURROGATE
from limes._explanation.differences import OF_PROMPTS
from limes._explanation.drawing import Described
from limes._explanation.explanation import frozen_explanation
from limes._explanation.fields import plain_fact
from limes._explanation.view import LOG_PROBABILITY, SHAPLEY
from limes._explanation.wording import count, number, shorten
from limes._sampling.controls.control import evenly_spread
from limes._sampling.least_squares import student_factors
from limes._sampling.sampled import CALLS
from limes._threads import LRUCache, in_words, one_blas_thread, progress_of
from limes._warnings import RowWarning, sentence
from limes.exceptions import InputError, ModelError
from limes.models._calling.border import FAILURES, Border, failure_text
from limes.models._calling.caller import Calls, ModelCaller, Retry, spread_of, with_retries
from limes.models._calling.causal import CausalModel, PromptText, Tokens, common_prefix, is_causal
from limes.models._calling.counts import AnswerCount, count_answers
from limes.models._calling.hugging_face import refuse_parts
from limes.models._calling.networks import is_module
from limes.models._calling.outputs import Output

# Parts of an answer that are outputs
_BY = ("sentence", "token", "answer")
# The answer to a prompt without any source is about as likely: this share of its probability is there already
_ALREADY = 0.5
# Probabilities below exp of it are written as powers of e
_SMALL = -10.0
# A kept beginning gives the numbers that whole prompts give, but for this root of the network's rounding
_SAME = 0.5
_PARTS_SHOWN = 60
# Prompts that a function is asked about again where all subsets are answered: it may write at random
_ASKED_AGAIN = 16
# Calls cost more than those of other models: this share of the largest contribution will do
_ACCURACY = "5%"

_MEANING = (
    "contribution to the log-probability of the answer when the source is in the prompt, the mean over "
)
_MEANING += "all orders of adding sources"
_OF_FUNCTIONS = (
    "contribution to the prediction when the source is in the prompt, the mean over all orders of "
)
_OF_FUNCTIONS += "adding sources"

Similarity = Callable[[str, str], float]


@dataclass(frozen=True)
class Cost:
    """The cost of an explanation, before a model is asked.

    Attributes
    ----------
    calls
        Prompts that are answered, at most: by a function that gives each prompt one answer.
    tokens
        About the tokens that a network reads for them, the shared beginning once; None of functions.
    unshared_tokens
        The same if each prompt were read from its first token.
    characters
        About the characters of all prompts.
    passes
        Passes of a network, of ``batch_tokens`` each; None of functions.
    seconds
        About the seconds that they take, by the speed of this machine's matrix products, or by the calls
        that the explainer has made; None of a function that was not called yet.
    random_calls
        The same of a function whose answers to one prompt differ; None of networks.
    """

    calls: int
    tokens: int | None
    unshared_tokens: int | None
    characters: int
    passes: int | None
    seconds: float | None
    random_calls: int | None = None

    def __str__(self) -> str:
        text = count(self.calls, "call")
        if self.tokens is not None:
            passes = f"{self.passes:,} pass{'es' * (self.passes != 1)}"
            text += f", about {self.tokens:,} tokens in {passes} of the network"
            text += f" ({self.unshared_tokens:,} without the shared beginning)"
        else:
            text += f", about {self.characters:,} characters"
        if self.seconds is not None:
            text += f", about {in_words(self.seconds)}"
        if self.random_calls is not None and self.random_calls > self.calls:
            text += f"; up to {self.random_calls:,} calls if answers to one prompt differ"
        return text


@dataclass(frozen=True, eq=False)
class _Game:
    """A model that answers the prompts of one explanation."""

    predict: Callable[[list[Any]], Any]  # prompts -> (n,) or (n, k)
    outputs: tuple[str, ...] | None  # names; None where the answers name them
    is_sum: bool = False  # whether the first output is the sum of the others
    quantity: str = ""
    texts: tuple[str, ...] = ()  # remarks
    facts: Mapping[str, Any] = field(default_factory=dict)
    is_checked: bool = False  # whether it is known to answer alike to one prompt
    knows: Callable[[Floats, Floats], str] = lambda none, whole: ""  # noqa: ARG005 - most need none


class _Model(ABC):
    """A model of prompts, as an explainer takes it."""

    name: str
    meaning = _OF_FUNCTIONS
    batch_size: int | None = None  # prompts at once; None leaves it to the user
    seconds_a_call: float | None = None
    may_be_random = True  # whether answers to one prompt may differ

    @abstractmethod
    def game(self, prompt: Prompt, answer: Any, by: str) -> _Game:
        """Bind the model to a prompt and an answer; it may be asked about the whole prompt."""

    @abstractmethod
    def cost(self, prompt: Prompt, answer: Any, calls: int) -> Cost: ...

    @abstractmethod
    def checks_of(self, answer: Any) -> int:
        """Calls that write an answer, or ask again whether answers repeat."""


class PromptExplainer(Described):
    r"""Explain which parts of a prompt made a language model answer as it did, from few calls.

    φ_j = Σ_S |S|! (d - |S| - 1)! / d! (v(S + j) - v(S)), with v(S) = log p(answer | prompt with the parts S):
    contributions of the d parts of a :class:`limes.Prompt`, Shapley values, in natural logarithms. They add
    up to v(all) - v(none). If ``max_calls`` allows for all 2^d subsets, and some checks, contributions are
    exact; else sets are drawn, and errors are stated.

    Parts of documents, such as sentences, are explained at two levels: documents g are players of a game v of
    whole documents, with Shapley values Φ_g, to which their parts add up. If all subsets of up to twelve
    parts are answered, these have Owen's value, the mean over orders in which a document's parts stand
    together; else they share Φ_g - Σ_j φ_j in proportion to φ_j².

    Parameters
    ----------
    model
        A pair (network, tokenizer) of a causal language model of ``transformers``, or a text-generation
        pipeline; or a function of a list of prompts (texts, or lists of messages for ``Prompt.chat``) that
        returns numbers, (n,) or (n, k), such as log-probabilities from a hosted model; or, with
        ``similarity``, a function of such a list that returns the n written answers.
    max_calls
        Most prompts that the model answers in a call of the explainer, checks included.
    fill
        Stands in the place of each part that is left out; "" leaves nothing.
    similarity
        (answer, written text) -> number, for a function that writes texts: how alike they are.
    max_new_tokens
        Most tokens of an answer that the model writes itself.
    tolerance
        The standard error that ``contributions.converged`` judges by: a number, or a share of the largest
        contribution. None is 5 % of it.
    rng
        Seed of the sets that are drawn: a result depends on it, the prompt and the answer alone.
    batch_tokens
        Tokens of one pass of a network at most, which bounds its memory. None: 4,096 on processors, 32,768 on
        GPUs.
    batch_size
        Prompts that a function gets at once, at most.
    retry
        (error, attempt) -> seconds to wait before a failed batch is tried again, or None to give up.

    Raises
    ------
    InputError
        If an option or the model is not usable.

    References
    ----------
    Lundberg & Lee, "A Unified Approach to Interpreting Model Predictions", 2017; Cohen-Wang et al.,
    "ContextCite: Attributing Model Generation to Context", 2024, whose log odds are another target.

    Examples
    --------
    >>> import limes
    >>> def log_odds_of_rome(prompts):
    ...     return [2.0 * ("Rome" in text) + ("capital" in text) - 1.0 for text in prompts]
    >>> facts = limes.sources(["Rome is old.", "It is the capital.", "It rains."])
    >>> explainer = limes.PromptExplainer(log_odds_of_rome)
    >>> explanation = explainer(limes.Prompt("Read:\n", facts, "Which city is meant?"))
    >>> print(explanation.contributions.values[0].round(6) + 0.0, explanation.method)
    [2. 1. 0.] exact
    """

    def __init__(
        self,
        model: Any,
        *,
        max_calls: int = 64,
        fill: str = "",
        similarity: Similarity | None = None,
        max_new_tokens: int = 64,
        tolerance: float | str | None = None,
        rng: int | np.random.Generator | np.random.SeedSequence | None = None,
        batch_tokens: int | None = None,
        batch_size: int = 16,
        retry: Retry | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, PromptExplainer)
        self._options = SamplingOptions(
            max_calls=max_calls,
            tolerance=_ACCURACY if tolerance is None else tolerance,
            rng=rng,
            batch_size=batch_size,
            retry=retry,
        )
        self._max_calls = check_count("max_calls", max_calls, _LEAST_CALLS)
        if not isinstance(fill, str):
            raise InputError(f"fill must be a text, got {fill!r}")
        self._fill = fill
        if similarity is not None and not callable(similarity):
            raise InputError(
                f"similarity must be a callable (answer, written text) -> number, got {similarity!r}"
            )
        tokens = None if batch_tokens is None else check_count("batch_tokens", batch_tokens)
        longest = check_count("max_new_tokens", max_new_tokens)
        self._model = _model_of(model, similarity, tokens, longest)
        self._provenance = {
            "meaning": self._model.meaning,
            "base": "with every source left out",
            "limes": __version__,
            "model": self._model.name,
            **({"fill": fill} if fill else {}),
        }
        # answers of explanations that were cut short; the same call continues from them
        self._unfinished: LRUCache[Hashable, tuple[Calls, Floats]] = LRUCache(UNFINISHED)

    def _facts(self) -> Mapping[str, Any]:
        return self._provenance

    def cost(self, prompt: Prompt, answer: Any = None, *, max_calls: int | None = None) -> Cost:
        r"""Say what an explanation costs; the model is not asked.

        Parameters
        ----------
        prompt, answer
            As in a call. Without an answer, the tokens that the model writes are not counted.
        max_calls
            The explainer's if None.

        Raises
        ------
        InputError
            If they are not usable.

        Examples
        --------
        >>> import limes
        >>> prompt = limes.Prompt("Read:\n", limes.sources(["It rains."] * 20), "Does it rain?")
        >>> print(limes.PromptExplainer(len).cost(prompt, max_calls=32))
        32 calls, about 3,808 characters
        """
        prompt = self._checked(prompt)
        most = self._max_calls if max_calls is None else check_count("max_calls", max_calls)
        enough = 2 ** len(prompt.units) + _CHECKS + self._model.checks_of(answer)
        cost = self._model.cost(prompt, answer, min(most, enough))
        return replace(cost, random_calls=most) if self._model.may_be_random else cost

    def __call__(
        self,
        prompt: Prompt,
        answer: Any = None,
        *,
        by: str = "sentence",
        progress: bool = True,
        **unknown: Never,
    ) -> Explanation:
        """Explain the log-probability of an answer to a prompt.

        Parameters
        ----------
        prompt
            A :class:`limes.Prompt`.
        answer
            A text; or several texts, in a list or set, of which each has its log odds against the others;
            or None: the text that the model writes greedily. Functions that return numbers score their
            answer, and take None.
        by
            Outputs beside the whole answer, where it has several: "sentence", "token", or "answer" for none.
            They add up to it.
        progress
            Show a progress bar when it takes more than a second or two.

        Returns
        -------
        Explanation
            Of one row, whose features are the parts of the prompt; ``levels`` has documents and their parts.

        Raises
        ------
        InputError
            If the prompt or the answer is not usable.
        ModelError
            If the model fails; the same call continues from the answers that it gave.
        KeyboardInterrupt
            If the user stops it (Ctrl-C); the same call continues.
        """
        if unknown:
            refuse_in_call(unknown, PromptExplainer)
        check_choice("by", by, _BY)
        return self._explained(self._checked(prompt), answer, by, progress=progress)

    def _checked(self, prompt: Any) -> Prompt:
        if not isinstance(prompt, Prompt):
            raise InputError(
                f"expected a limes.Prompt, got {type(prompt).__name__}: pass limes.Prompt('text', "
                "limes.sources(documents), 'question')"
            )
        return prompt.filled(self._fill) if self._fill else prompt

    @one_blas_thread()
    def _explained(self, prompt: Prompt, answer: Any, by: str, *, progress: bool) -> Explanation:
        options, d = self._options, len(prompt.units)
        key = repr((prompt.key, sorted(map(repr, answer)) if isinstance(answer, set) else answer, by))
        with AnswerCount().counting() as tally:
            game = self._model.game(prompt, answer, by)
            predict = _named(game.predict, self._model.name)
            caller = ModelCaller(predict, Output("", None, None), prompt.compose, kind="prompt")
            ends = np.stack([np.zeros(d), np.ones(d)])
            answers = with_retries(caller, ends, options.retry).reshape(2, -1)
            spread = 0.0 if game.is_checked else _spread(caller, ends, answers, options.retry)
            most = self._max_calls - tally.rows + len(ends)
            make = partial(
                Calls,
                lambda z: caller(z).reshape(len(z), -1),
                batch_size=self._model.batch_size or options.batch_size,
                retry=options.retry,
            )
            calls = make(is_function=spread == 0.0)
            calls.keep(ends, answers)
            unfinished = self._unfinished.take(key)
            if unfinished is not None and answers_alike(unfinished[1], answers, spread):
                calls = unfinished[0]
                tally.add(len(calls) - len(ends))
            before, start = tally.rows, time.perf_counter()
            try:
                with progress_of(shown=progress)(most, CALLS) as calls.on_progress:
                    account = self._account(prompt, calls, answers[1], most, is_function=spread == 0.0)
                    if account.is_exact and spread == 0.0 and not game.is_checked:
                        again = min(self._max_calls - tally.rows, _ASKED_AGAIN)
                        spread, noise = _moved(calls, make(), d, again)
                        account = with_random_answers(account, noise) if spread else account
            except (ModelError, KeyboardInterrupt):
                self._unfinished.put(key, (calls, answers))
                raise
            if tally.rows > before:
                self._model.seconds_a_call = (time.perf_counter() - start) / (tally.rows - before)
            account = _adding_up(account) if game.is_sum else account
            return self._explanation(prompt, game, caller, account, answers[1], tally.rows, spread)

    def _account(
        self, prompt: Prompt, calls: Calls, whole: Floats, most: int, *, is_function: bool
    ) -> LevelAccount:
        units, ask = GroupedUnits.of(np.arange(len(prompt.units)), prompt.group), calls.one_pass(calls)
        stream = streams(self._options.sampling.seed, fingerprint(np.ones(len(prompt.units))), 1)[0]
        return account_of(
            ask,
            units,
            whole,
            most,
            np.random.default_rng(stream),
            is_function=is_function,
            accuracy=self._options.sampling.accuracy,
        )

    def _explanation(
        self,
        prompt: Prompt,
        game: _Game,
        caller: ModelCaller,
        account: LevelAccount,
        whole: Floats,
        calls: int,
        spread: float,
    ) -> Explanation:
        sampling, exact = self._options.sampling, account.is_exact and spread == 0.0
        names = game.outputs or Output("", None, None).names(_axes(whole), caller.names)
        predictions = whole if whole.size == 1 else whole[None]
        parts = PromptLevel.parts_of(prompt)
        texts = [*game.texts, *filter(None, [game.knows(account.base, whole)])]
        kind = "message" if prompt.is_chat and not prompt.has_sources else "document"
        coarse = {"coarse": coarse_facts(account, PromptLevel.documents_of(prompt), names, kind)}
        return frozen_explanation(
            contributions=contributions_of(
                account, predictions, accuracy=sampling.accuracy, exact=exact, calls=calls, spread=spread
            ),
            predictions=predictions,
            calls=np.zeros(1, dtype=np.int64),
            feature_names=parts.names,
            output_names=names,
            conditions=(parts.conditions,),
            data=parts.data[None],
            method="exact" if exact else "sampled",
            reason="the model was asked about every subset of the parts" if exact else "",
            row_warnings=((*repetitions(spread), *(RowWarning(text, "input") for text in texts)),),
            ids=(0,),
            provenance=plain_fact(
                {
                    **parts.picture,
                    **self._provenance,
                    "weights": SHAPLEY,
                    NO_SURROGATE: OF_PROMPTS,
                    "seed": None if exact else sampling.seed,
                    **({} if exact else {"tolerance": str(sampling.accuracy)}),
                    **({"quantity": game.quantity} if game.quantity else {}),
                    **game.facts,
                    **(coarse if prompt.has_levels else {}),
                    **pair_facts(account, parts.conditions, names),
                },
                "provenance",
            ),
        )


# Prompts that are answered twice; calls without which there is no estimate
_CHECKS, _LEAST_CALLS = 2, 8


def _spread(caller: ModelCaller, ends: Floats, answers: Floats, retry: Retry | None) -> float:
    """The largest difference of two answers to one prompt; 0 if it is rounding."""
    each = [with_retries(caller, ends[i : i + 1], retry) for i in range(len(ends))]
    again = np.concatenate(each).reshape(answers.shape)
    return spread_of(answers, np.abs(answers - again))


def _moved(calls: Calls, again: Calls, d: int, count: int) -> tuple[float, Floats]:
    """By how much answers to at most n sets moved when asked for ``again``, and the variance of one, (k,)."""
    if count < 1:
        return 0.0, np.zeros(1)
    z = (np.arange(1 << d)[:, None] >> np.arange(d) & 1).astype(np.float64)
    some = z[evenly_spread(len(z), count)]
    answers = calls(some)
    moved = again(some) - answers
    # two answers differ by twice the variance of one, of which few pairs say little
    factor = student_factors(np.array(float(len(some))))
    return spread_of(answers, np.abs(moved)), factor**2 * (moved**2).mean(axis=0) / 2.0


def _axes(whole: Floats) -> tuple[int, ...]:
    return () if whole.size == 1 else (whole.size,)


def _named(predict: Callable[[list[Any]], Any], name: str) -> Callable[[list[Any]], Any]:
    """The function with the model's name, for messages."""

    def ask(prompts: list[Any]) -> Any:
        return predict(prompts)

    ask.__name__ = name
    return ask


def _adding_up(account: LevelAccount) -> LevelAccount:
    """The account whose outputs behind the first add up to it.

    Each has a share of what they miss that is the same for all parts: contributions add up as before.
    """

    def weights(errors: Floats) -> Floats:
        squares = (errors[:, 1:] ** 2).mean(axis=0)
        total = squares.sum()
        return squares / total if total > 0 else np.full(squares.size, 1.0 / squares.size)

    shares = weights(account.errors)

    def mended(values: Floats) -> Floats:
        missed = values[:, :1] - values[:, 1:].sum(axis=1, keepdims=True)
        return np.concatenate([values[:, :1], values[:, 1:] + missed * shares], axis=1)

    return account._replace(values=mended(account.values), of_groups=mended(account.of_groups))


# -- networks ------------------------------------------------------------------------------------------------


class _Network(_Model):
    """A causal language model with its tokenizer."""

    meaning = _MEANING
    batch_size = 64  # passes have their own bound
    may_be_random = False

    def __init__(self, causal: CausalModel, max_new_tokens: int) -> None:
        self._causal, self._most = causal, max_new_tokens
        self.name = causal.name

    def game(self, prompt: Prompt, answer: Any, by: str) -> _Game:
        causal = self._causal
        none, whole = self._ends(prompt)
        if answer is not None and not isinstance(answer, str):
            texts = _texts(answer)
            answers = [causal.answer(text) for text in texts]
            scores = _Scores(causal, answers, _log_odds_of)
            self._share(scores, none, whole)
            window = self._window(whole, max(answers, key=len))
            return _Game(scores, texts, quantity="log-odds", texts=window, is_checked=True)
        tokens = causal.written(whole, self._most) if answer is None else causal.answer(_text(answer))
        if answer is None:
            count_answers(1)
            if not tokens:
                raise InputError(
                    f"{self.name} writes nothing after this prompt: pass answer=, the text to explain"
                )
        text = causal.text(tokens) if answer is None else str(answer)
        names, cuts = self._spans(tokens, text, by)
        scores = _Scores(causal, [tokens], partial(_sums, cuts))
        likeliest = self._share(scores, none, whole)[0]
        return _Game(
            scores,
            names,
            is_sum=len(cuts) > 1,
            quantity=LOG_PROBABILITY,
            texts=(*self._window(whole, tokens), *self._unwritten(tokens, likeliest)),
            facts={"text of the answer": text},
            is_checked=True,
            knows=_knows,
        )

    def _share(self, scores: _Scores, none: Tokens, whole: Tokens) -> list[Tokens]:
        """Keep what prompts share, if it gives a whole prompt's numbers; return its likeliest tokens."""
        causal = self._causal
        plain, likeliest = causal.examined(whole, scores.answers)
        count_answers(1)
        if causal.begin([none, whole]):
            kept = causal.log_probabilities([whole], scores.answers)[0]
            pairs = zip(kept, plain, strict=True)
            missed = max(float(np.abs(a.sum() - b.sum()) / (1.0 + np.abs(b.sum()))) for a, b in pairs)
            if missed > causal.precision**_SAME:
                causal.give_up_sharing()
            else:
                plain = kept
        scores.answered[whole] = plain
        return likeliest

    def _unwritten(self, answer: Tokens, likeliest: Tokens) -> tuple[str, ...]:
        places = [i for i, (a, b) in enumerate(zip(answer, likeliest, strict=True)) if a != b]
        if not places:
            return ()
        i, text = places[0], self._causal.text
        words = {"its": text(likeliest[i : i + 1]), "word": text(answer[i : i + 1])}
        words["place"] = f", after {text(answer[:i])!r}" if i else ""
        return (sentence("input", "unwritten", model=self.name, **words),)

    def _ends(self, prompt: Prompt) -> tuple[Tokens, Tokens]:
        none, whole = map(self._causal.read, _drawn_ends(prompt))
        if not none:
            raise InputError(
                "nothing is left of the prompt without its parts, and the tokenizer puts nothing in front: "
                "add a text to the prompt that always stays"
            )
        return none, whole

    def _spans(self, tokens: Tokens, text: str, by: str) -> tuple[tuple[str, ...], list[tuple[int, int]]]:
        """Names of outputs, and the tokens, from and up to, of each part of the answer."""
        whole = (" ".join(text.split()) or text, [(0, len(tokens))])
        ends = self._causal.ends(tokens)
        if by == "token":
            edges = [0, *ends]
            names = [text[a:b].strip() or repr(text[a:b]) for a, b in itertools.pairwise(edges)]
            cuts = [(i, i + 1) for i in range(len(tokens))]
        elif by == "sentence":
            # a token belongs to the sentence in which it ends
            starts = [start for start, _ in sentences(text)]
            which = np.maximum(np.searchsorted(starts, np.array(ends) - 1, side="right") - 1, 0)
            firsts = np.flatnonzero(np.diff(which, prepend=-1))
            cuts = [(int(a), int(b)) for a, b in zip(firsts, [*firsts[1:], len(tokens)], strict=True)]
            names = [text[0 if a == 0 else ends[a - 1] : ends[b - 1]].strip() for a, b in cuts]
        else:
            return (whole[0],), whole[1]
        if len(cuts) < 2:
            return (whole[0],), whole[1]
        return _different((whole[0], *(" ".join(name.split()) for name in names))), cuts

    def _window(self, whole: Tokens, answer: Tokens) -> tuple[str, ...]:
        longest, tokens = self._causal.longest, len(whole) + len(answer)
        if longest is None or tokens <= longest:
            return ()
        return (sentence("input", "window", tokens=tokens, model=self.name, longest=longest),)

    def checks_of(self, answer: Any) -> int:  # noqa: ARG002 - a network repeats its answers
        return 0

    def cost(self, prompt: Prompt, answer: Any, calls: int) -> Cost:
        causal = self._causal
        none, whole = self._ends(prompt)
        texts = [] if answer is None else [_text(answer)] if isinstance(answer, str) else _texts(answer)
        of_answers = sum(len(causal.answer(text)) for text in texts)
        each, times = (len(none) + len(whole)) / 2, max(1, len(texts))
        shared = len(common_prefix([none, whole]))
        tokens = round(shared + calls * (times * (each - shared) + of_answers))
        unshared = round(calls * (times * each + of_answers))
        return Cost(
            calls,
            tokens,
            unshared,
            round(calls * np.mean([len(str(one)) for one in _drawn_ends(prompt)])),
            max(1, math.ceil(tokens / causal.room)),
            causal.seconds(tokens),
        )


class _Scores:
    """Numbers of prompts by the log-probabilities of answers after them; equal prompts are asked once."""

    def __init__(
        self,
        causal: CausalModel,
        answers: Sequence[Tokens],
        numbers_of: Callable[[Sequence[Sequence[Floats]]], Floats],
    ) -> None:
        self.answers = answers
        self.answered: dict[Tokens, Sequence[Floats]] = {}
        self._causal, self._numbers_of = causal, numbers_of

    def __call__(self, prompts: Sequence[PromptText]) -> Floats:
        read = [self._causal.read(one) for one in prompts]
        new = [*dict.fromkeys(tokens for tokens in read if tokens not in self.answered)]
        if new:
            logs = self._causal.log_probabilities(new, self.answers)
            self.answered.update(zip(new, logs, strict=True))
        return self._numbers_of([self.answered[tokens] for tokens in read])


def _sums(cuts: Sequence[tuple[int, int]], rows: Sequence[Sequence[Floats]]) -> Floats:
    """Log-probabilities (n,) of an answer; or (n, 1 + parts), with those of its parts."""
    logs = np.array([row[0] for row in rows])
    parts = [logs[:, a:b].sum(axis=1) for a, b in cuts]
    # the whole is the sum of its parts, to the last bit
    return np.column_stack([np.sum(parts, axis=0), *parts]) if len(parts) > 1 else parts[0]


def _log_odds_of(rows: Sequence[Sequence[Floats]]) -> Floats:
    return log_odds(np.array([[its.sum() for its in row] for row in rows]))


def log_odds(logs: Floats) -> Floats:
    """Log p_a - log Σ_{b ≠ a} p_b of answers with log-probabilities (n, k)."""
    from scipy.special import logsumexp

    others = [logsumexp(np.delete(logs, k, axis=1), axis=1) for k in range(logs.shape[1])]
    return np.asarray(logs - np.column_stack(others))


def _knows(none: Floats, whole: Floats) -> str:
    before, after = float(none[0]), float(whole[0])
    if before < after + math.log(_ALREADY):
        return ""
    case = "less likely" if after < before + math.log(_ALREADY) else "known"
    return sentence("input", case, before=_probability(before), after=_probability(after))


def _probability(log: float) -> str:
    """A probability that may be too small for a float, as that of a long answer."""
    return number(math.exp(log), 2) if log > _SMALL else f"e^{log:.0f}"


def _different(names: Sequence[str]) -> tuple[str, ...]:
    """Names of outputs, of which none is twice."""
    seen: dict[str, int] = {}
    different = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        different.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(different)


def _text(answer: Any) -> str:
    if not isinstance(answer, str) or not answer.strip():
        raise InputError(f"answer must be a text, or several texts to choose among; got {answer!r}")
    return answer


def _texts(answers: Any) -> tuple[str, ...]:
    if not isinstance(answers, Iterable):
        _text(answers)
    texts = [_text(one) for one in answers]
    texts = sorted(texts) if isinstance(answers, set | frozenset) else texts
    if len(texts) < 2 or len(set(texts)) < len(texts):
        raise InputError(f"answers to choose among must be two or more different texts, got {texts}")
    return tuple(texts)


# -- functions -----------------------------------------------------------------------------------------------


class _Numbers(_Model):
    """A function from prompts to numbers."""

    def __init__(self, function: Callable[[list[Any]], Any]) -> None:
        self._function = function
        self.name = getattr(function, "__name__", type(function).__name__)

    def game(self, prompt: Prompt, answer: Any, by: str) -> _Game:  # noqa: ARG002 - it scores its answer
        if answer is not None:
            raise InputError(
                f"{self.name} returns numbers for its answer: leave answer= out, or pass "
                "similarity= with a function that returns texts"
            )
        return _Game(self._numbers, None)

    def _numbers(self, prompts: list[Any]) -> Any:
        answers = self._function(prompts)
        if isinstance(answers, list | tuple) and any(isinstance(answer, str) for answer in answers):
            raise ModelError(
                f"{self.name}() returns texts: pass similarity=, (answer, written text) -> number, too",
                batch=prompts,
            )
        return answers

    def checks_of(self, answer: Any) -> int:  # noqa: ARG002 - it scores its answer
        return _ASKED_AGAIN

    def cost(self, prompt: Prompt, answer: Any, calls: int) -> Cost:  # noqa: ARG002 - it scores its answer
        characters = np.mean([len(str(one)) for one in _drawn_ends(prompt)])
        seconds = None if self.seconds_a_call is None else calls * self.seconds_a_call
        return Cost(calls, None, None, round(calls * characters), None, seconds)


class _Writer(_Numbers):
    """A function that writes texts, and how alike two of them are."""

    def __init__(self, function: Callable[[list[Any]], Any], similarity: Similarity) -> None:
        super().__init__(function)
        self._similarity = similarity

    def checks_of(self, answer: Any) -> int:
        return super().checks_of(answer) + (answer is None)

    def game(self, prompt: Prompt, answer: Any, by: str) -> _Game:  # noqa: ARG002 - the answer is one
        if answer is None:
            (answer,) = self._written(prompt.compose(np.ones((1, len(prompt.units)))))
            count_answers(1)
        elif not isinstance(answer, str):
            raise InputError(f"with similarity= the answer is one text, got {answer!r}")
        if not answer.strip():
            raise InputError(
                f"{self.name} writes nothing after this prompt: pass answer=, the text to explain"
            )

        def predict(prompts: list[Any]) -> list[float]:
            return [self._alike(answer, text, prompts) for text in self._written(prompts)]

        return _Game(predict, (f"similarity to {shorten(answer, _PARTS_SHOWN)!r}",))

    def _alike(self, answer: str, text: str, prompts: list[Any]) -> float:
        try:
            with Border():
                number = float(self._similarity(answer, text))
        except FAILURES as error:
            failure = failure_text(error)
        else:
            if math.isfinite(number):
                return number
            failure = f"returned {number}: it must be a finite number"
        pair = f"{shorten(answer, _PARTS_SHOWN)!r} and {shorten(text, _PARTS_SHOWN)!r}"
        raise ModelError(f"similarity of {pair} {failure}", batch=prompts)

    def _written(self, prompts: list[Any]) -> list[str]:
        try:
            with Border():
                texts = list(self._function(prompts))
        except FAILURES as error:
            raise ModelError(f"{self.name}() {failure_text(error)}", batch=prompts) from error
        if len(texts) != len(prompts) or not all(isinstance(text, str) for text in texts):
            kinds = sorted({type(text).__name__ for text in texts})
            raise ModelError(
                f"{self.name}() was given {len(prompts)} prompts and returned {len(texts)} of {kinds}: with "
                "similarity= it must return a text for each",
                batch=prompts,
            )
        return texts


def _drawn_ends(prompt: Prompt) -> list[Any]:
    d = len(prompt.units)
    return prompt.compose(np.stack([np.zeros(d), np.ones(d)]))


def _model_of(
    model: Any, similarity: Similarity | None, batch_tokens: int | None, max_new_tokens: int
) -> _Model:
    if is_causal(model):
        if similarity is not None:
            raise InputError("similarity= is for functions that return texts: a network has probabilities")
        return _Network(CausalModel.of(model, batch_tokens), max_new_tokens)
    refuse_parts(model)
    if not callable(model) or is_module(model):
        raise InputError(
            "model must be the pair (network, tokenizer), the network first, a text-generation pipeline or a "
            f"function of a list of prompts, got {type(model).__name__}"
        )
    return _Numbers(model) if similarity is None else _Writer(model, similarity)
