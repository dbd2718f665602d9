"""Programs scored by their tests. The sandbox returns values, never verdicts.

======================  ===============================================================================================
`formats`               every published format of tests → one of three kinds (`kinds`)
`outcomes`              what each test finds. A program is run on each input, its output compared here (`comparison`);
                        a function is called, its values come back through the `codec` and are compared here;
                        tests that are code run in one process, the answer in another; every call is handed on
`inside`                what runs in those processes
======================  ===============================================================================================

What a program could gain by knowing it never enters its process: expected values, the code of the tests, whether it
passed. An exit code proves nothing, a value is believed only as far as its exact type, and what is missing has failed.
A program that cannot be cheated out of a verdict can still be a wrong one that its tests do not catch: tests that are
weak stay weak.
"""

from evenkeel.rewards.verifiers.code_tests.verifier import CodeTests

__all__ = ["CodeTests"]
