"""Faults of a run, found in the numbers that it logged: ours, TRL's, a W&B folder or verl's."""
