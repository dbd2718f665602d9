"""How a run ends before its last step, and what it does when something hangs."""

from typing import Annotated

from pydantic import Field

from trainer.run.config.section import Section


class StoppingSection(Section):
    """When a run stops by itself, and what is said before.

    ``grace_seconds``: how long after SIGTERM the rollout batch in hand may take until the run ends without a new
    checkpoint; ``None`` waits for it. ``skip_faults``: how many optimizer steps whose loss or gradient is no finite
    number are left out; the next one stops the run. ``stall_minutes``: without progress for so long the stacks of all
    ranks and verifier processes are written, ``None`` = never; with ``stall_aborts`` the run then ends.
    ``idle_batches``: after so many rollout batches in a row that trained nothing the run ends, ``None`` = never; those
    whose answers are all right do not count.
    ``verifier_patience_seconds``: a verifier of the user's that judges one batch for longer is named with its rank and
    row; its own ``timeout_s`` is what ends it.
    """

    grace_seconds: Annotated[float, Field(gt=0)] | None = None
    skip_faults: Annotated[int, Field(ge=0)] = 0
    stall_minutes: Annotated[float, Field(gt=0)] | None = 30.0
    stall_aborts: bool = False
    idle_batches: Annotated[int, Field(ge=1)] | None = 20
    verifier_patience_seconds: Annotated[float, Field(gt=0)] = 60.0
