"""Checks, each of which is one assertion about an answer, and their results."""

from pytest_upskill.checks.builds import AtMost, Compile, Instruction, Run, Sandboxed
from pytest_upskill.checks.extensions import Custom
from pytest_upskill.checks.files import FileCheck, FileExists, InFile, ProcessCheck, WorkspaceFile
from pytest_upskill.checks.judge import Judge
from pytest_upskill.checks.result import Check, CheckError, CheckResult
from pytest_upskill.checks.structure import JsonSchema, ValueAtPath
from pytest_upskill.checks.text import (
    Contains,
    ContainsAny,
    NotContains,
    NotRegex,
    Regex,
    compile_pattern,
)

AnyCheck = Check | FileCheck | Sandboxed | Judge | Custom
"""Any check of a case, decided from text, from files, by a program, by a model or by a plugin."""

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
    "FileCheck",
    "FileExists",
    "InFile",
    "Instruction",
    "JsonSchema",
    "Judge",
    "NotContains",
    "NotRegex",
    "ProcessCheck",
    "Regex",
    "Run",
    "Sandboxed",
    "ValueAtPath",
    "WorkspaceFile",
    "compile_pattern",
]
