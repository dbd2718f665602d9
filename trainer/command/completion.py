"""Print a script with which a shell completes commands, options, and the names of shipped run files.

    evenkeel completion bash > ~/.local/share/bash-completion/completions/evenkeel
    evenkeel completion zsh > ~/.zfunc/_evenkeel           # in .zshrc: fpath+=~/.zfunc; autoload -Uz compinit; compinit
    evenkeel completion fish > ~/.config/fish/completions/evenkeel.fish

The script holds what this version knows: write it again after an update.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

import shtab

from evenkeel.trainer.command import COMMANDS, command_line
from evenkeel.trainer.run.config.shipped import named_file, named_path, shipped_files


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0."""
    shell = parser().parse_args(argv).shell
    with redirect_stdout(sys.stderr):  # transformers prints where it is imported with WANDB_MODE=offline
        whole = whole_command()
    print(shtab.complete(whole, shell))
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = command_line(__name__, __doc__)
    command.add_argument("shell", choices=("bash", "zsh", "fish"), help="whose script is printed")
    return command


def whole_command() -> argparse.ArgumentParser:
    """`evenkeel` with all its commands as one parser, each argument with what a shell completes it by."""
    whole = argparse.ArgumentParser(prog="evenkeel")
    whole.add_argument("--version", action="store_true", help="print the version")
    commands = whole.add_subparsers()
    for name, meaning in COMMANDS.items():
        command = import_module(f"evenkeel.trainer.command.{name}").parser()
        _complete_paths(command)
        commands.add_parser(name, help=meaning, parents=[command], add_help=False)
    return whole


def _complete_paths(command: argparse.ArgumentParser) -> None:
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _complete_paths(inner)
        elif action.type in (named_file, named_path):
            action.complete = _run_files()  # type: ignore[attr-defined]
        elif action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]


def _run_files() -> dict[str, Any]:
    """YAML files, and the short names of the shipped ones."""
    files: dict[str, Any] = shtab.glob("*.yaml")
    names = " ".join(shipped_files())
    bash = f'_evenkeel_run_files() {{\n  compgen -W "{names}" -- "$1"\n  {files["bash"]} "$1"\n}}'
    zsh = f"_evenkeel_run_files() {{ compadd -- {names}; {files['zsh']} }}"
    return {
        "bash": "_evenkeel_run_files",
        "zsh": "_evenkeel_run_files",
        "fish": f"(string split ' ' '{names}') {files['fish']}",
        "preamble": {**files["preamble"], "bash": f"{files['preamble']['bash']}\n{bash}", "zsh": zsh},
    }
