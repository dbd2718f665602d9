"""Whether what was exported answers as the policy in the run does."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from evenkeel.trainer.run.export.source import Source
from evenkeel.trainer.run.record.files import DamagedFileError, read_parquet

QUESTION = "What is 2 + 3?"
"""Asked where the run has evaluated nothing."""


@dataclass(frozen=True)
class Answer:
    """A greedy completion: its tokens and their log-probabilities, both (T,)."""

    prompt: torch.Tensor
    tokens: torch.Tensor
    logps: torch.Tensor


@dataclass(frozen=True)
class Agreement:
    """How two policies answer the same prompts.

    Attributes:
        prompts: how many were asked.
        same: how many got the same tokens.
        max_gap: largest absolute difference of the log-probability of a token of the first policy's answers.
    """

    prompts: int
    same: int
    max_gap: float

    def __str__(self) -> str:
        return (
            f"{self.same} of {self.prompts} greedy answers have the same tokens; log-probabilities differ by at most "
            f"{self.max_gap:.1e}"
        )


def conversations(source: Source, most: int) -> list[list[dict[str, str]]]:
    """Up to ``most`` held-out questions of the run, with its system prompt."""
    again = "Bring it back as it was written, or delete it: the policies are then compared on other prompts."
    files = [(step, file) for steps in source.run.answers.values() for step, file in steps.items()]
    questions: list[str] = []
    for _, file in sorted(files, key=lambda each: -each[0]):
        table = read_parquet(file, ["prompt"], again)
        if "prompt" not in table.column_names:
            raise DamagedFileError(f"{file} is damaged: it has no column 'prompt'. {again}")
        for prompt in table.column("prompt").to_pylist():
            if prompt not in questions:
                questions.append(prompt)
        if len(questions) >= most:
            break
    system = source.config.data.system_prompt
    before = [] if system is None else [{"role": "system", "content": system}]
    return [[*before, {"role": "user", "content": question}] for question in (questions or [QUESTION])[:most]]


def greedy_answers(
    policy: Any, tokenizer: Any, asked: Sequence[Sequence[dict[str, str]]], generation: Any, max_new_tokens: int
) -> list[Answer]:
    """The most probable completion of each conversation, one at a time: padding must not enter."""
    from transformers import GenerationConfig

    greedy = GenerationConfig(
        do_sample=False,
        max_new_tokens=max_new_tokens,
        eos_token_id=generation.eos_token_id,
        pad_token_id=generation.pad_token_id,
        repetition_penalty=generation.repetition_penalty,
    )
    answers = []
    for conversation in asked:
        prompt = tokenizer.apply_chat_template(
            list(conversation), add_generation_prompt=True, return_dict=True, return_tensors="pt"
        )["input_ids"].to(policy.device)
        with torch.inference_mode():
            whole = policy.generate(input_ids=prompt, attention_mask=torch.ones_like(prompt), generation_config=greedy)
        tokens = whole[0, prompt.shape[1] :]
        answers.append(Answer(prompt[0], tokens, token_logps(policy, prompt[0], tokens)))
    return answers


def token_logps(policy: Any, prompt: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """``log π(token_t | prompt, token_<t)`` in float32, (T,)."""
    whole = torch.cat([prompt, tokens]).unsqueeze(0).to(policy.device)
    with torch.inference_mode():
        logits = policy(input_ids=whole, attention_mask=torch.ones_like(whole)).logits[0, len(prompt) - 1 : -1]
    return logits.float().log_softmax(-1).gather(-1, tokens.to(policy.device).unsqueeze(-1)).squeeze(-1).cpu()


def agreement(
    before: Sequence[Answer], policy: Any, tokenizer: Any, asked: Sequence[Any], generation: Any, max_new_tokens: int
) -> Agreement:
    """``before``, the answers of another policy, against those of this one."""
    after = greedy_answers(policy, tokenizer, asked, generation, max_new_tokens)
    gaps = [
        (old.logps - token_logps(policy, old.prompt, old.tokens)).abs().max().item()
        for old in before
        if len(old.tokens)
    ]
    same = sum(torch.equal(old.tokens.cpu(), new.tokens.cpu()) for old, new in zip(before, after, strict=True))
    return Agreement(len(before), same, max(gaps, default=0.0))
