"""Checks that exactly the tokens that the policy sampled are trained, where completions are conversations with tools.

A token that is masked wrongly, tokenized again from text, left out of the loss or scored in another context spoils the
gradient, and nothing in a log shows it: docs/provenance.md. `EngineCheck` compares vLLM's weights with the trainer's:
an importance ratio would hide their difference.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from math import inf
from typing import Any, NamedTuple

import torch
from torch import Tensor
from trl.models.utils import disable_gradient_checkpointing

from evenkeel.trainer.step.guards import FaultError
from evenkeel.trainer.step.rollout import AGREEMENT, loss_mask
from evenkeel.trainer.step.setup import Batch, Ranks, Setup, temporarily

BOUNDS = {torch.float32: 1e-3, torch.float16: 0.1, torch.bfloat16: 0.5}
"""The largest difference of a log-probability between vLLM and the trainer that rounding explains, by the trainer's
dtype. Measured: 7e-6 in float32, 0.11 in bfloat16 (configs/README.md); larger models may reach more."""
METRIC = "environment/provenance"
SAMPLED, DUE, PLAIN = "sampled", "gradient_due", "plain_logps"
"""Entries (B, T) of a checked batch: tokens that the policy wrote; those that must get a gradient; `plain_logps` at
some tokens of each turn, NaN at the others."""
BATCHES = 2
"""Number of rollout batches to check, the first of each process: errors are in code, not in single rows."""
ROUNDING = BOUNDS | {torch.float32: 1e-4}
"""The largest difference of a log-probability that rounding explains, by dtype of the passes: docs/provenance.md."""
_EVERY, _OUTLIERS = 32, 0.01
"""Log-probabilities are compared at the first token of each turn and at every 32nd of the completion; a share of 0.01
may differ by more, since rounding can change a router's experts."""


class Turn(NamedTuple):
    """One answer of the policy: the ids of its context, and the ids that it wrote."""

    shown: list[int]
    written: list[int]


def conversations(calls: Sequence[Sequence[Turn]], rows: Sequence[Sequence[int]]) -> list[list[Turn]]:
    """The turns of each of ``rows``, the batch's ids of prompt and completion.

    The first call has one turn of every row, later calls have turns of rows that called a tool. A turn is assigned to
    the row with which it has the longest common prefix.
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
    """Length of the common prefix."""
    differing = (place for place, (left, right) in enumerate(zip(one, other, strict=False)) if left != right)
    return next(differing, min(len(one), len(other)))


def first_difference(
    turns: Sequence[Turn], ids: Sequence[int], marks: Sequence[bool], trained: Sequence[bool]
) -> int | None:
    """The first place where ``ids`` differ from the turns, or ``trained`` from ``marks``; ``None`` = there is none."""
    for turn in turns:
        shown = (turn.shown + turn.written)[: len(marks)]
        if (place := agreement(shown, ids)) < len(shown):
            return place
    place = agreement(marks, trained)
    return None if place == max(len(marks), len(trained)) else place


def plain_logps(trainer: Any, ids: Sequence[int], places: Sequence[int]) -> Tensor:
    """``log π`` (K,) of the tokens at ``places`` of a conversation, from the bare model: no padding, no mask."""
    before = torch.tensor(places, device=trainer.accelerator.device) - 1
    given = torch.tensor([ids[: max(places) + 1]], device=before.device)
    unchecked = disable_gradient_checkpointing(trainer.model, trainer.args.gradient_checkpointing_kwargs)
    with torch.no_grad(), trainer.accelerator.autocast(), unchecked:
        logits = trainer.model(input_ids=given, logits_to_keep=before, use_cache=False).logits[0].float()
    return (logits / trainer.temperature).log_softmax(1).gather(1, given[0, before + 1, None]).squeeze(1)


class Provenance:
    """Compares the first rollout batches, and the loss on them, with the policy's recorded contexts and answers.

    The log-probabilities of the loss's pass at `PLAIN` must equal those of the bare model. Their gradient must be
    exactly 0 at every token that the policy did not write, and not 0 at one that it wrote, unless its advantage is 0
    (also by a strategy), the ratio of its row may be clipped, vLLM's ratio is 0, or the policy has moved."""

    def __init__(self, setup: Setup) -> None:
        args, loaded = setup.args, setup.settings.loaded
        self.ranks, self.tokenizer = setup.ranks, setup.tokenizer
        self.bound = None if loaded.varies or loaded.is_vlm else ROUNDING[setup.dtype]
        self.limit = args.max_completion_length or 0
        chooses = args.top_entropy_quantile < 1 or args.off_policy_mask_threshold is not None
        high = args.epsilon if args.epsilon_high is None else args.epsilon_high
        self._clipped_from = 0.0 if chooses else min(math.log1p(high), args.epsilon)
        several_turns = loaded.own_generation == "tools" and not setup.settings.several_rounds
        self._left = BATCHES if several_turns else 0  # elsewhere a completion is one answer, or kept from a round
        self._current: tuple[Batch, Tensor, bool] | None = None
        self._written_after = 0
        self.begin_training()

    def begin_training(self) -> None:
        """Drop the records of a step that was not finished."""
        self._calls = list[list[Turn]]()
        self._differences, self._gradients = list[Tensor](), list[tuple[Tensor, ...]]()
        self._is_watching = False

    def recording(self, trainer: Any, *, is_training: bool) -> AbstractContextManager[None]:
        """Inside, contexts and answers of ``_generate_single_turn``, TRL's or an override, are recorded."""
        answer, is_due = trainer._generate_single_turn, self._left and is_training
        self._calls = [] if is_due else self._calls

        def noted(prompt_ids: list[list[int]], *positional: Any, **keywords: Any) -> Any:
            result = answer(prompt_ids, *positional, **keywords)
            turns = zip(prompt_ids, result[0], strict=True)
            self._calls.append([Turn([*shown], [*written]) for shown, written in turns])
            return result

        return temporarily(trainer, {"_generate_single_turn": noted} if is_due else {})

    def check(self, trainer: Any, batch: Batch, metrics: dict[str, list[float]]) -> None:
        """Compare this rank's rollout batch with the recorded turns, and add `SAMPLED` and `PLAIN` to it.

        A collective in the first `BATCHES` batches; if a row differs all ranks raise a `FaultError`.
        """
        if not self._left:
            return
        self._left -= 1
        calls, self._calls = self._calls, []
        if not calls:
            self.ranks.warn("An override generates without _generate_single_turn: what is trained is not checked.")
            return
        masked = zip(batch["prompt_ids"], batch["prompt_mask"], strict=True)
        prompts = [ids[mask.bool()].tolist() for ids, mask in masked]
        rows = [[*prompt, *ids] for prompt, ids in zip(prompts, batch["completion_ids"].tolist(), strict=True)]
        all_trained, lengths = loss_mask(batch).bool().tolist(), batch["completion_mask"].sum(1).tolist()
        words, wrong = "", 0
        sampled = torch.zeros_like(batch["completion_ids"], dtype=torch.bool)
        for row, (turns, length) in enumerate(zip(conversations(calls, rows), lengths, strict=True)):
            if not length and trainer.args.mask_truncated_completions:
                continue
            before, marks = len(prompts[row]), self._written(turns)
            ids, trained = rows[row][: before + length], [False] * before + all_trained[row][:length]
            if (place := first_difference(turns, ids, marks, trained)) is None:
                sampled[row, :length] = torch.tensor(marks[before:])
                continue
            wrong += 1
            words = words or (
                f"of {len(rows)} completions of rank {self.ranks.index} would not be trained as sampled. "
                f"The first is row {row}, token {place - before} of the completion, after "
                f"{self.tokenizer.decode(ids[max(place - 16, 0) : place])!r}."
            )
        _raise_on_all(self.ranks, words and f"{wrong} {words}")
        batch[SAMPLED] = sampled
        if self.bound is not None:
            batch[PLAIN] = torch.full(sampled.shape, torch.nan, device=sampled.device)
            for row, (ids, marks) in enumerate(zip(rows, sampled.tolist(), strict=True)):  # as many passes on each rank
                places = [at for at, mark in enumerate(marks) if mark and (at % _EVERY == 0 or not marks[at - 1])]
                places = places or [0]  # not sampled, and not compared
                batch[PLAIN][row, places] = plain_logps(trainer, ids, [len(prompts[row]) + each for each in places])
        metrics[METRIC].append(1.0)

    def _written(self, turns: Sequence[Turn]) -> list[bool]:
        """For each token of a conversation, its prompt included, whether the policy wrote it."""
        marks = [False] * (len(turns[-1].shown) + len(turns[-1].written))
        for turn in turns:
            marks[len(turn.shown) : len(turn.shown) + len(turn.written)] = [True] * len(turn.written)
        return marks[: len(turns[0].shown) + self.limit]

    def start_rollout(self, batch: Batch, step: int) -> None:
        """Start on a rollout batch generated after ``step`` optimizer steps; tokens with an advantage are `DUE`."""
        self._written_after = step
        if SAMPLED in batch:
            batch[DUE] = batch[SAMPLED] & (batch["advantages"].view(len(batch[SAMPLED]), -1) != 0)

    @contextmanager
    def of(self, trainer: Any, batch: Batch) -> Iterator[None]:
        """Inside, a micro-batch's loss is computed; `watch` also gets log-probabilities that an override changed."""
        score = trainer._get_per_token_logps_and_entropies

        def watched(*positional: Any, **keywords: Any) -> Any:
            result = score(*positional, **keywords)
            self.watch(result[0])
            return result

        current = (batch, batch["advantages"], trainer.state.global_step > self._written_after)
        heard = {"_get_per_token_logps_and_entropies": watched} if SAMPLED in batch else {}
        with temporarily(self, {"_current": current if heard else None}), temporarily(trainer, heard):
            yield

    def watch(self, logps: Tensor) -> None:
        """Record the ``logps`` (B, T) of a loss, and their gradient in the backward pass; no effect outside a loss."""
        if self._current is None or not logps.requires_grad:
            return
        batch, advantages, has_moved = self._current
        self._is_watching, now = True, logps.detach()
        due = torch.zeros_like(sampled := batch[SAMPLED])
        if not has_moved:
            if PLAIN in batch:
                computed = sampled & batch.get("keep", sampled)
                self._differences.append((now - batch[PLAIN]).abs().where(computed, torch.nan).flatten())
            before, after = (each.reshape(len(sampled), -1) for each in (advantages, batch["advantages"]))
            log_ratio = (now - batch.get("old_per_token_logps", now)).abs().where(sampled, 0.0)
            due = batch[DUE] & ((after != 0) | (before == 0)) & (log_ratio.amax(1, keepdim=True) < self._clipped_from)
            due = due & (batch.get("importance_sampling_ratio", due) != 0)

        def read(gradient: Tensor) -> None:
            wrong = torch.where(sampled, due & (gradient == 0), gradient.nan_to_num(nan=0.0) != 0)
            self._gradients.append((wrong, sampled, gradient.detach()))

        logps.register_hook(read)

    def finish_step(self) -> None:
        """Raise for records that are wrong, before the next step; a collective in steps of a checked batch."""
        is_due, differences, gradients, words = self._is_watching, self._differences, self._gradients, ""
        self.begin_training()
        if not is_due:
            return
        for wrong, sampled, gradient in gradients:
            if not words and wrong.any():
                row, place = wrong.nonzero()[0].tolist()
                what = "with an advantage, that the policy wrote" if sampled[row, place] else "that it did not write"
                words = f"The loss has gradient {gradient[row, place]:g} at a token {what}: token {place} of row {row}"
        compared = torch.cat(differences or [torch.empty(0)])
        compared = compared[~compared.isnan()]
        far = compared > (self.bound or 0.0)
        if far.sum() > _OUTLIERS * len(far):
            words = (
                f"The loss does not see conversations as the policy did: {far.sum()} of {len(far)} log-probabilities "
                f"differ by more than {self.bound:g}, by up to {compared.max():g}, from the model's alone"
            )
        _raise_on_all(self.ranks, words and f"{words}; on rank {self.ranks.index}.")


def _raise_on_all(ranks: Ranks, words: str) -> None:
    """Raise on all ranks if any has ``words``; a collective."""
    if ranks.any(bool(words)):
        words = words or "Another rank would not train exactly what its policy wrote."
        what = f"{words} Leave out overrides of TRL's loop and loss, or take another chat template."
        raise FaultError(what, code="provenance", of_one_rank=True)


PROMPTS, PROMPT_TOKENS, TOKENS = 8, 16, 16


def compute_dtype(args: Any, model: Any) -> torch.dtype:
    """The dtype to whose precision the trainer's forward passes round; TF32 keeps as many bits as float16."""
    if args.bf16:
        return torch.bfloat16
    if args.fp16 or (args.tf32 and model.dtype == torch.float32):
        return torch.float16
    return model.dtype if model.dtype in BOUNDS else torch.float32


class EngineCheck:
    """Compares vLLM's log-probabilities with the trainer's: after every weight sync vLLM continues 8 prompts of 16
    random tokens by 16, drawn as rollouts are but with a seed of their own. The largest difference over all ranks is
    logged as ``vllm/agreement_max``; above ``bound`` (``None`` = that of `BOUNDS`) every rank raises."""

    def __init__(self, setup: Setup, bound: float | None) -> None:
        self.ranks, self.tokenizer, self.dtype = setup.ranks, setup.tokenizer, setup.dtype
        self.temperature = setup.args.temperature
        self.bound = BOUNDS[self.dtype] if bound is None else bound

    def __call__(
        self, engine: Any, model: Any, score: Callable[..., Any], step: int, metrics: dict[str, list[float]]
    ) -> None:
        """Check with ``score``, TRL's method, that the engine has the weights of ``model``; a collective.

        Raises:
            FaultError: with the usual causes; its code is ``engine-disagreement``.
        """
        input_ids, engine_logps = self._probe(engine)
        was_training = model.training
        model.eval()  # the policy is the model without dropout
        try:
            with torch.no_grad():
                logps = score(model, input_ids, torch.ones_like(input_ids), engine_logps.shape[1])[0]
        finally:
            model.train(was_training)
        differences = (engine_logps - logps.to(engine_logps)).abs()[~engine_logps.isnan()]
        largest = float(differences.max()) if differences.numel() else inf
        own = torch.tensor([largest if largest == largest else inf], device=self.ranks.device)  # its own may be NaN
        worst = float(self.ranks.gathered(own).max())
        metrics[AGREEMENT][:] = [max(*metrics[AGREEMENT], worst, -inf)]  # TRL logs the mean of this list
        if worst > self.bound:
            dtype = str(self.dtype).removeprefix("torch.")
            raise FaultError(
                f"After the weight sync at step {step} vLLM's log-probabilities differ from the trainer's by up to "
                f"{worst:.2g}, where {self.bound:g} is allowed. Usual causes: another temperature (start the server "
                "with --logprobs-mode processed_logprobs), another server at trl.vllm_server_base_url, weights that "
                f"do not arrive (a tied LM head, adapters), another dtype (--dtype {dtype}, vllm.agreement_bound).",
                code="engine-disagreement",
            )

    def _probe(self, engine: Any) -> tuple[Tensor, Tensor]:
        """Token ids (B, P + T), the last T generated by the engine as in rollouts, and its ``log π`` (B, T) of these,
        NaN where it returns none; a collective."""
        special = set(self.tokenizer.all_special_ids)
        plain = torch.tensor([token for token in range(self.tokenizer.vocab_size) if token not in special])
        generator = torch.Generator().manual_seed(0)
        prompts = plain[torch.randint(len(plain), (PROMPTS, PROMPT_TOKENS), generator=generator)].tolist()
        with _probing(engine, self.temperature):
            _, completions, logps, _ = engine.generate(prompts, images=None, num_generations=1)
        ids = torch.tensor([[*prompt, *tokens] for prompt, tokens in zip(prompts, completions, strict=True)])
        found = [[torch.nan if token[0] is None else token[0] for token in row] for row in logps]
        return ids.to(self.ranks.device), torch.tensor(found).to(self.ranks.device)


@contextmanager
def _probing(engine: Any, temperature: float) -> Iterator[None]:
    """Inside, the engine samples `TOKENS` tokens as in rollouts, also during an evaluation that samples otherwise."""
    changed: dict[str, Any] = {
        "temperature": temperature,
        "max_completion_length": TOKENS,
        "generation_kwargs": {**engine.generation_kwargs, "seed": 0, "ignore_eos": True},
    }
    # sleeping after the probe would drop its weights
    if engine.mode == "colocate" and engine.enable_sleep_mode:
        engine.llm.wake_up(tags=["kv_cache"])
        changed["enable_sleep_mode"] = False
    with temporarily(engine, changed):
        yield
