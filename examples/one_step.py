"""One step of RLVR in plain torch, from prompts to weights, and then the same step by `RLVRTrainer`: equal to 1e-6.

    python examples/one_step.py        # a few seconds on a CPU

The update is that of `advantage="rloo"` with `token_weight="adv_reweight"`, both called as the pure functions that they
are. Shapes: P prompts, G answers to each, N = P · G rows, T tokens of an answer.
"""

import os
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "2")  # before torch is imported: of use to a tiny model,
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # and asleep while they wait, for other programs' sake

import torch
from datasets import Dataset
from torch import Tensor
from torch.nn.utils import clip_grad_norm_, parameters_to_vector
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig

from evenkeel import CONFIGS, GENERATORS, RewardFunction, RLVRTrainer, build_verifier
from evenkeel.trainer.algorithms.advantages.group_baselines import rloo
from evenkeel.trainer.algorithms.token_weights.advantage_reweighting import adv_reweight

POLICY = str(CONFIGS / "tiny_policy" / "countdown")
PROMPTS, GROUP, LONGEST = 4, 4, 48
LEARNING_RATE, LARGEST_NORM, CLIP = 1.0, 1.0, 0.2


def left_padded(rows: list[list[int]], value: int) -> tuple[Tensor, Tensor]:
    """(N, longest) ids with the padding before them, so that all end together, and the mask of what is not padding."""
    longest = max(map(len, rows))
    ids = torch.tensor([[value] * (longest - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    return ids, mask


def log_probabilities(model: Any, ids: Tensor, mask: Tensor, last: int) -> Tensor:
    """(N, last): log π of the last tokens of each row, each given those before it."""
    logits = model(input_ids=ids, attention_mask=mask).logits[:, -last - 1 : -1]
    return logits.log_softmax(-1).gather(-1, ids[:, -last:, None]).squeeze(-1)


@torch.no_grad()
def sampled(model: Any, ids: Tensor, mask: Tensor, end: int) -> list[list[int]]:
    """An answer to each prompt, token by token from softmax(logits), up to and with the end token."""
    answers: list[list[int]] = [[] for _ in ids]
    cache = None
    while len(answers[0]) < LONGEST:
        output = model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
        ids, cache = torch.multinomial(output.logits[:, -1].softmax(-1), 1), output.past_key_values
        mask = torch.cat([mask, torch.ones_like(ids)], 1)
        for answer, token in zip(answers, ids.flatten().tolist(), strict=True):
            answer.append(token)
    return [answer[: answer.index(end) + 1] if end in answer else answer for answer in answers]


def by_hand() -> tuple[Any, list[Any], list[Any], list[Any]]:
    """The policy after one step, and what it was trained on: rows, prompts and answers as token ids."""
    tokenizer = AutoTokenizer.from_pretrained(POLICY)
    policy = AutoModelForCausalLM.from_pretrained(POLICY, dtype=torch.float32)
    pad, end = tokenizer.pad_token_id, tokenizer.eos_token_id

    # 1. Prompts, each G times: a group's rows stand side by side.
    rows = GENERATORS["countdown"](part="train", train=64, test=16, seed=1, max_number=12, max_target=50)[:PROMPTS]
    rows = [{**row, "prompt": [{"role": "user", "content": row["prompt"]}]} for row in rows]
    asked = [tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True)["input_ids"] for row in rows]
    prompts = [prompt for prompt in asked for _ in range(GROUP)]
    references = [row["reference"] for row in rows for _ in range(GROUP)]

    # 2. Answers, sampled from the policy.
    answers = sampled(policy, *left_padded(prompts, pad), end)

    # 3. Rewards (N,): a verifier reads each answer. 1 right, 0 wrong.
    verifier = build_verifier("countdown")
    texts = tokenizer.batch_decode(answers, skip_special_tokens=True)
    rewards = torch.tensor([verifier(*each).score for each in zip(texts, references, strict=True)])

    # 4. Advantages (N,): each reward less the mean of its group's others. Groups of equal rewards teach nothing: 0.
    advantages = rloo(rewards, GROUP)

    # 5. π_old of each sampled token (N, T), before anything is trained.
    longest = max(map(len, answers))
    mask = torch.tensor([[1] * len(answer) + [0] * (longest - len(answer)) for answer in answers])
    padded = torch.tensor([answer + [pad] * (longest - len(answer)) for answer in answers])
    prompt_ids, prompt_mask = left_padded(prompts, pad)
    ids, attended = torch.cat([prompt_ids, padded], 1), torch.cat([prompt_mask, mask], 1)
    with torch.no_grad():
        old = log_probabilities(policy, ids, attended, longest)

    # 6. Token weights (N, T): rare tokens have the largest gradients, and are damped.
    per_token = advantages[:, None].expand(old.shape)
    weighted = per_token * adv_reweight(old.exp(), per_token, mask)

    # 7. The clipped loss, over all tokens of the batch (DAPO). In this first step ρ is 1, and its gradient A w ∇log π.
    ratio = (log_probabilities(policy, ids, attended, longest) - old).exp()
    clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
    loss = -(torch.minimum(ratio * weighted, clipped * weighted) * mask).sum() / mask.sum()

    # 8. Gradient descent. (Adam would divide each gradient by its size in the first step, and magnify its rounding.)
    loss.backward()
    clip_grad_norm_(policy.parameters(), LARGEST_NORM)
    with torch.no_grad():
        for weight in policy.parameters():
            weight -= LEARNING_RATE * weight.grad
    return policy, rows, prompts, answers


def by_trainer(rows: list[Any], prompts: list[Any], answers: list[Any], folder: str) -> Any:
    """The policy after the same step of `RLVRTrainer`, on the same answers."""
    trainer = RLVRTrainer(
        model=POLICY,
        reward_funcs=RewardFunction(build_verifier("countdown"), "countdown"),
        args=GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=PROMPTS * GROUP,
            num_generations=GROUP,
            max_completion_length=LONGEST,
            max_steps=1,
            learning_rate=LEARNING_RATE,
            lr_scheduler_type="constant",
            optim="sgd",
            max_grad_norm=LARGEST_NORM,
            epsilon=CLIP,
            loss_type="dapo",
            shuffle_dataset=False,
            use_cpu=True,
            bf16=False,
            report_to="none",
            save_strategy="no",
        ),
        train_dataset=Dataset.from_list(rows),
        advantage="rloo",
        token_weight="adv_reweight",
        rollout_func=lambda *_: {"prompt_ids": prompts, "completion_ids": answers, "logprobs": None},
    )
    trainer.train()
    return trainer.model


if __name__ == "__main__":
    torch.manual_seed(0)
    start = AutoModelForCausalLM.from_pretrained(POLICY, dtype=torch.float32)
    ours, *batch = by_hand()
    theirs = by_trainer(*batch, "runs/one_step")
    before, by_us, by_them = (parameters_to_vector(policy.parameters()) for policy in (start, ours, theirs))
    print(f"the step moved weights by up to {(by_us - before).abs().max():.1e}")
    print(f"by hand and by RLVRTrainer they are at most {(by_us - by_them).abs().max():.1e} apart")
