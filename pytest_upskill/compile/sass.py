"""SASS, the machine code of a GPU, as NVIDIA's disassembler tells it."""

from __future__ import annotations

import shutil
from functools import cached_property
from pathlib import Path

from pytest_upskill.compile.toolchain import CannotCompile, homes_of, wheel_programs
from pytest_upskill.sandbox import Limits, Sandbox
from pytest_upskill.workspace import workspace

_LIMITS = Limits(output_bytes=32 << 20)


class Disassembler:
    """``nvdisasm``, from a toolkit or from its wheel."""

    def missing(self) -> str | None:
        """Tell in one line how to get it, None where it is installed."""
        if self._program:
            return None
        return "sass_contains needs nvdisasm: pip install nvidia-cuda-nvdisasm"

    def listing(self, cubin: bytes, sandbox: Sandbox) -> str:
        """Disassemble device code.

        Raises:
            CannotCompile: It cannot be read.
            SandboxError: The disassembler cannot be started.
        """
        assert self._program is not None
        with workspace() as home:
            (home.root / "cubin").write_bytes(cubin)
            outcome = sandbox.run(
                [str(self._program), "-c", "../cubin"],
                home,
                readable=homes_of([self._program]),
                limits=_LIMITS,
            )
        if not outcome.succeeded:
            first = outcome.output.partition("\n")[0]
            raise CannotCompile(f"nvdisasm cannot read the build: {first or outcome.ended}")
        return outcome.output

    @cached_property
    def _program(self) -> Path | None:
        if found := shutil.which("nvdisasm"):
            return Path(found).absolute()
        return next(wheel_programs("nvdisasm"), None)
