"""What real trainings log stands in docs/metrics.md, and what is declared there is logged by one of them."""

import math
import re
from functools import cache
from itertools import product
from typing import Any

import pytest
from datasets import Dataset
from transformers import PreTrainedTokenizerFast

from evenkeel.rewards import RewardFunction, build_verifier, reward_functions
from evenkeel.rewards.environments import build_environment
from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.evaluation import decodings
from evenkeel.trainer.run.callbacks.records import named
from evenkeel.trainer.step.options import Evaluation, Guards, Speed
from tests.paths import ROOT
from tests.trainer.step import test_environments
from tests.trainer.step.engine.conftest import Served
from tests.trainer.step.without_torch import Guess
from tests.trainer.training import PROMPTS, train

NAMES = re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs/metrics.md").read_text(), flags=re.MULTILINE)


tokenizer = test_environments.tokenizer
"""A fixture: one whose chat template can call tools."""


@cache
def alternatives(name: str) -> list[str]:
    """``a/{b, c}/<d>`` → ``a/b/<d>``, ``a/c/<d>``."""
    parts = [part.split(", ") for part in re.split(r"[{}]", name)]
    return ["".join(chosen) for chosen in product(*parts)]


def logs(key: str, pattern: str) -> bool:
    words = re.escape(pattern).replace("<k>", r"\d+").replace("<metric>", ".+")
    return re.fullmatch(re.sub(r"<\w+>", "[^/]+", words), key) is not None


def scored(prompts: list[Any], completions: list[Any], log_extra: Any, log_metric: Any, **_: Any) -> list[Any]:
    """By a verifier: wrong where c is in the prompt, right where a is, else right where the answer ends in a digit."""
    asked = [prompt[-1]["content"] for prompt in prompts]
    texts = [completion[0]["content"].strip()[-1:] or "nothing" for completion in completions]
    pairs = zip(asked, texts, strict=True)
    references = [text if "c" not in asked and ("a" in asked or text.isdigit()) else "no" for asked, text in pairs]
    reward = RewardFunction(build_verifier("exact_match"), "scored")
    return reward(prompts=asked, completions=texts, reference=references, log_extra=log_extra, log_metric=log_metric)


class OneFault(RLVRTrainer):
    """The loss of the first optimizer step is no number."""

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        loss = super()._compute_loss(model, inputs)
        return loss * math.nan if self.model.training and self.state.global_step == 0 else loss


POLICY = ROOT / "configs/tiny_policy/countdown"
"""Unlike the random model's its tokens are of all classes and probabilities, and its answers begin alike."""
LEVELS = [*dict.fromkeys(map(str, Dataset.from_list(PROMPTS)["prompt"]))]
CURRICULUM = {"name": "curriculum", "column": "prompt", "levels": LEVELS, "up_at": 0.5}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "two passes": ({"update_schedule": "lopti", "token_weight": "adv_reweight", "prompt_sampler": "dynamic"}, {}),
    "coefficient": ({"coefficient": "importance_ratio"}, {"loss_type": "cispo", "num_iterations": 2}),
    "cispo, revision": ({"advantage": "ibpo", "revision": {"references": 2}}, {"loss_type": "cispo"}),
    "vespo, entropy bonus": ({"prompt_sampler": CURRICULUM}, {"loss_type": "vespo", "entropy_coef": 0.01}),
    "planned": ({"speed": Speed(microbatches="planned", staleness=1)}, {}),
}


@pytest.fixture(scope="module")
def trained(
    served: Served, tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, set[str]]:
    """Case → the keys that it logged, as ``metrics.jsonl`` has them."""
    folder = tmp_path_factory.mktemp("logged")
    found = {}

    def run(case: str, strategies: dict[str, Any], trainer_class: Any = RLVRTrainer, **settings: Any) -> Any:
        defaults = {"model": served.model, "reward": scored, "max_steps": 2}
        trainer = train(trainer_class, output_dir=folder / case, strategies=strategies, **{**defaults, **settings})
        found[case] = {key for entry in trainer.state.log_history for key in named(entry)}
        return trainer

    for case, (strategies, settings) in CASES.items():
        run(case, strategies, **settings)
    watched = {"guards": Guards(folder / "faults", max_skipped=1)}
    settings = {"max_completion_length": 16, "steps_per_generation": 2, "gradient_accumulation_steps": 1}
    run("real policy, fault", watched, OneFault, model=POLICY, beta=0.1, max_steps=8, **settings)
    trainer = run("evaluation", {"evaluation": Evaluation(0, decodings(2, None, True))}, max_steps=1)
    trainer.evaluate(Dataset.from_list([{**row, "group": "easy"} for row in PROMPTS]))
    found["evaluation"] |= {key for entry in trainer.state.log_history for key in named(entry)}
    served.engine.start()
    run("vllm", {"agreement_bound": None}, **served.settings)
    acting = {"environment_factory": build_environment(Guess)}
    acting["reward_funcs"] = reward_functions({"environment": build_verifier("environment")})
    with_tools = test_environments.scripted(tokenizer, folder / "tools", **acting)
    with_tools.train()
    found["tools"] = {key for entry in with_tools.state.log_history for key in named(entry)}
    return found


def test_every_key_that_is_logged_is_declared_once(trained):
    patterns = [(name, pattern) for name in NAMES for pattern in alternatives(name)]
    for case, keys in trained.items():
        declared = {key: [name for name, pattern in patterns if logs(key, pattern)] for key in keys}
        assert {key: names for key, names in declared.items() if len(names) != 1} == {}, case


def test_every_key_that_is_declared_is_logged(trained):
    keys = set().union(*trained.values())
    silent = [each for name in NAMES for each in alternatives(name) if not any(logs(key, each) for key in keys)]
    assert silent == ["aux_loss", "perf/mfu"]  # they take a model with a router, and a GPU
