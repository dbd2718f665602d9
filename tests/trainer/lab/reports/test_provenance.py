"""Where numbers come from, in words."""

import pytest

from evenkeel.trainer.lab.reports.provenance import shown_command


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (
            ["/home/ann/evenkeel/scripts/train.py", "/home/ann/evenkeel/configs/a.yaml", "seed=1", "name=two words"],
            "scripts/train.py configs/a.yaml seed=1 'name=two words'",
        ),
        (["scripts/train.py", "/data/b.yaml"], "scripts/train.py /data/b.yaml"),
        (["train.py"], "train.py"),
    ],
)
def test_a_command_is_shown_from_the_checkout_on(command: list[str], shown: str):
    assert shown_command(command) == shown
