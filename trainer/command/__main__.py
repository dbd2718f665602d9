"""One command for all that the project does.

    evenkeel train quickstart                    # a shipped run file by its short name, or a file of yours
    evenkeel launch --cpu --num_processes 2 quickstart num_processes=2
    evenkeel configs copy quickstart my_run.yaml

`evenkeel COMMAND --help` says what a command takes, with examples.
"""

import atexit
import gc
import os
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from evenkeel.trainer.command import COMMANDS, TRANSLATED
from evenkeel.trainer.command.terminal import fit_terminal


def main(argv: Sequence[str] | None = None) -> int:
    """The command's exit status; 2 where there is no such command."""
    fit_terminal()
    try:
        try:
            return _answered(list(sys.argv[1:] if argv is None else argv))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        try:
            print(flush=True)
        except BrokenPipeError:  # nobody reads on, as in `evenkeel configs list | head -3`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141  # as the shell says of a program that SIGPIPE ended
        raise


def _answered(given: list[str]) -> int:
    if not given or given[0] in ("-h", "--help"):
        width = max(map(len, COMMANDS)) + 2
        listed = "\n".join(f"  {name:<{width}}{what}" for name, what in COMMANDS.items())
        print(f"{(__doc__ or '').strip()}\n\ncommands:\n{listed}")
        return 0 if given else 2
    if given[0] == "--version":
        from evenkeel import __version__

        print(__version__)
        return 0
    name, *rest = given
    from evenkeel.errors import Refusal, suggest

    if name not in COMMANDS:
        print(f"evenkeel: there is no command {name!r}. {suggest(name, COMMANDS)}", file=sys.stderr)
        return 2
    atexit.register(gc.freeze)  # no search for garbage in all that was imported, which takes a second
    sys.argv[0] = "evenkeel"  # a run records its command, without the place of the program
    # with a user's own parts: last, so that they hide nothing installed
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    try:
        command = import_module(f"evenkeel.trainer.command.{name}")
        if name in TRANSLATED and not {"-h", "--help"} & {*rest}:
            from evenkeel.trainer.command.translation import translated

            typed, rest = rest, translated(name, rest, command.parser)
            if rest != typed and os.environ.get("RANK", "0") == "0":
                print(shlex.join(["evenkeel", name, *rest]), file=sys.stderr)
    except Refusal as refusal:  # this TRL, or these words
        print(refusal, file=sys.stderr)
        return 2
    status: int = command.main(rest)
    return status


if __name__ == "__main__":
    sys.exit(main())
