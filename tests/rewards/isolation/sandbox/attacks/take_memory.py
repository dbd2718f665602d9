"""Four times 500 MB."""

# unconfined: skip, the limit of memory holds at every level
blocks = []
try:
    for _ in range(4):
        blocks.append(bytearray(500_000_000))
except MemoryError:
    pass
if len(blocks) > 2:
    hit(len(blocks))
