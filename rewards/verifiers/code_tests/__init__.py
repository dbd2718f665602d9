"""Scoring of programs by tests. The sandbox returns values, never verdicts.

======================  ===============================================================================================
`formats`               every published format of tests → one of three kinds (`kinds`)
`outcomes`              outcomes of tests. A program is run on each input, its output compared here (`comparison`);
                        a function is called, its values come back through the `codec` and are compared here;
                        tests that are code run in one process, the answer in another; every call is handed on
`inside`                the code that runs in those processes
======================  ===============================================================================================

Expected values, the code of the tests and verdicts never enter the process of a program. An exit code proves nothing,
a value is believed only as far as its exact type, and a missing one has failed. This prevents cheating, but weak tests
stay weak: a wrong program that they do not catch is paid.
"""

from evenkeel.rewards.verifiers.code_tests.verifier import CodeTests

__all__ = ["CodeTests"]
