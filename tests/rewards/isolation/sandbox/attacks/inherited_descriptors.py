"""Descriptors that should not be here: control sockets, rules, other programs' files."""

# unconfined: skip, none at any level
for descriptor in range(3, 1100):
    try:
        os.fstat(descriptor)
    except OSError:
        continue
    hit(descriptor)
