"""Many small memory files hold more than the limit of one."""

size = 0
try:
    for _ in range(50):
        size += os.write(os.memfd_create("flood"), bytes(500_000))
except OSError:
    pass
if size:
    hit(size)
