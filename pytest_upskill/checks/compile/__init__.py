"""Build and run the code of answers in a sandbox."""

from pytest_upskill.checks.code import CannotCompile
from pytest_upskill.checks.compile.compilers import Compilers
from pytest_upskill.checks.compile.toolchain import Command, Compiler, Language, Runner

__all__ = ["CannotCompile", "Command", "Compiler", "Compilers", "Language", "Runner"]
