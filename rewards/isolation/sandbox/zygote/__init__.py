"""What runs on the other side: the warmed process that forks a child per program, and the child's confinement.

Nothing here imports anything but the standard library and its own siblings: the process is started on this folder
alone, so that no line of the trainer, of the verifiers or of their data is in the memory that programs inherit.
"""
