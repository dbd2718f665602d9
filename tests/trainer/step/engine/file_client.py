"""TRL's client of a vLLM server, whose weights travel as a file: its own way needs NCCL between two CUDA devices."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from trl.generation import vllm_client, vllm_generation

SHARED_MEMORY = Path("/dev/shm")


class FileClient(vllm_client.VLLMClient):
    """Everything but the transport of the tensors is TRL's: its routes, their order, its parsing of the answers."""

    weights_folder: Path = SHARED_MEMORY

    def init_communicator(self, device: Any = 0) -> None:
        assert self.get_server_info()["weight_transfer_config"] is not None
        self._post(f"{self.base_url}/init_weight_transfer_engine", json={"init_info": {}})

    def update_named_params(self, metadata: Any, named_params: Iterator[tuple[str, torch.Tensor]]) -> None:
        tensors = {name: tensor.detach().clone().contiguous() for name, tensor in named_params}
        assert [name for name, *_ in metadata] == [*tensors]
        path = self.weights_folder / f"weights_{id(self)}.safetensors"
        save_file(tensors, path)
        self._start_weight_update()
        self._post(f"{self.base_url}/update_weights", json={"update_info": {"path": str(path)}})
        self._finish_weight_update()
        path.unlink()


def use_file_client(patch: pytest.MonkeyPatch, weights_folder: Path) -> None:
    """Let TRL's server mode run where there is no CUDA device; the package vllm need not be installed for it."""
    for module in (vllm_client, vllm_generation):
        patch.setattr(module, "is_vllm_available", lambda *_, **__: True)
    patch.setattr(FileClient, "weights_folder", weights_folder)
    patch.setattr(vllm_generation, "VLLMClient", FileClient)
