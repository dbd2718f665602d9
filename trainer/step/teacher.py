"""Scoring of a rollout batch after other prompts: those with the gold answer, or a sibling's response, in them."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from evenkeel.trainer.algorithms.teachers import TeacherOptions, contrast, contrasted_siblings
from evenkeel.trainer.step.ranks import Ranks
from evenkeel.trainer.step.revisions import in_place_of_text
from evenkeel.trainer.step.rollout import Batch, Row, tokens_of

REFERENCE = "reference"
"""The column of gold answers."""
NO_VERDICTS = (
    "teacher_contrast: the reward functions leave no verdict on each completion in the column `correct`, so no sibling "
    "is known to be right or wrong. Rewards made of verifiers leave it; a function of your own calls "
    "log_extra('correct', [True, False, None, …]), one for each completion."
)


Score = Callable[[Tensor, Tensor, int], tuple[Tensor, Any]]
"""Token ids and attention mask (B, P + T), and T → log π (B, T) of the last T, by the current policy, and more."""
Verdicts = Callable[[], Tensor | None]
Tokenize = Callable[[list[Any]], Sequence[Any]]
"""TRL's: prompts → their token ids, and more."""


class Teacher:
    """The policy after prompts that hold an answer: the signals ``teacher_logps`` and ``teacher_contrast``.

    Args:
        asked: the signals that a strategy names.
        padding: the token that prompts are padded with.
        longest: positions of the model, where it has a limit.
        decode: tokens of completions → their texts.
    """

    def __init__(
        self,
        options: TeacherOptions,
        ranks: Ranks,
        *,
        asked: Sequence[str],
        group_size: int,
        padding: int,
        longest: int | None,
        decode: Callable[[Any], list[str]],
    ) -> None:
        self.options, self.ranks, self.asked, self.group_size = options, ranks, asked, group_size
        self.padding, self.longest, self.decode = padding, longest, decode

    def gold_answers(self, rows: list[Row], batch: Batch, tokenize: Tokenize, score: Score) -> dict[str, Tensor]:
        """``teacher_logps`` (B, T), after prompts with the gold answers; nothing where no strategy names them."""
        if "teacher_logps" not in self.asked:
            return {}
        return {"teacher_logps": self._after(privileged_prompts(rows, self.options), batch, tokenize, score)}

    def siblings(
        self, rows: list[Row], batch: Batch, verdicts: Verdicts, seed: int, tokenize: Tokenize, score: Score
    ) -> dict[str, Tensor]:
        """``teacher_contrast`` (B, T), what siblings' responses say of the tokens; all ranks make as many passes.

        Args:
            verdicts: (N,) of all ranks, asked for only where a strategy wants them.

        Raises:
            ValueError: there are no verdicts, or a prompt and a completion are more than the model's positions.
        """
        if "teacher_contrast" not in self.asked:
            return {}
        if (correct := verdicts()) is None:
            raise ValueError(NO_VERDICTS)
        of_all = contrasted_siblings(correct, self.group_size, self.options.wrong_siblings, seed)
        of_all = of_all[:, (of_all >= 0).any(0)]
        texts = gather_object(self.decode(batch["completion_ids"]))
        chosen = torch.stack(self.ranks.own_share(list(of_all)))
        prompts = [sibling_prompts(rows, each.tolist(), texts, self.options) for each in chosen.T]
        after = [self._after(each, batch, tokenize, score) for each in prompts]
        if not after:
            return {"teacher_contrast": torch.zeros(batch["completion_ids"].shape, device=self.ranks.device)}
        return {"teacher_contrast": contrast(torch.stack(after), chosen)}

    def _after(self, prompts: list[Any], batch: Batch, tokenize: Tokenize, score: Score) -> Tensor:
        """Log-probabilities (B, T) of the batch's completions after other prompts."""
        tokens = [torch.tensor(ids) for ids in tokenize(prompts)[0]]
        padded, filled = (
            pad_sequence(each, batch_first=True, padding_value=value, padding_side="left").to(self.ranks.device)
            for each, value in ((tokens, self.padding), ([torch.ones_like(ids) for ids in tokens], 0))
        )
        input_ids, mask, width = tokens_of({**batch, "prompt_ids": padded, "prompt_mask": filled})
        if self.longest is not None and input_ids.shape[1] > self.longest:
            raise ValueError(
                f"{' and '.join(self.asked)}: a teacher's prompt of {padded.shape[1]} tokens and a completion of "
                f"{width} are more than the model's {self.longest} positions. Leave longer rows out, shorten the "
                "template in algorithm.teacher, or lower trl.max_completion_length."
            )
        return score(input_ids, mask, width)[0]


def privileged_prompts(rows: Iterable[Row], options: TeacherOptions) -> list[Any]:
    """The teacher's prompt for each row, text or messages as the row's own is.

    Raises:
        ValueError: a reference is no text or number (see `reference_text`), or a prompt's last message is not text.
    """
    return [
        in_place_of_text(
            row["prompt"],
            partial(options.privileged_prompt, reference=reference_text(row.get(REFERENCE))),
            "teacher_logps",
            "Score",
        )
        for row in rows
    ]


def sibling_prompts(
    rows: Iterable[Row], siblings: Iterable[int], responses: Sequence[str], options: TeacherOptions
) -> list[Any]:
    """For each row its prompt with the response of its sibling, a place in ``responses``; −1 = its own prompt.

    Raises:
        ValueError: a prompt's last message is not text.
    """
    return [
        row["prompt"]
        if sibling < 0
        else in_place_of_text(
            row["prompt"], partial(options.sibling_prompt, response=responses[sibling]), "teacher_contrast", "Score"
        )
        for row, sibling in zip(rows, siblings, strict=True)
    ]


def reference_text(reference: Any) -> str:
    """A gold answer as a teacher is shown it.

    Raises:
        ValueError: neither text nor a number. What else a verifier judges by (numbers and a target, statements) need
            not hold the answer, and a teacher that learns nothing new would credit noise.
    """
    text = str(reference).strip() if isinstance(reference, str | int | float) else ""
    if not text:
        raise ValueError(
            f"teacher_logps: the row's reference is {reference!r:.80}, and a teacher is shown the gold answer as text. "
            "Name a column of answers (columns: {reference: answer} in a run file, a column `reference` of the data in "
            "Python), or choose a strategy that names no teacher_logps."
        )
    return text


def unusable_references(data: Any) -> str | None:
    """Why rows cannot be shown to a teacher, if it can be seen before training; streamed data is not read."""
    columns = getattr(data, "column_names", None)
    if columns is None or not hasattr(data, "__len__"):
        return None
    for reference in data[REFERENCE] if REFERENCE in columns else [None]:
        try:
            reference_text(reference)
        except ValueError as error:
            return str(error)
    return None
