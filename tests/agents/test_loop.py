"""The built-in agent: its tools, its limits, and what it leaves in the workspace."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.agents.loop import LoopClient
from pytest_upskill.answers.budget import BudgetError
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.models import (
    AgentRun,
    AgentTask,
    Completion,
    ProviderError,
    RunLimits,
    ToolCall,
    parse_model,
)
from pytest_upskill.sandbox.limits import Level
from pytest_upskill.sandbox.run import Sandbox
from tests.agents.scripted_agent import COMPUTE, LOAD, SKILL, TOTAL, ScriptedClient, Step, call
from tests.sdk_requests import request_to

FILES = (
    WorkspaceFile(name="SKILL.md", text=SKILL),
    WorkspaceFile(name="scripts/total.py", text=TOTAL),
)
WITH = AgentTask(
    workspace=(WorkspaceFile(name="data/in.txt", text="100\n250\n"),),
    skill_name="sums",
    skill=FILES,
)
WITHOUT = replace(WITH, skill_name="", skill=())
AGAIN = call("bash", command="true")


Agent = Callable[..., Completion]


@pytest.fixture(params=["bwrap", "landlock"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    level: Level = request.param
    return Sandbox(level)


def work(
    client: ScriptedClient,
    sandbox: Sandbox,
    task: AgentTask = WITH,
    limits: RunLimits | None = None,
) -> Completion:
    request = replace(request_to(parse_model("loop:haiku"), frame=""), task=task)
    limits = limits or RunLimits()

    async def answer() -> Completion:
        async with aclosing(LoopClient(client, sandbox, 1, str, limits)) as agent:
            return await agent.complete(request)

    return asyncio.run(answer())


def run_of(*steps: Step, sandbox: Sandbox, **more: Any) -> AgentRun:
    run = work(ScriptedClient(*steps), sandbox, **more).agent_run
    assert run is not None
    return run


def results(client: ScriptedClient) -> list[str]:
    """Return the results of tools that the model has seen."""
    return [result.text for turn in client.requests[-1].turns for result in turn.results]


def test_a_skill_is_loaded_its_script_run_and_its_file_left(sandbox: Sandbox) -> None:
    client = ScriptedClient(LOAD, COMPUTE, "It is 350.")

    completion = work(client, sandbox)

    run = completion.agent_run
    assert run is not None
    assert completion.text == "It is 350."
    assert run.changed == (WorkspaceFile(name="total.txt", text="TOTAL 350\n"),)
    assert (run.offered, run.called, run.loaded, run.broken) == (True, True, True, "")
    assert (len(run.turns), run.requests, run.limit) == (3, 3, "")
    assert [use.name for use in run.calls] == ["skill", "bash"]
    assert (completion.input_tokens, completion.output_tokens, completion.cost_usd) == (30, 3, 0.75)


def test_the_first_requests_of_the_arms_differ_in_the_catalogue_alone() -> None:
    clients = ScriptedClient("Hm."), ScriptedClient("Hm.")
    for client, task in zip(clients, (WITH, WITHOUT), strict=True):
        work(client, Sandbox("auto"), task)

    with_skill, without = (client.requests[0] for client in clients)
    assert replace(with_skill, skill="") == without
    assert "How totals are computed here." in with_skill.skill


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (call("read_file", path="data/in.txt"), "100\n250\n"),
        (call("read_file", path="none"), "cat: none: No such file or directory\n"),
        (call("read_file", path="-n"), "cat: -n: No such file or directory\n"),
        (call("list_files", path="."), "./data/in.txt\n"),
        (call("list_files", path=""), "./data/in.txt\n"),
        (call("write_file", path="a/b.txt", content="x" * 300_000), "Written."),
        (call("bash", command="cd data; ls; exit 3"), "in.txt\n\n[exit status 3]"),
        (call("bash", command="cd && ls -a .agents/skills"), "sums\n"),
        (call("bash", command="seq 8000"), " bytes left out ..."),
        (call("bash"), "'command' is missing or is not a text: write the call again."),
        (call("bash", command="\0"), "null character"),
        (call("bash", command="x" * 200_000), "is longer than 100 KiB"),
        (call("skill", name="other"), "There is no skill 'other'."),
        (call("fly", to="moon"), "There is no tool 'fly'"),
        (ToolCall(name="bash", malformed='{"command'), "The arguments are not a JSON object"),
    ],
)
def test_a_tool_returns_its_result_or_the_reason_for_none(step: ToolCall, said: str) -> None:
    client = ScriptedClient(step, "Done.")

    work(client, Sandbox("auto"))

    (text,) = results(client)
    assert said in text


def test_from_inside_there_is_no_key_no_network_and_no_file_of_the_host(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-123456")
    secret = tmp_path / "secret.txt"
    secret.write_text("host text", "utf-8")
    program = "import socket; socket.create_connection(('127.0.0.1', 9), 1)"
    client = ScriptedClient(
        call(
            "bash",
            command=f"env; cat {secret}; ls /tmp/pytest-upskill-* /etc; python3 -c {program!r}",
        ),
        call("bash", command=f"ln -s {secret} link; ln -s /etc folder; echo ok"),
        call("read_file", path="link"),
        "Done.",
    )

    completion = work(client, sandbox)

    seen = "\n".join(results(client))
    assert "key-123456" not in seen
    assert "host text" not in seen
    assert "passwd" not in seen
    assert "Function not implemented" in seen or "Permission denied" in seen
    assert completion.agent_run is not None
    assert completion.agent_run.changed == ()


def test_the_instructions_count_as_loaded_however_they_were_read(sandbox: Sandbox) -> None:
    step = call("bash", command="cat -n ~/.agents/skills/sums/SKILL.md")

    run = run_of(step, call("read_file", path="~/.agents/skills/sums/scripts/total.py"), "Done.",
                 sandbox=sandbox)  # fmt: skip

    assert (run.called, run.loaded, run.read) == (True, True, ("scripts/total.py",))


def test_an_agent_that_looks_elsewhere_has_not_loaded_the_skill(sandbox: Sandbox) -> None:
    run = run_of(call("bash", command="ls -R ~"), "Done.", sandbox=sandbox)

    assert (run.offered, run.called, run.loaded, run.read) == (True, False, False, ())


@pytest.mark.parametrize("name", ["../../../../../escaped", "/escaped", "a b", ".."])
def test_a_skill_with_an_odd_name_is_installed_inside_the_home(name: str) -> None:
    client = ScriptedClient(
        call("skill", name=name),
        call("bash", command="cd ~; ls -d .agents/skills/*/SKILL.md"),
        "Done.",
    )
    text = SKILL.replace("name: sums", f"name: {name}")
    task = replace(WITH, skill_name=name, skill=(WorkspaceFile(name="SKILL.md", text=text),))

    run = work(client, Sandbox("auto"), task).agent_run

    loaded, listed = results(client)
    folder = loaded.rpartition("Folder of this skill: ")[2]
    assert f"~/{listed}".startswith(f"{folder}/SKILL.md\n")
    assert f"<location>{folder}/SKILL.md</location>" in client.requests[0].skill
    assert run is not None
    assert run.loaded


def test_without_the_skill_nothing_is_offered_and_its_tool_finds_nothing() -> None:
    client = ScriptedClient(LOAD, "Done.")

    run = work(client, Sandbox("auto"), WITHOUT).agent_run

    assert results(client) == ["There is no skill 'sums'."]
    assert run is not None
    assert (run.offered, run.called, run.loaded, run.broken) == (False, False, False, "")


@pytest.mark.parametrize(
    ("task", "limits", "limit"),
    [
        (replace(WITH, max_turns=3), RunLimits(), "it needs more than 3 turns"),
        (WITH, RunLimits(requests=2), "it needs more than 2 requests"),
        (WITH, RunLimits(tokens=40), "it needs more than 40 tokens"),
        (WITH, RunLimits(seconds=0.001), "its tools took more than 0.001 s"),
    ],
)
def test_a_run_that_would_go_on_beyond_a_limit_ends_there(
    task: AgentTask, limits: RunLimits, limit: str
) -> None:
    run = run_of(AGAIN, sandbox=Sandbox("auto"), task=task, limits=limits)

    assert run.limit == limit
    assert run.requests <= 3


def test_a_limit_between_the_calls_of_a_reply_is_no_defect_of_the_installation() -> None:
    run = run_of((LOAD, AGAIN, AGAIN), sandbox=Sandbox("auto"), limits=RunLimits(seconds=0.001))

    assert (run.limit, run.broken) == ("its tools took more than 0.001 s", "")


def test_a_run_whose_last_turn_answers_reaches_no_limit() -> None:
    run = run_of(AGAIN, "Done.", sandbox=Sandbox("auto"), task=replace(WITH, max_turns=2))

    assert (run.limit, len(run.turns)) == ("", 2)


@pytest.mark.parametrize(
    ("command", "limit"),
    [
        ("seq 2100 | xargs touch", "it left more than 2,000 files in the workspace"),
        ("seq 200000 > big", "it left more than 1 MiB in the workspace"),
        ("mkdir -p $(seq 300)", ""),
    ],
)
def test_a_workspace_that_is_too_large_to_record_is_a_miss(command: str, limit: str) -> None:
    run = run_of(call("bash", command=command), "Done.", sandbox=Sandbox("auto"))

    assert (run.limit, run.changed) == (limit, ())


@pytest.mark.parametrize("trouble", [ProviderError("HTTP 500"), BudgetError("$1 is spent")])
def test_a_run_that_cannot_go_on_is_missing_data_with_what_was_paid(
    trouble: ProviderError | BudgetError,
) -> None:
    with pytest.raises(type(trouble)) as error:
        work(ScriptedClient(AGAIN, trouble), Sandbox("auto"))

    assert error.value is trouble
    assert error.value.paid is not None
    assert error.value.paid.cost_usd == 0.25


def test_runs_at_the_same_time_do_not_meet(sandbox: Sandbox) -> None:
    marks = "echo $$ >> mark; echo $$ >> ~/mark; sleep 0.3; cat mark ~/mark | wc -l; ls /tmp"
    clients = [ScriptedClient(call("bash", command=marks), "Done.") for _ in range(2)]
    asked = replace(request_to(parse_model("loop:haiku"), frame=""), task=WITH)

    async def both() -> None:
        agents = [LoopClient(client, sandbox, 1, str) for client in clients]
        await asyncio.gather(*(agent.complete(asked) for agent in agents))
        for agent in agents:
            await agent.aclose()

    asyncio.run(both())

    for client in clients:
        (seen,) = results(client)
        assert seen.startswith("2\n")
        assert len(re.findall("upskill-", seen)) <= 1
