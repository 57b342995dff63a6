"""Diagnostics of compilers, with places that refer to lines of the answer.

Where a sandbox cannot hide files, only the places are shown of code that may name one to read. An
``#include`` makes any file part of the code, and compilers quote code: lines, names, types (also
those of other lines, after ``aka``), values and messages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_upskill.checks.code import CannotCompile
from pytest_upskill.sandbox.limits import Limits
from pytest_upskill.sandbox.run import Outcome, Workspace

_LONGEST_LINE = 300
_SIGNALS = range(129, 160)  # exit statuses by which a shell, and the sandbox, reports them

_ANSWERS_LINE = re.compile(r"\.\./src/([^\s:(),\"]{1,300})[:(](\d+)(?::\d+)?\)?")
# Names of temporary files change between runs, and lines of generated assembly mean nothing.
_ASSEMBLY = re.compile(
    r"(?<![\w./-])(?:ptxas )?(?:\.\./)?tmp/[^\s:,]{1,300}(?:, line \d+;|:\d+:|:) ?"
)
_ERROR = re.compile(r"(?!\s).*?\b(?:fatal|error)\s*(?:(?:#[\w-]+|\[\w+\])\s*)?:", re.IGNORECASE)
# A part of the compiler was killed, or the machine is out of a resource.
_TROUBLE = re.compile(
    r"due to signal|signal terminated|: Killed\b|out of memory|memory exhausted"
    r"|[Cc]annot allocate memory|bad_alloc|Resource temporarily unavailable|No space left on device"
)


def read(outcome: Outcome) -> list[str]:
    """Return a compiler's diagnostics with the answer's own line numbers."""
    return [_map_to_answer(line) for line in outcome.output.splitlines() if line.strip()]


def failure_reason(outcome: Outcome, lines: Sequence[str], limits: Limits) -> str:
    """Return in one line why a build failed.

    Args:
        outcome: The outcome of the compiler.
        lines: Its diagnostics, from `read`.
        limits: The limits under which it ran.

    Raises:
        CannotCompile: The session ended first.
    """
    if limit := limit_reached(outcome, limits):
        return limit
    if first := next((line for line in lines if _ERROR.match(line)), None):
        return first[:_LONGEST_LINE]
    if crashed(outcome):
        return "the compiler crashed, or exceeded its memory or time limit"
    return lines[0][:_LONGEST_LINE] if lines else "the compiler gives no reason"


def limit_reached(outcome: Outcome, limits: Limits) -> str | None:
    """Return in one line at which limit a program was ended, None if it ended by itself.

    Raises:
        CannotCompile: The session ended first.
    """
    match outcome.ended:
        case "exited":
            return None
        case "stopped":
            raise CannotCompile("the session ended before the check was decided")
        case "time":
            return f"it takes more than {limits.wall_s:g} s"
        case "output":
            return f"it prints more than {limits.output_bytes >> 10} KiB"
        case "files":
            return f"it writes more than {limits.folder_bytes >> 20} MiB or {limits.files} files"


def crashed(outcome: Outcome) -> bool:
    """Return whether a program was ended by a signal, as a limit of memory or CPU time sends it."""
    return outcome.returncode < 0 or outcome.returncode in _SIGNALS


def finds_fault(outcome: Outcome) -> bool:
    """Return whether a compiler blames the code, so that a retry would fail too."""
    errors = filter(_ERROR.match, read(outcome))
    return not all(map(_TROUBLE.search, errors))


def place_in_answer(name: str, line: str) -> str:
    """Return how a line of a file of the answer is called."""
    where = f"answer line {line}"
    return where if name.startswith("answer.") else f"{name} ({where})"


def _map_to_answer(line: str) -> str:
    line = _ANSWERS_LINE.sub(lambda match: place_in_answer(*match.groups()), line)
    line = _ASSEMBLY.sub("assembly: ", line)
    return line.replace("../src/", "").replace("../include/", "")


_SPLICE = re.compile(r"(?:\\|\?\?/)\s*?\n")
# A header by its plain name is in a folder of headers, or the answer's own. Only what may be a
# directive is looked at; a comment between its sign and its name is no plain one.
_READS_FILES = re.compile(
    r"\b_*asm|(?:#|%:|\?\?=)\s*"
    r"(?:/|\d|line|embed|import|include(?!\s*[<\"][\w+-]+(?:[./][\w+-]+)*[>\"]))"
)


def may_read_files(code: str) -> bool:
    """Return whether C, C++ or CUDA may have a compiler read, and quote, a file of the machine."""
    return _READS_FILES.search(_SPLICE.sub("", code)) is not None


_PLACE = re.compile(
    r"\.\./src/([^\s:(),\"]{1,300})[:(](\d+)(?::\d+)?\)?: *((?:fatal )?error|warning)",
    re.IGNORECASE,
)
_LEFT_OUT = "its text is left out, as the code may read files that no sandbox hides here"


def places(outcome: Outcome, home: Workspace) -> list[str]:
    """Return where the diagnostics of a compiler are in the answer, and nothing else of them."""
    found = filter(None, map(_PLACE.match, outcome.output.splitlines()))
    lines = [
        f"{place_in_answer(match[1], match[2])}: {match[3].lower()}: {_LEFT_OUT}"
        for match in found
        if (home.root / "src" / match[1]).is_file()
    ]
    if lines or outcome.succeeded:
        return lines
    out_of_memory = "the compiler was killed, or ran out of memory"
    return [f"error: {out_of_memory if _TROUBLE.search(outcome.output) else _LEFT_OUT}"]
