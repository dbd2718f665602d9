"""Every path that needs a GPU, tried in turn and told apart: passed, failed, or not run and why."""
