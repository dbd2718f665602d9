"""The card of an exported model: what it is made of and what was measured, from the run's own files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer.run.config import RunConfig
from trainer.run.config import Source as DataSource
from trainer.run.config.section import part_name
from trainer.run.export.agreement import Agreement
from trainer.run.export.results import evaluated_steps, how_measured, results
from trainer.run.export.source import Source
from trainer.run.record import RunRecord

_SETTINGS = (
    "learning_rate",
    "lr_scheduler_type",
    "loss_type",
    "beta",
    "epsilon",
    "epsilon_high",
    "num_generations",
    "max_completion_length",
    "temperature",
    "top_p",
)


def model_card(source: Source, record: Mapping[str, Any], found: Agreement, dtype: str, name: str) -> str:
    """``README.md`` of a model: metadata that the Hub reads, then text. Only what the run's files say stands in it."""
    sections = [
        f"# {name}",
        _opening(source),
        _usage(source.config),
        _results(source),
        _training(source.config, record),
        _provenance(record),
        "## Checked\n\nRead back with plain transformers and compared with the policy in the run, in "
        f"{dtype}: {found}.",
        _limits(source.config),
    ]
    return f"---\n{_metadata(source.config)}\n---\n\n" + "\n\n".join(sections) + "\n"


def _metadata(config: RunConfig) -> str:
    from huggingface_hub import ModelCardData

    sources = [*config.data.train_sources.values()]
    hub_data = sorted({each.path for each in sources if each.path is not None and _is_hub_id(each.path)})
    tags = ["rlvr", "reinforcement-learning", "trl", "evenkeel", part_name(config.algorithm.advantage)]
    data = ModelCardData(
        base_model=config.model.name_or_path if _is_hub_id(config.model.name_or_path) else None,
        datasets=hub_data or None,
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=tags,
    )
    return str(data.to_yaml()).strip()


def _is_hub_id(name: str) -> bool:
    return not Path(name).is_absolute() and not Path(name).exists() and name.count("/") <= 1


def _base(config: RunConfig) -> str:
    name = config.model.name_or_path
    if not _is_hub_id(name):
        return f"`{Path(name).name}` (a local folder)"
    revision = f" at `{config.model.revision}`" if config.model.revision else ""
    return f"[{name}](https://huggingface.co/{name}){revision}"


def _opening(source: Source) -> str:
    config = source.config
    how = "full training"
    if config.model.lora is not None:
        how = f"a LoRA adapter of rank {config.model.lora.get('r', 8)}, merged into the weights"
        if config.model.quantization is not None:
            how = f"{how} that it was trained on, which are those of 4 bits, dequantized"
    return (
        f"{_base(config)} after {source.step} optimizer steps of reinforcement learning with verifiable rewards "
        f"({how}), trained with Evenkeel on Hugging Face TRL."
    )


def _usage(config: RunConfig) -> str:
    system = config.data.system_prompt
    messages = [] if system is None else [f'    {{"role": "system", "content": {system!r}}},']
    lines = [
        "## Use it",
        "",
        "```python",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        'tokenizer = AutoTokenizer.from_pretrained("THIS_MODEL")',
        'model = AutoModelForCausalLM.from_pretrained("THIS_MODEL", dtype="auto")',
        "messages = [",
        *messages,
        '    {"role": "user", "content": "…"},',
        "]",
        "prompt = tokenizer.apply_chat_template(",
        '    messages, add_generation_prompt=True, return_dict=True, return_tensors="pt"',
        ")",
        'answer = model.generate(**prompt)[0, prompt["input_ids"].shape[1] :]',
        "print(tokenizer.decode(answer, skip_special_tokens=True))",
        "```",
        "",
        "`generation_config.json` samples as training did.",
    ]
    if config.model.assistant_prefix:
        lines[-1] += f" The chat template ends every prompt in `{config.model.assistant_prefix.strip()}`."
    return "\n".join(lines)


def _results(source: Source) -> str:
    record = RunRecord(source.run, instead="Bring it back, or delete it: the card then quotes no numbers of it.")
    rows = results(record, source.step)
    if not rows:
        steps = ", ".join(str(step) for step in evaluated_steps(record))
        others = f" Evaluated were the steps {steps}." if steps else ""
        return f"## Results\n\nThe policy at step {source.step} was not evaluated on held-out rows.{others}"
    lines = [
        f"| {row.dataset} | {row.metric} | {row.items} | {row.before or 'not measured'} | {row.after} |" for row in rows
    ]
    return "\n".join(
        [
            "## Results",
            "",
            f"Held-out rows of the training task. {how_measured(record, source.step)} One run, seed "
            f"{source.config.run_seed}: the interval is over rows, not over runs.",
            "",
            f"| held-out set | metric | rows | before training | step {source.step} |",
            "|---|---|---|---|---|",
            *lines,
        ]
    )


def _training(config: RunConfig, record: Mapping[str, Any]) -> str:
    algorithm = {key: value for key, value in config.algorithm.strategies.items() if value is not None}
    rewards = ", ".join(f"{reward.label} × {reward.weight:g}" for reward in config.rewards)
    rows = [
        ("training rows", _data(config.data.train_sources)),
        ("held-out rows", _data(config.data.test_sources) or "none"),
        ("rewards", rewards),
        *((key.replace("_", " "), f"`{value}`") for key, value in algorithm.items()),
        ("prompts × completions a rollout batch", _rollout(config)),
        *((f"`{key}`", f"`{config.trl[key]}`") for key in _SETTINGS if key in config.trl),
        *([("LoRA", f"`{config.model.lora}`")] if config.model.lora is not None else []),
        ("seed, processes", f"{config.run_seed}, {record['world_size']}"),
    ]
    return "\n".join(["## Training", "", "| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows)]) + (
        "\n\nAll settings: `training_config.yaml`, which starts the same run again."
    )


def _rollout(config: RunConfig) -> str:
    prompts = config.algorithm.prompts_per_rollout
    return f"{prompts or 'TRL’s default'} × {config.trl.get('num_generations', 8)}"


def _data(sources: Mapping[str, DataSource]) -> str:
    return "; ".join(f"`{_described(source)}`" for source in sources.values())


def _described(source: DataSource) -> str:
    if source.path is None:
        return f"generator {source.generator}"
    name = source.path if _is_hub_id(source.path) else Path(source.path).name
    return " ".join(filter(None, (name, source.config_name, source.split)))


def _provenance(record: Mapping[str, Any]) -> str:
    machine = record.get("machine", {})
    devices = ", ".join(machine.get("gpus") or []) or machine.get("cpu", "not recorded")
    changed = ", with uncommitted changes" if record["code_was_changed"] else ""
    packages = ", ".join(f"{name} {version}" for name, version in record["packages"].items())
    rows = [
        ("code", f"`{record.get('git_revision') or 'not recorded'}`{changed}"),
        ("base weights", f"`{record.get('model_fingerprint') or 'not recorded'}`"),
        *((f"data, {part}", f"SHA-256 `{value}`") for part, value in record["data_fingerprints"].items()),
        ("device", f"{devices}"),
        ("Python and packages", f"{record.get('python', 'not recorded')}, {packages}"),
    ]
    return "\n".join(["## Made with", "", "| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows)]) + (
        "\n\nThe record of the run, with the SHA-256 of the checkpoint's files: `training_manifest.json`."
    )


def _limits(config: RunConfig) -> str:
    judges = ", ".join(reward.label for reward in config.rewards)
    return (
        f"## Limits and licence\n\nIt was trained to be judged right by {judges}, and nothing else was measured: not "
        "other tasks, not safety. The licence and the limits of the base model and the training rows hold for it too."
    )
