"""What Claude Code, Codex and pi really show of skills, and how they choose, beside our trials."""

from __future__ import annotations

import asyncio
import html
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from pytest_upskill.agents.program_client import CliClient
from pytest_upskill.agents.programs import ClaudeCode, Cli, Codex, Launch, Pi
from pytest_upskill.answers.budget import Budget
from pytest_upskill.answers.prices import Prices
from pytest_upskill.cases.catalogue import Catalogue, ListedSkill
from pytest_upskill.cases.lint import LARGE, SMALL, without_description
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.models import AgentTask, Completion, Request, ToolCall, parse_model
from pytest_upskill.models.model import AGENTS
from pytest_upskill.sandbox.run import Sandbox
from pytest_upskill.trials.trigger_trial import TOOLS, choice_of, choosing
from tests.agent_programs import Recorded, Step, needs_bubblewrap, run_of

pytestmark = needs_bubblewrap

MARKED = ListedSkill(name="csv-tables", description='Writes CSV. For <tags>, commas & "marks".')
PARCELS = ListedSkill(name="parcels", description="Sends parcels. Use when one is to be sent.")
STORY = ListedSkill(name="story", description="Tells a story. " * 60 + "The end of it.")
MANY = [
    ListedSkill(name=f"topic-{number}", description=f"Topic {number}: {'words and more ' * 58}.")
    for number in range(10, 90)
]
"""More than the budgets of Claude Code and Codex hold, as are people's catalogues."""

OURS = Catalogue.of([MARKED, PARCELS, STORY, *MANY])


class Furnished(CliClient):
    """A client that does not test the program first."""

    async def _pass_self_test(self, request: Request) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a program shows of skills."""

    place: str
    """Where, as a path in the request."""
    first: str
    """The first skill, as it is written."""
    others: tuple[ListedSkill, ...]
    """Skills of its own."""
    texts: Mapping[str, str]
    """The descriptions as a model reads them, by name and in order; "" where only the name is."""
    size: int
    """Characters of all entries."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program in the version that was compared."""

    cli: type[Cli]
    version: str
    model: str
    entry: str
    """Pattern of a skill in its catalogue."""


CLAUDE = Program(
    cli=ClaudeCode,
    version="2.1.330",
    model="claude-code:claude-haiku-4-5",
    entry=r"^- (?P<name>[\w-]+)(?:: (?P<text>.*))?$",
)
CODEX = Program(
    cli=Codex,
    version="0.169.0",
    model="codex:gpt-5-codex",
    entry=r"^- (?P<name>[\w-]+): (?P<text>.*) \(file: r0/(?P=name)/SKILL\.md\)$",
)
PI = Program(
    cli=Pi,
    version="0.74.2",
    model="pi:claude-haiku-4-5",
    entry=(
        r"  <skill>\n    <name>(?P<name>.*)</name>\n    <description>(?P<text>.*)</description>\n"
        r"    <location>/home/agent/\.agents/skills/(?P=name)/SKILL\.md</location>\n  </skill>"
    ),
)


@pytest.mark.needs("claude")
@pytest.mark.parametrize(
    ("model", "budget"),
    [("claude-code:claude-haiku-4-5", SMALL), ("claude-code:claude-haiku-5-5", LARGE)],
)
def test_claude_code_lists_names_in_order_and_descriptions_until_its_budget_is_used(
    model: str, budget: int
) -> None:
    bodies = conversation(replace(CLAUDE, model=model))
    shown = of_request(bodies[0], CLAUDE.entry)

    assert shown.place.startswith("messages[")
    assert shown.first == '- csv-tables: Writes CSV. For &lt;tags&gt;, commas & "marks".'
    assert [*shown.texts] == [skill.name for skill in OURS.skills]
    assert [skill.name for skill in shown.others] == ["plugin-authoring"]
    hidden = without_description(Catalogue.of([*OURS.skills, *shown.others]), budget)
    assert shown.texts == {
        skill.name: "" if skill in hidden else skill.description.strip() for skill in OURS.skills
    }
    assert 0 < len(hidden) < len(MANY)
    chosen_by(bodies[0], "Skill", "skill")


@pytest.mark.needs("codex")
def test_codex_lists_paths_and_shortens_all_long_descriptions_alike() -> None:
    bodies = conversation(CODEX)
    shown = of_request(bodies[0], CODEX.entry)

    assert (shown.place, shown.others) == ("input[1].content[0].text", ())
    assert bodies[0]["input"][1]["role"] == "developer"
    assert shown.first == (
        '- csv-tables: Writes CSV. For <tags>, commas & "marks". (file: r0/csv-tables/SKILL.md)'
    )
    assert [*shown.texts] == [skill.name for skill in OURS.skills]
    most = max(map(len, shown.texts.values()))
    for skill in OURS.skills:
        assert skill.description.startswith(shown.texts[skill.name])
        length = len(shown.texts[skill.name])
        assert length == len(skill.description) or most - 5 < length <= most
    assert most < len(STORY.description) / 3
    # 2 % of the 272,000 tokens of its model, of four characters each.
    assert 21_600 < shown.size <= 21_760
    chosen_by(bodies[0], "exec_command", "cmd")


@pytest.mark.needs("pi")
def test_pi_lists_every_description_whole_in_the_system_prompt_as_we_do() -> None:
    bodies = conversation(PI)
    shown = of_request(bodies[0], PI.entry)

    assert (shown.place, shown.others) == ("system[0].text", ())
    assert "For &lt;tags&gt;, commas &amp; &quot;marks&quot;.</description>" in shown.first
    assert shown.texts == {skill.name: skill.description.strip() for skill in OURS.skills}
    chosen_by(bodies[0], "bash", "command")


def test_our_catalogue_lists_every_description_whole_in_its_own_order() -> None:
    model = parse_model("openai:small")
    asked = Request(model=model, frame="", skill="", user="Hi.", max_tokens=9, run=0)
    request = choosing(asked, catalogue=OURS, own=OURS.skills[0])
    entry = r"<name>(?P<name>.*)</name>\n    <description>(?P<text>.*)</description>"
    shown = of_request({"system": request.system}, entry)

    assert 'For &lt;tags&gt;, commas &amp; "marks".</description>' in request.system
    assert [*shown.texts] != sorted(shown.texts)
    assert shown.texts == {skill.name: skill.description for skill in OURS.skills}
    body = {"tools": [{"name": tool.name, "input_schema": tool.schema} for tool in TOOLS]}
    chosen_by(body, "skill", "name")


def chosen_by(body: Mapping[str, Any], tool: str, argument: str) -> None:
    """Check that a request offers a tool with a required text."""
    (offered,) = (each for each in body["tools"] if each.get("name") == tool)
    schema = offered.get("input_schema") or offered["parameters"]
    assert schema["properties"][argument]["type"] == "string"
    assert argument in schema["required"]


def conversation(program: Program) -> list[Mapping[str, Any]]:
    """Return the requests of a program whose model chooses a skill, and check that it gets it."""
    cli = with_skills(program.cli)()
    installed = cli.find()
    if installed.version != program.version:
        version_differs(f"{cli.name} {program.version} was compared, not {installed.version}")
    call = cli.self_test_calls(PARCELS.name)[0]
    steps: list[Step] = [(str(call["name"]), call["input"]), "Sent."]
    upstream = Recorded(steps, AGENTS[cli.name][0])
    client = Furnished(
        cli=cli,
        installed=installed,
        upstream=upstream,
        budget=Budget(None, Prices({})),
        slots=asyncio.Semaphore(1),
        sandbox=Sandbox("bwrap"),
    )
    task = AgentTask(skill_name=PARCELS.name, skill=(text_of(PARCELS),))
    asked = Request(
        model=parse_model(program.model),
        frame="",
        skill="",
        user="Send a parcel.",
        max_tokens=4096,
        run=0,
        task=task,
    )

    run = run_of(asyncio.run(client.complete(asked)))

    assert (run.offered, run.called, run.loaded, len(run.turns)) == (True, True, True, 2)
    ours = ToolCall(name="skill", arguments={"name": PARCELS.name})
    made = Completion(text="", tool_calls=(ours,), input_tokens=1, output_tokens=1)
    assert choice_of([made], OURS.names).taken == PARCELS.name
    return upstream.bodies


def version_differs(reason: str) -> None:
    """Skip a test whose figures are those of another version, or fail where none may be skipped."""
    if "UPSKILL_TESTS_NEED_ALL" in os.environ:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def with_skills(cli: type[Cli]) -> type[Cli]:
    """Return an adapter that installs all skills."""

    class Filled(cli):  # type: ignore[valid-type, misc]  # a class that is only known here
        def launch(self, request: Request, base_url: str) -> Launch:
            launch: Launch = super().launch(request, base_url)
            files = {
                f"{self.skills_folder}/{each.name}/SKILL.md": text_of(each) for each in OURS.skills
            }
            texts = {name: file.text for name, file in files.items()}
            return replace(launch, home={**launch.home, **texts})

    return Filled


def text_of(skill: ListedSkill) -> WorkspaceFile:
    front = f"name: {skill.name}\ndescription: {json.dumps(skill.description)}"
    body = f"The instructions of {skill.name} are only in its file."
    return WorkspaceFile(name="SKILL.md", text=f"---\n{front}\n---\n\n{body}\n")


def of_request(body: Mapping[str, Any], entry: str) -> Shown:
    """Return what a request shows of skills, by the pattern of an entry."""
    ((place, text),) = (
        (place, text)
        for place, text in texts_of(body)
        if all(name in text for name in (MARKED.name, PARCELS.name, MANY[-1].name))
    )
    # Claude Code lists its agents in front, in the same form.
    text = text[max(0, text.find("The following skills are available")) :]
    found = list(re.finditer(entry, text, re.MULTILINE))
    read = {match["name"]: html.unescape(match["text"] or "").strip() for match in found}
    return Shown(
        place=place,
        first=found[0][0],
        others=tuple(
            ListedSkill(name=name, description=text)
            for name, text in read.items()
            if name not in OURS.names
        ),
        texts={name: text for name, text in read.items() if name in OURS.names},
        size=sum(len(f"{match[0]}\n") for match in found),
    )


def texts_of(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place.removeprefix("."), value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from texts_of(part, f"{place}.{key}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from texts_of(part, f"{place}[{index}]")
