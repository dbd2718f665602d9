"""Answers that must not reach a scorer: those that it would run as code, or pay in spite of other words.

The scorers below pass the answer to ``eval`` or to sympy's ``parse_expr``, which is ``eval``. Code that runs there
could write any score, whatever sandbox is around both. So only inert texts are passed on: numbers and operators,
formulas over one-letter names and known functions, or literals without calls.

The scorer of ``knights_knaves`` finds pairs of a name and a role in any text, and pays "… or 5", "if …" and "never: …".
So the answer may have only words of the entry's own answer, and "is", "a", "an" and "and". Others find the right answer
beside any words ("not 288", "288 or 560"): theirs may have no more words than the entry's own. Three pay texts that are
not the answer, "True" for "False" among them: theirs has to be the entry's own.
"""

import re

MAX_CHARACTERS = 20_000

EVALUATED = {
    "countdown": "arithmetic",
    "puzzle24": "arithmetic",
    "simple_integration": "formula",
    "intermediate_integration": "formula",
    "polynomial_multiplication": "formula",
    "string_insertion": "literal",
    "binary_matrix": "literal",
    "spiral_matrix": "literal",
    "n_queens": "literal",
}
"""Task → the kind of text that its scorer evaluates."""

PAYS_BESIDE = {
    *("advanced_geometry", "gsm_symbolic", "kakurasu", "polynomial_equations"),
    *("quantum_lock", "sokoban", "survo", "word_sorting"),
}
"""Tasks whose scorer pays the right answer among others."""
PAYS_OTHERS = {"game_of_life_halting", "letter_jumble", "spell_backward"}
"""Tasks whose scorer pays answers that are not right."""

_TRIGONOMETRIC = {f"{arc}{name}" for arc in ("", "a") for name in ("sin", "cos", "tan", "cot", "sec", "csc")}
_HYPERBOLIC = {f"{name}h" for name in _TRIGONOMETRIC}
_FUNCTIONS = {"exp", "log", "ln", "sqrt", "Abs", "pi", "erf", "erfi", "li", "Ei", "Si", "Ci", "gamma"}
_KNOWN = _FUNCTIONS | _TRIGONOMETRIC | _HYPERBOLIC
_NAME = re.compile(r"[^\W\d]\w*")
_RUN = re.compile(r"\d+(?:\.\d+)?|[^\W\d]+")
_STOPS = str.maketrans(".,()", "    ")
_ATTRIBUTE = re.compile(r"\.\s*[^\W\d]|[^\W\d]\s*\.|\)\s*\.")
_ARITHMETIC = re.compile(r"[0-9+\-*/()\s]*")
_FORMULA = re.compile(r"[A-Za-z0-9+\-*/^().,\s]*")
_IN_NO_LITERAL = re.compile(r"[()=@:;*\\{}]|__|\b(?:lambda|import|for|if|await|yield)\b")


def objection(task: str, answer: str, gold: object = None) -> str:
    """Why ``answer`` must not reach the scorer of ``task``, whose own answer is ``gold``; empty if it may."""
    if len(answer) > MAX_CHARACTERS:
        return f"an answer of {len(answer)} characters is not read (at most {MAX_CHARACTERS})"
    kind = EVALUATED.get(task)
    if kind == "arithmetic" and (not _ARITHMETIC.fullmatch(answer) or re.search(r"\*\s*\*|/\s*/", answer)):
        return "the answer holds more than integers, + - * / and brackets"
    if kind == "formula":
        unknown = {name for name in _NAME.findall(answer) if len(name) > 1 and name not in _KNOWN}
        if not _FORMULA.fullmatch(answer) or _ATTRIBUTE.search(answer) or unknown:
            return "the answer is not a formula of numbers, one-letter names and known functions"
    if kind == "literal" and (_IN_NO_LITERAL.search(answer) or _ATTRIBUTE.search(answer)):
        return "the answer holds what a program has and a list has not"
    if not isinstance(gold, str):
        return ""
    if task in PAYS_OTHERS and answer.casefold() != gold.casefold():
        return f"the answer is not {gold!r:.80}"
    if task in PAYS_BESIDE and len(_RUN.findall(answer)) > len(_RUN.findall(gold)):
        return "the answer holds more words or numbers than the right one"
    if task == "knights_knaves":
        foreign = sorted(_words(answer) - _words(gold) - {"is", "a", "an", "and"})
        return f"the answer holds {foreign[0][:40]!r}, which is not a word of the right one" if foreign else ""
    return ""


def _words(text: str) -> set[str]:
    """Words, as the scorer of ``knights_knaves`` splits them."""
    return set(text.lower().translate(_STOPS).split())
