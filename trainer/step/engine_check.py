"""Whether vLLM answers with the policy that is trained: known tokens scored by both after a weight sync.

A sync can go wrong without a sound: a tied LM head of which the engine keeps a copy, adapters that were not merged, an
update that never arrives, another dtype, another temperature. The run would then train on another policy's samples, and
an importance ratio would hide it.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

import torch
from accelerate.utils import broadcast_object_list

from evenkeel.trainer.step.engine_diagnosis import Policy, Probe, diagnosis
from evenkeel.trainer.step.guards import FaultError
from evenkeel.trainer.step.options import Engine
from evenkeel.trainer.step.ranks import Ranks
from evenkeel.trainer.step.temporarily import temporarily

METRIC = "vllm/agreement_max"
SYNCS, SYNCED_AT = "weight syncs", "step of the newest weight sync"
PROMPTS, PROMPT_TOKENS, TOKENS = 8, 16, 16


class EngineDisagreementError(FaultError):
    """vLLM answers with another policy than the one that is trained."""


class EngineCheck:
    """Trusts vLLM only as far as it has scored known tokens alike.

    After the first sync of the weights and every ``check_agreement_every``-th, 8 prompts of 16 random tokens are
    continued by 16 tokens, drawn as rollouts are but with a seed of their own, so that they change no later sample. The
    trainer scores them, as it scores rollouts. The largest difference over all ranks is logged as
    ``vllm/agreement_max``; above the policy's bound every rank raises. A resumed run continues the count of syncs; its
    engine is a new one, whose first sync is checked too, and logged if it is due.

    Args:
        options: how often to check, and the largest difference allowed.
        counts: of the run; how many syncs there were, and when.
    """

    def __init__(self, options: Engine, ranks: Ranks, tokenizer: Any, counts: Counter[str]) -> None:
        self.options, self.ranks, self.tokenizer, self.counts = options, ranks, tokenizer, counts
        self._knows_engine = False

    def after_sync(self, policy: Policy, metrics: dict[str, list[float]], *, again: bool = False) -> None:
        """Check, where it is due, that the engine has ``policy``'s weights; a collective.

        Args:
            again: the same weights once more, to an engine that has slept since; they count once.

        Raises:
            EngineDisagreementError: with what explains it (see `engine_diagnosis`).
        """
        # the sync of an evaluation before the checkpoint's, done again for an engine that has not had it
        again |= not self._knows_engine and policy.step > 0 and self.counts[SYNCED_AT] == policy.step
        is_due = not again and self.counts[SYNCS] % self.options.check_agreement_every == 0
        if is_due or not self._knows_engine:
            self._check(policy, metrics if is_due else None)
        self._knows_engine = True
        self.counts[SYNCS] += not again
        self.counts[SYNCED_AT] = policy.step

    def _check(self, policy: Policy, metrics: dict[str, list[float]] | None) -> None:
        probe = self._probe(policy)
        difference = probe.largest_difference(policy.score(probe.input_ids))
        ranks = self.ranks.gathered(torch.tensor([difference], device=self.ranks.device)).tolist()
        if metrics is not None:
            metrics[METRIC][:] = [max(*metrics[METRIC], *ranks, -inf)]  # TRL logs the mean of this list
        if max(ranks) <= policy.bound:
            return
        worst = ranks.index(max(ranks))
        message = [diagnosis(policy, probe, difference, worst)]
        broadcast_object_list(message, from_process=worst)
        raise EngineDisagreementError(message[0])

    def _probe(self, policy: Policy) -> Probe:
        """Tokens written and scored by the engine, exactly as it writes rollouts; every rank asks."""
        special = set(self.tokenizer.all_special_ids)
        plain = torch.tensor([token for token in range(self.tokenizer.vocab_size) if token not in special])
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randint(len(plain), (PROMPTS, PROMPT_TOKENS), generator=generator)
        prompts = plain[drawn].tolist()
        with _probing(policy.engine, policy.temperature):
            _, completions, logps, _ = policy.engine.generate(prompts, images=None, num_generations=1)
        length = min(map(len, completions))
        written = torch.tensor([tokens[:length] for tokens in completions])
        found = [[token[0] for token in row[:length]] for row in logps]
        numbers = torch.tensor([[torch.nan if value is None else value for value in row] for row in found])
        device = self.ranks.device
        return Probe(torch.cat([torch.tensor(prompts), written], dim=1).to(device), numbers.to(device))


@contextmanager
def _probing(engine: Any, temperature: float) -> Iterator[None]:
    """The engine as rollouts find it, also in the middle of an evaluation that draws otherwise; few tokens."""
    changed: dict[str, Any] = {
        "temperature": temperature,
        "max_completion_length": TOKENS,
        "generation_kwargs": {**engine.generation_kwargs, "seed": 0, "ignore_eos": True},
    }
    if engine.mode == "colocate" and engine.enable_sleep_mode:  # put to sleep after the probe it would forget
        engine.llm.wake_up(tags=["kv_cache"])
        changed["enable_sleep_mode"] = False
    with temporarily(engine, changed):
        yield
