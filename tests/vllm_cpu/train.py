"""Training with a real vLLM on a CPU, in a process of its own: `python -m tests.vllm_cpu.train '{"model": …}'`.

Prints one line ``RESULT {…}`` on the main process. What is replaced here is what vLLM cannot do without an accelerator:

* the server's weights travel as a file (`FileClient`);
* a colocated engine does not pack its linear weights, for a packed one cannot be loaded into again.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any


def unpacked_linear_weights() -> None:
    """A colocated engine keeps its linear layers as torch's, into which a sync can write."""
    import torch
    from vllm.model_executor.layers import utils

    def plain(layer: Any, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear

    utils.dispatch_cpu_unquantized_gemm = plain


def colocated_in(dtype: str) -> None:
    """TRL gives no dtype to the engine that it colocates; vLLM then takes bfloat16 for a model in float32."""
    from functools import partial

    from trl.generation import vllm_generation

    vllm_generation.LLM = partial(vllm_generation.LLM, dtype=dtype, enforce_eager=True)


def main(wanted: dict[str, Any]) -> None:
    import pytest
    from peft import LoraConfig

    from evenkeel.trainer.step.guards import FaultError
    from tests.trainer.step.engine.file_client import use_file_client
    from tests.trainer.training import moved, ours

    if wanted["mode"] == "colocate":
        unpacked_linear_weights()
        colocated_in(wanted.get("engine_dtype", "float32"))
    else:
        use_file_client(pytest.MonkeyPatch(), Path(wanted["output"]))
    if "command" in wanted:
        from evenkeel.trainer.command.train import main as train

        sys.exit(train(wanted["command"]))
    model = Path(wanted["model"])
    lora = LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False) if wanted.get("lora") else None
    arguments = {"use_vllm": True, "vllm_mode": wanted["mode"], **wanted["settings"]}
    try:
        trainer = ours(
            model,
            Path(wanted["output"]),
            strategies={"agreement_bound": None, **wanted.get("strategies", {})},
            peft_config=lora,
            **arguments,
        )
    except FaultError as stopped:
        result: dict[str, Any] = {"stopped": str(stopped)}
    else:
        result = {"history": trainer.state.log_history, "moved": moved(trainer, model) if lora is None else None}
    if os.environ.get("RANK", "0") == "0":
        sys.stdout.write(f"RESULT {json.dumps(result)}\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
