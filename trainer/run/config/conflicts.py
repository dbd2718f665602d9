"""What two sections of a run say against each other."""

from collections.abc import Iterator
from typing import Any

from pydantic_core import InitErrorDetails

from trainer.run.config.problems import refusal
from trainer.run.config.rules import FILE_RULES, Given, rules_broken
from trainer.run.config.vllm import vllm_conflicts

BATCH_WORDS = ("prompts_per_rollout", "sequences_per_update")
_TRL_BATCH = ("generation_batch_size", "steps_per_generation", "gradient_accumulation_steps")


def conflicts(run: dict[str, Any], *, trains: bool = True) -> Iterator[InitErrorDetails]:
    """What two sections of a run's plain data say against each other; parts of a wrong type are passed over.

    Args:
        trains: the run is not read to evaluate alone: what `FILE_RULES` refuse is refused too.
    """
    settings = Given(run)
    for rule, what, instead in rules_broken(FILE_RULES, settings) if trains else ():
        place = rule.settings[0]
        yield refusal(settings.written(place), what, instead, tuple(place.split(".")))
    algorithm, trl = (section if isinstance(section := run.get(key), dict) else {} for key in ("algorithm", "trl"))
    if run.get("seed") is not None and "seed" in trl:
        what = f"is {trl['seed']!r}, while `seed:` at the top level is {run['seed']!r}."
        yield refusal(
            trl["seed"], what, "Delete one of the two; `seed: null` takes back an inherited one.", ("trl", "seed")
        )
    yield from vllm_conflicts(run.get("vllm"), trl)
    yield from _noise_that_nobody_takes(run, trl)
    given = [name for name in BATCH_WORDS if algorithm.get(name) is not None]
    if len(given) == 1:
        (missing,) = set(BATCH_WORDS) - set(given)
        what = f"is given without {missing}, and one alone does not say how a rollout is cut into updates."
        yield refusal(algorithm, what, f"Give {missing} too.", ("algorithm", given[0]))
    if given:
        for name in _TRL_BATCH:
            if name in trl:
                what = f"is {trl[name]!r}, but algorithm.{given[0]} already says how a batch is cut."
                yield refusal(trl[name], what, f"Delete {name}.", ("trl", name))


def _noise_that_nobody_takes(run: dict[str, Any], trl: dict[str, Any]) -> Iterator[InitErrorDetails]:
    speed = section if isinstance(section := run.get("speed"), dict) else {}
    if run.get("common_random_numbers") is not True:
        return
    if trl.get("use_vllm"):
        what = (
            "is true, but trl.use_vllm is true: vLLM draws tokens inside its engine, by a stream that depends on what "
            "else is in its batch, and takes no noise from outside."
        )
        instead = (
            "Delete it, or generate with transformers: delete trl.use_vllm and write `speed: {generation: compact}`."
        )
        yield refusal(True, what, instead, ("common_random_numbers",))
    elif speed.get("generation", "trl") != "compact":
        what = (
            "is true, but speed.generation is trl: transformers then draws from torch's stream, which depends on every "
            "token before."
        )
        yield refusal(True, what, "Write `speed: {generation: compact}` too.", ("common_random_numbers",))
