"""Whether exactly the tokens that the policy sampled are trained, where a completion is a conversation with tools.

Such a completion is made of pieces: what the policy wrote, what the chat template and the tools put after it, what the
policy wrote then. TRL joins their token ids and marks the policy's. A token that is marked wrongly, or made again from
text, is trained although nobody sampled it, and nothing in a log shows it. So a run's first batches are compared with
what the policy was shown and what it answered, noted where it was asked.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import torch
from accelerate.utils import broadcast_object_list
from torch import Tensor

from evenkeel.trainer.step.guards import FaultError
from evenkeel.trainer.step.ranks import Ranks
from evenkeel.trainer.step.rollout import Batch, loss_mask

METRIC, SAMPLED = "environment/provenance", "sampled"
BATCHES = 2
"""Rollout batches that are checked, the first of each process: what can go wrong lies in code, not in the data."""
_CONTEXT = 16
"""Tokens before the one that differs, for a message."""
Token = tuple[int, bool]
"""An id, and whether the policy sampled it; of a batch, whether it is trained."""


class ProvenanceError(FaultError):
    """Other tokens would be trained than the policy sampled."""


@dataclass(frozen=True)
class Turn:
    """One answer of the policy: all ids that it was shown, and those that it wrote."""

    shown: list[int]
    written: list[int]


@dataclass(frozen=True)
class Difference:
    """The first token of a row that is not what the policy's turns say.

    Attributes:
        position: in the completion, from 0; negative in the prompt.
        recorded: the token by the turns; ``None`` = they end before it.
        found: that of the batch; with ``was_shown`` what the policy was shown there later; ``None`` = it ends.
    """

    position: int
    recorded: Token | None
    found: Token | None
    was_shown: bool = False


def conversations(calls: Sequence[Sequence[Turn]], rows: Sequence[Sequence[int]]) -> list[list[Turn]]:
    """The turns of each row.

    The first call asks for one turn of every row, the later ones for turns of those that called a tool. Rows of a group
    begin alike: a turn is given to the row that agrees with it longest. Of a right batch that row holds all of it.

    Args:
        rows: ids of prompt and completion, as the batch has them.
    """
    found = [[turn] for turn in calls[0]]
    for call in calls[1:]:
        waiting = [*range(len(found))]
        for turn in call:
            ids = turn.shown + turn.written
            row = max(waiting, key=lambda index: agreement(rows[index], ids))
            waiting.remove(row)
            found[row].append(turn)
    return found


def agreement(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many things, ids or characters, both begin with."""
    shorter = min(len(one), len(other))
    if one[:shorter] == other[:shorter]:
        return shorter
    return next(place for place in range(shorter) if one[place] != other[place])


def sampled_tokens(turns: Sequence[Turn], limit: int) -> list[Token] | Difference:
    """Prompt and completion of a row, from its turns; or where the policy was shown other ids than it had before.

    Args:
        limit: tokens of a completion; what the last turn has beyond it is cut off.
    """
    prompt_length = len(turns[0].shown)
    tokens: list[Token] = []
    for turn in turns:
        for place, (token, shown) in enumerate(zip_longest(tokens, turn.shown[: len(tokens)])):
            if shown is None or token[0] != shown:
                found = None if shown is None else (shown, token[1])
                return Difference(place - prompt_length, token, found, was_shown=True)
        tokens += [(token, False) for token in turn.shown[len(tokens) :]] + [(token, True) for token in turn.written]
    return tokens[: prompt_length + limit]


def first_difference(recorded: Sequence[Token], batch: Sequence[Token], prompt_length: int) -> Difference | None:
    """Where a row of the batch is not what was recorded."""
    for place, (token, found) in enumerate(zip_longest(recorded, batch)):
        if token != found:
            return Difference(place - prompt_length, token, found)
    return None


class Provenance:
    """Compares the first rollout batches with what the policy was asked and answered.

    Args:
        limit: tokens of a completion at most.
        ends: tokens that end a completion, where completions without one are not trained
            (``mask_truncated_completions``); ``None`` = all are.
        batches: how many are checked; 0 where a completion is one answer.
    """

    def __init__(self, ranks: Ranks, tokenizer: Any, *, limit: int, ends: frozenset[int] | None, batches: int) -> None:
        self.ranks, self.tokenizer, self.limit, self.ends = ranks, tokenizer, limit, ends
        self._left, self._calls = batches, list[list[Turn]]()

    @contextmanager
    def recording(self, asked: Any, name: str, *, is_training: bool) -> Iterator[None]:
        """Meanwhile the answers of ``asked``'s method ``name``, TRL's ``_generate_single_turn``, are noted."""
        if not self._left or not is_training:
            yield
            return
        answer: Callable[..., Any] = getattr(asked, name)
        own = {name: answer} if name in vars(asked) else {}
        self._calls = []

        def noted(prompt_ids: list[list[int]], *positional: Any, **keywords: Any) -> Any:
            result = answer(prompt_ids, *positional, **keywords)
            turns = zip(prompt_ids, result[0], strict=True)
            self._calls.append([Turn([*shown], [*written]) for shown, written in turns])
            return result

        vars(asked)[name] = noted
        try:
            yield
        finally:
            del vars(asked)[name]
            vars(asked).update(own)

    def turns(self, generated: Sequence[Any]) -> list[list[Turn] | None]:
        """Of each row of what TRL's ``_generate`` has just returned the turns that were noted; ``None`` = not noted."""
        prompt_ids, completion_ids, *_ = generated
        rows = [[*prompt, *written] for prompt, written in zip(prompt_ids, completion_ids, strict=True)]
        calls, self._calls = self._calls, []
        return [*conversations(calls, rows)] if calls else [None] * len(rows)

    def put_back(self, turns: Sequence[list[Turn] | None]) -> None:
        """The turns of the rows of the next batch, where they were generated before, by another rank perhaps."""
        found = [each for each in turns if each is not None]
        longest = max(map(len, found), default=0)
        self._calls = [[each[turn] for each in found if turn < len(each)] for turn in range(longest)]

    def check(self, batch: Batch, metrics: dict[str, list[float]]) -> None:
        """Compare this rank's rollout batch with the turns that were noted; a collective where it is due.

        The batch gets `SAMPLED` (B, T): the tokens that the policy wrote, by its turns.

        Raises:
            ProvenanceError: on all ranks, with the first row of the first rank that differs.
        """
        if not self._left:
            return
        self._left -= 1
        calls, self._calls = self._calls, []
        if not calls:
            self.ranks.warn(
                "What the policy wrote was not seen: an override generates without _generate_single_turn. That its "
                "tokens and no others are trained is not checked."
            )
            return
        prompts = [
            ids[mask.bool()].tolist() for ids, mask in zip(batch["prompt_ids"], batch["prompt_mask"], strict=True)
        ]
        completions, trained = batch["completion_ids"].tolist(), loss_mask(batch).bool().tolist()
        lengths = batch["completion_mask"].sum(1).tolist()
        sampled = torch.zeros_like(batch["completion_ids"], dtype=torch.bool)
        differences: dict[int, Difference] = {}
        rows = [[*prompt, *ids] for prompt, ids in zip(prompts, completions, strict=True)]
        for row, turns in enumerate(conversations(calls, rows)):
            prompt_length = len(turns[0].shown)
            tokens = sampled_tokens(turns, self.limit)
            if isinstance(tokens, Difference):
                differences[row] = tokens
                continue
            marks = [mark for _, mark in tokens[prompt_length:]]
            sampled[row, : len(marks)] = torch.tensor(marks, dtype=torch.bool)[: sampled.shape[1]]
            length = lengths[row]
            if self.ends is not None and not length and tokens[-1][0] not in self.ends:  # cut off, and left out
                tokens, length = [(token, False) for token, _ in tokens], len(marks)
            found = [(token, False) for token in prompts[row]]
            found += zip(completions[row][:length], trained[row][:length], strict=True)
            if (difference := first_difference(tokens, found, prompt_length)) is not None:
                differences[row] = difference
        batch[SAMPLED] = sampled
        words = ""
        if differences:
            row, difference = min(differences.items())
            before = rows[row][: len(prompts[row]) + difference.position][-_CONTEXT:]
            words = (
                f"{len(differences)} of {len(rows)} completions of rank {self.ranks.index} would not be trained as the "
                f"policy sampled them. The first is row {row}, {self._words(difference)}. Before it stands "
                f"{self.tokenizer.decode(before)!r}. {_WHAT_TO_DO}"
            )
        _raise_on_all(self.ranks, words)
        metrics[METRIC].append(1.0)

    def _words(self, difference: Difference) -> str:
        """Where, and what is there instead of what."""
        recorded, found, place = difference.recorded, difference.found, difference.position
        where = f"token {place} of the completion" if place >= 0 else f"token {-place} from the end of the prompt"
        if difference.was_shown:
            what = f"it was {self._named(recorded)}, and the policy wrote its next turn after {self._named(found)}"
        elif recorded is None or found is None or recorded[0] != found[0]:
            what = f"the policy's turns have {self._named(recorded)} there, and the batch has {self._named(found)}"
        elif recorded[1]:
            what = f"the policy wrote {self._named(recorded)}, and it would not be trained"
        else:
            what = f"the chat template or a tool put {self._named(recorded)} there, and it would be trained"
        return f"{where}: {what}"

    def _named(self, token: Token | None) -> str:
        return "no token" if token is None else f"token {token[0]} ({self.tokenizer.decode([token[0]])!r})"


class InsertedTokens:
    """Looks for a gradient at tokens that the policy did not write, in the batches that `Provenance` has checked.

    As `evenkeel.trainer.step.metrics.SharedPrefixMeter` it reads the loss's gradient with respect to the
    log-probability of each token, after masks, weights and denominators: there it must be exactly 0.
    """

    def __init__(self) -> None:
        self._found: list[tuple[Tensor, Tensor]] = []
        self._is_watching = False

    def watch(self, logps: Tensor, batch: Batch) -> None:
        """Read the gradient of ``logps`` (B, T) when it flows. A NaN is left to the guard against those."""
        sampled = batch.get(SAMPLED)
        if sampled is None or not logps.requires_grad:
            return
        self._is_watching = True

        def read(gradient: Tensor) -> None:
            leaked = gradient.detach().nan_to_num(nan=0.0).masked_fill(sampled, 0.0)
            self._found.append((leaked, batch["completion_ids"]))

        logps.register_hook(read)

    def finish_step(self, ranks: Ranks) -> None:
        """Before the optimizer moves; a collective in a step of a checked batch.

        Raises:
            ProvenanceError: on all ranks.
        """
        found, self._found = self._found, []
        was_watching, self._is_watching = self._is_watching, False
        if not was_watching:
            return
        words = ""
        for leaked, ids in found:
            if leaked.any():
                row, place = leaked.nonzero()[0].tolist()
                words = (
                    f"The loss has a gradient at a token that the policy did not write: {leaked[row, place]:g} at "
                    f"token {place} (id {ids[row, place]}) of row {row} of a micro-batch of rank {ranks.index}; the "
                    f"rollout batch marked it rightly. {_WHAT_TO_DO}"
                )
                break
        _raise_on_all(ranks, words)


_WHAT_TO_DO = (
    "A gradient of other tokens than it sampled is not the policy's, so the run ends before it is applied. Ids and "
    "masks come from TRL's tool loop, from the tokenizer's chat template and from what overrides them: leave out an "
    "override of yours, or take another chat template (processing_class.chat_template). If that is not it, please "
    "report this message with the versions of trl and transformers."
)


def _raise_on_all(ranks: Ranks, words: str) -> None:
    """Raise the words of the first rank that has some, on all ranks; a collective."""
    flags = ranks.gathered(torch.tensor([bool(words)], device=ranks.device)).tolist()
    if any(flags):
        message = [words]
        broadcast_object_list(message, from_process=flags.index(True))
        raise ProvenanceError(message[0])
