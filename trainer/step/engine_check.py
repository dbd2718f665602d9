"""Whether vLLM answers with the policy that is trained: known tokens scored by both after each weight sync.

A sync can go wrong without a sound: a tied LM head of which the engine keeps a copy, adapters that were not merged, an
update that never arrives, another dtype, another temperature. The run would then train on another policy's samples, and
an importance ratio would hide it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

import torch
from torch import Tensor

from evenkeel.trainer.step.guards import FaultError
from evenkeel.trainer.step.ranks import Ranks
from evenkeel.trainer.step.temporarily import temporarily

METRIC = "vllm/agreement_max"
PROMPTS, PROMPT_TOKENS, TOKENS = 8, 16, 16
BOUNDS = {torch.float32: 1e-3, torch.float16: 0.1, torch.bfloat16: 0.5}
"""The largest difference of a token's log-probability that rounding explains, by what the trainer computes in.

On a CPU, with a policy of 0.8 million parameters, float32 differed by up to 7e-6 and bfloat16 by 0.11
(configs/README.md); what larger models reach is not known, hence the room above it.
"""


def compute_dtype(args: Any, model: Any) -> torch.dtype:
    """What the trainer's forward passes round to; TF32 keeps as many bits as float16."""
    if args.bf16:
        return torch.bfloat16
    if args.fp16 or (args.tf32 and model.dtype == torch.float32):
        return torch.float16
    return model.dtype if model.dtype in BOUNDS else torch.float32


class EngineCheck:
    """Trusts vLLM only as far as it has scored known tokens alike.

    After every sync of the weights 8 prompts of 16 random tokens are continued by 16 tokens, drawn as rollouts are but
    with a seed of their own, so that they change no later sample. The trainer scores them, as it scores rollouts. The
    largest difference over all ranks is logged as ``vllm/agreement_max``; above the bound every rank raises.

    Args:
        bound: the largest difference of a log-probability that is allowed; ``None`` = that of `BOUNDS`.
        dtype: what the trainer's forward passes round to.
        temperature: at which rollouts are sampled.
    """

    def __init__(
        self, ranks: Ranks, tokenizer: Any, *, bound: float | None, dtype: torch.dtype, temperature: float
    ) -> None:
        self.ranks, self.tokenizer, self.dtype, self.temperature = ranks, tokenizer, dtype, temperature
        self.bound = BOUNDS[dtype] if bound is None else bound

    def __call__(
        self, engine: Any, model: Any, score: Callable[..., Any], step: int, metrics: dict[str, list[float]]
    ) -> None:
        """Check that the engine has the weights of ``model``; a collective.

        Args:
            score: TRL's scoring of tokens.
            step: optimizer steps made.

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
        metrics[METRIC][:] = [max(*metrics[METRIC], worst, -inf)]  # TRL logs the mean of this list
        if worst > self.bound:
            dtype = str(self.dtype).removeprefix("torch.")
            raise FaultError(
                f"After the weight sync at step {step} vLLM's log-probabilities differ from the trainer's by up to "
                f"{worst:.2g}, where {self.bound:g} is allowed (the trainer computes in {dtype}), so the next rollouts "
                "would be samples of another policy. Usual causes: another temperature (start the server with "
                "--logprobs-mode processed_logprobs, leave temperature out of trl.generation_kwargs); weights that do "
                "not arrive (another server at trl.vllm_server_base_url, a tied LM head of which vLLM keeps a copy, "
                f"adapters that do not merge); another dtype (vllm serve --dtype {dtype}, or vllm.agreement_bound).",
                code="engine-disagreement",
            )

    def _probe(self, engine: Any) -> tuple[Tensor, Tensor]:
        """Token ids (B, P + T) of which the engine has just written the last T, exactly as it writes rollouts, and its
        ``log π`` of these (B, T), NaN where it gives none; every rank asks."""
        special = set(self.tokenizer.all_special_ids)
        plain = torch.tensor([token for token in range(self.tokenizer.vocab_size) if token not in special])
        generator = torch.Generator().manual_seed(0)
        prompts = plain[torch.randint(len(plain), (PROMPTS, PROMPT_TOKENS), generator=generator)].tolist()
        with _probing(engine, self.temperature):
            _, completions, logps, _ = engine.generate(prompts, images=None, num_generations=1)
        length = min(map(len, completions))
        ids = torch.tensor([[*prompt, *tokens[:length]] for prompt, tokens in zip(prompts, completions, strict=True)])
        found = [[torch.nan if token[0] is None else token[0] for token in row[:length]] for row in logps]
        return ids.to(self.ranks.device), torch.tensor(found).to(self.ranks.device)


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
