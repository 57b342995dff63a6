"""Diagnostics of compilers, with places that refer to lines of the answer.

Where a sandbox cannot hide files, the text of private ones is removed. An ``#include`` makes any
file part of the code, and compilers quote code: lines, names, types (also those of other lines,
after ``aka``), values and messages. So the compiler has to list the files it includes, and if one
of them is neither the answer's nor public, no text is shown.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace

from pytest_upskill.checks.compile.toolchain import CannotCompile
from pytest_upskill.sandbox.limits import Limits
from pytest_upskill.sandbox.run import Outcome
from pytest_upskill.sandbox.workspace import Workspace

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


def _map_to_answer(line: str) -> str:
    line = _ANSWERS_LINE.sub(lambda match: place_in_answer(*match.groups()), line)
    line = _ASSEMBLY.sub("assembly: ", line)
    return line.replace("../src/", "").replace("../include/", "")


PUBLIC = ("../src/", "../include/", "../tmp/", "/usr/", "<built-in>", "<command-line>")
"""Folders and names of files without secrets, as a compiler prints them."""

LISTING_BYTES = 1 << 20
"""Bytes that a compiler may print for the list of included files, besides its diagnostics."""

LEFT_OUT = "error: in a file outside the answer; its text is left out"

# Paths in the workspace, as they are shortened in outcomes.
_IN_WORKSPACE = ("src/", "include/", "tmp/")
_LOCATION = re.compile(r"(?:In file included from |\s+from )?([^\s:(][^:(]*)(?::\d+|\(\d+\))[:,)]?")
_INCLUDED = re.compile(r"\.+ (.+)")
_GUARDS = "Multiple include guards may be useful for:"
# GNU as reads files too, and writes "Error" with a capital letter, unlike the compiler itself.
_ASSEMBLER = re.compile(r"^(.*?:(?:\d+:)?\s+(?:Error|Warning|Info|Fatal error): ).*")
_CLANGS_ASSEMBLER = "<inline asm>"
# Comments may stand between the two, but what looks like one may be a string: a "*/" is enough.
_EMBED = re.compile(r"(?:#|%:|\?\?=|\*/)\s*embed")
_SPLICE = re.compile(r"(?:\\|\?\?/)\s*?\n")


def without_secrets(
    outcome: Outcome, home: Workspace, known: tuple[str, ...], *, most: int
) -> Outcome:
    """Return an outcome without text that could come from a file outside ``known``.

    Args:
        outcome: The outcome of a compiler that lists the files it includes.
        home: The workspace in which it ran.
        known: The folders whose files may be quoted.
        most: Maximum number of characters of diagnostics, without the list.
    """
    lines, included = _split(outcome.output)
    named = (match[1] for line in lines if (match := _LOCATION.match(line)))
    private = not all(_is_public(path, home, known) for path in (*included, *named))
    if private or _embeds(home) or any(_CLANGS_ASSEMBLER in line for line in lines):
        lines = [LEFT_OUT] if lines else []
    text = "\n".join(_ASSEMBLER.sub(r"\1the assembler's text is left out", line) for line in lines)
    return replace(outcome, output=text, ended="output" if len(text) > most else outcome.ended)


def _split(output: str) -> tuple[list[str], list[str]]:
    """Separate diagnostics from the list of files."""
    lines: list[str] = []
    included: list[str] = []
    listing = False
    for line in output.splitlines():
        if match := _INCLUDED.fullmatch(line):
            included.append(match[1])
        elif line == _GUARDS:
            listing = True
        elif line.strip() and not (listing and " " not in line):
            listing = False
            lines.append(line)
    return lines, included


def _is_public(path: str, home: Workspace, known: tuple[str, ...]) -> bool:
    """Return whether a file is in a known folder, both by name and after resolving links."""
    if path.startswith("<"):
        return path in known
    if path.startswith(_IN_WORKSPACE):
        path = f"../{path}"
    if not posixpath.normpath(path).startswith(known):
        return False
    cwd = home.root / "cwd"
    real = os.path.realpath(cwd / path)
    folders = (os.path.realpath(cwd / folder) + "/" for folder in known)
    return real.startswith(tuple(folders))


def _embeds(home: Workspace) -> bool:
    """Return whether code may read a file with ``#embed``, which compilers do not list."""
    codes = (file.read_text("utf-8", "replace") for file in home.root.glob("src/**/*.*"))
    return any(_EMBED.search(_SPLICE.sub("", code)) for code in codes)
