"""A file under a relative name."""

import os

attempt(lambda: os.remove(open("attack.txt", "w").name))
