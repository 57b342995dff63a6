"""CUDA with nvcc: builds the device code, which must contain a kernel."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path, PurePosixPath

from pytest_upskill.checks import CheckResult
from pytest_upskill.checks.builds import AtMost, Compile
from pytest_upskill.checks.compile.command import LIMITS, Command, Compiler
from pytest_upskill.checks.compile.device_code import (
    Function,
    check_instruction,
    check_limit,
    kernels,
    ptx_instructions,
    read_functions,
)
from pytest_upskill.checks.compile.gnu import find_host_compiler
from pytest_upskill.checks.compile.toolchain import (
    Built,
    CannotCompile,
    Sources,
    homes_of,
    run_trusted,
    wheel_programs,
)
from pytest_upskill.project.messages import counted
from pytest_upskill.sandbox.run import Sandbox
from pytest_upskill.sandbox.workspace import workspace

DEFAULT_ARCH = "sm_90"
SYSTEM_NVCC = Path("/usr/local/cuda/bin/nvcc")
_VERSION = re.compile(r"release (\d+\.\d+)")
_TOP = re.compile(r"^#\$ TOP=(.+)$", re.MULTILINE)
_CUBIN = "../tmp/built.cubin"


class Cuda(Compiler):
    """A toolchain that builds cubins, the fastest mode that runs ptxas for a real architecture."""

    def missing(self, check: Compile) -> str | None:  # noqa: ARG002 - the same for every check
        """See `Toolchain.missing`."""
        if self._nvcc is None:
            return (
                "no nvcc on PATH, in CUDA_HOME or /usr/local/cuda: "
                "install the CUDA toolkit, or pip install 'pytest-upskill[cuda]'"
            )
        if self._host is None:
            return "nvcc needs a C++ compiler for the host: no g++ or clang++ on PATH"
        return None

    def build(self, sources: Sources, check: Compile, sandbox: Sandbox) -> Built:
        """See `Toolchain.build`."""
        if shadowed := self._shadowing_file(sources):
            return Built(
                passed=False,
                compiler=self.command(check).label,
                message=f"file {shadowed!r} would replace the toolkit's own header",
            )
        built = super().build(sources, check, sandbox)
        diagnostics = tuple(line for line in built.diagnostics if not line.startswith("ptxas info"))
        ptx = [text.decode("utf-8", "replace") for text in built.kept]
        built = replace(built, diagnostics=diagnostics, kept=())
        if not built.passed:
            return built
        names = set(chain.from_iterable(map(kernels, ptx)))
        if not names:
            message = (
                "no kernel was compiled: none is marked __global__, "
                "or only templates that nothing instantiates"
            )
            return replace(built, passed=False, message=message)
        return replace(
            built,
            message=f"{built.message}, {counted(len(names), 'kernel')}",
            required=tuple(self._require(check, ptx, names, sandbox)),
        )

    def _require(
        self, check: Compile, ptx: Sequence[str], names: AbstractSet[str], sandbox: Sandbox
    ) -> Iterator[CheckResult]:
        """Check the limits and instructions that the case requires of the device code."""
        functions: list[Function] = []
        if any(isinstance(each, AtMost) for each in check.requires):
            functions = self._functions(check, ptx, names, sandbox)
        for requirement in check.requires:
            if isinstance(requirement, AtMost):
                yield check_limit(requirement, functions)
            else:
                instructions = chain.from_iterable(map(ptx_instructions, ptx))
                yield check_instruction(requirement, instructions)

    def _functions(
        self, check: Compile, ptx: Sequence[str], names: AbstractSet[str], sandbox: Sandbox
    ) -> list[Function]:
        """Return the resource usage of functions, from separate runs of ptxas on the PTX.

        In the output of the first build, text that the front end prints could imitate it.
        """
        printed = "\n".join(self._figures(check, each, sandbox) for each in ptx)
        functions = read_functions(printed)
        if unknown := names - {function.name for function in functions}:
            raise CannotCompile(f"ptxas reports no figures for kernel {min(unknown)}")
        return functions

    def _figures(self, check: Compile, ptx: str, sandbox: Sandbox) -> str:
        command = self.command(check)
        with workspace() as home:
            file = home.write("src/kernels.ptx", ptx)
            outcome = sandbox.run(
                [
                    *(str(command.program), *self._target(check), "-cubin", "-o", _CUBIN),
                    *("-Xptxas", "-v", "-lineinfo", *check.flags, file),
                ],
                home,
                readable=command.homes,
                path=(command.program.parent, *command.path),
                limits=LIMITS,
            )
        if not outcome.succeeded:
            raise CannotCompile(f"ptxas reports no figures: {outcome.output or outcome.ended}")
        return outcome.output

    def command(self, check: Compile) -> Command:
        """See `Compiler.command`."""
        assert self._nvcc is not None
        assert self._host is not None
        return Command(
            label=f"nvcc {self._version} for {check.arch or DEFAULT_ARCH}",
            program=self._nvcc,
            options=(
                *self._target(check),
                *(("-c", "-o", "../tmp/object") if check.host else ("-cubin", "-o", _CUBIN)),
                *("-x", "cu"),
                # Errors in PTX are mapped to lines of the answer by the line table in the PTX.
                *("-lineinfo", "--keep", "--keep-dir", "../tmp"),
                *("-ftemplate-depth", "256", "-ftemplate-backtrace-limit", "4"),
                *("-Xcudafe", "--error_limit=20"),
                # Not -I: the toolkit's headers must take precedence over the answer's files.
                *("-Xcompiler", "-iquote,../src", "-I", "../include"),
                *check.flags,
            ),
            suffix=".cu",
            smallest="__global__ void smallest() {}\n",
            homes=(self._toolkit, *homes_of([self._host])),
            listing=("-Xcompiler", "-H"),
            keep=(".ptx",),
            path=(self._host.parent,),
        )

    def _target(self, check: Compile) -> tuple[str, ...]:
        arch = check.arch or DEFAULT_ARCH
        # Not -arch: for sm_90a it also builds PTX for an architecture without its features.
        return (
            *("-gencode", f"arch={arch.replace('sm', 'compute')},code={arch}"),
            *("-ccbin", str(self._host)),
        )

    @cached_property
    def _nvcc(self) -> Path | None:
        found = next(filter(_is_program, _nvcc_paths()), None)
        return found.absolute() if found else None

    @cached_property
    def _host(self) -> Path | None:
        return find_host_compiler()

    @cached_property
    def _toolkit(self) -> Path:
        """The toolkit's folder, as nvcc reports it: nvcc itself may be a script elsewhere."""
        assert self._nvcc is not None
        match = _TOP.search(run_trusted(self._nvcc, "--dryrun", "-E", "x.cu"))
        return Path(match[1]).resolve() if match else self._nvcc.resolve().parent.parent

    @cached_property
    def _version(self) -> str:
        assert self._nvcc is not None
        match = _VERSION.search(run_trusted(self._nvcc, "--version"))
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
    if found := shutil.which("nvcc"):
        yield Path(found)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if folder := os.environ.get(variable):
            yield Path(folder, "bin", "nvcc")
    yield SYSTEM_NVCC
    yield from wheel_programs("nvcc")


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
