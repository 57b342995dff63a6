"""Checks that build or run the code of an answer, and the options that they may have."""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from pytest_upskill.checks.blocks import LANGUAGES, relative_path
from pytest_upskill.checks.cpu_limit import CheckError
from pytest_upskill.checks.files import RunsCommand
from pytest_upskill.checks.text import Check


class CannotCompile(CheckError):  # noqa: N818 - not an error of the answer or the case
    """A check that this machine cannot decide; the message says why in one line."""


C_FAMILY = frozenset({"c", "cpp", "cuda"})
"""Languages that include headers."""
Figure = Literal["max_registers", "max_spill_bytes", "max_shared_bytes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AtMost:
    """A limit on the registers per thread, or on the bytes of memory, of every kernel."""

    name: Figure
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """A text that the PTX of the build must contain."""

    name: ClassVar[str] = "ptx_contains"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compile(Check):
    """A check that the answer's code in a language compiles."""

    name: ClassVar[str] = "compile"
    for_teacher = f"a language, one of {', '.join(LANGUAGES)}"

    language: str
    """The name of a language, built in or of a plugin."""
    arch: str | None = None
    """CUDA architecture; None for ``sm_90``."""
    flags: tuple[str, ...] = ()
    """Extra compiler flags from the case, such as ``-std=c++20``."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Headers from the case: relative name to text."""
    host: bool = False
    """Whether the host code of CUDA must build too, which doubles the time."""
    headers: tuple[str, ...] = ()
    """Headers of libraries that the code needs; if one is missing, the check is undecided."""
    requires: tuple[AtMost | Instruction, ...] = ()
    """Requirements for the device code, each with a result of its own."""
    file: tuple[str, ...] = ()
    """Files of an agent's workspace to build instead of the answer's code."""

    @property
    def problem(self) -> str | None:
        """What is wrong with the options, None if nothing is."""
        options = [name for name in ("arch", "host") if getattr(self, name)]
        for_cuda = [*options, *(each.name for each in self.requires)]
        if for_cuda and self.language != "cuda":
            return f"{min(for_cuda)!r} is for cuda only: remove it"
        if self.headers and self.language not in C_FAMILY:
            return f"'requires' names headers, and {self.language} has none: remove it"
        if self.arch is not None and not _ARCH.fullmatch(self.arch):
            return f"bad arch {self.arch!r}: write it as in 'sm_90' or 'sm_90a'"
        problems = (check_flags(self.language, self.flags), *map(check_file, self.files))
        return next(filter(None, problems), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Check):
    """A check that the answer's code passes the case's test code; both run in a sandbox."""

    name: ClassVar[str] = "run"
    for_teacher = (
        '{"language": "python", "code": "assert f(1) == 2"}, with names that the answer\'s code '
        "defines"
    )

    language: str
    """A language with a runner: ``python``, or a language of a plugin."""
    code: str
    """The test code; it fails by raising."""
    file: tuple[str, ...] = ()
    """Files of an agent's workspace to test, on a copy of it, instead of the answer's code."""


OfCode = Compile | Run
"""A check that builds or runs the code of an answer."""

Sandboxed = OfCode | RunsCommand
"""A check that a program in the sandbox decides."""


_VALUE = r"[A-Za-z0-9_.+-]+"
# Options for the dialect, warnings, optimization or code generation. None names a file, a program
# or another option, so that none can make the compiler read, write or run something else.
_GNU = (
    rf"-std={_VALUE}",
    r"-ansi|-pedantic|-pedantic-errors|-pthread|-w|-g[0-3]?|-O[0-3sgz]?|-Ofast",
    rf"-W(?![alp],)[a-z0-9+-]+(?:={_VALUE})?",
    rf"-[DU][A-Za-z_]\w*(?:={_VALUE})?",
    rf"-m(?:arch|tune|cpu|abi)={_VALUE}|-m(?:no-)?(?:avx|sse|fma|bmi|f16c|popcnt)[a-z0-9.-]*",
    r"-f(?:no-)?(?:openmp|openmp-simd|exceptions|rtti|pic|PIC|pie|PIE|fast-math|strict-aliasing)",
    r"-f(?:no-)?(?:concepts|coroutines|char8_t|signed-char|unsigned-char|wrapv|builtin|permissive)",
    r"-f(?:no-)?(?:freestanding|ms-extensions|math-errno|omit-frame-pointer|common)",
)
_CUDA = (
    rf"--?std={_VALUE}",
    r"-O[0-3]|-w|-g|-G|--?lineinfo",
    rf"-[DU][A-Za-z_]\w*(?:={_VALUE})?",
    r"--?(?:expt-)?(?:relaxed-constexpr|extended-lambda)|--?use_fast_math",
    r"--?(?:ftz|prec-div|prec-sqrt|fmad|rdc|relocatable-device-code)=(?:true|false)",
    r"--?maxrregcount=\d{1,3}",
    r"--?default-stream=(?:legacy|per-thread|null)",
    r"-Werror=?[a-z,-]*|-Wno-deprecated-gpu-targets",
)
# Compiled on use, because few cases have flags.
_ALLOWED = {"c": "|".join(_GNU), "cpp": "|".join(_GNU), "cuda": "|".join(_CUDA)}
_ARCH = re.compile(r"sm_\d{2,3}[af]?")


def check_flags(language: str, flags: Iterable[str]) -> str | None:
    """Return what is wrong with compiler flags, None if nothing is."""
    allowed = _ALLOWED.get(language)
    for flag in flags:
        if allowed is None:
            return f"flag {flag!r}: {language} takes no flags"
        if not re.fullmatch(allowed, flag):
            return (
                f"flag {flag!r} is not allowed: "
                "only dialect, warning, optimization, -D, -U and code generation flags are"
            )
    return None


def check_file(name: str) -> str | None:
    """Return what is wrong with the name of a header, None if nothing is."""
    if relative_path(name) == name:
        return None
    return f"bad header {name!r}: write it as in 'torch/extension.h', without brackets"


_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTests:
    """The tests in test code, by pytest's default naming rules."""

    found: bool
    """Whether there are functions that pytest runs."""
    problem: str | None
    """Why the test code cannot decide a check, in one line; None if no reason is found."""
    modules: frozenset[str]
    """What it imports of the standard library."""


def find_tests(code: str) -> PythonTests:
    """Find the tests in test code."""
    try:
        parsed = ast.parse(code)
    except (SyntaxError, ValueError) as error:
        return PythonTests(found=False, problem=f"it is not Python: {error}", modules=frozenset())
    found = any(map(_is_test, parsed.body))
    problem = None
    if not found and not any(map(_can_fail, parsed.body)):
        problem = "nothing runs: it has no test function and no statement that could fail"
    return PythonTests(found=found, problem=problem, modules=frozenset(_standard_modules(parsed)))


def _is_test(node: ast.stmt) -> bool:
    if isinstance(node, ast.ClassDef):
        is_case = any(ast.unparse(base).endswith("TestCase") for base in node.bases)
        return (is_case or node.name.startswith("Test")) and any(map(_is_test, node.body))
    return isinstance(node, _FUNCTION) and node.name.startswith("test")


def _can_fail(node: ast.stmt) -> bool:
    if isinstance(node, _FUNCTION | ast.ClassDef):
        return False
    return any(isinstance(each, ast.Assert | ast.Raise | ast.Call) for each in ast.walk(node))


def _standard_modules(parsed: ast.Module) -> Iterator[str]:
    for node in ast.walk(parsed):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            # The program that runs tests is `__main__` until it has imported these.
            if name.partition(".")[0] in sys.stdlib_module_names - {"__main__", "sys"}:
                yield name
