"""A judge that is out of order, for the worker that a test starts."""


def judge(item: object) -> bool:
    """Fail."""
    raise RuntimeError("out of order")
