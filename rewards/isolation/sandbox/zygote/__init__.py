"""The warmed process that forks a child per program, and the child's confinement.

These files import only the standard library and one another: the process is started on this folder alone, so that no
code or data of the trainer and the verifiers is in the memory that programs inherit.
"""
