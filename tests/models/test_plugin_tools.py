"""Clients of plugins, and the embedded model, when a request offers tools."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from pytest_upskill.models import Completion, ProviderError, Request, Tool, ToolCall, parse_model
from pytest_upskill.models.clients import PluginClient
from pytest_upskill.models.offline import OfflineClient
from pytest_upskill.project.redaction import Redactor
from tests.sdk_requests import request_to

REQUEST = replace(
    request_to(parse_model("acme:grey")),
    tools=(Tool(name="read_file", description="Read a text file.", schema={}),),
)


class Parrot:
    def __init__(self, **attributes: object) -> None:
        self.__dict__.update(attributes)

    async def complete(self, request: Request) -> Completion:
        calls = (ToolCall(name=request.tools[0].name, arguments={"path": "key-123456"}),)
        return Completion(text="", input_tokens=1, output_tokens=1, tool_calls=calls)

    async def aclose(self) -> None: ...


def ask_parrot(**attributes: object) -> Completion:
    client = PluginClient(Parrot(**attributes), "acme:grey", redactor=Redactor(["key-123456"]))
    return asyncio.run(client.complete(REQUEST))


def test_a_plugins_client_that_accepts_tools_may_call_them() -> None:
    (call,) = ask_parrot(accepts_tools=True).tool_calls

    assert call == ToolCall(name="read_file", arguments={"path": "***"})


@pytest.mark.parametrize("attributes", [{}, {"accepts_tools": False}])
def test_a_plugins_client_that_accepts_no_tools_is_not_asked(
    attributes: Mapping[str, object],
) -> None:
    with pytest.raises(ProviderError, match="acme:grey: its client accepts no tools") as error:
        ask_parrot(**attributes)

    assert not error.value.billable
    assert not error.value.fatal


def test_the_embedded_model_calls_no_tools() -> None:
    request = replace(REQUEST, model=parse_model("offline"))

    with pytest.raises(ProviderError, match="calls no tools"):
        asyncio.run(OfflineClient().complete(request))
