"""Runs of a few rollout batches, inside this process, whose directory does not stay."""

import contextlib
import io
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainer.run.config import grpo_config, load_config
from trainer.run.rewards import Rewards
from trainer.run.rows import load_data
from trainer.run.tokenizer import load_tokenizer
from trainer.run.training import build_trainer


@contextmanager
def short_run(config_path: Path, rewards: Rewards, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The trainer of a run file with ``settings`` (dotted overrides) in its place; what is printed inside is not."""
    with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(io.StringIO()):
        fixed = {"trl.save_strategy": "no", "logging.report_to": "none", "logging.rollouts": "off"}
        overrides = [f"{key}={value}" for key, value in {**fixed, **settings, "output_dir": directory}.items()]
        config = load_config(config_path, overrides)
        verifiers = {reward.label: rewards.build_verifier(reward.verifier) for reward in config.rewards}
        rows = load_data(config, verifiers, rewards, config_path.resolve().parent)
        tokenizer, prefilled = load_tokenizer(config)
        functions = rewards.reward_functions(verifiers, tasks=config.reward_tasks, prefilled_thought=prefilled)
        yield build_trainer(config, grpo_config(config, 1), rows, functions, tokenizer)
