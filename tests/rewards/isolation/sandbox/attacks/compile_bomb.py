"""Source that overflows the parser or takes all memory."""

# unconfined: skip, the limits hold at every level
for source in ("(" * 100_000, "-" * 100_000 + "1", "x=" * 50_000 + "1", "1" + "+1" * 200_000, "[" * 90 + "]" * 90):
    try:
        compile(source, "bomb", "exec")
    except (SyntaxError, MemoryError, RecursionError):
        pass
