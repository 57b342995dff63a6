"""What a compiler printed, for a reader who has only the answer."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from pytest_upskill.compile.toolchain import CannotCompile, Sources
from pytest_upskill.sandbox import Level, Limits, Outcome
from pytest_upskill.workspace import Workspace

_LONGEST_LINE = 300
_SIGNALS = range(129, 160)  # how a shell, and so the sandbox, reports one

_ANSWERS_LINE = re.compile(r"\.\./src/([^\s:(),\"]+)[:(](\d+)(?::\d+)?\)?")
_IN_PTX = re.compile(r"ptxas \.\./tmp/([\w.+-]+\.ptx), line (\d{1,9}); (\w+) *: (.*)")
_LOC = re.compile(r"^\s*\.loc\s+(\d+) (\d+)", re.MULTILINE)
_FILE = re.compile(r"^\s*\.file\s+(\d+) \".*/\.\./src/([^\"]+)\"", re.MULTILINE)
# Names of temporary files differ from run to run, and the lines of other assembly tell nothing.
_ASSEMBLY = re.compile(r"(?:ptxas )?(?:\.\./)?tmp/[^\s:,]+(?:, line \d+;|:\d+:|:) ?")
_ERROR = re.compile(r"(?!\s).*?\b(?:fatal|error)\s*(?:#[\w-]+\s*)?:", re.IGNORECASE)
_LOCATION = re.compile(r"(?:In file included from |\s+from )?([^\s:(][^:(]*)(?::\d+|\(\d+\))[:,)]?")
_KNOWN = ("../src/", "../include/", "/usr/", "/opt/")
_LEFT_OUT = "error: in a file outside the answer; its text is left out"
_NO_HEADER = re.compile(
    r"fatal error: (?:'([^']+)' file not found|(\S+): No such file)"
    r"|cannot open source file \"([^\"]+)\""
)
# Libraries that answers include in either form, with or without angle brackets.
_LIBRARIES = re.compile(
    r"(?:torch|ATen|c10|pybind11|cutlass|cute|Eigen|boost|absl|gtest|nvshmem|nccl|mpi|cudnn\w*|"
    r"cublas\w*|curand\w*|cufft\w*|cusparse\w*|cusolver\w*|nvrtc|Python|numpy)(?:[/.].*)?"
)


def read(outcome: Outcome, level: Level, home: Workspace) -> list[str]:
    """Tell a compiler's diagnostics in the answer's own lines.

    Where the sandbox cannot hide files, what is said about any file but the answer's, the case's
    and the system's headers is dropped: an ``#include`` could have brought a secret into it.
    """
    lines = outcome.output.splitlines()
    if level in {"limits", "off"}:
        lines = _of_known_files(lines)
    return [_in_answer(_in_source(line, home)) for line in lines if line.strip()]


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


def _in_source(line: str, home: Workspace) -> str:
    """Tell an error in PTX at the line of the source that it comes from: inline assembly."""
    match = _IN_PTX.fullmatch(line)
    if not match:
        return line
    name, number, kind, text = match.groups()
    try:
        ptx = (home.root / "tmp" / name).read_text("utf-8", "replace")
    except OSError:
        return f"{kind}: {text}"
    above = "\n".join(ptx.split("\n")[: int(number)])
    places = _LOC.findall(above)
    sources = dict(_FILE.findall(ptx))
    if not places or places[-1][0] not in sources:
        return f"{kind}: {text}"
    file, number = places[-1]
    return f"../src/{sources[file]}:{number}: {kind}: {text} (inline PTX)"


def _in_answer(line: str) -> str:
    def place(match: re.Match[str]) -> str:
        name, number = match.groups()
        where = f"answer line {number}"
        return where if name.startswith("answer.") else f"{name} ({where})"

    line = _ASSEMBLY.sub("assembly: ", _ANSWERS_LINE.sub(place, line))
    return line.replace("../src/", "").replace("../include/", "")


def _of_known_files(lines: Sequence[str]) -> list[str]:
    """Keep what is about known files; lines without a place belong to the one above."""
    kept: list[str] = []
    known = True
    for line in lines:
        if match := _LOCATION.match(line):
            known = posixpath.normpath(match[1]).startswith(_KNOWN)
        if known or kept[-1:] != [_LEFT_OUT]:
            kept.append(line if known else _LEFT_OUT)
    return kept
