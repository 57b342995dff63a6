"""Whether an agent was offered a skill, and which of its files it has read.

A skill counts as read when its own text reaches the model, however it got there: a tool of the
program, a command, a script. Calls are not interpreted.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

from pytest_upskill.cases.skill_md import read_skill_text
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.models import AgentTask, InstalledSkill
from pytest_upskill.project.frontmatter import body_of, front_of

SKILL_FILE = "SKILL.md"

_DESCRIPTION_START_CHARS = 24
"""Length of the beginning of a description that tells it from others."""
_PIECE_CHARS = 48
"""Length of the pieces of long lines, of which programs may show only the beginning."""
_DISTINCTIVE_BYTES = 12
"""Minimum length of a piece that is unlikely to occur elsewhere."""
_ENOUGH_BYTES = 24
"""Length of the pieces that show that a text was read."""
_LAYOUT = re.compile(r"""[\\"'\s]+""")
"""What differs where a text is indented, wrapped, quoted or escaped."""


def is_offered(task: AgentTask, texts: Iterable[str]) -> bool:
    """Return whether the catalogue in a request names the skill.

    Agents shorten descriptions, so the name next to its beginning, or to its file, is enough.
    """
    description = read_skill_text(text_of(task.skill), folder=task.skill_name).description
    start = " ".join(description.split())[:_DESCRIPTION_START_CHARS]
    name = task.skill_name
    return any(
        name in text and (f"{name}/{SKILL_FILE}" in text or start in " ".join(text.split()))
        for text in texts
    )


class SkillUse:
    """What a model has seen of the installed skills so far.

    Args:
        task: What the agent gets.

    Attributes:
        read: Pairs of a skill's name and the name of one of its files, of all files that the model
            has read.
    """

    def __init__(self, task: AgentTask) -> None:
        self.read: set[tuple[str, str]] = set()
        self._unread = _distinctive_pieces(task)
        self._has_begun = False
        self._seen: set[int] = set()

    def is_loaded(self, skill: str) -> bool | None:
        """Return whether the instructions of a skill were read.

        None if that cannot be told: no piece of them is left that only the skill has.
        """
        if (skill, SKILL_FILE) in self.read:
            return True
        return None if self._unread.get((skill, SKILL_FILE)) == [] else False

    def note_sent(self, texts: Iterable[str]) -> None:
        """Note what a request sends to the model, other than what the model itself wrote."""
        new = [text for text in texts if hash(text) not in self._seen]
        self._seen.update(map(hash, new))
        # One search for each piece, however many texts there are.
        text = _normal("\n".join(new))
        if not self._has_begun:
            self._has_begun = True
            self._note_beginning(text)
            return
        for file, pieces in self._unread.items():
            if file not in self.read and _quotes(text, pieces):
                self.read.add(file)

    def note_written(self, text: str) -> None:
        """Note what the model wrote: what it says itself, it need not have read."""
        self._disregard(_normal(text))

    def _note_beginning(self, prompt: str) -> None:
        """Note the first request, which quotes descriptions, the task, and perhaps a whole skill.

        A program may expand the name of a skill in the user's message.
        """
        for file, pieces in self._unread.items():
            if pieces and 2 * sum(piece in prompt for piece in pieces) > len(pieces):
                self.read.add(file)
        self._disregard(prompt)

    def _disregard(self, text: str) -> None:
        for file, pieces in self._unread.items():
            if file not in self.read and any(piece in text for piece in pieces):
                self._unread[file] = [piece for piece in pieces if piece not in text]


def _distinctive_pieces(task: AgentTask) -> dict[tuple[str, str], Sequence[str]]:
    """Return the pieces of each file of each skill that occur in no other file that it may read."""
    skills = {skill.name: _pieces_by_file(skill) for skill in task.installed}
    front = _normal("\n".join(front_of(text_of(skill.files)) for skill in task.installed))
    workspace = {p for file in task.workspace if not file.binary for p in _pieces(file.text)}
    in_skills = Counter(p for files in skills.values() for p in {*chain(*files.values())})
    in_files = Counter(chain(*(chain(*files.values()) for files in skills.values())))
    distinctive: dict[tuple[str, str], Sequence[str]] = {}
    for skill, files in skills.items():
        for name, pieces in files.items():
            own = [p for p in pieces if in_skills[p] == 1 and p not in workspace and p not in front]
            # A skill may contain its text twice, under two names.
            distinctive[skill, name] = [p for p in own if in_files[p] == 1] or own
    return distinctive


def _pieces_by_file(skill: InstalledSkill) -> Mapping[str, Collection[str]]:
    return {
        file.name: _pieces(
            # Not the frontmatter, which the catalogue quotes.
            body_of(file.text) if file.name == SKILL_FILE else file.text
        )
        for file in skill.files
        if not file.binary
    }


def _pieces(text: str) -> Collection[str]:
    """Return the pieces of a text that are unlikely elsewhere, all of it if it is short."""
    lines = map(_normal, text.splitlines())
    starts = ((line, start) for line in lines for start in range(0, len(line), _PIECE_CHARS))
    pieces = (line[start : start + _PIECE_CHARS].strip() for line, start in starts)
    long = dict.fromkeys(piece for piece in pieces if _size(piece) >= _DISTINCTIVE_BYTES)
    whole = _normal(text)
    return long or ([whole] if whole.strip("- ") else [])


def _size(piece: str) -> int:
    return len(piece.encode("utf-8", "replace"))


def _quotes(text: str, pieces: Collection[str]) -> bool:
    """Return whether a text contains enough of the pieces of a file, or all of them."""
    quoted = [piece for piece in pieces if piece in text]
    return sum(map(_size, quoted)) >= _ENOUGH_BYTES or 0 < len(pieces) == len(quoted)


def _normal(text: str) -> str:
    return _LAYOUT.sub(" ", text).strip()


def text_of(files: Iterable[WorkspaceFile]) -> str:
    """Return the text of a skill's `SKILL_FILE`, "" if it has none."""
    return next((file.text for file in files if file.name == SKILL_FILE), "")
