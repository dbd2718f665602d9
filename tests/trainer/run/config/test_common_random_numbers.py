"""`common_random_numbers`: off unless asked for."""

from tests.trainer.run.config.test_config import load

COMPACT = "common_random_numbers: true\nspeed: {generation: compact}\n"


def test_it_is_off_unless_the_file_says_so(tmp_path):
    assert load(tmp_path).common_random_numbers is False
    assert load(tmp_path, COMPACT).common_random_numbers is True
