"""A colocated engine with sleep mode is sent the weights once for all rounds of a rollout batch, not once a round."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM
from trl.generation import vllm_generation

from tests.trainer.step.test_prompts import trainer_of


class SleepingLLM:
    """What TRL's colocate mode asks of `vllm.LLM`, strict where vLLM would crash or answer with freed memory.

    Attributes:
        pushes, generated: how often all weights were loaded, and completions asked for.
        awake: of weights and kv_cache, what is mapped.
    """

    def __init__(self, model: str, **_: Any) -> None:
        self.model = AutoModelForCausalLM.from_pretrained(model).eval()
        self.parameters = dict(self.model.named_parameters())
        self.missing: set[str] = set()
        self.awake = {"weights", "kv_cache"}
        self.pushes = self.generated = 0
        runner = SimpleNamespace(model=self)
        executor = SimpleNamespace(driver_worker=SimpleNamespace(model_runner=runner))
        self.llm_engine = SimpleNamespace(
            model_executor=executor, model_config=SimpleNamespace(dtype=torch.float32), vllm_config=None
        )

    @torch.no_grad()
    def sleep(self, level: int) -> None:
        assert level == 2
        self.awake.clear()
        for parameter in self.parameters.values():  # level 2 discards the weights
            parameter.fill_(torch.nan)
        self.missing = set(self.parameters)

    def wake_up(self, tags: list[str]) -> None:
        self.awake |= set(tags)

    @torch.no_grad()
    def load_weights(self, weights: list[tuple[str, torch.Tensor]]) -> None:
        assert "weights" in self.awake, "weights written into memory that is not mapped"
        for name, weight in weights:
            self.parameters[name].copy_(weight)
            self.missing.discard(name)
            self.pushes += name == next(iter(self.parameters))

    def reset_prefix_cache(self) -> None: ...

    @torch.no_grad()
    def generate(self, prompts: list[dict[str, Any]], sampling_params: Any, use_tqdm: bool) -> list[Any]:
        assert self.awake == {"weights", "kv_cache"}, f"asleep: only {self.awake} is mapped"
        assert not self.missing, f"never loaded after sleep: {self.missing}"
        self.generated += 1
        outputs = []
        for prompt in prompts:
            ids, numbers = prompt["prompt_token_ids"], []
            for _ in range(sampling_params.max_tokens):
                logits = self.model(torch.tensor([ids])).logits[0, -1] / (sampling_params.temperature or 1e-6)
                token = int(logits.softmax(-1).multinomial(1))
                numbers.append({token: SimpleNamespace(rank=1, logprob=float(logits.log_softmax(-1)[token]))})
                ids = [*ids, token]
            written = ids[len(prompt["prompt_token_ids"]) :]
            completion = SimpleNamespace(token_ids=written, logprobs=numbers)
            outputs.append(SimpleNamespace(prompt_token_ids=prompt["prompt_token_ids"], outputs=[completion]))
        return outputs


SETTINGS = {"use_vllm": True, "vllm_mode": "colocate", "vllm_enable_sleep_mode": True, "max_completion_length": 4}


@pytest.fixture
def _colocated(monkeypatch: pytest.MonkeyPatch) -> None:
    """TRL's colocate mode where vLLM is not installed."""

    def engine(generation: Any) -> None:
        generation.llm = SleepingLLM(generation.model.name_or_path)
        generation.llm.sleep(level=2)
        generation._llm_weights_sleeping = True

    monkeypatch.setattr(vllm_generation.VLLMGeneration, "_init_vllm", engine)
    monkeypatch.setattr(vllm_generation, "SamplingParams", SimpleNamespace, raising=False)
    monkeypatch.setattr(vllm_generation, "empty_cache", lambda: None)


@pytest.mark.usefixtures("_colocated")
def test_all_rounds_of_dynamic_sampling_are_generated_by_one_push(tiny_model: Path, tmp_path: Path):
    trainer = trainer_of(tiny_model, tmp_path, {"name": "dynamic", "max_rounds": 4}, **SETTINGS, max_steps=2)
    trainer.train()
    llm = trainer.vllm_generation.llm
    rounds = [entry["prompt_sampler/rounds"] for entry in trainer.state.log_history if "loss" in entry]
    assert max(rounds) > 1, "no rollout batch took a second round: nothing was tested"
    assert llm.pushes == 2
    assert llm.awake == set(), "the engine takes the update's memory"
