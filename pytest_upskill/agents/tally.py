"""The record of a run, made from its exchanges with its model and the files that it left.

Whether the agent was offered a skill, loaded it and read its files is found in the requests to the
model: an agent's own account may be wrong. No link is followed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_upskill.answers.prices import BYTES_PER_TOKEN
from pytest_upskill.cases.skill_text import read_skill_text
from pytest_upskill.checks.files import MAX_BYTES, MAX_FILES, WorkspaceFile, is_safe_name
from pytest_upskill.models import (
    AgentRun,
    AgentTask,
    Completion,
    Request,
    RunLimits,
    ToolCall,
    ToolUse,
    with_totals,
)
from pytest_upskill.project.files import open_regular
from pytest_upskill.sandbox.disk_usage import entries_below

_NO_REPLY = Completion(text="", input_tokens=0, output_tokens=0, cost_usd=0.0)


@dataclass(slots=True, kw_only=True)
class RunTally:
    """The exchanges of one run so far: replies, tokens, and whether the skill was seen."""

    task: AgentTask
    skill_of: Callable[[ToolCall], str]
    """Returns the skill that a call asks for, by its name or its folder; "" for none."""
    may_be_denied: Callable[[ToolCall, str], bool]
    """See `Cli.may_be_denied`."""
    limits: RunLimits = field(default_factory=RunLimits)
    offered: bool | None = None
    """Whether the catalogue names the skill; None before the first request."""
    loaded: bool | None = None
    """Whether the skill's instructions were in a request; None if that is unknown."""
    called: bool = False
    """Whether the model asked for the skill, and got a result."""
    denied: bool = False
    """Whether a result shows that the skill could not be loaded."""
    read_files: set[str] = field(default_factory=set)
    """Names of the skill's other files that the model has read."""
    requests: int = 0
    replies: list[Completion] = field(default_factory=list)
    """Replies of the conversation."""
    side_replies: list[Completion] = field(default_factory=list)
    """Replies to side questions of the agent, such as one for a title."""
    tokens: int = 0
    """Tokens of all exchanges, estimated where they were not counted."""
    prefix_tokens: int = 0
    """Tokens of the conversation so far, with which its next prompt begins."""

    def note_request(self, texts: Sequence[str], results: Iterable[tuple[str, str]]) -> None:
        """Note which parts of the skill the next prompt of the conversation contains.

        Args:
            texts: All texts of the prompt that may quote the skill.
            results: Pairs of the id of a call and its result.
        """
        if not self.task.skill:
            return
        if self.offered is None:
            self.offered = is_offered(self.task, texts)
        # One search per line of the skill, however many texts there are.
        prompt = ["\n".join(texts)]
        self.loaded = self.loaded or is_loaded(self.task, prompt)
        self.read_files = {*self.read_files, *files_read(self.task, prompt)}
        last_calls = self.replies[-1].tool_calls if self.replies else ()
        skill_calls = {call.id: call for call in last_calls if self._calls_skill(call)}
        if not skill_calls:
            # Spares a search of the results, which may be of a long conversation.
            return
        self.called = True
        for call_id, result in dict(results).items():
            if call_id not in skill_calls:
                continue
            if is_partly_loaded(self.task, result):
                self.loaded = True
            self.denied = self.denied or self.may_be_denied(skill_calls[call_id], result)

    def note_reply(
        self, completion: Completion, prompt_bytes: int, *, in_conversation: bool = True
    ) -> None:
        """Note a reply.

        Args:
            completion: The reply, with its price.
            prompt_bytes: Size of its prompt, from which missing tokens are estimated.
            in_conversation: False for the reply to a side question.
        """
        tokens = completion.tokens
        if tokens is None:
            tokens = (prompt_bytes + len(completion.text)) // BYTES_PER_TOKEN
        self.tokens += tokens
        if in_conversation:
            self.replies.append(completion)
            self.prefix_tokens = tokens
        else:
            self.side_replies.append(completion)

    @property
    def chosen_skill(self) -> str:
        """The first skill that the model asked for; "" for none."""
        return self.task.skill_named(next(filter(None, map(self.skill_of, self._calls)), ""))

    @property
    def has_chosen(self) -> bool:
        """Whether the run ends because the model chose a skill, or none in all its turns."""
        return self.task.chooses and bool(
            self.chosen_skill or len(self.replies) >= self.task.max_turns
        )

    @property
    def has_final_answer(self) -> bool:
        """Whether the last reply of the conversation calls no tool, and so ends the run."""
        return bool(self.replies) and not self.replies[-1].tool_calls

    def exceeded_limit(self) -> str:
        """Return the limit that the next request would exceed, "" for none."""
        return self.limits.exceeded_limit(
            turns=len(self.replies),
            max_turns=self.task.max_turns,
            requests=self.requests,
            tokens=self.tokens,
            prefix_tokens=self.prefix_tokens,
        )

    def run(self, version: str, limit: str) -> AgentRun:
        """Return the run as its exchanges show it, without the files that it left.

        Args:
            version: Version of the agent.
            limit: The limit that ended the run; "" for none.
        """
        denied = self.denied and self.loaded is False
        return AgentRun(
            version=version,
            turns=len(self.replies),
            requests=self.requests,
            offered=self.offered,
            called=self.called,
            taken=self.chosen_skill if self.task.chooses else "",
            loaded=None if self.task.chooses else self.loaded,
            read=tuple(sorted(self.read_files)),
            calls=recorded_calls(self._calls),
            limit=limit,
            broken=broken_reason(self.task, offered=self.offered, denied=denied),
        )

    def completion(self, run: AgentRun | None = None) -> Completion:
        """Return the last reply of the conversation, with the totals of all replies.

        Args:
            run: The record to attach; None while the run has none.
        """
        replies = [*self.side_replies, *(self.replies or [_NO_REPLY])]
        retries = sum(reply.attempts - 1 for reply in replies)
        return replace(with_totals(replies), attempts=1 + retries, tool_calls=(), agent_run=run)

    def paid(self) -> Completion | None:
        """Return what a run that fails has cost so far, None if it got no reply."""
        return self.completion() if self.replies or self.side_replies else None

    @property
    def _calls(self) -> list[ToolCall]:
        return [call for reply in self.replies for call in reply.tool_calls]

    def _calls_skill(self, call: ToolCall) -> bool:
        name = self.skill_of(call)
        return bool(name) and self.task.skill_named(name) == self.task.skill_name


SKILL_FILE = "SKILL.md"

_DISTINCTIVE_CHARS = 12
"""Minimum length of a line that is unlikely to occur elsewhere."""
_DESCRIPTION_START_CHARS = 24
"""Length of the beginning of a description that tells it from others."""

_MAX_CALLS = 200
_MAX_NAME_CHARS = 100
_MAX_INPUT_CHARS = 2000
"""Maximum length of a call's arguments in a record."""

_READ_SHARE = 0.5
"""A file counts as read if more than this share of its distinctive lines was."""


def is_offered(task: AgentTask, texts: Sequence[str]) -> bool:
    """Return whether the catalogue in a request names the skill.

    Agents shorten descriptions, so the name next to its beginning, or to its file, is enough.
    """
    text = next((file.text for file in task.skill if file.name == SKILL_FILE), "")
    description = read_skill_text(text, folder=task.skill_name).description
    start = " ".join(description.split())[:_DESCRIPTION_START_CHARS]
    name = task.skill_name
    return any(
        name in text and (f"{name}/{SKILL_FILE}" in text or start in " ".join(text.split()))
        for text in texts
    )


def is_loaded(task: AgentTask, texts: Iterable[str]) -> bool | None:
    """Return whether the skill's instructions were in a request; None if the skill has none.

    Args:
        task: What the agent got.
        texts: Texts that were sent to the model, such as the results of tools.
    """
    body = _instructions(task)
    if task.skill and not body.strip("- \n"):
        return None
    return _occurs_in(body, texts)


def skill_in_call(call: ToolCall, skills: str) -> str:
    """Return the folder of the skill whose SKILL.md a call names, "" for none.

    Args:
        call: A call of any tool.
        skills: The folder where skills are installed, below the home folder.
    """
    text = call.malformed or json.dumps(call.arguments, ensure_ascii=False)
    match = re.search(rf"{re.escape(skills)}/([^/\\\s\"']+)/SKILL\.md", text)
    return match[1] if match else ""


def files_read(task: AgentTask, texts: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the skill's other files whose text was in a request."""
    texts = tuple(texts)
    return tuple(
        file.name
        for file in task.skill
        if file.name != SKILL_FILE and not file.binary and _occurs_in(file.text, texts)
    )


def is_partly_loaded(task: AgentTask, result: str) -> bool:
    """Return whether the result of a call of the skill contains a line of its instructions.

    An agent that reads the file by itself may read its beginning only.
    """
    return any(line in result for line in _distinctive_lines(_instructions(task)))


def recorded_calls(calls: Sequence[ToolCall]) -> tuple[ToolUse, ...]:
    """Return the first calls of a run, with arguments as long as a record can hold."""
    return tuple(
        ToolUse(
            name=call.name[:_MAX_NAME_CHARS],
            input=(call.malformed or json.dumps(call.arguments, ensure_ascii=False))[
                :_MAX_INPUT_CHARS
            ],
        )
        for call in calls[:_MAX_CALLS]
    )


def broken_reason(task: AgentTask, *, offered: bool | None, denied: bool) -> str:
    """Return why the installation of the skill makes a run useless, "" if it does not.

    Args:
        task: What the agent got.
        offered: Whether the skill was in the catalogue; None if that is unknown.
        denied: Whether the model asked for the skill, and did not get its instructions.
    """
    if not task.skill:
        return "the agent was offered the skill, which is not installed" if offered else ""
    if offered is False:
        return "the skill is installed, but the agent was not offered it"
    if denied:
        return "the model called the skill, but its instructions never reached it"
    return ""


def _instructions(task: AgentTask) -> str:
    """Return the text of SKILL.md without the frontmatter, which the catalogue quotes."""
    text = next((file.text for file in task.skill if file.name == SKILL_FILE), "")
    frontmatter, mark, body = text.partition("\n---")
    return body if mark and frontmatter.startswith("---") else text


def _occurs_in(content: str, texts: Iterable[str]) -> bool:
    """Return whether most of the distinctive lines of a file occur together in the texts.

    An agent may read a long file in several parts.
    """
    lines = [*_distinctive_lines(content)] or [content.strip()]
    if not lines[0]:
        return False
    texts = tuple(texts)
    occurring = sum(any(line in text for text in texts) for line in lines)
    return occurring > _READ_SHARE * len(lines)


def _distinctive_lines(text: str) -> Iterator[str]:
    """Yield each line once that is long enough to be unlikely elsewhere."""
    lines = (line.strip() for line in text.splitlines())
    yield from dict.fromkeys(line for line in lines if len(line) >= _DISTINCTIVE_CHARS)


def texts_in(value: object) -> Iterator[str]:
    """Yield every text in a JSON value, however deep, except names of fields."""
    return (part for part in _parts(value) if isinstance(part, str))


def results_in(value: object) -> Iterator[tuple[str, str]]:
    """Yield pairs of the id of a call and its result, a result from the texts in it."""
    for part in _parts(value):
        if isinstance(part, Mapping) and "arguments" not in part:
            call_id = part.get("tool_use_id") or part.get("call_id")
            if call_id:
                result = part.get("output") or part.get("content")
                yield str(call_id), "\n".join(texts_in(result))


def _parts(value: object) -> Iterator[object]:
    """Yield a JSON value and all values in it, in their order."""
    pending = [value]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, Mapping):
            pending += reversed([*part.values()])
        elif isinstance(part, list):
            pending += reversed(part)


_MAX_ENTRIES = 20_000
"""Maximum number of files, folders and others that are looked at."""


class TooMuchLeft(Exception):  # noqa: N818  a miss of the agent, not an error of this program
    """The folder contains more than a record may hold; the message says what."""


def read_left_files(folder: Path) -> dict[str, WorkspaceFile]:
    """Return the regular files below a folder by name; the program that wrote them must have ended.

    Links, pipes and other special files are left out, and so are names that no record may have.

    Raises:
        TooMuchLeft: There are more than `MAX_FILES` or more than `MAX_BYTES`.
    """
    files: dict[str, WorkspaceFile] = {}
    bytes_left = MAX_BYTES
    for name, path in _files(folder):
        if len(files) >= MAX_FILES:
            raise TooMuchLeft(f"it left more than {MAX_FILES:,} files in the workspace")
        content = _read(path, bytes_left)
        if content is None:
            continue
        bytes_left -= len(content)
        if bytes_left < 0:
            raise TooMuchLeft(f"it left more than {MAX_BYTES >> 20} MiB in the workspace")
        files[name] = WorkspaceFile.of(name, content)
    return files


def with_left_files(run: AgentRun, request: Request, folder: Path) -> AgentRun:
    """Return the record of a run with the files that it changed and deleted in its workspace.

    More files than a record may hold are a limit that the run has reached.

    Args:
        run: The record without the files.
        request: The request of the run.
        folder: The workspace.
    """
    assert request.task is not None
    before = {file.name: file for file in request.task.workspace}
    try:
        after = read_left_files(folder)
    except TooMuchLeft as error:
        return replace(run, limit=run.limit or str(error))
    return replace(
        run,
        changed=tuple(file for name, file in after.items() if before.get(name) != file),
        deleted=tuple(name for name in before if name not in after),
    )


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and path of everything but folders: a folder's files before its subfolders'."""
    paths = []
    for number, entry in enumerate(entries_below(str(folder)), 1):
        if number > _MAX_ENTRIES:
            raise TooMuchLeft(f"it left more than {_MAX_ENTRIES:,} entries in the workspace")
        if not entry.is_dir(follow_symlinks=False):
            paths.append(Path(entry.path))
    for path in sorted(
        paths, key=lambda path: (*((1, part) for part in path.parts[:-1]), (0, path.name))
    ):
        name = path.relative_to(folder).as_posix()
        if is_safe_name(name):
            yield name, path


def _read(path: Path, max_bytes: int) -> bytes | None:
    """Return the content of a regular file, None for a link or special file.

    Args:
        path: The file.
        max_bytes: One byte more than this is read, so that the caller sees that there is more.
    """
    with suppress(OSError), open_regular(path) as file:
        return file.read(max_bytes + 1)
    return None
