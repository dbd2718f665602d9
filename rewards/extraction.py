"""Extraction of answers from completions: string functions that are linear in the length and never raise."""

import re
from dataclasses import dataclass
from textwrap import dedent
from unicodedata import category

THOUGHT_OPENS, THOUGHT_CLOSES = "<think>", "</think>"
ANSWER_OPENS, ANSWER_CLOSES = "<answer>", "</answer>"

# A tokenizer that keeps special tokens leaves one of these after the last word.
_ENDINGS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<eos>", "</s>")
_BEHIND_REVERSED = re.compile(rf"(?:\s++|{'|'.join(re.escape(ending[::-1]) for ending in _ENDINGS)})*+")
# A block marked python-repl or python_output is a session, not a program.
_PYTHON_MARK = re.compile(
    r"\{?\.?py(?:thon)? ?[0-9.]*\}?"  # py3, Python 3.11, {.python}
    r"(?: +(?:\S+\.py|.*[={].*))?",  # main.py, title="x"
    re.IGNORECASE,
)
_FENCE = "```"
# Letters and symbols of Unicode that show nothing: fillers of Hangul, a Braille cell without dots, a notehead left out,
# a place held for an object, blank hieroglyphs.
_EMPTY_GLYPHS = frozenset("\u115f\u1160\u3164\uffa0\u2800\U0001d159\ufffc\U00013441\U00013442")
# Characters between an opening fence and the end of its line.
_LONGEST_MARK = 30

_BESIDE = re.compile(
    r"(?:[\s$,;]|\\[()]|\\quad|\\text\s?\{\s?(?:and|or)\s?\}|\b(?:and|or)\b|\b[a-zA-Z](?:_\{?\d\}?)?\s?=){0,20}"
)
_NOT = re.compile(r"[\s$]*,?\s*(?:and\s)?(?:not|rather\sthan|instead\sof)\s[\s$]*")
_NAMED = re.compile(r"(?<![A-Za-z\\])([a-zA-Z](?:_\{?\d\}?)?)\s?=[\s$]?\Z")
# "The final answer is 12", "**Answer:** 12", a heading "Final answer"; what is only supposed is none.
_SAID = (
    r"(?i:(?P<supposed>\b(?:if|suppos\w{1,4}|assum\w{1,4}|whether|unless|imagine|what|why|doubt"
    r"|(?:not|\w{1,9}n['’]t|could|might|may)\s\w{1,12})(?:\s(?:that|so))?\s{1,9})?"
    r"(?:\b(?:the|my|our|so|thus|hence)\s{1,9}|(?:^|(?<=[.!?]\s))[ \t>#*_-]{0,9}(?:\\text(?:bf)?\{)?)"
    r"(?:(?:final|correct|right|required|desired|exact|numerical|simplified)\s{1,9}){0,2}ans(?:wers?)?(?![a-z])[*_}]{0,3}"
    r"(?:\s{1,9}(?:to|for|in)\s[^.:\n]{1,80}?(?=\s(?:is|are)\b))?(?:,?\s{1,9}(?:then|therefore|thus|hence)\b,?)?\s{0,9}"
    r"(?:(?P<doubted>(?:is|are)(?:n['’]t|\s+not)\b|can|could|might|may|would)"
    r"|(?:is|are|equals|(?:must|will|should)\s+be)\b(?:\s{0,9}[:=])?|[:=]|$)"
    r"(?:\s{1,9}(?:then|therefore|thus|hence|simply|just)\b,?)?)|答案(?:是|为|：|:)"
)
_MARKERS = re.compile(rf"{_SAID}|(?P<hashes>(?<!#)####(?!#))", re.MULTILINE)
_HEADING = re.compile(r"[ \t*_]*(?:[A-Za-z]{2,}|\d+[.):][ \t]+\S).*+\s*+\S")  # with something below it
_DISPLAYS = {"$$": "$$", "\\[": "\\]", "\\(": "\\)"}
_SENTENCE_ENDS = re.compile(
    r"[.!?。]{1,3}[\"'*_)]{0,3}(?=\s+(?:[*_(]{0,3}[A-Z]|\$?\\(?:black)?square|[∎□■✓✅])|\s*$)|\n|\Z"
)
_REASON = re.compile(r"\s(?:because\s|since\s|as (?:required|desired|claimed|expected))")
_EMPHASIS = re.compile(r"(?<![\w)\]}])\*\*(?=\S)|(?<=\S)\*\*(?!\w)")  # no power, as in 2**3
_TAKEN_BACK = re.compile(
    r"(?i)\b(?:wait|actually|sorry|oops|hmm|correction|scratch that|second thought|alternatively|incorrect|wrong"
    r"|(?:or|but) (?:maybe|perhaps|possibly)|(?:made|have) an? (?:\w+ )?(?:mistake|error))\b"
)
# "81, not the tempting \boxed{64}", "My first guess was \boxed{5}", "\ne \boxed{5}".
_REJECTED_BEFORE = re.compile(
    r"(?i)(?:\b(?:not|never|cannot|rather\sthan|instead\sof)|n['’]t)\s+(?:(?:the|an?|my|our|be|equals?|to|simply|just)\s+)*"
    r"(?:(?!exceed)[a-z-]+\s+)?(?:[$(\[{}\s]|\\\(|\\\[|\\text)*\Z"
    r"|(?:\A|[.!?,;:\n]\s*|\b(?:and|but|while|is)\s+)(?:(?:the|my|our|an?|one)\s+)?(?:(?:wrong|incorrect|mistaken|tempting|false"
    r"|bogus|naive|rejected|erroneous)\s+(?:guess|answer|value|result|solution|choice)"
    r"|(?:earlier|previous|initial|old|first|original|former)\s+(?:guess|attempt|try|answer|idea|thought))\b[^.!?\n\d\\]*\\?[(\[]?\Z"
    r"|\b(?:every|all|any|each)\b[^.!?\n\\]*\b(?:but|except|save)\s(?:for\s)?[$\s(\\]*\Z|\bif\s(?:it\sis\s)?not,?[$\s(\\]*\Z"
    r"|\b(?:option|guess|attempt|possibility)\s(?:two|three|four|five|\d):[$\s(\\]*\Z"
    r"|\b(?:guessed(?:\s[a-z]+ly)?|guess(?:\sof\s\w+)?\swas):?[\s$(\\]*\Z"
    r"|(?:\\neq?|≠|\\not\s?=|=\s?[-−]|\\(?:[xb]?cancel|sout|[hv]?phantom)\s?\{|~~)[\s$]*\Z"
)
_REJECTED_BEHIND = re.compile(
    r"(?i)[\s$)\]\\]*(?:(?:is|was|would\sbe)\s(?:[a-z]+ly\s)?(?:a\s)?(?:wrong|incorrect|false|mistaken|guess|mistake|trap)"
    r"|(?:(?:is|was)(?:\snot|n['’]t)|cannot\sbe)\s(?:(?:the|my|an?)\s)?(?:final\s)?(?:correct|right|answer|solution))\b"
)
# Escaped backslashes and braces are not braces.
_BRACES = re.compile(r"\\(?:boxed|fbox)\s{0,9}\{|\\\\|\\[{}]|[{}]")


@dataclass(frozen=True)
class Extraction:
    """A piece of a completion, or why there is none.

    Attributes:
        text: the piece, without blanks around it; ``None`` where it is absent or not the only one.
        problem: why ``text`` is ``None``; empty otherwise.
    """

    text: str | None
    problem: str = ""


def after_thought(completion: str) -> Extraction:
    """The text after the last ``</think>``, without end-of-text tokens; the whole text if there is no thought.

    A thought that is never closed has nothing after it: its content is not an answer.
    """
    final = completion.rpartition(THOUGHT_CLOSES)[2]
    if THOUGHT_OPENS in final:
        return Extraction(None, "the thought is not closed")
    return Extraction(without_ending(final))


def answer_block(completion: str) -> Extraction:
    """The content of the one ``<answer>`` block that ends the completion, after the last ``</think>``.

    Answer tags inside the thought do not count. After it, a second opening or closing tag, or anything but blanks and
    end-of-text tokens after the block, leaves open which answer is meant: then there is no answer.
    """
    final = after_thought(completion)
    if final.text is None:
        return final
    opened, closed = final.text.count(ANSWER_OPENS), final.text.count(ANSWER_CLOSES)
    if opened == 0 and closed == 0:
        return Extraction(None, "no answer block after the thought")
    if (opened, closed) != (1, 1):
        return Extraction(None, f"{opened} opening and {closed} closing answer tags after the thought, not one of each")
    if not final.text.endswith(ANSWER_CLOSES):
        return Extraction(None, "the completion does not end with the answer block")
    block = final.text.removesuffix(ANSWER_CLOSES).partition(ANSWER_OPENS)[2]
    return Extraction(block.strip())


def code_block(completion: str) -> Extraction:
    """The program that a completion gives, after the last ``</think>``.

    It is the last block fenced by three or more backticks that is marked ``python`` (``py3``, ``python main.py``);
    without such a block, the last unmarked one; without that, the last one, whatever its mark. A block that is not
    closed ends with the completion. Without any fence the answer block or else the whole text is the program: prose is
    none that runs. Several blocks are not joined; one that is indented as a whole is moved to the margin.
    """
    final = after_thought(completion)
    if final.text is None:
        return final
    blocks = _fenced_blocks(final.text)
    marked = [code for mark, code in blocks if _PYTHON_MARK.fullmatch(mark)]
    unmarked = [code for mark, code in blocks if not mark]
    found = marked or unmarked or [code for _, code in blocks]
    return _program(found[-1] if found else answer_block(completion).text or final.text)


def boxed_answers(completion: str) -> Extraction:
    r"""The content of the last ``\boxed{…}`` after the last ``</think>``, braces inside it paired.

    It is a list of the last ones where nothing but a comma, "and" or "or" stands between them:
    ``$x=\boxed{2}$ or $x=\boxed{3}$`` answers "2, 3". The same box again adds nothing. Of nested boxes the outermost
    counts. There is no text if "the answer is" follows the last box with another value, or if the completion breaks off
    inside a box.
    """
    final, boxes = _boxes(completion)
    if final.text is None:
        return final
    said = next((said for said in _MARKERS.finditer(final.text, boxes[-1].end) if not said["supposed"]), None)
    if said and not said["hashes"] and _plain(_content(final.text, boxes[-1])) not in _plain(final.text[said.end() :]):
        return Extraction(None, "another answer follows the last box")
    first = len(boxes) - 1
    while first and _BESIDE.fullmatch(final.text, boxes[first - 1].end, boxes[first].start):
        first -= 1
    contents = [_content(final.text, box) for box in boxes[first:]]
    names = [_NAMED.search(final.text, max(box.start - 12, 0), box.start) for box in boxes[first:]]
    if len({name[1] for name in names if name}) > 1 and all(names):
        contents = [f"{name[1]} = {content}" for name, content in zip(names, contents, strict=True) if name]
    contents = list(dict.fromkeys(contents))
    between = final.text[boxes[first].end : boxes[-1].start]
    is_choice = re.search(r"\bor\b", between) is not None and all("=" in content for content in contents)
    return Extraction((" or " if is_choice else ", ").join(contents))  # x = 3 or y = 7 is not a point


def marked_answer(completion: str) -> Extraction:
    r"""What follows the last marker of an answer after the last ``</think>``: ``#### 12``, "The final answer is $12$."

    Markers are ``####``, "the (final, …) answer is", "Answer:" where a line or sentence begins, a heading "Answer", and
    a box: of all of them the last counts, since an answer may be corrected but not given twice. So a box decides where
    no other marker comes after it, also within "The answer is $\boxed{12}$."

    The answer ends with its sentence or line, or with the displayed formula that opens it; "because …" is no part of
    it. It is whole: "12 or 13" and "12, 13" stay a choice and a list. It has no text if the last marker asks (``?``),
    denies ("is not") or doubts ("might be"), or if the text after it takes it back ("Wait", "Correction"). "If the
    answer is 12" and a heading with text below it (``#### Step 2``) are not markers.
    """
    final, boxes = _boxes(completion)
    text = after_thought(completion).text if final is _NO_BOX else final.text
    if text is None:
        return final
    markers = [found for found in _MARKERS.finditer(text) if not found["supposed"]]
    while markers and markers[-1]["hashes"] and _HEADING.match(text, markers[-1].end()):
        markers.pop()
    if boxes and (not markers or markers[-1].start() < boxes[-1].end):
        return boxed_answers(completion)
    if not markers:
        return Extraction(None, "no answer is marked after the thought")
    if markers[-1]["doubted"]:
        return _DOUBTED
    return _stated(text[markers[-1].end() :].lstrip("*_}: \t\r\n"))


def _stated(text: str) -> Extraction:
    """The answer with which ``text`` begins."""
    closes = _DISPLAYS.get(text[:2])
    end = _SENTENCE_ENDS.search(text, max(text.find(closes, 2), 0) if closes else 0)
    if end is None or "?" in end[0]:
        return _DOUBTED
    if _TAKEN_BACK.search(text, end.end()):
        return Extraction(None, "what follows the answer takes it back")
    answer = _REASON.split(text[: end.start()], maxsplit=1)[0]
    return Extraction(_EMPHASIS.sub("", answer).lstrip("*_` \t").rstrip("*_` \t\r,;.!"))


_NO_BOX = Extraction(None, "no box after the thought")
_DOUBTED = Extraction(None, "the last marker states no answer")


@dataclass(frozen=True)
class _Box:
    start: int
    opened: int  # after its brace
    end: int


def _content(text: str, box: _Box) -> str:
    return text[box.opened : box.end - 1].strip()


def _plain(text: str) -> str:
    """Letters and digits of ``text`` without LaTeX commands."""
    return re.sub(r"\\[a-zA-Z]+|[\W_]", "", text)


def _boxes(completion: str) -> tuple[Extraction, list[_Box]]:
    """The text after the thought, or why it has no answer; and the outermost boxes in it."""
    final = after_thought(completion)
    if (text := final.text) is None:
        return final, []
    open_braces: list[_Box | None] = []  # None of braces that open no box
    boxes: list[_Box] = []
    for match in _BRACES.finditer(text):
        if match[0] == "}":
            if open_braces and (box := open_braces.pop()) is not None:
                while boxes and boxes[-1].start > box.start:  # inside this one
                    boxes.pop()
                boxes.append(_Box(box.start, box.opened, match.end()))
        elif match[0].endswith("{") and match[0] != "\\{":
            open_braces.append(_Box(match.start(), match.end(), -1) if match[0] != "{" else None)
    last_end = boxes[-1].end if boxes else 0
    if len(boxes) > 1 and _NOT.fullmatch(text, boxes[-2].end, boxes[-1].start):
        boxes.pop()  # "It is \boxed{7}, not \boxed{5}"
    start = boxes[-1].start if boxes else 0
    before = text[max(start - 160, 0) : start]
    if boxes and (_REJECTED_BEFORE.search(before) or _REJECTED_BEHIND.match(text, last_end)):
        return Extraction(None, "the text rejects its last box"), []
    if any(box and (box.opened >= last_end or text[box.opened] != ".") for box in open_braces):
        return Extraction(None, "the last box is not closed"), []
    return (final if boxes else _NO_BOX), boxes


def is_blank(text: str) -> bool:
    r"""True if nothing in ``text`` is visible.

    Letters, numbers, punctuation and symbols are visible, except those with an empty glyph. Everything else is not:
    white space, controls, format characters (``\u200b``), variation selectors and other marks without a letter, and
    private, unassigned and surrogate code points.
    """
    return all(category(character)[0] not in "LNPS" or character in _EMPTY_GLYPHS for character in text)


def without_ending(text: str) -> str:
    """``text`` without the blanks around it and the end-of-text tokens after it."""
    # From the end, and by a pattern: both may be a million characters long.
    behind = _BEHIND_REVERSED.match(text[::-1])
    return text[: len(text) - (behind.end() if behind else 0)].lstrip()


def _fenced_blocks(text: str) -> list[tuple[str, str]]:
    """Mark and content of every fenced block. A fence may open after text on its line, and close after code."""
    blocks: list[tuple[str, str]] = []
    mark, lines = None, []
    for line in text.split("\n"):
        before, _, after = line.rpartition(_FENCE)
        if line.count(_FENCE) % 2 == 0:  # none, or code within a line
            lines.append(line)
        elif mark is None:
            after = after.strip()
            is_marked = line.lstrip().startswith(_FENCE) and _PYTHON_MARK.fullmatch(after)
            if len(after) <= _LONGEST_MARK and (is_marked or " " not in after):
                mark, lines = after, []
        elif line.lstrip().startswith(_FENCE) or not after.strip():
            code = before.rstrip("` \t")
            blocks.append((mark, "\n".join([*lines, code] if code else lines)))
            mark = None
        else:
            lines.append(line)
    return blocks if mark is None else [*blocks, (mark, "\n".join(lines))]


def _program(code: str) -> Extraction:
    if not code.strip():
        return Extraction(None, "no code after the thought")
    return Extraction(dedent(code) if code.lstrip("\r\n")[0].isspace() else code)
