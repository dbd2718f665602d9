"""One reader for the formats in which code tests are published.

==============================================  =======================================================================
row of                                          fields that are read
==============================================  =======================================================================
APPS, TACO                                      ``input_output``: ``{inputs, outputs, fn_name?}``
LiveCodeBench                                   ``public_test_cases``, ``private_test_cases`` (compressed or not),
                                                ``metadata.func_name``
DeepCoder                                       ``tests``: a list of cases or an APPS mapping; ``metadata.func_name``
PrimeIntellect, SYNTHETIC-1, open-r1            ``verification_info``: ``{language, test_cases, fn_name?}``
INTELLECT-2, Eurus-2                            ``verification_info.test_cases`` or ``reward_model.ground_truth``
CodeContests                                    ``public_tests``, ``private_tests``, ``generated_tests``
Codeforces                                      a list of ``{input, output}``
sandbox fusion                                  ``assert_case``, or ``{inputs, outputs, fn_name?}``
MBPP, MBPP+                                     ``test_list``, ``test_imports``, ``test_setup_code``; ``test``
HumanEval, HumanEval+, LeetCodeDataset          ``test``, ``entry_point``, ``prompt``
rLLM's LeetCode                                 ``functional``: ``check(candidate)`` and its call, or other code
KodCode                                         ``test_code``
==============================================  =======================================================================

Every field may be JSON text or the value itself, and the reference may be such a field alone, a list of assert
statements, or their code. Other fields of the row are ignored.
"""

from collections.abc import Mapping
from typing import Any

from evenkeel.rewards.verifiers.code_tests.formats.cases import (
    Pair,
    cases_of_pairs,
    function_name,
    pairs_of_columns,
    pairs_of_list,
)
from evenkeel.rewards.verifiers.code_tests.formats.packed import sequence, text_of, unpacked
from evenkeel.rewards.verifiers.code_tests.formats.programs import (
    asserts,
    functional,
    list_of_texts,
    pytest_functions,
    source_text,
    whole_test,
)
from evenkeel.rewards.verifiers.code_tests.kinds import Tests, UnusableTestsError

_WRAPPERS = ("input_output", "tests", "test_cases", "verification_info", "ground_truth", "reward_model")
_LIVECODEBENCH = ("public_test_cases", "private_test_cases")
_CODE_CONTESTS = ("public_tests", "private_tests", "generated_tests")


def read_tests(reference: Any) -> Tests:
    """The tests that ``reference`` holds, in whichever of the formats above.

    Raises:
        UnusableTestsError: no format is recognized, or its fields contradict it; the message says what is needed.
    """
    try:
        return _tests(reference, name="")
    except UnusableTestsError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise UnusableTestsError(f"no tests can be read: {type(error).__name__}: {error}") from error


def _tests(reference: Any, name: str) -> Tests:
    text = reference.lstrip() if isinstance(reference, str) else ""
    # neither JSON, which begins with a bracket or quote, nor base64, which has no blanks
    if text.startswith('"""') or (" " in text and text[0] not in '[{"'):
        return source_text(reference, {})
    value = unpacked(reference, "the reference")
    if isinstance(value, Mapping):
        return _tests_of_row(value, name)
    items = sequence(value)
    if items is None:
        raise UnusableTestsError(f"a {type(reference).__name__} holds no tests")
    if statements := list_of_texts(items):
        return asserts(statements, {})
    return cases_of_pairs(pairs_of_list(items), name)


def _tests_of_row(row: Mapping[str, Any], name: str) -> Tests:
    row = {key: value for key, value in row.items() if value is not None}
    language = row.get("language", "python")
    if isinstance(language, str) and not language.lower().startswith("py"):
        raise UnusableTestsError(f"its language is {language!r:.40}, not Python")
    name = function_name(row) or name
    if isinstance(row.get("test"), str) and row["test"].strip():
        return whole_test(row)
    if text_of(row, "functional").strip():
        return functional(row)
    if "test_code" in row:
        return pytest_functions(text_of(row, "test_code"))
    for field in ("test_list", "assert_case"):
        if statements := list_of_texts(unpacked(row[field], field)) if row.get(field) is not None else None:
            return asserts(statements, row)
    if {"inputs", "outputs"} <= row.keys() or {"input", "output"} <= row.keys():
        return cases_of_pairs(pairs_of_columns(row), name)
    for fields in (_LIVECODEBENCH, _CODE_CONTESTS):
        if present := [field for field in fields if field in row]:
            return cases_of_pairs([pair for field in present for pair in _pairs(row[field], field)], name)
    for field in _WRAPPERS:
        if field in row:
            return _tests(unpacked(row[field], field), name)
    raise UnusableTestsError(f"none of its fields holds tests: {', '.join(map(str, list(row)[:12]))}")


def _pairs(field: Any, where: str) -> list[Pair]:
    value = unpacked(field, where)
    return pairs_of_columns(value) if isinstance(value, Mapping) else pairs_of_list(sequence(value) or [])
