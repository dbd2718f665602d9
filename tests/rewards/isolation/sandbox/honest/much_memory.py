numbers = list(range(10_000_000))
assert sum(numbers) == 49_999_995_000_000
