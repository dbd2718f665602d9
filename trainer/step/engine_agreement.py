"""Whether vLLM answers with the policy that is trained: known tokens scored by both after a weight sync.

A sync can go wrong without a sound: a tied LM head of which the engine keeps a copy, adapters that were not merged, an
update that never arrives, another dtype, another temperature. The run would then train on another policy's samples, and
an importance ratio would hide it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any

import torch
from accelerate.utils import broadcast_object_list
from torch import Tensor
from trl import GRPOTrainer

from trainer.step.faults import FaultError
from trainer.step.generating_trainer import GeneratingTrainer
from trainer.step.set_aside import holding

METRIC = "vllm/agreement_max"
SYNCS, SYNCED_AT = "weight syncs", "step of the newest weight sync"
BOUNDS = {torch.float32: 1e-3, torch.float16: 0.1, torch.bfloat16: 0.5}
"""The largest difference of a token's log-probability that rounding explains, by what the trainer computes in.

On a CPU, with a policy of 0.8 million parameters, float32 differed by up to 7e-6 and bfloat16 by 0.11
(configs/README.md); what larger models reach is not known, hence the room above it.
"""
_PROMPTS, _PROMPT_TOKENS, _TOKENS = 8, 16, 16


class EngineDisagreementError(FaultError):
    """vLLM answers with another policy than the one that is trained."""


@dataclass(frozen=True)
class Probe:
    """Tokens that the engine has just written, and what it says of them.

    Attributes:
        input_ids: prompts of random tokens and what the engine wrote behind them (B, P + T).
        logps: the engine's (B, T); NaN where it gave none.
    """

    input_ids: Tensor
    logps: Tensor

    def largest_difference(self, logps: Tensor) -> float:
        """``max |log π_engine − log π|`` over the tokens that the engine scored; ∞ where it scored none."""
        differences = (self.logps - logps.to(self.logps)).abs()
        scored = differences[~self.logps.isnan()]
        largest = float(scored.max()) if scored.numel() else inf
        return largest if largest == largest else inf  # the trainer's own may be NaN


class AgreeingTrainer(GeneratingTrainer):
    """`GeneratingTrainer` that trusts vLLM only as far as it has scored known tokens alike.

    After the first sync of the weights and every ``check_agreement_every``-th, 8 prompts of 16 random tokens are
    continued by 16 tokens, drawn as rollouts are but with a seed of their own, so that they change no later sample. The
    trainer scores them, as it scores rollouts. The largest difference over all ranks is logged as
    ``vllm/agreement_max``; above ``agreement_bound`` every rank raises. A resumed run goes on counting syncs; its
    engine is a new one, whose first sync is checked too, and logged where it is that one's turn.

    Args:
        check_agreement_every: in syncs; 0 = never, as stock TRL. Without vLLM there is nothing to check.
        agreement_bound: largest difference of a token's log-probability; ``None`` = `BOUNDS` of the trainer's dtype.

    Raises:
        EngineDisagreementError: with what explains it (see `engine_diagnosis`).
    """

    def __init__(
        self,
        *positional: Any,
        check_agreement_every: int = 0,
        agreement_bound: float | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(*positional, **keywords)
        self._agreement_every, self._agreement_bound = check_agreement_every, agreement_bound
        self._knows_engine = False
        if check_agreement_every > 0 and self.use_vllm:
            self.vllm_generation.sync_weights = self._checked(self.vllm_generation.sync_weights)

    @property
    def agreement_bound(self) -> float:
        """The bound given, or that of the dtype in which the trainer computes."""
        return BOUNDS[compute_dtype(self)] if self._agreement_bound is None else self._agreement_bound

    def _checked(self, sync_weights: Callable[[], None]) -> Callable[[], None]:
        def sync_and_check() -> None:
            sync_weights()
            step = self.state.global_step
            # the sync of an evaluation before the checkpoint's, done again for an engine that has not had it
            again = not self._knows_engine and step > 0 and self.counts[SYNCED_AT] == step
            is_due = not again and self.counts[SYNCS] % self._agreement_every == 0
            if is_due or not self._knows_engine:
                self._check_agreement(logs=is_due)
            self._knows_engine = True
            self.counts[SYNCS] += not again
            self.counts[SYNCED_AT] = step

        return sync_and_check

    def _check_agreement(self, *, logs: bool) -> None:
        probe = self._probe()
        difference = probe.largest_difference(self.scored(probe.input_ids))
        ranks = self.accelerator.gather(torch.tensor([difference], device=self.accelerator.device)).tolist()
        if logs:
            logged = self._metrics["train"][METRIC]
            logged[:] = [max(*logged, *ranks, -inf)]  # TRL logs the mean of this list
        if max(ranks) <= self.agreement_bound:
            return
        from trainer.step.engine_diagnosis import diagnosis

        worst = ranks.index(max(ranks))
        told = [diagnosis(self, probe, difference, worst)]
        broadcast_object_list(told, from_process=worst)
        raise EngineDisagreementError(told[0])

    def _probe(self) -> Probe:
        """Tokens written and scored by the engine, exactly as it writes rollouts; every rank asks."""
        tokenizer, device = self._tokenizer, self.accelerator.device
        special = set(tokenizer.all_special_ids)
        plain = torch.tensor([token for token in range(tokenizer.vocab_size) if token not in special])
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randint(len(plain), (_PROMPTS, _PROMPT_TOKENS), generator=generator)
        prompts = plain[drawn].tolist()
        with self._probing():
            _, completions, logps, _ = self.vllm_generation.generate(prompts, images=None, num_generations=1)
        length = min(map(len, completions))
        written = torch.tensor([tokens[:length] for tokens in completions])
        found = [[token[0] for token in row[:length]] for row in logps]
        numbers = torch.tensor([[torch.nan if value is None else value for value in row] for row in found])
        return Probe(torch.cat([torch.tensor(prompts), written], dim=1).to(device), numbers.to(device))

    @contextmanager
    def _probing(self) -> Iterator[None]:
        """The engine as rollouts find it, also in the middle of an evaluation that draws otherwise; few tokens."""
        engine: Any = self.vllm_generation
        changed: dict[str, Any] = {
            "temperature": self.temperature,
            "max_completion_length": _TOKENS,
            "generation_kwargs": {**engine.generation_kwargs, "seed": 0, "ignore_eos": True},
        }
        if engine.mode == "colocate" and engine.enable_sleep_mode:  # put to sleep behind the probe it would forget
            engine.llm.wake_up(tags=["kv_cache"])
            changed["enable_sleep_mode"] = False
        with holding(engine, changed):
            yield

    @torch.no_grad()
    def scored(self, input_ids: Tensor) -> Tensor:
        """The trainer's ``log π`` of the last 16 (or fewer) tokens of ``input_ids`` (B, P + T) → (B, T)."""
        was_training = self.model.training
        self.model.eval()  # dropout is no part of the policy
        try:
            logps, *_ = GRPOTrainer._get_per_token_logps_and_entropies(
                self, self.model, input_ids, torch.ones_like(input_ids), input_ids.shape[1] - _PROMPT_TOKENS
            )
        finally:
            self.model.train(was_training)
        return logps


def compute_dtype(trainer: Any) -> torch.dtype:
    """What the trainer's forward passes round to; TF32 keeps as many bits as float16."""
    if trainer.args.bf16:
        return torch.bfloat16
    if trainer.args.fp16 or (trainer.args.tf32 and trainer.model.dtype == torch.float32):
        return torch.float16
    return trainer.model.dtype if trainer.model.dtype in BOUNDS else torch.float32
