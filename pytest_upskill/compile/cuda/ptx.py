"""Extraction of instructions from PTX.

Syntax: https://docs.nvidia.com/cuda/parallel-thread-execution/#syntax. Inline assembly is copied
to the PTX verbatim, so comments, strings and names may contain any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
_OPCODE_FIRST = re.compile(r"[a-z]\w*(?:(?:\.|::)\w+)*(?:\s+[^\s,}=].*)?")


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
