"""Rollouts as a run leaves them, made without training: the same every time."""

from pathlib import Path
from typing import Any

import numpy as np
from ruamel.yaml import YAML

from evenkeel.trainer.run.record.rollouts import write_rollouts
from tests.trainer.lab.reports.recorded_sweep import CONFIG, HOSTILE

GROUP = 8
AR = {"algorithm": {"token_weight": {"name": "adv_reweight", "alpha": 0.2}}}


def record_rollouts(
    run: Path,
    model: Path | None,
    *,
    batches: int = 24,
    groups: int = 4,
    scored: bool = True,
    hostile: bool = False,
    seed: int = 0,
    **config: Any,
) -> Path:
    """``batches`` rollout batches of 8 × ``groups`` rows of the tiny model's words."""
    run.mkdir(parents=True)
    (run / "rollouts").mkdir()
    settings = {**CONFIG, "name": "made", "output_dir": str(run), **config}
    settings["model"] = {"name_or_path": "nowhere/at_all" if model is None else str(model)}
    YAML(typ="safe").dump(settings, run / "config.yaml")
    random = np.random.default_rng(seed)
    for number in range(batches):
        rows = [_row(random, number, row, scored, hostile) for row in range(groups * GROUP)]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        write_rollouts(run / "rollouts" / f"batch-{number:06d}-rank-0.parquet", columns)
    return run


def _row(random: Any, number: int, row: int, scored: bool, hostile: bool) -> dict[str, Any]:
    ids = random.integers(5, 24, size=int(random.integers(3, 9))).tolist()
    right = bool(random.random() < 0.4)
    reward = float(right)
    unscored = row % 31 == 30
    text = HOSTILE if hostile and row == 3 else " ".join(map(str, ids))
    return {
        "batch": number,
        "step": number,
        "row": row,
        "group": row // GROUP,
        "prompt": f"user {HOSTILE if hostile else row // GROUP} assistant",
        "prompt_ids": [3, 5 + row // GROUP, 4],
        "reference": HOSTILE if hostile else "5",
        "completion": text,
        "completion_ids": ids,
        "num_tokens": len(ids),
        "truncated": len(ids) == 8,
        "mask": [True, False] + [True] * (len(ids) - 2) if row % GROUP == 7 else None,  # a tool wrote the second
        "correct": None if unscored else right,
        "rewards/countdown": None if unscored else reward,
        "reward": None if unscored else reward,
        "countdown/answer": HOSTILE if hostile else "5",
        "countdown/reason": "equals 5" if right else "not 5",
        "others": None,
        "advantage": 0.0 if unscored else reward - 0.5,
        "advantages": None,
        "old_logps": np.log(random.uniform(0.05, 1, size=len(ids))).tolist() if scored else None,
        "entropies": random.uniform(0, 2, size=len(ids)).tolist() if scored else None,
    }
