"""Change a module that the trainer imports next time."""

import statistics

attempt(lambda: os.close(os.open(statistics.__file__, os.O_WRONLY)))
attempt(lambda: os.close(os.open(statistics.__file__, os.O_RDWR | os.O_APPEND)))
