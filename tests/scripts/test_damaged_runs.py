"""Whatever other hands have done to a file of a run: every reader says it in words.

A case is a reader, a file and a damage. It holds where the reader ends with a documented status, and names the file
where it refuses.
"""

import contextlib
import io
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import pytest

from evenkeel.trainer.run.record.checkpoints import files_of, fingerprints, write_checkpoint_manifest
from tests.scripts.test_train import write_run

DOCUMENTED = (0, 1, 2)
STEPS = 4
CHECKPOINT = f"checkpoint-{STEPS}"
IN_RUN = ("config.yaml", "manifest.json", "metrics.jsonl", "summary.json", "owner.lock")
EVALUATION = ("evaluations/test/step-000004.json", "evaluations/test/step-000004.parquet")
ROLLOUTS = ("rollouts/batch-000001-rank-0.parquet",)
_SAVED = "manifest.json trainer_state.json optimizer.pt scheduler.pt rng_state.pth model.safetensors config.json"
_SAVED += " evenkeel.pt training_args.bin tokenizer.json tokenizer_config.json generation_config.json"
SAVED = tuple(f"{CHECKPOINT}/{name}" for name in _SAVED.split())
RESUMED = "train {folder}/run.yaml output_dir={run} logging.rollouts=all --resume auto trl.max_steps="
READERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "resume": (f"{RESUMED}{STEPS + 1}", (*IN_RUN, *ROLLOUTS, *SAVED)),
    "finished": (f"{RESUMED}{STEPS}", (*IN_RUN, *SAVED[:2])),
    "rerun": ("train --rerun {run}", ("config.yaml", "manifest.json")),
    "export": ("export {run} --to {folder}/exported", ("config.yaml", "manifest.json", *EVALUATION[:1], *SAVED)),
    "rollouts": ("rollouts {run} --to {folder}/page.html", ("config.yaml", "manifest.json", *ROLLOUTS)),
    "report": ("report {run} --output {folder}/report.html", (*IN_RUN, *EVALUATION)),
}
"""A command, and the files that it reads."""


def run_command(words: str, **places: Path) -> int:
    """The exit status of `evenkeel WORDS` in this process."""
    name, *arguments = words.format(**places).split()
    status: int = import_module(f"evenkeel.trainer.command.{name}").main(arguments)
    return status


Damage = Callable[[Path], object]


def damages(file: Path) -> dict[str, Damage]:
    """What other hands can do to ``file``, by name."""
    whole = file.read_bytes()
    contents = {"empty": b"", "half": whole[: len(whole) // 2], "another object": b'{"step": "two"}\n'}
    found: dict[str, Damage] = {name: partial(Path.write_bytes, data=text) for name, text in contents.items()}
    return {**found, "missing": Path.unlink}


def failure(source: Path, reader: str, file: str, damage: Damage) -> str:
    """What is wrong with how ``reader`` ended; empty where nothing is."""
    with tempfile.TemporaryDirectory(dir=source.parent) as place, patch.dict(os.environ):
        folder = Path(place)
        again = shutil.ignore_patterns("run-[0-9]*")  # what a rerun of a damaged config.yaml has made beside the source
        shutil.copytree(source, folder, dirs_exist_ok=True, ignore=again)
        run = folder / "run"
        (run / "config.yaml").write_text((run / "config.yaml").read_text().replace(str(source), str(folder)))
        damage(run / file)
        if file.startswith(CHECKPOINT) and Path(file).name != "manifest.json":  # else its checksum says it
            checkpoint = run / CHECKPOINT
            write_checkpoint_manifest(checkpoint, fingerprints(checkpoint, files_of(checkpoint)), world_size=1)
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                status = run_command(READERS[reader][0], folder=folder, run=run)
        except (Exception, SystemExit):  # noqa: BLE001 whatever it is, it is the finding
            return traceback.format_exc()[-900:]
        if status not in DOCUMENTED or "Traceback" in said.getvalue():
            return f"status {status}: {said.getvalue()[-300:]}"
        if status and Path(file).name not in said.getvalue() and Path(file).parent.name not in said.getvalue():
            return f"status {status} without the file's name: {said.getvalue()[-300:]}"
        return ""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """A finished run, ``run``, of ``run.yaml`` in the same folder."""
    folder = tmp_path_factory.mktemp("recorded") / "source"
    folder.mkdir()
    write_run(folder, tiny_model)
    with patch.dict(os.environ):
        assert run_command("train {folder}/run.yaml logging.rollouts=all", folder=folder) == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_no_damage_ends_in_a_traceback(source: Path, reader: str):
    run = source / "run"
    tried = {
        (file, name): failure(source, reader, file, damage)
        for file in READERS[reader][1]
        for name, damage in damages(run / file).items()
    }
    assert {case: found for case, found in tried.items() if found} == {}
