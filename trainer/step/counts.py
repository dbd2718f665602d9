"""Numbers that a resumed run goes on with: how many steps were left out, how often weights were synced, and when."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from trl import GRPOTrainer

FILE = "counts.json"


class CountingTrainer(GRPOTrainer):
    """`GRPOTrainer` whose ``counts``, the same on all ranks, are in every checkpoint and restored by a resume.

    One that holds none, of a run that counted nothing, restores none.

    Attributes:
        counts: name → number; what is absent is 0.
    """

    def __init__(self, *positional: Any, **keywords: Any) -> None:
        self.counts: Counter[str] = Counter()
        super().__init__(*positional, **keywords)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        if self.counts and self.accelerator.is_main_process:
            folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
            (folder / FILE).write_text(json.dumps(self.counts) + "\n")

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None and (file := Path(checkpoint) / FILE).exists():
            self.counts = Counter(json.loads(file.read_text()))
