r"""Which answers are not worth asking about: they would cost seconds and earn nothing.

No safety rests on this. The worker that does algebra is cut off by the kernel; this spares it what is known to be cut
off, and keeps the reading of an answer in the trainer's own process short.
"""

import re

LONGEST_ANSWER = 300  # characters; the longest of MATH's 12,500 answers is 159
DEEPEST_NESTING = 10

_COSTLY = [
    (re.compile(r"\d{31}"), "an integer of more than 30 digits"),
    (re.compile(r"\^\s*(?:[{(][^^]{0,20})?\d{4}"), "an exponent above 999"),
    (re.compile(r"\^[\s{(]*\d+[\s})]*\^"), "a tower of powers"),
    (re.compile(r"(?:\^[^^]*){12}"), "a dozen powers"),
    (re.compile(r"\d{4}[\s)}]*!|(?<!\([a-z][-+]\d)[!)}]\s*!"), "a factorial of more than 999 or of an expression"),
    (re.compile(r"\\binom[\s{(]*[^{}]*\d{4}"), "a binomial coefficient of more than 999"),
]
_OPERATORS = re.compile(r"\\(?:sum|prod|i*nt|oint|lim|bigcup|bigcap)(?![a-zA-Z])")


def too_long_or_deep(answer: str, gold: str) -> str:
    """Why ``answer`` is not even read; empty where it is. A gold that is long itself allows as long an answer again."""
    longest = max(LONGEST_ANSWER, 2 * len(gold))
    if len(answer) > longest:
        return f"{len(answer)} characters, more than the {longest} that are read"
    deepest = max(DEEPEST_NESTING, _depth(gold))
    if (depth := _depth(answer)) > deepest:
        return f"brackets nested {depth} deep, more than the {deepest} that are read"
    return ""


def too_costly(answer: str, gold: str) -> str:
    """Why no algebra is done with ``answer``; empty where it is."""
    for pattern, name in _COSTLY:
        if pattern.search(answer) and not pattern.search(gold):
            return f"it holds {name}"
    if (operator := _OPERATORS.search(answer)) and not _OPERATORS.search(gold):
        return f"it holds {operator[0]}, and the reference does not"
    return ""


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return deepest
