"""``--upskill-cache-prune`` deletes recordings that no trial refers to."""

from __future__ import annotations

import shutil

import pytest

from tests.conftest import Run, WriteSkill, budget_cases, recordings
from tests.loopback import Loopback


def test_prune_deletes_what_no_trial_refers_to_and_asks_nothing(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill()
    run_once("--upskill-models", model, "--upskill-runs", "2", "skills")
    before = recordings()
    foreign = before[0].parent / "notes.json"
    foreign.write_text("{}", "utf-8")
    write_skill(body="It is 37.\n")
    loopback.requests.clear()

    prune = ("--upskill-models", model, "--upskill-cache-prune", "skills")
    listed = run_once(*prune, "--upskill-dry-run")
    untouched = recordings()
    pruned = run_once(*prune)

    assert loopback.requests == []
    assert foreign.exists()
    assert len(untouched) == 5
    assert len(recordings()) == 3
    for result, word in ((listed, "would be deleted"), (pruned, "deleted")):
        assert "will follow" not in result.stdout.str()
        assert result.ret == pytest.ExitCode.OK
        result.stdout.fnmatch_lines(
            [
                "*.json: billing::budget?m-with_skill? run ?, 20*",
                f"upskill: 2 recordings in * {word}",
            ]
        )


@pytest.mark.parametrize(
    "selection",
    [
        ("skills", "-k", "case-0"),
        ("skills", "-m", "upskill(arm='with_skill')"),
        ("skills/billing/skill_meta.json::case-0",),
        ("skills", "--deselect", "skills/billing/skill_meta.json::case-0"),
        (".",),
    ],
)
def test_prune_refuses_where_it_cannot_see_all_trials(
    run_once: Run,
    write_skill: WriteSkill,
    model: str,
    pytester: pytest.Pytester,
    selection: tuple[str, ...],
) -> None:
    write_skill(*budget_cases(2))
    run_once("--upskill-models", model, "skills")
    broken = pytester.mkdir("broken")
    (broken / "skill_meta.json").write_text("{", "utf-8")
    more = () if selection[0] != "." else ("--continue-on-collection-errors",)

    result = run_once("--upskill-models", model, "--upskill-cache-prune", *selection, *more)

    assert len(recordings()) == 4
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --upskill-cache-prune: *recordings in use would be deleted too*"]
    )


@pytest.mark.parametrize("arguments", ["skills/billing", "skills/billing/skill_meta.json"])
def test_prune_keeps_the_recordings_of_skills_of_the_project_that_are_not_selected(
    run_once: Run, write_skill: WriteSkill, model: str, arguments: str
) -> None:
    write_skill()
    other = write_skill(name="csv")
    run_once("--upskill-models", model, "skills")
    prune = ("--upskill-models", model, "--upskill-cache-prune")

    run_once(*prune, arguments).stdout.fnmatch_lines(["upskill: 0 recordings in * deleted"])

    assert len(recordings()) == 3
    # A skill that is gone has no recordings in use.
    shutil.rmtree(other)
    run_once(*prune, arguments).stdout.fnmatch_lines(["upskill: 1 recording in * deleted"])


def test_prune_needs_no_keys_that_can_be_told_apart(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    model: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_skill()
    run_once("--upskill-models", model, "skills")
    write_skill(body="It is 37.\n")
    other = model.replace("m=", "n=").replace("127.0.0.1", "localhost")
    monkeypatch.setenv("UPSKILL_API_KEY", "whose")

    result = run_once("--upskill-models", f"{model},{other}", "--upskill-cache-prune", "skills")

    assert result.ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 2
    result.stdout.fnmatch_lines(["upskill: 1 recording in * deleted"])
