"""A trained policy taken out of its run: whole weights, tokenizer, how it samples, and a card that says what it is."""

from evenkeel.trainer.run.export.exporting import export
from evenkeel.trainer.run.export.source import Source, find_source

__all__ = ["Source", "export", "find_source"]
