"""CUDA by nvcc: a real build of the device code, with at least one kernel in it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from pytest_upskill.checks import AtMost, CheckResult, Compile, Instruction
from pytest_upskill.compile.command import Command, Probes
from pytest_upskill.compile.device import Function, hold, is_chatter, look_for, read_functions
from pytest_upskill.compile.gnu import find_host_compiler
from pytest_upskill.compile.remembered import stamps
from pytest_upskill.compile.sass import Disassembler
from pytest_upskill.compile.toolchain import Built, Sources, ask, homes_of, wheel_programs
from pytest_upskill.sandbox import Sandbox

DEFAULT_ARCH = "sm_90"
SYSTEM_NVCC = Path("/usr/local/cuda/bin/nvcc")
_VERSION = re.compile(r"release (\d+\.\d+)")
_TOP = re.compile(r"^#\$ TOP=(.+)$", re.MULTILINE)
_CUBIN = "../tmp/built.cubin"
_ELF = b"\x7fELF"


class Cuda:
    """Builds a cubin: the cheapest mode that still runs ptxas for the real architecture."""

    def __init__(self) -> None:
        self._probes = Probes()
        self._disassembler = Disassembler()

    def missing(self, check: Compile) -> str | None:
        """See `Toolchain.missing`."""
        if self._nvcc is None:
            return (
                "no nvcc on PATH, in CUDA_HOME or /usr/local/cuda: "
                "install the CUDA toolkit, or pip install 'pytest-upskill[cuda]'"
            )
        if self._host is None:
            return "nvcc needs a C++ compiler beside it: no g++ or clang++ on PATH"
        return self._disassembler.missing() if _wants(check, "sass_contains") else None

    def build(self, sources: Sources, check: Compile, sandbox: Sandbox) -> Built:
        """See `Toolchain.build`."""
        command = self._command(check)
        if shadowed := self._shadowed(sources):
            return Built(
                passed=False,
                compiler=command.label,
                message=f"file {shadowed!r} would stand in for the toolkit's own header",
            )
        built = command.build(sources, sandbox, self._probes)
        functions = read_functions(built.diagnostics)
        said = tuple(line for line in built.diagnostics if not is_chatter(line))
        kernels = sum(function.is_kernel for function in functions)
        if not built.passed:
            return replace(built, diagnostics=said)
        if not kernels:
            message = (
                "no kernel was compiled: none is marked __global__, "
                "or only templates that nothing instantiates"
            )
            return replace(built, passed=False, message=message, diagnostics=said, kept=())
        count = f"{kernels} kernel{'s' if kernels > 1 else ''}"
        return replace(
            built,
            message=f"{built.message}, {count}",
            diagnostics=said,
            kept=(),
            required=tuple(self._require(check, functions, built.kept, sandbox)),
        )

    def identity(self, check: Compile) -> str:
        """See `Repeatable.identity`."""
        command = self._command(check)
        parts = [self._toolkit / "bin" / "ptxas", *command.path]
        assert self._host is not None
        return repr((command, stamps([command.program, self._host, *parts])))

    def _require(
        self, check: Compile, functions: Sequence[Function], kept: Sequence[bytes], sandbox: Sandbox
    ) -> Iterator[CheckResult]:
        """Look at the device code."""
        texts = [file.decode("utf-8", "replace") for file in kept if not file.startswith(_ELF)]
        listings = {"ptx_contains": "\n".join(texts)}
        if _wants(check, "sass_contains"):
            cubins = [file for file in kept if file.startswith(_ELF)]
            listing = "\n".join(self._disassembler.listing(cubin, sandbox) for cubin in cubins)
            listings["sass_contains"] = listing
        for requirement in check.requires:
            if isinstance(requirement, AtMost):
                yield hold(requirement, functions)
            else:
                yield look_for(requirement, listings[requirement.name])

    def _command(self, check: Compile) -> Command:
        assert self._nvcc is not None
        assert self._host is not None
        arch = check.arch or DEFAULT_ARCH
        looks_inside = any(isinstance(each, Instruction) for each in check.requires)
        return Command(
            label=f"nvcc {self._version} for {arch}",
            program=self._nvcc,
            options=(
                # Not -arch: with the letter of sm_90a it also builds PTX that cannot hold its code.
                *("-gencode", f"arch={arch.replace('sm', 'compute')},code={arch}"),
                *(("-c", "-o", "../tmp/object") if check.host else ("-cubin", "-o", _CUBIN)),
                *("-x", "cu", "-ccbin", str(self._host), "-Xptxas", "-v"),
                # The PTX and its line table tell which line of the answer an error in it is from.
                *("-lineinfo", "--keep", "--keep-dir", "../tmp"),
                *("-ftemplate-depth", "256", "-ftemplate-backtrace-limit", "4"),
                *("-Xcudafe", "--error_limit=20"),
                # Not -I: the answer's files must not come before the toolkit's.
                *("-Xcompiler", "-iquote,../src", "-I", "../include"),
                *check.flags,
            ),
            suffix=".cu",
            smallest="__global__ void smallest() {}\n",
            homes=(self._toolkit, *homes_of([self._host])),
            headers=r"cuda.*|cooperative_groups.*|mma\.h",
            keep=(".ptx", ".cubin") if looks_inside else (),
            listing=("-Xcompiler", "-H"),
            path=(self._host.parent,),
        )

    @cached_property
    def _nvcc(self) -> Path | None:
        found = next(filter(_is_program, _places_of_nvcc()), None)
        return found.absolute() if found else None

    @cached_property
    def _host(self) -> Path | None:
        return find_host_compiler()

    @cached_property
    def _toolkit(self) -> Path:
        """The toolkit's folder; nvcc tells it, because it may be a script somewhere else."""
        assert self._nvcc is not None
        told = _TOP.search(ask(self._nvcc, "--dryrun", "-E", "x.cu"))
        return Path(told[1]).resolve() if told else self._nvcc.resolve().parent.parent

    @cached_property
    def _version(self) -> str:
        assert self._nvcc is not None
        told = _VERSION.search(ask(self._nvcc, "--version"))
        return told[1] if told else "(unknown version)"

    def _shadowed(self, sources: Sources) -> str | None:
        """Name a file of the answer that an ``#include`` would find before the toolkit's."""
        for block in (*sources.units, *sources.headers):
            parts = PurePosixPath(block.name or "").parts
            for start in range(len(parts)):
                if self._toolkit.joinpath("include", *parts[start:]).is_file():
                    return block.name
        return None


def _wants(check: Compile, name: str) -> bool:
    return any(requirement.name == name for requirement in check.requires)


def _places_of_nvcc() -> Iterator[Path]:
    if found := shutil.which("nvcc"):
        yield Path(found)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if folder := os.environ.get(variable):
            yield Path(folder, "bin", "nvcc")
    yield SYSTEM_NVCC
    yield from wheel_programs("nvcc")


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
