"""A plug-in of vLLM for tests on a CPU: weights arrive as a file, for vLLM's own transfers need an accelerator.

Loaded by every process of vLLM through the entry point that `serving.plugin_folder` writes.
"""

from dataclasses import dataclass
from typing import Any

from safetensors.torch import load_file
from vllm.distributed.weight_transfer.base import WeightTransferEngine, WeightTransferInitInfo, WeightTransferUpdateInfo
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload


@dataclass
class Init(WeightTransferInitInfo):
    """Nothing has to be agreed on."""


@dataclass
class Update(WeightTransferUpdateInfo):
    """Where the tensors lie."""

    path: str


class FileEngine(WeightTransferEngine):
    init_info_cls, update_info_cls = Init, Update

    def init_transfer_engine(self, init_info: Init) -> None:
        pass

    def start_weight_update(self) -> None:
        initialize_layerwise_reload(self.model)

    def update_weights(self, update_info: dict[str, Any]) -> None:
        self.receive_weights(self.parse_update_info(update_info))  # vLLM's synchronises an accelerator behind it

    def receive_weights(self, update_info: Update) -> None:
        self.model.load_weights(iter(load_file(update_info.path).items()))

    def finish_weight_update(self) -> None:
        finalize_layerwise_reload(self.model, self.model_config)

    def shutdown(self) -> None:
        pass


def register() -> None:
    if "file" not in WeightTransferEngineFactory._registry:
        WeightTransferEngineFactory.register_engine("file", FileEngine)
