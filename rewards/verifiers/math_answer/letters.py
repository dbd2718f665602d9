r"""Letters that are more than commuting numbers: matrices, vectors, functions, derivatives, arbitrary constants.

The parser of LaTeX takes every letter for a real number, drops primes and reads ``f(x+1)`` as a product. What it would
lose is put aside under a symbol of its own before, and put back after it: ``f'(2x)`` as a function of ``2x``, ``x'``
as another letter than ``x``, ``n!!`` as the double factorial, ``\frac{dy}{dx}`` as one thing.

Where letters may not commute, only what needs no commuting is equal. They may not: capital letters that are
multiplied, unless the gold divides by a letter or puts one under a root or into a function (``\frac{nRT}{V}`` holds
numbers); and every letter beside a transpose or a cross product.
"""

import re
from collections.abc import Callable
from itertools import permutations
from typing import Any

import sympy

from evenkeel.rewards.verifiers.math_answer.notation import matching_end, split_outside_brackets

_LETTER = r"(?:[A-Za-z]|\\(?:alpha|beta|gamma|phi|varphi|psi|lambda|mu|rho|sigma|tau|theta|omega|eta|xi|zeta|Phi|Psi))"
_INDEX = r"(?: ?_ ?(?:[A-Za-z0-9]|\{[^{}]*\}))"
_PRIME = re.compile(r" ?\^ ?(?:\{ ?((?:\\prime ?)+)\}|(\\prime(?![a-zA-Z])))")
_D = r"(?:d|\\partial ?) ?"
_POWER = r"(?: ?\^ ?(?:\{ ?\d ?\}|\d))?"
_DERIVATIVE = re.compile(
    rf"\\frac ?\{{ ?{_D}{_POWER} ?{_LETTER}?{_INDEX}? ?\}} ?\{{ ?(?:{_D}{_LETTER}{_INDEX}?{_POWER} ?)+\}}"
)
_TOKEN = re.compile(rf"\\[a-zA-Z]+|{_LETTER}|.", re.DOTALL)
_APPLIED = re.compile(
    rf"(?P<name>{_LETTER}{_INDEX}?)(?P<primes>'*)(?P<power> ?\^ ?\{{ ?(?:-1|\((?:\d+|[a-z])\)) ?\}})?{_INDEX}? ?(?=\()"
)
_PRIMED = re.compile(rf"{_LETTER}{_INDEX}?'+{_INDEX}?")
_DOUBLE_FACTORIAL = re.compile(r"(?P<plain>[A-Za-z]|\d+) ?! ?!(?! ?!)")
_TRANSPOSED = re.compile(
    r"(?P<command>\\[a-zA-Z]+)|(?P<base>(?!e)[A-Za-z](?:_\w)?|\{ ?[A-Za-z] ?\}|\([^()\d]*[A-Z][^()\d]*\)) ?"
    r"\^ ?(?P<mark>\{ ?(?:T|\\top|\\dagger|\\intercal|\*|\\cdot|\\text ?\{ ?T ?\}) ?\}|T(?![a-z])|\\top|\\dagger|\*)"
)
_FACTOR_OF_MATRICES = re.compile(rf"(?P<name>[A-Z]{_INDEX}?)(?P<transposed> ?\^ ?(?:\{{ ?(?:T|\\top) ?\}}|T|\\top))? ?")
_TERM_OF_MATRICES = re.compile(rf" ?([+-]?) ?((?:{re.sub('[?]P<.*?>', '?:', _FACTOR_OF_MATRICES.pattern)})+)")
_VECTOR = (
    rf"(?:(?<![\\A-Za-z]){_LETTER}(?![a-zA-Z])|\\(?:vec|hat|overline) ?\{{\w+\}}|(?<![\w}}^]){{ ?[A-Za-z] ?}}){_INDEX}?"
)
_NEXT = rf"(?={_VECTOR}|\{{ ?[A-Za-z] ?\}}|\()"
_CROSS = re.compile(rf"(?:(?P<left>{_VECTOR})|\)) ?\\times(?![a-zA-Z]) ?{_NEXT}")
_CROSS_OF_TWO = re.compile(
    rf"(?<!\\times )(?<!\\times)(?P<left>{_VECTOR}) ?\\times(?![a-zA-Z]) ?(?P<right>{_VECTOR})(?! ?\\times)"
)
_CHANCE = re.compile(r"(?<![\\A-Za-z])[PE] ?\((?P<of>[^()]*[A-Z][^()]*)\)")  # P(A), E(X^2), but not P(1+r)
_OF_A_MATRIX = re.compile(
    r"\\(?P<of>det|dim|ker|deg) ?(?:\( ?(?P<inside>[^()]*[A-Za-z][^()]*)\)|(?P<bare>[A-Z](?![a-z])))"
)
_CAPITAL_I = re.compile(r"(?P<other>\\[a-zA-Z]+|_ ?(?:\{[^{}]*\}|\w))|I")
_NO_LETTERS = re.compile(r"\\text ?\{[^{}]*\}|\\[a-zA-Z]+|(?<![A-Z])(?<![A-Z] )_ ?(?:\{[^{}]*\}|\w)")
_INDEXED_CAPITAL = re.compile(rf"[A-Z]{_INDEX}?")
_OPERATOR = re.compile(r"\\hat ?\{ ?[A-Z] ?\}.*\\hat ?\{ ?[A-Z] ?\}")
_CONJUGATED = re.compile(
    r"(?=.*([a-z]) ?\^ ?\{ ?-1 ?\})(?=.*\1(?! ?\^ ?\{ ?-))(?:[a-z ()]|\^ ?\{ ?-?\d ?\})*"
)  # g^{-1}hg
_ORDER = re.compile(rf"{_LETTER} ?\^ ?\{{ ?\( ?(?:\d+|[a-z]) ?\) ?\}}")
_NUMBERS = re.compile(
    r"\\pi(?![a-z])"
    r"|\\frac ?\{[^{}]*[A-Z][^{}]*\} ?\{ ?(?!d[a-zA-Z]|\\partial)[^{}]*[a-z]"  # \frac{k Q_1 Q_2}{r^2}
    r"|\\frac ?\{[^{}]*\} ?\{[^{}]*[A-Z]|/ ?\(?[^()]*[A-Z]|\\sqrt ?\{[^{}]*[A-Z]|\\(?:sin|cos|tan|log|ln) ?\(?[A-Z]"
)
_INVERTED = re.compile(rf"[A-Z]{_INDEX}? ?\^ ?\{{ ?-|\) ?\^ ?\{{ ?- ?1 ?\}}")
_CONSTANT = re.compile(r"[cCkKAB](?:_\{?\d\}?)?")
_ARBITRARY = re.compile(
    r"(?:^|[+=-]) ?([cCK])(?= ?[+-]| ?$)|(?<![A-Za-z\\])([cCkK] ?_ ?(?:\{ ?[1-9] ?\}|[1-9]))"
    r"|(?<![A-Za-z\\])(C)(?= ?e ?\^)"
)
_TWO_SOLUTIONS = re.compile(r"(?<![A-Za-z\\])([AB]) ?(?:e ?\^|\\(?:cos|sin|cosh|sinh|ln)(?![a-z]))")
_ONE_CAPITAL = re.compile(r"(?<![A-Za-z\\}])(?<!\\sin )(?<!\\cos )(?<!\\tan )(?<!\()C(?![A-Z_^(])")
_ALWAYS_FUNCTIONS = frozenset("fg")
_OFTEN_FUNCTIONS = frozenset("hFGH")

Parser = Callable[[str], Any]
ALL = "all"
"""That every letter may be one that does not commute."""


class NotUnderstoodError(ValueError):
    """A mark that has no reading here; such a text equals its own text only."""


def may_not_commute(gold: str, answer: str) -> str:
    """The capital letters that may not commute, `ALL`, or nothing."""
    both = f"{gold} , {answer}"
    if _CROSS.search(both) or any(match["mark"] for match in _TRANSPOSED.finditer(both)):
        return ALL
    if _OPERATOR.search(gold) or _CONJUGATED.fullmatch(gold):
        return ALL
    capitals = set(_INDEXED_CAPITAL.findall(_NO_LETTERS.sub(" ", _CHANCE.sub(" ", both))))
    if len(capitals) < 2 or (_NUMBERS.search(gold) and not _INVERTED.search(gold)):
        return ""
    return "".join(sorted({capital[0] for capital in capitals}))


def parsed_with_marks(latex: str, parse: Parser, noncommuting: str = "") -> Any:
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
        elif noncommuting == ALL or name[0] in noncommuting:
            found[symbol] = sympy.Symbol(name, commutative=False)
    return parsed.xreplace(found).doit() if noncommuting and found else parsed.xreplace(found)


def _put_aside(latex: str, kept: dict[str, Any], parse: Parser, noncommuting: str) -> str:
    def symbol(value: Any) -> str:
        name = f"ZZ{chr(ord('a') + len(kept) // 26)}{chr(ord('a') + len(kept) % 26)}"
        kept[f"vec{{{name}}}"] = value
        return f"\\vec{{{name}}}"

    def letter(text: str) -> str:
        name = re.sub(r"[\s{}]", "", text)
        apart = noncommuting == ALL or name[0] in noncommuting
        return symbol(sympy.Symbol(name, commutative=False) if apart else sympy.Symbol(name, real=True))

    def inner(text: str) -> Any:
        value = parsed_with_marks(text, parse, noncommuting)
        if value is None:
            raise NotUnderstoodError(text)
        return value

    def transposed(match: re.Match[str]) -> str:
        if match["command"]:
            return match[0]
        mark = "*" if re.search("dagger|cdot|[*]", match["mark"]) else "T"
        terms = _TERM_OF_MATRICES.findall(match["base"][1:-1]) if match["base"].startswith("(") else []
        if "".join(map("".join, terms)).replace(" ", "") != match["base"][1:-1].replace(" ", "") or not terms:
            return letter(f"{match['base']}^{mark}")
        return "(" + "".join(sign + transposed_product(factors, mark) for sign, factors in terms) + ")"

    def transposed_product(factors: str, mark: str) -> str:
        """(AB)^T is B^T A^T, and (A^T)^T is A."""
        found = reversed(list(_FACTOR_OF_MATRICES.finditer(factors)))
        return " ".join(each["name"] if each["transposed"] else letter(f"{each['name']}^{mark}") for each in found)

    latex = _PRIME.sub(lambda match: "'" * (match[0].count("prime")), latex)
    latex = _CHANCE.sub(lambda match: symbol(sympy.Symbol(re.sub(r"\s", "", match[0]), real=True)), latex)
    latex = _OF_A_MATRIX.sub(
        lambda match: symbol(
            sympy.Symbol(re.sub(r"\s", "", f"{match['of']} {match['inside'] or match['bare']}"), real=True)
        ),
        latex,
    )
    latex = _DERIVATIVE.sub(lambda match: letter(match[0]), latex)
    latex = _with_applications(latex, symbol, inner)
    latex = _ORDER.sub(lambda match: letter(match[0]), latex)  # y^{(3)} is a derivative
    latex = _PRIMED.sub(lambda match: letter(match[0]), latex)
    latex = _DOUBLE_FACTORIAL.sub(lambda match: symbol(_double_factorial(inner(match["plain"]))), latex)
    latex = _CAPITAL_I.sub(lambda match: match["other"] or letter("I"), latex)  # the parser's imaginary unit
    latex = _TRANSPOSED.sub(transposed, _with_double_factorials(latex, symbol, inner))
    if "'" in latex or re.search(r"! ?!", latex):
        raise NotUnderstoodError(latex)
    if noncommuting == ALL:
        if any(match["left"] is None or latex[match.end()] == "(" for match in _CROSS.finditer(latex)):
            raise NotUnderstoodError(latex)
        latex = _CROSS_OF_TWO.sub(_in_order, latex)
        latex = _CROSS.sub(lambda match: f"{match['left']}\\cdot {letter('times')}\\cdot ", latex)
    return latex


def _in_order(cross: re.Match[str]) -> str:
    """``b × a`` as ``−(a × b)``."""
    left, right = (re.sub(r"\s", "", cross[side]) for side in ("left", "right"))
    return cross[0] if left <= right else f"((-1)\\cdot ({right} \\times {left}))"


def _with_applications(latex: str, symbol: Callable[[Any], str], inner: Parser) -> str:
    """Each ``f(…)`` as one symbol."""
    pieces, position = [], 0
    functions = _ALWAYS_FUNCTIONS | (
        _OFTEN_FUNCTIONS if re.search(r"(?<![\\A-Za-z])[fg]'* ?\(", latex) else frozenset()
    )
    while position < len(latex):
        match = _APPLIED.match(latex, position)
        if match and (match["primes"] or match["name"][0] in functions):
            end = matching_end(latex, match.end())
            if end < 0:
                raise NotUnderstoodError(latex)
            name = re.sub(r"[\s{}]", "", match["name"] + match["primes"] + (match["power"] or ""))
            arguments = split_outside_brackets(latex[match.end() + 1 : end - 1], re.compile(","))
            pieces.append(symbol(sympy.Function(name, real=True)(*map(inner, arguments))))
            position = end
            continue
        token = _TOKEN.match(latex, position)
        assert token is not None
        pieces.append(token[0])
        position = token.end()
    return "".join(pieces)


def _with_double_factorials(latex: str, symbol: Callable[[Any], str], inner: Parser) -> str:
    """``(…)!!`` as the double factorial."""
    position = 0
    while (start := latex.find("(", position)) >= 0:
        position, end = start + 1, matching_end(latex, start)
        if end < 0:
            return latex
        if doubled := re.compile(r" ?! ?!(?! ?!)").match(latex, end):
            latex = (
                latex[:start] + symbol(_double_factorial(inner(latex[start + 1 : end - 1]))) + latex[doubled.end() :]
            )
    return latex


def _double_factorial(of: Any) -> Any:
    """Of a number its value; of a letter no function that sympy would evaluate between the integers."""
    return sympy.factorial2(of) if of.is_Integer else sympy.Function("double_factorial", real=True)(of)


def needs_no_commuting(one: Any, other: Any) -> bool:
    """Whether no term of either multiplies two letters that do not commute."""
    terms = sympy.Add.make_args(sympy.expand(one)) + sympy.Add.make_args(sympy.expand(other))
    return all(len(term.args_cnc()[1]) < 2 and not _is_inverse(term) for term in terms)


def _is_inverse(term: Any) -> bool:
    return any(not power.is_commutative and not power.exp.is_Integer for power in term.atoms(sympy.Pow))


def renamed_constants(gold: str, wanted: set[str], written: set[str]) -> list[dict[str, str]]:
    """How the answer's arbitrary constants may be renamed to the gold's: ``A, B`` to ``C_1, C_2``.

    The gold's are those that it adds at the end of a sum (``+ C``), numbers (``c_1, c_2``), or writes before an
    exponential (``C e^x``). What is no such constant keeps its name.
    """
    named = {re.sub(r"[ {}]", "", next(filter(None, match.groups()))) for match in _ARBITRARY.finditer(gold)}
    pair = set(_TWO_SOLUTIONS.findall(gold))  # of a differential equation
    ours = sorted((named | (pair if len(pair) == 2 else set())) & wanted)
    others = sorted((written - wanted) & {"c", "k", "K", "A"})
    if len(others) == 1 and not ours and len(_ONE_CAPITAL.findall(gold)) == 1 and _only_capital(wanted):
        return [{others[0]: "C"}]
    theirs = sorted(name for name in written - (wanted - set(ours)) if _CONSTANT.fullmatch(name))
    if not ours or len(ours) != len(theirs) or wanted == set(ours):
        return []
    return [dict(zip(order, ours, strict=True)) for order in permutations(theirs)]


def _only_capital(names: set[str]) -> bool:
    return {name for name in names if name[0].isupper()} == {"C"}
