"""Worker processes."""

import multiprocessing

attempt(lambda: multiprocessing.get_context("fork").Process(target=print).start())
