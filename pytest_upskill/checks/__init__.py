"""Checks, each of which is one assertion about an answer, and their results."""

from pytest_upskill.checks.builds import AtMost, Compile, Instruction, Run, Sandboxed
from pytest_upskill.checks.custom import Custom
from pytest_upskill.checks.judge import Judge
from pytest_upskill.checks.patterns import NotRegex, Regex, compile_pattern
from pytest_upskill.checks.result import Check, CheckError, CheckResult
from pytest_upskill.checks.structure import JsonSchema, ValueAtPath
from pytest_upskill.checks.text import Contains, ContainsAny, NotContains

AnyCheck = Check | Sandboxed | Judge | Custom
"""Any check of a case; it is decided from the text, by a program, by a model or by a plugin."""

__all__ = [
    "AnyCheck",
    "AtMost",
    "Check",
    "CheckError",
    "CheckResult",
    "Compile",
    "Contains",
    "ContainsAny",
    "Custom",
    "Instruction",
    "JsonSchema",
    "Judge",
    "NotContains",
    "NotRegex",
    "Regex",
    "Run",
    "Sandboxed",
    "ValueAtPath",
    "compile_pattern",
]
