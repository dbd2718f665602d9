"""W&B at the end of a run."""

import sys
from pathlib import Path

from evenkeel.trainer.run.heartbeat import HEARTBEAT


def finish_wandb() -> None:
    """Finish W&B's run, if there is one in this process; W&B gives up after WANDB_FINISH_TIMEOUT and says how to go on.

    All that was logged is in the run's folder before it is uploaded, so that nothing is lost.
    """
    wandb = sys.modules.get("wandb")
    run = getattr(wandb, "run", None)
    if wandb is None or run is None:
        return
    HEARTBEAT.enter("Uploading to W&B")
    run.finish()
    wandb.teardown()  # another run in this process has variables of its own
    if run.offline:
        folder = Path(run.dir).parents[1]
        print(f"W&B was offline. To send the run: wandb sync {folder}/offline-run-*-{run.id}", flush=True)
