"""Reading of ``SKILL.md``, with a check against the Agent Skills specification.

The specification is https://agentskills.io/specification. Violations that leave the skill usable
are warnings, because agents load such skills too.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from unicodedata import normalize

from pytest_upskill.cases.source.document import BadFile, Document, Problem
from pytest_upskill.cases.source.yaml import NULL, parse_yaml
from pytest_upskill.project.frontmatter import FRONTMATTER
from pytest_upskill.project.messages import safe_line

MAX_NAME = 64
MAX_DESCRIPTION = 1024

_KEYS = frozenset(
    {
        *("name", "description", "license", "compatibility", "metadata", "allowed-tools"),
        # Further ones of https://code.claude.com/docs/en/skills.
        *("agent", "argument-hint", "arguments", "context", "disable-model-invocation"),
        *("disallowed-tools", "effort", "hooks", "model", "paths", "shell", "user-invocable"),
        "when_to_use",
    }
)

_ENTRY = re.compile(r"^[^\S\n]*[^#\s]", re.MULTILINE)

# A key of the frontmatter with a plain value, perhaps of several lines: neither quoted nor a block,
# list or object.
_PLAIN = re.compile(
    r"^(description: *\n? +|[A-Za-z_-]+: +)(?![\s'\"|>\[{&*!#])(.*\S(?:\n +.*\S)*) *$", re.MULTILINE
)

UNSPECIFIED = re.compile(
    rf"^(?!(?:{'|'.join(sorted(_KEYS))})[ ]*:)(?P<key>[\w-]+)[ ]*:.*\n"
    r"(?:(?:[ \t#-].*)?\n)+",
    re.MULTILINE,
)
"""An entry of the frontmatter of which nobody specifies the ``key``, with its further lines.

These begin with a space, a hyphen or a #, and there is at least one.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillText:
    """The content of a ``SKILL.md``."""

    name: str
    description: str = ""
    """What an agent sees before it loads the skill."""
    hidden: bool = False
    """Whether ``disable-model-invocation`` keeps it out of what an agent sees."""
    text: str
    """The whole file with its frontmatter, with ``\\n`` as line breaks."""
    body_at: int
    """Offset of the line that closes the frontmatter."""
    warnings: tuple[Problem, ...]
    """Violations of the specification."""


def read_skill_text(text: str, *, folder: str) -> SkillText:
    """Read a ``SKILL.md``.

    Args:
        text: The file's text, without a byte order mark.
        folder: Name of the folder that the file is in.

    Raises:
        BadFile: The frontmatter, the name or the description is missing or unusable.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if (at := text.find("\0")) >= 0:
        raise BadFile([Problem.in_text(text, at, "a NUL character: save the file as UTF-8")])
    frontmatter = FRONTMATTER.match(text)
    if frontmatter is None:
        why = "no frontmatter: the file must begin with a line '---', then 'name: …'"
        if text.partition("\n")[0].rstrip() == "---":
            why = "the frontmatter has no end: close it with a line '---'"
        raise BadFile([Problem(line=1, column=1, what=why)])
    end = frontmatter.end(1)
    no_keys = Problem(line=2, column=1, what="the frontmatter must contain lines such as 'name: …'")
    if not _ENTRY.search(frontmatter[1]):
        raise BadFile([no_keys])
    document, syntax_errors = _parse(text[:end])
    fields = document.value
    if not isinstance(fields, dict):
        raise BadFile([no_keys])
    problems = []
    for key in ("name", "description"):
        if key not in fields:
            what = "missing from the frontmatter"
            problems.append(Problem(line=1, column=1, where=key, what=what))
        elif unusable := _why_unusable(key, fields[key]):
            problems.append(document.problem((key,), unusable))
    if problems:
        raise BadFile(problems)
    duplicates = (problem for _, problem in document.flaws)
    return SkillText(
        name=fields["name"].strip(),
        description=fields["description"].strip(),
        hidden=str(fields.get("disable-model-invocation")).lower() == "true",
        text=text,
        body_at=end,
        warnings=tuple(sorted([*syntax_errors, *duplicates, *_spec_violations(document, folder)])),
    )


def _parse(frontmatter: str) -> tuple[Document, Sequence[Problem]]:
    """Return the frontmatter, and its syntax errors if it can be read in spite of them.

    Invalid YAML is read with plain values quoted, as agents do. All values are text.
    """
    # A comment instead of the first line, so that all places are those of the file.
    frontmatter = "#" + frontmatter[1:]
    try:
        return parse_yaml(frontmatter, types=[NULL]), ()
    except BadFile as error:
        quoted = _PLAIN.sub(_quote_value, frontmatter)
        with suppress(BadFile):
            return parse_yaml(quoted, types=[NULL]), error.problems
        raise


def _quote_value(line: re.Match[str]) -> str:
    value = line[2].replace("'", "''")
    return f"{line[1]}'{value}'"


def _why_unusable(key: str, value: object) -> str | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return "must not be empty"
    if not isinstance(value, str):
        return "must be text: quote it"
    text = value.strip()
    if key == "name" and not text.isprintable():
        return "must be one line of printable characters"
    if key == "name" and safe_line(text) != text:  # in reports and logs
        return "must not contain a CI runner's command, such as '##['"
    return None


def _spec_violations(document: Document, folder: str) -> Iterator[Problem]:
    """Find violations of the specification in the frontmatter."""
    for key, value in document.value.items():
        if key not in _KEYS:
            what = "unknown key: the specification keeps such entries under 'metadata'"
            yield document.problem((key,), what, key=True)
        elif violation := _spec_violation(key, value, folder):
            yield document.problem((key,), violation)


def _spec_violation(key: str, value: Any, folder: str) -> str | None:
    most = {"description": MAX_DESCRIPTION, "compatibility": 500}.get(key)
    match key, value:
        case "name", str():
            return _name_violation(value.strip(), folder)
        case "metadata", _:
            maps_texts = isinstance(value, dict) and not any(
                isinstance(each, dict | list) for each in value.values()
            )
            return None if maps_texts else "must map text to text"
        case "license" | "compatibility" | "allowed-tools", dict() | list():
            return f"must be text{', tools separated by spaces' if key == 'allowed-tools' else ''}"
        case _, str() if most and len(value.strip()) > most:
            return f"has {len(value.strip()):,} characters; at most {most:,} are allowed"
    return None


def _name_violation(name: str, folder: str) -> str | None:
    name = normalize("NFKC", name)
    if len(name) > MAX_NAME:
        return f"has {len(name)} characters; at most {MAX_NAME} are allowed"
    if name != name.lower() or not all(part.isalnum() for part in name.split("-")):
        return "must be lower-case letters and digits, with single hyphens between"
    # In a repository with one skill, its folder is often called "skill".
    if folder != "skill" and name != normalize("NFKC", folder):
        return f"must be the name of its folder, {folder!r}"
    return None
