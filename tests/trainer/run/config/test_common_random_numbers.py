"""`common_random_numbers`: off unless asked for, and refused where nobody takes the noise."""

import pytest

from tests.trainer.run.config.test_config import load
from trainer.run.config import ConfigError

COMPACT = "common_random_numbers: true\nspeed: {generation: compact}\n"


def test_it_is_off_unless_the_file_says_so(tmp_path):
    assert load(tmp_path).common_random_numbers is False
    assert load(tmp_path, COMPACT).common_random_numbers is True


@pytest.mark.parametrize(
    ("text", "why", "instead"),
    [
        ("common_random_numbers: true\n", "speed.generation is trl", "speed: {generation: compact}"),
        (COMPACT + "trl: {use_vllm: true}\n", "vLLM draws tokens inside its engine", "delete trl.use_vllm"),
    ],
)
def test_it_is_refused_where_nobody_takes_the_noise(text: str, why: str, instead: str, tmp_path):
    with pytest.raises(ConfigError) as refusal:
        load(tmp_path, text)
    assert "common_random_numbers: is true" in str(refusal.value)
    assert why in str(refusal.value)
    assert instead in str(refusal.value)
