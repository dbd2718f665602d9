"""What a rollout batch says between processes: weight syncs and collectives, each with the code that asks for it.

Two processes train on a CPU over gloo, with the engine, the verifier and the settings of the benchmark `step`: one
optimizer step and one log line a rollout batch. Counted are torch's own collective operations, those of the second
rollout batch on the first process; object collectives are several of them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

from torch.utils._python_dispatch import TorchDispatchMode
from transformers import TrainerCallback
from trl.generation.vllm_generation import VLLMGeneration

from evenkeel.errors import Refusal
from scripts.benchmarks.step import SIZES, TRAINERS, Engine, Verifier, trainer_of, use_client
from scripts.benchmarks.update import Size

COMPARED = ["stock", "ours, TRL's cut", "a run file's"]
_ROOT = Path(__file__).parents[2]


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What this benchmark alone is asked."""


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """The table."""
    found = counted(SIZES["1m"])
    places = dict.fromkeys(key for counts in found.values() for key in counts)
    print(f"| place | operation | {' | '.join(found)} |\n|---|---|{'---|' * len(found)}")
    for place in sorted(places, key=lambda each: ("/" in each, each)):
        numbers = " | ".join(str(counts.get(place, "–")) for counts in found.values())
        where, _, operation = place.partition(" ")
        print(f"| `{where}` | {operation.replace('_', ' ')} | {numbers} |")
    print(f"| all | | {' | '.join(str(sum(counts.values())) for counts in found.values())} |")
    return found


def counted(size: Size) -> dict[str, dict[str, int]]:
    """Trainer → ``<file>:<function> <operation>`` → how often in a rollout batch.

    Raises:
        Refusal: the processes failed; with the end of what they printed.
    """
    found = {}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(_ROOT), "ACCELERATE_TORCH_DEVICE": "cpu"}
    with tempfile.TemporaryDirectory() as folder, Engine(size).listening() as address:
        for number, name in enumerate(COMPARED):
            asked = json.dumps([name, str(Path(folder) / str(number)), vars(size), address])
            command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
            ended = subprocess.run(
                [*command, "-m", "scripts.benchmarks.collectives", asked],
                env=environment,
                capture_output=True,
                text=True,
            )
            if ended.returncode != 0:
                raise Refusal(f"{name} on two processes ended with status {ended.returncode}:\n{ended.stderr[-3000:]}")
            found[name] = json.loads((Path(folder) / str(number) / "counts.json").read_text())
    return found


class Counted(TorchDispatchMode):
    """Counts the collectives inside, by place and operation."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        if function.namespace == "c10d":
            self.counts[f"{place()} {function.overloadpacket.__name__.strip('_')}"] += 1
        return function(*arguments, **(keywords or {}))


def place() -> str:
    """The code that asks: ``file:function`` of ours, or ``package/file:function`` of TRL or transformers."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        path = Path(frame.f_code.co_filename)
        function = frame.f_code.co_qualname.partition(".<locals>")[0].rpartition(".")[2]
        if path.is_relative_to(_ROOT / "trainer") and path.name != "ranks.py" and function != "_sync_weights":
            return f"{path.name}:{function}"
        package, _, rest = str(path).rpartition("/site-packages/")[2].partition("/")
        if package in ("trl", "transformers"):
            return f"{package}/{Path(rest).name}:{function}"
    return "?"


class SecondBatch(TrainerCallback):
    """Keeps what was counted between the ends of the first and the second optimizer step."""

    def __init__(self, counts: Counter[str]) -> None:
        self.counts, self.kept = counts, dict[str, int]()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start with the first step's end."""
        if state.global_step == 2:
            self.kept = dict(self.counts)
        self.counts.clear()


def _train(name: str, folder: str, size: Size, address: str) -> None:
    """Train on this process; what was counted goes to ``counts.json``."""
    with use_client(), Counted() as mode, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sync_weights = VLLMGeneration.sync_weights

        def counted_sync(engine: VLLMGeneration) -> None:
            mode.counts[f"{place()} weight_sync"] += 1
            sync_weights(engine)

        with patch.object(VLLMGeneration, "sync_weights", counted_sync):
            trainer = trainer_of(Path(folder), "run", size, Verifier(), address, *TRAINERS[name])
            trainer.args.max_steps = 3
            second = SecondBatch(mode.counts)
            trainer.add_callback(second)
            trainer.train()
    if trainer.accelerator.is_main_process:
        (Path(folder) / "counts.json").write_text(json.dumps(second.kept))


if __name__ == "__main__":
    _name, _folder, _size, _address = json.loads(sys.argv[1])
    _train(_name, _folder, Size(**_size), _address)
