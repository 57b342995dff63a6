"""Tasks as people give them to agents, from their files to the checks of what is left."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.agents import workspace
from tests.agents.scripted_agent import LOAD, SKILL, Step, call, following
from tests.agents.three_tasks import NAME, Calls, doing_tasks, write_tasks
from tests.conftest import Run, WriteSkill
from tests.git_repository import git
from tests.loopback import Loopback

pytestmark = pytest.mark.slow


def bash(command: str) -> Step:
    return call("bash", command=command)


LOOP = Calls(
    load={"name": "skill", "input": {"name": NAME}},
    shell=lambda command: {"name": "bash", "input": {"command": command}},
)


@pytest.mark.needs("git")
@pytest.mark.parametrize("level", ["auto", "landlock"])
def test_the_tasks_of_the_docs_are_measured_and_replayed_without_the_model(
    run_once: Run, pytester: pytest.Pytester, loopback: Loopback, level: str
) -> None:
    write_tasks(pytester.path / "skills")
    loopback.answer = doing_tasks(LOOP)
    models = f"--upskill-models=loop:small@{loopback.openai_url}"
    args = (models, "skills", "--upskill-json=out.json", f"--upskill-sandbox={level}")

    result = run_once(*args)

    result.assert_outcomes(passed=7)
    (entry,) = json.loads(Path("out.json").read_text("utf-8"))["entries"]
    assert (entry["figures"]["lift"], entry["figures"]["agent.loaded"]) == (1.0, 1.0)
    asked = len(loopback.requests)
    loopback.answer = lambda _: "No."

    replayed = run_once(*args, "--upskill-cache=replay")

    replayed.assert_outcomes(passed=7)
    assert len(loopback.requests) == asked
    (again,) = json.loads(Path("out.json").read_text("utf-8"))["entries"]
    assert again["figures"]["lift"] == 1.0


def run_case(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, *steps: Step, **case: Any
) -> str:
    """Run one case whose agent does the same in both arms, and return what is printed."""
    folder = write_skill({"id": "c", "input": "Do it.", **case}, name="sums")
    (folder / "SKILL.md").write_text(SKILL, "utf-8")
    loopback.answer = following([LOAD, *steps, "Done."], [*steps, "Done."])
    models = f"--upskill-models=loop:small@{loopback.openai_url}"
    return run_once(models, "skills", "-rA", "--upskill-json=out.json").stdout.str()


def test_a_setup_runs_before_the_agent_without_network(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    said = run_case(
        run_once,
        write_skill,
        loopback,
        bash("cat made.txt > seen.txt"),
        workspace={"in.txt": "1\n"},
        setup={
            "files": {"more.txt": "2\n"},
            "commands": ["cat in.txt more.txt > made.txt", "rm in.txt"],
        },
        expected={"file": {"seen.txt": {"regex": "1\n2"}}, "command": "test ! -e in.txt"},
    )

    assert "3 passed" in said
    record = json.loads(min(Path(".upskill").rglob("agent-runs/*/*.json")).read_text("utf-8"))
    assert record["completion"]["agent_run"]["of_setup"] == ["made.txt", "in.txt"]
    assert record["request"]["setup"]


@pytest.mark.parametrize(
    ("commands", "reason"),
    [
        (["true", "cat nothing"], "setup: 'cat nothing' failed (exit status 1): *No such file*"),
        (["curl http://127.0.0.1:{port}/"], "setup: 'curl * failed (exit status *"),
        (["head -c 2000000 /dev/zero > big"], "setup: it left more than 1 MiB in the workspace*"),
    ],
)
def test_a_setup_that_fails_is_an_error_before_anything_is_asked(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, commands: list[str], reason: str
) -> None:
    port = loopback.url.rpartition(":")[2]
    said = run_case(
        run_once,
        write_skill,
        loopback,
        setup={"commands": [command.replace("{port}", port) for command in commands]},
        expected={"contains": "Done"},
    )

    pytest.LineMatcher(said.splitlines()).fnmatch_lines([f"*{reason}"])
    assert loopback.requests == []
    assert "failed" not in said.splitlines()[-1]


def test_all_commands_of_a_setup_together_have_its_time(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "_SETUP", replace(workspace._SETUP, wall_s=2))

    said = run_case(
        *(run_once, write_skill, loopback),
        setup={"commands": ["sleep 1.5", "sleep 1.4"]},
        expected={"contains": "Done"},
    )

    assert "setup: 'sleep 1.4' failed (stopped at a limit of time)" in said


@pytest.mark.needs("git")
def test_a_workspace_has_the_history_of_a_bundle(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "-q", "-b", "trunk")
    for number in ("1", "2"):
        (source / "a.txt").write_text(number, "utf-8")
        git(source, "add", "-A")
        git(source, "commit", "-qm", f"Commit {number}")
    git(source, "branch", "old", "HEAD~1")
    folder = write_skill({"id": "c", "input": "x", "expected": {"contains": "x"}}, name="sums")
    subprocess.run(
        ["git", "bundle", "create", "-q", folder / "history.bundle", "trunk", "old"],
        cwd=source,
        check=True,
    )

    said = run_case(
        run_once,
        write_skill,
        loopback,
        bash("cat a.txt b.txt; git checkout -q old; git add b.txt; git config core.pager false"),
        workspace={"b.txt": "new\n"},
        git="history.bundle",
        expected={
            "git": {
                "branch": "ol?",
                "clean": False,
                "message": {"contains": "Commit 1"},
                "staged": "b.txt",
            },
            "command": {"run": "git log --all --oneline | wc -l", "regex": "^2"},
        },
    )

    assert "3 passed" in said


@pytest.mark.needs("git")
def test_settings_of_a_repository_run_nothing_outside_the_sandbox(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, tmp_path: Path
) -> None:
    hostile = f"touch {tmp_path}/escaped; touch escaped"
    said = run_case(
        run_once,
        write_skill,
        loopback,
        bash(f"git config core.fsmonitor '{hostile}'; git config core.pager '{hostile}'"),
        git=True,
        expected={"git": {"branch": "main"}, "command": "git status"},
    )

    assert "3 passed" in said
    assert not [*tmp_path.rglob("escaped")]


@pytest.mark.needs("git")
def test_the_state_of_a_repository_that_is_too_large_to_record_is_checked(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    said = run_case(
        run_once,
        write_skill,
        loopback,
        bash("head -c 2000000 /dev/urandom > a; git add a; git commit -qm 'feat: a'; rm a"),
        git=True,
        expected={"git": {"message": {"contains": "feat: a"}}, "command": "git log"},
    )

    assert "command 'git log': exit status 128, not 0, without .git, which is too large: " in said
    assert "1 of 2 checks passed" in said


@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        ({"git": {"clean": True}}, "git: there is no git repository in the workspace"),
        ({"command": "exit 3"}, "command 'exit 3': exit status 3, not 0"),
        (
            {"command": {"run": "cat in.txt", "contains": "b"}},
            "command 'cat in.txt': contains 'b': not in the output (*",
        ),
        ({"file_exists": "x"}, "file_exists x: not in the workspace (in.txt; left out: link (*"),
    ],
)
def test_a_failed_check_says_what_is_there(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    expected: Mapping[str, Any],
    reason: str,
) -> None:
    said = run_case(
        run_once,
        write_skill,
        loopback,
        bash("ln -s /etc/passwd link"),
        workspace={"in.txt": "a"},
        expected=expected,
    )

    pytest.LineMatcher(said.splitlines()).fnmatch_lines([f"*{reason}*"])
