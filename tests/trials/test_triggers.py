"""Trials in which a model chooses among skills: outcomes, figures and recordings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback, Received, Reply
from tests.sdk_requests import every_sdk
from tests.trials.choosing import calling, choosing, figures, queries, took


@pytest.fixture
def skills(write_skill: WriteSkill) -> Path:
    """Two skills, the first with queries."""
    folder = write_skill(
        {"id": "bill", "input": "Bill Ada.", "should_trigger": True},
        {"id": "sing", "input": "Sing.", "should_trigger": False},
    )
    other = folder.parent / "parcels"
    other.mkdir()
    (other / "SKILL.md").write_text(
        "---\nname: parcels\ndescription: Send <parcels>.\n---\n\nSend.\n", "utf-8"
    )
    return folder.parent


def test_figures_are_those_of_a_hand_computation_live_and_replayed(
    run: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*queries(4, 5))
    # By hand: 3 of 4 taken, 1 of 5 taken falsely, so 3 of 4 triggers were wanted.
    choices: dict[str, Reply | str] = {f"Query {number}.": took("billing") for number in (0, 1, 2)}
    choices |= {"Query 3.": took("nonsense"), "Query 4.": took("billing")}
    loopback.answer = choosing(choices)
    args = ("--upskill-models", model, "--upskill-json", "r.json", "skills")

    live = run(*args)

    live.assert_outcomes(passed=8, failed=2)
    (entry,) = figures()["entries"]
    first = entry["figures"]
    assert first["trigger.recall"] == 0.75
    assert [first[f"trigger.recall.{limit}"] for limit in ("low", "high")] == pytest.approx(
        [0.3006, 0.9544], abs=1e-4
    )
    assert first["trigger.false_triggers"] == 0.2
    assert [first["trigger.precision"], first["trigger.queries"]] == [0.75, 9]
    live.stdout.fnmatch_lines(
        ["billing on m * 75% ?30,95? * 20% ?4,62? * 75% * 9*",
         "*chose billing where it should not (1 run); chose nonsense instead of billing (1 run)"]
    )  # fmt: skip
    loopback.requests.clear()

    replayed = run(*args, "--upskill-cache", "replay")

    replayed.assert_outcomes(passed=8, failed=2)
    assert not loopback.requests
    assert figures()["entries"][0]["figures"] == first


@pytest.mark.usefixtures("skills")
def test_advice_about_failed_queries_names_the_skills_that_won_and_lost_them(
    run_once: Run, loopback: Loopback
) -> None:
    loopback.answer = choosing({"Bill Ada.": took("parcels"), "Sing.": took("billing")})
    model = f"m=openai:small@{loopback.openai_url}"

    result = run_once("--upskill-models", model, "skills", "--upskill-runs=2")

    lost = "billing lost 1 query to parcels, billing took 1 query that it should not"
    result.stdout.fnmatch_lines([f"next: {lost}: say in each description when to use the skill *"])
    # A reply that only calls a tool has no text to show.
    result.stdout.no_fnmatch_line("*- answer -*")
    result.stdout.no_fnmatch_line("runs 1, 2:")


def test_lift_rows_are_the_same_bytes_with_and_without_queries(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    answered = {"id": "a", "input": "Budget?", "expected": {"contains": "37"}}
    loopback.answer = choosing({"Budget?": Reply(text="37")})

    def rows() -> tuple[str, list[str]]:
        args = ("--upskill-models", model, "--upskill-json", "r.json", "--upskill-md", "r.md")
        result = run_once(*args, "skills")
        lines = [line for line in result.outlines if line.startswith(("  m ", "model  "))]
        lifts = [entry for entry in figures()["entries"] if "lift" in entry["figures"]]
        for entry in lifts:
            for trial in entry["gate"]["cell"]["trials"]:
                for each in trial["runs"]:
                    # Measured anew in each session, and 0 once it is replayed.
                    del each["completion"]["latency_s"], each["completion"]["replayed"]
            del entry["figures"]["latency_s.with"], entry["figures"]["latency_s.without"]
        return json.dumps(lifts), lines

    write_skill(answered)
    before = rows()
    write_skill(answered, *queries(2, 2))

    assert rows() == before
    assert before[1]


@every_sdk
def test_both_formats_send_back_what_the_model_said(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, provider: str
) -> None:
    write_skill({"id": "bill", "input": "Bill Ada.", "should_trigger": True})
    url = loopback.openai_url if provider == "openai" else loopback.url

    def reply(name: str, argument: str, value: str) -> Reply:
        if provider == "openai":
            return calling(name, {argument: value})
        block = {"type": "tool_use", "id": "t1", "name": name, "input": {argument: value}}
        thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
        return Reply(content=[thought, block], stop="tool_use")

    loopback.replies += [
        reply("skill", "name", "greeting"),
        reply("list_files", "path", "."),
        reply("skill", "name", "billing"),
    ]

    result = run_once("--upskill-models", f"m={provider}:small@{url}", "skills")

    result.assert_outcomes(passed=2)
    assert len(loopback.requests) == 3
    *_, asked, results = loopback.requests[2].body["messages"]
    if provider == "anthropic":
        assert asked["content"][0]["signature"] == "c2ln"
    assert "The folder is empty." in json.dumps(results)


def test_a_server_that_drops_tools_is_missing_data_with_the_cure(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*queries(2, 1))
    loopback.answer = lambda _: "I would load the skill greeting."

    result = run_once("--upskill-models", model, "skills")

    result.assert_outcomes(errors=1, skipped=1)
    assert result.ret == 75
    # It is told once more before the reason counts.
    assert len(loopback.requests) == 2
    result.stdout.fnmatch_lines(
        ["*m called no tool when told to: choose a model that calls tools, *"]
    )
    result.stdout.fnmatch_lines(["*2 more with the same cause*"])


def test_a_server_that_refuses_tools_is_missing_data(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*queries(1, 0))
    loopback.answer = lambda _: Reply(text="tools are not supported", status=400)

    result = run_once("--upskill-models", model, "skills")

    assert result.ret == 75
    result.stdout.fnmatch_lines(
        ["*m was asked to call a tool: *tools are not supported; choose a model that calls tools*"]
    )


def test_offline_chooses_by_words_in_common_and_fails_nothing(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(
        {"id": "words", "input": "Facts about billing, please.", "should_trigger": True},
        {"id": "none", "input": "Sing a shanty.", "should_trigger": True},
    )

    result = run_once("--upskill-models", "offline", "-v", "skills")

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["*::words?offline-trigger] OFFLINE PASS *", "*::none?offline-trigger] OFFLINE FAIL *"]
    )


def test_a_query_for_a_skill_that_is_not_listed_is_skipped(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(name="parcels")
    write_skill(
        {"id": "typo", "input": "Send it.", "expected_skill": "parcel"},
        {"id": "named", "input": "Facts about parcels.", "expected_skill": "post:Parcels"},
    )

    result = run_once("--upskill-models", "offline", "-rs", "skills/billing")

    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(
        ["*expects 'parcel' (did you mean 'parcels'[?]), which is not in the catalogue*"]
    )


def test_skills_inside_a_skill_are_in_its_catalogue(run_once: Run, write_skill: WriteSkill) -> None:
    folder = write_skill({"id": "inner", "input": "Send parcels.", "expected_skill": "parcels"})
    inner = write_skill(name="parcels")
    (folder / "skills").mkdir()
    inner.rename(folder / "skills" / "parcels")

    result = run_once("--upskill-models", "offline", "-v", "skills/billing/skill_meta.json")

    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("is_repository", [False, True])
def test_the_skills_beside_one_are_in_its_catalogue_wherever_pytest_starts(
    *, is_repository: bool, run_once: Run, skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_repository:  # and lies beside others by chance
        (skills / "billing" / ".git").mkdir()
    case = {"id": "send", "input": "Send it.", "expected_skill": "parcels"}
    (skills / "billing" / "skill_meta.json").write_text(json.dumps({"cases": [case]}), "utf-8")
    monkeypatch.chdir(skills / "billing")

    result = run_once("--upskill-models", "offline")

    result.assert_outcomes(passed=not is_repository, skipped=is_repository)


def test_a_hidden_skill_is_skipped_with_the_reason(run_once: Run, write_skill: WriteSkill) -> None:
    folder = write_skill(*queries(1, 0))
    text = (folder / "SKILL.md").read_text("utf-8")
    text = text.replace("\n---\n\n#", "\ndisable-model-invocation: true\n---\n\n#")
    (folder / "SKILL.md").write_text(text, "utf-8")

    result = run_once("--upskill-models", "offline", "-rs", "skills")

    result.stdout.fnmatch_lines(["*no agent sees billing: disable-model-invocation is set*"])


def test_only_a_changed_descriptions_queries_are_requested_with_a_catalogue_file(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    one, two = (write_skill(*queries(2, 0), name=name) for name in ("billing", "parcels"))
    loopback.answer = choosing({})
    args = ("--upskill-models", model, "--upskill-runs", "3", "skills")
    run_once("--upskill-catalogue-update", "skills")
    run_once(*args)
    loopback.requests.clear()

    (two / "SKILL.md").write_text((two / "SKILL.md").read_text("utf-8") + "More.\n", "utf-8")
    run_once(*args)
    assert not loopback.requests

    text = (one / "SKILL.md").read_text("utf-8").replace("Facts about", "All about")
    (one / "SKILL.md").write_text(text, "utf-8")
    planned = run_once(*args, "--upskill-dry-run")
    run_once(*args)

    assert len(loopback.requests) == 6
    planned.stdout.fnmatch_lines(["upskill: 4 trials, 12 answers: 6 recorded, 6 to request*"])


def test_recordings_of_every_request_survive_a_prune(
    run_once: Run, skills: Path, loopback: Loopback, model: str
) -> None:
    replies: list[Reply | str] = [calling("bash", {"command": "ls"}), took("billing"), "No."]
    looked = iter(replies)

    def answer(received: Received) -> Reply | str:
        probed = "<name>greeting</name>" in received.system
        return took("greeting") if probed else next(looked)

    loopback.answer = answer
    run_once("--upskill-models", model, "-p", "no:randomly", str(skills))

    result = run_once("--upskill-models", model, "--upskill-cache-prune", str(skills))

    result.stdout.fnmatch_lines(["upskill: 0 recordings in *"])


def test_a_replay_says_that_the_catalogue_has_changed(
    run: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*queries(1, 0))
    loopback.answer = choosing({"Query 0.": took("billing")})
    run("--upskill-models", model, "skills/billing")
    write_skill(name="bills")

    result = run("--upskill-models", model, "--upskill-cache", "replay", "skills/billing")

    result.stdout.fnmatch_lines(["*stale recording (catalogue changed since) in *"])
