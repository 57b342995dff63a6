"""The real programs, in the sandbox, against a script instead of a model.

The suite tries the small ones; with ``UPSKILL_TESTS_ALL_AGENTS`` it tries all, and each of them in
all ways to read a skill, at its limits, and in each format that it speaks.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.agents.program_client import CliClient
from pytest_upskill.agents.programs import PROGRAMS, Cli
from pytest_upskill.answers.budget import Budget, BudgetError
from pytest_upskill.answers.prices import OwnPrice, Prices
from pytest_upskill.cases.catalogue import Catalogue, ListedSkill
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.models import AgentTask, Completion, Model, Request, parse_model
from pytest_upskill.sandbox.run import Sandbox
from pytest_upskill.trials.trigger_trial import choosing
from tests.agent_programs import KEY, Recorded, Step, needs_bubblewrap, run_of
from tests.agents.three_tasks import NAME as NAME_OF_TASKS
from tests.agents.three_tasks import Calls, doing_tasks, write_tasks
from tests.conftest import Run
from tests.loopback import Loopback

pytestmark = [pytest.mark.slow, needs_bubblewrap]

NAME = "brackenfold-invoices"
TEXT = f"---\nname: {NAME}\ndescription: Invoices of Brackenfold.\n---\n\n{{}}\n"
SKILL = (
    WorkspaceFile(name="SKILL.md", text=TEXT.format("The first line is BRACKENFOLD INVOICE.")),
    WorkspaceFile(name="scripts/total.py", text="import sys\nprint(sum(map(int, sys.argv[1:])))\n"),
)
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}|\d{4}-\d\d-\d\d\S*|\d{10,}")
LEFT_OUT = {
    "claude-code": ("context_management", "metadata"),
    "codex": ("client_metadata", "tool multi_agent_v1"),
}
"""The fields and tools of requests that are not passed on, in the tested versions."""

SMALL = ("claude-code:haiku", "codex:gpt-5-codex", "pi:haiku", "gemini-cli:gemini-3.5-flash")
ALL = (*SMALL, "pi:gpt-5", "opencode:haiku", "opencode:gpt-5", "copilot:haiku", "copilot:gpt-5")
TRIES_ALL = "UPSKILL_TESTS_ALL_AGENTS" in os.environ


@pytest.fixture(
    params=[
        pytest.param(spec, marks=pytest.mark.needs(PROGRAMS[parse_model(spec).agent].command))
        for spec in (ALL if TRIES_ALL else SMALL)
    ]
)
def model(request: pytest.FixtureRequest) -> Model:
    return parse_model(request.param)


def cli_of(model: Model) -> Cli:
    return PROGRAMS[model.agent]


def step(cli: Cli, command: str) -> Step:
    call = cli.shell_call(command)
    return str(call["name"]), call["input"]


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


def test_the_skill_works_in_the_program_and_the_arms_differ_in_the_catalogue_alone(
    model: Model,
) -> None:
    cli = cli_of(model)
    load, _ = cli.self_test_calls(NAME)
    total = f"python3 ~/{cli.skills_folder}/{NAME}/scripts/total.py 100 250 > total.txt"
    loaded = str(load["name"]), load["input"]
    steps: list[Step] = [loaded, step(cli, total), "The total is 350."]

    async def both() -> tuple[Completion, Recorded, Recorded]:
        first, second = recorded(model, steps), recorded(model, ["I do not know."])
        done = await client_of(model, first).complete(request_of(model, NAME, SKILL))
        await client_of(model, second).complete(request_of(model, "", ()))
        return done, first, second

    completion, first, second = asyncio.run(both())

    run = run_of(completion)
    assert (run.offered, run.called, run.loaded, run.broken) == (True, True, True, "")
    assert re.fullmatch(r"\d+\.\d+\.\d+(.*\w)?", run.version)
    if run.version == cli.tested_version:
        assert run.fields_left_out == LEFT_OUT.get(cli.name, ())
    assert [(file.name, file.text) for file in run.changed] == [("total.txt", "350\n")]
    assert (completion.text, len(run.turns)) == ("The total is 350.", 3)
    assert completion.input_tokens is not None
    asked = [next(each for each in of.bodies if each.get("tools")) for of in (first, second)]
    offered, not_offered = ([*lines_of(body)] for body in asked)
    more = [line for line in offered if line not in not_offered]
    assert any(NAME in line for line in more)
    assert len("".join(more)) < 4000
    # Where a skill is installed, Gemini CLI names it in the description of a tool too.
    assert len("".join(line for line in not_offered if line not in offered)) < 500
    for body in first.bodies:
        assert "web_search" not in json.dumps(body.get("tools"))


def test_a_query_ends_when_the_real_program_takes_a_skill_among_others(model: Model) -> None:
    cli = cli_of(model)
    own = ListedSkill(name="travel", description="How to book: trains. Use when asked to travel.")
    other = ListedSkill(name=NAME, description="Invoices of Brackenfold.")
    bill = Request(model=model, frame="", skill="", user="Bill it.", max_tokens=4096, run=0)
    asked = choosing(bill, catalogue=Catalogue.of([own, other]), own=own)
    load, *_ = cli.self_test_calls(NAME)
    upstream = recorded(model, [step(cli, "ls"), (str(load["name"]), load["input"])])

    run = run_of(asyncio.run(client_of(model, upstream).complete(asked)))

    assert (run.taken, len(run.turns), run.offered, run.broken) == (NAME, 2, True, "")
    assert "How to book: trains." in json.dumps(upstream.bodies)


in_the_matrix = pytest.mark.skipif(not TRIES_ALL, reason="takes minutes")
FOLDER = "~/{folder}/{name}"


@in_the_matrix
@pytest.mark.parametrize(
    "command",
    [
        "cat ../home/agent/{folder}/{name}/SKILL.md",
        "cat /home/agent/{folder}/{name}/SKILL.md",
        f"cat {FOLDER}/SKILL.md",
        f"cd {FOLDER} && cat SKILL.md",
        f"head -n 6 {FOLDER}/SKILL.md",
        f"sed -n '6p' {FOLDER}/SKILL.md",
        f"rg -n BRACKENFOLD {FOLDER}",
        f"cd {FOLDER} && python3 -c 'print(open(\"SKILL.md\").read())'",
        "cat ~/{folder}/bracken*/SKILL.md",
        "find ~/{folder}/bracken* -name SKILL.md | xargs cat",
        f"S={FOLDER}; cat $S/SKILL.md",
        "ln -s ~/{folder} r0; cat r0/{name}/SKILL.md",
    ],
)
def test_the_skill_is_read_in_whatever_way(model: Model, command: str) -> None:
    cli = cli_of(model)
    read = step(cli, command.format(folder=cli.skills_folder, name=NAME))
    upstream = recorded(model, [read, "Done."])

    run = run_of(asyncio.run(client_of(model, upstream).complete(request_of(model, NAME, SKILL))))

    assert (run.called, run.loaded, run.broken) == (True, True, "")
    assert "BRACKENFOLD INVOICE" in run.calls[0].result


@in_the_matrix
def test_a_run_ends_at_the_limit_of_turns_and_at_that_of_cost(model: Model) -> None:
    cli = cli_of(model)
    asked = request_of(model, NAME, SKILL)
    assert asked.task is not None
    asked = replace(asked, task=replace(asked.task, max_turns=2))
    client = client_of(model, recorded(model, [step(cli, "true")] * 9))

    run = run_of(asyncio.run(client.complete(asked)))

    assert run.limit == "it needs more than 2 turns"
    prices = Prices({model.label: OwnPrice(input=0.0, output=1_000.0, cached=0.0)})
    client = client_of(model, recorded(model, [step(cli, "true")] * 9))
    client.budget = Budget(0.5, prices)
    with pytest.raises(BudgetError, match=r"\$0\.5"):
        asyncio.run(client.complete(asked))


@in_the_matrix
@pytest.mark.needs("git")
def test_the_tasks_of_the_docs_are_measured_and_replayed_without_program_and_key(
    model: Model,
    run_once: Run,
    pytester: pytest.Pytester,
    loopback: Loopback,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cli = cli_of(model)
    load, _ = cli.self_test_calls(NAME_OF_TASKS)
    write_tasks(pytester.path / "skills")
    loopback.answer = doing_tasks(Calls(load=load, shell=cli.shell_call))
    monkeypatch.setenv("UPSKILL_API_KEY", KEY)
    args = (f"--upskill-models={spec_at(loopback, model)}", "skills", "--upskill-json=out.json")

    result = run_once(*args)

    result.assert_outcomes(passed=7)
    (entry,) = json.loads(Path("out.json").read_text("utf-8"))["entries"]
    assert (entry["figures"]["lift"], entry["figures"]["agent.loaded"]) == (1.0, 1.0)
    asked = len(loopback.requests)
    monkeypatch.delenv("UPSKILL_API_KEY")
    monkeypatch.setenv("PATH", "/nowhere")

    again = run_once(*args, "--upskill-cache=replay")

    again.assert_outcomes(passed=7)
    assert len(loopback.requests) == asked
    (replayed,) = json.loads(Path("out.json").read_text("utf-8"))["entries"]
    assert replayed["figures"]["lift"] == 1.0


def spec_at(loopback: Loopback, model: Model) -> str:
    """Return how a model is chosen that the loopback server serves in the same format."""
    url = loopback.openai_url if model.agent_format == "responses" else loopback.url
    vendor = {"messages": "anthropic", "responses": "openai", "generateContent": "gemini"}
    assert model.agent_format is not None
    return f"{model.agent}:{vendor[model.agent_format]}:{model.name}@{url}"


def recorded(model: Model, steps: list[Step]) -> Recorded:
    assert model.agent_format is not None
    return Recorded(steps, model.agent_format)


def client_of(model: Model, upstream: Recorded) -> CliClient:
    cli = cli_of(model)
    return CliClient(
        cli=cli,
        installed=cli.find(),
        upstream=upstream,
        budget=Budget(None, Prices({})),
        slots=asyncio.Semaphore(2),
        sandbox=Sandbox("bwrap"),
    )


def request_of(model: Model, name: str, skill: tuple[WorkspaceFile, ...]) -> Request:
    return Request(
        model=model,
        frame="",
        skill="",
        user="What is the total of 100 and 250?",
        max_tokens=4096,
        run=0,
        task=AgentTask(skill_name=name, skill=skill),
    )
