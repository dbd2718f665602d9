"""Scoring of programs by tests. The sandbox returns values, never verdicts.

A program is run on each input, its output compared here; a function is called, its values come back through the `codec`
and are compared here; tests that are code run in one process, the answer in another, and every call is handed on.

Expected values, the code of the tests and verdicts never enter the process of a program. An exit code proves nothing,
a value is believed only as far as its exact type, and a missing one has failed. This prevents cheating, but weak tests
stay weak: a wrong program that they do not catch is paid.
"""
