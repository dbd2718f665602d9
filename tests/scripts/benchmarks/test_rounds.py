"""Who goes first changes from round to round, and every benchmark can be asked for."""

from scripts.benchmarks.__main__ import PROGRAMS, shared
from scripts.one_of import command_line


def test_every_benchmark_has_a_command_line():
    commands = {name: command_line("scripts.benchmarks", name, what, shared) for name, what in PROGRAMS.items()}
    assert commands["update"].parse_args([]).rounds == 4
    assert commands["sandbox"].parse_args(["--cores", "0"]).rounds == 10
    assert all(command.format_help() for command in commands.values())
