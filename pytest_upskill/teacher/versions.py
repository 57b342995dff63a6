"""The versions of a skill that a teacher writes: a draft, edits of a text, a description."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field

from pytest_upskill import CASE_FILE
from pytest_upskill.answers.prices import BYTES_PER_TOKEN
from pytest_upskill.answers.resources import WorkError
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.cases.skill_files import read_bundle
from pytest_upskill.cases.skill_md import MAX_DESCRIPTION, MAX_NAME, SkillText, read_skill_text
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.checks.blocks import blocks
from pytest_upskill.project.frontmatter import front_of
from pytest_upskill.teacher.additions import copies_words, refused_parts
from pytest_upskill.teacher.engine import Refused, read_part
from pytest_upskill.teacher.sources import Source, marked, source_of

MAX_SKILL_TOKENS = 5000
"""Size of a SKILL.md that the specification recommends at most."""

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_REFERENCE = re.compile(r"references/[a-z0-9][a-z0-9_-]{0,60}\.md")
_FENCE = r"^(?P<mark>`{3,}|~{3,})"
_PROGRAM = re.compile(r"(?<![\w/.-])(?:[\w.-]*/)*[\w.-]*[\w-]\.(?:sh|bash|py|js|ts|rb|ps1|exe)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an author wants of a new skill, or of a new version of one."""

    task: str = ""
    """What the skill is for, or what should get better, in words."""
    sources: Sequence[Source] = ()
    comments: str = ""
    """What the author wrote about the version before."""
    count: int = 0
    """Cases to propose if there are too few; 0 to propose none."""
    queries: int = 0
    """Queries to propose with the cases."""
    steps: int = 0
    """Versions to try."""
    runs: int = 0
    """Runs of each held-out case with each version."""
    output: Path | None = None
    """The folder for the result; None for ``skills/NAME``, or for the skill's own."""
    description: bool = False
    """Whether only the description is to be improved, by which an agent chooses the skill."""

    @property
    def known(self) -> str:
        """The texts whose URLs a new version may repeat."""
        return "\n".join((self.task, *(source.text for source in self.sources)))

    @property
    def name(self) -> str:
        """The name that a new skill must have; "" for any."""
        return self.output.absolute().name if self.output else ""

    def new_folder(self, name: str) -> Path:
        """Return the folder of a new skill, given its name.

        Raises:
            WorkError: It exists already, or the name cannot be that of a skill.
        """
        folder = self.output or Path("skills", name)
        if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
            raise WorkError(f"--output: {name!r} is no skill's name: use a-z, 0-9 and hyphens")
        if folder.exists():
            raise WorkError(f"{folder} exists: improve it by --from, or name another by --output")
        return folder

    def longest_skill(self) -> Skill:
        """Return a new skill of the greatest length, to bound the cost of a command."""
        text = "---\nname: draft\ndescription: x\n---\n" + "x" * BYTES_PER_TOKEN * MAX_SKILL_TOKENS
        return Skill(name=self.name or "draft", text=text, case_file=Path(CASE_FILE), cases=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What to improve, and by which cases."""

    skill: Skill
    """Its text is the ``SKILL.md`` as it is, without the files that this names."""
    settings: Settings
    is_new: bool = False
    """Whether the skill competes with no skill; otherwise with the text as it is."""
    train: Sequence[Case] = ()
    holdout: Sequence[Case] = ()
    proposes: bool = False
    """Whether there are too few cases, and the teacher proposes some first."""

    @property
    def longest(self) -> str:
        """A text as long as any version may be, to bound its price."""
        size = BYTES_PER_TOKEN * token_limit(self.skill.text)
        return f"{self.skill.text}\n{'x' * (size - len(self.skill.text.encode()))}"

    @property
    def subject(self) -> str:
        """What cases are to be about; nothing of a draft."""
        if self.is_new:
            return self.settings.task
        # It tells the teacher what cases to write.
        front = marked("skill", front_of(self.skill.text)[:1000])
        task = self.settings.task
        return f"{task}\n\nThe skill so far:\n\n{front}" if task else front

    @property
    def sources(self) -> Sequence[Source]:
        """The sources of cases: by default the task, or the skill that exists."""
        own = ("task", self.settings.task) if self.is_new else ("SKILL.md", self.skill.text)
        return self.settings.sources or [source_of(*own)]

    def version(self, text: str) -> Skill:
        """Return the skill with another ``SKILL.md``, and with the files that this one names."""
        read = read_skill_text(text, folder=self.skill.folder.name)
        bundle = read_bundle(self.skill.folder, read, self.skill.hidden_files)
        return replace(self.skill, text=bundle.text, description=read.description)


_Description = Annotated[str, Field(min_length=1, max_length=MAX_DESCRIPTION)]


def read_draft(reply: str, known: str, *, name: str = "") -> tuple[SkillText, Mapping[str, str]]:
    """Read the draft of a reply.

    Args:
        reply: The text of the reply.
        known: Task and sources; the draft may repeat their URLs.
        name: The name that it must have; "" for any.

    Returns:
        The ``SKILL.md``, and the texts of its references by path: ``references/details.md``.

    Raises:
        Refused: There is none, or something in it is not allowed.
    """
    if not (text := _markdown_skill(reply)):
        raise Refused("the reply has no SKILL.md: write one in a fenced block")
    files = {each.name: each.code for each in blocks(reply) if each.name and each.closed}
    references = {path: code for path, code in files.items() if _REFERENCE.fullmatch(path)}
    skill = _read_skill(text, folder=name or "skill")
    _refuse_draft(skill, references, known, name)
    return skill, references


def _read_skill(text: str, *, folder: str = "") -> SkillText:
    try:
        return read_skill_text(text, folder=folder)
    except BadFile as error:
        raise Refused(f"not a valid SKILL.md: {error.problems[0].what}") from None


def _markdown_skill(reply: str) -> str:
    """Return the ``SKILL.md`` that a reply has as Markdown, in a block or bare; "" if none.

    A block may contain blocks with equally long fences: the last fence ends it.
    """
    reply = re.split(rf"{_FENCE}[^\n]*\breferences/", reply, maxsplit=1, flags=re.MULTILINE)[0]
    start = re.search(
        rf"(?:{_FENCE}[^\n]*\n)?^---[ \t]*\n(?=name:|description:)", reply, re.MULTILINE
    )
    if start is None:
        return ""
    text = reply[start.start() :]
    if mark := start["mark"]:
        text = text.partition("\n")[2]
        ends = [*re.finditer(rf"^{mark}[`~]*[ \t]*$", text, re.MULTILINE)]
        text = text[: ends[-1].start()] if ends else text
    return f"{text.strip()}\n"


def _refuse_draft(draft: SkillText, references: Mapping[str, str], known: str, name: str) -> None:
    """Raise Refused if something in a draft is not allowed."""
    if not _NAME.fullmatch(draft.name):
        raise Refused(f"the name {draft.name!r} is not lower-case words with hyphens")
    if name and draft.name != name:
        raise Refused(f"the name is {draft.name!r}, not {name!r}")
    for warning in draft.warnings:
        raise Refused(f"{warning.where}: {warning.what}")
    if more := yaml.safe_load(draft.text[4 : draft.body_at]).keys() - {"name", "description"}:
        raise Refused(f"the frontmatter has more than name and description: {min(more)}")
    if (size := estimate_tokens(draft.text)) > MAX_SKILL_TOKENS:
        raise Refused(f"{size:,} tokens, more than the {MAX_SKILL_TOKENS:,} allowed")
    for part in (draft.text, *references.values()):
        for problem in refused_parts(part, known=known):
            raise Refused(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One replacement."""

    find: str
    replace: str


_Edits = Annotated[tuple[Edit, ...], Field(min_length=1)]


def new_version(text: str, reply: str, *, of_description: bool = False) -> str:
    """Return the text that a reply makes of a ``SKILL.md``.

    Raises:
        Refused: There is none, or it cannot be read.
    """
    if of_description:
        description = read_part(reply, "description", _Description)
        edited = _with_description(text, " ".join(description.split()))
    else:
        edited = _markdown_skill(reply) or apply_edits(text, read_part(reply, "edits", _Edits))
    if edited == text:
        raise Refused("the reply changes nothing")
    return edited


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with every edit made, in order.

    Raises:
        Refused: What is to be found occurs never or several times.
    """
    for edit in edits:
        times = text.count(edit.find) if edit.find else 0
        if times != 1:
            raise Refused(f"{edit.find[:60]!r} occurs {times} times, not once")
        text = text.replace(edit.find, edit.replace.replace("\r\n", "\n"))
    return text


def _with_description(text: str, description: str) -> str:
    """Return a ``SKILL.md`` with another description and no other change."""
    head = text[: read_skill_text(text, folder="").body_at]
    start = head.index("\n") + 1
    try:
        node = yaml.compose(head[start:])
    except yaml.YAMLError:
        raise Refused("the frontmatter is not valid YAML: mend it first") from None
    assert isinstance(node, yaml.MappingNode)
    value = next(value for key, value in node.value if key.value == "description")
    at, end = (start + mark.index for mark in (value.start_mark, value.end_mark))
    # A block ends where the next key begins.
    blank = text[at:end][len(text[at:end].rstrip()) :]
    return text[:at] + json.dumps(description, ensure_ascii=False) + blank + text[end:]


def check_candidate(
    new: str, old: str, cases: Sequence[Case], *, known: str = "", description: bool = False
) -> None:
    """Check a new version of a ``SKILL.md``.

    Args:
        new: The new text.
        old: The text in the skill's folder.
        cases: All cases of the skill; their questions must not be copied.
        known: Texts of the author, whose URLs may be repeated.
        description: Whether the description, and nothing else, may change.

    Raises:
        Refused: Something in it is not allowed.
    """
    if not description and _front(new) != _front(old):
        # The description decides when a skill is used, other keys what it may do.
        raise Refused("the frontmatter is changed: only the text below it may change")
    if (size := estimate_tokens(new)) > token_limit(old):
        raise Refused(f"{size:,} tokens, more than the {token_limit(old):,} allowed")
    for problem in refused_parts(new, old, known):
        raise Refused(problem)
    programs = set(_PROGRAM.findall(old))
    if found := next((name for name in _PROGRAM.findall(new) if name not in programs), ""):
        raise Refused(f"names a program that the skill did not name: {found[:80]}")
    if any(copies_words(new, case.input) and not copies_words(old, case.input) for case in cases):
        raise Refused("copies the question of a case")


def _front(text: str) -> str:
    return text[: _read_skill(text).body_at]


def token_limit(old: str) -> int:
    """Return how many tokens a new version may have."""
    return max(MAX_SKILL_TOKENS, 3 * estimate_tokens(old) // 2)


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return len(text.encode()) // BYTES_PER_TOKEN
