"""The policy's entropy at numbers, words, symbols and special tokens, from the loss's own pass."""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from trainer.algorithms.token_classes import CLASSES, class_table, entropies_by_class
from trainer.step.rollout_signals import loss_mask


class TokenClassMeter:
    """To be mixed in front of `RLVRTrainer`: logs ``entropy/<class>`` of the tokens that the loss counts, in any pass.

    The entropies are those that TRL computes for its own ``entropy``, and of the same tokens. The vocabulary is
    classified once.
    """

    @cached_property
    def _token_classes(self) -> Tensor:
        trainer: Any = self
        tokenizer, size = trainer._tokenizer, trainer.model.get_input_embeddings().num_embeddings
        texts = tokenizer.batch_decode([[token] for token in range(len(tokenizer))])
        texts += [""] * (size - len(texts))  # rows of the embedding that no text has
        return class_table(texts, set(tokenizer.all_special_ids)).to(trainer.accelerator.device)

    def _get_per_token_logps_and_entropies(self, *positional: Any, **keywords: Any) -> Any:
        result = super()._get_per_token_logps_and_entropies(*positional, **keywords)  # type: ignore[misc]
        trainer: Any = self
        batch = trainer._current
        if batch is not None and batch.get("entropies") is not None:
            with torch.no_grad():
                classes = self._token_classes[batch["completion_ids"]]
                mask = batch.get("all_passes_mask", loss_mask(batch))
                sums, counts = entropies_by_class(batch["entropies"], classes, mask)
            for name, total, count in zip(CLASSES, sums, counts, strict=True):
                trainer._means.add(f"entropy/{name}", total, count)
        return result
