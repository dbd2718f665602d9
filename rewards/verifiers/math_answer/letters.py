r"""Letters that are more than commuting numbers: matrices, vectors, functions, derivatives, arbitrary constants.

The parser of LaTeX takes every letter for a real number, drops primes and reads ``f(x+1)`` as a product. What it would
lose is put aside under a symbol of its own before, and put back after it: ``f'(2x)`` as a function of ``2x``, ``x'``
as another letter than ``x``, ``\frac{dy}{dx}`` as one thing.
"""

import re
from collections.abc import Callable
from itertools import permutations
from typing import Any

import sympy

from evenkeel.rewards.verifiers.math_answer.notation import NOTATION, matching_end, split_outside_brackets

_GREEK = "|".join(sorted(NOTATION["greek"].keys() - {"pi"}, key=len, reverse=True))
_LETTER = rf"(?:[A-Za-z]|\\(?:{_GREEK}|ell|hbar)(?![a-zA-Z]))"
_INDEX = r"(?: ?_ ?(?:[A-Za-z0-9]|\{[^{}]*\}))"
_PRIME = re.compile(r" ?\^ ?(?:\{ ?((?:\\prime ?)+)\}|(\\prime(?![a-zA-Z])))")
_D = r"(?:d|\\partial ?) ?"
_POWER = r"(?: ?\^ ?(?:\{ ?\d ?\}|\d))?"
_DERIVATIVE = re.compile(
    rf"\\frac ?\{{ ?{_D}{_POWER} ?{_LETTER}?{_INDEX}? ?\}} ?\{{ ?(?:{_D}{_LETTER}{_INDEX}?{_POWER} ?)+\}}"
)
_TOKEN = re.compile(rf"\\[a-zA-Z]+|{_LETTER}|.", re.DOTALL)
_APPLIED = re.compile(
    rf"(?P<name>{_LETTER}{_INDEX}?|\\gcd)(?P<primes>'*)"
    rf"(?P<power> ?\^ ?\{{ ?(?:-1|\((?:\d+|[a-z])\)) ?\}})?{_INDEX}? ?(?=\()"
)
_PRIMED = re.compile(rf"{_LETTER}{_INDEX}?'+{_INDEX}?")
_TRANSPOSED = re.compile(
    r"\\[a-zA-Z]+|(?:(?!e)[A-Za-z](?:_\w)?|\{ ?[A-Za-z] ?\}|\([^()\d]*[A-Z][^()\d]*\)) ?"
    r"\^ ?(?P<mark>\{ ?(?:T|\\top|\\dagger|\\intercal|\*|\\cdot|\\text ?\{ ?T ?\}) ?\}|T(?![a-z])|\\top|\\dagger|\*)"
)
_VECTOR = (
    rf"(?:(?<![\\A-Za-z]){_LETTER}(?![a-zA-Z])"
    rf"|\\(?:vec|hat|overline) ?\{{\w+\}}|(?<![\w}}^]){{ ?[A-Za-z] ?}}){_INDEX}?"
)
_NEXT = rf"(?={_VECTOR}|\{{ ?[A-Za-z] ?\}}|\()"
_UNKEPT = re.compile(rf"(?:{_VECTOR}|\)) ?\\times(?![a-zA-Z]) ?{_NEXT}|'|! ?!|dots|\.\.")  # products of vectors, too
_ONE_LETTER = re.compile(rf"\\Delta ?{_LETTER}{_INDEX}?|(\\vec ?\{{\w+\}}) ?\\cdot ?(\\vec ?\{{\w+\}})")
# P(A), E(X^2), but not P(1+r)
_CHANCE = re.compile(r"(?<![\\A-Za-z])[PE] ?\((?P<of>[^()]*[A-Z][^()]*)\)")
_OF_A_MATRIX = re.compile(
    r"\\(?P<of>det|dim|ker|deg) ?(?:\( ?(?P<inside>[^()]*[A-Za-z][^()]*)\)|(?P<bare>[A-Z](?![a-z])))"
)
# What its parser would take for i, for an exponent, for Euler's constant, or not at all.
_NO_CONSTANT = re.compile(
    rf"(?P<letter>{_LETTER}{_INDEX}|[EI]|\\(?:gamma|Gamma)(?![a-zA-Z])(?! ?\())|\\[a-zA-Z]+|_ ?(?:\{{[^{{}}]*\}}|\w)"
)
_NO_LETTERS = re.compile(r"\\text ?\{[^{}]*\}|\\[a-zA-Z]+|(?<![A-Z])(?<![A-Z] )_ ?(?:\{[^{}]*\}|\w)")
_INDEXED_CAPITAL = re.compile(rf"[A-Z]{_INDEX}?")
# By how their names start: all letters beside capitals with hats and a conjugate, two marked in a term.
_OPERATORS = {name: re.compile(pattern) for name, pattern in NOTATION["operators"].items()}
_ORDER = re.compile(rf"{_LETTER} ?\^ ?\{{ ?\( ?(?:\d+|[a-z]) ?\) ?\}}")
_NUMBERS = re.compile(
    r"\\pi(?![a-z])"
    r"|\\frac ?\{[^{}]*[A-Z][^{}]*\} ?\{ ?(?!d[a-zA-Z]|\\partial)[^{}]*[a-z]"  # \frac{k Q_1 Q_2}{r^2}
    r"|\\frac ?\{[^{}]*\} ?\{[^{}]*[A-Z]|/ ?\(?[^()]*[A-Z]"
    r"|\\sqrt ?\{[^{}]*[A-Z]|\\(?:sin|cos|tan|log|ln) ?\(?[A-Z]"
)
_INVERTED = re.compile(rf"[A-Z]{_INDEX}? ?\^ ?\{{ ?-|\) ?\^ ?\{{ ?- ?1 ?\}}")
_CONSTANT = re.compile(r"[cCkKAB](?:_[1-9])?")
_NUMBERED_CONSTANT = re.compile(r"(?:^|[=+-]) ?([cC]_[1-9])")
_ADDED_CONSTANT = re.compile(r"(?:^|[+=-]) ?([cK])(?= ?[+-]| ?$)|(?<![A-Za-z\\])(c)(?= ?e ?\^)")
_TWO_SOLUTIONS = re.compile(r"(?<![A-Za-z\\])([AB]) ?(?:e ?\^|\\(?:cos|sin|cosh|sinh|ln)(?![a-z]) ?\(?\d*[xt])")
_INTEGRATED = re.compile(r"\+ ?C ?$|^ ?C ?\+|(?:^|=) ?C ?e ?\^")
_ONE_CAPITAL = re.compile(r"(?<![A-Za-z\\}])(?<!\\sin )(?<!\\cos )(?<!\\tan )(?<!\()C(?![A-Z_^(])")
_FUNCTION = re.compile(r"\\(?:ln|log|sin|cos|tan|sec|arctan|arcsin|sinh|cosh|tanh|exp|sqrt)(?![a-z])|e ?\^")
_SQUARE = re.compile(r"(?<!\\sqrt)(?<!\\sqrt )\[([^\[\]()]+)\]")  # [x] may be a floor
_OFTEN_FUNCTION = re.compile(r"[huwpFGHPQ]|\\(?:phi|psi|zeta|sigma|tau|mu|omega|chi|Psi|delta|theta|Theta)")
_OF_A_VARIABLE = re.compile(r"[\dxtnkmsz ,.+*^{}-]+")
_SEQUENCE = re.compile(r"[E-JLP-Zpquvwy]")
_OF_AN_INDEX = re.compile(r"[\dn +-]*n[\dn +-]*")
_SEGMENT = re.compile(r"(?<![A-Za-z\\])[A-Z]{2}(?![A-Za-z])(?! ?[_(])")
_WEIGHED = re.compile(r"(?:m|M|\\rho)(?: ?_ ?\{?\w\}?)? ?$")  # of m g(a + b)
_APPLIED_PLAINLY = re.compile(  # y(0), F(b), but not a(-1)^n
    rf"(?<![\\A-Za-z])(?![ei])(?P<name>{_LETTER}){_INDEX}? ?"
    r"\( ?(?:(?!(?P=name))[a-zA-Z]|-?[\d.]+|-?\\frac ?\{ ?\d+ ?\} ?\{ ?\d+ ?\}) ?\)(?! ?\^)"
)

Parser = Callable[[str], Any]
SEGMENTS = ("segments",)  # AB is one length, and BA the same


class NotUnderstoodError(ValueError):
    """A mark that has no reading here; such a text equals its own text only."""


def may_not_commute(gold: str, answer: str) -> tuple[str, ...]:
    """How the names of letters start that may not commute, capital ones and operators, and functions, as ``F(``."""
    both = f"{gold} , {answer}"
    segments = set(_SEGMENT.findall(gold))
    if len({"".join(sorted(each)) for each in segments}) == len(segments) > 1 and re.search(
        r"^(?!.*\\vec).*(?:\\frac|/)", gold
    ):
        return SEGMENTS
    functions = {f"{match['name']}(" for match in _APPLIED_PLAINLY.finditer(both)}
    operators = (*functions, *(name for name, pattern in _OPERATORS.items() if pattern.match(gold)))
    capitals = set(_INDEXED_CAPITAL.findall(_NO_LETTERS.sub(" ", _CHANCE.sub(" ", both))))
    if len(capitals) < 2 or (_NUMBERS.search(gold) and not _INVERTED.search(gold)):
        return operators
    return (*operators, *sorted({capital[0] for capital in capitals}))


def parsed_with_marks(latex: str, parse: Parser, noncommuting: tuple[str, ...] = ()) -> Any:
    """What ``parse`` makes of ``latex``, with what it would lose; ``None`` where either does not understand it."""
    kept: dict[str, Any] = {}
    try:
        parsed = parse(_put_aside(latex, kept, parse, noncommuting))
    except NotUnderstoodError:
        return None
    if not isinstance(parsed, sympy.Basic):
        return parsed
    found: dict[Any, Any] = {}
    for symbol in parsed.free_symbols:
        name = str(symbol)
        if name in kept:
            found[symbol] = kept[name]
        elif name.startswith(noncommuting):
            found[symbol] = sympy.Symbol(name, commutative=False)
        elif name in ("z", "w") or f"|{name}|^" in re.sub(r"[{}\s]", "", latex):  # complex: |z|^2 is not z^2
            found[symbol] = sympy.Symbol(name)
    replaced = parsed.xreplace(found)
    return replaced if all(value.is_commutative for value in found.values()) else replaced.doit()


def _put_aside(latex: str, kept: dict[str, Any], parse: Parser, noncommuting: tuple[str, ...]) -> str:
    def symbol(value: Any) -> str:
        name = f"ZZ{chr(ord('a') + len(kept) // 26)}{chr(ord('a') + len(kept) % 26)}"
        kept[f"vec{{{name}}}"] = value
        return f"\\vec{{{name}}}"

    def letter(text: str) -> str:
        name = re.sub(r"[\s{}]", "", text)
        apart = name.startswith(noncommuting)
        if apart:
            return symbol(sympy.Symbol(name, commutative=False))
        return symbol(sympy.Symbol(name) if name[0] in "zw" else sympy.Symbol(name, real=True))

    def inner(text: str) -> Any:
        value = parsed_with_marks(text, parse, noncommuting)
        if value is None:
            raise NotUnderstoodError(text)
        return value

    latex = _PRIME.sub(lambda match: "'" * (match[0].count("prime")), latex)
    latex = _CHANCE.sub(lambda match: symbol(sympy.Symbol(re.sub(r"\s", "", match[0]), real=True)), latex)
    latex = _OF_A_MATRIX.sub(
        lambda match: symbol(
            sympy.Symbol(re.sub(r"\s", "", f"{match['of']} {match['inside'] or match['bare']}"), real=True)
        ),
        latex,
    )
    latex = _ONE_LETTER.sub(lambda match: letter("|".join(sorted(filter(None, match.groups()))) or match[0]), latex)
    if noncommuting == SEGMENTS:
        latex = _SEGMENT.sub(lambda match: letter("".join(sorted(match[0]))), latex)
    latex = _DERIVATIVE.sub(lambda match: letter(match[0]), latex)
    functions = {"f", "g", "\\gcd", "\\Phi", *(name[:-1] for name in noncommuting if name.endswith("("))}
    latex = _with_applications(latex, symbol, inner, functions)
    latex = _SQUARE.sub(lambda match: symbol(sympy.Function("square", real=True)(inner(match[1]))), latex)
    latex = _ORDER.sub(lambda match: letter(match[0]), latex)  # y^{(3)} is a derivative
    latex = _PRIMED.sub(lambda match: letter(match[0]), latex)
    latex = _NO_CONSTANT.sub(lambda match: letter(match["letter"]) if match["letter"] else match[0], latex)
    if _UNKEPT.search(latex) or any(match["mark"] for match in _TRANSPOSED.finditer(latex)):
        raise NotUnderstoodError(latex)
    return latex


def _with_applications(latex: str, symbol: Callable[[Any], str], inner: Parser, functions: set[str]) -> str:
    """Each ``f(…)`` as one symbol."""
    pieces, position = list[str](), 0
    while position < len(latex):
        match = _APPLIED.match(latex, position)
        end = matching_end(latex, match.end()) if match else -1
        inside = latex[match.end() + 1 : end - 1] if match else ""
        if match and match["name"] == "g" and _WEIGHED.search(latex[:position]):
            match = None
        if match and (match["primes"] or _is_function(match["name"].partition("_")[0].strip(), inside, functions)):
            if end < 0:
                raise NotUnderstoodError(latex)
            name = re.sub(r"[\s{}]", "", match["name"] + match["primes"] + (match["power"] or ""))
            arguments = [inner(piece) for piece in split_outside_brackets(inside, re.compile(","))]
            if name == "\\gcd":
                arguments.sort(key=str)
            pieces.append(symbol(sympy.Function(name, real=True)(*arguments)))
            position = end
            continue
        token = _TOKEN.match(latex, position)
        assert token is not None
        pieces.append(token[0])
        position = token.end()
    return "".join(pieces)


def _is_function(letter: str, inside: str, functions: set[str]) -> bool:
    """Whether a letter before a bracket is a function, ``h(x+1)`` and ``T(n-1)``, and no factor, ``h(a+b)``."""
    if letter in functions:
        return letter != "\\gcd" or re.search("[a-zA-Z]", inside) is not None
    if letter in inside or not inside.strip():
        return False
    if _OFTEN_FUNCTION.fullmatch(letter):
        return _OF_A_VARIABLE.fullmatch(inside) is not None
    return _SEQUENCE.fullmatch(letter) is not None and _OF_AN_INDEX.fullmatch(inside) is not None


def renamed_constants(gold: str, wanted: set[str], written: set[str]) -> list[dict[str, str]]:
    """How the answer's arbitrary constants may be renamed to the gold's: ``A, B`` to ``C_1, C_2``.

    The gold has some if it looks like an antiderivative or the solution of a differential equation (`_solves`):
    ``c_1, c_2``, ``A`` and ``B`` before two functions, a single ``C``, or what is added at the end of a sum. A small
    ``c`` may be a parameter, so that it is none but ``C``.
    """
    numbered = set(_NUMBERED_CONSTANT.findall(re.sub(r"_ ?\{ ?(\d) ?\}", r"_\1", gold)))
    # given ones, not arbitrary
    if any(len(re.findall(name[0] + " ?_", gold)) > len(numbered) for name in numbered):
        return []
    pair = set(_TWO_SOLUTIONS.findall(gold))
    single = {match[1] or match[2] for match in _ADDED_CONSTANT.finditer(gold)}
    if len(_ONE_CAPITAL.findall(gold)) == 1:
        single = {"C"}
    ours = sorted((numbered or (pair if len(pair) == 2 else single)) & wanted)
    others = wanted - set(ours)
    theirs = sorted(name for name in written - others if _CONSTANT.fullmatch(name))
    if not ours or len(ours) != len(theirs) or not _solves(gold, others) or (ours == theirs and not numbered):
        return []
    if len(ours) == 1 and not (theirs in (["C"], ["c"]) or (ours == ["C"] and _INTEGRATED.search(gold))):
        return []
    return [dict(zip(order, ours, strict=True)) for order in permutations(theirs)]


def _solves(gold: str, letters: set[str]) -> bool:
    """Whether, beside its constants, ``gold`` holds one variable, or an equation two; parameters beside a function."""
    variables = letters & {"x", "t", "y", "u", "z", "theta"}
    if len(variables) != 1 and not ("=" in gold and variables in ({"x", "y"}, {"t", "y"}, {"t", "x"})):
        return False
    return variables == letters or _FUNCTION.search(gold) is not None
