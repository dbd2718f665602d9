"""A run's training rollouts: streamed from disk, counted in full, and a sample of them as one page to read."""

from evenkeel.trainer.lab.rollouts.page import write_page
from evenkeel.trainer.run.record.rollouts import RecordedRollouts

__all__ = ["RecordedRollouts", "write_page"]
