import scripts._installed  # noqa: F401
