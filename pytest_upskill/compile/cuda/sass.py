"""Disassembly of GPU machine code, SASS, with NVIDIA's disassembler."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from pytest_upskill.compile.toolchain import CannotCompile, homes_of, wheel_programs
from pytest_upskill.sandbox.limits import Limits
from pytest_upskill.sandbox.run import Sandbox
from pytest_upskill.sandbox.workspace import workspace

_LIMITS = Limits(output_bytes=32 << 20)
# Only instructions have an offset before them, unlike labels and directives with chosen names.
_INSTRUCTION = re.compile(
    r"^[ \t]+/\*[0-9a-f]{4,}\*/[ \t]+(?:\{[ \t]*)?(?:@!?\w+[ \t]+)?([A-Z][^\n;]*)", re.MULTILINE
)


class Disassembler:
    """``nvdisasm``, from the CUDA toolkit or from its wheel."""

    def missing(self) -> str | None:
        """Return in one line how to install it, None if it is installed."""
        if self._program:
            return None
        return "sass_contains needs nvdisasm: pip install nvidia-cuda-nvdisasm"

    def instructions(self, cubin: bytes, sandbox: Sandbox) -> Iterator[str]:
        """Disassemble device code.

        Yields:
            The opcode of each instruction, a space, and its operands.

        Raises:
            CannotCompile: The device code cannot be disassembled.
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
        for instruction in _INSTRUCTION.findall(outcome.output):
            yield " ".join(instruction.split())

    @cached_property
    def _program(self) -> Path | None:
        if found := shutil.which("nvdisasm"):
            return Path(found).absolute()
        return next(wheel_programs("nvdisasm"), None)
