"""How a rollout batch is cut into the micro-batches of its optimizer steps: as TRL does, groups whole, or planned.

Planned micro-batches give the same accumulated gradient from fewer tokens: rows of alike length go into one
micro-batch, each micro-batch is as wide as its own longest prompt and completion, and rows whose gradient is exactly
zero are left out. What a loss divides by is put back to what TRL's cut would have divided by.

The number of forwards and backwards stays, on every rank the same; a micro-batch that has nothing to train runs on a
single row of padding.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig
from trl.trainer.utils import split_pixel_values_by_grid, split_tensor_dict, unsplit_pixel_values_by_grid

from evenkeel.trainer.algorithms.strategies import Strategies
from evenkeel.trainer.step.choices import divides_over_ranks, drops
from evenkeel.trainer.step.packing import (
    Packing,
    Sharing,
    attention_length,
    packed_tokens,
    packing,
    pays,
    planned_cuts,
    prompt_numbers,
    with_shared_prompts,
    work,
)
from evenkeel.trainer.step.rollout import kept_tokens, loss_mask
from evenkeel.trainer.step.setup import Batch, Position, Setup, keep_freed_memory, random_streams_kept

Compare = Callable[[Sequence[Batch], Sequence[Batch]], tuple[Tensor, Tensor, float]]
"""The gradients of two cuts, see `both_gradients`."""
MISMATCH, COMPARED = "planned_microbatches_mismatch", "planned_microbatches_compared"
"""In the run's counts: whether planning was given up, and how many optimizer steps have been compared."""
ROW_MEAN = frozenset({"grpo", "sapo", "luspo", "dr_grpo"})
"""Loss types that divide by the number of rows in the micro-batch."""
_OF_PADDING = {
    "advantages": 0.0,
    "old_per_token_logps": 0.0,  # π ≤ 1, so that the ratio is finite
    "ref_per_token_logps": -1e4,  # so that π_ref / π is 0
    "sampling_per_token_logps": 0.0,
    "importance_sampling_ratio": 1.0,
    "keep": False,
    "gradient_due": False,
    "plain_logps": torch.nan,
    "rollout_row": -1,  # none
}
"""What a row of padding holds, so that its loss is a finite number times a mask of 0."""
_NARROWEST = 2  # TRL takes a tensor of one column for one number a row


class Microbatches:
    """The micro-batch of each forward pass.

    Some steps, `comparisons_due`, first compute the gradient with both cuts. Where they differ by more than rounding,
    this and all later steps use TRL's cut, also after a resume, with a warning.

    Attributes:
        planner: the one in use; ``None`` = micro-batches are TRL's.
        counts: of the run; how many steps were compared, and whether planning was given up.
        tolerance: the largest difference of two gradients, as a share of their size, that rounding explains. Measured:
            2e-6 in float32, 1.9 % in bfloat16 (144 optimizer steps of the countdown policy).
    """

    def __init__(self, setup: Setup, counts: Counter[str], config: PretrainedConfig) -> None:
        self.args, self.strategies = setup.args, setup.strategies
        self.schedule, self.ranks = setup.schedule, setup.ranks
        self.planner = Planner(setup, config) if setup.choices["microbatches"] else None
        self.counts = counts
        reentrant = (setup.args.gradient_checkpointing_kwargs or {}).get("use_reentrant")
        compares = not (self.ranks.sharded or (setup.args.gradient_checkpointing and reentrant))
        self.verify_steps = setup.settings.speed.verify_steps if compares else 0
        if setup.choices["microbatches"] and not compares:
            why = "parameters are sharded" if self.ranks.sharded else "gradient checkpointing is reentrant"
            self.ranks.warn(f"The gradient of planned micro-batches is not compared with TRL's: {why}.")
        self.tolerance = 1e-3 if setup.dtype == torch.float32 else 0.05
        divides = divides_over_ranks(setup.args, setup.strategies.keep_groups)
        self.over_all_ranks = setup.settings.cut == "over_all_ranks" and divides
        self._rollout: Batch | None = None  # a rollout batch that has not been cut yet
        self._planned: list[Batch] = []

    def resume(self) -> None:
        """Go on as the run's counts say: with TRL's cut where planning was given up before the checkpoint."""
        if self.planner is not None and self.counts[MISMATCH]:
            self.planner = None
            self.ranks.warn("Micro-batches stay TRL's: planned ones gave another gradient before the checkpoint.")

    def keep(self, rollout: Batch) -> None:
        """Keep a new rollout batch as it is; TRL shuffles and splits it before `regrouped` is called."""
        self._rollout = rollout

    def regrouped(self, trls: list[Batch], position: Position) -> list[Batch]:
        """``trls``, TRL's cut of the rollout batch, cut again where groups stay whole or steps span all ranks."""
        rollout, self._rollout = self._rollout, None
        keeps_groups, steps = self.strategies.keep_groups != "off", self.args.steps_per_generation
        if rollout is None or not (keeps_groups or self.over_all_ranks):
            return trls
        unit = self.args.num_generations if keeps_groups else 1
        if not self.over_all_ranks:
            return _cut_by_units(rollout, torch.randperm(len(rollout["completion_ids"]) // unit), unit, steps)
        updates = steps // self.args.gradient_accumulation_steps
        return microbatches_over_all_ranks(
            rollout, unit, updates, steps, position.seed(self.args.seed), self.ranks.index
        )

    def next_microbatch(self, buffered: list[Batch], position: Position, compare: Compare) -> Batch:
        """The micro-batch of the next forward pass: one of ``buffered``, the rollout batch's, or a planned one."""
        place = self.schedule.place(position.microbatches)
        if self.planner is None:
            return buffered[place]
        size = self.schedule.block
        if place % size == 0 or not self._planned:
            start = place - place % size
            originals = buffered[start : start + size]
            self._planned = self.planner.cut(originals, self.schedule.pass_index(position.microbatches))
            due = comparisons_due(self.verify_steps, position.step, position.max_steps)
            if due > self.counts[COMPARED] and not self._agrees(originals, position, compare):
                self.planner, self._planned, self.counts[MISMATCH] = None, [], 1
                return buffered[place]
        return self._planned[place % size]

    def _agrees(self, originals: list[Batch], position: Position, compare: Compare) -> bool:
        """Whether both cuts give the same gradient on every rank.

        Not compared where no row of any rank has an advantage: under a KL term the gradient of a policy that has not
        moved is then rounding alone, which differs between cuts.
        """
        if not self.ranks.any(bool(torch.stack([batch["advantages"].any() for batch in originals]).any())):
            return True
        first, second, norm = compare(originals, self._planned)
        difference = float((first - second).norm()) / (norm or 1.0)
        if self.ranks.any(not math.isfinite(norm)):
            return True  # TRL's own gradient is not finite: nothing to compare with
        if not self.ranks.any(not difference <= self.tolerance):  # also where it is NaN
            self.counts[COMPARED] += int(self.ranks.any(norm > 0))
            return True
        self.ranks.warn(
            f"Planned micro-batches give another gradient than TRL's {position.where}: it differs by "
            f"{difference:.2g} of its size, above {self.tolerance:g}. From here on TRL's are trained."
        )
        return False


class Lengths(NamedTuple):
    """Lengths (B,) of rows: tokens of the prompt; tokens of the completion that are needed (0 = row left out); and a
    number that is the same for rows that may share their prompt."""

    prompts: Tensor
    completions: Tensor
    numbers: Tensor

    def of(self, rows: Tensor) -> "Lengths":
        return Lengths(*(values[rows] for values in self))


class Planner:
    """Planned micro-batches of one rank, cut from a block of TRL's, all of one rollout batch and one optimizer step.

    Attributes:
        attention_length: `packing.attention_length` where rows share their prompt if that pays; ``None`` = they do not.
        by_rows: whether attention computes no pairs of two rows in a packed sequence.
    """

    def __init__(self, setup: Setup, config: PretrainedConfig) -> None:
        args, strategies, settings = setup.args, setup.strategies, setup.settings
        self.args, self.strategies, self.ranks = args, strategies, setup.ranks
        self.attention_length = attention_length(config) if setup.choices["shared_prompts"] else None
        on_cpu = setup.ranks.device.type == "cpu"
        self.by_rows = on_cpu and not args.gradient_checkpointing
        if on_cpu:
            keep_freed_memory()
        self.tokens_per_microbatch = settings.speed.tokens_per_microbatch
        self.trims_prompts = settings.loaded.rope_type is not None  # rotary positions are relative
        self.rows_per_unit = args.num_generations if strategies.keep_groups == "forward" else 1
        self.leaves_out = args.beta == 0.0
        """Under a KL term a row with advantage 0 has a gradient."""

    def cut(self, microbatches: Sequence[Batch], pass_index: int) -> list[Batch]:
        """As many micro-batches as given, with the same accumulated gradient; those of padding alone come first.

        Added to TRL's entries: ``loss_scale``, a factor of the loss; ``row_scale`` (B,), for bnpo, a factor of the
        advantages; ``all_tokens`` and ``all_rows``, those of TRL's micro-batch in its place; ``keep``,
        with several passes, the tokens of this one; ``packing`` where rows share their prompts. A collective.
        """
        rows_each = len(microbatches[0]["completion_ids"])
        whole = joined(microbatches)
        mask = loss_mask(whole)
        if self.strategies.schedule.num_passes > 1:
            # a schedule may look at all rows of a micro-batch: those of TRL's cut
            whole["keep"] = torch.cat([kept_tokens(self.strategies.schedule, m, pass_index) for m in microbatches])
        if self.args.loss_type == "bnpo":  # each row's divisor in TRL's cut
            whole["row_scale"] = torch.cat([loss_mask(m).sum().expand(rows_each) for m in microbatches]).clamp(min=1)
        lengths = self._lengths(whole["prompt_ids"], whole["prompt_mask"], self._needed(whole, mask))
        units, lengths = self._plan(lengths, len(microbatches), rows_each, self.rows_per_unit)
        planned = [self._microbatch(whole, own, lengths, rows_each) for own in units]
        for batch, counted in zip(planned, mask.split(rows_each), strict=True):
            batch |= {"all_tokens": counted.sum(), "all_rows": rows_each}
        return planned

    def scored(
        self,
        score: Callable[..., Any],
        model: Any,
        input_ids: Tensor,
        attention_mask: Tensor,
        width: int,
        batch_size: int | None = None,
        **keywords: Any,
    ) -> tuple[Tensor | None, Tensor | None, None]:
        """Results of ``score`` for all rows, no gradient, from passes no wider than their rows. A collective."""
        prompt_mask, mask = attention_mask[:, :-width], attention_mask[:, -width:]
        lengths = self._lengths(input_ids[:, :-width], prompt_mask, last_counted(mask).clamp(min=1))
        rows_each = min(batch_size or len(mask), len(mask))
        units, lengths = self._plan(lengths, -(-len(mask) // rows_each), rows_each, 1)
        results: list[Tensor | None] = [None, None]
        for rows in units:
            if rows[0] < 0:  # padding alone, on every rank: no pass
                continue
            chosen, given = lengths.of(torch.tensor(rows)), torch.tensor(rows, device=mask.device)
            before, after = self._width(chosen.prompts, prompt_mask), self._width(chosen.completions, mask)
            packed = self._packing(chosen, before, after, mask.device)
            columns = slice(prompt_mask.shape[1] - before, prompt_mask.shape[1] + after)
            scorer = model if packed is None else with_shared_prompts(model, packed)
            found = score(scorer, input_ids[given, columns], attention_mask[given, columns], after, **keywords)
            for index, values in enumerate(found[:2]):
                if values is not None:
                    if results[index] is None:  # padding is 0, as in TRL's
                        results[index] = values.new_zeros(len(mask), width)
                    results[index][given, :after] = values  # type: ignore[index]
        return results[0], results[1], None

    def _needed(self, whole: Batch, mask: Tensor) -> Tensor:
        """(B,) tokens that are needed of each row's completion; 0 = leave the row out."""
        counted = mask.bool()
        needed = counted
        if self.leaves_out:
            advantages = whole["advantages"] if whole["advantages"].dim() == 2 else whole["advantages"][:, None]
            trained = counted & (advantages != 0)
            trained = trained & whole["keep"] if "keep" in whole else trained
            present = trained.view(-1, self.rows_per_unit, mask.shape[1]).any(2).any(1)
            needed = counted & present.repeat_interleave(self.rows_per_unit)[:, None]
        longest = last_counted(needed).view(-1, self.rows_per_unit).amax(1)  # rows of a group end together
        return longest.repeat_interleave(self.rows_per_unit).minimum(last_counted(counted))

    def _lengths(self, prompt_ids: Tensor, prompt_mask: Tensor, completions: Tensor) -> Lengths:
        prompts = last_counted(prompt_mask.flip(1))
        if not self.trims_prompts:
            prompts = torch.full_like(prompts, prompt_mask.shape[1])
        if self.attention_length is None:
            return Lengths(prompts, completions, torch.arange(len(prompts), device=prompts.device))
        return Lengths(prompts, completions, prompt_numbers(prompt_ids, prompt_mask))

    def _packing(self, rows: Lengths, before: int, after: int, device: torch.device) -> Packing | None:
        """Packing of rows that share prompts; ``None`` where that does not pay."""
        if self.attention_length is None:
            return None
        own = rows.of((rows.completions > 0).nonzero().squeeze(1))
        own = own.of(own.numbers.argsort())
        lengths = torch.stack([own.prompts, own.completions], dim=1)
        tokens, pairs = packed_tokens(lengths, own.completions, own.numbers, by_rows=self.by_rows)
        unshared = torch.tensor(len(rows.numbers) * (before + after))
        shared = work(tokens[0, -1], pairs[0, -1], self.attention_length)
        if not pays(shared, work(unshared, unshared * (before + after), self.attention_length)):
            return None
        return packing(rows.numbers, rows.prompts, rows.completions, before, after).to(device)

    def _plan(self, rows: Lengths, most: int, rows_each: int, size: int) -> tuple[list[list[int]], Lengths]:
        """Units of ``size`` rows of each micro-batch of this rank (see `planned_cuts`), and the lengths of all rows on
        the CPU: the host waits once, not for each micro-batch."""
        prompts, completions = (lengths.view(-1, size) for lengths in (rows.prompts, rows.completions))
        columns = prompts.amax(1), completions.amax(1), completions.sum(1), rows.numbers[::size]
        everyone = self.ranks.gathered(torch.stack(columns, dim=1)[None]).cpu()
        sharing = None
        if self.attention_length is not None:
            sharing = Sharing(everyone[:, :, 2], everyone[:, :, 3], self.attention_length, self.by_rows)
        everyone = everyone[:, :, :2]
        budget = self.tokens_per_microbatch or rows_each * (
            int(everyone[:, :, 0].max()) + max(int(everyone[:, :, 1].max()), self.args.max_completion_length or 0)
        )
        plan = planned_cuts(
            everyone,
            num_microbatches=most,
            budget=budget,
            rows_per_unit=size,
            units_each=max(1, rows_each // size),
            sharing=sharing,
        )
        mine = plan[self.ranks.index if len(plan) > 1 else 0]
        return mine, Lengths(*(each.cpu() for each in rows))

    def _microbatch(self, whole: Batch, units: list[int], lengths: Lengths, rows_each: int) -> Batch:
        """The rows of these units, trimmed."""
        given, padding = _rows_of(units, self.rows_per_unit)
        own = lengths.of(given)
        chosen = given.to(whole["completion_ids"].device, non_blocking=True)
        batch = chosen_rows(whole, chosen)
        before = self._width(own.prompts.masked_fill(padding, 1), whole["prompt_mask"])
        after = self._width(own.completions.masked_fill(padding, 1), whole["completion_mask"])
        for name, value in batch.items():
            if name in ("prompt_ids", "prompt_mask"):
                batch[name] = value[:, -before:]
            elif isinstance(value, Tensor) and value.shape[1:] == whole["completion_mask"].shape[1:]:  # one a token
                batch[name] = value[:, :after]
        if not padding.all():
            own = own._replace(completions=own.completions.masked_fill(padding, 0))  # takes no place in a sequence
            if (packed := self._packing(own, before, after, chosen.device)) is not None:
                batch["packing"] = packed
                within = torch.arange(after) < own.completions[:, None]
                batch["completion_mask"] = batch["completion_mask"] * within.to(chosen.device, non_blocking=True)
        if padding.any():
            _make_padding(batch, padding.to(chosen.device, non_blocking=True))
        if "row_scale" in batch:
            batch["row_scale"] = loss_mask(batch).sum().clamp(min=1) / batch["row_scale"]
        batch["loss_scale"] = len(given) / rows_each if self.args.loss_type in ROW_MEAN else 1.0
        return batch

    def _width(self, lengths: Tensor, padded: Tensor) -> int:
        """The longest, at least two, rounded up as TRL does, never wider than ``padded``."""
        multiple = self.args.pad_to_multiple_of or 1
        longest = max(int(lengths.max()), _NARROWEST)
        return min(-(-longest // multiple) * multiple, padded.shape[1])


def comparisons_due(verify_steps: int, step: int, max_steps: int) -> int:
    """Optimizer steps that should have been compared up to and including ``step``; a strategy may start late."""
    later = {max_steps // 4, max_steps // 2, 3 * max_steps // 4, max_steps - 1} if verify_steps > 0 else set()
    return verify_steps + sum(0 < each <= step for each in later)


def microbatches_over_all_ranks(
    batch: Mapping[str, Any], unit: int, updates: int, num_microbatches: int, seed: int, rank: int
) -> list[Batch]:
    """This rank's rollout batch cut so that each optimizer step trains the same rows on any number of ranks.

    Rows, or groups of ``unit`` rows that stay together, are numbered over all ranks. Of each ``updates`` neighbors,
    which are on one rank, every optimizer step gets one, drawn from ``seed`` and the neighbors' place alone.

    Args:
        updates: optimizer steps for which the batch is trained; they divide this rank's number of units.
    """
    strata = len(batch["completion_ids"]) // unit // updates
    draws = torch.Generator().manual_seed(seed)
    drawn = [torch.randperm(updates, generator=draws) for _ in range((rank + 1) * strata)]
    order = torch.stack(drawn[rank * strata :])
    units = (torch.arange(strata)[:, None] * updates + order).T.flatten()
    return _cut_by_units(batch, units, unit, num_microbatches)


def _cut_by_units(batch: Mapping[str, Any], units: Tensor, size: int, num_microbatches: int) -> list[Batch]:
    """TRL's cut of a batch whose ``units`` of ``size`` rows come in this order."""
    rows = (units[:, None] * size + torch.arange(size)).flatten()
    ordered = chosen_rows(split_pixel_values_by_grid(dict(batch)), rows)
    return [unsplit_pixel_values_by_grid(part) for part in split_tensor_dict(ordered, num_microbatches)]


def chosen_rows(batch: Batch, rows: Tensor) -> Batch:
    """The rows of every entry that has rows; scalars and ``None`` stay."""
    places = rows.to(batch["completion_ids"].device, non_blocking=True)  # once, not once an entry

    def chosen(value: Any) -> Any:
        if isinstance(value, Tensor) and value.dim():
            return value[places]
        return [value[row] for row in rows.tolist()] if isinstance(value, list) else value

    return {name: chosen(value) for name, value in batch.items()}


def _rows_of(units: list[int], size: int) -> tuple[Tensor, Tensor]:
    """Rows of units of ``size`` rows, and which of them are padding: those of a unit u written as −1 − u."""
    given = torch.tensor(units)
    first = given.maximum(-1 - given)[:, None] * size
    return (first + torch.arange(size)).flatten(), (given < 0).repeat_interleave(size)


def last_counted(mask: Tensor) -> Tensor:
    """(B,) tokens up to and including the last one that ``mask`` (B, T) counts; 0 where it counts none."""
    position = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    return (position * mask.bool()).amax(1)


def joined(microbatches: Sequence[Mapping[str, Any]]) -> Batch:
    """The rows of several micro-batches in one; what has no rows is the first's."""
    return {
        name: torch.cat([m[name] for m in microbatches]) if isinstance(value, Tensor) and value.dim() else value
        for name, value in microbatches[0].items()
    }


def _make_padding(batch: Batch, rows: Tensor) -> None:
    """Turn ``rows`` (B,) bool into one prompt token and one completion token that no loss counts, but attention does:
    a gradient (of exactly zero) reaches every parameter."""
    for name, value in _OF_PADDING.items():
        if isinstance(entry := batch.get(name), Tensor):
            batch[name] = entry.masked_fill(rows.view(-1, *[1] * (entry.dim() - 1)), value)
    counted = batch.get("tool_mask", torch.ones_like(batch["completion_mask"]))
    batch["tool_mask"] = counted.masked_fill(rows[:, None], 0)
    for name, only in (("prompt_mask", -1), ("completion_mask", 0)):
        one = torch.zeros_like(batch[name][0])
        one[only] = 1
        batch[name] = torch.where(rows[:, None], one, batch[name])


_ELEMENTS = 2**24
"""Gradients are compared for the smallest parameters, up to this many numbers: no second model's worth of memory."""


def both_gradients(
    loss_of: Callable[[Batch], Tensor], trainer: Any, first: Sequence[Batch], second: Sequence[Batch]
) -> tuple[Tensor, Tensor, float]:
    """This rank's gradients with both cuts, and their size: the sum of the first cut's gradient norms, to which float
    noise is proportional. A collective."""
    model: nn.Module = trainer.model
    trainable = sorted((each for each in model.parameters() if each.requires_grad), key=Tensor.numel)
    parameters: list[Tensor] = [*trainable[:1]]
    for parameter in trainable[1:]:
        if sum(each.numel() for each in parameters) + parameter.numel() > _ELEMENTS:
            break
        parameters.append(parameter)
    with _leaving_no_trace(model, trainer.strategies, trainer._metrics, trainer.accelerator.device):
        size, one = _gradient(loss_of, first, parameters)
        _, other = _gradient(loss_of, second, parameters)
    return one, other, size


def _gradient(
    loss_of: Callable[[Batch], Tensor], cut: Sequence[Batch], parameters: list[Tensor]
) -> tuple[float, Tensor]:
    """Sum of the norms of the cut's micro-batches, and the sum of their gradients."""
    total, size = torch.zeros(sum(p.numel() for p in parameters), device=parameters[0].device), 0.0
    for batch in cut:
        with torch.enable_grad():
            loss = loss_of(batch)
        found = torch.autograd.grad(loss, parameters, materialize_grads=True)
        flat = torch.cat([each.flatten().float() for each in found])
        total, size = total.add_(flat), size + float(flat.norm())
        del loss, found, flat  # kept, they would split a CPU's heap
    return size, total


@contextmanager
def _leaving_no_trace(
    model: nn.Module, strategies: Strategies, metrics: dict[str, Any], device: torch.device
) -> Iterator[None]:
    """Inside, no dropout; ``metrics["train"]``, random streams and strategies' states are restored on exit."""
    stateful: list[Any] = [part.function for part in strategies.all if part.has_state]
    states = [deepcopy(function.state_dict()) for function in stateful]  # it may hand out what it writes into
    dropping = [module for module in model.modules() if module.training and drops(module)]
    logged, metrics["train"] = metrics["train"], defaultdict(list)
    for module in dropping:
        module.training = False
    try:
        with random_streams_kept(device):
            yield
    finally:
        metrics["train"] = logged
        for function, state in zip(stateful, states, strict=True):
            function.load_state_dict(state)
        for module in dropping:
            module.training = True
