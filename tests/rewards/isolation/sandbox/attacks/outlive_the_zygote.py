"""Undo what ties the program's life to its parent, or what makes it a program without privileges."""

attempt(lambda: libc("prctl", 1, 0, 0, 0, 0), "PR_SET_PDEATHSIG")
attempt(lambda: libc("prctl", 4, 1, 0, 0, 0), "PR_SET_DUMPABLE")
attempt(lambda: libc("prctl", 36, 1, 0, 0, 0), "PR_SET_CHILD_SUBREAPER")
attempt(lambda: libc("prctl", 8, 1, 0, 0, 0), "PR_SET_KEEPCAPS")
