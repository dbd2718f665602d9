"""The environment that the process was started with, where the interpreter no longer shows it."""

# unconfined: skip, no level passes the environment on
environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
index = 0
while environ[index] is not None:
    if SECRET_WORD.encode() in environ[index]:
        hit(environ[index])
    index += 1
