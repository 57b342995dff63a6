"""Reading of ``SKILL.md``, with a check against the Agent Skills specification.

The specification is https://agentskills.io/specification. Violations that leave the skill usable
are warnings, because agents load such skills too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from unicodedata import normalize

import yaml

from pytest_upskill.cases.source.document import BadFile, Problem
from pytest_upskill.cases.source.yaml import compose
from pytest_upskill.project.messages import safe_line

MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500

_MAX_DEPTH = 20
_SPECIFIED = frozenset(
    {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
)
_CLAUDE_CODE = frozenset(
    {
        "agent",
        "argument-hint",
        "arguments",
        "context",
        "disable-model-invocation",
        "disallowed-tools",
        "effort",
        "hooks",
        "model",
        "paths",
        "shell",
        "user-invocable",
        "when_to_use",
    }
)
"""Keys of https://code.claude.com/docs/en/skills beyond the specification."""

# A key of the frontmatter with a plain value: neither quoted nor a block, list or object.
_PLAIN = re.compile(r"^([A-Za-z_-]+:[ ]+)(?![\s'\"|>\[{&*!#])(.*\S)[ ]*$", re.MULTILINE)
_Fields = Mapping[str, tuple[yaml.Node, yaml.Node]]
"""Nodes of the key and the value of every entry, by key."""


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
    frontmatter = _frontmatter(text)
    node, syntax_errors = _compose(frontmatter)
    fields, duplicates = _fields(node)
    if problems := [
        *_required_problems(fields, "name"),
        *_required_problems(fields, "description"),
    ]:
        raise BadFile(problems)
    body_at = text.index("\n") + 1 + len(frontmatter)
    return SkillText(
        name=_text(fields["name"][1]),
        description=_text(fields["description"][1]),
        hidden="disable-model-invocation" in fields
        and _text(fields["disable-model-invocation"][1]).lower() == "true",
        text=text,
        body_at=body_at,
        warnings=tuple(sorted([*syntax_errors, *duplicates, *_spec_violations(fields, folder)])),
    )


def _frontmatter(text: str) -> str:
    first, *lines = text.split("\n")
    if first.rstrip() != "---":
        what = "no frontmatter: the file must begin with a line '---', then 'name: …'"
        raise BadFile([Problem(line=1, column=1, what=what)])
    for index, line in enumerate(lines):
        if line.rstrip() in {"---", "..."}:
            return "\n".join(lines[:index])
    what = "the frontmatter has no end: close it with a line '---'"
    raise BadFile([Problem(line=1, column=1, what=what)])


def _compose(frontmatter: str) -> tuple[yaml.Node | None, Sequence[Problem]]:
    """Return the node of the YAML, and its syntax errors if it can be read in spite of them.

    Invalid YAML is read with plain values quoted, as agents do.
    """
    try:
        return compose(frontmatter, max_depth=_MAX_DEPTH, first_line=2), ()
    except BadFile as error:
        quoted = _PLAIN.sub(_quote_value, frontmatter)
        with suppress(BadFile):
            return compose(quoted, max_depth=_MAX_DEPTH, first_line=2), error.problems
        raise


def _quote_value(line: re.Match[str]) -> str:
    value = line[2].replace("'", "''")
    return f"{line[1]}'{value}'"


def _fields(node: yaml.Node | None) -> tuple[_Fields, Sequence[Problem]]:
    """Return the entries of the frontmatter, and its duplicate keys, of which the last wins."""
    if not isinstance(node, yaml.MappingNode):
        what = "the frontmatter must contain lines such as 'name: …'"
        raise BadFile([Problem(line=2, column=1, what=what)])
    fields: dict[str, tuple[yaml.Node, yaml.Node]] = {}
    duplicates = []
    for key, value in node.value:
        name = _text(key)
        if name in fields:
            first = fields[name][0].start_mark.line + 2
            what = f"duplicate key (first in line {first}): remove one"
            duplicates.append(_problem(key.start_mark, name, what))
        fields[name] = key, value
    return fields, duplicates


def _required_problems(fields: _Fields, key: str) -> Iterator[Problem]:
    """Find the problem of a required key."""
    if key not in fields:
        yield Problem(line=1, column=1, where=key, what="missing from the frontmatter")
    elif what := _why_unusable(key, fields[key][1]):
        yield _problem(fields[key][1].start_mark, key, what)


def _why_unusable(key: str, value: yaml.Node) -> str | None:
    text = _text(value)
    if not _is_scalar(value):
        return "must be text"
    if not text or value.tag == "tag:yaml.org,2002:null":
        return "must not be empty"
    if key == "name" and not text.isprintable():
        return "must be one line of printable characters"
    if key == "name" and safe_line(text) != text:  # in reports and logs
        return "must not contain a CI runner's command, such as '##['"
    return None


def _spec_violations(fields: _Fields, folder: str) -> Iterator[Problem]:
    """Find violations of the specification in the frontmatter."""
    for key, (key_node, value) in fields.items():
        if key not in _SPECIFIED | _CLAUDE_CODE:
            what = "unknown key: the specification keeps such entries under 'metadata'"
            yield _problem(key_node.start_mark, key, what)
        elif violation := _spec_violation(key, value, folder):
            yield _problem(value.start_mark, key, violation)


def _spec_violation(key: str, value: yaml.Node, folder: str) -> str | None:
    text = _text(value)
    match key:
        case "name":
            return _name_violation(text, folder)
        case "description" if len(text) > MAX_DESCRIPTION:
            return f"has {len(text):,} characters; at most {MAX_DESCRIPTION:,} are allowed"
        case "compatibility" if len(text) > MAX_COMPATIBILITY:
            return f"has {len(text):,} characters; at most {MAX_COMPATIBILITY:,} are allowed"
        case "metadata" if not _maps_texts(value):
            return "must map text to text"
        case "license" | "compatibility" | "allowed-tools" if not _is_scalar(value):
            return f"must be text{', tools separated by spaces' if key == 'allowed-tools' else ''}"
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


def _maps_texts(node: yaml.Node) -> bool:
    return isinstance(node, yaml.MappingNode) and all(_is_scalar(value) for _, value in node.value)


def _is_scalar(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode)


def _text(node: yaml.Node) -> str:
    return node.value.strip() if isinstance(node, yaml.ScalarNode) else ""


def _problem(mark: Any, where: str, what: str) -> Problem:
    where = where if where.isprintable() else repr(where)
    # Marks count from 0, and from the line after the opening fence.
    return Problem(line=mark.line + 2, column=mark.column + 1, where=where, what=what)
