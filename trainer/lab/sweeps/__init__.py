"""Many runs from one YAML file: variants × grid × seeds, each as the launcher would run it.

schema, loading    the file and its checks
cells              the file unfolded
plans, fairness    equal budgets; refusal of differences that would spoil the comparison
queues, attempt    where attempts run, and the process of one
forking            the process that they are forked from where that is safe
pilots, planning   the differences that it can detect, predicted from finished cells
tuning             an earlier stage, in which every variant finds its own settings
runner, starting   the loop that starts, awaits and retries
cell_directory     the files of a cell, and its state
status             the table
commands           the commands of `evenkeel sweep`

Nothing is imported here: the process of an attempt needs few of these modules.
"""
