from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Run
from tests.pages import CHECKOUT

ACTION = CHECKOUT / "action.yml"
WORKFLOWS = [
    file
    for file in sorted((CHECKOUT / "docs" / "workflows").glob("*.yml"))
    if file.name != "gitlab-ci.yml"
]
every_workflow = pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with two skills, of which the branch changed one."""
    for name in ("git-commit-messages", "yaml-parsing"):
        shutil.copytree(CHECKOUT / "example_skills" / name, tmp_path / "skills" / name)
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    commit(tmp_path)
    git(tmp_path, "switch", "--quiet", "--create", "branch")
    with (tmp_path / "skills" / "yaml-parsing" / "SKILL.md").open("a", encoding="utf-8") as stream:
        stream.write("\nAnother word.\n")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    git(folder, *who, "commit", "--quiet", "--message", "Change")


def steps(document: Any) -> Iterator[dict[str, Any]]:
    if "runs" in document:
        yield from document["runs"]["steps"]
    for job in document.get("jobs", {}).values():
        yield from job["steps"]


def shell(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTEST_ADDOPTS": "-p no:anyio", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def act(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the step of the action that tests."""
    document = yaml.safe_load(ACTION.read_text("utf-8"))
    (step,) = (step for step in steps(document) if step.get("id") == "run")
    given = {"MODELS": "offline", "PATHS": "skills", "SINCE": "", "ARGS": "", "FOLDER": "out"}
    output = {"GITHUB_OUTPUT": str(folder / "outputs")}
    return shell(step["run"], folder, **given | output | inputs)


@pytest.mark.parametrize("file", [ACTION, *WORKFLOWS], ids=lambda file: file.name)
def test_every_action_is_pinned_by_a_hash(file: Path) -> None:
    used = re.findall(r"uses: (.*)", file.read_text("utf-8"))

    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)


@every_workflow
def test_a_workflow_may_do_only_what_its_jobs_say(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text("utf-8"))

    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        writes = {scope for scope, level in job["permissions"].items() if level == "write"}
        assert writes <= {"id-token"} or not any("pytest" in s.get("run", "") for s in job["steps"])
        assert job["timeout-minutes"]


def test_an_auditor_finds_nothing(tmp_path: Path) -> None:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    for file in WORKFLOWS:
        shutil.copy(file, folder)
    shutil.copy(ACTION, tmp_path)

    process = shell("zizmor --offline --no-progress .", tmp_path)

    assert process.returncode == 0, process.stdout


@every_workflow
def test_the_options_in_a_workflow_are_options(file: Path, run_once: Run) -> None:
    known = set(re.findall(r"--upskill-[a-z-]+", run_once("--help").stdout.str()))

    assert set(re.findall(r"--upskill-[a-z-]+", file.read_text("utf-8"))) <= known


@every_workflow
def test_the_scripts_in_a_workflow_are_scripts(file: Path, tmp_path: Path) -> None:
    for step in steps(yaml.safe_load(file.read_text("utf-8"))):
        if "run" in step:
            process = shell(f"set -n\n{step['run']}", tmp_path)
            assert process.returncode == 0, process.stdout


@pytest.mark.needs("git")
def test_the_shares_of_a_workflow_merge_into_one_report(project: Path) -> None:
    workflow = yaml.safe_load((CHECKOUT / "docs" / "workflows" / "shards.yml").read_text("utf-8"))
    scripts = [step["run"] for step in steps(workflow) if "run" in step]
    share, gate = (script for script in scripts if not script.startswith("pip"))
    for number in workflow["jobs"]["share"]["strategy"]["matrix"]["share"]:
        process = shell(share, project, SHARE=str(number))
        assert process.returncode == 0, process.stdout

    process = shell(gate, project)

    assert process.returncode == 0, process.stdout
    assert "2 gates passed" in process.stdout
    assert (project / "report.html").exists()


@pytest.mark.needs("git")
def test_the_action_writes_reports_and_outputs(project: Path) -> None:
    process = act(project, ARGS="--upskill-runs 2 -q")

    assert process.returncode == 0, process.stdout
    names = {file.name for file in (project / "out").iterdir()}
    assert names == {"report.json", "report.md", "report.html", "junit.xml"}
    assert (project / "outputs").read_text("utf-8") == "verdict=helps\nlift=1.0000\nregressed=[]\n"


@pytest.mark.needs("git")
def test_the_action_is_red_where_a_gate_is(project: Path) -> None:
    skill = project / "skills" / "yaml-parsing" / "SKILL.md"
    skill.write_text("---\nname: yaml-parsing\ndescription: Nothing.\n---\n", "utf-8")

    process = act(project, ARGS="--upskill-min-lift 0.2")

    assert process.returncode == 1
    outputs = (project / "outputs").read_text("utf-8")
    assert 'regressed=["yaml-parsing on offline"]\n' in outputs


@pytest.mark.needs("git")
def test_the_action_tests_only_what_changed(project: Path) -> None:
    process = act(project, SINCE="main", ARGS="-v")

    assert "skills/yaml-parsing/skill_meta.json::" in process.stdout
    assert "git-commit-messages" not in process.stdout


@pytest.mark.needs("git")
def test_where_nothing_changed_the_action_does_nothing(project: Path) -> None:
    process = act(project, SINCE="branch")

    assert process.returncode == 0
    assert process.stdout == "no skill differs from branch\n"


@pytest.mark.needs("git")
def test_inputs_of_the_action_are_words_not_commands(project: Path) -> None:
    process = act(project, ARGS="-q $(touch owned) ; touch owned", PATHS="skills\n$(touch owned)")

    assert process.returncode != 0
    assert not (project / "owned").exists()
