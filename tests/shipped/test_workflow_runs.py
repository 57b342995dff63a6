"""The action and the workflows do what they say."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.git_repository import commit_all, git
from tests.pages import CHECKOUT
from tests.shipped.workflows import ACTION, FOLDER, shell, steps

pytestmark = pytest.mark.needs("git")

GH = """\
#!/bin/sh
echo "$*" >> gh.log
case "$1 $2" in "pr list") cat pull-request ;; esac
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with two skills, of which the branch changed one."""
    for name in ("git-commit-messages", "yaml-parsing"):
        shutil.copytree(CHECKOUT / "example_skills" / name, tmp_path / "skills" / name)
    commit_all(tmp_path)
    git(tmp_path, "switch", "--quiet", "--create", "branch")
    with (tmp_path / "skills" / "yaml-parsing" / "SKILL.md").open("a", encoding="utf-8") as stream:
        stream.write("\nAnother word.\n")
    commit_all(tmp_path)
    return tmp_path


def act(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the step of the action that tests."""
    document = yaml.safe_load(ACTION.read_text("utf-8"))
    (step,) = (step for step in steps(document) if step.get("id") == "run")
    given = {"MODELS": "offline", "PATHS": "skills", "SINCE": "", "ARGS": "", "FOLDER": "out"}
    given |= {"COMPARE": "base", "BASE": ""}
    output = {"GITHUB_OUTPUT": str(folder / "outputs")}
    return shell(step["run"], folder, **given | output | inputs)


def test_the_action_writes_reports_and_outputs(project: Path) -> None:
    process = act(project, ARGS="--upskill-runs 2 -q")

    assert process.returncode == 0, process.stdout
    names = {file.name for file in (project / "out").iterdir()}
    assert names == {"report.json", "report.md", "report.html", "junit.xml"}
    outputs = (project / "outputs").read_text("utf-8")
    assert outputs == ("outcome=passed\nverdict=helps\nfailed-gates=[]\nfailed-cases=[]\n")


def test_the_action_is_red_where_a_gate_is(project: Path) -> None:
    skill = project / "skills" / "yaml-parsing" / "SKILL.md"
    skill.write_text("---\nname: yaml-parsing\ndescription: Nothing.\n---\n", "utf-8")

    process = act(project, ARGS="--upskill-min-lift 0.2")

    assert process.returncode == 1
    outputs = (project / "outputs").read_text("utf-8")
    assert 'failed-gates=["yaml-parsing on offline"]\n' in outputs


def test_the_action_compares_a_pull_request_with_its_base(project: Path) -> None:
    git(project, "update-ref", "refs/remotes/origin/main", "main")
    skill = project / "skills" / "yaml-parsing" / "SKILL.md"
    skill.write_text("---\nname: yaml-parsing\ndescription: Nothing.\n---\n", "utf-8")

    process = act(project, BASE="main", ARGS="--upskill-min-pass-rate 0 --upskill-runs 5")

    assert process.returncode == 1, process.stdout
    assert "the skill became worse than origin/main: " in process.stdout
    assert "next: restore what the skill has lost" in process.stdout
    assert "verdict=regression\n" in (project / "outputs").read_text("utf-8")


def test_the_action_tests_only_what_changed(project: Path) -> None:
    process = act(project, SINCE="main", ARGS="-v")

    assert "skills/yaml-parsing/skill_meta.json::" in process.stdout
    assert "git-commit-messages" not in process.stdout


def test_where_nothing_changed_the_action_does_nothing(project: Path) -> None:
    process = act(project, SINCE="branch")

    assert process.returncode == 0
    assert "skipped 2 skills unchanged since branch, so there is nothing to run" in process.stdout
    assert (project / "outputs").read_text("utf-8") == (
        "outcome=passed\nverdict=\nfailed-gates=[]\nfailed-cases=[]\n"
    )


def test_the_action_is_red_where_a_clone_cannot_tell_what_changed(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shallow = tmp_path_factory.mktemp("shallow")
    git(shallow, "clone", "--quiet", "--depth=1", "--no-single-branch", f"file://{project}", ".")

    process = act(shallow, SINCE="origin/main")

    assert process.returncode == 4
    assert "git fetch --unshallow (actions/checkout: fetch-depth: 0)" in process.stdout


def test_inputs_of_the_action_are_words_not_commands(project: Path) -> None:
    process = act(project, ARGS="-q $(touch owned) ; touch owned", PATHS="skills\n$(touch owned)")

    assert process.returncode != 0
    assert not (project / "owned").exists()


@pytest.fixture
def night(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepare what the job that proposes finds: a clone of main, new results, and GitHub's tool."""
    git(project, "switch", "--quiet", "main")
    for name in ("old", "kept"):
        write(project / "recordings" / f"{name}.json", name)
    commit_all(project)
    clone = tmp_path_factory.mktemp("clone")
    git(clone, "clone", "--quiet", str(project), ".")
    write(clone / "new" / "recordings" / "kept.json", "kept")
    write(clone / "new" / "report.md", "It helps.")
    write(clone / "bin" / "gh", GH).chmod(0o755)
    write(clone / "pull-request", "")
    write(clone / ".git" / "info" / "exclude", "/new\n/bin\n/gh.log\n/pull-request\n")
    return clone


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return file


def propose(clone: Path) -> subprocess.CompletedProcess[str]:
    """Run the step of the nightly workflow that opens the pull request."""
    workflow = yaml.safe_load((FOLDER / "nightly.yml").read_text("utf-8"))
    step = workflow["jobs"]["propose"]["steps"][-1]
    path = f"{clone / 'bin'}{os.pathsep}{os.environ['PATH']}"
    given = {"BASE": "main", "BRANCH": step["env"]["BRANCH"], "NEW": str(clone / "new")}
    return shell(step["run"], clone, **given, GITHUB_REPOSITORY="o/r", PATH=path)


def pushed(clone: Path) -> list[str]:
    """List the files that the branch changes, each with what became of it."""
    return git(clone, "diff", "--name-status", "main", "origin/upskill-nightly").splitlines()


def test_a_night_proposes_what_is_new_and_what_is_gone(night: Path) -> None:
    write(night / "new" / "recordings" / "new.json", "new")
    write(night / "new" / ".upskill" / "baselines" / "csv" / "haiku.json", "{}")

    process = propose(night)

    assert process.returncode == 0, process.stdout
    assert pushed(night) == [
        "A\t.upskill/baselines/csv/haiku.json",
        "A\trecordings/new.json",
        "D\trecordings/old.json",
    ]
    said = (night / "gh.log").read_text("utf-8").splitlines()
    assert said[-1].startswith("pr create --base main --head upskill-nightly ")


def test_another_night_brings_the_pull_request_up_to_date(night: Path) -> None:
    assert propose(night).returncode == 0
    git(night, "switch", "--quiet", "main")
    git(night, "branch", "--quiet", "--delete", "--force", "upskill-nightly")
    write(night / "new" / "recordings" / "newer.json", "newer")
    write(night / "pull-request", "7\n")

    process = propose(night)

    assert process.returncode == 0, process.stdout
    assert "A\trecordings/newer.json" in pushed(night)
    said = (night / "gh.log").read_text("utf-8").splitlines()
    assert said[-1] == (
        f"api --silent --method PATCH repos/o/r/pulls/7 --field body=@{night}/new/report.md"
    )


def test_a_night_with_nothing_new_proposes_nothing(night: Path) -> None:
    write(night / "new" / "recordings" / "old.json", "old")

    process = propose(night)

    assert (process.returncode, process.stdout) == (0, "nothing new\n")
    assert not (night / "gh.log").exists()
