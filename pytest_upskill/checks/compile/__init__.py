"""Build and run the code of answers in a sandbox."""

from pytest_upskill.checks.compile.command import Command, Compiler, Language
from pytest_upskill.checks.compile.compilers import Compilers
from pytest_upskill.checks.compile.toolchain import CannotCompile, Runner

__all__ = ["CannotCompile", "Command", "Compiler", "Compilers", "Language", "Runner"]
