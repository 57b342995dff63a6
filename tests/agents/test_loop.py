"""The built-in agent: its tools, its limits, and what is recorded of a run."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_upskill.agents.runner import AgentRunner
from pytest_upskill.agents.story import is_loaded
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.completion import AgentRun, AgentTask, Completion, ProviderError, ToolCall
from pytest_upskill.completions.cache import Cache
from pytest_upskill.model import parse_model
from pytest_upskill.sandbox.levels import Level
from pytest_upskill.sandbox.run import Sandbox
from pytest_upskill.spending.budget import BudgetError
from pytest_upskill.spending.caps import Caps
from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback, Reply
from tests.scripted_agent import ScriptedClient, Step, call, following
from tests.sdk_requests import request_to

SKILL = """\
---
name: sums
description: How totals are computed here.
---
Run `python3 scripts/total.py NUMBERS...` and write what it says to total.txt.
"""
TOTAL = "import sys\nprint('TOTAL', sum(map(int, sys.argv[1:])))  # of all arguments\n"
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
LOAD = call("skill", name="sums")
COMPUTE = call(
    "bash", command="python3 ~/.agents/skills/sums/scripts/total.py $(cat data/in.txt) > total.txt"
)
Agent = Callable[..., Completion]


@pytest.fixture(params=["bwrap", "landlock"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    level: Level = request.param
    return Sandbox(level)


def work(
    client: ScriptedClient, sandbox: Sandbox, task: AgentTask = WITH, caps: Caps | None = None
) -> Completion:
    request = replace(request_to(parse_model("loop:haiku"), frame=""), task=task)
    runner = AgentRunner(lambda: sandbox, 1, caps)
    try:
        return asyncio.run(runner.complete(request, client))
    finally:
        runner.close()


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
    assert (run.turns, run.requests, run.limit) == (3, 3, "")
    assert [use.name for use in run.calls] == ["skill", "bash"]
    assert (completion.input_tokens, completion.output_tokens, completion.cost_usd) == (30, 3, 0.75)


def test_the_first_requests_of_the_arms_differ_in_the_catalogue_alone(sandbox: Sandbox) -> None:
    clients = ScriptedClient("Hm."), ScriptedClient("Hm.")
    for client, task in zip(clients, (WITH, WITHOUT), strict=True):
        work(client, sandbox, task)

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
        (call("bash", command="pwd; exit 3"), ".\n\n[exit status 3]"),
        (call("bash", command="cd && ls -a .agents/skills"), "sums\n"),
        (call("bash", command="seq 8000"), " characters left out ..."),
        (call("bash"), "'command' is missing or is not a text: write the call again."),
        (call("bash", command="\0"), "null character"),
        (call("bash", command="x" * 200_000), "is longer than 100 KiB"),
        (call("skill", name="other"), "There is no skill 'other'."),
        (call("fly", to="moon"), "There is no tool 'fly'"),
        (ToolCall(name="bash", malformed='{"command'), "The arguments are not a JSON object"),
    ],
)
def test_what_a_tool_says(step: ToolCall, said: str) -> None:
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
        call("bash", command=f"env; cat {secret}; ls /tmp/upskill-* /etc; python3 -c {program!r}"),
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

    assert (run.called, run.loaded, run.read) == (False, True, ("scripts/total.py",))


def test_an_agent_that_looks_elsewhere_has_not_loaded_the_skill(sandbox: Sandbox) -> None:
    run = run_of(call("bash", command="ls -R ~"), "Done.", sandbox=sandbox)

    assert (run.offered, run.called, run.loaded, run.read) == (True, False, False, ())


@pytest.mark.parametrize("name", ["../../../../../escaped", "/escaped", "a b", ".."])
def test_a_skill_with_an_odd_name_is_installed_in_the_home_all_the_same(name: str) -> None:
    client = ScriptedClient(
        call("skill", name=name), call("bash", command="ls -d ~/.agents/skills/*/SKILL.md"), "Done."
    )
    text = SKILL.replace("name: sums", f"name: {name}")
    task = replace(WITH, skill_name=name, skill=(WorkspaceFile(name="SKILL.md", text=text),))

    run = work(client, Sandbox("auto"), task).agent_run

    loaded, listed = results(client)
    folder = loaded.rpartition("Folder of this skill: ")[2]
    assert listed.startswith(f"{folder}/SKILL.md\n")
    assert f"<location>{folder}/SKILL.md</location>" in client.requests[0].skill
    assert run is not None
    assert run.loaded


def test_without_the_skill_nothing_is_offered_and_its_tool_finds_nothing(sandbox: Sandbox) -> None:
    client = ScriptedClient(LOAD, "Done.")

    run = work(client, sandbox, WITHOUT).agent_run

    assert results(client) == ["There is no skill 'sums'."]
    assert run is not None
    assert (run.offered, run.called, run.loaded, run.broken) == (False, False, False, "")


AGAIN = call("bash", command="true")


@pytest.mark.parametrize(
    ("task", "caps", "limit"),
    [
        (replace(WITH, max_turns=3), Caps(), "it needs more than 3 turns"),
        (WITH, Caps(requests=2), "it needs more than 2 requests"),
        (WITH, Caps(tokens=40), "it needs more than 40 tokens"),
        (WITH, Caps(seconds=0.001), "its tools took more than 0.001 s"),
    ],
)
def test_a_run_that_would_go_on_beyond_a_limit_ends_there(
    task: AgentTask, caps: Caps, limit: str
) -> None:
    run = run_of(AGAIN, sandbox=Sandbox("auto"), task=task, caps=caps)

    assert run.limit == limit
    assert run.requests <= 3


def test_a_run_whose_last_turn_answers_reaches_no_limit() -> None:
    run = run_of(AGAIN, "Done.", sandbox=Sandbox("auto"), task=replace(WITH, max_turns=2))

    assert (run.limit, run.turns) == ("", 2)


@pytest.mark.parametrize(
    ("command", "limit"),
    [
        ("seq 2100 | xargs touch", "it left more than 2,000 files in the workspace"),
        ("seq 200000 > big", "it left more than 1 MiB in the workspace"),
        ("mkdir -p $(seq 300)", ""),
    ],
)
def test_a_workspace_that_no_record_can_hold_is_a_miss(command: str, limit: str) -> None:
    run = run_of(call("bash", command=command), "Done.", sandbox=Sandbox("auto"))

    assert (run.limit, run.changed) == (limit, ())


def test_odd_names_and_links_are_not_read() -> None:
    odd = "echo x > 'a\nb'; echo x > 'c\\d'"
    commands = f"ln data/in.txt hard; ln -s hard soft; {odd}; rm data/in.txt"

    run = run_of(call("bash", command=commands), "Done.", sandbox=Sandbox("auto"))

    assert [file.name for file in run.changed] == ["hard"]
    assert run.deleted == ("data/in.txt",)


@pytest.mark.parametrize("trouble", [ProviderError("HTTP 500"), BudgetError("$1 is spent")])
def test_a_run_that_cannot_go_on_is_missing_data_with_what_was_paid(
    trouble: ProviderError | BudgetError,
) -> None:
    with pytest.raises(type(trouble)) as error:
        work(ScriptedClient(AGAIN, trouble), Sandbox("auto"))

    assert error.value is trouble
    assert error.value.paid is not None
    assert error.value.paid.cost_usd == 0.25


CASE = {
    "id": "total",
    "input": "Write the total of data/in.txt.",
    "workspace": {"data/in.txt": "100\n250\n"},
    "expected": {
        "file_contains": {"total.txt": "TOTAL 350"},
        "triggered": True,
        "ran_script": "scripts/total.py",
    },
}
FOLLOWING = following(
    [LOAD, COMPUTE, "It is 350."],
    [call("write_file", path="total.txt", content="350\n"), "It is 350."],
)


@pytest.fixture
def sums(write_skill: WriteSkill) -> Path:
    folder = write_skill(CASE, name="sums")
    (folder / "SKILL.md").write_text(SKILL, "utf-8")
    (folder / "scripts").mkdir()
    (folder / "scripts/total.py").write_text(TOTAL, "utf-8")
    (folder / "evals").mkdir()
    (folder / "evals/answers.txt").write_text("TOTAL 350", "utf-8")
    return folder


@pytest.mark.usefixtures("sums")
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_skill_is_measured_in_the_agent_and_replayed_without_it(
    run: Run, loopback: Loopback, provider: str
) -> None:
    loopback.answer = FOLLOWING
    url = loopback.url if provider == "anthropic" else loopback.openai_url
    args = (f"--upskill-models=loop:{provider}:small@{url}", "skills", "--upskill-json=out.json")

    result = run(*args)

    result.assert_outcomes(passed=3)
    said = " ".join(result.stdout.str().split())
    assert "sums on loop-small: offered / loaded in 1 / 1 of 1 runs" in said
    assert "triggered in 1 of 1 runs, ran_script scripts/total.py in 1 of 1 runs" in said
    (entry,) = json.loads(Path("out.json").read_text("utf-8"))["entries"]
    assert entry["figures"]["lift"]["estimate"] == 1.0
    assert entry["figures"]["agent"] == AGENT
    asked = len(loopback.requests)
    loopback.answer = following(["No."], ["No."])

    replayed = run(*args, "--upskill-cache=replay", "--upskill-sandbox=off")

    replayed.assert_outcomes(passed=3)
    assert len(loopback.requests) == asked == 5


AGENT = {
    "version": "1",
    "runs": 1,
    "offered": 1,
    "loaded": 1,
    "turns": 3.0,
    "requests": 3.0,
    "calls": 2.0,
    "process": {"triggered": 1, "ran_script scripts/total.py": 1},
}


def recorded_runs() -> list[Path]:
    return sorted(Path.cwd().glob(".upskill/cache/agent-runs/*/*.json"))


@pytest.mark.usefixtures("sums")
def test_the_page_shows_what_the_agent_did_and_left(run_once: Run, loopback: Loopback) -> None:
    loopback.answer = FOLLOWING

    run_once(
        f"--upskill-models=loop:small@{loopback.openai_url}", "skills", "--upskill-html=o.html"
    )

    page = Path("o.html").read_text("utf-8")
    assert "done, which does not count: <bdi>triggered: the agent took the skill" in page
    assert "<pre>skill {&#34;name&#34;: &#34;sums&#34;}\nbash {" in page
    assert "<p><bdi>total.txt</bdi></p>\n<pre>TOTAL 350" in page


@pytest.mark.usefixtures("sums")
def test_a_run_record_is_small_readable_and_spared_by_pruning(
    run_once: Run, loopback: Loopback
) -> None:
    loopback.answer = FOLLOWING
    args = (f"--upskill-models=loop:small@{loopback.openai_url}", "skills")
    run_once(*args)
    before = recorded_runs()

    run_once("--upskill-models=other@http://127.0.0.1:9/v1", "skills", "--upskill-cache-prune")

    assert recorded_runs() == before
    assert len(before) == 2
    texts = [file.read_text("utf-8") for file in before]
    assert max(map(len, texts)) < 3000
    assert any('"text": [\n      "TOTAL 350",\n      ""\n     ]' in text for text in texts)


def _outside(run: dict[str, Any]) -> None:
    run["changed"] = [{"name": "../../escaped.txt", "text": "x", "binary": False}]


def _deleting(run: dict[str, Any]) -> None:
    run["deleted"] = ["/etc/passwd"]


def _huge(run: dict[str, Any]) -> None:
    run["changed"] = [{"name": "a", "text": ["x" * 2_000_000], "binary": False}]


def _undecodable(run: dict[str, Any]) -> None:
    run["changed"] = [{"name": "a", "text": "x", "binary": True}]


def _many(run: dict[str, Any]) -> None:
    run["changed"] = [{"name": f"f{n}", "text": "", "binary": False} for n in range(2001)]


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (_outside, "has the name of a file outside the workspace"),
        (_deleting, "has the name of a file outside the workspace"),
        (_huge, "has more than 1 MiB of files"),
        (_undecodable, "has a file that cannot be decoded"),
        (_many, "has more than 2,000 files"),
        (lambda run: run.update(changed="x"), "not a recording"),
    ],
)
def test_a_record_that_no_run_can_have_left_is_refused(
    tmp_path: Path, forge: Callable[[dict[str, Any]], None], said: str
) -> None:
    asked = replace(request_to(parse_model("loop:haiku"), frame=""), task=WITH)
    run = AgentRun(version="1", changed=(WorkspaceFile(name="total.txt", text="TOTAL 350\n"),))
    completion = Completion(text="Done.", input_tokens=1, output_tokens=1, agent_run=run)
    cache = Cache(tmp_path, "auto")
    cache.store(asked, "u", completion, "a")
    assert cache.load(asked, "u") == replace(completion, replayed=True)
    (file,) = tmp_path.glob("agent-runs/*/*.json")
    record = json.loads(file.read_text("utf-8"))
    forge(record["completion"]["agent_run"])
    file.write_text(json.dumps(record), "utf-8")

    assert cache.load(asked, "u") is None

    assert list(cache.problems) == [f"{file}: ignored: {said}"]


def test_a_replayed_run_of_another_version_than_the_installed_one_is_noted(tmp_path: Path) -> None:
    asked = replace(request_to(parse_model("loop:haiku"), frame=""), task=WITH)
    made = Completion(
        text="", input_tokens=1, output_tokens=1, agent_run=AgentRun(version="1", turns=1)
    )
    cache = Cache(tmp_path, "auto")
    cache.store(asked, "u", made, "a")
    cache.installed["loop"] = "2"

    cache.load(asked, "u")

    (line,) = cache.replaced
    assert line.startswith("loop 2 is installed, and 1 of the replayed runs are by 1: ")


def test_runs_at_the_same_time_do_not_meet(sandbox: Sandbox) -> None:
    marks = "echo $$ >> mark; echo $$ >> ~/mark; sleep 0.3; cat mark ~/mark | wc -l; ls /tmp"
    clients = [ScriptedClient(call("bash", command=marks), "Done.") for _ in range(2)]
    asked = replace(request_to(parse_model("loop:haiku"), frame=""), task=WITH)

    async def both() -> None:
        await asyncio.gather(*(runner.complete(asked, client) for client in clients))

    runner = AgentRunner(lambda: sandbox, 2)
    try:
        asyncio.run(both())
    finally:
        runner.close()

    for client in clients:
        (seen,) = results(client)
        assert seen.startswith("2\n")
        assert len(re.findall("upskill-", seen)) <= 1


@pytest.mark.usefixtures("sums")
def test_the_plan_tells_the_likely_cost_by_recorded_runs(
    run_once: Run, loopback: Loopback, pytester: pytest.Pytester
) -> None:
    loopback.answer = FOLLOWING
    pytester.makeini("[pytest]\nupskill_prices = loop-small = 1000/1000")
    args = (f"--upskill-models=loop:small@{loopback.openai_url}", "skills", "--upskill-max-cost=99",
            "--upskill-max-tokens=50")  # fmt: skip
    first = run_once(*args)

    again = run_once(*args, "--upskill-runs=2", "--upskill-dry-run")

    # Five requests of 11 tokens in and 7 out at $1,000 a million, by two runs.
    first.stdout.fnmatch_lines(["requested 2 answers: $0.0900"])
    again.stdout.fnmatch_lines(["*2 recorded, 2 to request*, likely $0.0900 by recorded runs"])
    assert ", likely" not in first.stdout.str()


@pytest.mark.usefixtures("sums")
def test_a_session_that_stops_early_has_started_one_run_ahead_for_each_slot(
    run_once: Run, loopback: Loopback
) -> None:
    loopback.answer = lambda _: Reply(text="No.", delay=0.1)
    args = (f"--upskill-models=loop:small@{loopback.openai_url}", "skills", "--upskill-runs=3")

    result = run_once(*args, "--upskill-concurrency=1", "-x")

    result.assert_outcomes(failed=1, skipped=1)
    # Three runs with the skill, and one more.
    assert len(loopback.requests) <= 4


@pytest.mark.usefixtures("sums")
def test_a_run_at_a_limit_is_a_miss_that_no_judge_is_asked_about(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    expected = {"judge": "It says the total."}
    write_skill({**CASE, "max_turns": 1, "expected": expected}, name="sums")
    loopback.answer = following([AGAIN], [AGAIN])
    models = (f"--upskill-models=loop:small@{loopback.openai_url}",
              f"--upskill-judge=judge@{loopback.openai_url}")  # fmt: skip

    result = run_once("skills", *models)

    result.stdout.fnmatch_lines(["*it needs more than 1 turn*"])
    assert [received.body["model"] for received in loopback.requests] == ["small"] * 2


@pytest.mark.usefixtures("sums")
def test_a_run_stops_before_its_requests_exceed_the_budget(
    run_once: Run, loopback: Loopback, pytester: pytest.Pytester
) -> None:
    # A request is billed as $.05, and reserves $.05 and a little more.
    loopback.answer = following([AGAIN], [AGAIN])
    reply = loopback.answer
    usage = {"prompt_tokens": 1, "completion_tokens": 50}
    loopback.answer = lambda received: replace(cast("Reply", reply(received)), usage=usage)
    pytester.makeini("[pytest]\nupskill_prices = loop-small = 0.01/1000")

    result = run_once(
        f"--upskill-models=loop:small@{loopback.openai_url}", "skills", "--upskill-max-tokens=50",
        "--upskill-max-cost=0.3", "-rs",
    )  # fmt: skip

    assert len(loopback.requests) == 5
    result.stdout.fnmatch_lines(["*--upskill-max-cost: this request could exceed $0.3*"])
    result.stdout.fnmatch_lines(["*0.25*"])


@pytest.mark.usefixtures("sums")
@pytest.mark.parametrize(
    ("args", "line"),
    [
        (
            ("--upskill-models=loop:m@http://127.0.0.1:9/v1", "--upskill-sandbox=off"),
            "*sandbox: agents run commands of a model, and level 'off' hides no files from them: *",
        ),
        (
            ("--upskill-models=loop:offline",),
            "*loop:offline:offline: offline accepts no tools, which loop needs: choose another *",
        ),
    ],
)
def test_an_agent_that_cannot_run_is_one_line(
    run_once: Run, args: tuple[str, ...], line: str
) -> None:
    result = run_once(*args, "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([line])


def test_a_long_skill_that_is_read_in_two_parts_has_reached_the_agent() -> None:
    lines = [f"Rule number {number} of the invoices.\n" for number in range(100)]
    text = f"---\nname: billing\ndescription: d\n---\n\n{''.join(lines)}"
    task = AgentTask(skill_name="billing", skill=(WorkspaceFile(name="SKILL.md", text=text),))
    first, second = "".join(lines[:45]), "".join(lines[45:90])

    assert is_loaded(task, [first, second])
    assert not is_loaded(task, [first])
