"""Try on this machine every path that needs a GPU, within a quarter of an hour, and write down what worked.

    python scripts/gpu_acceptance.py                           # gpu_acceptance.json, and its table on the terminal
    python scripts/gpu_acceptance.py --only zero2,fsdp2 --model Qwen/Qwen2.5-0.5B-Instruct
    python scripts/gpu_acceptance.py --cpu                     # what can be tried without a GPU: tries this script
    python scripts/gpu_acceptance.py --table gpu_acceptance.json        # the table of an earlier run, for a README

Each path trains the quickstart's tiny policy for a few steps, in processes of its own: bf16, fp16, LoRA, QLoRA, ZeRO-2,
FSDP2, vLLM in the same process with sleep, vLLM as a server, whether vLLM's weights agree with the trainer's, resume,
export, benchmark. What cannot run here is reported as not run, with the reason, never as passed. Runs and logs lie in
a folder beside the JSON file.

Exit status: 0 no path failed; 1 one did; 2 a path that does not exist was asked for.
"""

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status, see above."""
    from trainer.run.acceptance.table import table

    arguments = parser().parse_args(argv)
    if arguments.table is not None:
        print(table(json.loads(arguments.table.read_text())))
        return 0
    from trainer.run.acceptance.catalogue import paths

    known = {path.name: path for path in paths()}
    wanted = [*known] if arguments.only is None else arguments.only.split(",")
    if unknown := [name for name in wanted if name not in known]:
        print(f"There is no path {', '.join(unknown)}. There are: {', '.join(known)}.", file=sys.stderr)
        return 2
    found = accepted([known[name] for name in known if name in wanted], arguments)
    arguments.json.write_text(json.dumps(found, indent=2) + "\n")
    print(f"\n{table(found)}\n\n{arguments.json}")
    return int(any(path["status"] == "failed" for path in found["paths"]))


def accepted(chosen: Sequence[Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Every chosen path's outcome, with the machine, the packages and the code."""
    from trainer.run.acceptance.machine import this_machine
    from trainer.run.acceptance.paths import Place
    from trainer.run.acceptance.running import attempt

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the runs, in sessions of their own, end with us
    machine = this_machine(cpu=arguments.cpu)
    folder = arguments.json.absolute().with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    place = Place(folder, arguments.model, machine)
    print(f"{machine.device}; at most {arguments.minutes:g} minutes; logs in {folder}", flush=True)
    started, outcomes = time.monotonic(), []
    for path in chosen:
        left = 60 * arguments.minutes - (time.monotonic() - started)
        outcomes.append(attempt(path, place, left))
        said = outcomes[-1]
        print(f"{said['name']:<14} {said['status']} {said['reason']} {said['facts'] or ''}", flush=True)
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "device": machine.device,
        "revision": _revision(),
        "model": arguments.model or "configs/tiny_policy/countdown",
        "packages": machine.packages,
        "seconds": round(time.monotonic() - started, 1),
        "paths": outcomes,
    }


def _revision() -> str | None:
    result = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return result.stdout.strip() or None


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    command.add_argument("--cpu", action="store_true", help="leave GPUs alone, and try what runs without")
    command.add_argument("--only", metavar="NAME,…", help="these paths alone")
    command.add_argument("--model", help="train this one instead of the tiny policy")
    command.add_argument("--minutes", type=float, default=15, help="for all paths together; default 15")
    command.add_argument("--json", type=Path, default=Path("gpu_acceptance.json"), help="where to write")
    command.add_argument("--table", type=Path, metavar="JSON", help="print the table of an earlier run, and end")
    return command


if __name__ == "__main__":
    sys.exit(main())
