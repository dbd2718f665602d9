import ctypes
import ctypes.util
import mmap
import sqlite3

assert ctypes.CDLL(None).abs(-3) == 3
area = mmap.mmap(-1, 4096)
area[:3] = b"abc"
assert area[:3] == b"abc"
assert sqlite3.connect(":memory:").execute("select 1 + 1").fetchone() == (2,)
