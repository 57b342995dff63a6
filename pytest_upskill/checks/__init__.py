"""Checks, each of which is one assertion about an answer, and their results."""

from pytest_upskill.checks.calls import OfCalls
from pytest_upskill.checks.code import Sandboxed
from pytest_upskill.checks.cpu_limit import CheckError
from pytest_upskill.checks.extensions import Custom
from pytest_upskill.checks.files import OfWorkspace
from pytest_upskill.checks.judge import Judge
from pytest_upskill.checks.text import CheckResult, TextCheck

AnyCheck = TextCheck | OfWorkspace | OfCalls | Sandboxed | Judge | Custom
"""Any check of a case, decided from text, files, calls, by a program, a model or a plugin."""

__all__ = ["AnyCheck", "CheckError", "CheckResult", "Custom", "Judge", "OfCalls", "Sandboxed"]
