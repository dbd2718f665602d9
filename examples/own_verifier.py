"""A verifier of your own: a function of the completion and its reference.

    python examples/own_verifier.py     # {'It is 12.': 1.0, 'First 12, then 13.': 0.0, 'I do not know.': 0.0}

In a run file it is `rewards: [{verifier: own_verifier:last_number}]`.
"""

import re

from evenkeel import RewardFunction, Verdict, build_verifier


def last_number(completion: str, reference: object) -> Verdict:
    """1 where the last number of the completion is the reference, else 0; unscored only without a usable reference."""
    if not isinstance(reference, str | int):
        return Verdict(None, None, "the reference is no text or whole number")
    numbers = re.findall(r"-?\d+", completion)
    if not numbers:
        return Verdict(0.0, None, "no number")
    return Verdict(float(numbers[-1] == str(reference)), numbers[-1], "")


if __name__ == "__main__":
    function = RewardFunction(build_verifier(last_number), "last_number")
    answers = ["It is 12.", "First 12, then 13.", "I do not know."]
    scores = function(prompts=["?"] * 3, completions=answers, reference=["12"] * 3)
    print(dict(zip(answers, scores, strict=True)))
