"""Print a script with which a shell completes commands, options and files.

evenkeel completion bash > ~/.local/share/bash-completion/completions/evenkeel
evenkeel completion zsh > ~/.zfunc/_evenkeel           # in .zshrc: fpath+=~/.zfunc; autoload -Uz compinit; compinit
evenkeel completion fish > ~/.config/fish/completions/evenkeel.fish
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path

import shtab

from evenkeel.trainer.command import COMMANDS, command_line
from evenkeel.trainer.run.config.shipped import named_file, named_path


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0."""
    shell = parser().parse_args(argv).shell
    whole = argparse.ArgumentParser(prog="evenkeel")
    whole.add_argument("--version", action="store_true", help="print the version")
    commands = whole.add_subparsers()
    with redirect_stdout(sys.stderr):  # transformers prints where it is imported with WANDB_MODE=offline
        for name, meaning in COMMANDS.items():
            command = import_module(f"evenkeel.trainer.command.{name}").parser()
            _complete_paths(command)
            commands.add_parser(name, help=meaning, parents=[command], add_help=False)
    print(shtab.complete(whole, shell))
    return 0


def parser() -> argparse.ArgumentParser:
    command = command_line(__name__, __doc__)
    command.add_argument("shell", choices=("bash", "zsh", "fish"), help="whose script is printed")
    return command


def _complete_paths(command: argparse.ArgumentParser) -> None:
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _complete_paths(inner)
        elif action.type in (named_file, named_path, Path):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
