"""That exactly the sampled tokens are trained is seen in a run's first batches, and errors of the mask are caught."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM
from trl.chat_template_utils import add_response_schema

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.step.guards import FaultError
from evenkeel.trainer.step.options import Speed
from evenkeel.trainer.step.provenance import Turn, conversations
from tests.tiny_model import byte_tokenizer
from tests.trainer.training import train

METRIC = "environment/provenance"
MARKS = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")


def test_turns_are_told_apart_in_a_group_that_begins_alike():
    """Both rows wrote 5; the first one's tool answer did not fit, so that the second call is of the second row."""
    calls = [[Turn([1], [5]), Turn([1], [5])], [Turn([1, 5, 8], [6])]]
    first, second = conversations(calls, [[1, 5], [1, 5, 8, 6]])
    assert [turn.written for turn in first] == [[5]]
    assert [turn.written for turn in second] == [[5], [6]]


# Whole trainings, in which a model writes


CALL = '\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n'


def save_calling_policy(folder: Path, **settings: Any) -> None:
    """A model that calls a tool or says that it is done, as it likes: what it writes next depends on the last token."""
    tokenizer = byte_tokenizer("qwen2_5", eos_token="<|im_end|>", pad_token="<pad>")
    tokenizer.add_tokens([*MARKS, CALL, "done"])
    add_response_schema(tokenizer)
    following = {
        "Ċ": ("<tool_call>", "done"),
        "<tool_call>": (CALL,),
        CALL: ("</tool_call>",),
        "</tool_call>": ("<|im_end|>",),
        "done": ("<|im_end|>",),
    }
    size = len(tokenizer)
    sizes = dict.fromkeys(("num_hidden_layers", "num_attention_heads", "num_key_value_heads"), 1)
    config = Qwen3Config(vocab_size=size, hidden_size=size, intermediate_size=8, head_dim=8, **sizes, **settings)
    config.eos_token_id, config.pad_token_id = tokenizer.eos_token_id, tokenizer.pad_token_id
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        model.model.embed_tokens.weight.copy_(torch.eye(size))
        (layer,) = model.model.layers
        layer.self_attn.o_proj.weight.normal_(std=0.01)  # what a tool answered moves its choice a little
        layer.mlp.down_proj.weight.zero_()
        model.lm_head.weight.normal_(std=0.02)
        for token, nexts in following.items():
            for each in nexts:
                after, before = tokenizer.convert_tokens_to_ids([each, token])
                model.lm_head.weight[after, before] = 2.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    save_calling_policy(folder)
    return folder


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: one.
        b: the other.
    """
    return a + b


def trained(
    folder: Path, keywords: dict[str, Any], kind: type[RLVRTrainer] = RLVRTrainer, **settings: Any
) -> list[dict[str, Any]]:
    """The log of three steps with a tool; rewards are how often it was called."""
    settings = {"max_completion_length": 120, "learning_rate": 1e-6, "max_tool_calling_iterations": 3, **settings}
    settings["rows"] = [{"prompt": [{"role": "user", "content": text}]} for text in ("Count.", "Go on.")] * 4
    settings["reward"] = lambda completions, **_: [float(len(messages)) for messages in completions]
    trainer = train(kind, folder, folder / "out", strategies={"tools": [add], **keywords}, **settings)
    return [entry for entry in trainer.state.log_history if "loss" in entry]


WAYS = {
    "trl": ({}, {}),
    "planned, compact, with a reference model": (
        {"speed": Speed(microbatches="planned", verify_steps=0, generation="compact"), "advantage": "rloo"},
        {"gradient_accumulation_steps": 2, "beta": 0.1},
    ),
    "groups kept, several steps": (
        {"keep_groups": "step", "update_schedule": "lopti"},
        {"steps_per_generation": 2, "gradient_accumulation_steps": 1, "per_device_train_batch_size": 4, "max_steps": 5},
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_run_logs_the_share_of_its_first_batches(way: str, policy: Path):
    log = trained(policy, WAYS[way][0], **WAYS[way][1])
    assert all(entry["tools/call_frequency"] > 0 for entry in log if "tools/call_frequency" in entry)
    assert [entry[METRIC] for entry in log if METRIC in entry] == [1.0, 1.0]


# Errors of the mask, planted in TRL's loop


def one_left_out(ids: list[int], mask: list[int]) -> Any:
    return ids, [*mask[:2], 0, *mask[3:]]


def header_trained(ids: list[int], mask: list[int]) -> Any:
    """The last token of what the template puts before the next turn."""
    return ids, [int(one or after) for one, after in zip(mask, [*mask[1:], mask[-1]], strict=True)]


def other_token(ids: list[int], mask: list[int]) -> Any:
    return [*ids[:2], ids[2] + 1, *ids[3:]], mask


def of_the_loop(change: Callable[[list[int], list[int]], tuple[Any, Any]]) -> type[RLVRTrainer]:
    """``change``: ids and mask of a completion of several turns → what the loop returns in their place."""

    class Changed(RLVRTrainer):
        def _tool_call_loop(self, *arguments: Any) -> Any:
            masks, completions, ids, *rest = super()._tool_call_loop(*arguments)
            pairs = [change(*pair) if 0 in pair[1] else pair for pair in zip(ids, masks, strict=True)]
            return [mask for _, mask in pairs], completions, [ids for ids, _ in pairs], *rest

    return Changed


@pytest.mark.parametrize("change", [one_left_out, header_trained, other_token], ids=lambda change: change.__name__)
def test_planted_errors_of_the_mask_end_the_run(policy: Path, change: Any):
    with pytest.raises(FaultError, match=r"The first is row \d+, token \d+ of") as raised:
        trained(policy, {}, of_the_loop(change), max_steps=1)
    if change in (one_left_out, other_token):
        assert "token 2 of the completion" in str(raised.value)


def test_completions_that_are_cut_off_may_be_left_out(policy: Path):
    settings = {"mask_truncated_completions": True, "max_completion_length": 90, "max_steps": 1}
    (entry,) = trained(policy, {}, **settings)
    assert entry["completions/clipped_ratio"] > 0
    assert entry[METRIC] == 1.0
    with pytest.raises(FaultError, match="of 8 completions"):
        trained(policy, {}, of_the_loop(one_left_out), **{**settings, "max_completion_length": 120})


# Errors behind the rollout batch's mask, planted in the loss of whole trainings


class LaterTurnsLeftOut(RLVRTrainer):
    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        return super()._compute_loss(model, {**inputs, "tool_mask": inputs["tool_mask"].cumprod(1)})


class AnswersHidden(RLVRTrainer):
    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        seen = inputs["completion_mask"] * inputs["tool_mask"]
        return super()._compute_loss(model, {**inputs, "completion_mask": seen})


class NoMask(RLVRTrainer):
    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        return super()._compute_loss(model, {name: inputs[name] for name in inputs if name != "tool_mask"})


class OtherTemperature(RLVRTrainer):
    def _get_per_token_logps_and_entropies(self, *positional: Any, **keywords: Any) -> Any:
        logps, *rest = super()._get_per_token_logps_and_entropies(*positional, **keywords)
        return logps * 1.25, *rest


UNTRAINED = r"gradient -?0 at a token with an advantage, that the policy wrote: token \d+ of row"
UNLIKE = r"does not see conversations as the policy did: \d+ of \d+ log-probabilities differ by more than"
IN_THE_LOSS = {
    NoMask: r"gradient -?0\.\d+ at a token that it did not write: token",
    LaterTurnsLeftOut: UNTRAINED,
    AnswersHidden: UNLIKE,
    OtherTemperature: UNLIKE,
}


@pytest.mark.parametrize("kind", IN_THE_LOSS, ids=lambda kind: kind.__name__)
def test_planted_errors_of_the_loss_end_the_run_before_its_first_step(policy: Path, kind: type[RLVRTrainer]):
    with pytest.raises(FaultError, match=IN_THE_LOSS[kind]):
        trained(policy, {}, kind, max_steps=1)


def test_log_probabilities_of_a_model_that_drops_are_not_compared(tmp_path: Path):
    save_calling_policy(tmp_path, attention_dropout=0.5)
    log = trained(tmp_path, {}, OtherTemperature, max_steps=1)
    assert [entry[METRIC] for entry in log] == [1.0]
