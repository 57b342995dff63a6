"""Make text of models, servers and repositories harmless where it is printed."""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\xa0\u061c\ud800-\udfff\ufff9-\ufffb\ufffe\uffff"
    "\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
# GitHub's runner finds `##[` anywhere in a line and `::` only at its start (actions/runner,
# ActionCommand.cs); Azure's and TeamCity's look for `##vso[` and `##teamcity[`.
_ANYWHERE = re.compile(r"##(?=\w*\[)")
_AT_START = re.compile(r"^([^\S\n]*+):(?=:\w)", re.MULTILINE)


def safe(text: str) -> str:
    r"""Make control characters visible and break up what CI systems take for commands.

    Terminal escapes, bidirectional overrides and invisible characters become ``\x1b`` and the like.
    ``##[``, ``##vso[``, ``##teamcity[`` and a ``::`` that begins a line get a space after their
    first character; ``[[ATTACHMENT|``, at which some JUnit readers upload a file, a backslash.
    Line breaks and tabs stay. Safe text stays as it is.
    """
    text = text.replace("\r\n", "\n").replace("[[ATTACHMENT|", "[[ATTACHMENT\\|")
    text = _UNSAFE.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
    return _AT_START.sub(r"\1: ", _ANYWHERE.sub("# #", text))


def safe_line(text: str) -> str:
    """Make text safe that is to stay on one line: its line breaks and tabs become visible too."""
    return safe(text).replace("\n", "\\n").replace("\t", "\\t")
