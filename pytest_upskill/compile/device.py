"""What device code is like: the figures of ptxas, and the instructions in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_upskill.checks import AtMost, CheckResult, Instruction

_ENTRY = re.compile(r"ptxas info\s*: Compiling entry function '([^']+)' for '\w+'")
_FUNCTION = re.compile(r"ptxas info\s*: Function properties for (\S+)")
_SPILLS = re.compile(r"\s+\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"ptxas info\s*: Used (\d+) registers(?:.*?(\d+) bytes smem)?")
_CHATTER = re.compile(r"ptxas info|\s+\d+ bytes stack frame")


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A kernel, or a function that is called and not inlined, as ptxas made it."""

    name: str
    """As the linker knows it."""
    is_kernel: bool = False
    registers: int = 0
    spill_bytes: int = 0
    """Stores and loads together."""
    shared_bytes: int = 0
    """Of static shared memory."""

    @property
    def shown(self) -> str:
        """The name as the answer writes it, where that can be told."""
        name, rest = self.name, self.name.removeprefix("_Z").removeprefix("N")
        # Each part of a mangled name follows its length; the last part is the function's own.
        while rest != self.name and (length := re.match(r"[1-9]\d{0,3}", rest)):
            end = length.end() + int(length[0])
            name, rest = rest[length.end() : end], rest[end:]
        return name


def read_functions(lines: Sequence[str]) -> list[Function]:
    """Read what ``ptxas -v`` printed."""
    found: dict[str, Function] = {}
    kernel = name = ""
    for line in lines:
        if match := _ENTRY.fullmatch(line):
            kernel = name = match[1]
            found[name] = Function(name=name, is_kernel=True)
        elif match := _FUNCTION.fullmatch(line):
            name = match[1]
            found.setdefault(name, Function(name=name))
        elif name and (match := _SPILLS.fullmatch(line)):
            spilled = int(match[1]) + int(match[2])
            found[name] = replace(found[name], spill_bytes=spilled)
        elif kernel and (match := _USED.match(line)):
            registers, shared = int(match[1]), int(match[2] or 0)
            found[kernel] = replace(found[kernel], registers=registers, shared_bytes=shared)
    return list(found.values())


def is_chatter(line: str) -> bool:
    """Tell whether a line is only about figures."""
    return _CHATTER.match(line) is not None


def hold(limit: AtMost, functions: Sequence[Function]) -> CheckResult:
    """Hold the function that uses most against a limit."""
    figure = limit.name.removeprefix("max_")
    most = max(functions, key=lambda function: int(getattr(function, figure)))
    used = int(getattr(most, figure))
    unit = figure.replace("_", " ")
    message = f"{limit.name} {limit.most}: {most.shown} has {used} {unit}"
    return CheckResult(name=limit.name, passed=used <= limit.most, message=message)


def look_for(wanted: Instruction, listing: str) -> CheckResult:
    """Look for an instruction in PTX or SASS."""
    kind = wanted.name.partition("_")[0].upper()
    found = wanted.text in listing
    message = f"{wanted.name} {wanted.text!r}: {'in' if found else 'not in'} the {kind}"
    if not found and (near := list(_near(wanted.text, listing))):
        message += f" (it has {', '.join(near[:3])})"
    return CheckResult(name=wanted.name, passed=found, message=message)


def _near(text: str, listing: str) -> Iterator[str]:
    """Find instructions of the same family, as ``wgmma.fence`` for ``wgmma.mma_async``."""
    family = re.escape(re.split(r"[.\s]", text, maxsplit=1)[0])
    yield from dict.fromkeys(re.findall(rf"(?<![\w.]){family}\.[\w.:]{{1,60}}", listing))
