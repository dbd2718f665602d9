"""Many runs from one YAML file: variants × grid × seeds, each an ordinary launch of the training script.

schema, loading    the file and what is wrong with it
cells              the file unfolded
plans, fairness    what each cell will spend, made equal; differences that would spoil the comparison refused
queues, attempt    where attempts run, and what the process does that runs one
pilots, planning   before it runs: what finished cells say that it will see and cost
tuning             a stage before, in which every variant finds its own settings
runner, starting   the loop that starts, awaits and retries
cell_directory     what is kept of a cell, and its state
status             the table
commands           what `evenkeel sweep` can do

Nothing is imported here: the process of an attempt needs few of them.
"""
