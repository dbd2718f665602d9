"""Who goes first changes from round to round, and every benchmark can be asked for."""

from collections import Counter
from itertools import combinations

import pytest

from scripts.benchmarks.__main__ import PROGRAMS, main, shared
from scripts.benchmarks.rounds import in_turn, round_ratios, shown_ratio
from scripts.one_of import command_line


def test_of_any_two_each_goes_first_in_every_other_round():
    assert [in_turn("abc", number) for number in range(4)] == [list(turn) for turn in ("abc", "cba", "bca", "acb")]
    for rounds in (2, 4, 10):
        turns = [in_turn("abcde", number) for number in range(rounds)]
        first = Counter((a, b) for turn in turns for a, b in combinations(turn, 2))
        assert set(first.values()) == {rounds // 2}


def test_ratios_are_taken_within_a_round():
    ratio = round_ratios([2.0, 9.0, 4.0], [1.0, 3.0, 4.0])  # 2, 3, 1
    assert ratio == {"median": 2.0, "least": 1.0, "most": 3.0}
    assert shown_ratio(ratio) == "2.00 [1.00, 3.00]"


def test_every_benchmark_has_a_command_line():
    commands = {name: command_line("scripts.benchmarks", name, what, shared) for name, what in PROGRAMS.items()}
    assert commands["update"].parse_args([]).rounds == 4
    assert commands["sandbox"].parse_args(["--cores", "0"]).rounds == 10
    assert all(command.format_help() for command in commands.values())


def test_a_benchmark_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(["updates"])
    assert ended.value.code == 2
    assert "math_verifiers" in capsys.readouterr().err
