"""Other prompts for the rows of a rollout batch: revisions of wrong answers, and a teacher that is shown an answer.

Both come between the rewards and the advantages. All ranks make the same calls of the trainer's methods with the same
number of rows, so that this runs wherever the rollout does: transformers, vLLM, sharded weights.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from evenkeel.trainer.algorithms.revisions import RevisionOptions, credited_tokens, filled, references, repair_scores
from evenkeel.trainer.algorithms.teachers import TeacherOptions, contrast, contrasted_siblings, reference_text
from evenkeel.trainer.step.rollout import Rollout, tokens_of, verdicts
from evenkeel.trainer.step.setup import Batch, Row, Setup

_NO_VERDICTS = "%s needs a verdict on each completion: let a reward function call log_extra('correct', [True, …])."
Write = Callable[[list[Row], list[Any]], tuple[list[list[int]], Mapping[str, list[Any]]]]
"""Generates one completion of each prompt and scores it as its row's answer; returns tokens, and columns that reward
functions logged. A collective, with the same number of rows on each rank."""


class Revisions:
    """Revises the wrong answers of a rollout batch; makes the columns of `REVISION_COLUMNS`.

    References and revisions are drawn from the run's seed and the rollout batch's number alone, so that a resumed run
    repeats them (vLLM samples with its own seed). Revisions are sampled as rollouts are.
    """

    def __init__(self, options: RevisionOptions, setup: Setup) -> None:
        self.options, self.ranks, self.decode = options, setup.ranks, setup.decode
        self.group_size = setup.args.num_generations

    def __call__(
        self, rollout: Rollout, correct: Tensor | None, seed: int, write: Write, metrics: dict[str, list[float]]
    ) -> dict[str, Tensor]:
        """The columns of all ranks' rows; ``correct``: verdicts (N,), ``None`` = there are none.

        Raises:
            ValueError: the reward functions log no verdicts, or columns of these names; or a prompt is not text.
        """
        if correct is None:
            raise ValueError(_NO_VERDICTS % "revision")
        if taken := {"repair", "edited"} & rollout.columns.keys():
            raise ValueError(f"A reward function logs {min(taken)}, as revisions do: rename it.")
        rows, answers = rollout.rows, self.decode(rollout.batch["completion_ids"])
        jobs, most = self._jobs(correct, len(rows), seed)
        # the same number on each rank
        filled = [*jobs, *[(0, 0, self.ranks.index * len(rows))] * (most - len(jobs))]
        texts = gather_object(answers)
        prompts = [
            around_text(rows[row]["prompt"], self.options.template, answer=answers[row], reference=texts[reference])
            for row, _, reference in filled
        ]
        token_ids, right = list[list[int]](), torch.empty(0)
        if most:
            token_ids, logged = write([rows[row] for row, *_ in filled], prompts)
            scored = verdicts(logged, noisy=True)
            assert scored is not None  # the functions that scored the rollout leave verdicts
            right = scored
        return self._columns(rollout, jobs, token_ids, right.tolist(), metrics)

    def _jobs(self, correct: Tensor, rows: int, seed: int) -> tuple[list[tuple[int, int, int]], int]:
        """This rank's revisions, each (row, number among the row's revisions, reference's row of all ranks); and the
        largest number of revisions on any rank."""
        options = self.options
        table = references(correct, self.group_size, options.references, seed, need_correct=options.need_correct).view(
            -1, rows, options.references
        )
        jobs = [
            (row, place, reference)
            for row, siblings in enumerate(table[self.ranks.index].tolist())
            for place, reference in enumerate(siblings)
            if reference >= 0
        ]
        return jobs, int((table >= 0).sum((1, 2)).max())

    def _columns(
        self,
        rollout: Rollout,
        jobs: list[tuple[int, int, int]],
        token_ids: list[list[int]],
        correct: list[float],
        metrics: dict[str, list[float]],
    ) -> dict[str, Tensor]:
        """``repair`` and ``edited`` of all ranks, recorded of this one's; logs what was revised, repaired and spent."""
        batch = rollout.batch
        completion_ids, lengths = batch["completion_ids"], batch["completion_mask"].sum(1).tolist()
        repaired = torch.full((len(lengths), self.options.references), torch.nan)
        edited = torch.ones(completion_ids.shape, dtype=torch.long)
        right: dict[int, list[list[int]]] = defaultdict(list)
        # the rest filled the batch
        for (row, place, _), ids, verdict in zip(jobs, token_ids, correct, strict=False):
            repaired[row, place] = verdict
            if verdict == 1:
                right[row].append(ids)
        for row, revisions in right.items():
            own = completion_ids[row, : lengths[row]].tolist()
            edited[row, : lengths[row]] = credited_tokens(own, revisions, self.options.credit)
        counts = {"rows": len(lengths), "revised": len({row for row, *_ in jobs}), "repaired": len(right)}
        self._log({**counts, "tokens": sum(map(len, token_ids))}, metrics)
        device, scores = completion_ids.device, repair_scores(repaired)
        credited = [row[:length] for row, length in zip(edited.tolist(), lengths, strict=True)]
        rollout.columns |= {"repair": scores.tolist(), "edited": credited}
        repair, edits = self.ranks.gathered(scores.to(device)), self.ranks.gathered_tokens(edited.to(device), 1)
        return {"repair": repair, "edited": edits.bool()}

    def _log(self, counts: dict[str, int], metrics: dict[str, list[float]]) -> None:
        """Log, over all ranks, the share of rows revised, the share of those that a revision repaired, and tokens."""
        numbers = torch.tensor([*counts.values()], dtype=torch.float64, device=self.ranks.device)
        total = dict(zip(counts, self.ranks.accelerator.reduce(numbers, "sum").tolist(), strict=True))
        metrics["revisions/frac_revised"].append(total["revised"] / total["rows"])
        metrics["revisions/tokens"].append(total["tokens"])
        if total["revised"]:
            metrics["revisions/frac_repaired"].append(total["repaired"] / total["revised"])


def around_text(prompt: Any, template: str, **values: str) -> Any:
    """``prompt`` with its text, or its last message's, put into ``template`` as ``{prompt}``, beside other ``values``.

    Raises:
        ValueError: the last message is not text.
    """
    if isinstance(prompt, str):
        return filled(template, prompt=prompt, **values)
    content = prompt[-1]["content"]
    if not isinstance(content, str):
        raise ValueError(f"A prompt's last message is {content!r:.80}; a revision or a teacher needs text.")
    return [*prompt[:-1], {**prompt[-1], "content": filled(template, prompt=content, **values)}]


Score = Callable[[Tensor, Tensor, int], tuple[Tensor, Any]]
"""(token ids (B, P + T), attention mask, T) → (log π (B, T) of the last T under the current policy, more)."""
Verdicts = Callable[[], Tensor | None]
Tokenize = Callable[[list[Any]], Sequence[Any]]
"""TRL's: prompts → their token ids, and more."""


class Teacher:
    """The policy after prompts that hold an answer: the signals ``teacher_logps`` and ``teacher_contrast``."""

    def __init__(self, options: TeacherOptions, setup: Setup) -> None:
        self.options, self.ranks, self.decode = options, setup.ranks, setup.decode
        self.asked, self.group_size = setup.strategies.taught, setup.args.num_generations
        self.padding = setup.tokenizer.pad_token_id

    def gold_answers(self, rows: list[Row], batch: Batch, tokenize: Tokenize, score: Score) -> dict[str, Tensor]:
        """``teacher_logps`` (B, T), after prompts with the gold answers; nothing where no strategy names them."""
        if "teacher_logps" not in self.asked:
            return {}
        prompts = [
            around_text(row["prompt"], self.options.template, reference=reference_text(row.get("reference")))
            for row in rows
        ]
        return {"teacher_logps": self._after(prompts, batch, tokenize, score)}

    def siblings(
        self, rows: list[Row], batch: Batch, verdicts: Verdicts, seed: int, tokenize: Tokenize, score: Score
    ) -> dict[str, Tensor]:
        """``teacher_contrast`` (B, T), see `contrast`; the same number of passes on all ranks.

        Raises:
            ValueError: there are no verdicts.
        """
        if "teacher_contrast" not in self.asked:
            return {}
        if (correct := verdicts()) is None:
            raise ValueError(_NO_VERDICTS % "teacher_contrast")
        of_all = contrasted_siblings(correct, self.group_size, self.options.wrong_siblings, seed)
        of_all = of_all[:, (of_all >= 0).any(0)]
        texts = gather_object(self.decode(batch["completion_ids"]))
        chosen = torch.stack(self.ranks.own_share(list(of_all)))
        shown = [self._with_siblings(rows, each.tolist(), texts) for each in chosen.T]
        after = [self._after(prompts, batch, tokenize, score) for prompts in shown]
        if not after:
            return {"teacher_contrast": torch.zeros(batch["completion_ids"].shape, device=self.ranks.device)}
        return {"teacher_contrast": contrast(torch.stack(after), chosen)}

    def _with_siblings(self, rows: list[Row], siblings: list[int], responses: Sequence[str]) -> list[Any]:
        """Each row's prompt with its sibling's response, an index of ``responses``; −1 = the prompt alone."""
        return [
            row["prompt"]
            if sibling < 0
            else around_text(row["prompt"], self.options.sibling_template, reference=responses[sibling])
            for row, sibling in zip(rows, siblings, strict=True)
        ]

    def _after(self, prompts: list[Any], batch: Batch, tokenize: Tokenize, score: Score) -> Tensor:
        """Log-probabilities (B, T) of the batch's completions after other prompts."""
        tokens = [torch.tensor(ids) for ids in tokenize(prompts)[0]]
        padded, filled = (
            pad_sequence(each, batch_first=True, padding_value=value, padding_side="left").to(self.ranks.device)
            for each, value in ((tokens, self.padding), ([torch.ones_like(ids) for ids in tokens], 0))
        )
        return score(*tokens_of({**batch, "prompt_ids": padded, "prompt_mask": filled}))[0]
