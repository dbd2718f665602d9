"""How far vLLM is trusted, and which of TRL's settings its two modes read."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import InitErrorDetails

from trainer.run.config.problems import refusal
from trainer.run.config.section import Section
from trainer.step.options import Engine

_COLOCATE_ONLY = (
    "gpu_memory_utilization",
    "max_model_length",
    "tensor_parallel_size",
    "enable_sleep_mode",
    "model_impl",
)
_SERVER_ONLY = ("server_base_url", "server_host", "server_port", "server_timeout", "group_port")
_LARGEST_SHARE = 0.9


class _OfARun(Engine):
    """Where a run differs from the drop-in, which checks nothing that TRL does not."""

    check_agreement_every = 1


class VLLMSection(Section, _OfARun):  # type: ignore[misc]  # frozen
    """The section ``vllm``: fields, types and meanings are those of `Engine`."""

    @property
    def options(self) -> Engine:
        """What `RLVRTrainer` takes."""
        return Engine(**self.model_dump())


def vllm_conflicts(section: Any, trl: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    """What the section ``vllm`` and ``trl``'s own words on vLLM say against each other; plain data."""
    if section is not None and not trl.get("use_vllm"):
        what = "is given, but trl.use_vllm is not true: transformers generates, and there is no engine to check."
        yield refusal(
            section,
            what,
            "Write `trl: {use_vllm: true}` too, or delete the section; `vllm: null` takes back an inherited one.",
            ("vllm",),
        )
    if not trl.get("use_vllm"):
        return
    mode = trl.get("vllm_mode", "colocate")
    for name in _SERVER_ONLY if mode == "colocate" else _COLOCATE_ONLY if mode == "server" else ():
        key = f"vllm_{name}"
        if trl.get(key) is not None:
            other = (
                "a colocated engine has no server" if mode == "colocate" else "the server has its own, from its start"
            )
            instead = "Delete it" if mode == "colocate" else "Delete it, and give it to `vllm serve`"
            yield refusal(
                trl[key],
                f"is {trl[key]!r}, but vllm_mode is {mode}: {other}.",
                f"{instead}; `{key}: null` takes back an inherited one.",
                ("trl", key),
            )
    share = trl.get("vllm_gpu_memory_utilization")
    if mode == "colocate" and isinstance(share, float) and share > _LARGEST_SHARE:
        what = (
            f"is {share:g}: vLLM would take that share of each GPU, and the trainer's weights, gradients and optimizer "
            "lie on the same one."
        )
        instead = f"Write {_LARGEST_SHARE} at most; TRL's default is 0.3, the recipes' 0.4."
        yield refusal(share, what, instead, ("trl", "vllm_gpu_memory_utilization"))
    truncates = str(trl.get("vllm_importance_sampling_mode", "")).endswith("truncate")
    low, high = (
        trl.get(f"vllm_importance_sampling_clip_{side}", usual) for side, usual in (("min", None), ("max", 3.0))
    )
    if truncates and low is None and high is None and trl.get("vllm_importance_sampling_correction", True):
        key = "vllm_importance_sampling_clip_max"
        what = (
            "is null and there is no clip_min: a mode that truncates has nothing to truncate to, and TRL's clamp fails."
        )
        yield refusal(None, what, "Give one of the two, such as 3.0.", ("trl", key))
