"""A server that speaks vLLM's routes, and trainers that use it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.step.options import Engine
from tests.trainer.step.engine.file_client import use_file_client
from tests.trainer.step.engine.transformers_server import TransformersServer
from tests.trainer.training import in_options, made


@dataclass
class Served:
    """A server, and what a trainer needs to use it."""

    engine: TransformersServer
    model: Path
    settings: dict[str, Any]

    def trainer(
        self, folder: Path, strategies: dict[str, Any] | None = None, peft_config: Any = None, **settings: Any
    ) -> Any:
        """Not yet trained, its engine checked at every sync."""
        given = {"engine": Engine(), "peft_config": peft_config, **in_options(strategies or {})}
        return made(RLVRTrainer, self.model, folder, strategies=given, **self.settings, **settings)


@pytest.fixture(scope="module")
def served(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    engine = TransformersServer(tiny_model)
    with pytest.MonkeyPatch.context() as patch, engine.listening() as url:
        use_file_client(patch, tmp_path_factory.mktemp("weights"))
        settings = {"use_vllm": True, "vllm_mode": "server", "vllm_server_base_url": url}
        yield Served(engine, tiny_model, settings)


@pytest.fixture
def engine(served: Served) -> TransformersServer:
    """The server as new."""
    served.engine.start()
    served.engine.requests.clear()
    return served.engine
