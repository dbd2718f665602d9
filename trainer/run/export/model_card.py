"""The card of an exported model: what it is made of and what was measured, from the run's own files alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenkeel.trainer.run.config.section import part_name
from evenkeel.trainer.run.export.source import Source
from evenkeel.trainer.run.record.run_record import RunRecord

TEMPLATE = Path(__file__).with_name("model_card.md.jinja")


def model_card(source: Source, record: Mapping[str, Any], gap: float, dtype: str) -> str:
    """``README.md`` of a model: metadata that the Hub reads, then text. It states only what the run's files say."""
    from huggingface_hub import ModelCard, ModelCardData

    config = source.run.config
    model = config.model.name_or_path
    run = RunRecord(source.run.path)
    sources = config.data.train_sources.values()
    data = ModelCardData(
        base_model=model if _is_hub_id(model) else None,
        datasets=sorted({each.path for each in sources if each.path is not None and _is_hub_id(each.path)}) or None,
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=["rlvr", "reinforcement-learning", "trl", "evenkeel", part_name(config.algorithm.advantage)],
    )
    card = ModelCard.from_template(
        data,
        template_path=str(TEMPLATE),
        name=config.name,
        folder=None if _is_hub_id(model) else Path(model).name,
        step=source.step,
        config=config,
        system_prompt=repr(config.data.system_prompt),
        results=run.results(source.step),
        record=record,
        dtype=dtype,
        gap=f"{gap:.1e}",
    )
    return f"{card}\n"


def _is_hub_id(name: str) -> bool:
    return not Path(name).is_absolute() and not Path(name).exists() and name.count("/") <= 1
