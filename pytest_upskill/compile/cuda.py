"""CUDA by nvcc: a real build of the device code, with at least one kernel in it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from pytest_upskill.checks import Compile
from pytest_upskill.compile.command import Command, Probes
from pytest_upskill.compile.gnu import find_host_compiler
from pytest_upskill.compile.toolchain import Built, Sources, ask, homes_of
from pytest_upskill.sandbox import Sandbox

DEFAULT_ARCH = "sm_90"
SYSTEM_NVCC = Path("/usr/local/cuda/bin/nvcc")
_VERSION = re.compile(r"release (\d+\.\d+)")
_TOP = re.compile(r"^#\$ TOP=(.+)$", re.MULTILINE)
_KERNEL = re.compile(r"ptxas info\s*: Compiling entry function '[^']+' for '\w+'")
_CHATTER = re.compile(r"ptxas info|\s+\d+ bytes stack frame")


class Cuda:
    """Builds a cubin: the cheapest mode that still runs ptxas for the real architecture."""

    def __init__(self) -> None:
        self._probes = Probes()

    def missing(self) -> str | None:
        """See `Toolchain.missing`."""
        if self._nvcc is None:
            return (
                "no nvcc on PATH, in CUDA_HOME or /usr/local/cuda: "
                "install the CUDA toolkit, or pip install 'pytest-upskill[cuda]'"
            )
        if self._host is None:
            return "nvcc needs a C++ compiler beside it: no g++ or clang++ on PATH"
        return None

    def build(self, sources: Sources, check: Compile, sandbox: Sandbox) -> Built:
        """See `Toolchain.build`."""
        command = self._command(check.arch or DEFAULT_ARCH, check.flags)
        if shadowed := self._shadowed(sources):
            return Built(
                passed=False,
                compiler=command.label,
                message=f"file {shadowed!r} would stand in for the toolkit's own header",
            )
        built = command.build(sources, sandbox, self._probes)
        said = tuple(line for line in built.diagnostics if not _CHATTER.match(line))
        if not built.passed:
            return replace(built, diagnostics=said)
        kernels = sum(_KERNEL.fullmatch(line) is not None for line in built.diagnostics)
        if not kernels:
            message = (
                "no kernel was compiled: none is marked __global__, "
                "or only templates that nothing instantiates"
            )
            return replace(built, passed=False, message=message, diagnostics=said)
        count = f"{kernels} kernel{'s' if kernels > 1 else ''}"
        return replace(built, message=f"{built.message}, {count}", diagnostics=said)

    def _command(self, arch: str, flags: tuple[str, ...]) -> Command:
        assert self._nvcc is not None
        assert self._host is not None
        return Command(
            label=f"nvcc {self._version} for {arch}",
            program=self._nvcc,
            options=(
                # Not -arch: with the letter of sm_90a it also builds PTX that cannot hold its code.
                *("-cubin", "-gencode", f"arch={arch.replace('sm', 'compute')},code={arch}"),
                *("-x", "cu", "-ccbin", str(self._host), "-Xptxas", "-v"),
                # The PTX and its line table tell which line of the answer an error in it is from.
                *("-lineinfo", "--keep", "--keep-dir", "../tmp"),
                *("-ftemplate-depth", "256", "-ftemplate-backtrace-limit", "4"),
                *("-Xcudafe", "--error_limit=20"),
                # Not -I: the answer's files must not come before the toolkit's.
                *("-Xcompiler", "-iquote,../src", "-I", "../include", "-o", "../tmp/cubin"),
                *flags,
            ),
            suffix=".cu",
            smallest="__global__ void smallest() {}\n",
            homes=(self._toolkit, *homes_of([self._host])),
            headers=r"cuda.*|cooperative_groups.*|mma\.h",
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


def _places_of_nvcc() -> Iterator[Path]:
    if found := shutil.which("nvcc"):
        yield Path(found)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if folder := os.environ.get(variable):
            yield Path(folder, "bin", "nvcc")
    yield SYSTEM_NVCC
    # The wheels put it into no folder of PATH.
    if nvidia := importlib.util.find_spec("nvidia"):
        for folder in nvidia.submodule_search_locations or ():
            yield from sorted(Path(folder).glob("cu[0-9]*/bin/nvcc"), reverse=True)


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
