"""Removal of text of private files from diagnostics, for sandboxes that cannot hide files.

An ``#include`` makes any file part of the code, and compilers quote code: lines, names, types (also
those of other lines, after ``aka``), values and messages. So the compiler has to list the files it
includes, and if one of them is neither the answer's nor public, no text is shown.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pytest_upskill.sandbox.run import Outcome
from pytest_upskill.sandbox.workspace import Workspace

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
_PTXAS = "ptxas "
_FIGURES = re.compile(r"ptxas info|\s+\d+ bytes stack frame")
_NAME = re.compile(r"'[^']*'|(?<=for )\S+")
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
    private = not all(_is_public(path, home, known) for path in included)
    if private or _embeds(home) or any(_CLANGS_ASSEMBLER in line for line in lines):
        kept = [LEFT_OUT, *_without_names(lines)] if lines else []
    else:
        kept = list(_of_public_files(lines, home, known))
    text = "\n".join(kept)
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


def _without_names(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of ptxas about resource usage, with numbers instead of function names."""
    names: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"'function{len(names) + 1}'")

    for line in lines:
        if _FIGURES.match(line):
            yield _NAME.sub(number, line)


def _of_public_files(
    lines: Iterable[str], home: Workspace, known: tuple[str, ...]
) -> Iterator[str]:
    """Return the lines about public files; a line without a place belongs to the line above."""
    keeping = True
    left_out = False
    for line in lines:
        if line.startswith(_PTXAS):
            keeping = True
        elif match := _LOCATION.match(line):
            keeping = _is_public(match[1], home, known)
        if keeping:
            left_out = False
            yield _ASSEMBLER.sub(r"\1the assembler's text is left out", line)
        elif not left_out:
            left_out = True
            yield LEFT_OUT
