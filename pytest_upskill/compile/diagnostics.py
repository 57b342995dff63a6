"""Diagnostics of compilers, with places that refer to lines of the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_upskill.compile.toolchain import CannotCompile
from pytest_upskill.sandbox.limits import Limits
from pytest_upskill.sandbox.run import Outcome
from pytest_upskill.sandbox.workspace import Workspace

_LONGEST_LINE = 300
_SIGNALS = range(129, 160)  # exit statuses by which a shell, and the sandbox, reports them

_ANSWERS_LINE = re.compile(r"\.\./src/([^\s:(),\"]{1,300})[:(](\d+)(?::\d+)?\)?")
_IN_PTX = re.compile(r"ptxas \.\./tmp/([\w.+-]+\.ptx), line (\d{1,9}); (\w+) *: (.*)")
_LOC = re.compile(r"[ \t]*\.loc[ \t]+(\d+) (\d+)")
_FILE = re.compile(r"^[ \t]*\.file[ \t]+(\d+) \".*/\.\./src/([^\"]+)\"", re.MULTILINE)
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


def read(outcome: Outcome, home: Workspace) -> list[str]:
    """Return a compiler's diagnostics with the answer's own line numbers.

    Args:
        outcome: The outcome of the compiler.
        home: The workspace in which it ran.
    """
    lines = [line for line in outcome.output.splitlines() if line.strip()]
    return [_map_to_answer(line) for line in _map_to_source(lines, home)]


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
        case "timeout":
            return f"it takes more than {limits.wall_s:g} s"
        case "output":
            return f"it prints more than {limits.output_bytes >> 10} KiB"
        case "files":
            return f"it writes more than {limits.folder_bytes >> 20} MiB or {limits.files} files"


def crashed(outcome: Outcome) -> bool:
    """Return whether a program was ended by a signal, as a limit of memory or CPU time sends it."""
    return outcome.returncode < 0 or outcome.returncode in _SIGNALS


def finds_fault(outcome: Outcome, lines: Sequence[str]) -> bool:
    """Return whether a build failed because of the code, so that a retry would fail too."""
    errors = (line for line in lines if _ERROR.match(line))
    return outcome.ended == "exited" and not all(map(_TROUBLE.search, errors))


def place_in_answer(name: str, line: str) -> str:
    """Return how a line of a file of the answer is called."""
    where = f"answer line {line}"
    return where if name.startswith("answer.") else f"{name} ({where})"


def _map_to_source(lines: Sequence[str], home: Workspace) -> Iterator[str]:
    """Replace places in PTX, which has errors only in inline assembly, by places in the source."""
    places: dict[str, list[str]] = {}
    for line in lines:
        if not (match := _IN_PTX.fullmatch(line)):
            yield line
            continue
        name, number, kind, text = match.groups()
        if name not in places:
            places[name] = _places_in_ptx(home.root / "tmp" / name)
        place = next(iter(places[name][int(number) - 1 : int(number)]), "")
        yield f"{place}{kind}: {text} (inline PTX)"


def _places_in_ptx(file: Path) -> list[str]:
    """Return for each line of PTX its place in the source, by the line table in the PTX."""
    try:
        ptx = file.read_text("utf-8", "replace")
    except OSError:
        return []
    files = dict(_FILE.findall(ptx))
    places = []
    place = ""
    for line in ptx.split("\n"):
        if match := _LOC.match(line):
            place = f"../src/{files[match[1]]}:{match[2]}: " if match[1] in files else ""
        places.append(place)
    return places


def _map_to_answer(line: str) -> str:
    line = _ANSWERS_LINE.sub(lambda match: place_in_answer(*match.groups()), line)
    line = _ASSEMBLY.sub("assembly: ", line)
    return line.replace("../src/", "").replace("../include/", "")
