"""What a compiler printed, for a reader who has only the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_upskill.compile.toolchain import CannotCompile, Sources
from pytest_upskill.sandbox import Level, Limits, Outcome

_LONGEST_LINE = 300
_SIGNALS = range(129, 160)  # how a shell, and so the sandbox, reports one
MAX_LINES = 40
MAX_CHARACTERS = 8 << 10

_ANSWERS_LINE = re.compile(r"\.\./src/([^\s:(),\"]+)[:(](\d+)(?::\d+)?\)?")
# Of generated assembly nobody has the lines.
_ASSEMBLY = re.compile(r"(?:ptxas )?tmp/[^\s:,]+(?:, line \d+;|:\d+:|:) ?")
_ERROR = re.compile(r"\S.*?\b(?:fatal|error)\s*(?:#[\w-]+\s*)?:", re.IGNORECASE)
_LOCATION = re.compile(r"(?:In file included from |\s+from )?([^\s:(][^:(]*)(?::\d+|\(\d+\))[:,)]?")
_NO_HEADER = re.compile(
    r"fatal error: (?:'([^']+)' file not found|(\S+): No such file)"
    r"|cannot open source file \"([^\"]+)\""
)
# Libraries that answers include in either form, with or without angle brackets.
_LIBRARIES = re.compile(
    r"(?:torch|ATen|c10|pybind11|cutlass|cute|Eigen|boost|absl|gtest|nvshmem|nccl|mpi|cudnn\w*|"
    r"cublas\w*|curand\w*|cufft\w*|cusparse\w*|cusolver\w*|nvrtc|Python|numpy)(?:[/.].*)?"
)


def read(outcome: Outcome, level: Level) -> list[str]:
    """Tell a compiler's diagnostics in the answer's own lines.

    Where the sandbox cannot hide files, what is said about any file but the answer's, the case's
    and the system's headers is dropped: an ``#include`` could have brought a secret into it.
    """
    lines = outcome.output.splitlines()
    if level in {"limits", "off"}:
        lines = _of_known_files(lines)
    return [_in_answer(line) for line in lines if line.strip()]


def why(outcome: Outcome, lines: Sequence[str], limits: Limits) -> str:
    """Tell in one line why a build failed.

    Raises:
        CannotCompile: The session ended first.
    """
    if outcome.ended == "stopped":
        raise CannotCompile("the session ended while the answer was being compiled")
    if outcome.ended == "timeout":
        return f"it takes more than {limits.wall_s:g} s"
    if outcome.ended == "output":
        return f"it gives more than {limits.output_bytes >> 10} KiB of diagnostics"
    if first := next((line for line in lines if _ERROR.match(line)), None):
        return first[:_LONGEST_LINE]
    if outcome.returncode < 0 or outcome.returncode in _SIGNALS:
        return "the compiler crashed on it, or needs more than its memory or time"
    return lines[0][:_LONGEST_LINE] if lines else "the compiler says no more"


def cut(lines: Sequence[str]) -> str:
    """Cut diagnostics to `MAX_LINES` and `MAX_CHARACTERS`."""
    text = "\n".join(lines[:MAX_LINES])[:MAX_CHARACTERS]
    return f"{text}\n… ({len(lines)} lines)" if len(lines) > MAX_LINES else text


def blame_header(error: str, sources: Sources, shipped: str) -> None:
    """Let the machine, not the answer, answer for a library that is not installed.

    A header that is missing is the answer's mistake where the answer names it in quotes, as one
    of its own files, or where the compiler would bring it if it existed. A well-known library,
    or any other header in angle brackets, is the machine's.

    Args:
        error: The first error.
        sources: What was built.
        shipped: Pattern of the names that headers of the compiler itself have.

    Raises:
        CannotCompile: ``error`` is about a library's header.
    """
    match = _NO_HEADER.search(error)
    if not match:
        return
    name = match[1] or match[2] or match[3]
    if name.startswith("/") or ".." in name:
        return
    own = re.compile(rf'#\s*include\s*"{re.escape(name)}"')
    code = [block.code for block in (*sources.units, *sources.headers)]
    claimed = re.fullmatch(shipped, name) or any(own.search(text) for text in code)
    if _LIBRARIES.fullmatch(name) or not claimed:
        raise CannotCompile(
            f"header {name!r} is not installed here: "
            "install its library, or give the header in the check's 'files'"
        )


def _in_answer(line: str) -> str:
    def place(match: re.Match[str]) -> str:
        name, number = match.groups()
        where = f"answer line {number}"
        return where if name.startswith("answer.") else f"{name} ({where})"

    line = _ASSEMBLY.sub("assembly: ", _ANSWERS_LINE.sub(place, line))
    return line.replace("../src/", "").replace("../include/", "")


def _of_known_files(lines: Sequence[str]) -> list[str]:
    """Keep what is about known files; lines without a place belong to the one above."""
    kept = []
    known = True
    for line in lines:
        if match := _LOCATION.match(line):
            path = match[1]
            parts = path.removeprefix("../").split("/")
            system = path.startswith(("/usr/", "/opt/"))
            known = ".." not in parts and (system or parts[0] in {"src", "include"})
        if known:
            kept.append(line)
    return kept
