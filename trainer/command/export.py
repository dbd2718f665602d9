"""Export a trained policy from its run: merged weights as safetensors, tokenizer, sampling, and a model card.

    evenkeel export runs/quickstart --to exported/quickstart
    evenkeel export runs/quickstart --checkpoint 25 --to exported/step-25      # or: --checkpoint best
    evenkeel export runs/knights_knaves --to exported/kk --dtype bfloat16

The newest good checkpoint is taken unless another is named. LoRA adapters are merged into the weights that they were
trained on. What was written is read back and compared with the policy in the run before the folder appears; then
`hf upload USER/NAME exported/quickstart --private` sends it to the hub.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from evenkeel.trainer.command import command_line, refused_in_words
from evenkeel.trainer.run.export.policy import DTYPES


@refused_in_words
def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 exported, 2 refused."""
    arguments = parser().parse_args(argv)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from transformers.utils.logging import disable_progress_bar

    from evenkeel.trainer.run.export.exporting import export
    from evenkeel.trainer.run.export.source import find_source

    disable_progress_bar()
    source = find_source(arguments.run, arguments.checkpoint, trusts_code=arguments.trust_remote_code)
    print(f"{source.checkpoint} → {arguments.to}", flush=True)
    gap = export(source, arguments.to, dtype=arguments.dtype, base=arguments.base)
    print(f"Read back: log-probabilities of greedy answers differ from the run's policy by at most {gap:.1e}.")
    print(f"  {arguments.to / 'README.md'}", flush=True)
    return 0


def parser() -> argparse.ArgumentParser:
    command = command_line(__name__, __doc__)
    command.add_argument("run", type=Path, help="a run's directory, or one of its checkpoints")
    command.add_argument("--to", type=Path, required=True, metavar="DIRECTORY", help="a folder that does not exist yet")
    command.add_argument("--checkpoint", metavar="STEP|best", help="default: the newest good one")
    command.add_argument("--dtype", choices=DTYPES, help="of the written weights")
    command.add_argument("--base", metavar="MODEL", help="where an adapter's model lies, if it has moved")
    command.add_argument("--trust-remote-code", action="store_true", help="run the model's own code")
    return command
