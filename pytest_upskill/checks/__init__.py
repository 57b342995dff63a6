"""Checks: one assertion about an answer, and what came of it."""

from pytest_upskill.checks.builds import AtMost, Compile, Instruction, Run, Sandboxed
from pytest_upskill.checks.patterns import MAX_TEXT, NotRegex, Regex, compile_pattern
from pytest_upskill.checks.result import Check, CheckError, CheckResult
from pytest_upskill.checks.structure import Holds, JsonSchema
from pytest_upskill.checks.text import Contains, ContainsAny, NotContains

__all__ = [
    "MAX_TEXT",
    "AtMost",
    "Check",
    "CheckError",
    "CheckResult",
    "Compile",
    "Contains",
    "ContainsAny",
    "Holds",
    "Instruction",
    "JsonSchema",
    "NotContains",
    "NotRegex",
    "Regex",
    "Run",
    "Sandboxed",
    "compile_pattern",
]
