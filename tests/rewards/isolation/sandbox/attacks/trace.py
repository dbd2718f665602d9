"""Take control of another process. Only refused where the call itself is: elsewhere the request is unknown."""

UNKNOWN_REQUEST = 99
try:
    libc("ptrace", UNKNOWN_REQUEST, os.getppid(), 0, 0)
except PermissionError:
    pass
except OSError as error:
    hit(error)
