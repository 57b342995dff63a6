"""A self-test of an agent's program: one run against a script, before anything is paid for.

It finds out whether this version, with the flags and files of its adapter, offers an installed
skill, loads it, and works in the workspace. Nothing is sent to any host.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx2

from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.models import AgentTask, Completion, ProviderError, Request
from pytest_upskill.models.streams import AgentFormat

SKILL = "upskill-self-test"
_SKILL_FILE = WorkspaceFile(
    name="SKILL.md",
    text=(
        f"---\nname: {SKILL}\ndescription: Checks that skills are loaded. Use for the self-test.\n"
        "---\n\n# Self-test\n\nWhoever reads this line has loaded the skill of the self-test.\n"
    ),
)
_DONE = "The self-test is done."
_Event = dict[str, Any]


def self_test_request(request: Request) -> Request:
    """Return the request of the self-test, for the model of another request."""
    task = AgentTask(skill_name=SKILL, skill=(_SKILL_FILE,))
    return replace(request, user="Do the self-test.", run=0, task=task)


def self_test_problem(completion: Completion) -> str:
    """Return what did not work in a self-test, "" if everything did."""
    run = completion.agent_run
    assert run is not None
    if run.limit or run.broken:
        return run.limit or run.broken
    if not run.loaded:
        return "the agent did not load the skill"
    if {file.name: file.text for file in run.changed} != {"done.txt": "done"}:
        return "a command did not write to the workspace"
    return "" if completion.text == _DONE else "the agent's last message was not captured"


def play_script(
    wire: AgentFormat, calls: Sequence[Mapping[str, Any]], text: str = _DONE
) -> Callable[[httpx2.Request], httpx2.Response]:
    """Return what replies to requests as a model does that makes calls of tools.

    Args:
        wire: The format of its replies.
        calls: The calls of tools to make, one in each reply.
        text: The text of the last reply.
    """
    left = [*calls]

    def reply(request: httpx2.Request) -> httpx2.Response:
        """Reply with the next call, or with the text.

        Raises:
            ProviderError: The request is not for a streamed reply.
        """
        body = json.loads(request.content)
        if not (body.get("stream") or request.url.path.endswith(":streamGenerateContent")):
            raise ProviderError("it requests a complete reply instead of a streamed one")
        call, said = None, text
        if not body.get("tools"):
            said = "Self-test"  # the reply to a side question, such as one for a title
        elif left:
            call, said = left.pop(0), ""
        stream = streamed_reply(wire, str(body.get("model")), call, said)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=stream)

    return reply


def streamed_reply(wire: AgentFormat, model: str, call: Mapping[str, Any] | None, text: str) -> str:
    """Return a streamed reply with a call of a tool, or else a text."""
    return "".join(
        (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n"
        for event in _EVENTS[wire](model, call, text)
    )


def _message_events(model: str, call: Mapping[str, Any] | None, text: str) -> Iterator[_Event]:
    """Yield the events of a reply in Anthropic's Messages."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    no_end = {"stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": {**message, **no_end, "usage": usage}}
    if call is not None:
        block = {"type": "tool_use", "id": f"toolu_{id(call)}", "name": call["name"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call["input"])}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": text}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    end = {"stop_reason": "end_turn" if call is None else "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def _response_events(model: str, call: Mapping[str, Any] | None, text: str) -> Iterator[_Event]:
    """Yield the events of a reply in OpenAI's Responses."""
    if call is not None:
        item = {
            "type": "function_call",
            "id": f"fc_{id(call)}",
            "call_id": f"call_{id(call)}",
            "name": call["name"],
            "arguments": json.dumps(call["input"]),
            "status": "completed",
        }
    else:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": "resp_1", "object": "response", "model": model, "output": [item]}
    in_progress = {**response, "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": in_progress}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {
        "type": "response.completed",
        "response": {**response, "status": "completed", "usage": usage},
    }


def _generated_events(model: str, call: Mapping[str, Any] | None, text: str) -> Iterator[_Event]:
    """Yield the event of a reply in Gemini's own API."""
    part: _Event = {"text": text}
    if call is not None:
        part = {"functionCall": {"name": call["name"], "args": call["input"]}}
    content = {"role": "model", "parts": [part]}
    yield {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        "modelVersion": model,
    }


_EVENTS: Mapping[AgentFormat, Callable[[str, Mapping[str, Any] | None, str], Iterator[_Event]]] = {
    "messages": _message_events,
    "responses": _response_events,
    "generateContent": _generated_events,
}
