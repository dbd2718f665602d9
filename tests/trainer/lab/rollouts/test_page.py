"""The page: hostile text stays text, and what it holds is what was recorded."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML

from evenkeel.trainer.command.rollouts import main
from evenkeel.trainer.lab.rollouts.contents import LONGEST_SHOWN, BatchSummary, chosen_groups
from evenkeel.trainer.lab.rollouts.page import write_page
from evenkeel.trainer.run.record.rollouts import RecordedRollouts, write_rollouts
from tests.trainer.lab.reports.recorded_sweep import CONFIG, HOSTILE

GROUP = 8
BATCH = {"prompts_per_rollout": 8, "sequences_per_update": 64}  # of which half is recorded
AR = {"algorithm": {"token_weight": {"name": "adv_reweight", "alpha": 0.2}, **BATCH}}


def data_of(page: Path) -> list[dict]:
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(data)


def recorded_row(random: Any, number: int, row: int) -> dict[str, Any]:
    ids = random.integers(5, 24, size=int(random.integers(3, 9))).tolist()
    right = bool(random.random() < 0.4)
    reward = float(right)
    unscored = row % 31 == 30
    text = HOSTILE if row == 3 else " ".join(map(str, ids))
    mask = [True, False] + [True] * (len(ids) - 2) if row % GROUP == 7 else None  # a tool wrote the second
    score = None if unscored else reward
    place = {"batch": number, "step": number, "row": row, "group": row // GROUP}
    prompt = {
        "prompt": f"user {HOSTILE} assistant",
        "prompt_ids": [3, 5 + row // GROUP, 4],
        "reference": HOSTILE + "x" * 7000,
    }
    written = {"completion": text, "completion_ids": ids, "num_tokens": len(ids), "truncated": len(ids) == 8}
    verdict = {"correct": None if unscored else right, "rewards/countdown": score, "reward": score, "others": None}
    said = {"countdown/answer": HOSTILE, "countdown/reason": "equals 5" if right else "not 5"}
    advantage = {"advantage": 0.0 if unscored else reward - 0.5, "advantages": None, "mask": mask}
    old_logps = np.log(random.uniform(0.05, 1, size=len(ids))).tolist()
    scores = {"old_logps": old_logps, "entropies": random.uniform(0, 2, size=len(ids)).tolist()}
    return {**place, **prompt, **written, **verdict, **said, **advantage, **scores}


@pytest.fixture(scope="module")
def page(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of 24 rollout batches of 32 rows of the tiny model's words, as a run leaves them."""
    run = tmp_path_factory.mktemp("rollouts") / "run"
    (run / "rollouts").mkdir(parents=True)
    settings = {**CONFIG, **AR, "name": "made", "output_dir": str(run), "model": {"name_or_path": str(tiny_model)}}
    YAML(typ="safe").dump(settings, run / "config.yaml")
    random = np.random.default_rng(0)
    for number in range(24):
        rows = [recorded_row(random, number, row) for row in range(4 * GROUP)]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        write_rollouts(run / "rollouts" / f"batch-{number:06d}-rank-0.parquet", columns)
    return write_page(RecordedRollouts(run))[0]


def test_the_page_holds_what_was_recorded_and_no_markup_of_a_policy(page: Path):
    text, groups = page.read_text(), data_of(page)
    data = text.partition('id="data">')[2].partition("</script>")[0]
    assert not re.search("[<>&]", data)
    assert not re.search(r"<img|<iframe|\bon\w+=[\"']|@import|src=", text.replace(data, ""))
    assert text.count("</script>") == 2
    assert len(groups) * 8 <= 400
    assert [(group["batch"], group["group"]) for group in groups] == sorted((g["batch"], g["group"]) for g in groups)
    assert {len(group["rollouts"]) for group in groups} == {8}
    assert groups[0]["prompt"] == f"user {HOSTILE} assistant"
    assert groups[0]["reference"].endswith(f"x… [{len(HOSTILE) + 1000:,} characters more]")
    (recorded,) = RecordedRollouts(page.parent).batches(numbers=[groups[0]["batch"]])
    rows = {row["row"]: row for row in recorded.to_pylist()}
    shown = groups[0]["rollouts"][0]
    row = rows[shown["row"]]
    assert shown["verdict"] == {True: "right", False: "wrong", None: "unscored"}[row["correct"]]
    assert (shown["reward"], shown["length"], shown["left_out"]) == (row["reward"], row["num_tokens"], 0)
    assert len(shown["probs"]) == len(shown["pieces"]) == len(shown["weighed"]) == row["num_tokens"]
    assert [rollout["counted"] and rollout["counted"][:3] for rollout in groups[0]["rollouts"]] == [
        None if rollout["row"] % 8 != 7 else [True, False, True] for rollout in groups[0]["rollouts"]
    ]
    for weighed, probability in zip(shown["weighed"], shown["probs"], strict=True):
        assert weighed == pytest.approx(row["advantage"] * (0.2 * probability + 0.8), abs=1e-3)


def test_steps_can_be_chosen_and_nothing_to_read_is_refused(page: Path, tmp_path: Path, capsys):
    chosen = tmp_path / "chosen.html"
    assert main([str(page.parent), "--steps", "5:6", "--to", str(chosen), "--most", "16"]) == 0
    assert {group["step"] for group in data_of(chosen)} <= {5, 6}
    assert {group["step"] - group["batch"] for group in data_of(chosen)} == {1}  # as the terminal counts
    assert len(data_of(chosen)) == 2
    text = " ".join(chosen.read_text().split())
    assert "64 of the 128 rollouts of 2 rollout batches, steps 5 to 6:" in text
    assert "16 rollouts can be read" in text
    assert re.search("<details id=[^<]*<summary>[^<]*</summary> <form", text)  # closed, which a phone leaves so
    assert main([str(page.parent), "--steps", "99:"]) == 2
    assert main([str(tmp_path)]) == 2
    assert "logging.rollouts" in capsys.readouterr().err


def test_a_sample_is_bounded_whole_and_even():
    batches = [BatchSummary(n, n, 64, [(g, 8, 8 * 50) for g in range(8)], {}) for n in range(1_000)]
    chosen = chosen_groups(batches, 400, 10**9)
    assert len(chosen) == 50
    assert chosen == chosen_groups(list(reversed(batches)), 400, 10**9)
    late = sum(number >= 500 for number, _ in chosen)
    assert 15 <= late <= 35  # 25 ± 3.5
    assert len(chosen_groups(batches, 400, 2_000)) == 5
    long = [BatchSummary(0, 0, 8, [(g, 8, 8 * 50_000) for g in range(4)], {})]
    assert len(chosen_groups(long, 400, 3 * 8 * LONGEST_SHOWN)) == 3
    assert len(chosen_groups(long, 1, 1)) == 1
