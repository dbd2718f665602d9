"""The tasks of the reasoning-gym library (optional extra): its generators as data, its scorers in a sandbox."""
