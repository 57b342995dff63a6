"""C and C++ with GCC, or Clang if there is no GCC; CUDA with nvcc.

The build of CUDA is that of the device code, which must contain a kernel.
"""

import importlib.util
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal

from pytest_upskill.checks import CheckResult
from pytest_upskill.checks.code import AtMost, CannotCompile, Compile, Instruction
from pytest_upskill.checks.compile.toolchain import Built, Command, Compiler, Sources
from pytest_upskill.project.messages import counted
from pytest_upskill.sandbox.confinement import homes_of
from pytest_upskill.sandbox.run import Sandbox, find_program, run_trusted

_PROGRAMS = {"c": ("gcc", "clang", "cc"), "cpp": ("g++", "clang++", "c++")}
_VERSION = re.compile(r"\d+\.\d+")
# Newer compilers reject these in C, older ones only warn: reject them everywhere.
_STRICT_C = (
    "-Werror=implicit-function-declaration",
    "-Werror=implicit-int",
    "-Werror=int-conversion",
    "-Werror=incompatible-pointer-types",
)
_TEMPLATES = ("c++", "-ftemplate-depth=256", "-ftemplate-backtrace-limit=4")
_GCC = ("-fmax-errors=20", "-fmax-include-depth=64", "-fdiagnostics-color=never")
_CLANG = ("-ferror-limit=20", "-fno-color-diagnostics")
# The last option limits the computation of constants.
_GCC_CPP = (*_TEMPLATES, "-fconstexpr-ops-limit=20000000")
_CLANG_CPP = (*_TEMPLATES, "-fconstexpr-steps=20000000")
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)


class Gnu(Compiler):
    """A toolchain that compiles C or C++ to an object file without optimization.

    ``-fsyntax-only`` would be faster but misses errors in inline assembly and forced inlining.
    """

    def __init__(self, language: Literal["c", "cpp"]) -> None:
        super().__init__()
        self._language = language
        self._program = find_program(*_PROGRAMS[language])

    def missing(self, check: Compile) -> str | None:  # noqa: ARG002 - the same for every check
        """See `Compiler.missing`."""
        if self._program:
            return None
        return f"no {' or '.join(_PROGRAMS[self._language][:2])} on PATH: install one"

    def build(self, sources: Sources, check: Compile, sandbox: Sandbox) -> Built:
        """See `Compiler.build`."""
        if not any(_COMMENT.sub("", unit.code).strip() for unit in sources.units):
            message = "it contains only comments"
            return Built(passed=False, compiler=self._version[0], message=message)
        return super().build(sources, check, sandbox)

    def command(self, check: Compile) -> Command:
        """See `Compiler.command`."""
        assert self._program is not None
        label, is_clang = self._version
        common, of_cpp = (_CLANG, _CLANG_CPP) if is_clang else (_GCC, _GCC_CPP)
        return Command(
            label=label,
            program=self._program,
            options=(
                *("-c", "-O0", *common),
                *("-x", *(("c", *_STRICT_C) if self._language == "c" else of_cpp)),
                *("-iquote", "../src", "-I", "../include", "-o", "../tmp/object"),
                *check.flags,
            ),
            suffix=f".{self._language}",
            smallest="int main(void) { return 0; }\n",
            homes=homes_of([self._program]),
        )

    @cached_property
    def _version(self) -> tuple[str, bool]:
        """The name of the compiler with its version, and whether it is Clang."""
        output = run_trusted(self._program, "--version") if self._program else ""
        version, is_clang = _VERSION.search(output), "clang" in output
        name = _PROGRAMS[self._language][is_clang]
        return f"{name} {version[0] if version else '(unknown version)'}", is_clang


DEFAULT_ARCH = "sm_90"
SYSTEM_NVCC = Path("/usr/local/cuda/bin/nvcc")
_RELEASE = re.compile(r"release (\d+\.\d+)")
_TOP = re.compile(r"^#\$ TOP=(.+)$", re.MULTILINE)
_CUBIN = "../tmp/built.cubin"

# Matched anywhere in a line, so that no text before a figure can hide it.
_FIGURES = re.compile(
    r"Compiling entry function '(?P<kernel>[^'\n]+)'"
    r"|Function properties for (?P<function>\S+)"
    r"|(?<!\d)(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
    r"|Used (?P<registers>\d+) registers(?:[^\n]*?(?P<shared>\d+) bytes smem)?"
)
_FIGURE_LINE = re.compile(r"ptxas info|\s+\d+ bytes stack frame")
# In ptxas, a string ends at the next quote, even after a backslash, and comments do not nest.
_COMMENT_OR_STRING = re.compile(r'"[^"]*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
# Names have no dots, and directives begin with one.
_INSTRUCTION = re.compile(r"(?<![\w.$%])[a-z]\w*(?:(?:\.|::)\w+)+")
_REGISTER = re.compile(r"(?<![\w.$%])%[a-z]\w*(?:\.\w+)?")
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")


class Cuda(Compiler):
    """A toolchain that builds cubins, the fastest mode that runs ptxas for a real architecture."""

    def __init__(self) -> None:
        super().__init__()
        self._host = find_program(*_PROGRAMS["cpp"])

    def missing(self, check: Compile) -> str | None:  # noqa: ARG002 - the same for every check
        """See `Compiler.missing`."""
        if not os.access(self._nvcc, os.X_OK):
            return (
                "no nvcc on PATH, in CUDA_HOME or /usr/local/cuda: "
                "install the CUDA toolkit, or pip install 'pytest-upskill[cuda]'"
            )
        if self._host is None:
            return "nvcc needs a C++ compiler for the host: no g++ or clang++ on PATH"
        return None

    def build(self, sources: Sources, check: Compile, sandbox: Sandbox) -> Built:
        """See `Compiler.build`."""
        if shadowed := self._shadowing_file(sources):
            return Built(
                passed=False,
                compiler=self.command(check).label,
                message=f"file {shadowed!r} would replace the toolkit's own header",
            )
        built = super().build(sources, check, sandbox)
        printed = "\n".join(built.printed)
        diagnostics = tuple(line for line in built.diagnostics if not _FIGURE_LINE.match(line))
        ptx = "\n".join(without_comments(text.decode("utf-8", "replace")) for text in built.kept)
        built = replace(built, diagnostics=diagnostics, printed=(), kept=())
        if not built.passed:
            return built
        names = set(_ENTRY.findall(ptx))
        if not names:
            message = (
                "no kernel was compiled: none is marked __global__, "
                "or only templates that nothing instantiates"
            )
            return replace(built, passed=False, message=message)
        return replace(
            built,
            message=f"{built.message}, {counted(len(names), 'kernel')}",
            required=_requirements(check, ptx, names, printed),
        )

    def command(self, check: Compile) -> Command:
        """See `Compiler.command`."""
        assert self._host is not None
        arch = check.arch or DEFAULT_ARCH
        return Command(
            label=f"nvcc {self._version} for {arch}",
            program=self._nvcc,
            options=(
                # Not -arch: for sm_90a it also builds PTX for an architecture without its features.
                *("-gencode", f"arch={arch.replace('sm', 'compute')},code={arch}"),
                *("-ccbin", str(self._host)),
                *(("-c", "-o", "../tmp/object") if check.host else ("-cubin", "-o", _CUBIN)),
                *("-x", "cu"),
                *("--keep", "--keep-dir", "../tmp"),
                *("-ftemplate-depth", "256", "-ftemplate-backtrace-limit", "4"),
                *("-Xcudafe", "--error_limit=20"),
                # Not -I: the toolkit's headers must take precedence over the answer's files.
                *("-Xcompiler", "-iquote,../src", "-I", "../include"),
                *(("-Xptxas", "-v") if _limits(check) else ()),
                *check.flags,
            ),
            suffix=".cu",
            smallest="__global__ void smallest() {}\n",
            homes=(self._toolkit, *homes_of([self._host])),
            keep=(".ptx",),
            path=(self._host.parent,),
        )

    @cached_property
    def _nvcc(self) -> Path:
        """The compiler; where there is none, the place where the toolkit's installer puts it."""
        programs = (path for path in _nvcc_paths() if path.is_file() and os.access(path, os.X_OK))
        return next(map(Path.absolute, programs), SYSTEM_NVCC)

    @cached_property
    def _toolkit(self) -> Path:
        """The toolkit's folder, as nvcc reports it: nvcc itself may be a script elsewhere."""
        match = _TOP.search(run_trusted(self._nvcc, "--dryrun", "-E", "x.cu"))
        return Path(match[1]).resolve() if match else self._nvcc.resolve().parent.parent

    @cached_property
    def _version(self) -> str:
        match = _RELEASE.search(run_trusted(self._nvcc, "--version"))
        return match[1] if match else "(unknown version)"

    def _shadowing_file(self, sources: Sources) -> str | None:
        """Return the name of an answer's file that hides a header of the toolkit, None if none."""
        for block in (*sources.units, *sources.headers):
            parts = PurePosixPath(block.name or "").parts
            for start in range(len(parts)):
                if self._toolkit.joinpath("include", *parts[start:]).is_file():
                    return block.name
        return None


def _nvcc_paths() -> Iterator[Path]:
    if found := find_program("nvcc"):
        yield found
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if folder := os.environ.get(variable):
            yield Path(folder, "bin", "nvcc")
    yield SYSTEM_NVCC
    # NVIDIA's wheels do not put it on PATH.
    if nvidia := importlib.util.find_spec("nvidia"):
        for folder in nvidia.submodule_search_locations or ():
            yield from sorted(Path(folder).glob("cu[0-9]*/bin/nvcc"), reverse=True)


def _limits(check: Compile) -> list[AtMost]:
    return [each for each in check.requires if isinstance(each, AtMost)]


def _requirements(
    check: Compile, ptx: str, names: set[str], printed: str
) -> tuple[CheckResult, ...]:
    """Check the limits and instructions that the case requires of the device code."""
    figures = read_figures(printed)
    unknown = names - figures.keys()
    if unknown and _limits(check):
        raise CannotCompile(f"ptxas reports no figures for kernel {min(unknown)}")
    return tuple(
        _check_limit(each, figures) if isinstance(each, AtMost) else check_instruction(each, ptx)
        for each in check.requires
    )


def read_figures(output: str) -> Mapping[str, Counter[str]]:
    """Read the resource usage of kernels and device functions from the output of ``ptxas -v``.

    The compiler may print text of the answer that looks like figures. The highest of each figure is
    used, so such text can only make the result worse.

    Returns:
        For the linker name of each: registers per thread, spilled bytes (stores and loads), and
        bytes of static shared memory.
    """
    found = defaultdict[str, Counter[str]](Counter)
    name = kernel = ""
    for match in _FIGURES.finditer(output):
        name = match["kernel"] or match["function"] or name
        kernel = match["kernel"] or kernel
        target = kernel if match["registers"] else name
        used = {
            "registers": int(match["registers"] or 0),
            "spill_bytes": int(match["stores"] or 0) + int(match["loads"] or 0),
            "shared_bytes": int(match["shared"] or 0),
        }
        for figure, value in used.items():
            found[target][figure] = max(found[target][figure], value)
    return found


def _check_limit(limit: AtMost, figures: Mapping[str, Counter[str]]) -> CheckResult:
    """Check the function with the highest usage against a limit."""
    figure = limit.name.removeprefix("max_")
    name = max(figures, key=lambda function: figures[function][figure])
    used = figures[name][figure]
    message = f"{limit.name} {limit.most}: {name} has {used} {figure.replace('_', ' ')}"
    return CheckResult(name=limit.name, passed=used <= limit.most, message=message)


def check_instruction(required: Instruction, ptx: str) -> CheckResult:
    """Check that the device code contains an instruction, or uses a special register."""
    wanted = required.text.strip()
    found = any(wanted in opcode for opcode in _INSTRUCTION.findall(ptx)) or any(
        f"{register}.".startswith(f"{wanted}.") for register in _REGISTER.findall(ptx)
    )
    message = f"{required.name} {wanted!r}: {'in' if found else 'not in'} the PTX"
    return CheckResult(name=required.name, passed=found, message=message)


def without_comments(ptx: str) -> str:
    """Return PTX without comments and strings."""
    return _COMMENT_OR_STRING.sub(" ", ptx)
