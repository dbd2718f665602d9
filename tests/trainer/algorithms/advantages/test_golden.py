"""Numbers that other people's code returned for seeded inputs.

`golden.json` says for each table which function of which repository at which commit made it, and with what arguments
(their ε set to ours, where it can be). It holds numbers alone.
"""

import json
from pathlib import Path

import pytest
import torch

from tests.trainer.algorithms.advantages.rollouts import estimate

CASES = json.loads(Path(__file__).with_name("golden.json").read_text())["cases"]
WHOLE_NUMBERS = ("lengths", "completion_ids", "mask", "turns", "state_keys")


def tensor(name, values):
    if name in WHOLE_NUMBERS:
        return torch.tensor(values)
    rows = [[float("nan") if v is None else v for v in row] if isinstance(row, list) else row for row in values]
    return torch.tensor(rows, dtype=torch.float32)


@pytest.mark.parametrize("case", CASES, ids=[f"{case['estimator']}-{index}" for index, case in enumerate(CASES)])
def test_our_numbers_are_theirs(case):
    inputs = {name: tensor(name, values) for name, values in case["inputs"].items()}
    result = estimate(case["estimator"], {**inputs, "group_size": case["group_size"]}, **case["options"])
    expected = torch.tensor(case["expected"], dtype=torch.float32)
    if result.dim() == 2:
        result, expected = result * inputs["mask"], expected * inputs["mask"]
    if case["estimator"] == "reinforce_pp_token":
        differs = (inputs["rewards"].view(-1, case["group_size"]).std(1) > 0).repeat_interleave(case["group_size"])
        assert (result[~differs] == 0).all()  # theirs is the batch's shift there
        result, expected = result[differs], expected[differs]
    torch.testing.assert_close(result, expected, rtol=2e-5, atol=1e-5)
