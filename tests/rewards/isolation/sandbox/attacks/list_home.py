"""Look round at home."""

import os

attempt(lambda: os.listdir(HOME))
attempt(lambda: os.listdir("/"))
