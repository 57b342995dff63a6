"""Where the frontmatter of Markdown ends, in a skill, a rule or a case."""

import re

FRONTMATTER = re.compile(
    r"---[^\S\n]*\n(.*?)^(?:---|\.\.\.)(?: #[^\n]*|[^\S\n]*)(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
"""YAML between two lines at the start of a text."""


def front_of(text: str) -> str:
    """Return the frontmatter with both its lines, "" of a text without one."""
    found = FRONTMATTER.match(text)
    return found[0] if found else ""


def body_of(text: str) -> str:
    """Return what follows the frontmatter."""
    return text.removeprefix(front_of(text))
