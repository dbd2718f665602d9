"""TRL's trainer with a choice of how transformers generates."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, Literal

from trl import GRPOConfig

from trainer.step.compact_generation import Draw, compact_generation, roomy_cache
from trainer.step.compatibility import PreflightError
from trainer.step.counts import CountingTrainer
from trainer.step.sharding import parameters_are_sharded

Generation = Literal["trl", "compact"]
_PLAIN = {"use_vllm": False, "use_transformers_continuous_batching": False, "cache_implementation": None}


class GeneratingTrainer(CountingTrainer):
    """`CountingTrainer` that can generate compactly, in training and in evaluation.

    Args:
        generation: ``trl`` calls transformers as TRL does; ``compact`` gives the same tokens for less: its cache has
            room to grow, and rows that have ended leave the batch (see `compact_generation`).

    Raises:
        PreflightError: another word; or compact where transformers does not decode with a plain cache on whole weights.
    """

    _compact = False

    def __init__(
        self,
        model: Any,
        reward_funcs: Any = None,
        args: GRPOConfig | None = None,
        *positional: Any,
        generation: Generation = "trl",
        **keywords: Any,
    ) -> None:
        if generation not in ("trl", "compact"):
            raise PreflightError(f"generation = {generation!r} is neither trl nor compact. Write one of them.")
        self._compact = generation == "compact"
        if self._compact and args is not None:
            _refuse(settings_against_compact(args))
        super().__init__(model, reward_funcs, args, *positional, **keywords)
        if self._compact:
            _refuse(settings_against_compact(self.args) or self._against_compact())

    def _against_compact(self) -> str | None:
        """What about the model rules compact generation out."""
        if parameters_are_sharded(self):
            return "the parameters are sharded, so that all ranks must run equally many forward passes"
        if self._is_vlm or roomy_cache(self.accelerator.unwrap_model(self.model_wrapped).config) is None:
            return "the model keeps more, or less, than the keys and values of each text token"
        return None

    def _draw(self, prompt_ids: Sequence[Sequence[int]]) -> Draw | None:
        """How tokens behind these prompts of this rank are sampled; ``None`` = from torch's stream."""
        return None

    def _generate_single_turn(self, prompt_ids: Any, *positional: Any, **keywords: Any) -> Any:
        model = self.accelerator.unwrap_model(self.model_wrapped)
        with compact_generation(model, self._draw(prompt_ids)) if self._compact else nullcontext():
            return super()._generate_single_turn(prompt_ids, *positional, **keywords)


def settings_against_compact(args: GRPOConfig) -> str | None:
    """The first of TRL's settings that rules compact generation out, with its value."""
    for name, plain in _PLAIN.items():
        if getattr(args, name) != plain:
            return f"{name} is {getattr(args, name)!r}"
    if args.generation_kwargs:
        return f"generation_kwargs is {args.generation_kwargs!r}, which may ask for another way of decoding"
    return None


def _refuse(reason: str | None) -> None:
    if reason is not None:
        raise PreflightError(
            f"generation: compact cannot be: {reason}. It is transformers' own sampling with a plain cache. "
            "Write generation: trl."
        )
