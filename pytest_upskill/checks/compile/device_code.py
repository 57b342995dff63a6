"""What is known of compiled kernels: their names, resources and instructions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_upskill.checks import CheckResult
from pytest_upskill.checks.builds import AtMost, Instruction

# Matched anywhere in a line, so that no text before a figure can hide it.
_FIGURES = re.compile(
    r"Compiling entry function '(?P<kernel>[^'\n]+)'"
    r"|Function properties for (?P<function>\S+)"
    r"|(?<!\d)(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
    r"|Used (?P<registers>\d+) registers(?:[^\n]*?(?P<shared>\d+) bytes smem)?"
)
# Special registers: the only operands whose names the author cannot choose.
_SPECIAL = re.compile(r"%[\w.]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """The resource usage of a kernel, or of a device function that is not inlined."""

    name: str
    """The linker name."""
    registers: int = 0
    """Registers per thread."""
    spill_bytes: int = 0
    """Bytes of spill stores and loads together."""
    shared_bytes: int = 0
    """Bytes of static shared memory."""

    @property
    def display_name(self) -> str:
        """The name in the source code, or the linker name if it cannot be demangled."""
        name, rest = self.name, self.name.removeprefix("_Z").removeprefix("N")
        # Each part of a mangled name follows its length; the last part is the function's own.
        while rest != self.name and (length := re.match(r"[1-9]\d{0,3}", rest)):
            end = length.end() + int(length[0])
            name, rest = rest[length.end() : end], rest[end:]
        return name


def read_functions(output: str) -> list[Function]:
    """Read the resource usage of functions from the output of ``ptxas -v``.

    A message of ptxas may quote text of the PTX that looks like figures. The highest of each
    figure is used, so such text can only make the result worse.
    """
    found: dict[str, Function] = {}
    name = kernel = ""
    for match in _FIGURES.finditer(output):
        name = match["kernel"] or match["function"] or name
        kernel = match["kernel"] or kernel
        target = kernel if match["registers"] else name
        old = found.get(target, Function(name=target))
        found[target] = replace(
            old,
            registers=max(old.registers, int(match["registers"] or 0)),
            spill_bytes=max(old.spill_bytes, int(match["stores"] or 0) + int(match["loads"] or 0)),
            shared_bytes=max(old.shared_bytes, int(match["shared"] or 0)),
        )
    return list(found.values())


def check_limit(limit: AtMost, functions: Sequence[Function]) -> CheckResult:
    """Check the function with the highest usage against a limit.

    Args:
        limit: The limit, in registers per thread or in bytes.
        functions: The resource usage of all functions, at least one.
    """
    figure = limit.name.removeprefix("max_")
    most = max(functions, key=lambda function: int(getattr(function, figure)))
    used = int(getattr(most, figure))
    unit = figure.replace("_", " ")
    message = f"{limit.name} {limit.most}: {most.display_name} has {used} {unit}"
    return CheckResult(name=limit.name, passed=used <= limit.most, message=message)


def check_instruction(required: Instruction, instructions: Iterable[str]) -> CheckResult:
    """Check that the device code contains an instruction.

    Args:
        required: The text to find.
        instructions: Instructions of the PTX, each an opcode and its operands.
    """
    text = " ".join(required.text.split())
    listing = list(dict.fromkeys(instructions))
    found = any(_matches(text, instruction) for instruction in listing)
    message = f"{required.name} {required.text!r}: {'in' if found else 'not in'} the PTX"
    if not found and (near := list(_same_family(text, listing))):
        message += f" (it has {', '.join(near[:3])})"
    return CheckResult(name=required.name, passed=found, message=message)


def _matches(text: str, instruction: str) -> bool:
    """Return whether an opcode contains ``text``, or an operand is that special register.

    Other operands are names that the author chooses.
    """
    opcode, _, operands = instruction.partition(" ")
    if text in opcode or 0 <= instruction.find(text) < len(opcode):
        return True
    registers = _SPECIAL.findall(operands)
    return any(register == text or register.startswith(f"{text}.") for register in registers)


def _same_family(text: str, instructions: Iterable[str]) -> Iterator[str]:
    """Yield opcodes of the same family, such as ``wgmma.fence`` for ``wgmma.mma_async``."""
    family = re.split(r"[.\s]", text, maxsplit=1)[0]
    opcodes = (instruction.partition(" ")[0] for instruction in instructions)
    yield from dict.fromkeys(opcode for opcode in opcodes if opcode.startswith(f"{family}."))


# In ptxas, a string ends at the next quote, even after a backslash, and comments do not nest.
_COMMENT_OR_STRING = re.compile(r'"[^"]*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
# The order matters: a directive that ends with its line must not swallow the next statement.
_STATEMENT = re.compile(
    r"""\s*(?:
      [{};]
    | \.(?:loc|file|version|target|address_size|[bsu](?:8|16|32|64))\b[^\n;{}]*;?
    | \.[^;{}=]*(?:=[^;]*;|[;{]|\Z)
    | [\w$%]+\s*:(?!:)
    | (?:@\s*!?\s*[\w$%]+\s+)?(?P<instruction>[^;]*)(?:;|\Z)
    )""",
    re.VERBOSE,
)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_OPCODE_FIRST = re.compile(r"[a-z]\w*(?:(?:\.|::)\w+)*(?:\s+[^\s,}=].*)?")


def kernels(ptx: str) -> list[str]:
    """Return the linker names of the kernels in PTX that ptxas accepts."""
    return _ENTRY.findall(_COMMENT_OR_STRING.sub(" ", ptx))


def ptx_instructions(ptx: str) -> Iterator[str]:
    """Read the instructions of PTX that ptxas accepts, without labels and predicates.

    Yields:
        The opcode with its modifiers, a space, and the operands: ``add.s32 %r1, %r2, 1``.
    """
    text = _COMMENT_OR_STRING.sub(" ", ptx)
    for statement in _STATEMENT.finditer(text):
        instruction = " ".join((statement["instruction"] or "").split())
        # Text after an opening brace may be operands or initial values, which have no opcode.
        if _OPCODE_FIRST.fullmatch(instruction) and _is_whole(instruction):
            yield instruction


def _is_whole(instruction: str) -> bool:
    return instruction.count("{") == instruction.count("}")
