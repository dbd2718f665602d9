"""A server that speaks vLLM's routes, and trainers that use it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from trl import GRPOConfig

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.step.options import Engine
from tests.trainer.step.engine.file_client import use_file_client
from tests.trainer.step.engine.transformers_server import TransformersServer
from tests.trainer.training import PROMPTS, digit_reward, in_options


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
        common = {"use_cpu": True, "bf16": False, "report_to": "none", "num_generations": 4, **self.settings}
        common |= {"per_device_train_batch_size": 8, "max_completion_length": 8}
        return RLVRTrainer(
            str(self.model),
            digit_reward,
            GRPOConfig(str(folder), **{**common, **settings}),
            train_dataset=Dataset.from_list(PROMPTS),
            peft_config=peft_config,
            **{"engine": Engine(), **in_options(strategies or {})},
        )


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
