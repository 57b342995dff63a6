"""The real Claude Code and Codex, in the sandbox, against a script instead of a model."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_upskill.agents.program_client import CliClient
from pytest_upskill.agents.programs.claude_code import ClaudeCode
from pytest_upskill.agents.programs.cli import Cli
from pytest_upskill.agents.programs.codex import Codex
from pytest_upskill.answers.budget import Budget
from pytest_upskill.answers.prices import Prices
from pytest_upskill.cases.catalogue import Catalogue, ListedSkill
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.models import AgentTask, Completion, Request, parse_model
from pytest_upskill.sandbox.run import Sandbox
from pytest_upskill.trials.conversation import first_request
from tests.agent_programs import Recorded, Step, needs_bubblewrap, run_of

pytestmark = needs_bubblewrap

NAME = "brackenfold-invoices"
TEXT = f"---\nname: {NAME}\ndescription: Invoices of Brackenfold.\n---\n\n{{}}\n"
SKILL = (
    WorkspaceFile(name="SKILL.md", text=TEXT.format("The first line is BRACKENFOLD INVOICE.")),
    WorkspaceFile(name="scripts/total.py", text="import sys\nprint(sum(map(int, sys.argv[1:])))\n"),
)
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}|\d{4}-\d\d-\d\d\S*")
PROGRAMS = [
    pytest.param(ClaudeCode, "claude-code:haiku", "Bash", marks=pytest.mark.needs("claude")),
    pytest.param(Codex, "codex:gpt-5-codex", "exec_command", marks=pytest.mark.needs("codex")),
]


def shell(cli: Cli, tool: str, command: str) -> tuple[str, dict[str, Any]]:
    key = "cmd" if cli.wire == "responses" else "command"
    return tool, {key: command, **({} if key == "cmd" else {"description": "total"})}


def lines_of(body: object) -> Iterator[str]:
    """Yield every line of every text of a request, without random ids and times."""
    if isinstance(body, str):
        yield from _ID.sub("ID", body).splitlines()
    elif isinstance(body, dict):
        for part in body.values():
            yield from lines_of(part)
    elif isinstance(body, list):
        for part in body:
            yield from lines_of(part)


@pytest.mark.parametrize(("adapter", "model", "tool"), PROGRAMS)
def test_the_skill_works_in_the_program_and_the_arms_differ_in_the_catalogue_alone(
    adapter: type[Cli], model: str, tool: str
) -> None:
    cli = adapter()
    load, _ = cli.self_test_calls(NAME)
    total = f"python3 ~/{cli.skills_folder}/{NAME}/scripts/total.py 100 250 > total.txt"
    loaded = str(load["name"]), load["input"]
    steps: list[Step] = [loaded, shell(cli, tool, total), "The total is 350."]

    async def both() -> tuple[Completion, Recorded, Recorded]:
        first, second = Recorded(steps, cli.wire), Recorded(["I do not know."], cli.wire)
        done = await _client(cli, first).complete(_request(model, NAME, SKILL))
        await _client(cli, second).complete(_request(model, "", ()))
        return done, first, second

    completion, first, second = asyncio.run(both())

    run = run_of(completion)
    assert (run.offered, run.called, run.loaded, run.broken) == (True, True, True, "")
    assert [(file.name, file.text) for file in run.changed] == [("total.txt", "350\n")]
    assert (completion.text, len(run.turns)) == ("The total is 350.", 3)
    offered, not_offered = (list(lines_of(each.bodies[0])) for each in (first, second))
    assert [line for line in not_offered if line not in offered] == []
    more = [line for line in offered if line not in not_offered]
    assert any(NAME in line for line in more)
    assert len("".join(more)) < 4000
    for body in first.bodies:
        assert "web_search" not in json.dumps(body.get("tools"))


@pytest.mark.parametrize(("adapter", "model", "tool"), PROGRAMS)
def test_a_query_ends_when_the_real_program_takes_a_skill_among_others(
    adapter: type[Cli], model: str, tool: str
) -> None:
    cli = adapter()
    own = ListedSkill(name="travel", description="How to book: trains. Use when asked to travel.")
    other = ListedSkill(name=NAME, description="Invoices of Brackenfold.")
    asked = first_request(
        model=parse_model(model), catalogue=Catalogue.of([own, other]), own=own, query="Bill it.",
        max_tokens=4096, run=0,
    )  # fmt: skip
    load, *_ = cli.self_test_calls(NAME)
    steps: list[Step] = [shell(cli, tool, "ls"), (str(load["name"]), load["input"])]
    upstream = Recorded(steps, cli.wire)

    run = run_of(asyncio.run(_client(cli, upstream).complete(asked)))

    assert (run.taken, len(run.turns), run.offered, run.broken) == (NAME, 2, True, "")
    assert "How to book: trains." in json.dumps(upstream.bodies[0])


def _client(cli: Cli, upstream: Recorded) -> CliClient:
    return CliClient(
        cli=cli,
        installed=cli.find(),
        upstream=upstream,
        budget=Budget(None, Prices({})),
        slots=asyncio.Semaphore(2),
        sandbox=Sandbox("bwrap"),
    )


def _request(model: str, name: str, skill: tuple[WorkspaceFile, ...]) -> Request:
    return Request(
        model=parse_model(model),
        frame="",
        skill="",
        user="What is the total of 100 and 250?",
        max_tokens=4096,
        run=0,
        task=AgentTask(skill_name=name, skill=skill),
    )
