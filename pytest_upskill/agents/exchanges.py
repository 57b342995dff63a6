"""The record of a run, made from its exchanges with its model and the files that it left.

Whether the agent was offered a skill, loaded it and read its files is found in the requests to the
model: an agent's own account may be wrong. No link is followed.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from pytest_upskill.agents.skill_use import SKILL_FILE, SkillUse, is_offered
from pytest_upskill.answers.prices import BYTES_PER_TOKEN
from pytest_upskill.checks.calls import ToolUse
from pytest_upskill.models import AgentRun, AgentTask, AgentTurn, Completion, RunLimits, ToolCall
from pytest_upskill.models.completion import with_totals
from pytest_upskill.project.messages import counted

_NO_REPLY = Completion(text="", input_tokens=0, output_tokens=0, cost_usd=0.0)


@dataclass(slots=True, kw_only=True)
class Exchanges:
    """The exchanges of one run so far: replies, tokens, and whether the skill was seen."""

    task: AgentTask
    skill_tool: tuple[str, str]
    """See `Cli.skill_tool`."""
    redact: Callable[[str], str]
    """Hides the keys in a text."""
    limits: RunLimits = field(default_factory=RunLimits)
    offered: bool | None = None
    """Whether the catalogue names the skill; None before the first request."""
    called: bool = False
    """Whether the model called the tool for skills with this skill, and got a result."""
    taken: str = ""
    """The first skill that the model chose, in a run that ends with its choice; "" for none."""
    left_out: set[str] = field(default_factory=set)
    """Names of the fields of requests that were not passed on."""
    requests: int = 0
    replies: list[Completion] = field(default_factory=list)
    """Replies of the conversation."""
    side_replies: list[Completion] = field(default_factory=list)
    """Replies to side questions of the agent, such as one for a title."""
    tokens: int = 0
    """Tokens of all exchanges, estimated where they were not counted."""
    prefix_tokens: int = 0
    """Tokens of the conversation so far, with which its next prompt begins."""
    _use: SkillUse = field(init=False)
    _results: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list), init=False)
    """Results by the id of their call, in order: a server may use an id again."""

    def __post_init__(self) -> None:
        self._use = SkillUse(self.task)

    def note_request(self, sent: Sequence[tuple[str, str]]) -> None:
        """Note what the next prompt of the conversation contains.

        Args:
            sent: Every text that the model did not write, with the id of the call of which it is
                the result, or "".
        """
        texts = [text for _, text in sent]
        if self.offered is None and self.task.skill:
            self.offered = is_offered(self.task, texts)
        self._use.note_sent(texts)
        number: Counter[str] = Counter()
        for call_id, text in sent:
            number[call_id] += 1
            if call_id and number[call_id] > len(self._results[call_id]):
                self._results[call_id].append(capped(self.redact(text)))
        name = self.task.skill_name
        self.called = self.called or any(
            name and call.id in self._results and self._called_skill(call) == name
            for reply in self.replies
            for call in reply.tool_calls
        )
        if self.task.chooses:
            names = (skill.name for skill in self.task.installed)
            self.taken = self.taken or next(filter(self._use.is_loaded, names), "")

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
        for call in completion.tool_calls:
            if self.task.chooses:
                self.taken = self.taken or self._called_skill(call)
            self._use.note_written(call.malformed or json.dumps(call.arguments, ensure_ascii=False))
        self._use.note_written(completion.text)
        if in_conversation:
            self.replies.append(completion)
            self.prefix_tokens = tokens
        else:
            self.side_replies.append(completion)

    @property
    def has_chosen(self) -> bool:
        """Whether the next request is not needed, as the model chose a skill or had its turns."""
        return self.task.chooses and bool(self.taken or len(self.replies) >= self.task.max_turns)

    @property
    def has_final_answer(self) -> bool:
        """Whether the last reply of the conversation calls no tool, and so ends the run."""
        return bool(self.replies) and not self.replies[-1].tool_calls

    def exceeded_limit(self) -> str:
        """Return the limit that the next request would exceed, "" for none."""
        turns, limits = self.task.max_turns, self.limits
        if len(self.replies) >= turns:
            return f"it needs more than {counted(turns, 'turn')}"
        if self.requests >= limits.requests:
            return f"it needs more than {limits.requests} requests"
        if self.tokens + self.prefix_tokens > limits.tokens:
            return f"it needs more than {limits.tokens:,} tokens"
        return ""

    def run(self, version: str, limit: str) -> AgentRun:
        """Return the run as its exchanges show it, without the files that it left.

        Args:
            version: Version of the agent.
            limit: The limit that ended the run; "" for none.
        """
        own = self.task.skill_name
        loaded = self._use.is_loaded(own)
        read = sorted(name for skill, name in self._use.read if skill == own)
        return AgentRun(
            version=version,
            turns=self._turns(),
            requests=self.requests,
            fields_left_out=tuple(sorted(self.left_out)[:50]),
            offered=self.offered,
            called=self.called or bool(loaded),
            taken=self.taken,
            loaded=None if self.task.chooses else loaded,
            read=tuple(name for name in read if name != SKILL_FILE),
            limit=limit,
            broken=self._broken_reason(loaded),
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

    def _broken_reason(self, loaded: bool | None) -> str:
        """Return why the installation of the skill makes the run useless, "" if it does not."""
        if not self.task.skill:
            return "the agent was offered the skill, which is not installed" if self.offered else ""
        if self.offered is False:
            return "the skill is installed, but the agent was not offered it"
        if self.called and loaded is False and not self.task.chooses:
            return "the model called the skill, but its instructions never reached it"
        return ""

    def _turns(self) -> tuple[AgentTurn, ...]:
        """Return what the model said and called, as far as a record can hold it."""
        left = _MAX_CALLS
        results = {call_id: iter(texts) for call_id, texts in self._results.items()}
        turns = []
        for reply in self.replies:
            calls = tuple(
                ToolUse(
                    name=call.name[:_MAX_NAME_CHARS],
                    input=capped(_input_of(call)),
                    result=next(results.get(call.id, iter(())), ""),
                )
                for call in reply.tool_calls[:left]
            )
            left -= len(calls)
            turns.append(AgentTurn(text=capped(reply.text), calls=calls))
        # The first turns explain a failure least.
        for dropped in ({"result": _LEFT_OUT}, {"input": _LEFT_OUT}):
            for index, turn in enumerate(turns):
                if len(json.dumps([asdict(turn) for turn in turns])) <= _MAX_TURNS_BYTES:
                    break
                turns[index] = replace(turn, calls=tuple(replace(c, **dropped) for c in turn.calls))
        return tuple(turns)

    def _called_skill(self, call: ToolCall) -> str:
        """Return the name of the skill with which a call calls the tool for skills; "" for none."""
        tool, argument = self.skill_tool
        if call.name != tool:
            return ""
        # A name may have a prefix, as those of plugins do, or be written as a command.
        name = str(call.arguments.get(argument) or "").rpartition(":")[2]
        return self.task.skill_named(name.strip().removeprefix("/"))


_MAX_CALLS = 200
_MAX_NAME_CHARS = 100
_MAX_BYTES = 2000
"""Maximum length of what a model says, of a call's arguments, and of its result in a record."""
_MAX_TURNS_BYTES = 200_000
"""Maximum length of all of these."""
_LEFT_OUT = "[left out, as the record is full]"


def _input_of(call: ToolCall) -> str:
    """Return the arguments of a call, long texts in them cut, so that they stay JSON."""
    cut = {
        name: capped(value, 1500) if isinstance(value, str) else value
        for name, value in call.arguments.items()
    }
    return call.malformed or json.dumps(cut, ensure_ascii=False)


def capped(text: str, most: int = _MAX_BYTES) -> str:
    """Return a text without its middle if it is too long: errors are at the end."""
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return text
    half = most // 2
    ends = (part.decode("utf-8", "ignore") for part in (data[:half], data[-half:]))
    return f"\n[... {len(data) - 2 * half:,} bytes left out ...]\n".join(ends)


def sent_to_model(body: object) -> Iterator[tuple[str, str]]:
    """Yield every text of a request that the model did not write, in any wire format.

    Each has the id of the call of which it is the result, or "".
    """
    pending = [body]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            yield "", part
        elif isinstance(part, list):
            pending += reversed(part)
        elif isinstance(part, Mapping) and not _is_written_by_model(part):
            part = part.get("functionResponse") or part
            # Gemini's own API gives calls no ids: their results have the name.
            call_id = part.get("tool_use_id") or part.get("call_id")
            call_id = call_id or ("response" in part and part.get("name"))
            if call_id:
                result = part.get("output") or part.get("content") or part.get("response")
                yield str(call_id), "\n".join(text for _, text in sent_to_model(result))
            else:
                pending += reversed([*part.values()])


def _is_written_by_model(part: Mapping[str, object]) -> bool:
    kind = str(part.get("type"))
    return (
        part.get("role") in {"assistant", "model"} or kind == "reasoning" or kind.endswith("_call")
    )
