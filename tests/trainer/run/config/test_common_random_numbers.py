"""`common_random_numbers`: off unless asked for, and refused where nobody takes the noise."""

import pytest

from tests.trainer.run.config.test_config import found, load

COMPACT = "common_random_numbers: true\nspeed: {generation: compact}\n"


def test_it_is_off_unless_the_file_says_so(tmp_path):
    assert load(tmp_path).common_random_numbers is False
    assert load(tmp_path, COMPACT).common_random_numbers is True


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("common_random_numbers: true\n", "common-noise-without-compact"),
        (COMPACT + "trl: {use_vllm: true}\n", "common-noise-with-vllm"),
    ],
)
def test_it_is_refused_where_nothing_uses_the_noise(text: str, code: str, tmp_path):
    assert found(tmp_path, text) == [("common_random_numbers", code)]
