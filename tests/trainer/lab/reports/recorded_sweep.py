"""Directories as runs and sweeps leave them, made without training: files of the same format, the same every time."""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from ruamel.yaml import YAML

from evenkeel.trainer.evaluation import Decoding, EvaluationResult
from evenkeel.trainer.run.summary import write_summary
from tests.trainer.lab.statistics.simulated_sweeps import answers

HOSTILE = "</pre><script>document.title='owned'</script><img src=http://example.invalid/x.png onerror=alert(1)>"
CONFIG: dict[str, Any] = {
    "model": {"name_or_path": "somewhere/model"},
    "data": {"train": {"path": "somewhere/rows"}, "test": {"path": "somewhere/held_out"}},
    "rewards": [{"verifier": "countdown"}, {"verifier": "answer_format", "name": "format", "weight": 0.1}],
    "algorithm": {"advantage": "grpo", "token_weight": "uniform", "update_schedule": "single_pass"},
    "trl": {"learning_rate": 1e-6, "max_steps": 20},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "grpo": {},
    "ar": {"algorithm.token_weight": {"name": "adv_reweight", "alpha": 0.2}},
    "lopti": {"algorithm.update_schedule": "lopti", "trl.max_steps": 40},
}
ROLLOUTS = (0, 10, 20)


def record_sweep(
    directory: Path,
    *,
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    effects: Mapping[str, float] | None = None,
    items: int = 60,
    per_item: bool = True,
    unfinished: Sequence[str] = (),
) -> Path:
    """A sweep of grpo, ar and lopti; ``effects`` shift a variant's final accuracy on the logit scale."""
    directory.mkdir(parents=True)
    cells = []
    for number, (variant, settings) in enumerate(VARIANTS.items()):
        steps = 2 if variant == "lopti" else 1
        effect = (effects or {}).get(variant, 0.0)
        for seed in seeds:
            name = f"{variant}-s{seed}"
            budget = {"steps_per_rollout": steps, "rollouts": 20.0}
            cell = {"name": name, "variant": variant, "baseline": "grpo", "seed": seed}
            cells.append({**cell, "settings": settings, "budget": budget})
            how: dict[str, Any] = {"random_seed": [seed, number], "effect": effect, "steps_per_rollout": steps}
            how |= {"items": items, "per_item": per_item, "finished": name not in unfinished}
            record_run(directory / name / "run", variant, seed, settings, **how)
    described = {"name": "three <ways>", "file": "sweep.yaml", "config": "base.yaml", "baseline": "grpo"}
    (directory / "sweep.json").write_text(json.dumps({**described, "seeds": list(seeds), "cells": cells}))
    return directory


def record_run(
    path: Path,
    name: str = "one run",
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    *,
    random_seed: Sequence[int] = (0, 0),
    effect: float = 0.0,
    steps_per_rollout: int = 1,
    items: int = 60,
    per_item: bool = True,
    finished: bool = True,
) -> Path:
    """One run that was evaluated three times on two levels of items; ``effect`` is what it learns more."""
    path.mkdir(parents=True)
    config = deepcopy({"name": name, "seed": seed, "output_dir": str(path), **CONFIG})
    for key, value in (settings or {}).items():
        section, _, option = key.partition(".")
        config[section][option] = value
    YAML(typ="safe").dump(config, path / "config.yaml")
    rng = np.random.default_rng([*random_seed, 1])
    lines = []
    for rollouts, learned in zip(ROLLOUTS, (-2.5, -0.8, 0.0), strict=True):
        step = rollouts * steps_per_rollout
        shared = np.random.default_rng(0)  # items are as hard for all runs
        _, difficulty = answers(shared, sweeps=1, seeds=1, items=items, accuracy=0.7, seed_sd=0.0)
        logit = 2.0 * difficulty[0, 0] - 0.4 + learned + effect * (rollouts > 0) + rng.normal(0, 0.1)
        chance = 1 / (1 + np.exp(-logit))
        records = [_record(item, bool(rng.random() < chance[item]), rng) for item in range(items)]
        result = EvaluationResult("test", step, [Decoding()], records, seconds=1.0)
        if per_item:
            result.write(path / "evaluations")
        metrics = {name.replace("eval_", "eval/", 1): value for name, value in result.metrics().items()}
        lines.append({"step": step, **metrics})
    for step in range(1, 20 * steps_per_rollout + 1):
        done = step / steps_per_rollout
        reward = 0.3 + 0.025 * done + 0.03 * rng.normal()
        line = {"step": step, "reward": reward, "entropy": 0.6 - 0.02 * done, "num_tokens": 1_000.0 * done}
        lines.append({**line, "groups/frac_dead": 0.1 + 0.01 * done})
    lines.sort(key=lambda line: line["step"])
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (path / "manifest.json").write_text(json.dumps(_manifest(seed)))
    if finished:
        write_summary(path, {"name": name, "seed": seed, "wall_seconds": 90.0})
    return path


def _record(item: int, correct: bool, rng: np.random.Generator) -> dict[str, Any]:
    unscored = item == 7
    reason = "it equals the target" if correct else "it equals <another> number"
    score = None if unscored else float(correct)
    tokens = int(rng.integers(10, 60)) + 30 * (not correct)
    drawn = {"item": item, "sample": 0, "greedy": False, "group": str(3 + item % 2), "num_tokens": tokens}
    verdict = {"correct": None if unscored else correct, "answer": "6 * 7" if correct else None, "reward": score}
    written = {"completion": HOSTILE if item < 3 else f"1 + 2 = {item}", "truncated": not correct and item % 5 == 0}
    reference = json.dumps({"numbers": [1, 2, 3], "target": item + 3})
    asked = {"prompt": f"Make {item + 3} from 1, 2 and 3.", "reference": reference}
    scores = {"countdown/score": score, "format/score": None if unscored else float(item % 4 > 0)}
    said = {"countdown/answer": None, "countdown/reason": reason}
    return {**drawn, **verdict, **asked, **written, **scores, **said}


def _manifest(seed: int) -> dict[str, Any]:
    packages = {"evenkeel": "0.1.0", "torch": "2.13.0", "trl": "1.16.0"}
    prints = {"train": "04e10f54e94aeb41", "test": "20835693d71ee29c"}
    rest = {"python": "3.11.7", "packages": packages, "seed": seed, "data_fingerprints": prints, "world_size": 1}
    return {"command": ["evenkeel", "train", f"seed={seed}"], "git_revision": "0" * 40, "git_diff": "", **rest}
