"""What is wrong with a run, from the numbers that it logged: ours, TRL's, a W&B folder or verl's."""
