"""What an agent did in a run, turn by turn, as people read it."""

import re
from collections.abc import Iterator

from pytest_upskill.checks.calls import ToolUse
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.checks.text import cut
from pytest_upskill.models import AgentRun, AgentTurn
from pytest_upskill.project.messages import counted

_LINE_CHARS = 160
_FIRST_LINES, _LAST_LINES = 4, 10
"""Lines of a result on a page."""
_SHOWN_FILES = 20
_BY_PROGRAMS = re.compile(r"(?:^|/)(\.venv|venv|node_modules|__pycache__|\.cache|\.\w+_cache)(?=/)")
"""Folders whose files no model writes itself."""


def arguments_of(call: ToolUse) -> str:
    """Return the arguments of a call as people write them: a command, or a line for each."""
    texts = call.arguments
    for name in ("command", "cmd"):
        if name in texts:
            return f"$ {texts[name]}"
    return "\n".join(f"{name}: {text}" for name, text in texts.items()) or call.input


def shown_files(run: AgentRun) -> list[WorkspaceFile]:
    """Return the first files that a run changed, without those that only programs write."""
    own = (file for file in run.changed if file.name not in run.of_setup)
    return [file for file in own if not _BY_PROGRAMS.search(file.name)][:_SHOWN_FILES]


def folded_files(run: AgentRun) -> list[str]:
    """Return what else a run changed, deleted and left, in one line for each."""
    lines = [f"not looked at: {what}" for what in run.left_out]
    lines += [f"deleted: {name}" for name in run.deleted if not _BY_PROGRAMS.search(name)]
    if more := len(run.changed) - len(shown_files(run)):
        why = f"of the setup, of programs, or after the first {_SHOWN_FILES}"
        lines.append(f"{counted(more, 'more file')}, {why}")
    return lines


def both_ends(result: str) -> str:
    """Return the first and the last lines of a long result: what is wrong is mostly at its end."""
    lines = result.splitlines()
    more = len(lines) - _FIRST_LINES - _LAST_LINES
    if more <= 1:
        return result
    return "\n".join((*lines[:_FIRST_LINES], f"[… {more} more lines]", *lines[-_LAST_LINES:]))


def last_steps(run: AgentRun) -> str:
    """Return the last turns of a run for a terminal: calls, and the last lines of their results."""
    first = max(0, len(run.turns) - 3)
    lines = [
        line
        for number, turn in enumerate(run.turns[first:], first + 1)
        for line in _turn_lines(f"turn {number}: ", turn)
    ]
    return "\n".join([*lines, f"stopped: {run.limit}"] if run.limit else lines)


def _turn_lines(head: str, turn: AgentTurn) -> Iterator[str]:
    if turn.text.strip():
        yield head + cut(" ".join(turn.text.split()), _LINE_CHARS)
    for call in turn.calls:
        yield head + cut(f"{call.name} {arguments_of(call)}".replace("\n", " "), _LINE_CHARS)
        result = [line for line in call.result.splitlines() if line.strip()]
        # The last ones: errors are at the end.
        yield from (f"  | {cut(line, _LINE_CHARS)}" for line in result[-4:])
