"""The cases of an audit: golds, wrong answers, nothing, texts that break graders, labeled answers and programs."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from evenkeel.rewards.bench.adversarial import FORMS as BENCH_FORMS
from evenkeel.rewards.bench.adversarial import built_in
from evenkeel.rewards.bench.built_in import Row, built_in_rows
from evenkeel.rewards.verifier import Verifier

Kind: TypeAlias = Literal["gold", "written", "wrong", "beside", "thought", "empty", "echo", "adversarial"]

KINDS: dict[Kind, str] = {
    "gold": "right: the gold itself",
    "written": "right: written otherwise",
    "wrong": "wrong answers",
    "beside": "exploit: the gold with another",
    "thought": "exploit: no thought",
    "empty": "exploit: nothing",
    "echo": "exploit: the question",
    "adversarial": "exploit: made to break graders",
}
RIGHT: tuple[Kind, ...] = ("gold", "written")
TASKS = {
    "math": "math_answer",
    "code": "code_tests",
    "logic": "knights_knaves",
    "choice": "multiple_choice",
    "text": "exact_match",
    "form": "format",
}
"""Short names; every name of `BUILT_IN` is a task too."""

_THOUGHT = "so"
FORMS = {
    "boxed": BENCH_FORMS["boxed"],
    "answer block on lines": f"<think>\n{_THOUGHT}\n</think>\n<answer>\n{{}}\n</answer>",
    "answer block": BENCH_FORMS["answer block"],
    "box in an answer block": f"<think>\n{_THOUGHT}\n</think>\n<answer>\n\\boxed{{{{{{}}}}}}\n</answer>",
    "program": BENCH_FORMS["program"],
    "program in an answer block": f"<think>\n{_THOUGHT}\n</think>\n<answer>\n```python\n{{}}\n```\n</answer>",
    "chat": f"<|im_start|>assistant\n<think>\n{_THOUGHT}\n</think>\n<answer>\n{{}}\n</answer>",
    "hashes": f"{_THOUGHT}\n#### {{}}",
    "Answer:": f"{_THOUGHT}\nAnswer: {{}}",
    "sentence": f"{_THOUGHT}\nThe final answer is ${{}}$. I hope it is correct.",
    "bare": BENCH_FORMS["bare"],
}
"""Name → form in which an answer may be written; the one that the function reads best is used."""
NO_THOUGHT = "no thought"
_THOUGHTS = {
    NO_THOUGHT: "",
    "an empty thought": "<think></think>\n",
    "an invisible thought": "<think>\n\u200b\u2800\n</think>\n",
}
_FORMULA = re.compile(r"\$([^$]{1,200})\$")
USUAL_FORMS = {"math_answer": "boxed", "code_tests": "program"}
"""Task → the form that is tried first; for other tasks an answer block on lines."""


@dataclass(frozen=True)
class Case:
    """A completion of a row; ``name`` describes it; for labeled answers it is their class."""

    kind: Kind
    name: str
    row: Row
    completion: str


def gold_in(form: str, verifier: Verifier, reference: Any) -> str | None:
    """The answer of the verifier's own gold completion, in the form."""
    gold = verifier.gold_completion(reference)
    return None if gold is None else form.format(_answer(gold))


def audit_rows(task: str) -> tuple[Verifier, list[Row]]:
    """The task's verifier and its built-in rows, with the right answer as text where other graders read it."""
    verifier, rows = built_in_rows(task)
    if (field := {"knights_knaves": "solution_text_format", "multiple_choice": "answer"}.get(task)) is not None:
        answers = [_answer(verifier.gold_completion(row.reference) or "") for row in rows]
        rows = [
            Row(row.question, {**row.reference, field: answer}) if isinstance(row.reference, Mapping) else row
            for row, answer in zip(rows, answers, strict=True)
        ]
    return verifier, rows


def _answer(completion: str) -> str:
    """The answer in a verifier's own completion, without its tags, box or fence."""
    answer = completion.rpartition("</think>")[2].strip()
    for opens, closes in (("<answer>", "</answer>"), ("\\boxed{", "}"), ("```python\n", "\n```")):
        if answer.startswith(opens) and answer.endswith(closes):
            answer = answer[len(opens) : -len(closes)].strip()
    return answer


def is_number(text: Any) -> bool:
    """Whether ``text`` is a whole or decimal number, as graders of numbers read them."""
    return re.fullmatch(r"-?(?:(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.[0-9]+)?|\.[0-9]+)", str(text)) is not None


def audit_cases(
    task: str, verifier: Verifier, form: str, rows: Sequence[Row], *, numbers: bool = False
) -> Iterator[Case]:
    """All cases of a task, in a form, as docs/audit.md lists them; of the adversarial ones the shortest first.

    No adversarial text has lone surrogates, which no tokenizer produces. Mathematics: also the pairs of
    ``labelled_math.json``, except those whose label is a matter of policy, and their golds; with ``numbers`` only golds
    that are numbers, and only numbers as right answers. A verifier that reads no reference has *gold*, *empty* and
    *adversarial* only.
    """
    rows = [row for row in rows if is_number(row.reference)] if numbers else rows
    forms = {"its form": form, "bare": FORMS["bare"]}
    adversarial = built_in(forms, "*.json" if task == "math_answer" else "general.json")
    shortest_first = dict(sorted(adversarial.items(), key=lambda entry: len(entry[1])))
    decoded = {name: text for name, text in shortest_first.items() if text == text.encode(errors="ignore").decode()}
    golds = [gold_in("{}", verifier, row.reference) or "" for row in rows]
    for place, (row, gold) in enumerate(zip(rows, golds, strict=True)):
        yield Case("gold", "gold", row, form.format(gold))
        yield Case("empty", "nothing", row, "")
        yield from (Case("empty", f"nothing ({name})", row, each.format("")) for name, each in forms.items())
        if not verifier.reads_reference:
            continue
        yield from (Case("echo", f"question ({name})", row, each.format(row.question)) for name, each in forms.items())
        for formula in _FORMULA.findall(row.question):
            yield Case("echo", f"${formula}$ boxed", row, FORMS["boxed"].format(formula))
        if (wrong := verifier.wrong_completion(row.reference)) is not None:
            yield Case("wrong", "a plain wrong answer", row, form.format(_answer(wrong)))
        other = next(each for each in (*golds[place + 1 :], *golds[:place]) if each != gold)
        yield Case("wrong", "another row's gold", row, form.format(other))
        doubt = f"Is it {gold}? No."
        thinks = form in FORMS.values() and _THOUGHT in form
        doubted = form.format(other)
        doubted = doubted.replace(_THOUGHT, doubt, 1) if thinks else f"{doubt}\n{doubted}"
        yield Case("beside", "the gold ruled out, then another answer", row, doubted)
        if task == "knights_knaves":
            yield Case("beside", "it is false that the gold", row, form.format(f"It is false that {gold}"))
            swapped = f"{gold}\nActually swap: each of them is the opposite."
            yield Case("beside", "the gold, then a swap", row, form.format(swapped))
        if task != "code_tests":  # two functions one after the other are one right program
            yield Case("beside", "the gold or another", row, form.format(f"{gold} or {other}"))
    for place, (name, text) in enumerate(decoded.items()):
        yield Case("adversarial", name, rows[place % len(rows)], text)
    if verifier.reads_reference and (thought := re.search(r"<think>\s*\w+\s*</think>\s*", form)):
        for row in rows[:3]:
            for name, other in _THOUGHTS.items():
                unthought = gold_in(form.replace(thought[0], other), verifier, row.reference)
                yield Case("thought", name, row, unthought or "")
    if task == "math_answer":
        pairs = [pair for pair in _read("labelled_math.json") if "refused" not in pair]
        if numbers:
            pairs = [p for p in pairs if is_number(p["gold"]) and (is_number(p["answer"]) or not p["right"])]
        for gold, name in {pair["gold"]: pair["class"] for pair in reversed(pairs)}.items():
            yield Case("gold", name, Row("What is it?", gold), gold_in(form, verifier, gold) or "")
        for pair in pairs:
            kind: Kind = "written" if pair["right"] else "wrong"
            yield Case(kind, pair["class"], Row("What is it?", pair["gold"]), form.format(pair["answer"]))
    if task == "code_tests":
        for row in rows:
            tests = "stdin" if "inputs" in row.reference and "fn_name" not in row.reference else "function"
            if tests == "stdin" or row.reference.get("fn_name") == "running_total":
                for exploit in _read("code_exploits.json"):
                    if tests in exploit["kinds"]:
                        yield Case("adversarial", exploit["name"], row, form.format("\n".join(exploit["code"])))


def _read(name: str) -> list[dict[str, Any]]:
    return json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))  # type: ignore[no-any-return]
